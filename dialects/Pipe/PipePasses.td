//===- PipePasses.td - stages --------------------------------*- tablegen -*-===//
#ifndef CLEAVE_PIPE_PASSES
#define CLEAVE_PIPE_PASSES

include "mlir/Pass/PassBase.td"

class Pipe_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::pipe::PipeDialect", "::cleave::nn::NnDialect", "::mlir::func::FuncDialect"];
}

def Microbatch : Pipe_Pass<"pipe-microbatch"> {
  let summary = "from the program of a batch to that of one microbatch";
  let description = [{
    Splits the batch of a model into microbatches that come one after the other, before anything is decided about devices: a
    partition over an axis in time. Inputs lose all but their part of the batch (`pipe.split` says along which dim), and all that depends on
    them follows by the ops' sharding rules:

    * what is split over microbatches exists once for each;
    * what does not depend on the batch is *whole*, and as it was. Where each microbatch needs positions of its own of a whole value, it takes
      them by `pipe.part`; what is equal in all microbatches is made small at once;
    * a reduction over the batch becomes one over a microbatch, and `pipe.accumulate` of that. What depends on it is the
      *epilogue*, which runs once.

    Nothing can be sent between microbatches, so an op that would need that, or would have to know which microbatch it sees, is
    an error: a norm, softmax, sort or running sum along the batch, a gather or slice of samples, a reshape that merges the
    batch behind another dim, an accumulated value that each sample is compared with.

    The batch of an input is what `batch` says (`NAME=DIM`, names as patterns, `NAME=none` for inputs that have none); else the dim
    whose name in the model contains "batch" (`nn.dims`). Where neither says anything of any input, it is dim 0 of all inputs with more
    than one element there, which must agree in size; otherwise that of inputs without named dims, if it is as large as the batch of the
    others. All other inputs are whole.

    A state (`spmd.state`) is split like any value, and leaves as it came. What a plan wants of a split value must fit the
    smaller batch (S5). Other errors: sizes that microbatches do not divide (P4).

    With `uneven` they need not: samples are dealt out so that microbatches differ by one of each shard that a plan wants of the batch. The program is then
    written for `pipe.per_shard` samples of one, a number that has no factor in common with the devices, so that the batch is sharded no
    further; `pipe-split` makes of it what both sizes run.

    ```mlir
    // before
    func.func @main(%x: tensor<16x4xf32>, %w: tensor<4x4xf32>) -> (tensor<16x4xf32>, tensor<f32>) {
      %y = nn.einsum %x, %w "ik,kj->ij" : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
      %s = nn.reduce sum %y dims [0, 1] : (tensor<16x4xf32>) -> tensor<f32>
      return %y, %s : tensor<16x4xf32>, tensor<f32>
    }
    // after, microbatches=8 batch=arg0=0
    func.func @main(%x: tensor<2x4xf32> {pipe.split = 0 : i64}, %w: tensor<4x4xf32>)
        -> (tensor<2x4xf32> {pipe.split = 0 : i64}, tensor<f32>) {
      %y = nn.einsum %x, %w "ik,kj->ij" : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      %p = nn.reduce sum %y dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
      %s = pipe.accumulate sum %p : tensor<f32>
      return %y, %s : tensor<2x4xf32>, tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"microbatches", "microbatches", "int64_t", "0", "how many">,
    Option<"microbatchSize", "microbatch-size", "int64_t", "0", "how many samples in each, instead">,
    ListOption<"batch", "batch", "std::string", "batch dims of inputs: NAME=DIM, NAME=none">,
    Option<"uneven", "uneven", "bool", "false", "microbatches may differ by one sample of each shard">,
  ];
}

def AssignStages : Pipe_Pass<"pipe-assign-stages"> {
  let summary = "says which stage each op is in";
  let description = [{
    Gives every op of each function `pipe.stage`, but for parameters and constants, which each stage has by itself. Cuts are
    where the slowest stage is fastest, exactly (`StageSplit.h`), and, among these, where the fewest bytes are sent; or by hand, where
    a stage starts at the first op of a node (`starts`, patterns as in plans, one less than stages). Times are those of the
    shapes that types say: of one rank, where the program is partitioned. A remark says of each stage what it takes, holds,
    and sends; what is cheaper to compute again than to send is not counted as sent.

    The time of an op is the larger of its flops and its bytes at the device's rates, and a launch where it has flops;
    of a collective, what the busiest rank sends over a link.

    Errors: more stages than ops, memory that no cut fits into (with the least limit that would do), a start that no node has.

    ```mlir
    %h = nn.einsum %x, %w0 "ik,kj->ij" : ...                        // before
    %y = nn.einsum %h, %w1 "ik,kj->ij" : ...

    %h = nn.einsum %x, %w0 "ik,kj->ij" : ... {pipe.stage = 0 : i64}     // after, stages=2
    %y = nn.einsum %h, %w1 "ik,kj->ij" : ... {pipe.stage = 1 : i64}
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "2", "how many">,
    ListOption<"starts", "starts", "std::string", "nodes at which stages 1, 2, .. start; without it, where it is best">,
    Option<"placement", "placement", "std::string", "\"linear\"", "where stages stand: linear, loop, v, wave">,
    Option<"ranks", "ranks", "int64_t", "0", "ranks of the pipeline; 0: one for each stage">,
    Option<"microbatches", "microbatches", "int64_t", "1", "counts for objective=latency">,
    Option<"objective", "objective", "std::string", "\"throughput\"", "throughput, the slowest stage, or latency, of all microbatches">,
    Option<"relay", "relay", "bool", "false", "values for later stages pass every rank between">,
    Option<"overlapSends", "overlap-sends", "bool", "true", "ranks compute while they send">,
    Option<"memoryLimit", "memory-limit", "int64_t", "0", "bytes of a device; 0: no limit">,
    Option<"flopsPerNs", "flops-per-ns", "double", "-1", "of a device; below 0: as on the plan's cluster">,
    Option<"bytesPerNs", "bytes-per-ns", "double", "-1", "of a device's memory; below 0: as on the plan's cluster">,
    Option<"launchNs", "launch-ns", "double", "-1", "what a kernel takes to start; below 0: as on the plan's cluster">,
    Option<"linkBytesPerNs", "link-bytes-per-ns", "double", "-1", "of a link between ranks; below 0: as on the plan's cluster">,
    Option<"linkNs", "link-ns", "double", "-1", "what a message takes beside its bytes; below 0: as on the plan's cluster">,
  ];
}

def Split : Pipe_Pass<"pipe-split"> {
  let summary = "stages as functions, called in a loop over microbatches";
  let description = [{
    Takes the partitioned program of one microbatch apart (`pipe-microbatch`, `pipe-assign-stages`): ops of a stage become a
    function, parameters and constants in each that uses them, what is cheaper to compute than to send as well. Whole
    values are made before the loop, by a function of each stage that needs some; one that several need and that takes longer to
    make than to send, by the first of these for all, with a remark. What depends on `pipe.accumulate`
    runs behind it. The entry takes and returns whole batches from then on. Where microbatches are of two sizes each stage becomes two functions
    (`main.stage0`, `main.stage0.rest`), the loop has two bodies, and so the same ops run on fewer samples. A remark names each parameter that stages
    of several ranks use, with its bytes.

    Ops without `pipe.stage` go where the last of their producers is. Errors: a stage without ops (P2), edges that go backward
    (P3), a value of one microbatch that is read behind the loop, an op that cannot be made for another number of samples (P4).

    ```mlir
    func.func @main(%x: tensor<2x4xf32> {pipe.split = 0 : i64}) -> (tensor<2x4xf32> {pipe.split = 0 : i64}) {   // before
      %h = nn.exp %x {pipe.stage = 0 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %y = nn.neg %h {pipe.stage = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>

    func.func @main(%x: tensor<16x4xf32>) -> tensor<16x4xf32> {                                                 // after
      %y = pipe.microbatches 8 (%i = %x split 0) -> (split 0) : (tensor<16x4xf32>) -> tensor<16x4xf32> {
        %h = func.call @main.stage0(%i) : (tensor<2x4xf32>) -> tensor<2x4xf32>
        %o = func.call @main.stage1(%h) : (tensor<2x4xf32>) -> tensor<2x4xf32>
        pipe.yield %o : tensor<2x4xf32>
    ```
  }];
  let options = [
    Option<"relay", "relay", "bool", "false", "values for later stages pass every stage between">,
    Option<"sendCheap", "send-cheap", "bool", "false", "values are sent even where computing them again takes less time, whole ones too">,
  ];
}

def ScheduleStages : Pipe_Pass<"pipe-schedule"> {
  let summary = "which rank runs which stage of which microbatch, in which order";
  let description = [{
    Adds the table: that of a named schedule, or one from a file, with a message for each pair of stages on different ranks
    between which the loop has values. Stages stand where they are wanted: `circular` has any placement, of all others ranks may
    have other numbers. Nothing that the checker of schedules (P6 to P12) finds wrong is written.

    Errors: a schedule with gradients, one of another shape than the model, a file that is none, ranks that the schedule cannot have.

    ```mlir
    pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {   // added
      pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
      pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
    }
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"", "forward, circular, or a .csv or .json file; by default forward, or circular with several stages a rank">,
    Option<"placement", "placement", "std::string", "\"\"", "where circular has its stages: linear, loop, v, wave; by default loop">,
    ListOption<"ranks", "ranks", "int64_t", "the rank of each stage, -1: any">,
  ];
}

def Lower : Pipe_Pass<"pipe-lower"> {
  let summary = "a function per rank of the pipeline";
  let description = [{
    Each rank walks through its row of the table: a call per F, a `pipe.send` and a `pipe.recv` per message with all values
    of the pair that the rank has not got yet. Before its row, whole values that others make are received. Parts of results are joined by the rank that makes them; what is combined over all microbatches is so
    at once, and goes to the rank of the last stage if something is computed of it. Arguments and results that a rank
    has keep their attributes, and their number as `pipe.index`. The entry with the loop stays beside them: it is what they mean.

    ```mlir
    func.func @main.rank0(%x: tensor<16x4xf32> {pipe.index = 0 : i64}) attributes {pipe.rank = 0 : i64} {   // added
      %i0 = pipe.part %x[0] split 0 of 8 : tensor<16x4xf32> to tensor<2x4xf32>
      %h0 = call @main.stage0(%i0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      pipe.send %h0 to 1 channel 0 microbatch 0 : tensor<2x4xf32>
    ```
  }];
}

def Inline : Pipe_Pass<"pipe-inline"> {
  let summary = "one block for each rank of the pipeline";
  let description = [{
    Leaves the functions of ranks alone, with bodies instead of calls, and parts of a batch as slices: what kernels are formed of.

    ```mlir
    %i0 = pipe.part %x[1] split 0 of 8 : tensor<16x4xf32> to tensor<2x4xf32>                                        // before
    %i0 = nn.slice %x starts [2, 0] sizes [2, 4] steps [1, 1] : (tensor<16x4xf32>) -> tensor<2x4xf32>     // after
    ```
  }];
}

def VerifyPhase : Pipe_Pass<"pipe-verify-phase"> {
  let summary = "checks what must hold after a phase of pipelines";
  let description = [{
    * `staged`: there is a loop over microbatches, and it calls stages and does nothing else; a second body hands on what the first one does.
    * `scheduled`: the table is complete and does not lock (P6 to P12).
    * `per-rank`: what each rank receives is what the other end sends (P8, P12), and no ranks wait for each other for ever (P9).

    The module says from then on that it has been through the phase (`spmd.phase`). Nothing else changes: before and after
    it stands the same.
  }];
  let options = [
    Option<"phase", "phase", "::cleave::Phase", "::cleave::Phase::Staged", "the phase just done, from staged to per-rank",
           "::cleave::PhaseWords{::cleave::Phase::Staged, ::cleave::Phase::PerRank}">,
  ];
}

#endif // CLEAVE_PIPE_PASSES
