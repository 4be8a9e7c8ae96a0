//===- Clusters.cpp - which ops run as one kernel -------------------------===//
//
// Greedy, in one walk; each op looks at its operands and at no other op, so the time is linear. Clusters that become one
// are merged the smaller into the larger. The rules are in the header.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/RowSums.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

static std::optional<nn::Form> getForm(Operation *op) {
  auto form = dyn_cast<nn::FormOpInterface>(op);
  return form ? std::optional<nn::Form>(form.getForm()) : std::nullopt;
}

bool cleave::exec::isFusable(Operation *op) {
  std::optional<nn::Form> form = getForm(op);
  return form && op->getNumResults() == 1 && spmd::isFusableForm(*form);
}

bool cleave::exec::isAnchor(Operation *op) {
  if (auto einsum = dyn_cast<nn::EinsumOp>(op))
    return MatmulDims::get(einsum.getEquation(), einsum.getInputs().getTypes()).has_value();
  if (nn::sumsRows(op))
    return true;
  std::optional<nn::Form> form = getForm(op);
  return form && spmd::isAnchorForm(*form) && isa<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
}

bool cleave::exec::isView(Operation *op) { return nn::onlyMoves(op) && !getAliasOffset(op); }

/// True if `reader` can read through `op`. One transpose undoes another: somebody wants what is between in memory.
static bool readsThrough(Operation *reader, Operation *op) {
  return !isa<nn::TransposeOp>(op) || !isa<nn::TransposeOp>(reader);
}

bool cleave::exec::isNumber(Operation *op) {
  auto constant = dyn_cast_if_present<nn::ConstantOp>(op);
  auto value = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return value && value.isSplat();
}

/// Back to front, so that the readers of what is read through are known. At least one of them is an anchor.
void Clusters::findViews(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    if (!isView(&op))
      continue;
    bool isForAnchor = false, isForKernels = true;
    for (Operation *reader : op.getUsers()) {
      isForAnchor |= isAnchor(reader) || views.contains(reader);
      isForKernels &= (isAnchor(reader) || (isFusable(reader) && !getAliasOffset(reader))) && readsThrough(reader, &op);
    }
    if (isForAnchor && isForKernels)
      views.insert(&op);
  }
}

void Clusters::findEpilogues(Block &block) {
  for (Operation &op : block)
    if (isAnchor(&op) || (getForm(&op) == nn::Form::Map && llvm::any_of(op.getOperands(), [&](Value operand) {
                            return epilogues.contains(operand.getDefiningOp());
                          })))
      epilogues.insert(&op);
}

Clusters::Clusters(Block &block, const FusionCosts &costs) : costs(costs) {
  findViews(block);
  findEpilogues(block);
  for (Operation &op : block) {
    positions[&op] = positions.size();
    place(&op);
  }
  for (Cluster &cluster : clusters)
    llvm::sort(cluster.ops, [&](Operation *a, Operation *b) { return positions[a] < positions[b]; });
}

SmallVector<const Cluster *> Clusters::getAll() const {
  SmallVector<const Cluster *> all;
  for (const Cluster &cluster : clusters)
    if (!cluster.ops.empty())
      all.push_back(&cluster);
  auto lastOf = [&](const Cluster *cluster) {
    auto computing = llvm::find_if(llvm::reverse(cluster->ops), [](Operation *op) { return !getAliasOffset(op); });
    return positions.lookup(*computing);
  };
  llvm::sort(all, [&](const Cluster *a, const Cluster *b) { return lastOf(a) < lastOf(b); });
  return all;
}

const Cluster *Clusters::getCluster(Operation *op) const {
  auto found = clusterOf.find(op);
  return found == clusterOf.end() ? nullptr : &clusters[found->second];
}

std::optional<unsigned> Clusters::find(Value value) const {
  auto found = clusterOf.find(value.getDefiningOp());
  if (!value.getDefiningOp() || found == clusterOf.end() || !clusters[found->second].isOpen)
    return std::nullopt;
  return found->second;
}

