//===- Expect.cpp - what a plan expects of its program --------------------===//
//
// Held against the report of the partitioned program: whoever keeps a plan in version control learns from CI that a new export, or a new
// version of Cleave, sends more than it did. A miss names the collectives that send most of what is too much.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Plan/Plan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace cleave;
using spmd::PlanBound;

/// Whether a bound counts this collective.
static bool isMeant(const PlanBound &bound, const CollectiveReport &one) {
  return (bound.kind.empty() || bound.kind == one.kind) &&
         (bound.axis.empty() || llvm::is_contained(one.axes, bound.axis)) && (!bound.isOfWeights || one.isOfWeights);
}

/// What the program has of it; nothing: that is not known.
static std::optional<double> measure(const PlanBound &bound, const Report &report) {
  switch (bound.of) {
  case PlanBound::Of::Bytes:
    return static_cast<double>(report.getWireBytes());
  case PlanBound::Of::Memory:
    return static_cast<double>(report.peakBytesPerRank);
  case PlanBound::Of::Time:
    return report.time ? std::optional<double>(report.time->getNs()) : std::nullopt;
  case PlanBound::Of::Count: {
    int64_t count = 0;
    for (const CollectiveReport &one : report.collectives)
      count += isMeant(bound, one) ? one.times : 0;
    return static_cast<double>(count);
  }
  }
  return std::nullopt;
}

static std::string describe(const PlanBound &bound, double has) {
  auto number = static_cast<int64_t>(has);
  switch (bound.of) {
  case PlanBound::Of::Bytes:
    return "a rank sends " + formatBytes(number);
  case PlanBound::Of::Memory:
    return "a rank takes " + formatBytes(number);
  case PlanBound::Of::Time:
    return "a rank is predicted to take " + formatTime(has);
  case PlanBound::Of::Count:
    return llvm::formatv("the program has {0} {1}{2}{3}", number, bound.kind, bound.isOfWeights ? " of weights" : "",
                         bound.axis.empty() ? "" : " over " + bound.axis);
  }
  return "";
}

/// The three that send most.
static void addCauses(InFlightDiagnostic &error, const PlanBound &bound, const Report &report) {
  constexpr size_t kMostNotes = 3;
  SmallVector<const CollectiveReport *> meant;
  for (const CollectiveReport &one : report.collectives)
    if (isMeant(bound, one))
      meant.push_back(&one);
  llvm::sort(meant, [](const CollectiveReport *lhs, const CollectiveReport *rhs) {
    return std::pair(-lhs->wireBytes, lhs) < std::pair(-rhs->wireBytes, rhs); // those of one list
  });
  for (const CollectiveReport *one : ArrayRef(meant).take_front(kMostNotes))
    error.attachNote() << one->kind << " over " << llvm::join(one->axes, ", ") << " of " << formatBytes(one->wireBytes)
                       << (one->node.empty() ? "" : " at '" + one->node + "'")
                       << (one->cause.empty() ? "" : ": " + one->cause);
}

/// All that is missed is told, each at its place.
bool Compilation::State::checkExpectations(const std::optional<Report> &report) {
  if (!plan || plan->bounds.empty())
    return true;
  if (!report)
    return false;
  bool areKept = true;
  for (const PlanBound &bound : plan->bounds) {
    std::optional<double> has = measure(bound, *report);
    auto number = static_cast<double>(bound.number);
    if (has && (bound.isMost ? *has <= number : *has == number))
      continue;
    areKept = false;
    llvm::SaveAndRestore asExpected(current, has ? Blame::Expectation : Blame::Input);
    const spmd::PlanPlace &place = bound.place;
    InFlightDiagnostic error = emitError(FileLineColLoc::get(context.get(), place.file, place.line, place.column));
    if (!has) {
      error << "'" << bound.text << "' needs a cluster, which says what things take";
      continue;
    }
    error << "expected " << bound.text << ": " << describe(bound, *has);
    if (bound.of == PlanBound::Of::Bytes || bound.of == PlanBound::Of::Count)
      addCauses(error, bound, *report);
  }
  return areKept;
}
