//===- Matmul.cpp - regions that are one matrix product -------------------===//
//
// Dims of an einsum are put together, kind by kind, where all tensors let them: what is left of rows, columns and depth are
// m, n and k, or a further batch in which the other operand stands still.
//
//   "bihd,bjhd->bhij"     batch (b, h), two strides in the operands, one in the result; m = i, n = j, k = d
//   "bic,cj->bij"         rows (b, i) are one run: m = b * i
//
//===----------------------------------------------------------------------===//
#include "Epilogue.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

/// A dim of the product, and how each tensor moves along it.
struct Dim {
  int64_t size = 1;
  int64_t a = 0, b = 0, result = 0;
  Strides added;

  /// True if this and `minor`, further in, are one run of every tensor.
  bool follows(const Dim &minor) const {
    auto isRun = [&](int64_t own, int64_t inner) { return own == inner * minor.size; };
    bool areRuns = isRun(a, minor.a) && isRun(b, minor.b) && isRun(result, minor.result);
    for (auto [own, inner] : llvm::zip_equal(added, minor.added))
      areRuns &= isRun(own, inner);
    return areRuns;
  }
};
using Dims = SmallVector<Dim>;

} // namespace

/// Largest strides of the result, or of the first operand where it has none, outside; then neighbors become one.
static void merge(Dims &dims) {
  llvm::erase_if(dims, [](const Dim &dim) { return dim.size == 1; });
  llvm::sort(dims, [](const Dim &x, const Dim &y) { return std::pair(x.result, x.a) > std::pair(y.result, y.a); });
  for (size_t i = dims.size(); i-- > 1;)
    if (dims[i - 1].follows(dims[i])) {
      dims[i].size *= dims[i - 1].size;
      dims.erase(dims.begin() + i - 1);
    }
}

/// The one of `dims` that a matrix has; the others are `batch`.
static Dim takeMatrixDim(Dims &dims, Dims &batch, size_t added) {
  if (dims.empty()) {
    Dim one;
    one.added.resize(added);
    return one;
  }
  Dim taken = dims.pop_back_val();
  batch.append(dims);
  return taken;
}

/// Along `dims`; a stride along a dim of one element is what row-major order would give it.
static LibraryTensor makeTensor(unsigned buffer, ArrayRef<const Dim *> dims,
                                llvm::function_ref<int64_t(const Dim &)> of) {
  LibraryTensor tensor{buffer, {}, {}};
  int64_t next = 1;
  for (const Dim *dim : llvm::reverse(dims)) {
    int64_t stride = dim->size == 1 ? next : of(*dim);
    tensor.shape.insert(tensor.shape.begin(), dim->size);
    tensor.strides.insert(tensor.strides.begin(), stride);
    next = std::max(next, stride * dim->size);
  }
  return tensor;
}

namespace {

/// The dims of an einsum with an epilogue, by kind.
class ProductDims {
public:
  ProductDims(nn::EinsumOp op, const Epilogue &epilogue, const Placed &a, const Placed &b)
      : epilogue(epilogue), first(a.buffer), second(b.buffer) {
    exec::MatmulDims dims = *exec::MatmulDims::get(op.getEquation(), op.getInputs().getTypes());
    auto add = [&](const exec::MatmulDims::OperandDims &places, Dims &kind) {
      for (size_t i = 0; i < std::max(places.lhs.size(), places.rhs.size()); ++i)
        kind.push_back(makeDim(op, places, i, a, b));
    };
    add(dims.batch, batch);
    add(dims.rows, rows);
    add(dims.columns, columns);
    add(dims.depth, depth);
  }
  std::optional<LibraryMatmul> describe();

private:
  Dim makeDim(nn::EinsumOp op, const exec::MatmulDims::OperandDims &places, size_t i, const Placed &a,
              const Placed &b) {
    Dim dim;
    if (i < places.lhs.size())
      dim.size = getShape(op.getInputs()[0])[places.lhs[i]], dim.a = a.strides[places.lhs[i]];
    if (i < places.rhs.size())
      dim.size = getShape(op.getInputs()[1])[places.rhs[i]], dim.b = b.strides[places.rhs[i]];
    bool isStored = i < places.result.size();
    dim.result = isStored ? epilogue.result.strides[places.result[i]] : 0;
    for (const Placed &tensor : epilogue.added)
      dim.added.push_back(isStored ? tensor.strides[places.result[i]] : 0);
    return dim;
  }
  void exchange();
  bool addEpilogue(LibraryMatmul &made, ArrayRef<const Dim *> stored, const Dim &m, const Dim &n) const;

