//===- GraphBuilder.cpp - an ONNX graph as it is put together -------------===//
//
// Tensors keep the model's names where values have them: of several ops that were made for one node, which all know its
// result's name, the last one has it, and the others are called after it (`y/einsum`). Names are unique; those of inputs and
// outputs come first.
//
//===----------------------------------------------------------------------===//
#include "GraphBuilder.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Reference/Tensor.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

int64_t OnnxGraph::getPipelineStride() const {
  return pipelineAxis ? llvm::product_of(mesh.getSizes().drop_front(*pipelineAxis + 1)) : 1;
}

std::vector<int64_t> OnnxGraph::getRanks() const {
  std::vector<int64_t> ranks;
  for (int64_t rank = 0, count = mesh.getNumRanks(); rank < count; ++rank)
    if (!pipelineAxis || rank / getPipelineStride() % mesh.getSizes()[*pipelineAxis] == pipelineRank)
      ranks.push_back(rank);
  return ranks;
}

int64_t OnnxGraph::getInnerRank(int64_t rank) const {
  if (!pipelineAxis)
    return rank;
  int64_t stride = getPipelineStride();
  return rank / (stride * mesh.getSizes()[*pipelineAxis]) * stride + rank % stride;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// `name`, or, where that is taken, the first of `name_2`, `name_3`, .. that is not. A node of thousands of operands becomes thousands of
/// nodes of one name: `numbers` says from where on to look.
static std::string takeName(StringRef name, llvm::StringSet<> &taken, llvm::StringMap<unsigned> &numbers) {
  if (taken.insert(name).second)
    return name.str();
  unsigned &number = numbers.try_emplace(name, 1).first->second;
  std::string unique;
  do
    unique = (name + "_" + Twine(++number)).str();
  while (!taken.insert(unique).second);
  return unique;
}

/// The name is there again, and its number.
static void freeName(StringRef name, llvm::StringSet<> &taken, llvm::StringMap<unsigned> &numbers) {
  taken.erase(name);
  auto [base, digits] = name.rsplit('_');
  unsigned number;
  if (auto known = numbers.find(base); known != numbers.end() && !digits.getAsInteger(10, number) && number > 1)
    known->second = std::min(known->second, number - 1);
}

std::string GraphBuilder::makeUnique(StringRef name) { return takeName(name, taken, numbers); }

/// Inputs, outputs, and then what values are called, from the end: who comes last has the name.
void GraphBuilder::chooseNames() {
  for (BlockArgument argument : func.getArguments()) {
    std::string name = makeUnique(spmd::getArgumentName(func, argument.getArgNumber()));
    names[argument] = name;
    types[name] = getStoredType(argument.getType());
    graph.inputs.push_back({name, types[name]});
    auto value = func.getArgAttrOfType<DenseElementsAttr>(argument.getArgNumber(), nn::NnDialect::kValueAttr);
    graph.inputs.back().isFixed = value != nullptr;
    if (value && !argument.use_empty())
      graph.initializers.push_back({name, types[name], encodeElements(*reference::Tensor::fromAttr(value))});
  }
  Block &block = func.getBody().front();
  for (auto [index, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    std::string name = makeUnique(spmd::getResultName(func, index));
    graph.outputs.push_back({name, getStoredType(value.getType())});
    if (value.getDefiningOp() && !nn::isData(value.getDefiningOp()))
      wanted.try_emplace(value, name);
  }
  for (auto load : func.getOps<nn::LoadOp>())
    if (taken.insert(load.getParam()).second)
      kept.insert(load.getParam());
  for (Operation &op : llvm::reverse(block))
    for (Value result : op.getResults()) {
      if (nn::isData(&op) || wanted.contains(result))
        continue;
      for (StringRef name : spmd::getTensorNames(result))
        if (taken.insert(name).second) {
          wanted[result] = name.str();
          break;
        }
    }
}

GraphBuilder::GraphBuilder(func::FuncOp func, const ExportOptions &options) : func(func), options(options) {
  graph.mesh = spmd::getMesh(func);
  if (std::optional<int64_t> rank = pipe::getRank(func)) {
    auto module = func->getParentOfType<ModuleOp>();
    graph.mesh = module->getAttrOfType<spmd::MeshAttr>(pipe::PipeDialect::kMeshAttr);
    graph.pipelineAxis = graph.mesh.findAxis(module->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr));
    graph.pipelineRank = *rank;
  }
  chooseNames();
}

const std::string &GraphBuilder::operator()(Value value) const {
  auto found = names.find(value);
  assert(found != names.end() && "used before it is written");
  return found->second;
}

/// Helpers of an op are called after its tensor, else after its node, else after the op.
void GraphBuilder::begin(Operation *op) {
  firstNode = graph.nodes.size();
  firstValue = graph.values.size();
  nodeName = spmd::describeNode(op);
  SmallVector<StringRef, 1> known =
      op->getNumResults() ? spmd::getTensorNames(op->getResult(0)) : SmallVector<StringRef, 1>();
  base = !known.empty() ? known.front().str() : nodeName;
  if (base.empty())
    base = op->getName().stripDialect().str();
}

/// Only nodes of the op at hand can know the name.
void GraphBuilder::rename(const std::string &from, const std::string &to) {
  for (Node &node : llvm::drop_begin(graph.nodes, firstNode)) {
    llvm::replace(node.inputs, from, to);
    llvm::replace(node.outputs, from, to);
  }
  for (TensorInfo &info : llvm::drop_begin(graph.values, firstValue))
    if (info.name == from)
      info.name = to;
  types[to] = types.lookup(from);
  types.erase(from);
  freeName(from, taken, numbers);
}

/// An op that hands an operand on makes nothing that could have its name.
void GraphBuilder::bind(Value result, const std::string &name) {
  std::string bound = name;
  bool isOwn = llvm::any_of(llvm::drop_begin(graph.values, firstValue),
                            [&](const TensorInfo &info) { return info.name == name; });
  bool isBound = llvm::any_of(result.getDefiningOp()->getResults(), [&](Value other) {
    auto known = names.find(other);
    return known != names.end() && known->second == name;
  });
  if (auto want = wanted.find(result); want != wanted.end() && isOwn && !isBound) {
    bound = want->second;
    rename(name, bound);
  }
  names[result] = bound;
}

/// An input, a weight, or a value that is returned twice needs a node that makes the output.
OnnxGraph GraphBuilder::finish() {
  Operation *terminator = func.getBody().front().getTerminator();
  llvm::StringSet<> made;
  for (const TensorInfo &info : graph.values)
    made.insert(info.name);
  firstNode = graph.nodes.size();
  for (auto [output, value] : llvm::zip_equal(graph.outputs, terminator->getOperands())) {
    if (!made.contains(output.name))
      graph.nodes.push_back({"Identity", "", output.name, {names[value]}, {output.name}, {}});
  }
  // What is an output says its type there.
  llvm::StringSet<> outputs;
  for (const TensorInfo &output : graph.outputs)
    outputs.insert(output.name);
  llvm::erase_if(graph.values, [&](const TensorInfo &info) { return outputs.contains(info.name); });
  return std::move(graph);
}

void OnnxGraph::walk(llvm::function_ref<void(const Node &)> visit) const {
  for (const Node &node : nodes) {
    visit(node);
    for (const NodeAttribute &attribute : node.attributes)
      if (const auto *body = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value))
        (*body)->walk(visit);
  }
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Ranks are what they are around it.
void GraphBuilder::beginBody() {
  OnnxGraph inner;
  inner.mesh = graph.mesh;
  inner.pipelineAxis = graph.pipelineAxis;
  inner.pipelineRank = graph.pipelineRank;
  around.push_back({std::move(graph), firstNode, firstValue, base, nodeName});
  graph = std::move(inner);
  firstNode = firstValue = 0;
}

std::string GraphBuilder::bodyInput(StringRef name, RankedTensorType type, Value value) {
  std::string unique = makeUnique((base + "/" + name).str());
  types[unique] = getStoredType(type);
  graph.inputs.push_back({unique, types[unique]});
  if (value)
    names[value] = unique;
  return unique;
}

std::shared_ptr<const OnnxGraph> GraphBuilder::endBody(ArrayRef<std::string> outputs) {
  llvm::StringSet<> made;
  for (const TensorInfo &info : graph.values)
    made.insert(info.name);
  firstNode = graph.nodes.size();
  for (const std::string &output : outputs) {
    // Each once: one value may be carried twice.
    std::string name = made.erase(output) ? output : unary("Identity", output);
    made.erase(name);
    graph.outputs.push_back({name, types[name]});
    llvm::erase_if(graph.values, [&](const TensorInfo &info) { return info.name == name; });
  }
  auto body = std::make_shared<OnnxGraph>(std::move(graph));
  Around &outer = around.back();
  graph = std::move(outer.graph);
  firstNode = outer.firstNode;
  firstValue = outer.firstValue;
  base = outer.base;
  nodeName = outer.nodeName;
  around.pop_back();
  return body;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Names GraphBuilder::nodes(StringRef opType, Names inputs, ArrayRef<RankedTensorType> results,
                          std::vector<NodeAttribute> attributes, StringRef domain) {
  Node node{opType.str(), domain.str(), "", std::move(inputs), {}, std::move(attributes)};
  for (RankedTensorType type : results) {
    std::string name = makeUnique((base + "/" + opType).str());
    types[name] = getStoredType(type);
    graph.values.push_back({name, types[name]});
    node.outputs.push_back(name);
  }
  // Runtimes want each name once, also of the nodes that one of the model has become.
  StringRef own = node.outputs.empty() ? StringRef(base) : StringRef(node.outputs.front());
  StringRef annotation = nodeName.empty() ? own : StringRef(nodeName);
  node.name = annotation.str();
  if (!nodeNames.insert(node.name).second) {
    std::string longer = (annotation + "/" + opType).str();
    unsigned &number = nodeNumbers.try_emplace(longer, 1).first->second;
    do
      node.name = ++number > 2 ? longer + "_" + std::to_string(number) : longer;
    while (!nodeNames.insert(node.name).second);
  }
  Names outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  return outputs;
}

std::string GraphBuilder::node(StringRef opType, Names inputs, RankedTensorType type,
                               std::vector<NodeAttribute> attributes, StringRef domain) {
  return nodes(opType, std::move(inputs), {type}, std::move(attributes), domain).front();
}

std::string GraphBuilder::unary(StringRef opType, const std::string &x) { return node(opType, {x}, typeOf(x)); }

/// The type of operands that broadcast together.
static RankedTensorType broadcast(RankedTensorType x, RankedTensorType y, Type elementType) {
  auto shape = nn::getBroadcastShape({x.getShape(), y.getShape()});
  assert(shape && "operands that do not broadcast");
  return RankedTensorType::get(*shape, elementType);
}

std::string GraphBuilder::binary(StringRef opType, const std::string &x, const std::string &y) {
  return node(opType, {x, y}, broadcast(typeOf(x), typeOf(y), typeOf(x).getElementType()));
}

std::string GraphBuilder::compare(StringRef opType, const std::string &x, const std::string &y) {
  Type boolean = IntegerType::get(func.getContext(), 1);
  return node(opType, {x, y}, broadcast(typeOf(x), typeOf(y), boolean));
}

/// Runtimes have no Where for bools: there it is `c x + (not c) y`.
std::string GraphBuilder::where(const std::string &condition, const std::string &x, const std::string &y) {
  if (typeOf(x).getElementType().isInteger(1))
    return compare("Or", compare("And", condition, x), compare("And", unary("Not", condition), y));
  RankedTensorType type = broadcast(typeOf(x), typeOf(y), typeOf(x).getElementType());
  return node("Where", {condition, x, y}, broadcast(typeOf(condition), type, type.getElementType()));
}

std::string GraphBuilder::cast(const std::string &x, Type elementType) {
  RankedTensorType type = typeOf(x);
  if (type.getElementType() == elementType)
    return x;
  return node("Cast", {x}, type.clone(elementType), {{"to", *getDataType(elementType)}});
}

std::string GraphBuilder::reshape(const std::string &x, ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(x);
  if (type.getShape() == shape)
    return x;
  // A 0 would stand for the operand's extent.
  std::vector<NodeAttribute> attributes;
  if (llvm::is_contained(shape, 0))
    attributes.emplace_back("allowzero", 1);
  return node("Reshape", {x, ints(shape)}, type.clone(shape), std::move(attributes));
}

std::string GraphBuilder::transpose(const std::string &x, ArrayRef<int64_t> permutation) {
  RankedTensorType type = typeOf(x);
  SmallVector<int64_t> shape;
  bool isSame = true;
  for (auto [dim, from] : llvm::enumerate(permutation)) {
    shape.push_back(type.getDimSize(from));
    isSame &= int64_t(dim) == from;
  }
  return isSame ? x : node("Transpose", {x}, type.clone(shape), {{"perm", permutation}});
}

std::string GraphBuilder::expand(const std::string &x, ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(x);
  return type.getShape() == shape ? x : node("Expand", {x, ints(shape)}, type.clone(shape));
}

/// Over no dims ONNX would reduce all of them.
std::string GraphBuilder::reduce(StringRef opType, const std::string &x, ArrayRef<int64_t> dims, bool keepDims) {
  RankedTensorType type = typeOf(x);
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    bool isReduced = llvm::is_contained(dims, int64_t(dim));
    if (!isReduced || keepDims)
      shape.push_back(isReduced ? 1 : extent);
  }
  return node(opType, {x, ints(dims)}, type.clone(shape), {{"keepdims", keepDims}, {"noop_with_empty_axes", 1}});
}

std::string GraphBuilder::slice(const std::string &x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> steps) {
  RankedTensorType type = typeOf(x);
  SmallVector<int64_t> first, ends, axes, strides;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (starts[dim] == 0 && steps[dim] == 1 && sizes[dim] == type.getDimSize(dim))
      continue;
    int64_t end = starts[dim] + (sizes[dim] - 1) * steps[dim] + (steps[dim] > 0 ? 1 : -1);
    // Nothing is taken from a place on; -1 as an end would be the last position.
    end = sizes[dim] == 0 ? starts[dim] : end < 0 ? std::numeric_limits<int64_t>::min() : end;
    first.push_back(starts[dim]);
    ends.push_back(end);
    axes.push_back(dim);
    strides.push_back(steps[dim]);
  }
  if (axes.empty())
    return x;
  return node("Slice", {x, ints(first), ints(ends), ints(axes), ints(strides)}, type.clone(sizes));
}

