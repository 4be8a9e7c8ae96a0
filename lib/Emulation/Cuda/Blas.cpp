//===- Blas.cpp - cuBLASLt as a plain product of matrices -----------------===//
//
//   D = epilogue(alpha op(A) op(B) + beta C)
//
// Matrices are columns or rows `leading` elements apart, batches `stride` elements. Operands are put into rows of f32 (f64 for
// f64) first; sums go along k in order. A bias has an element per row of D. Gelu is the one by tanh, as in cuBLASLt.
//
// There is one algorithm. It is for the product that it was asked for, with the alignments that were promised: another product
// is refused. Of deep products it wants a workspace, and leaves NaN there.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "Entries.h"
#include "State.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

using namespace cleave::cuda;
using namespace cleave::emulation;

namespace cleave::cuda {
/// A handle holds nothing: there is no choice of algorithms to keep.
struct BlasContext {};
/// cuBLASLt's own defaults: nothing to work in, and what cuMemAlloc gives.
struct MatmulPreferenceHandle {
  uint64_t workspaceBytes = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
/// What is asked of a product beside its matrices, with cuBLASLt's own defaults.
struct MatmulDescriptionHandle {
  BlasCompute compute;
  BlasType scale;
  BlasTranspose transposeA = BlasTranspose::No, transposeB = BlasTranspose::No;
  BlasEpilogue epilogue = BlasEpilogue::Default;
  DevicePointer bias = 0;
  BlasType biasType = BlasType(-1); // that of D
};
/// A matrix as it is stored: rows and columns are those of memory, before any transpose.
struct MatrixLayoutHandle {
  BlasType type;
  uint64_t rows, columns;
  int64_t leading;
  BlasOrder order = BlasOrder::Columns;
  int32_t batches = 1;
  int64_t stride = 0;
};
} // namespace cleave::cuda

static uint64_t getBytes(BlasType type) {
  switch (type) {
  case BlasType::F64:
    return 8;
  case BlasType::F32:
  case BlasType::I32:
    return 4;
  case BlasType::F16:
  case BlasType::BF16:
    return 2;
  case BlasType::I8:
    return 1;
  }
  return 0;
}

/// Precondition: no integers (checkShapes).
static FloatKind getKind(BlasType type) {
  assert(type != BlasType::I8 && type != BlasType::I32 && "no float");
  return type == BlasType::F64    ? FloatKind::F64
         : type == BlasType::F16  ? FloatKind::F16
         : type == BlasType::BF16 ? FloatKind::BF16
                                  : FloatKind::F32;
}
static double load(const char *at, BlasType type) { return loadFloat(at, getKind(type)); }
static void store(char *at, BlasType type, double value) { storeFloat(at, getKind(type), value); }

namespace {
/// A product with all that it needs, as it stood when it was enqueued.
struct Product {
  MatmulDescriptionHandle description;
  MatrixLayoutHandle a, b, c, d;
  const char *pa, *pb, *pc;
  char *pd;
  double alpha, beta;

  uint64_t getRows() const { return d.rows; }
  uint64_t getColumns() const { return d.columns; }
  uint64_t getDepth() const { return description.transposeA == BlasTranspose::Yes ? a.rows : a.columns; }
};
} // namespace

/// Bytes of element (row, column) of a batch behind the first.
static uint64_t getOffset(const MatrixLayoutHandle &layout, int32_t batch, uint64_t row, uint64_t column) {
  bool hasRows = layout.order == BlasOrder::Rows;
  uint64_t line = hasRows ? row : column, place = hasRows ? column : row;
  return (uint64_t(batch) * uint64_t(layout.stride) + line * uint64_t(layout.leading) + place) * getBytes(layout.type);
}

/// op(X) as rows of T. TF32 has 10 bits of fraction.
template <typename T>
static std::vector<T> gather(const MatrixLayoutHandle &layout, const char *from, int32_t batch, bool isTransposed,
                             bool isTf32) {
  uint64_t rows = isTransposed ? layout.columns : layout.rows, columns = isTransposed ? layout.rows : layout.columns;
  std::vector<T> values(rows * columns);
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j) {
      uint64_t row = isTransposed ? j : i, column = isTransposed ? i : j;
      double value = load(from + getOffset(layout, batch, row, column), layout.type);
      values[i * columns + j] = isTf32 ? T(roundToTf32(float(value))) : T(value);
    }
  return values;
}

