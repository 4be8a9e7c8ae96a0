//===- OpCosts.cpp - what one op takes ------------------------------------===//
//
//   op                        flops            time
//   product, attention, ..    of its rule      roofline, and a launch
//   other ops of nn           0                roofline: they are fused with what is next to them, and read and write as if not
//   movement                  0                0
//   kernel                    of its body      roofline, and a launch
//   collective, message       0                what it sends
//   nn.loop                   of its body, so many times
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/OpCosts.h"

#include "cleave/Dialect/Exec/IR/Commands.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Program/Collective.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::cost;

int64_t cleave::cost::countBytes(Value value) {
  return isa<ShapedType>(value.getType()) ? spmd::getBytes(value.getType()) : 0;
}

//===----------------------------------------------------------------------===//
// Flops
//===----------------------------------------------------------------------===//

double OpCosts::countBody(Block &body) {
  double flops = 0;
  for (Operation &op : body)
    flops += countFlops(op);
  return flops;
}

double OpCosts::countKernel(StringRef name) {
  return symbols ? countBody(symbols->lookup<exec::KernelOp>(name).getBody().front()) : 0;
}

/// Local ops have rules of local shapes, so that their flops are those of a rank. To make a rule takes longer than all else that is asked
/// here of an op.
OpCosts::Work OpCosts::getWork(Operation &op) {
  auto [entry, isNew] = known.try_emplace(&op);
  if (!isNew)
    return entry->second;
  Work work;
  if (auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op)) {
    spmd::ShardingRule rule = ruled.getShardingRule();
    work = {rule.flops, rule.isMovement};
  } else if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    work.flops = countKernel(launch.getKernel());
  } else if (auto run = dyn_cast<exec::RunOp>(op)) {
    work.flops = countKernel(run.getKernel());
  }
  return known[&op] = work; // what is in the kernel may have been added meanwhile
}

double OpCosts::countFlops(Operation &op) {
  return op.getNumRegions() ? countBody(op.getRegion(0).front()) : getWork(op).flops;
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// The element type that an op computes in: that of its first operand, or else result.
static Type getComputedType(Operation &op) {
  auto types = op.getNumOperands() ? TypeRange(op.getOperandTypes()) : TypeRange(op.getResultTypes());
  return types.empty() ? Type() : getElementTypeOrSelf(types.front());
}

/// The body of what is a kernel, in place or by name; null: it has none here.
Block *OpCosts::findBody(Operation &op) {
  StringRef name;
  if (op.getNumRegions() != 0)
    return &op.getRegion(0).front();
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    name = launch.getKernel();
  else if (auto run = dyn_cast<exec::RunOp>(op))
    name = run.getKernel();
  return symbols && !name.empty() ? &symbols->lookup<exec::KernelOp>(name).getBody().front() : nullptr;
}

/// Elements of a value that a kernel reads. What only moves elements reads no more of them than it makes: of a table rows that are looked up, of
/// what is sliced the slice; element by element no more is converted than is read behind.
double OpCosts::countReadElements(Value value, unsigned depth) {
  constexpr unsigned kFarthest = 4;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape())
    return 0;
  auto all = static_cast<double>(type.getNumElements());
  double read = 0;
  for (Operation *user : value.getUsers()) {
    bool isUnary = user->getNumResults() == 1 && depth < kFarthest && isa<spmd::ShardingRuleOpInterface>(user);
    if (isUnary && getWork(*user).isMovement)
      read += countReadElements(user->getResult(0), depth + 1);
    else if (isUnary && user->getNumOperands() == 1 && user->hasTrait<nn::Elementwise>())
      read += countReadElements(user->getResult(0), depth + 1);
    else
      return all;
  }
  return std::min(all, read);
}

/// Which part of an operand a kernel reads.
double OpCosts::getReadShare(Block *body, unsigned operand) {
  if (!body || operand >= body->getNumArguments() || body->getArgument(operand).use_empty())
    return 1;
  BlockArgument argument = body->getArgument(operand);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type || type.getNumElements() == 0)
    return 1;
  return countReadElements(argument, 0) / static_cast<double>(type.getNumElements());
}

/// A command of its own takes its launch at least.
double OpCosts::getComputeNs(Operation &op, double flops, const Share &share) {
  bool isKernel = isa<exec::LaunchOp, exec::RunOp>(op) || op.getNumRegions() != 0;
  if (!isKernel && (!isa<spmd::ShardingRuleOpInterface>(op) || (flops == 0 && getWork(op).isMovement)))
    return 0;
  double bytes = 0;
  Block *body = isKernel ? findBody(op) : nullptr;
  for (OpOperand &operand : op.getOpOperands())
    bytes += static_cast<double>(share.countBytes(operand.get())) * getReadShare(body, operand.getOperandNumber());
  for (Value result : op.getResults())
    bytes += static_cast<double>(share.countBytes(result));
  return isKernel ? times->getKernelNs(flops, bytes, getComputedType(op))
                  : times->getComputeNs(flops, bytes, getComputedType(op));
}

static int64_t divide(int64_t bytes, const Share &share) { return (bytes + share.parts - 1) / share.parts; }

StringRef cleave::cost::getKindOfCollective(Operation *op) {
  if (auto command = dyn_cast<exec::CollectiveOp>(op))
    return program::getWord(command.getKind());
  return isa<exec::ExchangeOp>(op) ? "permute" : op->getName().stripDialect();
}

double OpCosts::getCommunicationNs(Operation &op, const Share &share) {
  if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op))
    return collective.communicates()
               ? times->getCollectiveNs(getKindOfCollective(&op), collective.getGroupAxes(),
                                        divide(collective.getWireBytes(), share), collective.getNumPeers())
               : 0;
  if (!isa<pipe::SendOp, exec::SendOp>(op))
    return 0;
  int64_t bytes = 0;
  for (Value value : op.getOperands())
    bytes += countBytes(value);
  auto axis = op.getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr);
  return times->getMessageNs(axis ? axis.strref() : "", divide(bytes, share));
}

OpCost OpCosts::getLoop(Operation &op, const Share &share) {
  auto loop = cast<nn::LoopOp>(op);
  auto counted = loop->getAttrOfType<IntegerAttr>(spmd::kTimesAttr);
  auto runs = static_cast<double>(counted ? counted.getInt() : loop.getCountedTimes());
  OpCost sum;
  for (Operation &inner : loop.getBody().front().without_terminator()) {
    OpCost one = get(inner, share);
    sum.flops += runs * one.flops;
    sum.computeNs += runs * one.computeNs;
    sum.communicationNs += runs * one.communicationNs;
  }
  return sum;
}

OpCost OpCosts::get(Operation &op, const Share &share) {
  if (isa<nn::LoopOp>(op))
    return getLoop(op, share);
  OpCost cost{countFlops(op) / static_cast<double>(share.parts)};
  if (!times)
    return cost;
  if (isa<spmd::CollectiveOpInterface, pipe::SendOp, exec::SendOp>(op))
    cost.communicationNs = getCommunicationNs(op, share);
  else
    cost.computeNs = getComputeNs(op, cost.flops, share);
  return cost;
}
