//===- FormatPlan.cpp - a plan as text ------------------------------------===//
//
// The words of docs/plan-file.md, in one line, as a property of a model holds them. Names are quoted, since a model's may
// have any letters; what is not said is left out, so that the text is about as long as what a person would write.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/FormatPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;
using namespace cleave::spmd;

static std::string quoteText(StringRef text) { return "\"" + yaml::escape(text) + "\""; }

/// `[a, b]` of the texts that `format` makes of what is in a list.
template <typename List, typename FormatFn> static std::string formatList(const List &list, FormatFn format) {
  return "[" + join(map_range(list, format), ", ") + "]";
}

/// What a list of one dim is, without its brackets.
static std::string formatDim(const PlanDim &dim) {
  PlanRule rule;
  rule.dims.push_back(dim);
  return StringRef(rule.formatDims()).drop_front().drop_back().str();
}

static std::string formatRule(const PlanRule &rule) {
  bool isTensor = rule.target == PlanRule::Target::Tensor;
  std::string text = (isTensor ? "{tensor: " : "{node: ") + quoteText(rule.pattern);
  if (!isTensor)
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
    text += ", experts: " + formatDim(*rule.experts);
  return text + "}";
}

std::string cleave::spmd::formatStages(ArrayRef<PlanStage> stages) {
  return formatList(stages, [](const PlanStage &stage) {
    std::string text = stage.kind == PlanStage::Kind::Nodes ? "{nodes: " : "{first: ";
    text += quoteText(stage.pattern.text);
    return text + (stage.rank ? ", rank: " + std::to_string(*stage.rank) : "") + "}";
  });
}

std::string cleave::spmd::formatPlan(const Plan &plan, AttentionForm attention, StringRef pipeline) {
  std::string text = "{mesh: {";
  for (const MeshAxis &axis : plan.mesh)
    text += (&axis == plan.mesh.data() ? "" : ", ") + quoteText(axis.name) + ": " + std::to_string(axis.size);
  text += "}";
  if (!plan.devices.empty())
    text += ", devices: " + formatList(plan.devices, [](int64_t device) { return std::to_string(device); });
  if (!plan.rules.empty())
    text += ", shard: " + formatList(plan.rules, formatRule);
  if (plan.uneven)
    text += ", uneven: true";
  if (attention != AttentionForm::Auto)
    text += (", attention: " + kAttentionWords[static_cast<int>(attention)]).str();
  if (!pipeline.empty())
    text += (", pipeline: " + pipeline).str();
  return text + "}";
}