/// What is done to an element last. NaN stays NaN under relu, as in cuBLASLt.
static double finish(double value, BlasEpilogue epilogue) {
  switch (epilogue) {
  case BlasEpilogue::Relu:
  case BlasEpilogue::ReluBias:
    return value > 0 || value != value ? value : 0;
  case BlasEpilogue::Gelu:
  case BlasEpilogue::GeluBias:
    return 0.5 * value * (1 + std::tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)));
  default:
    return value;
  }
}

/// Three of the six epilogues add one.
static bool hasBias(BlasEpilogue epilogue) {
  return epilogue == BlasEpilogue::Bias || epilogue == BlasEpilogue::ReluBias || epilogue == BlasEpilogue::GeluBias;
}

/// That of D where the description says nothing.
static BlasType getBiasType(const Product &product) {
  return int(product.description.biasType) < 0 ? product.d.type : product.description.biasType;
}

/// One batch. The inner loop runs along a row of op(B), so that the compiler makes vectors of it; the order of a sum is that
/// of k all the same, and the same in every run.
template <typename T> static void multiply(const Product &p, int32_t batch) {
  uint64_t m = p.getRows(), n = p.getColumns(), k = p.getDepth();
  bool isTf32 = p.description.compute == BlasCompute::F32AsTF32;
  std::vector<T> a = gather<T>(p.a, p.pa, batch, p.description.transposeA == BlasTranspose::Yes, isTf32);
  std::vector<T> b = gather<T>(p.b, p.pb, batch, p.description.transposeB == BlasTranspose::Yes, isTf32);
  auto *bias = reinterpret_cast<const char *>(p.description.bias);
  std::vector<T> sums(n);
  for (uint64_t i = 0; i < m; ++i) {
    std::fill(sums.begin(), sums.end(), T(0));
    for (uint64_t l = 0; l < k; ++l)
      for (uint64_t j = 0; j < n; ++j)
        sums[j] += a[i * k + l] * b[l * n + j];
    for (uint64_t j = 0; j < n; ++j) {
      T value = T(p.alpha) * sums[j];
      if (p.beta != 0)
        value += T(p.beta) * T(load(p.pc + getOffset(p.c, batch, i, j), p.c.type));
      if (hasBias(p.description.epilogue))
        value += T(load(bias + i * getBytes(getBiasType(p)), getBiasType(p)));
      store(p.pd + getOffset(p.d, batch, i, j), p.d.type, finish(value, p.description.epilogue));
    }
  }
}

/// Lines of a matrix, each its own where there is something between them.
static void addTouches(const MatrixLayoutHandle &layout, const char *from, bool writes, std::vector<Touch> &touches) {
  bool hasRows = layout.order == BlasOrder::Rows;
  uint64_t lines = hasRows ? layout.rows : layout.columns, length = hasRows ? layout.columns : layout.rows;
  uint64_t bytes = getBytes(layout.type);
  bool isDense = uint64_t(layout.leading) == length;
  for (int32_t batch = 0; batch < layout.batches; ++batch)
    for (uint64_t line = 0; line < (isDense ? 1 : lines); ++line) {
      uint64_t offset = getOffset(layout, batch, hasRows ? line : 0, hasRows ? 0 : line);
      touches.push_back({from + offset, (isDense ? lines * length : length) * bytes, writes});
    }
}

/// Empty, or what does not fit.
static std::string checkShapes(const Product &p) {
  bool isA = p.description.transposeA == BlasTranspose::Yes, isB = p.description.transposeB == BlasTranspose::Yes;
  uint64_t m = isA ? p.a.columns : p.a.rows, k = isA ? p.a.rows : p.a.columns;
  uint64_t depth = isB ? p.b.columns : p.b.rows, n = isB ? p.b.rows : p.b.columns;
  if (k != depth || m != p.d.rows || n != p.d.columns || p.c.rows != p.d.rows || p.c.columns != p.d.columns)
    return "op(A) is " + std::to_string(m) + " x " + std::to_string(k) + ", op(B) " + std::to_string(depth) + " x " +
           std::to_string(n) + ", D " + std::to_string(p.d.rows) + " x " + std::to_string(p.d.columns);
  for (const MatrixLayoutHandle *layout : {&p.a, &p.b, &p.c, &p.d}) {
    uint64_t length = layout->order == BlasOrder::Rows ? layout->columns : layout->rows;
    if (layout->leading < int64_t(length))
      return "a leading dimension is " + std::to_string(layout->leading) + ", less than " + std::to_string(length);
    if (layout->batches != p.d.batches)
      return "batches are " + std::to_string(layout->batches) + " and " + std::to_string(p.d.batches);
    if (layout->type == BlasType::I8 || layout->type == BlasType::I32)
      return "integers are not emulated";
  }
  return hasBias(p.description.epilogue) && !p.description.bias ? "the epilogue has a bias, and no pointer to it" : "";
}

