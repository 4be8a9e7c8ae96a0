//===- StagesByHand.cpp - stages as a plan names them ---------------------===//
//
//   - {nodes: "*/embeddings/*"}      stage 0: these nodes, and what follows from them
//   - {first: "*/layer.3/*"}         stage 1: from the first op of such a node on, in the order of the model
//   - {first: "*/layer.6/*"}         stage 2
//   - {module: "model.layers.9"}     stage 3: the nodes of this module, and of those in it
//
// One walk in program order. Whether edges go forward is checked where the answer is described. Collectives, and slices that ranks take by
// themselves, are no node's, whatever node they were made for: how values are sharded has put them somewhere between nodes.
//
// A model may say itself in which stage a node is; then ops go by the names of their nodes alone. What that cannot say, of a node whose
// ops are in several stages, or of a collective that is elsewhere than the rule has it, is said of single ops.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/Stages/StageGraph.h"

#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Plan/ModuleWeights.h"
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

/// A collective, or what a rank takes of a value by itself.
static bool isOfSharding(Operation *op) { return isa<spmd::SpmdDialect>(op->getDialect()); }

/// What fills up a value for collectives, or takes that away again: called as the node that wants it so, and often far before it. A node of
/// the model may look the same.
static bool fillsUp(Operation *op) {
  auto isMove = [](Operation *other) { return other && isOfSharding(other); };
  return (isa<nn::PadOp>(op) && llvm::all_of(op->getUsers(), isMove)) ||
         (isa<nn::SliceOp>(op) && isMove(op->getOperand(0).getDefiningOp()));
}

/// By name, or by the first tensor of a node without one.
static StringRef getName(const spmd::NodeInfo &info) {
  bool isNamed = !info.node.empty() || info.results.empty() || info.results.front().empty();
  return isNamed ? info.node : info.results.front().front();
}

static bool isOfNode(Operation *op, const spmd::NamePattern &pattern) {
  return !isOfSharding(op) && llvm::any_of(spmd::getNodeInfos(op), [&](const spmd::NodeInfo &info) {
    return !getName(info).empty() && pattern.matches(getName(info));
  });
}

/// `a.b.c`, `a.b` and `a` of the module `a.b.c`, which is in all of them.
static SmallVector<StringRef> getModulesAround(StringRef module) {
  SmallVector<StringRef> around;
  for (; !module.empty(); module = module.contains('.') ? module.rsplit('.').first : StringRef())
    around.push_back(module);
  return around;
}

/// Ops that several nodes have become are in the modules of all of them.
static bool isOfModule(Operation *op, const spmd::NamePattern &pattern) {
  return !isOfSharding(op) && llvm::any_of(spmd::getNodeInfos(op), [&](const spmd::NodeInfo &info) {
    return llvm::any_of(getModulesAround(info.getModule()), [&](StringRef module) { return pattern.matches(module); });
  });
}

/// True if a line that says `kind` of this pattern is about the op.
static bool isPicked(Operation *op, spmd::PlanStage::Kind kind, const spmd::NamePattern &pattern) {
  return kind == spmd::PlanStage::Kind::Module ? isOfModule(op, pattern) : isOfNode(op, pattern);
}

