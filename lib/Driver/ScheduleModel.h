//===- ScheduleModel.h - a model's stages under a schedule ------*- C++ -*-===//
#ifndef CLEAVE_LIB_DRIVER_SCHEDULEMODEL_H
#define CLEAVE_LIB_DRIVER_SCHEDULEMODEL_H

#include "cleave/Dialect/Pipe/Transforms/StageGraph.h"
#include "cleave/Driver/Session.h"
#include "cleave/Schedule/Text.h"

namespace cleave::driver {

/// The graph that a model's stages are cut from, and what its plan says of them.
struct ScheduleModel {
  pipe::DeviceRates rates;
  pipe::StageGraph graph;
  schedule::SplitOptions options;
  /// By hand; empty: where it is best.
  std::vector<spmd::PlanStage> lines;
};

/// Loads the model of the command line, and fills in what options leave to the plan: ranks, microbatches, chunks, and the
/// schedule. Nothing after an error.
std::optional<ScheduleModel> loadScheduleModel(Session &session, ScheduleOptions &options);

/// Cuts the model into the stages of `table`, which then has the channels and costs of the model, in nanoseconds and
/// bytes. I and W take as long as F each: a backward of twice the forward, as is usual for products of matrices. What F
/// keeps is what its ops make; W lets go of it.
llvm::Expected<schedule::StageSplit> applyModel(const ScheduleModel &model, schedule::CostedSchedule &table);

/// A line per stage.
void printStages(llvm::raw_ostream &os, const ScheduleModel &model, const schedule::Schedule &table,
                 const schedule::StageSplit &split);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_SCHEDULEMODEL_H
