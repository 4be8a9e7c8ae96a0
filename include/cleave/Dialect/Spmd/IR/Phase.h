//===- Phase.h - the phases of a model's way, and where a module is -*- C++ -*-===//
//
// One table of phases, in order: the word that users type (`--emit`, docs/interface.md) and the key of its time in a
// report. A module says in its attribute `spmd.phase` which one it has been through:
//
//   gate of a phase     checks what now holds, and writes the attribute            setPhase
//   next phase          demands it, and takes it away: between gates nothing is    enterPhase
//                       promised
//
// A file written by hand says nothing; what can be seen in it is then taken for it, in one place: getPhase.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_PHASE_H
#define CLEAVE_DIALECT_SPMD_IR_PHASE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <optional>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace cleave {

/// In the order of a model's way.
enum class Phase {
  Imported,
  Canonical,
  Differentiated, ///< only of a model that is trained
  Annotated,
  Propagated,
  Resharded,
  Partitioned,
  Optimized,
  Staged,
  Scheduled,
  PerRank,
  Clustered,
  Outlined,
  Planned,
  Ordered
};

/// What a phase is called.
struct PhaseName {
  Phase phase;
  llvm::StringLiteral word;    ///< what the module is afterwards: `--emit=propagated`
  llvm::StringLiteral timeKey; ///< what is done: `propagate` in a report's `seconds`
};

/// All phases in order.
llvm::ArrayRef<PhaseName> getPhaseNames();
llvm::StringRef toString(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef word);

/// True for phases that only models of a pipeline go through.
inline bool isOfPipeline(Phase phase) { return phase >= Phase::Staged && phase <= Phase::PerRank; }

/// The words of some phases that follow each other, for an option of a pass.
struct PhaseWords {
  Phase first, last;

  template <typename Option> void apply(Option &option) const {
    for (const PhaseName &name : getPhaseNames())
      if (name.phase >= first && name.phase <= last)
        option.getParser().addLiteralOption(name.word, name.phase, "");
  }
};

/// The phase that `module` has been through: what its last gate wrote, or, without that, the furthest one that its ops
/// and types show for certain.
Phase getPhase(mlir::ModuleOp module);

/// For the gate of `phase`.
void setPhase(mlir::ModuleOp module, Phase phase);

/// For a pass that makes `phase` of a module: fails, with an error that says what it is and what it should be, if a gate
/// wrote that it has not been through the phase before, or if it shows that it has been through `phase`. Nothing is
/// promised any more afterwards.
llvm::LogicalResult enterPhase(mlir::ModuleOp module, Phase phase);

} // namespace cleave

#endif // CLEAVE_DIALECT_SPMD_IR_PHASE_H
