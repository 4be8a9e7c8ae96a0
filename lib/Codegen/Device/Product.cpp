//===- Product.cpp - contractions on devices ------------------------------===//
//
// Letters of an equation are rows (of the first operand and the result), columns (of the second and the result), depth (of both
// operands) or batches (of all); each group is one number, its last letter fastest. What lies side by side in the result are
// columns, if need be with the operands exchanged.
//
// Operands are pulled, whatever they are made of; what is a tensor of f16 or bf16 that is widened is multiplied as it lies in
// memory. Sums are in the compute type.
//
//===----------------------------------------------------------------------===//
#include "Operand.h"
#include "Templates.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"

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
  /// So many neighbors, from a multiple of it on, are neighbors of the last letter.
  int64_t together() const { return extents.empty() ? 1 : extents.back(); }
};

struct Equation {
  nn::EinsumTerms terms;
  Group batch, outer[2], depth; ///< outer: rows, columns
  unsigned operand[2] = {0, 1}; ///< which one has the rows, the columns

  static std::optional<Equation> get(nn::EinsumOp op);
};

/// Where letters stand.
using LetterPlaces = llvm::DenseMap<char, Index>;

class ProductSource : public TileSource {
public:
  ProductSource(DeviceEmitter &e, nn::EinsumOp op, const Equation &equation, TileSink sink);
  void enter(Value batch) override;
  Value load(unsigned side, Value outer, Value depth) override;
  std::optional<Location> locate(unsigned side, Value outer, Value depth) override;
  void store(Value row, Value column, Value sums) override;

private:
  void describe(unsigned side);
  StringRef getTerm(unsigned side) const { return equation.terms.inputs[equation.operand[side]]; }
  void set(LetterPlaces &letters, const Group &group, Value linear, bool isWide);
  Point getPoint(unsigned side, Value outer, Value depth);

  DeviceEmitter &e;
  nn::EinsumOp op;
  const Equation &equation;
  TileSink sink;
  DeviceOperands operands;
  LetterPlaces batch;
};

} // namespace

/// Nothing where a letter stands twice in a term or in one operand only, or where there is nothing to sum.
std::optional<Equation> Equation::get(nn::EinsumOp op) {
  if (op.getInputs().size() != 2 || !isa<FloatType>(getElementType(op.getResult())))
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
      if (extent == 0)
        return std::nullopt;
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
    : e(e), op(op), equation(equation), sink(sink),
      operands(e, op.getInputs()[equation.operand[0]], op.getInputs()[equation.operand[1]],
               getElementType(op.getResult())) {
  batches = equation.batch.count();
  depth = equation.depth.count();
  element = operands.getElement();
  isShort = operands.isShort();
  for (unsigned side : {0, 1})
    describe(side);
  StringRef result = equation.terms.result;
  if (!result.empty() && StringRef(equation.outer[1].letters).ends_with(result.take_back()))
    storeLanes = getStoreLanes(op, equation.outer[1].together());
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

void ProductSource::set(LetterPlaces &letters, const Group &group, Value linear, bool isWide) {
  for (auto [letter, place] : llvm::zip_equal(group.letters, e.places.delinearize(linear, group.extents)))
    letters[letter] = {place};
  if (isWide)
    letters[group.letters.back()].lane = 1;
}

void ProductSource::enter(Value number) { set(batch, equation.batch, number, false); }

Point ProductSource::getPoint(unsigned side, Value outer, Value depth) {
  bool isWide = e.getLanes() > 1, alongDepth = sides[side].alongDepth;
  LetterPlaces letters = batch;
  set(letters, equation.depth, depth, isWide && alongDepth);
  set(letters, equation.outer[side], outer, isWide && !alongDepth);
  Point point;
  for (auto [letter, extent] : llvm::zip_equal(getTerm(side), getShape(op.getInputs()[equation.operand[side]])))
    point.push_back(extent == 1 ? Index{e.places.number(0)} : letters.lookup(letter));
  return point;
}

Value ProductSource::load(unsigned side, Value outer, Value depth) {
  return operands.load(side, getPoint(side, outer, depth));
}

std::optional<TileSource::Location> ProductSource::locate(unsigned side, Value outer, Value depth) {
  return operands.locate(side, e.withLanes(2, 2, [&] { return getPoint(side, outer, depth); }));
}

void ProductSource::store(Value row, Value column, Value sums) {
  LetterPlaces letters = batch;
  set(letters, equation.outer[0], row, false);
  set(letters, equation.outer[1], column, e.getLanes() > 1);
  Point point;
  for (char letter : equation.terms.result)
    point.push_back(letters.lookup(letter));
  sink(point, e.elements.narrow(sums, ElementBuilder::getHeldType(getElementType(op.getResult()))));
}

bool cleave::codegen::canRunProduct(nn::EinsumOp op) { return Equation::get(op).has_value(); }

void cleave::codegen::runDeviceProduct(Emitter &e, nn::EinsumOp op, TileSink sink) {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  Equation equation = *Equation::get(op);
  ProductSource source(static_cast<DeviceEmitter &>(e), op, equation, sink);
  runTile(static_cast<DeviceEmitter &>(e), source);
}
