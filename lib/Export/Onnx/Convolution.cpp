//===- Convolution.cpp - windows over spatial dims ------------------------===//
//
// Window attributes are ONNX's own. Of integers ONNX convolves bytes alone: an operand of i32 is taken apart into as many as its
// elements need,
//
//   x = x0 + 256 x1       conv(x, w) = conv(x0, w) + 256 conv(x1, w)
//
// which of a byte less its zero point are two at the most.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "Writers.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
/// Of integers, both included. None are {1, 0}.
struct Bounds {
  int64_t low, high;
};
} // namespace

/// Paddings in front of all spatial dims, then behind them.
template <typename OpT> static std::vector<NodeAttribute> getWindow(OpT op) {
  SmallVector<int64_t> pads(op.getPadsLow());
  llvm::append_range(pads, op.getPadsHigh());
  return {{"strides", op.getStrides()}, {"pads", ArrayRef<int64_t>(pads)}, {"dilations", op.getDilations()}};
}

template <typename OpT>
static std::string convolve(OpT op, GraphBuilder &out, StringRef opType, std::vector<NodeAttribute> attributes) {
  Names inputs = {out(op.getInput()), out(op.getWeight())};
  if (op.getBias())
    inputs.push_back(out(op.getBias()));
  attributes.emplace_back("kernel_shape", cast<RankedTensorType>(op.getWeight().getType()).getShape().drop_front(2));
  attributes.emplace_back("group", op.getGroups());
  return out.node(opType, inputs, op.getType(), std::move(attributes));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// The least and the greatest that an integer of a type can be.
static Bounds getBounds(Type element) {
  unsigned width = std::min(element.getIntOrFloatBitWidth(), 63U);
  if (element.isUnsignedInteger() || width == 1)
    return {0, (int64_t(1) << width) - 1};
  return {-(int64_t(1) << (width - 1)), (int64_t(1) << (width - 1)) - 1};
}

static bool fits(Bounds inner, Bounds outer) { return outer.low <= inner.low && inner.high <= outer.high; }

static Bounds getBounds(DenseElementsAttr elements) {
  Bounds bounds{0, 0};
  bool isUnsigned = elements.getElementType().isUnsignedInteger() || elements.getElementType().isInteger(1);
  for (const APInt &value : elements.getValues<APInt>()) {
    int64_t number = isUnsigned ? int64_t(value.getZExtValue()) : value.getSExtValue();
    bounds = {std::min(bounds.low, number), std::max(bounds.high, number)};
  }
  return bounds;
}

/// What elements can be, by what made them, and 0, which pads. Small operands were widened, and a zero point taken from them, perhaps
/// before they traveled. Padding of uneven shards may be anything, and what comes of it, too.
static Bounds getBounds(Value value, unsigned depth) {
  Type element = getElementTypeOrSelf(value.getType());
  Operation *op = value.getDefiningOp();
  if (!isa<IntegerType>(element))
    return {1, 0};
  Bounds most = getBounds(element);
  if (!op || depth == 0)
    return most;
  auto within = [&](Bounds bounds) { return bounds.low <= bounds.high && fits(bounds, most) ? bounds : most; };
  auto of = [&](unsigned operand) { return getBounds(op->getOperand(operand), depth - 1); };
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(Attribute(constant.getValue()));
    return dense ? getBounds(dense) : most;
  }
  if (isa<nn::AddOp>(op))
    return within({of(0).low + of(1).low, of(0).high + of(1).high});
  if (isa<nn::SubOp>(op))
    return within({of(0).low - of(1).high, of(0).high - of(1).low});
  bool isMoved =
      isa<spmd::AllGatherOp, spmd::AllToAllOp, spmd::PermuteOp, spmd::JoinOp, spmd::SplitOp, spmd::LocalSliceOp>(op);
  auto window = dyn_cast<spmd::WindowOp>(op);
  if (!op->hasTrait<nn::KeepsNumbers>() && !isMoved && !(window && !window.getFillAttr()))
    return most;
  Bounds all{0, 0};
  for (unsigned operand = isa<nn::SelectOp>(op); operand < op->getNumOperands(); ++operand) {
    Bounds one = within(of(operand));
    all = {std::min(all.low, one.low), std::max(all.high, one.high)};
  }
  return all;
}

namespace {
/// A tensor of i32 as bytes: the sum of each times 256 to the power of its number.
using Planes = std::vector<std::string>;
} // namespace

