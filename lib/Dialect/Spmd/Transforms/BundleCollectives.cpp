//===- BundleCollectives.cpp - several small collectives become one -------===//
//
//   %a = all_reduce sum %x : [8]        %c = concat (reshape %x), (reshape %y) : [12]
//   .. ops that need %a ..              %d = all_reduce sum %c : [12]
//   %b = all_reduce sum %y : [2, 2]     %a = slice %d [0, 8)     %b = reshape (slice %d [8, 12))
//                                       .. ops that need %a ..
//
// A bundle is open from its first collective on. Another one of the same kind, group and element type goes into it if
// nothing that it needs needs a result of the bundle; what stands between and does need one is put behind the bundle, in
// its order. So nothing waits for more than the operands of the collectives, none of which waits for another.
//
// Of an all_gather or reduce_scatter p ranks have a piece each; pieces come first, whatever dim they split, so that those of
// a rank lie side by side:
//
//   gathered     [p, n0 + n1]  ─▶ slice [p, n0] ─▶ [p, .., d / p, ..] ─▶ [.., p, d / p, ..] ─▶ [.., d, ..]
//   scattered    the same way back, before
//
// A kernel puts all side by side, and another one each gathered piece in its order again, unless all who read it go from element to element
// or along rows: these read it as it lies. With a cost of these a bundle is made where the collectives that it saves cost more.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_BUNDLECOLLECTIVES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

#define DEBUG_TYPE "spmd-bundle-collectives"

ALWAYS_ENABLED_STATISTIC(numBundles, "merged collectives made");
ALWAYS_ENABLED_STATISTIC(numBundled, "collectives merged");

/// Ops behind a collective that are looked at for company: so the pass is linear.
static constexpr unsigned kMostLooked = 4096;

namespace {

/// True if kernels that read `value` can do so wherever its elements are.
bool isReadAnywhere(Value value) {
  const ProgramDialect &program = ProgramDialect::get(value.getContext());
  return llvm::all_of(value.getUsers(), [&](Operation *reader) { return program.readsAnywhere(reader); });
}

/// What a launch, and a byte that is read or written, takes of what a collective takes to begin.
struct PackingCost {
  double launchShare = 0, memoryShare = 0;
};

/// A collective that may go into a bundle.
struct Member {
  Operation *op;
  /// Axes along which the ranks of its group differ, major to minor.
  ArrayAttr axes;
  /// Of all_gather and reduce_scatter, the dim that is split, and into how many pieces.
  int64_t dim = 0, pieces = 1;

  CollectiveOpInterface get() const { return cast<CollectiveOpInterface>(op); }
  Value getInput() const { return op->getOperand(0); }
  RankedTensorType getType() const { return cast<RankedTensorType>(op->getResult(0).getType()); }
  ArrayRef<int64_t> getPieceShape() const {
    Value piece = isa<ReduceScatterOp>(op) ? op->getResult(0) : op->getOperand(0);
    return cast<RankedTensorType>(piece.getType()).getShape();
  }
  int64_t getPieceSize() const { return ShapedType::getNumElements(getPieceShape()); }
  /// What its part of packing and unpacking takes of what a collective takes to begin.
  double getShare(const PackingCost &cost) const;
};

/// Collectives that can be one, in their order, and what has to wait for it.
struct Bundle {
  SmallVector<Member> members;
  /// Ops behind the first member that need a member's result, in their order, and how many of them are in front of the last member.
  SmallVector<Operation *> later;
  size_t numInFront = 0;
  /// These and the members.
  llvm::DenseSet<Operation *> needed;
  int64_t bytes = 0;

  void add(const Member &member) {
    members.push_back(member);
    needed.insert(member.op);
    numInFront = later.size();
    bytes += member.get().getWireBytes();
  }
  /// What its kernels take of what a collective takes to begin.
  double getShare(const PackingCost &cost) const {
    double share = cost.launchShare;
    for (const Member &member : members)
      share += member.getShare(cost);
    return share;
  }
  bool isNeededBy(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && needed.contains(operand.getDefiningOp());
    });
  }
};

class Bundler {
public:
  Bundler(Block &block, int64_t mostBytes, PackingCost cost) : block(block), mostBytes(mostBytes), cost(cost) {}

  void run() {
    while (std::optional<Bundle> bundle = findNext())
      merge(*bundle);
  }

private:
  std::optional<Bundle> findNext();
  std::optional<Member> match(Operation *op) const;
  void merge(Bundle &bundle);

