//===- BatchDims.cpp - where inputs have the batch ------------------------===//
//
// First what a plan says of inputs by name, then what the model calls its dims, then sizes. Inputs that nothing says
// anything of stay invariant, which is always right, if not always what one wants.
//
//===----------------------------------------------------------------------===//
#include "BatchDims.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Pipe/Microbatches/Samples.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/NamePattern.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

Location cleave::pipe::toLoc(const spmd::PlanPlace &place, Location otherwise) {
  if (place.line == 0)
    return otherwise;
  return FileLineColLoc::get(otherwise.getContext(), place.file, place.line, place.column);
}

namespace {
/// Decides input by input.
class BatchFinder {
public:
  BatchFinder(func::FuncOp func, const spmd::PlanPipeline &pipeline)
      : func(func), pipeline(pipeline), place(toLoc(pipeline.place, func.getLoc())),
        said(func.getNumArguments(), Said::Nothing) {
    batch.dims.resize(func.getNumArguments());
    for (BlockArgument argument : func.getArguments())
      batch.places.push_back(toLoc(pipeline.place, argument.getLoc()));
  }

  FailureOr<Batch> run();

private:
  LogicalResult readLines();
  LogicalResult readLine(const spmd::PlanPattern &pattern, int64_t dim, unsigned index);
  void readNames();
  LogicalResult compareSizes();
  LogicalResult countMicrobatches();
  LogicalResult dealSamples();

  ArrayRef<int64_t> getShape(unsigned index) {
    return cast<RankedTensorType>(func.getArgumentTypes()[index]).getShape();
  }
  std::string quote(unsigned index) { return "'" + spmd::getArgumentName(func, index).str() + "'"; }
  /// Shapes were computed from its elements, so they are the same in all microbatches.
  bool hasFixedValue(unsigned index) { return static_cast<bool>(func.getArgAttr(index, nn::NnDialect::kValueAttr)); }
  /// What else would do; a step has microbatches without a pipeline.
  StringRef suggestUneven() {
    bool isStep = llvm::any_of(llvm::seq<unsigned>(0, func.getNumArguments()),
                               [&](unsigned index) { return bool(func.getArgAttr(index, spmd::kRoleAttr)); });
    return isStep ? "" : ", or 'uneven: true' in 'pipeline:'";
  }
  /// Weights and states of a step are no samples.
  bool isOfStep(unsigned index) {
    auto role = func.getArgAttrOfType<StringAttr>(index, spmd::kRoleAttr);
    return role && role != spmd::kBatchRole;
  }
  /// The first input that is split; nothing if none is.
  std::optional<unsigned> findFirst();

  func::FuncOp func;
  const spmd::PlanPipeline &pipeline;
  Location place;
  Batch batch;
  enum class Said { Nothing, ByNames, ByLine };
  /// By argument: who has said where its batch is, or that it has none.
  SmallVector<Said> said;
};
} // namespace

std::optional<unsigned> BatchFinder::findFirst() {
  const auto *it = llvm::find_if(batch.dims, [](std::optional<unsigned> dim) { return dim.has_value(); });
  return it == batch.dims.end() ? std::nullopt : std::optional(unsigned(it - batch.dims.begin()));
}

//===----------------------------------------------------------------------===//
// What is said
//===----------------------------------------------------------------------===//

LogicalResult BatchFinder::readLine(const spmd::PlanPattern &pattern, int64_t dim, unsigned index) {
  Location line = toLoc(pattern.place, place);
  if (said[index] == Said::ByLine) {
    InFlightDiagnostic error = mlir::emitError(line) << "two lines say where " << quote(index) << " has its batch";
    error.attachNote(batch.places[index]) << "the other one is here";
    return error;
  }
  said[index] = Said::ByLine;
  batch.places[index] = line;
  if (dim == spmd::PlanPipeline::kNoBatch)
    return success();
  if (hasFixedValue(index))
    return mlir::emitError(line) << quote(index)
                                 << " has no batch: shapes of the model were computed from its elements";
  int64_t rank = getShape(index).size();
  if (dim >= rank)
    return mlir::emitError(line) << "the batch of " << quote(index) << " is to be dim " << dim << ", but it has "
                                 << rank << (rank == 1 ? " dim" : " dims");
  batch.dims[index] = dim;
  return success();
}

LogicalResult BatchFinder::readLines() {
  for (const auto &[pattern, dim] : pipeline.batch) {
    llvm::Expected<spmd::NamePattern> name = spmd::NamePattern::create(pattern.text);
    if (!name)
      return mlir::emitError(toLoc(pattern.place, place)) << llvm::toString(name.takeError());
    bool any = false;
    SmallVector<StringRef> names;
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      if (isOfStep(index))
        continue;
      llvm::append_range(names, spmd::getTensorNames(func.getArgument(index)));
      if (llvm::none_of(spmd::getTensorNames(func.getArgument(index)),
                        [&](StringRef called) { return name->matches(called); }))
        continue;
      any = true;
      if (failed(readLine(pattern, dim, index)))
        return failure();
    }
    if (!any)
      return mlir::emitError(toLoc(pattern.place, place))
             << "no input is called '" << pattern.text << "'" << spmd::suggestPatterns(pattern.text, names);
  }
  return success();
}

