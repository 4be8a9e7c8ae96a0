//===- PlanTrain.cpp - the section `train` of a plan ----------------------===//
//
// Keys of a kind that does not have them are errors: what has no effect would mislead. What needs the mesh is checked once all of the plan
// is read (`checkTrain`), and what needs the model where the model is.
//
//   loss, optimizer, rate                     what is minimized, and how
//   freeze, only, groups, lora                what is trained
//   precision, dropout, batch_norm, seed      what a training computes otherwise than the model
//   zero, microbatches, accumulate            where states and sums are
//   recompute, memory_limit, keep, again      what is kept until the backward
//   offload                                   what of that waits in the host's memory
//
//===----------------------------------------------------------------------===//
#include "PlanTrain.h"

#include "cleave/Plan/PlanKeys.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

namespace {
class TrainReader {
public:
  TrainReader(YamlReader &reader, PlanTrain &train) : reader(reader), train(train) {}

  LogicalResult readEntry(StringRef key, yaml::KeyValueNode &entry);

private:
  LogicalResult readLoss(yaml::Node *node);
  LogicalResult readLabels(yaml::Node *node, PlanLoss &loss);
  LogicalResult readOptimizer(yaml::Node *node);
  LogicalResult readRate(yaml::Node *node);
  LogicalResult readGroup(yaml::Node *node);
  LogicalResult readZero(yaml::Node *node);
  LogicalResult readRecompute(StringRef key, yaml::Node *node);
  LogicalResult readLora(yaml::Node *node);
  LogicalResult readPrecision(yaml::Node *node);
  LogicalResult readDropout(yaml::Node *node);
  LogicalResult readPatterns(yaml::Node *node, std::vector<PlanPattern> &patterns);
  /// A finite number in [least, most].
  LogicalResult readNumber(yaml::Node *node, double &number, double least, double most = HUGE_VAL);
  template <typename Kind> LogicalResult readKind(yaml::Node *node, ArrayRef<const char *> words, Kind &kind);
  /// One entry, or a list of them.
  LogicalResult readSome(yaml::Node *node, StringRef what, function_ref<LogicalResult(yaml::Node *)> read);

  YamlReader &reader;
  PlanTrain &train;
};
} // namespace

LogicalResult TrainReader::readNumber(yaml::Node *node, double &number, double least, double most) {
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  if (StringRef(text).getAsDouble(number) || !std::isfinite(number) || number < least || number > most) {
    std::string range = std::isinf(most) ? formatv("of at least {0:f0}", least).str()
                                         : formatv("from {0:f0} to {1:f0}", least, most).str();
    return reader.fail(node, "expected a number " + range + ", got '" + text + "'");
  }
  return success();
}

template <typename Kind>
LogicalResult TrainReader::readKind(yaml::Node *node, ArrayRef<const char *> words, Kind &kind) {
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  SmallVector<StringRef> known(words.begin(), words.end());
  const auto *found = find(known, text);
  if (found == known.end())
    return reader.fail(node, "expected " + join(ArrayRef(known).drop_back(), ", ") + " or " + known.back() + ", got '" +
                                 text + "'" + suggestNames(text, known));
  kind = static_cast<Kind>(found - known.begin());
  return success();
}

LogicalResult TrainReader::readSome(yaml::Node *node, StringRef what, function_ref<LogicalResult(yaml::Node *)> read) {
  return isa_and_present<yaml::SequenceNode>(node) ? reader.readSequence(node, what, read) : read(node);
}

LogicalResult TrainReader::readPatterns(yaml::Node *node, std::vector<PlanPattern> &patterns) {
  return readSome(node, "patterns of parameters, such as [\"*bias\", \"*norm*\"]",
                  [&](yaml::Node *one) { return reader.readPattern(one, patterns.emplace_back()); });
}

//===----------------------------------------------------------------------===//
// The loss
//===----------------------------------------------------------------------===//

