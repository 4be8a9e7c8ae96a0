//===- Indexing.cpp - result types of gathers and scatters ----------------===//
//
// What is known of indices here is their shape only: that they are in range depends on data, and the evaluator checks
// it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Composer.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// The dims of the indices take the place of the dim that is looked up.
LogicalResult GatherOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(infer.checkDim(op.getDim(), op.getInput())))
    return failure();
  int64_t dim = op.getDim();
  auto input = getShape(op.getInput());
  SmallVector<int64_t> shape(input.take_front(dim));
  llvm::append_range(shape, getShape(op.getIndices()));
  llvm::append_range(shape, input.drop_front(dim + 1));
  return infer.give(shape, getElementType(op.getInput()));
}

/// Indices of gather_elements and scatter_elements: the input's rank (C1), `dim` one of its dims (C2), and no dim but
/// `dim` larger than the input's (`tag`).
static LogicalResult checkElementIndices(Value input, Value indices, int64_t dim, StringRef tag, TypeInference &infer) {
  auto have = getShape(indices), limit = getShape(input);
  if (have.size() != limit.size())
    return infer.reject("input ", input.getType(), " and indices ", indices.getType(), " have different ranks (C1)");
  if (failed(infer.checkDim(dim, input, "C2")))
    return failure();
  for (auto [index, extent, most] : llvm::enumerate(have, limit))
    if (static_cast<int64_t>(index) != dim && extent > most)
      return infer.reject("indices have ", extent, " elements along dim ", index, " but the input has ", most, " (",
                          tag, ")");
  return success();
}

LogicalResult GatherElementsOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkElementIndices(op.getInput(), op.getIndices(), op.getDim(), "C3", infer)))
    return failure();
  return infer.give(getShape(op.getIndices()), getElementType(op.getInput()));
}

/// The last dim of the indices is a tuple: it stands for as many dims of the input, behind those that both share.
LogicalResult GatherNdOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput()), indices = getShape(op.getIndices());
  int64_t batch = op.getBatchDims(), least = std::min(input.size(), indices.size());
  if (batch < 0 || batch >= least)
    return infer.reject(batch, " batch dims are not in [0, ", least, ") (C1)");
  if (input.take_front(batch) != indices.take_front(batch))
    return infer.reject("input ", op.getInput().getType(), " and indices ", op.getIndices().getType(),
                        " differ in their first ", batch, " dims (C2)");
  int64_t tuple = indices.back(), left = input.size() - batch;
  if (tuple > left)
    return infer.reject("index tuples have ", tuple, " entries for ", left, " dims (C3)");
  SmallVector<int64_t> shape(indices.drop_back());
  llvm::append_range(shape, input.drop_front(batch + tuple));
  return infer.give(shape, getElementType(op.getInput()));
}

LogicalResult ScatterElementsOp::inferTypes(Adaptor op, TypeInference &infer) {
  if (failed(checkElementIndices(op.getInput(), op.getIndices(), op.getDim(), "C4", infer)))
    return failure();
  if (getShape(op.getUpdates()) != getShape(op.getIndices()) ||
      getElementType(op.getUpdates()) != getElementType(op.getInput()))
    return infer.reject("updates are ", op.getUpdates().getType(), ", expected the shape of ",
                        op.getIndices().getType(), " and element type ", getElementType(op.getInput()), " (C3)");
  return infer.giveLike(op.getInput());
}

LogicalResult ScatterNdOp::inferTypes(Adaptor op, TypeInference &infer) {
  auto input = getShape(op.getInput()), indices = getShape(op.getIndices());
  if (indices.empty() || indices.back() > static_cast<int64_t>(input.size()))
    return infer.reject("indices ", op.getIndices().getType(), " are not tuples of at most ", input.size(),
                        " entries (C1)");
  SmallVector<int64_t> expected(indices.drop_back());
  llvm::append_range(expected, input.drop_front(indices.back()));
  auto want = RankedTensorType::get(expected, getElementType(op.getInput()));
  if (!haveSameShapes(op.getUpdates().getType(), want))
    return infer.reject("updates are ", op.getUpdates().getType(), ", expected ", want, " (C2)");
  return infer.giveLike(op.getInput());
}

LogicalResult OneHotOp::inferTypes(Adaptor op, TypeInference &infer) {
  SmallVector<int64_t> shape(getShape(op.getIndices()));
  int64_t dim = op.getDim(), depth = op.getDepth(), rank = shape.size();
  if (dim < 0 || dim > rank)
    return infer.reject("dim ", dim, " is not in [0, ", rank, "] (C1)");
  if (depth < 1)
    return infer.reject("depth is ", depth, ", expected at least 1 (C2)");
  if (failed(infer.checkVector("values", op.getValues(), 2, "C3")))
    return failure();
  shape.insert(shape.begin() + dim, depth);
  return infer.give(shape, getElementType(op.getValues()));
}

//===----------------------------------------------------------------------===//
// How many places an index chooses from
//===----------------------------------------------------------------------===//

int64_t GatherOp::getNumPlaces() { return getInput().getType().getDimSize(getDim()); }
int64_t GatherElementsOp::getNumPlaces() { return getInput().getType().getDimSize(getDim()); }
int64_t GatherNdOp::getNumPlaces() { return getInput().getType().getDimSize(getBatchDims()); }
int64_t ScatterElementsOp::getNumPlaces() { return getInput().getType().getDimSize(getDim()); }
int64_t ScatterNdOp::getNumPlaces() { return getInput().getType().getDimSize(0); }
int64_t OneHotOp::getNumPlaces() { return getDepth(); }

/// Places of each in one table, or the same places in a table of each: not both, which would be a lookup with a batch dim.
Value GatherOp::stack(Composer &compose, ArrayRef<Value> operands, ArrayRef<bool> isStacked, int64_t) {
  int64_t dim = getDim();
  if (isStacked[0])
    return isStacked[1] ? Value() : compose.gather(operands[0], operands[1], dim + 1);
  return compose.moveDim(compose.gather(operands[0], operands[1], dim), dim, 0);
}

bool GatherOp::isGentle(ArrayRef<bool> varies) { return !varies[1]; }
