//===- Generator.cpp - random meshes, annotations and modules ------------------===//
#include "Generator.h"
#include "GeneratorImpl.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::test;
using llvm::formatv;
using llvm::SmallVector;

//===----------------------------------------------------------------------===//
// Random choices
//===----------------------------------------------------------------------===//

SmallVector<int64_t> Generator::pickShape(int64_t minRank, int64_t maxRank) {
  while (true) {
    SmallVector<int64_t> shape;
    for (int64_t i = 0, rank = minRank + below(maxRank - minRank + 1); i < rank; ++i)
      shape.push_back(pickSize());
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
// Text of types and annotations
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
  if (elementType == "i4" || elementType == "ui4") // stored, and not computed in
    return "";
  if (elementType == "i16" || elementType == "ui16") // NCCL combines none of 16 bits
    return "";
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
    if (extent % size != 0 && !isUneven)
      break;
    extent = llvm::divideCeil(extent, size);
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
  return formatv(", #spmd.sharding<#mesh, [{0}]{1}{2}>", llvm::join(dims, ", "), pickPartial(elementType, free),
                 isUneven ? ", uneven" : "");
}

std::string Generator::typeOf(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType, llvm::StringRef encoding) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + elementType.str() + encoding.str() + ">";
}

/// One that is asked for in a loop is captured.
Value Generator::addArgument(SmallVector<int64_t> shape, llvm::StringRef elementType) {
  if (!loops.empty())
    return capture(outside([&] { return addArgument(shape, elementType); }));
  Value value{formatv("%arg{0}", arguments.size()), shape, true, "", elementType.str()};
  if (annotation(60))
    value.encoding = pickSharding(shape, elementType);
  value.isWeight = annotation(20);
  arguments.push_back(value);
  values.push_back(value);
  return value;
}

Value Generator::addSplit(SmallVector<int64_t> shape, int64_t dim, const Axis &axis) {
  addArgument(shape, "f32");
  SmallVector<Axis> free(axes);
  llvm::erase_if(free, [&](const Axis &other) { return other.name == axis.name; });
  SmallVector<std::string> dims;
  for (auto [at, extent] : llvm::enumerate(shape))
    dims.push_back(int64_t(at) == dim ? formatv("{{\"{0}\"}", axis.name).str()
                   : chance(20)       ? pickDim(extent, free)
                                      : "{}");
  std::string encoding =
      formatv(", #spmd.sharding<#mesh, [{0}]{1}>", llvm::join(dims, ", "), isUneven ? ", uneven" : "");
  arguments.back().encoding = values.back().encoding = encoding;
  return arguments.back();
}

/// Now and then with all sequences split by one axis, and a word on how queries reach keys: in a ring, mostly.
SmallVector<Value, 3> Generator::addAttentionOperands(int64_t batch, int64_t heads, int64_t kvHeads, int64_t sequence,
                                                      int64_t keys) {
  SmallVector<SmallVector<int64_t>, 3> shapes = {
      {batch, heads, sequence, 4}, {batch, kvHeads, keys, 4}, {batch, kvHeads, keys, 6}};
  SmallVector<Axis> dividing;
  for (const Axis &axis : axes)
    if (isUneven || (sequence % axis.size == 0 && keys % axis.size == 0))
      dividing.push_back(axis);
  // What a loop captures is not gathered for its attention alone.
  bool isWord = loops.empty() && !dividing.empty() && annotation(attentionWord.empty() ? 40 : 100);
  if (isWord)
    attentionWord = attentionWord == "ring" || chance(80) ? "ring" : "gather";
  Axis axis = isWord ? pick(dividing) : Axis();
  SmallVector<Value, 3> made;
  for (const SmallVector<int64_t> &shape : shapes)
    made.push_back(isWord ? addSplit(shape, 2, axis) : addArgument(shape, "f32"));
  return made;
}

