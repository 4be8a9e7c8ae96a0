//===- ProgramGraph.cpp - a rank's program as a graph ---------------------===//
//
// Ops are numbered as the walk of costs meets them, which is the order in which a rank runs them; a stage that is called once for each
// microbatch is met often, and is one part of the graph all the same. Values keep the op that made them: arguments of a stage are what the
// rank's program hands it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Pipelines/ProgramGraph.h"

#include "PipelineReport.h"
#include "SentReport.h"
#include "StepReport.h"

#include "cleave/Cost/Memory.h"
#include "cleave/Cost/Program.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace cleave;

namespace {
class GraphBuilder {
public:
  explicit GraphBuilder(const SymbolTable &symbols) : symbols(symbols) {}

  void addRank(func::FuncOp rank, const cost::OpTimes *times);
  ProgramGraph take();

private:
  void addOp(Operation &op, const cost::OpVisit &visit);
  void readOperands(Operation &op, GraphOp &entry);
  void describeMemory(func::FuncOp rank);

  const SymbolTable &symbols;
  ProgramGraph graph;
  llvm::MapVector<Operation *, unsigned> numbers;
  llvm::DenseMap<Operation *, unsigned> parts;
  /// Parts that are programs of ranks, which call stages.
  llvm::DenseSet<unsigned> rankParts;
  /// Of the rank that holds most so far.
  int64_t mostBytes = -1;
  /// Of an op of a rank's program its place there; of a function the first op that calls it.
  llvm::DenseMap<Operation *, unsigned> steps;
};
} // namespace

/// `4x128xf32`; nothing for an op without a tensor.
static std::string describeResult(Operation &op) {
  for (Value result : op.getResults())
    if (auto type = dyn_cast<ShapedType>(result.getType())) {
      std::string text;
      for (int64_t size : type.getShape())
        text += std::to_string(size) + "x";
      return text + debugString(type.getElementType());
    }
  return "";
}

/// Through what is no op of the graph: loaded weights, constants and arguments have names, or are not told.
void GraphBuilder::readOperands(Operation &op, GraphOp &entry) {
  llvm::SetVector<unsigned> reads;
  llvm::SetVector<StringRef> given;
  for (Value operand : op.getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (auto number = maker ? numbers.find(maker) : numbers.end(); number != numbers.end())
      reads.insert(number->second);
    else if (SmallVector<StringRef, 1> names = nn::getTensorNames(operand); !names.empty())
      given.insert(names.front());
  }
  entry.reads.assign(reads.begin(), reads.end());
  for (StringRef name : given)
    entry.given.push_back(name.str());
}

void GraphBuilder::addOp(Operation &op, const cost::OpVisit &visit) {
  // What calls a stage is that stage, whose ops are met by themselves.
  if (op.hasTrait<OpTrait::IsTerminator>() || (op.getNumOperands() == 0 && nn::isData(&op)) ||
      cost::getCallee(&op, symbols))
    return;
  auto [number, isNew] = numbers.try_emplace(&op, graph.ops.size());
  if (isNew) {
    GraphOp &entry = graph.ops.emplace_back();
    entry.op = op.getName().getStringRef().str();
    entry.node = nn::describeNode(&op);
    if (SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(&op); !infos.empty())
      entry.module = infos.front().getModule();
    entry.type = describeResult(op);
    readOperands(op, entry);
    auto func = op.getParentOfType<func::FuncOp>();
    auto [part, isFirst] = parts.try_emplace(func, parts.size());
    if (isFirst)
      graph.parts.push_back(func.getSymName().str());
    entry.part = part->second;
    if (pipe::getRank(func))
      rankParts.insert(entry.part);
    auto call = steps.find(func);
    entry.step = call != steps.end() ? call->second : steps.lookup(func.getBody().front().findAncestorOpInBlock(op));
  }
  GraphOp &entry = graph.ops[number->second];
  std::vector<CollectiveReport> sent = describeSent(&op);
  share(sent, visit.cost.communicationNs);
  if (visit.isRepeated)
    repeat(sent, visit.runs);
  entry.ns += visit.cost.getNs() * static_cast<double>(visit.runs);
  entry.flops += visit.cost.flops * static_cast<double>(visit.runs);
  entry.runs += visit.runs;
  if (isNew)
    entry.sent = std::move(sent);
}

void GraphBuilder::describeMemory(func::FuncOp rank) {
  int64_t bytes = cost::countPeakBytes(rank, symbols);
  if (bytes <= mostBytes)
    return;
  mostBytes = bytes;
  graph.held.clear();
  graph.rank = pipe::getRank(rank).value_or(0);
  graph.steps = static_cast<unsigned>(rank.getBody().front().getOperations().size());
  for (const cost::LiveBytes &live : cost::listLiveBytes(rank, symbols))
    if (live.bytes > 0)
      graph.held.push_back({nameRole(rank, live).str(), static_cast<unsigned>(live.first),
                            static_cast<unsigned>(live.last), live.bytes});
}

void GraphBuilder::addRank(func::FuncOp rank, const cost::OpTimes *times) {
  for (auto [step, op] : llvm::enumerate(rank.getBody().front())) {
    steps[&op] = static_cast<unsigned>(step);
    if (func::FuncOp callee = cost::getCallee(&op, symbols))
      steps.try_emplace(callee, step);
  }
  cost::countProgram(rank, symbols, times, [&](Operation &op, const cost::OpVisit &visit) { addOp(op, visit); });
  describeMemory(rank);
}

/// What is one part comes together: stages in the order in which they are met first, then what ranks do beside them.
ProgramGraph GraphBuilder::take() {
  auto isOfRank = [&](const GraphOp &op) { return rankParts.contains(op.part); };
  std::vector<unsigned> order(graph.ops.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned lhs, unsigned rhs) {
    const GraphOp &a = graph.ops[lhs], &b = graph.ops[rhs];
    return std::tuple(isOfRank(a), a.part, lhs) < std::tuple(isOfRank(b), b.part, rhs);
  });
  std::vector<unsigned> places(order.size());
  for (auto [place, number] : llvm::enumerate(order))
    places[number] = static_cast<unsigned>(place);
  std::vector<GraphOp> ops;
  for (unsigned number : order) {
    GraphOp &op = ops.emplace_back(std::move(graph.ops[number]));
    for (unsigned &read : op.reads)
      read = places[read];
  }
  graph.ops = std::move(ops);
  return std::move(graph);
}

ProgramGraph cleave::describeProgram(ArrayRef<func::FuncOp> ranks, const spmd::Cluster *cluster) {
  assert(!ranks.empty() && "no program");
  auto module = func::FuncOp(ranks.front())->getParentOfType<ModuleOp>();
  const SymbolTable symbols(module);
  std::vector<cost::OpTimes> times = cluster ? makeTimes(module, ranks.size(), *cluster) : std::vector<cost::OpTimes>();
  GraphBuilder builder(symbols);
  for (auto [index, rank] : llvm::enumerate(ranks))
    builder.addRank(rank, times.empty() ? nullptr : &times[index]);
  return builder.take();
}
