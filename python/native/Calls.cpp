//===- Calls.cpp - the compiler as functions from options to JSON ---------===//
//
// Reports have the keys of docs/report.md, from the functions that the driver writes them with; what the driver has in words alone, as
// explanations and outlines, gets its keys here, by the names of the library's structs.
//
//===----------------------------------------------------------------------===//
#include "Calls.h"

#include "cleave/Compiler/Bench.h"
#include "cleave/Compiler/Compile.h"
#include "cleave/Compiler/ExplainPlan.h"
#include "cleave/Compiler/Explanation.h"
#include "cleave/Compiler/Outline.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Driver/FoundPlanText.h"
#include "cleave/Driver/InspectProgram.h"
#include "cleave/Driver/Page.h"
#include "cleave/Driver/PlanReasons.h"
#include "cleave/Export/Onnx/Trained.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Program/File.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Interruption.h"
#include "cleave/Support/Status.h"

#include <filesystem>

using namespace cleave;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// Names are text of strangers, and JSON wants UTF-8.
static Value text(llvm::StringRef words) { return llvm::json::fixUTF8(words); }

/// An array of what `convert` makes of each.
template <typename Range, typename Convert> static Array list(const Range &range, Convert convert) {
  Array made;
  for (const auto &one : range)
    made.push_back(convert(one));
  return made;
}

static Array list(llvm::ArrayRef<std::string> words) {
  return list(words, [](const std::string &word) { return text(word); });
}

static const char *getWord(Blame blame) {
  switch (blame) {
  case Blame::Input:
    return "input";
  case Blame::Options:
    return "options";
  case Blame::Expectation:
    return "expectation";
  case Blame::Run:
    return "run";
  case Blame::Bug:
    return "bug";
  }
  return "bug";
}

static Object toJson(const Diagnostic &diagnostic) {
  return Object{{"severity", diagnostic.formatSeverity()},
                {"file", text(diagnostic.file)},
                {"line", diagnostic.line},
                {"column", diagnostic.column},
                {"node", text(diagnostic.node)},
                {"message", text(diagnostic.message)},
                {"text", text(diagnostic.format())},
                {"notes", list(diagnostic.notes, [](const Diagnostic &note) { return Value(toJson(note)); })}};
}

static std::string print(Value result, llvm::ArrayRef<Diagnostic> diagnostics, std::optional<Blame> blame) {
  Object answer{{"result", std::move(result)},
                {"diagnostics", list(diagnostics, [](const Diagnostic &one) { return Value(toJson(one)); })}};
  if (blame)
    answer["blame"] = getWord(*blame);
  return llvm::formatv("{0}", Value(std::move(answer))).str();
}

/// What `ask` makes of a compilation; nothing after an error, which the compilation has.
template <typename Ask> static std::string answer(const CompileOptions &options, const python::Stop &stop, Ask ask) {
  Interruption interruption(stop.isAsked());
  Compilation compilation(options);
  std::optional<Object> result = ask(compilation);
  std::optional<Blame> blame = compilation.getBlame();
  bool isDone = result && (!blame || *blame == Blame::Expectation);
  return print(isDone ? Value(std::move(*result)) : Value(nullptr), compilation.getDiagnostics(), blame);
}

/// The same of what needs no compilation.
static std::string answer(llvm::Expected<Object> result) {
  if (result)
    return print(std::move(*result), {}, std::nullopt);
  Diagnostic diagnostic;
  diagnostic.file = "cleave";
  diagnostic.message = llvm::toString(result.takeError());
  return print(nullptr, diagnostic, Blame::Input);
}

/// By the writer of --report, whose text is read back: one home for its keys.
template <typename Write> static Object readBack(Write write) {
  std::string written;
  llvm::raw_string_ostream os(written);
  write(os);
  llvm::Expected<Value> value = llvm::json::parse(written);
  if (!value) {
    llvm::consumeError(value.takeError());
    return {};
  }
  return std::move(*value->getAsObject());
}

