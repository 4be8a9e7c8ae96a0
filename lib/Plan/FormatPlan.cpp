//===- FormatPlan.cpp - a plan as text ------------------------------------===//
//
// The words of docs/plan-file.md, in one line, as a property of a model holds them. Names are quoted, since a model's may
// have any letters; what is not said is left out, so that the text is about as long as what a person would write.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/FormatPlan.h"

#include "FormatText.h"

using namespace llvm;
using namespace cleave::spmd;

std::string cleave::spmd::formatMesh(ArrayRef<MeshAxis> mesh, StringRef separator) {
  return join(map_range(mesh, [](const MeshAxis &axis) { return axis.name + "=" + std::to_string(axis.size); }),
              separator);
}

/// What a list of one dim is, without its brackets.
static std::string formatEntry(const PlanDim &dim) {
  PlanRule rule;
  rule.dims.push_back(dim);
  return StringRef(rule.formatDims()).drop_front().drop_back().str();
}

static std::string formatRule(const PlanRule &rule) {
  bool isModule = rule.target == PlanRule::Target::Module, isTensor = rule.target == PlanRule::Target::Tensor;
  std::string text = (isModule ? "{module: " : isTensor ? "{tensor: " : "{node: ") + quoteText(rule.pattern);
  if (!isTensor && !isModule)
    text += (rule.target == PlanRule::Target::Operand ? ", operand: " : ", result: ") + std::to_string(rule.index);
  text += ", dims: " + rule.formatDims();
  if (!rule.except.empty())
    text += ", except: " + formatList(rule.except, [](const PlanPattern &pattern) { return quoteText(pattern.text); });
  if (rule.whereDivides)
    text += ", where: divides";
  if (rule.priority)
    text += ", priority: " + std::to_string(rule.priority);
  if (!rule.replicated.empty())
    text += ", replicated: " + formatList(rule.replicated, [](const PlanAxis &axis) { return axis.format(); });
  if (rule.uneven)
    text += ", uneven: true";
  if (rule.experts)
    text += ", experts: " + formatEntry(*rule.experts);
  return text + "}";
}

std::string cleave::spmd::formatStages(ArrayRef<PlanStage> stages) {
  return formatList(stages, [](const PlanStage &stage) {
    std::string text = kStageWords[static_cast<int>(stage.kind)];
    text = "{" + text + ": " + quoteText(stage.pattern.text);
    return text + (stage.rank ? ", rank: " + std::to_string(*stage.rank) : "") + "}";
  });
}

std::string cleave::spmd::formatPipeline(const PlanPipeline &pipeline, int64_t microbatches) {
  std::string text, batch;
  auto add = [&](StringRef key, const Twine &value) { text += (", " + key + ": " + value).str(); };
  for (const auto &[input, dim] : pipeline.batch)
    batch += (batch.empty() ? "" : ", ") + quoteText(input.text) + ": " +
             (dim == PlanPipeline::kNoBatch ? "none" : std::to_string(dim));
  if (pipeline.chunks != 1)
    add("chunks", Twine(pipeline.chunks));
  if (!batch.empty())
    add("batch", "{" + batch + "}");
  if (!pipeline.together.empty())
    add("together", formatList(pipeline.together, [](const PlanPattern &pattern) { return quoteText(pattern.text); }));
  if (!pipeline.schedule.empty() && !pipeline.hasScheduleFile())
    add("schedule", pipeline.schedule);
  if (!pipeline.placement.empty())
    add("placement", pipeline.placement);
  if (pipeline.memoryLimit)
    add("memory_limit", Twine(pipeline.memoryLimit) + "B");
  if (pipeline.balance == PlanBalance::Latency)
    add("balance", "latency");
  if (pipeline.relays)
    add("send", "relay");
  if (pipeline.uneven)
    add("uneven", "true");
  static constexpr const char *recomputes[] = {"never", "always", "except_last"};
  if (pipeline.recompute == PlanRecompute::ByStage)
    add("recompute", formatList(pipeline.recomputeOfStages, [](PlanPolicy policy) {
          return std::string(kRecomputeWords[static_cast<int>(policy)]);
        }));
  else if (pipeline.recompute != PlanRecompute::Never)
    add("recompute", recomputes[static_cast<int>(pipeline.recompute)]);
  if (!pipeline.updatesEarly)
    add("update", "end");
  return "{axis: " + pipeline.axis + ", microbatches: " + std::to_string(microbatches) + text + "}";
}

