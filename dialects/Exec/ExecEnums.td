//===- ExecEnums.td - words of the exec dialect -----------------*- tablegen -*-===//
#ifndef CLEAVE_EXEC_ENUMS
#define CLEAVE_EXEC_ENUMS

include "ExecDialect.td"
include "mlir/IR/EnumAttr.td"

def Exec_BufferKind : I32EnumAttr<"BufferKind", "what a buffer is for", [
    I32EnumAttrCase<"Activations", 0, "activations">, I32EnumAttrCase<"Communication", 1, "communication">,
    I32EnumAttrCase<"Weights", 2, "weights">, I32EnumAttrCase<"Input", 3, "input">,
    I32EnumAttrCase<"Output", 4, "output">, I32EnumAttrCase<"State", 5, "state">]> {
  let cppNamespace = "::cleave::exec";
  let genSpecializedAttr = 0;
}
def Exec_BufferKindAttr : EnumAttr<Exec_Dialect, Exec_BufferKind, "buffer_kind"> { let assemblyFormat = "$value"; }

def Exec_CollectiveKind : I32EnumAttr<"CollectiveKind", "what ranks of a group do together", [
    I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"AllGather", 1, "all_gather">,
    I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"AllToAll", 3, "all_to_all">]> {
  let cppNamespace = "::cleave::exec";
  let genSpecializedAttr = 0;
}
def Exec_CollectiveKindAttr : EnumAttr<Exec_Dialect, Exec_CollectiveKind, "collective_kind"> {
  let assemblyFormat = "$value";
}

#endif // CLEAVE_EXEC_ENUMS
