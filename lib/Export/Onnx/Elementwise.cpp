//===- Elementwise.cpp - one element at a time ----------------------------===//
//
// Most ops are one node of the same meaning. ONNX lacks some of them for integers, and numbers of an attribute are f32 there.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static Type getElement(GraphBuilder &out, const std::string &x) { return out.typeOf(x).getElementType(); }

/// A number of an attribute.
static double toDouble(const llvm::APFloat &value) { return value.convertToDouble(); }

/// A node with numbers as attributes.
static std::string withNumbers(GraphBuilder &out, Operation *op, StringRef opType,
                               std::vector<NodeAttribute> attributes) {
  return out.node(opType, {out(op->getOperand(0))}, getResultType(op), std::move(attributes));
}

/// Of unsigned integers ONNX has no negation.
static std::string writeNeg(nn::NegOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  Type element = getElement(out, x);
  return element.isUnsignedInteger() ? out.binary("Sub", out.scalar(0, element), x) : out.unary("Neg", x);
}

/// Runtimes have few integers for Relu, and all for Max.
static std::string writeRelu(nn::ReluOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  Type element = getElement(out, x);
  return isa<FloatType>(element) ? out.unary("Relu", x) : out.binary("Max", x, out.scalar(0, element));
}

/// Swish comes with opset 24.
static std::string writeSilu(nn::SiluOp op, GraphBuilder &out) {
  std::string x = out(op.getInput());
  return out.binary("Mul", x, out.unary("Sigmoid", x));
}

/// The slope of ONNX broadcasts to x, not the other way round.
static std::string writePrelu(nn::PreluOp op, GraphBuilder &out) {
  std::string x = out(op.getLhs()), slope = out(op.getRhs());
  if (op.getLhs().getType().getShape() == op.getType().getShape())
    return out.node("PRelu", {x, slope}, op.getType());
  std::string isNegative = out.compare("Less", x, out.scalar(0, getElement(out, x)));
  return out.where(isNegative, out.binary("Mul", x, slope), x);
}

/// ONNX has remainders of floats with the sign of the dividend alone: one that has the wrong sign is off by a divisor.
static std::string writeMod(nn::ModOp op, GraphBuilder &out) {
  std::string x = out(op.getLhs()), y = out(op.getRhs());
  bool isFloat = isa<FloatType>(getElement(out, x));
  std::string rest = out.node("Mod", {x, y}, op.getType(), {{"fmod", isFloat || op.getTruncated()}});
  if (!isFloat || op.getTruncated())
    return rest;
  std::string zero = out.scalar(0, getElement(out, x));
  std::string differ = out.compare("Xor", out.compare("Less", rest, zero), out.compare("Less", y, zero));
  std::string isOff = out.compare("And", differ, out.unary("Not", out.compare("Equal", rest, zero)));
  return out.where(isOff, out.binary("Add", rest, y), rest);
}

/// ONNX shifts unsigned integers; to the left, bits are the same. To the right, a negative number is one below the shift of its
/// complement, which is not negative: `~(~x >> y)`.
static std::string writeShift(nn::ShiftOp op, GraphBuilder &out) {
  std::string x = out(op.getLhs()), y = out(op.getRhs());
  Type element = getElement(out, x);
  std::vector<NodeAttribute> direction = {{"direction", op.getRight() ? "RIGHT" : "LEFT"}};
  if (element.isUnsignedInteger())
    return out.node("BitShift", {x, y}, op.getType(), direction);
  Type bits = IntegerType::get(op.getContext(), element.getIntOrFloatBitWidth(), IntegerType::Unsigned);
  auto shift = [&](const std::string &value) {
    std::string shifted = out.node("BitShift", {out.cast(value, bits), out.cast(y, bits)},
                                   cast<RankedTensorType>(op.getType()).clone(bits), direction);
    return out.cast(shifted, element);
  };
  if (!op.getRight())
    return shift(x);
  std::string isNegative = out.compare("Less", x, out.scalar(0, element));
  return out.where(isNegative, out.unary("BitwiseNot", shift(out.unary("BitwiseNot", x))), shift(x));
}

static std::string writeSelect(nn::SelectOp op, GraphBuilder &out) {
  return out.where(out(op.getCondition()), out(op.getLhs()), out(op.getRhs()));
}

