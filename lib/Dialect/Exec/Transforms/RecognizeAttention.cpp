//===- RecognizeAttention.cpp - attention from its parts ------------------===//
//
// Each softmax is asked what stands around it (Kernels/AttentionRecognizer.h), and where that is attention, or the gradients of one, one op
// takes its place. Then of every attention, whoever made it: factors of queries and keys become its scale, and repeated heads of keys and
// values go.
//
//===----------------------------------------------------------------------===//
#include "../Kernels/AttentionOperands.h"
#include "../Kernels/AttentionRecognizer.h"
#include "../Kernels/AttentionStatistics.h"
#include "../Kernels/Movement.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/NnOps.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Splat.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-recognize-attention"

ALWAYS_ENABLED_STATISTIC(numRecognized, "attentions recognized");
ALWAYS_ENABLED_STATISTIC(numGradients, "gradients of attention recognized");
ALWAYS_ENABLED_STATISTIC(numInParts, "those that run in parts, their scores stored");

//===----------------------------------------------------------------------===//
// Every attention
//===----------------------------------------------------------------------===//

/// Gradients are those of queries and keys as they are, so that nothing but their masks changes.
static void useBand(AttentionGradOp op, nn::DenseOf getDense, nn::KnownMasks &known) {
  OpBuilder builder(op);
  nn::AttentionOp forward = op.createForward(builder);
  nn::useBand(forward, getDense, /*windowsOnly=*/false, known);
  op.getMaskMutable().assign(forward.getMask() ? ValueRange(forward.getMask()) : ValueRange());
  // Each query sees something of what places alone decide, so that nothing is left of scores that got a number.
  if (!forward.getMask())
    op.getShownMutable().clear();
  op.setCausal(forward.getCausal());
  op.setCausalOffset(forward.getCausalOffset());
  if (forward.getLeftAttr())
    op.setLeftAttr(forward.getLeftAttr());
  forward.erase();
}

/// Factors of queries and keys are part of the scale, and heads that are repeated are there once.
static void simplify(nn::AttentionOp attention) {
  OpBuilder builder(attention);
  double scale = attention.getScale().convertToDouble();
  attention.getQueryMutable().assign(dropFactor(builder, attention.getQuery(), scale));
  attention.getKeyMutable().assign(dropFactor(builder, attention.getKey(), scale));
  attention.setScale(APFloat(scale));
  Value key = dropRepeats(builder, attention.getKey()), value = dropRepeats(builder, attention.getValue());
  if (!key || !value || getTensorType(key).getDimSize(1) != getTensorType(value).getDimSize(1))
    return;
  attention.getKeyMutable().assign(key);
  attention.getValueMutable().assign(value);
}

namespace {
struct RecognizeAttention : cleave::exec::impl::RecognizeAttentionBase<RecognizeAttention> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto param : getOperation().getOps<nn::ParamOp>())
      params[param.getSymNameAttr()] = param;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      spmd::restoreNodes(func);
      SmallVector<nn::SoftmaxOp> softmaxes;
      func.walk([&](nn::SoftmaxOp softmax) { softmaxes.push_back(softmax); });
      for (nn::SoftmaxOp softmax : softmaxes)
        recognize(softmax);
      findForwards(func);
      nn::KnownMasks parts;
      auto dense = [&](Value value) { return getDense(value); };
      // What places alone hide, ahead of a query or far from it, need not be read.
      func.walk([&](Operation *op) {
        if (auto attention = dyn_cast<nn::AttentionOp>(op)) {
          simplify(attention);
          nn::useBand(attention, dense, /*windowsOnly=*/false, parts);
        } else if (auto gradients = dyn_cast<AttentionGradOp>(op)) {
          useBand(gradients, dense, parts);
        }
      });
      giveAllStatistics();
      for (Block &block : func.getBody())
        for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
          if (isOpTriviallyDead(&op))
            op.erase();
    }
  }

