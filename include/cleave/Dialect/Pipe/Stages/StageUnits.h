//===- StageUnits.h - what is computed of a stage at a time -----*- C++ -*-===//
//
// Without gradients a stage is one unit. In the step of a training it is three, as schedules know them: F, the forward; I, gradients that
// other stages wait for; W, the rest, gradients of weights. `pipe.stage` of an op is then the number of its unit, in the order in which one
// microbatch needs them:
//
//   3 stages        F0  F1  F2  I2  W2  I1  W1  I0  W0
//   unit             0   1   2   3   4   5   6   7   8
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_PIPE_STAGES_STAGEUNITS_H
#define CLEAVE_DIALECT_PIPE_STAGES_STAGEUNITS_H

#include "mlir/IR/BuiltinOps.h"

#include <cassert>
#include <string>

namespace cleave::pipe {

enum class UnitKind { Forward, InputGrad, WeightGrad };

class StageUnits {
public:
  StageUnits(int64_t stages, bool trains) : stages(stages), trains(trains) {}

  /// Of a module that says how many stages its units are of (`pipe.stages`); else each of `count` units is a stage.
  static StageUnits get(mlir::ModuleOp module, int64_t count);

  bool hasGradients() const { return trains; }
  int64_t countStages() const { return stages; }
  int64_t count() const { return trains ? 3 * stages : stages; }

  int64_t getStage(int64_t unit) const {
    assert(unit >= 0 && unit < count() && "no such unit");
    return unit < stages ? unit : stages - 1 - (unit - stages) / 2;
  }
  UnitKind getKind(int64_t unit) const {
    return unit < stages ? UnitKind::Forward : (unit - stages) % 2 ? UnitKind::WeightGrad : UnitKind::InputGrad;
  }
  /// Precondition: there are gradients, or F is asked for.
  int64_t getUnit(UnitKind kind, int64_t stage) const {
    assert((trains || kind == UnitKind::Forward) && "a model without gradients has F alone");
    return kind == UnitKind::Forward ? stage : stages + 2 * (stages - 1 - stage) + (kind == UnitKind::WeightGrad);
  }
  /// `0`, `0.I`, `0.W`: behind `stage` it is the name of the unit's function.
  std::string getName(int64_t unit) const;

private:
  int64_t stages;
  bool trains;
};

} // namespace cleave::pipe

#endif // CLEAVE_DIALECT_PIPE_STAGES_STAGEUNITS_H
