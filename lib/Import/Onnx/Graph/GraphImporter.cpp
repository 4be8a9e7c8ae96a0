//===- GraphImporter.cpp - graphs and scopes ------------------------------===//
//
// A name is looked up from the innermost scope outwards and found as a value, as an initializer that becomes a value
// when it is first used (weights that nothing uses cost nothing), or poisoned: defined by a node that failed, where all
// errors are wanted and follow-ups would only repeat the first.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "../PackedTensor.h"
#include "Limits.h"
#include "OnnxFunctions.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Import/Onnx/ModulePaths.h"
#include "cleave/Support/Beside.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

/// How many nodes calls may add to those that the file has.
constexpr int64_t kMaxInlinedNodes = 250'000;
/// Initializers up to these sizes are part of the program, others are parameters.
constexpr int64_t kMaxConstant = 16;
constexpr int64_t kMaxIntConstant = 4096;

Type cleave::onnx::convertElementType(MLIRContext *context, int32_t dataType) {
  Builder b(context);
  auto isUnsigned = [&](unsigned width) { return b.getIntegerType(width, /*isSigned=*/false); };
  switch (dataType) {
  case FLOAT:
    return b.getF32Type();
  case FLOAT16:
    return b.getF16Type();
  case BFLOAT16:
    return b.getBF16Type();
  case DOUBLE:
    return b.getF64Type();
  case INT8:
    return b.getI8Type();
  case INT16:
    return b.getI16Type();
  case INT32:
    return b.getI32Type();
  case INT64:
    return b.getI64Type();
  case UINT8:
    return isUnsigned(8);
  case UINT16:
    return isUnsigned(16);
  case UINT32:
    return isUnsigned(32);
  case UINT64:
    return isUnsigned(64);
  case BOOL:
    return b.getI1Type();
  case INT4:
    return b.getIntegerType(4);
  case UINT4:
    return isUnsigned(4);
  case INT2:
    return b.getIntegerType(2);
  case UINT2:
    return isUnsigned(2);
  case FLOAT8E4M3FN:
    return b.getType<Float8E4M3FNType>();
  case FLOAT8E4M3FNUZ:
    return b.getType<Float8E4M3FNUZType>();
  case FLOAT8E5M2:
    return b.getType<Float8E5M2Type>();
  case FLOAT8E5M2FNUZ:
    return b.getType<Float8E5M2FNUZType>();
  case FLOAT8E8M0:
    return b.getType<Float8E8M0FNUType>();
  case FLOAT4E2M1:
    return b.getType<Float4E2M1FNType>();
  default:
    return {};
  }
}

GraphImporter::GraphImporter(MLIRContext *context, ModelFile &file, const ImportOptions &options)
    : context(context), file(file), options(options), reader(file),
      folder(options.foldBudget, [this](StringRef symbol) { return readParam(symbol); }), builder(context) {}

