//===- Styles.cpp - plans as people call them -----------------------------===//
//
// First classes are colored as if all divided: that says what the style is to this model. Then atom by atom, of what is left: a class takes
// part if it divides, and has a place of one that was wanted.
//
//   8 heads of queries = 2 of keys x 4 groups, on 4 = 2 x 2 ranks
//
//                  queries [.. 64]        keys [.. 16]
//   first atom     2 of 2 heads of keys   2 of 2 heads        one class: the first digit of both
//   second atom    2 of 4 groups          nothing             groups are what is left of the first digit of queries; of keys it is
//                                                             the dim that is summed over, which meets groups in the scores
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/Styles.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace cleave::spmd;
using namespace llvm;

/// Of the axis that `atoms` are.
static int64_t countRanks(const Problem &problem, ArrayRef<AtomId> atoms) { return problem.getMesh().product(atoms); }

/// `2, 3, 4, 6 or 12 would divide`.
static std::string listDivisors(int64_t extent) {
  std::vector<std::string> divisors;
  for (int64_t divisor = 2; divisor <= extent; ++divisor)
    if (extent % divisor == 0)
      divisors.push_back(std::to_string(divisor));
  std::string last = divisors.back();
  divisors.pop_back();
  return divisors.empty() ? last + " would divide" : join(divisors, ", ") + " or " + last + " would divide";
}

/// Nothing is cut yet.
StyledPlan::StyledPlan(const Problem &problem, StyledModel model) : problem(problem), model(std::move(model)) {
  DimClasses classes(problem);
  pieces.assign(classes.numPlaces(), 1);
  isOfWeights = findWeights(problem, classes);
  readers.resize(problem.numValues());
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (ValueId operand : problem.operands(op))
      readers[operand].push_back(op);
}

/// Of all its dims; the ones that nothing cuts stay whole.
StyledPlan::DimAtoms &StyledPlan::splitsOf(ValueId value) {
  DimAtoms &dims = splits[value];
  dims.resize(problem.shape(value).size());
  return dims;
}

/// Or what is cast or transposed of one.
bool StyledPlan::touchesParameter(OpId op) const {
  return any_of(problem.operands(op), [&](ValueId operand) { return isOfWeights[operand]; });
}

//===----------------------------------------------------------------------===//
// Classes, atom by atom
//===----------------------------------------------------------------------===//

/// By class: what its shortest place has left.
std::vector<int64_t> StyledPlan::findLeastExtents(const DimClasses &classes) const {
  std::vector<int64_t> least(classes.numPlaces(), std::numeric_limits<int64_t>::max());
  for (DimPlace place = 0; place < classes.numPlaces(); ++place)
    if (int64_t &extent = least[classes.ofPlace(place)]; classes.getExtent(place) > 1)
      extent = std::min(extent, classes.getExtent(place));
  return least;
}

/// Styles that cut weights say so of these, others of what a caller gives; all else follows.
bool StyledPlan::isRuled(ValueId value, DimTag tag) const {
  return tag == DimTag::Weight || tag == DimTag::Expert ? model.isWeight[value] : model.isGiven[value];
}

/// Where a value has several dims of classes that are cut, as weights between two residual streams do, an atom has room for one: the dim along
/// which a reader splits its work, or else the first, along which a product of weights is gathered and not summed.
std::optional<unsigned> StyledPlan::pickDim(const DimClasses &classes, const ClassColoring &coloring,
                                            ValueId value) const {
  SmallVector<unsigned, 2> dims;
  for (unsigned dim = 0; dim < problem.shape(value).size(); ++dim)
    if (coloring.isSplit[classes.ofDim(value, dim)] && classes.getExtent(classes.placeOfDim(value, dim)) > 1)
      dims.push_back(dim);
  if (dims.empty())
    return std::nullopt;
  for (OpId reader : readers[value])
    for (auto [operand, factors] : zip(problem.operands(reader), problem.rule(problem.ruleOf(reader)).operands))
      for (unsigned dim : dims)
        if (operand == value && dim < factors.size() && is_contained(factors[dim], coloring.factors[reader]))
          return dim;
  return dims.front();
}

/// The atom cuts these classes, wherever they are.
void StyledPlan::layAtom(const DimClasses &classes, const ClassColoring &coloring, DimTag tag, AtomId atom) {
  for (DimPlace place = 0; place < classes.numPlaces(); ++place)
    if (coloring.isSplit[classes.ofPlace(place)] && classes.getExtent(place) > 1)
      pieces[place] *= problem.getMesh().size(atom);
  for (ValueId value = 0; value < problem.numValues(); ++value)
    if (std::optional<unsigned> dim = isRuled(value, tag) ? pickDim(classes, coloring, value) : std::nullopt)
      splitsOf(value)[*dim].push_back(atom);
}

