//===- OnnxReaderFuzzer.cpp - any bytes as an ONNX model ------------------===//
//
// Reads a model and the elements of every tensor in it, down into subgraphs and functions. There must be a model or one
// located error, and never more memory than the budget. External data is left alone: it would depend on the disk.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/Artifacts.h"
#include "cleave/Onnx/TensorData.h"
#include "cleave/Onnx/TrainingGraph.h"

using namespace llvm;
using namespace cleave;
using namespace cleave::onnx;

static void readGraph(TensorReader &reader, const GraphProto &graph);

static void readTensor(TensorReader &reader, const TensorProto &tensor) {
  if (tensor.isExternal)
    return;
  Expected<TensorData> data = reader.read(tensor);
  if (!data)
    return consumeError(data.takeError());
  // Every byte is there.
  volatile char sum = 0;
  for (char byte : data->bytes)
    sum = sum + byte;
}

static void readNodes(TensorReader &reader, const std::vector<NodeProto> &nodes) {
  for (const NodeProto &node : nodes)
    for (const AttributeProto &attribute : node.attribute) {
      if (attribute.t)
        readTensor(reader, *attribute.t);
      if (attribute.g)
        readGraph(reader, *attribute.g);
      for (const TensorProto &tensor : attribute.tensors)
        readTensor(reader, tensor);
      for (const auto &graph : attribute.graphs)
        readGraph(reader, *graph);
    }
}

static void readGraph(TensorReader &reader, const GraphProto &graph) {
  for (const TensorProto &tensor : graph.initializer)
    readTensor(reader, tensor);
  readNodes(reader, graph.node);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  // Of onnxruntime's checkpoints the same holds; their identifier says which of both the bytes may be.
  if (Expected<OrtCheckpoint> checkpoint = readOrtCheckpoint(MappedFile::fromMemory("checkpoint", bytes)); !checkpoint)
    consumeError(checkpoint.takeError());
  ReadLimits limits;
  limits.maxMemory = 64 << 20;
  Expected<std::unique_ptr<ModelFile>> file = readModel(MappedFile::fromMemory("fuzz.onnx", std::move(bytes)), limits);
  if (!file) {
    if (toString(file.takeError()).empty())
      __builtin_trap();
    return 0;
  }
  TensorReader reader(**file);
  readGraph(reader, (*file)->model.graph);
  for (const FunctionProto &function : (*file)->model.functions)
    readNodes(reader, function.node);
  if (!(*file)->model.trainingInfo.empty())
    if (Expected<TrainingStep> step = joinTraining((*file)->model); !step)
      consumeError(step.takeError());
  return 0;
}
