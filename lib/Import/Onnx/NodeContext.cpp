//===- NodeContext.cpp - what an import function sees of its node ---------===//
//
// Every getter notes which attribute was asked for, so that in the end one that nobody asked for can be reported. Ops
// are inferred before they are made and verified before they are kept, with the diagnostics of both caught and said
// again as an error of the node: a user knows nodes, not ops.
//
//===----------------------------------------------------------------------===//
#include "NodeContext.h"

#include "Graph/GraphImporter.h"
#include "Graph/Limits.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Support/Status.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

/// Beyond these a tensor is a mistake or an attack: in general, and of a result made out of constants alone.
constexpr int64_t kMaxTensorElements = int64_t(1) << 40;
constexpr int64_t kMaxMadeElements = int64_t(1) << 36;

/// Absent operands at the end may be written as empty names or left out: both are left out here.
NodeContext::NodeContext(GraphImporter &importer, Scope &scope, const NodeProto &node, int64_t opset,
                         ArrayRef<Bound> given)
    : nn::Composer(importer.getBuilder(), UnknownLoc::get(importer.getContext())), importer(importer), scope(scope),
      node(node), opset(opset), results(node.output.size()), resultLists(node.output.size()) {
  while (!given.empty() && !given.back())
    given = given.drop_back();
  for (const Bound &operand : given) {
    operands.push_back(operand.value);
    lists.push_back(operand.list);
  }
}

StringRef NodeContext::getOpType() const { return node.opType; }
MLIRContext *NodeContext::getContext() const { return importer.getContext(); }

void NodeContext::error(const Twine &message) {
  if (!hasFailed)
    importer.error(node, *scope.frame, message);
  hasFailed = true;
}

bool NodeContext::check(bool holds, const Twine &message) {
  if (!holds)
    error(message);
  return holds;
}

bool NodeContext::require(ArrayRef<unsigned> indices) {
  for (unsigned index : indices)
    if (!check(hasOperand(index), "operand " + Twine(index) + " is missing"))
      return false;
  return !failed();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

StringRef NodeContext::operandName(unsigned index) const {
  return index < node.input.size() ? node.input[index] : StringRef();
}

ArrayRef<Value> NodeContext::sequence(unsigned index) {
  const ValueList *found = list(index);
  if (!check(found && !found->isNone, "operand " + Twine(index) + " is not a sequence"))
    return {};
  return found->items;
}

std::optional<Tensor> NodeContext::tryConstantOf(Value value) {
  return value ? importer.getFolder().compute(value) : std::nullopt;
}
std::optional<Tensor> NodeContext::tryConstant(unsigned index) { return tryConstantOf(operand(index)); }

/// Most often a shape is computed from an input, whose value the user can give.
std::string NodeContext::explainUnknown() {
  BlockArgument input = importer.getFolder().getMissingInput();
  if (!input)
    return "";
  if (!isa_and_present<func::FuncOp>(input.getOwner()->getParentOp()))
    return "; it depends on what a loop carries";
  return "; it depends on the value of input " + quote(nn::getTensorNames(input).front()) + ": give it with --inputs";
}

std::optional<Tensor> NodeContext::constant(unsigned index) {
  if (hasFailed || !check(hasOperand(index), "operand " + Twine(index) + " is missing"))
    return std::nullopt;
  std::optional<Tensor> value = tryConstant(index);
  if (!value)
    value = importer.getPaddedRows().computeAtMost(*this, index);
  check(value.has_value(),
        "operand " + Twine(index) + " (" + quote(operandName(index)) + ") must be known at import" + explainUnknown());
  return value;
}

/// An integer or bool element as a number.
static int64_t readInt(const Tensor &tensor, int64_t index) {
  auto type = llvm::cast<IntegerType>(tensor.getElementType());
  unsigned bytes = reference::getElementBytes(type);
  uint64_t raw = 0;
  memcpy(&raw, tensor.getBytes().data() + index * bytes, bytes);
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  // The sign is brought to the top bit and back.
  unsigned shift = 64 - 8 * bytes;
  return isUnsigned ? int64_t(raw) : int64_t(raw << shift) >> shift;
}

Ints NodeContext::constantInts(unsigned index) {
  std::optional<Tensor> value = constant(index);
  if (!value || !check(isa<IntegerType>(value->getElementType()), "operand " + Twine(index) + " must have integers") ||
      !check(value->getShape().size() <= 1, "operand " + Twine(index) + " must be a vector"))
    return {};
  Ints ints;
  for (int64_t i = 0, n = value->getNumElements(); i < n; ++i)
    ints.push_back(readInt(*value, i));
  return ints;
}

int64_t NodeContext::constantInt(unsigned index) {
  Ints ints = constantInts(index);
  if (hasFailed || !check(ints.size() == 1, "operand " + Twine(index) + " must have one element"))
    return 0;
  return ints.front();
}

SmallVector<double> NodeContext::constantFloats(unsigned index) {
  std::optional<Tensor> value = constant(index);
  if (!value || !check(isa<FloatType>(value->getElementType()), "operand " + Twine(index) + " must have floats"))
    return {};
  SmallVector<double> numbers;
  for (const APFloat &number : value->toAttr().getValues<APFloat>())
    numbers.push_back(number.convertToDouble());
  return numbers;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// In the body of a function an attribute may stand for one of the call; what the call leaves out is missing here.
const AttributeProto *NodeContext::findAttr(StringRef name) {
  const AttributeProto *attr = node.findAttribute(name);
  if (!attr)
    return nullptr;
  asked.push_back(attr);
  if (attr->refAttrName.empty())
    return attr;
  auto it = scope.frame->attributes.find(attr->refAttrName);
  return it == scope.frame->attributes.end() ? nullptr : it->second;
}

bool NodeContext::hasAttr(StringRef name) { return findAttr(name) != nullptr; }

/// The attribute if it is there with that type. An error if it has another type, or is missing and has no default.
static const AttributeProto *getTyped(NodeContext &node, StringRef name, AttributeProto::Type type, StringRef typeName,
                                      bool isOptional) {
  const AttributeProto *attr = node.findAttr(name);
  if (!attr) {
    node.check(isOptional, "attribute '" + name + "' is missing");
    return nullptr;
  }
  return node.check(attr->type == type, "attribute '" + name + "' is not " + typeName) ? attr : nullptr;
}

int64_t NodeContext::intAttr(StringRef name, std::optional<int64_t> fallback) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Int, "an integer", fallback.has_value());
  return attr ? attr->i : fallback.value_or(0);
}

