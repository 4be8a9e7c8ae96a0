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

// The kinds of Collective.h, by their words.
def Exec_CollectiveKind : AttrParameter<"::cleave::program::CollectiveKind", "a kind that has tensors"> {
  let parser = "parseCollectiveKind($_parser)";
  let printer = "$_printer << ::cleave::program::getWord($_self)";
}
def Exec_CollectiveKindAttr : AttrDef<Exec_Dialect, "CollectiveKind"> {
  let mnemonic = "collective_kind";
  let summary = "what ranks of a group do together";
  let parameters = (ins Exec_CollectiveKind:$value);
  let assemblyFormat = "$value";
  let returnType = "::cleave::program::CollectiveKind";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::cleave::exec::CollectiveKindAttr::get($_builder.getContext(), $0)";
}

#endif // CLEAVE_EXEC_ENUMS
