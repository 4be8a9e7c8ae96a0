//===- Roles.h - what each weight is to the model ---------------*- C++ -*-===//
//
// Found by structure, never by names: who multiplies what, what meets itself, what is looked up.
//
//   query, key, value      two products of activations with rows between (softmax) are attention; these make its operands
//   attention output       the first product behind it
//   up, gate, down         a product, and the next one, nothing but elements between; of two ups of one down the gate passes more ops until
//                          they meet
//   router, expert up/down a product for each expert, and what picks them
//   embedding              its rows are looked up; of a position table for indices that no input tells, or it is added as it is
//   head                   a product behind which there is none
//   convolution            by columns (output channels) or rows (input channels), as coloring cuts them, or depthwise
//   norm, bias             vectors that scale rows' statistics, or are added to products
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_ROLES_H
#define CLEAVE_SEARCH_ROLES_H

#include "cleave/Solver/Problem.h"

namespace cleave::spmd {

enum class RoleKind : uint8_t {
  Query,
  Key,
  Value,
  AttentionOutput,
  Gate,
  Up,
  Down,
  Router,
  ExpertUp,
  ExpertDown,
  Embedding,
  PositionTable,
  Head,
  ConvolutionColumn,
  ConvolutionRow,
  ConvolutionDepthwise,
  Convolution,
  Norm,
  Bias,
  Other,
};

/// In the order of the enum.
inline constexpr llvm::StringLiteral kRoleWords[] = {"query",
                                                     "key",
                                                     "value",
                                                     "attention output",
                                                     "gate",
                                                     "up",
                                                     "down",
                                                     "router",
                                                     "expert up",
                                                     "expert down",
                                                     "embedding",
                                                     "position table",
                                                     "head",
                                                     "convolution, column",
                                                     "convolution, row",
                                                     "convolution, depthwise",
                                                     "convolution",
                                                     "norm",
                                                     "bias",
                                                     "other"};

/// Several kinds of one weight: queries, keys and values lie in one, or the head is the embedding.
using RoleKinds = uint32_t;
constexpr RoleKinds toKinds(RoleKind kind) { return RoleKinds(1) << static_cast<unsigned>(kind); }
/// `query, key, value`.
std::string describe(RoleKinds kinds);

struct Role {
  ValueId weight = kNone;
  RoleKinds kinds = 0;
  /// The how manyth of a run of equal layers, counted over all runs from 1; 0: none.
  unsigned block = 0;
};

/// Of each weight that something reads, in the order of its first use. By value: `isGiven`, a caller gives it; `isWeight`, it is a parameter,
/// and no constant.
std::vector<Role> findRoles(const Problem &problem, const std::vector<char> &isGiven,
                            const std::vector<char> &isWeight);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_ROLES_H
