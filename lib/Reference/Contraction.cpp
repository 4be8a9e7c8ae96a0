//===- Contraction.cpp - einsum -------------------------------------------===//
//
// Operands are contracted from left to right, two at a time. Of two operands each letter is one of
//
//   batch    in both, and needed later        rows      in the left one only, and needed later
//   depth    in both, and not needed later    columns   in the right one only, and needed later
//
// (a letter in one operand only that nobody needs is summed beforehand), so each step is a batch of matrix products.
// Where the letters of a group lie in memory like one dim, the product reads them in place; else a copy is made first.
// Dims of size 1 are dropped at once: they repeat, sum over one element, or stand in the result for nothing.
//
//===----------------------------------------------------------------------===//
#include "Gemm.h"
#include "Kernels.h"
#include "Loops.h"

#include "llvm/Support/Parallel.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {

using Extents = std::array<int64_t, 256>;

/// A tensor whose dims have letters.
template <typename T> struct Term {
  std::string letters;
  SmallVector<int64_t> strides;
  const T *data = nullptr;
  std::shared_ptr<const void> owner;
};

/// The letters of a pair of terms by what they are for.
struct Groups {
  std::string batch, rows, columns, depth;
};

/// Evaluates one equation. `extents` maps a letter to its size.
template <typename T> class Contraction {
public:
  explicit Contraction(const Extents &extents) : extents(extents) {}

  /// The term over `wanted` that `terms` contract to, contiguous in that order.
  Term<T> run(SmallVector<Term<T>> terms, const std::string &wanted);

private:
  int64_t count(StringRef letters) const;
  SmallVector<int64_t> shapeOf(StringRef letters) const;
  SmallVector<int64_t> stridesOf(const Term<T> &term, StringRef letters) const;
  /// Stride with which the letters can be walked as one dim, or nothing.
  std::optional<int64_t> mergedStride(const Term<T> &term, StringRef letters) const;
  /// A contiguous copy with dims in the order of `letters` (all of the term's).
  Term<T> copy(const Term<T> &term, const std::string &letters) const;
  /// The term summed over all letters but `kept`.
  Term<T> sumTo(const Term<T> &term, const std::string &kept) const;
  Term<T> contract(Term<T> left, Term<T> right, const std::string &kept, const std::string &wanted) const;
  /// The products of terms with the same letters.
  Term<T> multiplyElements(const Term<T> &left, const Term<T> &right, const std::string &letters) const;
  void multiplyBatches(const Groups &groups, const Term<T> &left, const Term<T> &right, Term<T> &result) const;
  Term<T> allocate(const std::string &letters, T *&data) const;

  const Extents &extents;
};

} // namespace

/// Letters of `from` that `pick` admits, in order.
template <typename Fn> static std::string filter(const std::string &from, Fn pick) {
  std::string result;
  llvm::copy_if(from, std::back_inserter(result), pick);
  return result;
}
static bool has(const std::string &letters, char letter) { return letters.find(letter) != std::string::npos; }

template <typename T> int64_t Contraction<T>::count(StringRef letters) const { return product(shapeOf(letters)); }

template <typename T> SmallVector<int64_t> Contraction<T>::shapeOf(StringRef letters) const {
  SmallVector<int64_t> shape;
  for (char letter : letters)
    shape.push_back(extents[uint8_t(letter)]);
  return shape;
}

template <typename T> SmallVector<int64_t> Contraction<T>::stridesOf(const Term<T> &term, StringRef letters) const {
  SmallVector<int64_t> strides;
  for (char letter : letters)
    strides.push_back(term.strides[term.letters.find(letter)]);
  return strides;
}

template <typename T>
std::optional<int64_t> Contraction<T>::mergedStride(const Term<T> &term, StringRef letters) const {
  if (letters.empty())
    return 1;
  SmallVector<int64_t> strides = stridesOf(term, letters), shape = shapeOf(letters);
  for (size_t i = 0; i + 1 < strides.size(); ++i)
    if (strides[i] != strides[i + 1] * shape[i + 1])
      return std::nullopt;
  return strides.back();
}

