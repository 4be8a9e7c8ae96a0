//===- CallSteps.h - several steps of training in one call ------*- C++ -*-===//
//
// What a call of K steps takes and gives of each step has one more dim in front, which counts steps. States have none: a step finds what the
// one before it left.
//
//   argument   tensor<8x4xf32, [{"data"}, {}]>    becomes   tensor<Kx8x4xf32, [{}, {"data"}, {}]>
//   result     tensor<f32>                        becomes   tensor<Kxf32>
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_CALLSTEPS_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_CALLSTEPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

namespace cleave::pipe {

/// Of an entry: which arguments, and results, are those of each step. Fails after an error where a state is none.
struct StepSignature {
  llvm::BitVector arguments, results;

  static mlir::FailureOr<StepSignature> get(mlir::func::FuncOp func);
};

/// The type with a dim of `steps` in front.
mlir::RankedTensorType addSteps(mlir::Type type, int64_t steps);
/// The attributes of such an argument or result: its global type, the names of its dims, its batch dim, its fixed value.
mlir::DictionaryAttr addSteps(mlir::DictionaryAttr attributes, int64_t steps);

/// What step `step` has of a value of all steps.
mlir::Value takeStep(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value all, int64_t step);
/// The inverse: the value of all steps.
mlir::Value joinSteps(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> values);

/// Makes a function of one step one of `steps` steps, each of which finds the states that the one before left. `stride`: microbatches of a
/// step, by which the numbers of messages grow. Fails after an error: a state that grows. Precondition: one block.
llvm::LogicalResult repeatStep(mlir::func::FuncOp func, const StepSignature &signature, int64_t steps, int64_t stride);

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_CALLSTEPS_H