/// The name of an input, or `{next: INPUT}`.
LogicalResult TrainReader::readLabels(yaml::Node *node, PlanLoss &loss) {
  if (!isa_and_present<yaml::MappingNode>(node)) {
    loss.labels.place = reader.placeOf(node);
    return reader.readText(node, loss.labels.text);
  }
  return reader.readMapping(node, "an input of tokens, {next: input_ids}", getPlanKeyNames(PlanSection::Labels),
                            [&](StringRef, yaml::KeyValueNode &entry) {
                              loss.next.emplace().place = reader.placeOf(entry.getValue());
                              return reader.readText(entry.getValue(), loss.next->text);
                            });
}

LogicalResult TrainReader::readLoss(yaml::Node *node) {
  PlanLoss loss;
  loss.place = reader.placeOf(node);
  bool hasKind = false, isOutput = false;
  StringRef ofClasses;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "kind")
      return hasKind = true, readKind(value, kLossWords, loss.kind);
    if (key == "of" || key == "output") {
      isOutput |= key == "output";
      loss.of.place = reader.placeOf(value);
      return reader.readText(value, loss.of.text);
    }
    if (key == "labels")
      return readLabels(value, loss);
    if (key == "weight")
      return readNumber(value, loss.weight, 0);
    ofClasses = key;
    if (key == "smoothing")
      return readNumber(value, loss.smoothing, 0, 1);
    if (key == "classes")
      return reader.readInteger(value, loss.classes.emplace(), 0, 1000);
    return reader.readInteger(value, loss.ignored.emplace(), INT64_MIN, INT64_MAX);
  };
  if (failed(reader.readMapping(node, "a loss, such as {kind: cross_entropy, of: logits}",
                                getPlanKeyNames(PlanSection::Loss), readEntry)))
    return failure();
  if (isOutput && (hasKind || !ofClasses.empty()))
    return reader.fail(node, "a loss that the model gives has no kind, and nothing of one: 'output' alone");
  if (isOutput)
    loss.kind = PlanLoss::Kind::Output;
  if (!isOutput && (!hasKind || loss.of.text.empty()))
    return reader.fail(node, "a loss needs 'kind' and 'of', or 'output' where the model gives one");
  bool hasClasses = loss.kind == PlanLoss::Kind::CrossEntropy || loss.kind == PlanLoss::Kind::Nll;
  if (!hasClasses && (!ofClasses.empty() || loss.next))
    return reader.fail(node, "'" + (loss.next ? StringRef("next") : ofClasses) +
                                 "' is about labels of classes: of cross_entropy and nll");
  if (loss.kind == PlanLoss::Kind::Nll && loss.smoothing != 0)
    return reader.fail(node, "'smoothing' is about cross_entropy");
  train.losses.push_back(std::move(loss));
  return success();
}

//===----------------------------------------------------------------------===//
// The optimizer
//===----------------------------------------------------------------------===//

/// As torch and transformers have them.
static double getUsualDecay(PlanOptimizer::Kind kind) { return kind == PlanOptimizer::Kind::AdamW ? 0.01 : 0; }

