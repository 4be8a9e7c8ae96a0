//===- Templates.h - templates of kernels for devices -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_DEVICE_TEMPLATES_H
#define CLEAVE_LIB_CODEGEN_DEVICE_TEMPLATES_H

#include "../Attention.h"
#include "../Results.h"
#include "Emitter.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "mlir/IR/OwningOpRef.h"

namespace cleave::codegen {

/// A copy of `region` as a function, in the simple ops that kernels of devices are made of.
mlir::OwningOpRef<mlir::func::FuncOp> prepareForDevice(mlir::Block &region);

/// How many neighbors a thread takes where rows have `extent` elements: as many of the smallest elements as 16 bytes hold.
int64_t getDeviceLanes(mlir::func::FuncOp region, int64_t extent);

/// Sweeps the rows of `rows` by teams of threads (Device/Row.cpp).
void runRows(DeviceEmitter &e, ResultStore &store, mlir::func::FuncOp region, const Rows &rows,
             llvm::ArrayRef<Result> results);

/// How many blocks that takes.
int64_t countRowBlocks(mlir::func::FuncOp region, const Rows &rows);

/// True if no thread of such a kernel reads what another one stores: there is no end of a row, or of rows, where places are clamped.
bool readsOwnElements(mlir::func::FuncOp region, const Rows &rows);

/// A transpose that moves the last dim, behind which all of `group` is elementwise; nothing if there is none.
std::optional<Anchor> findTurned(mlir::func::FuncOp region, llvm::ArrayRef<Result> group);
/// Hands out the elements of a transpose, turned in shared memory (Device/Turn.cpp).
void runTurned(DeviceEmitter &e, nn::TransposeOp op, TileSink sink);

/// Contractions of two tensors of floats, as products (Device/Product.cpp).
bool canRunProduct(nn::EinsumOp op);
void runDeviceProduct(Emitter &e, nn::EinsumOp op, TileSink sink);

/// Convolutions of floats, as products (Device/Convolution.cpp).
bool canRunDeviceConvolution(nn::ConvOp op);
void runDeviceConvolution(Emitter &e, nn::ConvOp op, TileSink sink);

/// Running sums and `top_k`, a block of threads a line (Device/Lines.cpp); false, and nothing, where the op's own lowering is better.
bool fillLines(DeviceEmitter &e, mlir::Operation *op, mlir::ValueRange buffers);
/// True if element `a` stands before `b` wherever they come from (Reduction.cpp).
mlir::Value beatsInTopK(Emitter &e, nn::TopKOp op, mlir::Value a, mlir::Value b);

/// Where attention to parts of `size` keys leaves what is made of them.
struct AttentionParts {
  int64_t size;
  mlir::Value sums, logs;
  /// One element: whether any keys are seen. Null: some are.
  mlir::Value seen = {};
};
/// `end`, or 0 where no keys are seen.
mlir::Value endOfSeen(Emitter &e, const AttentionParts &parts, mlir::Value end);
/// Attention by tiles of keys, where it applies (Device/Flash.cpp).
bool runDeviceFlash(DeviceEmitter &e, nn::AttentionOp op, TileSink sink,
                    std::optional<AttentionParts> parts = std::nullopt);
/// What is multiplied there; none if attention goes query by query.
mlir::Type findFlashElement(nn::AttentionOp op);
/// Attention, one or more warps for each query (Device/Attention.cpp).
void runDeviceAttention(Emitter &e, nn::AttentionOp op, TileSink sink);
/// exec.partial_attention, a block for each part of each query's keys.
void fillPartialAttention(Emitter &e, mlir::Operation *op, mlir::ValueRange buffers);
/// Of a pair of a query and a key: its weight, and the gradient of its product.
struct PairGradients {
  mlir::Value weight, inner;
};
/// `product` of query and key, `ofWeight` of gradient and value; what is subtracted of a query's scores, and of the gradients of its weights
/// (Device/AttentionGrad.cpp).
PairGradients differentiateScore(Emitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, const Head &head,
                                 mlir::Value product, mlir::Value ofWeight,
                                 std::pair<mlir::Value, mlir::Value> statistics, mlir::Value row, mlir::Value key);
/// Gradients of attention by tiles, where that applies (Device/FlashGrad.cpp).
bool runDeviceFlashGrad(DeviceEmitter &e, exec::AttentionGradOp op, nn::AttentionOp forward, mlir::ValueRange buffers);
/// exec.attention_grad with statistics of rows, by tiles, or a warp for each query and for each key (Device/AttentionGrad.cpp).
void fillDeviceAttentionGrad(Emitter &e, mlir::Operation *op, mlir::ValueRange buffers);
/// How many queries are worth a block of their own in products, and how many a block has at most.
constexpr int64_t kQueriesOfBlock = 16, kMostQueriesOfBlock = 64;
/// How many keys of a query a block has at a time, one a thread.
constexpr int64_t kKeysOfBlock = 256;

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_DEVICE_TEMPLATES_H
