//===- SplitWeights.cpp - slices of a wide dot move onto its weight -------===//
//
//   x ─▶ einsum ─▶ add bias ─▶ reshape ─┬─▶ slice [0, n)          x ─▶ einsum ─▶ add ─▶ reshape
//          │W                           └─▶ slice [n, 2n)    =>        │slice W   │slice bias      (twice)
//
// Only where every use is a slice along the same dim, the pieces do not overlap (nothing is computed twice) and the dim
// stems from a parameter or constant: an activation would be sliced anyway.
//
// Of a parameter that nothing else reads each piece is loaded by itself, so that each rank stores its share of each.
// What a plan wants of the parameter (a pin) it then wants of each piece: a fused qkv weight that is cut by columns is
// cut by heads in each of the three, where contiguous columns would have to be gathered again.
//
// So with the weights of recurrent nets, whose gates lie one behind the other in a dim that becomes two. Where a plan cuts that dim,
// the units of every gate are what it can mean:
//
//   load R [d, g h, k] ─▶ pin ─▶ reshape [d, g, h, k]   =>   load R's gate ─▶ pin ─▶ reshape [d, 1, h, k]  (g times) ─▶ concat
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNSPLITWEIGHTS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// One step of the way from the sliced value up to the weight: an op and the dim of its result that is cut.
struct Step {
  Operation *op;
  int64_t dim;
  /// The operand that leads on to the weight; for an einsum the weight itself.
  unsigned operand;
};

/// The dim along which all of `slices` cut, their pieces disjoint and their steps 1; nothing otherwise.
std::optional<int64_t> getCommonDim(ArrayRef<SliceOp> slices) {
  std::optional<int64_t> common;
  SmallVector<std::pair<int64_t, int64_t>> pieces;
  for (SliceOp slice : slices) {
    for (auto [dim, extent] : llvm::enumerate(getShape(slice.getInput()))) {
      if (slice.getSteps()[dim] != 1)
        return std::nullopt;
      if (slice.getSizes()[dim] == extent)
        continue;
      if (common.value_or(dim) != static_cast<int64_t>(dim))
        return std::nullopt;
      common = dim;
    }
    if (!common)
      return std::nullopt;
    pieces.push_back({slice.getStarts()[*common], slice.getStarts()[*common] + slice.getSizes()[*common]});
  }
  llvm::sort(pieces);
  for (size_t i = 1; i < pieces.size(); ++i)
    if (pieces[i].first < pieces[i - 1].second)
      return std::nullopt;
  return common;
}

/// The op that makes `value`, behind a pin of it.
Operation *getSource(Value value) {
  auto pin = value.getDefiningOp<spmd::PinOp>();
  return pin ? pin.getInput().getDefiningOp() : value.getDefiningOp();
}

bool isWeight(Value value) {
  if (!isFree(value))
    return false;
  Operation *op = getSource(value);
  return isa_and_present<LoadOp>(op) || isa_and_present<ConstantOp>(value.getDefiningOp());
}

/// `weight` cut along `dim`: a part of a parameter is loaded by itself, under the parameter's pin.
/// Other readers than `readers` keep it whole.
Value takePart(OpBuilder &builder, ArrayRef<Operation *> readers, Value weight, int64_t dim, int64_t start,
               int64_t size) {
  auto load = dyn_cast_if_present<LoadOp>(getSource(weight));
  auto pin = weight.getDefiningOp<spmd::PinOp>();
  bool isReadHereOnly = llvm::all_of(weight.getUsers(), [&](Operation *op) { return llvm::is_contained(readers, op); });
  if (!load || !isReadHereOnly || (pin && !load.getResult().hasOneUse()))
    return Composer(builder, getInnerLoc(readers.front()->getLoc())).sliceDim(weight, dim, start, size);
  SmallVector<int64_t> sizes(getShape(weight)), starts(sizes.size(), 0);
  starts[dim] = start;
  sizes[dim] = size;
  Value part = load.takePart(builder, starts, sizes);
  return pin ? spmd::PinOp::create(builder, pin.getLoc(), part, pin.getNameAttr(), pin.getAnnotationAttr()) : part;
}

