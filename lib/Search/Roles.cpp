//===- Roles.cpp - what each weight is to the model -----------------------===//
//
// Attention is found first, and what makes its operands; then other products in pairs; then tables and vectors by the op
// that reads them. What is made of a parameter alone (a cast, a transpose) is that parameter.
//
//   x ──┬─ query ──┐
//       ├─ key ────┴─ scores ── softmax ──┐
//       └─ value ─────────────────────────┴─ mix ── output ── + ── norm ──┬─ gate ── silu ──┐
//                                                                         └─ up ────────────┴─ * ── down ── +
//
// Walks go from product to product. They end at rows, for what is behind a norm is the next part of a layer.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/Roles.h"
#include "Repeats.h"
#include "cleave/Search/ClassColoring.h"
#include "cleave/Sharding/Fusion.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <map>
#include <queue>

using namespace cleave::spmd;
using namespace llvm;

/// In the order of the enum, whichever was found first.
std::string cleave::spmd::describe(RoleKinds kinds) {
  std::string text;
  for (unsigned kind = 0; kind < std::size(kRoleWords); ++kind)
    if (kinds & (RoleKinds(1) << kind))
      text += (text.empty() ? "" : ", ") + kRoleWords[kind].str();
  return text;
}

namespace {

/// Walks end behind so many ops: what is farther is another block.
constexpr unsigned kFarthest = 24;

/// Marks products first, by op; weights then have the marks of what reads them.
class RoleFinder {
public:
  RoleFinder(const Problem &problem, const std::vector<char> &isGiven, const std::vector<char> &isWeight)
      : problem(problem), classes(problem), isGiven(isGiven), isWeight(isWeight),
        isOfCall(findDependents(problem, isGiven)), isOfWeight(findWeights(problem, classes)),
        kinds(problem.numValues(), 0) {}

  std::vector<Role> run();

private:
  using Reached = std::vector<std::pair<OpId, unsigned>>;

  const ShardingRule &ruleOf(OpId op) const { return problem.rule(problem.ruleOf(op)); }
  bool isProduct(OpId op) const { return ruleOf(op).flops > 0; }
  bool isOfWeights(OpId op) const {
    return any_of(problem.operands(op), [&](ValueId operand) { return isOfWeight[operand]; });
  }
  void findUses();
  Reached walkUp(ValueId from, bool throughRows) const;
  Reached walkDown(ValueId from, bool throughRows) const;
  void mark(OpId product, RoleKind kind);
  void findAttention();
  std::optional<OpId> findScores(ValueId probabilities) const;
  unsigned findKeys(OpId scores, OpId mix, unsigned probabilities) const;
  void markMakers(ValueId operand, RoleKind kind);
  void findProducts();
  RoleKind judgeConvolution(OpId op, FactorId taken) const;
  bool isOfExperts(OpId op) const;
  void pairProducts();
  std::optional<FactorId> findBroughtExperts(OpId op) const;
  bool isRouter(OpId op) const;
  void findGate(ArrayRef<OpId> ups);
  void findOthers();
  RoleKind judgeOther(OpId op, unsigned operand) const;
  bool isDepthwise(OpId op) const;
  bool isSorted(ValueId value) const;
  bool dependsOnCall(ValueId value) const { return isOfCall[value]; }

  const Problem &problem;
  DimClasses classes;
  const std::vector<char> &isGiven, &isWeight;
  /// By value, whether a call changes it: a table that is looked up by others is one of positions.
  std::vector<char> isOfCall;
  /// By value, whether it is of parameters, or a matrix of an expert that is picked out of one.
  std::vector<char> isOfWeight;
  /// By value, who reads it: op and number of the operand.
  std::vector<std::vector<std::pair<OpId, unsigned>>> users;
  /// By value: of a parameter its kinds, of what is made of it alone the parameters.
  std::vector<RoleKinds> kinds;
  std::vector<SmallVector<ValueId, 1>> parametersOf;
  std::vector<RoleKinds> productKinds;
};

} // namespace

