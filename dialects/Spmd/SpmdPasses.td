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

// The plan is read by whoever makes a pass, or, from these options, by the pass.
class Spmd_PlanPass<string argument> : Spmd_Pass<argument> {
  let options = Spmd_Options<kPlanOptions>.List;
}

def PinWishes : Spmd_PlanPass<"spmd-pin-wishes"> {
  let summary = "puts a plan's wishes on the values that it names";
  let description = [{
    Runs before canonicalization. Looks up what each rule of a plan addresses, checks the rule against it, and puts the
    wish there: on a value inside through an `spmd.pin` in front of all its users, which canonicalization does not look
    through; on an argument or result of the function as the attribute `spmd.wish`. The mesh becomes the module's
    `spmd.mesh`.

    Every error names the place in the plan: a pattern that matches nothing, a wrong number of dims, a shard size that
    does not divide, two rules that disagree. Shardings written in the file by hand stay, and a rule that says
    otherwise is an error.

    ```mlir
    %h = nn.exp %x ...                                // before; the plan wants [data, _] of hidden
    %y = nn.neg %h

    %h = nn.exp %x ...                                // after
    %p = spmd.pin %h "hidden" wants #spmd.wish<#sharding_data_, ..> : tensor<8x4xf32>
    %y = nn.neg %p
    ```
  }];
}

def Annotate : Spmd_PlanPass<"spmd-annotate"> {
  let summary = "turns wishes into types";
  let description = [{
    An argument and a value inside get the sharding wished for in their type, a parameter where it is loaded; a result of
    the function through an `spmd.constrain` before the return. An `spmd.pin` becomes the type of its operand, or an
    `spmd.constrain` where others use the same value. A pin of a part of a parameter wants of the part what the plan wants
    of the whole. Nothing else changes. A plan in the options is placed first, as `spmd-pin-wishes` does.

    A wish for a tensor that no op needs any more is an error if its rule finds nothing else, and a warning if it does.

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
    Builds the strategy problem of each function (`Solver/Problem.h`), solves it, and writes the answer: every value's
    type gets a closed sharding. Where an op's choice wants an operand otherwise than it arrives, or computes a result
    otherwise than its users share it, the op gets the attributes `spmd.operands` and `spmd.results`.

    A remark names every op that forces replication, with the reason. Wishes that cannot all be kept are an error.

    ```mlir
    %y = nn.exp %x : (tensor<8x4xf32, #data_whole>) -> tensor<8x4xf32>                     // before
    %y = nn.exp %x : (tensor<8x4xf32, #data_whole>) -> tensor<8x4xf32, #data_whole>    // after
    ```
  }];
  let options = Spmd_Options<kPropagateOptions>.List;
}

def InsertReshards : Spmd_Pass<"spmd-insert-reshards"> {
  let summary = "makes every change of sharding an spmd.reshard";
  let description = [{
    Turns `spmd.operands`, `spmd.results` and `spmd.constrain` into `spmd.reshard`. One reshard serves all users that
    want the same sharding; it stands right after the value, and starts from the value or from a copy made before,
    whichever is cheaper.

    ```mlir
    nn.exp %x {spmd.operands = [#whole_data]} : ...             // before

    %r = spmd.reshard %x : tensor<8x4xf32, #data_whole> to tensor<8x4xf32, #whole_data>   // after
    nn.exp %r : ...
    ```
  }];
}

