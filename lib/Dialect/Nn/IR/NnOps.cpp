//===- NnOps.cpp - the generated op classes of the nn dialect -------------===//
#include "../ShardingRules/Rules.h"
#include "TypeInference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

#define GET_OP_CLASSES
#include "cleave/Dialect/Nn/IR/NnOps.cpp.inc"