void RoleFinder::findUses() {
  users.resize(problem.numValues());
  parametersOf.resize(problem.numValues());
  for (ValueId value = 0; value < problem.numValues(); ++value)
    if (isWeight[value])
      parametersOf[value].push_back(value);
  for (OpId op = 0; op < problem.numOps(); ++op)
    for (auto [index, operand] : enumerate(problem.operands(op))) {
      users[operand].emplace_back(op, index);
      for (ValueId result : problem.results(op)) {
        if (isOfWeight[result])
          append_range(parametersOf[result], parametersOf[operand]);
      }
    }
}

/// Products above a value, nothing multiplied between, and how many ops away. Rows are statistics: they are another matter.
RoleFinder::Reached RoleFinder::walkUp(ValueId from, bool throughRows) const {
  Reached products;
  DenseSet<ValueId> seen{from};
  std::queue<std::pair<ValueId, unsigned>> left;
  left.emplace(from, 0);
  while (!left.empty()) {
    auto [value, depth] = left.front();
    left.pop();
    OpId op = problem.producer(value);
    if (op == kNone || depth > kFarthest || isOfWeight[value])
      continue;
    if (isProduct(op)) {
      products.emplace_back(op, depth);
      continue;
    }
    if (isRowForm(ruleOf(op).form) && !throughRows)
      continue;
    for (ValueId operand : problem.operands(op))
      if (seen.insert(operand).second)
        left.emplace(operand, depth + 1);
  }
  return products;
}

/// The same below it.
RoleFinder::Reached RoleFinder::walkDown(ValueId from, bool throughRows) const {
  Reached reached;
  DenseSet<OpId> seen;
  std::queue<std::pair<ValueId, unsigned>> left;
  left.emplace(from, 0);
  while (!left.empty()) {
    auto [value, depth] = left.front();
    left.pop();
    for (auto [op, index] : users[value]) {
      if (depth > kFarthest || !seen.insert(op).second)
        continue;
      reached.emplace_back(op, depth + 1);
      if (isProduct(op) || (isRowForm(ruleOf(op).form) && !throughRows))
        continue;
      for (ValueId result : problem.results(op))
        left.emplace(result, depth + 1);
    }
  }
  return reached;
}

/// The weights of a product, and what is added to it.
void RoleFinder::mark(OpId product, RoleKind kind) { productKinds[product] |= toKinds(kind); }

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The product of activations behind whose rows a value is.
std::optional<OpId> RoleFinder::findScores(ValueId probabilities) const {
  for (auto [op, depth] : walkUp(probabilities, /*throughRows=*/true))
    if (!isOfWeights(op) && depth > 0 && ruleOf(op).form != Form::Attention)
      return op;
  return std::nullopt;
}

/// The operand of scores that has the positions over which `mix` sums; dims keep their places, counted from the last.
unsigned RoleFinder::findKeys(OpId scores, OpId mix, unsigned probabilities) const {
  const ShardingRule &rule = ruleOf(mix), &made = ruleOf(scores);
  const TensorFactors &dims = rule.operands[probabilities];
  for (auto [index, factors] : enumerate(dims)) {
    if (factors.empty() || standsIn(rule.results[0], factors.front()))
      continue;
    size_t fromEnd = dims.size() - index;
    if (fromEnd > made.results[0].size())
      continue;
    const DimFactors &found = made.results[0][made.results[0].size() - fromEnd];
    if (!found.empty())
      return standsIn(made.operands[0], found.front()) ? 0 : 1;
  }
  return 1;
}

/// Products with weights above an operand: through biases, reshapes, rotations and norms of heads.
void RoleFinder::markMakers(ValueId operand, RoleKind kind) {
  for (auto [op, depth] : walkUp(operand, /*throughRows=*/true))
    if (isOfWeights(op))
      mark(op, kind);
}

