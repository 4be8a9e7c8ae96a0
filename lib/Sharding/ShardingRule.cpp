//===- ShardingRule.cpp - building and printing rules ---------------------===//
//
// Rules are printed like an einsum with sizes: `([ij, k])->([i, j, k]) {i=2,j=4,k=8} reduce={..}`. Factors are named
// i, j, k, ... z, then i1, j1, ...
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ShardingRule.h"
#include "cleave/Sharding/WindowMoves.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

int ShardingRule::findSingleSplit(FactorId factor) const {
  auto *it = llvm::find_if(
      choices, [&](const Choice &choice) { return choice.factors.size() == 1 && choice.factors.front() == factor; });
  return it == choices.end() ? -1 : static_cast<int>(it - choices.begin());
}

bool ShardingRule::isParallel(FactorId factor) const {
  int split = findSingleSplit(factor);
  return split >= 0 && !choices[split].partial;
}

bool ShardingRule::isReduction(FactorId factor) const {
  int split = findSingleSplit(factor);
  return split >= 0 && choices[split].partial;
}

bool ShardingRule::allowsUneven(FactorId factor) const {
  auto hasOwnDims = [&](const TensorFactors &dims) {
    return llvm::all_of(dims,
                        [&](const DimFactors &dim) { return dim.size() == 1 || !llvm::is_contained(dim, factor); });
  };
  return findRegroup(factor) || (llvm::all_of(operands, hasOwnDims) && llvm::all_of(results, hasOwnDims));
}

const Regroup *ShardingRule::findRegroup(FactorId factor) const {
  const Regroup *found = llvm::find_if(regroups, [&](const Regroup &regroup) { return regroup.factor == factor; });
  return found == regroups.end() ? nullptr : found;
}

/// As atoms are dealt out to the factors of a dim, major ones first.
bool Regroup::isNeeded(int64_t size, llvm::ArrayRef<int64_t> pieces) {
  for (int64_t count : pieces) {
    if (size % count != 0)
      return size != 1;
    size /= count;
  }
  return false;
}

/// In positions of the dim of several factors: shards of the one side are pieces of all of them, those of the other whole positions of
/// the first factor.
DimWindow Regroup::getWindow(int64_t size, int64_t pieces) const {
  int64_t all = size * grain, fine = llvm::divideCeil(all, pieces), coarse = llvm::divideCeil(size, pieces) * grain;
  int64_t has = isOperand ? fine : coarse, wants = isOperand ? coarse : fine;
  DimWindow window{has, pieces, wants, 0, wants, Beyond::Nearest};
  window.missing = has * pieces - all;
  window.first = 0;
  window.end = all;
  window.takers = llvm::divideCeil(all, wants);
  return window;
}

