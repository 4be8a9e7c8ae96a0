//===- deploy.cpp - a model checked, predicted, scheduled, compiled -------===//
//
// deploy MODEL PLAN PROGRAM: what `cleave run --check`, `cleave shard`, `cleave schedule` and `cleave compile` say of a model, out of one set
// of options. No MLIR header is needed.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Check.h"
#include "cleave/Compiler/Compile.h"
#include "cleave/Compiler/Schedule.h"

#include <cstdio>

// A compilation takes its model one way: each of these has its own.
static void complain(const cleave::Diagnostic &diagnostic) { std::fputs(diagnostic.format().c_str(), stderr); }

static bool check(const cleave::CompileOptions &options) {
  cleave::Compilation compilation(options, complain);
  std::optional<cleave::CheckResult> checked = cleave::checkModel(compilation);
  if (!checked)
    return false;
  for (const cleave::OutputCheck &output : checked->outputs)
    std::printf("%s: %s, off by %g where the largest is %g\n", output.name.c_str(),
                output.isRight() ? "right" : "wrong", output.difference.largest, output.scale);
  return checked->isRight();
}

static bool predict(const cleave::CompileOptions &options) {
  cleave::Compilation compilation(options, complain);
  std::optional<cleave::Report> report = cleave::predictModel(compilation);
  if (report)
    std::printf("%lld ranks on %s: %g us, %lld bytes sent by each\n", static_cast<long long>(report->ranks),
                report->time->cluster.c_str(), report->time->getNs() / 1000,
                static_cast<long long>(report->getWireBytes()));
  return report.has_value();
}

static bool schedule(const cleave::CompileOptions &options) {
  cleave::Compilation compilation(options, complain);
  cleave::ScheduleOptions wanted;
  wanted.name = "1f1b";
  wanted.ranks = 2;
  wanted.microbatches = 4;
  std::optional<cleave::ScheduleResult> made = cleave::scheduleModel(compilation, wanted);
  if (made)
    std::printf("%s: %zu stages, %g us, of which ranks wait %.0f %%\n", made->table.name.c_str(),
                made->split->stages.size(), made->simulation.makespan / 1000, 100 * made->simulation.bubbleMakespan);
  return made.has_value();
}

static bool compile(const cleave::CompileOptions &options, const char *path) {
  cleave::Compilation compilation(options, complain);
  std::optional<cleave::Report> report = cleave::compileModel(compilation, path);
  if (report)
    std::printf("%s: %lld kernels, %lld commands a rank\n", path, static_cast<long long>(report->program->kernels),
                static_cast<long long>(report->program->commands));
  return report.has_value();
}

int main(int argc, char **argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: deploy MODEL PLAN PROGRAM\n"), 2;
  cleave::CompileOptions options;
  options.model = argv[1];
  options.sharding.plan = argv[2];
  options.cluster = "8xH100-nvlink";
  bool isDone = check(options) && predict(options) && schedule(options) && compile(options, argv[3]);
  return isDone ? 0 : 1;
}
