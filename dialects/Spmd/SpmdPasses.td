//===- SpmdPasses.td - annotate, decide, insert, partition, clean up -*- tablegen -*-===//
#ifndef CLEAVE_SPMD_PASSES
#define CLEAVE_SPMD_PASSES

include "SpmdOptions.td"
include "mlir/Pass/PassBase.td"

class Spmd_Option<ShardOption given>
    : Option<given.Member, given.Name, given.Type, given.Default, given.Help, given.Values>;
class Spmd_ListOption<ShardOption given> : ListOption<given.Member, given.Name, given.Type, given.Help>;
class Spmd_Options<list<ShardOption> given> {
  list<Option> List = !foreach(one, given, !if(one.IsList, Spmd_ListOption<one>, Spmd_Option<one>));
}

class Spmd_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

// The caller that makes a pass reads the plan, or the pass does, from these options.
class Spmd_PlanPass<string argument> : Spmd_Pass<argument> {
  let options = Spmd_Options<kPlanOptions>.List;
}

def PinAnnotations : Spmd_PlanPass<"spmd-pin-annotations"> {
  let summary = "puts a plan's sharding annotations on the values that it names";
  let description = [{
    The pass runs before canonicalization. It looks up the values that each rule of a plan names, checks the rule against
    them, and adds the sharding annotation. A value inside the function gets an `spmd.pin` before all its users, which
    canonicalization does not look through; an argument or result of the function gets the attribute `spmd.annotation`. The
    plan's mesh becomes the module's `spmd.mesh`.

    Every error names the location in the plan: a pattern that matches nothing, a wrong number of dims, a shard size that
    does not divide, two rules that disagree. Shardings written in the file by hand stay, and a rule that contradicts one
    is an error.

    ```mlir
    %h = nn.exp %x ...                                // before; the plan wants [data, _] of hidden
    %y = nn.neg %h

    %h = nn.exp %x ...                                // after
    %p = spmd.pin %h "hidden" wants #spmd.annotation<#sharding_data_, ..> : tensor<8x4xf32>
    %y = nn.neg %p
    ```
  }];
}

def Annotate : Spmd_PlanPass<"spmd-annotate"> {
  let summary = "turns sharding annotations into types";
  let description = [{
    Arguments and values inside the function get the annotated sharding in their type, parameters where they are loaded.
    A result of the function gets an `spmd.constrain` before the return. An `spmd.pin` becomes the type of its operand, or
    an `spmd.constrain` where other ops use the same value. A pin of a part of a parameter gives the part the sharding that
    the plan asks for the full parameter. Nothing else changes. A plan in the options is applied first, as
    `spmd-pin-annotations` does.

    An annotation of a tensor that no op needs any more is an error if its rule matches nothing else, else a warning.

    ```mlir
    // plan: {mesh: {data: 2}, shard: [{tensor: x, dims: [data, _]} ]}
    func.func @f(%x: tensor<8x4xf32> {nn.name = "x"})                    // before
    func.func @f(%x: tensor<8x4xf32, #sharding_data_> {nn.name = "x"})   // after
    ```
  }];
}

def Propagate : Spmd_Pass<"spmd-propagate"> {
  let summary = "decides the sharding of every value";
  let description = [{
    The pass builds the strategy problem of each function (`Solver/Problem.h`), solves it, and writes the solution: every
    value's type gets a closed sharding. Where an op's strategy needs an operand in another sharding than the operand has,
    or computes a result in another sharding than its users share, the op gets the attributes `spmd.operands` and
    `spmd.results`.

    A remark names every op that forces replication, with the reason. Sharding annotations that conflict are an error.

    ```mlir
    %y = nn.exp %x : (tensor<8x4xf32, #data_replicated>) -> tensor<8x4xf32>                     // before
    %y = nn.exp %x : (tensor<8x4xf32, #data_replicated>) -> tensor<8x4xf32, #data_replicated>    // after
    ```
  }];
  let options = Spmd_Options<kPropagateOptions>.List;
}

def InsertReshards : Spmd_Pass<"spmd-insert-reshards"> {
  let summary = "makes every change of sharding an spmd.reshard";
  let description = [{
    The pass turns `spmd.operands`, `spmd.results` and `spmd.constrain` into `spmd.reshard`. One reshard serves all users
    that need the same sharding. It is directly after the value, and starts from the value or from an earlier copy of it,
    whichever has the lower cost.

    ```mlir
    nn.exp %x {spmd.operands = [#replicated_data]} : ...             // before

    %r = spmd.reshard %x : tensor<8x4xf32, #data_replicated> to tensor<8x4xf32, #replicated_data>   // after
    nn.exp %r : ...
    ```
  }];
}

