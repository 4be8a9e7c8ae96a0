//===- Contraction.cpp - everything that becomes nn.einsum ----------------===//
//
// There is one contraction, so all that an importer does is to write an equation. Batch dims that broadcast are aligned
// by giving them letters from the minor end; a vector operand has no letter for the dim that it lacks. Quantized
// products become products of i32 with the zero points taken off first, which is what ONNX defines them as.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "Families.h"
#include "Registry.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static Value einsum(NodeContext &node, ValueRange operands, const Twine &equation) {
  return node.create<nn::EinsumOp>(operands, equation.str());
}

//===----------------------------------------------------------------------===//
// MatMul and Gemm
//===----------------------------------------------------------------------===//

/// The letters of `rank` batch dims, aligned at the minor end: of 3, ranks 1 and 3 are "c" and "abc".
static std::string batchLetters(int64_t rank, int64_t maxRank) {
  static constexpr StringLiteral letters = "abcdefghijloprstuvwxyz";
  return letters.slice(maxRank - rank, maxRank).str();
}
constexpr int64_t kMaxBatchRank = 22;

Value cleave::onnx::matmul(NodeContext &node, Value lhs, Value rhs) {
  int64_t lhsRank = NodeContext::rank(lhs), rhsRank = NodeContext::rank(rhs);
  if (node.failed() || !node.check(lhsRank > 0 && rhsRank > 0, "an operand is a scalar"))
    return {};
  int64_t lhsBatch = std::max<int64_t>(lhsRank - 2, 0), rhsBatch = std::max<int64_t>(rhsRank - 2, 0);
  int64_t batch = std::max(lhsBatch, rhsBatch);
  if (!node.check(batch <= kMaxBatchRank, "more than " + Twine(kMaxBatchRank + 2) + " dims"))
    return {};
  StringRef row = lhsRank > 1 ? "m" : "", column = rhsRank > 1 ? "n" : "";
  // In nn.einsum a size of 1 repeats for every letter; here only batch dims may.
  int64_t lhsDepth = NodeContext::shape(lhs).back(), rhsDepth = NodeContext::shape(rhs)[rhsRank > 1 ? rhsRank - 2 : 0];
  if (!node.check(lhsDepth == rhsDepth,
                  "the contracted dims have sizes " + Twine(lhsDepth) + " and " + Twine(rhsDepth)))
    return {};
  auto print = [](Shape shape) { return llvm::interleaved_array(shape).str(); };
  Shape left = NodeContext::shape(lhs), right = NodeContext::shape(rhs);
  if (!node.check(nn::getBroadcastShape({left.take_front(lhsBatch), right.take_front(rhsBatch)}).has_value(),
                  "the batch dims of " + print(left) + " and " + print(right) + " do not broadcast together"))
    return {};
  return einsum(node, {lhs, rhs},
                batchLetters(lhsBatch, batch) + row + "k," + batchLetters(rhsBatch, batch) + "k" + column + "->" +
                    batchLetters(batch, batch) + row + column);
}

static void importMatMul(NodeContext &node) { node.result(0, matmul(node, node.operand(0), node.operand(1))); }

/// `alpha * A' * B' + beta * C`
static void importGemm(NodeContext &node) {
  Value a = node.operand(0), b = node.operand(1), c = node.operand(2);
  double alpha = node.floatAttr("alpha", 1.0), beta = node.floatAttr("beta", 1.0);
  bool transA = node.boolAttr("transA", false), transB = node.boolAttr("transB", false);
  if (node.getOpset() < 7)
    node.ignoreAttr("broadcast"); // Since opset 7 C always does.
  if (node.failed() || !node.check(NodeContext::rank(a) == 2 && NodeContext::rank(b) == 2, "A and B must have 2 dims"))
    return;
  int64_t depthA = NodeContext::shape(a)[transA ? 0 : 1], depthB = NodeContext::shape(b)[transB ? 1 : 0];
  if (!node.check(depthA == depthB, "the contracted dims have sizes " + Twine(depthA) + " and " + Twine(depthB)))
    return;
  Value y = einsum(node, {a, b}, Twine(transA ? "km" : "mk") + "," + (transB ? "nk" : "kn") + "->mn");
  if (y && alpha != 1.0)
    y = node.create<nn::MulOp>(y, node.scalarLike(y, alpha));
  if (y && c) {
    Ints shape(NodeContext::shape(y));
    if (beta != 1.0)
      c = node.create<nn::MulOp>(c, node.scalarLike(c, beta));
    y = node.create<nn::AddOp>(y, c);
    node.check(!y || NodeContext::shape(y) == Shape(shape), "C does not broadcast to the result");
  }
  node.result(0, y);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// An equation as the model writes it, turned into ours step by step: no blanks, no ellipsis, an explicit result, no
/// letter twice in an operand.
class Equation {
public:
  Equation(NodeContext &node, StringRef text) : node(node) {
    std::string tight;
    llvm::copy_if(text, std::back_inserter(tight), [](char c) { return c != ' '; });
    auto [left, right] = StringRef(tight).split("->");
    hasResult = StringRef(tight).contains("->");
    SmallVector<StringRef> parts;
    left.split(parts, ',');
    for (StringRef part : parts)
      terms.push_back(part.str());
    result = right.str();
  }

  Value import();

private:
  bool refuse(const Twine &why) { return node.check(false, "equation: " + why); }
  bool expandEllipsis();
  void deduceResult();
  Value takeDiagonals(Value value, std::string &term);

  NodeContext &node;
  bool hasResult;
  SmallVector<std::string> terms;
  std::string result;
};
} // namespace

