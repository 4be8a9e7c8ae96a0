//===- CudaBlas.cpp - matrix products by cuBLASLt -------------------------===//
//
// cuBLASLt thinks in columns, programs in rows: a matrix of rows is the transpose of one of columns, and where the result
// has rows the transpose of the product is computed, which has the operands exchanged:
//
//   D = A B        in rows, n elements each        ->        D' = B' A'        in columns, n elements each
//
// So a bias with an element per column of D has one per row of D', as cuBLASLt wants it. Dims of the batch that no one stride
// steps through are walked here, a call each.
//
//===----------------------------------------------------------------------===//
#include "CudaLibraries.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>

using namespace cleave::runtime;
namespace cuda = cleave::cuda;
namespace program = cleave::program;
using program::kGood;
using program::makeError;

/// So many calls for one command, and no more: kernels take a batch at once.
static constexpr size_t kMostCalls = 16;

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

namespace {

/// Two dims of a tensor, with their strides.
struct Matrix {
  int64_t rows = 0, columns = 0, down = 0, along = 0;
};

/// As cuBLASLt has it: `rows` elements side by side, `leading` from one column to the next.
struct Columns {
  int64_t rows = 0, columns = 0, leading = 0;
};

/// A matrix, and whether it is the transpose of these columns.
struct Oriented {
  Columns stored;
  bool isTransposed = false;
};

/// A dim of the batch: how far each tensor steps, in elements.
struct BatchDim {
  int64_t size = 1, a = 0, b = 0, residual = 0, result = 0;
};

} // namespace

/// In memory with one stride of 1, and the other not within a line; nothing if it is neither.
static std::optional<Oriented> orient(const Matrix &m) {
  // Along a dim of one element any stride will do.
  if ((m.down == 1 || m.rows == 1) && (m.along >= m.rows || m.columns == 1))
    return Oriented{{m.rows, m.columns, m.columns == 1 ? m.rows : m.along}, false};
  if ((m.along == 1 || m.columns == 1) && (m.down >= m.columns || m.rows == 1))
    return Oriented{{m.columns, m.rows, m.rows == 1 ? m.columns : m.down}, true};
  return std::nullopt;
}

/// The last two dims, or their transpose.
static Matrix getMatrix(const CallTensor &tensor, bool isTransposed) {
  Matrix m{tensor.getSize(1), tensor.getSize(0), tensor.getStride(1), tensor.getStride(0)};
  return isTransposed ? Matrix{m.columns, m.rows, m.along, m.down} : m;
}

/// Of several dims that one step leads through, one.
static std::vector<BatchDim> listBatch(const CallTensors &tensors) {
  std::vector<BatchDim> dims;
  size_t count = tensors.result.strides.size() - 2;
  for (size_t i = 0; i < count; ++i) {
    BatchDim dim{tensors.result.type->shape[i], tensors.a.strides[i], 0, 0, tensors.result.strides[i]};
    if (tensors.b.strides.size() == tensors.a.strides.size())
      dim.b = tensors.b.strides[i];
    if (tensors.residual.type)
      dim.residual = tensors.residual.strides[i];
    if (dim.size == 1)
      continue;
    auto follows = [&](int64_t BatchDim::*stride) { return dims.back().*stride == dim.*stride * dim.size; };
    if (!dims.empty() && follows(&BatchDim::a) && follows(&BatchDim::b) && follows(&BatchDim::residual) &&
        follows(&BatchDim::result)) {
      dim.size *= dims.back().size;
      dims.pop_back();
    }
    dims.push_back(dim);
  }
  return dims;
}

