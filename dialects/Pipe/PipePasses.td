//===- PipePasses.td - stages --------------------------------*- tablegen -*-===//
#ifndef CLEAVE_PIPE_PASSES
#define CLEAVE_PIPE_PASSES

include "mlir/Pass/PassBase.td"

class Pipe_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::pipe::PipeDialect"];
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
