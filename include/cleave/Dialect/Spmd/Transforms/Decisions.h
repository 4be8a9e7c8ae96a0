//===- Decisions.h - what was decided, for whoever asks why -----*- C++ -*-===//
//
// `spmd-propagate` forgets how it decided, unless whoever makes the pass gives it a place to keep that. Values and ops
// are those of the propagated module: ask before it goes on to the next phase.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_TRANSFORMS_DECISIONS_H
#define CLEAVE_DIALECT_SPMD_TRANSFORMS_DECISIONS_H

#include "cleave/Dialect/Spmd/Deciding/FunctionProblem.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"

namespace cleave::spmd {

struct Decisions {
  std::unique_ptr<MeshAtoms> atoms;
  /// One for each function, solved.
  std::vector<std::unique_ptr<FunctionProblem>> functions;

  /// That of `func`, or null.
  const FunctionProblem *find(mlir::func::FuncOp func) const;
};

/// The pass, deciding by `costs`; where `kept` is not null it must outlive the pass, which leaves there what it decided. `memory` is that of
/// the solver (`SolverOptions::memory`).
std::unique_ptr<mlir::Pass> createPropagate(PropagateOptions options, CostModel costs, Decisions *kept,
                                            std::shared_ptr<SearchMemory> memory = nullptr);

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_TRANSFORMS_DECISIONS_H