/// The last byte has the sign. What fits into one, with a sign or without, is that.
static Planes splitBytes(GraphBuilder &out, const std::string &x, Bounds bounds) {
  MLIRContext *context = out.typeOf(x).getContext();
  Type byte = IntegerType::get(context, 8, IntegerType::Unsigned), last = IntegerType::get(context, 8);
  Type wide = IntegerType::get(context, 32);
  if (fits(bounds, getBounds(byte)))
    return {out.cast(x, byte)};
  unsigned count = 1;
  while (count < 4 && !fits(bounds, getBounds(IntegerType::get(context, 8 * count))))
    ++count;
  Planes planes;
  std::string below;
  for (unsigned number = 0; number < count; ++number) {
    bool isLast = number + 1 == count;
    int64_t scale = int64_t(1) << (8 * number);
    std::string upTo = isLast ? x : out.binary("BitwiseAnd", x, out.scalar(double(256 * scale - 1), wide));
    std::string own =
        number == 0 ? upTo : out.binary("Div", out.binary("Sub", upTo, below), out.scalar(double(scale), wide));
    planes.push_back(out.cast(own, isLast ? last : byte));
    below = upTo;
  }
  return planes;
}

/// ConvInteger convolves bytes. Sums are those of i32, which keep their low bits: of products of bytes those that reach into them.
static Written writeIntegerConv(nn::ConvOp op, GraphBuilder &out) {
  RankedTensorType type = getResultType(op);
  Type element = type.getElementType(), wide = IntegerType::get(op.getContext(), 32);
  if (element.getIntOrFloatBitWidth() > 32)
    return op.emitOpError() << "of " << element << " has no form in ONNX";
  constexpr unsigned depth = 8;
  Planes inputs = splitBytes(out, out.cast(out(op.getInput()), wide), getBounds(op.getInput(), depth));
  Planes weights = splitBytes(out, out.cast(out(op.getWeight()), wide), getBounds(op.getWeight(), depth));
  std::string sum;
  for (auto [i, input] : llvm::enumerate(inputs))
    for (auto [j, weight] : llvm::enumerate(weights)) {
      if (i + j >= 4)
        continue;
      std::vector<NodeAttribute> attributes = getWindow(op);
      attributes.emplace_back("kernel_shape", op.getWeight().getType().getShape().drop_front(2));
      attributes.emplace_back("group", op.getGroups());
      std::string term = out.node("ConvInteger", {input, weight}, type.clone(wide), std::move(attributes));
      if (i + j > 0)
        term = out.binary("Mul", term, out.scalar(double(int64_t(1) << (8 * (i + j))), wide));
      sum = sum.empty() ? term : out.binary("Add", sum, term);
    }
  if (Value bias = op.getBias()) {
    SmallVector<int64_t> shape(type.getRank() - 1, 1);
    shape.front() = type.getDimSize(1);
    sum = out.binary("Add", sum, out.reshape(out.cast(out(bias), wide), shape));
  }
  return out.cast(sum, element);
}

static Written writeConv(nn::ConvOp op, GraphBuilder &out) {
  if (!isa<FloatType>(getResultType(op).getElementType()))
    return writeIntegerConv(op, out);
  return convolve(op, out, "Conv", getWindow(op));
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static std::string writeConvTranspose(nn::ConvTransposeOp op, GraphBuilder &out) {
  std::vector<NodeAttribute> attributes = getWindow(op);
  attributes.emplace_back("output_padding", op.getOutputPads());
  return convolve(op, out, "ConvTranspose", std::move(attributes));
}

/// Where the last window hangs over the end follows from extents in ONNX as here.
static std::string writePool(nn::PoolOp op, GraphBuilder &out) {
  constexpr StringLiteral opTypes[] = {"MaxPool", "AveragePool", "LpPool"};
  std::vector<NodeAttribute> attributes = getWindow(op);
  attributes.emplace_back("kernel_shape", op.getKernel());
  attributes.emplace_back("ceil_mode", op.getCeil());
  if (op.getKind() == nn::PoolKind::Average)
    attributes.emplace_back("count_include_pad", op.getCountPads());
  if (op.getKind() == nn::PoolKind::Lp)
    attributes.emplace_back("p", op.getP());
  return out.node(opTypes[static_cast<unsigned>(op.getKind())], {out(op.getInput())}, op.getType(),
                  std::move(attributes));
}

void cleave::onnx::registerConvolution(WriterTable &table) {
  table.add<nn::ConvOp>(writeConv);
  table.add<nn::ConvTransposeOp>(writeConvTranspose);
  table.add<nn::PoolOp>(writePool);
}