/// A class that no input has begins in the model, as tokens that are cut out of a picture: the first result that has it says so. Ids of tokens
/// are so little that they might be gathered, and looked up everywhere: what they look up is cut as well.
void StyledPlan::anchorResults(const DimClasses &classes, const ClassColoring &coloring, DimTag tag, AtomId atom) {
  DenseSet<DimClassId> anchored;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    for (unsigned dim = 0; isRuled(value, tag) && dim < problem.shape(value).size(); ++dim)
      anchored.insert(classes.ofDim(value, dim));
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    bool isOfIds = tag == DimTag::Token && isLookup(rule);
    for (auto [dims, result] : zip(rule.results, problem.results(op)))
      for (unsigned dim = 0; model.isNamed[result] && !classes.isOfParameters(result) && dim < dims.size(); ++dim) {
        if (dims[dim].empty() || !coloring.isSplit[classes.ofFactor(op, dims[dim].front())])
          continue;
        bool isFirst = anchored.insert(classes.ofFactor(op, dims[dim].front())).second;
        auto known = splits.find(result);
        bool isSplit = known != splits.end() &&
                       any_of(known->second, [&](const AtomList &atoms) { return is_contained(atoms, atom); });
        if (((isFirst && tag == DimTag::Token) || isOfIds) && !isSplit)
          splitsOf(result)[dim].push_back(atom);
      }
  }
}

/// `12 heads`, as a message has it.
std::string StyledPlan::nameOf(OpId op, DimTag tag, int64_t extent) const {
  switch (tag) {
  case DimTag::Expert:
    return formatv("{0} experts", extent);
  case DimTag::Batch:
    return formatv("a batch of {0}", extent);
  case DimTag::Token:
    return formatv("{0} tokens", extent);
  case DimTag::Picture:
    return formatv("{0} rows", extent);
  case DimTag::Weight:
    break;
  }
  Form form = problem.rule(problem.ruleOf(op)).form;
  return formatv("{0} {1}", extent,
                 form == Form::Convolution ? "channels"
                 : touchesParameter(op)    ? "columns"
                                           : "heads");
}

/// What is there, and which numbers of ranks would do.
static Error makeUndivided(const Twine &what, int64_t extent, int64_t ranks) {
  return cleave::makeError("{0} on {1} ranks: {2}; without --like, --uneven pads", what.str(), ranks,
                           listDivisors(extent));
}

/// Products that sum over what they are cut along, and those of activations alone, are cut as wanted or the style is not kept. Products of
/// keys may have fewer heads than there are ranks, and a vocabulary may stay whole.
Error StyledPlan::checkSplit(const DimClasses &whole, const ClassColoring &wanted, ArrayRef<int64_t> before, DimTag tag,
                             int64_t ranks) const {
  std::vector<int64_t> least = findLeastExtents(whole);
  auto leastOf = [&](OpId op) { return least[whole.ofFactor(op, wanted.factors[op])]; };
  bool isAnySplit = false;
  // What breaks the style, and what stays whole without breaking it.
  OpId broken = kNone, unsplit = kNone;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    FactorId factor = wanted.factors[op];
    if (factor < 0 || rule.flops == 0)
      continue;
    int64_t split = 1;
    for (FactorId other = 0; other < static_cast<FactorId>(rule.factorSizes.size()); ++other) {
      DimPlace place = whole.placeOf(op, other);
      split *= pieces[place] / before[place];
    }
    isAnySplit |= split > 1;
    if (split >= ranks)
      continue;
    bool isStrict = tag != DimTag::Weight || rule.isReduction(factor) || !touchesParameter(op);
    OpId &worst = isStrict ? broken : unsplit;
    // Of what does not divide, the least is what a user has to look at: heads, not columns.
    if (worst == kNone || leastOf(op) < leastOf(worst) || (touchesParameter(worst) && !touchesParameter(op)))
      worst = op;
  }
  if (broken == kNone && !isAnySplit)
    broken = unsplit;
  if (broken == kNone)
    return isAnySplit ? Error::success() : cleave::makeError("nothing of the model can be cut so");
  int64_t extent = leastOf(broken);
  // The class may have longer dims that do not divide where its least does.
  for (DimPlace place = 0; place < whole.numPlaces() && extent % ranks == 0; ++place)
    if (whole.ofPlace(place) == whole.ofFactor(broken, wanted.factors[broken]) && whole.getExtent(place) % ranks != 0 &&
        whole.getExtent(place) > 1)
      extent = whole.getExtent(place);
  if (extent % ranks == 0)
    return cleave::makeError(
        "a product of activations sums over {0} that would have to be cut: the style leaves these whole", extent);
  return makeUndivided(nameOf(broken, tag, extent), extent, ranks);
}

