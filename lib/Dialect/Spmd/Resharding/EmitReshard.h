//===- EmitReshard.h - one reshard as collectives ---------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_SPMD_RESHARDING_EMITRESHARD_H
#define CLEAVE_LIB_DIALECT_SPMD_RESHARDING_EMITRESHARD_H

#include "../Deciding/RuleMatches.h"
#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"
#include "cleave/Sharding/ReshardPlanner.h"

namespace cleave::spmd {

/// Writes the plans of reshards as ops; a plan is made once per pair of types.
class ReshardEmitter {
public:
  ReshardEmitter(MeshAtoms &atoms, RuleMatches &rules, const CostModel &costs)
      : atoms(atoms), rules(rules), planner(atoms.getAtoms(), {/*useIdleAtoms=*/false, costs}),
        program(ProgramDialect::get(atoms.getMesh().getContext())) {}

  /// The per-device form of `reshard` on `local`, the per-device form of its operand. Null after an error.
  mlir::Value emit(mlir::OpBuilder &builder, ReshardOp reshard, mlir::Value local);

private:
  /// What stays the same over the steps of one reshard.
  struct Reshard {
    ReshardOp op;
    mlir::RankedTensorType global;
    const State *from, *to;
  };

  const ReshardPlan *getPlan(const Reshard &reshard);
  mlir::Value emitStep(mlir::OpBuilder &builder, const Reshard &reshard, const ReshardStep &step, const State &before,
                       mlir::Value value);
  mlir::Value emitFitted(mlir::OpBuilder &builder, const Reshard &reshard, const ReshardStep &step, const State &before,
                         mlir::Value value);
  mlir::ArrayAttr getAxesPerDim(const State &longer, const State &shorter) const;
  llvm::SmallVector<int64_t, 4> getPaddedShape(const State &state, const State &other,
                                               llvm::ArrayRef<int64_t> global) const;
  static mlir::Location getLoc(const Reshard &reshard, const ReshardStep &step);
  std::string getCause(const Reshard &reshard, const ReshardStep &step);
  std::optional<llvm::StringRef> getReducedDim(mlir::Operation *producer, llvm::ArrayRef<AtomId> list);
  bool isMadePartial(ReshardOp reshard, llvm::ArrayRef<AtomId> list);

  MeshAtoms &atoms;
  RuleMatches &rules;
  ReshardPlanner planner;
  const ProgramDialect &program;
  llvm::DenseMap<std::pair<mlir::Type, mlir::Type>, std::optional<ReshardPlan>> plans;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_DIALECT_SPMD_RESHARDING_EMITRESHARD_H