struct SplitWeights : public cleave::nn::impl::NnSplitWeightsBase<SplitWeights> {
  void runOnOperation() override {
    // Values that slices read, in program order: upper ones first, so that a split below is seen after one above.
    SmallVector<Value> sliced;
    getOperation().walk([&](SliceOp slice) {
      if (slice.getInput().getDefiningOp() && slice->getOperand(0).use_begin()->getOwner() == slice)
        sliced.push_back(slice.getInput());
    });
    for (Value value : sliced)
      split(value);
    SmallVector<ReshapeOp> gates;
    getOperation().walk([&](RecurrenceOp op) {
      addGates(op.getWeight(), gates);
      if (EinsumOp product = findProduct(op.getProjected()))
        for (Value input : product.getInputs())
          addGates(input, gates);
    });
    for (ReshapeOp reshape : gates)
      takeApart(reshape);
  }

private:
  /// What the input says of all steps, behind biases.
  static EinsumOp findProduct(Value projected) {
    while (auto add = projected.getDefiningOp<AddOp>())
      projected = add.getLhs();
    return projected.getDefiningOp<EinsumOp>();
  }

  /// A weight of gates [d, g, h, k] that comes of a parameter [d, g h, k], which a plan cuts along the gates.
  static void addGates(Value weight, SmallVectorImpl<ReshapeOp> &gates) {
    auto reshape = weight.getDefiningOp<ReshapeOp>();
    auto pin = reshape ? reshape.getInput().getDefiningOp<spmd::PinOp>() : spmd::PinOp();
    if (!pin || !pin.getAnnotationAttr() || !isFree(weight) || getShape(weight).size() != 4 || getShape(weight)[1] == 1)
      return;
    bool isFull = isa_and_present<LoadOp>(getSource(pin)) && getShape(pin).size() == 3 &&
                  getShape(pin)[1] == getShape(weight)[1] * getShape(weight)[2] && pin.getResult().hasOneUse();
    if (isFull && !pin.getAnnotationAttr().getSharding().getDims()[1].getAxes().empty())
      gates.push_back(reshape);
  }

  static void takeApart(ReshapeOp reshape) {
    OpBuilder builder(reshape);
    Composer f(builder, getInnerLoc(reshape.getLoc()));
    SmallVector<int64_t> one(getShape(reshape.getResult()));
    int64_t count = one[1], units = one[2];
    one[1] = 1;
    SmallVector<Value> parts;
    Value weight = reshape.getInput();
    for (int64_t gate = 0; gate < count; ++gate) {
      Value part = takePart(builder, {reshape}, weight, 1, gate * units, units);
      parts.push_back(f.reshape(part, one));
    }
    Operation *pin = weight.getDefiningOp();
    Value all = f.at(reshape.getLoc()).concat(parts, 1);
    reshape.getResult().replaceAllUsesWith(all);
    reshape.erase();
    // A pin with an annotation would stay, unused.
    pin->erase();
  }

  static void split(Value value) {
    SmallVector<SliceOp> slices;
    for (Operation *user : value.getUsers()) {
      auto slice = dyn_cast<SliceOp>(user);
      if (!slice || !isFree(slice.getResult()))
        return;
      slices.push_back(slice);
    }
    std::optional<int64_t> dim = getCommonDim(slices);
    if (!dim || slices.size() < 2)
      return;
    SmallVector<Step> way;
    if (!findWeight(value, *dim, way))
      return;
    // Users come last first.
    for (SliceOp slice : llvm::reverse(slices)) {
      OpBuilder builder(slice);
      Value piece = rebuild(builder, way, slice.getStarts()[*dim], slice.getSizes()[*dim]);
      piece.getDefiningOp()->setLoc(slice.getLoc());
      slice.getResult().replaceAllUsesWith(piece);
      slice.erase();
    }
    for (Step &step : way)
      if (step.op->use_empty())
        step.op->erase();
  }

