//===- GeneratorLoops.cpp - loops of random bodies ------------------------===//
//
//   %y:3 = nn.loop count 3 while %go carries (%zero, %v1, %v2) captures (%arg0)
//   ^bb0(%number, %b1, %b2, %taken):
//     ..                                  a random op or more
//     nn.yield while %more next (..)      for each carried value something new of its type, another one that is carried, or itself
//
// While a body is written, `values` are what it sees: what is carried and what is captured. An argument that an op asks for becomes one
// of the function, which each loop around captures.
//
// How often the body runs is known, or said by numbers and conditions of data, which are computed of arguments by ops that round alike
// everywhere. There are few iterations, and what is new goes through tanh more often than not: numbers stay tame.
//
//===----------------------------------------------------------------------===//
#include "GeneratorImpl.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::test;
using llvm::formatv;
using llvm::SmallVector;

/// What `write` makes where the innermost loop stands.
Value Generator::outside(llvm::function_ref<Value()> write) {
  LoopText loop = std::move(loops.back());
  loops.pop_back();
  std::swap(values, loop.values);
  std::swap(body, loop.body);
  Value made = write();
  std::swap(values, loop.values);
  std::swap(body, loop.body);
  loops.push_back(std::move(loop));
  return made;
}

Value Generator::nameInside(const Value &outer) {
  Value inner{formatv("%v{0}", nextName++), outer.shape, false, "", outer.elementType};
  if (annotation(6))
    inner.encoding = pickSharding(inner.shape, inner.elementType);
  return inner;
}

Value Generator::capture(const Value &outer) {
  Value inner = nameInside(outer);
  inner.isArgument = outer.isArgument;
  loops.back().captured.push_back(outer);
  loops.back().taken.push_back(inner);
  values.push_back(inner);
  return inner;
}

Value Generator::carry(const Value &initial) {
  Value inner = nameInside(initial);
  loops.back().initial.push_back(initial);
  loops.back().carried.push_back(inner);
  return inner;
}

//===----------------------------------------------------------------------===//
// How often
//===----------------------------------------------------------------------===//

/// Outside: what there is before the first iteration. A limit of data is 1 or 3.
void Generator::pickIterations(LoopText &loop) {
  static constexpr LoopText::Kind kinds[] = {LoopText::Count,        LoopText::Count, LoopText::Number,
                                             LoopText::NumberOrLess, LoopText::Float, LoopText::Flag};
  loop.kind = pick(kinds);
  loop.most = loop.kind == LoopText::Number ? 3 : below(5);
  loop.zero = addInner("nn.constant dense<0>", {}, {}, "i64");
  if (loop.kind == LoopText::Number || loop.kind == LoopText::NumberOrLess) {
    Value drawn = addArgument({}, "i64"), one = addInner("nn.constant dense<1>", {}, {}, "i64");
    Value twice = addInner(formatv("nn.add {0}, {0}", drawn.name), {&drawn, &drawn}, {}, "i64");
    loop.limit = addInner(formatv("nn.add {0}, {1}", twice.name, one.name), {&twice, &one}, {}, "i64");
    loop.condition =
        addInner(formatv("nn.lt {0}, {1}", loop.zero.name, loop.limit.name), {&loop.zero, &loop.limit}, {}, "i1");
  } else if (loop.kind == LoopText::Float) {
    loop.condition = addInner("nn.constant dense<true>", {}, {}, "i1");
  } else if (loop.kind == LoopText::Flag) {
    Value one = addArgument({}, "f32"), other = addArgument({}, "f32");
    loop.condition = addInner(formatv("nn.lt {0}, {1}", one.name, other.name), {&one, &other}, {}, "i1");
  }
}

