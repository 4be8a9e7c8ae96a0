//===- Lowerings.cpp - the table of lowerings, and what it admits ---------===//
//
// Families are known by name from TableGen: one that lacks its `register` function does not link.
//
//===----------------------------------------------------------------------===//
#include "Lowerings.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

const LoweringTable &cleave::codegen::getLowerings() {
  static const LoweringTable table = [] {
    LoweringTable made;
#define CLEAVE_NN_FAMILY(Family) register##Family(made);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
    registerPacking(made);
    return made;
  }();
  return table;
}

/// What stands between a value's type and a kernel; empty if nothing does.
static std::string findFault(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return "is not a tensor of static shape";
  Type element = tensor.getElementType();
  if (!spmd::isElementType(element))
    return "has elements of no type of kernels";
  return "";
}

std::optional<OpKind> cleave::codegen::getOpKind(Operation *op, std::string &reason) {
  const Lowering *lowering = getLowerings().find(op);
  if (!lowering) {
    reason = (op->getName().getStringRef() + " has no lowering for kernels").str();
    return std::nullopt;
  }
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (std::string fault = findFault(type); !fault.empty()) {
      reason = (op->getName().getStringRef() + ": an operand or result " + fault).str();
      return std::nullopt;
    }
  if (lowering->fill || lowering->deviceFill)
    return OpKind::Fill;
  if (lowering->fold || lowering->expand || op->hasTrait<nn::Laborious>())
    return OpKind::Reduction;
  return lowering->element ? OpKind::Elementwise : OpKind::Movement;
}

/// Several parts of keys are threads' work; the host has one part, of which there is a step of a ring.
static bool isForDevicesOnly(Operation *op) {
  const Lowering *lowering = getLowerings().find(op);
  auto partial = dyn_cast<exec::PartialAttentionOp>(op);
  return lowering->deviceFill && (!lowering->fill || (partial && getShape(partial.getLogs()).back() != 1));
}

/// Ops suffice: a region has no others than they are, and any of them go together.
bool cleave::codegen::haveLowerings(Block &region, Processor processor, std::string &reason) {
  for (Operation &op : region.without_terminator()) {
    if (!getOpKind(&op, reason))
      return false;
    if (processor == Processor::Host && isForDevicesOnly(&op)) {
      reason = (op.getName().getStringRef() + " has a lowering for devices only").str();
      return false;
    }
    if (auto grad = dyn_cast<exec::AttentionGradOp>(op); grad && processor == Processor::Device && !grad.getLogs()) {
      reason = (op.getName().getStringRef() + " without statistics of rows has a lowering for the host only").str();
      return false;
    }
  }
  for (Type type : region.getArgumentTypes())
    if (std::string fault = findFault(type); !fault.empty()) {
      reason = "an argument " + fault;
      return false;
    }
  return true;
}

bool cleave::codegen::canEmit(Block &region, std::string &reason) {
  return haveLowerings(region, Processor::Host, reason);
}
