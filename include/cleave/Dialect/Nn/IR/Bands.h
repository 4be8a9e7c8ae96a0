//===- Bands.h - masks of attention that places alone decide ----*- C++ -*-===//
//
// Exporters write sliding windows as masks. Of such a mask a band is enough, which kernels and sharding rules can read.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_BANDS_H
#define CLEAVE_DIALECT_NN_IR_BANDS_H

#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "llvm/ADT/DenseMap.h"

namespace cleave::nn {

/// A band as attributes of nn.attention say it, with no more reach to the right than being causal: what KeyBand::get takes.
struct BandAttributes {
  explicit BandAttributes(const KeyBand &band);

  bool isCausal;
  int64_t offset;
  std::optional<int64_t> left;
};

/// Bools: which keys the band lets which queries see. `queries` and `keys` are their places, i64 tensors that broadcast against each
/// other. Null if the band is empty.
mlir::Value compareToBand(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value queries, mlir::Value keys,
                          const KeyBand &band);

/// A mask taken apart.
struct MaskParts {
  KeyBand band;
  /// What else decides, as a mask of the same kind; null if nothing does.
  mlir::Value rest;
  /// Whether what the band hides is out of sight, or got a large negative number, which is as good while a query sees other keys.
  bool isExact = true;
};

/// How the elements of a mask come to hand, where they do: constants, parameters. Null where not.
using DenseOf = llvm::function_ref<mlir::DenseElementsAttr(mlir::Value)>;

/// Takes `mask`, of bools or numbers, apart: conditions on places (counts compared, and their negations), joined by `and`, as a choice
/// between 0 and a number that excludes, or constants of that form. Without a band `rest` is the mask. What has to be made new is
/// made by `builder`.
MaskParts splitMask(mlir::OpBuilder &builder, mlir::Value mask, int64_t queries, int64_t keys, DenseOf getDense);

/// Masks that were taken apart: layers share them.
using KnownMasks = llvm::DenseMap<mlir::Value, MaskParts>;

/// Lets attributes of `attention` say what its mask says by places: all of it, or, where far keys are hidden, also a part. Then the mask is
/// what is left of it. With `windowsOnly` only where far keys are hidden. Attentions must come in the order of the program.
void useBand(AttentionOp attention, DenseOf getDense, bool windowsOnly, KnownMasks &known);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_BANDS_H
