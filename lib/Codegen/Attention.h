//===- Attention.h - what lowerings of attention share ----------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_ATTENTION_H
#define CLEAVE_LIB_CODEGEN_ATTENTION_H

#include "Tile.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"

namespace cleave::codegen {

/// Where in a batch and among heads of queries a kernel stands.
struct Head {
  mlir::Value batch, query;
};

/// The most vectors, of those that there are, that fit into registers beside so many rows.
int64_t fitVectors(int64_t registers, int64_t rows, int64_t vectors);

/// The first element of a head.
mlir::Value locateHead(Emitter &e, const Operand &operand, mlir::Value batch, mlir::Value head);

/// How many keys, from the first, some query of a block sees.
mlir::Value countVisible(Emitter &e, nn::AttentionOp op, mlir::Value row, int64_t height);
/// The first key that some query from `row` on sees, as a multiple of `step` that is not behind it.
mlir::Value findFirstVisible(Emitter &e, nn::AttentionOp op, mlir::Value row, int64_t step);

/// Multiples of vectors, from `begin` on: keys of whole blocks.
struct KeyRange {
  mlir::Value begin, end;
};
/// Of `looped` keys in whole blocks of `step`, the blocks that hold a key that some query of a block sees: of `height` queries from `row` on.
KeyRange findSeenBlocks(Emitter &e, nn::AttentionOp op, mlir::Value row, int64_t height, int64_t step, int64_t looped);

/// Scores of neighboring keys from products, in the order of the evaluator: scale, cap, mask. Excluded ones are -inf, and so are
/// those in lanes that do not exist.
mlir::Value finishScore(Emitter &e, nn::AttentionOp op, const Head &head, mlir::Value product, mlir::Value row,
                        mlir::Value key);

/// The last of these steps: the mask is added, or decides, before what lies outside the band is excluded.
mlir::Value maskScore(Emitter &e, nn::AttentionOp op, const Head &head, mlir::Value score, mlir::Value row,
                      mlir::Value key);

/// `exp(score - shift)` of what is not above `shift`. Where it would be below 2^-125 it is 0: denormals take a hundred times as
/// long, and masks of large numbers give nothing else.
mlir::Value weighScore(Emitter &e, mlir::Value score, mlir::Value shift);

/// What is subtracted of a row's scores, by the logarithm of the sum of their exponentials: nothing where the row sees nothing, whose scores
/// and whose logarithm are -inf.
mlir::Value getShift(Emitter &e, mlir::Value log);
/// The weight of a score, by the shift of its row: `weighScore` over the row's sum.
mlir::Value weighByLog(Emitter &e, mlir::Value score, mlir::Value shift);

/// `number` in all elements of a result.
void fillWith(Emitter &e, mlir::Value result, mlir::Value buffer, double number);
/// Of a block that no query sees there is nothing to compute, and nothing is read: `seen`, of one element, says at run time which of both is
/// done. Null: all is computed.
void whereSeen(Emitter &e, mlir::Value seen, llvm::function_ref<void()> compute, llvm::function_ref<void()> fill);

/// The lowering of the gradients, for the host.
void fillAttentionGrad(Emitter &e, exec::AttentionGradOp op, mlir::ValueRange buffers);

/// The lowering for bf16 in memory, where it applies.
bool canPairAttention(Emitter &e, nn::AttentionOp op);
void runPairedAttention(Emitter &e, nn::AttentionOp op, TileSink sink);

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_ATTENTION_H
