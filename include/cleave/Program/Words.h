//===- Words.h - programs as people read them -------------------*- C++ -*-===//
//
// One word for each case of an enum, the same in messages, in `cleave inspect` and in docs/program-file.md.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_WORDS_H
#define CLEAVE_PROGRAM_WORDS_H

#include "cleave/Program/Program.h"

namespace cleave::program {

/// `f32`, `ui8`, ...
const char *getWord(Element element);
/// `none`, `sum`, ...
const char *getWord(Reduction reduction);
const char *getWord(Device device);

/// What kernels of a kind of device are like.
struct DeviceTraits {
  const char *word;
  bool takesSharedObjects; ///< code is a shared object; else PTX or a cubin
  uint32_t mostThreads;    ///< of a block; 1: a kernel is called once, and not launched
};
/// Precondition: it is a kind.
const DeviceTraits &getTraits(Device device);

const char *getWord(Format format);
const char *getWord(Access access);
const char *getWord(BufferKind kind);
const char *getWord(Memory memory);
const char *getWord(StepRole role);
const char *getWord(Activation activation);
/// What a command does: `launch`, `matmul`, `all_reduce`, `wait`, ...
const char *getWord(const Action &action);

/// `f32[4, 128]`; strides, where there are some, behind: `f32[4, 128] strides [256, 1]`.
std::string format(const Type &type);

/// 1 to 8.
uint32_t getElementBytes(Element element);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_WORDS_H
