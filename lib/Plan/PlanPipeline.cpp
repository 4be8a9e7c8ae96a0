//===- PlanPipeline.cpp - the section `pipeline` of a plan ----------------===//
//
// A row of the table below per key. What needs the mesh is checked once all of the plan is read, and what needs the
// model (patterns, batch dims) where the model is.
//
//===----------------------------------------------------------------------===//
#include "PlanPipeline.h"

#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/PlanKeys.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

static constexpr int64_t kMost = int64_t(1) << 30;

/// Decimals as reports print them, `8.35kB`, as long as whole bytes come of them, but for what a double loses.
std::optional<int64_t> cleave::spmd::parseBytes(const std::string &text) {
  StringRef number = StringRef(text).take_while([](char c) { return isDigit(c) || c == '.'; });
  auto [whole, decimals] = number.split('.');
  int64_t count = 0, part = 0,
          factor = StringSwitch<int64_t>(StringRef(text).drop_front(number.size()).trim())
                       .Cases({"", "B"}, 1)
                       .Case("kB", 1000)
                       .Case("MB", 1000'000)
                       .Case("GB", 1000'000'000)
                       .Case("TB", 1000'000'000'000)
                       .Case("KiB", int64_t(1) << 10)
                       .Case("MiB", int64_t(1) << 20)
                       .Case("GiB", int64_t(1) << 30)
                       .Case("TiB", int64_t(1) << 40)
                       .Default(0);
  if (whole.getAsInteger(10, count) || !factor || count >= INT64_MAX / factor)
    return std::nullopt;
  if (!number.contains('.'))
    return count * factor;
  // A byte has no parts, and no size that somebody types has more digits.
  constexpr size_t kMostDecimals = 9;
  if (factor == 1 || decimals.size() > kMostDecimals || decimals.getAsInteger(10, part))
    return std::nullopt;
  double share = static_cast<double>(part) / std::pow(10.0, static_cast<double>(decimals.size()));
  return count * factor + std::llround(share * static_cast<double>(factor));
}

namespace {
/// Reads the keys into `pipeline`.
class SectionReader {
public:
  SectionReader(YamlReader &reader, PlanPipeline &pipeline) : reader(reader), pipeline(pipeline) {}

  LogicalResult readEntry(StringRef key, yaml::KeyValueNode &entry);
  LogicalResult check(yaml::Node *node);

private:
  LogicalResult readBatch(yaml::Node *node);
  LogicalResult readStage(yaml::Node *node);
  LogicalResult readRecompute(yaml::Node *node);
  LogicalResult readCount(yaml::Node *node, std::optional<int64_t> &count);
  /// The position of a word among those that are legal.
  LogicalResult readWord(yaml::Node *node, ArrayRef<StringRef> words, size_t &position);

  YamlReader &reader;
  PlanPipeline &pipeline;
};
} // namespace

LogicalResult SectionReader::readCount(yaml::Node *node, std::optional<int64_t> &count) {
  return reader.readInteger(node, count.emplace(), 1, kMost);
}

/// Says all legal words: there are few of each.
LogicalResult SectionReader::readWord(yaml::Node *node, ArrayRef<StringRef> words, size_t &position) {
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  position = find(words, text) - words.begin();
  return position < words.size() ? success()
                                 : reader.fail(node, "expected " + join(words.drop_back(), ", ") + " or " +
                                                         words.back() + ", got '" + text + "'");
}

/// Names are those of inputs, which are known once there is a model. An input that has no batch says `none`.
LogicalResult SectionReader::readBatch(yaml::Node *node) {
  auto readLine = [&](StringRef, yaml::KeyValueNode &entry) -> LogicalResult {
    auto &[pattern, dim] = pipeline.batch.emplace_back();
    if (failed(reader.readPattern(entry.getKey(), pattern)))
      return failure();
    auto *word = dyn_cast_or_null<yaml::ScalarNode>(entry.getValue());
    if (!word || word->getRawValue() != "none")
      return reader.readInteger(entry.getValue(), dim, 0, 1000);
    dim = PlanPipeline::kNoBatch;
    return success();
  };
  return reader.readMapping(node, "inputs and their batch dims, such as {input_ids: 0}", {}, readLine);
}

/// A line of `stages`: which nodes, or from which on, and where.
LogicalResult SectionReader::readStage(yaml::Node *node) {
  PlanStage stage;
  bool hasPattern = false;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    if (key == "rank")
      return reader.readInteger(entry.getValue(), stage.rank.emplace(), 0, kMost);
    if (hasPattern)
      return reader.fail(entry.getValue(), "a stage has one of nodes, first and module");
    hasPattern = true;
    stage.kind = static_cast<PlanStage::Kind>(llvm::find(kStageWords, key) - std::begin(kStageWords));
    return reader.readPattern(entry.getValue(), stage.pattern);
  };
  if (failed(reader.readMapping(node, "a stage, such as {first: \"*/layer.3/*\"}", getPlanKeyNames(PlanSection::Stage),
                                readEntry)))
    return failure();
  if (!hasPattern)
    return reader.fail(node, "a stage needs nodes, a first one or a module");
  pipeline.stages.push_back(std::move(stage));
  return success();
}

/// A word for all stages, or a list of policies, one for each. How many stages there are may be the schedule's to say.
LogicalResult SectionReader::readRecompute(yaml::Node *node) {
  size_t word = 0;
  pipeline.recomputePlace = reader.placeOf(node);
  if (!isa_and_present<yaml::SequenceNode>(node)) {
    LogicalResult isRead = readWord(node, kStageRecomputeWords, word);
    pipeline.recompute = static_cast<PlanRecompute>(word);
    return isRead;
  }
  // What `auto` finds is for all stages at once.
  static constexpr StringRef policies[] = {kRecomputeWords[0], kRecomputeWords[1], kRecomputeWords[2]};
  pipeline.recompute = PlanRecompute::ByStage;
  return reader.readSequence(node, "a list of policies", [&](yaml::Node *policy) {
    LogicalResult isRead = readWord(policy, policies, word);
    pipeline.recomputeOfStages.push_back(static_cast<PlanPolicy>(word));
    return isRead;
  });
}

/// A key and what it fills; those behind the last `if` are known to be `send`.
LogicalResult SectionReader::readEntry(StringRef key, yaml::KeyValueNode &entry) {
  yaml::Node *value = entry.getValue();
  size_t word = 0;
  if (key == "axis") {
    pipeline.axisPlace = reader.placeOf(value);
    return reader.readText(value, pipeline.axis);
  }
  if (key == "microbatches")
    return readCount(value, pipeline.microbatches);
  if (key == "microbatch_size")
    return readCount(value, pipeline.microbatchSize);
  if (key == "chunks")
    return reader.readInteger(value, pipeline.chunks, 1, kMost);
  if (key == "batch")
    return readBatch(value);
  if (key == "stages")
    return reader.readSequence(value, "a list of stages", [&](yaml::Node *stage) { return readStage(stage); });
  if (key == "together")
    return reader.readSequence(value, "a list of patterns", [&](yaml::Node *pattern) {
      return reader.readPattern(pattern, pipeline.together.emplace_back());
    });
  if (key == "schedule")
    return reader.readText(value, pipeline.schedule);
  if (key == "placement") {
    if (failed(readWord(value, kPlacementWords, word)))
      return failure();
    pipeline.placement = kPlacementWords[word].str();
    return success();
  }
  if (key == "memory_limit")
    return reader.readBytes(value, pipeline.memoryLimit);
  if (key == "uneven")
    return reader.readFlag(value, pipeline.uneven);
  if (key == "balance") {
    LogicalResult isRead = readWord(value, kBalanceWords, word);
    pipeline.balance = static_cast<PlanBalance>(word);
    return isRead;
  }
  if (key == "recompute")
    return readRecompute(value);
  if (key == "update") {
    LogicalResult isRead = readWord(value, kUpdateWords, word);
    pipeline.updatesEarly = word == 0;
    return isRead;
  }
  LogicalResult isRead = readWord(value, kSendWords, word);
  pipeline.relays = word == 1;
  return isRead;
}

/// What no single key can tell.
LogicalResult SectionReader::check(yaml::Node *node) {
  if (pipeline.axis.empty())
    return reader.fail(node, "a pipeline needs an axis");
  if (pipeline.microbatches && pipeline.microbatchSize)
    return reader.fail(node, "a pipeline has microbatches or a microbatch_size, not both");
  if (!pipeline.microbatches && !pipeline.microbatchSize)
    return reader.fail(node, "a pipeline needs microbatches, or a microbatch_size");
  return success();
}

LogicalResult cleave::spmd::readPipeline(YamlReader &reader, yaml::Node *node, std::optional<PlanPipeline> &pipeline) {
  pipeline.emplace();
  pipeline->place = reader.placeOf(node);
  SectionReader section(reader, *pipeline);
  if (failed(reader.readMapping(
          node, "a pipeline, such as {axis: stage, microbatches: 8}", getPlanKeyNames(PlanSection::Pipeline),
          [&](StringRef key, yaml::KeyValueNode &entry) { return section.readEntry(key, entry); })))
    return failure();
  return section.check(node);
}

bool PlanPipeline::hasScheduleFile() const {
  return StringRef(schedule).ends_with(".csv") || StringRef(schedule).ends_with(".json");
}

//===----------------------------------------------------------------------===//
// Stages of single ops
//===----------------------------------------------------------------------===//

std::string cleave::spmd::formatStageOps(const std::map<std::string, int64_t> &ops) {
  std::string text;
  for (const auto &[op, stage] : ops)
    text += (text.empty() ? "\"" : ", \"") + yaml::escape(op) + "\": " + std::to_string(stage);
  return "{" + text + "}";
}

// Which ops there are is known once there is a program.
LogicalResult cleave::spmd::parseStageOps(StringRef text, StringRef file, int64_t stages,
                                          std::map<std::string, int64_t> &ops, PlanError &error) {
  YamlReader reader(text, file, error, "list of ops");
  yaml::Node *root = reader.open();
  auto readOp = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    auto [node, op] = key.rsplit(' ');
    if (op.empty() || !op.contains('.'))
      return reader.fail(entry.getKey(),
                         "expected a node and one of its ops, such as \"linear nn.add\", got '" + key + "'");
    return reader.readInteger(entry.getValue(), ops[key.str()], 0, stages - 1);
  };
  return root && succeeded(reader.readMapping(root, "ops and their stages, such as {\"linear nn.add\": 1}", {}, readOp))
             ? reader.close()
             : failure();
}

