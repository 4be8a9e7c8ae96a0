//===- Generator.cpp - random small programs to partition -----------------===//
//
// Values are kept small (at most kMaxElements) and numerically tame: sums may be reassociated by partitioning, so an op
// that jumps (a comparison, the place of a maximum) is only applied to arguments, which are the same in both programs.
//
//===----------------------------------------------------------------------===//
#include "Generator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <random>

using namespace cleave::test;
using llvm::formatv;
using llvm::SmallVector;

namespace {

constexpr int64_t kMaxElements = 1536;
constexpr int64_t kSizes[] = {1, 2, 3, 4, 4, 6, 8, 8, 12, 12, 24};

struct Value {
  std::string name;
  SmallVector<int64_t> shape;
  bool isArgument = false;
  std::string encoding = ""; ///< `, #spmd.sharding<...>` or empty
  std::string elementType = "f32";
};

struct Axis {
  std::string name;
  int64_t size;
};

class Generator {
public:
  explicit Generator(uint64_t seed) : engine(seed) {}
  std::string generate();

private:
  // Random choices.
  int64_t below(int64_t bound) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(bound)); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename Range> auto &pick(Range &range) { return range[below(std::size(range))]; }
  SmallVector<int64_t> pickShape(int64_t minRank, int64_t maxRank);
  const Value *pickValue(int64_t minRank = 0);
  const Value *pickArgument(int64_t minRank);

  // Text.
  void pickMesh();
  std::string pickSharding(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType);
  std::string pickDim(int64_t extent, SmallVector<Axis> &free);
  std::string takeAxis(size_t index, bool isHalf, SmallVector<Axis> &free);
  std::string pickPartial(llvm::StringRef elementType, SmallVector<Axis> &free);
  static std::string typeOf(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType, llvm::StringRef encoding = "");
  static std::string typeOf(const Value &value) { return typeOf(value.shape, value.elementType, value.encoding); }
  Value addArgument(SmallVector<int64_t> shape, llvm::StringRef elementType);
  bool add(const std::string &text, llvm::ArrayRef<const Value *> operands, SmallVector<int64_t> shape);

  // Ops. Each returns false where the values at hand do not suit it.
  bool addUnary();
  bool addBinary();
  bool addSelect();
  bool addEinsum();
  bool addReduce();
  bool addSoftmax();
  bool addNorm();
  bool addTranspose();
  bool addReshape();
  bool addBroadcast();
  bool addConcat();
  bool addSlice();
  bool addPad();
  bool addGather();
  bool addScan();
  bool addConv();
  bool addAttention();
  bool addOp();

  std::string callBody(llvm::ArrayRef<std::string> resultTypes) const;

  /// True if some op reads `value`.
  bool isUsed(const Value &value) const {
    return llvm::StringRef(body).count(" " + value.name + " ") > 1 || llvm::StringRef(body).contains(value.name + ",");
  }

  std::mt19937_64 engine;
  SmallVector<Axis> axes;
  std::string meshText, body;
  SmallVector<Value> arguments, values;
  unsigned nextName = 0;
};

//===----------------------------------------------------------------------===//
// Random choices
//===----------------------------------------------------------------------===//