LogicalResult TrainReader::readOptimizer(yaml::Node *node) {
  using Kind = PlanOptimizer::Kind;
  PlanOptimizer &optimizer = train.optimizer;
  optimizer.place = reader.placeOf(node);
  if (isa_and_present<yaml::ScalarNode>(node)) {
    if (failed(readKind(node, kOptimizerWords, optimizer.kind)))
      return failure();
    optimizer.decay = getUsualDecay(optimizer.kind);
    return success();
  }
  std::optional<double> decay;
  bool hasKind = false;
  std::string other;
  SmallVector<StringRef, 4> said;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "kind")
      return hasKind = true, readKind(value, kOptimizerWords, optimizer.kind);
    said.push_back(key);
    if (key == "beta")
      return readNumber(value, optimizer.beta, 0, 1);
    if (key == "epsilon")
      return readNumber(value, optimizer.epsilon, 0);
    if (key == "decay")
      return readNumber(value, decay.emplace(), 0);
    if (key == "correct_bias")
      return reader.readFlag(value, optimizer.correctsBias);
    size_t count = 0;
    if (failed(reader.readSequence(value, "two numbers, such as [0.9, 0.999]", [&](yaml::Node *one) -> LogicalResult {
          if (count == 2)
            return reader.fail(one, "expected two numbers");
          return readNumber(one, optimizer.betas[count++], 0, 1);
        })))
      return failure();
    return count == 2 ? success() : reader.fail(value, "expected two numbers, such as [0.9, 0.999]");
  };
  if (failed(reader.readMapping(node, "an optimizer, such as {kind: adamw, decay: 0.01}",
                                getPlanKeyNames(PlanSection::Optimizer), readEntry)))
    return failure();
  if (!hasKind)
    return reader.fail(node, "an optimizer needs a 'kind'");
  Kind kind = optimizer.kind;
  bool isOne = kind == Kind::Momentum || kind == Kind::Nesterov;
  bool isTwo = optimizer.hasTwoMoments();
  // A number that has no effect would mislead.
  for (StringRef key : said)
    if ((key == "beta" && !isOne) || ((key == "betas" || key == "correct_bias") && !isTwo) ||
        (key == "epsilon" && !isTwo && kind != Kind::Adagrad))
      return reader.fail(node, "'" + key + "' is not a number of '" + kOptimizerWords[int(kind)] + "'");
  // 1 - beta^n divides.
  if (isTwo && llvm::is_contained(optimizer.betas, 1.0))
    return reader.fail(node, "'betas' are from 0 to less than 1: a moment of beta 1 never learns");
  optimizer.decay = decay.value_or(getUsualDecay(kind));
  return success();
}

LogicalResult TrainReader::readRate(yaml::Node *node) {
  PlanRate &rate = train.rate;
  rate.place = reader.placeOf(node);
  auto *word = dyn_cast_if_present<yaml::ScalarNode>(node);
  if (word && word->getRawValue() == "input")
    return rate.kind = PlanRate::Kind::Input, success();
  if (word)
    return readNumber(node, rate.peak, 0);
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "kind")
      return readKind(value, kRateWords, rate.kind);
    if (key == "peak")
      return readNumber(value, rate.peak, 0);
    if (key == "floor")
      return readNumber(value, rate.floor, 0);
    return reader.readInteger(value, key == "warmup" ? rate.warmup : rate.steps, 0, INT32_MAX);
  };
  if (failed(reader.readMapping(node, "a number, input, or a mapping such as {kind: cosine, peak: 1e-4, steps: 1000}",
                                getPlanKeyNames(PlanSection::Rate), readEntry)))
    return failure();
  bool falls = rate.kind == PlanRate::Kind::Linear || rate.kind == PlanRate::Kind::Cosine;
  if (falls && rate.steps == 0)
    return reader.fail(node, Twine("rate '") + kRateWords[int(rate.kind)] + "' needs 'steps'");
  if (falls && rate.steps <= rate.warmup)
    return reader.fail(node, "'warmup' takes " + Twine(rate.warmup) + " of " + Twine(rate.steps) + " steps");
  if (falls && rate.floor > rate.peak)
    return reader.fail(node, "a rate falls from 'peak' to 'floor', which is above it");
  return success();
}

//===----------------------------------------------------------------------===//
// What is trained, and where states are
//===----------------------------------------------------------------------===//

LogicalResult TrainReader::readGroup(yaml::Node *node) {
  PlanGroup group;
  bool saysMore = false;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    if (key == "tensors")
      return readPatterns(entry.getValue(), group.tensors);
    saysMore = true;
    return key == "decay" ? readNumber(entry.getValue(), group.decay.emplace(), 0)
                          : readNumber(entry.getValue(), group.rate, 0);
  };
  if (failed(reader.readMapping(node, "a group, such as {tensors: [\"*bias\"], decay: 0}",
                                getPlanKeyNames(PlanSection::Group), readEntry)))
    return failure();
  if (group.tensors.empty())
    return reader.fail(node, "a group needs 'tensors'");
  if (!saysMore)
    return reader.fail(node, "a group says 'decay' or 'rate' of its tensors");
  train.groups.push_back(std::move(group));
  return success();
}

