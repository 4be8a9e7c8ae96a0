//===- ValueReader.cpp - attributes, tensors, types -----------------------===//
//
// The messages of onnx.proto that describe values, as ModelReader.cpp does it for those that hold them.
//
//===----------------------------------------------------------------------===//
#include "ModelReader.h"

using namespace llvm;

namespace cleave::onnx {

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
  case 22:
    return make(field, "sparse_tensor", attribute.sparseTensor);
  default: // sparse_tensors: the type says that they are there
    return wire.ignore();
  }
}

/// Models of IR version 1 leave the type out: it is then that of the only field that has a value.
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

/// Elements may lie in any of seven fields, in a file beside the model, or in pieces; TensorData.cpp puts them
/// together.
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

bool ModelReader::read(StringRef bytes, SparseTensorProto &tensor) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.message(field, "values", -1, [&](StringRef values) { return read(values, tensor.values); });
    case 2:
      return wire.message(field, "indices", -1, [&](StringRef indices) { return read(indices, tensor.indices); });
    case 3:
      return wire.integers(field, "dims", tensor.dims);
    default:
      return wire.skip(field);
    }
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

/// A choice of kinds, the last of which would count for protobuf: a model that makes two is damaged.
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

/// Exporters write an unknown dim in several ways: as nothing, -1, "" or "?". The last two are no names: a model that
/// has "?" twice does not say that both dims are equal.
bool ModelReader::read(StringRef bytes, Dimension &dim) {
  bool ok = wire.fields(bytes, [&](const WireField &field) {
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
  if (dim.value && *dim.value < 0)
    dim.value.reset();
  if (dim.param == "?")
    dim.param = {};
  return ok;
}

} // namespace cleave::onnx
