//===- CheckOutputs.cpp - what two runs of one model say ------------------===//
//
// Ranks add in another order than one device does, so results differ by rounding. Mostly that is far below the
// tolerance; where a model cancels what it computed (1e8 + x - 1e8) it is not, and the original is as far from the truth
// as the ranks are. So where an output is out of tolerance, both programs are run once more with every float an f64.
// The difference is put down to rounding if
//
//   * in double ranks and one device agree within the same tolerance, or what they differ by is next to nothing of what it was
//     (rounding goes with the precision, a wrong partition is as wrong in double), and
//   * from the original in double, the ranks are not much farther than the original is (sums in too narrow a type are). Where the model
//     itself rounds to a narrow type, as a step of training with parameters of bf16 does, they may be as far as that type allows.
//
// Where a tolerance of 0 is asked for, rounding is no excuse.
//
// What is stored in bf16 is far from what the model says wherever it is computed. How far says one device in bf16:
//
//   rms(ranks - model) <= 4 rms(device - model) + 2^-8 rms(model)
//   max(ranks - model) <= 16 max(device - model) + 2^-7 max(model)
//
// The first is about all of an output, the second about single elements; the last terms are about one rounding of bf16, which
// an output that is exact by chance on one device does not have.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/CheckOutputs.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using reference::Tensor;

namespace {

/// How much farther than the original the ranks may be from the result in double. Both are samples of the same noise; a
/// normal sample is more than 16 times as large as another one in 4 of 100 cases.
constexpr double kMostFarther = 16;
/// What is left in double of a difference that is rounding of f32 or less, at the most. It is some 2^-29 of it.
constexpr double kLeftInDouble = 1.0 / 4096;
/// How much farther the ranks may be in bf16 than one device, all elements together, and a rounding of it.
constexpr double kMostSpread = 4, kRounding = 1.0 / 256;

/// The results of both programs in double.
struct InDouble {
  SmallVector<Tensor> ranks, original;
  std::string problem; ///< why there are none; empty otherwise
};

class Checker {
public:
  explicit Checker(const Check &check) : check(check) {}
  OutputCheck run(unsigned index, std::string name);

private:
  const InDouble &getInDouble();
  /// Fills in what rounding does to output `index`.
  void measureRounding(unsigned index, OutputCheck &found);

  const Check &check;
  std::optional<InDouble> inDouble;
};

} // namespace

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

/// What the narrowest type that the program rounds to allows; nothing where that is no narrower than f32.
static std::optional<Tolerance> getRoundedTolerance(func::FuncOp func) {
  std::optional<Tolerance> most;
  func.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      Type element = getElementTypeOrSelf(type);
      bool isRounded = (element.isF16() || element.isBF16()) && !nn::isData(op) && !op->hasTrait<nn::KeepsNumbers>();
      if (isRounded || (isa<nn::CastOp>(op) && (element.isF16() || element.isBF16())))
        if (Tolerance one = getDefaultTolerance(element); !most || one.rtol > most->rtol)
          most = one;
    }
  });
  return most;
}