/// What cuBLASLt says no to, though it makes sense: its documentation has a table of types. Halves are summed in f32.
static bool isSupported(const Product &p) {
  BlasType from = p.a.type, to = p.d.type;
  bool isHalf = from == BlasType::F16 || from == BlasType::BF16, isWide = from == BlasType::F64;
  bool areTypes = p.b.type == from && p.c.type == to && (to == from || (isHalf && to == BlasType::F32));
  bool isSummed =
      isWide == (p.description.compute == BlasCompute::F64) && isWide == (p.description.scale == BlasType::F64);
  bool isFinished = p.description.epilogue == BlasEpilogue::Default || !isWide;
  return areTypes && isSummed && isFinished && (!hasBias(p.description.epilogue) || getBiasType(p) == to);
}

/// All that an algorithm is chosen by, but for alignments and workspace: the same number for the same product.
static uint64_t getSignature(const Product &p) {
  uint64_t hash = 14695981039346656037u;
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  add(uint64_t(p.description.compute)), add(uint64_t(p.description.transposeA)),
      add(uint64_t(p.description.transposeB));
  add(uint64_t(p.description.epilogue));
  for (const MatrixLayoutHandle *layout : {&p.a, &p.b, &p.c, &p.d}) {
    add(uint64_t(layout->type)), add(layout->rows), add(layout->columns), add(uint64_t(layout->leading));
    add(uint64_t(layout->order)), add(uint64_t(layout->batches)), add(uint64_t(layout->stride));
  }
  return hash;
}

/// Of deep products: a sum for each element.
static uint64_t getWorkspace(const Product &p, uint64_t most) {
  uint64_t bytes = p.getDepth() >= 64 ? 4 * p.getRows() * p.getColumns() : 0;
  return bytes <= most ? bytes : 0;
}

/// Whether a call keeps what its algorithm was chosen for; empty, or what it does not keep.
static std::string checkAlgorithm(const Product &p, const MatmulAlgorithm &algorithm, const void *workspace,
                                  size_t workspaceBytes) {
  if (algorithm.data[0] != getSignature(p))
    return "the algorithm is for another product";
  if (workspaceBytes < algorithm.data[1])
    return "a workspace of " + std::to_string(workspaceBytes) + " bytes, of " + std::to_string(algorithm.data[1]);
  if (algorithm.data[1] && reinterpret_cast<uint64_t>(workspace) % 256)
    return "the workspace is not aligned to 256 bytes";
  const char *const addresses[] = {p.pa, p.pb, p.pc, p.pd};
  for (int i = 0; i < 4; ++i)
    if (uint64_t alignment = algorithm.data[2 + i]; reinterpret_cast<uint64_t>(addresses[i]) % alignment)
      return std::string("matrix ") + "ABCD"[i] + " is not aligned to " + std::to_string(alignment) +
             " bytes, as was promised";
  return "";
}

/// A mistake of the caller: this call alone fails.
static BlasStatus refuseProduct(const std::string &why) {
  refuse("cublasLtMatmul", Result::InvalidValue, why);
  return BlasStatus::InvalidValue;
}

