//===- Narrow.cpp - random programs with bf16 in memory -------------------===//
//
// A program that stores bf16 is held against the same function in double, with the tolerance that users are told: 2 in 100 of the largest
// element in a row. Some programs lose more by rounding alone (a difference of large sums, an exponential of one): then the program
// of one device is made, too, which rounds alike, and ranks may be a few times as far from the truth as that is.
//
// What jumps (a comparison, a number made whole, the place of a maximum) has no such bound where its operand was rounded. That is found
// op by op, in the order of the program:
//
//   rounded   a product, a lookup, or made of what is rounded: what exec-narrow-floats may store narrow; arguments are not
//   jumps     an op that jumps, of what is rounded, or made of what jumps
//
// Results that jump are not compared, and counted.
//
//===----------------------------------------------------------------------===//
#include "Narrow.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Reference/Evaluator.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::test;
using reference::Tensor;

/// How much farther than one device ranks may be from the truth. Both are samples of the same noise, as in Check.cpp.
constexpr double kMostFarther = 16;

//===----------------------------------------------------------------------===//
// What jumps
//===----------------------------------------------------------------------===//

namespace {
struct Kind {
  bool isRounded = false, jumps = false;
};
} // namespace

/// True if a small change of an operand may change the result by much. Of a lookup that is one of its indices, which are whole numbers, so
/// what made them jumps already.
static bool isJump(Operation *op) {
  if (isa<nn::CastOp>(op))
    return !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())) &&
           isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
  return isa<nn::EqOp, nn::LtOp, nn::LeOp, nn::GtOp, nn::GeOp, nn::FloorOp, nn::CeilOp, nn::RoundOp, nn::SignOp,
             nn::ModOp, nn::QuantizeOp, nn::ArgReduceOp, nn::TopKOp, nn::IsNanOp, nn::IsInfOp>(op);
}

/// What multiplies rounds what it multiplies, whatever that is.
static bool rounds(Operation *op) {
  return isa<nn::EinsumOp, nn::ConvOp, nn::ConvTransposeOp, nn::AttentionOp, nn::RecurrenceOp, nn::LookupOpInterface>(
      op);
}

/// Of each result of `func`. An op with a body is what its body does.
static SmallVector<Kind> classify(func::FuncOp func) {
  llvm::DenseMap<Value, Kind> kinds;
  for (Operation &op : func.getBody().front()) {
    Kind kind;
    for (Value operand : op.getOperands()) {
      kind.isRounded |= kinds.lookup(operand).isRounded;
      kind.jumps |= kinds.lookup(operand).jumps;
    }
    bool holdsJump = false;
    op.walk([&](Operation *inner) {
      kind.isRounded |= rounds(inner);
      holdsJump |= isJump(inner);
    });
    kind.jumps |= holdsJump && kind.isRounded;
    for (Value result : op.getResults())
      kinds[result] = kind;
  }
  return llvm::map_to_vector(func.getBody().front().getTerminator()->getOperands(),
                             [&](Value result) { return kinds.lookup(result); });
}

//===----------------------------------------------------------------------===//
// One device
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp> cleave::test::putOnOneDevice(ModuleOp original) {
  OwningOpRef<ModuleOp> module = original.clone();
  module->walk([](spmd::ConstrainOp op) {
    op.getResult().replaceAllUsesWith(op.getInput());
    op.erase();
  });
  AttrTypeReplacer replacer;
  replacer.addReplacement([](RankedTensorType type) -> std::optional<Type> {
    return RankedTensorType::get(type.getShape(), type.getElementType());
  });
  replacer.recursivelyReplaceElementsIn(*module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  // What is asked of attention is about an axis.
  for (NamedAttribute attribute : llvm::to_vector((*module)->getAttrs()))
    if (attribute.getName().getValue().starts_with("spmd."))
      (*module)->removeAttr(attribute.getName());
  (*module)->setAttr(spmd::SpmdDialect::kMeshAttr, spmd::MeshAttr::get(module->getContext(), {"device"}, {1}, {}));
  return module;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

static bool hasNarrow(ModuleOp lowered) {
  return lowered
      .walk([](Operation *op) {
        auto isNarrow = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
        bool isFound = llvm::any_of(op->getResultTypes(), isNarrow) || llvm::any_of(op->getOperandTypes(), isNarrow);
        return isFound ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool cleave::test::isRightNarrow(ModuleOp original, ModuleOp partitioned, ArrayRef<Tensor> inputs, const NarrowRun &run,
                                 NarrowCount &count) {
  auto func = *original.getOps<func::FuncOp>().begin();
  SmallVector<Tensor> truth;
  if (failed(reference::runInDouble(func, inputs, truth)))
    return false;
  std::optional<SmallVector<Tensor>> got = run(partitioned), ofDevice;
  if (!got)
    return false;
  bool isNarrow = hasNarrow(partitioned);
  for (auto [index, kind] : llvm::enumerate(classify(func))) {
    const Tensor &have = (*got)[index], &want = truth[index];
    if (kind.jumps) {
      ++count.skipped;
      continue;
    }
    ++count.compared;
    count.narrowed += isNarrow;
    // Sums of f32 in another order have a tolerance, too, where nothing is narrow.
    Tolerance tolerance = kNarrowTolerance;
    tolerance.atol = 1e-4;
    Difference ofRanks = compare(have, want, tolerance);
    if (ofRanks.position < 0)
      continue;
    if (!ofDevice) {
      OwningOpRef<ModuleOp> alone = putOnOneDevice(original);
      ofDevice = run(*alone);
      if (!ofDevice)
        return false;
    }
    Difference apart = compare((*ofDevice)[index], want, tolerance);
    if (ofRanks.inTolerances <= kMostFarther * apart.inTolerances) {
      ++count.rough;
      continue;
    }
    auto [onRanks, inDouble] = formatApart(have, want, ofRanks.position);
    llvm::errs() << llvm::formatv(
        "result {0}, element {1}: {2} in bf16 on ranks, {3} in double; {4} tolerances off, and one device {5}\n", index,
        ofRanks.position, onRanks, inDouble, ofRanks.inTolerances, apart.inTolerances);
    return false;
  }
  return true;
}
