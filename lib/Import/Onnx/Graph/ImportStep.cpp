//===- ImportStep.cpp - steps of training that a model has itself ---------===//
//
// A model and its algorithm are one graph by now (Onnx/TrainingGraph.h). Initializers that a step changes are arguments behind the inputs,
// and what they become results behind the loss, as steps have them that are made of a plan (Spmd/IR/StepRoles.h):
//
//   main(x, t, W {nn.role = "parameter", nn.begins = @W}, V {nn.role = "optimizer", nn.begins = @V})
//     -> loss, next(W) {spmd.state = "W"}, next(V) {spmd.state = "V"}
//
// Weights may also be given: of a checkpoint, in the place of inputs (onnxruntime's artifacts), or of a graph `initialization`.
//
// A state is no constant, however small: a count of steps that was folded would stay where it is. So states are arguments before any node
// is imported, and what a Gradient is taken by is an argument, too. Batches come first, in the order of the model, since whoever trains
// gives them by their names and sees them so in messages.
//
//===----------------------------------------------------------------------===//
#include "../PackedTensor.h"
#include "GraphImporter.h"
#include "Limits.h"

#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

bool GraphImporter::isState(StringRef name) const {
  return options.step &&
         llvm::any_of(options.step->states, [&](const TrainingStep::State &state) { return state.name == name; });
}

//===----------------------------------------------------------------------===//
// Weights that are given
//===----------------------------------------------------------------------===//

static std::string formatShape(int32_t dataType, ArrayRef<int64_t> shape) {
  auto dims = llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); });
  return getDataTypeName(dataType) + "[" + llvm::join(dims, ", ") + "]";
}

LogicalResult GraphImporter::checkWeight(StringRef name, const TensorData &data, int32_t dataType,
                                         ArrayRef<Dimension> shape) {
  bool isAlike = data.dataType == dataType && data.shape.size() == shape.size() &&
                 llvm::all_of_zip(shape, data.shape, [](const Dimension &dim, int64_t extent) {
                   return !dim.value || *dim.value == extent;
                 });
  if (isAlike)
    return success();
  auto dims = llvm::map_range(shape, [](const Dimension &dim) {
    return dim.value ? std::to_string(*dim.value) : dim.param.empty() ? "?" : dim.param.str();
  });
  error("weight " + quote(name) + " is given as " + formatShape(data.dataType, data.shape) + ", the model has " +
        getDataTypeName(dataType) + "[" + llvm::join(dims, ", ") + "]");
  return failure();
}