LogicalResult TrainReader::readZero(yaml::Node *node) {
  PlanZero zero;
  zero.place = reader.placeOf(node);
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "axis")
      return zero.place = reader.placeOf(value), reader.readText(value, zero.axis);
    if (key == "gather")
      return readKind(value, kGatherWords, train.memory.gather.emplace());
    if (key == "min_bytes")
      return reader.readInteger(value, zero.minBytes, 0, INT64_MAX);
    if (failed(reader.readInteger(value, zero.stage, INT32_MIN, INT32_MAX)))
      return failure();
    return zero.stage >= 1 && zero.stage <= 3
               ? success()
               : reader.fail(value, "'zero' has the stages 1, 2 and 3, got " + Twine(zero.stage));
  };
  if (failed(reader.readMapping(node, "an axis and a stage, such as {axis: data, stage: 1}",
                                getPlanKeyNames(PlanSection::Zero), readEntry)))
    return failure();
  if (train.memory.gather && zero.stage != 3)
    return reader.fail(node, "'gather' is about sharded parameters: stage 3");
  if (zero.axis.empty())
    return reader.fail(node, "'zero' needs an 'axis'");
  train.zero.push_back(std::move(zero));
  return success();
}

LogicalResult TrainReader::readRecompute(StringRef key, yaml::Node *node) {
  PlanMemory &memory = train.memory;
  if (key == "keep")
    return readPatterns(node, memory.keep);
  if (key == "again")
    return readPatterns(node, memory.again);
  if (key == "offload") {
    if (failed(readPatterns(node, memory.offload)))
      return failure();
    return memory.offload.empty() ? reader.fail(node, "'offload' names no tensors, such as [\"*/mlp/*\"]") : success();
  }
  memory.place = reader.placeOf(node);
  return key == "recompute" ? readKind(node, kRecomputeWords, memory.policy) : reader.readBytes(node, memory.limit);
}

LogicalResult TrainReader::readLora(yaml::Node *node) {
  PlanLora &lora = train.lora.emplace();
  lora.place = reader.placeOf(node);
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    if (key == "tensors")
      return readPatterns(entry.getValue(), lora.tensors);
    return key == "rank" ? reader.readInteger(entry.getValue(), lora.rank, 1, INT32_MAX)
                         : readNumber(entry.getValue(), lora.alpha, 0);
  };
  if (failed(reader.readMapping(node,
                                "weights and a rank, such as {tensors: [\"*.q_proj.weight\"], rank: 8, alpha: 16}",
                                getPlanKeyNames(PlanSection::Lora), readEntry)))
    return failure();
  return lora.tensors.empty() ? reader.fail(node, "'lora' needs 'tensors'") : success();
}

//===----------------------------------------------------------------------===//
// How a step computes
//===----------------------------------------------------------------------===//

LogicalResult TrainReader::readPrecision(yaml::Node *node) {
  PlanPrecision &precision = train.precision;
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "parameters")
      return readKind(value, kParameterWords, precision.parameters);
    if (key == "wire")
      return readKind(value, kWireWords, precision.wire);
    precision.scalePlace = reader.placeOf(value);
    std::string text;
    if (failed(reader.readText(value, text)))
      return failure();
    if (StringRef(text).getAsDouble(precision.fixedScale))
      return readKind(value, kScaleWords, precision.scale);
    precision.scale = PlanPrecision::Scale::Number;
    return std::isfinite(precision.fixedScale) && precision.fixedScale > 0
               ? success()
               : reader.fail(value, "a scale is none, dynamic or a number above 0, got '" + text + "'");
  };
  return reader.readMapping(node, "what is kept and sent in which floats, such as {parameters: bf16}",
                            getPlanKeyNames(PlanSection::Precision), readEntry);
}

