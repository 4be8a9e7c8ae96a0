//===- cleave-run.cpp - runs a program file -------------------------------===//
//
// What it can do is in lib/Runner.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Exhaustion.h"
#include "cleave/Runner/Runner.h"

#include <cstdio>

int main(int argc, char **argv) {
  cleave::program::endWhenExhausted("cleave-run", cleave::runner::kBadInput);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (std::string text = cleave::runner::printsOnly(words); !text.empty()) {
    std::fputs(text.c_str(), stdout);
    return cleave::runner::finishOutput(cleave::runner::kDone);
  }
  cleave::program::Result<cleave::runner::RunOptions> options = cleave::runner::parseOptions(words);
  if (options)
    return cleave::runner::run(*options);
  std::fprintf(stderr, "cleave-run: error: %s\n", options.getError().message.c_str());
  return cleave::runner::kBadCommandLine;
}