/// The second product of attention tells all: its other operand are values, behind its rows are scores, and what follows is the output.
void RoleFinder::findAttention() {
  for (OpId op = 0; op < problem.numOps(); ++op) {
    ArrayRef<ValueId> operands = problem.operands(op);
    if (!isProduct(op) || isOfWeights(op) || operands.size() < 2)
      continue;
    bool isAttention = ruleOf(op).form == Form::Attention;
    if (isAttention && operands.size() > 2) {
      markMakers(operands[0], RoleKind::Query);
      markMakers(operands[1], RoleKind::Key);
      markMakers(operands[2], RoleKind::Value);
    }
    for (unsigned index = 0; index < 2 && !isAttention; ++index)
      if (std::optional<OpId> scores = findScores(operands[index])) {
        unsigned keys = findKeys(*scores, op, index);
        markMakers(problem.operands(*scores)[keys], RoleKind::Key);
        markMakers(problem.operands(*scores)[1 - keys], RoleKind::Query);
        markMakers(operands[1 - index], RoleKind::Value);
        isAttention = true;
      }
    if (!isAttention)
      continue;
    for (auto [below, depth] : walkDown(problem.results(op).front(), /*throughRows=*/false))
      if (isProduct(below) && isOfWeights(below))
        mark(below, RoleKind::AttentionOutput);
  }
}

//===----------------------------------------------------------------------===//
// Other products
//===----------------------------------------------------------------------===//

/// Some channels in the weight, the operand and the result.
bool RoleFinder::isDepthwise(OpId op) const {
  const ShardingRule &rule = ruleOf(op);
  for (FactorId factor = 0; factor < static_cast<FactorId>(rule.factorSizes.size()); ++factor)
    if (rule.operands.size() > 1 && standsIn(rule.operands[0], factor) && standsIn(rule.operands[1], factor) &&
        standsIn(rule.results[0], factor))
      return true;
  return false;
}

/// Experts of a product that its weight alone brings: "nd,de->ne" and "nd,edf->nef" have some, "ned,edf->nef" has none.
std::optional<FactorId> RoleFinder::findBroughtExperts(OpId op) const {
  const ShardingRule &rule = ruleOf(op);
  for (const DimFactors &factors : rule.results[0])
    for (FactorId factor : factors)
      if (classes.getTag(classes.ofFactor(op, factor)) == DimTag::Expert &&
          none_of(zip(rule.operands, problem.operands(op)), [&](const auto &operand) {
            auto [dims, value] = operand;
            return !classes.isOfParameters(value) && standsIn(dims, factor);
          }))
        return factor;
  return std::nullopt;
}

/// What it finds is sorted, or is one number for each expert: a weight that makes more of each is an expert itself.
bool RoleFinder::isRouter(OpId op) const {
  const ShardingRule &rule = ruleOf(op);
  if (std::optional<FactorId> experts = findBroughtExperts(op))
    return none_of(zip(rule.operands, problem.operands(op)), [&](const auto &operand) {
      auto [dims, value] = operand;
      return classes.isOfParameters(value) && standsIn(dims, *experts) && any_of(dims, [&](const DimFactors &factors) {
               return any_of(factors, [&](FactorId factor) {
                 return factor != *experts && rule.factorSizes[factor] > 1 && standsIn(rule.results[0], factor);
               });
             });
    });
  return any_of(walkDown(problem.results(op).front(), /*throughRows=*/true),
                [&](auto reached) { return ruleOf(reached.first).form == Form::Sort; });
}

/// Coloring leaves those whole that read an input, or make what nothing sums over.
RoleKind RoleFinder::judgeConvolution(OpId op, FactorId taken) const {
  if (isDepthwise(op))
    return RoleKind::ConvolutionDepthwise;
  if (taken < 0)
    return RoleKind::Convolution;
  return ruleOf(op).isReduction(taken) ? RoleKind::ConvolutionRow : RoleKind::ConvolutionColumn;
}

/// A product for each; or for each token with what is picked. What routes tokens is known before.
bool RoleFinder::isOfExperts(OpId op) const {
  for (ValueId operand : problem.operands(op))
    if (isOfWeight[operand] && !classes.isOfParameters(operand))
      return true;
  if (findBroughtExperts(op))
    return true;
  const ShardingRule &rule = ruleOf(op);
  return any_of(seq<FactorId>(0, rule.factorSizes.size()), [&](FactorId factor) {
    return classes.getTag(classes.ofFactor(op, factor)) == DimTag::Expert && standsIn(rule.results[0], factor) &&
           all_of(rule.operands, [&](const TensorFactors &dims) { return standsIn(dims, factor); });
  });
}