def Partition : Spmd_Pass<"spmd-partition"> {
  let summary = "turns a global program into the program of one device";
  let description = [{
    Every type becomes the type of one rank's shard, every `spmd.reshard` the cheapest sequence of collectives, every op
    its per-device form (`PartitionOpInterface`). Arguments and results keep their global type and sharding in the
    attribute `spmd.global`.

    ```mlir
    %r = spmd.reshard %x : tensor<8x4xf32, #data_whole> to tensor<8x4xf32, #whole_whole>   // before
    %r = spmd.all_gather %x dims [{"data"}, {} ] : (tensor<4x4xf32>) -> tensor<8x4xf32>        // after
    ```
  }];
  let options = Spmd_Options<kPartitionOptions>.List;
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

def OptimizeCollectives : Spmd_Pass<"spmd-optimize-collectives"> {
  let summary = "merges equal collectives and removes unused ones";
  let description = [{
    Equal pure ops on equal operands become one, ops without users go. The bytes on the wire are counted before and
    after; more of them afterwards is an error.

    ```mlir
    %a = spmd.all_gather %x ...     // before
    %b = spmd.all_gather %x ...
    %a = spmd.all_gather %x ...     // after
    ```
  }];
}

def BundleCollectives : Spmd_Pass<"spmd-bundle-collectives"> {
  let summary = "makes one of several small collectives that do not need each other";
  let description = [{
    Collectives of one kind (all_reduce, all_gather, reduce_scatter), group and element type, none of which needs the result of another, are put side by side and
    sent at once, as long as they send no more than `most-bytes` together: what it takes to begin a collective, and its
    latencies, are paid once. What needs one of them comes after all. The same bytes are sent. It takes one kernel to put them side by
    side, and one for each gather that others than elementwise ops, norms and the like read. Decisions by time (`--optimize=time`) let what travels in the time
    of a beginning take part, and say what these kernels take of that time: beginnings that are saved must take longer.

    ```mlir
    %a = spmd.all_reduce sum %x over {"data"} : tensor<8xf32>     // before
    %b = spmd.all_reduce sum %y over {"data"} : tensor<4xf32>

    %c = nn.concat %x, %y dim 0                                   // after
    %d = spmd.all_reduce sum %c over {"data"} : tensor<12xf32>
    %a = nn.slice %d starts [0] sizes [8] steps [1]
    %b = nn.slice %d starts [8] sizes [4] steps [1]
    ```
  }];
  let options = [Option<"mostBytes", "most-bytes", "int64_t", "1048576", "what a bundle sends at the most, in bytes of a rank">,
                 Option<"launchShare", "launch-share", "double", "0",
                        "what a kernel takes to start, of what a collective takes to begin; 0: nothing">,
                 Option<"memoryShare", "memory-share", "double", "0",
                        "what reading or writing a byte takes, of what a collective takes to begin; 0: nothing">];
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

def VerifyPhase : Spmd_Pass<"spmd-verify-phase"> {
  let summary = "checks what must hold after a phase";
  let description = [{
    * `annotated`: all shardings are over the module's mesh.
    * `propagated`: every tensor type carries a sharding without open dims (S7).
    * `resharded`: no wishes are left on ops; operands and results of every op agree under its sharding rule.
    * `partitioned`, `optimized`: no sharded type is left; functions keep the global types of arguments and results; the
      only `spmd` ops are collectives.

    The module says from then on that it has been through the phase (`spmd.phase`). Nothing else changes: before and after
    it stands the same.
  }];
  let options = [
    Option<"phase", "phase", "::cleave::Phase", "::cleave::Phase::Annotated", "the phase just done, from annotated to optimized",
           "::cleave::PhaseWords{::cleave::Phase::Annotated, ::cleave::Phase::Optimized}">,
  ];
}

def PrintRules : Spmd_Pass<"spmd-print-rules"> {
  let summary = "prints the sharding rule of every op as a remark";
  let description = [{
    One factor per letter; per operand and result dim its factors, major to minor (`1`: none). `reduce`: cutting the factor
    leaves the results partial; `replicate`: no choice cuts it; `ordered`: cutting it costs communication inside the op;
    `linear`: these operands, together, may stay partial. Changes nothing.

    ```mlir
    %c = nn.einsum %a, %b "ik,kj->ij" : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    // remark: ([i,j],[j,k])->([i,k]) {i=8,j=16,k=4} reduce={j} linear(sum)={0} linear(sum)={1}
    ```
  }];
}

def ShardPipeline : Spmd_Pass<"spmd-shard"> {
  let summary = "from wishes to the program of one device";
  let description = [{
    All phases from annotation on, each with its gate (`lib/Pipelines/Phases.cpp`), for files in the nn dialect. Before: wishes
    in types, by hand or from a plan. After: local shapes and collectives.
  }];
  let options = Spmd_Options<!listconcat(kPlanOptions, kPropagateOptions, kPartitionOptions)>.List;
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::cleave::nn::NnDialect", "::mlir::func::FuncDialect"];
}

#endif // CLEAVE_SPMD_PASSES
