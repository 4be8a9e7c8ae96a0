//===- Page.cpp - what a page shows of a model under its plan -------------===//
//
// Decisions are asked while they are known, the program is counted where a report counts it:
//
//   load ──▶ number layers ──▶ decide (Explainer) ──▶ program of a rank ──▶ graph, folded ──▶ JSON
//
// Names and causes are told once for layers that are equal, so that the page of 96 layers is as large as that of two.
//
//===----------------------------------------------------------------------===//
#include "PageLayers.h"
#include "State.h"

#include "cleave/Compiler/Explanation.h"
#include "cleave/Compiler/ModelStructure.h"
#include "cleave/Compiler/Schedule.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace cleave;
using llvm::json::Array;
using llvm::json::Object;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Bytes by role from step to step: `[step, parameters, working, ..]` where any changes. Of more points than a screen has columns each is
/// the one of several steps at which most is held.
static Object describeMemory(const ProgramGraph &graph) {
  constexpr size_t kMostPoints = 1200;
  std::map<std::string, std::vector<int64_t>> byRole;
  std::vector<int64_t> all(graph.steps + 1, 0);
  for (const HeldTensor &held : graph.held) {
    std::vector<int64_t> &bytes = byRole.try_emplace(held.role, graph.steps + 1, 0).first->second;
    for (unsigned step = held.first; step <= held.last && step < graph.steps; ++step) {
      bytes[step] += held.bytes;
      all[step] += held.bytes;
    }
  }
  // What stays lies below what comes and goes.
  constexpr llvm::StringLiteral order[] = {"parameters", "optimizer", "batch",        "gradients",
                                           "kept",       "working",   "communication"};
  Array roles, points;
  std::vector<const std::vector<int64_t> *> areas;
  for (llvm::StringRef role : order)
    if (auto held = byRole.find(role.str()); held != byRole.end()) {
      roles.push_back(role);
      areas.push_back(&held->second);
    }
  size_t width = std::max<size_t>(1, (graph.steps + kMostPoints - 1) / kMostPoints);
  for (size_t begin = 0; begin < graph.steps; begin += width) {
    size_t end = std::min<size_t>(begin + width, graph.steps);
    size_t step = std::max_element(all.begin() + begin, all.begin() + end) - all.begin();
    Array point{static_cast<int64_t>(step)};
    for (const std::vector<int64_t> *bytes : areas)
      point.push_back((*bytes)[step]);
    points.push_back(std::move(point));
  }
  int64_t peak = all.empty() ? 0 : *llvm::max_element(all);
  return Object{{"rank", graph.rank},
                {"steps", graph.steps},
                {"peak", peak},
                {"roles", std::move(roles)},
                {"points", std::move(points)}};
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

static Object describe(const CollectiveReport &sent, const Explainer &explainer) {
  Object entry{{"kind", sent.kind}, {"axes", sent.axes},       {"bytes", sent.wireBytes},
               {"ns", sent.ns},     {"group", sent.groupSize}, {"cause", sent.cause}};
  if (std::optional<Alternative> next = explainer.findNextBest(sent.node))
    entry["next_best"] = Object{{"sharding", next->sharding}, {"bytes", next->bytes}, {"ns", next->ns}};
  return entry;
}

namespace {
/// What ops of a page say, each line once: those of one chain of causes are in many.
class PageTexts {
public:
  int64_t add(llvm::StringRef line) {
    auto [number, isNew] = numbers.try_emplace(line, lines.size());
    if (isNew)
      lines.push_back(line.str());
    return number->second;
  }
  Array take() { return std::move(lines); }

private:
  llvm::StringMap<int64_t> numbers;
  Array lines;
};
} // namespace

/// The middle of a long chain says little that its ends do not.
static void addLines(Array &why, llvm::ArrayRef<llvm::StringRef> lines, PageTexts &texts) {
  constexpr size_t kMostLines = 14, kLast = 4;
  for (auto [index, line] : llvm::enumerate(lines))
    if (lines.size() <= kMostLines || index < kMostLines - kLast || index + kLast >= lines.size())
      why.push_back(texts.add(line.rtrim()));
    else if (index == kMostLines - kLast)
      why.push_back(texts.add(llvm::formatv("    .. {0} steps ..", lines.size() - kMostLines).str()));
}

/// What is said of the value that the op's node makes: its whole type, how it is split, and why. Equal chains are said once.
static void explain(Object &entry, const GraphOp &op, const Explainer &explainer, PageTexts &texts) {
  std::vector<ValueExplanation> values;
  if (!op.node.empty())
    values = explainer.explainName(op.node);
  if (values.empty())
    return;
  const ValueExplanation &value = values.front();
  entry["whole"] = value.type;
  entry["sharding"] = value.sharding;
  std::string text;
  llvm::raw_string_ostream os(text);
  printExplanation(os, value);
  // The first says name, type and sharding again.
  SmallVector<llvm::StringRef> lines =
      llvm::to_vector(llvm::drop_begin(llvm::split(llvm::StringRef(text).rtrim(), '\n')));
  Array why;
  std::set<std::string> said;
  for (size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
    // A chain is indented below its head.
    for (end = begin + 1; end < lines.size() && lines[end].starts_with("    ");)
      ++end;
    llvm::ArrayRef<llvm::StringRef> chain = llvm::ArrayRef(lines).slice(begin, end - begin);
    if (said.insert(llvm::join(chain, "\n")).second)
      addLines(why, chain, texts);
  }
  entry["why"] = std::move(why);
}

static Object describe(const GraphOp &op, unsigned first, const Explainer &explainer, PageTexts &texts) {
  Object entry{{"op", op.op}, {"node", op.node}, {"type", op.type}, {"ns", op.ns}, {"flops", op.flops}};
  Array reads, sent;
  for (unsigned read : op.reads)
    if (read >= first)
      reads.push_back(read - first);
  entry["reads"] = std::move(reads);
  if (!op.module.empty())
    entry["module"] = op.module;
  if (!op.given.empty())
    entry["given"] = op.given;
  for (const CollectiveReport &one : op.sent)
    sent.push_back(describe(one, explainer));
  if (!sent.empty())
    entry["sent"] = std::move(sent);
  explain(entry, op, explainer, texts);
  return entry;
}

static void describeGraph(Object &page, const ProgramGraph &graph, llvm::ArrayRef<PageLayer> layers,
                          const Explainer &explainer) {
  Array kinds, order;
  PageTexts texts;
  std::vector<int64_t> kindOf;
  for (auto [number, layer] : llvm::enumerate(layers)) {
    kindOf.push_back(layer.like == number ? static_cast<int64_t>(kinds.size()) : kindOf[layer.like]);
    if (layer.like == number) {
      Array ops;
      for (unsigned op = layer.first; op < layer.last; ++op)
        ops.push_back(describe(graph.ops[op], layer.first, explainer, texts));
      kinds.push_back(Object{{"ops", std::move(ops)}});
    }
    order.push_back(Object{{"kind", kindOf.back()},
                           {"title", layer.title},
                           {"part", layer.part},
                           {"reads", layer.reads},
                           {"step", graph.ops[layer.first].step}});
  }
  // Of all layers, where those of one kind have the names of the first alone. A node's kernel is with the first of its ops.
  Object layerOf;
  for (auto [number, layer] : llvm::enumerate(layers))
    for (unsigned op = layer.first; op < layer.last; ++op)
      if (!graph.ops[op].node.empty())
        layerOf.try_emplace(graph.ops[op].node, static_cast<int64_t>(number));
  page["layer_of"] = std::move(layerOf);
  page["kinds"] = std::move(kinds);
  page["layers"] = std::move(order);
  page["parts"] = graph.parts;
  page["texts"] = texts.take();
}

//===----------------------------------------------------------------------===//
// Machine and schedule
//===----------------------------------------------------------------------===//

static Array describeAxes(const Report &report, const spmd::Cluster &cluster) {
  spmd::ClusterMesh mesh;
  for (const auto &[name, size] : report.mesh) {
    mesh.names.push_back(name);
    mesh.sizes.push_back(size);
  }
  Array axes;
  for (const auto &[name, size] : report.mesh) {
    spmd::ClusterLink link = spmd::findLink(cluster, mesh, name);
    axes.push_back(
        Object{{"name", name}, {"size", size}, {"bytes_per_ns", link.bytesPerNs}, {"latency_ns", link.latencyNs}});
  }
  return axes;
}

/// `["F", stage, microbatch, begin, end]` for all of `programs`, a schedule's as JSON, that takes time; in `times`, where there are some: what is
/// not in a trace has none.
static Array describeBars(const Array &programs, const std::vector<std::vector<schedule::Interval>> *times) {
  Array ranks;
  for (auto [rank, program] : llvm::enumerate(programs)) {
    Array bars;
    for (auto [number, value] : llvm::enumerate(*program.getAsArray())) {
      const Object &action = *value.getAsObject();
      if (!action.get("start"))
        continue;
      schedule::Interval time = {*action.getNumber("start"), *action.getNumber("end")};
      if (times)
        time = (*times)[rank][number];
      if (!times || time.end > time.start)
        bars.push_back(Array{*action.get("do"), action.getInteger("stage").value_or(0),
                             action.getInteger("microbatch").value_or(0), time.start, time.end});
    }
    ranks.push_back(std::move(bars));
  }
  return ranks;
}

Object cleave::describeSchedule(const ScheduleResult &made, const schedule::Simulation *measured) {
  std::string text;
  llvm::raw_string_ostream os(text);
  schedule::writeJson(os, made.table, made.costs, made.simulation, {});
  Object whole = std::move(*llvm::cantFail(llvm::json::parse(text)).getAsObject());
  const Array &programs = *whole.getArray("programs");
  Object entry{{"name", made.table.name},
               {"unit", made.costs.unit},
               {"stages", made.table.numStages},
               {"microbatches", made.table.numMicrobatches},
               {"makespan", made.simulation.makespan},
               {"bubble", made.simulation.bubbleMakespan},
               {"bound", made.bound.makespan},
               {"memory", made.simulation.peak.memory},
               {"ranks", describeBars(programs, nullptr)}};
  if (measured)
    entry["measured"] = Object{{"makespan", measured->makespan},
                               {"bubble", measured->bubbleMakespan},
                               {"ranks", describeBars(programs, &measured->times)}};
  return entry;
}

/// As the report of other commands, without what the graph says itself.
static Object describe(const Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJson(os, report);
  Object whole = std::move(*llvm::cantFail(llvm::json::parse(text)).getAsObject());
  for (const char *key : {"collectives", "version", "seconds"})
    whole.erase(key);
  return whole;
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

std::optional<Object> Compilation::describeForPage(llvm::StringRef name) {
  std::map<std::string, unsigned> blocks;
  if (getPhase() < Phase::Annotated) {
    std::unique_ptr<ModelStructure> structure = ModelStructure::create(*this, state->plan);
    if (!structure)
      return std::nullopt;
    blocks = structure->numberNodes();
  }
  std::unique_ptr<Explainer> explainer = Explainer::create(*this);
  if (!explainer || !advance(getLastPhase()))
    return std::nullopt;
  std::optional<Report> report = makeReport();
  if (!report)
    return std::nullopt;
  SmallVector<func::FuncOp, 4> ranks = pipe::getRankFunctions(*state->module);
  if (ranks.empty())
    ranks.push_back(getEntry());
  // Without a machine it is the one that what is free would be decided for.
  spmd::Cluster cluster =
      state->getCluster() ? *state->getCluster() : state->getTargetCluster().value_or(spmd::Cluster());
  ProgramGraph graph = describeProgram(ranks, &cluster);
  Object page{{"name", name.str()},
              {"cluster", cluster.name},
              {"axes", describeAxes(*report, cluster)},
              {"report", ::describe(*report)},
              {"memory", describeMemory(graph)}};
  describeGraph(page, graph, foldLayers(graph, blocks), *explainer);
  if (isPipelined()) {
    Compilation anew(getGivenOptions(), [](const Diagnostic &) {});
    if (std::optional<ScheduleResult> made = scheduleModel(anew, {}))
      page["schedule"] = describeSchedule(*made);
  }
  return page;
}