/// Where nodes that a pattern picks have become parts of others' ops (a mean of squares is part of a norm): the next node of the
/// model that is left. Empty: there is none, or the model has no such node.
static StringRef findLeft(const StageGraph &graph, const spmd::NamePattern &pattern) {
  auto first = llvm::find_if(graph.nodes, [&](StringRef name) { return !name.empty() && pattern.matches(name); });
  llvm::StringSet<> left;
  for (Operation *op : graph.ops)
    if (!isOfSharding(op))
      for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
        left.insert(getName(info));
  auto next =
      std::find_if(first, graph.nodes.end(), [&](StringRef name) { return !name.empty() && left.contains(name); });
  return next == graph.nodes.end() ? StringRef() : StringRef(*next);
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
  /// `takesFilling`: what fills up values for collectives is of nodes, too.
  Lines(ArrayRef<spmd::PlanStage> lines, bool takesFilling)
      : lines(lines), isFound(lines.size(), false), takesFilling(takesFilling) {}

  llvm::Error read(const StageGraph &graph);
  /// The line of `nodes` that names the op; -1: none.
  int32_t findNamed(Operation *op);
  /// The last stage that has started, this op included; -1: none has.
  int32_t findStarted(Operation *op);
  llvm::Error checkFound(const StageGraph &graph, StageFault &fault) const;
  /// Error: a node in the body of the loop `op` that is to be in another stage than `stage`, where the loop is. Comes behind
  /// `findStarted` of the same op.
  llvm::Error checkLoop(Operation *op, int32_t stage, StageFault &fault);

private:
  bool picks(size_t line, Operation *op) const {
    if (instead[line].empty())
      return patterns[line] && isPicked(op, lines[line].kind, *patterns[line]);
    return !isOfSharding(op) && llvm::any_of(spmd::getNodeInfos(op), [&](const spmd::NodeInfo &info) {
      return getName(info) == instead[line];
    });
  }
  bool isOf(Operation *op, size_t line, spmd::PlanStage::Kind kind) {
    bool isMatch = lines[line].kind == kind && picks(line, op) && (takesFilling || !fillsUp(op));
    isFound[line] = isFound[line] || isMatch;
    return isMatch;
  }

  ArrayRef<spmd::PlanStage> lines;
  /// Nothing for a line without a pattern, which names no node by itself.
  std::vector<std::optional<spmd::NamePattern>> patterns;
  /// The node in whose place that is of which nothing is left; empty where a line's own nodes are there.
  std::vector<StringRef> instead;
  std::vector<bool> isFound;
  bool takesFilling;
  int32_t started = -1;
};
} // namespace

schedule::PlacementRequest cleave::pipe::getPlacementRequest(const spmd::PlanPipeline &pipeline) {
  schedule::PlacementRequest request{schedule::parsePlacement(pipeline.placement), {}};
  for (const spmd::PlanStage &stage : pipeline.stages)
    request.ranks.push_back(static_cast<int32_t>(stage.rank.value_or(-1)));
  return request;
}

llvm::Error Lines::read(const StageGraph &graph) {
  for (const spmd::PlanStage &line : lines) {
    patterns.emplace_back();
    if (!line.pattern.text.empty()) {
      llvm::Expected<spmd::NamePattern> pattern = spmd::NamePattern::create(line.pattern.text);
      if (!pattern)
        return pattern.takeError();
      patterns.back() = std::move(*pattern);
    }
    bool isLost =
        patterns.back() && line.kind != spmd::PlanStage::Kind::Module && llvm::none_of(graph.ops, [&](Operation *op) {
          return isOfNode(op, *patterns.back()) ||
                 llvm::any_of(getBodyOps(op), [&](Operation *inner) { return isOfNode(inner, *patterns.back()); });
        });
    instead.push_back(isLost ? findLeft(graph, *patterns.back()) : StringRef());
  }
  return llvm::Error::success();
}

int32_t Lines::findNamed(Operation *op) {
  int32_t named = -1;
  // All lines are looked at, so that one that names a node twice named counts as found.
  for (size_t line = 0; line < lines.size(); ++line)
    if ((isOf(op, line, spmd::PlanStage::Kind::Nodes) || isOf(op, line, spmd::PlanStage::Kind::Module)) && named < 0)
      named = static_cast<int32_t>(line);
  return named;
}

int32_t Lines::findStarted(Operation *op) {
  // Stages start one behind the other, each with an op of its own: what comes early of a later one's nodes is no start.
  size_t next = started + 1;
  while (next < lines.size() && lines[next].kind != spmd::PlanStage::Kind::First)
    ++next;
  if (next < lines.size() && isOf(op, next, spmd::PlanStage::Kind::First))
    started = static_cast<int32_t>(next);
  return started;
}

