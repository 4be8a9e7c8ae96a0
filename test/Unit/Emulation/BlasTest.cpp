//===- BlasTest.cpp - products of matrices of the emulated cuBLASLt -------===//
//
// Small integers, so that sums are exact in every type and order.
//
//===----------------------------------------------------------------------===//
#include "Devices.h"

#include <cmath>
#include <cstring>

using namespace cleave::cuda;

namespace {
/// A matrix of a test: element (i, j) of batch b is a formula; where it lies depends on the layout.
struct Matrix {
  uint64_t rows, columns, leading;
  BlasOrder order;
  int32_t batches;
  int64_t stride;

  size_t place(int32_t batch, uint64_t i, uint64_t j) const {
    return size_t(batch) * size_t(stride) + (order == BlasOrder::Rows ? i * leading + j : j * leading + i);
  }
  size_t size() const { return size_t(batches) * size_t(stride); }
  std::vector<float> fill(int seed) const {
    std::vector<float> values(size(), -100.f);
    for (int32_t b = 0; b < batches; ++b)
      for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < columns; ++j)
          values[place(b, i, j)] = float(int((i * 5 + j * 3 + uint64_t(b) + uint64_t(seed)) % 7) - 3);
    return values;
  }
  MatrixLayout describe() const {
    const Blas &blas = getBlas();
    MatrixLayout layout = nullptr;
    EXPECT_EQ(blas.cublasLtMatrixLayoutCreate(&layout, BlasType::F32, rows, columns, int64_t(leading)),
              BlasStatus::Success);
    EXPECT_EQ(blas.cublasLtMatrixLayoutSetAttribute(layout, LayoutAttribute::Order, &order, sizeof order),
              BlasStatus::Success);
    EXPECT_EQ(blas.cublasLtMatrixLayoutSetAttribute(layout, LayoutAttribute::BatchCount, &batches, sizeof batches),
              BlasStatus::Success);
    EXPECT_EQ(blas.cublasLtMatrixLayoutSetAttribute(layout, LayoutAttribute::BatchStride, &stride, sizeof stride),
              BlasStatus::Success);
    return layout;
  }
};

Matrix makeMatrix(uint64_t rows, uint64_t columns, bool hasRows, int32_t batches) {
  uint64_t leading = (hasRows ? columns : rows) + 2, lines = hasRows ? rows : columns;
  return {
      rows, columns, leading, hasRows ? BlasOrder::Rows : BlasOrder::Columns, batches, int64_t(leading * lines + 3)};
}
} // namespace

static double finish(double value, BlasEpilogue epilogue) {
  if (epilogue == BlasEpilogue::Relu || epilogue == BlasEpilogue::ReluBias)
    return std::max(value, 0.);
  if (epilogue == BlasEpilogue::Gelu || epilogue == BlasEpilogue::GeluBias)
    return value / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (value + 0.044715 * value * value * value)));
  return value;
}

