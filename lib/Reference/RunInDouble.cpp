//===- RunInDouble.cpp - a program with every float an f64 ----------------===//
//
// Rounding is about 2^29 times finer in double than in f32, so that what two programs still differ by there is no
// rounding. A clone of the module gets f64 in all types; weights and constants keep the type that they are stored in,
// and are converted behind the op that reads them:
//
//     %w = nn.load @w : tensor<8xf32>          %w = nn.load @w : tensor<8xf32>
//     %y = nn.mul %x, %w : .. tensor<8xf32>    %v = nn.cast %w : tensor<8xf32> to tensor<8xf64>
//                                              %y = nn.mul %x, %v : .. tensor<8xf64>
//
// Bits are those of the types that the model has: a bitcast reads what is rounded to its operand's type, and gives its own.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Evaluator.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// A tensor of floats as one of f64, in the same sharding; any other type as it is.
static Type widen(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool isFloat = tensor && isa<FloatType>(tensor.getElementType());
  return isFloat ? tensor.clone(Float64Type::get(type.getContext())) : type;
}

static Attribute widenGlobalType(Attribute attr) { return TypeAttr::get(widen(cast<TypeAttr>(attr).getValue())); }

static void widenSignature(func::FuncOp func) {
  StringRef name = spmd::SpmdDialect::kGlobalTypeAttr;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (Attribute attr = func.getArgAttr(i, name))
      func.setArgAttr(i, name, widenGlobalType(attr));
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (Attribute attr = func.getResultAttr(i, name))
      func.setResultAttr(i, name, widenGlobalType(attr));
  auto widenAll = [](TypeRange types) { return llvm::map_to_vector(types, widen); };
  func.setFunctionType(
      FunctionType::get(func.getContext(), widenAll(func.getArgumentTypes()), widenAll(func.getResultTypes())));
}

static void widenArguments(Block &block) {
  for (BlockArgument argument : block.getArguments())
    argument.setType(widen(argument.getType()));
}

/// In front of each bitcast of floats, a cast to the type that it reads: nothing yet, and a rounding when what it casts is wide.
static llvm::DenseSet<Operation *> keepBits(ModuleOp module) {
  llvm::DenseSet<Operation *> casts;
  module.walk([&](nn::BitcastOp op) {
    Value input = op.getInput();
    if (widen(input.getType()) == input.getType())
      return;
    OpBuilder builder(op);
    auto stored = nn::CastOp::create(builder, op.getLoc(), input.getType(), input);
    op.getInputMutable().assign(stored);
    casts.insert(stored);
  });
  return casts;
}

static void widenOp(Operation *op, const llvm::DenseSet<Operation *> &kept) {
  if (kept.contains(op))
    return;
  if (!nn::isData(op) && !isa<nn::BitcastOp>(op)) {
    for (Value result : op->getResults())
      result.setType(widen(result.getType()));
    return;
  }
  Value stored = op->getResult(0);
  if (widen(stored.getType()) == stored.getType())
    return;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  auto wide = nn::CastOp::create(builder, op->getLoc(), widen(stored.getType()), stored);
  stored.replaceAllUsesExcept(wide, wide);
}

static Tensor widen(const Tensor &tensor) {
  auto type = cast<RankedTensorType>(widen(tensor.getType()));
  if (type == tensor.getType())
    return tensor;
  Tensor wide = Tensor::zeros(type);
  loadElements<double>(tensor, 0, tensor.getNumElements(), wide.write<double>().data());
  return wide;
}

LogicalResult cleave::reference::runInDouble(func::FuncOp func, ArrayRef<Tensor> inputs,
                                             SmallVectorImpl<Tensor> &outputs) {
  if (getPhase(func->getParentOfType<ModuleOp>()) >= Phase::Planned)
    return func.emitError("cannot be run in double: its memory is planned for the types that it has");
  OwningOpRef<ModuleOp> module = func->getParentOfType<ModuleOp>().clone();
  auto wide = module->lookupSymbol<func::FuncOp>(func.getSymName());
  for (auto each : module->getOps<func::FuncOp>())
    widenSignature(each);
  llvm::DenseSet<Operation *> kept = keepBits(*module);
  // Kernels too, within the function and beside it.
  module->walk([&](Block *block) {
    widenArguments(*block);
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (!isa<func::FuncOp>(op))
        widenOp(&op, kept);
  });
  return runGlobal(wide, llvm::map_to_vector(inputs, [](const Tensor &input) { return widen(input); }), outputs);
}
