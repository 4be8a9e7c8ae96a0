//===- ModelReader.h - the messages of onnx.proto ---------------*- C++ -*-===//
//
// Internal to the reader: one overload of `read` per message. Messages hold each other (a node has attributes, an
// attribute may be a graph), so all are members of one class, which also keeps what is noted about the file as a whole.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_ONNX_MODELREADER_H
#define CLEAVE_LIB_ONNX_MODELREADER_H

#include "cleave/Onnx/WireReader.h"

namespace cleave::onnx {

/// Reads one file. Each `read` returns false where the bytes are malformed; `getWire().getError()` then says where.
class ModelReader {
public:
  ModelReader(llvm::StringRef file, const ReadLimits &limits) : wire(file, limits) {}

  bool read(llvm::StringRef bytes, ModelProto &model);
  WireReader &getWire() { return wire; }
  bool sawIrVersion() const { return hasIrVersion; }
  bool sawGraph() const { return hasGraph; }

private:
  bool read(llvm::StringRef bytes, TrainingInfoProto &info);
  bool read(llvm::StringRef bytes, GraphProto &graph);
  bool read(llvm::StringRef bytes, NodeProto &node);
  bool read(llvm::StringRef bytes, AttributeProto &attribute);
  bool read(llvm::StringRef bytes, TensorProto &tensor);
  bool read(llvm::StringRef bytes, SparseTensorProto &tensor);
  bool read(llvm::StringRef bytes, ValueInfoProto &value);
  bool read(llvm::StringRef bytes, TypeProto &type);
  bool read(llvm::StringRef bytes, std::vector<Dimension> &shape);
  bool read(llvm::StringRef bytes, Dimension &dim);
  bool read(llvm::StringRef bytes, FunctionProto &function);
  bool read(llvm::StringRef bytes, OperatorSetIdProto &opset);
  bool read(llvm::StringRef bytes, StringStringEntryProto &entry);
  bool read(llvm::StringRef bytes, DeviceConfigurationProto &configuration);
  bool read(llvm::StringRef bytes, NodeDeviceConfigurationProto &configuration);
  bool read(llvm::StringRef bytes, ShardingSpecProto &spec);
  bool read(llvm::StringRef bytes, DeviceGroup &group);
  bool read(llvm::StringRef bytes, ShardedDimProto &dim);
  bool read(llvm::StringRef bytes, SimpleShardedDimProto &part);

  bool readNote(const WireField &field, NodeProto &node);
  bool readTensorType(llvm::StringRef bytes, TypeProto &type);
  bool readElementType(llvm::StringRef bytes, TypeProto &type, unsigned elementField);
  bool takeValueField(const WireField &field, AttributeProto &attribute);

  /// One message of a repeated field, appended to `list`.
  template <typename T> bool append(const WireField &field, const char *name, std::vector<T> &list) {
    if (!wire.charge(sizeof(T), field.payload))
      return false;
    int64_t index = list.size();
    list.emplace_back();
    return wire.message(field, name, index, [&](llvm::StringRef bytes) { return read(bytes, list.back()); });
  }
  /// A message that lives on its own.
  template <typename T>
  bool make(const WireField &field, const char *name, std::shared_ptr<const T> &value, int64_t index = -1) {
    if (value)
      return wire.fail(field.payload.data(), llvm::Twine(name) + " occurs twice");
    if (!wire.charge(sizeof(T), field.payload))
      return false;
    auto made = std::make_shared<T>();
    value = made;
    return wire.message(field, name, index, [&](llvm::StringRef bytes) { return read(bytes, *made); });
  }

  WireReader wire;
  bool hasIrVersion = false, hasGraph = false;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_ONNX_MODELREADER_H
