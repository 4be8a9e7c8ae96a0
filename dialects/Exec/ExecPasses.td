//===- ExecPasses.td - from ops to kernels ----------------------*- tablegen -*-===//
//
// In the order in which the pipeline runs them (`exec-lower`).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXEC_PASSES
#define CLEAVE_EXEC_PASSES

include "mlir/Pass/PassBase.td"

class Exec_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::exec::ExecDialect"];
}

def RecogniseAttention : Exec_Pass<"exec-recognise-attention"> {
  let summary = "attention from its parts";
  let description = [{
    A contraction of queries and keys, factors, masks and casts, a softmax, and a contraction with values over the same
    heads become nn.attention, which needs not store scores. It runs on the program of one device: whoever decided how to
    split it saw simple ops. Operands may lie in any order; of keys and values that are repeated for several heads, one is
    read. Factors of queries and keys become the scale.

    Masks that are added stay so, one sum of all; a select between scores and a number that leaves nothing of a score
    (-1e30 and below) becomes one. A constant that excludes what lies ahead is told by `causal`. What differs from the parts: scores
    are rounded less, and a query that sees nothing gives zeros, where parts that do not say so (`is_nan`) give NaN. A
    remark says, once for each reason, why a softmax between contractions is no attention.

    ```mlir
    %s = nn.einsum %q, %k "bhik,bhkj->bhij" : ...                 // before
    %m = nn.add %s, %mask : ...
    %p = nn.softmax %m dim 3 : ...
    %y = nn.einsum %p, %v "bhij,bhjd->bhid" : ...

    %t = nn.transpose %k [0, 1, 3, 2] : ...                       // after
    %y = nn.attention %q, %t, %v mask %mask scale 1.0 : ...
    ```
  }];
}

def ChooseLayouts : Exec_Pass<"exec-choose-layouts"> {
  let summary = "channels last, throughout";
  let description = [{
    A convolution that runs along channels, and everything around it: in one walk over the program, each value with
    channels and spatial dims is stored `[batch, spatial.., channels]` from the first convolution on. Convolutions, windows and batch
    norms stand between two transposes, which become part of their kernels; elementwise ops, concatenation, slices, padding, reductions
    and softmax work on the other order of dims. What else reads such a value gets a transpose in front, as do arguments that
    a convolution reads. Weights keep their order (`exec-pack-weights`).

    ```mlir
    %c = nn.conv %x, %f ... : (tensor<1x8x32x32xf32>, ...) -> tensor<1x16x32x32xf32>        // before
    %r = nn.relu %c : ...
    %s = nn.reduce mean %r dims [2, 3] ...

    %0 = nn.transpose %x [0, 2, 3, 1] : ...                                                // after: once, at the beginning
    %1 = nn.transpose %0 [0, 3, 1, 2] : ...
    %2 = nn.conv %1, %f ... : (tensor<1x8x32x32xf32>, ...) -> tensor<1x16x32x32xf32>
    %c = nn.transpose %2 [0, 2, 3, 1] : ... -> tensor<1x32x32x16xf32>
    %r = nn.relu %c : ...
    %s = nn.reduce mean %r dims [1, 2] ...
    ```
  }];
}

def FormKernels : Exec_Pass<"exec-form-kernels"> {
  let summary = "puts ops into kernels and library commands";
  let description = [{
    All ops of nn that compute or move elements go into `exec.fused`: greedily, in program order, each op joins the kernels
    that made its operands where that is right and pays (`lib/Dialect/Exec/Transforms/Clusters.h` says when), or starts
    one. What kind of op it is says its form (`nn::Form`).

    A contraction of two operands, convolution, attention or window is the *anchor* of its kernel: what works element by
    element on its result, its epilogue, stands behind it, and what only moves its operands in front; a transpose of a
    contraction becomes its order of letters. With `libraries=contractions`, for devices that have some, contractions,
    convolutions and attention become library commands instead.

    An op that reads little and has several readers is computed in each of them where that moves fewer bytes; so are
    constants of one number. No reduction is ever computed twice. A remark names each kind of op that no template is
    fast for, once.

    ```mlir
    %s = nn.add %x, %r : ...                        // before
    %n = nn.layer_norm %s, %scale dim 1 ...
    %y = nn.einsum %n, %w "ik,kj->ij" : ...

    %s, %n = exec.fused (%a = %x, %b = %r, %c = %scale) ... {      // after; %s is read later, too
      %0 = nn.add %a, %b ...
      %1 = nn.layer_norm %0, %c dim 1 ...
      exec.yield %0, %1
    }
    %y = exec.fused (%a = %n, %b = %w) ... { nn.einsum %a, %b "ik,kj->ij" ... }
    ```
  }];
  let options = [
    Option<"libraries", "libraries", "::cleave::exec::Libraries", "::cleave::exec::Libraries::None",
           "what becomes a library command: none or contractions", [{::llvm::cl::values(
             clEnumValN(::cleave::exec::Libraries::None, "none", "nothing: kernels hold all"),
             clEnumValN(::cleave::exec::Libraries::Contractions, "contractions", "contractions, convolutions, attention"))}]>,
  ];
}

