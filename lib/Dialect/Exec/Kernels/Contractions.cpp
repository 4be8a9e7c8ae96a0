//===- Contractions.cpp - products, before kernels are formed -------------===//
//
// What only puts the operands or the result of a product into another order is left to the product:
//
//   einsum(transpose %a [1, 0], %b) "ik,kj->ij"     ->     einsum(%a, %b) "ki,kj->ij"
//
// A transposed convolution with steps as large as its kernel adds nothing up but channels: each pixel becomes a box of its own.
//
//   conv_transpose %x, %w strides [2, 2]             ->     reshape(einsum(%x, %w) "ncpq,coxy->nopxqy")
//
// A convolution of few windows with many weights, or of few samples and channels for many results (which is the gradient of such a
// weight), is a product of what is in its windows:
//
//   conv %x, %w      ->     einsum(windows %x, %w) "pqmi,oipq->mo"
//
//===----------------------------------------------------------------------===//
#include "Contractions.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "cleave/Dialect/Nn/IR/RowSums.h"
#include "cleave/Dialect/Nn/IR/Splat.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// Lets an einsum write its result in the order of the transpose that alone reads it: another order of letters.
static void foldResultTranspose(nn::EinsumOp einsum) {
  Value result = einsum.getResult();
  auto transpose = result.hasOneUse() ? dyn_cast<nn::TransposeOp>(*result.user_begin()) : nn::TransposeOp();
  if (!transpose)
    return;
  auto [operands, letters] = einsum.getEquation().split("->");
  std::string equation = (operands + "->").str();
  for (int64_t dim : transpose.getPermutation())
    equation += letters[dim];
  einsum.setEquation(equation);
  result.setType(transpose.getType());
  einsum->setLoc(FusedLoc::get(einsum.getContext(), {transpose.getLoc(), einsum.getLoc()}));
  transpose.replaceAllUsesWith(result);
  transpose.erase();
}

/// The letters of `term` that are not in `result`, in order.
static std::string getSummed(StringRef term, StringRef result) {
  std::string summed;
  llvm::copy_if(term, std::back_inserter(summed), [&](char letter) { return !result.contains(letter); });
  return summed;
}

/// Lets it read what its operands are transposes of, where that sums in the order as before: bits stay. Attention and
/// convolutions store in the order that is wanted.
static void foldOperandTransposes(nn::EinsumOp einsum) {
  nn::EinsumTerms terms = *nn::parseEinsum(einsum.getEquation());
  SmallVector<std::string> read;
  for (auto [term, operand] : llvm::zip_equal(terms.inputs, einsum->getOpOperands())) {
    std::string letters = term.str();
    auto transpose = operand.get().getDefiningOp<nn::TransposeOp>();
    Operation *maker = transpose ? transpose.getInput().getDefiningOp() : nullptr;
    if (transpose && !(maker && isAnchor(maker) && transpose->hasOneUse() && maker->hasOneUse())) {
      for (auto [letter, dim] : llvm::zip_equal(term, transpose.getPermutation()))
        letters[dim] = letter;
      if (getSummed(letters, terms.result) == getSummed(term, terms.result))
        operand.set(transpose.getInput());
      else
        letters = term.str();
    }
    read.push_back(letters);
  }
  einsum.setEquation(llvm::join(read, ",") + "->" + terms.result.str());
}

void cleave::exec::foldTransposes(Block &block) {
  for (auto einsum : llvm::to_vector(block.getOps<nn::EinsumOp>())) {
    foldResultTranspose(einsum);
    foldOperandTransposes(einsum);
  }
}

/// True if windows are boxes side by side that fill the result.
bool cleave::exec::isBoxes(nn::ConvTransposeOp op) {
  auto isAll = [](ArrayRef<int64_t> values, int64_t number) {
    return llvm::all_of(values, [&](int64_t value) { return value == number; });
  };
  return op.getWeight().getType().getShape().drop_front(2) == op.getStrides() && isAll(op.getPadsLow(), 0) &&
         isAll(op.getPadsHigh(), 0) && isAll(op.getOutputPads(), 0) && isAll(op.getDilations(), 1) &&
         op.getGroups() == 1 && op.getStrides().size() <= 3;
}

