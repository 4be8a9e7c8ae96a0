//===- FormatTrain.cpp - the section `train` as text ----------------------===//
//
// What readers of PlanTrain.cpp make of this is the same step. What is not said is left out, as a person would leave it; numbers have as many
// digits as they need to be read back as they are.
//
//===----------------------------------------------------------------------===//
#include "FormatText.h"
#include "PlanTrain.h"
#include "cleave/Plan/FormatPlan.h"

#include <charconv>

using namespace llvm;
using namespace cleave::spmd;

namespace {
/// `{a: 1, b: 2}`, of entries that are added one by one.
class Entries {
public:
  void add(StringRef key, const Twine &value) { entries.push_back((key + ": " + value).str()); }
  std::string format() const { return "{" + join(entries, ", ") + "}"; }

private:
  std::vector<std::string> entries;
};
} // namespace

/// The shortest text that is read as this number.
static std::string formatExact(double number) {
  char text[32];
  auto [end, error] = std::to_chars(std::begin(text), std::end(text), number);
  return {text, end};
}

static std::string formatPatterns(ArrayRef<PlanPattern> patterns) {
  return formatList(patterns, [](const PlanPattern &pattern) { return quoteText(pattern.text); });
}

/// One, or a list of several, as the reader takes both.
template <typename List, typename FormatFn> static std::string formatSome(const List &list, FormatFn format) {
  return list.size() == 1 ? format(list.front()) : formatList(list, format);
}

static std::string formatLoss(const PlanLoss &loss) {
  Entries text;
  if (loss.kind == PlanLoss::Kind::Output) {
    text.add("output", quoteText(loss.of.text));
  } else {
    text.add("kind", kLossWords[static_cast<int>(loss.kind)]);
    text.add("of", quoteText(loss.of.text));
    if (loss.next)
      text.add("labels", "{next: " + quoteText(loss.next->text) + "}");
    else if (loss.labels.text != PlanLoss().labels.text)
      text.add("labels", quoteText(loss.labels.text));
  }
  if (loss.classes)
    text.add("classes", Twine(*loss.classes));
  if (loss.ignored)
    text.add("ignore", Twine(*loss.ignored));
  if (loss.smoothing != 0)
    text.add("smoothing", formatExact(loss.smoothing));
  if (loss.weight != 1)
    text.add("weight", formatExact(loss.weight));
  return text.format();
}

/// Numbers that an optimizer does not have are errors when they are read.
static std::string formatOptimizer(const PlanOptimizer &optimizer) {
  using Kind = PlanOptimizer::Kind;
  const PlanOptimizer usual;
  Entries text;
  text.add("kind", kOptimizerWords[static_cast<int>(optimizer.kind)]);
  bool hasOne = optimizer.kind == Kind::Momentum || optimizer.kind == Kind::Nesterov;
  bool hasTwo = optimizer.hasTwoMoments();
  if (hasOne && optimizer.beta != usual.beta)
    text.add("beta", formatExact(optimizer.beta));
  if (hasTwo && !ArrayRef(optimizer.betas).equals(usual.betas))
    text.add("betas", formatList(optimizer.betas, formatExact));
  if ((hasTwo || optimizer.kind == Kind::Adagrad) && optimizer.epsilon != usual.epsilon)
    text.add("epsilon", formatExact(optimizer.epsilon));
  text.add("decay", formatExact(optimizer.decay));
  if (hasTwo && !optimizer.correctsBias)
    text.add("correct_bias", "false");
  return text.format();
}

static std::string formatRate(const PlanRate &rate) {
  if (rate.kind == PlanRate::Kind::Input)
    return kRateWords[static_cast<int>(rate.kind)];
  if (rate.kind == PlanRate::Kind::Constant && rate.warmup == 0)
    return formatExact(rate.peak);
  Entries text;
  text.add("kind", kRateWords[static_cast<int>(rate.kind)]);
  text.add("peak", formatExact(rate.peak));
  if (rate.floor != 0)
    text.add("floor", formatExact(rate.floor));
  if (rate.warmup != 0)
    text.add("warmup", Twine(rate.warmup));
  if (rate.steps != 0)
    text.add("steps", Twine(rate.steps));
  return text.format();
}

static std::string formatGroup(const PlanGroup &group) {
  Entries text;
  text.add("tensors", formatPatterns(group.tensors));
  if (group.decay)
    text.add("decay", formatExact(*group.decay));
  if (group.rate != 1)
    text.add("rate", formatExact(group.rate));
  return text.format();
}