/// Elements compared of one product.
static int checkProduct(bool isTransposedA, bool isTransposedB, bool hasRows, BlasEpilogue epilogue, float beta) {
  const Blas &blas = getBlas();
  UseDevice use(0);
  constexpr uint64_t m = 5, n = 4, k = 6;
  constexpr int32_t batches = 2;
  Matrix a = makeMatrix(isTransposedA ? k : m, isTransposedA ? m : k, hasRows, batches);
  Matrix b = makeMatrix(isTransposedB ? n : k, isTransposedB ? k : n, !hasRows, batches);
  Matrix d = makeMatrix(m, n, hasRows, batches);
  std::vector<float> va = a.fill(0), vb = b.fill(1), vd = d.fill(2), bias{1, -2, 3, -4, 5};
  DevicePointer pa = upload(va), pb = upload(vb), pd = upload(vd), pbias = upload(bias);
  BlasHandle handle = nullptr;
  MatmulDescription description = nullptr;
  EXPECT_EQ(blas.cublasLtCreate(&handle), BlasStatus::Success);
  EXPECT_EQ(blas.cublasLtMatmulDescCreate(&description, BlasCompute::F32, BlasType::F32), BlasStatus::Success);
  auto set = [&](MatmulAttribute attribute, const void *value, size_t bytes) {
    EXPECT_EQ(blas.cublasLtMatmulDescSetAttribute(description, attribute, value, bytes), BlasStatus::Success);
  };
  BlasTranspose ta = isTransposedA ? BlasTranspose::Yes : BlasTranspose::No;
  BlasTranspose tb = isTransposedB ? BlasTranspose::Yes : BlasTranspose::No;
  set(MatmulAttribute::TransposeA, &ta, sizeof ta);
  set(MatmulAttribute::TransposeB, &tb, sizeof tb);
  set(MatmulAttribute::Epilogue, &epilogue, sizeof epilogue);
  set(MatmulAttribute::BiasPointer, &pbias, sizeof pbias);
  MatrixLayout la = a.describe(), lb = b.describe(), ld = d.describe();
  float alpha = 0.5f;
  Stream stream = makeStream();
  EXPECT_EQ(blas.cublasLtMatmul(handle, description, &alpha, reinterpret_cast<void *>(pa), la,
                                reinterpret_cast<void *>(pb), lb, &beta, reinterpret_cast<void *>(pd), ld,
                                reinterpret_cast<void *>(pd), ld, nullptr, nullptr, 0, stream),
            BlasStatus::Success);
  EXPECT_EQ(getDriver().cuStreamSynchronize(stream), Result::Success);
  std::vector<float> result = download<float>(pd, vd.size());
  bool hasBias =
      epilogue == BlasEpilogue::Bias || epilogue == BlasEpilogue::ReluBias || epilogue == BlasEpilogue::GeluBias;
  int compared = 0;
  for (int32_t batch = 0; batch < batches; ++batch)
    for (uint64_t i = 0; i < m; ++i)
      for (uint64_t j = 0; j < n; ++j, ++compared) {
        double sum = 0;
        for (uint64_t l = 0; l < k; ++l)
          sum += double(isTransposedA ? va[a.place(batch, l, i)] : va[a.place(batch, i, l)]) *
                 double(isTransposedB ? vb[b.place(batch, j, l)] : vb[b.place(batch, l, j)]);
        double expected = finish(alpha * sum + beta * vd[d.place(batch, i, j)] + (hasBias ? bias[i] : 0), epilogue);
        EXPECT_NEAR(result[d.place(batch, i, j)], expected, 1e-5);
      }
  return compared;
}

TEST(EmulatedBlas, MultipliesInEveryLayout) {
  int compared = 0;
  for (int form = 0; form < 8; ++form)
    for (BlasEpilogue epilogue : {BlasEpilogue::Default, BlasEpilogue::Relu, BlasEpilogue::Bias, BlasEpilogue::ReluBias,
                                  BlasEpilogue::Gelu, BlasEpilogue::GeluBias})
      for (float beta : {0.f, 2.f})
        compared += checkProduct(form & 1, form & 2, form & 4, epilogue, beta);
  EXPECT_EQ(compared, 8 * 6 * 2 * 40);
  EXPECT_EQ(takeFindings(), "");
}

/// One product of 1 x k x 1 in halves: what is summed in f32 is rounded once.
template <typename Set>
static std::vector<uint16_t> multiplyHalves(BlasType type, const std::vector<uint16_t> &a, Set set) {
  const Blas &blas = getBlas();
  UseDevice use(0);
  std::vector<uint16_t> ones(a.size(), type == BlasType::F16 ? 0x3c00 : 0x3f80);
  DevicePointer pa = upload(a), pb = upload(ones), pd = allocate(2);
  BlasHandle handle = nullptr;
  MatmulDescription description = nullptr;
  MatrixLayout la = nullptr, lb = nullptr, ld = nullptr;
  blas.cublasLtCreate(&handle);
  blas.cublasLtMatmulDescCreate(&description, BlasCompute::F32, BlasType::F32);
  blas.cublasLtMatrixLayoutCreate(&la, type, 1, a.size(), 1);
  blas.cublasLtMatrixLayoutCreate(&lb, type, a.size(), 1, int64_t(a.size()));
  blas.cublasLtMatrixLayoutCreate(&ld, type, 1, 1, 1);
  set(description, lb);
  float alpha = 1, beta = 0;
  Stream stream = makeStream();
  BlasStatus status = blas.cublasLtMatmul(handle, description, &alpha, reinterpret_cast<void *>(pa), la,
                                          reinterpret_cast<void *>(pb), lb, &beta, reinterpret_cast<void *>(pd), ld,
                                          reinterpret_cast<void *>(pd), ld, nullptr, nullptr, 0, stream);
  if (status != BlasStatus::Success)
    return {};
  EXPECT_EQ(getDriver().cuStreamSynchronize(stream), Result::Success);
  return download<uint16_t>(pd, 1);
}

