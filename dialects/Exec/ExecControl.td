//===- ExecControl.td - loops, as marks in a list ---------------*- tablegen -*-===//
//
// A list has no nested blocks: ops of their own mark where a loop begins and ends, first on tensors, then as commands. They are in a
// header of their own (Control.h), which few files need.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXEC_CONTROL
#define CLEAVE_EXEC_CONTROL

include "ExecInterfaces.td"
include "ExecMemory.td"
include "Nn/NnBase.td"

// No op moves across it; it is never removed, or merged with another one.
class Exec_MarkOp<string mnemonic, list<Trait> traits = []> : Exec_Op<mnemonic, traits # [MemoryEffects<[MemRead, MemWrite]>]>;

def Exec_EnterOp : Exec_MarkOp<"enter", [AttrSizedOperandSegments]> {
  let summary = "where an nn.loop begins";
  let description = [{
    The ops between this and its `exec.leave` run repeatedly, as the body of an nn.loop does. Results are the carried values, which
    have bytes of their own during the loop, then the captured values, which are not copied.

    Constraints: (C1) each result has the type of its operand; (C2) a later `exec.leave` in the block ends it, and loops between
    them are complete.
    Example: `%a, %v = exec.enter count 8 while %go carries (%x) captures (%w) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)`
  }];
  let arguments = (ins Optional<Nn_BoolTensor>:$condition, Variadic<Nn_Tensor>:$initial, Variadic<Nn_Tensor>:$captured,
                       OptionalAttr<I64Attr>:$count);
  let results = (outs Variadic<Nn_Tensor>:$values);
  let assemblyFormat = "(`count` $count^)? (`while` $condition^)? (`carries` `(` $initial^ `)`)? (`captures` `(` $captured^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Exec_LeaveOp : Exec_MarkOp<"leave", [AttrSizedOperandSegments]> {
  let summary = "where the body of a loop ends";
  let description = [{
    It ends the last `exec.enter` that has not been ended. The yielded values are copied to the bytes of the carried values, and
    these are the results.

    Constraints: (C1) as many results as yielded values, of their types; (C2) as (C2) of the `exec.enter` that it ends; (C3) the
    yielded values have the types of the values that this one carries; (C4) both have a condition, or none has.
    Example: `%y = exec.leave while %more next (%b) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>`
  }];
  let arguments = (ins Optional<Nn_BoolTensor>:$condition, Variadic<Nn_Tensor>:$next);
  let results = (outs Variadic<Nn_Tensor>:$values);
  let assemblyFormat = "(`while` $condition^)? (`next` `(` $next^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class Exec_LoopMarkOp<string mnemonic> : Exec_Op<mnemonic, [DeclareOpInterfaceMethods<Exec_CommandOpInterface, ["getReads", "getWrites", "getStream", "setStream"]>]> {
  let extraClassDefinition = [{
    ::mlir::OperandRange $cppClass::getReads() { return getODSOperands(0); }
    ::mlir::OperandRange $cppClass::getWrites() { return getOperation()->getOperands().drop_front(getOperation()->getNumOperands()); }
    uint64_t $cppClass::getStream() { return 0; }
    void $cppClass::setStream(uint64_t) {}
  }];
}

def Exec_LoopOp : Exec_LoopMarkOp<"loop"> {
  let summary = "the beginning of a loop";
  let description = [{
    The commands between this and its `exec.end_loop` run while the condition holds, and at most `count` times. The condition is
    read here before the first iteration, and at the `exec.end_loop` before each other one. Both synchronize all streams.

    Constraints: (C1) there is a condition or a count; (C2) a later `exec.end_loop` in the block ends it, and loops between them
    are complete; (C4) both have a condition, or none has.
    Example: `exec.loop count 8 while %go : memref<i1>`
  }];
  let arguments = (ins Optional<Exec_View>:$condition, OptionalAttr<I64Attr>:$count);
  let assemblyFormat = "(`count` $count^)? (`while` $condition^ `:` type($condition))? attr-dict";
  let hasVerifier = 1;
}

def Exec_EndLoopOp : Exec_LoopMarkOp<"end_loop"> {
  let summary = "the end of the body of a loop";
  let description = [{
    Constraints: those of exec.loop.
    Example: `exec.end_loop while %more : memref<i1>`
  }];
  let arguments = (ins Optional<Exec_View>:$condition);
  let assemblyFormat = "(`while` $condition^ `:` type($condition))? attr-dict";
  let hasVerifier = 1;
}

#endif // CLEAVE_EXEC_CONTROL