static std::string formatPrecision(const PlanPrecision &precision) {
  Entries text;
  if (precision.parameters != PlanPrecision::Parameters::Own)
    text.add("parameters", kParameterWords[static_cast<int>(precision.parameters)]);
  if (precision.wire != PlanPrecision::Wire::Same)
    text.add("wire", kWireWords[static_cast<int>(precision.wire)]);
  if (precision.scale == PlanPrecision::Scale::Number)
    text.add("scale", formatExact(precision.fixedScale));
  else if (precision.scale != PlanPrecision::Scale::Auto)
    text.add("scale", kScaleWords[static_cast<int>(precision.scale)]);
  return text.format();
}

static std::string formatZero(const PlanZero &zero, std::optional<PlanMemory::Gather> gather) {
  Entries text;
  text.add("axis", zero.axis);
  text.add("stage", Twine(zero.stage));
  if (zero.minBytes != PlanZero().minBytes)
    text.add("min_bytes", Twine(zero.minBytes));
  if (gather)
    text.add("gather", kGatherWords[static_cast<int>(*gather)]);
  return text.format();
}

static void addMemory(const PlanMemory &memory, std::vector<std::pair<StringRef, std::string>> &entries) {
  if (memory.policy != PlanMemory::Policy::None)
    entries.emplace_back("recompute", kRecomputeWords[static_cast<int>(memory.policy)]);
  if (memory.limit != 0)
    entries.emplace_back("memory_limit", std::to_string(memory.limit) + "B");
  if (!memory.keep.empty())
    entries.emplace_back("keep", formatPatterns(memory.keep));
  if (!memory.again.empty())
    entries.emplace_back("again", formatPatterns(memory.again));
  if (!memory.offload.empty())
    entries.emplace_back("offload", formatPatterns(memory.offload));
}

/// What is trained, and what it computes otherwise than the model.
static void addKinds(const PlanTrain &train, std::vector<std::pair<StringRef, std::string>> &entries) {
  if (!train.freeze.empty())
    entries.emplace_back("freeze", formatPatterns(train.freeze));
  if (!train.only.empty())
    entries.emplace_back("only", formatPatterns(train.only));
  if (!train.groups.empty())
    entries.emplace_back("groups", formatList(train.groups, formatGroup));
  if (train.clip)
    entries.emplace_back("clip", formatExact(*train.clip));
  if (std::string precision = formatPrecision(train.precision); precision != "{}")
    entries.emplace_back("precision", precision);
  if (train.dropout.kind == PlanDropout::Kind::Number)
    entries.emplace_back("dropout", formatExact(train.dropout.ratio));
  else if (train.dropout.kind != PlanDropout::Kind::Off)
    entries.emplace_back("dropout", kDropoutWords[static_cast<int>(train.dropout.kind)]);
  if (train.batchNorm.kind != PlanBatchNorm::Kind::Frozen)
    entries.emplace_back("batch_norm", kBatchNormWords[static_cast<int>(train.batchNorm.kind)]);
  if (train.seed != 0)
    entries.emplace_back("seed", std::to_string(train.seed));
}

std::vector<std::pair<StringRef, std::string>> cleave::spmd::formatTrain(const PlanTrain &train) {
  std::vector<std::pair<StringRef, std::string>> entries;
  if (!train.losses.empty())
    entries.emplace_back("loss", formatSome(train.losses, formatLoss));
  if (train.optimizer.place.line)
    entries.emplace_back("optimizer", formatOptimizer(train.optimizer));
  entries.emplace_back("rate", formatRate(train.rate));
  addKinds(train, entries);
  // How parameters are gathered is said of the whole step, behind which no entry may have another stage.
  if (!train.zero.empty())
    entries.emplace_back("zero", formatSome(train.zero, [&](const PlanZero &zero) {
                           bool isLast = &zero == &train.zero.back();
                           return formatZero(zero, isLast ? train.memory.gather : std::nullopt);
                         }));
  if (train.microbatches != 1)
    entries.emplace_back("microbatches", std::to_string(train.microbatches));
  if (train.accumulate != PlanAccumulate::Auto)
    entries.emplace_back("accumulate", kAccumulateWords[static_cast<int>(train.accumulate)]);
  addMemory(train.memory, entries);
  if (train.lora)
    entries.emplace_back("lora", "{tensors: " + formatPatterns(train.lora->tensors) +
                                     ", rank: " + std::to_string(train.lora->rank) +
                                     ", alpha: " + formatExact(train.lora->alpha) + "}");
  return entries;
}
