//===- NpzFuzzer.cpp - any bytes as an archive and as an array ------------===//
//
// An array that was read is written and read again: nothing may change.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Npz.h"

using namespace llvm;
using namespace cleave;

static void checkRoundTrip(const NpyArray &array) {
  Expected<NpyArray> again = parseNpy(formatNpy(array));
  if (!again || again->dtype != array.dtype || again->shape != array.shape || again->data != array.data)
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (Expected<NpyArray> array = parseNpy(bytes))
    checkRoundTrip(*array);
  else
    consumeError(array.takeError());
  Expected<NpzArrays> arrays = readNpz(*MappedFile::fromMemory("fuzz.npz", std::move(bytes)));
  if (!arrays)
    consumeError(arrays.takeError());
  else
    for (const auto &entry : *arrays)
      checkRoundTrip(entry.second);
  return 0;
}