void Clusters::closeReadClusters(Operation *op) {
  for (Value operand : op->getOperands())
    if (std::optional<unsigned> cluster = find(operand); cluster && clusterOf.lookup_or(op, -1u) != *cluster)
      clusters[*cluster].isOpen = false;
}

void Clusters::countUses(Operation *op, unsigned cluster) {
  for (Value operand : op->getOperands())
    if (find(operand) == cluster)
      --clusters[cluster].openUses;
  for (Value result : op->getResults())
    clusters[cluster].openUses += std::distance(result.use_begin(), result.use_end());
}

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

/// [batch, channels, spatial..] to [batch, spatial.., channels], or back.
static bool movesChannels(Operation *op) {
  SmallVector<int64_t> order(cast<nn::TransposeOp>(op).getPermutation());
  int64_t rank = order.size();
  if (rank < 3 || order.front() != 0)
    return false;
  bool isToLast = order.back() == 1, isToFirst = order[1] == rank - 1;
  order.erase(isToLast ? order.end() - 1 : order.begin() + 1);
  return (isToLast || isToFirst) && llvm::is_sorted(order);
}

/// More parts than this are not woven into the kernel of one of them: steps of a recurrent net, hundreds perhaps, would be code each.
constexpr unsigned kMostWoven = 16;

/// True for parts that ranks have exchanged one by one, or many, and that lie one behind the other: each is made where it belongs.
/// What belongs to two places is copied in any case.
static bool putsTogether(Operation *op) {
  auto concat = dyn_cast<nn::ConcatOp>(op);
  auto isAgain = [&](Value part) { return llvm::count(concat.getInputs(), part) > 1; };
  return concat &&
         llvm::all_of(getShape(concat.getResult()).take_front(concat.getDim()),
                      [](int64_t size) { return size == 1; }) &&
         (concat.getInputs().size() > kMostWoven || llvm::all_of(concat.getInputs(), [&](Value part) {
            return part.getDefiningOp<spmd::CollectiveOpInterface>() && !isAgain(part);
          }));
}

void Clusters::place(Operation *op) {
  std::optional<nn::Form> form = getForm(op);
  if (!form || form == nn::Form::Data)
    return closeReadClusters(op);
  if (getAliasOffset(op))
    return joinAlias(op);
  if (views.contains(op)) {
    inlined[op] = {};
    return closeReadClusters(op);
  }
  if (inlineIntoReaders(op))
    return;
  unsigned own = clusters.size();
  Cluster &created = clusters.emplace_back();
  created.ops.push_back(op);
  created.rows = Rows::get(op);
  created.hasAnchor = isAnchor(op);
  // An epilogue works on one result.
  bool isMany = isa<nn::ConcatOp>(op) && op->getNumOperands() > kMostConcatenated / 2;
  created.isOpen = (isFusable(op) || created.hasAnchor) && op->getNumResults() == 1 && !putsTogether(op) && !isMany;
  int64_t elements = countReadElements(op);
  created.elements = elements;
  // Of what combines microbatches, with the one that is combined.
  OperandRange joining = op->getOperands().drop_front(op->hasAttr(spmd::kCombinesAttr) ? 1 : 0);
  if (isFusable(op))
    for (Value operand : joining)
      if (std::optional<unsigned> other = find(operand); other && *other != own && mayJoin(op, clusters[own], *other)) {
        // The larger one keeps its number.
        unsigned into = clusters[own].ops.size() > clusters[*other].ops.size() ? own : *other;
        merge(into == own ? *other : own, into);
        own = into;
        clusters[own].elements = elements;
      }
  Cluster &joined = clusters[own];
  if (joined.rows)
    joined.elements = ShapedType::getNumElements(joined.rows->shape);
  clusterOf[op] = own;
  countUses(op, own);
  closeReadClusters(op);
  // What is transposed is transposed back, if at all, by another kernel, but for channels, which windows have in the middle.
  if (joined.hasAnchor && isa<nn::TransposeOp>(op) && !movesChannels(op))
    joined.isOpen = false;
}

