//===- Check.cpp - says whether a partitioned program is right ------------===//
//
//   check y: DIFFERS, largest difference 2.40e+01
//     at [1, 0]: 24 on ranks, 0 on one device (rtol 0.0001, atol 1e-05)
//     in double they differ by 2.40e+01; rounding moves one device by 0.00e+00, the ranks by 0.00e+00
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Check.h"

#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using reference::Tensor;

static std::string formatPosition(int64_t position, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> index(shape.size());
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    index[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return llvm::formatv("[{0:$[, ]}]", llvm::make_range(index.begin(), index.end()));
}

static std::string formatTolerance(const Tolerance &tolerance) {
  if (tolerance.ofRow > 0)
    return formatNumber(tolerance.ofRow) + " of the largest in its row";
  return "rtol " + formatNumber(tolerance.rtol) + ", atol " + formatNumber(tolerance.atol);
}

/// Why an output is right, or wrong, that is judged by one device in bf16.
static std::string format(const NarrowCheck &narrow) {
  return llvm::formatv(", rms {0:e2}, on one device {1:e2}", narrow.ofRanks.rms, narrow.ofDevice.rms);
}

static void printApart(llvm::raw_ostream &os, const OutputCheck &found, const Tensor &got, const Tensor &want) {
  auto [onRanks, onDevice] = formatApart(got, want, found.difference.position);
  os << llvm::formatv("  at {0}: {1} on ranks, {2} on one device ({3})\n",
                      formatPosition(found.difference.position, want.getShape()), onRanks, onDevice,
                      formatTolerance(found.tolerance));
  if (found.rounding)
    os << llvm::formatv("  in double they differ by {0:e2}; rounding moves one device by {1:e2}, the ranks by {2:e2}\n",
                        found.rounding->apart, found.rounding->ofDevice, found.rounding->ofRanks);
  else if (!found.problem.empty())
    os << "  cannot be run in double: " << found.problem << '\n';
}

bool cleave::driver::printChecks(llvm::raw_ostream &os, const Check &check, bool quiet) {
  bool isRight = true;
  for (auto [found, got, want] : llvm::zip_equal(checkOutputs(check), check.got, check.want)) {
    isRight &= found.isRight();
    if (quiet && found.isRight())
      continue;
    os << llvm::formatv("check {0}: {1}, largest difference {2:e2}", found.name,
                        found.isClose()          ? "ok"
                        : found.isIllConditioned ? "ok, ill-conditioned here"
                                                 : "DIFFERS",
                        found.difference.largest);
    if (found.narrow)
      os << format(*found.narrow);
    if (found.difference.nans)
      os << llvm::formatv("; {0} of {1} elements are NaN on both", found.difference.nans, want.getNumElements());
    os << '\n';
    if (!found.isClose() && found.difference.position >= 0)
      printApart(os, found, got, want);
  }
  return isRight;
}