static Object toJson(const Report &report) {
  return readBack([&](llvm::raw_ostream &os) { writeJson(os, report); });
}

static std::optional<Object> toJson(const std::optional<Report> &report) {
  return report ? std::optional(toJson(*report)) : std::nullopt;
}

static bool needMesh(Compilation &compilation) {
  return compilation.hasMesh() ||
         compilation.fail(makeError("no mesh is given: mesh=\"data=2,model=4\", or a plan with one"), Blame::Options);
}

//===----------------------------------------------------------------------===//
// Programs, and what ranks would do
//===----------------------------------------------------------------------===//

std::string python::compile(const CompileOptions &options, const std::string &path, const Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) { return toJson(compileModel(compilation, path)); });
}

std::string python::page(const CompileOptions &options, const std::string &compare, const std::string &measured,
                         const Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    std::optional<Object> page;
    if (compilation.load())
      page = driver::makePage(compilation, compare, measured);
    if (!page)
      return std::nullopt;
    std::string html;
    llvm::raw_string_ostream os(html);
    driver::writePage(os, *page);
    return Object{{"html", text(html)}, {"json", std::move(*page)}};
  });
}

std::string python::bench(const CompileOptions &options, uint64_t calls, uint64_t seed, const Stop &stop) {
  const BenchOptions how{seed, calls};
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    std::unique_ptr<Bench> bench;
    llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.model);
    if (file && program::isProgram((*file)->getBytes())) {
      llvm::Expected<std::unique_ptr<Bench>> taken = Bench::create(**file, options, how);
      if (!taken) {
        compilation.fail(taken.takeError());
        return std::nullopt;
      }
      bench = std::move(*taken);
    } else {
      llvm::consumeError(file.takeError()); // whoever reads it as a model says what is wrong
      if (compilation.load())
        bench = Bench::create(compilation, how);
    }
    if (!bench)
      return std::nullopt;
    llvm::Expected<BenchResult> result = bench->run();
    if (!result) {
      compilation.fail(result.takeError(), Blame::Run);
      return std::nullopt;
    }
    Array commands = list(result->commands, [](const CommandTime &one) {
      return Value(Object{{"command", text(one.command)}, {"node", text(one.node)}, {"seconds", one.seconds}});
    });
    return Object{{"ranks", result->ranks},
                  {"load_seconds", result->load},
                  {"runs", Array(result->runs)},
                  {"peak_bytes", result->peakBytes},
                  {"commands", std::move(commands)}};
  });
}

/// The phase of that name; nothing, where none is named, is how far a model goes.
static std::optional<Phase> findPhase(Compilation &compilation, const std::string &name) {
  if (name.empty())
    return compilation.getLastPhase();
  std::optional<Phase> phase = parsePhase(name);
  if (!phase)
    compilation.fail(makeError("there is no phase {0}", quote(name)), Blame::Options);
  return phase;
}

std::string python::shard(const CompileOptions &options, const std::string &phase, const std::string &output,
                          const Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    if (!compilation.load() || !needMesh(compilation))
      return std::nullopt;
    if (phase.empty() && output.empty())
      return toJson(predictModel(compilation));
    std::optional<Phase> last = findPhase(compilation, phase);
    if (!last)
      return std::nullopt;
    // What is not partitioned yet sends nothing that could be counted.
    bool isCounted = *last >= Phase::Partitioned;
    std::optional<Report> report;
    if (!compilation.advanceAndWrite(*last, output, isCounted ? &report : nullptr))
      return std::nullopt;
    return isCounted ? toJson(report) : Object{};
  });
}

static Object toJson(const OutputCheck &found) {
  constexpr const char *words[] = {"ok", "ill-conditioned", "differs"};
  Object object{{"name", text(found.name)},
                {"shape", Array(found.shape)},
                {"verdict", words[int(found.getVerdict())]},
                {"largest", found.difference.largest},
                {"scale", found.scale},
                {"nans", found.difference.nans},
                {"rtol", found.tolerance.rtol},
                {"atol", found.tolerance.atol},
                {"node", text(found.node)}};
  if (!found.isClose() && found.difference.position >= 0)
    object["apart"] =
        Object{{"index", Array(found.index)}, {"on_ranks", found.onRanks}, {"on_one_device", found.onDevice}};
  return object;
}