  Block &block;
  int64_t mostBytes;
  PackingCost cost;
  /// Collectives that no further one can join.
  llvm::DenseSet<Operation *> done;
};

/// Makes the ops of a bundle in front of one op.
class Packer {
public:
  Packer(OpBuilder &builder, ArrayRef<Member> members)
      : builder(builder), members(members), program(ProgramDialect::get(builder.getContext())) {}

  /// All members as one collective: of a gather [pieces, elements of a rank], else [elements of a rank].
  Value pack(StringAttr cause);
  /// What `member` gives, from the elements of all that begin at `start` of a rank's.
  Value unpack(Value all, const Member &member, int64_t start);

private:
  Value reshape(Location loc, Value value, ArrayRef<int64_t> shape);
  Value scatterPieces(const Member &member);
  ArrayAttr inDimOne() { return builder.getArrayAttr({members.front().axes}); }

  OpBuilder &builder;
  ArrayRef<Member> members;
  const ProgramDialect &program;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which ones
//===----------------------------------------------------------------------===//

double Member::getShare(const PackingCost &cost) const {
  double share = 2 * cost.memoryShare * static_cast<double>(getBytes(getInput().getType()));
  if (isa<AllGatherOp>(op) && !isReadAnywhere(op->getResult(0)))
    share += cost.launchShare + 2 * cost.memoryShare * static_cast<double>(getBytes(getType()));
  return share;
}

/// The only dim that `dims` has axes for; nothing where there are several or none.
static std::optional<int64_t> getOnlyDim(ArrayAttr dims) {
  std::optional<int64_t> only;
  for (auto [dim, axes] : llvm::enumerate(dims.getAsRange<ArrayAttr>())) {
    if (axes.empty())
      continue;
    if (only)
      return std::nullopt;
    only = dim;
  }
  return only;
}

/// Flags travel as bytes, and are few.
std::optional<Member> Bundler::match(Operation *op) const {
  if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) || done.contains(op))
    return std::nullopt;
  Member member{op, {}};
  int64_t bytes = member.get().getWireBytes();
  if (bytes == 0 || bytes > mostBytes || member.getType().getElementType().isInteger(1))
    return std::nullopt;
  if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    member.axes = reduce.getAxes();
    return member;
  }
  ArrayAttr dims = isa<AllGatherOp>(op) ? cast<AllGatherOp>(op).getDims() : cast<ReduceScatterOp>(op).getDims();
  std::optional<int64_t> dim = getOnlyDim(dims);
  if (!dim)
    return std::nullopt;
  member.dim = *dim;
  member.axes = cast<ArrayAttr>(dims[*dim]);
  Value whole = isa<AllGatherOp>(op) ? op->getResult(0) : op->getOperand(0);
  member.pieces = cast<RankedTensorType>(whole.getType()).getDimSize(*dim) / member.getPieceShape()[*dim];
  return member;
}

/// One collective can do both.
static bool areAlike(const Member &a, const Member &b) {
  return a.op->getName() == b.op->getName() && a.axes == b.axes &&
         a.get().getReductionKind() == b.get().getReductionKind() &&
         a.getType().getElementType() == b.getType().getElementType();
}