int64_t countElements(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

SmallVector<int64_t> Generator::pickShape(int64_t minRank, int64_t maxRank) {
  while (true) {
    SmallVector<int64_t> shape;
    for (int64_t i = 0, rank = minRank + below(maxRank - minRank + 1); i < rank; ++i)
      shape.push_back(pick(kSizes));
    if (countElements(shape) <= kMaxElements)
      return shape;
  }
}

const Value *Generator::pickValue(int64_t minRank) {
  SmallVector<const Value *> fitting;
  for (const Value &value : values)
    if (static_cast<int64_t>(value.shape.size()) >= minRank && value.elementType == "f32")
      fitting.push_back(&value);
  // Late values are used more, so that graphs are deep rather than wide.
  if (fitting.empty())
    return nullptr;
  int64_t last = fitting.size() - 1;
  return chance(60) ? fitting[last - below(std::min<int64_t>(3, last + 1))] : fitting[below(last + 1)];
}

const Value *Generator::pickArgument(int64_t minRank) {
  SmallVector<const Value *> fitting;
  for (const Value &value : values)
    if (value.isArgument && static_cast<int64_t>(value.shape.size()) >= minRank && value.elementType == "f32")
      fitting.push_back(&value);
  return fitting.empty() ? nullptr : pick(fitting);
}

//===----------------------------------------------------------------------===//
// Text of types and wishes
//===----------------------------------------------------------------------===//

void Generator::pickMesh() {
  static constexpr const char *names[] = {"x", "y", "z"};
  int64_t ranks = 1;
  for (int64_t i = 0, count = 1 + below(3); i < count; ++i) {
    int64_t size = 2 + below(3);
    if (ranks * size > 12)
      break;
    ranks *= size;
    axes.push_back({names[i], size});
  }
  meshText = "#spmd.mesh<[";
  for (auto [index, axis] : llvm::enumerate(axes))
    meshText += formatv("{0}\"{1}\"={2}", index ? ", " : "", axis.name, axis.size).str();
  meshText += "]>";
}

/// The text of a free axis, or of half of one, which is free no more.
std::string Generator::takeAxis(size_t index, bool isHalf, SmallVector<Axis> &free) {
  std::string name = free[index].name;
  free.erase(free.begin() + index);
  return isHalf ? formatv("\"{0}\":({1})2", name, chance(50) ? 1 : 2).str() : formatv("\"{0}\"", name).str();
}

/// Now and then axes over which the value is partial, out of those still free.
std::string Generator::pickPartial(llvm::StringRef elementType, SmallVector<Axis> &free) {
  static constexpr const char *kinds[] = {"max", "min", "sum", "sum", "sum", "prod"};
  // A bool has neither sum nor product.
  const char *kind = kinds[below(elementType == "i1" ? 2 : std::size(kinds))];
  SmallVector<std::string> entries;
  while (!free.empty() && chance(entries.empty() ? 20 : 30)) {
    size_t index = below(free.size());
    bool isHalf = free[index].size == 4 && chance(20);
    entries.push_back(takeAxis(index, isHalf, free) + ": " + kind);
  }
  return entries.empty() ? "" : ", partial = {" + llvm::join(entries, ", ") + "}";
}

/// One dim's axes out of those still free.
std::string Generator::pickDim(int64_t extent, SmallVector<Axis> &free) {
  SmallVector<std::string> entries;
  while (chance(45) && !free.empty()) {
    size_t index = below(free.size());
    bool isHalf = free[index].size == 4 && chance(20);
    int64_t size = isHalf ? 2 : free[index].size;
    if (extent % size != 0)
      break;
    extent /= size;
    entries.push_back(takeAxis(index, isHalf, free));
  }
  if (chance(25))
    entries.push_back("?");
  std::string text = "{" + llvm::join(entries, ", ") + "}";
  return chance(10) ? text + formatv("p{0}", 1 + below(2)).str() : text;
}

std::string Generator::pickSharding(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType) {
  SmallVector<Axis> free(axes);
  SmallVector<std::string> dims;
  for (int64_t extent : shape)
    dims.push_back(pickDim(extent, free));
  return formatv(", #spmd.sharding<#mesh, [{0}]{1}>", llvm::join(dims, ", "), pickPartial(elementType, free));
}

std::string Generator::typeOf(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType, llvm::StringRef encoding) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + elementType.str() + encoding.str() + ">";
}

Value Generator::addArgument(SmallVector<int64_t> shape, llvm::StringRef elementType) {
  Value value{formatv("%arg{0}", arguments.size()), shape, true, "", elementType.str()};
  if (chance(60))
    value.encoding = pickSharding(shape, elementType);
  arguments.push_back(value);
  values.push_back(value);
  return value;
}

