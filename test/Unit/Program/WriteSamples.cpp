//===- WriteSamples.cpp - the samples as files ----------------------------===//
//
// cleave-sample-programs FOLDER writes each to FOLDER/NAME.cleave.
//
//===----------------------------------------------------------------------===//
#include "Samples.h"

#include "cleave/Program/File.h"
#include <cstdio>
#include <fstream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cleave-sample-programs FOLDER\n");
    return 2;
  }
  for (const auto &[name, program] : cleave::program::makeSamples()) {
    std::ofstream file(std::string(argv[1]) + "/" + name + ".cleave", std::ios::binary);
    if (!(file << cleave::program::writeProgram(program)).flush()) {
      std::fprintf(stderr, "error: cannot write to %s\n", argv[1]);
      return 1;
    }
  }
  return 0;
}