TEST(EmulatedBlas, RoundsHalvesOnce) {
  auto nothing = [](MatmulDescription, MatrixLayout) {};
  // 2048 + 1 + 1 is 2050 in f16, which sums term by term would never leave 2048; 2051 lies between 2050 and 2052, of which
  // the latter is even. 256 + 1 + 1 likewise in bf16.
  EXPECT_EQ(multiplyHalves(BlasType::F16, {0x6800, 0x3c00, 0x3c00}, nothing), std::vector<uint16_t>{0x6801});
  EXPECT_EQ(multiplyHalves(BlasType::BF16, {0x4380, 0x3f80, 0x3f80}, nothing), std::vector<uint16_t>{0x4381});
  EXPECT_EQ(multiplyHalves(BlasType::F16, {0x6800, 0x3c00, 0x3c00, 0x3c00}, nothing), std::vector<uint16_t>{0x6802});
  EXPECT_EQ(multiplyHalves(BlasType::BF16, {0x4380, 0x3f80, 0x3f80, 0x3f80}, nothing), std::vector<uint16_t>{0x4382});
}

TEST(EmulatedBlas, RefusesWhatDoesNotFit) {
  takeFindings();
  auto batches = [](MatmulDescription, MatrixLayout b) {
    int32_t count = 3;
    getBlas().cublasLtMatrixLayoutSetAttribute(b, LayoutAttribute::BatchCount, &count, sizeof count);
  };
  EXPECT_TRUE(multiplyHalves(BlasType::F16, {0, 0}, batches).empty());
  EXPECT_EQ(takeFindings(), "cublasLtMatmul: batches are 3 and 1\n");
  auto turned = [](MatmulDescription description, MatrixLayout) {
    BlasTranspose yes = BlasTranspose::Yes;
    getBlas().cublasLtMatmulDescSetAttribute(description, MatmulAttribute::TransposeB, &yes, sizeof yes);
  };
  EXPECT_TRUE(multiplyHalves(BlasType::F16, {0, 0}, turned).empty());
  EXPECT_EQ(takeFindings(), "cublasLtMatmul: op(A) is 1 x 2, op(B) 1 x 2, D 1 x 1\n");
}

namespace {
/// A product of 2 x 64 by 64 x 3 in f32, with the algorithm that is asked for it.
struct Planned {
  BlasHandle handle = nullptr;
  MatmulDescription description = nullptr;
  MatrixLayout a = nullptr, b = nullptr, d = nullptr;
  MatmulPreference preference = nullptr;
  MatmulHeuristic results[4] = {};
  int found = -1;

  Planned() {
    const Blas &blas = getBlas();
    blas.cublasLtCreate(&handle);
    blas.cublasLtMatmulDescCreate(&description, BlasCompute::F32, BlasType::F32);
    blas.cublasLtMatrixLayoutCreate(&a, BlasType::F32, 2, 64, 2);
    blas.cublasLtMatrixLayoutCreate(&b, BlasType::F32, 64, 3, 64);
    blas.cublasLtMatrixLayoutCreate(&d, BlasType::F32, 2, 3, 2);
    blas.cublasLtMatmulPreferenceCreate(&preference);
  }
  BlasStatus ask(uint64_t workspace) {
    getBlas().cublasLtMatmulPreferenceSetAttribute(preference, PreferenceAttribute::MaxWorkspaceBytes, &workspace, 8);
    return getBlas().cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, d, d, preference, 4, results, &found);
  }
  BlasStatus run(DevicePointer pa, DevicePointer workspace, size_t bytes) {
    std::vector<float> vb(192), vd(6);
    DevicePointer pb = upload(vb), pd = upload(vd);
    float one = 1, zero = 0;
    return getBlas().cublasLtMatmul(handle, description, &one, pointer(pa), a, pointer(pb), b, &zero, pointer(pd), d,
                                    pointer(pd), d, &results[0].algorithm, pointer(workspace), bytes, makeStream());
  }
};
} // namespace