/// In the place of elements of the file, and of inputs.
LogicalResult GraphImporter::takeWeights(Scope &scope) {
  if (options.weights.empty())
    return success();
  for (auto &[name, binding] : scope.bindings) {
    auto given = options.weights.find(name);
    if (given == options.weights.end())
      continue;
    const TensorProto &had = binding.initializer ? *binding.initializer : binding.sparse->values;
    ArrayRef<int64_t> dims = binding.initializer ? had.dims : binding.sparse->dims;
    auto shape = llvm::map_to_vector(dims, [](int64_t dim) { return Dimension{dim, {}}; });
    if (failed(checkWeight(name, given->second, had.dataType, shape)))
      return failure();
    binding.given = &given->second;
  }
  for (const ValueInfoProto &input : file.model.graph.input) {
    auto given = options.weights.find(input.name);
    if (given == options.weights.end() || scope.bindings.contains(input.name))
      continue;
    bool isTensor = input.type.kind == TypeProto::Tensor && input.type.shape;
    if (isTensor && failed(checkWeight(input.name, given->second, input.type.elemType, *input.type.shape)))
      return failure();
    scope.bindings[input.name].given = &given->second;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Floats of the model are parameters; all else that a step changes is its algorithm's: moments, counts.
LogicalResult GraphImporter::makeState(const TrainingStep::State &state, Scope &scope) {
  Binding &binding = scope.bindings[state.name];
  auto refuse = [&](const Twine &why) { return error("state " + quote(state.name) + " " + why), failure(); };
  if (!binding.isInitializer())
    return refuse("is changed by each step, and cannot be given at each call");
  llvm::Expected<TensorData> data = binding.given         ? llvm::Expected<TensorData>(*binding.given)
                                    : binding.initializer ? reader.read(*binding.initializer)
                                                          : reader.read(*binding.sparse);
  if (!data)
    return refuse(": " + llvm::toString(data.takeError()));
  Type elementType = convertElementType(context, data->dataType);
  if (!elementType || countPerByte(*data) > 1)
    return refuse("has " + getDataTypeName(data->dataType) + " elements, which no step changes");
  if (data->shape.size() > kMostDims || !isPossibleShape(data->shape))
    return refuse("has a shape that is not supported");
  auto type = RankedTensorType::get(data->shape, elementType);
  StringAttr name = builder.getStringAttr(state.name);
  StringAttr symbol = parameters.add(name, NameLoc::get(name), type, std::move(*data));
  beginnings.insert(symbol);
  bool isParameter = state.isOfModel && isa<FloatType>(elementType);
  NamedAttrList attrs;
  attrs.append(spmd::kNameAttr, name);
  attrs.append(spmd::kRoleAttr,
               builder.getStringAttr(isParameter ? StringRef(spmd::kParameterRole) : StringRef("optimizer")));
  attrs.append(nn::kBeginsAttr, FlatSymbolRefAttr::get(symbol));
  unsigned index = func.getNumArguments();
  if (failed(func.insertArgument(index, type, attrs.getDictionary(context), NameLoc::get(name))))
    return failure();
  binding.bound.value = func.getArgument(index);
  keepFromFolding(state.name, binding.bound.value);
  return success();
}

/// Behind all inputs, whose numbers stay those that the model gives them.
LogicalResult GraphImporter::makeStates(Scope &scope) {
  if (!options.step)
    return success();
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    func.setArgAttr(index, spmd::kRoleAttr, builder.getStringAttr(spmd::kBatchRole));
  for (const TrainingStep::State &state : options.step->states)
    if (failed(makeState(state, scope)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// A tensor of the graph; null after an error.
Value GraphImporter::getOutput(StringRef name, Scope &scope) {
  auto [binding, frame] = find(name, scope);
  FailureOr<Bound> bound = binding ? getBound(name, *binding, *frame) : FailureOr<Bound>();
  if (succeeded(bound) && bound->value && !rows.contains(bound->value))
    return bound->value;
  error("output " + quote(name) + (binding ? " is not a tensor of a step" : " is defined by no node"));
  return {};
}

/// Of any rank: exporters keep dims of what they reduce.
static bool isNumber(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() == 1 && isa<FloatType>(type.getElementType());
}

/// Of the algorithm's outputs that no state becomes, or else of the model's: one that is called so, or the first that is one float. Of several
/// algorithms the first one: the others have a loss of weights that the step has changed, which an evaluation must not.
std::optional<std::pair<StringRef, Value>> GraphImporter::findLoss(ArrayRef<Value> outputs) {
  const std::vector<ValueInfoProto> &declared = file.model.graph.output;
  size_t split = options.step->modelOutputs;
  auto isFree = [&](size_t number) {
    return llvm::none_of(options.step->states, [&](const auto &state) { return state.next == declared[number].name; });
  };
  for (auto [begin, end] : {std::pair(split, options.step->firstOutputs), std::pair(size_t(0), split)}) {
    std::optional<size_t> found;
    for (size_t number = begin; number < end; ++number) {
      bool isCalledSo = declared[number].name == "loss";
      if (!isFree(number) || !(isCalledSo || isNumber(outputs[number])))
        continue;
      if (isCalledSo || !found)
        found = number;
    }
    if (!found)
      continue;
    if (isNumber(outputs[*found]))
      return std::pair(StringRef(declared[*found].name), outputs[*found]);
    error("output 'loss' is not one float, which the loss of a step is");
    return std::nullopt;
  }
  error("training_info gives no loss: no output of the first algorithm or the model that is bound to nothing is one "
        "float");
  return std::nullopt;
}

/// Those that nodes `Gradient` of the graph make by weights, as `grad(W)`. Those of anything but the loss, as what a second algorithm
/// minimizes, are no slopes of it, which `grad(W, L)` says: ranks are compared with one device by them all the same.
void GraphImporter::addGradients(StringRef loss, Scope &scope, llvm::function_ref<void(Value, const Twine &)> add) {
  llvm::StringSet<> seen;
  for (const NodeProto &node : scope.nodes) {
    const AttributeProto *xs = node.findAttribute("xs"), *y = node.findAttribute("y");
    if (node.opType != "Gradient" || node.domain != "ai.onnx.preview.training" || !xs || !y)
      continue;
    for (auto [name, operand, output] : llvm::zip(xs->strings, node.input, node.output)) {
      bool isParameter = llvm::any_of(options.step->states, [name = name](const TrainingStep::State &state) {
        return state.isOfModel && state.name == name;
      });
      std::string shown = y->s == loss ? name.str() : (name + ", " + y->s).str();
      if (isParameter && name == operand && !output.empty() && seen.insert(shown).second)
        if (Value gradient = getOutput(output, scope))
          add(gradient, "grad(" + shown + ")");
    }
  }
}

/// The loss, what else the algorithm tells, and then the next values of states. What the model infers is of no use to a step, and is left out.
LogicalResult GraphImporter::makeStepResults(Scope &scope) {
  SmallVector<Value> outputs, values;
  SmallVector<Attribute> attributes;
  auto add = [&](Value value, const Twine &name, StringRef state = {}) {
    NamedAttrList attrs;
    attrs.append(spmd::kNameAttr, builder.getStringAttr(name));
    if (!state.empty())
      attrs.append(spmd::SpmdDialect::kStateAttr, builder.getStringAttr(state));
    values.push_back(value);
    attributes.push_back(attrs.getDictionary(context));
  };
  const std::vector<ValueInfoProto> &declared = file.model.graph.output;
  for (const ValueInfoProto &output : declared) {
    outputs.push_back(getOutput(output.name, scope));
    if (!outputs.back() || failed(checkOutput(output, cast<RankedTensorType>(outputs.back().getType()), scope)))
      return failure();
  }
  auto loss = findLoss(outputs);
  if (!loss)
    return failure();
  nn::Composer f(builder, nn::makeNodeLoc(context, {"loss", "Train", {}, {}}));
  add(f.widen(f.reshape(loss->second, {})), "loss");
  llvm::StringSet<> bound = {loss->first};
  for (const TrainingStep::State &state : options.step->states)
    bound.insert(state.next);
  for (size_t number = options.step->modelOutputs; number < declared.size(); ++number)
    if (bound.insert(declared[number].name).second)
      add(outputs[number], declared[number].name);
  if (options.keepsGradients)
    addGradients(loss->first, scope, [&](Value value, const Twine &name) { add(value, name); });
  for (const TrainingStep::State &state : options.step->states) {
    size_t number =
        llvm::find_if(declared, [&](const auto &output) { return output.name == state.next; }) - declared.begin();
    Type had = scope.bindings[state.name].bound.value.getType();
    if (outputs[number].getType() != had) {
      std::string types;
      llvm::raw_string_ostream(types) << outputs[number].getType() << ", and " << quote(state.name) << " is " << had;
      InFlightDiagnostic diagnostic = error("update_binding: " + quote(state.next) + " is " + types);
      return noteDefinition(diagnostic, state.next, scope), failure();
    }
    add(outputs[number], "next(" + state.name + ")", state.name);
  }
  func::ReturnOp::create(builder, func.getLoc(), values);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), ValueRange(values).getTypes()));
  func.setAllResultAttrs(attributes);
  return success();
}
