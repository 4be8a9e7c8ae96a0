//===- ExternalFiles.cpp - files beside an ONNX model ---------------------===//
//
// One walk over all tensors: initializers, and those in attributes of nodes, whose graphs have some again. Whoever writes files
// asks, so that no output takes the place of a weight, whether anything needs that weight or not.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/ExternalFiles.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Path.h"

using namespace cleave::onnx;
using namespace llvm;

namespace {
class Collector {
public:
  void add(const TensorProto &tensor) {
    if (!tensor.isExternal)
      return;
    for (const StringStringEntryProto &entry : tensor.externalData)
      if (entry.key == "location")
        locations.insert(entry.value);
  }
  void add(const AttributeProto &attribute) {
    if (attribute.t)
      add(*attribute.t);
    if (attribute.g)
      add(*attribute.g);
    addAll(attribute.tensors);
    for (const auto &graph : attribute.graphs)
      add(*graph);
  }
  void add(const NodeProto &node) { addAll(node.attribute); }
  void add(const GraphProto &graph) {
    addAll(graph.initializer);
    addAll(graph.node);
  }
  template <typename List> void addAll(const List &list) {
    for (const auto &each : list)
      add(each);
  }

  SetVector<StringRef> locations;
};
} // namespace

std::vector<std::string> cleave::onnx::listExternalFiles(const ModelFile &model) {
  Collector collector;
  collector.add(model.model.graph);
  for (const TrainingInfoProto &info : model.model.trainingInfo) {
    collector.add(info.initialization);
    collector.add(info.algorithm);
  }
  for (const FunctionProto &function : model.model.functions)
    collector.addAll(function.node);
  std::vector<std::string> files;
  for (StringRef location : collector.locations) {
    SmallString<128> path(model.getFolder());
    sys::path::append(path, location);
    files.push_back(path.str().str());
  }
  return files;
}