/// Gives the dims behind "..." letters of their own, aligned at the minor end.
bool Equation::expandEllipsis() {
  std::string free;
  for (char c = 'a'; c <= 'z'; ++c)
    for (char letter : {c, char(c - 'a' + 'A')})
      if (!StringRef(result).contains(letter) && llvm::none_of(terms, [&](StringRef t) { return t.contains(letter); }))
        free.push_back(letter);
  int64_t widest = 0;
  auto hidden = [&](unsigned i) { return NodeContext::rank(node.operand(i)) - (int64_t(terms[i].size()) - 3); };
  for (unsigned i = 0; i < terms.size(); ++i)
    if (StringRef(terms[i]).contains("..."))
      widest = std::max(widest, hidden(i));
  if (widest > int64_t(free.size()))
    return refuse("too many dims");
  auto replace = [&](std::string &term, int64_t count) {
    size_t place = term.find("...");
    if (place != std::string::npos && count >= 0)
      term.replace(place, 3, free.substr(widest - count, count));
  };
  for (unsigned i = 0; i < terms.size(); ++i) {
    replace(terms[i], hidden(i));
    if (!llvm::all_of(terms[i], [](char c) { return llvm::isAlpha(c); }))
      return refuse("'" + terms[i] + "' has more than letters and one '...'");
    if (int64_t(terms[i].size()) != NodeContext::rank(node.operand(i)))
      return refuse("'" + terms[i] + "' does not have one letter per dim of operand " + Twine(i));
  }
  if (!hasResult)
    result = "...";
  replace(result, widest);
  return true;
}

/// Without "->": letters that occur once, in alphabetical order, after the dims behind "...".
void Equation::deduceResult() {
  std::string once;
  std::string all = llvm::join(terms, "");
  for (char letter : all)
    if (llvm::count(all, letter) == 1 && !StringRef(result).contains(letter))
      once.push_back(letter);
  llvm::sort(once);
  result += once;
}

/// A letter twice in an operand means its diagonal: both dims go last and merge, every (n + 1)-th element stays.
Value Equation::takeDiagonals(Value value, std::string &term) {
  for (size_t first = 0; first < term.size() && value; ++first) {
    size_t second = term.find(term[first], first + 1);
    if (second == std::string::npos)
      continue;
    int64_t rank = term.size(), size = NodeContext::shape(value)[first];
    if (!node.check(NodeContext::shape(value)[second] == size, "equation: a letter has two sizes"))
      return {};
    Ints order, merged;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (dim != int64_t(first) && dim != int64_t(second)) {
        order.push_back(dim);
        merged.push_back(NodeContext::shape(value)[dim]);
      }
    order.append({int64_t(first), int64_t(second)});
    merged.push_back(size * size);
    value = node.reshape(node.transpose(value, order), merged);
    Ints starts(rank - 1, 0), sizes(merged), steps(rank - 1, 1);
    sizes.back() = size;
    steps.back() = size > 1 ? size + 1 : 1;
    value = node.slice(value, starts, sizes, steps);
    char letter = term[first];
    term.erase(second, 1);
    term.erase(first, 1);
    term.push_back(letter);
    first = size_t(-1);
  }
  return value;
}

Value Equation::import() {
  if (terms.size() != node.getNumOperands()) {
    refuse(Twine(terms.size()) + " terms for " + Twine(node.getNumOperands()) + " operands");
    return {};
  }
  if (!expandEllipsis())
    return {};
  if (!hasResult)
    deduceResult();
  SmallVector<Value> operands;
  for (unsigned i = 0; i < terms.size(); ++i)
    operands.push_back(takeDiagonals(node.operand(i), terms[i]));
  return einsum(node, operands, llvm::join(terms, ",") + "->" + result);
}

