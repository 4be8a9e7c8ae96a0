//===- Train.cpp - steps again and again ----------------------------------===//
//
//   begin: weights of the model, or of a file; where a training goes on, its states, its step, its order
//   step n: samples n * batch .. of the epoch's order ─▶ run ─▶ loss, log, now and then a checkpoint
//
// Which samples a step sees follows from its number alone, so that who goes on sees those that would have come. Samples that are left
// at the end of an epoch and are fewer than a batch are passed over.
//
// Where a call makes several steps, it takes as many batches and gives as many losses: between two calls are checkpoints and evaluations.
//
// Where ranks are processes all of them run this loop over the same data. Rank 0 alone has outputs: what it finds in them, or cannot
// write, it tells the others as a failure of a rank, which their next call returns. What is wrong with data all find by themselves, and
// leave; who finds nothing hears why the others have left. Saving and loading are done by all at one step.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runner/Train.h"
#include "Checkpoints.h"
#include "DataSet.h"
#include "SampleOrder.h"
#include "TrainLog.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runner/Progress.h"
#include "cleave/Runner/Runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

using namespace cleave::runner;
using namespace cleave::runtime;
namespace program = cleave::program;
using program::concat;
using program::Element;
using program::printable;
using program::StepRole;

using Failed = std::optional<TrainError>;
/// The entry that gives the loss and changes nothing.
static constexpr const char *kEval = "eval";

static Failed fail(std::string message) { return TrainError{kBadInput, std::move(message)}; }
static Failed fail(const ExecutorStatus &error) {
  return TrainError{error->kind == ErrorKind::Ranks ? kRunFault : kBadInput, error->message};
}

//===----------------------------------------------------------------------===//
// What a step gives
//===----------------------------------------------------------------------===//

/// A float for each step of a call, that stays with nobody.
static bool isNumber(const program::Program &program, const program::Variant &variant, uint32_t output) {
  const program::Type &type = program.types[variant.outputs[output].type];
  bool isState = std::any_of(variant.states.begin(), variant.states.end(),
                             [&](const program::State &state) { return state.output == int32_t(output); });
  return !isState && program::getBytes(type) == countStepsPerCall(program) * program::getElementBytes(type.element) &&
         (type.element == Element::F32 || type.element == Element::F64);
}

/// The numbers that are told of each step, so far as the program gives them.
static std::vector<std::string> listNumbers(const program::Program &program) {
  std::vector<std::string> names;
  const program::Variant &variant = program.variants.front();
  for (uint32_t i = 0; i < variant.outputs.size(); ++i)
    for (const char *name : {"loss", "norm", "rate", "scale"})
      if (variant.outputs[i].name == name && isNumber(program, variant, i))
        names.emplace_back(name);
  return names;
}

program::Status cleave::runner::checkOptions(const TrainOptions &train) {
  bool isAsked = train.steps || train.epochs || !train.save.empty() || !train.resume.empty() ||
                 !train.weightsFrom.empty() || !train.log.empty() || !train.evalData.empty();
  if (train.data.empty())
    return isAsked ? program::Status(program::makeError("there is nothing to train on: '--data' names it"))
                   : program::kGood;
  if (train.evalData.empty() && train.evalEvery)
    return program::makeError("'--eval-every' needs '--eval-data'");
  if (train.steps && train.epochs)
    return program::makeError("'--steps' and '--epochs' both say when to end");
  if (!train.steps && !train.epochs)
    return program::makeError("'--data' needs one of '--steps' and '--epochs'");
  if (!train.resume.empty() && !train.weightsFrom.empty())
    return program::makeError("'--resume' and '--weights-from' both say how to begin");
  if (train.save.empty() && (train.saveEvery || train.keep > 1))
    return program::makeError("'--save-every' and '--keep' need '--save'");
  return program::kGood;
}

bool cleave::runner::isStep(const program::Program &program) {
  const program::Variant &variant = program.variants.front();
  std::vector<std::string> numbers = listNumbers(program);
  return std::find(numbers.begin(), numbers.end(), "loss") != numbers.end() &&
         std::any_of(variant.states.begin(), variant.states.end(), [&](const program::State &state) {
           return variant.inputs[state.input].role == StepRole::Parameter;
         });
}

