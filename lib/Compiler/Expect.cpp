//===- Expect.cpp - what a plan expects of its program --------------------===//
//
// Held against the report of the partitioned program: whoever keeps a plan in version control learns from CI that a new export, or a new
// version of Cleave, sends more than it did. A miss names the collectives that send most of what is too much.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Compiler/ModelStructure.h"
#include "cleave/Plan/Plan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace cleave;
using spmd::PlanBound;

/// Whether a bound counts this collective.
static bool isMeant(const PlanBound &bound, const CollectiveReport &one) {
  bool isOther = (bound.what == PlanBound::What::Weights && !one.isOfWeights) ||
                 (bound.what == PlanBound::What::Gradients && !one.isOfGradients);
  return !isOther && (bound.kind.empty() || bound.kind == one.kind) &&
         (bound.axis.empty() || llvm::is_contained(one.axes, bound.axis));
}

static StringRef describe(PlanBound::What what) {
  constexpr StringRef kWords[] = {"", " of weights", " of gradients"};
  return kWords[static_cast<size_t>(what)];
}

/// What the program has of it; nothing: that is not known.
static std::optional<double> measure(const PlanBound &bound, const Report &report) {
  switch (bound.of) {
  case PlanBound::Of::Bytes:
    return static_cast<double>(report.getWireBytes());
  case PlanBound::Of::Memory:
    return static_cast<double>(report.peakBytesPerRank);
  case PlanBound::Of::Time:
    // Of a pipeline idle time included: a rank that waits has not ended.
    return report.time ? std::optional<double>(report.time->getCallNs()) : std::nullopt;
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
    return "a call is predicted to take " + formatTime(has);
  case PlanBound::Of::Count:
    return llvm::formatv("the program has {0} {1}{2}{3}", number, bound.kind, describe(bound.what),
                         bound.axis.empty() ? "" : " over " + bound.axis);
  }
  return "";
}

/// The three that send most.
static void addCauses(InFlightDiagnostic &error, SmallVector<const CollectiveReport *> meant) {
  constexpr size_t kMostNotes = 3;
  llvm::sort(meant, [](const CollectiveReport *lhs, const CollectiveReport *rhs) {
    return std::pair(-lhs->wireBytes, lhs) < std::pair(-rhs->wireBytes, rhs); // those of one list
  });
  for (const CollectiveReport *one : ArrayRef(meant).take_front(kMostNotes))
    error.attachNote() << one->kind << " over " << llvm::join(one->axes, ", ") << " of " << formatBytes(one->wireBytes)
                       << (one->node.empty() ? "" : " at '" + one->node + "'")
                       << (one->cause.empty() ? "" : ": " + one->cause);
}

/// In the order of the program.
static SmallVector<const CollectiveReport *> listMeant(const PlanBound &bound, const Report &report) {
  SmallVector<const CollectiveReport *> meant;
  for (const CollectiveReport &one : report.collectives)
    if (isMeant(bound, one))
      meant.push_back(&one);
  return meant;
}

/// Counts are far below what a double has exactly.
static bool isKept(const PlanBound &bound, double has) {
  auto number = static_cast<double>(bound.number);
  return bound.isMost ? has <= number : has == number;
}

/// Where the plan says it.
static InFlightDiagnostic emitMiss(MLIRContext *context, const PlanBound &bound) {
  const spmd::PlanPlace &place = bound.place;
  return emitError(FileLineColLoc::get(context, place.file, place.line, place.column));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

// Once a model is sharded nothing says any more which layers are equal: nodes are numbered before.
bool Compilation::findBlocks() {
  bool isWanted = state->plan && llvm::any_of(state->plan->bounds, [](const PlanBound &one) { return one.isPerBlock; });
  if (!isWanted || getPhase() >= Phase::Annotated)
    return true;
  std::unique_ptr<ModelStructure> structure = ModelStructure::create(*this, state->plan);
  if (!structure)
    return false;
  state->blocks = structure->numberNodes();
  return true;
}

/// The first block that misses is told with its collectives, others are counted. What is of no block counts nowhere.
static bool checkBlocks(MLIRContext *context, const PlanBound &bound, const Report &report,
                        const std::map<std::string, unsigned> &blocks) {
  unsigned last = 0;
  for (const auto &[node, block] : blocks)
    last = std::max(last, block);
  std::vector<SmallVector<const CollectiveReport *>> byBlock(last + 1);
  for (const CollectiveReport *one : listMeant(bound, report))
    if (auto known = blocks.find(one->node); known != blocks.end())
      byBlock[known->second].push_back(one);
  auto count = [&](unsigned block) {
    int64_t times = 0;
    for (const CollectiveReport *one : byBlock[block])
      times += one->times;
    return times;
  };
  SmallVector<unsigned> missed;
  for (unsigned block = 1; block <= last; ++block)
    if (!isKept(bound, static_cast<double>(count(block))))
      missed.push_back(block);
  if (last > 0 && missed.empty())
    return true;
  InFlightDiagnostic error = emitMiss(context, bound);
  if (last == 0) {
    error << "'" << bound.text << "' needs layers that repeat, and none are known of this model";
    return false;
  }
  error << "expected " << bound.text << ": block " << missed.front() << " of " << last << " has "
        << count(missed.front());
  if (missed.size() > 1)
    error << ", and " << missed.size() - 1 << (missed.size() == 2 ? " other block misses" : " other blocks miss")
          << " it, too";
  addCauses(error, byBlock[missed.front()]);
  return false;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// All that is missed is told, each at its place.
bool Compilation::State::checkExpectations(const std::optional<Report> &report) {
  // What a plan with a step expects is said of that, and the model alone is another program.
  if (!plan || plan->bounds.empty() || (plan->train && !handed.hasStep()))
    return true;
  if (!report)
    return false;
  bool areKept = true;
  for (const PlanBound &bound : plan->bounds) {
    std::optional<double> has = measure(bound, *report);
    bool isKnown = has && !(bound.isPerBlock && blocks.empty());
    llvm::SaveAndRestore asExpected(current, isKnown ? Blame::Expectation : Blame::Input);
    if (bound.isPerBlock) {
      areKept &= checkBlocks(context.get(), bound, *report, blocks);
      continue;
    }
    if (has && isKept(bound, *has))
      continue;
    areKept = false;
    InFlightDiagnostic error = emitMiss(context.get(), bound);
    if (!has) {
      error << "'" << bound.text << "' needs a cluster, which says what things take";
      continue;
    }
    error << "expected " << bound.text << ": " << describe(bound, *has);
    if (bound.of == PlanBound::Of::Bytes || bound.of == PlanBound::Of::Count)
      addCauses(error, listMeant(bound, *report));
  }
  return areKept;
}
