//===- Reduction.cpp - result types of ops along dims ---------------------===//
//
// Dims of a reduction are distinct and ascending (C1), so that equal reductions are equal attributes. Bool has a
// maximum and a minimum, "or" and "and", but no sum.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/SameDim.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// `shape` with the dims that `isReduced` names of size 1, or without them.
static SmallVector<int64_t> reduceShape(ArrayRef<int64_t> shape, bool keepDims, function_ref<bool(int64_t)> isReduced) {
  SmallVector<int64_t> result;
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    if (!isReduced(dim))
      result.push_back(extent);
    else if (keepDims)
      result.push_back(1);
  }
  return result;
}

LogicalResult ReduceOp::inferTypes(Adaptor op, TypeInference &infer) {
  int64_t last = -1;
  for (int64_t dim : op.getDims()) {
    if (failed(infer.checkDim(dim, op.getInput())))
      return failure();
    if (dim <= last)
      return infer.reject("dims are not distinct and ascending: ", dim, " follows ", last, " (C1)");
    last = dim;
  }
  Type elementType = getElementType(op.getInput());
  if (elementType.isInteger(1) && op.getKind() != ReduceKind::Max && op.getKind() != ReduceKind::Min)
    return infer.reject("cannot compute the ", stringifyReduceKind(op.getKind()), " of bool (C2)");
  auto isReduced = [&](int64_t dim) { return llvm::is_contained(op.getDims(), dim); };
  return infer.give(reduceShape(getShape(op.getInput()), op.getKeepDims(), isReduced), elementType);
}

LogicalResult ArgReduceOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(infer.checkDim(op.getDim(), op.getInput())))
    return failure();
  int64_t reduced = op.getDim();
  if (getShape(op.getInput())[reduced] == 0)
    return infer.reject("dim ", reduced, " is empty (C1)");
  if (op.getKind() != ReduceKind::Max && op.getKind() != ReduceKind::Min)
    return infer.reject("kind is ", stringifyReduceKind(op.getKind()), ", expected max or min (C2)");
  auto shape = reduceShape(getShape(op.getInput()), op.getKeepDims(), [&](int64_t dim) { return dim == reduced; });
  return infer.give(shape, IntegerType::get(op.getInput().getContext(), 64));
}

/// Ops along one dim that keep the type.
template <typename Adaptor> static LogicalResult inferAlongDim(Adaptor op, TypeInference &infer) {
  if (failed(infer.checkDim(op.getDim(), op.getInput())))
    return failure();
  return infer.giveLike(op.getInput());
}

LogicalResult SoftmaxOp::inferTypes(Adaptor op, TypeInference &infer) { return inferAlongDim(op, infer); }
LogicalResult LogSoftmaxOp::inferTypes(Adaptor op, TypeInference &infer) { return inferAlongDim(op, infer); }
LogicalResult CumsumOp::inferTypes(Adaptor op, TypeInference &infer) { return inferAlongDim(op, infer); }

LogicalResult TopKOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(infer.checkDim(op.getDim(), op.getInput())))
    return failure();
  SmallVector<int64_t> shape(getShape(op.getInput()));
  int64_t k = op.getK(), dim = op.getDim();
  if (k < 0 || k > shape[dim])
    return infer.reject("k is ", k, ", expected 0 to ", shape[dim], ", the size of dim ", dim, " (C2)");
  shape[dim] = k;
  (void)infer.give(shape, getElementType(op.getInput()));
  return infer.give(shape, IntegerType::get(op.getInput().getContext(), 64));
}

//===----------------------------------------------------------------------===//
// Dims in another order, several at once
//===----------------------------------------------------------------------===//

/// Dims that are left without those that are reduced must stand as they did.
bool ReduceOp::canReorder(ArrayRef<int64_t> order) {
  return getKeepDims() || keepsOrder(order, [&](int64_t dim) { return !llvm::is_contained(getDims(), dim); });
}

void ReduceOp::reorder(ArrayRef<int64_t> order) {
  SmallVector<int64_t> dims = llvm::map_to_vector(getDims(), [&](int64_t dim) { return findInOrder(order, dim); });
  llvm::sort(dims);
  setDims(dims);
}
void SoftmaxOp::reorder(ArrayRef<int64_t> order) { setDim(findInOrder(order, getDim())); }
void LogSoftmaxOp::reorder(ArrayRef<int64_t> order) { setDim(findInOrder(order, getDim())); }

Value ReduceOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool>, int64_t) {
  SmallVector<int64_t> dims = llvm::map_to_vector(getDims(), [](int64_t dim) { return dim + 1; });
  return compose.create<ReduceOp>(getKind(), operands[0], dims, getKeepDims());
}
Value SoftmaxOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool>, int64_t) {
  return compose.create<SoftmaxOp>(operands[0], int64_t(getDim()) + 1);
}

bool ReduceOp::isGentle(ArrayRef<bool>) { return getKind() == ReduceKind::Max || getKind() == ReduceKind::Min; }

Slope ReduceOp::getSlope() {
  return getKind() == ReduceKind::Sum || getKind() == ReduceKind::Mean ? Slope::Constant : Slope::OfOperands;
}