void BatchFinder::readNames() {
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    auto names = func.getArgAttrOfType<ArrayAttr>(index, spmd::kDimsAttr);
    if (!names || said[index] != Said::Nothing || hasFixedValue(index) || names.size() != getShape(index).size())
      continue;
    said[index] = Said::ByNames;
    for (auto [dim, name] : llvm::enumerate(names.getAsValueRange<StringAttr>()))
      if (!batch.dims[index] && name.contains_insensitive("batch"))
        batch.dims[index] = dim;
  }
}

//===----------------------------------------------------------------------===//
// What sizes say
//===----------------------------------------------------------------------===//

/// A dim of one element is there to be repeated: it is no batch.
LogicalResult BatchFinder::compareSizes() {
  std::optional<unsigned> first = findFirst();
  bool isFree = !first;
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    ArrayRef<int64_t> shape = getShape(index);
    // Names that do not say "batch" anywhere in the model say nothing of it.
    bool isOpen = said[index] == Said::Nothing || (isFree && said[index] == Said::ByNames);
    if (!isOpen || isOfStep(index) || hasFixedValue(index) || shape.empty() || shape[0] < 2)
      continue;
    int64_t expected = first ? getShape(*first)[*batch.dims[*first]] : shape[0];
    if (shape[0] == expected) {
      batch.dims[index] = 0;
      first = first ? first : index;
    } else if (isFree) {
      return mlir::emitError(place) << "the inputs do not agree in dim 0, which has " << expected << " elements in "
                                    << quote(*first) << " and " << shape[0] << " in " << quote(index)
                                    << "; say which dims are the batch, such as batch: {"
                                    << spmd::getArgumentName(func, *first) << ": 0}";
    }
  }
  if (first)
    return success();
  return mlir::emitError(place) << "no input has a batch: there is nothing to cut into microbatches";
}

//===----------------------------------------------------------------------===//
// How many
//===----------------------------------------------------------------------===//

/// The divisors of `size` next to `wanted`, from 2 on: `3 or 6`.
static std::string formatDivisors(int64_t size, int64_t wanted) {
  int64_t below = 0, above = 0;
  // By pairs: a size from a hostile file is not counted up to.
  for (int64_t small = 1; small <= size / small; ++small) {
    if (size % small != 0)
      continue;
    for (int64_t divisor : {small, size / small}) {
      if (divisor < wanted && divisor > std::max<int64_t>(below, 1))
        below = divisor;
      if (divisor > wanted && (above == 0 || divisor < above))
        above = divisor;
    }
  }
  std::string text = below ? std::to_string(below) : "";
  if (above)
    text += (text.empty() ? "" : " or ") + std::to_string(above);
  return text.empty() ? "1" : text;
}

/// Samples that all batch dims have a multiple of; any number of microbatches up to that.
LogicalResult BatchFinder::dealSamples() {
  unsigned first = *findFirst();
  for (auto [index, dim] : llvm::enumerate(batch.dims))
    if (dim)
      batch.samples = std::gcd(batch.samples, getShape(index)[*dim]);
  batch.isUneven = true;
  batch.microbatches = pipeline.microbatches ? *pipeline.microbatches
                                             : llvm::divideCeil(batch.samples, uint64_t(*pipeline.microbatchSize));
  if (batch.microbatches <= batch.samples)
    return success();
  return mlir::emitError(batch.places[first]) << "the batch of " << quote(first) << " has " << batch.samples
                                              << " samples, too few for " << batch.microbatches << " microbatches (P4)";
}

LogicalResult BatchFinder::countMicrobatches() {
  if (pipeline.uneven)
    return dealSamples();
  unsigned first = *findFirst();
  int64_t samples = getShape(first)[*batch.dims[first]];
  if (int64_t size = pipeline.microbatchSize.value_or(1); samples % size != 0)
    return mlir::emitError(batch.places[first])
           << "the batch of " << quote(first) << " has " << samples
           << " samples, which is not a multiple of microbatches of " << size << "; " << formatDivisors(samples, size)
           << " would do" << suggestUneven() << " (P4)";
  batch.microbatches =
      std::max<int64_t>(1, pipeline.microbatches ? *pipeline.microbatches : samples / *pipeline.microbatchSize);
  for (auto [index, dim] : llvm::enumerate(batch.dims)) {
    if (!dim || getShape(index)[*dim] % batch.microbatches == 0)
      continue;
    int64_t extent = getShape(index)[*dim];
    return mlir::emitError(batch.places[index])
           << "the batch of " << quote(index) << ", dim " << *dim << ", has " << extent << " samples, which "
           << batch.microbatches << " microbatches do not divide; " << formatDivisors(extent, batch.microbatches)
           << " would" << suggestUneven() << " (P4)";
  }
  return success();
}

FailureOr<Batch> BatchFinder::run() {
  for (Type type : func.getArgumentTypes())
    if (!isa<RankedTensorType>(type))
      return func.emitOpError() << "has an argument of type " << type << ": inputs are tensors";
  if (failed(readLines()))
    return failure();
  readNames();
  if (failed(compareSizes()) || failed(countMicrobatches()))
    return failure();
  return std::move(batch);
}

FailureOr<Batch> cleave::pipe::findBatch(func::FuncOp func, const spmd::PlanPipeline &pipeline) {
  return BatchFinder(func, pipeline).run();
}

int64_t cleave::pipe::countSamples(func::FuncOp func) {
  ScopedDiagnosticHandler quiet(func.getContext(), [](mlir::Diagnostic &) { return success(); });
  spmd::PlanPipeline any;
  any.microbatches = 1;
  any.uneven = true;
  FailureOr<Batch> batch = findBatch(func, any);
  return succeeded(batch) ? batch->samples : 1;
}
