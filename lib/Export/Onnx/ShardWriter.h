//===- ShardWriter.h - a rank's shards of weights ---------------*- C++ -*-===//
#ifndef CLEAVE_LIB_EXPORT_ONNX_SHARDWRITER_H
#define CLEAVE_LIB_EXPORT_ONNX_SHARDWRITER_H

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Reference/Weights.h"
#include "llvm/Support/Error.h"

namespace cleave::onnx {

class ShardWriter {
public:
  explicit ShardWriter(mlir::ModuleOp module);

  /// Writes what `load` reads on `rank`, row-major; where shards are uneven, padding is zeros. Errors: the file of the weight
  /// cannot be read or is another one by now, which is emitted at the parameter.
  llvm::Error write(nn::LoadOp load, int64_t rank, llvm::raw_ostream &os);

private:
  llvm::Expected<reference::WeightPiece> find(nn::ParamOp param, int64_t index, mlir::Attribute piece);

  llvm::StringMap<nn::ParamOp> params;
  reference::WeightFiles files;
  /// Pieces in files that were looked up, with their digests, by parameter and number.
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, reference::WeightPiece> known;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_EXPORT_ONNX_SHARDWRITER_H
