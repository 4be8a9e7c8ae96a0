//===- ModelReader.cpp - the fields of onnx.proto into structs ------------===//
//
// One function per message: a switch over the field numbers of onnx.proto. Fields that the structs leave out are named
// here and ignored; fields that onnx.proto (ONNX 1.22, IR version 13) does not have are skipped and noted.
//
//===----------------------------------------------------------------------===//
#include "WireReader.h"

using namespace llvm;

namespace cleave::onnx {

static constexpr int64_t kNewestIrVersion = 13;

namespace {

class ModelReader {
public:
  ModelReader(StringRef file, const ReadLimits &limits) : wire(file, limits) {}

  bool read(StringRef bytes, ModelProto &model);
  WireReader &getWire() { return wire; }
  bool sawIrVersion() const { return hasIrVersion; }
  bool sawGraph() const { return hasGraph; }
  uint64_t getDeviceConfigurations() const { return deviceConfigurations; }

private:
  bool read(StringRef bytes, GraphProto &graph);
  bool read(StringRef bytes, NodeProto &node);
  bool read(StringRef bytes, AttributeProto &attribute);
  bool read(StringRef bytes, TensorProto &tensor);
  bool read(StringRef bytes, ValueInfoProto &value);
  bool read(StringRef bytes, TypeProto &type);
  bool read(StringRef bytes, std::vector<Dimension> &shape);
  bool read(StringRef bytes, Dimension &dim);
  bool read(StringRef bytes, FunctionProto &function);
  bool read(StringRef bytes, OperatorSetIdProto &opset);
  bool read(StringRef bytes, StringStringEntryProto &entry);

  bool readTensorType(StringRef bytes, TypeProto &type);
  bool readElementType(StringRef bytes, TypeProto &type, unsigned elementField);
  bool readSparseName(StringRef bytes, StringRef &name);
  bool takeValueField(const WireField &field, AttributeProto &attribute);

  /// One message of a repeated field, appended to `list`.
  template <typename T> bool append(const WireField &field, const char *name, std::vector<T> &list) {
    if (!wire.charge(sizeof(T), field.payload))
      return false;
    int64_t index = list.size();
    list.emplace_back();
    return wire.message(field, name, index, [&](StringRef bytes) { return read(bytes, list.back()); });
  }
  /// A message that lives on its own.
  template <typename T>
  bool make(const WireField &field, const char *name, std::shared_ptr<const T> &value, int64_t index = -1) {
    if (value)
      return wire.fail(field.payload.data(), Twine(name) + " occurs twice");
    if (!wire.charge(sizeof(T), field.payload))
      return false;
    auto made = std::make_shared<T>();
    value = made;
    return wire.message(field, name, index, [&](StringRef bytes) { return read(bytes, *made); });
  }

