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
    A model is split into *stages*, numbered along the graph. Each stage runs on its own part of the mesh: a coordinate of
    one axis, the pipeline axis. A batch is split into *microbatches*, which pass through the stages one after the other in
    the order of a *schedule*. The passes turn a module into these programs, one after the other:

    * the program of one microbatch: `pipe.split` on arguments and results says along which dim they are split. A
      `pipe.accumulate` sums over microbatches, a `pipe.part` splits a value that microbatches share (`pipe-microbatch`);
    * the program with `pipe.stage` on each op, written by `pipe-assign-stages` or by hand. Parameters and constants have no
      stage: each stage that uses one has it;
    * stages as functions, called in the loop `pipe.microbatches` (`pipe-split`), and the table `pipe.schedule`
      (`pipe-schedule`);
    * a function per rank of the pipeline, with `pipe.send` and `pipe.recv` (`pipe-lower`).

    Attributes of the module:
    * `pipe.mesh`: the mesh with the pipeline axis (`spmd.mesh` is the mesh inside a stage);
    * `pipe.axis`: the name of the pipeline axis;
    * `pipe.microbatches`: their number;
    * `pipe.stages`, of a step of training: the number of stages; `pipe.stage` of an op is then the number of its *unit*, of which a
      stage has three: F, the forward, is unit s of stage s; I, gradients that other stages wait for, and W, the other gradients, follow
      for the stages in falling order;
    * `pipe.boundaries`: what reports say of stages.

    Attributes of a function:
    * `pipe.rank`: the rank of the pipeline that runs it.

    Attributes of a call behind the loop:
    * `pipe.home`: the stage whose rank runs it; without it the last one does.

    Attributes of the function of one microbatch:
    * `pipe.samples`: the number of samples of the batch; microbatches and shards have equally many of them;
    * `pipe.shards`, where microbatches differ by a sample of each shard: the number of shards;
    * `pipe.per_shard`, next to `pipe.shards`: the number of samples of one shard that the program is written for.

    Attributes of its arguments and results:
    * `pipe.split`: the dim that is split;
    * `pipe.home`: of an argument that stays in the ranks as it is (`spmd.kept`): the rank that has it;
    * `pipe.index`: the number among inputs or outputs of the full model.

    Constraints, checked on every op, argument and result that has such an attribute:
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
    static constexpr ::llvm::StringLiteral kMicrobatchesAttr = ::cleave::spmd::kMicrobatchesAttr;
    static constexpr ::llvm::StringLiteral kStagesAttr = "pipe.stages";
    static constexpr ::llvm::StringLiteral kBoundariesAttr = "pipe.boundaries";
    /// Of a call behind the loop: the stage whose rank runs it. Of an argument that is kept: its rank.
    static constexpr ::llvm::StringLiteral kHomeAttr = "pipe.home";
    /// Of a function: the rank of the pipeline that runs it.
    static constexpr ::llvm::StringLiteral kRankAttr = "pipe.rank";
    /// Of the function of one microbatch: samples of the full batch.
    static constexpr ::llvm::StringLiteral kSamplesAttr = "pipe.samples";
    /// Where microbatches differ by a sample of each shard: shards, and samples of one that the program is written for.
    static constexpr ::llvm::StringLiteral kShardsAttr = "pipe.shards";
    static constexpr ::llvm::StringLiteral kPerShardAttr = "pipe.per_shard";
    /// Of an argument or result.
    static constexpr ::llvm::StringLiteral kSplitAttr = ::cleave::spmd::kSplitInTimeAttr;
    static constexpr ::llvm::StringLiteral kIndexAttr = "pipe.index";
  }];
}

#endif // CLEAVE_PIPE_DIALECT
