//===- Pipe.cpp - the pipe dialect ----------------------------------------===//
//
// A stage is an attribute of any op, so its constraints are checked where it stands: each op against the ops whose
// results it uses, which is all edges, once.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/IR/Pipe.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

#include "cleave/Dialect/Pipe/IR/PipeDialect.cpp.inc"

void PipeDialect::initialize() {}

std::optional<int64_t> cleave::pipe::getStage(Operation *op) {
  auto stage = op->getAttrOfType<IntegerAttr>(PipeDialect::kStageAttr);
  return stage ? std::optional(stage.getInt()) : std::nullopt;
}

void cleave::pipe::setStage(Operation *op, int64_t stage) {
  op->setAttr(PipeDialect::kStageAttr, Builder(op->getContext()).getI64IntegerAttr(stage));
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kStageAttr)
    return op->emitError() << "'" << attribute.getName().strref() << "' is no attribute of pipe; there is "
                           << kStageAttr;
  auto stage = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!stage || !stage.getType().isInteger(64) || stage.getInt() < 0)
    return op->emitOpError() << "has " << attribute.getValue() << " as " << kStageAttr
                             << ", which is an integer of 64 bits, 0 or more (P2)";
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    // Before the producer is verified itself, its stage may be anything.
    auto other = producer ? producer->getAttrOfType<IntegerAttr>(kStageAttr) : IntegerAttr();
    if (!other || !other.getType().isInteger(64) || other.getInt() <= stage.getInt())
      continue;
    InFlightDiagnostic error = op->emitOpError() << "is in stage " << stage.getInt() << " and uses what stage "
                                                 << other.getInt() << " makes (P3)";
    error.attachNote(producer->getLoc()) << "it is made here";
    return error;
  }
  return success();
}
