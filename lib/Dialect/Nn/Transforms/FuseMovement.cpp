//===- FuseMovement.cpp - one split, transpose, merge ---------------------===//
//
// The dims of a chain's first operand are lists of *factors*, one each at the start. A transpose reorders the lists; a
// reshape regroups the factors, splitting one in two where a new dim's border falls inside it:
//
//   x [b, h, s, d]   factors b | h | s | d
//   reshape [bh, s, d]         bh | s | d      (b and h in one list)
//   transpose [0, 2, 1]        bh | d | s
//   reshape [b, h, d, s]       b | h | d | s   =>  transpose [0, 1, 3, 2] of x
//
// At the end: reshape x to its factors, transpose to their last order, reshape to the result. A border that splits no
// factor evenly ends the chain: what is before it stays as it is.
//
//===----------------------------------------------------------------------===//
#include "../Patterns/Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNFUSEMOVEMENT
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {

/// Where the factors of a chain's input stand after some of its ops.
class Chain {
public:
  explicit Chain(ArrayRef<int64_t> shape) {
    for (int64_t extent : shape) {
      input.push_back({});
      dims.push_back({});
      if (extent != 1) {
        input.back().push_back(sizes.size());
        dims.back().push_back(sizes.size());
        sizes.push_back(extent);
      }
    }
  }

  /// Applies a transpose or a reshape; false if a reshape splits a factor unevenly.
  bool apply(Operation *op) {
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      SmallVector<SmallVector<int64_t>> moved;
      for (int64_t dim : transpose.getPermutation())
        moved.push_back(dims[dim]);
      dims = std::move(moved);
      return true;
    }
    return regroup(getShape(op->getResult(0)));
  }

  /// True if factors stand in another order than in the input.
  bool isMoved() const { return flatten(input) != flatten(dims); }

  /// The input's shape with a dim for each factor, and the transpose of that which brings them into their last order.
  std::pair<SmallVector<int64_t>, SmallVector<int64_t>> getMove() const {
    SmallVector<int64_t> from = flatten(input), shape, permutation;
    for (int64_t factor : from)
      shape.push_back(sizes[factor]);
    for (int64_t factor : flatten(dims))
      permutation.push_back(llvm::find(from, factor) - from.begin());
    return {shape, permutation};
  }

private:
  static SmallVector<int64_t> flatten(ArrayRef<SmallVector<int64_t>> lists) {
    SmallVector<int64_t> order;
    for (const auto &list : lists)
      llvm::append_range(order, list);
    return order;
  }

  /// Replaces `factor` everywhere by a major part and a minor one of `minor` elements; returns the minor one.
  int64_t split(int64_t factor, int64_t minor) {
    int64_t added = sizes.size();
    sizes.push_back(minor);
    sizes[factor] /= minor;
    for (auto *lists : {&input, &dims})
      for (auto &list : *lists)
        if (auto *it = llvm::find(list, factor); it != list.end())
          list.insert(it + 1, added);
    return added;
  }

  bool regroup(ArrayRef<int64_t> shape) {
    if (llvm::is_contained(shape, 0))
      return false;
    SmallVector<SmallVector<int64_t>> grouped;
    size_t next = 0; // position in the flat order, which splits lengthen
    for (int64_t extent : shape) {
      SmallVector<int64_t> &list = grouped.emplace_back();
      int64_t left = extent;
      while (left > 1) {
        SmallVector<int64_t> order = flatten(dims);
        if (next >= order.size())
          return false;
        int64_t factor = order[next];
        if (left % sizes[factor] != 0) {
          if (sizes[factor] % left != 0)
            return false;
          split(factor, sizes[factor] / left);
        }
        left /= sizes[factor];
        list.push_back(factor);
        ++next;
      }
    }
    dims = std::move(grouped);
    return true;
  }

  SmallVector<int64_t> sizes;
  SmallVector<SmallVector<int64_t>> input, dims;
};

bool isMovement(Operation *op) { return isa_and_present<ReshapeOp, TransposeOp>(op); }

/// A run of the pass found nothing to change, and no pass has changed anything since.
struct IsFused {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IsFused)
  explicit IsFused(Operation *) {}
};

