//===- TrainingGraph.cpp - ONNX's own steps of training -------------------===//
//
// The rules are those in the comments of onnx.proto on TrainingInfoProto: keys of bindings are initializers of the model or of the
// algorithm, each bound once; values are outputs of the algorithm or of the model. That names of both graphs are told apart is seen
// where the joined graph is imported.
//
// Several algorithms are computed one after the other, each with what those before it have changed: "if the targeted training algorithm
// contains consecutive update steps (such as block coordinate descent methods), the user needs to create a TrainingInfoProto for each step".
// What of the model reads a changed weight is there once more, and reads the next value. An algorithm sees the model and itself alone, so
// that two may use one name for two things. onnx.proto does not say what a batch is to several: here all of a step have the same one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/TrainingGraph.h"

#include "cleave/Onnx/NodeOrder.h"
#include "cleave/Onnx/WireReader.h"
#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
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

static SmallVector<StringRef> getOutputs(const GraphProto &graph) {
  return llvm::map_to_vector(graph.output, [](const ValueInfoProto &output) { return output.name; });
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

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {
/// What a name of one algorithm stands for in the joined graph, where that is something else.
struct Names : DenseMap<StringRef, StringRef> {
  /// Weights that algorithms before it have changed: to this one they are numbers that are there, whatever they were computed of.
  SmallVector<StringRef> changed;
};
} // namespace

static void rename(StringRef &name, const Names &names) {
  if (auto found = names.find(name); found != names.end())
    name = found->second;
}

static void renameReads(NodeProto &node, const Names &names);

/// What a body defines itself hides what is called so outside. Bodies are shared with the node that this one is a copy of.
static std::shared_ptr<const GraphProto> renameBody(const GraphProto &body, Names names) {
  auto renamed = std::make_shared<GraphProto>(body);
  SmallVector<StringRef> own;
  addDefinitions(body, own);
  for (StringRef name : own)
    names.erase(name);
  for (NodeProto &node : renamed->node)
    renameReads(node, names);
  for (ValueInfoProto &output : renamed->output)
    rename(output.name, names);
  return renamed;
}

/// A gradient does not reach through a weight to what it was computed of: `zs` are what is not differentiated.
static void holdChanged(NodeProto &gradient, ArrayRef<StringRef> changed) {
  auto isNamed = [&](StringRef name) {
    return any_of(gradient.attribute, [&](const AttributeProto &attr) { return is_contained(attr.strings, name); });
  };
  auto held = make_filter_range(changed, [&](StringRef name) { return !isNamed(name); });
  std::vector<StringRef> names(held.begin(), held.end());
  if (names.empty())
    return;
  auto zs = find_if(gradient.attribute, [](const AttributeProto &attr) { return attr.name == "zs"; });
  if (zs == gradient.attribute.end()) {
    zs = gradient.attribute.emplace(gradient.attribute.end());
    zs->name = "zs";
    zs->type = AttributeProto::Strings;
  }
  append_range(zs->strings, names);
  append_range(gradient.input, names);
}

/// All that `addReads` finds.
static void renameReads(NodeProto &node, const Names &names) {
  for (StringRef &name : node.input)
    rename(name, names);
  bool isGradient = node.opType == "Gradient" && node.domain == "ai.onnx.preview.training";
  for (AttributeProto &attr : node.attribute) {
    if (isGradient && attr.type == AttributeProto::String)
      rename(attr.s, names);
    for (StringRef &name : attr.strings)
      if (isGradient)
        rename(name, names);
    if (attr.g)
      attr.g = renameBody(*attr.g, names);
    for (std::shared_ptr<const GraphProto> &graph : attr.graphs)
      graph = renameBody(*graph, names);
  }
  if (isGradient)
    holdChanged(node, names.changed);
}

static bool isAlike(const TypeProto &a, const TypeProto &b) {
  auto isSame = [](const Dimension &one, const Dimension &other) {
    return one.value == other.value && one.param == other.param;
  };
  bool haveShapes = a.shape && b.shape && a.shape->size() == b.shape->size();
  return a.kind == b.kind && a.elemType == b.elemType && a.shape.has_value() == b.shape.has_value() &&
         (!a.shape || (haveShapes && all_of_zip(*a.shape, *b.shape, isSame)));
}

//===----------------------------------------------------------------------===//
// The joined graph
//===----------------------------------------------------------------------===//

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

/// An instance may be there to initialize alone.
static bool isStep(const TrainingInfoProto &info) {
  return !info.algorithm.node.empty() || !info.updateBinding.empty();
}

namespace {
/// Appends algorithms in their order.
class Joiner {
public:
  Joiner(ModelProto &model, TrainingStep &step);

  /// The algorithm of `training_info[number]`, with its states and beginnings. Bindings were checked.
  Error add(size_t number, TrainingInfoProto &info);

private:
  StringRef save(const Twine &name) { return step.names->emplace_back(name.str()); }
  Error shareInputs(size_t number, GraphProto &algorithm);
  Error checkReads(size_t number, const GraphProto &algorithm, ArrayRef<StringRef> own) const;
  void repeatModel(StringRef prefix, Names &names);
  Error separate(size_t number, TrainingInfoProto &info, StringRef prefix, Names &names);
  void addStates(size_t number, const TrainingInfoProto &info, const Names &names);

  ModelProto &model;
  TrainingStep &step;
  /// The model's, each behind those that it reads.
  std::vector<NodeProto> nodes;
  /// Names that the model defines, and those that algorithms have had so far, as the file has them.
  DenseSet<StringRef> ofModel, ofOthers;
  StringMap<ValueInfoProto> inputs; ///< of algorithms
  bool isFirst = true;
};
} // namespace

/// Only of several algorithms the nodes are needed once more. Those of a cycle are an error where the graph is imported.
Joiner::Joiner(ModelProto &model, TrainingStep &step) : model(model), step(step) {
  SmallVector<StringRef> names;
  addDefinitions(model.graph, names);
  ofModel.insert_range(names);
  if (count_if(model.trainingInfo, isStep) > 1)
    for (unsigned number : NodeOrder(model.graph.node, [](StringRef) { return false; }).sort())
      nodes.push_back(model.graph.node[number]);
}

/// An input that several name is one. It keeps its name, by which it is given.
Error Joiner::shareInputs(size_t number, GraphProto &algorithm) {
  std::vector<ValueInfoProto> own;
  for (const ValueInfoProto &input : algorithm.input) {
    auto had = inputs.find(input.name);
    if (had == inputs.end() && ofOthers.contains(input.name))
      return makeError("{0} has the input {1}, which is a value of an algorithm before it",
                       describe(number, "algorithm"), quote(input.name));
    if (had == inputs.end())
      own.push_back(input);
    else if (!isAlike(had->second.type, input.type))
      return makeError("{0} declares the input {1} otherwise than an algorithm before it, and a step has one of it",
                       describe(number, "algorithm"), quote(input.name));
  }
  for (const ValueInfoProto &input : own)
    inputs.try_emplace(input.name, input);
  algorithm.input = std::move(own);
  return Error::success();
}

/// The names of another algorithm would be found in the joined graph, but runtimes that compute one after the other do not have them.
Error Joiner::checkReads(size_t number, const GraphProto &algorithm, ArrayRef<StringRef> own) const {
  DenseSet<StringRef> known(own.begin(), own.end());
  SmallVector<StringRef> reads;
  for (const NodeProto &node : algorithm.node)
    addReads(node, reads);
  for (const ValueInfoProto &output : algorithm.output)
    reads.push_back(output.name);
  for (StringRef name : reads)
    if (ofOthers.contains(name) && !known.contains(name) && !ofModel.contains(name))
      return makeError("{0} reads {1}, which is an algorithm's before it: each has the model and its own",
                       describe(number, "algorithm"), quote(name));
  return Error::success();
}

/// The model with the weights that have changed: what reads them, directly or by what others make of them, is there again.
void Joiner::repeatModel(StringRef prefix, Names &names) {
  for (const TrainingStep::State &state : step.states)
    if (state.isOfModel) {
      names[state.name] = state.next;
      if (!is_contained(names.changed, state.next))
        names.changed.push_back(state.next);
    }
  SmallVector<StringRef> reads;
  for (const NodeProto &node : nodes) {
    reads.clear();
    addReads(node, reads);
    if (none_of(reads, [&](StringRef name) { return names.contains(name); }))
      continue;
    NodeProto &again = model.graph.node.emplace_back(node);
    renameReads(again, names);
    again.name = node.name.empty() ? StringRef() : save(prefix + node.name);
    for (StringRef &output : again.output)
      if (!output.empty())
        output = names[output] = save(prefix + output);
  }
}

/// What is called as something of another algorithm gets a name of its own. Not what is of the model: that is an error of the joined graph.
Error Joiner::separate(size_t number, TrainingInfoProto &info, StringRef prefix, Names &names) {
  GraphProto &algorithm = info.algorithm;
  auto isState = [&](StringRef name) {
    return any_of(step.states, [&](const TrainingStep::State &state) { return state.name == name; }) ||
           any_of(info.updateBinding, [&](const StringStringEntryProto &binding) { return binding.key == name; });
  };
  SmallVector<StringRef> initializers;
  addNames(algorithm, initializers);
  // Checkpoints and exported files have states by their names.
  for (StringRef name : initializers)
    if (ofOthers.contains(name) && isState(name))
      return makeError("{0} has the initializer {1}, and so has an algorithm before it: a state needs a name of its "
                       "own",
                       describe(number, "algorithm"), quote(name));
  auto tellApart = [&](StringRef &name) {
    if (ofOthers.contains(name) && !ofModel.contains(name))
      name = names[name] = save(prefix + name);
  };
  for (TensorProto &tensor : algorithm.initializer)
    tellApart(tensor.name);
  for (SparseTensorProto &tensor : algorithm.sparseInitializer)
    tellApart(tensor.values.name);
  for (NodeProto &node : algorithm.node)
    for (StringRef &output : node.output)
      tellApart(output);
  for (NodeProto &node : algorithm.node)
    renameReads(node, names);
  for (std::vector<ValueInfoProto> *values : {&algorithm.output, &algorithm.valueInfo})
    for (ValueInfoProto &value : *values)
      rename(value.name, names);
  return Error::success();
}

void Joiner::addStates(size_t number, const TrainingInfoProto &info, const Names &names) {
  for (const StringStringEntryProto &binding : info.initializationBinding) {
    step.beginnings.push_back({binding.key, binding.value, number});
    // A weight that has changed begins as itself.
    if (!ofModel.contains(binding.key))
      rename(step.beginnings.back().name, names);
  }
  for (const StringStringEntryProto &binding : info.updateBinding) {
    step.states.push_back({binding.key, binding.value, ofModel.contains(binding.key)});
    StringRef &next = step.states.back().next;
    rename(next, names);
    // Of the model once more, which has no outputs of its own.
    auto isNext = [&](const ValueInfoProto &output) { return output.name == next; };
    if (next != binding.value && none_of(info.algorithm.output, isNext) && none_of(model.graph.output, isNext))
      model.graph.output.push_back({next, {}});
  }
}

Error Joiner::add(size_t number, TrainingInfoProto &info) {
  Names names;
  SmallVector<StringRef> own;
  addDefinitions(info.algorithm, own);
  if (isStep(info)) {
    if (Error error = shareInputs(number, info.algorithm))
      return error;
    if (Error error = checkReads(number, info.algorithm, own))
      return error;
    std::string prefix = formatv("algorithm{0}/", number).str();
    repeatModel(prefix, names);
    if (Error error = separate(number, info, prefix, names))
      return error;
  }
  addStates(number, info, names);
  if (!isStep(info))
    return Error::success();
  join(model.graph, info.algorithm);
  ofOthers.insert_range(own);
  if (std::exchange(isFirst, false))
    step.firstOutputs = model.graph.output.size();
  return Error::success();
}

Expected<TrainingStep> cleave::onnx::joinTraining(ModelProto &model) {
  TrainingStep step;
  step.modelOutputs = step.firstOutputs = model.graph.output.size();
  SmallVector<StringRef> ofModel, modelOutputs = getOutputs(model.graph);
  addNames(model.graph, ofModel);
  StringSet<> updated;
  Joiner joiner(model, step);
  for (auto [number, info] : enumerate(model.trainingInfo)) {
    SmallVector<StringRef> initializers(ofModel), outputs(modelOutputs);
    addNames(info.algorithm, initializers);
    append_range(outputs, getOutputs(info.algorithm));
    if (!info.initialization.input.empty())
      return makeError("{0} has the input {1}, and should have none", describe(number, "initialization"),
                       quote(info.initialization.input.front().name));
    StringSet<> begun;
    if (Error error = checkBindings(info.initializationBinding, describe(number, "initialization_binding"),
                                    initializers, getOutputs(info.initialization), "the initialization", begun))
      return std::move(error);
    if (Error error = checkBindings(info.updateBinding, describe(number, "update_binding"), initializers, outputs,
                                    "the algorithm or the model", updated))
      return std::move(error);
    if (Error error = joiner.add(number, info))
      return std::move(error);
  }
  if (step.states.empty())
    return makeError("training_info binds nothing: no 'update_binding' says what a step changes");
  return step;
}
