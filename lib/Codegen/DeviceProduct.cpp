//===- DeviceProduct.cpp - contractions on devices --------------------------===//
//
// Letters of an equation are rows (of the first operand and the result), columns (of the second and the result), depth (of both
// operands) or batches (of all). A block of threads makes a square of the result, each thread 4 x 4 elements of it in registers:
//
//   for each 16 of the depth
//     store what was loaded of both operands to shared memory, a barrier
//     load the next 16, while
//     16 times: 4 rows of the one and 4 columns of the other, 16 products              in the order of the depth
//     a barrier
//
// Operands are pulled, whatever they are made of; along the dim that lies side by side in memory where that can be told. Sums are in
// the compute type, fused, one depth after the other, as the host's are. What lies behind the end of the depth counts as 0;
// rows and columns behind theirs are computed of others and not stored.
//
//===----------------------------------------------------------------------===//
#include "DeviceTemplates.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

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
  /// Four neighbours are four of the last letter.
  bool hasVectors() const { return !extents.empty() && extents.back() % 4 == 0; }
};

struct Equation {
  nn::EinsumTerms terms;
  Group batch, rows, columns, depth;

  static std::optional<Equation> get(nn::EinsumOp op);
};

/// Where letters stand.
using Letters = llvm::DenseMap<char, Index>;

/// An operand's share of a step: `wide` elements at a time, side by side along `fast`.
struct Share {
  Value operand;
  StringRef term;
  const Group *outer; ///< rows or columns
  bool alongDepth;    ///< else along the outer letters
  int64_t wide;
  Value memory; ///< [depth][outer], rows `kApart` longer than needed
};

class ProductKernel {
public:
  ProductKernel(DeviceEmitter &e, nn::EinsumOp op, const Equation &equation, TileSink sink)
      : e(e), op(op), equation(equation), sink(sink),
        compute(ElementBuilder::getComputeType(getElement(op.getResult()))) {}
  void run();

private:
  void place();
  Share makeShare(unsigned number, const Group &outer);
  void set(Letters &letters, const Group &group, Value linear, bool isWide);
  int64_t getParts(const Share &share) const { return side * kDepth / (threads * share.wide); }
  /// Where part `part` of this thread's lies in the tile: along the depth, along the outer letters.
  std::pair<Value, Value> placePart(const Share &share, int64_t part);
  Value load(const Share &share, Value outerStart, Value step, int64_t part);
  Values loadAll(Value step);
  void storeAll(ArrayRef<Value> parts);
  Values multiply(Values sums);
  void storeSums(ArrayRef<Value> sums);

  static constexpr int64_t kDepth = 16, kApart = 4, kEach = 4;

  DeviceEmitter &e;
  nn::EinsumOp op;
  const Equation &equation;
  TileSink sink;
  Type compute;
  int64_t side = 64, threads = 256;
  SmallVector<Share, 2> shares;
  Letters batch;
  Value firstRow, firstColumn, inRows, inColumns; ///< of the square; of this thread in it
};

} // namespace

/// Nothing where a letter stands twice in a term or in one operand only, or where there is nothing to sum.
std::optional<Equation> Equation::get(nn::EinsumOp op) {
  if (op.getInputs().size() != 2 || !isa<FloatType>(getElement(op.getResult())))
    return std::nullopt;
  Equation made{*nn::parseEinsum(op.getEquation()), {}, {}, {}, {}};
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
    Group &group = !a.contains(letter) ? made.columns : !b.contains(letter) ? made.rows : made.batch;
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
  return made;
}

/// Small squares where large ones would leave most of a device without work.
void ProductKernel::place() {
  PlaceBuilder &p = e.places;
  int64_t rows = equation.rows.count(), columns = equation.columns.count(), batches = equation.batch.count();
  auto countBlocks = [&] { return batches * llvm::divideCeil(rows, side) * llvm::divideCeil(columns, side); };
  if (countBlocks() < 128) {
    side = 32;
    threads = 64;
  }
  e.launch(countBlocks(), threads);
  SmallVector<Value> at = p.delinearise(
      e.getBlock(), {batches, int64_t(llvm::divideCeil(rows, side)), int64_t(llvm::divideCeil(columns, side))});
  set(batch, equation.batch, at[0], false);
  firstRow = p.mul(at[1], side);
  firstColumn = p.mul(at[2], side);
  inRows = p.mul(p.div(e.getThread(), side / kEach), kEach);
  inColumns = p.mul(p.rem(e.getThread(), side / kEach), kEach);
}

