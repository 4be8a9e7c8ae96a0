//===- StagesByHand.cpp - stages as a plan names them ---------------------===//
//
//   - {nodes: "*/embeddings/*"}      stage 0: these nodes, and what follows from them
//   - {first: "*/layer.3/*"}         stage 1: from the first op of such a node on, in the order of the model
//   - {first: "*/layer.6/*"}         stage 2
//
// One walk in program order. Whether edges go forward is checked where the answer is described.
//
// A model may say itself in which stage a node is; then ops go by the names of their nodes alone. What that cannot say, of a node whose
// ops are in several stages, or of a collective that is elsewhere than the rule has it, is said of single ops.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Transforms/StageGraph.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// As `StageNames` has it. An op that several nodes have become is called by the first.
static std::vector<std::string> nameOps(const StageGraph &graph) {
  std::vector<std::string> names;
  llvm::StringMap<int64_t> counts;
  for (Operation *op : graph.ops) {
    std::string name = spmd::describeNode(op) + " " + op->getName().getStringRef().str();
    int64_t before = counts[name]++;
    names.push_back(before ? name + "#" + std::to_string(before) : name);
  }
  return names;
}

static bool isOfNode(Operation *op, const spmd::NamePattern &pattern) {
  return llvm::any_of(spmd::getNodeInfos(op),
                      [&](const spmd::NodeInfo &info) { return !info.node.empty() && pattern.matches(info.node); });
}

/// Of all loops in it, too; none of an op that is no loop.
static SmallVector<Operation *> getBodyOps(Operation *op) {
  SmallVector<Operation *> found;
  for (Region &body : op->getRegions())
    body.walk([&](Operation *inner) { found.push_back(inner); });
  return found;
}

namespace {
/// The lines, and which of them a node was found for.
class Lines {
public:
  explicit Lines(ArrayRef<spmd::PlanStage> lines) : lines(lines), isFound(lines.size(), false) {}

  llvm::Error read();
  /// The line of `nodes` that names the op; -1: none.
  int32_t findNamed(Operation *op);
  /// The last stage that has started, this op included; -1: none has.
  int32_t findStarted(Operation *op);
  llvm::Error checkFound() const;
  /// Error: a node in the body of the loop `op` that is to be in another stage than `stage`, where the loop is. Comes behind
  /// `findStarted` of the same op.
  llvm::Error checkLoop(Operation *op, int32_t stage, StageInLoop &inLoop);

private:
  bool isOf(Operation *op, size_t line, spmd::PlanStage::Kind kind) {
    bool isMatch = lines[line].kind == kind && patterns[line] && isOfNode(op, *patterns[line]);
    isFound[line] = isFound[line] || isMatch;
    return isMatch;
  }

  ArrayRef<spmd::PlanStage> lines;
  /// Nothing for a line without a pattern, which names no node by itself.
  std::vector<std::optional<spmd::NamePattern>> patterns;
  std::vector<bool> isFound;
  int32_t started = -1;
};
} // namespace

schedule::PlacementWish cleave::pipe::getPlacementWish(const spmd::PlanPipeline &pipeline) {
  schedule::PlacementWish wish{schedule::parsePlacement(pipeline.placement), {}};
  for (const spmd::PlanStage &stage : pipeline.stages)
    wish.ranks.push_back(static_cast<int32_t>(stage.rank.value_or(-1)));
  return wish;
}

llvm::Error Lines::read() {
  for (const spmd::PlanStage &line : lines) {
    std::string reason;
    patterns.push_back(line.pattern.text.empty() ? std::nullopt : spmd::NamePattern::create(line.pattern.text, reason));
    if (!reason.empty())
      return makeError("{0}", reason);
  }
  return llvm::Error::success();
}

int32_t Lines::findNamed(Operation *op) {
  int32_t named = -1;
  // All lines are looked at, so that one that names a node twice named counts as found.
  for (size_t line = 0; line < lines.size(); ++line)
    if (isOf(op, line, spmd::PlanStage::Kind::Nodes) && named < 0)
      named = static_cast<int32_t>(line);
  return named;
}

int32_t Lines::findStarted(Operation *op) {
  // A start counts once; the same node again belongs to whatever has started since.
  for (size_t line = started + 1; line < lines.size(); ++line)
    if (!isFound[line] && isOf(op, line, spmd::PlanStage::Kind::First))
      started = static_cast<int32_t>(line);
  return started;
}

llvm::Error Lines::checkFound() const {
  for (size_t line = 0; line < lines.size(); ++line)
    if (patterns[line] && !isFound[line])
      return makeError("no node {0}is called {1}, at which stage {2} is to {3}",
                       line && lines[line].kind == spmd::PlanStage::Kind::First ? "behind the starts before it " : "",
                       quote(lines[line].pattern.text), line,
                       lines[line].kind == spmd::PlanStage::Kind::First ? "start" : "be");
  return llvm::Error::success();
}

