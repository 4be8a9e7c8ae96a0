//===- Shard.h - from wishes to the program of one device -------*- C++ -*-===//
#ifndef CLEAVE_PIPELINES_SHARD_H
#define CLEAVE_PIPELINES_SHARD_H

#include "cleave/Pipelines/Phases.h"

namespace cleave {

/// Adds the phases from annotation on, each with its gate (Phases.cpp tells what each is for).
void buildShardPipeline(mlir::OpPassManager &manager, ShardOptions options);

/// Registers it as `spmd-shard`, and the passes of the spmd dialect.
void registerSpmdPipelines();

} // namespace cleave

#endif // CLEAVE_PIPELINES_SHARD_H