/// Appends an op: `text` without the types; now and then an annotation on its result.
bool Generator::add(const std::string &text, llvm::ArrayRef<const Value *> operands, SmallVector<int64_t> shape) {
  if (countElements(shape) > kMaxElements)
    return false;
  std::string types;
  for (auto [index, operand] : llvm::enumerate(operands))
    types += (index ? ", " : "") + typeOf(*operand);
  Value result{formatv("%v{0}", nextName++), shape};
  if (annotation(5))
    result.encoding = pickSharding(shape, result.elementType);
  body += formatv("  {0} = {1} : ({2}) -> {3}\n", result.name, text, types, typeOf(result));
  if (annotation(15)) {
    Value annotated{formatv("%v{0}", nextName++), shape, false, pickSharding(shape, "f32")};
    body += formatv("  {0} = spmd.constrain {1} : {2} to {3}\n", annotated.name, result.name, typeOf(result),
                    typeOf(annotated));
    result = annotated;
  }
  values.push_back(result);
  return true;
}

Value Generator::addInner(const std::string &text, llvm::ArrayRef<const Value *> operands, SmallVector<int64_t> shape,
                          llvm::StringRef elementType) {
  Value result{formatv("%v{0}", nextName++), shape, false, "", elementType.str()};
  std::string types;
  for (auto [index, operand] : llvm::enumerate(operands))
    types += (index ? ", " : "") + typeOf(*operand);
  // Without operands it is a constant, which says its type twice.
  std::string of = operands.empty() ? typeOf(result) : "(" + types + ")";
  body += formatv("  {0} = {1} : {2} -> {3}\n", result.name, text, of, typeOf(result));
  return result;
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

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
  if (hasAnnotations)
    pickMesh();
  for (int64_t i = 0, count = 1 + below(2); i < count; ++i)
    addArgument(pickShape(1, 4), "f32");
  // Kernels of little else but rows: where much happens, no result may lie in place of an argument.
  bool isOfRows = !hasAnnotations && chance(20) && addRows();
  // Attention is one op of many, and goes round where nothing else is annotated of its sequence.
  if (annotation(20)) {
    attentionWord = "ring";
    addAttention();
  }
  for (int64_t made = 0, tries = 0, count = isOfRows ? below(3) : 2 + below(9); made < count && tries < 40; ++tries)
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
    if (hasAnnotations && (chance(50) || result.isArgument)) {
      Value annotated{formatv("%v{0}", nextName++), result.shape, false, pickSharding(result.shape, result.elementType),
                      result.elementType};
      body += formatv("  {0} = spmd.constrain {1} : {2} to {3}\n", annotated.name, result.name, typeOf(result),
                      typeOf(annotated));
      result = annotated;
    }
    names.push_back(result.name);
    types.push_back(typeOf(result));
  }
  for (const Value &argument : arguments)
    parameters.push_back(argument.name + ": " + typeOf(argument) + (argument.isWeight ? " {nn.parameter}" : ""));
  std::string resultTypes = llvm::join(types, ", ");
  std::string function = formatv("({0}) -> ({1}) {{\n{2}  return {3} : {1}\n}\n", llvm::join(parameters, ", "),
                                 resultTypes, body, llvm::join(names, ", "));
  if (!hasAnnotations)
    return "func.func @main" + function;
  std::string word = attentionWord.empty() ? "" : formatv(", spmd.attention = \"{0}\"", attentionWord).str();
  std::string text = formatv("#mesh = {0}\nmodule attributes {{spmd.mesh = #mesh{1}} {{\n", meshText, word);
  if (chance(10))
    text += formatv("func.func @main({0}) -> ({1}) {{\n{2}}\nfunc.func private @body", llvm::join(parameters, ", "),
                    resultTypes, callBody(types));
  else
    text += "func.func @main";
  return text + function + "}\n";
}

std::string cleave::test::generateModule(uint64_t seed, bool isUneven) {
  return Generator(seed, /*hasAnnotations=*/true, isUneven).generate();
}

std::string cleave::test::generateRegion(uint64_t seed, const std::string &elementType) {
  std::string text = Generator(seed, /*hasAnnotations=*/false).generate();
  for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += elementType.size())
    text.replace(at, 3, elementType);
  return text;
}
