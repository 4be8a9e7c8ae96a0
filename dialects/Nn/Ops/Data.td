//===- Data.td - constants and parameters -----------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_DATA
#define CLEAVE_NN_OPS_DATA

include "NnBase.td"

// A string that may be absent; the storage copies it.
def Nn_DigestParameter : StringRefParameter<"digest of the bytes", "\"\"">;

def Nn_WeightAttr : AttrDef<Nn_Dialect, "Weight"> {
  let mnemonic = "weight";
  let summary = "bytes of a parameter, in a file";
  let description = [{
    `#nn.weight<"model.onnx", 1024, 4096>`: 4,096 little-endian bytes at offset 1,024 of the file, in row-major order.
    The path is absolute or relative to the folder that the program is run from.
    `#nn.weight<"model.onnx", 1024, 4096 of 69000 digest "ec8cf713063aea6c">`: likewise, of a file of 69,000 bytes; the
    digest of these 4,096 (`cleave/Support/Digest.h`) is the one given. If either does not match, the file is another one,
    and the program is not run. Imported models have both; without them, any file of that name is accepted.
  }];
  let parameters = (ins StringRefParameter<"path of the file">:$file, "int64_t":$offset, "int64_t":$length,
                        OptionalParameter<"int64_t">:$fileSize, Nn_DigestParameter:$digest);
  let assemblyFormat = "`<` $file `,` $offset `,` $length (`of` $fileSize^ `digest` $digest)? `>`";
}

// Views of strings; the storage of an attribute copies them.
class Nn_NamesParameter<string cppType, string summary> : AttrParameter<cppType, summary> {
  let allocator = "$_dst = copyNames($_allocator, $_self);";
}

def Nn_NodeAttr : LocationAttrDef<Nn_Dialect, "Node", [NodeLocInterface]> {
  let mnemonic = "node";
  let summary = "which ONNX node an op was made for";
  let description = [{
    A location (and, as an op's `nn.node`, an attribute): node name, op type, names of the operands and, on the op whose
    results are the node's output tensors, the tensor names of each result. It is one attribute rather than a dictionary in a
    fused location, because a model has as many of them as nodes.

    Last comes, after `in`, the module of the exporter's model that the node stands in, where the file says so.

    Example: `loc(#nn.node<"/enc/MatMul", "MatMul", ["x", "w"], [["y"]]>)`,
    `loc(#nn.node<"node_linear", "MatMul", ["x", "w"], [["y"]] in "enc.fc">)`
  }];
  let parameters = (ins StringRefParameter<"name of the node">:$node, StringRefParameter<"op type">:$opType,
                        Nn_NamesParameter<"::llvm::ArrayRef<::llvm::StringRef>", "operands">:$operands,
                        Nn_NamesParameter<"::llvm::ArrayRef<::llvm::ArrayRef<::llvm::StringRef>>", "results">:$results,
                        StringRefParameter<"module of the exporter's model", "\"\"">:$module);
  let hasCustomAssemblyFormat = 1;
}

def Nn_ConstantOp : Nn_Op<"constant", [Nn_NoGradient, Nn_Form<"Data">, ConstantLike, Nn_OwnPartition]> {
  let summary = "a small constant tensor";
  let description = [{
    The value is a plain attribute without sharding, also where the result type carries one.

    Constraints: (C1) value and result have one shape and element type.
    Example: `%c = nn.constant dense<[1, 2]> : tensor<2xi64> -> tensor<2xi64>`
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$value attr-dict `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, ::llvm::cast<::mlir::RankedTensorType>(value.getType()), value);
  }]>];
}

def Nn_ParamOp : Nn_OpBase<"param", [Symbol]> {
  let summary = "a parameter of the model, by reference";
  let description = [{
    A module-level symbol: the type of a weight and where its bytes are, either a range of a file (`#nn.weight`), an
    elements attribute (splat or small), or an array of these: a stack. Bytes are read when the program runs.

    Constraints: (C1) a file range is exactly as long as the type needs (bool: one byte an element) and is within the file,
    where the file's size is given; (C2) an elements attribute has the type; (C3) the type is a tensor of static shape whose
    elements are a multiple of 8 bits, or take one byte, as bools do; (C4) the type of a stack has at least two dims, the
    stack has a part for each entry of the first dim, and C1 and C2 hold for each part and the type without that dim.
    Example: `nn.param @w : tensor<768x768xf32> = #nn.weight<"model.bin", 0, 2359296>`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, AnyAttr:$value,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "(`visibility` $sym_visibility^)? $sym_name `:` $type `=` $value attr-dict";
  let hasVerifier = 1;
}

def Nn_LoadOp : Nn_Op<"load", [Nn_NoGradient, Nn_Form<"Data">, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                               DeclareOpInterfaceMethods<ParameterOpInterface>, Nn_OwnPartition]> {
  let summary = "the value of a parameter, or of a part of it";
  let description = [{
    Before partitioning it is all of the parameter or part, in the sharding of the result type. After partitioning it is
    each rank's shard: `shard` is then the sharding of the parameter or part. With `starts` and `sizes` the op reads only
    that box of the parameter: q, k and v of a fused weight are loaded, and sharded, separately.

    Constraints: (C1) the symbol is an nn.param; (C2) the result has the type of the parameter or part, or its local type
    under `shard`; (C3) `starts` and `sizes` are given together, one entry per dim, and the box is inside the parameter.
    Example: `%w = nn.load @w : tensor<768x768xf32>`
    Example: `%k = nn.load @qkv starts [0, 768] sizes [768, 768] : tensor<768x768xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, OptionalAttr<DenseI64ArrayAttr>:$starts,
                       OptionalAttr<DenseI64ArrayAttr>:$sizes, OptionalAttr<AnyAttr>:$sharding);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $param (`starts` $starts^ `sizes` $sizes)? (`shard` `(` $sharding^ `)`)? attr-dict `:` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$param), [{
    build($_builder, $_state, type, param, nullptr, nullptr, nullptr);
  }]>];
  let extraClassDeclaration = [{
    /// True if only a part of the parameter is read.
    bool isPart() { return getStarts().has_value(); }
    /// The load of a box within what this one reads, inserted before it; keeps its location.
    LoadOp takePart(::mlir::OpBuilder &builder, ::llvm::ArrayRef<int64_t> starts, ::llvm::ArrayRef<int64_t> sizes);
  }];
}

def Nn_IotaOp : Nn_Op<"iota", [Nn_NoGradient, Nn_Form<"Map">, Nn_OwnPartition]> {
  let summary = "start + step * index along one dim";
  let description = [{
    Constraints: (C1) `dim` is in [0, rank).
    Example: `%i = nn.iota dim 0 start 0 step 1 : tensor<8xi64>`
  }];
  let arguments = (ins I64Attr:$dim, I64Attr:$start, I64Attr:$step);
  let results = (outs Nn_NumberTensor:$result);
  let assemblyFormat = "`dim` $dim `start` $start `step` $step attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // CLEAVE_NN_OPS_DATA
