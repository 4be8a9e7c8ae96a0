//===- ExecPasses.td - from ops to kernels, in the order of `exec-lower` ------*- tablegen -*-===//
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXEC_PASSES
#define CLEAVE_EXEC_PASSES

include "mlir/Pass/PassBase.td"

class Exec_Pass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::cleave::exec::ExecDialect"];
}

def FormRings : Exec_Pass<"exec-form-rings"> {
  let summary = "keys and values that go round, block by block";
  let description = [{
    Where attention alone reads keys and values that are gathered along their sequence, over the same axes, it can take them in blocks
    instead: a rank attends to its own, while those of the rank before come to it by an `spmd.window` that `wraps`, and so on; p - 1 times
    on p ranks. As many bytes are sent, a rank holds two blocks of keys and values at a time instead of p, and the transfer of a block
    overlaps with attention to another. What each step gives is combined by the logarithm that `exec.partial_attention` gives beside it.

    Of causal attention, and of windows, a rank sees all of most blocks or nothing: then a mask of one element says which, where queries and
    keys are cut alike. Blocks that no rank sees anything of are left out: the next ones come at once, from ranks further away. Additive
    masks give each step the columns of its block.

    With `attention=ring`, or where the plan says so (`spmd.attention` of the module), wherever it can be done, with a remark where not.
    Else where it takes less time on the module's cluster (`by-time`), or where a device of it has too little memory for what is gathered.

    It is the first pass behind partition, and takes the attribute `nn.band` away, which partition leaves for it.

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
  let options = [Option<"attention", "attention", "::cleave::spmd::AttentionForm", "::cleave::spmd::AttentionForm::Auto",
                        "ring: wherever it can be done", "::cleave::spmd::getAttentionValues()">,
                 Option<"byTime", "by-time", "bool", "false", "auto: wherever it takes less time">];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::cleave::nn::NnDialect", "::cleave::spmd::SpmdDialect"];
}

def FlattenLoops : Exec_Pass<"exec-flatten-loops"> {
  let summary = "bodies of loops in the list around them";
  let description = [{
    The body of each nn.loop comes to stand in the block around it, between exec.enter and exec.leave: from here on a function is one list
    of ops. What a loop carries has bytes of its own, to which what is yielded is copied at the end of the body, one value after the other;
    what is itself carried by another value, or is the condition, is copied elsewhere first. Weights and constants are read where they lie.

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
  let summary = "recurrent nets become steps";
  let description = [{
    Each step of an nn.recurrence becomes a contraction of the state with the weights, and what gates do element by element. Steps read
    slices of the projection, which are bytes of it, and states lie in their parts of the result, so that nothing is moved; steps are alike,
    so that they share kernels when these are outlined: a long sequence costs commands, not code. One whose hidden dim is cut was unrolled
    when it was partitioned.

    ```mlir
    %y:2 = nn.recurrence rnn %p, %w initial (%h) activations ["tanh"] ..         // before

    %w0 = nn.reshape %w : (tensor<1x1x8x8xf32>) -> tensor<8x8xf32>               // after, for each step
    %g = nn.einsum %h0, %w0 "bk,nk->bn" : ...
    %p0 = nn.slice %p starts [0, 0, 0, 0, 0] sizes [1, 1, 2, 1, 8] ...
    %s = nn.add %p0, %g : ...
    %h1 = nn.tanh %s : ...
    ```
  }];
}

def RecognizeAttention : Exec_Pass<"exec-recognize-attention"> {
  let summary = "attention from its parts";
  let description = [{
    A contraction of queries and keys, factors, masks and casts, a softmax, and a contraction with values over the same heads become
    nn.attention, which needs not store scores. It runs on the program of one device: whoever decided how to split it saw simple ops.
    Operands may lie in any order; of keys and values that are repeated for several heads, one is read. Factors of queries and keys become
    the scale.

    Masks that are added stay so, one sum of all; a select between scores and a number that leaves nothing of a score (-1e30 and below)
    becomes one. What is excluded by places alone, ahead of a query or far from it, is told by `causal` and `left`: constants, and
    comparisons of counts. What differs from the parts: scores are rounded less, and a query that sees nothing gives zeros, where parts that
    do not say so (`is_nan`) give NaN. A remark says, once for each reason, why a softmax between contractions is no attention.

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
    The host's templates for convolutions and pools run along channels, and so does everything around them: in one walk over the program,
    each value with channels and spatial dims is stored `[batch, spatial.., channels]` from the first convolution on. Convolutions, windows
    and batch norms stand between two transposes, which become part of their kernels; elementwise ops, concatenation, slices, padding,
    resizing of other dims than channels, reductions and softmax work on the other order of dims, and a transposed convolution whose windows
    lie side by side becomes a contraction in it. What else reads such a value gets a transpose in front, as do a convolution's arguments. A
    convolution to fewer than 8 channels stays as it is. Weights: `exec-pack-weights`.

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

def PackCollectives : Exec_Pass<"exec-pack-collectives"> {
  let summary = "parts that ranks exchange lie one behind the other";
  let description = [{
    NCCL knows parts that lie one behind the other. Where those of a collective would lie in rows, since the dim that is cut has others in front of it, they become dims of their own, in front of all: movement of nn before what is scattered,
    behind what is gathered. Kernels store and read in that order where they can; else the movement is a kernel.

    Where only products read what is gathered, and sum along that dim, what is sent is stored with that dim first if a kernel makes it for
    nobody else: then products read it so, and nothing is moved on either side.

    Not part of `exec-lower` but for devices; it runs in front of `exec-form-kernels`. What goes from rank to rank in pieces
    (`spmd.permute`,
    `spmd.window`) is left alone.

    ```mlir
    %y = spmd.all_gather %x dims [{}, {"model"} ] : (tensor<4x8xf32>) -> tensor<4x16xf32>             // before

    %0 = spmd.all_gather %x dims [{"model"}, {} ] : (tensor<4x8xf32>) -> tensor<8x8xf32>              // after
    %1 = nn.reshape %0 : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %2 = nn.transpose %1 [1, 0, 2] : (tensor<2x4x8xf32>) -> tensor<4x2x8xf32>
    %y = nn.reshape %2 : (tensor<4x2x8xf32>) -> tensor<4x16xf32>
    ```
  }];
}

def FormKernels : Exec_Pass<"exec-form-kernels"> {
  let summary = "puts ops into kernels";
  let description = [{
    All ops of nn that compute or move elements go into `exec.fused`: greedily, in program order, each op joins the kernels that made its
    operands where that is right and pays (`Clusters.h` of Exec/Fusion says when), or starts one. What kind of op it is says its form
    (`nn::Form`).

    A contraction of two operands, convolution, attention or window is the *anchor* of its kernel: what works element by element on its
    result, its epilogue, stands behind it, and what only moves its operands in front; a transpose of a contraction becomes its order of
    letters, and a transposed convolution whose windows do not overlap a contraction. A concat of a state that grows and what is new is
    not a kernel but an `exec.append`.

    An op that reads little and has several readers is computed in each of them where that moves fewer bytes; so are constants of one
    number. No reduction is ever computed twice. What pays depends on the device: while a kernel starts, a GPU moves 300 times as many bytes as
    a core does. With `for-devices` rates are those of the module's cluster (`spmd.cluster`), else of a core. A remark names each kind of op
    that no template is fast for, once.

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
  let options = [Option<"forDevices", "for-devices", "bool", "false", "kernels are for devices of the cluster, not for a core of the host">];
}

def SplitKernels : Exec_Pass<"exec-split-kernels"> {
  let summary = "kernels that a device can run";
  let description = [{
    A kernel of a device has no memory that all of its threads see, and its threads cannot wait for each other. Where a body needs more than
    one sweep over rows that its results have (`codegen::canEmitDevice` says when), its composite ops become simple ones, and each op whose
    result has to lie in memory ends a kernel; what is cheap is computed in each kernel that needs it.

    A reduction of much into little, which has fewer rows than keep a device busy, becomes two: of parts of what is reduced, and of their
    results (`codegen::findDeviceStages`), in a fixed order; so does attention of few blocks of queries to many keys
    (`exec.partial_attention`). Of 16 queries and more, where a library may do the whole, it stays one: with `for-libraries` that of f16 and
    bf16, with
    `narrows-floats`, too, that of f32.

    Not part of `exec-lower` but for devices; it runs behind `exec-form-kernels`, before weights are packed or kernels outlined.

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
  let options = [Option<"forLibraries", "for-libraries", "bool", "false", "libraries are used for what they have">,
                 Option<"narrowsFloats", "narrows-floats", "bool", "false", "exec-narrow-floats follows">];
}

def ChunkCollectives : Exec_Pass<"exec-chunk-collectives"> {
  let summary = "products in rows, each part's all_reduce behind the next part's product";
  let description = [{
    What alone reads a contraction, an all_reduce, waits for all of it. In `chunks` parts along the first dim of the result that has more
    than one element, the parts are sent while others are computed; together they send what was sent before. The part of a value that is not
    computed here lies in its bytes, and parts of the result are made in theirs.

    As many parts are made as divide the dim, at most `chunks`. With 0 (`--chunk-collectives auto`) that number of at most 8 which takes
    least time on the module's cluster (`spmd.cluster`, or the default one), each part with a launch and the beginning of a collective;
    parts go through both as through a pipeline of two stages.

    Not part of `exec-lower` but on demand; it runs in front of `exec-recognize-attention`.

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
    What kernels hand on to each other, and the weights of contractions, convolutions and embeddings, are stored as bf16. Kernels compute in
    f32 as before: they widen what they read, and round what they write, once. What contractions, convolutions and attention multiply has
    been rounded to bf16, so that two bf16 numbers are multiplied and summed in f32.

    Inputs and outputs of the function keep their types, and so does all that a number may be lost of: what comes from neither floats of the
    caller nor an embedding (positions, frequencies, masks, where -1e38 must stay finite), statistics of rows, parameters that nothing
    multiplies (biases, scales), and what a loop carries, which may be a sum over many iterations. Values that ranks exchange are narrow as
    a whole or not at all: half the bytes on the wire; a sum of terms rounds each term, adds in f32, and rounds the sum.

    Not part of `exec-lower` but on demand (`--precision bf16`); it runs between `exec-form-kernels` and `exec-pack-weights`.

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
  let summary = "kernels that a device's libraries have";
  let description = [{
    cuBLASLt and cuDNN compute a product, or a convolution, times a number, plus a bias and a residual, through relu or the tanh form of
    gelu (`codegen::findMatmul`, `findConvolution`), cuDNN attention of f16 and bf16, too (`findAttention`). A kernel that is one of these
    stays a kernel, its arguments in the order of a command's operands; assembly makes it that command, which the kernel stands in for where
    a library is missing or refuses. Of a kernel that does more, the longest beginning that is one becomes a kernel of its own: if at least
    64 products are summed for each element, and there are 16 rows and columns, so that a library gains more than another pass over the
    result costs; of attention 64 keys and 16 queries. A product whose columns are put into parts (a reshape that splits a dim of the
    result, and a transpose) becomes one of an operand that is split: a batch of products. Beside a result in bf16 a bias that a parameter
    gives is rounded, too: libraries take no other.

    Not part of `exec-lower` but for devices; it runs behind `exec-split-kernels` and `exec-narrow-floats`.

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
  let summary = "weights in the order in which contractions read them";
  let description = [{
    The second operand of a contraction (nn.einsum with `MatmulDims`) and the filter of a convolution, where they come from a parameter or
    constant, are packed once, outside of the kernel, which unpacks them first thing: a template for panels reads them as they are, and
    whoever knows none sees no difference. Kernels that want one parameter alike share the packed one; a reader of another kind has the
    parameter as it is.

        contraction    [batch.., columns but the last.., depth.., last column], panels of the last one
        convolution    [kernel.., channels in, channels out], panels of channels out if there is one group

    With `libraries`, filters alone: `[channels out, kernel.., channels in]` where a library computes the convolution, and its input and
    result have channels last.

    A contraction whose result does not end in a column is left as it is. Of a weight in bf16, two neighbors along the depth lie side by
    side (interleave 2), since processors multiply such pairs.

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
  let summary = "each distinct kernel once, by name";
  let description = [{
    Every `exec.fused` becomes an `exec.launch` of an `exec.kernel`; those whose bodies compute the same share it, so that equal layers are
    compiled once. Locations do not count: the first one's stay. A kernel is called after its ops.

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
    * (K1) a function holds `exec.fused`, `exec.append`, aliases, parameters and constants, as they are or packed, ops of
      spmd that ranks do together or knowing their place, and the return;
    * (K2) a body has at most one *anchor* (a contraction, convolution, attention or window of floats). What it depends on is
      constant, `exec.unpack`, moves elements or casts floats; what depends on it works element by element on as many elements, or
      moves them into another order. An op that no kernel shares (a sort, scatter, or one of the former that is no anchor)
      is alone in its body, but for constants;
    * (K3) rows and scans of one body are the same rows: one shape, the same dims; there is at most one scan, and none of
      them beside an anchor;
    * (K4) the results of a body have one iteration space: each has as many elements as the largest one, or, in a body
      with rows, one element a row.

    `outlined`: (O1) as (K1), with `exec.launch` instead of `exec.fused`; (O2) no two kernels have equal bodies; (O3) each
    is launched; (K2) to (K4) of kernels.

    The module says from then on that it has been through the phase (`spmd.phase`). Nothing else changes: before and after it stands the
    same.
  }];
  let options = [
    Option<"form", "form", "::cleave::Phase", "::cleave::Phase::Clustered", "the phase just done: clustered or outlined",
           "::cleave::PhaseWords{::cleave::Phase::Clustered, ::cleave::Phase::Outlined}">,
  ];
}

def PlanMemory : Exec_Pass<"exec-plan-memory"> {
  let summary = "from tensors to views of memory, and commands on them";
  let description = [{
    Every value gets its place. Aliases are views of the same bytes; what is returned is made in the buffer of the output, parts of a concat
    along the outermost dim in the whole, the operand of an all_gather of rows as the rank's own row. A kernel's result takes the place of
    an argument that dies, where the kernel can do that, and so does that of an all_reduce. Everything else lies in one arena, where it has
    its place from the first step that writes it to the last that reads it (`planMemory`). Parameters and constants lie in a buffer of
    weights, equal ones once.

    A state (a result with `spmd.state`) is made where its argument lies, where nobody reads the old value any more or what makes it works
    in place; else it is copied there at the end, with a remark. One that grows is the last positions of its buffer, which
    `exec.append` moves to the beginning before it puts what is new behind; whoever else reads it gets a dense copy.

    Collectives come as early as their operand exists, at most two ahead of where they stood, and keep what they touch until somebody reads
    their result: so `exec-order` may let them overlap with kernels. Messages between ranks of a pipeline stay where they stand; what is
    sent is kept until the message behind the next one starts. Each rank's function has buffers of its own. What differs between ranks
    (where shards begin, which piece is a rank's own) stands in the rank table.

    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {                     // before
      %y = exec.launch @exp_0(%x) : (tensor<8xf32>) -> tensor<8xf32>
      %z = exec.launch @relu_0(%y) : (tensor<8xf32>) -> tensor<8xf32>
      return %z : tensor<8xf32>
    }

    exec.buffer @input_0 input 32 align 64                                    // after: %y is made in the output, too
    exec.buffer @output_0 output 32 align 64
    func.func @main() {
      %x = exec.view @input_0[0] : memref<8xf32>
      exec.input "x" in %x : memref<8xf32> of tensor<8xf32> starts [0]
      %y = exec.view @output_0[0] : memref<8xf32>
      exec.run @exp_0(%x) into (%y) : (memref<8xf32>) -> memref<8xf32>
      %z = exec.view @output_0[0] : memref<8xf32>
      exec.run @relu_0(%y) into (%z) : (memref<8xf32>) -> memref<8xf32>
      exec.output "result0" in %z : memref<8xf32> of tensor<8xf32> starts [0]
      return
    }
    ```
  }];
  let options = [Option<"forDevices", "devices", "bool", "false", "kernels are those of devices, which work in place otherwise">];
}

def Order : Exec_Pass<"exec-order"> {
  let summary = "lets collectives run beside kernels";
  let description = [{
    Where a collective or a message could run while kernels do, because its result is not read at once, all that ranks do together goes to
    stream 1. A stream waits for an event of the other before the first command that touches bytes of one that it does not know to be done,
    and no earlier. Collectives of one kind over one list of axes, with no kernel between them and one reader behind, become one. Nothing
    else changes: the order of commands, and where tensors lie, stay.

    ```mlir
    exec.collective all_reduce by sum over {"x"} (%a) into (%a) ...           // before
    exec.run @exp_0(%b) into (%c) ...
    exec.run @add_0(%a, %c) into (%d) ...

    exec.record 0                                                             // after
    exec.wait 0 stream 1
    exec.collective all_reduce by sum over {"x"} (%a) into (%a) stream 1 ...
    exec.record 1 stream 1
    exec.run @exp_0(%b) into (%c) ...
    exec.wait 1
    exec.run @add_0(%a, %c) into (%d) ...
    ```
  }];
}

def VerifyPlan : Exec_Pass<"exec-verify-plan"> {
  let summary = "checks what must hold once memory is planned";
  let description = [{
    `planned`:
    * (M1) there is one function, or one for each rank of a pipeline (`pipe.rank`); it holds views, loads, inputs, outputs,
      commands and the return;
    * (M2) views lie in their buffers, aligned to their elements, and in the tensor that they are of, on every rank;
    * (M3) what a command reads was written before, last through a view of the same tensor;
    * (M4) nothing writes weights or inputs; of what a command writes it reads or writes nothing else, but one tensor in
      place: the view that the kernel's `in_place` names, all of an all_reduce's operand, an all_gather's own row, rows that a
      copy moves towards the beginning, with the same strides, or an exchange's source, where no piece that any rank gets
      lies in its bytes;
    * (M5) outputs are written, each in a buffer of its own, as each input is, but for the two tensors of a state;
    * (M6) operands and results of collectives lie at one offset on all ranks, but for the own row;
    * (M7) what one rank of a pipeline sends to another one is what that one receives, in order: channels, microbatches, types.

    `ordered`: all of this, and (E1) an event is recorded once, and waited for behind that; (E2) two commands that touch the
    same bytes, one of which writes them, are on one stream or ordered by events; (E3) all that ranks do together is on one stream, so that
    members of a group come to it in one order.

    (M3) to (M5) and (E2) are checked on the ranks whose views differ, 64 of them at the most: the reader of program files checks all.
  }];
  let options = [
    Option<"phase", "phase", "::cleave::Phase", "::cleave::Phase::Planned", "the phase just done: planned or ordered",
           "::cleave::PhaseWords{::cleave::Phase::Planned, ::cleave::Phase::Ordered}">,
  ];
}

def LowerPipeline : Exec_Pass<"exec-lower"> {
  let summary = "from the program of one device to kernels and commands";
  let description = [{
    All phases of the lowering that there are, each with its gate (`lib/Pipelines/Phases.cpp`). Before: local shapes and collectives, or,
    for one device, the nn dialect alone. After: kernels, each distinct one once, and commands on memory, in streams.
  }];
  let options = [
    Option<"last", "last", "::cleave::Phase", "::cleave::Phase::Ordered", "the phase to stop behind",
           "::cleave::PhaseWords{::cleave::Phase::Clustered, ::cleave::Phase::Ordered}">,
    Option<"forDevices", "devices", "bool", "false", "kernels are those of devices: exec-pack-collectives and exec-split-kernels, too">,
    Option<"withLibraries", "libraries", "bool", "false", "and devices have libraries: exec-use-libraries, too">,
  ];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::mlir::func::FuncDialect"];
}

#endif // CLEAVE_EXEC_PASSES