/// What was wanted is colored among classes that are left: those that divide among the next ranks, and have a place of a wanted class.
Error StyledPlan::splitColored(Eligible eligible, DimTag tag, ArrayRef<AtomId> atoms) {
  int64_t ranks = countRanks(problem, atoms);
  std::vector<int64_t> before = pieces;
  DimClasses whole(problem, pieces);
  ClassColoring wanted = colorClasses(problem, whole, ranks, [&](DimClassId id) { return eligible(whole, id); });
  for (auto [index, atom] : enumerate(atoms)) {
    DimClasses classes(problem, pieces);
    std::vector<int64_t> least = findLeastExtents(classes);
    int64_t size = problem.getMesh().size(atom);
    std::vector<char> isWanted(classes.numPlaces(), false), divides(classes.numPlaces(), true);
    for (DimPlace place = 0; place < classes.numPlaces(); ++place) {
      DimClassId id = classes.ofPlace(place);
      isWanted[id] |= wanted.isSplit[whole.ofPlace(place)];
      divides[id] &= classes.getExtent(place) == 1 || classes.getExtent(place) % size == 0;
    }
    // Behind the last head would come its numbers, which scores sum over.
    for (OpId op = 0; op < problem.numOps() && tag == DimTag::Weight; ++op) {
      const ShardingRule &rule = problem.rule(problem.ruleOf(op));
      for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor)
        if (rule.flops > 0 && !touchesParameter(op) && rule.isReduction(factor))
          divides[classes.ofFactor(op, factor)] = false;
    }
    ClassColoring coloring =
        colorClasses(problem, classes, size, [&](DimClassId id) { return isWanted[id] && divides[id]; });
    layAtom(classes, coloring, tag, atom);
    anchorResults(classes, coloring, tag, atom);
    if (index == 0)
      last = std::move(coloring);
  }
  return checkSplit(whole, wanted, before, tag, ranks);
}

//===----------------------------------------------------------------------===//
// The styles
//===----------------------------------------------------------------------===//

/// Classes that are never mixed and that some input has. What stands in parameters alone, or is made in the model, is no batch.
Error StyledPlan::splitBatch(ArrayRef<AtomId> atoms) {
  DimClasses classes(problem, pieces);
  std::vector<char> isOfInputs(classes.numPlaces(), false);
  bool any = false;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    for (unsigned dim = 0; model.isGiven[value] && dim < problem.shape(value).size(); ++dim)
      if (DimClassId id = classes.ofDim(value, dim);
          classes.getTag(id) == DimTag::Batch && classes.getExtent(classes.placeOfDim(value, dim)) > 1)
        any = isOfInputs[id] = true;
  if (!any)
    return cleave::makeError("no dim of an input is a batch of more than one: each is mixed somewhere in the model");
  return splitColored([&](const DimClasses &, DimClassId id) { return bool(isOfInputs[id]); }, DimTag::Batch, atoms);
}

/// All classes that meet themselves or are walked in order, colored: tokens of both texts of an encoder and a decoder.
Error StyledPlan::splitTokens(ArrayRef<AtomId> atoms) {
  auto isToken = [](const DimClasses &classes, DimClassId id) { return classes.getTag(id) == DimTag::Token; };
  DimClasses classes(problem, pieces);
  if (none_of(seq<DimPlace>(0, classes.numPlaces()),
              [&](DimPlace place) { return isToken(classes, classes.ofPlace(place)); }))
    return cleave::makeError("nothing mixes tokens: --like data cuts them");
  return splitColored(isToken, DimTag::Token, atoms);
}

/// Tokens are sent to their experts from wherever they are: that of a part of the batch, if it has as many.
Error StyledPlan::splitExperts(ArrayRef<AtomId> atoms) {
  auto isExpert = [](const DimClasses &classes, DimClassId id) { return classes.getTag(id) == DimTag::Expert; };
  DimClasses classes(problem, pieces);
  if (none_of(seq<DimPlace>(0, classes.numPlaces()),
              [&](DimPlace place) { return isExpert(classes, classes.ofPlace(place)); }))
    return cleave::makeError("no weight is picked by a router or has a batch of its own: the model has no experts");
  if (Error error = splitColored(isExpert, DimTag::Expert, atoms))
    return error;
  StyledPlan withBatch = *this;
  Error without = withBatch.splitBatch(atoms);
  if (!without)
    splits = std::move(withBatch.splits);
  consumeError(std::move(without));
  return Error::success();
}