const InDouble &Checker::getInDouble() {
  if (inDouble)
    return *inDouble;
  inDouble.emplace();
  // What goes wrong here is no fault of the model's.
  ScopedDiagnosticHandler handler(func::FuncOp(check.ranks).getContext(), [&](mlir::Diagnostic &diagnostic) {
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

/// Where one of both is exact, and a tolerance therefore nothing, the distance itself counts.
static bool isMuchFarther(const Difference &ranks, const Difference &device) {
  bool isKnown = std::isfinite(ranks.inTolerances) && std::isfinite(device.inTolerances);
  return isKnown ? ranks.inTolerances > kMostFarther * device.inTolerances
                 : !(ranks.largest <= kMostFarther * device.largest);
}

/// All elements may be within their tolerance and off by the same part, as where one of many ranks is left out: of all together that shows.
static NormCheck checkNorm(const Tensor &ranks, const Tensor &device, Tolerance tolerance) {
  constexpr double part = 0.1;
  Spread spread = getSpread(ranks, device, device);
  double root = std::sqrt(double(device.getNumElements()));
  NormCheck norm{spread.rms * root, spread.rmsOfWanted * root, true};
  norm.isClose = norm.ofDifference <= std::max(part * tolerance.rtol, tolerance.ofRow) * norm.ofDevice;
  return norm;
}

void Checker::measureRounding(unsigned index, OutputCheck &found) {
  const InDouble &wide = getInDouble();
  found.problem = wide.problem;
  if (!wide.problem.empty())
    return;
  const Tensor &truth = wide.original[index];
  Difference apart = compare(wide.ranks[index], truth, found.tolerance);
  Difference ofRanks = compare(check.got[index], truth, found.tolerance);
  Difference ofDevice = compare(check.want[index], truth, found.tolerance);
  found.rounding = Rounding{apart.largest, ofRanks.largest, ofDevice.largest};
  bool isExact = (check.rtol || check.atol) && found.tolerance.rtol == 0 && found.tolerance.atol == 0;
  double largest = found.difference.largest;
  bool isLeft = !(std::isfinite(largest) && apart.largest <= kLeftInDouble * largest);
  // Terms may cancel to nothing at all on one device: then only how small the rest is can be told.
  const Tensor &want = check.want[index];
  bool isNothing = getSpread(want, want, want).scale == 0 && !isLeft && largest <= found.tolerance.atol;
  bool isAlike = apart.position < 0 && (!found.norm || checkNorm(wide.ranks[index], truth, found.tolerance).isClose);
  std::optional<Tolerance> rounded = getRoundedTolerance(check.original);
  bool isRounded = rounded && compare(check.got[index], truth, *rounded).position < 0;
  found.isIllConditioned =
      !isExact && (isAlike || !isLeft) && (isNothing || isRounded || !isMuchFarther(ofRanks, ofDevice));
}

/// See the top of this file.
static NarrowCheck checkNarrow(const Tensor &ranks, const Tensor &device, const Tensor &model) {
  NarrowCheck check{getSpread(ranks, model, device), getSpread(device, model, ranks)};
  const auto &[ofRanks, ofDevice] = std::pair(check.ofRanks, check.ofDevice);
  check.isClose = ofRanks.isFinite && ofRanks.rms <= kMostSpread * ofDevice.rms + kRounding * ofRanks.rmsOfWanted &&
                  ofRanks.largest <= kMostFarther * ofDevice.largest + 2 * kRounding * ofRanks.scale;
  return check;
}

/// Of an element, by its row-major position.
static std::vector<int64_t> unfold(int64_t position, ArrayRef<int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    index[dim] = position % shape[dim];
    position /= shape[dim];
  }
  return index;
}

OutputCheck Checker::run(unsigned index, std::string name) {
  OutputCheck found;
  found.name = std::move(name);
  Type element = check.want[index].getElementType();
  Tolerance byType = check.ofWide && element.isF32() ? *check.ofWide : getDefaultTolerance(element);
  found.tolerance = {check.rtol.value_or(byType.rtol), check.atol.value_or(byType.atol),
                     check.rtol || check.atol ? 0 : byType.ofRow};
  found.difference = compare(check.got[index], check.want[index], found.tolerance);
  if (!check.narrow.empty() && !check.rtol && !check.atol)
    found.narrow = checkNarrow(check.got[index], check.narrow[index], check.want[index]);
  const Tensor &want = check.want[index];
  bool isGradient = StringRef(found.name).starts_with("grad(") && !found.narrow;
  if (isGradient)
    found.norm = checkNorm(check.got[index], want, found.tolerance);
  found.shape = want.getShape().vec();
  found.scale = getSpread(want, want, want).scale;
  if (found.difference.position >= 0) {
    found.index = unfold(found.difference.position, found.shape);
    std::tie(found.onRanks, found.onDevice) = formatApart(check.got[index], want, found.difference.position);
  }
  if (!found.isClose() && !found.narrow && canRound(check.original))
    measureRounding(index, found);
  return found;
}

/// Where results are made in the model: what parts first there is the reason of what parts behind it.
static void locateOutputs(func::FuncOp original, std::vector<OutputCheck> &outputs) {
  if (original.getNumResults() != outputs.size())
    return;
  llvm::DenseMap<Operation *, size_t> places;
  for (auto [place, op] : llvm::enumerate(original.getBody().front()))
    places[&op] = place + 1;
  Operation *terminator = original.getBody().front().getTerminator();
  for (auto [value, output] : llvm::zip_equal(terminator->getOperands(), outputs)) {
    Operation *op = value.getDefiningOp();
    output.place = places.lookup(op);
    for (const nn::NodeInfo &info : op ? nn::getNodeInfos(op->getLoc()) : SmallVector<nn::NodeInfo, 1>())
      if (output.node.empty())
        output.node = info.node.str();
  }
}

std::vector<OutputCheck> cleave::checkOutputs(const Check &check) {
  Checker checker(check);
  std::vector<OutputCheck> found;
  for (auto [index, name] : llvm::enumerate(getOutputNames(check.ranks)))
    found.push_back(checker.run(index, name));
  locateOutputs(check.original, found);
  return found;
}
