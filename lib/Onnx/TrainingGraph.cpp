//===- TrainingGraph.cpp - ONNX's own steps of training -------------------===//
//
// The rules are those in the comments of onnx.proto on TrainingInfoProto: keys of bindings are initializers of the model or of the
// algorithm, each bound once; values are outputs of the algorithm or of the model. That names of both graphs are told apart is seen
// where the joined graph is imported.
//
// Several algorithms would be computed one after the other, each with what the one before it has changed: block coordinate descent, which
// nobody writes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/TrainingGraph.h"

#include "cleave/Onnx/WireReader.h"
#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

using namespace cleave;
using namespace cleave::onnx;
using namespace llvm;

/// `training_info[0].update_binding`, of which an error is.
static std::string describe(size_t info, StringRef field) {
  return formatv("training_info[{0}].{1}", info, field).str();
}

/// Sparse ones, too: a weight may be stored so.
static void addNames(const GraphProto &graph, SmallVectorImpl<StringRef> &initializers) {
  for (const TensorProto &tensor : graph.initializer)
    initializers.push_back(tensor.name);
  for (const SparseTensorProto &tensor : graph.sparseInitializer)
    initializers.push_back(tensor.values.name);
}

static SmallVector<StringRef> getOutputs(ArrayRef<const GraphProto *> graphs) {
  SmallVector<StringRef> names;
  for (const GraphProto *graph : graphs)
    for (const ValueInfoProto &output : graph->output)
      names.push_back(output.name);
  return names;
}

/// Both ends of each binding are there, and no key is there twice.
static Error checkBindings(ArrayRef<StringStringEntryProto> bindings, StringRef where, ArrayRef<StringRef> initializers,
                           ArrayRef<StringRef> outputs, StringRef whose, StringSet<> &seen) {
  for (const StringStringEntryProto &binding : bindings) {
    if (!is_contained(initializers, binding.key))
      return makeError("{0}: {1} is not an initializer of the model or of its algorithm{2}", where, quote(binding.key),
                       suggestNames(binding.key, initializers));
    if (!is_contained(outputs, binding.value))
      return makeError("{0}: {1} becomes {2}, which is not an output of {3}{4}", where, quote(binding.key),
                       quote(binding.value), whose, suggestNames(binding.value, outputs));
    if (!seen.insert(binding.key).second)
      return makeError("{0}: {1} is bound twice", where, quote(binding.key));
  }
  return Error::success();
}

template <typename T> static void append(std::vector<T> &to, std::vector<T> &from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

/// The algorithm's lists go behind the model's, and are not needed where they were.
static void join(GraphProto &graph, GraphProto &algorithm) {
  append(graph.input, algorithm.input);
  append(graph.initializer, algorithm.initializer);
  append(graph.output, algorithm.output);
  append(graph.node, algorithm.node);
  append(graph.valueInfo, algorithm.valueInfo);
  append(graph.sparseInitializer, algorithm.sparseInitializer);
}

Expected<TrainingStep> cleave::onnx::joinTraining(ModelProto &model) {
  TrainingStep step;
  step.modelOutputs = model.graph.output.size();
  SmallVector<StringRef> ofModel;
  addNames(model.graph, ofModel);
  StringSet<> models, updated;
  models.insert_range(ofModel);
  TrainingInfoProto *algorithm = nullptr;
  for (auto [number, info] : enumerate(model.trainingInfo)) {
    SmallVector<StringRef> initializers(ofModel);
    addNames(info.algorithm, initializers);
    // An instance may be there to initialize alone.
    bool isStep = !info.algorithm.node.empty() || !info.updateBinding.empty();
    if (isStep && std::exchange(algorithm, &info))
      return makeError("training_info has several algorithms, the second one is training_info[{0}]: one is supported",
                       number);
    if (!info.initialization.input.empty())
      return makeError("{0} has the input {1}, and should have none", describe(number, "initialization"),
                       quote(info.initialization.input.front().name));
    StringSet<> begun;
    if (Error error = checkBindings(info.initializationBinding, describe(number, "initialization_binding"),
                                    initializers, getOutputs({&info.initialization}), "the initialization", begun))
      return std::move(error);
    if (Error error = checkBindings(info.updateBinding, describe(number, "update_binding"), initializers,
                                    getOutputs({&model.graph, &info.algorithm}), "the algorithm or the model", updated))
      return std::move(error);
    for (const StringStringEntryProto &binding : info.initializationBinding)
      step.beginnings.push_back({binding.key, binding.value, number});
    for (const StringStringEntryProto &binding : info.updateBinding)
      step.states.push_back({binding.key, binding.value, models.contains(binding.key)});
  }
  if (step.states.empty())
    return makeError("training_info binds nothing: no 'update_binding' says what a step changes");
  join(model.graph, algorithm->algorithm);
  return step;
}
