//===- WriteRunnable.cpp - the programs that run, as files ----------------===//
//
// cleave-runnable-programs FOLDER writes each of them, and their weights, into FOLDER.
//
//===----------------------------------------------------------------------===//
#include "RunnableSamples.h"

#include <cstdio>
#include <fstream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cleave-runnable-programs FOLDER\n");
    return 2;
  }
  for (const auto &[name, bytes] : cleave::runtime::test::makeRunnableFiles()) {
    std::ofstream file(std::string(argv[1]) + "/" + name, std::ios::binary);
    file << bytes;
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s\n", name.c_str());
      return 1;
    }
  }
  return 0;
}