/// The same dims in either order; channels stand behind the batch, or last.
static Value contract(nn::ConvTransposeOp op, Value input, bool isLast) {
  OpBuilder builder(op);
  std::string pixels, taps = "co", boxes;
  RankedTensorType type = op.getResult().getType();
  SmallVector<int64_t> whole(type.getShape());
  for (size_t dim = 0; dim < op.getStrides().size(); ++dim) {
    pixels += "pqr"[dim];
    taps += "xyz"[dim];
    boxes += {"pqr"[dim], "xyz"[dim]};
  }
  int64_t channels = type.getDimSize(1);
  if (isLast)
    std::rotate(whole.begin() + 1, whole.begin() + 2, whole.end());
  std::string equation =
      isLast ? "n" + pixels + "c," + taps + "->n" + boxes + "o" : "nc" + pixels + "," + taps + "->no" + boxes;
  nn::Composer f(builder, op.getLoc());
  Value made = f.reshape(f.einsum({input, op.getWeight()}, equation), whole);
  if (Value bias = op.getBias()) {
    SmallVector<int64_t> perChannel(isLast ? 1 : type.getRank() - 1, 1);
    perChannel[0] = channels;
    made = f.add(made, f.reshape(bias, perChannel));
  }
  return made;
}

Value cleave::exec::contractLast(nn::ConvTransposeOp op, Value last) { return contract(op, last, true); }

void cleave::exec::contractConvolutions(Block &block) {
  for (auto op : llvm::make_early_inc_range(block.getOps<nn::ConvTransposeOp>()))
    if (isBoxes(op)) {
      op.replaceAllUsesWith(contract(op, op.getInput(), false));
      op.erase();
    }
}

//===----------------------------------------------------------------------===//
// What is in windows
//===----------------------------------------------------------------------===//

namespace {
/// A convolution over two dims, as a product. Of places of the kernel (*taps*) and of windows one kind is gone through one by one, each
/// a slice of the input; the other one lies as the input has it:
///
///   by taps      many weights: each row is a window      [taps, batch, windows, channels]
///   by windows   many results: each column is a result   [channels, taps, batch, windows]
///   few windows  of a large kernel: each is a row        [windows, batch, channels, taps]
class Unfolding {
public:
  explicit Unfolding(nn::ConvOp op)
      : op(op), builder(op), f(builder, op.getLoc()), weight(op.getWeight()), from(getShape(op.getInput())),
        kernel(getShape(weight)), to(getShape(op.getResult())) {}

  bool isWorthwhile(llvm::function_ref<bool(Value)> isLoaded);
  void run();

private:
  int64_t countWindows() const { return from[0] * from[1] * kernel[2] * kernel[3] * to[2] * to[3]; }
  bool isByTaps() { return countElements(op.getWeight()) >= countElements(op.getResult()); }
  bool hasFewWindows() const { return 4 * to[2] * to[3] <= kernel[2] * kernel[3]; }
  void takeFlips();
  void takeStored();
  Value sliceStored(ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps,
                    ArrayRef<int64_t> wanted);
  Value makeWindows();
  Value multiplyWindows();
  Value multiplyByTaps(Value windows);
  Value multiplyByWindows(Value windows);

  nn::ConvOp op;
  OpBuilder builder;
  nn::Composer f;
  Value weight;
  ArrayRef<int64_t> from, kernel, to;
  bool isFlipped[2] = {false, false}; ///< taps are gone through from the last one on
  /// What is sliced: the input with zeros around it, in the order in which it is stored, and which dim of that each dim of the input is.
  Value stored;
  SmallVector<int64_t> order{0, 1, 2, 3};
};
} // namespace

/// What is written of windows is at most half of the weights, or of the results, which one product then goes through once: as
/// convolutions they are read for each sample. Weights that are loaded are laid out beforehand instead.
bool Unfolding::isWorthwhile(llvm::function_ref<bool(Value)> isLoaded) {
  constexpr int64_t fewest = int64_t{1} << 12;
  int64_t largest = std::max(countElements(op.getWeight()), countElements(op.getResult()));
  bool isPlain = from.size() == 4 && op.getGroups() == 1 && isa<FloatType>(getElementTypeOrSelf(op.getInput()));
  Value source = op.getWeight();
  while (Operation *maker = source.getDefiningOp()) {
    if (!isView(maker) && !getAliasOffset(maker) && !isa<nn::CastOp>(maker))
      break;
    source = maker->getOperand(0);
  }
  return isPlain && largest >= fewest && 2 * countWindows() <= largest && !isLoaded(source) &&
         (isByTaps() || !op.getBias()) && countElements(op.getResult()) > 0;
}

/// A filter that is turned around is read as it is, by windows that are.
void Unfolding::takeFlips() {
  while (auto slice = weight.getDefiningOp<nn::SliceOp>()) {
    bool isAll = getShape(slice.getInput()) == getShape(slice.getResult());
    if (!isAll || slice.getSteps()[0] != 1 || slice.getSteps()[1] != 1)
      return;
    for (int64_t dim : {0, 1})
      isFlipped[dim] ^= slice.getSteps()[dim + 2] == -1;
    weight = slice.getInput();
  }
}