std::string python::check(const CompileOptions &options, const RunOptions &how, const Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    if (!compilation.load() || !needMesh(compilation))
      return std::nullopt;
    std::optional<CheckResult> checked = checkModel(compilation, how);
    if (!checked)
      return std::nullopt;
    return Object{{"outputs", list(checked->outputs, [](const OutputCheck &one) { return Value(toJson(one)); })},
                  {"report", toJson(checked->report)}};
  });
}

std::string python::moveProgram(const std::string &from, const std::string &to) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(from);
  if (!file)
    return answer(file.takeError());
  program::Result<program::Program> program = program::readProgram((*file)->getBytes());
  if (!program)
    return answer(makeError("{0}: {1}", from, program.getError().message));
  namespace fs = std::filesystem;
  std::error_code error;
  auto folderOf = [&](const std::string &path) {
    return fs::weakly_canonical(fs::absolute(path, error), error).parent_path();
  };
  fs::path before = folderOf(from), after = folderOf(to);
  for (program::File &weights : program->files)
    if (fs::path path = before / weights.path; !fs::path(weights.path).is_absolute())
      weights.path = path.lexically_normal().lexically_relative(after).string();
  if (llvm::Error failure = writeTextAtomically(to, program::writeProgram(*program)))
    return answer(std::move(failure));
  return answer(Object{});
}

//===----------------------------------------------------------------------===//
// Explanations
//===----------------------------------------------------------------------===//

static Object toJson(const Alternative &alternative) {
  return Object{{"more_bytes", alternative.bytes},
                {"more_seconds", alternative.ns * 1e-9},
                {"sharding", text(alternative.sharding)}};
}

static Object toJson(const CauseStep &step) {
  constexpr const char *words[] = {"op", "value", "output", "passed on", "annotation", "free", "chosen"};
  return Object{{"kind", words[int(step.kind)]},
                {"name", text(step.name)},
                {"node", text(step.node)},
                {"dim", step.dim},
                {"avoids_conflict", step.avoidsConflict}};
}

static Object toJson(const AxisExplanation &axis) {
  Object object{{"dim", axis.dim ? Value(*axis.dim) : Value(nullptr)},
                {"axes", text(axis.axes)},
                {"chain", list(axis.chain, [](const CauseStep &step) { return Value(toJson(step)); })}};
  if (axis.nextBest)
    object["next_best"] = toJson(*axis.nextBest);
  return object;
}

static Object toJson(const ShardedValue &value) {
  Object object{{"name", text(value.name)}, {"type", text(value.type)}, {"sharding", text(value.sharding)}};
  if (!value.holds.empty())
    object["holds"] = text(value.holds);
  return object;
}

static Object toJson(const ValueExplanation &value) {
  Object object = toJson(static_cast<const ShardedValue &>(value));
  object["axes"] = list(value.axes, [](const AxisExplanation &axis) { return Value(toJson(axis)); });
  object["replicated"] = value.isReplicated;
  object["reached"] = value.isReached;
  object["alternatives"] = list(value.alternatives, [](const Alternative &one) { return Value(toJson(one)); });
  object["unfollowed"] = list(value.unfollowed);
  return object;
}

std::string python::explain(const CompileOptions &options, const std::string &pattern, const Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    std::unique_ptr<Explainer> explainer;
    if (compilation.load() && needMesh(compilation))
      explainer = Explainer::create(compilation);
    if (!explainer)
      return std::nullopt;
    Object object;
    if (pattern.empty()) {
      object["values"] = list(explainer->getSharded(), [](const ShardedValue &value) { return Value(toJson(value)); });
    } else {
      std::optional<std::vector<ValueExplanation>> values = explainer->explain(pattern);
      if (!values)
        return std::nullopt;
      object["values"] = list(*values, [](const ValueExplanation &value) { return Value(toJson(value)); });
    }
    std::optional<Report> report;
    if (compilation.advance(Phase::Optimized))
      report = compilation.makeReport();
    if (!report)
      return std::nullopt;
    object["report"] = toJson(*report);
    // In the order of the report's collectives.
    object["next_best"] = list(report->collectives, [&](const CollectiveReport &collective) -> Value {
      std::optional<Alternative> least = report->time ? explainer->findNextBest(collective.node) : std::nullopt;
      return least ? Value(toJson(*least)) : Value(nullptr);
    });
    return object;
  });
}