bool NodeContext::boolAttr(StringRef name, bool fallback) {
  int64_t value = intAttr(name, fallback);
  return check(value == 0 || value == 1, "attribute '" + name + "' is " + Twine(value) + ", expected 0 or 1") && value;
}

double NodeContext::floatAttr(StringRef name, std::optional<double> fallback) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Float, "a float", fallback.has_value());
  return attr ? double(attr->f) : fallback.value_or(0);
}

StringRef NodeContext::stringAttr(StringRef name, std::optional<StringRef> fallback) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::String, "a string", fallback.has_value());
  return attr ? attr->s : fallback.value_or("");
}

std::optional<Ints> NodeContext::intsAttr(StringRef name) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Ints, "a list of integers", true);
  return attr ? std::optional(Ints(attr->ints.begin(), attr->ints.end())) : std::nullopt;
}

std::optional<SmallVector<double>> NodeContext::floatsAttr(StringRef name) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Floats, "a list of floats", true);
  return attr ? std::optional(SmallVector<double>(attr->floats.begin(), attr->floats.end())) : std::nullopt;
}

std::optional<SmallVector<StringRef>> NodeContext::stringsAttr(StringRef name) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Strings, "a list of strings", true);
  return attr ? std::optional(SmallVector<StringRef>(attr->strings.begin(), attr->strings.end())) : std::nullopt;
}

Value NodeContext::tensorAttr(StringRef name, bool isOutput) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Tensor, "a tensor", false);
  if (hasFailed || !check(attr && attr->t, "attribute '" + name + "' has no tensor"))
    return {};
  StringRef tensor = isOutput && !node.output.empty() ? node.output.front() : "";
  return take(name, importer.materialize(*attr->t, tensor));
}

Value NodeContext::sparseAttr(StringRef name) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::SparseTensor, "a sparse tensor", false);
  if (hasFailed || !check(attr && attr->sparseTensor, "attribute '" + name + "' has no sparse tensor"))
    return {};
  return take(name, importer.materialize(*attr->sparseTensor, node.output.empty() ? "" : node.output.front()));
}

/// The value of an attribute, or an error of the node.
Value NodeContext::take(StringRef name, llvm::Expected<Value> value) {
  if (value)
    return *value;
  error("attribute '" + name + "': " + llvm::toString(value.takeError()));
  return {};
}

