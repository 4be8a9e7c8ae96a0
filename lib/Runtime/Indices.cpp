//===- Indices.cpp - indices that are out of range ------------------------===//
//
// Those that a caller gives are looked at before anything runs, and a call with a wrong one changes nothing. Those that a program
// computes its kernels report, in a place that each launch has for itself: on the host it is looked at behind each launch, of a device
// with a queue when all is done.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"
#include "cleave/Program/IndexRange.h"
#include "cleave/Program/Operands.h"

using namespace cleave::runtime;
namespace program = cleave::program;
using program::concat;

Status Executor::State::failReported(LocalRank &rank, const Report &report) {
  int64_t places = report.places - 1;
  return rank.communicator->fail(Cause::Aborted, concat(rank.log->getPlace(), ": the index ", report.index,
                                                        " is out of range: there are ", places, " places here, ",
                                                        -places, " to ", places - 1));
}

/// What kernels of a queue have reported, when all is done. The first command counts.
Status Executor::State::readReports(LocalRank &rank) {
  const BoundList &list = rank.lists[variant];
  std::vector<Report> reports(list.reporters.size());
  if (!reports.empty())
    rank.device->download({{}, reports.size() * sizeof(Report)}, list.reports,
                          reinterpret_cast<char *>(reports.data()));
  for (size_t i = 0; i < reports.size(); ++i)
    if (reports[i].places) {
      rank.log->begin(variant, list.reporters[i]);
      return failReported(rank, reports[i]);
    }
  return {};
}

/// Indices that are inputs are looked at before anything runs.
ExecutorStatus Executor::State::checkIndices(const Call &call) const {
  const program::Variant &source = program.variants[call.variant];
  for (const program::IndexRange &range : source.ranges) {
    const program::Tensor &tensor = source.inputs[range.input];
    const program::Type &type = program.types[tensor.type];
    if (!call.inputs[range.input])
      continue; // a state, which the program has made
    program::Status error =
        program::checkIndices(tensor.name, type.element, call.inputs[range.input],
                              program::getBytes(type) / program::getElementBytes(type.element),
                              range.node < 0 ? "" : program.nodes[range.node], range.least, range.most);
    if (error)
      return ExecutorError{ErrorKind::Arguments, error->message};
  }
  return std::nullopt;
}