  /// Walks up from `value` to an einsum whose weight has the dim; false if there is none, or something is in the way.
  static bool findWeight(Value value, int64_t dim, SmallVectorImpl<Step> &way) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isFree(value) || (!way.empty() && !value.hasOneUse()))
        return false;
      if (auto einsum = dyn_cast<EinsumOp>(op))
        return findEinsumWeight(einsum, dim, way);
      if (auto reshape = dyn_cast<ReshapeOp>(op)) {
        std::optional<int64_t> same = getSameDim(reshape, dim);
        if (!same)
          return false;
        way.push_back({op, dim, 0});
        dim = *same;
        value = reshape.getInput();
      } else if (isa<AddOp, SubOp>(op)) {
        unsigned operand = isWeight(op->getOperand(1)) ? 0 : 1;
        Value bias = op->getOperand(1 - operand), data = op->getOperand(operand);
        if (!isWeight(bias) || getShape(data) != getShape(value))
          return false;
        way.push_back({op, dim, operand});
        value = data;
      } else {
        return false;
      }
    }
    return false;
  }

  static bool findEinsumWeight(EinsumOp op, int64_t dim, SmallVectorImpl<Step> &way) {
    EinsumTerms terms = *parseEinsum(op.getEquation());
    char letter = terms.result[dim];
    std::optional<unsigned> weight;
    for (auto [index, term] : llvm::enumerate(terms.inputs)) {
      if (!term.contains(letter))
        continue;
      if (weight || !isWeight(op.getInputs()[index]))
        return false;
      weight = index;
    }
    if (!weight)
      return false;
    way.push_back({op, dim, *weight});
    return true;
  }

  /// The ops of `way` for the piece [start, start + size), from the einsum down.
  static Value rebuild(OpBuilder &builder, ArrayRef<Step> way, int64_t start, int64_t size) {
    Value value;
    for (const Step &step : llvm::reverse(way)) {
      auto type = cast<RankedTensorType>(step.op->getResult(0).getType());
      Location inner = getInnerLoc(step.op->getLoc());
      SmallVector<int64_t> shape(type.getShape());
      shape[step.dim] = size;
      auto pieceType = RankedTensorType::get(shape, type.getElementType());
      if (auto einsum = dyn_cast<EinsumOp>(step.op)) {
        EinsumTerms terms = *parseEinsum(einsum.getEquation());
        SmallVector<Value> operands(einsum.getInputs());
        int64_t weightDim = terms.inputs[step.operand].find(terms.result[step.dim]);
        operands[step.operand] = takePart(builder, step.op, operands[step.operand], weightDim, start, size);
        value = Composer(builder, inner).einsum(operands, einsum.getEquation());
        continue;
      }
      Operation *piece = builder.clone(*step.op);
      piece->setLoc(inner);
      piece->setOperand(step.operand, value);
      piece->getResult(0).setType(pieceType);
      if (!isa<ReshapeOp>(piece))
        splitBias(builder, piece, step, start, size);
      value = piece->getResult(0);
    }
    return value;
  }

  /// The other operand of an addition, cut where it varies along the dim.
  static void splitBias(OpBuilder &builder, Operation *piece, const Step &step, int64_t start, int64_t size) {
    Value bias = piece->getOperand(1 - step.operand);
    int64_t rank = getShape(piece->getResult(0)).size(), own = getShape(bias).size(), dim = step.dim - (rank - own);
    if (dim < 0 || getShape(bias)[dim] == 1)
      return;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(piece);
    piece->setOperand(1 - step.operand, takePart(builder, {step.op, piece}, bias, dim, start, size));
  }
};
} // namespace
