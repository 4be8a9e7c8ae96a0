//===- Check.cpp - is a partitioned program right? ------------------------===//
//
// Ranks add in another order than one device does, so results differ by rounding. Mostly that is far below the
// tolerance; where a model cancels what it computed (1e8 + x - 1e8) it is not, and the original is as far from the truth
// as the ranks are. So where an output is out of tolerance, both programs are run once more with every float an f64.
// The difference is put down to rounding if
//
//   * in double ranks and one device agree within the same tolerance (a wrong partition is as wrong in double), and
//   * from the original in double, the ranks are not much farther than the original is (sums in too narrow a type are).
//
// Where a tolerance of 0 is asked for, rounding is no excuse.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Check.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;
using reference::Tensor;

namespace {

/// How much farther than the original the ranks may be from the result in double. Both are samples of the same noise; a
/// normal sample is more than 16 times as large as another one in 4 of 100 cases.
constexpr double kMostFarther = 16;

/// The results of both programs in double.
struct InDouble {
  SmallVector<Tensor> ranks, original;
  std::string problem; ///< why there are none; empty otherwise
};

class Checker {
public:
  Checker(llvm::raw_ostream &os, const Check &check, bool quiet) : os(os), check(check), quiet(quiet) {}
  /// Prints what there is to say on output `index`; true if it is right.
  bool run(unsigned index, StringRef name);

private:
  Tolerance getTolerance(unsigned index) const;
  const InDouble &getInDouble();
  /// True if `index` differs by rounding alone; `text` is a line that says by how much, or nothing.
  bool isRounding(unsigned index, std::string &text);

  llvm::raw_ostream &os;
  const Check &check;
  bool quiet;
  std::optional<InDouble> inDouble;
};

} // namespace

static std::string formatPosition(int64_t position, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    index[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return llvm::formatv("[{0:$[, ]}]", llvm::make_range(index.begin(), index.end()));
}

/// True if the program computes with floats that double is wider than.
static bool canRound(func::FuncOp func) {
  auto isNarrow = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return isa<FloatType>(element) && !element.isF64();
  };
  return func
      .walk([&](Operation *op) {
        return llvm::any_of(op->getOperandTypes(), isNarrow) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Tolerance Checker::getTolerance(unsigned index) const {
  Tolerance tolerance = getDefaultTolerance(check.want[index].getElementType());
  return {check.rtol.value_or(tolerance.rtol), check.atol.value_or(tolerance.atol)};
}

const InDouble &Checker::getInDouble() {
  if (inDouble)
    return *inDouble;
  inDouble.emplace();
  // What goes wrong here is no fault of the model's.
  ScopedDiagnosticHandler handler(func::FuncOp(check.ranks).getContext(), [&](Diagnostic &diagnostic) {
    if (inDouble->problem.empty())
      inDouble->problem = diagnostic.str();
    return success();
  });
  if (failed(reference::runInDouble(check.original, check.inputs, inDouble->original)) ||
      failed(reference::runInDouble(check.ranks, check.inputs, inDouble->ranks)))
    return *inDouble;
  inDouble->problem.clear();
  return *inDouble;
}

bool Checker::isRounding(unsigned index, std::string &text) {
  if (!canRound(check.original))
    return false;
  const InDouble &wide = getInDouble();
  if (!wide.problem.empty()) {
    text = "  cannot be run in double: " + wide.problem + "\n";
    return false;
  }
  Tolerance tolerance = getTolerance(index);
  const Tensor &truth = wide.original[index];
  Difference apart = compare(wide.ranks[index], truth, tolerance);
  Difference ofRanks = compare(check.got[index], truth, tolerance);
  Difference ofOriginal = compare(check.want[index], truth, tolerance);
  text = llvm::formatv("  in double they differ by {0:e2}; rounding moves one device by {1:e2}, the ranks by {2:e2}\n",
                       apart.largest, ofOriginal.largest, ofRanks.largest);
  bool isExact = (check.rtol || check.atol) && tolerance.rtol == 0 && tolerance.atol == 0;
  return !isExact && apart.position < 0 && ofRanks.inTolerances <= kMostFarther * ofOriginal.inTolerances;
}

bool Checker::run(unsigned index, StringRef name) {
  const Tensor &got = check.got[index], &want = check.want[index];
  Tolerance tolerance = getTolerance(index);
  Difference difference = compare(got, want, tolerance);
  bool isClose = difference.position < 0;
  std::string rounding;
  bool isRight = isClose || isRounding(index, rounding);
  if (quiet && isRight)
    return true;
  os << llvm::formatv("check {0}: {1}, largest difference {2:e2}", name,
                      isClose   ? "ok"
                      : isRight ? "ok, ill-conditioned here"
                                : "DIFFERS",
                      difference.largest);
  if (difference.nans)
    os << llvm::formatv("; {0} of {1} elements are NaN on both", difference.nans, want.getNumElements());
  os << '\n';
  if (isClose)
    return true;
  auto [onRanks, onDevice] = formatApart(got, want, difference.position);
  os << llvm::formatv("  at {0}: {1} on ranks, {2} on one device (rtol {3}, atol {4})\n{5}",
                      formatPosition(difference.position, want.getShape()), onRanks, onDevice,
                      formatNumber(tolerance.rtol), formatNumber(tolerance.atol), rounding);
  return isRight;
}

bool cleave::driver::checkOutputs(llvm::raw_ostream &os, const Check &check, bool quiet) {
  Checker checker(os, check, quiet);
  bool isRight = true;
  for (auto [index, name] : llvm::enumerate(getOutputNames(check.ranks)))
    isRight &= checker.run(index, name);
  return isRight;
}