/// Of a line that no module was found for.
static llvm::Error makeNoModule(const StageGraph &graph, size_t stage, StringRef text) {
  llvm::StringSet<> known;
  for (Operation *op : graph.ops)
    if (!isOfSharding(op))
      for (const spmd::NodeInfo &info : spmd::getNodeInfos(op)) {
        std::string path = info.getModule();
        for (StringRef module : getModulesAround(path))
          known.insert(module);
      }
  if (known.empty())
    return makeError("{0}", spmd::explainNoModules());
  SmallVector<StringRef> names(known.keys());
  llvm::sort(names);
  return makeError("no module is called {0}, which stage {1} is to have{2}", quote(text), stage,
                   spmd::suggestPatterns(text, names));
}

/// Of a line that no node was found for: one that is there, but too early, or names like that.
static std::string describeOthers(const StageGraph &graph, const spmd::PlanStage &line,
                                  const spmd::NamePattern &pattern) {
  SmallVector<StringRef> names;
  for (Operation *op : graph.ops) {
    if (isOfNode(op, pattern))
      return "; node " + quote(spmd::describeNode(op)) + " comes before them";
    if (!isOfSharding(op))
      for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
        names.push_back(getName(info));
  }
  return suggestNames(line.pattern.text, names);
}

llvm::Error Lines::checkFound(const StageGraph &graph, StageFault &fault) const {
  for (auto [number, line] : llvm::enumerate(lines)) {
    if (!patterns[number] || isFound[number])
      continue;
    bool isStart = line.kind == spmd::PlanStage::Kind::First;
    fault.place = line.pattern.place;
    if (line.kind == spmd::PlanStage::Kind::Module)
      return makeNoModule(graph, number, line.pattern.text);
    return makeError("no node {0}is called {1}, at which stage {2} is to {3}{4}",
                     number && isStart ? "after the starts before it " : "", quote(line.pattern.text), number,
                     isStart ? "start" : "be", describeOthers(graph, line, *patterns[number]));
  }
  return llvm::Error::success();
}

static llvm::Error makeLoopIsSplit(StringRef node, Operation *loop, int64_t stage, bool isStart) {
  return makeError("node {0}, at which stage {1} is to {2}, is in the body of loop {3}, which is whole in one stage",
                   quote(node), stage, isStart ? "start" : "be", quote(spmd::describeNode(loop)));
}

