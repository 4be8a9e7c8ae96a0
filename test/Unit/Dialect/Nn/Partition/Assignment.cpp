//===- Assignment.cpp - a choice of a rule for each mesh axis -------------===//
//
// What a rule says of an assignment, counted position by position: whether it may be, and how many bytes the op sends
// inside. Written from what rules mean, apart from the formulas by which decisions are made.
//
//===----------------------------------------------------------------------===//
#include "Assignment.h"
#include "cleave/Sharding/WindowMoves.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace cleave::spmd;

static bool divides(const ShardingRule &rule, FactorId factor, int64_t pieces) {
  return rule.factorSizes[factor] % pieces == 0;
}

/// In a dim, a minor factor is split only where the majors are full.
static bool nests(const ShardingRule &rule, const Assignment &assignment, const DimFactors &factors) {
  bool areMajorsFull = true;
  for (FactorId factor : factors) {
    int64_t extent = assignment.getExtent(assignment.getSplits(rule, factor));
    if (extent > 1 && !areMajorsFull)
      return false;
    areMajorsFull &= extent == rule.factorSizes[factor];
  }
  return true;
}

/// Whether the result of a slide is split by a choice of its own, over axes that do not split the input: then nothing moves.
static bool isApart(const ShardingRule &rule, const Assignment &assignment, const SlidingDim &slide) {
  auto input = assignment.getSplits(rule, slide.input), result = assignment.getSplits(rule, slide.result);
  return llvm::any_of(rule.choices, [&](const Choice &choice) { return choice.factors == ArrayRef(slide.result); }) &&
         llvm::none_of(result, [&](unsigned axis) { return llvm::is_contained(input, axis); });
}

bool Assignment::isValid(const ShardingRule &rule) const {
  std::optional<ReductionKind> kind;
  for (unsigned choice : choices) {
    std::optional<ReductionKind> other = rule.choices[choice].partial;
    if (kind && other && *kind != *other)
      return false;
    kind = other ? other : kind;
  }
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor)
    if (!divides(rule, factor, getExtent(getSplits(rule, factor))) && !rule.allowsUneven(factor))
      return false;
  unsigned regrouped = 0;
  for (const Regroup &regroup : rule.regroups) {
    SmallVector<unsigned> splits = llvm::to_vector(getSplits(rule, regroup.factor));
    if (divides(rule, regroup.factor, getExtent(splits)))
      continue;
    SmallVector<int64_t> primes;
    for (unsigned axis : splits)
      for (int64_t left = mesh[axis], prime = 2; left > 1; left % prime ? ++prime : left /= prime)
        if (left % prime == 0)
          primes.push_back(prime);
    if (++regrouped > 1 || !Regroup::isNeeded(rule.factorSizes[regroup.factor], primes))
      return false;
  }
  for (const InnerCost &cost : rule.inner)
    for (const SlidingDim &slide : cost.slides)
      if (int64_t pieces = getExtent(getSplits(rule, slide.result));
          pieces > 1 && slide.input >= 0 && !isApart(rule, *this, slide) &&
          ((!slide.isTabled &&
            llvm::divideCeil(rule.factorSizes[slide.result], pieces) * slide.stride % slide.share != 0) ||
           getSplits(rule, slide.input) != getSplits(rule, slide.result)))
        return false;
  auto dimsNest = [&](const TensorFactors &dims) {
    return llvm::all_of(dims, [&](const DimFactors &factors) { return nests(rule, *this, factors); });
  };
  return llvm::all_of(rule.operands, dimsNest) && llvm::all_of(rule.results, dimsNest);
}

/// Where the interval of piece `piece` begins, which a rank needs along a dim that slides; as long as it is. Of a result that
/// does not divide, the last pieces have fewer positions, or none.
static std::pair<int64_t, int64_t> getInterval(const ShardingRule &rule, const SlidingDim &slide, int64_t pieces,
                                               int64_t piece) {
  int64_t all = rule.factorSizes[slide.result], made = llvm::divideCeil(all, pieces);
  int64_t first = std::min(piece * made, all), last = std::min(first + made, all);
  if (first == last)
    return {0, 0};
  if (slide.stride < 0)
    std::swap(first, last);
  if (slide.isTabled && made * slide.stride % slide.share != 0) { // whole periods of the samples, at one distance
    int64_t step = made / slide.share * slide.stride, takers = llvm::divideCeil(all, made),
            width = llvm::divideCeil(takers * made, slide.share) * slide.stride - (takers - 1) * step;
    int64_t start = piece * step + slide.low,
            end = std::min(piece * step + width, all / slide.share * slide.stride) + slide.high;
    return {start, std::max<int64_t>(end - start, 0)};
  }
  int64_t start = llvm::divideFloorSigned(first * slide.stride, slide.share) + slide.low;
  return {start, llvm::divideCeilSigned(last * slide.stride, slide.share) + slide.high - start};
}

