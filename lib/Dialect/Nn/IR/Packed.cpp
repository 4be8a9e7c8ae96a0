//===- Packed.cpp - bytes that hold smaller elements ----------------------===//
//
// Elements of 4 and 2 bits are stored in bytes, and plans name the bytes: [k, n / 2]. What they hold is found where they are
// taken apart, behind pins of a plan:
//
//   bytes ui8 [k, n / 2] ─▶ reshape ─▶ shift ─▶ cast bits, i4 [k, n / 2, 2] ─▶ reshape (─▶ slice ─▶ reshape) i4 [k, n]
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Packed.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

static bool isSmall(Type type) { return type.isIntOrFloat() && type.getIntOrFloatBitWidth() < 8 && !type.isInteger(1); }

RankedTensorType cleave::nn::getHeldType(Value bytes) {
  auto type = dyn_cast<RankedTensorType>(bytes.getType());
  if (!type || !type.getElementType().isUnsignedInteger(8))
    return {};
  // What is computed of bytes otherwise has other users, or another op at some step.
  Value held;
  for (Value value = bytes; value.hasOneUse();) {
    Operation *user = *value.user_begin();
    bool isCast = isa<CastOp>(user) && cast<CastOp>(user).getBits();
    if (!isCast && !isa<ReshapeOp, ShiftOp, SliceOp, spmd::PinOp>(user))
      break;
    value = user->getResult(0);
    if (isSmall(getElementTypeOrSelf(value)))
      held = value;
  }
  return held ? cast<RankedTensorType>(held.getType()) : RankedTensorType();
}