Type NodeContext::typeAttr(StringRef name, std::optional<int64_t> fallback) {
  int64_t number = intAttr(name, fallback);
  if (hasFailed)
    return {};
  // A number of more than 32 bits must not become a data type by being cut off.
  int32_t dataType = number == int32_t(number) ? int32_t(number) : -1;
  Type type = convertElementType(getContext(), dataType);
  check(type != nullptr, "attribute '" + name + "': " + getDataTypeName(dataType) + " is not supported");
  return type;
}

const GraphProto *NodeContext::graphAttr(StringRef name) {
  const AttributeProto *attr = getTyped(*this, name, AttributeProto::Graph, "a graph", false);
  return attr && check(attr->g != nullptr, "attribute '" + name + "' has no graph") ? attr->g.get() : nullptr;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

int64_t NodeContext::axis(int64_t axis, int64_t rank, StringRef what) {
  if (!check(axis >= -rank && axis < rank,
             what + " " + Twine(axis) + " is outside [" + Twine(-rank) + ", " + Twine(rank) + ")"))
    return 0;
  return axis < 0 ? axis + rank : axis;
}

Ints NodeContext::axes(Shape given, int64_t rank, StringRef what) {
  Ints sorted;
  for (int64_t one : given)
    sorted.push_back(axis(one, rank, what));
  if (hasFailed)
    return {};
  llvm::sort(sorted);
  return check(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), what + " repeat an axis") ? sorted
                                                                                                           : Ints();
}

/// A dim of 0 does not hide the others: types multiply extents in any order.
bool cleave::onnx::isPossibleShape(Shape shape) {
  if (shape.size() > kMostDims)
    return false;
  int64_t count = 1;
  for (int64_t extent : shape) {
    std::optional<int64_t> product = extent < 0 ? std::nullopt : llvm::checkedMul(count, std::max<int64_t>(extent, 1));
    if (!product || *product > kMaxTensorElements)
      return false;
    count = *product;
  }
  return true;
}

bool NodeContext::checkSize(Shape shape, Type elementType) {
  // Asked for every op: what is said is made only where something is wrong.
  if (shape.size() > kMostDims)
    return check(false,
                 "a tensor has " + Twine(shape.size()) + " dims, at most " + Twine(kMostDims) + " are supported");
  return isPossibleShape(shape) ||
         check(false, "a tensor of shape [" +
                          llvm::join(llvm::map_range(shape, [](int64_t n) { return std::to_string(n); }), ", ") +
                          "] is impossible or too large");
}

//===----------------------------------------------------------------------===//
// Making ops
//===----------------------------------------------------------------------===//

