//===- Trained.cpp - trained weights back into a model --------------------===//
//
// The model's file is copied field by field, as it was read; only initializers that have been trained are written anew, and the values of
// nodes Constant, in which some exporters put weights:
//
//   model ─▶ graph ─▶ initializer "w"                  name, dims, type stay; raw_data = elements of "w" in the checkpoint, in that type
//                  └▶ node Constant, output "w" ─▶ value
//
// Nothing of the model is computed, and no name is looked up in a graph: a weight that an importer has taken apart (a fused one) is
// whole in the checkpoint, by its origin, and so is found under the name that it has in the file. A weight with adapters gets their products.
//
// Where elements lay beside the model, those that stay and those that are new lie in one file beside the new one: the old files
// belong to the old model, which may be somewhere else.
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Onnx/Trained.h"

#include "Floats.h"

#include "cleave/Arrays/Safetensors.h"
#include "cleave/Onnx/Artifacts.h"
#include "cleave/Onnx/TensorData.h"
#include "cleave/Onnx/WireReader.h"
#include "cleave/Onnx/WireWriter.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace cleave;
using namespace cleave::onnx;
using llvm::StringRef;
using program::Element;

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

namespace {
class Replacer {
public:
  Replacer(ModelFile &model, const arrays::Safetensors &contents, StringRef bytes, StringRef data,
           llvm::ArrayRef<Adapter> adapters, const llvm::StringMap<TensorData> &given)
      : model(model), contents(contents), bytes(bytes), data(data), adapters(adapters), given(given), tensors(model),
        wire(model.file->getBytes(), ReadLimits()) {}

  /// The new model; what is to lie beside it is in `getBeside`.
  llvm::Expected<WireMessage> run();
  llvm::ArrayRef<std::string> getBeside() const { return beside; }
  TrainedWeights takeWeights();

private:
  bool addGraph(StringRef graph, const GraphProto &known, WireMessage &out);
  bool addGiven(WireMessage &out);
  bool addTraining(StringRef info, const TrainingInfoProto &read, WireMessage &out);
  bool addInitializer(StringRef tensor, const TensorProto &read, WireMessage &out);
  bool addConstant(StringRef node, const TensorProto &value, StringRef name, WireMessage &out);
  /// `tensor` is called `name`: a node's value may have a name of its own, or none.
  llvm::Expected<std::optional<std::string>> findTrained(const TensorProto &tensor, StringRef name);
  bool isGivenInput(const WireField &field, llvm::ArrayRef<ValueInfoProto> &inputs) const {
    return field.number == 11 && given.contains(inputs.consume_front().name);
  }
  llvm::Expected<std::optional<std::string>> fold(const TensorProto &tensor, StringRef name);
  bool addElements(StringRef tensor, const TensorProto &read, StringRef name, WireMessage &out);
  void addBeside(std::string elements, WireMessage &out);
  bool fail(llvm::Error error) {
    failed = std::move(error);
    return false;
  }

  ModelFile &model;
  const arrays::Safetensors &contents;
  StringRef bytes; ///< of the checkpoint
  StringRef data;  ///< what the file beside the new model is called
  llvm::ArrayRef<Adapter> adapters;
  const llvm::StringMap<TensorData> &given; ///< inputs that are weights
  TensorReader tensors;
  WireReader wire;
  TrainedWeights weights;
  std::vector<std::string> beside;
  uint64_t besideBytes = 0;
  llvm::Error failed = llvm::Error::success();
};
} // namespace

/// Its elements in the model and the products of its adapters; nothing where it has none.
llvm::Expected<std::optional<std::string>> Replacer::fold(const TensorProto &tensor, StringRef name) {
  std::optional<Element> element = findFloat(tensor.dataType);
  auto isBeside = [&](const Adapter &adapter) { return adapter.weight == name; };
  if (!element || llvm::none_of(adapters, isBeside))
    return std::nullopt;
  llvm::Expected<TensorData> old = tensors.read(tensor);
  if (!old)
    return old.takeError();
  std::vector<double> elements = toDoubles({old->bytes.data(), old->bytes.size()}, *element);
  for (const Adapter &adapter : llvm::make_filter_range(adapters, isBeside))
    if (llvm::Error error = addAdapter(adapter, contents, bytes, tensor.dims, elements))
      return std::move(error);
  weights.replaced.push_back(name.str());
  return fromDoubles(elements, *element);
}