/// Appends an op: `text` without the types; now and then a wish on its result.
bool Generator::add(const std::string &text, llvm::ArrayRef<const Value *> operands, SmallVector<int64_t> shape) {
  if (countElements(shape) > kMaxElements)
    return false;
  std::string types;
  for (auto [index, operand] : llvm::enumerate(operands))
    types += (index ? ", " : "") + typeOf(*operand);
  Value result{formatv("%v{0}", nextName++), shape};
  if (chance(5))
    result.encoding = pickSharding(shape, result.elementType);
  body += formatv("  {0} = {1} : ({2}) -> {3}\n", result.name, text, types, typeOf(result));
  if (chance(15)) {
    Value wished{formatv("%v{0}", nextName++), shape, false, pickSharding(shape, "f32")};
    body +=
        formatv("  {0} = spmd.constrain {1} : {2} to {3}\n", wished.name, result.name, typeOf(result), typeOf(wished));
    result = wished;
  }
  values.push_back(result);
  return true;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

std::string listText(llvm::ArrayRef<int64_t> list) {
  std::string text = "[";
  for (auto [index, number] : llvm::enumerate(list))
    text += (index ? ", " : "") + std::to_string(number);
  return text + "]";
}

bool Generator::addUnary() {
  static constexpr const char *ops[] = {"tanh", "sigmoid", "relu", "neg", "abs", "gelu", "sin", "silu"};
  const Value *x = pickValue();
  return add(formatv("nn.{0} {1}", pick(ops), x->name), {x}, x->shape);
}

/// An operand that broadcasts with `x`: another value that fits, or a new argument.
bool Generator::addBinary() {
  static constexpr const char *ops[] = {"add", "add", "sub", "mul", "max", "min"};
  const Value *x = pickValue();
  SmallVector<const Value *> fitting;
  for (const Value &value : values)
    if (value.elementType == "f32" && value.shape == x->shape)
      fitting.push_back(&value);
  Value left = *x, right = *pick(fitting);
  if (chance(50)) {
    SmallVector<int64_t> shape(llvm::ArrayRef<int64_t>(x->shape).drop_front(below(x->shape.size() + 1)));
    for (int64_t &extent : shape)
      if (chance(25))
        extent = 1;
    right = addArgument(shape, "f32");
  }
  if (chance(30))
    std::swap(left, right);
  SmallVector<int64_t> shape(left.shape.size() > right.shape.size() ? left.shape : right.shape);
  if (countElements(left.shape) == countElements(right.shape) || left.shape.size() == right.shape.size())
    for (auto [extent, a, b] : llvm::zip(llvm::reverse(shape), llvm::reverse(left.shape), llvm::reverse(right.shape)))
      extent = std::max(a, b);
  return add(formatv("nn.{0} {1}, {2}", pick(ops), left.name, right.name), {&left, &right}, shape);
}

bool Generator::addSelect() {
  const Value *argument = pickArgument(0);
  if (!argument)
    return false;
  Value compared = *argument, other = addArgument(compared.shape, "f32");
  Value condition{formatv("%v{0}", nextName++), compared.shape, false, "", "i1"};
  body += formatv("  {0} = nn.lt {1}, {2} : ({3}, {4}) -> {5}\n", condition.name, compared.name, other.name,
                  typeOf(compared), typeOf(other), typeOf(condition));
  values.push_back(condition);
  return add(formatv("nn.select {0}, {1}, {2}", condition.name, compared.name, other.name),
             {&condition, &compared, &other}, compared.shape);
}

/// A contraction of a value with a new argument: some of its dims are batch, some contracted, some new.
bool Generator::addEinsum() {
  Value x = *pickValue(1);
  std::string left, right, result;
  SmallVector<int64_t> rightShape, resultShape;
  char letter = 'a';
  for (int64_t extent : x.shape) {
    left += letter;
    int64_t role = below(3); // kept from the left, contracted, batch
    if (role != 0) {
      right += letter;
      rightShape.push_back(extent);
    }
    if (role != 1) {
      result += letter;
      resultShape.push_back(extent);
    }
    ++letter;
  }
  for (int64_t i = 0, count = below(3); i < count; ++i, ++letter) {
    int64_t extent = pick(kSizes);
    right += letter;
    rightShape.push_back(extent);
    size_t at = below(result.size() + 1);
    result.insert(result.begin() + at, letter);
    resultShape.insert(resultShape.begin() + at, extent);
  }
  if (countElements(rightShape) > kMaxElements || countElements(resultShape) > kMaxElements)
    return false;
  Value y = addArgument(rightShape, "f32");
  return add(formatv("nn.einsum {0}, {1} \"{2},{3}->{4}\"", x.name, y.name, left, right, result), {&x, &y},
             resultShape);
}

bool Generator::addReduce() {
  static constexpr const char *kinds[] = {"sum", "sum", "mean", "max", "min"};
  const Value *x = pickValue(1);
  if (!x)
    return false;
  bool keeps = chance(40);
  SmallVector<int64_t> dims, shape;
  for (auto [dim, extent] : llvm::enumerate(x->shape)) {
    bool isReduced = chance(40);
    if (isReduced)
      dims.push_back(dim);
    if (!isReduced || keeps)
      shape.push_back(isReduced ? 1 : extent);
  }
  return add(formatv("nn.reduce {0} {1} dims {2}{3}", pick(kinds), x->name, listText(dims), keeps ? " keep_dims" : ""),
             {x}, shape);
}

bool Generator::addSoftmax() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  const char *name = chance(50) ? "softmax" : "log_softmax";
  return add(formatv("nn.{0} {1} dim {2}", name, x->name, below(x->shape.size())), {x}, x->shape);
}