private:
  /// Gradients of a device's kernel, which wants statistics of rows, and the forward that tells them.
  struct Differentiated {
    AttentionGradOp gradients;
    nn::AttentionOp forward;
    std::optional<RowsBelow> rows;
  };

  /// By tiles of 16 rows, in f32, of heads whose sums are in registers. Scores of halves are multiplied faster as products.
  static bool hasDeviceKernel(const AttentionRecognizer &recognizer) {
    AttentionParts parts = recognizer.getForward();
    ArrayRef<int64_t> scores = getShape(parts.softmax.getResult()).take_back(2);
    auto isSmall = [](Value value, int64_t dim) { return getShape(value)[dim] <= 128; };
    return getElementType(parts.getQuery()).isF32() && std::min(scores[0], scores[1]) >= 16 &&
           isSmall(parts.getQuery(), parts.query.back()) &&
           isSmall(recognizer.getGradients().value, recognizer.getGradients().valueOrder.back());
  }

  /// An attention that was one all along, and is the only one with such operands, tells the statistics, too.
  void findForwards(func::FuncOp func) {
    for (Differentiated &entry : differentiated) {
      SmallVector<nn::AttentionOp> candidates;
      if (!entry.forward)
        func.walk([&](nn::AttentionOp attention) {
          if (areOf(entry.gradients, attention))
            candidates.push_back(attention);
        });
      if (candidates.size() == 1)
        entry.forward = candidates.front();
    }
  }

  /// Of the forward, where it is in front and hides the same, else of a step of their own.
  void giveAllStatistics() {
    for (Differentiated &entry : differentiated) {
      nn::AttentionOp forward = entry.forward;
      AttentionGradOp gradients = entry.gradients;
      bool isTold = forward && forward->getBlock() == gradients->getBlock() && forward->isBeforeInBlock(gradients) &&
                    forward.getMask() == gradients.getMask() && forward.getCausal() == gradients.getCausal() &&
                    forward.getCausalOffset() == gradients.getCausalOffset() &&
                    forward.getLeftAttr() == gradients.getLeftAttr() &&
                    forward.getRightAttr() == gradients.getRightAttr();
      exec::giveStatistics(gradients, isTold ? forward : nn::AttentionOp(), entry.rows);
    }
    differentiated.clear();
  }

  void recognize(nn::SoftmaxOp softmax) {
    AttentionRecognizer recognizer(softmax, masks);
    if (!recognizer.isBetweenEinsums())
      return;
    if (recognizer.hasGradients() && skipsGradients)
      return;
    if (recognizer.fits()) {
      if (recognizer.hasGradients() && forDevices && !hasDeviceKernel(recognizer))
        return tell(softmax, "its gradients have a fast kernel on the host only");
      if (!recognizer.isWorth(fewBytes, [&](Value value) { return getDense(value); }))
        return tell(softmax, "there are few, and gradients read them");
      ++numRecognized;
      nn::AttentionOp forward = recognizer.replace();
      if (!recognizer.hasGradients())
        return;
      ++numGradients;
      AttentionGradOp gradients = recognizer.replaceGradients();
      if (forDevices)
        differentiated.push_back({gradients, forward, recognizer.getGradients().rows});
      return;
    }
    tell(softmax, recognizer.getReason());
  }

  void tell(nn::SoftmaxOp softmax, StringRef reason) {
    ++numInParts;
    LDBG() << reason << ": " << softmax;
    if (told.insert(reason).second)
      softmax.emitRemark() << "this attention runs in parts, its scores stored: " << reason;
  }

  /// The elements of a constant, or of a whole parameter whose elements are at hand.
  DenseElementsAttr getDense(Value value) {
    if (auto constant = value.getDefiningOp<nn::ConstantOp>())
      return dyn_cast<DenseElementsAttr>(constant.getValue());
    auto load = value.getDefiningOp<nn::LoadOp>();
    if (!load || load.isPart() || load.getSharding())
      return {};
    nn::ParamOp param = params.lookup(load.getParamAttr().getAttr());
    return param ? dyn_cast<DenseElementsAttr>(param.getValue()) : DenseElementsAttr();
  }

  std::vector<Differentiated> differentiated;
  llvm::DenseSet<StringRef> told;
  JoinedMasks masks;
  /// By name.
  llvm::DenseMap<StringAttr, nn::ParamOp> params;
};
} // namespace