//===----------------------------------------------------------------------===//
// Plans and schedules
//===----------------------------------------------------------------------===//

std::string python::plan(const CompileOptions &options, PlanRequest request, const std::string &memory, bool reasons,
                         const Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    request.takesLeast = memory == "least";
    std::optional<int64_t> bytes = memory.empty() || request.takesLeast ? 0 : spmd::parseBytes(memory);
    if (!bytes || *bytes < 0) {
      compilation.fail(makeError("memory {0}: expected a size, such as 72GB or 72GiB, or least", quote(memory)),
                       Blame::Options);
      return std::nullopt;
    }
    request.memoryBytes = *bytes;
    std::optional<FoundPlan> found = findPlan(compilation, request);
    if (!found)
      return std::nullopt;
    Object object = driver::toJson(*found, options.model, request, /*proof=*/nullptr);
    object["proposed_states"] = list(found->proposedStates);
    if (!reasons)
      return object;
    std::optional<PlanReasons> why = compilation.explainPlan(*found, request);
    if (!why)
      return std::nullopt;
    object["explain"] = driver::toJson(*why);
    return object;
  });
}

static Object toJson(const ScheduleResult &made) {
  schedule::ReportExtras extras;
  extras.checks = made.checked.checks;
  extras.bound = made.bound;
  extras.search = Object(made.search);
  Object object = readBack(
      [&](llvm::raw_ostream &os) { schedule::writeJson(os, made.table, made.costs, made.simulation, extras); });
  std::string table;
  llvm::raw_string_ostream os(table);
  // A table that CSV has no words for is known by its programs alone.
  if (llvm::Error error = schedule::writeCsv(os, made.table))
    llvm::consumeError(std::move(error));
  else
    object["table"] = table;
  object["notes"] = list(made.notes);
  return object;
}

std::string python::schedule(const CompileOptions &options, const ScheduleOptions &wanted, const Stop &stop) {
  if (!options.model.empty())
    return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
      std::optional<ScheduleResult> made = scheduleModel(compilation, wanted);
      return made ? std::optional(toJson(*made)) : std::nullopt;
    });
  OrDiagnostic<ScheduleResult> made = makeSchedule(wanted);
  if (auto *failure = std::get_if<Diagnostic>(&made))
    return print(nullptr, *failure, failure->blame);
  return print(toJson(std::get<ScheduleResult>(made)), {}, std::nullopt);
}

//===----------------------------------------------------------------------===//
// What is in a file
//===----------------------------------------------------------------------===//

static Object toJson(const TensorOutline &tensor) {
  return Object{{"name", text(tensor.name)},   {"type", text(tensor.type)},     {"bytes", tensor.bytes},
                {"nodes", list(tensor.nodes)}, {"module", text(tensor.module)}, {"holds", text(tensor.holds)}};
}

static Object toJson(const Outline &outline) {
  auto tensors = [](llvm::ArrayRef<TensorOutline> range) {
    return list(range, [](const TensorOutline &tensor) { return Value(toJson(tensor)); });
  };
  Object ops;
  for (const auto &[name, count] : outline.ops)
    ops[llvm::json::fixUTF8(name)] = count;
  Array modules = list(outline.modules, [](const ModuleOutline &module) {
    return Value(Object{{"path", text(module.path)},
                        {"elements", module.elements},
                        {"bytes", module.bytes},
                        {"flops", module.flops},
                        {"types", list(module.types)}});
  });
  return Object{{"kind", "model"},
                {"inputs", tensors(outline.inputs)},
                {"outputs", tensors(outline.outputs)},
                {"parameters", tensors(outline.parameters)},
                {"tensors", tensors(outline.tensors)},
                {"modules", std::move(modules)},
                {"ops", std::move(ops)},
                {"flops", outline.flops},
                {"open", outline.open}};
}