/// Its elements in the checkpoint; nothing where that has none of its name.
llvm::Expected<std::optional<std::string>> Replacer::findTrained(const TensorProto &tensor, StringRef name) {
  const arrays::SafeTensor *found = contents.find({name.data(), name.size()});
  if (!found)
    return fold(tensor, name);
  std::optional<Element> element = findFloat(tensor.dataType);
  bool isAlike = element ? found->element <= Element::F64 : found->element == findInteger(tensor.dataType);
  if (!isAlike || found->shape != tensor.dims) {
    std::string shape = format(program::Type{Element::F32, tensor.dims, {}});
    return makeError("{0} is {1}, the model has {2}{3}", quote(name),
                     format(program::Type{found->element, found->shape, {}}), getDataTypeName(tensor.dataType),
                     StringRef(shape).drop_front(3));
  }
  weights.replaced.push_back(name.str());
  return castFloats(bytes.substr(found->offset, found->bytes), found->element, element.value_or(found->element));
}

/// Where external elements lie is said in strings.
void Replacer::addBeside(std::string elements, WireMessage &out) {
  auto add = [&](StringRef key, StringRef value) {
    WireMessage entry;
    entry.text(1, key);
    entry.text(2, value);
    out.message(13, std::move(entry));
  };
  add("location", data);
  add("offset", std::to_string(besideBytes));
  add("length", std::to_string(elements.size()));
  out.integer(14, 1);
  besideBytes += elements.size();
  beside.push_back(std::move(elements));
}

/// A tensor without its elements, and then these.
bool Replacer::addElements(StringRef tensor, const TensorProto &read, StringRef name, WireMessage &out) {
  llvm::Expected<std::optional<std::string>> trained = findTrained(read, name);
  if (!trained)
    return fail(trained.takeError());
  if (!*trained && read.isExternal) {
    llvm::Expected<TensorData> old = tensors.read(read);
    if (!old)
      return fail(old.takeError());
    *trained = std::string(old->bytes.data(), old->bytes.size());
  }
  bool isKept = !*trained;
  constexpr uint32_t elementFields[] = {4, 5, 6, 7, 9, 10, 11, 13, 14};
  bool isGood = wire.fields(tensor, [&](const WireField &field) {
    if (isKept || !llvm::is_contained(elementFields, field.number))
      out.copy(field);
    return true;
  });
  if (isKept)
    return isGood;
  if (read.isExternal)
    addBeside(std::move(**trained), out);
  else
    out.text(9, **trained);
  return isGood;
}

bool Replacer::addInitializer(StringRef tensor, const TensorProto &read, WireMessage &out) {
  return addElements(tensor, read, read.name, out);
}

/// The value of a node that is nothing but a tensor; null where it has none, or numbers in the attribute itself.
static const TensorProto *findConstant(const NodeProto &node) {
  bool isConstant = node.opType == "Constant" && (node.domain.empty() || node.domain == "ai.onnx");
  const AttributeProto *value = isConstant && node.output.size() == 1 ? node.findAttribute("value") : nullptr;
  return value ? value->t.get() : nullptr;
}

