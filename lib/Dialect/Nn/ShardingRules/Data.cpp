//===- Data.cpp - constants, parameters and iota: any piece can be made alone -===//
//
// Making a piece costs nothing beyond the piece, so a change of sharding right behind such an op costs nothing either:
// the rule is that of a movement without an operand.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "Rules.h"

using namespace mlir;
using namespace cleave::nn;
using namespace cleave::spmd;

/// The rule of ops that give each rank any piece of their result for nothing.
static ShardingRule anyPiece(Operation *op) {
  OpRule rule = alignedRule(op);
  rule.rule.isMovement = true;
  return rule.finish();
}

ShardingRule ConstantOp::getShardingRule() { return anyPiece(*this); }
ShardingRule LoadOp::getShardingRule() { return anyPiece(*this); }
ShardingRule IotaOp::getShardingRule() { return anyPiece(*this); }
