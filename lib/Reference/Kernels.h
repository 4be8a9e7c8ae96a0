//===- Kernels.h - the table of kernels -------------------------*- C++ -*-===//
//
// One entry per op; each op family fills in its own with a `register...` function. A kernel relies on the op's verifier
// for everything that types and attributes say; what only the data show (an index out of range, a division by zero) it
// reports on the op.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_KERNELS_H
#define CLEAVE_LIB_REFERENCE_KERNELS_H

#include "Elements.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>

namespace cleave::reference {

using Operands = llvm::ArrayRef<Tensor>;

class KernelTable {
public:
  using Kernel = std::function<llvm::LogicalResult(mlir::Operation *, Operands, llvm::SmallVectorImpl<Tensor> &)>;

  /// Adds the kernel of an op with one result: `Tensor` or `FailureOr<Tensor>` from (OpT, Operands).
  template <typename OpT, typename Fn> void add(Fn fn) {
    kernels[mlir::TypeID::get<OpT>()] = [fn](mlir::Operation *op, Operands operands,
                                             llvm::SmallVectorImpl<Tensor> &results) -> llvm::LogicalResult {
      mlir::FailureOr<Tensor> result = fn(llvm::cast<OpT>(op), operands);
      if (llvm::failed(result))
        return llvm::failure();
      results.push_back(*result);
      return llvm::success();
    };
  }
  /// Adds the kernel of an op with several results.
  template <typename OpT, typename Fn> void addMany(Fn fn) {
    kernels[mlir::TypeID::get<OpT>()] = [fn](mlir::Operation *op, Operands operands,
                                             llvm::SmallVectorImpl<Tensor> &results) {
      return fn(llvm::cast<OpT>(op), operands, results);
    };
  }
  const Kernel *find(mlir::OperationName name) const {
    auto found = kernels.find(name.getTypeID());
    return found == kernels.end() ? nullptr : &found->second;
  }

private:
  llvm::DenseMap<mlir::TypeID, Kernel> kernels;
};

/// The type of an op's only result, without encoding.
inline mlir::RankedTensorType getResultType(mlir::Operation *op, unsigned index = 0) {
  auto type = llvm::cast<mlir::RankedTensorType>(op->getResult(index).getType());
  return mlir::RankedTensorType::get(type.getShape(), type.getElementType());
}
inline int64_t getRank(const Tensor &tensor) { return tensor.getShape().size(); }

// One per family: `registerConvolution(table)` is in Convolution.cpp.
#define CLEAVE_NN_FAMILY(Family) void register##Family(KernelTable &table);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
/// Kernels and layouts of the exec dialect.
void registerExec(KernelTable &table);

/// Runs the ops of a kernel, one by one.
llvm::LogicalResult runBody(mlir::Block &body, Operands operands, llvm::SmallVectorImpl<Tensor> &results);
/// As exec.pack. Precondition: it has that layout.
Tensor pack(const Tensor &tensor, const exec::Layout &layout);
/// Runs a function whose memory is planned: one list of inputs and of outputs per rank, in the order of its exec.input
/// and exec.output.
llvm::LogicalResult runCommands(mlir::func::FuncOp func, int64_t numRanks,
                                llvm::ArrayRef<llvm::SmallVector<Tensor>> inputs,
                                llvm::SmallVectorImpl<llvm::SmallVector<Tensor>> &outputs);

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_KERNELS_H