LogicalResult TrainReader::readDropout(yaml::Node *node) {
  PlanDropout &dropout = train.dropout;
  dropout.place = reader.placeOf(node);
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  if (StringRef(text).getAsDouble(dropout.ratio))
    return readKind(node, kDropoutWords, dropout.kind);
  dropout.kind = PlanDropout::Kind::Number;
  return dropout.ratio >= 0 && dropout.ratio < 1
             ? success()
             : reader.fail(node, "dropout is off, model or a number from 0 to less than 1, got '" + text + "'");
}

LogicalResult TrainReader::readEntry(StringRef key, yaml::KeyValueNode &entry) {
  yaml::Node *value = entry.getValue();
  if (key == "loss")
    return readSome(value, "losses", [&](yaml::Node *one) { return readLoss(one); });
  if (key == "optimizer")
    return readOptimizer(value);
  if (key == "rate")
    return readRate(value);
  if (key == "recompute" || key == "memory_limit" || key == "keep" || key == "again" || key == "offload")
    return readRecompute(key, value);
  if (key == "freeze")
    return readPatterns(value, train.freeze);
  if (key == "only") {
    // Without it all are trained, which an empty list does not mean.
    if (failed(readPatterns(value, train.only)))
      return failure();
    return train.only.empty() ? reader.fail(value, "'only' leaves nothing to train: it has no patterns") : success();
  }
  if (key == "groups")
    return reader.readSequence(value, "groups of parameters", [&](yaml::Node *one) { return readGroup(one); });
  if (key == "lora")
    return readLora(value);
  if (key == "microbatches")
    return train.microbatchesPlace = reader.placeOf(value), reader.readInteger(value, train.microbatches, 1, INT32_MAX);
  if (key == "accumulate")
    return readKind(value, kAccumulateWords, train.accumulate);
  if (key == "precision")
    return readPrecision(value);
  if (key == "dropout")
    return readDropout(value);
  if (key == "batch_norm") {
    train.batchNorm.place = reader.placeOf(value);
    return readKind(value, kBatchNormWords, train.batchNorm.kind);
  }
  if (key == "seed")
    return reader.readInteger(value, train.seed, INT64_MIN, INT64_MAX);
  if (key == "clip") {
    if (failed(readNumber(value, train.clip.emplace(), 0)))
      return failure();
    return *train.clip > 0 ? success() : reader.fail(value, "clipped to a length of 0 no gradient is left");
  }
  return readSome(value, "axes and stages", [&](yaml::Node *one) { return readZero(one); });
}

/// Of what makes microbatches, which follows.
static std::string getBatchNormError() {
  return "'batch_norm: batch' takes statistics of the whole batch, which no microbatch has: 'frozen' keeps the file's, "
         "or no ";
}

LogicalResult cleave::spmd::readTrain(YamlReader &reader, yaml::Node *node, PlanTrain &train) {
  train.place = reader.placeOf(node);
  TrainReader section(reader, train);
  if (failed(
          reader.readMapping(node, "a loss and an optimizer", getPlanKeyNames(PlanSection::Train),
                             [&](StringRef key, yaml::KeyValueNode &entry) { return section.readEntry(key, entry); })))
    return failure();
  if (train.memory.limit && train.memory.policy != PlanMemory::Policy::Auto)
    return reader.fail(node, "'memory_limit' is what 'recompute: auto' decides by");
  if (!train.freeze.empty() && !train.only.empty())
    return reader.fail(node, "'freeze' and 'only' say both what is trained");
  if (train.batchNorm.kind == PlanBatchNorm::Kind::Batch && train.microbatches > 1)
    return reader.fail(node, getBatchNormError() + "'microbatches'");
  if (train.accumulate == PlanAccumulate::Split && train.zero.empty())
    return reader.fail(node, "'accumulate: split' needs 'zero', which says along which axis");
  if (train.lora && !(train.freeze.empty() && train.only.empty()))
    return reader.fail(node, "'lora' trains adapters alone: 'freeze' and 'only' say nothing more");
  return success();
}

LogicalResult cleave::spmd::parseTrain(StringRef text, StringRef file, PlanTrain &train, PlanError &error) {
  YamlReader reader(text, file, error);
  yaml::Node *root = reader.open();
  return root && succeeded(readTrain(reader, root, train)) ? reader.close() : failure();
}