/// Channels stay last where they are, from the value that convolutions make to the windows: the zeros that a gradient or the
/// convolution puts around it go around that value, which is then read in rows of channels. What an anchor stores transposed is
/// read so.
void Unfolding::takeStored() {
  SmallVector<int64_t> low{0, 0}, high{0, 0};
  llvm::append_range(low, op.getPadsLow());
  llvm::append_range(high, op.getPadsHigh());
  stored = op.getInput();
  auto isZero = [](nn::PadOp pad) {
    return pad.getMode() == nn::PadMode::Constant && (!pad.getValue() || nn::getSplatNumber(pad.getValue()) == 0.0);
  };
  while (Operation *maker = stored.getDefiningOp()) {
    auto transpose = dyn_cast<nn::TransposeOp>(maker);
    auto pad = dyn_cast<nn::PadOp>(maker);
    Operation *before = transpose ? transpose.getInput().getDefiningOp() : nullptr;
    if (transpose && !(before && isAnchor(before))) {
      for (int64_t &dim : order)
        dim = transpose.getPermutation()[dim];
    } else if (pad && isZero(pad)) {
      for (auto [dim, at] : llvm::enumerate(order)) {
        low[dim] += pad.getLow()[at];
        high[dim] += pad.getHigh()[at];
      }
    } else {
      break;
    }
    stored = maker->getOperand(0);
  }
  SmallVector<int64_t> lowAt(4), highAt(4);
  for (auto [dim, at] : llvm::enumerate(order)) {
    lowAt[at] = low[dim];
    highAt[at] = high[dim];
  }
  stored = f.pad(stored, lowAt, highAt);
}

/// A slice of the padded input, whose dims are in the order that is wanted.
Value Unfolding::sliceStored(ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps,
                             ArrayRef<int64_t> wanted) {
  SmallVector<int64_t> startsAt(4), sizesAt(4), stepsAt(4);
  for (auto [dim, at] : llvm::enumerate(order)) {
    startsAt[at] = starts[dim];
    sizesAt[at] = sizes[dim];
    stepsAt[at] = steps[dim];
  }
  SmallVector<int64_t> wantedAt = llvm::map_to_vector(wanted, [&](int64_t dim) { return order[dim]; });
  return f.transpose(f.slice(stored, startsAt, sizesAt, stepsAt), wantedAt);
}

Value Unfolding::makeWindows() {
  bool byTaps = isByTaps();
  ArrayRef<int64_t> each = byTaps ? kernel.drop_front(2) : to.drop_front(2),
                    whole = byTaps ? to.drop_front(2) : kernel.drop_front(2),
                    apart = byTaps ? op.getDilations() : op.getStrides(),
                    steps = byTaps ? op.getStrides() : op.getDilations();
  SmallVector<Value> parts;
  for (int64_t row = 0; row < each[0]; ++row)
    for (int64_t column = 0; column < each[1]; ++column) {
      int64_t i = isFlipped[0] ? each[0] - 1 - row : row, j = isFlipped[1] ? each[1] - 1 - column : column;
      SmallVector<int64_t> wanted = byTaps ? SmallVector<int64_t>{0, 2, 3, 1} : SmallVector<int64_t>{1, 2, 3, 0};
      Value part = sliceStored({0, 0, i * apart[0], j * apart[1]}, {from[0], from[1], whole[0], whole[1]},
                               {1, 1, steps[0], steps[1]}, wanted);
      parts.push_back(part);
    }
  return f.concat(parts, 0);
}

/// Windows of all samples are one dim of the product: a picture of few pixels has fewer of them than a vector has lanes.
Value Unfolding::multiplyByTaps(Value windows) {
  windows = f.reshape(windows, {kernel[2], kernel[3], from[0] * to[2] * to[3], from[1]});
  Value result = f.einsum({windows, weight}, "pqmi,oipq->mo");
  result = f.transpose(f.reshape(result, {to[0], to[2], to[3], to[1]}), {0, 3, 1, 2});
  return op.getBias() ? f.add(result, f.reshape(op.getBias(), {to[1], 1, 1})) : result;
}

/// Rows are channels of the result, which is turned back. Its columns are those of the weight whose gradient it is, channels before
/// taps: windows are turned so, as they are fewer than the results.
Value Unfolding::multiplyByWindows(Value windows) {
  int64_t taps = to[2] * to[3];
  windows = f.transpose(f.reshape(windows, {taps, countElements(windows) / taps}), {1, 0});
  windows = f.reshape(windows, {from[1], kernel[2], kernel[3], from[0] * taps});
  Value result = f.einsum({windows, weight}, "ipqc,oipq->oc");
  return f.reshape(result, {to[1], to[0], to[2], to[3]});
}