std::string python::inspect(const CompileOptions &options, const Stop &stop) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.model);
  if (file && program::isProgram((*file)->getBytes())) {
    program::Result<program::Program> program = program::readProgram((*file)->getBytes());
    if (!program)
      return answer(makeError("{0}: {1}", options.model, program.getError().message));
    return answer(driver::toJson(*program));
  }
  // Whoever reads it as a model says what is wrong with it.
  llvm::consumeError(file.takeError());
  return answer(options, stop, [](Compilation &compilation) -> std::optional<Object> {
    std::optional<Outline> outline = makeOutline(compilation);
    return outline ? std::optional(toJson(*outline)) : std::nullopt;
  });
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

/// Precondition: locked.
void python::Stop::failRanks() { executor->fail(runtime::Cause::Aborted, "interrupted"); }

void python::Stop::stop() {
  std::lock_guard<std::mutex> lock(mutex);
  isStopped = true;
  if (executor)
    failRanks();
}

python::Stop::Scope::Scope(Stop &stop, runtime::Executor &executor) : stop(stop) {
  std::lock_guard<std::mutex> lock(stop.mutex);
  stop.executor = &executor;
  if (stop.isStopped)
    stop.failRanks();
}

python::Stop::Scope::~Scope() {
  std::lock_guard<std::mutex> lock(stop.mutex);
  stop.executor = nullptr;
}

/// The model with its new weights, and adapters apart. False after an error.
static bool writeTrained(Compilation &compilation, const runner::TrainOptions &train, const python::TrainFiles &files,
                         llvm::ArrayRef<onnx::Adapter> adapters) {
  const CompileOptions &options = compilation.getOptions();
  if (!files.exported.empty()) {
    llvm::Expected<onnx::TrainedWeights> written =
        onnx::exportTrained(options.model, train.save, files.exported, adapters, options.artifacts);
    if (!written)
      return compilation.fail(written.takeError());
  }
  if (!files.adapters.empty()) {
    llvm::Expected<size_t> count = onnx::exportAdapters(adapters, train.save, files.adapters);
    if (!count)
      return compilation.fail(count.takeError());
  }
  return true;
}

std::string python::train(const CompileOptions &options, const runner::TrainOptions &train, const TrainFiles &files,
                          Stop &stop) {
  return answer(options, stop, [&](Compilation &compilation) -> std::optional<Object> {
    if (program::Status problem = runner::checkOptions(train)) {
      compilation.fail(makeError("{0}", problem->message), Blame::Options);
      return std::nullopt;
    }
    if (!compilation.load())
      return std::nullopt;
    std::vector<onnx::Adapter> adapters = onnx::listAdapters(compilation.getModule());
    std::unique_ptr<runtime::Executor> executor = openModel(compilation);
    std::optional<Report> report = executor ? compilation.makeReport() : std::nullopt;
    if (!report)
      return std::nullopt;
    runner::TrainSummary summary;
    Stop::Scope scope(stop, *executor);
    if (std::optional<runner::TrainError> error = runner::train(*executor, train, summary)) {
      compilation.fail(makeError("{0}", error->message), error->code == driver::kRunFault ? Blame::Run : Blame::Input);
      return std::nullopt;
    }
    if (!writeTrained(compilation, train, files, adapters))
      return std::nullopt;
    Object object{{"report", toJson(*report)},     {"steps", summary.steps},          {"samples", summary.samples},
                  {"last_step", summary.lastStep}, {"first_loss", summary.firstLoss}, {"last_loss", summary.lastLoss},
                  {"seconds", summary.seconds}};
    if (summary.eval)
      object["eval"] = *summary.eval;
    return object;
  });
}