/// Once all is read, and not as it is: who reads the plan may have the rest.
LogicalResult cleave::spmd::checkTrainWhole(const Plan &plan, PlanError &error) {
  if (!plan.train || plan.train->isPartial)
    return success();
  error.place = plan.train->place;
  if (plan.train->losses.empty())
    return error.message = "'train' needs a loss: 'loss: {kind: cross_entropy, of: OUTPUT}', or 'loss: {output: NAME}' "
                           "where the model has one",
           failure();
  auto counts = [](const PlanLoss &loss) { return loss.weight > 0; };
  if (none_of(plan.train->losses, counts)) {
    error.place = plan.train->losses.front().place;
    error.message = "a 'weight' of 0 leaves nothing to minimize";
    return failure();
  }
  if (plan.train->optimizer.place.line)
    return success();
  error.message = "'train' needs an optimizer: " + join(ArrayRef(kOptimizerWords).drop_back(), ", ") + " or " +
                  std::end(kOptimizerWords)[-1];
  return failure();
}

/// Axes of `zero` are those of the mesh, each once, and not the pipeline's.
LogicalResult cleave::spmd::checkTrain(const Plan &plan, PlanError &error) {
  if (failed(checkTrainWhole(plan, error)))
    return failure();
  if (!plan.train)
    return success();
  SmallVector<StringRef> seen;
  for (const PlanZero &zero : plan.train->zero) {
    SmallVector<StringRef> names;
    for (const MeshAxis &axis : plan.getInnerAxes())
      names.push_back(axis.name);
    if (!is_contained(names, zero.axis)) {
      error = {zero.place,
               "'zero' is over \"" + zero.axis + "\", which is not an axis of the mesh" +
                   suggestNames(zero.axis, names),
               {}};
      return failure();
    }
    if (is_contained(seen, zero.axis)) {
      error = {zero.place, "'zero' is over \"" + zero.axis + "\" twice", {}};
      return failure();
    }
    seen.push_back(zero.axis);
  }
  if (plan.pipeline && plan.train->microbatches > 1) {
    error = {plan.train->microbatchesPlace, "the plan's 'pipeline' says how many microbatches there are", {}};
    return failure();
  }
  if (plan.pipeline && plan.train->batchNorm.kind == PlanBatchNorm::Kind::Batch) {
    error = {plan.train->place, getBatchNormError() + "'pipeline'", {}};
    return failure();
  }
  return success();
}

/// `word(..)`, which no tensor of a model is called.
static bool isRoleName(StringRef pattern) {
  static constexpr StringRef words[] = {"m", "v", "master", "grad", "next"};
  size_t open = pattern.find('(');
  return open != StringRef::npos && pattern.ends_with(")") && is_contained(words, pattern.take_front(open));
}

/// `w[0, 64]`: a weight that is read in parts, which only a step has as parameters.
static bool isPartName(StringRef pattern) {
  auto [name, places] = pattern.rsplit('[');
  return !name.empty() && places.consume_back("]") && !places.empty() &&
         places.find_first_not_of("0123456789, ") == StringRef::npos;
}

std::pair<Plan, Plan> cleave::spmd::splitForTraining(const Plan &plan) {
  auto isOfStep = [&](const PlanRule &rule) {
    return rule.target == PlanRule::Target::Tensor && (isRoleName(rule.pattern) || isPartName(rule.pattern) ||
                                                       any_of(plan.train->losses, [&](const PlanLoss &loss) {
                                                         return loss.kind != PlanLoss::Kind::Output && !loss.next &&
                                                                loss.labels.text == rule.pattern;
                                                       }));
  };
  std::pair<Plan, Plan> parts(plan, plan);
  erase_if(parts.first.rules, isOfStep);
  erase_if(parts.second.rules, [&](const PlanRule &rule) { return !isOfStep(rule); });
  parts.first.states.clear();
  parts.second.states.clear();
  return parts;
}