std::string cleave::onnx::printable(const Twine &message) {
  std::string text = message.str();
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

InFlightDiagnostic GraphImporter::error(const Twine &message, LocationAttr place) {
  hasErrors = true;
  Location model = NameLoc::get(StringAttr::get(context, file.file->getPath()));
  return emitError(place ? Location(place) : model, printable(message));
}

InFlightDiagnostic GraphImporter::error(const NodeProto &node, const CallFrame &frame, const Twine &message) {
  InFlightDiagnostic diagnostic = error(describe(node, frame) + ": " + message);
  for (const CallFrame *at = &frame; at->caller; at = at->caller)
    diagnostic.attachNote() << printable("in the body of " + describe(*at->call, *at->caller));
  return diagnostic;
}

/// With all that users may find it by in other tools; a node need not have a name, but has outputs.
std::string GraphImporter::describe(const NodeProto &node, const CallFrame &frame) const {
  std::string name = node.name.empty() ? "" : quote((frame.prefix + node.name).str()) + " ";
  std::string domain = node.domain.empty() ? "ai.onnx" : node.domain.str();
  std::optional<int64_t> opset = getOpset(node.domain, frame);
  std::string output = node.output.empty() ? "" : ", output " + quote(node.output.front());
  return "node " + name + "(" + node.opType.str() + ", " + domain + (opset ? " " + std::to_string(*opset) : "") +
         output + ")";
}

std::optional<int64_t> GraphImporter::getOpset(StringRef domain, const CallFrame &frame) const {
  auto it = frame.opsets.find(domain == "ai.onnx" ? "" : domain);
  return it == frame.opsets.end() ? std::nullopt : std::optional(it->second);
}

//===----------------------------------------------------------------------===//
// Tensors of the model
//===----------------------------------------------------------------------===//

/// A tensor in the body of a function is met in every call.
template <typename Proto> llvm::Expected<Value> GraphImporter::materializeAny(const Proto &tensor, StringRef name) {
  if (Value known = materialized.lookup(&tensor))
    return known;
  llvm::Expected<TensorData> data = reader.read(tensor);
  llvm::Expected<Value> value = data ? makeValue(std::move(*data), name) : data.takeError();
  if (value)
    materialized[&tensor] = *value;
  return value;
}

template llvm::Expected<Value> GraphImporter::materializeAny(const TensorProto &, StringRef);
template llvm::Expected<Value> GraphImporter::materializeAny(const SparseTensorProto &, StringRef);

/// True if one of so many words, less its sign, is `from` or above. Words of a width of its own: of a large model this looks at most of what
/// is read of weights.
template <typename Word> static bool anyAtLeast(const char *bytes, size_t count, uint64_t from) {
  constexpr Word kNoSign = std::numeric_limits<Word>::max() >> 1;
  bool isFound = false;
  for (size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    isFound |= (word & kNoSign) >= static_cast<Word>(from);
  }
  return isFound;
}

/// Whether it holds infinities, or what stands for them: a mask that is added to scores. The first elements tell. Without their signs floats
/// are in the order of their bits, infinities and what is no number last.
static bool holdsInfinities(const TensorData &data, FloatType type) {
  size_t width = type.getWidth() / 8, count = std::min<size_t>(width ? data.bytes.size() / width : 0, 1 << 16);
  if (width < 2 || width > 8)
    return false;
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  APFloat least(std::min(1e30, 0.9 * APFloat::getLargest(semantics).convertToDouble()));
  bool isRounded;
  least.convert(semantics, APFloat::rmNearestTiesToEven, &isRounded);
  uint64_t from = least.bitcastToAPInt().getZExtValue();
  const char *bytes = data.bytes.data();
  return width == 2   ? anyAtLeast<uint16_t>(bytes, count, from)
         : width == 4 ? anyAtLeast<uint32_t>(bytes, count, from)
                      : anyAtLeast<uint64_t>(bytes, count, from);
}

llvm::Expected<Value> GraphImporter::makeValue(TensorData data, StringRef name, bool isWeight) {
  // The bodies of loops are no place for what others use as well.
  OpBuilder::InsertionGuard guard(builder);
  if (builder.getInsertionBlock() != &func.getBody().front())
    builder.setInsertionPointToEnd(&func.getBody().front());
  if (data.shape.size() > kMostDims)
    return makeError("the tensor has {0} dims, at most {1} are supported", data.shape.size(), kMostDims);
  if (!isPossibleShape(data.shape))
    return makeError("the tensor is too large");
  auto type = RankedTensorType::get(data.shape, convertElementType(context, data.dataType));
  // Shapes are computed from wide integers; matrices of narrow ones are weights.
  bool isNarrow = type.getElementTypeBitWidth() <= 8 && !type.getElementType().isInteger(1) && type.getRank() > 1;
  int64_t limit = isWeight                                               ? -1
                  : isa<IntegerType>(type.getElementType()) && !isNarrow ? kMaxIntConstant
                  : options.keepsWeights && isa<FloatType>(type.getElementType())
                      ? int64_t(!options.singleWeights.contains(name))
                      : kMaxConstant;
  nn::NodeInfo info{"", "Initializer", {}, {}};
  ArrayRef<StringRef> names(name);
  if (!name.empty())
    info.results = names;
  if (type.getNumElements() <= limit) {
    Location loc = nn::makeNodeLoc(context, info);
    Value made = folder.makeConstant(builder, loc, toTensor(context, data));
    keepFromFolding(name, made);
    return made;
  }
  auto floats = dyn_cast<FloatType>(type.getElementType());
  bool isFixed = options.keepsWeights && floats && holdsInfinities(data, floats);
  int64_t perByte = countPerByte(data);
  if (perByte > 1)
    data = toBytes(std::move(data));
  // A plan that names the tensor speaks of its dims, which bytes have but for the size of the last one, or else not at all.
  bool isNamed = int64_t(data.shape.size()) == type.getRank();
  StringAttr attr = builder.getStringAttr(name);
  Location loc = NameLoc::get(attr);
  auto storedType = RankedTensorType::get(data.shape, convertElementType(context, data.dataType));
  StringAttr symbol =
      parameters.add(isNamed ? attr : builder.getStringAttr(name + ".bytes"), loc, storedType, std::move(data));
  Value made = nn::LoadOp::create(builder, loc, storedType, FlatSymbolRefAttr::get(symbol), DenseI64ArrayAttr(),
                                  DenseI64ArrayAttr(), Attribute());
  if (isFixed)
    made.getDefiningOp()->setDiscardableAttr(spmd::kFixedAttr, builder.getUnitAttr());
  if (isNamed)
    info.results = {};
  if (perByte > 1)
    made = unpack(builder, nn::makeNodeLoc(context, info), made, type, perByte);
  keepFromFolding(name, made);
  return made;
}

void GraphImporter::keepFromFolding(StringRef qualified, Value value) {
  bool isLeaf = value && differentiated.contains(qualified);
  if (isLeaf && isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()))
    folder.forget(value);
  else if (isLeaf || options.kept.contains(qualified))
    folder.hold(value);
}