/// The gradient of the first convolution's weight is such: 9 windows with as many taps as the image has pixels. Rows of the input
/// stay in one piece, and what is as large as the image is sliced 9 times, not once a pixel.
Value Unfolding::multiplyWindows() {
  SmallVector<Value> parts;
  for (int64_t row = 0; row < to[2]; ++row)
    for (int64_t column = 0; column < to[3]; ++column)
      parts.push_back(f.unsqueeze(sliceStored({0, 0, row * op.getStrides()[0], column * op.getStrides()[1]},
                                              {from[0], from[1], kernel[2], kernel[3]},
                                              {1, 1, op.getDilations()[0], op.getDilations()[1]}, {0, 1, 2, 3}),
                                  {0}));
  Value result = f.einsum({f.concat(parts, 0), op.getWeight()}, "wbipq,oipq->bow");
  result = f.reshape(result, {to[0], to[1], to[2], to[3]});
  return op.getBias() ? f.add(result, f.reshape(op.getBias(), {to[1], 1, 1})) : result;
}

void Unfolding::run() {
  takeStored();
  if (isByTaps() && hasFewWindows())
    return op.replaceAllUsesWith(multiplyWindows());
  if (isByTaps()) {
    takeFlips();
    return op.replaceAllUsesWith(multiplyByTaps(makeWindows()));
  }
  Value turned = multiplyByWindows(makeWindows());
  // The gradient of a weight is turned back anyway, by way of channels last perhaps.
  Operation *last = op;
  SmallVector<int64_t> order{1, 0, 2, 3};
  while (last->hasOneUse() && isa<nn::TransposeOp>(*last->user_begin())) {
    last = *last->user_begin();
    order = llvm::map_to_vector(cast<nn::TransposeOp>(last).getPermutation(), [&](int64_t dim) { return order[dim]; });
  }
  last->getResult(0).replaceAllUsesWith(f.transpose(turned, order));
  // Nothing reads what was on the way; it goes with all else that is not read.
}

void cleave::exec::unfoldConvolutions(Block &block, llvm::function_ref<bool(Value)> isLoaded) {
  for (auto op : llvm::to_vector(block.getOps<nn::ConvOp>()))
    if (Unfolding unfolding(op); unfolding.isWorthwhile(isLoaded))
      unfolding.run();
}

//===----------------------------------------------------------------------===//
// Slow ones
//===----------------------------------------------------------------------===//

/// True if rows lie in one piece, or one element of each beside those of the others: two dims apart are neither.
static bool areAdjacent(ArrayRef<int64_t> dims) {
  return dims.empty() || dims.back() - dims.front() + 1 == int64_t(dims.size());
}

/// Windows over more than two dims, or by long strides, have none; a resized last dim is computed element by element.
static bool hasTemplate(Operation *op) {
  constexpr int64_t mostStride = 16;
  auto isTiled = [](auto windowed) {
    return windowed.getStrides().size() <= 2 &&
           llvm::all_of(windowed.getStrides(), [](int64_t stride) { return stride <= mostStride; });
  };
  if (!isAnchor(op))
    return false;
  if (auto conv = dyn_cast<nn::ConvOp>(op))
    return isTiled(conv);
  if (auto pool = dyn_cast<nn::PoolOp>(op))
    return isTiled(pool) && pool.getKind() != nn::PoolKind::Lp;
  if (auto resize = dyn_cast<nn::ResizeOp>(op))
    return resize.getScales().empty() || resize.getScales().back() == 1;
  return nn::sumsRows(op) || isa<nn::EinsumOp, nn::AttentionOp, PartialAttentionOp, AttentionGradOp>(op);
}

/// Why `op` is slow; empty if it is not.
static StringRef getReason(Operation *op) {
  auto form = dyn_cast<nn::FormOpInterface>(op);
  auto isEmpty = [](Value value) { return countElements(value) == 0; };
  if (!form || hasTemplate(op) || llvm::any_of(op->getOperands(), isEmpty))
    return {};
  switch (form.getForm()) {
  case nn::Form::Data:
  case nn::Form::Map:
  case nn::Form::Movement:
  case nn::Form::Scan:
    return {};
  case nn::Form::Row:
    return areAdjacent(form.getRowDims()) ? "" : "the dims that it walks do not lie together";
  case nn::Form::Window:
    return "each element walks its window";
  case nn::Form::Sort:
    return "each row is sorted by one thread";
  case nn::Form::Scatter:
    return "updates are applied one after the other";
  case nn::Form::Contraction:
    return "it is not a product of two float matrices, so each element is summed by a scalar loop";
  case nn::Form::Convolution:
    return "no template computes this convolution, so each element walks its window";
  case nn::Form::Attention:
    return "no template computes this attention";
  case nn::Form::Recurrence:
    return "it is not unrolled";
  }
}

void cleave::exec::remarkSlow(Block &block, llvm::DenseSet<OperationName> &told) {
  for (Operation &op : block)
    if (StringRef reason = getReason(&op); !reason.empty() && told.insert(op.getName()).second)
      op.emitRemark() << op.getName() << " runs in a slow kernel: " << reason;
}