  WireReader wire;
  bool hasIrVersion = false, hasGraph = false;
  uint64_t deviceConfigurations = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Model, graph, function, node
//===----------------------------------------------------------------------===//

bool ModelReader::read(StringRef bytes, ModelProto &model) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return hasIrVersion = wire.integer(field, "ir_version", model.irVersion);
    case 2:
      return wire.text(field, "producer_name", model.producerName);
    case 3:
      return wire.text(field, "producer_version", model.producerVersion);
    case 4:
      return wire.text(field, "domain", model.domain);
    case 5:
      return wire.integer(field, "model_version", model.modelVersion);
    case 7:
      if (hasGraph)
        return wire.fail(field.payload.data(), "graph occurs twice");
      hasGraph = true;
      return wire.message(field, "graph", -1, [&](StringRef graph) { return read(graph, model.graph); });
    case 8:
      return append(field, "opset_import", model.opsetImport);
    case 14:
      return append(field, "metadata_props", model.metadataProps);
    case 20:
      return model.hasTrainingInfo = true;
    case 25:
      return append(field, "functions", model.functions);
    case 26:
      return model.hasDeviceConfigurations = true;
    case 6: // doc_string
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, GraphProto &graph) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return append(field, "node", graph.node);
    case 2:
      return wire.text(field, "name", graph.name);
    case 5:
      return append(field, "initializer", graph.initializer);
    case 11:
      return append(field, "input", graph.input);
    case 12:
      return append(field, "output", graph.output);
    case 13:
      return append(field, "value_info", graph.valueInfo);
    case 15:
      graph.sparseInitializer.emplace_back();
      return wire.charge(sizeof(StringRef), field.payload) &&
             wire.message(field, "sparse_initializer", graph.sparseInitializer.size() - 1,
                          [&](StringRef sparse) { return readSparseName(sparse, graph.sparseInitializer.back()); });
    case 10: // doc_string
    case 14: // quantization_annotation
    case 16: // metadata_props
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, FunctionProto &function) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "name", function.name);
    case 4:
      return wire.texts(field, "input", function.input);
    case 5:
      return wire.texts(field, "output", function.output);
    case 6:
      return wire.texts(field, "attribute", function.attribute);
    case 7:
      return append(field, "node", function.node);
    case 9:
      return append(field, "opset_import", function.opsetImport);
    case 10:
      return wire.text(field, "domain", function.domain);
    case 11:
      return append(field, "attribute_proto", function.attributeProto);
    case 12:
      return append(field, "value_info", function.valueInfo);
    case 13:
      return wire.text(field, "overload", function.overload);
    case 2:  // since_version, of IR version 8 drafts
    case 3:  // status, likewise
    case 8:  // doc_string
    case 14: // metadata_props
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, NodeProto &node) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.texts(field, "input", node.input);
    case 2:
      return wire.texts(field, "output", node.output);
    case 3:
      return wire.text(field, "name", node.name);
    case 4:
      return wire.text(field, "op_type", node.opType);
    case 5:
      return append(field, "attribute", node.attribute);
    case 7:
      return wire.text(field, "domain", node.domain);
    case 8:
      return wire.text(field, "overload", node.overload);
    case 10:
      deviceConfigurations += !node.hasDeviceConfigurations;
      return node.hasDeviceConfigurations = true;
    case 6: // doc_string
    case 9: // metadata_props
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// The fields that carry an attribute's value, and the type that each belongs to.
static constexpr std::pair<unsigned, AttributeProto::Type> kValueFields[] = {
    {2, AttributeProto::Float},          {3, AttributeProto::Int},
    {4, AttributeProto::String},         {5, AttributeProto::Tensor},
    {6, AttributeProto::Graph},          {7, AttributeProto::Floats},
    {8, AttributeProto::Ints},           {9, AttributeProto::Strings},
    {10, AttributeProto::Tensors},       {11, AttributeProto::Graphs},
    {14, AttributeProto::TypeProtoKind}, {15, AttributeProto::TypeProtos},
    {22, AttributeProto::SparseTensor},  {23, AttributeProto::SparseTensors}};

/// Undefined for other fields.
static AttributeProto::Type getTypeOfValueField(unsigned number) {
  for (auto [field, type] : kValueFields)
    if (field == number)
      return type;
  return AttributeProto::Undefined;
}

bool ModelReader::takeValueField(const WireField &field, AttributeProto &attribute) {
  switch (field.number) {
  case 2:
    return wire.real(field, "f", attribute.f);
  case 3:
    return wire.integer(field, "i", attribute.i);
  case 4:
    return wire.text(field, "s", attribute.s);
  case 5:
    return make(field, "t", attribute.t);
  case 6:
    return make(field, "g", attribute.g);
  case 7:
    return wire.reals(field, "floats", attribute.floats);
  case 8:
    return wire.integers(field, "ints", attribute.ints);
  case 9:
    return wire.texts(field, "strings", attribute.strings);
  case 10:
    return append(field, "tensors", attribute.tensors);
  case 11:
    attribute.graphs.emplace_back();
    return make(field, "graphs", attribute.graphs.back(), attribute.graphs.size() - 1);
  case 14:
    return make(field, "tp", attribute.tp);
  case 15:
    return append(field, "type_protos", attribute.typeProtos);
  default: // sparse_tensor, sparse_tensors: the type says that they are there
    return wire.ignore();
  }
}

