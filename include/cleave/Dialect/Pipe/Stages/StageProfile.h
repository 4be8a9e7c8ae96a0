//===- StageProfile.h - measured times of a model's nodes -------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_PIPE_STAGES_STAGEPROFILE_H
#define CLEAVE_DIALECT_PIPE_STAGES_STAGEPROFILE_H

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"

namespace cleave::pipe {

/// Gives ops of `graph`, which is made of `func`, the times that `text`, a profile out of the file `path`, has of nodes (Schedule/Profile.h):
/// those of F on one microbatch. Returns how many nodes got theirs so, for people. Errors have their place in the file.
llvm::FailureOr<std::string> applyProfile(mlir::func::FuncOp func, llvm::StringRef path, llvm::StringRef text,
                                          StageGraph &graph);

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_STAGES_STAGEPROFILE_H
