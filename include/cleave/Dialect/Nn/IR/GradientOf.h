//===- GradientOf.h - which attention a softmax belongs to ------*- C++ -*-===//
//
// The rule of attention's gradient makes the weights again, in a softmax of its own. Both ops get one number, so that whoever puts keys on
// their way in the forward knows which products of the backward read them:
//
//   %y = nn.attention %q, %k, %v .. {nn.gradient_of = 0 : i64}        %p = nn.softmax %s dim 3 {nn.gradient_of = 0 : i64}
//
// Operands alone do not say it: two attentions to the same keys may hide others of them. Gone once keys go round or are gathered.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_GRADIENTOF_H
#define CLEAVE_DIALECT_NN_IR_GRADIENTOF_H

#include "llvm/ADT/StringRef.h"

namespace cleave::nn {

/// Of an nn.attention that has a gradient, and of the softmax of that gradient: a number that no other attention of the function has.
inline constexpr llvm::StringLiteral kGradientOfAttr = "nn.gradient_of";
/// Of the nn.einsums of such a gradient: the letter of the queries. Who asks for a form of attention has them sharded on the way back as
/// they are in the forward.
inline constexpr llvm::StringLiteral kQueriesAttr = "nn.queries";

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_GRADIENTOF_H
