//===- Repeats.h - equal layers of a sequence -------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_SEARCH_REPEATS_H
#define CLEAVE_LIB_SEARCH_REPEATS_H

#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace cleave::spmd {

/// Numbers equal layers from 1, in order; 0 is what does not repeat. A layer has two letters at least, and comes at least twice in a row:
/// `e abc abc abc h` is 0 111 222 333 0. What covers most is taken, then what is in front of it and behind.
std::vector<unsigned> numberRepeats(llvm::ArrayRef<unsigned> letters);

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SEARCH_REPEATS_H
