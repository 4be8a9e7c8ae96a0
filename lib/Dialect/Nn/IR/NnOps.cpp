//===- NnOps.cpp - the generated op classes of the nn dialect -------------===//
//
// A file of its own, as it is most of what there is to compile. The definitions that TableGen writes for whole classes
// of ops call the two headers above.
//
//===----------------------------------------------------------------------===//
#include "../ShardingRules/Rules.h"
#include "TypeInference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

#define GET_OP_CLASSES
#include "cleave/Dialect/Nn/IR/NnOps.cpp.inc"