bool ModelReader::read(StringRef bytes, AttributeProto &attribute) {
  AttributeProto::Type present = AttributeProto::Undefined;
  bool isAmbiguous = false;
  bool ok = wire.fields(bytes, [&](const WireField &field) {
    if (AttributeProto::Type type = getTypeOfValueField(field.number)) {
      isAmbiguous |= present && present != type;
      present = type;
      return takeValueField(field, attribute);
    }
    switch (field.number) {
    case 1:
      return wire.text(field, "name", attribute.name);
    case 20:
      return wire.integer32(field, "type", attribute.type);
    case 21:
      return wire.text(field, "ref_attr_name", attribute.refAttrName);
    case 13: // doc_string
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
  if (attribute.type == AttributeProto::Undefined && !isAmbiguous)
    attribute.type = present;
  return ok;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

bool ModelReader::read(StringRef bytes, TensorProto &tensor) {
  return wire.fields(bytes, [&](const WireField &field) {
    int32_t location = 0;
    switch (field.number) {
    case 1:
      return wire.integers(field, "dims", tensor.dims);
    case 2:
      return wire.integer32(field, "data_type", tensor.dataType);
    case 3:
      return tensor.hasSegment = true;
    case TensorProto::FloatData:
      return wire.elements(field, "float_data", WireType::Fixed32, tensor.chunks);
    case TensorProto::Int32Data:
      return wire.elements(field, "int32_data", WireType::Varint, tensor.chunks);
    case TensorProto::StringData:
      return wire.elements(field, "string_data", WireType::Bytes, tensor.chunks);
    case TensorProto::Int64Data:
      return wire.elements(field, "int64_data", WireType::Varint, tensor.chunks);
    case 8:
      return wire.text(field, "name", tensor.name);
    case 9:
      return wire.text(field, "raw_data", tensor.rawData.emplace());
    case TensorProto::DoubleData:
      return wire.elements(field, "double_data", WireType::Fixed64, tensor.chunks);
    case TensorProto::Uint64Data:
      return wire.elements(field, "uint64_data", WireType::Varint, tensor.chunks);
    case 13:
      return append(field, "external_data", tensor.externalData);
    case 14:
      if (!wire.integer32(field, "data_location", location))
        return false;
      if (location != 0 && location != 1)
        return wire.fail(field.payload.data(), "data_location is " + Twine(location) + ", want 0 or 1");
      tensor.isExternal = location == 1;
      return true;
    case 12: // doc_string
    case 16: // metadata_props
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::readSparseName(StringRef bytes, StringRef &name) {
  return wire.fields(bytes, [&](const WireField &field) {
    if (field.number != 1)
      return wire.ignore();
    TensorProto values;
    bool ok = wire.message(field, "values", -1, [&](StringRef tensor) { return read(tensor, values); });
    name = values.name;
    return ok;
  });
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool ModelReader::read(StringRef bytes, ValueInfoProto &value) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "name", value.name);
    case 2:
      return wire.message(field, "type", -1, [&](StringRef type) { return read(type, value.type); });
    case 3: // doc_string
    case 4: // metadata_props
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, TypeProto &type) {
  auto alternative = [&](const WireField &field, const char *name, TypeProto::Kind kind, auto readPart) {
    if (type.kind != TypeProto::None)
      return wire.fail(field.payload.data(), Twine(name) + ": the type already has another kind");
    type.kind = kind;
    return wire.message(field, name, -1, readPart);
  };
  auto tensor = [&](StringRef part) { return readTensorType(part, type); };
  auto element = [&](StringRef part) { return readElementType(part, type, 1); };
  auto mapValue = [&](StringRef part) { return readElementType(part, type, 2); };
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return alternative(field, "tensor_type", TypeProto::Tensor, tensor);
    case 4:
      return alternative(field, "sequence_type", TypeProto::Sequence, element);
    case 5:
      return alternative(field, "map_type", TypeProto::Map, mapValue);
    case 8:
      return alternative(field, "sparse_tensor_type", TypeProto::SparseTensor, tensor);
    case 9:
      return alternative(field, "optional_type", TypeProto::Optional, element);
    case 6: // denotation
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::readTensorType(StringRef bytes, TypeProto &type) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.integer32(field, "elem_type", type.elemType);
    case 2:
      if (type.shape)
        return wire.fail(field.payload.data(), "shape occurs twice");
      return wire.message(field, "shape", -1, [&](StringRef shape) { return read(shape, type.shape.emplace()); });
    default:
      return wire.skip(field);
    }
  });
}

/// Sequence, optional and map types: `elementField` holds the type of what is in them.
bool ModelReader::readElementType(StringRef bytes, TypeProto &type, unsigned elementField) {
  return wire.fields(bytes, [&](const WireField &field) {
    return field.number == elementField ? make(field, "elem_type", type.element) : wire.ignore();
  });
}

bool ModelReader::read(StringRef bytes, std::vector<Dimension> &shape) {
  return wire.fields(bytes, [&](const WireField &field) {
    return field.number == 1 ? append(field, "dim", shape) : wire.skip(field);
  });
}

bool ModelReader::read(StringRef bytes, Dimension &dim) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      dim.param = {};
      return wire.integer(field, "dim_value", dim.value.emplace());
    case 2:
      dim.value.reset();
      return wire.text(field, "dim_param", dim.param);
    case 3: // denotation
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, OperatorSetIdProto &opset) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "domain", opset.domain);
    case 2:
      return wire.integer(field, "version", opset.version);
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, StringStringEntryProto &entry) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "key", entry.key);
    case 2:
      return wire.text(field, "value", entry.value);
    default:
      return wire.skip(field);
    }
  });
}