/// A node with its attribute `value`, the only one that it has: field 5 of both messages.
bool Replacer::addConstant(StringRef node, const TensorProto &value, StringRef name, WireMessage &out) {
  return wire.fields(node, [&](const WireField &field) {
    if (field.number != 5) {
      out.copy(field);
      return true;
    }
    WireMessage attribute;
    auto addValue = [&](const WireField &inner) {
      if (inner.number != 5) {
        attribute.copy(inner);
        return true;
      }
      WireMessage tensor;
      if (!wire.message(inner, "t", -1, [&](StringRef bytes) { return addElements(bytes, value, name, tensor); }))
        return false;
      attribute.message(5, std::move(tensor));
      return true;
    };
    if (!wire.message(field, "attribute", -1, [&](StringRef bytes) { return wire.fields(bytes, addValue); }))
      return false;
    out.message(5, std::move(attribute));
    return true;
  });
}

/// Inputs that are weights, as initializers, in the order of the model.
bool Replacer::addGiven(WireMessage &out) {
  for (const ValueInfoProto &input : model.model.graph.input) {
    auto found = given.find(input.name);
    if (found == given.end())
      continue;
    // Frozen weights are in no checkpoint of a training: they stay as they were given.
    const TensorData &weight = found->second;
    TensorProto tensor;
    tensor.name = input.name;
    tensor.dims = weight.shape;
    tensor.dataType = weight.dataType;
    WireMessage message;
    for (int64_t dim : tensor.dims)
      message.integer(1, dim);
    message.integer(2, tensor.dataType);
    message.text(8, tensor.name);
    llvm::Expected<std::optional<std::string>> trained = findTrained(tensor, tensor.name);
    if (!trained)
      return fail(trained.takeError());
    message.text(9, *trained ? StringRef(**trained) : StringRef(weight.bytes.data(), weight.bytes.size()));
    out.message(5, std::move(message));
  }
  return true;
}

/// Nodes, initializers and inputs come in the order in which they have been read.
bool Replacer::addGraph(StringRef graph, const GraphProto &known, WireMessage &out) {
  llvm::ArrayRef<TensorProto> initializers = known.initializer;
  llvm::ArrayRef<ValueInfoProto> inputs = known.input;
  llvm::ArrayRef<NodeProto> nodes = known.node;
  return wire.fields(graph, [&](const WireField &field) {
    if (isGivenInput(field, inputs))
      return true;
    if (field.number == 1)
      if (const NodeProto &node = nodes.consume_front(); const TensorProto *value = findConstant(node)) {
        WireMessage changed;
        if (!wire.message(field, "node", -1,
                          [&](StringRef inner) { return addConstant(inner, *value, node.output.front(), changed); }))
          return false;
        out.message(1, std::move(changed));
        return true;
      }
    if (field.number != 5) {
      out.copy(field);
      return true;
    }
    WireMessage tensor;
    const TensorProto &read = initializers.consume_front();
    if (!wire.message(field, "initializer", -1, [&](StringRef inner) { return addInitializer(inner, read, tensor); }))
      return false;
    out.message(5, std::move(tensor));
    return true;
  });
}

/// What an algorithm keeps (moments, counts) are initializers of its own.
bool Replacer::addTraining(StringRef info, const TrainingInfoProto &read, WireMessage &out) {
  return wire.fields(info, [&](const WireField &field) {
    if (field.number != 2) {
      out.copy(field);
      return true;
    }
    WireMessage graph;
    if (!wire.message(field, "algorithm", -1, [&](StringRef inner) { return addGraph(inner, read.algorithm, graph); }))
      return false;
    out.message(2, std::move(graph));
    return true;
  });
}

/// Pieces of the new file are pieces of the old one where nothing has changed: a model of gigabytes is written without being held.
llvm::Expected<WireMessage> Replacer::run() {
  WireMessage out;
  llvm::ArrayRef<TrainingInfoProto> infos = model.model.trainingInfo;
  bool isGood = wire.fields(model.file->getBytes(), [&](const WireField &field) {
    if (field.number != 7 && field.number != 20) {
      out.copy(field);
      return true;
    }
    WireMessage changed;
    bool isGraph = field.number == 7;
    const TrainingInfoProto *info = isGraph ? nullptr : &infos.consume_front();
    if (!wire.message(field, isGraph ? "graph" : "training_info", -1, [&](StringRef inner) {
          return isGraph ? addGraph(inner, model.model.graph, changed) && addGiven(changed)
                         : addTraining(inner, *info, changed);
        }))
      return false;
    out.message(field.number, std::move(changed));
    return true;
  });
  if (failed)
    return std::move(failed);
  if (!isGood)
    return makeError("{0}", wire.getError());
  return out;
}

