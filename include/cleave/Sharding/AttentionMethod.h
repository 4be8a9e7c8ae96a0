//===- AttentionMethod.h - how attention reaches keys of others -*- C++ -*-===//
//
// What a user may ask for where queries are split along their sequence, in a plan (`attention: ring`) or as an option.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_ATTENTIONMETHOD_H
#define CLEAVE_SHARDING_ATTENTIONMETHOD_H

#include "llvm/ADT/StringRef.h"

namespace cleave::spmd {

enum class AttentionMethod {
  Auto,   ///< by cost: heads, keys where they lie, keys gathered or in a ring
  Gather, ///< queries stay, and keys and values come whole
  Ring,   ///< queries stay, and keys and values come in blocks, one while another is attended to
};
/// How users name them.
constexpr llvm::StringLiteral kAttentionWords[] = {"auto", "gather", "ring"};

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_ATTENTIONMETHOD_H
