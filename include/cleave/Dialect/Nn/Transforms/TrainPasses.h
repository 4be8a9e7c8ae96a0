//===- TrainPasses.h - passes that make a step of training ------*- C++ -*-===//
//
// As the driver makes them: with a plan that has been read, instead of options that name it.
//
//   model ──add adapters──▶ ──outline──▶ loss of weights ──differentiate──▶ + gradients ──attach update──▶ next weights
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_TRANSFORMS_TRAINPASSES_H
#define CLEAVE_DIALECT_NN_TRANSFORMS_TRAINPASSES_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace cleave::spmd {
struct Plan;
} // namespace cleave::spmd

namespace cleave::nn {

using PlanRef = std::shared_ptr<const spmd::Plan>;

/// Precondition: the plan has a section `train`.
std::unique_ptr<mlir::Pass> createNnAddAdapters(PlanRef plan);
/// \param evaluates the model stays in inference: nothing is dropped, norms take the statistics that the step keeps.
std::unique_ptr<mlir::Pass> createNnOutlineStep(PlanRef plan, bool evaluates);
/// \param keepsGradients they are results, too.
std::unique_ptr<mlir::Pass> createNnAttachUpdate(PlanRef plan, bool keepsGradients);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_TRANSFORMS_TRAINPASSES_H
