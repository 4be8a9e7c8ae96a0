//===- ComposerTest.cpp - formulas of nn ops ------------------------------===//
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// Remembers what was made, as whoever takes ops back does.
class Noting : public Composer {
public:
  using Composer::Composer;
  void breakOff() { hasFailed = true; }
  std::vector<std::string> made;

protected:
  SmallVector<Value, 2> make(OperationState &state, InferFn infer) override {
    SmallVector<Value, 2> results = Composer::make(state, infer);
    made.push_back(results.front().getDefiningOp()->getName().getStringRef().str());
    return results;
  }
};

class ComposerTest : public ::testing::Test {
protected:
  ComposerTest()
      : context(loaded()), builder(&context), module(ModuleOp::create(builder.getUnknownLoc())),
        f(builder, builder.getUnknownLoc()) {
    builder.setInsertionPointToEnd(module->getBody());
  }

  static DialectRegistry loaded() {
    DialectRegistry registry;
    registry.insert<NnDialect, func::FuncDialect>();
    return registry;
  }

  Value tensor(ArrayRef<int64_t> shape, Type element) { return f.iota(shape, 0, element); }
  Value tensor(ArrayRef<int64_t> shape) { return tensor(shape, builder.getF32Type()); }
  static std::vector<int64_t> shapeOf(Value value) { return getShape(value).vec(); }
  DenseElementsAttr elementsOf(Value value) {
    return cast<DenseElementsAttr>(value.getDefiningOp<ConstantOp>().getValue());
  }

  struct Loaded : MLIRContext {
    explicit Loaded(const DialectRegistry &registry) : MLIRContext(registry) { loadAllAvailableDialects(); }
  } context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  Noting f;
};

using Dims = std::vector<int64_t>;

TEST_F(ComposerTest, OperandsBroadcastAndNumbersTakeTheirType) {
  Value x = tensor({4, 1, 3}, builder.getF16Type()), y = tensor({2, 1}, builder.getF16Type());
  Value sum = f.add(x, y);
  EXPECT_EQ(shapeOf(sum), (Dims{4, 2, 3}));
  EXPECT_TRUE(getElementType(sum).isF16());
  Value product = f.mul(x, 0.1);
  EXPECT_EQ(shapeOf(product), (Dims{4, 1, 3}));
  Value factor = product.getDefiningOp<MulOp>().getRhs();
  EXPECT_EQ(shapeOf(factor), Dims{});
  APFloat tenth = elementsOf(factor).getSplatValue<APFloat>();
  EXPECT_EQ(tenth.bitcastToAPInt().getZExtValue(), 0x2e66u); // 0.1, rounded to f16 by hand
  EXPECT_TRUE(getElementType(f.lt(x, y)).isInteger(1));
}

TEST_F(ComposerTest, NumbersOfIntegersKeepTheBitsThatFit) {
  EXPECT_EQ(elementsOf(f.scalar(builder.getIntegerType(8), -1)).getSplatValue<APInt>().getZExtValue(), 0xffu);
  EXPECT_EQ(elementsOf(f.scalar(builder.getIntegerType(8), 258)).getSplatValue<APInt>().getZExtValue(), 2u);
  // Doubles cannot tell these places apart.
  int64_t place = (int64_t(1) << 53) + 1;
  EXPECT_EQ(elementsOf(f.position(place)).getSplatValue<APInt>().getSExtValue(), place);
}

TEST_F(ComposerTest, WhereThereIsNothingToDoNothingIsMade) {
  Value x = tensor({2, 3}), y = tensor({2, 3});
  f.made.clear();
  EXPECT_EQ(f.reshape(x, {2, 3}), x);
  EXPECT_EQ(f.transpose(x, {0, 1}), x);
  EXPECT_EQ(f.moveDim(x, 1, 1), x);
  EXPECT_EQ(f.broadcast(x, {2, 3}), x);
  EXPECT_EQ(f.cast(x, f.f32()), x);
  EXPECT_EQ(f.widen(x), x);
  EXPECT_EQ(f.sliceDim(x, 1, 0, 3), x);
  EXPECT_EQ(f.concat(x, 0), x);
  EXPECT_EQ(f.pad(x, {0, 0}, {0, 0}), x);
  EXPECT_EQ(f.sum(x, {}), x);
  EXPECT_TRUE(f.made.empty());
  // Steps that turn a dim round are something.
  EXPECT_NE(f.slice(y, {1, 0}, {2, 3}, {-1, 1}), y);
  EXPECT_EQ(f.made, std::vector<std::string>{"nn.slice"});
}

