//===- Stacking.h - values that are computed alike, as one ------*- C++ -*-===//
//
// Several values that the same ops make of different weights are one value with a dim more, in front, which those ops
// make of the weights' stack:
//
//   relu(x w0), relu(x w1), ..      [n, f] each      =>      relu(x w)      [e, n, f], w a stack [e, h, f]
//
// What all of them share (x) stays as it is; constants and slices of one value that differ are stacked too.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_PATTERNS_STACKING_H
#define CLEAVE_LIB_DIALECT_NN_PATTERNS_STACKING_H

#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "mlir/IR/SymbolTable.h"
#include <map>

namespace cleave::nn {

/// True if what is annotated is not for the weight itself, but for the stack of several.
bool asksForStack(spmd::PinOp pin);

/// True if `lhs` and `rhs` are computed by the same ops of weights, constants and slices of one type each.
bool areAlike(mlir::Value lhs, mlir::Value rhs);

/// Counts what is made, so that it can be taken back.
class Noting : public Composer {
public:
  using Composer::Composer;

  llvm::SmallVector<mlir::Operation *> created;

protected:
  llvm::SmallVector<mlir::Value, 2> make(mlir::OperationState &state, InferFn infer) override {
    llvm::SmallVector<mlir::Value, 2> results = Composer::make(state, infer);
    created.push_back(results.front().getDefiningOp());
    return results;
  }
};

/// Stacks values that are alike, in front of one op.
class Stacker {
public:
  /// New parameters go to `symbols`' module.
  Stacker(mlir::Operation *before, mlir::SymbolTable &symbols)
      : builder(before), f(builder, before->getLoc()), symbols(symbols) {}

  /// The stack of `values`, of which each is like the first; null where there is none, or where it must be asked for and
  /// no pin does; then nothing has changed.
  mlir::Value stack(llvm::ArrayRef<mlir::Value> values, bool mustBeAskedFor);
  /// Pins whose annotation the stack has now.
  llvm::ArrayRef<spmd::PinOp> getStackedPins() const { return stackedPins; }

private:
  using Values = llvm::SmallVector<mlir::Value>;
  /// One value for all, or all of them, one behind the other along a first dim.
  struct Mapped {
    mlir::Value value;
    bool isStacked = false;
  };

  Mapped map(llvm::ArrayRef<mlir::Value> values);
  Mapped makeMapped(llvm::ArrayRef<mlir::Value> values);
  mlir::Value stackWeights(llvm::ArrayRef<mlir::Value> values);
  mlir::Value stackPins(llvm::ArrayRef<mlir::Value> values);
  mlir::Value stackConstants(llvm::ArrayRef<mlir::Value> values);
  mlir::Value stackSlices(llvm::ArrayRef<mlir::Value> values);
  mlir::Value stackOps(mlir::Operation *first, llvm::ArrayRef<Mapped> operands);
  Composer &at(mlir::Operation *op);

  mlir::OpBuilder builder;
  Noting f;
  mlir::SymbolTable &symbols;
  int64_t count = 0;
  std::map<std::vector<void *>, Mapped> known;
  llvm::SmallVector<ParamOp> params;
  llvm::SmallVector<spmd::PinOp> stackedPins;
};

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_PATTERNS_STACKING_H
