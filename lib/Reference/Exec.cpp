//===- Exec.cpp - kernels and layouts ---------------------------------------===//
//
// A kernel is its ops, one after the other. So what a lowered program gives are the bits of the program that it was made
// from.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Loops.h"

#include "cleave/Reference/Evaluator.h"

#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

LogicalResult cleave::reference::runBody(Block &body, Operands operands, SmallVectorImpl<Tensor> &results) {
  llvm::DenseMap<Value, Tensor> values;
  auto lookUp = [&](ValueRange used) { return llvm::map_to_vector(used, [&](Value value) { return values[value]; }); };
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), operands))
    values[argument] = operand;
  for (Operation &op : body.without_terminator()) {
    SmallVector<Tensor> own;
    if (failed(evaluate(&op, lookUp(op.getOperands()), own)))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), own))
      values[value] = tensor;
  }
  llvm::append_range(results, lookUp(body.getTerminator()->getOperands()));
  return success();
}

/// Calls `fn` with the places of each element in both forms.
static void forEachPlace(ArrayRef<int64_t> plain, ArrayRef<int64_t> packed, const exec::Layout &layout,
                         function_ref<void(int64_t inPlain, int64_t inPacked)> fn) {
  SmallVector<int64_t> extents, strides, own = getRowMajorStrides(plain), steps = getRowMajorStrides(packed);
  for (int64_t dim : layout.order) {
    extents.push_back(plain[dim]);
    strides.push_back(own[dim]);
  }
  // Of a tensor in panels: the dims in front, n's panel, the k's, and then what is left of n and of the last k.
  size_t rank = extents.size(), batch = layout.width ? layout.batch : rank;
  Odometer odometer(extents, {strides});
  for (int64_t left = ShapedType::getNumElements(extents); left > 0; --left, odometer.next()) {
    ArrayRef<int64_t> at = odometer.getPosition();
    int64_t place = 0;
    for (size_t dim = 0; dim < batch; ++dim)
      place += at[dim] * steps[dim];
    if (layout.width) {
      int64_t n = at.back(), k = at[rank - 2];
      for (size_t dim = batch; dim + 2 < rank; ++dim)
        place += at[dim] * steps[dim + 1];
      place += n / layout.width * steps[batch] + k / layout.interleave * steps[rank - 1] +
               n % layout.width * layout.interleave + k % layout.interleave;
    }
    fn(odometer.getOffsets()[0], place);
  }
}

Tensor cleave::reference::pack(const Tensor &tensor, const exec::Layout &layout) {
  Tensor result =
      Tensor::zeros(RankedTensorType::get(*exec::getPackedShape(tensor.getShape(), layout), tensor.getElementType()));
  int64_t bytes = getElementBytes(result.getElementType());
  forEachPlace(tensor.getShape(), result.getShape(), layout, [&](int64_t inPlain, int64_t inPacked) {
    std::memcpy(result.write<char>().data() + inPacked * bytes, tensor.getBytes().data() + inPlain * bytes, bytes);
  });
  return result;
}

/// The other way; what fills panels up goes nowhere.
static Tensor unpack(exec::UnpackOp op, Operands in) {
  Tensor result = Tensor::zeros(getResultType(op));
  int64_t bytes = getElementBytes(result.getElementType());
  forEachPlace(result.getShape(), in[0].getShape(), op.getLayout(), [&](int64_t inPlain, int64_t inPacked) {
    std::memcpy(result.write<char>().data() + inPlain * bytes, in[0].getBytes().data() + inPacked * bytes, bytes);
  });
  return result;
}

void cleave::reference::registerExec(KernelTable &table) {
  using Results = SmallVectorImpl<Tensor>;
  table.addMany<exec::FusedOp>([](exec::FusedOp op, Operands operands, Results &results) {
    return runBody(op.getBody().front(), operands, results);
  });
  table.addMany<exec::LaunchOp>([](exec::LaunchOp op, Operands operands, Results &results) -> LogicalResult {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(op, op.getKernelAttr());
    if (!kernel)
      return op.emitOpError() << "cannot be evaluated: there is no " << op.getKernelAttr();
    return runBody(kernel.getBody().front(), operands, results);
  });
  table.add<exec::PackOp>([](exec::PackOp op, Operands in) {
    return pack(castElements(in[0], getResultType(op).getElementType()), op.getLayout());
  });
  table.add<exec::UnpackOp>(unpack);
}