template <typename T> Term<T> Contraction<T>::allocate(const std::string &letters, T *&data) const {
  auto storage = std::make_shared<std::vector<T>>(count(letters));
  data = storage->data();
  return {letters, getRowMajorStrides(shapeOf(letters)), data, storage};
}

template <typename T> Term<T> Contraction<T>::copy(const Term<T> &term, const std::string &letters) const {
  T *to;
  Term<T> result = allocate(letters, to);
  copyStrided(shapeOf(letters), sizeof(T), reinterpret_cast<const char *>(term.data), stridesOf(term, letters),
              reinterpret_cast<char *>(to), result.strides);
  return result;
}

template <typename T> Term<T> Contraction<T>::sumTo(const Term<T> &term, const std::string &kept) const {
  std::string summed = filter(term.letters, [&](char letter) { return !has(kept, letter); });
  if (summed.empty())
    return term;
  Term<T> rows = copy(term, kept + summed);
  T *to;
  Term<T> result = allocate(kept, to);
  int64_t length = count(summed);
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  for (int64_t row = 0, numRows = count(kept); row < numRows; ++row) {
    Sum sum = 0;
    for (int64_t i = 0; i < length; ++i)
      sum += rows.data[row * length + i];
    to[row] = T(sum);
  }
  return result;
}

template <typename T>
Term<T> Contraction<T>::multiplyElements(const Term<T> &left, const Term<T> &right, const std::string &letters) const {
  Term<T> a = copy(left, letters), b = copy(right, letters);
  T *to;
  Term<T> result = allocate(letters, to);
  for (int64_t i = 0, size = count(letters); i < size; ++i)
    to[i] = a.data[i] * b.data[i];
  return result;
}

template <typename T>
void Contraction<T>::multiplyBatches(const Groups &groups, const Term<T> &left, const Term<T> &right,
                                     Term<T> &result) const {
  int64_t m = count(groups.rows), n = count(groups.columns), k = count(groups.depth), batches = count(groups.batch);
  // The places of each batch, so that batches can run on any thread.
  Odometer odometer(shapeOf(groups.batch),
                    {stridesOf(left, groups.batch), stridesOf(right, groups.batch), stridesOf(result, groups.batch)});
  std::vector<std::array<int64_t, 3>> starts(batches);
  for (auto &start : starts) {
    llvm::copy(odometer.getOffsets(), start.begin());
    odometer.next();
  }
  MatrixView<T> a{left.data, *mergedStride(left, groups.rows), *mergedStride(left, groups.depth)};
  MatrixView<T> b{right.data, *mergedStride(right, groups.depth), *mergedStride(right, groups.columns)};
  int64_t toStride = *mergedStride(result, groups.rows);
  auto multiplyOne = [&](size_t batch) {
    auto [leftStart, rightStart, resultStart] = starts[batch];
    multiply<T>(m, n, k, {a.data + leftStart, a.rowStride, a.columnStride},
                {b.data + rightStart, b.rowStride, b.columnStride}, const_cast<T *>(result.data) + resultStart,
                toStride);
  };
  if (batches > 1 && double(m) * n * k * batches > (1 << 22))
    return llvm::parallelFor(0, batches, multiplyOne);
  for (int64_t batch = 0; batch < batches; ++batch)
    multiplyOne(batch);
}

template <typename T>
Term<T> Contraction<T>::contract(Term<T> left, Term<T> right, const std::string &kept,
                                 const std::string &wanted) const {
  left =
      sumTo(left, filter(left.letters, [&](char letter) { return has(kept, letter) || has(right.letters, letter); }));
  right =
      sumTo(right, filter(right.letters, [&](char letter) { return has(kept, letter) || has(left.letters, letter); }));
  Groups groups;
  for (char letter : left.letters)
    (!has(right.letters, letter) ? groups.rows : has(kept, letter) ? groups.batch : groups.depth) += letter;
  groups.columns = filter(right.letters, [&](char letter) { return !has(left.letters, letter); });
  // Without columns but with rows the product is thin; turned round it runs along the rows.
  if (groups.columns.empty() && !groups.rows.empty())
    return contract(right, left, kept, wanted);
  // The result is written where it is wanted if its columns come last and its rows lie like one dim.
  std::string order = groups.batch + groups.rows + groups.columns;
  T *to;
  Term<T> result = allocate(order, to);
  if (StringRef(wanted).ends_with(groups.columns) && wanted.size() == order.size()) {
    Term<T> direct = result;
    direct.letters = wanted;
    direct.strides = getRowMajorStrides(shapeOf(wanted));
    if (mergedStride(direct, groups.rows))
      result = direct;
  }
  if (!mergedStride(left, groups.rows) || !mergedStride(left, groups.depth))
    left = copy(left, groups.batch + groups.rows + groups.depth);
  if (!mergedStride(right, groups.columns) || !mergedStride(right, groups.depth))
    right = copy(right, groups.batch + groups.depth + groups.columns);
  if (groups.rows.empty() && groups.columns.empty() && groups.depth.empty())
    return multiplyElements(left, right, groups.batch);
  multiplyBatches(groups, left, right, result);
  return result;
}

