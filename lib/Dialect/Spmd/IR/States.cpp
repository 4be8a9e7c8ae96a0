//===- States.cpp - what stays in the ranks between calls -----------------===//
//
// Attributes of results name arguments; who goes with whom is looked up each time, as passes change both.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/States.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave::spmd;

std::optional<StatePlace> cleave::spmd::matchState(Type argument, Type result) {
  auto from = dyn_cast<RankedTensorType>(argument), to = dyn_cast<RankedTensorType>(result);
  if (!from || !to || from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return std::nullopt;
  StatePlace state{0, 0, std::nullopt, 0};
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    int64_t added = to.getDimSize(dim) - from.getDimSize(dim);
    if (added == 0)
      continue;
    if (added < 0 || state.dim)
      return std::nullopt;
    state.dim = dim;
    state.added = added;
  }
  return state;
}

FailureOr<SmallVector<StatePlace>> cleave::spmd::getStates(func::FuncOp func) {
  llvm::StringMap<unsigned> arguments;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    arguments[getArgumentName(func, index)] = index;
  SmallVector<StatePlace> states;
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    auto name = func.getResultAttrOfType<StringAttr>(index, SpmdDialect::kStateAttr);
    if (!name)
      continue;
    auto found = arguments.find(name.getValue());
    if (found == arguments.end())
      return func.emitOpError() << "has a result that is the next value of '" << name.getValue()
                                << "', which is not an argument, or has a state already";
    Type argument = func.getArgumentTypes()[found->second], result = func.getResultTypes()[index];
    std::optional<StatePlace> state = matchState(argument, result);
    if (!state)
      return func.emitOpError() << "has a state '" << name.getValue() << "' of type " << argument
                                << ", which cannot become " << result;
    state->argument = found->second;
    state->result = index;
    states.push_back(*state);
    arguments.erase(found);
  }
  return states;
}

std::optional<unsigned> cleave::spmd::findStateArgument(func::FuncOp func, unsigned result) {
  auto name = func.getResultAttrOfType<StringAttr>(result, SpmdDialect::kStateAttr);
  for (unsigned index = 0; name && index < func.getNumArguments(); ++index)
    if (getArgumentName(func, index) == name.getValue())
      return index;
  return std::nullopt;
}