/// The bundle of the first collective that has company. One without is looked at once.
std::optional<Bundle> Bundler::findNext() {
  for (Operation &op : block) {
    std::optional<Member> first = match(&op);
    if (!first || first->getShare(cost) >= 1)
      continue;
    Bundle bundle;
    bundle.add(*first);
    done.insert(&op);
    Operation *next = op.getNextNode();
    for (unsigned looked = 0; next && looked < kMostLooked; ++looked, next = next->getNextNode()) {
      if (bundle.isNeededBy(next)) {
        bundle.needed.insert(next);
        bundle.later.push_back(next);
        continue;
      }
      std::optional<Member> other = match(next);
      if (!other || other->getShare(cost) >= 1 || !areAlike(*first, *other) ||
          bundle.bytes + int64_t(other->get().getWireBytes()) > mostBytes)
        continue;
      bundle.add(*other);
      done.insert(next);
    }
    if (static_cast<double>(bundle.members.size() - 1) > bundle.getShare(cost))
      return bundle;
    for (const Member &other : ArrayRef(bundle.members).drop_front())
      done.erase(other.op);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// One for all
//===----------------------------------------------------------------------===//

Value Packer::reshape(Location loc, Value value, ArrayRef<int64_t> shape) {
  return program.reshape(builder, loc, value, shape);
}

/// What is scattered, as [pieces, elements of one].
Value Packer::scatterPieces(const Member &member) {
  SmallVector<int64_t> apart(member.getPieceShape());
  apart.insert(apart.begin() + member.dim, member.pieces);
  Location loc = member.op->getLoc();
  Value pieces = program.moveDim(builder, loc, reshape(loc, member.getInput(), apart), member.dim, 0);
  return reshape(loc, pieces, {member.pieces, member.getPieceSize()});
}

Value Packer::pack(StringAttr cause) {
  SmallVector<Value> parts;
  SmallVector<Location> locs;
  int64_t size = 0, pieces = members.front().pieces;
  Operation *first = members.front().op;
  bool isScatter = isa<ReduceScatterOp>(first);
  for (const Member &member : members) {
    locs.push_back(member.op->getLoc());
    parts.push_back(isScatter ? scatterPieces(member)
                              : reshape(locs.back(), member.getInput(), {member.getPieceSize()}));
    size += member.getPieceSize();
  }
  Location loc = FusedLoc::get(builder.getContext(), locs);
  Value all = program.concat(builder, loc, parts, isScatter ? 1 : 0);
  Type element = members.front().getType().getElementType();
  if (auto reduce = dyn_cast<AllReduceOp>(first))
    return AllReduceOp::create(builder, loc, all.getType(), reduce.getKind(), all, reduce.getAxes(), cause);
  if (auto scatter = dyn_cast<ReduceScatterOp>(first))
    return ReduceScatterOp::create(builder, loc, RankedTensorType::get({size}, element), scatter.getKind(),
                                   reshape(loc, all, {pieces * size}), inDimOne(), cause);
  Value gathered =
      AllGatherOp::create(builder, loc, RankedTensorType::get({pieces * size}, element), all, inDimOne(), cause);
  return reshape(loc, gathered, {pieces, size});
}

Value Packer::unpack(Value all, const Member &member, int64_t start) {
  Location loc = member.op->getLoc();
  int64_t size = member.getPieceSize(), dim = member.dim;
  if (!isa<AllGatherOp>(member.op)) {
    Value part = program.slice(builder, loc, all, start, size);
    return reshape(loc, part, member.getType().getShape());
  }
  Value part = program.slice(builder, loc, all, {0, start}, {member.pieces, size});
  SmallVector<int64_t> apart{member.pieces};
  llvm::append_range(apart, member.getPieceShape());
  part = program.moveDim(builder, loc, reshape(loc, part, apart), 0, dim);
  return reshape(loc, part, member.getType().getShape());
}

/// In front of the last member, where the operands of all are there.
void Bundler::merge(Bundle &bundle) {
  OpBuilder builder(bundle.members.back().op);
  Packer packer(builder, bundle.members);
  ++numBundles;
  numBundled += bundle.members.size();
  LDBG() << bundle.members.size() << " collectives of " << bundle.bytes << " bytes go with "
         << *bundle.members.front().op;
  StringAttr cause = bundle.members.front().get().getCauseAttr();
  std::string text = (cause ? cause.getValue().str() : "") + ", with " + std::to_string(bundle.members.size() - 1) +
                     " other small ones that need not wait for each other";
  Value all = packer.pack(builder.getStringAttr(text));
  Operation *end = all.getDefiningOp();
  done.insert(isa<CollectiveOpInterface>(end) ? end : end->getOperand(0).getDefiningOp());
  int64_t start = 0;
  for (const Member &member : bundle.members) {
    Value part = packer.unpack(all, member, start);
    end = part.getDefiningOp();
    start += member.getPieceSize();
    member.op->getResult(0).replaceAllUsesWith(part);
  }
  // Which of them are in front is not asked of the block: it would number all its ops anew after each that moves.
  for (Operation *op : ArrayRef(bundle.later).take_front(bundle.numInFront)) {
    op->moveAfter(end);
    end = op;
  }
  for (const Member &member : bundle.members) {
    done.erase(member.op);
    member.op->erase();
  }
}

namespace {
struct BundleCollectives : cleave::spmd::impl::BundleCollectivesBase<BundleCollectives> {
  using Base::Base;

  void runOnOperation() override {
    for (func::FuncOp func : getFunctions(getOperation()))
      if (func.getBody().hasOneBlock())
        Bundler(func.getBody().front(), mostBytes, {launchShare, memoryShare}).run();
  }
};
} // namespace