/// Of rank 0, which alone has outputs, and of a step of the call; nothing of what the program does not give.
static std::optional<double> getNumber(const std::vector<Value> &outputs, const char *name, uint64_t step = 0) {
  for (const Value &value : outputs)
    if (value.name == name) {
      double number = 0;
      float narrow = 0;
      size_t bytes = value.type == Element::F64 ? sizeof(number) : sizeof(narrow);
      std::memcpy(value.type == Element::F64 ? static_cast<void *>(&number) : &narrow, value.data.data() + step * bytes,
                  bytes);
      return value.type == Element::F64 ? number : double(narrow);
    }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

namespace {
class Training {
public:
  Training(Executor &executor, const TrainOptions &options, DataSet data, TrainSummary &summary)
      : executor(executor), options(options), data(std::move(data)), summary(summary),
        checkpoints(executor, options.save, options.keep, {options.resume, options.weightsFrom}),
        numbers(listNumbers(executor.getProgram())), perCall(countStepsPerCall(executor.getProgram())) {}

  Failed run();

private:
  Failed begin();
  Failed checkCalls() const;
  Failed call();
  Failed look(uint64_t step, double seconds);
  Failed save();
  Failed evaluate();
  uint64_t countBatches() const { return data.countSamples() / data.getBatch(); }
  std::string describe() const;

  Executor &executor;
  const TrainOptions &options;
  DataSet data;
  TrainSummary &summary;
  Checkpoints checkpoints;
  const std::vector<std::string> numbers;
  const uint64_t perCall; ///< steps
  Progression progression;
  uint64_t last = 0, savedStep = 0, badSteps = 0;
  TrainLog log;
  Progress progress;
  std::vector<Value> outputs;
};
} // namespace

/// What states are at the beginning, and how far that is.
Failed Training::begin() {
  progression.isShuffled = options.isShuffled;
  progression.seed = options.seed.value_or(0);
  const std::string &from = options.resume.empty() ? options.weightsFrom : options.resume;
  std::map<std::string, std::string> metadata;
  if (!from.empty())
    if (ExecutorStatus error = executor.loadStates(from, options.resume.empty(), &metadata))
      return fail(error);
  if (!options.resume.empty()) {
    std::optional<Progression> before = readProgression(metadata);
    if (!before)
      return fail(concat(printable(from), ": does not say how many steps were made: --weights-from takes its "
                                          "weights"));
    progression.step = savedStep = before->step;
    progression.seed = options.seed.value_or(before->seed);
    progression.isShuffled = before->isShuffled;
  }
  last = options.steps ? options.steps : options.epochs * countBatches();
  if (Failed failed = checkCalls())
    return failed;
  if (executor.getRank() != 0)
    return std::nullopt;
  program::Status error = checkpoints.check();
  if (!error)
    error = log.open(options.log, !options.resume.empty());
  return error ? fail(error->message) : std::nullopt;
}

/// A call is whole: it ends where a training does, where it is saved, and where it is evaluated.
Failed Training::checkCalls() const {
  uint64_t left = last > progression.step ? last - progression.step : 0, over = left % perCall;
  if (over)
    return fail(concat("a call of the program makes ", perCall, " steps, and there are ", left,
                       " to do: ", last - over ? concat(last - over, " or ") : "", last - over + perCall,
                       " in the end would be calls"));
  for (auto [every, name] :
       {std::pair(options.saveEvery, "--save-every"), std::pair(options.evalEvery, "--eval-every")})
    if (every % perCall)
      return fail(concat("'", name, " ", every, "': a call of the program makes ", perCall,
                         " steps, and nothing comes between them"));
  return std::nullopt;
}

/// `step 7 of 100, loss 0.693, 3.2 ms a step, 2500 samples/s, 1 s left`
std::string Training::describe() const {
  char text[160];
  double each = summary.seconds / double(std::max<uint64_t>(summary.steps, 1));
  std::snprintf(text, sizeof(text), "step %llu of %llu, loss %.4g, %.3g ms a step, %.4g samples/s, %.0f s left",
                static_cast<unsigned long long>(progression.step), static_cast<unsigned long long>(last),
                summary.lastLoss, each * 1e3, double(data.getBatch()) / each, each * double(last - progression.step));
  return text;
}

/// A loss that is no number ends a training at once: whatever is made of it is none either. Where gradients are scaled a step may fail,
/// and changes nothing; many in a row do not.
Failed Training::look(uint64_t step, double seconds) {
  constexpr uint64_t mostBadSteps = 100;
  StepLine line;
  line.step = progression.step - perCall + step + 1;
  line.epoch = (line.step - 1) / countBatches();
  line.loss = getNumber(outputs, "loss", step);
  line.norm = getNumber(outputs, "norm", step);
  line.rate = getNumber(outputs, "rate", step);
  line.scale = getNumber(outputs, "scale", step);
  line.seconds = seconds;
  line.samples = line.step * data.getBatch();
  summary.firstLoss = summary.steps == perCall && step == 0 ? *line.loss : summary.firstLoss;
  summary.lastLoss = *line.loss;
  badSteps = std::isfinite(*line.loss) ? 0 : badSteps + 1;
  if (badSteps > (line.scale ? mostBadSteps : 0)) {
    std::string message = concat("loss is ", std::isnan(*line.loss) ? "NaN" : "infinite", " at step ", line.step,
                                 "; no state is saved; --find-nan names the command");
    executor.fail(Cause::Aborted, message);
    return TrainError{kRunFault, "rank 0: " + message};
  }
  if (step + 1 == perCall)
    progress.say(describe());
  program::Status error = log.write(line);
  if (!error)
    return std::nullopt;
  executor.fail(Cause::Aborted, error->message);
  return fail(error->message);
}

/// The order of an epoch is made anew at each step: it is a few numbers, and so a step needs to know nothing of those before it.
Failed Training::call() {
  uint64_t batches = countBatches(), size = data.getBatch();
  std::vector<uint64_t> which;
  for (uint64_t step = progression.step; step < progression.step + perCall; ++step) {
    SampleOrder order(data.countSamples(), progression.isShuffled, progression.seed, step / batches);
    for (uint64_t i = 0; i < size; ++i)
      which.push_back(order.at(step % batches * size + i));
  }
  auto began = std::chrono::steady_clock::now();
  program::Result<std::vector<Argument>> batch = data.read(which);
  if (!batch)
    return fail(batch.getError().message);
  if (ExecutorStatus error = executor.run(*batch, outputs, numbers))
    return fail(error);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  progression.step += perCall;
  summary.steps += perCall;
  summary.lastStep = progression.step;
  summary.samples += perCall * size;
  summary.seconds += took.count();
  Failed failed;
  for (uint64_t step = 0; step < perCall && executor.getRank() == 0 && !failed; ++step)
    failed = look(step, took.count() / double(perCall));
  return failed;
}

/// All ranks, at the same step.
Failed Training::save() {
  savedStep = progression.step;
  ExecutorStatus error = checkpoints.save(progression);
  return error ? fail(error) : std::nullopt;
}

/// Rank 0 notes it.
Failed Training::evaluate() {
  double loss = 0;
  if (Failed failed = cleave::runner::evaluate(executor, options.evalData, loss))
    return failed;
  if (executor.getRank() != 0)
    return std::nullopt;
  summary.eval = loss;
  program::Status error =
      log.writeEval(progression.step, (std::max<uint64_t>(progression.step, 1) - 1) / countBatches(), loss);
  if (!error)
    return std::nullopt;
  executor.fail(Cause::Aborted, error->message);
  return fail(error->message);
}

/// A checkpoint at the end, too, unless the last step has just been saved; without any step what it began with is saved.
Failed Training::run() {
  Failed failed = begin();
  summary.lastStep = progression.step;
  while (!failed && progression.step < last) {
    failed = call();
    bool isTime = options.saveEvery && progression.step % options.saveEvery == 0;
    if (!failed && !options.save.empty() && isTime)
      failed = save();
    bool isLast = progression.step == last, isEval = options.evalEvery && progression.step % options.evalEvery == 0;
    if (!failed && !options.evalData.empty() && (isEval || isLast))
      failed = evaluate();
  }
  if (!failed && !options.save.empty() && (savedStep != progression.step || summary.steps == 0))
    failed = save();
  return failed;
}

static bool hasEvaluation(const program::Program &program) {
  return std::any_of(program.variants.begin(), program.variants.end(),
                     [](const auto &variant) { return variant.entry == kEval; });
}

/// Before anything is trained; it is opened again where it is needed.
static program::Status checkEvaluation(const program::Program &program, const std::string &path) {
  if (path.empty())
    return program::kGood;
  if (!hasEvaluation(program))
    return program::makeError("the program has no entry 'eval'");
  program::Result<DataSet> data = DataSet::open(path, program);
  return data ? program::kGood : program::Status(data.getError());
}

Failed cleave::runner::train(Executor &executor, const TrainOptions &options, TrainSummary &summary) {
  if (!isStep(executor.getProgram()))
    return fail("the program is not a step of training: it has no output 'loss', or no parameters that change");
  program::Result<DataSet> data = DataSet::open(options.data, executor.getProgram());
  program::Status wrong = data ? checkEvaluation(executor.getProgram(), options.evalData) : data.getError();
  if (!wrong)
    return Training(executor, options, std::move(*data), summary).run();
  return fail(wrong->message);
}

/// As step 0 of a training that begins: a batch that is looked at is the one that is then trained on.
program::Status cleave::runner::withFirstBatch(const program::Program &program, const TrainOptions &options,
                                               const std::function<void(const std::vector<Argument> &)> &use) {
  program::Result<DataSet> data = DataSet::open(options.data, program);
  if (!data)
    return data.getError();
  SampleOrder order(data->countSamples(), options.isShuffled, options.seed.value_or(0), 0);
  std::vector<uint64_t> which;
  for (uint64_t i = 0; i < data->getBatch(); ++i)
    which.push_back(order.at(i));
  program::Result<std::vector<Argument>> batch = data->read(which);
  if (!batch)
    return batch.getError();
  use(*batch);
  return program::kGood;
}

/// Batches weigh alike: all have as many samples. Data are opened anew each time, which costs little beside running over them, and lets
/// no training hold two sets in memory for all its life.
Failed cleave::runner::evaluate(Executor &executor, const std::string &path, double &loss) {
  if (!hasEvaluation(executor.getProgram()))
    return fail("the program has no entry 'eval'");
  program::Result<DataSet> data = DataSet::open(path, executor.getProgram());
  double sum = 0;
  uint64_t batches = data ? data->countSamples() / data->getBatch() : 0;
  std::optional<program::Error> wrong = data ? std::nullopt : std::optional(data.getError());
  std::vector<Value> outputs;
  for (uint64_t batch = 0; batch < batches && !wrong; ++batch) {
    std::vector<uint64_t> which;
    for (uint64_t i = 0; i < data->getBatch(); ++i)
      which.push_back(batch * data->getBatch() + i);
    program::Result<std::vector<Argument>> arguments = data->read(which);
    if (!arguments)
      wrong = arguments.getError();
    else if (ExecutorStatus error = executor.run(*arguments, outputs, {"loss"}, kEval))
      return fail(error);
    else if (executor.getRank() == 0)
      sum += *getNumber(outputs, "loss");
  }
  loss = sum / double(std::max<uint64_t>(batches, 1));
  return wrong ? fail(wrong->message) : std::nullopt;
}

std::string cleave::runner::formatSummary(const TrainSummary &summary) {
  char text[160];
  if (summary.steps == 0)
    return "nothing to do: " + std::to_string(summary.lastStep) + " steps are done already";
  double each = summary.seconds / double(summary.steps);
  std::snprintf(text, sizeof(text), "%llu steps, loss %.6g to %.6g, %.3g ms a step, %.4g samples/s",
                static_cast<unsigned long long>(summary.steps), summary.firstLoss, summary.lastLoss, each * 1e3,
                summary.seconds > 0 ? double(summary.samples) / summary.seconds : 0.0);
  if (!summary.eval)
    return text;
  char eval[40];
  std::snprintf(eval, sizeof(eval), ", eval %.6g", *summary.eval);
  return std::string(text) + eval;
}