def Partition : Spmd_Pass<"spmd-partition"> {
  let summary = "turns a global program into the program of one device";
  let description = [{
    Every type becomes the type of one rank's shard, every `spmd.reshard` the sequence of collectives of least cost, every
    op its per-device op (`PartitionOpInterface`). Arguments and results keep their global type and sharding in the
    attribute `spmd.global`.

    ```mlir
    %r = spmd.reshard %x : tensor<8x4xf32, #data_replicated> to tensor<8x4xf32, #replicated_replicated>   // before
    %r = spmd.all_gather %x dims [{"data"}, {} ] : (tensor<4x4xf32>) -> tensor<8x4xf32>        // after
    ```
  }];
  let options = Spmd_Options<kPartitionOptions>.List;
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

def OptimizeCollectives : Spmd_Pass<"spmd-optimize-collectives"> {
  let summary = "merges equal collectives and removes unused ones";
  let description = [{
    Equal pure ops on equal operands become one, ops without users are removed. The pass counts the bytes on the wire
    before and after; more of them afterwards is an error.

    ```mlir
    %a = spmd.all_gather %x ...     // before
    %b = spmd.all_gather %x ...
    %a = spmd.all_gather %x ...     // after
    ```
  }];
}

def BundleCollectives : Spmd_Pass<"spmd-bundle-collectives"> {
  let summary = "merges small collectives that do not depend on each other";
  let description = [{
    The pass merges collectives of one kind (all_reduce, all_gather, reduce_scatter), group and element type, none of which needs
    the result of another, as long as they send no more than `most-bytes` together. Their operands are concatenated and sent at
    once, so the cost of starting a collective, and its latencies, are paid once. Ops that need one of the results come after the
    merged collective. The number of bytes sent is the same.

    The concatenation takes one kernel, and so does each gather that is read by ops other than elementwise ops, norms and the
    like. Decisions by time (`--optimize=time`) set `most-bytes` to what is sent in the time that a collective takes to start, and
    give the share of that time that these kernels take: the starts that are saved must take longer.

    ```mlir
    %a = spmd.all_reduce sum %x over {"data"} : tensor<8xf32>     // before
    %b = spmd.all_reduce sum %y over {"data"} : tensor<4xf32>

    %c = nn.concat %x, %y dim 0                                   // after
    %d = spmd.all_reduce sum %c over {"data"} : tensor<12xf32>
    %a = nn.slice %d starts [0] sizes [8] steps [1]
    %b = nn.slice %d starts [8] sizes [4] steps [1]
    ```
  }];
  let options = [Option<"mostBytes", "most-bytes", "int64_t", "1048576", "bytes of a rank that a merged collective sends at most">,
                 Option<"launchShare", "launch-share", "double", "0",
                        "time to start a kernel, as a share of the time to start a collective; 0: none">,
                 Option<"memoryShare", "memory-share", "double", "0",
                        "time to read or write a byte, as a share of the time to start a collective; 0: none">];
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

def VerifyPhase : Spmd_Pass<"spmd-verify-phase"> {
  let summary = "checks what must hold after a phase";
  let description = [{
    * `annotated`: all shardings are over the module's mesh.
    * `propagated`: every tensor type carries a sharding without open dims (S7).
    * `resharded`: no annotations are left on ops; operands and results of every op agree under its sharding rule.
    * `partitioned`, `optimized`: no sharded type is left; functions keep the global types of arguments and results; the
      only `spmd` ops are collectives.

    The attribute `spmd.phase` of the module then names the phase. Nothing else changes: the program is the same before
    and after.
  }];
  let options = [
    Option<"phase", "phase", "::cleave::Phase", "::cleave::Phase::Annotated", "the phase just done, from annotated to optimized",
           "::cleave::PhaseWords{::cleave::Phase::Annotated, ::cleave::Phase::Optimized}">,
  ];
}

def PrintRules : Spmd_Pass<"spmd-print-rules"> {
  let summary = "prints the sharding rule of every op as a remark";
  let description = [{
    Each letter is a factor; each operand and result dim has its factors, major to minor (`1`: none). `reduce`: the results
    are partial where the factor is sharded; `replicate`: no strategy shards the factor; `ordered`: sharding the factor
    costs communication inside the op; `linear`: these operands, together, may stay partial. Nothing changes.

    ```mlir
    %c = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    // remark: ([i,j],[j,k])->([i,k]) {i=8,j=16,k=4} reduce={j} linear(sum)={0} linear(sum)={1}
    ```
  }];
}

def ShardPipeline : Spmd_Pass<"spmd-shard"> {
  let summary = "from sharding annotations to the program of one device";
  let description = [{
    The pipeline runs all phases from annotation on, each with its gate (`lib/Pipelines/Phases.cpp`), for files in the nn
    dialect. Before: sharding annotations in types, by hand or from a plan. After: local shapes and collectives.
  }];
  let options = Spmd_Options<!listconcat(kPlanOptions, kPropagateOptions, kPartitionOptions)>.List;
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::cleave::nn::NnDialect", "::mlir::func::FuncDialect"];
}

#endif // CLEAVE_SPMD_PASSES
