//===- Module.cpp - the extension cleave_compiler._native -----------------===//
//
// Options as classes, calls as functions from them to JSON text (Calls.h): what Python makes of that stands in python/cleave. All calls give
// the interpreter's lock back while they work.
//
//===----------------------------------------------------------------------===//
#include "Calls.h"

#include "cleave/Driver/Main.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace cleave;

/// An enum as the words that users have for it, in its order.
template <typename Enum, size_t count>
static Enum parse(const llvm::StringLiteral (&words)[count], const std::string &word) {
  std::string known;
  for (size_t i = 0; i < count; ++i) {
    if (words[i] == word)
      return Enum(i);
    known += (known.empty() ? "" : ", ") + words[i].str();
  }
  throw nb::value_error(("'" + word + "' is none of " + known).c_str());
}

/// An attribute that is such a word.
template <typename Owner, typename Enum, size_t count, typename Get>
static void defWord(nb::class_<Owner> &owner, const char *name, const llvm::StringLiteral (&words)[count], Get get) {
  owner.def_prop_rw(
      name, [&words, get](Owner &self) { return words[size_t(get(self))].str(); },
      [&words, get](Owner &self, const std::string &word) { get(self) = parse<Enum>(words, word); });
}

/// An attribute that is a list of strings, kept in another kind of list.
template <typename List> static std::vector<std::string> copy(const List &list) { return {list.begin(), list.end()}; }

static void defineOptions(nb::module_ &m) {
  nb::class_<CompileOptions> options(m, "Options");
  options.def(nb::init<>())
      .def_rw("model", &CompileOptions::model)
      .def_rw("entry", &CompileOptions::entry)
      .def_rw("dims", &CompileOptions::dims)
      .def_rw("shapes", &CompileOptions::shapes)
      .def_rw("variants", &CompileOptions::variants)
      .def_rw("inputs", &CompileOptions::inputs)
      .def_rw("weights", &CompileOptions::weights)
      .def_rw("devices", &CompileOptions::devices)
      .def_rw("example_batch", &CompileOptions::exampleBatch)
      .def_rw("like", &CompileOptions::like)
      .def_rw("train", &CompileOptions::train)
      .def_rw("train_text", &CompileOptions::trainText)
      .def_rw("artifacts", &CompileOptions::artifacts)
      .def_rw("evaluates", &CompileOptions::evaluates)
      .def_rw("keeps_gradients", &CompileOptions::keepsGradients)
      .def_rw("cluster", &CompileOptions::cluster)
      .def_rw("gpu", &CompileOptions::gpu)
      .def_rw("must_fit", &CompileOptions::mustFit)
      .def_rw("target", &CompileOptions::target)
      .def_rw("isa", &CompileOptions::isa)
      .def_rw("embed_weights", &CompileOptions::embedWeights)
      .def_rw("dump_phases", &CompileOptions::dumpPhases)
      .def_prop_rw(
          "plan", [](CompileOptions &self) { return self.sharding.plan; },
          [](CompileOptions &self, const std::string &path) { self.sharding.plan = path; })
      .def_prop_rw(
          "mesh", [](CompileOptions &self) { return self.sharding.mesh; },
          [](CompileOptions &self, const std::string &mesh) { self.sharding.mesh = mesh; })
      .def_prop_rw(
          "shard", [](CompileOptions &self) { return copy(self.sharding.shard); },
          [](CompileOptions &self, const std::vector<std::string> &rules) {
            self.sharding.shard.assign(rules.begin(), rules.end());
          })
      .def_prop_rw(
          "state", [](CompileOptions &self) { return copy(self.sharding.state); },
          [](CompileOptions &self, const std::vector<std::string> &states) {
            self.sharding.state.assign(states.begin(), states.end());
          })
      .def_prop_rw(
          "free", [](CompileOptions &self) { return self.sharding.free; },
          [](CompileOptions &self, bool free) { self.sharding.free = free; })
      .def_prop_rw(
          "uneven", [](CompileOptions &self) { return self.sharding.uneven; },
          [](CompileOptions &self, bool uneven) { self.sharding.uneven = uneven; })
      .def_prop_rw(
          "keep_plan", [](CompileOptions &self) { return self.sharding.keepPlan; },
          [](CompileOptions &self, bool keep) { self.sharding.keepPlan = keep; });
  defWord<CompileOptions, Precision>(options, "precision", kPrecisionWords,
                                     [](CompileOptions &self) -> Precision & { return self.precision; });
  defWord<CompileOptions, LibraryUse>(options, "libraries", kLibraryUseWords,
                                      [](CompileOptions &self) -> LibraryUse & { return self.libraries; });
  // What is set was asked for.
  options.def_prop_rw(
      "optimize", [](CompileOptions &self) { return spmd::kOptimizeWords[size_t(self.sharding.optimize)].str(); },
      [](CompileOptions &self, const std::string &word) {
        self.sharding.optimize = parse<spmd::Optimize>(spmd::kOptimizeWords, word);
        self.hasObjective = true;
      });
}