struct FuseMovement : public cleave::nn::impl::NnFuseMovementBase<FuseMovement> {
  void runOnOperation() override {
    if (getCachedAnalysis<IsFused>())
      return markAllAnalysesPreserved();
    hasChanged = false;
    SmallVector<Operation *> movement;
    getOperation().walk([&](Operation *op) {
      if (isMovement(op))
        movement.push_back(op);
    });
    eraseDead(movement);
    llvm::erase_if(movement, continues);
    for (Operation *end : movement)
      fuse(end);
    if (hasChanged)
      return;
    getAnalysis<IsFused>();
    markAllAnalysesPreserved();
  }

private:
  bool hasChanged = false;

  /// Folds leave reshapes behind that nothing uses; as users they would end the chains that they read.
  void eraseDead(SmallVectorImpl<Operation *> &movement) {
    for (Operation *&op : llvm::reverse(movement))
      if (op->use_empty()) {
        op->erase();
        op = nullptr;
        hasChanged = true;
      }
    llvm::erase(movement, nullptr);
  }

  /// True if the op's result goes into one more movement op and nowhere else.
  static bool continues(Operation *op) { return op->hasOneUse() && isMovement(*op->user_begin()); }

  /// The chain that ends in `end`, first op first.
  static SmallVector<Operation *> getChain(Operation *end) {
    SmallVector<Operation *> chain{end};
    while (Operation *before = chain.back()->getOperand(0).getDefiningOp()) {
      if (!isMovement(before) || !continues(before))
        break;
      chain.push_back(before);
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  void fuse(Operation *end) {
    SmallVector<Operation *> chain = getChain(end);
    // The longest tail of the chain that refines to common factors.
    for (size_t first = 0; first + 1 < chain.size(); ++first) {
      Chain factors(getShape(chain[first]->getOperand(0)));
      ArrayRef<Operation *> tail = ArrayRef(chain).drop_front(first);
      if (!llvm::all_of(tail, [&](Operation *op) { return factors.apply(op); }))
        continue;
      if (!isBuilt(tail, factors)) {
        rebuild(tail, factors);
        hasChanged = true;
      }
      return;
    }
  }

  /// True if `rebuild` would make the same ops in the same places: then there is an end to changes, and to rounds.
  static bool isBuilt(ArrayRef<Operation *> chain, const Chain &factors) {
    if (!factors.isMoved())
      return false;
    auto [shape, permutation] = factors.getMove();
    Operation *end = chain.back();
    ArrayRef<Operation *> left = chain;
    if (getShape(chain.front()->getOperand(0)) != ArrayRef(shape)) {
      if (!isa<ReshapeOp>(left.front()) || getShape(left.front()->getResult(0)) != ArrayRef(shape))
        return false;
      left = left.drop_front();
    }
    auto transpose = left.empty() ? TransposeOp() : dyn_cast<TransposeOp>(left.front());
    if (!transpose || transpose.getPermutation() != ArrayRef(permutation))
      return false;
    left = left.drop_front();
    if (left.size() > 1 ||
        (!left.empty() && (!isa<ReshapeOp>(end) || end->getResultTypes() == transpose->getResultTypes())))
      return false;
    auto isBare = [](Operation *op) { return op->getDiscardableAttrDictionary().empty(); };
    if (!llvm::all_of(chain, isBare))
      return false;
    Location inner = getInnerLoc(end->getLoc());
    return llvm::all_of(llvm::zip(chain.drop_back(), chain.drop_front()), [&](const auto &pair) {
      auto [op, next] = pair;
      return op->getLoc() == inner && op->getNextNode() == next;
    });
  }

  static void rebuild(ArrayRef<Operation *> chain, const Chain &factors) {
    Operation *end = chain.back();
    OpBuilder builder(end);
    Value value = chain.front()->getOperand(0);
    if (factors.isMoved()) {
      auto [shape, permutation] = factors.getMove();
      Composer f(builder, getInnerLoc(end->getLoc()));
      value = f.transpose(f.reshape(value, shape), permutation);
    }
    auto type = cast<RankedTensorType>(end->getResult(0).getType());
    bool isNothing = value == chain.front()->getOperand(0);
    if (value.getType() != type)
      value = ReshapeOp::create(builder, end->getLoc(), type, value);
    else if (!isNothing)
      value.getDefiningOp()->setLoc(end->getLoc());
    end->getResult(0).replaceAllUsesWith(value);
    for (Operation *op : llvm::reverse(chain))
      op->erase();
  }
};
} // namespace