/// The letter that comes last in an operand's term says along what its elements lie side by side.
Share ProductKernel::makeShare(unsigned number, const Group &outer) {
  StringRef term = equation.terms.inputs[number];
  bool alongDepth = term.empty() || !StringRef(outer.letters).ends_with(term.take_back());
  const Group &fast = alongDepth ? equation.depth : outer;
  bool isWide = fast.hasVectors() && !term.empty() && term.back() == fast.letters.back();
  Value memory = e.share(compute, kDepth * (side + kApart));
  return {op.getInputs()[number], term, &outer, alongDepth, isWide ? 4 : 1, memory};
}

void ProductKernel::set(Letters &letters, const Group &group, Value linear, bool isWide) {
  for (auto [letter, place] : llvm::zip_equal(group.letters, e.places.delinearise(linear, group.extents)))
    letters[letter] = {place};
  if (isWide)
    letters[group.letters.back()].lane = 1;
}

std::pair<Value, Value> ProductKernel::placePart(const Share &share, int64_t part) {
  PlaceBuilder &p = e.places;
  int64_t across = (share.alongDepth ? kDepth : side) / share.wide, each = threads / across;
  Value fast = p.mul(p.rem(e.getThread(), across), share.wide);
  Value slow = p.add(p.div(e.getThread(), across), part * each);
  return share.alongDepth ? std::make_pair(fast, slow) : std::make_pair(slow, fast);
}

/// What is behind an end is read at the last place there is.
Value ProductKernel::load(const Share &share, Value outerStart, Value step, int64_t part) {
  PlaceBuilder &p = e.places;
  auto [inDepth, inOuter] = placePart(share, part);
  auto clamp = [&](Value place, const Group &group, bool isFast, int64_t tile) {
    int64_t count = group.count();
    return count % tile == 0 ? place : p.clamp(place, 0, count - (isFast ? share.wide : 1));
  };
  Value depth = p.add(p.mul(step, kDepth), inDepth), outer = p.add(outerStart, inOuter);
  Letters letters = batch;
  // The step behind the last is loaded too, and not used: it must be somewhere.
  set(letters, equation.depth, p.clamp(depth, 0, equation.depth.count() - (share.alongDepth ? share.wide : 1)),
      share.alongDepth && share.wide > 1);
  set(letters, *share.outer, clamp(outer, *share.outer, !share.alongDepth, side), !share.alongDepth && share.wide > 1);
  Point point;
  for (auto [letter, extent] : llvm::zip_equal(share.term, getShape(share.operand)))
    point.push_back(extent == 1 ? Index{p.number(0)} : letters.lookup(letter));
  return e.withLanes(share.wide, share.wide, [&] {
    Value value = e.elements.widen(e.eval(share.operand, point));
    if (equation.depth.count() % kDepth == 0)
      return value;
    Value isThere = p.isLess(depth, equation.depth.count());
    return Value(arith::SelectOp::create(e.b, e.loc, isThere, value, e.elements.like(value, 0)));
  });
}

Values ProductKernel::loadAll(Value step) {
  Values parts;
  for (const Share &share : shares)
    for (int64_t part = 0; part < getParts(share); ++part)
      parts.push_back(load(share, share.outer == &equation.rows ? firstRow : firstColumn, step, part));
  return parts;
}