/// A start that is still looked for when its node is in the loop would go through it, and so does a name for another stage.
llvm::Error Lines::checkLoop(Operation *op, int32_t stage, StageFault &fault) {
  for (Operation *inner : getBodyOps(op))
    for (auto [line, said] : llvm::enumerate(lines)) {
      bool isStart = said.kind == spmd::PlanStage::Kind::First;
      if (!patterns[line] || !isPicked(inner, said.kind, *patterns[line]) ||
          (isStart ? isFound[line] : int32_t(line) == stage))
        continue;
      fault = {op, said.pattern.place};
      return makeLoopIsSplit(spmd::describeNode(inner), op, int64_t(line), isStart);
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
  if (isOfSharding(op))
    return after;
  for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
    if (int64_t stage = findSaid(info, said); stage >= after)
      best = best < 0 ? stage : std::min(best, stage);
  return best < 0 ? after : static_cast<int32_t>(best);
}

/// As the model says it, of what a node in a body makes or is called.
static llvm::Error checkSaid(Operation *op, const spmd::StageNames &said, int32_t stage, StageFault &fault) {
  for (Operation *inner : getBodyOps(op))
    for (const spmd::NodeInfo &info : spmd::getNodeInfos(inner))
      if (int64_t other = findSaid(info, said); other >= 0 && other != stage) {
        fault.loop = op;
        return makeLoopIsSplit(spmd::describeNode(inner), op, other, /*isStart=*/false);
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
  return isOfSharding(op) && countBytes(op->getResults()) > countBytes(op->getOperands());
}

namespace {
/// By op, who uses something of it, and where it goes if it is no node's.
class Uses {
public:
  explicit Uses(const StageGraph &graph);

  /// True for what is of no node and goes where its result is needed first: so the less is sent, or, of parameters and inputs alone,
  /// which all stages have, nothing.
  bool sinks(size_t number) const { return isSinking[number] && !users[number].empty(); }
  int32_t findFirst(size_t number, ArrayRef<int32_t> stageOf) const;
  /// Raises `after` of all that use something of op `number`, which is in `stage`.
  void leave(size_t number, int32_t stage, MutableArrayRef<int32_t> after) const;
  /// Puts what sinks where it goes, but for those that `isSaid` says are elsewhere.
  void sink(MutableArrayRef<int32_t> stageOf, llvm::function_ref<bool(size_t)> isSaid) const;

private:
  std::vector<std::vector<uint32_t>> users;
  std::vector<bool> isSinking;
};
} // namespace

Uses::Uses(const StageGraph &graph) : users(graph.ops.size()), isSinking(graph.ops.size()) {
  std::vector<bool> isOfStage(graph.ops.size(), false);
  for (const schedule::SplitValue &value : graph.problem.values)
    users[value.producer].insert(users[value.producer].end(), value.users.begin(), value.users.end());
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    isSinking[number] = isOfSharding(op) && (!isOfStage[number] || isGather(op));
    if (!isOfSharding(op) || isOfStage[number])
      for (uint32_t user : users[number])
        isOfStage[user] = true;
  }
}

int32_t Uses::findFirst(size_t number, ArrayRef<int32_t> stageOf) const {
  int32_t first = INT32_MAX;
  for (uint32_t user : users[number])
    first = std::min(first, stageOf[user]);
  return first;
}

void Uses::leave(size_t number, int32_t stage, MutableArrayRef<int32_t> after) const {
  for (uint32_t user : users[number])
    after[user] = std::max(after[user], stage);
}

void Uses::sink(MutableArrayRef<int32_t> stageOf, llvm::function_ref<bool(size_t)> isSaid) const {
  for (size_t number = stageOf.size(); number-- > 0;)
    if (sinks(number) && !isSaid(number))
      stageOf[number] = findFirst(number, stageOf);
}

namespace {
/// What a model says of its nodes, as it is of ops. Collectives are no node's: one that makes more of a value is where the result is
/// needed first, so that the less is sent, and any other where its operands are. An op of which the model says more is there.
class SaidStages {
public:
  SaidStages(const StageGraph &graph, const spmd::StageNames &said)
      : graph(graph), said(said), uses(graph), names(nameOps(graph)), after(graph.ops.size(), 0) {}

  /// Error: a node in the body of a loop that is to be elsewhere.
  llvm::Expected<std::vector<int32_t>> assign(StageFault &fault);
  /// The ops that would have to be said by themselves, for all to be where `wanted` has them.
  std::map<std::string, int64_t> findOthers(ArrayRef<int32_t> wanted);

private:
  std::optional<int32_t> findOwn(size_t number) const;

  const StageGraph &graph;
  const spmd::StageNames &said;
  Uses uses;
  std::vector<std::string> names;
  /// By op, the latest stage that it uses something of.
  std::vector<int32_t> after;
};
} // namespace

std::optional<int32_t> SaidStages::findOwn(size_t number) const {
  auto found = said.ops.find(names[number]);
  return found == said.ops.end() ? std::nullopt : std::optional(static_cast<int32_t>(found->second));
}

llvm::Expected<std::vector<int32_t>> SaidStages::assign(StageFault &fault) {
  std::vector<int32_t> stageOf;
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    std::optional<int32_t> own = findOwn(number);
    stageOf.push_back(own ? *own : findSaid(op, said, after[number]));
    if (llvm::Error error = checkSaid(op, said, stageOf.back(), fault))
      return error;
    uses.leave(number, stageOf.back(), after);
  }
  uses.sink(stageOf, [&](size_t number) { return findOwn(number).has_value(); });
  return stageOf;
}