TEST_F(ComposerTest, MovementGivesTheShapesThatItSays) {
  Value x = tensor({2, 3, 5, 7});
  EXPECT_EQ(shapeOf(f.moveDim(x, 2, 0)), (Dims{5, 2, 3, 7}));
  EXPECT_EQ(shapeOf(f.moveDim(x, 0, 2)), (Dims{3, 5, 2, 7}));
  EXPECT_EQ(shapeOf(f.pick(x, 1, 2)), (Dims{2, 5, 7}));
  EXPECT_EQ(shapeOf(f.sliceDim(x, 3, 2, 4)), (Dims{2, 3, 5, 4}));
  EXPECT_EQ(shapeOf(f.unsqueeze(x, {0, 3})), (Dims{1, 2, 3, 1, 5, 7}));
  EXPECT_EQ(shapeOf(f.concat({x, x, x}, 1)), (Dims{2, 9, 5, 7}));
  EXPECT_EQ(shapeOf(f.pad(x, {0, 1, 0, 0}, {0, 2, 0, 0}, 1)), (Dims{2, 6, 5, 7}));
  EXPECT_EQ(shapeOf(f.sum(x, {1, 3})), (Dims{2, 5}));
  EXPECT_EQ(shapeOf(f.mean(x, {1, 3}, /*keepDims=*/true)), (Dims{2, 1, 5, 1}));
  EXPECT_EQ(shapeOf(f.einsum({x, x}, "abcd,aecd->be")), (Dims{3, 3}));
  EXPECT_EQ(shapeOf(f.gather(x, tensor({4, 6}, f.i64()), 1)), (Dims{2, 4, 6, 5, 7}));
}

TEST_F(ComposerTest, IdentitiesChangeNothing) {
  auto integer = [&](spmd::ReductionKind kind, Type type) {
    return elementsOf(f.identity(kind, type)).getSplatValue<APInt>();
  };
  Type i8 = builder.getIntegerType(8), u8 = builder.getIntegerType(8, /*isSigned=*/false), i1 = builder.getI1Type();
  EXPECT_EQ(integer(spmd::ReductionKind::Max, i8).getSExtValue(), -128);
  EXPECT_EQ(integer(spmd::ReductionKind::Min, i8).getSExtValue(), 127);
  EXPECT_EQ(integer(spmd::ReductionKind::Max, u8).getZExtValue(), 0u);
  EXPECT_EQ(integer(spmd::ReductionKind::Min, u8).getZExtValue(), 255u);
  EXPECT_EQ(integer(spmd::ReductionKind::Min, i1).getZExtValue(), 1u);
  EXPECT_EQ(integer(spmd::ReductionKind::Prod, i8).getSExtValue(), 1);
  APFloat least = elementsOf(f.identity(spmd::ReductionKind::Max, f.f32())).getSplatValue<APFloat>();
  EXPECT_TRUE(least.isInfinity() && least.isNegative());
}

TEST_F(ComposerTest, BoolsAreCombinedByLogic) {
  Value x = tensor({2}), a = f.lt(x, 1), b = f.gt(x, 0);
  EXPECT_TRUE(f.combine(spmd::ReductionKind::Max, a, b).getDefiningOp<OrOp>());
  EXPECT_TRUE(f.combine(spmd::ReductionKind::Min, a, b).getDefiningOp<AndOp>());
  EXPECT_TRUE(f.combine(spmd::ReductionKind::Max, x, x).getDefiningOp<MaxOp>());
  EXPECT_TRUE(f.combine(spmd::ReductionKind::Sum, x, x).getDefiningOp<AddOp>());
}

