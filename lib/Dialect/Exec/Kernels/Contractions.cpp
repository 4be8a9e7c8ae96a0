//===- Contractions.cpp - products, before kernels are formed -------------===//
//
// What only puts the operands or the result of a product into another order is left to the product:
//
//   einsum(transpose %a [1, 0], %b) "ik,kj->ij"     ->     einsum(%a, %b) "ki,kj->ij"
//
// A transposed convolution with steps as large as its kernel adds nothing up but channels: each pixel becomes a box of its own.
//
//   conv_transpose %x, %w strides [2, 2]             ->     reshape(einsum(%x, %w) "ncpq,coxy->nopxqy")
//
//===----------------------------------------------------------------------===//
#include "Contractions.h"

#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// Lets an einsum write its result in the order of the transpose that alone reads it: another order of letters.
static void foldResultTranspose(nn::EinsumOp einsum) {
  Value result = einsum.getResult();
  auto transpose = result.hasOneUse() ? dyn_cast<nn::TransposeOp>(*result.user_begin()) : nn::TransposeOp();
  if (!transpose)
    return;
  auto [operands, letters] = einsum.getEquation().split("->");
  std::string equation = (operands + "->").str();
  for (int64_t dim : transpose.getPermutation())
    equation += letters[dim];
  einsum.setEquation(equation);
  result.setType(transpose.getType());
  einsum->setLoc(FusedLoc::get(einsum.getContext(), {transpose.getLoc(), einsum.getLoc()}));
  transpose.replaceAllUsesWith(result);
  transpose.erase();
}

/// The letters of `term` that are not in `result`, in order.
static std::string getSummed(StringRef term, StringRef result) {
  std::string summed;
  llvm::copy_if(term, std::back_inserter(summed), [&](char letter) { return !result.contains(letter); });
  return summed;
}

/// Lets it read what its operands are transposes of, where that sums in the order as before: bits stay. Attention and
/// convolutions store in the order that is wanted.
static void foldOperandTransposes(nn::EinsumOp einsum) {
  nn::EinsumTerms terms = *nn::parseEinsum(einsum.getEquation());
  SmallVector<std::string> read;
  for (auto [term, operand] : llvm::zip_equal(terms.inputs, einsum->getOpOperands())) {
    std::string letters = term.str();
    auto transpose = operand.get().getDefiningOp<nn::TransposeOp>();
    Operation *maker = transpose ? transpose.getInput().getDefiningOp() : nullptr;
    if (transpose && !(maker && isAnchor(maker) && transpose->hasOneUse() && maker->hasOneUse())) {
      for (auto [letter, dim] : llvm::zip_equal(term, transpose.getPermutation()))
        letters[dim] = letter;
      if (getSummed(letters, terms.result) == getSummed(term, terms.result))
        operand.set(transpose.getInput());
      else
        letters = term.str();
    }
    read.push_back(letters);
  }
  einsum.setEquation(llvm::join(read, ",") + "->" + terms.result.str());
}

void cleave::exec::foldTransposes(Block &block) {
  for (auto einsum : llvm::to_vector(block.getOps<nn::EinsumOp>())) {
    foldResultTranspose(einsum);
    foldOperandTransposes(einsum);
  }
}

/// True if windows are boxes side by side that fill the result.
bool cleave::exec::isBoxes(nn::ConvTransposeOp op) {
  auto isAll = [](ArrayRef<int64_t> values, int64_t number) {
    return llvm::all_of(values, [&](int64_t value) { return value == number; });
  };
  return op.getWeight().getType().getShape().drop_front(2) == op.getStrides() && isAll(op.getPadsLow(), 0) &&
         isAll(op.getPadsHigh(), 0) && isAll(op.getOutputPads(), 0) && isAll(op.getDilations(), 1) &&
         op.getGroups() == 1 && op.getStrides().size() <= 3;
}