  const Epilogue &epilogue;
  unsigned first, second;
  Dims batch, rows, columns, depth;
};

} // namespace

/// Both operands change places, and rows and columns with them.
void ProductDims::exchange() {
  std::swap(first, second);
  std::swap(rows, columns);
  for (Dims *kind : {&batch, &rows, &columns, &depth})
    for (Dim &dim : *kind)
      std::swap(dim.a, dim.b);
}

/// A bias moves along the columns alone, side by side; a residual along everything.
bool ProductDims::addEpilogue(LibraryMatmul &made, ArrayRef<const Dim *> stored, const Dim &m, const Dim &n) const {
  made.epilogue.scale = epilogue.scale;
  made.epilogue.activation = epilogue.activation;
  for (size_t i = 0; i < epilogue.added.size(); ++i) {
    auto isStill = [&](const Dim *dim) { return dim->size == 1 || dim->added[i] == 0; };
    bool isBias = llvm::all_of(stored.drop_back(), isStill) && (n.size == 1 || n.added[i] == 1);
    bool isResidual = llvm::none_of(stored, [&](const Dim *dim) { return dim->size != 1 && dim->added[i] == 0; });
    std::optional<LibraryTensor> &place = isBias && !made.epilogue.bias ? made.epilogue.bias : made.epilogue.residual;
    if (place || !(isBias || isResidual))
      return false;
    bool isVector = &place == &made.epilogue.bias;
    place = makeTensor(epilogue.added[i].buffer, isVector ? stored.take_back() : stored,
                       [&](const Dim &dim) { return dim.added[i]; });
  }
  return true;
}

std::optional<LibraryMatmul> ProductDims::describe() {
  for (Dims *kind : {&batch, &rows, &columns, &depth})
    merge(*kind);
  if (depth.size() > 1)
    return std::nullopt;
  auto getLeast = [](const Dims &dims) {
    return dims.empty() ? std::numeric_limits<int64_t>::max() : dims.back().result;
  };
  if (getLeast(rows) < getLeast(columns))
    exchange();
  size_t count = epilogue.added.size();
  Dim k = takeMatrixDim(depth, batch, count), n = takeMatrixDim(columns, batch, count),
      m = takeMatrixDim(rows, batch, count);
  merge(batch);
  SmallVector<const Dim *> a, b, stored;
  bool isSame = llvm::all_of(batch, [](const Dim &dim) { return dim.b == 0; });
  for (const Dim &dim : batch) {
    a.push_back(&dim);
    stored.push_back(&dim);
    if (!isSame)
      b.push_back(&dim);
  }
  a.append({&m, &k});
  b.append({&k, &n});
  stored.append({&m, &n});
  LibraryMatmul made;
  made.a = makeTensor(first, a, [](const Dim &dim) { return dim.a; });
  made.b = makeTensor(second, b, [](const Dim &dim) { return dim.b; });
  made.result = makeTensor(epilogue.result.buffer, stored, [](const Dim &dim) { return dim.result; });
  if (!addEpilogue(made, stored, m, n))
    return std::nullopt;
  return made;
}

std::optional<LibraryMatmul> cleave::codegen::findMatmul(Block &region) {
  auto einsum = findOnly<nn::EinsumOp>(region);
  if (!einsum || !exec::MatmulDims::get(einsum.getEquation(), einsum.getInputs().getTypes()))
    return std::nullopt;
  std::optional<Placed> a = placeOperand(einsum.getInputs()[0]), b = placeOperand(einsum.getInputs()[1]);
  std::optional<Epilogue> epilogue = Epilogue::find(region, einsum);
  if (!epilogue || !areFactors(a, b, region, einsum.getResult()) || countElements(getShape(einsum.getInputs()[0])) == 0)
    return std::nullopt;
  return ProductDims(einsum, *epilogue, *a, *b).describe();
}

SmallVector<const LibraryTensor *> LibraryMatmul::getTensors() const {
  SmallVector<const LibraryTensor *> tensors{&a, &b};
  for (const std::optional<LibraryTensor> *tensor : {&epilogue.bias, &epilogue.residual})
    if (*tensor)
      tensors.push_back(&**tensor);
  tensors.push_back(&result);
  return tensors;
}
