//===- Reduction.cpp - what a failing file can do without -----------------===//
//
// MLIR's reducer drops what nobody uses. Within a function all ops are used, one by the next, so that it would leave most of them. Here
// it learns what may stand in the place of an op of nn and is simpler: one of its operands, where the types agree, else zeros. What is
// not needed any more for either goes by itself.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Reducer/ReductionPatternInterface.h"

using namespace mlir;
using namespace cleave;

namespace {

/// Any op of nn that computes something.
struct Reduction : RewritePattern {
  Reduction(MLIRContext *context, PatternBenefit benefit) : RewritePattern(MatchAnyOpTypeTag(), benefit, context) {}

  static bool canGo(Operation *op) {
    return isa<nn::NnDialect>(op->getDialect()) && op->getNumResults() > 0 && !isa<nn::ConstantOp>(op);
  }
};

/// `y = relu(x)` becomes x.
struct TakeOperand : Reduction {
  explicit TakeOperand(MLIRContext *context) : Reduction(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!canGo(op) || op->getNumResults() != 1)
      return failure();
    for (Value operand : op->getOperands())
      if (operand.getType() == op->getResult(0).getType())
        return rewriter.replaceOp(op, operand), success();
    return failure();
  }
};

/// `y = matmul(a, b)` becomes zeros.
struct TakeZeros : Reduction {
  explicit TakeZeros(MLIRContext *context) : Reduction(context, /*benefit=*/1) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    auto hasZero = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat() &&
             (!isa<FloatType>(tensor.getElementType()) || tensor.getElementTypeBitWidth() >= 16);
    };
    if (!canGo(op) || !llvm::all_of(op->getResultTypes(), hasZero))
      return failure();
    SmallVector<Value> zeros;
    for (Type type : op->getResultTypes()) {
      auto tensor = cast<RankedTensorType>(type);
      auto plain = RankedTensorType::get(tensor.getShape(), tensor.getElementType());
      zeros.push_back(
          nn::ConstantOp::create(rewriter, op->getLoc(), type, cast<ElementsAttr>(rewriter.getZeroAttr(plain))));
    }
    rewriter.replaceOp(op, zeros);
    return success();
  }
};

struct NnReductions : DialectReductionPatternInterface {
  explicit NnReductions(Dialect *dialect) : DialectReductionPatternInterface(dialect) {}

  void populateReductionPatterns(RewritePatternSet &patterns) const override {
    patterns.add<TakeOperand, TakeZeros>(patterns.getContext());
  }
};

} // namespace

void cleave::registerReductions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, nn::NnDialect *dialect) { dialect->addInterfaces<NnReductions>(); });
}