/// Bodies name tensors of graphs around them.
void GraphImporter::noteDifferentiated() {
  SmallVector<const GraphProto *> stack = {&file.model.graph};
  while (!stack.empty())
    for (const NodeProto &node : stack.pop_back_val()->node)
      for (const AttributeProto &attr : node.attribute) {
        if (attr.g)
          stack.push_back(attr.g.get());
        if (node.opType == "Gradient" && node.domain == "ai.onnx.preview.training" &&
            (attr.name == "xs" || attr.name == "zs"))
          differentiated.insert_range(attr.strings);
      }
}

std::optional<Tensor> GraphImporter::readParam(StringRef symbol) {
  const TensorData *data = parameters.find(symbol);
  return data ? std::optional(toTensor(context, *data)) : std::nullopt;
}

/// Bound, not made: what nothing uses never becomes a value.
LogicalResult GraphImporter::bindInitializers(const GraphProto &graph, Scope &scope) {
  auto bind = [&](StringRef name, Binding binding) {
    if (!name.empty() && scope.bindings.try_emplace(name, binding).second)
      return success();
    return error("initializer " + quote(name) + (name.empty() ? " has no name" : " is there twice")), failure();
  };
  for (const TensorProto &tensor : graph.initializer)
    if (failed(bind(tensor.name, Binding{{}, &tensor})))
      return failure();
  for (const SparseTensorProto &tensor : graph.sparseInitializer)
    if (failed(bind(tensor.values.name, Binding{{}, nullptr, &tensor})))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::pair<Binding *, const CallFrame *> GraphImporter::find(StringRef name, const Scope &scope) {
  for (const Scope *at = &scope; at; at = at->parent) {
    auto it = at->bindings.find(name);
    // Enclosing scopes are changed only in that an initializer becomes a value.
    if (it != at->bindings.end())
      return {const_cast<Binding *>(&it->second), at->frame};
  }
  return {nullptr, nullptr};
}

Value GraphImporter::findTensor(NodeContext &node, StringRef name) {
  auto [binding, frame] = find(name, node.getScope());
  if (!node.check(binding && !binding->isPoisoned, "names tensor " + quote(name) + ", which nothing before it defines"))
    return {};
  FailureOr<Bound> bound = getBound(name, *binding, *frame);
  if (failed(bound))
    node.fail();
  else if (node.check(bound->value != nullptr, "names " + quote(name) + ", which is not a tensor"))
    return bound->value;
  return {};
}

FailureOr<Bound> GraphImporter::getBound(StringRef name, Binding &binding, const CallFrame &frame) {
  if (!binding.bound && binding.isInitializer()) {
    std::string qualified = (frame.prefix + name).str();
    llvm::Expected<Value> value = binding.given         ? makeValue(*binding.given, qualified, /*isWeight=*/true)
                                  : binding.initializer ? materialize(*binding.initializer, qualified)
                                                        : materialize(*binding.sparse, qualified);
    if (!value) {
      error("initializer " + quote(name) + ": " + llvm::toString(value.takeError()));
      binding = Binding{{}, nullptr, nullptr, true};
      return failure();
    }
    binding.bound.value = *value;
  }
  return binding.bound;
}

/// The first node of the scope, or of one around it, that has the output.
static const NodeProto *findDefinition(const Scope &scope, StringRef name) {
  for (const Scope *at = &scope; at; at = at->parent)
    for (const NodeProto &node : at->nodes)
      if (llvm::is_contained(node.output, name))
        return &node;
  return nullptr;
}

void GraphImporter::noteDefinition(InFlightDiagnostic &error, StringRef name, const Scope &scope) {
  if (const NodeProto *node = findDefinition(scope, name))
    error.attachNote() << printable("it is defined by " + describe(*node, *scope.frame));
}

FailureOr<SmallVector<Bound, 4>> GraphImporter::getOperands(const NodeProto &node, Scope &scope) {
  SmallVector<Bound, 4> operands;
  for (StringRef name : node.input) {
    if (name.empty()) {
      operands.push_back({});
      continue;
    }
    auto [binding, frame] = find(name, scope);
    if (!binding) {
      error(node, *scope.frame, "uses tensor " + quote(name) + ", which nothing defines");
      return failure();
    }
    if (binding->isPoisoned)
      return failure();
    FailureOr<Bound> bound = getBound(name, *binding, *frame);
    if (failed(bound))
      return failure();
    operands.push_back(*bound);
  }
  return operands;
}

/// ONNX graphs are in single assignment: a second definition is an error, and the note says where the first one is.
LogicalResult GraphImporter::define(NodeContext &at, Scope &scope) {
  const NodeProto &node = at.getNode();
  locate(at, *scope.frame);
  for (auto [index, name] : llvm::enumerate(node.output)) {
    if (name.empty())
      continue;
    Bound bound = at.getBoundResult(index);
    StringRef qualified = qualify(name, *scope.frame);
    keepFromFolding(qualified, bound.value);
    if (!scope.bindings.try_emplace(name, Binding{bound}).second) {
      InFlightDiagnostic diagnostic = error(node, *scope.frame, "defines tensor " + quote(name) + " a second time");
      if (findDefinition(scope, name) != &node)
        noteDefinition(diagnostic, name, scope);
      else if (scope.bindings[name].isInitializer())
        diagnostic.attachNote() << "it is an initializer";
      else if (llvm::count(node.output, name) == 1)
        diagnostic.attachNote() << "it is an input";
      return failure();
    }
    Operation *op = bound.value ? bound.value.getDefiningOp() : nullptr;
    if (bound.value && (!op || !llvm::is_contained(at.getCreated(), op)))
      names[bound.value].push_back(qualified);
  }
  return success();
}

/// Nodes that use these outputs fail without a word, so that each cause is told once.
void GraphImporter::poison(const NodeProto &node, Scope &scope) {
  for (StringRef name : node.output)
    scope.bindings.try_emplace(name, Binding{{}, nullptr, nullptr, true});
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Ops of graphs that onnxruntime has made for training: gradients of other ops, steps of optimizers, and what goes between them.
static bool isTrainingOp(StringRef opType) {
  static constexpr StringLiteral words[] = {"Grad", "Optimizer", "Accumulator", "Adasum", "YieldOp", "Internal"};
  static constexpr StringLiteral names[] = {
      "BiasDropout",  "BitmaskDropout", "BitmaskBiasDropout", "MixedPrecisionScale",
      "PassThrough",  "RecordEvent",    "WaitEvent",          "ScaledSum",
      "SummaryMerge", "ATen",           "PythonOp",           "ShrunkenGather",
      "Group"};
  return llvm::any_of(words, [&](StringRef word) { return opType.contains(word); }) ||
         llvm::is_contained(names, opType);
}

/// Why an op is refused that others know and we do not.
static StringRef explainUnsupported(StringRef domain, StringRef opType) {
  if (domain == "com.microsoft.nchwc")
    return ": its channels lie in blocks of one machine's vectors; save the model at level 2 of the optimizer";
  if (domain == "com.microsoft" && opType.starts_with("Packed"))
    return ": tokens of samples without padding between them have no batch dim; save the model without packing";
  if (domain == "com.microsoft" && isTrainingOp(opType))
    return ": it is of a graph that onnxruntime made for training; --artifacts takes the folder that it is in, and "
           "takes gradients anew; or give the model that it was made of";
  if (domain == "com.microsoft")
    return ": it is onnxruntime's own; save the model without its graph optimizer";
  return llvm::StringSwitch<StringRef>(opType)
      .Case("ImageDecoder", ": images in files are not supported")
      .StartsWith("String", ": strings are not supported")
      .Default("");
}

/// The model's own functions come first, then what we know, then what ONNX defines by a function.
FailureOr<GraphImporter::Callee> GraphImporter::findCallee(const NodeProto &node, const CallFrame &frame) {
  StringRef domain = node.domain == "ai.onnx" ? StringRef() : node.domain;
  std::optional<int64_t> opset = getOpset(domain, frame);
  if (!opset) {
    error(node, frame, "the model imports no opset of domain '" + domain + "'");
    return failure();
  }
  Callee callee{*opset, findOwnFunction(node), nullptr};
  if (!callee.function)
    callee.importer = Registry::get().find(domain, node.opType, *opset);
  if (!callee.function && !callee.importer)
    callee.function = findOnnxFunction(domain, node.opType, *opset);
  if (callee.function || callee.importer)
    return callee;
  error(node, frame, "this op is not supported" + explainUnsupported(domain, node.opType));
  return failure();
}

LogicalResult GraphImporter::importNode(const NodeProto &node, Scope &scope) {
  const CallFrame &frame = *scope.frame;
  auto refuse = [&](const Twine &why) {
    error(node, frame, why);
    return failure();
  };
  if (frame.function && ++inlinedNodes > kMaxInlinedNodes)
    return refuse("functions expand to more than " + Twine(kMaxInlinedNodes) + " nodes");
  FailureOr<Callee> callee = findCallee(node, frame);
  if (failed(callee))
    return failure();
  FailureOr<SmallVector<Bound, 4>> operands = getOperands(node, scope);
  if (failed(operands))
    return failure();
  NodeContext at(*this, scope, node, callee->opset, *operands);
  if (frame.isRepeated && !spendNodes(at, 1))
    return failure();
  if (callee->function) {
    inlineFunction(at, *callee->function);
    return success(!at.failed() && succeeded(define(at, scope)));
  }
  const Arity &arity = callee->importer->arity;
  if (operands->size() > arity.maxOperands)
    return refuse("has " + Twine(operands->size()) + " operands, expected at most " + Twine(arity.maxOperands));
  for (unsigned i = 0; i < arity.minOperands; ++i)
    if (!at.bound(i))
      return refuse("operand " + Twine(i) + " is missing");
  for (unsigned i = 0; i < at.getNumOperands() && !arity.takesLists; ++i)
    if (const ValueList *list = at.list(i))
      return refuse("operand " + Twine(i) + " (" + quote(at.operandName(i)) +
                    (list->isNone ? ") is an optional value that is absent" : ") is a sequence"));
  if (node.output.size() > arity.maxResults)
    return refuse("has " + Twine(node.output.size()) + " outputs, expected at most " + Twine(arity.maxResults));
  PaddedRows::Step step = rows.prepare(at);
  if (!at.failed())
    callee->importer->import(at);
  if (!at.failed())
    at.finish();
  if (!at.failed())
    rows.follow(at, step);
  return success(!at.failed() && succeeded(define(at, scope)));
}

LogicalResult GraphImporter::importNodes(Scope &scope) {
  FailureOr<std::vector<unsigned>> order = orderNodes(scope);
  if (failed(order))
    return failure();
  bool isFine = true;
  for (unsigned number : *order) {
    const NodeProto &node = scope.nodes[number];
    if (succeeded(importNode(node, scope)))
      continue;
    isFine = false;
    if (!options.collectAllErrors)
      break;
    poison(node, scope);
  }
  return success(isFine);
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// Drops what only folded ops used. One backward pass: users stand after what they use.
void GraphImporter::keepUsed() {
  llvm::DenseSet<StringAttr> used = beginnings;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front()))) {
    if (op.use_empty() && op.getNumResults())
      op.erase();
    else if (auto load = dyn_cast<nn::LoadOp>(op))
      used.insert(load.getParamAttr().getAttr());
  }
  parameters.create(func, used, findReadingModules(file.model.graph));
}