TEST(EmulatedBlas, AlgorithmsAreForWhatTheyWereAskedFor) {
  UseDevice use(0);
  takeFindings();
  Planned planned;
  EXPECT_EQ(planned.ask(1000), BlasStatus::Success);
  EXPECT_EQ(planned.found, 1);
  EXPECT_EQ(planned.results[0].workspaceBytes, 24u);
  DevicePointer pa = upload(std::vector<float>(129)), workspace = allocate(64);
  EXPECT_EQ(planned.run(pa, workspace, 24), BlasStatus::Success);
  EXPECT_EQ(planned.run(pa, workspace, 23), BlasStatus::InvalidValue);
  EXPECT_EQ(planned.run(pa, workspace + 16, 24), BlasStatus::InvalidValue);
  EXPECT_EQ(planned.run(pa + 4, workspace, 24), BlasStatus::InvalidValue);
  uint32_t least = 4;
  getBlas().cublasLtMatmulPreferenceSetAttribute(planned.preference, PreferenceAttribute::MinAlignmentA, &least, 4);
  EXPECT_EQ(planned.ask(0), BlasStatus::Success);
  EXPECT_EQ(planned.results[0].workspaceBytes, 0u);
  EXPECT_EQ(planned.run(pa + 4, 0, 0), BlasStatus::Success);
  BlasEpilogue relu = BlasEpilogue::Relu;
  getBlas().cublasLtMatmulDescSetAttribute(planned.description, MatmulAttribute::Epilogue, &relu, sizeof relu);
  EXPECT_EQ(planned.run(pa, 0, 0), BlasStatus::InvalidValue);
  EXPECT_EQ(takeFindings(), "cublasLtMatmul: a workspace of 23 bytes, of 24\n"
                            "cublasLtMatmul: the workspace is not aligned to 256 bytes\n"
                            "cublasLtMatmul: matrix A is not aligned to 256 bytes, as was promised\n"
                            "cublasLtMatmul: the algorithm is for another product\n");
}

TEST(EmulatedBlas, RefusesWhatTheTableOfTypesLacks) {
  UseDevice use(0);
  takeFindings();
  Planned planned;
  BlasEpilogue bias = BlasEpilogue::Bias;
  BlasType half = BlasType::BF16;
  DevicePointer somewhere = allocate(64);
  auto set = [&](MatmulAttribute attribute, const void *value, size_t bytes) {
    getBlas().cublasLtMatmulDescSetAttribute(planned.description, attribute, value, bytes);
  };
  set(MatmulAttribute::Epilogue, &bias, sizeof bias);
  set(MatmulAttribute::BiasPointer, &somewhere, sizeof somewhere);
  EXPECT_EQ(planned.ask(0), BlasStatus::Success);
  set(MatmulAttribute::BiasDataType, &half, sizeof half);
  EXPECT_EQ(planned.ask(0), BlasStatus::NotSupported);
  EXPECT_EQ(planned.found, 0);
  getBlas().cublasLtMatmulDescCreate(&planned.description, BlasCompute::F64, BlasType::F64);
  EXPECT_EQ(planned.ask(0), BlasStatus::NotSupported);
  getBlas().cublasLtMatrixLayoutCreate(&planned.b, BlasType::F32, 64, 3, 63);
  EXPECT_EQ(planned.ask(0), BlasStatus::InvalidValue);
  EXPECT_EQ(takeFindings(), "cublasLtMatmulAlgoGetHeuristic: a leading dimension is 63, less than 64\n");
}