static llvm::Error makeCutsLoop(StringRef node, Operation *loop, int64_t stage, bool isStart) {
  return makeError("node {0}, at which stage {1} is to {2}, is in the body of loop {3}, which is whole in one stage",
                   quote(node), stage, isStart ? "start" : "be", quote(spmd::describeNode(loop)));
}

/// A start that is still looked for when its node is in the loop would go through it, and so does a name for another stage.
llvm::Error Lines::checkLoop(Operation *op, int32_t stage, StageInLoop &inLoop) {
  for (Operation *inner : getBodyOps(op))
    for (auto [line, said] : llvm::enumerate(lines)) {
      bool isStart = said.kind == spmd::PlanStage::Kind::First;
      if (!patterns[line] || !isOfNode(inner, *patterns[line]) || (isStart ? isFound[line] : int32_t(line) == stage))
        continue;
      inLoop = {op, said.pattern.place};
      return makeCutsLoop(spmd::describeNode(inner), op, int64_t(line), isStart);
    }
  return llvm::Error::success();
}

/// The stage that a model gives a node; -1: none. What a value is called by nodes that only pass it on counts where it is made.
/// Ops in a function's body are where its call is, whose name stands before theirs.
static int64_t findSaid(const spmd::NodeInfo &info, const spmd::StageNames &said) {
  int64_t stage = -1;
  for (ArrayRef<StringRef> names : info.results)
    for (StringRef name : names)
      if (auto found = said.tensors.find(name.str()); found != said.tensors.end())
        stage = stage < 0 ? found->second : std::min(stage, found->second);
  for (StringRef name = info.node; stage < 0 && !name.empty(); name = name.rsplit('/').first) {
    if (auto found = said.nodes.find(name.str()); found != said.nodes.end())
      return found->second;
    if (!name.contains('/'))
      break;
  }
  return stage;
}

/// Equal ops of several stages may have become one, of which the first needs it; and what several nodes compute may be one op,
/// which needs operands of the last. An op that canonical form has moved behind one of a later stage goes there, too. Collectives are no
/// node's: how values lie has put them between nodes.
static int32_t findSaid(Operation *op, const spmd::StageNames &said, int32_t after) {
  int64_t best = -1;
  if (isa<spmd::SpmdDialect>(op->getDialect()))
    return after;
  for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
    if (int64_t stage = findSaid(info, said); stage >= after)
      best = best < 0 ? stage : std::min(best, stage);
  return best < 0 ? after : static_cast<int32_t>(best);
}

/// As the model says it, of what a node in a body makes or is called.
static llvm::Error checkSaid(Operation *op, const spmd::StageNames &said, int32_t stage, StageInLoop &inLoop) {
  for (Operation *inner : getBodyOps(op))
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(inner))
      if (int64_t other = findSaid(info, said); other >= 0 && other != stage) {
        inLoop.loop = op;
        return makeCutsLoop(spmd::describeNode(inner), op, other, /*isStart=*/false);
      }
  return llvm::Error::success();
}

/// What makes more of a value than there is to be sent.
static bool isGather(Operation *op) {
  auto countBytes = [](ValueRange values) {
    int64_t bytes = 0;
    for (Value value : values)
      bytes += spmd::getBytes(value.getType());
    return bytes;
  };
  return isa<spmd::SpmdDialect>(op->getDialect()) && countBytes(op->getResults()) > countBytes(op->getOperands());
}

/// By op, who uses something of it.
static std::vector<std::vector<uint32_t>> listUsers(const StageGraph &graph) {
  std::vector<std::vector<uint32_t>> users(graph.ops.size());
  for (const schedule::SplitValue &value : graph.problem.values)
    users[value.producer].insert(users[value.producer].end(), value.users.begin(), value.users.end());
  return users;
}

namespace {
/// What a model says of its nodes, as it is of ops. Collectives are no node's: one that makes more of a value is where the result is
/// needed first, so that the less is sent, and any other where its operands are. An op of which the model says more is there.
class SaidStages {
public:
  SaidStages(const StageGraph &graph, const spmd::StageNames &said);

  /// Error: a node in the body of a loop that is to be elsewhere.
  llvm::Expected<std::vector<int32_t>> assign(StageInLoop &inLoop);
  /// The ops that would have to be said by themselves, for all to be where `wanted` has them.
  std::map<std::string, int64_t> findOthers(ArrayRef<int32_t> wanted);

private:
  std::optional<int32_t> findOwn(size_t number) const;
  bool sinks(size_t number) const { return !users[number].empty() && isGather(graph.ops[number]); }
  int32_t findFirstUse(size_t number, ArrayRef<int32_t> stageOf) const;
  void leave(size_t number, int32_t stage);

  const StageGraph &graph;
  const spmd::StageNames &said;
  std::vector<std::vector<uint32_t>> users;
  std::vector<std::string> names;
  /// By op, the latest stage that it uses something of.
  std::vector<int32_t> after;
};
} // namespace

SaidStages::SaidStages(const StageGraph &graph, const spmd::StageNames &said)
    : graph(graph), said(said), users(listUsers(graph)), names(nameOps(graph)), after(graph.ops.size(), 0) {}

