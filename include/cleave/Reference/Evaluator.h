//===- Evaluator.h - runs nn and spmd ops -----------------------*- C++ -*-===//
//
// The meaning of every op in plain loops: constant folder of the importer, oracle of the tests, and what `cleave run`
// executes without a GPU. All ranks advance in lockstep in one process.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_REFERENCE_EVALUATOR_H
#define CLEAVE_REFERENCE_EVALUATOR_H

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Reference/Weights.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::reference {

/// Evaluates one `nn` op (no collectives, no nn.load) on `operands`. A failure has emitted an error on the op (index
/// out of range, ...). Result tensors have the op's result types without encodings.
llvm::LogicalResult evaluate(mlir::Operation *op, llvm::ArrayRef<Tensor> operands,
                             llvm::SmallVectorImpl<Tensor> &results);

/// True if `evaluate` knows the op.
bool canEvaluate(mlir::Operation *op);
bool canEvaluate(mlir::OperationName name);

/// Values of parameters, read on first use and shared by all ranks.
class ParamStore {
public:
  explicit ParamStore(mlir::ModuleOp module) : module(module) {}
  /// The whole parameter; an error (file missing, too short, another one) is emitted at the parameter.
  mlir::FailureOr<Tensor> get(llvm::StringRef name);
  /// Null if there is none of that name.
  nn::ParamOp getParam(llvm::StringRef name);

private:
  mlir::FailureOr<Tensor> load(llvm::StringRef name);

  mlir::ModuleOp module;
  llvm::StringMap<nn::ParamOp> params;
  llvm::StringMap<Tensor> loaded;
  WeightFiles files;
};

/// True if the module has been partitioned (`getPhase`), over its mesh.
bool isPartitioned(mlir::func::FuncOp func);

/// An error where so many ranks of `func` cannot be run: what the evaluator keeps of each, even if all hold the same
/// values, takes more memory than there is. Precondition: one block.
llvm::LogicalResult checkMemory(mlir::func::FuncOp func, int64_t numRanks);

/// Runs `func` on every rank of the module's mesh (one rank without a mesh or before partitioning).
///
/// Before partitioning types may carry shardings, which do not matter: there is one rank, and spmd.reshard and
/// spmd.constrain are the identity. After partitioning (the module has `spmd.mesh` and the function's arguments
/// `spmd.global`) there are as many ranks as the mesh has, and `inputs[rank][argument]` are local tensors.
///
/// \param outputs receives one list of results per rank.
llvm::LogicalResult run(mlir::func::FuncOp func, llvm::ArrayRef<llvm::SmallVector<Tensor>> inputs,
                        llvm::SmallVectorImpl<llvm::SmallVector<Tensor>> &outputs);

/// Types of inputs and outputs as a whole: of arguments and results, or where memory is planned, of views; those of
/// `spmd.global` where the program is partitioned.
llvm::SmallVector<mlir::RankedTensorType> getInputTypes(mlir::func::FuncOp func);
llvm::SmallVector<mlir::RankedTensorType> getOutputTypes(mlir::func::FuncOp func);

/// Runs `func` on global inputs: as is where it is not partitioned, else on every rank with each rank's shards, the
/// results put together by the output shardings. Copies that should be equal but differ between ranks are an error.
///
/// \param inputs one tensor per argument, of the argument's global type; outputs likewise.
llvm::LogicalResult runGlobal(mlir::func::FuncOp func, llvm::ArrayRef<Tensor> inputs,
                              llvm::SmallVectorImpl<Tensor> &outputs);

/// As runGlobal, with every float an f64: inputs of the function's types are converted, weights too, and outputs of
/// floats are f64. Needs memory for a clone of the module and for tensors of twice the size.
llvm::LogicalResult runInDouble(mlir::func::FuncOp func, llvm::ArrayRef<Tensor> inputs,
                                llvm::SmallVectorImpl<Tensor> &outputs);

} // namespace cleave::reference

#endif // CLEAVE_REFERENCE_EVALUATOR_H
