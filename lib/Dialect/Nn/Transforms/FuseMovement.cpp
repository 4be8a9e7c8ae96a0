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
#include "Matching.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNFUSEMOVEMENT
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
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

  /// Sizes of the factors as they stand in the input, and their order in the result.
  SmallVector<int64_t> getInputOrder() const { return flatten(input); }
  SmallVector<int64_t> getResultOrder() const { return flatten(dims); }
  int64_t getSize(int64_t factor) const { return sizes[factor]; }

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
        SmallVector<int64_t> order = getResultOrder();
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

struct FuseMovement : public cleave::nn::impl::NnFuseMovementBase<FuseMovement> {
  void runOnOperation() override {
    eraseDead();
    SmallVector<Operation *> ends;
    getOperation().walk([&](Operation *op) {
      if (isMovement(op) && !continues(op))
        ends.push_back(op);
    });
    for (Operation *end : ends)
      fuse(end);
  }

private:
  /// Folds leave reshapes behind that nothing uses; as users they would end the chains that they read.
  void eraseDead() {
    SmallVector<Operation *> movement;
    getOperation().walk([&](Operation *op) {
      if (isMovement(op))
        movement.push_back(op);
    });
    for (Operation *op : llvm::reverse(movement))
      if (op->use_empty())
        op->erase();
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

  static void fuse(Operation *end) {
    SmallVector<Operation *> chain = getChain(end);
    // The longest tail of the chain that refines to common factors.
    for (size_t first = 0; first + 1 < chain.size(); ++first) {
      Chain factors(getShape(chain[first]->getOperand(0)));
      ArrayRef<Operation *> tail = ArrayRef(chain).drop_front(first);
      if (!llvm::all_of(tail, [&](Operation *op) { return factors.apply(op); }))
        continue;
      rebuild(tail, factors);
      return;
    }
  }

  static void rebuild(ArrayRef<Operation *> chain, const Chain &factors) {
    Operation *end = chain.back();
    OpBuilder builder(end);
    SmallVector<int64_t> from = factors.getInputOrder(), to = factors.getResultOrder(), shape, permutation;
    Value value = chain.front()->getOperand(0);
    if (from != to) {
      for (int64_t factor : from)
        shape.push_back(factors.getSize(factor));
      for (int64_t factor : to)
        permutation.push_back(llvm::find(from, factor) - from.begin());
      value = reshapeTo(builder, getInnerLoc(end->getLoc()), value, shape);
      value = TransposeOp::create(builder, getInnerLoc(end->getLoc()), value, permutation);
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