std::optional<int32_t> SaidStages::findOwn(size_t number) const {
  auto found = said.ops.find(names[number]);
  return found == said.ops.end() ? std::nullopt : std::optional(static_cast<int32_t>(found->second));
}

int32_t SaidStages::findFirstUse(size_t number, ArrayRef<int32_t> stageOf) const {
  int32_t first = INT32_MAX;
  for (uint32_t user : users[number])
    first = std::min(first, stageOf[user]);
  return first;
}

void SaidStages::leave(size_t number, int32_t stage) {
  for (uint32_t user : users[number])
    after[user] = std::max(after[user], stage);
}

llvm::Expected<std::vector<int32_t>> SaidStages::assign(StageInLoop &inLoop) {
  std::vector<int32_t> stageOf;
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    std::optional<int32_t> own = findOwn(number);
    stageOf.push_back(own ? *own : findSaid(op, said, after[number]));
    if (llvm::Error error = checkSaid(op, said, stageOf.back(), inLoop))
      return error;
    leave(number, stageOf.back());
  }
  for (size_t number = graph.ops.size(); number-- > 0;)
    if (sinks(number) && !findOwn(number))
      stageOf[number] = findFirstUse(number, stageOf);
  return stageOf;
}

/// The same walk, in which each op that would be elsewhere is one of them from there on. Whoever is not is where it is wanted in the
/// end, so that uses are known before they are reached.
std::map<std::string, int64_t> SaidStages::findOthers(ArrayRef<int32_t> wanted) {
  std::map<std::string, int64_t> others;
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    int32_t stage = findSaid(op, said, after[number]);
    if ((sinks(number) ? findFirstUse(number, wanted) : stage) != wanted[number])
      others[names[number]] = stage = wanted[number];
    leave(number, stage);
  }
  return others;
}

std::map<std::string, int64_t> cleave::pipe::findOthers(const StageGraph &graph, const spmd::StageNames &said,
                                                        ArrayRef<int32_t> wanted) {
  return SaidStages(graph, said).findOthers(wanted);
}

std::vector<std::string> cleave::pipe::findUnknown(const StageGraph &graph, const spmd::StageNames &said) {
  std::vector<std::string> unknown, names = nameOps(graph);
  llvm::StringSet<> known;
  known.insert_range(names);
  for (const auto &[name, stage] : said.ops)
    if (!known.contains(name))
      unknown.push_back(name);
  return unknown;
}

static llvm::Expected<std::vector<int32_t>> assignByHand(const StageGraph &graph, ArrayRef<spmd::PlanStage> lines,
                                                         StageInLoop &inLoop) {
  Lines known(lines);
  if (llvm::Error error = known.read())
    return error;
  // Op -> the latest stage that it uses something of.
  std::vector<int32_t> after(graph.ops.size(), 0), stageOf;
  std::vector<std::vector<uint32_t>> users = listUsers(graph);
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    int32_t named = known.findNamed(op), started = known.findStarted(op);
    stageOf.push_back(named >= 0 ? named : std::max(started, after[number]));
    if (llvm::Error error = known.checkLoop(op, stageOf.back(), inLoop))
      return error;
    for (uint32_t user : users[number])
      after[user] = std::max(after[user], stageOf.back());
  }
  if (llvm::Error error = known.checkFound())
    return error;
  return stageOf;
}

llvm::Expected<schedule::StageSplit> cleave::pipe::cutStages(const StageGraph &graph, ArrayRef<spmd::PlanStage> lines,
                                                             const schedule::SplitOptions &options,
                                                             const spmd::StageNames &said, StageInLoop *inLoop) {
  if (lines.empty())
    return schedule::splitStages(graph.problem, options);
  StageInLoop where;
  StageInLoop &found = inLoop ? *inLoop : where;
  llvm::Expected<std::vector<int32_t>> stageOf =
      said.isEmpty() ? assignByHand(graph, lines, found) : SaidStages(graph, said).assign(found);
  if (!stageOf)
    return stageOf.takeError();
  return schedule::describeStages(graph.problem, options, std::move(*stageOf));
}

llvm::Expected<std::vector<uint32_t>> cleave::pipe::findUsers(const StageGraph &graph,
                                                              const spmd::PlanPattern &pattern) {
  std::string reason;
  std::optional<spmd::NamePattern> matches = spmd::NamePattern::create(pattern.text, reason);
  if (!matches)
    return makeError("{0}", reason);
  std::vector<uint32_t> found;
  for (auto [number, op] : llvm::enumerate(graph.problem.ops))
    if (llvm::any_of(op.parameters,
                     [&](uint32_t parameter) { return matches->matches(graph.parameterNames[parameter]); }))
      found.push_back(static_cast<uint32_t>(number));
  if (found.empty()) {
    SmallVector<StringRef> names(graph.parameterNames.begin(), graph.parameterNames.end());
    return makeError("no parameter is called {0}{1}", quote(pattern.text), spmd::suggestPatterns(pattern.text, names));
  }
  return found;
}
