//===- ChunkCollectives.cpp - send one part while the next is computed ----===//
//
//   einsum %x, %w ── all_reduce          einsum %x[0:4], %w ── all_reduce ────────┐
//                                                  einsum %x[4:8], %w ── all_reduce ── concat
//
// Parts are along the result's first dim of several elements, and in it one behind the other, so that nothing is copied to put
// them together. Operands that have the dim's letter are split; the others, weights among them, each part reads all of.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cost/OpCosts.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_CHUNKCOLLECTIVES
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-chunk-collectives"

ALWAYS_ENABLED_STATISTIC(numPairs, "all_reduces of a product, which could go in parts");
ALWAYS_ENABLED_STATISTIC(numChunked, "those that do");
ALWAYS_ENABLED_STATISTIC(numParts, "their parts");

/// The most parts that are made without being asked for.
static constexpr int64_t kMostParts = 8;

namespace {

/// A contraction whose sum over ranks alone reads it.
struct Pair {
  nn::EinsumOp product;
  spmd::AllReduceOp sum;
  int64_t dim; ///< of the result
  char letter;

  int64_t getExtent() { return product.getResult().getType().getDimSize(dim); }
};

} // namespace

static std::optional<Pair> findPair(spmd::AllReduceOp sum) {
  auto product = sum.getInput().getDefiningOp<nn::EinsumOp>();
  if (!product || !product->hasOneUse())
    return std::nullopt;
  std::optional<nn::EinsumTerms> terms = nn::parseEinsum(product.getEquation());
  ArrayRef<int64_t> shape = product.getResult().getType().getShape();
  const auto *dim = llvm::find_if(shape, [](int64_t size) { return size != 1; });
  if (!terms || dim == shape.end() || *dim == 0)
    return std::nullopt;
  Pair pair = {product, sum, dim - shape.begin(), terms->result[dim - shape.begin()]};
  // A letter that stands twice is a diagonal.
  auto isTwice = [&](StringRef term) { return term.count(pair.letter) > 1; };
  return isTwice(terms->result) || llvm::any_of(terms->inputs, isTwice) ? std::nullopt : std::optional(pair);
}

/// Nanoseconds of a pair in so many parts: the first is computed, then parts are computed and sent, then the last is sent. Each part
/// reads all of an operand that is not split.
static double predictNs(Pair pair, int64_t parts, const cost::OpTimes &times) {
  nn::EinsumTerms terms = *nn::parseEinsum(pair.product.getEquation());
  cost::OpCosts costs(&times);
  auto countBytes = [&](Value value) {
    auto operands = llvm::enumerate(pair.product.getInputs());
    bool isSplit = llvm::none_of(operands, [&](auto operand) {
      return operand.value() == value && !terms.inputs[operand.index()].contains(pair.letter);
    });
    return cost::countBytes(value) / (isSplit ? parts : 1);
  };
  double product = costs.get(*pair.product, {parts, countBytes}).getNs();
  double sum = costs.get(*pair.sum, {parts}).getNs();
  return product + double(parts - 1) * std::max(product, sum) + sum;
}

/// As many as are asked for, or, where `most` is 0, as take least time.
static int64_t chooseParts(Pair pair, int64_t most, const cost::OpTimes &times) {
  int64_t best = 1;
  double least = 0;
  for (int64_t parts = 1; parts <= std::min(most ? most : kMostParts, pair.getExtent()); ++parts) {
    if (pair.getExtent() % parts != 0)
      continue;
    double ns = most ? -double(parts) : predictNs(pair, parts, times);
    if (parts == 1 || ns < least) {
      best = parts;
      least = ns;
    }
  }
  return best;
}

/// Part `part` of `parts` of `value` along `dim`.
static Value makeSlice(OpBuilder &builder, Value value, int64_t dim, int64_t part, int64_t parts) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()), steps(type.getRank(), 1);
  sizes[dim] /= parts;
  starts[dim] = part * sizes[dim];
  return nn::SliceOp::create(builder, value.getLoc(), type.clone(sizes), value, starts, sizes, steps);
}

static void split(Pair pair, int64_t parts) {
  OpBuilder builder(pair.sum);
  nn::EinsumTerms terms = *nn::parseEinsum(pair.product.getEquation());
  RankedTensorType type = pair.product.getResult().getType();
  SmallVector<int64_t> shape(type.getShape());
  shape[pair.dim] /= parts;
  type = type.clone(shape);
  SmallVector<Value> sums;
  for (int64_t part = 0; part < parts; ++part) {
    IRMapping mapping;
    for (auto [term, operand] : llvm::zip_equal(terms.inputs, pair.product.getInputs()))
      if (size_t dim = term.find(pair.letter); dim != StringRef::npos)
        mapping.map(operand, makeSlice(builder, operand, int64_t(dim), part, parts));
    for (Operation *op : {pair.product.getOperation(), pair.sum.getOperation()})
      builder.clone(*op, mapping)->getResult(0).setType(type);
    sums.push_back(mapping.lookup(pair.sum.getResult()));
  }
  auto whole = nn::ConcatOp::create(builder, pair.sum.getLoc(), pair.sum.getType(), sums, pair.dim);
  pair.sum->replaceAllUsesWith(whole);
  pair.sum->erase();
  pair.product->erase();
}

namespace {
struct ChunkCollectives : cleave::exec::impl::ChunkCollectivesBase<ChunkCollectives> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<cost::OpTimes> times = cost::OpTimes::get(getOperation());
    if (failed(times))
      return signalPassFailure();
    OwnFaults faults(&getContext());
    SmallVector<Pair> pairs;
    getOperation().walk([&](spmd::AllReduceOp op) {
      if (std::optional<Pair> pair = findPair(op))
        pairs.push_back(*pair);
    });
    numPairs += pairs.size();
    for (const Pair &pair : pairs) {
      int64_t parts = chooseParts(pair, chunks, *times);
      LDBG() << parts << (parts == 1 ? " part: " : " parts: ") << pair.sum;
      if (parts == 1)
        continue;
      ++numChunked;
      numParts += parts;
      split(pair, parts);
    }
  }
};
} // namespace
