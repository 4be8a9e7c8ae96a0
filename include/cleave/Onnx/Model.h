//===- Model.h - an ONNX file as plain structs ------------------*- C++ -*-===//
//
// What onnx.proto defines, as far as an importer needs it, under the same names. Nothing is copied out of the file:
// strings and tensor payloads are references into its mapping, so a model with gigabytes of weights is read in
// milliseconds, and the structs are valid as long as the `ModelFile` is.
//
// Every string comes from an untrusted file: it may hold any byte (use `quote` in messages), and no number has been
// checked against another one.
//
// Left out on purpose: doc_string, and metadata_props of anything but the model and, of nodes, where these stand in the exporter's model. Refused while reading: nothing that is
// well-formed.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_MODEL_H
#define CLEAVE_ONNX_MODEL_H

#include "cleave/Onnx/Devices.h"
#include "cleave/Support/File.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::onnx {

struct GraphProto;
struct TypeProto;

/// TensorProto.DataType, by the names of onnx.proto. A file may hold other numbers.
enum DataType : int32_t {
  UNDEFINED = 0,
  FLOAT = 1,
  UINT8 = 2,
  INT8 = 3,
  UINT16 = 4,
  INT16 = 5,
  INT32 = 6,
  INT64 = 7,
  STRING = 8,
  BOOL = 9,
  FLOAT16 = 10,
  DOUBLE = 11,
  UINT32 = 12,
  UINT64 = 13,
  COMPLEX64 = 14,
  COMPLEX128 = 15,
  BFLOAT16 = 16,
  FLOAT8E4M3FN = 17,
  FLOAT8E4M3FNUZ = 18,
  FLOAT8E5M2 = 19,
  FLOAT8E5M2FNUZ = 20,
  UINT4 = 21,
  INT4 = 22,
  FLOAT4E2M1 = 23,
  FLOAT8E8M0 = 24,
  UINT2 = 25,
  INT2 = 26
};

struct StringStringEntryProto {
  llvm::StringRef key, value;
};

struct OperatorSetIdProto {
  llvm::StringRef domain; ///< "" is ai.onnx
  int64_t version = 0;
};

/// One dim of a shape: a size that is not negative, a name, or neither (unknown).
struct Dimension {
  std::optional<int64_t> value;
  llvm::StringRef param;
};

struct TypeProto {
  enum Kind { None, Tensor, Sequence, Map, Optional, SparseTensor };
  Kind kind = None;
  int32_t elemType = UNDEFINED;                ///< of Tensor and SparseTensor
  std::optional<std::vector<Dimension>> shape; ///< of Tensor and SparseTensor; nothing: unknown rank
  std::shared_ptr<const TypeProto> element;    ///< of Sequence and Optional; of Map the value type

  /// None or more values of another type.
  bool isList() const { return kind == Sequence || kind == Optional; }
};

struct ValueInfoProto {
  llvm::StringRef name;
  TypeProto type;
};

/// A tensor: its payload is exactly as in the file, see TensorData.h for its elements.
struct TensorProto {
  /// Typed fields that can carry elements; the values are the field numbers of onnx.proto.
  enum Field : uint8_t {
    FloatData = 4,
    Int32Data = 5,
    StringData = 6,
    Int64Data = 7,
    DoubleData = 10,
    Uint64Data = 11
  };
  /// A run of encoded elements of one field. The concatenation of a field's chunks is its packed encoding, also where
  /// the file has them one by one (then each chunk is one element). A chunk of StringData is one string.
  struct Chunk {
    Field field;
    llvm::StringRef bytes;
  };

  llvm::StringRef name;
  std::vector<int64_t> dims;
  int32_t dataType = UNDEFINED;
  std::optional<llvm::StringRef> rawData;
  std::vector<Chunk> chunks;
  bool isExternal = false; ///< data_location == EXTERNAL
  std::vector<StringStringEntryProto> externalData;
  bool hasSegment = false;
};

/// Some elements of a tensor; the others are 0.
struct SparseTensorProto {
  TensorProto values;        ///< in one dim; its name is the tensor's
  TensorProto indices;       ///< int64: row-major places [n], or coordinates [n, rank]; ascending
  std::vector<int64_t> dims; ///< of the whole
};

struct AttributeProto {
  /// AttributeProto.AttributeType, by the numbers of onnx.proto.
  enum Type : int32_t {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    TypeProtoKind = 13,
    TypeProtos = 14
  };