/// By class: a convolution or a window goes along it, whether or not neighbors then exchange anything.
static std::vector<char> findPictures(const Problem &problem, const DimClasses &classes) {
  std::vector<char> found(classes.numPlaces(), false);
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    if (rule.form != Form::Convolution && rule.form != Form::Window)
      continue;
    for (const DimFactors &factors :
         ArrayRef(rule.operands[0]).drop_front(std::min<size_t>(2, rule.operands[0].size())))
      if (!factors.empty())
        found[classes.ofFactor(op, factors.front())] = true;
  }
  return found;
}

/// The first such dim of each input.
Error StyledPlan::splitPictures(ArrayRef<AtomId> atoms) {
  int64_t ranks = countRanks(problem, atoms);
  DimClasses classes(problem, pieces);
  std::vector<char> isPicture = findPictures(problem, classes);
  bool any = false;
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    for (unsigned dim = 0; model.isGiven[value] && dim < problem.shape(value).size(); ++dim) {
      DimClassId id = classes.ofDim(value, dim);
      if (classes.getTag(id) != DimTag::Picture && !isPicture[id])
        continue;
      if (int64_t left = classes.getExtent(classes.placeOfDim(value, dim)); left % ranks != 0)
        return makeUndivided(nameOf(0, DimTag::Picture, left), left, ranks);
      append_range(splitsOf(value)[dim], atoms);
      any = true;
      break;
    }
  }
  if (!any)
    return cleave::makeError("no window slides over an input: --like spatial is for pictures");
  return Error::success();
}

/// All classes of weights are colored together, experts aside.
Error StyledPlan::splitWeights(ArrayRef<AtomId> atoms) {
  // Rows of a table of positions are looked up in order, wherever the ranks' tokens are; and inputs are given whole.
  std::vector<char> isOfCall = findDependents(problem, model.isGiven);
  DimClasses classes(problem, pieces);
  std::vector<char> isTable(classes.numPlaces(), false), isMultiplied(classes.numPlaces(), false),
      isOfInput(classes.numPlaces(), false);
  for (ValueId value = 0; value < problem.numValues(); ++value)
    for (unsigned dim = 0; model.isGiven[value] && dim < problem.shape(value).size(); ++dim)
      isOfInput[classes.ofDim(value, dim)] = true;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    bool isOfConstants = none_of(problem.operands(op), [&](ValueId operand) { return isOfCall[operand]; });
    for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor) {
      isTable[classes.ofFactor(op, factor)] |= isOfConstants && isLookup(rule) && rule.isReduction(factor);
      isMultiplied[classes.ofFactor(op, factor)] |= rule.flops > 0;
    }
  }
  return splitColored(
      [&](const DimClasses &now, DimClassId id) {
        return now.getTag(id) == DimTag::Weight && !isOfInput[id] && (isMultiplied[id] || !isTable[id]);
      },
      DimTag::Weight, atoms);
}

/// Coloring knows no difference; the style is there to be refused where it makes no sense.
Error StyledPlan::splitChannels(ArrayRef<AtomId> atoms) {
  bool any = any_of(seq<OpId>(0, problem.numOps()),
                    [&](OpId op) { return problem.rule(problem.ruleOf(op)).form == Form::Convolution; });
  if (!any)
    return cleave::makeError("the model has no convolution: --like megatron cuts columns and rows of its weights");
  return splitWeights(atoms);
}

/// The dim of a result that has tokens; nothing: it has none.
static std::optional<unsigned> findTokenDim(const Problem &problem, const DimClasses &classes, ValueId value) {
  OpId op = problem.producer(value);
  const TensorFactors &dims = problem.rule(problem.ruleOf(op)).results[problem.resultIndex(value)];
  for (auto [dim, factors] : enumerate(dims))
    if (!factors.empty() && classes.getTag(classes.ofFactor(op, factors.front())) == DimTag::Token)
      return dim;
  return std::nullopt;
}

/// Where a sum is said to be cut: at itself, or at what its only reader makes of it, as long as that multiplies nothing. A product of merged
/// dims, or one with a bias, has no name of its own.
std::optional<std::pair<ValueId, unsigned>> StyledPlan::findScattered(const DimClasses &classes, OpId product) const {
  constexpr unsigned kFarthest = 6;
  ValueId value = problem.results(product).front();
  for (unsigned step = 0; step < kFarthest; ++step) {
    if (std::optional<unsigned> dim = findTokenDim(problem, classes, value); dim && model.isNamed[value])
      return std::pair(value, *dim);
    if (readers[value].size() != 1 || problem.rule(problem.ruleOf(readers[value].front())).flops > 0)
      break;
    value = problem.results(readers[value].front()).front();
  }
  return std::nullopt;
}

