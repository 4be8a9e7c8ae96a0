//===- PlaceStates.cpp - from the states of a plan to attributes ----------===//
//
//   plan     {past: present}
//   after    func.func @main(%past: ..) -> (.. {spmd.state = "past"})
//
// Annotations for one of both hold for the other: what stays in the ranks has one sharding. Where both have one, it must be the
// same. What propagation decides otherwise, it decides by the argument (Propagate.cpp).
//
//===----------------------------------------------------------------------===//
#include "PlaceStates.h"

#include "cleave/Dialect/Spmd/IR/Entry.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"

using namespace mlir;
using namespace cleave::spmd;

/// What is annotated of both, in `annotation`. Fails where they are annotated otherwise.
static LogicalResult shareAnnotation(func::FuncOp func, const StatePlace &state) {
  StringRef name = SpmdDialect::kAnnotationAttr;
  auto ofArgument = func.getArgAttrOfType<AnnotationAttr>(state.argument, name),
       ofResult = func.getResultAttrOfType<AnnotationAttr>(state.result, name);
  for (AnnotationAttr annotation : {ofArgument, ofResult})
    if (annotation && state.dim && !annotation.getSharding().getDims()[*state.dim].getAxes().empty())
      return emitError(annotation.getPlace())
             << "state '" << getArgumentName(func, state.argument) << "' grows along dim " << *state.dim
             << ", which cannot be sharded: its positions move at every call";
  if (!ofArgument && ofResult)
    func.setArgAttr(state.argument, name, ofResult);
  if (ofArgument && !ofResult)
    func.setResultAttr(state.result, name, ofArgument);
  if (!ofArgument || !ofResult || ofArgument.getSharding() == ofResult.getSharding())
    return success();
  InFlightDiagnostic error = emitError(ofResult.getPlace());
  error << "'" << getResultName(func, state.result) << "' is what the next call finds as '"
        << getArgumentName(func, state.argument) << "', and is wanted in another sharding";
  error.attachNote(ofArgument.getPlace()) << "that one is wanted here";
  return error;
}

LogicalResult cleave::spmd::placeStates(ModuleOp module, const Plan &plan, PlanError &error) {
  if (plan.states.empty())
    return success();
  func::FuncOp func = findEntry(module);
  if (!func) {
    error = {plan.states.front().input.place, "states are those of one function, and none is called main", {}};
    return failure();
  }
  SmallVector<StringRef> inputs, outputs;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    inputs.push_back(getArgumentName(func, index));
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    outputs.push_back(getResultName(func, index));
  std::vector<StatePair> pairs;
  if (failed(pairStates(plan, inputs, outputs, pairs, error)))
    return failure();
  for (const StatePair &pair : pairs) {
    Type from = func.getArgumentTypes()[pair.input], to = func.getResultTypes()[pair.output];
    if (!matchState(from, to)) {
      error = {
          pair.state->input.place,
          llvm::formatv("'{0}' is {1}, and its next value '{2}' {3}: neither of one shape, nor larger along one dim",
                        inputs[pair.input], from, outputs[pair.output], to),
          {}};
      return failure();
    }
    func.setResultAttr(pair.output, SpmdDialect::kStateAttr, StringAttr::get(func.getContext(), inputs[pair.input]));
  }
  return success();
}

LogicalResult cleave::spmd::shareAnnotations(ModuleOp module) {
  for (func::FuncOp func : getFunctions(module)) {
    FailureOr<SmallVector<StatePlace>> states = getStates(func);
    if (failed(states))
      return failure();
    for (const StatePlace &state : *states)
      if (failed(shareAnnotation(func, state)))
        return failure();
  }
  return success();
}
