//===- ModelReader.cpp - models, graphs, functions, nodes -----------------===//
//
// One function per message: a switch over the field numbers of onnx.proto. Fields that the structs leave out are named
// here and ignored; fields that onnx.proto (ONNX 1.22, IR version 13) does not have are skipped and noted. What nodes
// and values are described with is in ValueReader.cpp.
//
//===----------------------------------------------------------------------===//
#include "ModelReader.h"

using namespace llvm;

namespace cleave::onnx {

static constexpr int64_t kNewestIrVersion = 13;

//===----------------------------------------------------------------------===//
// Model, graph, function, node
//===----------------------------------------------------------------------===//

/// A second graph is damage: protobuf would merge it into the first.
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
      return append(field, "training_info", model.trainingInfo);
    case 25:
      return append(field, "functions", model.functions);
    case 26:
      return append(field, "configuration", model.configuration);
    case 6: // doc_string
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

bool ModelReader::read(StringRef bytes, TrainingInfoProto &info) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.message(field, "initialization", -1,
                          [&](StringRef graph) { return read(graph, info.initialization); });
    case 2:
      return wire.message(field, "algorithm", -1, [&](StringRef graph) { return read(graph, info.algorithm); });
    case 3:
      return append(field, "initialization_binding", info.initializationBinding);
    case 4:
      return append(field, "update_binding", info.updateBinding);
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
      return append(field, "sparse_initializer", graph.sparseInitializer);
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
      return append(field, "device_configurations", node.deviceConfigurations);
    case 9:
      return readNote(field, node);
    case 6: // doc_string
      return wire.ignore();
    default:
      return wire.skip(field);
    }
  });
}

/// Of what exporters note of a node, which is most of a file without weights, the place in their model alone is kept.
bool ModelReader::readNote(const WireField &field, NodeProto &node) {
  StringStringEntryProto note;
  if (!wire.message(field, "metadata_props", -1, [&](StringRef bytes) { return read(bytes, note); }))
    return false;
  if (note.key == "pkg.torch.onnx.name_scopes")
    node.nameScopes = note.value;
  else if (note.key == "namespace")
    node.namespaceText = note.value;
  return true;
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

/// What a newer model may say and we do not read; the model means the same without it, or import fails elsewhere.
static void noteWhatWasSkipped(ModelReader &reader, ModelFile &result) {
  const ModelProto &model = result.model;
  auto note = [&](std::string text) { result.notes.push_back(std::move(text)); };
  if (model.irVersion > kNewestIrVersion)
    note(formatv("ir_version is {0}, newer than {1}, the newest known one", model.irVersion, kNewestIrVersion));
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