void Clusters::joinAlias(Operation *op) {
  std::optional<unsigned> cluster = find(op->getOperand(0));
  if (!cluster)
    return;
  clusters[*cluster].ops.push_back(op);
  clusterOf[op] = *cluster;
  countUses(op, *cluster);
}

/// `op`, which is being placed, is in one of them, and is counted afterwards.
void Clusters::merge(unsigned from, unsigned into) {
  Cluster &source = clusters[from], &target = clusters[into];
  for (Operation *op : source.ops)
    clusterOf[op] = into;
  target.ops.append(source.ops);
  target.rows = target.rows ? target.rows : source.rows;
  target.hasAnchor |= source.hasAnchor;
  target.openUses += source.openUses;
  source = Cluster();
  source.isOpen = false;
}

//===----------------------------------------------------------------------===//
// Values that every reader computes
//===----------------------------------------------------------------------===//

/// Nothing where an operand is made by a kernel, which then would have to store it.
std::optional<Chain> Clusters::getChain(Operation *op) const {
  // To move is to compute an address, which neighbors share.
  Chain chain{0, getForm(op) == nn::Form::Movement || isa<nn::BroadcastOp>(op) ? 0 : 1};
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (auto found = inlined.find(maker); maker && found != inlined.end()) {
      chain.bytes += found->second.bytes;
      chain.ops += found->second.ops;
    } else if (maker && clusterOf.contains(maker)) {
      return std::nullopt;
    } else if (!isNumber(maker)) {
      // Of a table, what is looked up.
      chain.bytes += std::min(spmd::getBytes(operand.getType()), spmd::getBytes(op->getResult(0).getType()));
    }
  }
  return chain;
}