/// All operands are known from here on: the caller may change its description and layouts at once.
static BlasStatus enqueueProduct(StreamHandle &stream, const Product &product, void *workspace, size_t workspaceBytes) {
  ContextHandle &device = *stream.device;
  std::vector<Touch> touches;
  addTouches(product.a, product.pa, false, touches);
  addTouches(product.b, product.pb, false, touches);
  if (product.beta != 0)
    addTouches(product.c, product.pc, false, touches);
  addTouches(product.d, product.pd, true, touches);
  if (hasBias(product.description.epilogue))
    touches.push_back({reinterpret_cast<const char *>(product.description.bias),
                       product.d.rows * getBytes(getBiasType(product)), false});
  if (workspaceBytes)
    touches.push_back({static_cast<const char *>(workspace), workspaceBytes, true});
  for (const Touch &touch : touches)
    if (!isDeviceMemory(device, touch.from, touch.bytes))
      return refuseProduct("an operand is not all in memory of the device");
  std::string name = "a product of " + std::to_string(product.getRows()) + " x " + std::to_string(product.getDepth()) +
                     " x " + std::to_string(product.getColumns());
  Result result = enqueue(stream, name, touches, [product, workspace, workspaceBytes]() -> Step {
    return [=] {
      if (workspaceBytes)
        memset(workspace, 0xff, workspaceBytes);
      for (int32_t batch = 0; batch < product.d.batches; ++batch)
        product.description.compute == BlasCompute::F64 ? multiply<double>(product, batch)
                                                        : multiply<float>(product, batch);
      return Progress::Done;
    };
  });
  return result == Result::Success ? BlasStatus::Success : BlasStatus::ExecutionFailed;
}

/// An attribute has the size of its type, and no other.
template <typename T> static BlasStatus take(T &target, const void *value, size_t bytes) {
  if (bytes != sizeof target)
    return BlasStatus::InvalidValue;
  memcpy(&target, value, sizeof target);
  return BlasStatus::Success;
}

/// As CLEAVE_ENTER, for functions with statuses of their own.
#define CLEAVE_ENTER_BLAS()                                                                                            \
  if (Result planned = enter(__func__); planned != Result::Success)                                                    \
  return BlasStatus(planned)