/// The one that cuBLASLt steps through itself: the longest.
static BatchDim takeLongest(std::vector<BatchDim> &dims) {
  auto longest =
      std::max_element(dims.begin(), dims.end(), [](const BatchDim &a, const BatchDim &b) { return a.size < b.size; });
  if (longest == dims.end())
    return {};
  BatchDim taken = *longest;
  dims.erase(longest);
  return taken;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {

/// cuBLASLt's type of an element; nothing of what it does not multiply.
std::optional<cuda::BlasType> getBlasType(program::Element element) {
  switch (element) {
  case program::Element::F16:
    return cuda::BlasType::F16;
  case program::Element::BF16:
    return cuda::BlasType::BF16;
  case program::Element::F32:
    return cuda::BlasType::F32;
  case program::Element::F64:
    return cuda::BlasType::F64;
  default:
    return std::nullopt;
  }
}

/// A product, with cuBLASLt's descriptors, and where its matrices begin: once for each step of the outer batch.
class MatmulCall final : public LibraryCall {
public:
  explicit MatmulCall(const cuda::Blas &blas, cuda::BlasHandle handle) : blas(blas), handle(handle) {}
  ~MatmulCall() override;
  program::Status plan(const program::Matmul &matmul, const CallTensors &tensors);
  program::Status enqueue(cuda::Stream stream, cuda::DevicePointer workspace) override;

private:
  struct Start {
    char *first, *second, *residual, *result;
  };
  program::Status check(cuda::BlasStatus status, const char *what) const {
    if (status == cuda::BlasStatus::Success)
      return kGood;
    return makeError(what, ": ", cuda::describe(status));
  }
  /// The first error of several calls is kept.
  void keep(cuda::BlasStatus status, const char *what) {
    if (!failed)
      failed = check(status, what);
  }
  template <typename T> void set(cuda::MatmulAttribute attribute, T value) {
    keep(blas.cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
         "cublasLtMatmulDescSetAttribute");
  }
  void describeEpilogue(const program::Matmul &matmul, const CallTensors &tensors);
  cuda::MatrixLayout makeLayout(cuda::BlasType type, const Columns &columns, const BatchDim &batch, int64_t stride);
  void listStarts(const CallTensors &tensors, const std::vector<BatchDim> &outer);
  void choose();

  const cuda::Blas &blas;
  cuda::BlasHandle handle;
  cuda::MatmulDescription description = nullptr;
  cuda::MatrixLayout layouts[4] = {}; ///< first, second, residual, result
  cuda::MatmulAlgorithm algorithm = {};
  bool isWide = false; ///< numbers are f64
  double scale = 1, keepsResidual = 0;
  std::vector<Start> starts;
  program::Status failed;
};

} // namespace

MatmulCall::~MatmulCall() {
  for (cuda::MatrixLayout layout : layouts)
    if (layout)
      (void)blas.cublasLtMatrixLayoutDestroy(layout);
  if (description)
    (void)blas.cublasLtMatmulDescDestroy(description);
}

cuda::MatrixLayout MatmulCall::makeLayout(cuda::BlasType type, const Columns &columns, const BatchDim &batch,
                                          int64_t stride) {
  cuda::MatrixLayout layout = nullptr;
  keep(blas.cublasLtMatrixLayoutCreate(&layout, type, uint64_t(columns.rows), uint64_t(columns.columns),
                                       columns.leading),
       "cublasLtMatrixLayoutCreate");
  if (failed || batch.size == 1)
    return layout;
  auto count = int32_t(batch.size);
  keep(blas.cublasLtMatrixLayoutSetAttribute(layout, cuda::LayoutAttribute::BatchCount, &count, sizeof count),
       "cublasLtMatrixLayoutSetAttribute");
  keep(blas.cublasLtMatrixLayoutSetAttribute(layout, cuda::LayoutAttribute::BatchStride, &stride, sizeof stride),
       "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

static bool isEpilogue(program::Activation activation) {
  return activation == program::Activation::None || activation == program::Activation::Relu ||
         activation == program::Activation::GeluTanh;
}

/// Precondition: the activation is one of these.
void MatmulCall::describeEpilogue(const program::Matmul &matmul, const CallTensors &tensors) {
  assert(isEpilogue(matmul.activation) && "an activation of no epilogue");
  bool hasBias = tensors.bias.type;
  cuda::BlasEpilogue epilogue = hasBias ? cuda::BlasEpilogue::Bias : cuda::BlasEpilogue::Default;
  if (matmul.activation == program::Activation::Relu)
    epilogue = hasBias ? cuda::BlasEpilogue::ReluBias : cuda::BlasEpilogue::Relu;
  else if (matmul.activation == program::Activation::GeluTanh)
    epilogue = hasBias ? cuda::BlasEpilogue::GeluBias : cuda::BlasEpilogue::Gelu;
  set(cuda::MatmulAttribute::Epilogue, epilogue);
  if (!hasBias)
    return;
  set(cuda::MatmulAttribute::BiasPointer, reinterpret_cast<cuda::DevicePointer>(tensors.bias.address));
  set(cuda::MatmulAttribute::BiasDataType, *getBlasType(tensors.bias.type->element));
}

/// Every combination of places of the outer dims.
void MatmulCall::listStarts(const CallTensors &tensors, const std::vector<BatchDim> &outer) {
  starts = {{tensors.a.address, tensors.b.address, tensors.residual.address, tensors.result.address}};
  auto bytesOf = [](const CallTensor &tensor, int64_t elements) {
    return tensor.type ? elements * program::getElementBytes(tensor.type->element) : 0;
  };
  for (const BatchDim &dim : outer) {
    std::vector<Start> stepped;
    for (const Start &start : starts)
      for (int64_t i = 0; i < dim.size; ++i)
        stepped.push_back({start.first + bytesOf(tensors.a, i * dim.a), start.second + bytesOf(tensors.b, i * dim.b),
                           start.residual + bytesOf(tensors.residual, i * dim.residual),
                           start.result + bytesOf(tensors.result, i * dim.result)});
    starts = std::move(stepped);
  }
}

/// What all calls' addresses are multiples of: cuBLASLt takes 256 for granted.
static uint32_t getAlignment(uint64_t address, uint32_t known) { return uint32_t(std::gcd<uint64_t>(known, address)); }

/// cuBLASLt's own choice among its algorithms, asked once.
void MatmulCall::choose() {
  cuda::MatmulPreference preference = nullptr;
  keep(blas.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  auto prefer = [&](cuda::PreferenceAttribute attribute, auto value) {
    keep(blas.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
         "cublasLtMatmulPreferenceSetAttribute");
  };
  uint32_t alignments[4] = {256, 256, 256, 256};
  for (const Start &start : starts) {
    char *const addresses[] = {start.first, start.second, keepsResidual != 0 ? start.residual : start.result,
                               start.result};
    for (size_t i = 0; i < 4; ++i)
      alignments[i] = getAlignment(reinterpret_cast<uint64_t>(addresses[i]), alignments[i]);
  }
  cuda::MatmulHeuristic found = {};
  int count = 0;
  if (!failed) {
    prefer(cuda::PreferenceAttribute::MaxWorkspaceBytes, kMostWorkspace);
    prefer(cuda::PreferenceAttribute::MinAlignmentA, alignments[0]);
    prefer(cuda::PreferenceAttribute::MinAlignmentB, alignments[1]);
    prefer(cuda::PreferenceAttribute::MinAlignmentC, alignments[2]);
    prefer(cuda::PreferenceAttribute::MinAlignmentD, alignments[3]);
    keep(blas.cublasLtMatmulAlgoGetHeuristic(handle, description, layouts[0], layouts[1], layouts[2], layouts[3],
                                             preference, 1, &found, &count),
         "cublasLtMatmulAlgoGetHeuristic");
  }
  if (preference)
    (void)blas.cublasLtMatmulPreferenceDestroy(preference);
  if (!failed && (count == 0 || found.state != cuda::BlasStatus::Success))
    failed = makeError("it knows no algorithm");
  algorithm = found.algorithm;
  workspaceBytes = found.workspaceBytes;
}

/// Operands that change places take their steps through the batch along.
static void exchange(CallTensors &tensors, std::vector<BatchDim> &batch) {
  std::swap(tensors.a, tensors.b);
  for (BatchDim &dim : batch)
    std::swap(dim.a, dim.b);
}

program::Status MatmulCall::plan(const program::Matmul &matmul, const CallTensors &given) {
  CallTensors tensors = given;
  std::vector<BatchDim> outer = listBatch(tensors);
  bool isA = matmul.transposeA, isB = matmul.transposeB;
  // In rows, if that is how the result lies.
  std::optional<Oriented> result = orient(getMatrix(tensors.result, true));
  bool isExchanged = result && !result->isTransposed;
  if (isExchanged) {
    exchange(tensors, outer);
    std::tie(isA, isB) = std::pair(!isB, !isA);
  } else {
    result = orient(getMatrix(tensors.result, false));
  }
  const CallTensor &added = tensors.residual.type ? tensors.residual : tensors.result;
  std::optional<Oriented> first = orient(getMatrix(tensors.a, isA)), second = orient(getMatrix(tensors.b, isB)),
                          residual = orient(getMatrix(added, isExchanged));
  std::optional<cuda::BlasType> factor = getBlasType(tensors.a.type->element),
                                made = getBlasType(tensors.result.type->element);
  if (!factor || !made || !first || !second || !result || !residual || result->isTransposed || residual->isTransposed)
    return makeError("a matrix is neither in rows nor in columns");
  if (tensors.bias.type && !isExchanged)
    return makeError("a bias goes across the result");
  BatchDim batch = takeLongest(outer);
  size_t calls = 1;
  for (const BatchDim &dim : outer)
    calls *= size_t(dim.size);
  if (calls > kMostCalls)
    return makeError("its batch is ", calls, " calls");
  isWide = *factor == cuda::BlasType::F64;
  scale = matmul.scale;
  keepsResidual = tensors.residual.type ? 1 : 0;
  bool isTf32 = matmul.tf32 && *factor == cuda::BlasType::F32;
  cuda::BlasCompute narrow = isTf32 ? cuda::BlasCompute::F32AsTF32 : cuda::BlasCompute::F32;
  keep(blas.cublasLtMatmulDescCreate(&description, isWide ? cuda::BlasCompute::F64 : narrow,
                                     isWide ? cuda::BlasType::F64 : cuda::BlasType::F32),
       "cublasLtMatmulDescCreate");
  if (failed)
    return failed;
  set(cuda::MatmulAttribute::TransposeA, first->isTransposed ? cuda::BlasTranspose::Yes : cuda::BlasTranspose::No);
  set(cuda::MatmulAttribute::TransposeB, second->isTransposed ? cuda::BlasTranspose::Yes : cuda::BlasTranspose::No);
  describeEpilogue(matmul, tensors);
  layouts[0] = makeLayout(*factor, first->stored, batch, batch.a);
  layouts[1] = makeLayout(*factor, second->stored, batch, batch.b);
  layouts[2] = makeLayout(*made, residual->stored, batch, keepsResidual != 0 ? batch.residual : batch.result);
  layouts[3] = makeLayout(*made, result->stored, batch, batch.result);
  listStarts(tensors, outer);
  if (!failed)
    choose();
  return failed;
}

/// Without a residual C is D, which is not read.
program::Status MatmulCall::enqueue(cuda::Stream stream, cuda::DevicePointer workspace) {
  auto narrow = [](double number) { return float(number); };
  float scales[] = {narrow(scale), narrow(keepsResidual)};
  double wideScales[] = {scale, keepsResidual};
  const void *alpha = isWide ? static_cast<const void *>(&wideScales[0]) : &scales[0];
  const void *beta = isWide ? static_cast<const void *>(&wideScales[1]) : &scales[1];
  for (const Start &start : starts) {
    cuda::BlasStatus status =
        blas.cublasLtMatmul(handle, description, alpha, start.first, layouts[0], start.second, layouts[1], beta,
                            keepsResidual != 0 ? start.residual : start.result, layouts[2], start.result, layouts[3],
                            &algorithm, reinterpret_cast<void *>(workspace), workspaceBytes, stream);
    if (program::Status error = check(status, "cublasLtMatmul"))
      return error;
  }
  return kGood;
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

program::Status CudaBlas::open() {
  program::Result<const cuda::Blas *> opened = cuda::openBlas();
  if (!opened)
    return opened.getError();
  blas = *opened;
  if (cuda::BlasStatus status = blas->cublasLtCreate(&handle); status != cuda::BlasStatus::Success)
    return makeError("cublasLtCreate: ", cuda::describe(status));
  return kGood;
}

CudaBlas::~CudaBlas() {
  if (handle)
    (void)blas->cublasLtDestroy(handle);
}

PreparedCall CudaBlas::prepare(const program::Matmul &matmul, const CallTensors &tensors) {
  if (!isEpilogue(matmul.activation))
    return makeError("it has no such activation");
  auto call = std::make_unique<MatmulCall>(*blas, handle);
  if (program::Status error = call->plan(matmul, tensors))
    return *error;
  return PreparedCall(std::move(call));
}
