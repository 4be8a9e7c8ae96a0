//===- DeviceProduct.cpp - contractions on devices --------------------------===//
//
// Letters of an equation are rows (of the first operand and the result), columns (of the second and the result), depth (of both
// operands) or batches (of all); each group is one number, its last letter fastest. What lies side by side in the result are
// columns, if need be with the operands exchanged.
//
// Operands are pulled, whatever they are made of; what is a tensor of f16 or bf16 that is widened is multiplied as it lies in
// memory. Sums are in the compute type.
//
//===----------------------------------------------------------------------===//
#include "DeviceTemplates.h"
#include "DeviceTile.h"
#include "View.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

/// Letters that are walked as one, the last one fastest.
struct Group {
  std::string letters;
  SmallVector<int64_t> extents;

  void add(char letter, int64_t extent) {
    letters += letter;
    extents.push_back(extent);
  }
  int64_t count() const { return countElements(extents); }
  /// So many neighbours, from a multiple of it on, are neighbours of the last letter.
  int64_t together() const { return extents.empty() ? 1 : extents.back(); }
};

struct Equation {
  nn::EinsumTerms terms;
  Group batch, outer[2], depth; ///< outer: rows, columns
  unsigned operand[2] = {0, 1}; ///< which one has the rows, the columns

  static std::optional<Equation> get(nn::EinsumOp op);
};

/// Where letters stand.
using Letters = llvm::DenseMap<char, Index>;

class ProductSource : public TileSource {
public:
  ProductSource(DeviceEmitter &e, nn::EinsumOp op, const Equation &equation, TileSink sink);
  void enter(Value batch) override;
  Value load(unsigned side, Value outer, Value depth) override;
  std::optional<Location> locate(unsigned side, Value outer, Value depth) override;
  void store(Value row, Value column, Value sums) override;

private:
  void chooseElement();
  void describe(unsigned side);
  StringRef getTerm(unsigned side) const { return equation.terms.inputs[equation.operand[side]]; }
  void set(Letters &letters, const Group &group, Value linear, bool isWide);
  Point getPoint(unsigned side, Value outer, Value depth);

  DeviceEmitter &e;
  nn::EinsumOp op;
  const Equation &equation;
  TileSink sink;
  Value operands[2];
  View views[2];
  Letters batch;
};

} // namespace

/// Nothing where a letter stands twice in a term or in one operand only, or where there is nothing to sum.
std::optional<Equation> Equation::get(nn::EinsumOp op) {
  if (op.getInputs().size() != 2 || !isa<FloatType>(getElement(op.getResult())))
    return std::nullopt;
  Equation made;
  made.terms = *nn::parseEinsum(op.getEquation());
  StringRef a = made.terms.inputs[0], b = made.terms.inputs[1], result = made.terms.result;
  std::map<char, int64_t> extents;
  for (auto [term, operand] : llvm::zip_equal(made.terms.inputs, op.getInputs()))
    for (auto [letter, extent] : llvm::zip_equal(term, getShape(operand))) {
      if (term.count(letter) > 1)
        return std::nullopt;
      int64_t &known = extents.try_emplace(letter, 1).first->second;
      known = extent == 1 ? known : extent;
    }
  for (char letter : result) {
    if (result.count(letter) > 1)
      return std::nullopt;
    Group &group = !a.contains(letter) ? made.outer[1] : !b.contains(letter) ? made.outer[0] : made.batch;
    group.add(letter, extents[letter]);
  }
  for (char letter : a)
    if (!result.contains(letter)) {
      if (!b.contains(letter))
        return std::nullopt;
      made.depth.add(letter, extents[letter]);
    }
  bool isSummedAlone = llvm::any_of(b, [&](char letter) { return !result.contains(letter) && !a.contains(letter); });
  if (isSummedAlone || made.depth.letters.empty())
    return std::nullopt;
  if (!result.empty() && StringRef(made.outer[0].letters).contains(result.back())) {
    std::swap(made.outer[0], made.outer[1]);
    std::swap(made.operand[0], made.operand[1]);
  }
  return made;
}

ProductSource::ProductSource(DeviceEmitter &e, nn::EinsumOp op, const Equation &equation, TileSink sink)
    : e(e), op(op), equation(equation), sink(sink) {
  batches = equation.batch.count();
  depth = equation.depth.count();
  chooseElement();
  for (unsigned side : {0, 1})
    describe(side);
  // As many as 16 bytes of the result are, and no fewer than four numbers.
  int64_t bits = ElementBuilder::getStoredType(getElement(op.getResult())).getIntOrFloatBitWidth();
  StringRef result = equation.terms.result;
  if (!result.empty() && StringRef(equation.outer[1].letters).ends_with(result.take_back()))
    storeLanes = std::gcd(equation.outer[1].together(), std::max<int64_t>(128 / bits, 4));
}