def PackWeights : Exec_Pass<"exec-pack-weights"> {
  let summary = "weights in the order in which contractions read them";
  let description = [{
    The second operand of a contraction (nn.einsum with `MatmulDims`) and the filter of a convolution, where they come
    from a parameter or constant, are packed once, outside of the kernel, which unpacks them first thing: a template for
    panels reads them as they are, and whoever knows none sees no difference. Kernels that want one parameter alike share
    the packed one; a reader of another kind has the parameter as it is.

        contraction    [batch.., columns but the last.., depth.., last column], panels of the last one
        convolution    [kernel.., channels in, channels out], panels of channels out if there is one group

    A contraction whose result does not end in a column is left as it is.

    ```mlir
    %y = exec.fused (%a = %x, %b = %w) : (tensor<8x64xf32>, tensor<64x40xf32>) -> tensor<8x40xf32> {        // before
      %0 = nn.einsum %a, %b "ik,kj->ij" ...

    %p = exec.pack %w order [0, 1] batch 0 width 16 interleave 1 : (tensor<64x40xf32>) -> tensor<3x64x16x1xf32>   // after
    %y = exec.fused (%a = %x, %b = %p) : (tensor<8x64xf32>, tensor<3x64x16x1xf32>) -> tensor<8x40xf32> {
      %u = exec.unpack %b order [0, 1] batch 0 width 16 interleave 1 ...
      %0 = nn.einsum %a, %u "ik,kj->ij" ...
    ```
  }];
  let options = [Option<"width", "width", "int64_t", "16", "elements of a panel's row: a vector, or a few">];
}

def Outline : Exec_Pass<"exec-outline"> {
  let summary = "each distinct kernel once, by name";
  let description = [{
    Every `exec.fused` becomes an `exec.launch` of an `exec.kernel`; those whose bodies compute the same share it, so that
    equal layers are compiled once. Locations do not count: the first one's stay. A kernel is called after its ops.

    ```mlir
    %y = exec.fused (%a = %x) : ... { %0 = nn.exp %a ... exec.yield %0 }     // before, twice

    %y = exec.launch @exp_0(%x) : ...                                        // after, twice
    exec.kernel @exp_0(%a: ...) { %0 = nn.exp %a ... exec.yield %0 }         // once
    ```
  }];
}

def VerifyForm : Exec_Pass<"exec-verify-form"> {
  let summary = "checks what must hold after a phase of the lowering";
  let description = [{
    `clustered`:
    * (K1) a function holds library commands, `exec.fused`, aliases, parameters and constants, as they are or packed, ops of
      spmd that ranks do together or knowing their place, and the return;
    * (K2) a body has at most one *anchor* (a contraction, convolution, attention or window of floats). What it depends on is
      constant, `exec.unpack`, or moves elements; what depends on it works element by element on as many elements, or
      moves them into another order. An op that no kernel shares (a sort, scatter, or one of the former that is no anchor)
      is alone in its body, but for constants;
    * (K3) rows and scans of one body are the same rows: one shape, the same dims; there is at most one scan, and none of
      them beside an anchor;
    * (K4) the results of a body have one iteration space: each has as many elements as the largest one, or, in a body
      with rows, one element a row.

    `outlined`: (O1) as (K1), with `exec.launch` instead of `exec.fused`; (O2) no two kernels have equal bodies; (O3) each
    is launched; (K2) to (K4) of kernels.

    The module says from then on that it has been through the phase (`spmd.phase`). Nothing else changes: before and after
    it stands the same.
  }];
  let options = [
    Option<"form", "form", "::cleave::Phase", "::cleave::Phase::Clustered", "the phase just done: clustered or outlined",
           "::cleave::PhaseWords{::cleave::Phase::Clustered, ::cleave::Phase::Outlined}">,
  ];
}

def LowerPipeline : Exec_Pass<"exec-lower"> {
  let summary = "from the program of one device to kernels and commands";
  let description = [{
    All phases of the lowering that there are, each with its gate (`lib/Pipelines/Phases.cpp`). Before: local shapes and
    collectives, or, for one device, the nn dialect alone. After: library commands, kernels, each distinct one once, and
    launches.
  }];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::mlir::func::FuncDialect"];
}

#endif // CLEAVE_EXEC_PASSES
