//===- BundleCollectives.cpp - several small reductions become one --------===//
//
//   %a = all_reduce sum %x : [8]        %c = concat (reshape %x), (reshape %y) : [12]
//   .. ops that need %a ..              %d = all_reduce sum %c : [12]
//   %b = all_reduce sum %y : [2, 2]     %a = slice %d [0, 8)     %b = reshape (slice %d [8, 12))
//                                       .. ops that need %a ..
//
// A bundle is open from its first reduction on. Another one of the same kind, group and element type goes into it if
// nothing that it needs needs a result of the bundle; what stands between and does need one is put behind the bundle, in
// its order. So nothing waits for more than the operands of the reductions, none of which waits for another.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_BUNDLECOLLECTIVES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

/// Ops behind a reduction that are looked at for company: so the pass is linear.
static constexpr unsigned kMostLooked = 4096;

namespace {

/// Reductions that can be one, in their order, and what has to wait for it.
struct Bundle {
  SmallVector<AllReduceOp> members;
  /// Ops behind the first member that need a member's result, in their order.
  SmallVector<Operation *> later;
  /// These and the members.
  llvm::DenseSet<Operation *> needed;

  void add(AllReduceOp member) {
    members.push_back(member);
    needed.insert(member);
  }

  bool isNeededBy(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && needed.contains(operand.getDefiningOp());
    });
  }
};

class Bundler {
public:
  Bundler(Block &block, int64_t mostBytes) : block(block), mostBytes(mostBytes) {}

  void run() {
    while (std::optional<Bundle> bundle = findNext())
      merge(*bundle);
  }

private:
  std::optional<Bundle> findNext();
  bool isSmall(AllReduceOp op) const {
    return op.getWireBytes() <= mostBytes && !done.contains(op) &&
           !cast<RankedTensorType>(op.getType()).getElementType().isInteger(1);
  }
  void merge(Bundle &bundle);

  Block &block;
  int64_t mostBytes;
  /// Reductions that no further one can join.
  llvm::DenseSet<Operation *> done;
};
} // namespace

/// One collective can do both.
static bool areAlike(AllReduceOp a, AllReduceOp b) {
  return a.getKind() == b.getKind() && a.getAxes() == b.getAxes() &&
         getElementTypeOrSelf(a.getType()) == getElementTypeOrSelf(b.getType());
}

/// The bundle of the first reduction that has company. One without is looked at once.
std::optional<Bundle> Bundler::findNext() {
  for (Operation &op : block) {
    auto first = dyn_cast<AllReduceOp>(op);
    if (!first || !isSmall(first))
      continue;
    Bundle bundle;
    bundle.add(first);
    int64_t bytes = first.getWireBytes();
    done.insert(first);
    Operation *next = first->getNextNode();
    for (unsigned looked = 0; next && looked < kMostLooked; ++looked, next = next->getNextNode()) {
      if (bundle.isNeededBy(next)) {
        bundle.needed.insert(next);
        bundle.later.push_back(next);
        continue;
      }
      auto other = dyn_cast<AllReduceOp>(next);
      if (!other || !isSmall(other) || !areAlike(first, other) || bytes + int64_t(other.getWireBytes()) > mostBytes)
        continue;
      bundle.add(other);
      bytes += other.getWireBytes();
      done.insert(other);
    }
    if (bundle.members.size() > 1)
      return bundle;
  }
  return std::nullopt;
}

static Value toShape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getShape() == shape
             ? value
             : nn::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), value);
}

/// In front of the last member, where the operands of all are there.
void Bundler::merge(Bundle &bundle) {
  AllReduceOp first = bundle.members.front(), last = bundle.members.back();
  OpBuilder builder(last);
  SmallVector<Value> flat;
  SmallVector<Location> locs;
  for (AllReduceOp member : bundle.members) {
    auto type = cast<RankedTensorType>(member.getType());
    flat.push_back(toShape(builder, member.getLoc(), member.getInput(), {type.getNumElements()}));
    locs.push_back(member.getLoc());
  }
  Value all = nn::ConcatOp::create(builder, last.getLoc(), flat, 0);
  std::string cause = first.getCause().value_or("").str() + ", with " + std::to_string(bundle.members.size() - 1) +
                      " other small ones that need not wait for each other";
  Value sum = AllReduceOp::create(builder, FusedLoc::get(builder.getContext(), locs), all.getType(), first.getKind(),
                                  all, first.getAxes(), builder.getStringAttr(cause));
  Operation *end = sum.getDefiningOp();
  int64_t start = 0;
  for (AllReduceOp member : bundle.members) {
    auto type = cast<RankedTensorType>(member.getType());
    Value part = nn::SliceOp::create(builder, member.getLoc(), sum, ArrayRef<int64_t>{start},
                                     ArrayRef<int64_t>{type.getNumElements()}, ArrayRef<int64_t>{1});
    part = toShape(builder, member.getLoc(), part, type.getShape());
    end = part.getDefiningOp();
    start += type.getNumElements();
    member.getResult().replaceAllUsesWith(part);
  }
  for (Operation *op : bundle.later)
    if (op->isBeforeInBlock(end)) {
      op->moveAfter(end);
      end = op;
    }
  for (AllReduceOp member : bundle.members) {
    done.erase(member);
    member.erase();
  }
  done.insert(sum.getDefiningOp());
}

namespace {
struct BundleCollectives : cleave::spmd::impl::BundleCollectivesBase<BundleCollectives> {
  using Base::Base;

  void runOnOperation() override {
    for (func::FuncOp func : getFunctions(getOperation()))
      if (func.getBody().hasOneBlock())
        Bundler(func.getBody().front(), mostBytes).run();
  }
};
} // namespace
