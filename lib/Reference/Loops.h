//===- Loops.h - walking strided and broadcast tensors ----------*- C++ -*-===//
//
// Everything elementwise runs over *runs*: pieces of the result, at most 1,024 elements long, in which each operand
// either advances by one element or stays where it is. Dims are merged first, so that two operands of one shape make
// one long run:
//
//   result [2, 3, 4]   operand [3, 1]    ->   loops [2][3], run 4, operand strides [0][1], stays within a run
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_REFERENCE_LOOPS_H
#define CLEAVE_LIB_REFERENCE_LOOPS_H

#include "Elements.h"

#include "llvm/Support/Parallel.h"

namespace cleave::reference {

llvm::SmallVector<int64_t> getRowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Strides of a tensor of `shape` broadcast to `result` (numpy rules): 0 where it repeats.
llvm::SmallVector<int64_t> getBroadcastStrides(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> result);

/// Counts through `shape` in row-major order, keeping one offset per list of strides.
class Odometer {
public:
  Odometer(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<llvm::SmallVector<int64_t>> strides);
  /// To the next position; after the last one back to the first.
  void next();
  llvm::ArrayRef<int64_t> getOffsets() const { return offsets; }
  llvm::ArrayRef<int64_t> getPosition() const { return position; }

private:
  llvm::SmallVector<int64_t> shape, position, offsets;
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides;
};

/// The loop nest over a result whose operands broadcast to it.
class Runs {
public:
  static constexpr int64_t kLength = 1024;

  Runs(llvm::ArrayRef<int64_t> result, llvm::ArrayRef<llvm::ArrayRef<int64_t>> operands);
  /// Calls `fn(start in the result, length, starts in the operands)` for each run, in order.
  template <typename Fn> void forEach(Fn fn) const {
    if (numOuter == 0 || inner == 0)
      return;
    Odometer odometer(outerShape, outerStrides);
    llvm::SmallVector<int64_t> starts(innerStrides.size());
    for (int64_t outer = 0; outer < numOuter; ++outer, odometer.next())
      for (int64_t begin = 0; begin < inner; begin += kLength) {
        for (size_t i = 0; i < starts.size(); ++i)
          starts[i] = odometer.getOffsets()[i] + begin * innerStrides[i];
        fn(outer * inner + begin, std::min(kLength, inner - begin), llvm::ArrayRef<int64_t>(starts));
      }
  }
  /// True if the operand stays at one element within a run.
  bool staysWithinRun(unsigned operand) const { return innerStrides[operand] == 0; }

private:
  llvm::SmallVector<int64_t> outerShape, innerStrides;
  llvm::SmallVector<llvm::SmallVector<int64_t>> outerStrides;
  int64_t numOuter = 1, inner = 1;
};

/// Hands out an operand's part of a run in compute type, converted or repeated where it must be.
template <typename C> class RunReader {
public:
  RunReader(const Tensor &tensor, bool stays)
      : tensor(tensor), direct(isStoredAs<C>(tensor.getElementType()) ? tensor.as<C>().data() : nullptr), stays(stays) {
  }
  const C *read(int64_t start, int64_t length) {
    if (!stays && direct)
      return direct + start;
    if (!stays) {
      loadElements<C>(tensor, start, length, buffer);
    } else {
      loadElements<C>(tensor, start, 1, buffer);
      std::fill_n(buffer + 1, length - 1, buffer[0]);
    }
    return buffer;
  }

private:
  const Tensor &tensor;
  const C *direct;
  bool stays;
  C buffer[Runs::kLength];
};

/// Collects a run of results, stored by `commit`.
template <typename C> class RunWriter {
public:
  explicit RunWriter(Tensor &tensor)
      : tensor(tensor), direct(isStoredAs<C>(tensor.getElementType()) ? tensor.write<C>().data() : nullptr) {}
  C *at(int64_t start) { return direct ? direct + start : buffer; }
  void commit(int64_t start, int64_t length) {
    if (!direct)
      storeElements<C>(tensor, start, length, buffer);
  }

private:
  Tensor &tensor;
  C *direct;
  C buffer[Runs::kLength];
};

/// y = fn(x), in compute type `C`; the result in compute type `R`.
template <typename C, typename R = C, typename Fn>
Tensor mapUnary(const Tensor &x, mlir::RankedTensorType resultType, Fn fn) {
  Tensor result = Tensor::zeros(resultType);
  RunReader<C> reader(x, false);
  RunWriter<R> writer(result);
  int64_t count = result.getNumElements();
  for (int64_t start = 0; start < count; start += Runs::kLength) {
    int64_t length = std::min(Runs::kLength, count - start);
    const C *from = reader.read(start, length);
    R *to = writer.at(start);
    for (int64_t i = 0; i < length; ++i)
      to[i] = fn(from[i]);
    writer.commit(start, length);
  }
  return result;
}

/// z = fn(x, y), broadcast to the result.
template <typename C, typename R = C, typename Fn>
Tensor mapBinary(const Tensor &x, const Tensor &y, mlir::RankedTensorType resultType, Fn fn) {
  Tensor result = Tensor::zeros(resultType);
  Runs runs(resultType.getShape(), {x.getShape(), y.getShape()});
  RunReader<C> lhs(x, runs.staysWithinRun(0)), rhs(y, runs.staysWithinRun(1));
  RunWriter<R> writer(result);
  runs.forEach([&](int64_t start, int64_t length, llvm::ArrayRef<int64_t> starts) {
    const C *a = lhs.read(starts[0], length), *b = rhs.read(starts[1], length);
    R *to = writer.at(start);
    for (int64_t i = 0; i < length; ++i)
      to[i] = fn(a[i], b[i]);
    writer.commit(start, length);
  });
  return result;
}

/// Calls `fn(0)` to `fn(count - 1)`, which must not touch the same results; on several threads where `work`, about the
/// number of multiplications of all, is worth it.
template <typename Fn> void forEachTask(int64_t count, double work, Fn fn) {
  if (count > 1 && work > (1 << 22))
    return llvm::parallelFor(0, count, [&](size_t task) { fn(int64_t(task)); });
  for (int64_t task = 0; task < count; ++task)
    fn(task);
}

/// Copies `shape` elements of `elementBytes` between places with any strides (in elements, negative ones too).
void copyStrided(llvm::ArrayRef<int64_t> shape, int64_t elementBytes, const char *from,
                 llvm::ArrayRef<int64_t> fromStrides, char *to, llvm::ArrayRef<int64_t> toStrides);

/// Copies the box of `shape` at `fromOffset` of one tensor to `toOffset` of another of the same element type.
void copyBox(llvm::ArrayRef<int64_t> shape, const Tensor &from, llvm::ArrayRef<int64_t> fromOffset, Tensor &to,
             llvm::ArrayRef<int64_t> toOffset);

/// Elements as nn.cast converts them.
Tensor castElements(const Tensor &x, mlir::Type element);
/// `tensor` broadcast to `shape`.
Tensor broadcastTo(const Tensor &tensor, llvm::ArrayRef<int64_t> shape);

} // namespace cleave::reference

#endif // CLEAVE_LIB_REFERENCE_LOOPS_H