//===----------------------------------------------------------------------===//
// Initializers
//===----------------------------------------------------------------------===//

/// `key` says all that an initializer is.
std::string GraphBuilder::add(std::string key, Initializer initializer) {
  auto [entry, isNew] = known.try_emplace(key);
  if (!isNew)
    return entry->second;
  initializer.name = makeUnique(initializer.name);
  initializer.type = getStoredType(initializer.type);
  types[initializer.name] = initializer.type;
  entry->second = initializer.name;
  (around.empty() ? graph : around.front().graph).initializers.push_back(std::move(initializer));
  return entry->second;
}

/// A constant is called after its op; small ones of the writer's own by what they hold.
std::string GraphBuilder::constant(ElementsAttr value) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  FailureOr<reference::Tensor> tensor = reference::Tensor::fromAttr(value);
  assert(succeeded(tensor) && "elements were looked at before");
  std::string bytes = encodeElements(*tensor), key = "constant ";
  llvm::raw_string_ostream(key) << type << ' ' << bytes;
  return add(std::move(key), {base, type, std::move(bytes)});
}

std::string GraphBuilder::ints(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, IntegerType::get(func.getContext(), 64));
  std::string name = "ints[";
  llvm::raw_string_ostream os(name);
  llvm::interleave(values, os, ",");
  os << ']';
  std::string bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int64_t));
  return add(name, {name, type, std::move(bytes)});
}

