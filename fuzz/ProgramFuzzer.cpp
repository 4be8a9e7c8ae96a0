//===- ProgramFuzzer.cpp - any bytes as a program file --------------------===//
//
// What is accepted must bear being run: everything that it names lies where it may. Nothing of its code is executed.
// Written again it is the same program, and there is something to say of it.
//
//===----------------------------------------------------------------------===//
#include "Unit/Program/Walk.h"

#include "cleave/Program/File.h"
#include "cleave/Program/Summary.h"

using namespace cleave::program;

static void require(bool holds) {
  if (!holds)
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  Result<Program> program = readProgram(bytes, Verify::No);
  if (!program) {
    require(!program.getError().message.empty());
    return 0;
  }
  require(Walk(*program).run());
  require(summarize(*program).size() == program->variants.size());
  std::string written = writeProgram(*program);
  Result<Program> again = readProgram(written);
  require(again && writeProgram(*again) == written);
  return 0;
}