/// The positions that a rank needs for piece `piece` along a dim that slides: an interval, or what a slice picks of it.
static SmallVector<int64_t> getWanted(const ShardingRule &rule, const SlidingDim &slide, int64_t pieces,
                                      int64_t piece) {
  int64_t all = rule.factorSizes[slide.result], input = rule.factorSizes[slide.input],
          made = llvm::divideCeil(all, pieces);
  SmallVector<int64_t> wanted;
  if (slide.picks > 1 && llvm::divideCeil(input, pieces) % slide.picks == 0) {
    int64_t start = slide.stride > 0 ? slide.low : slide.low + slide.stride;
    for (int64_t o = piece * made; o < std::min((piece + 1) * made, all); ++o)
      wanted.push_back(start + o * slide.stride);
    return wanted;
  }
  auto [start, count] = getInterval(rule, slide, pieces, piece);
  for (int64_t at = start; at < start + count; ++at)
    wanted.push_back(at);
  return wanted;
}

/// Where a position beyond the ends comes from.
static int64_t bringInside(Beyond beyond, int64_t position, int64_t whole) {
  if (beyond == Beyond::Wrap)
    return (position % whole + whole) % whole;
  if (beyond == Beyond::Reflect && position < 0)
    position = -position;
  if (beyond == Beyond::Reflect && position >= whole)
    position = 2 * (whole - 1) - position;
  return std::min(std::max<int64_t>(position, 0), whole - 1);
}

/// Position by position: what each rank of the group needs, and whose it is. `sent` is by rank.
static void countExchanged(const ShardingRule &rule, const Assignment &assignment, ArrayRef<SlidingDim> slides,
                           int64_t source, int64_t target, std::vector<int64_t> &sent) {
  if (slides.empty()) {
    sent.resize(std::max<size_t>(sent.size(), source + 1));
    sent[source] += source != target;
    return;
  }
  const SlidingDim &slide = slides.front();
  int64_t whole = rule.factorSizes[slide.input],
          pieces = assignment.getExtent(assignment.getSplits(rule, slide.result));
  if (pieces == 1 || isApart(rule, assignment, slide)) { // nothing moves along it
    whole = slide.picks ? rule.factorSizes[slide.result]
                        : llvm::divideCeil(whole, assignment.getExtent(assignment.getSplits(rule, slide.input)));
    for (int64_t position = 0; position < whole; ++position)
      countExchanged(rule, assignment, slides.drop_front(), source, target, sent);
    return;
  }
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t position : getWanted(rule, slide, pieces, piece)) {
      bool isThere = position >= 0 && position < whole;
      int64_t from = bringInside(slide.beyond, position, whole);
      if (isThere || slide.beyond != Beyond::Fill)
        countExchanged(rule, assignment, slides.drop_front(), source * pieces + from / llvm::divideCeil(whole, pieces),
                       target * pieces + piece, sent);
    }
}

/// Position by position of the dim that has several factors: whose it is by pieces of the one dim, and who needs it by those of the
/// other.
static int64_t countRegrouped(const ShardingRule &rule, const Assignment &assignment, const Regroup &regroup) {
  int64_t size = rule.factorSizes[regroup.factor],
          pieces = assignment.getExtent(assignment.getSplits(rule, regroup.factor));
  if (size % pieces == 0)
    return 0;
  int64_t all = size * regroup.grain, own = llvm::divideCeil(all, pieces),
          others = llvm::divideCeil(size, pieces) * regroup.grain;
  std::vector<int64_t> sent(pieces);
  for (int64_t position = 0; position < all; ++position)
    if (int64_t source = position / (regroup.isOperand ? own : others),
        target = position / (regroup.isOperand ? others : own);
        source != target)
      ++sent[source];
  int64_t bytes = regroup.elementBytes * *llvm::max_element(sent);
  for (FactorId factor : regroup.elementFactors)
    bytes *= llvm::divideCeil(rule.factorSizes[factor], assignment.getExtent(assignment.getSplits(rule, factor)));
  return bytes;
}

int64_t Assignment::getInnerBytes(const ShardingRule &rule) const {
  int64_t total = 0;
  for (const Regroup &regroup : rule.regroups)
    total += countRegrouped(rule, *this, regroup);
  for (const InnerCost &cost : rule.inner) {
    int64_t bytes = cost.elementScale * cost.elementBytes;
    SmallVector<unsigned> group;
    for (FactorId factor : cost.factors)
      for (unsigned axis : getSplits(rule, factor))
        if (!llvm::is_contained(group, axis))
          group.push_back(axis);
    int64_t ranks = getExtent(group);
    if (cost.unless >= 0 && ranks > 1 && llvm::equal(getSplits(rule, cost.unless), group))
      continue;
    for (FactorId factor : cost.elementFactors)
      bytes *= llvm::divideCeil(rule.factorSizes[factor], getExtent(getSplits(rule, factor)));
    if (!cost.slides.empty()) {
      std::vector<int64_t> sent(1);
      if (cost.kind == InnerCost::Kind::Exchange)
        countExchanged(rule, *this, cost.slides, 0, 0, sent);
      else // what a rank sends of each part adds up
        for (const SlidingDim &slide : cost.slides)
          if (slide.input >= 0)
            countExchanged(rule, *this, slide, 0, 0, sent);
          else // one position, of which the first rank's goes where it is wanted
            sent[0] += -slide.low >= int64_t(llvm::divideCeil(rule.factorSizes[slide.result], ranks));
      total += bytes * *llvm::max_element(sent);
      continue;
    }
    total += cost.times * (cost.kind == InnerCost::Kind::AllGather ? (ranks - 1) * bytes
                                                                   : llvm::divideCeil(2 * (ranks - 1) * bytes, ranks));
  }
  return total;
}