/// Attention is known by now. An input is given whole, so that its channels are none to be cut.
void RoleFinder::findProducts() {
  DenseSet<DimClassId> ofInputs;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    for (unsigned dim = 0; isGiven[value] && dim < problem.shape(value).size(); ++dim)
      ofInputs.insert(classes.ofDim(value, dim));
  ClassColoring coloring = colorClasses(problem, classes, 2, [&](DimClassId id) {
    return classes.getTag(id) == DimTag::Weight && !ofInputs.contains(id);
  });
  for (OpId op = 0; op < problem.numOps(); ++op)
    if (isProduct(op) && isOfWeights(op) && ruleOf(op).form == Form::Convolution)
      productKinds[op] = toKinds(judgeConvolution(op, coloring.factors[op]));
  pairProducts();
}

/// In order: a product is down if it reads what ups made, and up otherwise. Of those behind which no down is, some are heads.
void RoleFinder::pairProducts() {
  constexpr RoleKinds up = toKinds(RoleKind::Up) | toKinds(RoleKind::ExpertUp);
  DenseSet<OpId> paired;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    if (!isProduct(op) || !isOfWeights(op) || productKinds[op] != 0)
      continue;
    SmallVector<OpId, 2> ups;
    for (ValueId operand : problem.operands(op))
      for (auto [above, depth] : walkUp(operand, /*throughRows=*/false))
        if ((productKinds[above] & up) && !is_contained(ups, above))
          ups.push_back(above);
    if (isRouter(op))
      mark(op, RoleKind::Router);
    else if (ups.empty())
      mark(op, isOfExperts(op) ? RoleKind::ExpertUp : RoleKind::Up);
    else
      mark(op, isOfExperts(op) ? RoleKind::ExpertDown : RoleKind::Down);
    if (productKinds[op] & toKinds(RoleKind::Router))
      continue;
    paired.insert(ups.begin(), ups.end());
    findGate(ups);
  }
  for (OpId op = 0; op < problem.numOps(); ++op)
    if (productKinds[op] == toKinds(RoleKind::Up) && !paired.contains(op))
      productKinds[op] = toKinds(RoleKind::Head);
}

/// Where the results of two ups meet, the one that came farther has been through a nonlinearity.
void RoleFinder::findGate(ArrayRef<OpId> ups) {
  if (ups.size() != 2 || productKinds[ups[0]] != productKinds[ups[1]])
    return;
  DenseMap<OpId, unsigned> first;
  for (auto [op, depth] : walkDown(problem.results(ups[0]).front(), /*throughRows=*/false))
    first.try_emplace(op, depth);
  for (auto [op, depth] : walkDown(problem.results(ups[1]).front(), /*throughRows=*/false))
    if (auto met = first.find(op); met != first.end()) {
      if (met->second != depth)
        productKinds[ups[met->second > depth ? 0 : 1]] = toKinds(RoleKind::Gate);
      return;
    }
}

//===----------------------------------------------------------------------===//
// Tables and vectors
//===----------------------------------------------------------------------===//

/// A sort has found it, or places of what it found: experts of each token, and no words that a caller gives.
bool RoleFinder::isSorted(ValueId value) const {
  DenseSet<ValueId> seen{value};
  std::vector<ValueId> left{value};
  while (!left.empty()) {
    OpId op = problem.producer(left.back());
    left.pop_back();
    if (op == kNone || isProduct(op))
      continue;
    // What is asked for is how places came about, not what was sorted.
    if (ruleOf(op).form == Form::Sort)
      return true;
    for (ValueId operand : problem.operands(op))
      if (seen.insert(operand).second)
        left.push_back(operand);
  }
  return false;
}

