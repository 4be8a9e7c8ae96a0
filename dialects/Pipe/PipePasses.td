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
    The pass splits the batch of a model into microbatches that run one after the other, before shardings are decided: it
    partitions over an axis in time. Inputs keep only their part of the batch (`pipe.split` says along which dim). The values
    that depend on them follow by the ops' sharding rules:

    * a value that is split over microbatches exists once for each;
    * a value that does not depend on the batch is *whole*: microbatches share it, and it does not change. Where each microbatch
      needs positions of its own of such a value, it takes them by `pipe.part`. A value that is equal along the batch is computed
      at the size of a microbatch from the start;
    * a reduction over the batch becomes one over a microbatch, then `pipe.accumulate`. Ops that depend on it are the
      *epilogue*, which runs once.

    Nothing can be sent between microbatches. So an op that would need that, or would have to know which microbatch it sees, is
    an error: a norm, softmax, sort or running sum along the batch, a gather or slice of samples, a reshape that merges the
    batch with a more major dim, an accumulated value that each sample is compared with.

    The batch dim of an input is the one in `batch` (`NAME=DIM`, names as patterns, `NAME=none` for inputs without one), else
    the dim whose name in the model contains "batch" (`nn.dims`). If neither gives one for any input, it is dim 0 of all inputs
    with more than one element there, which must agree in size. Otherwise dim 0 of an input without named dims is its batch
    dim if it is as large as the batch of the others. All other inputs are `whole`.

    A state (`spmd.state`) is split like any value, and the function returns it split as it takes it. The sharding that a plan
    asks for on a split value must fit the smaller batch (S5). Other errors: sizes that microbatches do not divide (P4).

    An uneven annotation pads the samples of a microbatch. Shards of a microbatch are then of other samples than those of the batch: an input
    or output keeps those axes that divide a microbatch, and a pin inside has all of them.

    With `uneven` they need not divide them. Samples are distributed so that microbatches differ by one sample of each shard
    that the plan asks for on the batch. The program is then written for `pipe.per_shard` samples of a shard. This number has
    no factor in common with the number of devices, so the batch is sharded no further. `pipe-split` makes the programs of
    both sizes of it.

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
    Option<"microbatchSize", "microbatch-size", "int64_t", "0", "instead: how many samples in each">,
    ListOption<"batch", "batch", "std::string", "batch dims of inputs: NAME=DIM, NAME=none">,
    Option<"uneven", "uneven", "bool", "false", "microbatches may differ by one sample of each shard">,
  ];
}