/// What sums leave is scattered along the tokens, and stays so until a product wants it whole.
Error StyledPlan::splitTokensBetween(ArrayRef<AtomId> atoms) {
  int64_t ranks = countRanks(problem, atoms);
  DimClasses classes(problem, pieces);
  bool any = false;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    if (last.factors[op] < 0 || !problem.rule(problem.ruleOf(op)).isReduction(last.factors[op]) ||
        !touchesParameter(op))
      continue;
    auto scattered = findScattered(classes, op);
    if (!scattered)
      continue;
    auto [value, dim] = *scattered;
    if (int64_t extent = problem.shape(value)[dim]; extent % ranks != 0)
      return makeUndivided(nameOf(op, DimTag::Token, extent), extent, ranks);
    AtomList &atomsOfDim = splitsOf(value)[dim];
    if (atomsOfDim.empty() || atomsOfDim.back() != atoms.back())
      atomsOfDim.append(atoms.begin(), atoms.end());
    any = true;
  }
  if (!any)
    return cleave::makeError("no tokens are between blocks that sum over weights: --like megatron cuts the weights");
  return Error::success();
}

/// The first dim that divides, of weights that are multiplied; of tables whose rows are looked up the last, for rows are then wherever tokens
/// are. Vectors, and what is added, are small.
void StyledPlan::storeWeights(ArrayRef<AtomId> atoms) {
  int64_t ranks = countRanks(problem, atoms);
  std::vector<char> isLookedUp(problem.numValues(), false), isMultiplied(problem.numValues(), false);
  double weights = 0, met = 0;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    const ShardingRule &rule = problem.rule(problem.ruleOf(op));
    if (isLookup(rule))
      isLookedUp[problem.operands(op).front()] = true;
    if (rule.flops == 0 || !touchesParameter(op))
      continue;
    for (ArrayRef<ValueId> values : {problem.operands(op), problem.results(op)})
      for (ValueId value : values) {
        isMultiplied[value] = true;
        (isOfWeights[value] ? weights : met) += problem.totalBytes(value);
      }
  }
  // What is cast or transposed is the weight that it is made of.
  for (OpId op = problem.numOps(); op-- > 0;)
    for (ValueId result : problem.results(op))
      for (ValueId operand : problem.operands(op)) {
        isMultiplied[operand] |= isOfWeights[result] && isMultiplied[result];
        isLookedUp[operand] |= isOfWeights[result] && isLookedUp[result];
      }
  if (weights > met)
    remarks.push_back(formatv("weights of {0:f2} MB meet activations of {1:f2} MB: of so small a batch activations are "
                              "sent instead of gathered weights where these are more bytes",
                              weights / 1e6, met / 1e6));
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    ArrayRef<int64_t> shape = problem.shape(value);
    if (!model.isWeight[value] || shape.size() < 2 || !(isMultiplied[value] || isLookedUp[value]))
      continue;
    auto fits = [&](unsigned dim) {
      int64_t atomsOfDim = problem.getMesh().product(splitsOf(value)[dim]);
      return shape[dim] % (atomsOfDim * ranks) == 0;
    };
    auto dims = to_vector(seq<unsigned>(0, shape.size()));
    if (isLookedUp[value])
      std::reverse(dims.begin(), dims.end());
    if (auto dim = find_if(dims, fits); dim != dims.end())
      splitsOf(value)[*dim].append(atoms.begin(), atoms.end());
  }
}

/// Styles that build on others cut what those do first, and fail where those do.
Error StyledPlan::apply(Style style, ArrayRef<AtomId> atoms) {
  switch (style) {
  case Style::Data:
    return splitBatch(atoms);
  case Style::Fsdp:
    if (Error error = splitBatch(atoms))
      return error;
    storeWeights(atoms);
    return Error::success();
  case Style::Megatron:
    return splitWeights(atoms);
  case Style::Sequence:
    if (Error error = splitWeights(atoms))
      return error;
    return splitTokensBetween(atoms);
  case Style::Context:
    return splitTokens(atoms);
  case Style::Expert:
    return splitExperts(atoms);
  case Style::Channels:
    return splitChannels(atoms);
  case Style::Spatial:
    return splitPictures(atoms);
  }
  llvm_unreachable("a style without a meaning");
}