std::string GraphBuilder::number(int64_t value) {
  std::string bytes(reinterpret_cast<const char *>(&value), sizeof(value)), name = "int:" + std::to_string(value);
  return add(name, {name, RankedTensorType::get({}, IntegerType::get(func.getContext(), 64)), std::move(bytes)});
}

std::string GraphBuilder::scalar(double value, Type elementType) {
  return splat(value, RankedTensorType::get({}, elementType));
}

std::string GraphBuilder::splat(double value, RankedTensorType type) {
  Builder builder(func.getContext());
  Type element = type.getElementType();
  Attribute one =
      isa<FloatType>(element)
          ? Attribute(builder.getFloatAttr(element, value))
          : Attribute(IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), uint64_t(int64_t(value)),
                                                      /*isSigned=*/true, /*implicitTrunc=*/true)));
  FailureOr<reference::Tensor> tensor = reference::Tensor::fromAttr(DenseElementsAttr::get(getStoredType(type), one));
  assert(succeeded(tensor) && "a splat too large for memory");
  // Doubles that are called alike may differ.
  std::string name, bytes = encodeElements(*tensor);
  llvm::raw_string_ostream(name) << llvm::format("%.9g", value) << ':' << type;
  std::string key = "splat " + name + ' ' + bytes;
  return add(std::move(key), {name, type, std::move(bytes)});
}

std::string GraphBuilder::ofPlace(StringRef key, RankedTensorType type, Initializer::OfPlace value) {
  return add(key.str(), {key.str(), type, std::move(value)});
}

/// A part of a parameter is called after its box.
std::string GraphBuilder::load(nn::LoadOp op) {
  std::string name = op.getParam().str(), key = "load ";
  if (auto starts = op.getStarts()) {
    llvm::raw_string_ostream os(name);
    os << '[';
    llvm::interleave(
        llvm::zip_equal(*starts, *op.getSizes()), os,
        [&](auto box) { os << std::get<0>(box) << ':' << std::get<0>(box) + std::get<1>(box); }, ",");
    os << ']';
  }
  llvm::raw_string_ostream(key) << name << ' ' << op.getShardingAttr();
  // The parameter's own name was kept for the first that loads all of it.
  if (!op.isPart() && kept.erase(name))
    taken.erase(name);
  return add(std::move(key), {name, llvm::cast<RankedTensorType>(op.getType()), op});
}