/// The same dims in either order; channels stand behind the batch, or last.
static Value contract(nn::ConvTransposeOp op, Value input, bool isLast) {
  OpBuilder builder(op);
  std::string pixels, taps = "co", boxes;
  RankedTensorType type = op.getResult().getType();
  SmallVector<int64_t> whole(type.getShape());
  for (size_t dim = 0; dim < op.getStrides().size(); ++dim) {
    pixels += "pqr"[dim];
    taps += "xyz"[dim];
    boxes += {"pqr"[dim], "xyz"[dim]};
  }
  int64_t channels = type.getDimSize(1);
  if (isLast)
    std::rotate(whole.begin() + 1, whole.begin() + 2, whole.end());
  std::string equation =
      isLast ? "n" + pixels + "c," + taps + "->n" + boxes + "o" : "nc" + pixels + "," + taps + "->no" + boxes;
  nn::Composer f(builder, op.getLoc());
  Value made = f.reshape(f.einsum({input, op.getWeight()}, equation), whole);
  if (Value bias = op.getBias()) {
    SmallVector<int64_t> perChannel(isLast ? 1 : type.getRank() - 1, 1);
    perChannel[0] = channels;
    made = f.add(made, f.reshape(bias, perChannel));
  }
  return made;
}

Value cleave::exec::contractLast(nn::ConvTransposeOp op, Value last) { return contract(op, last, true); }

void cleave::exec::contractConvolutions(Block &block) {
  for (auto op : llvm::make_early_inc_range(block.getOps<nn::ConvTransposeOp>()))
    if (isBoxes(op)) {
      op.replaceAllUsesWith(contract(op, op.getInput(), false));
      op.erase();
    }
}

//===----------------------------------------------------------------------===//
// Slow ones
//===----------------------------------------------------------------------===//

/// True if rows lie in one piece, or one element of each beside those of the others: two dims apart are neither.
static bool areAdjacent(ArrayRef<int64_t> dims) {
  return dims.empty() || dims.back() - dims.front() + 1 == int64_t(dims.size());
}

/// Windows over more than two dims, or by long strides, have none; a resized last dim is computed element by element.
static bool hasTemplate(Operation *op) {
  constexpr int64_t mostStride = 16;
  auto isTiled = [](auto windowed) {
    return windowed.getStrides().size() <= 2 &&
           llvm::all_of(windowed.getStrides(), [](int64_t stride) { return stride <= mostStride; });
  };
  if (!isAnchor(op))
    return false;
  if (auto conv = dyn_cast<nn::ConvOp>(op))
    return isTiled(conv);
  if (auto pool = dyn_cast<nn::PoolOp>(op))
    return isTiled(pool) && pool.getKind() != nn::PoolKind::Lp;
  if (auto resize = dyn_cast<nn::ResizeOp>(op))
    return resize.getScales().empty() || resize.getScales().back() == 1;
  return isa<nn::EinsumOp, nn::AttentionOp, PartialAttentionOp, AttentionGradOp>(op);
}

/// Why `op` is slow; empty if it is not.
static StringRef getReason(Operation *op) {
  auto form = dyn_cast<nn::FormOpInterface>(op);
  auto isEmpty = [](Value value) { return countElements(value) == 0; };
  if (!form || hasTemplate(op) || llvm::any_of(op->getOperands(), isEmpty))
    return {};
  switch (form.getForm()) {
  case nn::Form::Data:
  case nn::Form::Map:
  case nn::Form::Movement:
  case nn::Form::Scan:
    return {};
  case nn::Form::Row:
    return areAdjacent(form.getRowDims()) ? "" : "the dims that it walks do not lie together";
  case nn::Form::Window:
    return "each element walks its window";
  case nn::Form::Sort:
    return "each row is sorted by one thread";
  case nn::Form::Scatter:
    return "updates are applied one after the other";
  case nn::Form::Contraction:
    return "it is not a product of two float matrices, so each element is summed by a scalar loop";
  case nn::Form::Convolution:
    return "no template computes this convolution, so each element walks its window";
  case nn::Form::Attention:
    return "no template computes this attention";
  case nn::Form::Recurrence:
    return "it is not unrolled";
  }
}

void cleave::exec::remarkSlow(Block &block, llvm::DenseSet<OperationName> &told) {
  for (Operation &op : block)
    if (StringRef reason = getReason(&op); !reason.empty() && told.insert(op.getName()).second)
      op.emitRemark() << op.getName() << " runs in a slow kernel: " << reason;
}