bool Generator::addNorm() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  Value scale = addArgument(SmallVector<int64_t>(llvm::ArrayRef<int64_t>(x.shape).drop_front(dim)), "f32");
  const char *name = chance(50) ? "layer_norm" : "rms_norm";
  return add(formatv("nn.{0} {1}, {2} dim {3} epsilon 1.0e-2", name, x.name, scale.name, dim), {&x, &scale}, x.shape);
}

bool Generator::addTranspose() {
  const Value *x = pickValue(2);
  if (!x)
    return false;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, x->shape.size()));
  for (size_t i = permutation.size() - 1; i > 0; --i)
    std::swap(permutation[i], permutation[below(i + 1)]);
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(x->shape[dim]);
  return add(formatv("nn.transpose {0} {1}", x->name, listText(permutation)), {x}, shape);
}

/// Merges neighbours or splits a dim, now and then regroups everything.
bool Generator::addReshape() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  SmallVector<int64_t> shape(x->shape);
  if (shape.size() > 1 && chance(50)) {
    size_t at = below(shape.size() - 1);
    shape[at] *= shape[at + 1];
    shape.erase(shape.begin() + at + 1);
  } else {
    size_t at = below(shape.size());
    static constexpr int64_t divisors[] = {2, 3, 4};
    int64_t divisor = pick(divisors);
    if (shape[at] % divisor)
      return false;
    bool isMajor = chance(50);
    int64_t major = isMajor ? divisor : shape[at] / divisor, minor = isMajor ? shape[at] / divisor : divisor;
    shape[at] = major;
    shape.insert(shape.begin() + at + 1, minor);
  }
  return shape.size() <= 5 && add(formatv("nn.reshape {0}", x->name), {x}, shape);
}

bool Generator::addBroadcast() {
  const Value *x = pickValue();
  SmallVector<int64_t> shape(x->shape);
  for (int64_t &extent : shape)
    if (extent == 1 && chance(60))
      extent = pick(kSizes);
  if (chance(60))
    shape.insert(shape.begin(), pick(kSizes));
  return shape.size() <= 5 && add(formatv("nn.broadcast {0}", x->name), {x}, shape);
}