// The mesh may come from an option, so that nothing of this can be checked while the section is read.
LogicalResult cleave::spmd::checkPipeline(const Plan &plan, PlanError &error) {
  if (!plan.pipeline)
    return success();
  const PlanPipeline &pipeline = *plan.pipeline;
  auto fail = [&](const PlanPlace &place, const Twine &message) {
    error = {place, message.str(), {}};
    return failure();
  };
  const MeshAxis *axis = plan.findAxis(pipeline.axis);
  if (!axis) {
    SmallVector<StringRef> names;
    for (const MeshAxis &known : plan.mesh)
      names.push_back(known.name);
    return fail(pipeline.axisPlace, "unknown axis '" + pipeline.axis + "'" + suggestNames(pipeline.axis, names));
  }
  for (const PlanRule &rule : plan.rules)
    for (const PlanAxis *used : rule.getAxes())
      if (used->name == pipeline.axis) {
        (void)fail(used->place, "axis '" + pipeline.axis + "' is the pipeline, no tensor is split along it (P1)");
        error.notes.push_back({pipeline.axisPlace, "the pipeline is here"});
        return failure();
      }
  int64_t stages = axis->size * pipeline.countChunks();
  int64_t given = static_cast<int64_t>(pipeline.stages.size());
  bool isPlaced = llvm::all_of(pipeline.stages, [](const PlanStage &stage) { return stage.rank.has_value(); });
  if (given > stages && !isPlaced)
    return fail(pipeline.stages.back().pattern.place, Twine(given) + " stages are given, and the pipeline has " +
                                                          Twine(stages) + ": " + Twine(axis->size) + " ranks with " +
                                                          Twine(pipeline.countChunks()) + " each");
  for (const PlanStage &stage : pipeline.stages)
    if (stage.rank && *stage.rank >= axis->size)
      return fail(stage.pattern.place, "rank " + Twine(*stage.rank) + " is none of axis '" + pipeline.axis +
                                           "', which has " + Twine(axis->size));
  return success();
}