/// The same walk, in which each op that would be elsewhere is one of them from there on. Whoever is not is where it is wanted in the
/// end, so that uses are known before they are reached.
std::map<std::string, int64_t> SaidStages::findOthers(ArrayRef<int32_t> wanted) {
  std::map<std::string, int64_t> others;
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    int32_t stage = findSaid(op, said, after[number]);
    if ((uses.sinks(number) ? uses.findFirst(number, wanted) : stage) != wanted[number])
      others[names[number]] = stage = wanted[number];
    uses.leave(number, stage, after);
  }
  return others;
}

std::map<std::string, int64_t> cleave::pipe::findOthers(const StageGraph &graph, const spmd::StageNames &said,
                                                        ArrayRef<int32_t> wanted) {
  assert(said.ops.empty() && wanted.size() == graph.problem.ops.size() && "a stage per op, and none is said yet");
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
                                                         bool takesFilling, StageFault &fault) {
  Lines known(lines, takesFilling);
  if (llvm::Error error = known.read(graph))
    return error;
  // Op -> the latest stage that it uses something of.
  std::vector<int32_t> after(graph.ops.size(), 0), stageOf;
  Uses uses(graph);
  for (auto [number, op] : llvm::enumerate(graph.ops)) {
    int32_t named = known.findNamed(op), started = isOfSharding(op) ? 0 : known.findStarted(op);
    stageOf.push_back(named >= 0 ? named : std::max(started, after[number]));
    if (llvm::Error error = known.checkLoop(op, stageOf.back(), fault))
      return error;
    uses.leave(number, stageOf.back(), after);
  }
  if (llvm::Error error = known.checkFound(graph, fault))
    return error;
  uses.sink(stageOf, [](size_t) { return false; });
  return stageOf;
}

/// Stages that part no attention, if there are any that fit, and the slowest is not much slower than it could be.
static llvm::Expected<schedule::StageSplit> splitWhereBest(const StageGraph &graph,
                                                           const schedule::SplitOptions &options) {
  constexpr double kMostMore = 1.05;
  llvm::Expected<schedule::StageSplit> best = schedule::splitStages(graph.problem, options);
  if (!best || graph.attentionClusters.empty())
    return best;
  schedule::SplitProblem closer = graph.problem;
  for (auto [op, cluster] : llvm::zip_equal(closer.ops, graph.attentionClusters))
    op.cluster = cluster;
  llvm::Expected<schedule::StageSplit> kept = schedule::splitStages(closer, options);
  if (!kept) {
    llvm::consumeError(kept.takeError());
    return best;
  }
  // The bound stays that of stages that may part it.
  if (static_cast<double>(kept->bottleneckNs) <= kMostMore * static_cast<double>(best->bottleneckNs))
    return schedule::describeStages(graph.problem, options, std::move(kept->stageOf));
  return best;
}

llvm::Expected<schedule::StageSplit> cleave::pipe::findStageSplit(const StageGraph &graph,
                                                                  ArrayRef<spmd::PlanStage> lines,
                                                                  const schedule::SplitOptions &options,
                                                                  const spmd::StageNames &said, StageFault *fault) {
  if (lines.empty())
    return splitWhereBest(graph, options);
  assert(lines.size() == options.placement.size() && "a line per stage");
  StageFault where;
  StageFault &found = fault ? *fault : where;
  llvm::Expected<std::vector<int32_t>> stageOf = said.isEmpty()
                                                     ? assignByHand(graph, lines, /*takesFilling=*/false, found)
                                                     : SaidStages(graph, said).assign(found);
  // A line may mean a node of the model that looks like that.
  if (!stageOf && said.isEmpty()) {
    llvm::consumeError(stageOf.takeError());
    found = {};
    stageOf = assignByHand(graph, lines, /*takesFilling=*/true, found);
  }
  if (!stageOf)
    return stageOf.takeError();
  return schedule::describeStages(graph.problem, options, std::move(*stageOf));
}

llvm::Expected<std::vector<uint32_t>> cleave::pipe::findUsers(const StageGraph &graph,
                                                              const spmd::PlanPattern &pattern) {
  llvm::Expected<spmd::NamePattern> matches = spmd::NamePattern::create(pattern.text);
  if (!matches)
    return matches.takeError();
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
