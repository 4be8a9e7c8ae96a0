//===- PipePasses.td - stages --------------------------------*- tablegen -*-===//
#ifndef CLEAVE_PIPE_PASSES
#define CLEAVE_PIPE_PASSES

include "mlir/Pass/PassBase.td"

class Pipe_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::pipe::PipeDialect"];
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
    Option<"uneven", "uneven", "bool", "false", "microbatches may differ by one sample; not supported yet">,
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
    Option<"flopsPerNs", "flops-per-ns", "double", "47000", "of a device">,
    Option<"bytesPerNs", "bytes-per-ns", "double", "2300", "of a device's memory">,
    Option<"launchNs", "launch-ns", "double", "2000", "what a kernel takes to start">,
    Option<"linkBytesPerNs", "link-bytes-per-ns", "double", "300", "of a link between ranks">,
    Option<"linkNs", "link-ns", "double", "5000", "what a message takes beside its bytes">,
  ];
}

#endif // CLEAVE_PIPE_PASSES