bool Generator::addConcat() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  SmallVector<int64_t> otherShape(x.shape), shape(x.shape);
  otherShape[dim] = pick(kSizes);
  shape[dim] += otherShape[dim];
  Value y = chance(30) ? x : addArgument(otherShape, "f32");
  shape[dim] = x.shape[dim] + y.shape[dim];
  return add(formatv("nn.concat {0}, {1} dim {2}", x.name, y.name, dim), {&x, &y}, shape);
}

bool Generator::addSlice() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  SmallVector<int64_t> starts, sizes, steps;
  for (int64_t extent : x->shape) {
    bool isWhole = chance(60);
    int64_t step = isWhole ? 1 : 1 + below(2);
    int64_t start = isWhole ? 0 : below(extent);
    int64_t size = isWhole ? extent : 1 + below((extent - start + step - 1) / step);
    bool isReversed = !isWhole && chance(15);
    starts.push_back(isReversed ? start + (size - 1) * step : start);
    sizes.push_back(size);
    steps.push_back(isReversed ? -step : step);
  }
  return add(formatv("nn.slice {0} starts {1} sizes {2} steps {3}", x->name, listText(starts), listText(sizes),
                     listText(steps)),
             {x}, sizes);
}

bool Generator::addPad() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  SmallVector<int64_t> low, high, shape(x->shape);
  for (int64_t &extent : shape) {
    low.push_back(chance(30) ? below(3) : 0);
    high.push_back(chance(30) ? below(3) : 0);
    extent += low.back() + high.back();
  }
  return add(formatv("nn.pad constant {0} low {1} high {2}", x->name, listText(low), listText(high)), {x}, shape);
}

bool Generator::addGather() {
  const Value *found = pickValue(1);
  if (!found)
    return false;
  Value x = *found;
  int64_t dim = below(x.shape.size());
  SmallVector<int64_t> indexShape = pickShape(0, 2), shape(x.shape);
  Value indices = addArgument(indexShape, "i64");
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, indexShape.begin(), indexShape.end());
  return add(formatv("nn.gather {0}, {1} dim {2}", x.name, indices.name, dim), {&x, &indices}, shape);
}

bool Generator::addScan() {
  const Value *x = pickValue(1);
  if (!x)
    return false;
  int64_t dim = below(x->shape.size());
  if (chance(50))
    return add(formatv("nn.cumsum {0} dim {1}{2}", x->name, dim, chance(30) ? " reverse" : ""), {x}, x->shape);
  return add(formatv("nn.rotate {0} dim {1} by {2}", x->name, dim, below(x->shape[dim])), {x}, x->shape);
}

bool Generator::addConv() {
  static constexpr int64_t channelCounts[] = {2, 4, 8};
  int64_t channels = pick(channelCounts), outputs = pick(channelCounts), batch = 1 + below(4);
  int64_t groups = chance(30) ? 2 : 1, kernel = 1 + 2 * below(2);
  Value x = addArgument({batch, channels, 6}, "f32");
  Value w = addArgument({outputs, channels / groups, kernel}, "f32");
  Value b = addArgument({outputs}, "f32");
  return add(formatv("nn.conv {0}, {1}, {2} strides [1] pads_low [{3}] pads_high [{3}] dilations [1] groups {4}",
                     x.name, w.name, b.name, kernel / 2, groups),
             {&x, &w, &b}, {batch, outputs, 6});
}

bool Generator::addAttention() {
  static constexpr int64_t counts[] = {1, 2, 4};
  int64_t batch = pick(counts), kvHeads = pick(counts), heads = kvHeads * pick(counts), sequence = 2 * pick(counts);
  int64_t keys = 2 * pick(counts);
  Value q = addArgument({batch, heads, sequence, 4}, "f32");
  Value k = addArgument({batch, kvHeads, keys, 4}, "f32");
  Value v = addArgument({batch, kvHeads, keys, 6}, "f32");
  return add(formatv("nn.attention {0}, {1}, {2} scale 0.5{3}", q.name, k.name, v.name, chance(50) ? " causal" : ""),
             {&q, &k, &v}, {batch, heads, sequence, 6});
}