/// Epilogues read element by element: a lookup in one would make the kernels of equal layers differ, and a tile wait.
bool Clusters::inlineIntoReaders(Operation *op) {
  bool isPoint = isFusable(op) && !Rows::get(op), isMovement = getForm(op) == nn::Form::Movement;
  if (!isPoint || op->use_empty() || op->getResult(0).hasOneUse())
    return false;
  for (Operation *reader : op->getUsers())
    if (!isFusable(reader) || getAliasOffset(reader) || views.contains(reader) ||
        (isMovement && epilogues.contains(reader)))
      return false;
  std::optional<Chain> chain = getChain(op);
  if (!chain || !costs.isCheaperInReaders(*chain, op->getResult(0)))
    return false;
  inlined[op] = *chain;
  return true;
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// True if `op` pairs each element of `value`, which a cluster with `rows` made, with a row of its result.
static bool keepsRows(Operation *op, OpOperand &operand, const Rows &rows) {
  // A part of the rows may look like one element a row.
  if (Operation *maker = operand.get().getDefiningOp();
      getAliasOffset(maker) && countElements(maker->getOperand(0)) != countElements(operand.get()))
    return false;
  if (std::optional<Rows> own = Rows::get(op))
    return operand.getOperandNumber() == 0 && own->mayShare(rows);
  ArrayRef<int64_t> result = getShape(op->getResult(0)), read = getShape(operand.get());
  bool isRows = result == ArrayRef<int64_t>(rows.shape);
  return getForm(op) == nn::Form::Map && (isRows || rows.hasOneARow(result)) &&
         (read == result || (isRows && read == ArrayRef<int64_t>(rows.getKeptShape())));
}

/// True if `op` reads each element of `value` at the place of its own result, or, of rows, all of them in order.
static bool readsInPlace(Operation *op, OpOperand &operand) {
  if (Rows::get(op))
    return operand.getOperandNumber() == 0;
  return getForm(op) == nn::Form::Map && getShape(operand.get()) == getShape(op->getResult(0));
}

/// True if `op` puts together what `makers` only move: each part is moved where it belongs, once, however many other ones there are.
static bool isMovedPart(Operation *op, ArrayRef<Operation *> makers) {
  return isa<nn::ConcatOp>(op) &&
         llvm::all_of(makers, [](Operation *maker) { return getForm(maker) == nn::Form::Movement; });
}

bool Clusters::mayRead(Operation *op, OpOperand &operand, const Cluster &from, bool isOnlyReader) const {
  bool isFull = countElements(operand.get()) == from.elements;
  switch (spmd::getJoining(from.getKind(), *getForm(op), isa<nn::TransposeOp>(op))) {
  case spmd::Joining::Never:
    return false;
  case spmd::Joining::AsLast:
    return isFull && isOnlyReader;
  case spmd::Joining::SameRows:
    return keepsRows(op, operand, *from.rows);
  case spmd::Joining::Any:
    break;
  }
  if (from.rows)
    return keepsRows(op, operand, *from.rows);
  if (isFull && readsInPlace(op, operand))
    return true;
  // Nothing of an anchor is computed again.
  int64_t elements = isMovedPart(op, from.ops) ? countElements(operand.get()) : countReadElements(op);
  return !from.hasAnchor && isOnlyReader && costs.isCheaperInReader(from.ops.size(), operand.get(), elements);
}

/// True if a walk of other rows reads `op`, and nothing but that walk and what may be in its kernel, and what `op` reads of `from` is
/// stored anyway: there it saves a pass. Behind an anchor this is of what the walk's kernel reads several times, as of a norm's gradient,
/// which is a product's result times a scale, less means of that; what is read once is an epilogue, as deciding foresees it.
static bool belongsToOtherRows(Operation *op, const Cluster &from) {
  if ((!from.rows && !from.hasAnchor) || getForm(op) != nn::Form::Map ||
      from.rows.has_value() != op->getResult(0).hasOneUse())
    return false;
  auto isOtherWalk = [&](Operation *user) {
    std::optional<Rows> rows = Rows::get(user);
    return rows && !(from.rows && *rows == *from.rows);
  };
  auto isMap = [](Operation *user) { return getForm(user) == nn::Form::Map; };
  // By others than `op` that no tile of the anchor is enough for.
  auto leaves = [&](Operation *user) {
    return user != op && (!isMap(user) || llvm::any_of(user->getUsers(), isOtherWalk));
  };
  auto isStoredAnyway = [&](Value operand) {
    return from.rows ? !operand.hasOneUse() : llvm::any_of(operand.getUsers(), leaves);
  };
  return llvm::any_of(op->getUsers(), isOtherWalk) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) { return isMap(user) || isOtherWalk(user); }) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return !llvm::is_contained(from.ops, operand.getDefiningOp()) || isStoredAnyway(operand);
         });
}

bool Clusters::mayJoin(Operation *op, const Cluster &own, unsigned other) const {
  const Cluster &from = clusters[other];
  if (belongsToOtherRows(op, from))
    return false;
  auto reads =
      llvm::make_filter_range(op->getOpOperands(), [&](OpOperand &operand) { return find(operand.get()) == other; });
  bool isOnlyReader = std::distance(reads.begin(), reads.end()) == from.openUses;
  spmd::Joining merging = spmd::getMerging(own.getKind(), from.getKind());
  bool hasAnchor = own.hasAnchor || from.hasAnchor;
  if (merging == spmd::Joining::Never || (merging == spmd::Joining::SameRows && !own.rows->mayShare(*from.rows)))
    return false;
  return own.ops.size() + from.ops.size() <= (hasAnchor ? kMostOpsWithAnchor : kMostOps) &&
         llvm::all_of(reads, [&](OpOperand &operand) { return mayRead(op, operand, from, isOnlyReader); });
}

llvm::DenseSet<Operation *> cleave::exec::findKernelStarts(Block &block, const FusionCosts &costs) {
  llvm::DenseSet<Operation *> starts;
  Clusters clusters(block, costs);
  for (const Cluster *cluster : clusters.getAll())
    starts.insert(*llvm::find_if(cluster->ops, [](Operation *op) { return !getAliasOffset(op); }));
  return starts;
}