/// Rows of the tile are the depth, so that what a step multiplies lies side by side; what was loaded along the depth is stored
/// element by element.
void ProductKernel::storeAll(ArrayRef<Value> parts) {
  PlaceBuilder &p = e.places;
  int64_t pitch = side + kApart;
  for (const Share &share : shares)
    for (int64_t part = 0; part < getParts(share); ++part, parts = parts.drop_front()) {
      auto [depth, outer] = placePart(share, part);
      Value place = p.add(p.mul(depth, pitch), outer), value = parts.front();
      e.withLanes(share.wide, share.wide, [&] {
        e.store(share.memory, value, {place, share.alongDepth ? pitch : 1});
        return 0;
      });
    }
}

/// Sums are four vectors of four columns.
Values ProductKernel::multiply(Values sums) {
  PlaceBuilder &p = e.places;
  int64_t pitch = side + kApart;
  e.withLanes(kEach, kEach, [&] {
    for (int64_t depth = 0; depth < kDepth; ++depth) {
      Value a = e.load(shares[0].memory, compute, {p.add(inRows, depth * pitch), 1});
      Value b = e.load(shares[1].memory, compute, {p.add(inColumns, depth * pitch), 1});
      for (int64_t row = 0; row < kEach; ++row)
        sums[row] = e.elements.fma(e.splat(e.takeLanes(a, row, 1)), b, sums[row]);
    }
    return 0;
  });
  return sums;
}

/// Vectors where all of their elements are there together, or none.
void ProductKernel::storeSums(ArrayRef<Value> sums) {
  PlaceBuilder &p = e.places;
  const Group &rows = equation.rows, &columns = equation.columns;
  Type held = ElementBuilder::getHeldType(getElement(op.getResult()));
  bool isWide = columns.hasVectors();
  auto storeAt = [&](Value row, Value column, Value value, bool wide) {
    Value isThere;
    auto need = [&](Value place, const Group &group) {
      if (group.count() % side == 0)
        return;
      Value isIn = p.isLess(place, group.count());
      isThere = isThere ? e.elements.both(isThere, isIn) : isIn;
    };
    need(row, rows);
    need(column, columns);
    auto store = [&] {
      Letters letters = batch;
      set(letters, rows, row, false);
      set(letters, columns, column, wide);
      Point point;
      for (char letter : equation.terms.result)
        point.push_back(letters.lookup(letter));
      sink(point, e.elements.narrow(value, held));
    };
    isThere ? e.when(isThere, store) : store();
  };
  for (int64_t i = 0; i < kEach; ++i) {
    Value row = p.add(p.add(firstRow, inRows), i), column = p.add(firstColumn, inColumns);
    if (isWide) {
      e.withLanes(kEach, kEach, [&] {
        storeAt(row, column, sums[i], true);
        return 0;
      });
      continue;
    }
    for (int64_t lane = 0; lane < kEach; ++lane)
      storeAt(row, p.add(column, lane), e.takeLanes(sums[i], lane, 1), false);
  }
}

void ProductKernel::run() {
  if (countElements(getShape(op.getResult())) == 0)
    return;
  place();
  shares = {makeShare(0, equation.rows), makeShare(1, equation.columns)};
  Value zero = e.withLanes(kEach, kEach, [&] { return e.elements.number(e.withLanes(compute), 0); });
  Values sums(kEach, zero);
  int64_t steps = llvm::divideCeil(equation.depth.count(), kDepth);
  if (steps > 0) {
    Values carried = loadAll(e.places.number(0));
    size_t loaded = carried.size();
    carried.append(sums);
    carried = e.loop(e.places.number(0), e.places.number(steps), 1, carried, [&](Value step, Values inner) {
      storeAll(ArrayRef(inner).take_front(loaded));
      e.barrier();
      Values next = loadAll(e.places.add(step, 1));
      next.append(multiply(Values(ArrayRef(inner).drop_front(loaded))));
      e.barrier();
      return next;
    });
    sums = Values(ArrayRef(carried).drop_front(loaded));
  }
  storeSums(sums);
}

bool cleave::codegen::canRunProduct(nn::EinsumOp op) { return Equation::get(op).has_value(); }

void cleave::codegen::runDeviceProduct(Emitter &e, nn::EinsumOp op, TileSink sink) {
  ProductKernel(static_cast<DeviceEmitter &>(e), op, *Equation::get(op), sink).run();
}