/// Inside: whether there is an iteration behind the one that has `next` ones before it.
Value Generator::addMore(const Value &next) {
  const LoopText::Kind kind = loops.back().kind;
  if (kind == LoopText::Count)
    return {};
  if (kind == LoopText::Flag)
    return loops.back().carried[1];
  if (kind != LoopText::Float) {
    Value limit = capture(Value(loops.back().limit));
    return addInner(formatv("nn.lt {0}, {1}", next.name, limit.name), {&next, &limit}, {}, "i1");
  }
  // A maximum is one of its elements, in whichever order they are compared.
  Value x = addArgument(pickShape(1, 1), "f32"), step = addInner("nn.constant dense<0.75>", {}, {}, "f32");
  Value top = addInner(formatv("nn.reduce max {0} dims [0]", x.name), {&x}, {}, "f32");
  Value at = addInner(formatv("nn.cast {0}", next.name), {&next}, {}, "f32");
  Value height = addInner(formatv("nn.mul {0}, {1}", at.name, step.name), {&at, &step}, {}, "f32");
  return addInner(formatv("nn.lt {0}, {1}", height.name, top.name), {&height, &top}, {}, "i1");
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Of something outside the part at the iteration's number, along a dim that is long enough.
void Generator::addScanInput(const Value &number) {
  SmallVector<std::pair<Value, int64_t>> fitting;
  for (const Value &value : loops.back().values)
    for (auto [dim, extent] : llvm::enumerate(value.shape))
      if (value.elementType == "f32" && extent >= loops.back().most)
        fitting.push_back({value, dim});
  if (fitting.empty())
    return;
  auto [outer, dim] = pick(fitting);
  Value whole = capture(outer);
  SmallVector<int64_t> shape(whole.shape);
  shape.erase(shape.begin() + dim);
  values.push_back(
      addInner(formatv("nn.gather {0}, {1} dim {2}", whole.name, number.name, dim), {&whole, &number}, shape, "f32"));
}

/// What each iteration has of some value, one behind the other.
void Generator::addScanOutput(const Value &number) {
  Value part = *pickValue();
  SmallVector<int64_t> shape = {loops.back().most}, row = {1};
  shape.append(part.shape);
  row.append(part.shape);
  if (loops.back().most == 0 || countElements(shape) > kMaxElements)
    return;
  Value all = carry(outside([&] { return addInner("nn.constant dense<0.0>", {}, shape, "f32"); }));
  Value place = addInner(formatv("nn.reshape {0}", number.name), {&number}, {1, 1}, "i64");
  Value last = addInner(formatv("nn.reshape {0}", part.name), {&part}, row, "f32");
  loops.back().next.push_back(addInner(formatv("nn.scatter_nd set {0}, {1}, {2}", all.name, place.name, last.name),
                                       {&all, &place, &last}, shape, "f32"));
}

/// What the next iteration finds in place of `was`: the last thing made of its type, something else that is there, or the same again.
Value Generator::pickNext(const Value &was, size_t numFound) {
  SmallVector<Value> made, found;
  for (auto [index, value] : llvm::enumerate(values))
    if (value.shape == was.shape && value.elementType == was.elementType)
      (index < numFound ? found : made).push_back(value);
  if (made.empty() || chance(20))
    return found.empty() || chance(30) ? was : pick(found);
  Value next = made.back();
  return next.elementType != "f32" || chance(35)
             ? next
             : addInner(formatv("nn.tanh {0}", next.name), {&next}, next.shape, "f32");
}

/// What nothing uses is carried as well, so that no op is dead; beside what was carried of it now and then.
void Generator::carryUnused(size_t numFound) {
  SmallVector<Value> unused;
  for (const Value &value : llvm::ArrayRef(values).drop_front(numFound))
    if (!value.isArgument && value.elementType == "f32" && !isUsed(value) &&
        llvm::none_of(loops.back().next, [&](const Value &next) { return next.name == value.name; }))
      unused.push_back(value);
  for (const Value &value : unused) {
    Value was = carry(outside([&] { return addArgument(value.shape, "f32"); })), next = value;
    if (chance(50)) {
      Value sum = addInner(formatv("nn.add {0}, {1}", value.name, was.name), {&value, &was}, value.shape, "f32");
      next = addInner(formatv("nn.tanh {0}", sum.name), {&sum}, sum.shape, "f32");
    }
    loops.back().next.push_back(next);
  }
}

bool Generator::addLoop() {
  if (!hasAnnotations || loops.size() == 2)
    return false;
  LoopText loop;
  pickIterations(loop);
  SmallVector<Value> begin = {loop.zero};
  if (loop.kind == LoopText::Flag)
    begin.push_back(loop.condition);
  begin.push_back(*pickValue());
  for (int64_t i = 0, count = below(3); i < count; ++i)
    begin.push_back(chance(80) ? *pickValue() : pick(values));
  std::swap(values, loop.values);
  std::swap(body, loop.body);
  loops.push_back(std::move(loop));

  Value number = carry(begin[0]);
  for (auto [index, value] : llvm::enumerate(llvm::ArrayRef(begin).drop_front())) {
    Value inner = carry(value);
    if (index > 0 || loops.back().kind != LoopText::Flag)
      values.push_back(inner);
  }
  for (int64_t i = 0, count = below(3); i < count; ++i)
    capture(Value(pick(loops.back().values)));
  size_t numFound = values.size();
  if (chance(35))
    addScanInput(number);
  for (int64_t made = 0, tries = 0, count = 1 + below(4); made < count && tries < 12; ++tries)
    made += addOp();
  Value one = addInner("nn.constant dense<1>", {}, {}, "i64");
  loops.back().next.push_back(addInner(formatv("nn.add {0}, {1}", number.name, one.name), {&number, &one}, {}, "i64"));
  loops.back().more = addMore(Value(loops.back().next[0]));
  for (size_t index = 1; index < begin.size(); ++index) {
    bool isFlag = index == 1 && loops.back().kind == LoopText::Flag;
    Value was = loops.back().carried[index];
    loops.back().next.push_back(isFlag ? was : pickNext(was, numFound));
  }
  carryUnused(numFound);
  if (chance(35))
    addScanOutput(number);
  endLoop();
  return true;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// A name between blanks is seen as used.
static std::string listNames(llvm::ArrayRef<Value> list) {
  std::string text = "(";
  for (const Value &value : list)
    text += (text.size() > 1 ? ", " : " ") + value.name + " ";
  return text + ")";
}

void Generator::endLoop() {
  LoopText loop = std::move(loops.back());
  loops.pop_back();
  std::swap(values, loop.values);
  std::swap(body, loop.body);
  std::string name = formatv("%v{0}", nextName++), form, parameters, types, yields, results;
  auto append = [](std::string &list, const std::string &text) { list += (list.empty() ? "" : ", ") + text; };
  if (loop.kind != LoopText::Number)
    form += formatv(" count {0}", loop.most);
  std::string again = loop.more.name.empty() ? "" : " while " + loop.more.name;
  if (!again.empty()) {
    form += " while " + loop.condition.name;
    append(types, typeOf(loop.condition));
    append(yields, typeOf(loop.more));
  }
  form += " carries " + listNames(loop.initial);
  if (!loop.captured.empty())
    form += " captures " + listNames(loop.captured);
  for (const Value &value : llvm::concat<Value>(loop.initial, loop.captured))
    append(types, typeOf(value));
  for (const Value &value : llvm::concat<Value>(loop.carried, loop.taken))
    append(parameters, value.name + ": " + typeOf(value));
  for (const Value &value : loop.next)
    append(yields, typeOf(value));
  for (auto [index, value] : llvm::enumerate(loop.carried)) {
    Value result{formatv("{0}#{1}", name, index), value.shape, false, "", value.elementType};
    if (annotation(6))
      result.encoding = pickSharding(result.shape, result.elementType);
    append(results, typeOf(result));
    if (index > 0) // but for the number of iterations
      values.push_back(result);
  }
  body += formatv(
      "  {0}:{1} = nn.loop{2} : ({3}) -> ({4}) {{\n  ^bb0({5}):\n{6}  nn.yield{7} next {8} : ({9}) -> ()\n  }\n", name,
      loop.carried.size(), form, types, results, parameters, loop.body, again, listNames(loop.next), yields);
}