static void importEinsum(NodeContext &node) {
  StringRef equation = node.stringAttr("equation");
  if (!node.failed())
    node.result(0, Equation(node, equation).import());
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// `operand - zero point` in i32. A zero point per row of the left operand, or per column of the right one, is a
/// vector.
static Value widen(NodeContext &node, unsigned index, unsigned zeroIndex, bool perRow) {
  Type i32 = node.getBuilder().getI32Type();
  Value value = node.cast(node.operand(index), i32), zero = node.cast(node.operand(zeroIndex), i32);
  if (!zero || !value)
    return value;
  if (NodeContext::rank(zero) == 1 && perRow && NodeContext::shape(zero)[0] != 1)
    zero = node.unsqueeze(zero, {1});
  return node.create<nn::SubOp>(value, zero);
}

static void importMatMulInteger(NodeContext &node) {
  node.result(0, matmul(node, widen(node, 0, 2, true), widen(node, 1, 3, false)));
}

/// Operands: a, scale, zero point, b, scale, zero point, scale and zero point of the result.
static void importQLinearMatMul(NodeContext &node) {
  Value sums = matmul(node, widen(node, 0, 2, true), widen(node, 3, 5, false));
  Type f32 = node.getBuilder().getF32Type();
  Value scale = node.create<nn::MulOp>(node.cast(node.operand(1), f32), node.cast(node.operand(4), f32));
  Value real = node.create<nn::MulOp>(node.cast(sums, f32), scale);
  Value resultScale = node.cast(node.operand(6), f32), zero = node.operand(7);
  bool isScalar = resultScale && ShapedType::getNumElements(NodeContext::shape(resultScale)) == 1;
  if (node.failed() || !node.check(isScalar, "a result scale per row is not supported"))
    return;
  auto type = RankedTensorType::get(NodeContext::shape(real), NodeContext::elementType(zero));
  node.result(0,
              node.createTyped<nn::QuantizeOp>(type, real, node.reshape(resultScale, {}), node.reshape(zero, {}), 0));
}

/// onnxruntime's product with a bias in the sums' own scale; without a scale of the result, floats. Operands: a, scale, zero point, b,
/// scale, zero point, bias, scale and zero point of the result.
static void importQGemm(NodeContext &node) {
  double alpha = node.floatAttr("alpha", 1);
  bool turnsA = node.boolAttr("transA", false), turnsB = node.boolAttr("transB", false);
  if (node.failed() || !node.check(NodeContext::rank(node.operand(0)) == 2 && NodeContext::rank(node.operand(3)) == 2,
                                   "a and b must be matrices"))
    return;
  Type f32 = node.getBuilder().getF32Type();
  auto turn = [&](Value value, bool turns) { return turns ? node.transpose(value, {1, 0}) : value; };
  // Zero points along the columns of b that is turned are along its rows.
  Value a = turn(widen(node, 0, 2, false), turnsA), b = turn(widen(node, 3, 5, turnsB), turnsB);
  Value sums = einsum(node, {a, b}, "ik,kj->ij");
  if (node.hasOperand(6))
    sums = node.create<nn::AddOp>(sums, node.operand(6));
  Value scale = node.create<nn::MulOp>(node.cast(node.operand(1), f32), node.cast(node.operand(4), f32));
  if (alpha != 1)
    scale = node.create<nn::MulOp>(scale, node.scalar(f32, alpha));
  Value real = node.create<nn::MulOp>(node.cast(sums, f32), scale);
  if (!node.hasOperand(7))
    return node.result(0, real);
  Value zero = node.reshape(node.operand(8), {});
  if (node.failed() || !node.check(zero != nullptr, "operand 8, the zero point of the result, is missing"))
    return;
  auto type = RankedTensorType::get(NodeContext::shape(real), NodeContext::elementType(zero));
  node.result(0, node.createTyped<nn::QuantizeOp>(type, real, node.reshape(node.operand(7), {}), zero, 0));
}

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

static std::optional<int64_t> findGemmRows(NodeContext &node, unsigned operand, int64_t dim) {
  return operand == 0 && dim == node.intAttr("transA", 0) ? std::optional<int64_t>(0) : std::nullopt;
}

/// A product has rows of either side, but of the dim that is summed over.
static std::optional<int64_t> findProductRows(NodeContext &node, unsigned operand, int64_t dim) {
  int64_t rank = NodeContext::rank(node.operand(operand)), made = NodeContext::rank(node.getResults().front());
  int64_t summed = operand == 0 ? rank - 1 : rank - 2;
  bool isMatrix = NodeContext::rank(node.operand(1 - operand)) >= 2 && rank >= 2;
  return isMatrix && dim != summed ? std::optional(dim + made - rank) : std::nullopt;
}

void cleave::onnx::registerContraction(Registry &registry) {
  registry.add("Einsum", 12, {1, Arity::kAny}, importEinsum);
  registry.add("Gemm", 6, {2, 3}, importGemm).follow(findGemmRows);
  registry.add("MatMul", 1, {2, 2}, importMatMul).follow(findProductRows).mix(Mixing::Product);
  registry.add("com.microsoft.QGemm", {6, 9}, importQGemm);
  registry.add("MatMulInteger", 10, {2, 4}, importMatMulInteger);
  registry.add("QLinearMatMul", 10, {8, 8}, importQLinearMatMul);
}
