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

#include "cleave/Dialect/Exec/IR/Commands.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace cleave;

/// In the words of spmd: once memory is planned, a collective is one of several kinds, and a permute an exchange.
static std::string getKind(Operation *op) {
  if (auto command = dyn_cast<exec::CollectiveOp>(op))
    return program::getWord(command.getKind());
  return isa<exec::ExchangeOp>(op) ? "permute" : op->getName().stripDialect().str();
}

/// Of one value that a collective takes.
static CollectiveReport describeCollective(spmd::CollectiveOpInterface op, Value operand, Value result,
                                           int64_t wireBytes) {
  CollectiveReport report;
  report.kind = getKind(op);
  for (spmd::AxisAttr axis : op.getGroupAxes())
    report.axes.push_back(spmd::formatAxis(axis));
  report.groupSize = op.getRankGroups().size();
  auto type = cast<ShapedType>(operand.getType());
  report.type = debugString(type.getElementType());
  report.operandShape = type.getShape().vec();
  report.resultShape = cast<ShapedType>(result.getType()).getShape().vec();
  report.wireBytes = wireBytes;
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

double cleave::predictNs(Operation *op, MutableArrayRef<CollectiveReport> sent, const spmd::OpTimes &times) {
  if (sent.empty())
    return 0;
  int64_t bytes = 0;
  for (const CollectiveReport &one : sent)
    bytes += one.wireBytes;
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  double ns = collective ? times.getCollectiveNs(sent.front().kind, collective.getGroupAxes(), bytes)
                         : times.getMessageNs(sent.front().axes.empty() ? "" : sent.front().axes.front(), bytes);
  for (CollectiveReport &one : sent)
    one.ns = ns * (bytes > 0 ? static_cast<double>(one.wireBytes) / static_cast<double>(bytes)
                             : 1 / static_cast<double>(sent.size()));
  return ns;
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