OwningOpRef<ModuleOp> GraphImporter::import() {
  CallFrame frame;
  for (const OperatorSetIdProto &opset : file.model.opsetImport) {
    StringRef domain = opset.domain == "ai.onnx" ? StringRef() : opset.domain;
    if (domain.empty() && (opset.version < 1 || opset.version > 27))
      return error("opset " + Twine(opset.version) + " of ai.onnx is not supported, only 1 to 27"), nullptr;
    if (!frame.opsets.try_emplace(domain, opset.version).second)
      return error("the opset of domain '" + domain + "' is imported twice"), nullptr;
  }
  const GraphProto &graph = file.model.graph;
  Location loc = NameLoc::get(builder.getStringAttr(file.file->getPath()));
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  func = func::FuncOp::create(builder, loc, "main", builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(func.addEntryBlock());
  Scope scope;
  scope.frame = &frame;
  scope.nodes = graph.node;
  // Most nodes have one output. A table that grew would be looked through again each time.
  scope.bindings.reserve(graph.node.size() + graph.initializer.size() + graph.input.size());
  noteDifferentiated();
  if (failed(bindInitializers(graph, scope)) || failed(takeWeights(scope)) || failed(makeArguments(scope)) ||
      failed(makeStates(scope))) {
    // Without shapes nothing can be imported, but what is not supported at all is known.
    if (options.collectAllErrors)
      for (const NodeProto &node : graph.node)
        (void)findCallee(node, frame);
    return nullptr;
  }
  bool isFine = succeeded(importNodes(scope));
  if (!isFine || failed(options.step ? makeStepResults(scope) : makeResults(scope)) || hasErrors)
    return nullptr;
  noteUsedInputs();
  checkValueInfo(scope);
  addNames();
  keepUsed();
  {
    llvm::StringSet<> present;
    Beside finding([&] {
      if (!options.kept.empty())
        present = findKept();
    });
    spmd::storeNodes(func);
    finding.wait();
    noteUnused(scope, std::move(present));
  }
  setPhase(*module, Phase::Imported);
  return std::move(module);
}
