//===- Forms.cpp - the table of forms, and what it admits -----------------===//
//
// Families are known by name from TableGen: one that lacks its `register` function does not link.
//
//===----------------------------------------------------------------------===//
#include "Forms.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Dialect/Exec/IR/Exec.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

const FormTable &cleave::codegen::getForms() {
  static const FormTable table = [] {
    FormTable made;
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
  const Form *form = getForms().find(op);
  if (!form) {
    reason = (op->getName().getStringRef() + " has no form for kernels").str();
    return std::nullopt;
  }
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (std::string fault = findFault(type); !fault.empty()) {
      reason = (op->getName().getStringRef() + ": an operand or result " + fault).str();
      return std::nullopt;
    }
  if (form->fill || form->deviceFill)
    return OpKind::Fill;
  if (form->fold || form->expand || op->hasTrait<nn::Laborious>())
    return OpKind::Reduction;
  return form->element ? OpKind::Elementwise : OpKind::Movement;
}

/// Several parts of keys are threads' work; the host has one part, of which there is a step of a ring.
static bool isForDevicesOnly(Operation *op) {
  const Form *form = getForms().find(op);
  auto partial = dyn_cast<exec::PartialAttentionOp>(op);
  return form->deviceFill && (!form->fill || (partial && getShape(partial.getLogs()).back() != 1));
}

/// Ops suffice: a region has no others than they are, and any of them go together.
bool cleave::codegen::haveForms(Block &region, Processor processor, std::string &reason) {
  for (Operation &op : region.without_terminator()) {
    if (!getOpKind(&op, reason))
      return false;
    if (processor == Processor::Host && isForDevicesOnly(&op)) {
      reason = (op.getName().getStringRef() + " has a form for devices only").str();
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

bool cleave::codegen::canEmit(Block &region, std::string &reason) { return haveForms(region, Processor::Host, reason); }
