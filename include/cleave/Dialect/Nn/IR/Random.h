//===- Random.h - random numbers, the same on any number of ranks -*- C++ -*-===//
//
// The generator is Philox2x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011): ten
// rounds of a 32-bit product and exclusive ors, on a counter of two words, under a key. The counter of an element is its place in the
// tensor in row-major order, made of iotas; so each rank computes the elements of its shard and no other, and they are
// the same however the tensor is split.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_RANDOM_H
#define CLEAVE_DIALECT_NN_IR_RANDOM_H

#include "cleave/Dialect/Nn/IR/Composer.h"

namespace cleave::nn {

/// FNV-1a of the text, and of the bytes of `seed` behind it, where there is one.
uint32_t makeRandomKey(llvm::StringRef text, std::optional<int64_t> seed = std::nullopt);

/// Two words of 32 bits for each element of a tensor of that shape, as i64.
/// \param step null, or a number of rank 0 and type i64 on which they depend, too: its lower bits join the counter's second word.
std::pair<mlir::Value, mlir::Value> composeRandomWords(Composer &f, Shape shape, uint32_t key, mlir::Value step = {});

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_RANDOM_H