std::optional<DimWindow> SlidingDim::getWindow(int64_t inputSize, int64_t resultSize, int64_t pieces) const {
  if (pieces == 1)
    return DimWindow::whole(picks ? resultSize : inputSize);
  int64_t extent = llvm::divideCeil(inputSize, pieces), made = llvm::divideCeil(resultSize, pieces);
  int64_t moved = made * stride, step = moved / share, takers = made == 0 ? 0 : llvm::divideCeil(resultSize, made);
  int64_t begin = low, end = high, all = resultSize * stride, present = inputSize;
  bool divides = extent * pieces == inputSize && made * pieces == resultSize;
  if (moved % share != 0) {
    if (!isTabled)
      return std::nullopt;
    // By whole periods of the samples; what is left of them adds up from piece to piece, and is read behind.
    step = made / share * stride;
    end += llvm::divideCeil(takers * made, share) * stride - takers * step;
  }
  // Of positions that are wanted, `low % picks` being the first.
  bool isPicked = picks > 1 && extent % picks == 0;
  if (isPicked) {
    int64_t phase = low % picks;
    begin = llvm::divideFloorSigned(low - phase, picks);
    end = llvm::divideCeilSigned(high - phase, picks);
    present = llvm::divideCeil(std::max<int64_t>(inputSize - phase, 0), picks);
    extent /= picks;
    step /= picks;
    all /= picks;
  }
  DimWindow window{extent, pieces, step, begin + std::min<int64_t>(step, 0), end + std::max<int64_t>(step, 0), beyond};
  if (divides)
    return window;
  window.missing = extent * pieces - present;
  // Padding of the result needs nothing: what lies before the first position or behind the last one does not travel.
  int64_t last = isPicked ? end : high;
  window.first = begin + std::min<int64_t>(llvm::divideFloorSigned(all, share), 0);
  window.end = last + std::max<int64_t>(llvm::divideCeilSigned(all, share), 0);
  window.takers = takers;
  return window;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

FactorId RuleBuilder::addFactor(int64_t size) {
  assert(size >= 2 && "a factor that nothing can cut");
  rule.factorSizes.push_back(size);
  return static_cast<FactorId>(rule.factorSizes.size()) - 1;
}

std::optional<FactorId> RuleBuilder::addParallel(int64_t size) {
  if (size < 2)
    return std::nullopt;
  FactorId factor = addFactor(size);
  addChoice({{factor}, {}, std::nullopt});
  return factor;
}

std::optional<FactorId> RuleBuilder::addReduction(int64_t size, ReductionKind kind,
                                                  llvm::ArrayRef<int32_t> partialOperands) {
  if (size < 2)
    return std::nullopt;
  FactorId factor = addFactor(size);
  addChoice({{factor}, llvm::to_vector<2>(partialOperands), kind});
  return factor;
}

SlidingDim RuleBuilder::addSliding(int64_t inputSize, int64_t resultSize) {
  assert(inputSize >= 2 && resultSize >= 2 && "a dim that nothing can cut");
  SlidingDim sliding;
  sliding.result = addFactor(resultSize);
  sliding.input = addFactor(inputSize);
  addChoice({{sliding.input, sliding.result}, {}, std::nullopt});
  return sliding;
}

RuleBuilder &RuleBuilder::operandDim(unsigned index, llvm::ArrayRef<FactorId> factors) {
  rule.operands[index].emplace_back(factors.begin(), factors.end());
  return *this;
}

RuleBuilder &RuleBuilder::resultDim(unsigned index, llvm::ArrayRef<FactorId> factors) {
  rule.results[index].emplace_back(factors.begin(), factors.end());
  return *this;
}

static llvm::ArrayRef<FactorId> asList(const std::optional<FactorId> &factor) {
  return factor ? llvm::ArrayRef<FactorId>(*factor) : llvm::ArrayRef<FactorId>();
}

RuleBuilder &RuleBuilder::operandDim(unsigned index, std::optional<FactorId> factor) {
  return operandDim(index, asList(factor));
}

RuleBuilder &RuleBuilder::resultDim(unsigned index, std::optional<FactorId> factor) {
  return resultDim(index, asList(factor));
}

RuleBuilder &RuleBuilder::addChoice(Choice choice) {
  rule.choices.push_back(std::move(choice));
  return *this;
}

RuleBuilder &RuleBuilder::addLinear(llvm::ArrayRef<int32_t> operands, ReductionKind kind) {
  return addChoice({{}, llvm::to_vector<2>(operands), kind});
}

RuleBuilder &RuleBuilder::addInner(InnerCost cost) {
  rule.inner.push_back(std::move(cost));
  return *this;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string cleave::spmd::nameOfFactor(FactorId factor) {
  constexpr int kLetters = 'z' - 'i' + 1;
  std::string name(1, static_cast<char>('i' + factor % kLetters));
  return factor < kLetters ? name : name + std::to_string(factor / kLetters);
}

static std::string join(llvm::ArrayRef<FactorId> factors) {
  if (factors.empty())
    return "1";
  std::string text;
  for (FactorId factor : factors)
    text += nameOfFactor(factor);
  return text;
}

static void printTensors(llvm::raw_ostream &os, llvm::ArrayRef<TensorFactors> tensors) {
  os << '(';
  llvm::interleave(
      tensors, os,
      [&](const TensorFactors &dims) {
        os << '[';
        llvm::interleave(dims, os, [&](const DimFactors &factors) { os << join(factors); }, ",");
        os << ']';
      },
      ",");
  os << ')';
}

static void printFactorSet(llvm::raw_ostream &os, llvm::StringRef label, llvm::ArrayRef<FactorId> factors) {
  if (factors.empty())
    return;
  os << ' ' << label << "={";
  llvm::interleave(factors, os, [&](FactorId factor) { os << nameOfFactor(factor); }, ",");
  os << '}';
}

/// What is split together: ` exchange={l>k,o>n}`, inputs before results.
static void printPairs(llvm::raw_ostream &os, const ShardingRule &rule) {
  auto isResult = [&](FactorId factor) {
    return llvm::any_of(rule.results, [&](const TensorFactors &dims) {
      return llvm::any_of(dims, [&](const DimFactors &dim) { return llvm::is_contained(dim, factor); });
    });
  };
  auto pairs = llvm::make_filter_range(rule.choices, [](const Choice &choice) { return choice.factors.size() > 1; });
  if (pairs.empty())
    return;
  os << " exchange={";
  llvm::interleave(
      pairs, os,
      [&](const Choice &choice) {
        llvm::SmallVector<FactorId> inputs, results;
        for (FactorId factor : choice.factors)
          (isResult(factor) ? results : inputs).push_back(factor);
        os << join(inputs) << '>' << join(results);
      },
      ",");
  os << '}';
}

llvm::raw_ostream &cleave::spmd::operator<<(llvm::raw_ostream &os, const ShardingRule &rule) {
  printTensors(os, rule.operands);
  os << "->";
  printTensors(os, rule.results);
  os << " {";
  llvm::SmallVector<FactorId> all = llvm::to_vector(llvm::seq<FactorId>(0, rule.factorSizes.size()));
  llvm::interleave(
      all, os, [&](FactorId factor) { os << nameOfFactor(factor) << '=' << rule.factorSizes[factor]; }, ",");
  os << '}';
  llvm::SmallVector<FactorId> reduced, replicated;
  for (FactorId factor : all) {
    if (rule.isReduction(factor))
      reduced.push_back(factor);
    bool isSplit = llvm::any_of(rule.choices, [&](const Choice &c) { return llvm::is_contained(c.factors, factor); });
    if (!isSplit)
      replicated.push_back(factor);
  }
  printFactorSet(os, "reduce", reduced);
  printFactorSet(os, "replicate", replicated);
  printFactorSet(os, "ordered", rule.orderedFactors);
  printPairs(os, rule);
  for (const Choice &choice : rule.choices) {
    if (!choice.factors.empty() || choice.partialOperands.empty())
      continue;
    os << " linear(" << stringifyReductionKind(*choice.partial) << ")={";
    llvm::interleave(choice.partialOperands, os, [&](int32_t operand) { os << operand; }, ",");
    os << '}';
  }
  if (!rule.mustReplicate.empty())
    os << " must_replicate=\"" << rule.mustReplicate << '"';
  return os;
}
