//===- Harness.h - runs small modules in tests ------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_REFERENCE_HARNESS_H
#define CLEAVE_TEST_UNIT_REFERENCE_HARNESS_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"
#include <vector>

namespace cleave::reference {

/// Evaluates modules whose function @main takes no arguments, or `inputs`.
class EvaluatorTest : public ::testing::Test {
protected:
  EvaluatorTest();

  /// The results of @main in `text`; empty after an error, which then is in `errors`.
  llvm::SmallVector<Tensor> runModule(llvm::StringRef text, llvm::ArrayRef<Tensor> inputs = {});
  /// The first result as doubles.
  std::vector<double> run(llvm::StringRef text, llvm::ArrayRef<Tensor> inputs = {});
  /// The result of `body`, the ops of a function that returns %y of `type`.
  std::vector<double> eval(llvm::StringRef body, llvm::StringRef type);
  /// The errors that running gives, one per line.
  std::string fail(llvm::StringRef text, llvm::ArrayRef<Tensor> inputs = {});
  std::string failBody(llvm::StringRef body, llvm::StringRef type);

  /// A tensor such as `tensor<2x3xf32>` with `values` in order.
  Tensor make(llvm::StringRef type, llvm::ArrayRef<double> values);
  static std::vector<double> toDoubles(const Tensor &tensor);

  mlir::MLIRContext context;
  std::string errors;

private:
  std::string wrap(llvm::StringRef body, llvm::StringRef type);
};

} // namespace cleave::reference

#endif // CLEAVE_TEST_UNIT_REFERENCE_HARNESS_H
