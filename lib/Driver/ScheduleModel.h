//===- ScheduleModel.h - a model's stages under a schedule ------*- C++ -*-===//
#ifndef CLEAVE_LIB_DRIVER_SCHEDULEMODEL_H
#define CLEAVE_LIB_DRIVER_SCHEDULEMODEL_H

#include "ScheduleGradients.h"
#include "cleave/Dialect/Pipe/Transforms/StageGraph.h"
#include "cleave/Driver/Session.h"
#include "cleave/Schedule/Place.h"
#include "cleave/Schedule/Text.h"

namespace cleave::driver {

/// The partitioned program of one microbatch, of which a run with the plan cuts its stages.
struct RunGraph {
  /// Owns the ops of the graph.
  std::unique_ptr<Compilation> compilation;
  pipe::StageGraph graph;
  /// None, op by op.
  std::vector<OpGradients> gradients;
};

/// The graph that a model's stages are cut from, and what its plan says of them.
struct ScheduleModel {
  pipe::DeviceRates rates;
  /// With times of F, and of all that training does.
  pipe::StageGraph graph, trainingGraph;
  /// Per op of the graph.
  std::vector<OpGradients> gradients;
  schedule::SplitOptions options;
  /// Where the plan wants stages to be; without it where the schedule has them, or `auto` finds best.
  schedule::PlacementWish wish;
  /// By hand; empty: where it is best.
  std::vector<spmd::PlanStage> lines;
  spmd::StageNames said;
  /// Which times were measured, for people; empty: none.
  std::string profile;
  /// A plan says how the model becomes a pipeline.
  bool isPlanned = false;
  /// For schedules without gradients; null where no run is like what is shown: `notes` say why.
  std::unique_ptr<RunGraph> run;
  /// How what is shown and what runs are related, for people.
  std::vector<std::string> notes;
};

/// Loads the model of the command line, and fills in what options leave to the plan: ranks, microbatches, chunks, and the
/// schedule, which is the one that runs where the plan names none. Nothing after an error.
std::optional<ScheduleModel> loadScheduleModel(Session &session, ScheduleOptions &options);

/// Gives ops the times of the profile at `path`, of F on one microbatch. False after an error.
bool applyProfile(Session &session, mlir::func::FuncOp entry, llvm::StringRef path, ScheduleModel &model);

/// Cuts the model into the stages of `table`, which stand as planned, which then has the channels and costs of the model, in nanoseconds and
/// bytes. What I and W take, and what is kept for them: ScheduleGradients.h.
llvm::Expected<schedule::StageSplit> applyModel(const ScheduleModel &model, schedule::CostedSchedule &table);

/// A line per stage: its time is that of a microbatch, in training of F, I and W together. Then what is to be known of them.
void printStages(llvm::raw_ostream &os, const ScheduleModel &model, const schedule::Schedule &table,
                 const schedule::StageSplit &split);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_SCHEDULEMODEL_H