/// Of a weight that is looked up, scaled by or added. What is next to a product is its bias; rows close above are those of a norm, whether
/// it is one op or written out.
RoleKind RoleFinder::judgeOther(OpId op, unsigned operand) const {
  const ShardingRule &rule = ruleOf(op);
  ArrayRef<ValueId> operands = problem.operands(op);
  if (isLookup(rule) && operand == 0 && isSorted(operands[1]))
    return RoleKind::Bias; // of an expert
  if (isLookup(rule) && operand == 0)
    return any_of(operands.drop_front(), [&](ValueId index) { return dependsOnCall(index); }) ? RoleKind::Embedding
                                                                                              : RoleKind::PositionTable;
  if (isRowForm(rule.form))
    return RoleKind::Norm;
  if (rule.form != Form::Map)
    return RoleKind::Other;
  // Mean, variance, scale and bias at once.
  if (count_if(operands, [&](ValueId value) { return classes.isOfParameters(value); }) > 1)
    return RoleKind::Norm;
  ArrayRef<int64_t> shape = problem.shape(operands[operand]);
  if (count_if(shape, [](int64_t extent) { return extent > 1; }) > 1)
    return RoleKind::PositionTable;
  bool hasRows = false;
  for (auto [index, other] : enumerate(operands)) {
    if (index == operand || classes.isOfParameters(other))
      continue;
    auto products = walkUp(other, /*throughRows=*/false);
    if (any_of(products, [](auto reached) { return reached.second <= 1; }))
      return RoleKind::Bias;
    // A row close above: statistics of what is scaled.
    DenseSet<ValueId> layer{other};
    for (unsigned depth = 0; depth < 8 && !hasRows; ++depth) {
      DenseSet<ValueId> next;
      for (ValueId value : layer)
        if (OpId maker = problem.producer(value); maker != kNone && !isProduct(maker)) {
          hasRows |= isRowForm(ruleOf(maker).form);
          next.insert(problem.operands(maker).begin(), problem.operands(maker).end());
        }
      layer = std::move(next);
    }
  }
  return hasRows ? RoleKind::Norm : RoleKind::Bias;
}

/// Every weight, by all that read it or what is made of it alone.
void RoleFinder::findOthers() {
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    if (parametersOf[value].empty())
      continue;
    for (auto [op, operand] : users[value]) {
      if (all_of(problem.results(op), [&](ValueId result) { return isOfWeight[result]; }))
        continue;
      ArrayRef<int64_t> shape = problem.shape(value);
      bool isVector = count_if(shape, [](int64_t extent) { return extent > 1; }) <= 1;
      RoleKinds found = !isProduct(op)            ? toKinds(judgeOther(op, operand))
                        : isVector && operand > 1 ? toKinds(RoleKind::Bias)
                                                  : productKinds[op];
      for (ValueId parameter : parametersOf[value])
        kinds[parameter] |= found;
    }
  }
}

/// Layers repeat in their products and norms. A bias is of the layer of what it follows; a table is of one that is around it.
static void numberBlocks(const Problem &problem, std::vector<Role> &roles) {
  constexpr RoleKinds beside = toKinds(RoleKind::Bias) | toKinds(RoleKind::PositionTable) | toKinds(RoleKind::Other);
  std::map<std::pair<RoleKinds, std::vector<int64_t>>, unsigned> alphabet;
  std::vector<unsigned> letters;
  std::vector<Role *> numbered;
  for (Role &role : roles)
    if (!(role.kinds & beside)) {
      letters.push_back(
          alphabet.try_emplace({role.kinds, problem.shape(role.weight).vec()}, alphabet.size()).first->second);
      numbered.push_back(&role);
    }
  for (auto [role, block] : zip(numbered, numberRepeats(letters)))
    role->block = block;
  unsigned before = 0;
  size_t next = 0;
  for (Role &role : roles) {
    if (!(role.kinds & beside)) {
      before = role.block;
      ++next;
    } else if (role.kinds & toKinds(RoleKind::Bias)) {
      role.block = before;
    } else if (next < numbered.size() && numbered[next]->block == before) {
      role.block = before;
    }
  }
}

/// Weights in the order in which ops read them, which exporters keep.
std::vector<Role> RoleFinder::run() {
  findUses();
  productKinds.assign(problem.numOps(), 0);
  findAttention();
  findProducts();
  findOthers();
  std::vector<std::pair<OpId, ValueId>> order;
  for (ValueId value = 0; value < problem.numValues(); ++value)
    if (kinds[value] != 0)
      order.emplace_back(users[value].front().first, value);
  llvm::sort(order);
  std::vector<Role> roles;
  for (auto [op, value] : order)
    roles.push_back({value, kinds[value], 0});
  numberBlocks(problem, roles);
  return roles;
}

std::vector<Role> cleave::spmd::findRoles(const Problem &problem, const std::vector<char> &isGiven,
                                          const std::vector<char> &isWeight) {
  return RoleFinder(problem, isGiven, isWeight).run();
}
