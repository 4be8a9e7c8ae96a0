//===- AttentionRecognizer.h - attention from its parts ---------*- C++ -*-===//
//
// Each softmax is asked what stands around it:
//
//   q ─ factor, movement ─┐
//   k ─ factor, movement ─┴▶ einsum ─▶ factor, masks, casts ─▶ softmax ─▶ NaN to 0, casts ─┐
//   v ─ movement ──────────────────────────────────────────────────────────────────────────┴▶ einsum ─▶
//
// and if that is attention, one op takes its place. Letters of the einsums say which dim is which, so operands may lie in
// any order; what brings them into that of nn.attention are transposes, which kernels read through. Where the gradients of such a
// softmax are there, too (AttentionParts.h), one op takes theirs: then nobody reads the weights, and they are not stored.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONRECOGNIZER_H
#define CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONRECOGNIZER_H

#include "AttentionParts.h"
#include "cleave/Dialect/Nn/IR/Bands.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

namespace cleave::exec {

/// Masks that were made of two values: layers share them.
using JoinedMasks = llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, mlir::Value>;

class AttentionRecognizer {
public:
  AttentionRecognizer(nn::SoftmaxOp softmax, JoinedMasks &known) : known(known) {
    match.softmax = softmax;
    gradients = findGradientsBehind(softmax);
  }

  bool isBetweenEinsums();
  bool hasGradients() const { return gradients.has_value(); }
  /// True if all is as it is in attention; else `getReason` says what is not. Precondition: it is between einsums.
  bool fits();
  llvm::StringRef getReason() const { return reason; }
  /// What gradients are made of, behind which place. Precondition: it has gradients, and all is as it is in attention.
  const AttentionParts &getForward() const { return match; }
  const AttentionGradientParts &getGradients() const { return *gradients; }
  mlir::Operation *getPlace() const { return place; }
  /// True if it pays to compute scores again for gradients: there are `few` bytes of them, or keys that no query of a block sees need
  /// no gradients. Of fewer scores the products of the forward are soon written and read.
  bool isWorth(int64_t few, nn::DenseOf getDense);
  /// Puts attention in the place of what was found, and tells it; null where gradients alone were.
  nn::AttentionOp replace();
  /// Likewise, its gradients.
  AttentionGradOp replaceGradients();

private:
  bool fail(llvm::StringRef why) {
    reason = why;
    return false;
  }
  bool walkBack(mlir::Value value, unsigned steps);
  bool walkCap(nn::TanhOp tanh, unsigned steps);
  bool walkAdd(nn::AddOp add, unsigned steps);
  bool walkSelect(nn::SelectOp select, unsigned steps);
  bool fitsBehind();
  bool fitsWithout();
  bool fitsInFront();
  bool findPlace();
  mlir::Value getMask(mlir::OpBuilder &builder);
  mlir::Value getShown(mlir::OpBuilder &builder);
  mlir::Value addBatch(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> order);
  mlir::Value dropBatch(mlir::OpBuilder &builder, mlir::Value value, llvm::ArrayRef<int64_t> order);

  AttentionParts match;
  std::optional<AttentionGradientParts> gradients;
  mlir::Operation *place = nullptr; ///< behind which gradients are computed
  JoinedMasks &known;
  llvm::StringRef reason = "something else is done to scores";
};

/// A softmax whose weights gradients of attention alone read, with all around it.
struct AttentionGradient {
  AttentionParts forward;
  AttentionGradientParts gradients;
  mlir::Operation *place =
      nullptr; ///< behind all that they are made of, and before all that reads them; null: all is there all along
};
/// Nothing where it is something else, with a word in `reason`.
std::optional<AttentionGradient> recognizeGradient(nn::SoftmaxOp softmax, llvm::StringRef &reason);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_KERNELS_ATTENTIONRECOGNIZER_H
