//===- GlobalBand.cpp - what a mask of places was made of -----------------===//
//
// Written where attention is partitioned, read where keys come block by block. Masks are joined by `and` where they are bools, and where they
// are added by a choice between the number and minus infinity: the given one is the first operand of the former, the second of the latter.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/GlobalBand.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

static constexpr llvm::StringLiteral kBandAttr = "nn.band", kAxes = "axes", kLow = "low", kHigh = "high",
                                     kMasked = "masked";

std::optional<GlobalBand> GlobalBand::get(AttentionOp op) {
  auto entries = op->getAttrOfType<DictionaryAttr>(kBandAttr);
  auto axes = entries ? entries.getAs<ArrayAttr>(kAxes) : ArrayAttr();
  if (!axes)
    return std::nullopt;
  auto bound = [&](StringRef key) {
    auto number = entries.getAs<IntegerAttr>(key);
    return number ? std::optional<int64_t>(number.getInt()) : std::nullopt;
  };
  GlobalBand found{{bound(kLow), bound(kHigh)}, {}, entries.contains(kMasked)};
  llvm::append_range(found.queryAxes, axes.getAsRange<spmd::AxisAttr>());
  return found;
}

void GlobalBand::setOn(AttentionOp op) const {
  Builder builder(op.getContext());
  SmallVector<Attribute> axes(queryAxes.begin(), queryAxes.end());
  NamedAttrList entries;
  entries.set(kAxes, builder.getArrayAttr(axes));
  if (band.low)
    entries.set(kLow, builder.getI64IntegerAttr(*band.low));
  if (band.high)
    entries.set(kHigh, builder.getI64IntegerAttr(*band.high));
  if (isMasked)
    entries.set(kMasked, builder.getUnitAttr());
  op->setAttr(kBandAttr, entries.getDictionary(op.getContext()));
}

void GlobalBand::removeFrom(AttentionOp op) { op->removeAttr(kBandAttr); }

Value GlobalBand::getGivenMask(AttentionOp op) const {
  Operation *joined = isMasked && op.getMask() ? op.getMask().getDefiningOp() : nullptr;
  if (isa_and_present<AndOp>(joined))
    return joined->getOperand(0);
  return isa_and_present<SelectOp>(joined) ? joined->getOperand(1) : Value();
}
