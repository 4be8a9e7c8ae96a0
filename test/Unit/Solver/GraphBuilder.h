//===- GraphBuilder.h - small problems for tests ----------------*- C++ -*-===//
//
// Builds problems from einsums and the like, without IR:
//
//   GraphBuilder graph({2, 4});                        // mesh axes 0 and 1
//   ValueId x = graph.input({8, 64}, {{0}, {}});       // dim 0 annotated on axis 0, dim 1 replicated
//   ValueId w = graph.parameter({64, 256}, {{}, {1}});
//   graph.problem.addOutput(graph.einsum("ik,kj->ij", {x, w}));
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_SOLVER_GRAPHBUILDER_H
#define CLEAVE_TEST_UNIT_SOLVER_GRAPHBUILDER_H

#include "cleave/Sharding/State.h"
#include "cleave/Solver/Problem.h"

namespace cleave::spmd {

/// Per dim the mesh axes that split it, major to minor.
using DimAxes = std::vector<std::vector<unsigned>>;

class GraphBuilder {
public:
  explicit GraphBuilder(llvm::ArrayRef<int64_t> axisSizes) : problem(AtomMesh(axisSizes)) {}

  /// All dims closed, every axis replicated. Causes are numbered 0, 1, ... in the order of calls.
  Annotation annotation(const DimAxes &dims);
  /// The same, and partial over these axes.
  Annotation partialAnnotation(const DimAxes &dims, llvm::ArrayRef<unsigned> partial,
                               ReductionKind kind = ReductionKind::Sum);
  /// An f32 input, with or without an annotation.
  ValueId input(llvm::ArrayRef<int64_t> shape);
  ValueId input(llvm::ArrayRef<int64_t> shape, const DimAxes &dims);
  ValueId parameter(llvm::ArrayRef<int64_t> shape);
  ValueId parameter(llvm::ArrayRef<int64_t> shape, const DimAxes &dims);

  /// A contraction; linear in each operand.
  ValueId einsum(llvm::StringRef equation, llvm::ArrayRef<ValueId> operands);
  /// An elementwise op with numpy broadcasting; it is linear in each of `linearSets` of operands together.
  ValueId pointwise(llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<std::vector<int32_t>> linearSets = {});
  ValueId add(ValueId lhs, ValueId rhs) { return pointwise({lhs, rhs}, {{0, 1}}); }
  /// Statistics over the last dim: `times` all_reduces where it is split.
  ValueId normalize(llvm::ArrayRef<ValueId> operands, int64_t times);
  ValueId transpose(ValueId operand, llvm::ArrayRef<unsigned> permutation);
  /// Splits dim `dim` into `major` and the rest; merges dims `dim` and `dim + 1`.
  ValueId splitDim(ValueId operand, unsigned dim, int64_t major);
  ValueId mergeDims(ValueId operand, unsigned dim);

  /// Adds an op whose only result has `shape`.
  ValueId op(ShardingRule rule, llvm::ArrayRef<ValueId> operands, llvm::ArrayRef<int64_t> shape);
  /// The value of `operand` in the annotated state, by a constraint.
  ValueId constrain(ValueId operand, const Annotation &annotation);
  /// The state with these axes.
  State state(const DimAxes &dims) const;

  Problem problem;

private:
  ValueId move(RuleBuilder &rule, ValueId operand, llvm::ArrayRef<int64_t> shape);
  CauseId nextCause = 0;
};

/// The rule of an einsum; `shapes` are those of the operands.
ShardingRule einsumRule(llvm::StringRef equation, llvm::ArrayRef<std::vector<int64_t>> shapes);

/// A decoder-only transformer: 34 ops a layer as exporters write it, batch on mesh axis 0, Megatron on axis 1. All
/// layers share one attention mask.
void buildTransformer(GraphBuilder &graph, unsigned numLayers, int64_t batch, int64_t sequence, int64_t hidden,
                      int64_t heads);

} // namespace cleave::spmd

#endif // CLEAVE_TEST_UNIT_SOLVER_GRAPHBUILDER_H