//===----------------------------------------------------------------------===//
// The file as a whole
//===----------------------------------------------------------------------===//

/// What must be there in any model.
static Error checkParts(const ModelReader &reader, const ModelProto &model) {
  if (!reader.sawIrVersion())
    return makeError("this is not an ONNX model: it has no ir_version");
  if (model.irVersion < 1)
    return makeError("ir_version is {0}, want at least 1", model.irVersion);
  if (!reader.sawGraph())
    return makeError("the model has no graph");
  if (model.opsetImport.empty())
    return makeError("the model has no opset_import");
  return Error::success();
}

static void noteWhatWasSkipped(ModelReader &reader, ModelFile &result) {
  const ModelProto &model = result.model;
  auto note = [&](std::string text) { result.notes.push_back(std::move(text)); };
  if (model.irVersion > kNewestIrVersion)
    note(formatv("ir_version is {0}, newer than {1}, the newest known one", model.irVersion, kNewestIrVersion));
  if (model.hasTrainingInfo)
    note("training_info was skipped");
  if (model.hasDeviceConfigurations || reader.getDeviceConfigurations())
    note(formatv("device annotations of the model and of {0} nodes were skipped", reader.getDeviceConfigurations()));
  if (uint64_t count = reader.getWire().getUnknownFields())
    note(formatv("{0} unknown fields were skipped, the first is {1}", count, reader.getWire().getFirstUnknownField()));
}

Expected<std::unique_ptr<ModelFile>> readModel(std::shared_ptr<const MappedFile> file, const ReadLimits &limits) {
  auto result = std::make_unique<ModelFile>();
  result->file = std::move(file);
  StringRef bytes = result->file->getBytes();
  if (bytes.empty())
    return makeError("this is not an ONNX model: the file is empty");
  ModelReader reader(bytes, limits);
  if (!reader.read(bytes, result->model))
    return makeError("{0}{1}", reader.sawIrVersion() ? "" : "this is not an ONNX model: ", reader.getWire().getError());
  if (Error error = checkParts(reader, result->model))
    return std::move(error);
  noteWhatWasSkipped(reader, *result);
  return result;
}

Expected<std::unique_ptr<ModelFile>> readModel(StringRef path) {
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return readModel(std::move(*file));
}

} // namespace cleave::onnx
