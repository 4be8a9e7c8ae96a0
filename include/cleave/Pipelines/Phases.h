//===- Phases.h - the phases of a model's way -------------------*- C++ -*-===//
//
// The names are those of `--emit` (docs/interface.md). Each phase ends with the gate that checks what now holds.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_PHASES_H
#define CLEAVE_PIPELINES_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace cleave {

enum class Phase { Imported, Canonical, Annotated, Propagated, Resharded, Partitioned, Optimized };

/// `imported`, `canonical`, ...
llvm::StringRef toString(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);
/// The key of a phase's time in a report: `import`, `propagate`, `insert_reshards`, ...
llvm::StringRef getTimeName(Phase phase);

/// What a user asked for.
struct ShardOptions {
  std::string plan, mesh;         ///< plan file and mesh, as typed; may be empty
  std::vector<std::string> shard; ///< rules, as typed
  std::string optimize = "balanced";
  bool checkBytes = false; ///< an error where the program sends other bytes than were decided
};

/// The last phase that `module` shows signs of having been through.
Phase detectPhase(mlir::ModuleOp module);

/// Adds the passes of one phase, its gate last. Precondition: `phase` is not Imported, which is the importer's.
void addPhase(mlir::OpPassManager &manager, Phase phase, const ShardOptions &options);

} // namespace cleave

#endif // CLEAVE_PIPELINES_PHASES_H
