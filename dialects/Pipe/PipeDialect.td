//===- PipeDialect.td - a model as a pipeline -------------------*- tablegen -*-===//
#ifndef CLEAVE_PIPE_DIALECT
#define CLEAVE_PIPE_DIALECT

include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::cleave::pipe";
  let summary = "stages, microbatches, schedules";
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::cleave::nn::NnDialect"];
  let description = [{
    A model is cut into *stages*, numbered along the graph, each of which lives on its own part of the mesh: a coordinate of
    one axis, the pipeline axis. A batch is cut into *microbatches*, which pass through the stages one after the other in
    the order of a *schedule*. On its way a module has these forms:

    * the program of one microbatch: `pipe.split` on arguments and results says along which dim they are cut,
      `pipe.accumulate` where microbatches are summed up, `pipe.part` where a whole value is cut (`pipe-microbatch`);
    * `pipe.stage` on each op, written by `pipe-assign-stages` or by hand. Parameters and constants have no stage: each
      stage that uses one has it;
    * stages as functions, called in the loop `pipe.microbatches` (`pipe-split`); and the table `pipe.schedule` (`pipe-schedule`);
    * a function per rank of the pipeline, with `pipe.send` and `pipe.recv` (`pipe-lower`).

    Attributes: of the module `pipe.mesh`, the mesh with the pipeline axis (`spmd.mesh` is the mesh inside a stage),
    `pipe.axis`, its name, `pipe.microbatches`, and `pipe.cuts`, what reports say of stages; of a function `pipe.rank`, and of that of a microbatch `pipe.samples`, how many samples the batch has, of which microbatches
    and shards have equally many; where microbatches differ by a sample of each shard, `pipe.shards`, how many of these, and `pipe.per_shard`, for how many samples of one the program is written; of its arguments and results `pipe.split`, the
    dim that is cut, and `pipe.index`, the number among inputs or outputs of the whole model.

    Constraints, checked wherever an attribute stands:
    * (P1) the pipeline axis is one of `pipe.mesh`, and none of `spmd.mesh`: no sharding uses it;
    * (P2) a stage is an integer of 64 bits, 0 or more;
    * (P3) edges go forward: no op is in an earlier stage than one whose result it uses.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Of an op: its stage.
    static constexpr ::llvm::StringLiteral kStageAttr = "pipe.stage";
    /// Of the module.
    static constexpr ::llvm::StringLiteral kMeshAttr = "pipe.mesh";
    static constexpr ::llvm::StringLiteral kAxisAttr = "pipe.axis";
    static constexpr ::llvm::StringLiteral kMicrobatchesAttr = "pipe.microbatches";
    static constexpr ::llvm::StringLiteral kCutsAttr = "pipe.cuts";
    /// Of a function: the rank of the pipeline that runs it.
    static constexpr ::llvm::StringLiteral kRankAttr = "pipe.rank";
    /// Of the function of one microbatch: samples of the whole batch.
    static constexpr ::llvm::StringLiteral kSamplesAttr = "pipe.samples";
    /// Where microbatches differ by a sample of each shard: shards, and samples of one that the program is written for.
    static constexpr ::llvm::StringLiteral kShardsAttr = "pipe.shards";
    static constexpr ::llvm::StringLiteral kPerShardAttr = "pipe.per_shard";
    /// Of an argument or result.
    static constexpr ::llvm::StringLiteral kSplitAttr = "pipe.split";
    static constexpr ::llvm::StringLiteral kIndexAttr = "pipe.index";
  }];
}

#endif // CLEAVE_PIPE_DIALECT
