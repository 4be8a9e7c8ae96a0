//===- Checkpoint.h - what is in a file of states ---------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_CHECKPOINT_H
#define CLEAVE_RUNTIME_CHECKPOINT_H

#include "cleave/Arrays/Safetensors.h"

namespace cleave::runtime {

/// What is in a file that `Executor::saveStates`, or another tool, wrote: names, types, places, metadata.
program::Result<arrays::Safetensors> readCheckpoint(const std::string &path);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_CHECKPOINT_H
