//===- ExecMemoryPasses.td - from tensors to bytes and streams -*- tablegen -*-===//
//
// Passes behind outlining: where tensors are in memory, in which order commands run, and what must hold of both. ExecPasses.td includes
// them, where `Exec_Pass` is.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXEC_MEMORY_PASSES
#define CLEAVE_EXEC_MEMORY_PASSES

def PlanMemory : Exec_Pass<"exec-plan-memory"> {
  let summary = "buffer assignment: from tensors to views of memory, and commands on them";
  let description = [{
    Each value gets a buffer and an offset. Aliases are views of the same bytes. Results of the function are made in the buffer of the
    output, parts of a concat along the outermost dim in its result, the operand of an all_gather of rows as the rank's own row. A kernel's
    result reuses the bytes of an argument that dies, where the kernel can do that; so does that of an all_reduce. Everything else is in one
    arena, where it has its bytes from the first step that writes it to the last that reads it (`planMemory`). Parameters and constants are
    in a buffer of weights, equal ones once.

    A state (a result with `spmd.state`) is made in the bytes of its argument, if the old value has no readers left or its producer works
    in place; else it is copied there at the end, with a remark. A state that grows is the last positions of its buffer. `exec.append`
    moves them to the beginning before it puts the new positions after them; other readers get a dense copy.

    A collective moves up to where its operand exists, but at most two such collectives are in flight. Its bytes are not reused before its
    result is read, so that `exec-order` can let it overlap with kernels. Messages between ranks of a pipeline do not move; the bytes sent
    are kept until the message after the next one starts.

    What goes to the host's memory (`exec.offload`) is copied as soon as it is there, and keeps its bytes until the copy is predicted to be
    done, by the module's cluster; it comes back (`exec.fetch`) as late as is predicted to do. It has a place in an arena of the host, and what
    has no time to go and come stays. The function gets the attribute `nn.transfers`. Each rank's function has buffers of its own. The rank table has the numbers that
    differ between ranks (where shards begin, which piece is a rank's own).

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
  let options = [Option<"forDevices", "devices", "bool", "false", "kernels are those of devices, which work in place by other rules">];
}

def Order : Exec_Pass<"exec-order"> {
  let summary = "overlaps collectives with kernels";
  let description = [{
    Where a collective or a message could run while kernels do, because its result is not read at once, all collectives and messages go to
    stream 1. A stream waits for an event of the other one before the first command that touches bytes of a command not known to be done,
    and no earlier. Copies between the memories of a device and its host go to streams 2 and 3. Collectives of one kind over one list of axes, with no kernel between them and one reader or one bucket, become one.
    Nothing else changes: the order of commands and the offsets of tensors stay.

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
  let summary = "checks what must hold after buffer assignment";
  let description = [{
    `planned`:
    * (M1) there is one function, or one for each rank of a pipeline (`pipe.rank`); it holds views, loads, inputs, outputs,
      commands and the return;
    * (M2) views are within their buffers, aligned to their elements, and within the tensor that they are of, on every rank;
    * (M3) what a command reads was written before, last through a view of the same tensor;
    * (M4) nothing writes weights or inputs; the bytes that a command writes overlap no others that it reads or writes, except for
      one tensor in place: the view that the kernel's `in_place` names, all of an all_reduce's operand, an all_gather's own row,
      rows that a copy moves towards the beginning, with the same strides, or an exchange's source, where no rank gets a piece
      in its bytes;
    * (M5) outputs are written; each output and input has a buffer of its own, except for the two tensors of a state;
    * (M6) operands and results of collectives have one offset on all ranks, except for the own row;
    * (M7) a rank of a pipeline receives what the other rank sends, in order: channels, microbatches, types;
    * (M8) copies alone read and write what is in the host's memory.

    `ordered`: all of this, and (E1) an event is recorded once, and waited for only after that; (E2) two commands that touch the
    same bytes, one of which writes them, are on one stream or ordered by events; (E3) all collectives and messages are on one stream,
    so that members of a group reach them in one order.

    (M3) to (M5) and (E2) are checked on the ranks whose views differ, at most 64 of them: the reader of program files checks all.
  }];
  let options = [
    Option<"phase", "phase", "::cleave::Phase", "::cleave::Phase::Planned", "the phase just done: planned or ordered",
           "::cleave::PhaseWords{::cleave::Phase::Planned, ::cleave::Phase::Ordered}">,
  ];
}

#endif // CLEAVE_EXEC_MEMORY_PASSES
