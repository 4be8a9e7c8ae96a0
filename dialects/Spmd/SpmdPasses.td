//===- SpmdPasses.td - annotate, decide, insert, partition, clean up -*- tablegen -*-===//
#ifndef CLEAVE_SPMD_PASSES
#define CLEAVE_SPMD_PASSES

include "mlir/Pass/PassBase.td"

class Spmd_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::nn::NnDialect", "::cleave::spmd::SpmdDialect", "::mlir::func::FuncDialect"];
}

def Annotate : Spmd_Pass<"spmd-annotate"> {
  let summary = "writes a plan's wishes into types";
  let description = [{
    Looks up what each rule of a plan addresses and gives that tensor's type the sharding asked for. An argument and a
    value inside get it in their type, a parameter where it is loaded; a result of the function through an
    `spmd.constrain` before the return. An `spmd.pin` becomes the wish for its operand, or an `spmd.constrain` where
    others use the same value. The mesh becomes the module's `spmd.mesh`. Nothing else changes.

    Every error names the place in the plan: a pattern that matches nothing, a wrong number of dims, a shard size that
    does not divide, two rules that disagree. Shardings written in the file by hand stay, and a rule that says
    otherwise is an error.

    ```mlir
    // plan: {mesh: {data: 2}, shard: [{tensor: x, dims: [data, _]} ]}
    func.func @f(%x: tensor<8x4xf32> {nn.name = "x"})                    // before
    func.func @f(%x: tensor<8x4xf32, #sharding_data_> {nn.name = "x"})   // after
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", /*default=*/"", "Plan file (YAML)">,
    Option<"mesh", "mesh", "std::string", /*default=*/"", "Mesh, such as data=2,model=4; overrides the plan's">,
    ListOption<"shard", "shard", "std::string", "Rules such as 'x=[data, _]', as if they stood in the plan">,
  ];
}

def PinWishes : Spmd_Pass<"spmd-pin-wishes"> {
  let summary = "pins the values that a plan names, so that canonicalisation keeps them";
  let description = [{
    Runs before canonicalisation: every value inside that a rule of the plan addresses gets an `spmd.pin` in front of
    all its users. Which tensors each rule addressed is noted in the module attribute `spmd.named`: afterwards a node
    that a rule names may be part of another one. A rule that is wrong is passed over here; `spmd-annotate` reports it.

    ```mlir
    %h = nn.exp %x ...                                // before; the plan names it hidden
    %y = nn.neg %h

    %h = nn.exp %x ...                                // after
    %p = spmd.pin %h "hidden" : tensor<8x4xf32>
    %y = nn.neg %p
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", /*default=*/"", "Plan file (YAML)">,
    ListOption<"shard", "shard", "std::string", "Rules such as 'x=[data, _]', as if they stood in the plan">,
  ];
}

def Propagate : Spmd_Pass<"spmd-propagate"> {
  let summary = "decides the sharding of every value";
  let description = [{
    Builds the strategy problem of each function (`Solver/Problem.h`), solves it, and writes the answer: every value's
    type gets a closed sharding. Where an op's choice wants an operand otherwise than it arrives, or computes a result
    otherwise than its users share it, the op gets the attributes `spmd.operands` and `spmd.results`.

    A remark names every op that forces replication, with the reason. Wishes that cannot all be kept are an error.

    ```mlir
    %y = nn.exp %x : (tensor<8x4xf32, #sharding_data_>) -> tensor<8x4xf32>                     // before
    %y = nn.exp %x : (tensor<8x4xf32, #sharding_data_>) -> tensor<8x4xf32, #sharding_data_>    // after
    ```
  }];
  let options = [
    Option<"optimize", "optimize", "std::string", /*default=*/"\"balanced\"",
           "Objective: balanced, or bytes on the wire alone">,
  ];
}

def InsertReshards : Spmd_Pass<"spmd-insert-reshards"> {
  let summary = "makes every change of sharding an spmd.reshard";
  let description = [{
    Turns `spmd.operands`, `spmd.results` and `spmd.constrain` into `spmd.reshard`. One reshard serves all users that
    want the same sharding; it stands right after the value, and starts from the value or from a copy made before,
    whichever is cheaper.

    ```mlir
    nn.exp %x {spmd.operands = [#sharding__data]} : ...             // before

    %r = spmd.reshard %x : tensor<8x4xf32, #sharding_data_> to tensor<8x4xf32, #sharding__data>   // after
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
    %r = spmd.reshard %x : tensor<8x4xf32, #sharding_data_> to tensor<8x4xf32, #sharding__>   // before
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
    * `partitioned`: no sharded type is left; functions keep the global types of arguments and results; the only `spmd`
      ops are collectives.

    Changes nothing: after it stands what stood before it.
  }];
  let options = [
    Option<"phase", "phase", "std::string", /*default=*/"\"annotated\"",
           "The phase just done: annotated, propagated, resharded or partitioned">,
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