TEST_F(ComposerTest, AfterAnErrorAllIsNull) {
  Value x = tensor({2, 3});
  f.breakOff();
  f.made.clear();
  EXPECT_FALSE(f.add(x, x));
  EXPECT_FALSE(f.mul(f.reshape(x, {6}), 2));
  EXPECT_FALSE(f.pick(Value(), 0, 0));
  EXPECT_FALSE(f.scalarLike(Value(), 1));
  EXPECT_TRUE(f.made.empty());
}

TEST_F(ComposerTest, WhatIsMadeHasThePlaceThatWasSaid) {
  Value x = tensor({2});
  Location place = FileLineColLoc::get(&context, "model", 7, 1);
  EXPECT_EQ(f.at(place).exp(x).getLoc(), place);
  EXPECT_EQ(f.neg(x).getLoc(), place);
}

// Entry i of what comes is the op of entry i of what goes in; what is shared lines up with each.
TEST_F(ComposerTest, ElementwiseOpsAreStackedOverADimInFront) {
  Value x = tensor({4, 3}), y = tensor({3});
  Operation *add = f.add(x, y).getDefiningOp();
  Value all = tensor({5, 3});
  Value stacked = stackAligned(f, add, {x, all}, {false, true}, 5);
  EXPECT_EQ(shapeOf(stacked), (Dims{5, 4, 3}));
  EXPECT_EQ(shapeOf(stacked.getDefiningOp()->getOperand(1)), (Dims{5, 1, 3}));
}

// The form of an op over a dim more: its own attributes, one further behind.
TEST_F(ComposerTest, OpsThatSayHowAreStacked) {
  auto stack = [&](Value value, ArrayRef<Value> operands, ArrayRef<bool> isStacked) {
    return cast<StackOpInterface>(value.getDefiningOp()).stack(f, operands, isStacked, 5);
  };
  Value x = tensor({4, 3}), all = tensor({5, 4, 3}), w = tensor({3, 2});
  EXPECT_EQ(shapeOf(stack(f.reduce(ReduceKind::Max, x, {0}), all, true)), (Dims{5, 3}));
  EXPECT_EQ(shapeOf(stack(f.transpose(x, {1, 0}), all, true)), (Dims{5, 3, 4}));
  EXPECT_EQ(shapeOf(stack(f.einsum({x, w}, "ij,jk->ik"), {all, w}, {true, false})), (Dims{5, 4, 2}));
  Value rows = tensor({6}, f.i64()), manyRows = tensor({5, 6}, f.i64()), found = f.gather(x, rows, 1);
  EXPECT_EQ(shapeOf(stack(found, {x, manyRows}, {false, true})), (Dims{5, 4, 6}));
  EXPECT_EQ(shapeOf(stack(found, {all, rows}, {true, false})), (Dims{5, 4, 6}));
  EXPECT_FALSE(stack(found, {all, manyRows}, {true, true}));
}

TEST_F(ComposerTest, OpsSayInWhichOrdersTheyMeanTheSame) {
  Value x = tensor({2, 3, 5});
  auto reordered = [&](Value value) { return cast<ReorderOpInterface>(value.getDefiningOp()); };
  SmallVector<int64_t> last{0, 2, 1};
  auto kept = cast<ReduceOp>(f.reduce(ReduceKind::Max, x, {1}, /*keepDims=*/true).getDefiningOp());
  EXPECT_TRUE(kept.canReorder(last));
  kept.reorder(last);
  EXPECT_EQ(kept.getDims(), ArrayRef<int64_t>({2}));
  // Rows and columns would change places.
  EXPECT_FALSE(reordered(f.reduce(ReduceKind::Max, x, {0})).canReorder(last));
  EXPECT_TRUE(reordered(f.reduce(ReduceKind::Max, x, {2})).canReorder(last));
  auto slice = cast<SliceOp>(f.slice(x, {0, 1, 2}, {2, 2, 3}, {1, 1, 1}).getDefiningOp());
  slice.reorder(last);
  EXPECT_EQ(slice.getStarts(), ArrayRef<int64_t>({0, 2, 1}));
  EXPECT_EQ(slice.getSizes(), ArrayRef<int64_t>({2, 3, 2}));
}

} // namespace
