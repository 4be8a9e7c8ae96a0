//===- OpenFuzzer.cpp - any bytes, opened as a program --------------------===//
//
// What the checks let pass is opened and run as any program is, with its memory, weights, copies and what ranks send each
// other, but for its code: kernels do nothing. That it ends, and that no byte too far is touched, is all there is to see.
//
//===----------------------------------------------------------------------===//
#include "Unit/Runtime/RunIdle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string error;
  bool isRun = cleave::runtime::test::runIdle({reinterpret_cast<const char *>(data), size}, "/nowhere", error);
  if (isRun != error.empty())
    __builtin_trap();
  return 0;
}
