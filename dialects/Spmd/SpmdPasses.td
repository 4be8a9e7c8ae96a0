//===- SpmdPasses.td - annotate, decide, insert, partition, clean up -*- tablegen -*-===//
#ifndef CLEAVE_SPMD_PASSES
#define CLEAVE_SPMD_PASSES

include "mlir/Pass/PassBase.td"

class Spmd_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

// The plan is read by whoever makes a pass, or, from these options, by the pass.
class Spmd_PlanPass<string argument> : Spmd_Pass<argument> {
  let options = [
    Option<"plan", "plan", "std::string", /*default=*/"", "Plan file (YAML)">,
    Option<"mesh", "mesh", "std::string", /*default=*/"", "Mesh, such as data=2,model=4; overrides the plan's">,
    ListOption<"shard", "shard", "std::string", "Rules such as 'x=[data, _]', as if they stood in the plan">,
  ];
}

def PinWishes : Spmd_PlanPass<"spmd-pin-wishes"> {
  let summary = "puts a plan's wishes on the values that it names";
  let description = [{
    Runs before canonicalisation. Looks up what each rule of a plan addresses, checks the rule against it, and puts the
    wish there: on a value inside through an `spmd.pin` in front of all its users, which canonicalisation does not look
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
  let options = [
    Option<"optimize", "optimize", "::cleave::spmd::Optimize", /*default=*/"::cleave::spmd::Optimize::Balanced",
           "Objective: bytes on the wire alone, or balanced with compute and surprises", [{::cleave::spmd::getOptimizeValues()}]>,
    Option<"traceDecisions", "trace-decisions", "bool", /*default=*/"false",
           "Print per sweep and op the candidates, their prices, and which was chosen, to stderr">,
  ];
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
  let options = [
    Option<"checkBytes", "check-bytes", "bool", /*default=*/"false",
           "Fail if the collectives send other bytes than were decided (spmd.wire_bytes)">,
  ];
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
    Option<"phase", "phase", "std::string", /*default=*/"\"annotated\"",
           "The phase just done: one from annotated to optimized">,
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

#endif // CLEAVE_SPMD_PASSES
