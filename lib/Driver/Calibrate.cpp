//===- Calibrate.cpp - `cleave bench --calibrate` -------------------------===//
//
// Measures this machine, fits a cluster, tells how far that is off, and writes it where it is not off by too much.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Calibrate.h"
#include "cleave/Driver/Session.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>
#include <thread>

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;

/// Jobs that want a core, in the mean of a minute; below 0: nobody knows.
static double getLoad() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

/// Flops and bytes as in `33.6M`.
static std::string formatSize(double size) {
  for (auto [unit, scale] : {std::pair("G", 1e9), std::pair("M", 1e6), std::pair("k", 1e3)})
    if (size >= scale)
      return formatv("{0:f1}{1}", size / scale, unit);
  return formatv("{0:f0}", size);
}

/// A line for each fit: what it is off by, in the mean and at most, and the same for each size.
/// \param mark before each line: where the file is standard output, these are comments of it
static void printDeviations(const std::vector<spmd::Deviation> &deviations, llvm::StringRef mark) {
  llvm::outs() << mark
               << formatv("{0,-22} {1,6} {2,6}  {3}\n", "predicted / measured - 1", "mean", "most",
                          "by flops or bytes sent");
  for (const spmd::Deviation &deviation : deviations) {
    double most = 0;
    std::string each;
    for (auto [off, size] : llvm::zip_equal(deviation.all, deviation.sizes)) {
      most = std::max(most, std::abs(off));
      each += formatv("{0}{1}: {2:P0}", each.empty() ? "" : ", ", formatSize(size), off);
    }
    llvm::outs() << mark
                 << formatv("{0,-24} {1,6:P0} {2,6:P0}  {3}\n", deviation.what, deviation.getMean(), most, each);
  }
}

/// A fit that is no good is not written: a cluster file says what is so.
ExitCode cleave::driver::calibrateCommand(Session &session) {
  const Options &options = session.getOptions();
  if (options.device != DeviceKind::Host)
    return session.fail(makeError("--calibrate measures ranks on the host: nothing here can measure '{0}'; a cluster "
                                  "named after the GPU has the figures of its data sheet",
                                  getTraits(options.device).word),
                        Blame::Options);
  CalibrateOptions how;
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  how.ranks = static_cast<int>(std::clamp(cores, 2u, 8u));
  how.rounds = static_cast<unsigned>(options.repeat);
  double load = getLoad();
  if (load > cores / 2.0)
    session.report(
        {Diagnostic::Severity::Warning,
         Blame::Input,
         "cleave",
         0,
         0,
         "",
         formatv("{0:f1} other jobs want the {1} cores of this machine: what is measured is slower than it is", load,
                 cores),
         {}});
  llvm::Expected<spmd::MeasuredTimes> times = measureHost(how);
  if (!times)
    return session.fail(times.takeError());
  spmd::FittedCluster fitted = spmd::fitCluster(*times);
  fitted.cluster.name = "calibrated";
  if (!options.quiet) {
    llvm::StringRef mark = options.writesToOutput() ? "# " : "";
    llvm::outs() << mark
                 << formatv("{0} ranks on {1} cores, least of {2}, load {3:f1} before and {4:f1} after\n", how.ranks,
                            cores, how.rounds, load, getLoad());
    printDeviations(fitted.deviations, mark);
  }
  std::string text =
      formatv("# Measured by cleave bench --calibrate: {0} ranks on {1} cores, least of {2}, load {3:f1}\n{4}",
              how.ranks, cores, how.rounds, load, spmd::formatCluster(fitted.cluster));
  if (!options.writesToOutput() && !options.quiet)
    llvm::outs() << text;
  std::string off;
  for (const spmd::Deviation &deviation : fitted.deviations)
    if (!deviation.isPart && deviation.getMean() > spmd::kLargestDeviation)
      off += formatv("{0}{1} ({2:P0})", off.empty() ? "" : ", ", deviation.what, deviation.getMean());
  if (!off.empty())
    return session.fail(makeError("no cluster is written: the formulas are off by more than {0:P0} for {1}",
                                  spmd::kLargestDeviation, off));
  if (options.writesToOutput()) {
    llvm::outs() << text;
    return kDone;
  }
  if (llvm::Error error = writeTextAtomically(options.output, text))
    return session.fail(std::move(error));
  return kDone;
}