/// Who trained more than the model has (an optimizer's states) is told what stayed behind, so that a weight of another name is noticed.
TrainedWeights Replacer::takeWeights() {
  llvm::StringSet<> replaced;
  for (const std::string &name : weights.replaced)
    replaced.insert(name);
  for (const arrays::SafeTensor &tensor : contents.tensors)
    if (!replaced.contains(tensor.name))
      weights.others.push_back(tensor.name);
  return std::move(weights);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

llvm::StringMap<const TensorProto *> cleave::onnx::findStored(const ModelProto &model) {
  llvm::StringMap<const TensorProto *> stored;
  auto add = [&](const GraphProto &graph) {
    for (const TensorProto &tensor : graph.initializer)
      stored[tensor.name] = &tensor;
    for (const NodeProto &node : graph.node)
      if (const TensorProto *value = findConstant(node))
        stored[node.output.front()] = value;
  };
  for (const TrainingInfoProto &info : model.trainingInfo)
    add(info.algorithm);
  add(model.graph);
  return stored;
}

llvm::Error cleave::onnx::checkStored(llvm::ArrayRef<std::string> weights, StringRef path) {
  llvm::Expected<std::unique_ptr<ModelFile>> read = readModel(path);
  if (!read)
    return addContext((path + ": ").str(), read.takeError());
  llvm::StringMap<const TensorProto *> stored = findStored((*read)->model);
  for (StringRef weight : weights)
    if (!stored.contains(weight))
      return makeError(
          "--export cannot write {0} back: the graph has no initializer and no Constant of that name, which "
          "may be one of a branch or a function; 'freeze' leaves it as it is",
          quote(weight));
  return llvm::Error::success();
}

std::string cleave::onnx::getTrainedData(StringRef out) { return (out + ".data").str(); }

llvm::Expected<TrainedWeights> cleave::onnx::exportTrained(StringRef model, StringRef checkpoint, StringRef out,
                                                           llvm::ArrayRef<Adapter> adapters, StringRef artifacts) {
  llvm::Expected<std::unique_ptr<ModelFile>> read = readModel(model);
  if (!read)
    return addContext((model + ": ").str(), read.takeError());
  llvm::Expected<Artifacts> given =
      artifacts.empty() ? llvm::Expected<Artifacts>(Artifacts()) : readArtifacts(artifacts);
  if (!given)
    return given.takeError();
  llvm::Expected<Checkpoint> trained = openCheckpoint(checkpoint);
  if (!trained)
    return trained.takeError();
  std::string data = getTrainedData(out);
  Replacer replacer(**read, trained->contents, trained->getBytes(), llvm::sys::path::filename(data), adapters,
                    given->checkpoint.weights);
  llvm::Expected<WireMessage> message = replacer.run();
  if (!message)
    return addContext((checkpoint + ": ").str(), message.takeError());
  TrainedWeights weights = replacer.takeWeights();
  if (weights.replaced.empty())
    return makeError("{0}: has none of the weights of {1}", checkpoint, model);
  auto writeBeside = [&](llvm::raw_ostream &os) {
    for (const std::string &elements : replacer.getBeside())
      os << elements;
    return llvm::Error::success();
  };
  // What a model refers to is there before it is.
  if (!replacer.getBeside().empty())
    if (llvm::Error error = writeFileAtomically(data, writeBeside))
      return std::move(error);
  auto writeModel = [&](llvm::raw_ostream &os) {
    message->write(os);
    return llvm::Error::success();
  };
  if (llvm::Error error = writeFileAtomically(out, writeModel))
    return std::move(error);
  return weights;
}