  llvm::StringRef name;
  llvm::StringRef refAttrName; ///< in a function body: takes the value of this attribute of the call
  /// One of Type, or another number. A file of IR version 1 may leave it out; it is then inferred from the only value
  /// field that is present.
  int32_t type = Undefined;
  float f = 0;
  int64_t i = 0;
  llvm::StringRef s;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const GraphProto> g;
  std::shared_ptr<const TypeProto> tp;
  std::shared_ptr<const SparseTensorProto> sparseTensor;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<llvm::StringRef> strings;
  std::vector<TensorProto> tensors;
  std::vector<std::shared_ptr<const GraphProto>> graphs;
  std::vector<TypeProto> typeProtos;
};

struct NodeProto {
  llvm::StringRef name, opType, domain, overload;
  std::vector<llvm::StringRef> input, output; ///< "" stands for an optional one that is absent
  std::vector<AttributeProto> attribute;
  std::vector<NodeDeviceConfigurationProto> deviceConfigurations;
  /// What torch's exporter notes of where a node stands: its metadata `pkg.torch.onnx.name_scopes`, `['', 'm', 'm.fc', 'linear']`, and
  /// `namespace`, `: Net/m: Block/m.fc: Linear/linear: aten.linear`; see `readModulePath`.
  llvm::StringRef nameScopes, namespaceText;

  /// The attribute of that name, or null.
  const AttributeProto *findAttribute(llvm::StringRef name) const;
};

struct GraphProto {
  llvm::StringRef name;
  std::vector<NodeProto> node;
  std::vector<TensorProto> initializer;
  std::vector<ValueInfoProto> input, output, valueInfo;
  std::vector<SparseTensorProto> sparseInitializer;
};

struct FunctionProto {
  llvm::StringRef name, domain, overload;
  std::vector<llvm::StringRef> input, output, attribute;
  std::vector<AttributeProto> attributeProto; ///< attributes with a default
  std::vector<NodeProto> node;
  std::vector<OperatorSetIdProto> opsetImport;
  std::vector<ValueInfoProto> valueInfo;
};

/// A step of a training algorithm, and what it begins with; see TrainingGraph.h.
struct TrainingInfoProto {
  GraphProto initialization, algorithm;
  /// Each names an initializer (key), and the output that it becomes (value).
  std::vector<StringStringEntryProto> initializationBinding, updateBinding;
};

struct ModelProto {
  int64_t irVersion = 0;
  std::vector<OperatorSetIdProto> opsetImport;
  llvm::StringRef producerName, producerVersion, domain;
  int64_t modelVersion = 0;
  GraphProto graph;
  std::vector<StringStringEntryProto> metadataProps;
  std::vector<FunctionProto> functions;
  std::vector<DeviceConfigurationProto> configuration;
  std::vector<TrainingInfoProto> trainingInfo;

  /// The imported version of an operator set ("" and "ai.onnx" are the same one); nothing if it is not imported.
  std::optional<int64_t> getOpset(llvm::StringRef domain) const;
};

/// A model and the file that its structs refer to.
struct ModelFile {
  std::shared_ptr<const MappedFile> file;
  ModelProto model;
  /// What was skipped although it may matter to the user, one line each, in the style of a remark.
  std::vector<std::string> notes;

  /// The folder that external data is relative to; empty: the working directory.
  llvm::StringRef getFolder() const;
};

/// What reading spends at most on one file, so that a small hostile file cannot take all memory or stack.
struct ReadLimits {
  uint64_t maxMemory = uint64_t(2) << 30; ///< bytes of the structs above; a 100,000-node graph takes some 200 MB
  unsigned maxDepth = 100;                ///< messages within messages
};

/// Reads a model. Errors look like `byte 1234: graph.node[17].attribute[0]: length 999 runs past the end of the file`;
/// a file that is no ONNX model at all gets one that says so. Beyond well-formedness this requires: ir_version, a graph
/// and an opset_import.
llvm::Expected<std::unique_ptr<ModelFile>> readModel(std::shared_ptr<const MappedFile> file,
                                                     const ReadLimits &limits = {});
/// Maps the file at `path` and reads it.
llvm::Expected<std::unique_ptr<ModelFile>> readModel(llvm::StringRef path);

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_MODEL_H
