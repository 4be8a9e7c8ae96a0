//===- Action.cpp - which action of a schedule an op is of ----------------===//
//
// Ranks' calls of units get their action as the metadata of their location (RankMaker.cpp), and ops that are inlined or fused keep it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/IR/Action.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;

StringAttr cleave::pipe::findAction(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return {};
  if (auto action = dyn_cast_if_present<StringAttr>(fused.getMetadata()))
    return action;
  for (Location inner : fused.getLocations())
    if (StringAttr action = findAction(inner))
      return action;
  return {};
}

/// The letter behind the number of the stage; 0: there is none.
static char getKind(Operation *op) {
  StringAttr action = pipe::findAction(op->getLoc());
  StringRef letters = action ? action.getValue().drop_while(llvm::isDigit) : StringRef();
  return letters.empty() ? 0 : letters.front();
}

bool cleave::pipe::isOfForward(Operation *op) { return getKind(op) == 'F'; }

bool cleave::pipe::isOfBackward(Operation *op) { return getKind(op) != 0 && !isOfForward(op); }