template <typename T> Term<T> Contraction<T>::run(SmallVector<Term<T>> terms, const std::string &wanted) {
  Term<T> result = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    bool isLast = i + 1 == terms.size();
    std::string kept = wanted;
    for (const Term<T> &later : ArrayRef(terms).drop_front(i + 1))
      kept += later.letters;
    result = contract(result, terms[i], kept, isLast ? wanted : std::string());
  }
  result = sumTo(result, filter(result.letters, [&](char letter) { return has(wanted, letter); }));
  bool isOrdered = result.letters == wanted && result.strides == getRowMajorStrides(shapeOf(wanted));
  return isOrdered ? result : copy(result, wanted);
}

/// Letters of `term` whose size in the whole equation is above 1, with the size noted; sizes of 1 are left out.
static void noteExtents(StringRef letters, ArrayRef<int64_t> shape, Extents &extents) {
  for (auto [letter, extent] : llvm::zip_equal(letters, shape))
    if (extent != 1)
      extents[uint8_t(letter)] = extent;
}

/// An operand as a term without its dims of size 1.
template <typename T> static Term<T> makeTerm(StringRef letters, const Tensor &tensor) {
  auto elements = std::make_shared<Elements<T>>(tensor);
  Term<T> term;
  term.data = elements->data();
  term.owner = elements;
  for (auto [letter, extent, stride] :
       llvm::zip_equal(letters, tensor.getShape(), getRowMajorStrides(tensor.getShape())))
    if (extent != 1) {
      term.letters += letter;
      term.strides.push_back(stride);
    }
  return term;
}

template <typename T> static Tensor evaluateEinsum(nn::EinsumOp op, const nn::EinsumTerms &equation, Operands in) {
  Extents extents;
  extents.fill(1);
  for (auto [letters, tensor] : llvm::zip_equal(equation.inputs, in))
    noteExtents(letters, tensor.getShape(), extents);
  ResultBuffer<T> result(getResultType(op));
  // A sum over nothing is 0, and so is every product of such sums.
  bool isEmpty = llvm::any_of(in, [](const Tensor &tensor) { return tensor.getNumElements() == 0; });
  if (isEmpty || getResultType(op).getNumElements() == 0)
    return result.finish();
  SmallVector<Term<T>> terms;
  for (auto [letters, tensor] : llvm::zip_equal(equation.inputs, in))
    terms.push_back(makeTerm<T>(letters, tensor));
  std::string wanted = filter(equation.result.str(), [&](char letter) { return extents[uint8_t(letter)] != 1; });
  Term<T> sum = Contraction<T>(extents).run(std::move(terms), wanted);
  std::copy_n(sum.data, getResultType(op).getNumElements(), result.data());
  return result.finish();
}

void cleave::reference::registerContraction(KernelTable &table) {
  table.add<nn::EinsumOp>([](nn::EinsumOp op, Operands in) -> FailureOr<Tensor> {
    std::optional<nn::EinsumTerms> equation = nn::parseEinsum(op.getEquation());
    if (!equation)
      return op.emitOpError() << "has no valid equation: \"" << op.getEquation() << "\"";
    Type elementType = getResultType(op).getElementType();
    if (elementType.isInteger())
      return evaluateEinsum<uint64_t>(op, *equation, in);
    return elementType.isF64() ? evaluateEinsum<double>(op, *equation, in) : evaluateEinsum<float>(op, *equation, in);
  });
}
