//===- ExecStepPasses.td - what steps of training keep, and for how long -*- tablegen -*-===//
//
// Passes on the program of one device, before there are kernels. ExecPasses.td includes them, where `Exec_Pass` is.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXEC_STEP_PASSES
#define CLEAVE_EXEC_STEP_PASSES

def AdvanceUpdates : Exec_Pass<"exec-advance-updates"> {
  let summary = "the next value of a state stands where its gradient is there";
  let description = [{
    A step of training ends with the updates of all its weights: as many gradients, or all that gradients are made of, would live until then.
    Of the elementwise ops that lead to nothing but the next values of states, each moves up to behind what it reads, and to behind the last
    reader of the state that is replaced, so that this can be done in place. What reads a collective stays: others begin meanwhile.

    ```mlir
    %g1 = nn.einsum %x1, %d1 ..            // before
    %g0 = nn.einsum %x0, %d0 ..
    %n0 = nn.sub %w0, %g0 ..
    %n1 = nn.sub %w1, %g1 ..

    %g1 = nn.einsum %x1, %d1 ..            // after
    %n1 = nn.sub %w1, %g1 ..
    %g0 = nn.einsum %x0, %d0 ..
    %n0 = nn.sub %w0, %g0 ..
    ```
  }];
}

def Recompute : Exec_Pass<"exec-recompute"> {
  let summary = "makes values again behind the loss, instead of keeping them";
  let description = [{
    Of a step of training, a function with a result `loss` and states. All up to the loss is its forward, and what reads a value of that
    later keeps it, in memory, until then. Ops that are made again are cloned in front of their first reader behind the loss. What the clones
    read, and what is kept, is read through `exec.again`.

    Which values are kept, and which made again, is a minimum cut (Solver/Recompute.h). The policies:

    | policy | made again |
    |---|---|
    | `none` | nothing; with `gather=twice` parameters that were gathered |
    | `cheap` | elementwise ops, movement, norms, softmax and the products that it is of, if they take less memory so |
    | `blocks` | all but values between blocks; of blocks those that take least memory |
    | `auto` | what takes least time within `limit` bytes of a rank, of all that cuts give |

    Collectives are not done again, but by `auto`, at their price; with `gather=twice` each gathers its parameters again, with
    `gather=once` none does. `keep` and `again` are patterns of tensors, which no policy overrides. With `auto` the function gets the
    attribute `nn.front`: time and memory of each choice that is not worse than another one.

    ```mlir
    %h = nn.exp %x ..                                // before
    %y = nn.einsum %h, %w ..
    ..                                               // the loss
    %g = nn.einsum %h, %d ..

    %h = nn.exp %x ..                                // after, with policy=cheap
    %y = nn.einsum %h, %w ..
    ..
    %a = exec.again %x
    %h1 = nn.exp %a ..
    %g = nn.einsum %h1, %d ..
    ```
  }];
  let options = [Option<"policy", "policy", "std::string", "\"none\"", "none, cheap, blocks or auto">,
                 Option<"limit", "limit", "int64_t", "0", "bytes that a rank may take, for auto; 0: any">,
                 Option<"gather", "gather", "std::string", "\"\"", "how often parameters are gathered: once or twice">,
                 ListOption<"keep", "keep", "std::string", "patterns of tensors that are kept">,
                 ListOption<"again", "again", "std::string", "patterns of tensors that are made again">];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::cleave::nn::NnDialect", "::cleave::spmd::SpmdDialect"];
}

def Offload : Exec_Pass<"exec-offload"> {
  let summary = "values that wait for the backward in the host's memory";
  let description = [{
    Of a step of training, a function with a result `loss` and states, or a rank of a pipeline that trains. A value that the forward makes and
    the backward reads, and that a pattern of `tensors` names, is copied to the host's memory as soon as it is there, and back for the
    backward: what reads it there, or what only shows its bytes (`exec.again`, a reshape), reads the copy instead. `exec-plan-memory` says
    when the copies are made.

    An error tells of a pattern that names no tensor, or only such as are not kept: no gradient reads them, they are given
    (weights, inputs), or they are what the step gives back, which have bytes of their own.

    ```mlir
    %h = nn.exp %x ..                                // before
    %y = nn.einsum %h, %w ..
    ..                                               // the loss
    %g = nn.einsum %h, %d ..

    %h = nn.exp %x ..                                // after, with tensors=h
    %o = exec.offload %h
    %y = nn.einsum %h, %w ..
    ..
    %f = exec.fetch %o
    %g = nn.einsum %f, %d ..
    ```
  }];
  let options = [ListOption<"tensors", "tensors", "std::string", "patterns of tensors that wait in the host's memory">];
  let dependentDialects = ["::cleave::exec::ExecDialect"];
}

def BucketReductions : Exec_Pass<"exec-bucket-reductions"> {
  let summary = "reductions of gradients that travel together";
  let description = [{
    Of a step of training, a function with states: all_reduces and reduce_scatters that lead to nothing but what the step gives back, by no
    product, travel while the backward goes on. Those of one kind, group and element type get a number, `exec.bucket`, which several have in
    common; they then stand side by side, where the last of them is made. `exec-order` makes one command of each bucket, without a copy.
    What is sent is the same.

    With `by-time` buckets are those with which all gradients are through first, on the module's cluster (`spmd.cluster`), and of these the
    fewest (Solver/Buckets.h): a collective takes time to begin, and the first of a bucket waits for its last. Else one is full with
    `most-bytes`, or an eighth of all if that is less, and the first with `first-bytes`, so that something is under way soon.

    ```mlir
    %g1 = nn.einsum %x1, %d1 ..                                            // before
    %r1 = spmd.all_reduce sum %g1 over {"data"} ..
    %g0 = nn.einsum %x0, %d0 ..
    %r0 = spmd.all_reduce sum %g0 over {"data"} ..

    %g1 = nn.einsum %x1, %d1 ..                                            // after
    %g0 = nn.einsum %x0, %d0 ..
    %r1 = spmd.all_reduce sum %g1 over {"data"} {exec.bucket = 0} ..
    %r0 = spmd.all_reduce sum %g0 over {"data"} {exec.bucket = 0} ..
    ```
  }];
  let options = [Option<"byTime", "by-time", "bool", "false", "as the module's cluster has all of them through first">,
                 Option<"firstBytes", "first-bytes", "int64_t", "1048576", "bytes of the first bucket, without by-time">,
                 Option<"mostBytes", "most-bytes", "int64_t", "26214400", "bytes of each other one">];
  let dependentDialects = ["::cleave::exec::ExecDialect", "::cleave::spmd::SpmdDialect"];
}

#endif // CLEAVE_EXEC_STEP_PASSES