def AssignStages : Pipe_Pass<"pipe-assign-stages"> {
  let summary = "says which stage each op is in";
  let description = [{
    The pass gives every op of each function `pipe.stage`, except parameters and constants, which each stage has by itself.
    Stage boundaries minimize the time of the slowest stage, exactly (`StageSplit.h`), then the bytes sent. Or they are given
    by hand: a stage starts at the first op of a node (`starts`, patterns as in plans, one fewer than stages). Times are those
    of the shapes in types: of one rank, where the program is partitioned. A remark says for each stage its time, its memory,
    and the bytes it sends; a value that costs less to compute again than to send is not counted as sent.

    In a step of training, the ops of the backward go where the ops are that they are gradients of, whose time includes theirs.
    `pipe.stage` is then the number of a unit (`pipe.stages`): I of a stage is what other stages read of its backward, and all of its
    other gradients except contractions and convolutions and what reads these, which are W.

    The time of an op is the larger of its flops and its bytes at the device's rates, plus a launch where it has flops. The
    time of a collective is what the busiest rank sends over a link.

    Errors: more stages than ops, a memory limit that no boundaries keep (with the least limit that would be enough), a start
    that matches no node.

    ```mlir
    %h = nn.einsum %x, %w0 "ik,kj->ij" : ...                        // before
    %y = nn.einsum %h, %w1 "ik,kj->ij" : ...

    %h = nn.einsum %x, %w0 "ik,kj->ij" : ... {pipe.stage = 0 : i64}     // after, stages=2
    %y = nn.einsum %h, %w1 "ik,kj->ij" : ... {pipe.stage = 1 : i64}
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "2", "how many">,
    ListOption<"starts", "starts", "std::string", "nodes at which stages 1, 2, .. start; without it, chosen by cost">,
    Option<"placement", "placement", "std::string", "\"linear\"", "how stages are placed on ranks: linear, loop, v, wave">,
    Option<"ranks", "ranks", "int64_t", "0", "ranks of the pipeline; 0: one for each stage">,
    Option<"microbatches", "microbatches", "int64_t", "1", "counts for objective=latency">,
    Option<"objective", "objective", "std::string", "\"throughput\"", "throughput, the slowest stage, or latency, of all microbatches">,
    Option<"relay", "relay", "bool", "false", "values for later stages pass through every rank between">,
    Option<"overlapSends", "overlap-sends", "bool", "true", "ranks compute while they send">,
    Option<"memoryLimit", "memory-limit", "int64_t", "0", "bytes of a device; 0: no limit">,
    Option<"flopsPerNs", "flops-per-ns", "double", "-1", "of a device; below 0: as on the plan's cluster">,
    Option<"bytesPerNs", "bytes-per-ns", "double", "-1", "of a device's memory; below 0: as on the plan's cluster">,
    Option<"launchNs", "launch-ns", "double", "-1", "time to start a kernel; below 0: as on the plan's cluster">,
    Option<"linkBytesPerNs", "link-bytes-per-ns", "double", "-1", "of a link between ranks; below 0: as on the plan's cluster">,
    Option<"linkNs", "link-ns", "double", "-1", "time of a message in addition to its bytes; below 0: as on the plan's cluster">,
  ];
}

def Split : Pipe_Pass<"pipe-split"> {
  let summary = "stages as functions, called in a loop over microbatches";
  let description = [{
    The pass splits the partitioned program of one microbatch (`pipe-microbatch`, `pipe-assign-stages`): the ops of a stage
    become a function. Each function that uses a parameter or constant has it, and also each value that costs less to compute
    than to send. Values that microbatches share are made before the loop, by a function of each stage that needs some. If
    several stages need one that takes longer to make than to send, the first of these makes it for all, with a remark. Ops
    that depend on `pipe.accumulate` run after the loop. The entry then takes and returns full batches.

    Where microbatches are of two sizes, each stage becomes two functions (`main.stage0`, `main.stage0.rest`) and the loop has
    two bodies, so the same ops run on fewer samples. A remark names each parameter that stages of several ranks use, with its
    bytes.

    In a step of training (`pipe.stages`) a stage is three functions, one for each unit: `main.stage0`, `main.stage0.I`,
    `main.stage0.W`, called in this order: the forward of all stages, then I and W of each from the last one on. What runs after the loop
    is split by stages, too: a weight is updated where its gradient is made (`main.after0`), and where something needs gradients of
    several stages, such as a length to clip by, in levels (`main.after0.1`). What is summed up over
    arguments alone, such as how many labels count, is made ahead of the loop (`main.ahead`).

    An op without `pipe.stage` is in the stage of the last of its producers. Errors: a stage without ops (P2), edges that go
    backward (P3), a value of one microbatch that is read after the loop, an op that cannot be made for another number of
    samples (P4).

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
    Option<"relay", "relay", "bool", "false", "values for later stages pass through every stage between">,
    Option<"sendCheap", "send-cheap", "bool", "false",
           "values are sent even where computing them again takes less time, also those that microbatches share">,
  ];
}

def ScheduleStages : Pipe_Pass<"pipe-schedule"> {
  let summary = "which rank runs which stage of which microbatch, in which order";
  let description = [{
    The pass adds the table of a named schedule, or one from a file, with a message for each pair of stages on different ranks
    between which the loop has values. `ranks` asks for the placement of stages: `circular` can have any placement, all other
    schedules can only renumber their ranks. The pass writes no table that the checker of schedules (P6 to P12) rejects. Of a step,
    what the update of a stage does without the gradients of others gets an UPDATE in the longest wait of its rank, if that has room for it,
    by the times of `pipe.boundaries`; the rest comes behind the row.

    Errors: a schedule with gradients, one of another shape than the model, a file that is not a schedule, ranks that the
    schedule cannot have.

    ```mlir
    pipe.schedule @main.schedule ranks 2 stages 2 microbatches 2 placement [0, 1] channels [0, 1] {   // added
      pipe.rank 0 "0F0,0SEND_F0,0F1,0SEND_F1"
      pipe.rank 1 "1RECV_F0,1F0,1RECV_F1,1F1"
    }
    ```
  }];
  let options = [
    Option<"ofStep", "of-step", "bool", "false",
           "the plan is of a step of training: a schedule with gradients stands for the one without that has its stages on the same ranks">,
    Option<"steps", "steps", "int64_t", "1", "of a call: those of a schedule without a flush are in one table">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "a name, or a .csv or .json file; by default forward, or circular with several stages per rank; of a step 1f1b, or interleaved">,
    Option<"placement", "placement", "std::string", "\"\"", "how circular places its stages: linear, loop, v, wave; by default loop">,
    ListOption<"ranks", "ranks", "int64_t", "the rank of each stage, -1: any">,
    Option<"updatesEarly", "updates-early", "bool", "true",
           "a stage of a step is updated while its rank waits for other stages, where there is room for it">,
  ];
}

def Lower : Pipe_Pass<"pipe-lower"> {
  let summary = "a function per rank of the pipeline";
  let description = [{
    The function of a rank follows its row of the table: a call per F, a `pipe.send` and a `pipe.recv` per message, with all
    values of the pair that the rank does not have yet. Before its row, it receives the values that microbatches share and
    other ranks make. The rank that makes the parts of a result joins them. It also combines what is combined over all
    microbatches, in the order of these, and sends it to the rank that computes something of it: that of the last stage, or, in a
    step of training, that of `pipe.home`. Of a step, B is a call of I and one of W, and a state that several ranks read is sent to them by
    the one that makes its next value. Arguments and results
    that a rank has keep their attributes, and their number as `pipe.index`. The entry with the loop stays next to these
    functions: it defines what they compute.

    ```mlir
    func.func @main.rank0(%x: tensor<16x4xf32> {pipe.index = 0 : i64}) attributes {pipe.rank = 0 : i64} {   // added
      %i0 = pipe.part %x[0] split 0 of 8 : tensor<16x4xf32> to tensor<2x4xf32>
      %h0 = call @main.stage0(%i0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      pipe.send %h0 to 1 channel 0 microbatch 0 : tensor<2x4xf32>
    ```

    A table of a multiple of the loop's microbatches is of as many steps, between which nothing is flushed. The function of a rank then
    updates its weights behind the last W of each step, and a microbatch reads those that are the newest where its F stands, or, with
    `is-behind`, those of the step before its own. Arguments and results are those of `pipe-repeat-step`. Errors: a rank with
    several stages, an update that needs what other ranks make.
  }];
  let options = [Option<"isBehind", "is-behind", "bool", "false",
                        "of several steps without a flush: a microbatch reads the weights of the step before its own (2BW)">];
}

def RepeatStep : Pipe_Pass<"pipe-repeat-step"> {
  let summary = "several steps of training in one call";
  let description = [{
    The entry, and each function of a rank of a pipeline, makes `steps` steps one behind the other: what a step leaves in a state
    (`spmd.state`) the next one finds there. Each other argument gets one more dim in front, which counts steps and is not sharded, and so
    does each other result. Nothing else changes: a step computes what it computed, of its own batch.

    A function without states is no step, and stays as it is, unless it is that of a rank.

    ```mlir
    func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {nn.name = "w"}) -> (tensor<f32>, tensor<4xf32> {spmd.state = "w"}) {     // before
      %l = ..   %n = nn.sub %w, %x ..   return %l, %n

    func.func @main(%x: tensor<2x4xf32>, %w: tensor<4xf32> {nn.name = "w"}) -> (tensor<2xf32>, tensor<4xf32> {spmd.state = "w"}) { // after
      %x0 = nn.slice %x ..   %l0 = ..   %n0 = nn.sub %w, %x0 ..
      %x1 = nn.slice %x ..   %l1 = ..   %n1 = nn.sub %n0, %x1 ..
      %l = nn.concat %l0, %l1 ..   return %l, %n1
    ```
  }];
  let options = [Option<"steps", "steps", "int64_t", "2", "of a call">];
}

def Inline : Pipe_Pass<"pipe-inline"> {
  let summary = "one block for each rank of the pipeline";
  let description = [{
    Only the functions of ranks are left, with bodies instead of calls, and slices instead of parts of a batch. Fusion into
    kernels starts from these.

    ```mlir
    %i0 = pipe.part %x[1] split 0 of 8 : tensor<16x4xf32> to tensor<2x4xf32>                                        // before
    %i0 = nn.slice %x starts [2, 0] sizes [2, 4] steps [1, 1] : (tensor<16x4xf32>) -> tensor<2x4xf32>     // after
    ```
  }];
}

def VerifyPhase : Pipe_Pass<"pipe-verify-phase"> {
  let summary = "checks what must hold after a phase of pipelines";
  let description = [{
    * `staged`: there is a loop over microbatches, and it calls stages and does nothing else; a second body passes on the same
      values as the first one.
    * `scheduled`: the table is complete and has no deadlock (P6 to P12).
    * `per-rank`: what each rank receives is what the other end sends (P8, P12), and there is no deadlock between ranks (P9).

    The attribute `spmd.phase` of the module then names the phase. Nothing else changes: the program is the same before
    and after.
  }];
  let options = [
    Option<"phase", "phase", "::cleave::Phase", "::cleave::Phase::Staged", "the phase just done, from staged to per-rank",
           "::cleave::PhaseWords{::cleave::Phase::Staged, ::cleave::Phase::PerRank}">,
  ];
}

#endif // CLEAVE_PIPE_PASSES