static void registerUnary(WriterTable &table) {
  table.addSame<nn::AbsOp>("Abs");
  table.addSame<nn::SignOp>("Sign");
  table.addSame<nn::SqrtOp>("Sqrt");
  table.addSame<nn::ReciprocalOp>("Reciprocal");
  table.addSame<nn::ExpOp>("Exp");
  table.addSame<nn::LogOp>("Log");
  table.addSame<nn::ErfOp>("Erf");
  table.addSame<nn::SinOp>("Sin");
  table.addSame<nn::CosOp>("Cos");
  table.addSame<nn::TanOp>("Tan");
  table.addSame<nn::AsinOp>("Asin");
  table.addSame<nn::AcosOp>("Acos");
  table.addSame<nn::AtanOp>("Atan");
  table.addSame<nn::SinhOp>("Sinh");
  table.addSame<nn::CoshOp>("Cosh");
  table.addSame<nn::TanhOp>("Tanh");
  table.addSame<nn::AsinhOp>("Asinh");
  table.addSame<nn::AcoshOp>("Acosh");
  table.addSame<nn::AtanhOp>("Atanh");
  table.addSame<nn::FloorOp>("Floor");
  table.addSame<nn::CeilOp>("Ceil");
  table.addSame<nn::RoundOp>("Round");
  table.addSame<nn::SigmoidOp>("Sigmoid");
  table.addSame<nn::SoftplusOp>("Softplus");
  table.addSame<nn::HardSwishOp>("HardSwish");
  table.addSame<nn::BitwiseNotOp>("BitwiseNot");
  table.addSame<nn::NotOp>("Not");
  table.addSame<nn::IsNanOp>("IsNaN");
  table.add<nn::NegOp>(writeNeg);
  table.add<nn::ReluOp>(writeRelu);
  table.add<nn::SiluOp>(writeSilu);
  table.add<nn::IsInfOp>([](nn::IsInfOp op, GraphBuilder &out) {
    return withNumbers(out, op, "IsInf",
                       {{"detect_positive", op.getPositive()}, {"detect_negative", op.getNegative()}});
  });
  table.add<nn::GeluOp>([](nn::GeluOp op, GraphBuilder &out) {
    return withNumbers(out, op, "Gelu", {{"approximate", op.getTanh() ? "tanh" : "none"}});
  });
  table.add<nn::LeakyReluOp>([](nn::LeakyReluOp op, GraphBuilder &out) {
    return withNumbers(out, op, "LeakyRelu", {{"alpha", toDouble(op.getAlpha())}});
  });
  table.add<nn::EluOp>([](nn::EluOp op, GraphBuilder &out) {
    return withNumbers(out, op, "Elu", {{"alpha", toDouble(op.getAlpha())}});
  });
  table.add<nn::HardSigmoidOp>([](nn::HardSigmoidOp op, GraphBuilder &out) {
    return withNumbers(out, op, "HardSigmoid", {{"alpha", toDouble(op.getAlpha())}, {"beta", toDouble(op.getBeta())}});
  });
}

static void registerBinary(WriterTable &table) {
  table.addSame<nn::AddOp>("Add");
  table.addSame<nn::SubOp>("Sub");
  table.addSame<nn::MulOp>("Mul");
  table.addSame<nn::DivOp>("Div");
  table.addSame<nn::PowOp>("Pow");
  table.addSame<nn::MinOp>("Min");
  table.addSame<nn::MaxOp>("Max");
  table.addSame<nn::BitwiseAndOp>("BitwiseAnd");
  table.addSame<nn::BitwiseOrOp>("BitwiseOr");
  table.addSame<nn::BitwiseXorOp>("BitwiseXor");
  table.addSame<nn::AndOp>("And");
  table.addSame<nn::OrOp>("Or");
  table.addSame<nn::XorOp>("Xor");
  table.addSame<nn::EqOp>("Equal");
  table.addSame<nn::LtOp>("Less");
  table.addSame<nn::LeOp>("LessOrEqual");
  table.addSame<nn::GtOp>("Greater");
  table.addSame<nn::GeOp>("GreaterOrEqual");
  table.add<nn::PreluOp>(writePrelu);
  table.add<nn::ModOp>(writeMod);
  table.add<nn::ShiftOp>(writeShift);
}

void cleave::onnx::registerElementwise(WriterTable &table) {
  registerUnary(table);
  registerBinary(table);
  table.add<nn::SelectOp>(writeSelect);
}