/// Bounds are kept as they were written.
static std::string formatExpect(ArrayRef<PlanBound> bounds) {
  std::vector<std::string> entries, absent;
  for (const PlanBound &bound : bounds) {
    auto [key, text] = StringRef(bound.text).split(' ');
    if (key == "no")
      absent.push_back(text.str());
    else
      entries.push_back((key + ": " + text).str());
  }
  if (!absent.empty())
    entries.push_back("no: [" + join(absent, ", ") + "]");
  return "{" + join(entries, ", ") + "}";
}

/// The keys of a plan and their texts, in the order of docs/plan-file.md, but those of `formatPlanFile` alone.
static std::vector<std::pair<StringRef, std::string>> formatEntries(const Plan &plan, AttentionMethod attention) {
  std::vector<std::pair<StringRef, std::string>> entries;
  auto formatSize = [](StringRef name, int64_t size) { return quoteText(name) + ": " + std::to_string(size); };
  auto axes = map_range(plan.mesh, [&](const MeshAxis &axis) { return formatSize(axis.name, axis.size); });
  entries.emplace_back("mesh", "{" + join(axes, ", ") + "}");
  if (!plan.devices.empty())
    entries.emplace_back("devices", formatList(plan.devices, [](int64_t device) { return std::to_string(device); }));
  if (!plan.rules.empty())
    entries.emplace_back("shard", formatList(plan.rules, formatRule));
  if (!plan.like.empty())
    entries.emplace_back("like",
                         plan.like.size() == 1 ? formatStyles(plan.like) : formatList(plan.like, [](Style style) {
                           return kStyleWords[static_cast<int>(style)].str();
                         }));
  if (plan.areAllFree)
    entries.emplace_back("free", "true");
  else if (plan.isByTime || !plan.free.empty())
    entries.emplace_back("free", formatList(plan.free, [](const PlanAxis &axis) { return axis.name; }));
  if (plan.uneven)
    entries.emplace_back("uneven", "true");
  if (attention != AttentionMethod::Auto)
    entries.emplace_back("attention", kAttentionWords[static_cast<int>(attention)].str());
  return entries;
}

std::string cleave::spmd::formatPlan(const Plan &plan, AttentionMethod attention, StringRef pipeline) {
  auto entries = formatEntries(plan, attention);
  if (!pipeline.empty())
    entries.emplace_back("pipeline", pipeline.str());
  return "{" +
         join(map_range(entries, [](const auto &entry) { return (entry.first + ": " + entry.second).str(); }), ", ") +
         "}";
}

std::string cleave::spmd::formatPlanFile(const Plan &plan, AttentionMethod attention, ArrayRef<std::string> comments) {
  std::string text;
  for (const std::string &comment : comments)
    text += "# " + comment + "\n";
  auto entries = formatEntries(plan, attention);
  if (!plan.clusterFile.empty())
    entries.emplace_back("cluster", quoteText(plan.clusterFile));
  if (!plan.dims.empty())
    entries.emplace_back("dims", "{" +
                                     join(map_range(plan.dims,
                                                    [](const auto &dim) {
                                                      return quoteText(dim.first) + ": " + std::to_string(dim.second);
                                                    }),
                                          ", ") +
                                     "}");
  // Microbatches of a step in one stage are said in `train`, of which that pipeline was made.
  if (plan.pipeline && !(plan.train && plan.train->microbatches > 1))
    entries.emplace_back("pipeline", formatPipeline(*plan.pipeline, plan.pipeline->microbatches.value_or(1)));
  if (!plan.bounds.empty())
    entries.emplace_back("expect", formatExpect(plan.bounds));
  for (const PlanState &state : plan.states)
    entries.emplace_back(&state == plan.states.data() ? "state" : "",
                         "  " + quoteText(state.input.text) + ": " + quoteText(state.output.text));
  for (const auto &[key, value] : entries) {
    if (key == "shard") {
      text += "shard:\n";
      for (const PlanRule &rule : plan.rules)
        text += "  - " + formatRule(rule) + "\n";
    } else if (StringRef(value).starts_with("  ")) {
      text += (key.empty() ? "" : (key + ":\n").str()) + value + "\n";
    } else {
      text += (key + ": " + value + "\n").str();
    }
  }
  if (plan.train) {
    text += "train:\n";
    for (const auto &[key, value] : formatTrain(*plan.train))
      text += ("  " + key + ": " + value + "\n").str();
  }
  return text;
}