namespace cleave::cuda {
extern "C" {

/// A context must be current, as for the real one.
BlasStatus cublasLtCreate(BlasHandle *handle) {
  CLEAVE_ENTER_BLAS();
  if (!getCurrent())
    return BlasStatus::NotInitialized;
  *handle = new BlasContext;
  return BlasStatus::Success;
}
/// Products that are in queues do not need it.
BlasStatus cublasLtDestroy(BlasHandle handle) {
  CLEAVE_ENTER_BLAS();
  delete handle;
  return BlasStatus::Success;
}

/// What is summed in which type follows from `compute`; `scale` is the type of alpha and beta.
BlasStatus cublasLtMatmulDescCreate(MatmulDescription *description, BlasCompute compute, BlasType scale) {
  CLEAVE_ENTER_BLAS();
  *description = new MatmulDescriptionHandle{compute, scale};
  return BlasStatus::Success;
}
BlasStatus cublasLtMatmulDescDestroy(MatmulDescription description) {
  CLEAVE_ENTER_BLAS();
  delete description;
  return BlasStatus::Success;
}
/// Attributes that nobody emulates are refused, not ignored.
BlasStatus cublasLtMatmulDescSetAttribute(MatmulDescription description, MatmulAttribute attribute, const void *value,
                                          size_t bytes) {
  CLEAVE_ENTER_BLAS();
  switch (attribute) {
  case MatmulAttribute::TransposeA:
    return take(description->transposeA, value, bytes);
  case MatmulAttribute::TransposeB:
    return take(description->transposeB, value, bytes);
  case MatmulAttribute::Epilogue:
    return take(description->epilogue, value, bytes);
  case MatmulAttribute::BiasPointer:
    return take(description->bias, value, bytes);
  case MatmulAttribute::BiasDataType:
    return take(description->biasType, value, bytes);
  }
  return BlasStatus::NotSupported;
}

/// One matrix until a count of batches is set.
BlasStatus cublasLtMatrixLayoutCreate(MatrixLayout *layout, BlasType type, uint64_t rows, uint64_t columns,
                                      int64_t leading) {
  CLEAVE_ENTER_BLAS();
  *layout = new MatrixLayoutHandle{type, rows, columns, leading};
  return BlasStatus::Success;
}
BlasStatus cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  CLEAVE_ENTER_BLAS();
  delete layout;
  return BlasStatus::Success;
}
/// Likewise: a layout that is half understood would be another matrix.
BlasStatus cublasLtMatrixLayoutSetAttribute(MatrixLayout layout, LayoutAttribute attribute, const void *value,
                                            size_t bytes) {
  CLEAVE_ENTER_BLAS();
  switch (attribute) {
  case LayoutAttribute::Order:
    return take(layout->order, value, bytes);
  case LayoutAttribute::BatchCount:
    return take(layout->batches, value, bytes);
  case LayoutAttribute::BatchStride:
    return take(layout->stride, value, bytes);
  }
  return BlasStatus::NotSupported;
}

BlasStatus cublasLtMatmulPreferenceCreate(MatmulPreference *preference) {
  CLEAVE_ENTER_BLAS();
  *preference = new MatmulPreferenceHandle;
  return BlasStatus::Success;
}
BlasStatus cublasLtMatmulPreferenceDestroy(MatmulPreference preference) {
  CLEAVE_ENTER_BLAS();
  delete preference;
  return BlasStatus::Success;
}
/// What is not known is refused.
BlasStatus cublasLtMatmulPreferenceSetAttribute(MatmulPreference preference, PreferenceAttribute attribute,
                                                const void *value, size_t bytes) {
  CLEAVE_ENTER_BLAS();
  switch (attribute) {
  case PreferenceAttribute::MaxWorkspaceBytes:
    return take(preference->workspaceBytes, value, bytes);
  case PreferenceAttribute::MinAlignmentA:
  case PreferenceAttribute::MinAlignmentB:
  case PreferenceAttribute::MinAlignmentC:
  case PreferenceAttribute::MinAlignmentD:
    return take(preference->alignments[int(attribute) - int(PreferenceAttribute::MinAlignmentA)], value, bytes);
  }
  return BlasStatus::NotSupported;
}

/// One result, whatever is asked for: callers must live with fewer than they wanted.
BlasStatus cublasLtMatmulAlgoGetHeuristic(BlasHandle handle, MatmulDescription description, MatrixLayout a,
                                          MatrixLayout b, MatrixLayout c, MatrixLayout d, MatmulPreference preference,
                                          int wanted, MatmulHeuristic *results, int *found) {
  CLEAVE_ENTER_BLAS();
  *found = 0;
  if (!handle || !description || !a || !b || !c || !d || !preference || wanted < 1)
    return BlasStatus::InvalidValue;
  Product product{*description, *a, *b, *c, *d, nullptr, nullptr, nullptr, nullptr, 1, 1};
  if (std::string why = checkShapes(product); !why.empty()) {
    refuse(__func__, Result::InvalidValue, why);
    return BlasStatus::InvalidValue;
  }
  if (!isSupported(product))
    return BlasStatus::NotSupported;
  *found = 1;
  results[0] = {};
  results[0].waves = 1;
  results[0].workspaceBytes = getWorkspace(product, preference->workspaceBytes);
  uint64_t *data = results[0].algorithm.data;
  data[0] = getSignature(product);
  data[1] = results[0].workspaceBytes;
  std::copy(std::begin(preference->alignments), std::end(preference->alignments), data + 2);
  return BlasStatus::Success;
}

/// Scales are read from the host now, as with the default pointer mode.
BlasStatus cublasLtMatmul(BlasHandle handle, MatmulDescription description, const void *alpha, const void *a,
                          MatrixLayout layoutA, const void *b, MatrixLayout layoutB, const void *beta, const void *c,
                          MatrixLayout layoutC, void *d, MatrixLayout layoutD, const MatmulAlgorithm *algorithm,
                          void *workspace, size_t workspaceBytes, Stream handleOfStream) {
  CLEAVE_ENTER_BLAS();
  StreamHandle *stream = getStream(handleOfStream);
  if (!handle || !stream)
    return BlasStatus::NotInitialized;
  Lock lock(stream->device->mutex);
  auto *scales = static_cast<const char *>(alpha);
  Product product{*description,
                  *layoutA,
                  *layoutB,
                  *layoutC,
                  *layoutD,
                  static_cast<const char *>(a),
                  static_cast<const char *>(b),
                  static_cast<const char *>(c),
                  static_cast<char *>(d),
                  load(scales, description->scale),
                  load(static_cast<const char *>(beta), description->scale)};
  std::string why = checkShapes(product);
  if (why.empty() && algorithm)
    why = checkAlgorithm(product, *algorithm, workspace, workspaceBytes);
  if (!why.empty())
    return refuseProduct(why);
  if (!isSupported(product))
    return BlasStatus::NotSupported;
  return enqueueProduct(*stream, product, workspace, workspaceBytes);
}

} // extern "C"
} // namespace cleave::cuda
