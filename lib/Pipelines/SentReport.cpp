//===- SentReport.cpp - what reports say of what is sent ------------------===//
//
// A line, or an entry, is about one value: its type is that of what is sent. An op that sends several values together, as messages between
// stages and packed collectives do, has an entry for each:
//
//   exec.send %a, %b : memref<2x4xf32>, memref<8xi64>        send 2x4xf32  32 B        send 8xi64  64 B
//
//===----------------------------------------------------------------------===//
#include "SentReport.h"

#include "PipelineReport.h"

#include "cleave/Cost/OpCosts.h"
#include "cleave/Dialect/Exec/IR/Commands.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/RankGroups.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace cleave;

/// Of one value that a collective takes.
static CollectiveReport describeCollective(spmd::CollectiveOpInterface op, Value operand, Value result,
                                           int64_t wireBytes) {
  CollectiveReport report;
  report.kind = cost::getKindOfCollective(op).str();
  for (spmd::AxisAttr axis : op.getGroupAxes())
    report.axes.push_back(spmd::formatAxis(axis));
  report.groupSize = getRankGroups(op).size();
  auto type = cast<ShapedType>(operand.getType());
  report.type = debugString(type.getElementType());
  report.operandShape = type.getShape().vec();
  report.resultShape = cast<ShapedType>(result.getType()).getShape().vec();
  report.wireBytes = wireBytes;
  if (program::getTraffic(report.kind) == program::Traffic::Direct)
    report.peers = op.getNumPeers();
  report.node = nn::describeNode(op);
  if (StringAttr cause = op.getCauseAttr())
    report.cause = cause.str();
  return report;
}

std::vector<CollectiveReport> cleave::describeSent(Operation *op) {
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  if (!collective)
    return describeMessage(op);
  std::vector<CollectiveReport> reports;
  if (!collective.communicates())
    return reports;
  if (auto command = dyn_cast<exec::CollectiveOp>(op)) {
    for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(command.getSources(), command.getTargets())))
      reports.push_back(describeCollective(collective, std::get<0>(pair), std::get<1>(pair),
                                           exec::countWireBytes(command, static_cast<unsigned>(index))));
    return reports;
  }
  auto command = dyn_cast<exec::CommandOpInterface>(op);
  Value result = command ? command.getWrites().front() : op->getResult(0);
  return {describeCollective(collective, op->getOperand(0), result, collective.getWireBytes())};
}

void cleave::share(MutableArrayRef<CollectiveReport> sent, double ns) {
  int64_t bytes = 0;
  for (const CollectiveReport &one : sent)
    bytes += one.wireBytes;
  for (CollectiveReport &one : sent)
    one.ns = ns * (bytes > 0 ? static_cast<double>(one.wireBytes) / static_cast<double>(bytes)
                             : 1 / static_cast<double>(sent.size()));
}

void cleave::repeat(MutableArrayRef<CollectiveReport> sent, int64_t runs) {
  for (CollectiveReport &one : sent) {
    one.times = runs;
    one.wireBytes *= runs;
    one.ns *= double(runs);
    one.cause += (one.cause.empty() ? "in a loop, " : "; in a loop, ") + std::to_string(runs) + " times";
  }
}

void cleave::addSent(std::vector<CollectiveReport> sent, Report &report) {
  if (!sent.empty())
    ++report.totals[sent.front().kind].count;
  for (CollectiveReport &one : sent) {
    report.totals[one.kind].wireBytes += one.wireBytes;
    report.collectives.push_back(std::move(one));
  }
}
