//===- StageUnits.cpp - what is computed of a stage at a time -------------===//
//
// Whether there are gradients is said once, on the module, when stages are assigned; all passes behind that ask here.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageUnits.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"

using namespace cleave;
using namespace cleave::pipe;

StageUnits StageUnits::get(mlir::ModuleOp module, int64_t count) {
  auto stages = module->getAttrOfType<mlir::IntegerAttr>(PipeDialect::kStagesAttr);
  return stages ? StageUnits(stages.getInt(), true) : StageUnits(count, false);
}

std::string StageUnits::getName(int64_t unit) const {
  const char *kind = getKind(unit) == UnitKind::Forward ? "" : getKind(unit) == UnitKind::InputGrad ? ".I" : ".W";
  return std::to_string(getStage(unit)) + kind;
}
