//===- Check.cpp - says whether a partitioned program is right ------------===//
//
//   check y: DIFFERS, largest difference 2.40e+01
//     at [1, 0]: 24 on ranks, 0 on one device (rtol 0.0001, atol 1e-05)
//     in double they differ by 2.40e+01; rounding moves one device by 0.00e+00, the ranks by 0.00e+00
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Check.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace cleave;

static std::string formatTolerance(const Tolerance &tolerance) {
  if (tolerance.ofRow > 0)
    return formatNumber(tolerance.ofRow) + " of the largest in its row";
  return "rtol " + formatNumber(tolerance.rtol) + ", atol " + formatNumber(tolerance.atol);
}

/// Why an output is right, or wrong, that is judged by one device in bf16.
static std::string format(const NarrowCheck &narrow) {
  return llvm::formatv(", rms {0:e2}, on one device {1:e2}", narrow.ofRanks.rms, narrow.ofDevice.rms);
}

static void printApart(llvm::raw_ostream &os, const OutputCheck &found) {
  os << llvm::formatv("  at [{0:$[, ]}]: {1} on ranks, {2} on one device ({3})\n",
                      llvm::make_range(found.index.begin(), found.index.end()), found.onRanks, found.onDevice,
                      formatTolerance(found.tolerance));
  if (found.rounding)
    os << llvm::formatv("  in double they differ by {0:e2}; rounding moves one device by {1:e2}, the ranks by {2:e2}\n",
                        found.rounding->apart, found.rounding->ofDevice, found.rounding->ofRanks);
  else if (!found.problem.empty())
    os << "  cannot be run in double: " << found.problem << '\n';
}

static llvm::StringRef getWord(Verdict verdict) {
  switch (verdict) {
  case Verdict::Ok:
    return "ok";
  case Verdict::IllConditioned:
    return "ok, ill-conditioned here";
  case Verdict::Differs:
    return "DIFFERS";
  }
}

bool cleave::driver::printChecks(llvm::raw_ostream &os, llvm::ArrayRef<OutputCheck> outputs, bool quiet) {
  for (const OutputCheck &found : outputs) {
    if (quiet && found.isRight())
      continue;
    os << llvm::formatv("check {0}: {1}, largest difference {2:e2}", found.name, getWord(found.getVerdict()),
                        found.difference.largest);
    if (found.narrow)
      os << format(*found.narrow);
    if (found.norm)
      os << llvm::formatv(", of length {0:e2}", found.norm->ofDevice);
    if (found.norm && !found.norm->isClose)
      os << llvm::formatv(", all is off by {0:e2}", found.norm->ofDifference);
    if (found.difference.nans)
      os << llvm::formatv("; {0} of {1} elements are NaN on both", found.difference.nans,
                          std::accumulate(found.shape.begin(), found.shape.end(), int64_t(1), std::multiplies<>()));
    os << '\n';
    if (!found.isClose() && found.difference.position >= 0)
      printApart(os, found);
  }
  // What parts behind it may do so for its sake.
  const OutputCheck *first = nullptr;
  for (const OutputCheck &found : outputs)
    if (!found.isRight() && (!first || found.place < first->place))
      first = &found;
  if (first && outputs.size() > 1)
    os << "the first that parts, in the order of the program: " << first->name
       << (first->node.empty() ? "" : ", of node " + quote(first->node)) << '\n';
  return !first;
}

/// They come in the order of the program.
bool cleave::driver::printSlopes(llvm::raw_ostream &os, llvm::ArrayRef<SlopeCheck> slopes, bool quiet) {
  const SlopeCheck *first = nullptr;
  for (const SlopeCheck &found : slopes) {
    if (!found.isRight() && !first)
      first = &found;
    if (quiet && found.isRight())
      continue;
    os << llvm::formatv("slope {0}: {1}, {2:e5} by its gradient, {3:e5} by differences\n", found.parameter,
                        found.isRight() ? "ok" : "DIFFERS", found.byGradient, found.slope);
  }
  if (first)
    os << "the first that parts, in the order of the program: grad(" << first->parameter << ")\n";
  return !first;
}