/// Runs `action`; where it fails, its diagnostic becomes the node's error.
template <typename Action> bool NodeContext::guarded(Action action) {
  std::string message;
  bool isFine;
  {
    ScopedDiagnosticHandler handler(getContext(), [&](mlir::Diagnostic &diagnostic) {
      if (message.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
        message = diagnostic.str();
      return success();
    });
    isFine = succeeded(action());
  }
  // "'nn.add' op operands ..." is about an op that the reader of the model has not seen.
  StringRef text = message.empty() ? StringRef("is not valid") : StringRef(message);
  if (text.starts_with("'nn."))
    text = text.split("' op ").second;
  return check(isFine, text);
}

/// Without its bodies: values in them are known to the folder, so that none may come to lie where they do.
void NodeContext::discard(Operation *op) {
  for (Region &body : op->getRegions()) {
    auto kept = std::make_unique<Region>();
    kept->takeBody(body);
    importer.keep(std::move(kept));
  }
  op->erase();
}

SmallVector<Value, 2> NodeContext::make(OperationState &state, InferFn infer) {
  if (!check(!llvm::is_contained(state.operands, Value()), "an operand is missing"))
    return {};
  if (infer) {
    state.types.clear();
    DictionaryAttr attributes = state.attributes.getDictionary(getContext());
    bool isInferred = guarded([&] {
      return infer(getContext(), state.location, state.operands, attributes, state.getRawProperties(), state.regions,
                   state.types);
    });
    if (!isInferred)
      return {};
  }
  // An op on constants alone is folded at once, so that its result takes memory now.
  bool isMade = llvm::all_of(state.operands, [&](Value v) { return importer.getFolder().getConstant(v).has_value(); });
  for (Type type : state.types) {
    auto tensor = llvm::cast<RankedTensorType>(type);
    if (!checkSize(tensor.getShape(), tensor.getElementType()) ||
        !check(!isMade || tensor.getNumElements() <= kMaxMadeElements, "makes too large a tensor out of constants"))
      return {};
  }
  Operation *op = builder.create(state);
  SmallVector<Tensor> folded;
  // Verified before it is folded: kernels trust what the verifier checks. All of `verify` but its walk of regions is one call.
  auto isLegal = [&] { return succeeded(op->getNumRegions() ? verify(op) : op->getName().verifyInvariants(op)); };
  if (!guarded([&] { return success(isLegal() && succeeded(importer.getFolder().tryFold(op, folded))); })) {
    discard(op);
    return {};
  }
  if (folded.empty()) {
    created.push_back(op);
    return SmallVector<Value, 2>(op->getResults());
  }
  discard(op);
  return llvm::map_to_vector<2>(folded, [&](Tensor &tensor) { return constant(tensor); });
}

Value NodeContext::constant(Tensor value) {
  Value result = importer.getFolder().makeConstant(builder, loc, std::move(value));
  created.push_back(result.getDefiningOp());
  return result;
}

Value NodeContext::scalar(Type type, double value) {
  if (hasFailed)
    return {};
  // NaN is not in the range either.
  if (!check(isa<FloatType>(type) || (value >= -0x1p63 && value < 0x1p63),
             Twine(std::to_string(value)) + " is not an integer"))
    return {};
  auto tensorType = RankedTensorType::get({}, type);
  Attribute number;
  if (auto floatType = dyn_cast<FloatType>(type))
    number = FloatAttr::get(floatType, value);
  else
    number = IntegerAttr::get(type, APInt(type.getIntOrFloatBitWidth(), uint64_t(int64_t(value)), false, true));
  return literal(DenseElementsAttr::get(tensorType, number));
}

Value NodeContext::literal(DenseElementsAttr elements) {
  if (hasFailed)
    return {};
  FailureOr<Tensor> tensor = Tensor::fromAttr(elements);
  return check(succeeded(tensor), "can't make a constant") ? constant(*tensor) : Value();
}

Value NodeContext::vector(Shape values) {
  Tensor tensor = Tensor::zeros(RankedTensorType::get(int64_t(values.size()), getBuilder().getI64Type()));
  llvm::copy(values, tensor.write<int64_t>().begin());
  return hasFailed ? Value() : constant(tensor);
}

/// Made in f64 and cast once, so that numbers are rounded once, whatever type they end in. A small table is folded there and then; a
/// cast of a large one is part of the program, and shards with what reads it.
Value NodeContext::table(Type type, Shape shape, ArrayRef<double> values) {
  if (hasFailed || !checkSize(shape, type))
    return {};
  if (type.isF32()) {
    Tensor tensor = Tensor::zeros(RankedTensorType::get(shape, type));
    llvm::transform(values, tensor.write<float>().begin(), [](double value) { return float(value); });
    return constant(tensor);
  }
  Tensor tensor = Tensor::zeros(RankedTensorType::get(shape, f64()));
  llvm::copy(values, tensor.write<double>().begin());
  return cast(constant(tensor), type);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

unsigned NodeContext::getNumResults() const { return results.size(); }

bool NodeContext::wantsResult(unsigned index) const {
  return index < node.output.size() && !node.output[index].empty();
}

void NodeContext::result(unsigned index, Bound bound) {
  if (index >= results.size())
    return;
  results[index] = bound.value;
  resultLists[index] = std::move(bound.list);
}

void NodeContext::result(unsigned index, SmallVector<Value> sequence) {
  result(index, Bound{{}, std::make_shared<ValueList>(ValueList{false, std::move(sequence)})});
}

/// An attribute that no import function asked for would be ignored without a word.
void NodeContext::finish() {
  for (const AttributeProto &attr : node.attribute)
    if (!llvm::is_contained(asked, &attr)) {
      bool isAgain = llvm::any_of(asked, [&](const AttributeProto *other) { return other->name == attr.name; });
      error("attribute " + quote(attr.name) + (isAgain ? " is given twice" : " is not known"));
    }
  for (unsigned i = 0; i < results.size(); ++i)
    if (wantsResult(i) && !getBoundResult(i))
      error("output " + Twine(i) + " (" + quote(node.output[i]) + ") is not supported");
}