static void defineRequests(nb::module_ &m) {
  nb::class_<RunOptions> run(m, "CheckOptions");
  run.def(nb::init<>())
      .def_rw("seed", &RunOptions::seed)
      .def_rw("rtol", &RunOptions::rtol)
      .def_rw("atol", &RunOptions::atol);
  defWord<RunOptions, ExecutorKind>(run, "executor", kExecutorWords,
                                    [](RunOptions &self) -> ExecutorKind & { return self.executor; });

  nb::class_<PlanRequest> request(m, "PlanRequest");
  request.def(nb::init<>())
      .def_rw("devices", &PlanRequest::devices)
      .def_rw("quick", &PlanRequest::isQuick)
      .def_rw("within_ns", &PlanRequest::withinNs)
      .def_rw("most_axes", &PlanRequest::mostAxes)
      .def_rw("front", &PlanRequest::wantsFront)
      .def("set_stages", [](PlanRequest &self, int64_t least, int64_t most) { self.stages = {least, most}; })
      .def("set_microbatches",
           [](PlanRequest &self, int64_t least, int64_t most) { self.microbatches = {least, most}; });
  defWord<PlanRequest, PlanObjective>(request, "objective", kPlanObjectiveWords,
                                      [](PlanRequest &self) -> PlanObjective & { return self.objective; });

  nb::class_<ScheduleOptions>(m, "ScheduleOptions")
      .def(nb::init<>())
      .def_rw("name", &ScheduleOptions::name)
      .def_rw("ranks", &ScheduleOptions::ranks)
      .def_rw("microbatches", &ScheduleOptions::microbatches)
      .def_rw("chunks", &ScheduleOptions::chunks)
      .def_rw("steps", &ScheduleOptions::steps)
      .def_rw("cost", &ScheduleOptions::cost)
      .def_rw("memory", &ScheduleOptions::memory)
      .def_rw("latency", &ScheduleOptions::latency)
      .def_rw("memory_limit", &ScheduleOptions::memoryLimit)
      .def_rw("costs", &ScheduleOptions::costs)
      .def_rw("profile", &ScheduleOptions::profile)
      .def_rw("seed", &ScheduleOptions::seed);

  using runner::TrainOptions;
  nb::class_<TrainOptions>(m, "TrainOptions")
      .def(nb::init<>())
      .def_rw("data", &TrainOptions::data)
      .def_rw("steps", &TrainOptions::steps)
      .def_rw("epochs", &TrainOptions::epochs)
      .def_rw("shuffled", &TrainOptions::isShuffled)
      .def_rw("seed", &TrainOptions::seed)
      .def_rw("save", &TrainOptions::save)
      .def_rw("save_every", &TrainOptions::saveEvery)
      .def_rw("keep", &TrainOptions::keep)
      .def_rw("resume", &TrainOptions::resume)
      .def_rw("weights_from", &TrainOptions::weightsFrom)
      .def_rw("log", &TrainOptions::log)
      .def_rw("eval_data", &TrainOptions::evalData)
      .def_rw("eval_every", &TrainOptions::evalEvery);
  nb::class_<python::Stop>(m, "Stop")
      .def(nb::init<>())
      .def_prop_ro("is_asked", [](const python::Stop &self) { return self.isAsked().load(); })
      .def("stop", &python::Stop::stop, nb::call_guard<nb::gil_scoped_release>());
}

/// `cleave`, the command: words with the program's name first.
static int runMain(const std::vector<std::string> &words) {
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  nb::gil_scoped_release release;
  return driver::main(int(words.size()), arguments.data());
}

NB_MODULE(_native, m) {
  // Options that a program leaves behind at its end are nobody's mistake.
  nb::set_leak_warnings(false);
  defineOptions(m);
  defineRequests(m);
  using Released = nb::call_guard<nb::gil_scoped_release>;
  m.def("compile", &python::compile, nb::arg("options"), nb::arg("path"), nb::arg("stop"), Released());
  m.def("page", &python::page, nb::arg("options"), nb::arg("compare"), nb::arg("measured"), nb::arg("stop"),
        Released());
  m.def("bench", &python::bench, nb::arg("options"), nb::arg("calls"), nb::arg("seed"), nb::arg("stop"), Released());
  m.def("shard", &python::shard, nb::arg("options"), nb::arg("phase"), nb::arg("output"), nb::arg("stop"), Released());
  m.def("check", &python::check, nb::arg("options"), nb::arg("how"), nb::arg("stop"), Released());
  m.def("explain", &python::explain, nb::arg("options"), nb::arg("pattern"), nb::arg("stop"), Released());
  m.def("plan", &python::plan, nb::arg("options"), nb::arg("request"), nb::arg("memory"), nb::arg("reasons"),
        nb::arg("stop"), Released());
  m.def("schedule", &python::schedule, nb::arg("options"), nb::arg("wanted"), nb::arg("stop"), Released());
  m.def("inspect", &python::inspect, nb::arg("options"), nb::arg("stop"), Released());
  m.def(
      "train",
      [](const CompileOptions &options, const runner::TrainOptions &train, const std::string &exported,
         const std::string &adapters,
         python::Stop &stop) { return python::train(options, train, {exported, adapters}, stop); },
      nb::arg("options"), nb::arg("train"), nb::arg("exported"), nb::arg("adapters"), nb::arg("stop"), Released());
  m.def("move_program", &python::moveProgram, nb::arg("source"), nb::arg("target"), Released());
  m.def("main", &runMain, nb::arg("words"));
}