/// What `value` is before it is widened.
static Value getNarrow(Value value) {
  auto cast = value.getDefiningOp<nn::CastOp>();
  if (!cast || !getElement(value).isF32())
    return value;
  Type from = getElement(cast.getInput());
  return from.isF16() || from.isBF16() ? cast.getInput() : value;
}

void ProductSource::chooseElement() {
  Value narrow[2] = {getNarrow(op.getInputs()[0]), getNarrow(op.getInputs()[1])};
  element = getElement(narrow[0]);
  bool areHalves = (element.isF16() || element.isBF16()) && getElement(narrow[1]) == element;
  if (!areHalves)
    element = ElementBuilder::getComputeType(getElement(op.getResult()));
  isShort = element.isF32() && e.getTarget().allowsTf32();
  for (unsigned side : {0, 1}) {
    unsigned number = equation.operand[side];
    operands[side] = areHalves ? narrow[number] : op.getInputs()[number];
    views[side] = View::get(operands[side]);
  }
}

/// The letter that comes last in an operand's term says along what its elements lie side by side.
void ProductSource::describe(unsigned side) {
  StringRef term = getTerm(side);
  const Group &outer = equation.outer[side];
  Side &made = sides[side];
  made.count = outer.count();
  made.alongDepth = term.empty() || !StringRef(outer.letters).ends_with(term.take_back());
  const Group &fast = made.alongDepth ? equation.depth : outer;
  made.together = !term.empty() && term.back() == fast.letters.back() ? fast.together() : 1;
}

void ProductSource::set(Letters &letters, const Group &group, Value linear, bool isWide) {
  for (auto [letter, place] : llvm::zip_equal(group.letters, e.places.delinearise(linear, group.extents)))
    letters[letter] = {place};
  if (isWide)
    letters[group.letters.back()].lane = 1;
}

void ProductSource::enter(Value number) { set(batch, equation.batch, number, false); }

Point ProductSource::getPoint(unsigned side, Value outer, Value depth) {
  bool isWide = e.getLanes() > 1, alongDepth = sides[side].alongDepth;
  Letters letters = batch;
  set(letters, equation.depth, depth, isWide && alongDepth);
  set(letters, equation.outer[side], outer, isWide && !alongDepth);
  Point point;
  for (auto [letter, extent] : llvm::zip_equal(getTerm(side), getShape(operands[side])))
    point.push_back(extent == 1 ? Index{e.places.number(0)} : letters.lookup(letter));
  return point;
}

Value ProductSource::load(unsigned side, Value outer, Value depth) {
  Value value = e.eval(operands[side], getPoint(side, outer, depth));
  return getElement(operands[side]) == element ? value : e.elements.widen(value);
}

/// Through movements, if neighbours stay neighbours.
std::optional<TileSource::Location> ProductSource::locate(unsigned side, Value outer, Value depth) {
  PlaceBuilder &p = e.places;
  const View &view = views[side];
  Value buffer = e.getBuffer(view.base);
  if (!buffer || getElement(view.base) != element)
    return std::nullopt;
  Value place = p.number(view.offset);
  Point point = e.withLanes(2, 2, [&] { return getPoint(side, outer, depth); });
  int64_t apart = 0;
  for (auto [index, dim] : llvm::zip_equal(point, view.dims)) {
    if (dim.width)
      return std::nullopt;
    place = p.add(place, p.mul(index.base, dim.stride));
    apart += index.lane * dim.stride;
  }
  return apart == 1 ? std::optional(Location{buffer, place}) : std::nullopt;
}

void ProductSource::store(Value row, Value column, Value sums) {
  Letters letters = batch;
  set(letters, equation.outer[0], row, false);
  set(letters, equation.outer[1], column, e.getLanes() > 1);
  Point point;
  for (char letter : equation.terms.result)
    point.push_back(letters.lookup(letter));
  sink(point, e.elements.narrow(sums, ElementBuilder::getHeldType(getElement(op.getResult()))));
}

bool cleave::codegen::canRunProduct(nn::EinsumOp op) { return Equation::get(op).has_value(); }

void cleave::codegen::runDeviceProduct(Emitter &e, nn::EinsumOp op, TileSink sink) {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  Equation equation = *Equation::get(op);
  ProductSource source(static_cast<DeviceEmitter &>(e), op, equation, sink);
  runTile(static_cast<DeviceEmitter &>(e), source);
}