bool Generator::addOp() {
  using Member = bool (Generator::*)();
  static constexpr Member members[] = {
      &Generator::addUnary,     &Generator::addUnary,   &Generator::addBinary,   &Generator::addBinary,
      &Generator::addSelect,    &Generator::addEinsum,  &Generator::addEinsum,   &Generator::addEinsum,
      &Generator::addReduce,    &Generator::addReduce,  &Generator::addSoftmax,  &Generator::addNorm,
      &Generator::addTranspose, &Generator::addReshape, &Generator::addReshape,  &Generator::addBroadcast,
      &Generator::addConcat,    &Generator::addSlice,   &Generator::addPad,      &Generator::addGather,
      &Generator::addScan,      &Generator::addConv,    &Generator::addAttention};
  return (this->*pick(members))();
}

/// All that a function does that leaves everything to @body, whose results have these types.
std::string Generator::callBody(llvm::ArrayRef<std::string> resultTypes) const {
  SmallVector<std::string> names, types, results;
  for (const Value &argument : arguments) {
    names.push_back(argument.name);
    types.push_back(typeOf(argument));
  }
  for (size_t i = 0; i < resultTypes.size(); ++i)
    results.push_back(formatv("%r#{0}", i));
  return formatv("  %r:{0} = func.call @body({1}) : ({2}) -> ({3})\n  return {4} : {3}\n", resultTypes.size(),
                 llvm::join(names, ", "), llvm::join(types, ", "), llvm::join(resultTypes, ", "),
                 llvm::join(results, ", "));
}

std::string Generator::generate() {
  pickMesh();
  for (int64_t i = 0, count = 1 + below(2); i < count; ++i)
    addArgument(pickShape(1, 4), "f32");
  for (int64_t made = 0, tries = 0, count = 2 + below(9); made < count && tries < 40; ++tries)
    made += addOp();
  // Results: all values that nothing uses yet, so that no op is dead, and now and then one that has uses.
  SmallVector<Value> results;
  for (const Value &value : values)
    if (!value.isArgument && !isUsed(value))
      results.push_back(value);
  if (results.empty() || chance(20))
    results.push_back(*pickValue());
  SmallVector<std::string> names, types, parameters;
  for (Value &result : results) {
    if (chance(50) || result.isArgument) {
      Value wished{formatv("%v{0}", nextName++), result.shape, false, pickSharding(result.shape, result.elementType),
                   result.elementType};
      body += formatv("  {0} = spmd.constrain {1} : {2} to {3}\n", wished.name, result.name, typeOf(result),
                      typeOf(wished));
      result = wished;
    }
    names.push_back(result.name);
    types.push_back(typeOf(result));
  }
  for (const Value &argument : arguments)
    parameters.push_back(argument.name + ": " + typeOf(argument));
  std::string resultTypes = llvm::join(types, ", ");
  std::string function = formatv("({0}) -> ({1}) {{\n{2}  return {3} : {1}\n}\n", llvm::join(parameters, ", "),
                                 resultTypes, body, llvm::join(names, ", "));
  std::string text = formatv("#mesh = {0}\nmodule attributes {{spmd.mesh = #mesh} {{\n", meshText);
  if (chance(10))
    text += formatv("func.func @main({0}) -> ({1}) {{\n{2}}\nfunc.func private @body", llvm::join(parameters, ", "),
                    resultTypes, callBody(types));
  else
    text += "func.func @main";
  return text + function + "}\n";
}

} // namespace

std::string cleave::test::generateModule(uint64_t seed) { return Generator(seed).generate(); }
