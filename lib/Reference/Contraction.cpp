//===- Contraction.cpp - einsum -------------------------------------------===//
//
// Operands are contracted from left to right, two at a time. Of two operands each letter is one of
//
//   batch    in both, and needed later        rows      in the left one only, and needed later
//   depth    in both, and not needed later    columns   in the right one only, and needed later
//
// (a letter in one operand only that nobody needs is summed beforehand), so each step is a batch of matrix products of
// operands brought into one order:
//
//   result [batch][rows][columns]  =  left [batch][rows][depth]  x  right [batch][depth][columns]
//
// Dims of size 1 are dropped at once: they repeat, sum over one element, or stand in the result for nothing.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "Kernels.h"
#include "MatrixProduct.h"

#include <numeric>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

namespace {

using Extents = std::array<int64_t, 256>;

/// A tensor whose dims have letters; its elements lie in that order.
template <typename T> struct Term {
  std::string letters;
  const T *data = nullptr;
  std::shared_ptr<const void> owner;
};

/// Evaluates one equation. `extents` maps a letter to its size.
template <typename T> class Contraction {
public:
  explicit Contraction(const Extents &extents) : extents(extents) {}

  /// The term over `wanted` that `terms` contract to.
  Term<T> run(ArrayRef<Term<T>> terms, const std::string &wanted);

private:
  SmallVector<int64_t> shapeOf(StringRef letters) const;
  int64_t count(StringRef letters) const { return product(shapeOf(letters)); }
  /// The term with its dims in the order of `letters` (all of the term's).
  Term<T> order(const Term<T> &term, const std::string &letters) const;
  /// The term summed over all letters that `isKept` does not admit.
  template <typename Fn> Term<T> sumTo(const Term<T> &term, Fn isKept) const;
  /// The product of two terms, summed over the letters that are not in `kept`.
  Term<T> contract(Term<T> left, Term<T> right, const std::string &kept) const;
  /// A term of zeros, to be written through `data`.
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

template <typename T> SmallVector<int64_t> Contraction<T>::shapeOf(StringRef letters) const {
  SmallVector<int64_t> shape;
  for (char letter : letters)
    shape.push_back(extents[uint8_t(letter)]);
  return shape;
}

template <typename T> Term<T> Contraction<T>::allocate(const std::string &letters, T *&data) const {
  auto storage = std::make_shared<std::vector<T>>(count(letters));
  data = storage->data();
  return {letters, data, storage};
}

template <typename T> Term<T> Contraction<T>::order(const Term<T> &term, const std::string &letters) const {
  if (term.letters == letters)
    return term;
  SmallVector<int64_t> strides = getRowMajorStrides(shapeOf(term.letters)), fromStrides;
  for (char letter : letters)
    fromStrides.push_back(strides[term.letters.find(letter)]);
  T *to;
  Term<T> result = allocate(letters, to);
  SmallVector<int64_t> shape = shapeOf(letters);
  copyStrided(shape, sizeof(T), reinterpret_cast<const char *>(term.data), fromStrides, reinterpret_cast<char *>(to),
              getRowMajorStrides(shape));
  return result;
}

template <typename T> template <typename Fn> Term<T> Contraction<T>::sumTo(const Term<T> &term, Fn isKept) const {
  std::string kept = filter(term.letters, isKept);
  std::string summed = filter(term.letters, [&](char letter) { return !isKept(letter); });
  if (summed.empty())
    return term;
  Term<T> rows = order(term, kept + summed);
  T *to;
  Term<T> result = allocate(kept, to);
  int64_t length = count(summed);
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  for (int64_t row = 0, numRows = count(kept); row < numRows; ++row)
    to[row] = T(std::accumulate(rows.data + row * length, rows.data + (row + 1) * length, Sum(0)));
  return result;
}

template <typename T> Term<T> Contraction<T>::contract(Term<T> left, Term<T> right, const std::string &kept) const {
  left = sumTo(left, [&](char letter) { return has(kept, letter) || has(right.letters, letter); });
  right = sumTo(right, [&](char letter) { return has(kept, letter) || has(left.letters, letter); });
  std::string batch, rows, depth;
  for (char letter : left.letters)
    (!has(right.letters, letter) ? rows : has(kept, letter) ? batch : depth) += letter;
  std::string columns = filter(right.letters, [&](char letter) { return !has(left.letters, letter); });
  // The inner loop runs along the columns; a matrix times a vector is turned round to have some.
  if (columns.empty() && !rows.empty())
    return contract(right, left, kept);
  left = order(left, batch + rows + depth);
  right = order(right, batch + depth + columns);
  T *to;
  Term<T> result = allocate(batch + rows + columns, to);
  int64_t m = count(rows), n = count(columns), k = count(depth), batches = count(batch);
  forEachTask(batches, double(batches) * m * n * k, [&](int64_t number) {
    multiply<T>(m, n, k, {left.data + number * m * k, k}, {right.data + number * k * n, n}, {to + number * m * n, n});
  });
  return result;
}

template <typename T> Term<T> Contraction<T>::run(ArrayRef<Term<T>> terms, const std::string &wanted) {
  Term<T> result = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string kept = wanted;
    for (const Term<T> &later : terms.drop_front(i + 1))
      kept += later.letters;
    result = contract(result, terms[i], kept);
  }
  return order(sumTo(result, [&](char letter) { return has(wanted, letter); }), wanted);
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
  Term<T> term{"", elements->data(), elements};
  for (auto [letter, extent] : llvm::zip_equal(letters, tensor.getShape()))
    if (extent != 1)
      term.letters += letter;
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
  Term<T> sum = Contraction<T>(extents).run(terms, wanted);
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
