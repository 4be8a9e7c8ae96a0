//===- ExecPasses.td - from ops to kernels, in the order of `exec-lower` ------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_PASSES
#define CLEAVE_EXEC_PASSES

include "mlir/Pass/PassBase.td"

class Exec_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::exec::ExecDialect"];
}

def FormRings : Exec_Pass<"exec-form-rings"> {
  let summary = "ring attention: ranks pass keys and values on, block by block";
  let description = [{
    Where only attention reads keys and values that are gathered along their sequence, over the same axes, it can read them in blocks
    instead. A rank attends to its own block while the previous rank's block arrives through an `spmd.window` that `wraps`, and so on;
    p - 1 times on p ranks. The number of bytes sent is the same, a rank holds two blocks of keys and values instead of p, and the transfer
    of a block overlaps with attention to another. The logarithms that `exec.partial_attention` gives as well combine the steps' results.

    With causal attention or windows, a rank sees all or nothing of most blocks. If queries and keys are sharded alike, a mask of one
    element then says which. Blocks that no rank sees are left out: the next blocks are sent directly, from more distant ranks. Of an
    additive mask each step takes the columns of its block.

    In a step of training the gradients of such an attention read what is gathered, too, and scatter those of keys and values over the same
    axes. Then blocks go round a second time, on the way back: a rank adds up its queries' gradients, and what they give for a block is
    added to the sums that travel with it, p - 1 times and once more to where the block belongs (`exec.attention_grad` with statistics of
    rows, which the forward's ring leaves). The two ways are formed together or not at all.

    The pass does so with `attention=ring`, or if the plan asks for it (`spmd.attention` of the module), wherever possible, with a remark
    where not; else where it takes less time on the module's cluster (`by-time`), or a device's memory is too small for what is gathered.

    It is the first pass after partition, and removes the attributes `nn.band`, which partition leaves for it, and
    `nn.gradient_of`, by which differentiation says whose gradients are whose.

    ```mlir
    %gk = spmd.all_gather %k dims [{}, {}, {"seq"}, {} ] : (tensor<1x8x4x64xf32>) -> tensor<1x8x8x64xf32>        // before
    %gv = spmd.all_gather %v dims [{}, {}, {"seq"}, {} ] : ...
    %y = nn.attention %q, %gk, %gv scale 0.125 : ...

    %k1 = spmd.window %k dims [{}, {}, {"seq"}, {} ] steps [0, 0, 4, 0] lows [0, 0, -4, 0] highs [1, 8, 0, 64] wraps : ...   // after
    %v1 = spmd.window %v ...
    %s:2 = exec.partial_attention %q, %k, %v part 4 scale 0.125 : ...
    %t:2 = exec.partial_attention %q, %k1, %v1 part 4 scale 0.125 : ...
    %m = nn.max %s#1, %t#1 ...                                                                                              // and so on
    ```
  }];
  let options = [Option<"attention", "attention", "::cleave::spmd::AttentionMethod", "::cleave::spmd::AttentionMethod::Auto",
                        "ring: wherever it is possible", "::cleave::spmd::getAttentionValues()">,
                 Option<"byTime", "by-time", "bool", "false", "auto: wherever it takes less time">];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::cleave::nn::NnDialect", "::cleave::spmd::SpmdDialect"];
}

include "ExecStepPasses.td"

def FlattenLoops : Exec_Pass<"exec-flatten-loops"> {
  let summary = "moves bodies of loops into the function's list of ops";
  let description = [{
    The body of each nn.loop moves into the block around it, between exec.enter and exec.leave: from here on a function is one list of
    ops. Carried values have bytes of their own; the yielded values are copied to them at the end of the body, one after the other.
    A yielded value that is itself a carried one, or the condition, is copied elsewhere first. Weights and constants are not copied.

    ```mlir
    %y = nn.loop count 8 carries(%x) : (tensor<4xf32>) -> tensor<4xf32> {        // before
    ^bb0(%a: tensor<4xf32>):
      %b = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield next(%b) : (tensor<4xf32>) -> ()
    }

    %a = exec.enter count 8 carries(%x) ..                                       // after
    %b = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %y = exec.leave next(%b) ..
    ```
  }];
}

def UnrollRecurrences : Exec_Pass<"exec-unroll-recurrences"> {
  let summary = "unrolls recurrent nets into steps";
  let description = [{
    Each step of an nn.recurrence becomes a contraction of the state with the weights, and the elementwise ops of the gates. Steps read
    slices of the projection, which are aliases of it, and states are made in their parts of the result, so nothing is moved. Steps are
    alike, so they share kernels when these are outlined: a long sequence costs commands, not code. Partitioning has unrolled recurrences
    whose hidden dim is sharded.
  }];
}

def ConvolvePhases : Exec_Pass<"exec-convolve-phases"> {
  let summary = "writes transposed convolutions as convolutions";
  let description = [{
    One convolution of stride 1 for each phase of the result: places as far apart as the strides get the same elements of the kernel. What
    they make is put side by side, and nothing is multiplied with zeros. Where windows are boxes side by side, one product is made later.
  }];
}

def RecognizeAttention : Exec_Pass<"exec-recognize-attention"> {
  let summary = "recognizes attention in simple ops";
  let description = [{
    A contraction of queries and keys, factors, masks and casts, a softmax, and a contraction with values over the same heads become
    nn.attention, which does not need to store scores. The pass runs on the program of one device; the solver has seen simple ops.
    Dims may be in any order. Keys and values repeated for several heads are read once. Factors of queries and keys become the scale.

    Masks that are added stay additive, as one sum of all. A select between scores and a number that leaves nothing of a score (-1e30 and
    below) becomes a mask, too. Where constants or comparisons of counts exclude keys by position only, ahead of a query or far from it,
    they become `causal` and `left`. Two things differ from the simple ops: scores are rounded less, and a query that sees nothing gives
    zeros, where ops without a test for it (`is_nan`) give NaN. Where gradients are there, too, or they alone read the softmax (made again,
    or that of an nn.attention), `exec.attention_grad` takes the place of their products, but not where scores are so few (`few-bytes`)
    that keeping them is faster. For devices it gets statistics of the rows from the forward, which becomes `exec.partial_attention`; only
    in f32, of at least 16 queries and keys, and of heads of at most 128 components. A remark says once per reason why a softmax between contractions is not attention.

    ```mlir
    %p = nn.softmax (nn.einsum %q, %k "bhik,bhkj->bhij") dim 3 : ...    // before
    %y = nn.einsum %p, %v "bhij,bhjd->bhid" : ...

    %t = nn.transpose %k [0, 1, 3, 2] : ...                       // after
    %y = nn.attention %q, %t, %v scale 1.0 : ...
    ```
  }];
  let options = [Option<"forDevices", "for-devices", "bool", "false", "the program is one of devices">,
                 Option<"fewBytes", "few-bytes", "int64_t", "1 << 20", "of scores: fewer are kept for gradients, unless places hide some">,
                 Option<"skipsGradients", "skip-gradients", "bool", "false", "attention that has gradients stays in parts, and so do these">];
}

def ChooseLayouts : Exec_Pass<"exec-choose-layouts"> {
  let summary = "stores values with channels last";
  let description = [{
    The host's templates for convolutions and pools run along channels, and so do the ops around them: in one pass over the program,
    each value with channels and spatial dims is stored `[batch, spatial.., channels]` from the first convolution on. Convolutions, windows
    and batch norms get a transpose on either side, which becomes part of their kernel. Elementwise ops, concatenation, slices, padding,
    resizing of dims other than channels, reductions and softmax work on the new order of dims, and a transposed convolution whose windows
    do not overlap becomes a contraction in it.

    Other ops that read such a value get a transpose before them, as do a convolution's arguments. A convolution to fewer than 8 channels
    stays as it is. `exec-pack-weights` does the same for weights that are loaded. Those that are made on the way, as gradients are where
    they make the gradient of a weight, and those that are given, where there are many windows, are transposed once in each call, so that
    channels of the result are last in them, too (not with `for-devices`: each transpose is a launch there).

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
  let options = [Option<"forDevices", "for-devices", "bool", "false", "the program is one of devices">];
}

def PackCollectives : Exec_Pass<"exec-pack-collectives"> {
  let summary = "makes the parts that ranks exchange contiguous";
  let description = [{
    NCCL needs each rank's part to be contiguous. Where the sharded dim of a collective has others before it, parts would be strided. They
    become major dims of their own, by movement ops of nn before an op that scatters, and after one that gathers. Kernels store and read in
    that order where they can; else the movement is a kernel.

    Where only products read a gathered value, and sum along that dim, the operand is stored with that dim first if its kernel makes it for
    this collective only. Then the products read it in that order, and nothing is moved on either side.

    It is part of `exec-lower` for devices only, and runs before `exec-fuse-kernels`. It does not change `spmd.permute` and `spmd.window`,
    which send pieces from rank to rank.

    ```mlir
    %y = spmd.all_gather %x dims [{}, {"model"} ] : (tensor<4x8xf32>) -> tensor<4x16xf32>             // before

    %0 = spmd.all_gather %x dims [{"model"}, {} ] : (tensor<4x8xf32>) -> tensor<8x8xf32>              // after
    %1 = nn.reshape %0 : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %2 = nn.transpose %1 [1, 0, 2] : (tensor<2x4x8xf32>) -> tensor<4x2x8xf32>
    %y = nn.reshape %2 : (tensor<4x2x8xf32>) -> tensor<4x16xf32>
    ```
  }];
}

def FuseKernels : Exec_Pass<"exec-fuse-kernels"> {
  let summary = "fuses ops into kernels";
  let description = [{
    The pass puts all ops of nn that compute or move elements into `exec.fused`. Greedily, in program order, each op joins the kernels that
    made its operands where that is correct and lowers the cost (`Clusters.h` of Exec/Fusion says when), or starts a kernel. The op's form
    (`nn::Form`) says what kind of op it is.

    A contraction of two operands, convolution, attention or window is the *anchor* of its kernel: elementwise ops on its result, its
    epilogue, come after it, and ops that only move its operands before. A transpose of a contraction becomes its order of letters, and a
    transposed convolution whose windows do not overlap a contraction. A concat of a growing state is an `exec.append`, not a kernel.
    For the host, convolutions of few windows with weights that are not loaded become contractions, and sums of padded parts a concat.

    An op that reads little and has several readers is computed in each of them where that moves fewer bytes; so are constants of one
    number. No reduction is ever computed twice. Costs depend on the device: while a kernel starts, a GPU moves 300 times as much as a core.
    With `for-devices` rates are those of the module's cluster (`spmd.cluster`). A remark per kind of op says that no template is fast.

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
  let options = [Option<"forDevices", "for-devices", "bool", "false", "kernels are for devices of the cluster, not a core of the host">];
}

def SplitKernels : Exec_Pass<"exec-split-kernels"> {
  let summary = "splits kernels that a device cannot run";
  let description = [{
    A kernel of a device has no memory that all of its threads see, and its threads cannot wait for each other. Where a body needs more than
    one pass over rows that its results have (`codegen::canEmitDevice` says when), its composite ops become simple ones, and each op whose
    result must be in memory ends a kernel. Ops of low cost are computed in each kernel that needs them.

    A large reduction with fewer rows than keep a device busy becomes two: one of parts of the operand, and one of their results
    (`codegen::findDeviceStages`), in a fixed order. So does attention of few blocks of queries to many keys (`exec.partial_attention`).
    Attention of 16 queries and more stays one kernel where a library may compute all of it: with `for-libraries` that of f16 and bf16,
    with `narrows-floats`, too, that of f32.

    It is part of `exec-lower` for devices only, and runs after `exec-fuse-kernels`, before weights are packed or kernels outlined.

    ```mlir
    %y = exec.fused (%a = %x) : (tensor<2x6x40xf32>) -> tensor<2x6x40xf32> {                      // before
      %0 = nn.cumsum %a dim 2 : ...
      %1 = nn.relu %0 : ...

    %s = exec.fused (%a = %x) : (tensor<2x6x40xf32>) -> tensor<2x6x40xf32> {                      // after
      %0 = nn.cumsum %a dim 2 : ...
    %y = exec.fused (%a = %s) : (tensor<2x6x40xf32>) -> tensor<2x6x40xf32> {
      %0 = nn.relu %a : ...
    ```
  }];
  let options = [Option<"forLibraries", "for-libraries", "bool", "false", "libraries are used for the kernels that they have">,
                 Option<"narrowsFloats", "narrows-floats", "bool", "false", "exec-narrow-floats follows">];
}

def ChunkCollectives : Exec_Pass<"exec-chunk-collectives"> {
  let summary = "splits products so that a part's all_reduce overlaps with the next part's product";
  let description = [{
    An all_reduce that is the only reader of a contraction waits for all of it. With `chunks` parts along the first dim of the result that
    has more than one element, parts are sent while others are computed; together they send as many bytes as before. Parts of operands are
    aliases of them, and parts of the result are computed in its bytes.

    The number of parts divides the dim, and is at most `chunks`. With 0 (`--chunk-collectives auto`) it is the number, at most 8, that
    takes least time on the module's cluster (`spmd.cluster`, or the default one). Each part takes a launch and the start of a collective;
    parts pass through both as through a pipeline of two stages.

    It is part of `exec-lower` only on demand, and runs before `exec-recognize-attention`.

    ```mlir
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>           // before
    %y = spmd.all_reduce sum %p over {"model"} : tensor<8x6xf32>

    %a = nn.slice %x starts [0, 0] sizes [4, 4] steps [1, 1] : (tensor<8x4xf32>) -> tensor<4x4xf32>     // after, chunks=2
    %p = nn.einsum %a, %w "mk,kn->mn" : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %r = spmd.all_reduce sum %p over {"model"} : tensor<4x6xf32>
    %b = nn.slice %x starts [4, 0] ...
    %q = nn.einsum %b, %w ...
    %s = spmd.all_reduce sum %q over {"model"} : tensor<4x6xf32>
    %y = nn.concat %r, %s dim 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "0", "how many parts at most; 0: as many as take least time by the cost model">,
  ];
}

def NarrowFloats : Exec_Pass<"exec-narrow-floats"> {
  let summary = "bf16 in memory, f32 in registers";
  let description = [{
    Values between kernels, and the weights of contractions, convolutions and embeddings, are stored as bf16. Kernels compute in f32 as
    before: they widen what they read, and round what they write, once. Operands that contractions, convolutions and attention multiply
    are rounded to bf16, so that two bf16 numbers are multiplied and summed in f32.

    Inputs and outputs of the function keep their types, and so do values that may need more precision: those that come from neither floats
    of the caller nor an embedding (positions, frequencies, masks, where -1e38 must stay finite), statistics of rows, parameters that
    nothing multiplies (biases, scales), and values that a loop carries, which may be sums over many iterations. Values that one exchange
    between ranks reads and writes are all narrow, or none is: half the bytes on the wire. An all_reduce of a partial value rounds each
    addend, adds in f32, and rounds the sum.

    It is part of `exec-lower` only on demand (`--precision bf16`), and runs between `exec-fuse-kernels` and `exec-pack-weights`.

    ```mlir
    %y = exec.fused (%a = %x, %b = %w) : ... -> tensor<8x40xf32> {                      // before
      %0 = nn.einsum %a, %b "ik,kj->ij" : ...

    %p = exec.pack %w order [0, 1] batch 0 width 0 interleave 1 : (tensor<64x40xf32>) -> tensor<64x40xbf16>   // after
    %y = exec.fused (%a = %x, %b = %p) : (tensor<8x64xbf16>, tensor<64x40xbf16>) -> tensor<8x40xbf16> {
      %u = nn.cast %a : (tensor<8x64xbf16>) -> tensor<8x64xf32>
      %v = nn.cast %b : ...
      %0 = nn.einsum %u, %v "ik,kj->ij" : ...
      %1 = nn.cast %0 : (tensor<8x40xf32>) -> tensor<8x40xbf16>
    ```
  }];
}

def UseLibraries : Exec_Pass<"exec-use-libraries"> {
  let summary = "finds kernels that a device's libraries have";
  let description = [{
    cuBLASLt and cuDNN compute a product, or a convolution, times a number, plus a bias and a residual, through relu or the tanh form of
    gelu (`codegen::findMatmul`, `findConvolution`); cuDNN also computes attention of f16 and bf16 (`findAttention`). A kernel that is one
    of these stays a kernel, with its arguments in the order of a command's operands. Assembly makes a command of it; the kernel is the
    fallback where a library is missing or refuses.

    Of a kernel that does more, the longest prefix that a library has becomes a kernel of its own, if at least 64 products are summed for
    each element, and there are 16 rows and columns, so that a library gains more than another pass over the result costs; for attention,
    64 keys and 16 queries. A product whose columns are split into parts (by a reshape that splits a dim of the result, and a transpose)
    becomes a batch of products of a split operand. With a bf16 result, a bias that is a parameter is rounded, too: libraries need that.

    It is part of `exec-lower` for devices only, and runs after `exec-split-kernels` and `exec-narrow-floats`.

    ```mlir
    %y = exec.fused (%a = %bias, %b = %x, %c = %w) : ... {                       // before
      %0 = nn.einsum %b, %c "ik,kj->ij" : ...
      %1 = nn.add %0, %a : ...
      %2 = nn.gelu %1 : ...

    %p = exec.fused (%a = %x, %b = %w, %c = %bias) : ... {                       // after
      %0 = nn.einsum %a, %b "ik,kj->ij" : ...
      %1 = nn.add %0, %c : ...
    %y = exec.fused (%a = %p) : ... {
      %0 = nn.gelu %a : ...
    ```
  }];
}

def PackWeights : Exec_Pass<"exec-pack-weights"> {
  let summary = "stores weights in the order in which contractions read them";
  let description = [{
    The second operand of a contraction (nn.einsum with `MatmulDims`) and the filter of a convolution, where they come from a parameter or
    constant, are packed once, outside of the kernel. The kernel begins with an unpack: a template for panels reads the packed panels, and
    code without such a template sees the tensor as it was. Kernels that need the same layout of a parameter share the packed one; other
    readers have the parameter as it is.

        contraction    [batch.., columns but the last.., depth.., last column], panels of the last one
        convolution    [kernel.., channels in, channels out], panels of channels out if there is one group

    With `libraries`, only filters are packed: `[channels out, kernel.., channels in]` where a library computes the convolution, and its
    input and result have channels last.

    A contraction whose result does not end in a column is left as it is. In a weight of bf16, two neighbors along the depth are next to
    each other (interleave 2), since processors multiply such pairs.

    ```mlir
    %y = exec.fused (%a = %x, %b = %w) : (tensor<8x64xf32>, tensor<64x40xf32>) -> tensor<8x40xf32> {        // before
      %0 = nn.einsum %a, %b "ik,kj->ij" ...

    %p = exec.pack %w order [0, 1] batch 0 width 16 interleave 1 : (tensor<64x40xf32>) -> tensor<3x64x16x1xf32>   // after
    %y = exec.fused (%a = %x, %b = %p) : (tensor<8x64xf32>, tensor<3x64x16x1xf32>) -> tensor<8x40xf32> {
      %u = exec.unpack %b order [0, 1] batch 0 width 16 interleave 1 ...
      %0 = nn.einsum %a, %u "ik,kj->ij" ...
    ```
  }];
  let options = [
    Option<"width", "width", "int64_t", "16", "elements of a panel's row: a vector, or a few">,
    Option<"forLibraries", "libraries", "bool", "false", "for libraries of devices instead, which take filters with channels last">,
  ];
}

def Outline : Exec_Pass<"exec-outline"> {
  let summary = "gives each distinct kernel a name and one definition";
  let description = [{
    Every `exec.fused` becomes an `exec.launch` of an `exec.kernel`. Those whose bodies compute the same share a kernel, so that equal
    layers are compiled once. Locations are not compared: the first ones stay. A kernel is named after its ops.

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
    * (K1) a function holds `exec.fused`, `exec.append`, aliases, parameters and constants, as they are or packed, copies to the
      host's memory and back, collectives of spmd and its ops that depend on a rank's coordinates, and the return;
    * (K2) a body has at most one *anchor* (a contraction, convolution, attention or window of floats). The ops that it depends
      on are constants, `exec.unpack`, or move elements or cast floats; the ops that depend on it are elementwise on as many
      elements, or move them into another order. An op that is never fused (a sort, scatter, or one of the former that is not
      an anchor) is alone in its body, except for constants;
    * (K3) rows and scans of one body are the same rows: one shape, the same dims; there is at most one scan, and none of
      them together with an anchor;
    * (K4) the results of a body have one iteration space: each has as many elements as the largest one, or, in a body
      with rows, one element per row.

    (T1) what is in the host's memory, `exec.fetch` alone reads.

    `outlined`: (O1) as (K1), with `exec.launch` instead of `exec.fused`; (O2) no two kernels have equal bodies; (O3) each
    is launched; (K2) to (K4) of kernels.

    The attribute `spmd.phase` of the module then names the phase. Nothing else changes: the program is the same before and after.
  }];
  let options = [
    Option<"form", "form", "::cleave::Phase", "::cleave::Phase::Clustered", "the phase just done: clustered or outlined",
           "::cleave::PhaseWords{::cleave::Phase::Clustered, ::cleave::Phase::Outlined}">,
  ];
}

include "ExecMemoryPasses.td"

def LowerPipeline : Exec_Pass<"exec-lower"> {
  let summary = "from the program of one device to kernels and commands";
  let description = [{
    The pipeline runs all phases of the lowering, each with its gate (`lib/Pipelines/Phases.cpp`). Before: local shapes and collectives,
    or, for one device, the nn dialect only. After: kernels, each distinct one once, and commands on memory, in streams.
  }];
  let options = [
    Option<"last", "last", "::cleave::Phase", "::cleave::Phase::Ordered", "the phase to stop after",
           "::cleave::PhaseWords{::cleave::Phase::Clustered, ::cleave::Phase::Ordered}">,
    Option<"forDevices", "devices", "bool", "false", "kernels are those of devices: exec-pack-collectives and exec-split-kernels, too">,
    Option<"withLibraries", "libraries", "bool", "false", "and devices have libraries: exec-use-libraries, too">,
  ];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::mlir::func::FuncDialect"];
}

#endif // CLEAVE_EXEC_PASSES
