//===- CallsTest.cpp - matrix products that libraries compute -------------===//
//
// Products as a program has them, handed to the runtime's device, which hands them to the emulated cuBLASLt. What comes back is
// held against the formula of docs/program-file.md.
//
//===----------------------------------------------------------------------===//
#include "Calls.h"

#include <cmath>

using namespace cleave;
using namespace cleave::cuda;

static double activate(double value, program::Activation activation) {
  if (activation == program::Activation::Relu)
    return std::max(value, 0.);
  if (activation == program::Activation::GeluTanh)
    return value / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (value + 0.044715 * value * value * value)));
  return value;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {
/// What is drawn of a product.
struct MatmulCase {
  std::vector<int64_t> batch;
  int64_t m, n, k;
  Element factor, made;
  bool isTransposedA, isTransposedB, isTurnedA, isTurnedB, isShared, hasBias, hasResidual;
  program::Activation activation;
};

class MatmulCalls : public CallsTest {
protected:
  MatmulCase drawCase();
  int check(const MatmulCase &drawn);
};
} // namespace

MatmulCase MatmulCalls::drawCase() {
  auto isDrawn = [&] { return draw(0, 1) == 1; };
  MatmulCase c{};
  for (int64_t dims = draw(0, 2); dims > 0; --dims)
    c.batch.push_back(draw(1, 3));
  c.m = draw(1, 9), c.n = draw(1, 9), c.k = isDrawn() ? draw(1, 12) : 70;
  Element types[] = {Element::F32, Element::F16, Element::BF16, Element::F64};
  c.factor = types[draw(0, 3)];
  bool isHalf = c.factor == Element::F16 || c.factor == Element::BF16, isWide = c.factor == Element::F64;
  c.made = isHalf && isDrawn() ? Element::F32 : c.factor;
  c.isTransposedA = isDrawn(), c.isTransposedB = isDrawn(), c.isTurnedA = isDrawn(), c.isTurnedB = isDrawn();
  c.isShared = isDrawn(), c.hasBias = isDrawn() && !isWide, c.hasResidual = isDrawn();
  program::Activation activations[] = {program::Activation::None, program::Activation::Relu,
                                       program::Activation::GeluTanh};
  c.activation = isWide ? program::Activation::None : activations[draw(0, 2)];
  return c;
}

/// Elements compared.
int MatmulCalls::check(const MatmulCase &c) {
  auto shape = [&](int64_t rows, int64_t columns, bool isTransposed, bool hasBatch) {
    std::vector<int64_t> dims = hasBatch ? c.batch : std::vector<int64_t>();
    dims.push_back(isTransposed ? columns : rows);
    dims.push_back(isTransposed ? rows : columns);
    return dims;
  };
  auto order = [&](size_t rank, bool isTurned) {
    std::vector<size_t> dims;
    for (size_t i = 0; i < rank; ++i)
      dims.push_back(i);
    if (isTurned)
      std::swap(dims[rank - 2], dims[rank - 1]);
    return dims;
  };
  size_t rank = c.batch.size() + 2, rankB = c.isShared ? 2 : rank;
  Operand a = make(c.factor, shape(c.m, c.k, c.isTransposedA, true), order(rank, c.isTurnedA), draw(0, 2));
  Operand b = make(c.factor, shape(c.k, c.n, c.isTransposedB, !c.isShared), order(rankB, c.isTurnedB), draw(0, 2));
  Operand result = make(c.made, shape(c.m, c.n, false, true), order(rank, false), draw(0, 2));
  Operand bias = make(c.made, {c.n}), residual = make(c.made, shape(c.m, c.n, false, true));
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
  matmul.transposeA = c.isTransposedA, matmul.transposeB = c.isTransposedB;
  matmul.scale = 0.5;
  matmul.activation = c.activation;
  std::vector<Operand *> operands{&a, &b};
  if (c.hasBias)
    matmul.bias = bias.view, operands.push_back(&bias);
  if (c.hasResidual)
    matmul.residual = residual.view, operands.push_back(&residual);
  std::string what;
  for (Operand *operand : {&a, &b, &residual, &result})
    what += program::format(operand->type) + (operand == &a && c.isTransposedA ? " transposed, " : ", ");
  SCOPED_TRACE(what + (c.isTransposedB ? "b transposed" : ""));
  EXPECT_TRUE(call(matmul, operands, result)) << getUse().reason;
  int compared = 0;
  std::vector<int64_t> at(rank);
  auto step = [&] {
    for (size_t dim = rank; dim-- > 0; at[dim] = 0)
      if (++at[dim] < result.type.shape[dim])
        return true;
    return false;
  };
  do {
    std::vector<int64_t> inA = at, inB = c.isShared ? std::vector<int64_t>(at.end() - 2, at.end()) : at;
    double sum = 0;
    for (int64_t l = 0; l < c.k; ++l) {
      inA[rank - 2] = c.isTransposedA ? l : at[rank - 2], inA[rank - 1] = c.isTransposedA ? at[rank - 2] : l;
      inB[rankB - 2] = c.isTransposedB ? at[rank - 1] : l, inB[rankB - 1] = c.isTransposedB ? l : at[rank - 1];
      sum += a.get(inA) * b.get(inB);
    }
    double expected = 0.5 * sum + (c.hasBias ? bias.get({at[rank - 1]}) : 0) + (c.hasResidual ? residual.get(at) : 0);
    expected = activate(expected, c.activation);
    bool isRounded = c.activation == program::Activation::GeluTanh;
    EXPECT_NEAR(result.get(at), expected, isRounded ? 1e-2 * (1 + std::abs(expected)) : 0);
    ++compared;
  } while (step());
  return compared;
}

TEST_F(MatmulCalls, AreWhatTheProgramSays) {
  int compared = 0, cases = 0;
  for (; cases < 300 && !HasFailure(); ++cases)
    compared += check(drawCase());
  EXPECT_GT(compared, 8000);
  EXPECT_EQ(getUse().calls, uint64_t(cases));
  EXPECT_EQ(getUse().fallbacks, 0u);
  EXPECT_GT(getUse().workspace, 0u);
}

/// Heads beside each other in memory: no one stride leads through batch and heads, which makes a call for each of the batch.
TEST_F(MatmulCalls, WalkABatchThatHasNoOneStride) {
  Operand a = make(Element::F32, {2, 3, 4, 5}, {0, 2, 1, 3}, 0), b = make(Element::F32, {2, 3, 5, 6}, {0, 2, 1, 3}, 0);
  Operand result = make(Element::F32, {2, 3, 4, 6});
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
  ASSERT_TRUE(call(matmul, {&a, &b}, result)) << getUse().reason;
  for (int64_t i = 0; i < 2 * 3 * 4 * 6; ++i) {
    std::vector<int64_t> at{i / 72, i / 24 % 3, i / 6 % 4, i % 6};
    double sum = 0;
    for (int64_t l = 0; l < 5; ++l)
      sum += a.get({at[0], at[1], at[2], l}) * b.get({at[0], at[1], l, at[3]});
    EXPECT_EQ(result.get(at), sum);
  }
}

/// A result in columns is the product as it stands.
TEST_F(MatmulCalls, WriteColumns) {
  Operand a = make(Element::F32, {4, 5}), b = make(Element::F32, {5, 6});
  Operand result = make(Element::F32, {4, 6}, {1, 0}, 1), bias = make(Element::F32, {6});
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
  ASSERT_TRUE(call(matmul, {&a, &b}, result)) << getUse().reason;
  for (int64_t i = 0; i < 24; ++i) {
    double sum = 0;
    for (int64_t l = 0; l < 5; ++l)
      sum += a.get({i / 6, l}) * b.get({l, i % 6});
    EXPECT_EQ(result.get({i / 6, i % 6}), sum);
  }
  matmul.bias = bias.view;
  EXPECT_FALSE(call(matmul, {&a, &b, &bias}, result));
  EXPECT_EQ(getUse().reason, "a bias goes across the result");
}

/// The result lies where the residual does.
TEST_F(MatmulCalls, WorkInPlace) {
  Operand a = make(Element::BF16, {4, 70}), b = make(Element::BF16, {70, 6}), result = make(Element::BF16, {4, 6});
  Operand before = result;
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.residual = matmul.result = result.view;
  ASSERT_TRUE(call(matmul, {&a, &b, &result}, result)) << getUse().reason;
  for (int64_t i = 0; i < 24; ++i) {
    double sum = before.get({i / 6, i % 6});
    for (int64_t l = 0; l < 70; ++l)
      sum += a.get({i / 6, l}) * b.get({l, i % 6});
    EXPECT_EQ(result.get({i / 6, i % 6}), sum);
  }
}

/// f32 is f32 unless the program says otherwise: 1 + 2^-12 is 1 in tf32.
TEST_F(MatmulCalls, RoundToTf32OnDemandOnly) {
  Operand a = make(Element::F32, {1, 1}), b = make(Element::F32, {1, 1}), result = make(Element::F32, {1, 1});
  a.set(0, 1 + 0x1p-12), b.set(0, 1);
  for (Operand *operand : {&a, &b})
    device->write(operand->address, operand->bytes.data(), operand->bytes.size());
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
  ASSERT_TRUE(call(matmul, {&a, &b}, result));
  EXPECT_EQ(result.get({0, 0}), 1 + 0x1p-12);
  matmul.tf32 = true;
  ASSERT_TRUE(call(matmul, {&a, &b}, result));
  EXPECT_EQ(result.get({0, 0}), 1);
}

/// What is left to kernels, and what is said of the first.
TEST_F(MatmulCalls, LeaveToKernelsWhatNoLibraryDoes) {
  auto refuse = [&](auto change, std::vector<int64_t> sizes = {4, 5, 6}) {
    open();
    Operand a = make(Element::F32, {sizes[0], sizes[1]}), b = make(Element::F32, {sizes[1], sizes[2]});
    Operand result = make(Element::F32, {sizes[0], sizes[2]});
    Operand bias = make(Element::BF16, {sizes[2]});
    program::Matmul matmul;
    matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
    std::vector<Operand *> operands{&a, &b};
    change(matmul, operands, bias, a);
    EXPECT_FALSE(call(matmul, operands, result));
    EXPECT_EQ(getUse().calls, 0u);
    EXPECT_EQ(getUse().fallbacks, 1u);
    return getUse().reason;
  };
  auto nothing = [](program::Matmul &, std::vector<Operand *> &, Operand &, Operand &) {};
  EXPECT_EQ(refuse([](program::Matmul &m, auto &, auto &, auto &) { m.activation = program::Activation::Gelu; }),
            "it has no such activation");
  EXPECT_EQ(refuse([](program::Matmul &m, auto &operands, Operand &bias, auto &) {
              m.bias = bias.view;
              operands.push_back(&bias);
            }),
            "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(refuse([&](program::Matmul &m, auto &, auto &, auto &) {
              program.types.push_back({Element::F32, {4, 5}, {10, 2}});
              m.a.type = uint32_t(program.types.size() - 1);
            }),
            "a matrix is neither in rows nor in columns");
  for (const char *entry :
       {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"}) {
    Setting fail("CLEAVE_EMULATION_FAIL", std::string(entry) + "=14");
    EXPECT_EQ(refuse(nothing), std::string(entry) + ": CUBLAS_STATUS_INTERNAL_ERROR");
  }
}

/// A batch that would be too many calls.
TEST_F(MatmulCalls, LeaveLongBatchesToKernels) {
  Operand a = make(Element::F32, {17, 20, 2, 3}, {0, 2, 1, 3}, 0), b = make(Element::F32, {17, 20, 3, 2});
  Operand result = make(Element::F32, {17, 20, 2, 2});
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
  EXPECT_FALSE(call(matmul, {&a, &b}, result));
  EXPECT_EQ(getUse().reason, "its batch is 17 calls");
}

/// A call that fails is an error of the device: what follows would read what it did not write.
TEST_F(MatmulCalls, SayWhatFails) {
  Operand a = make(Element::F32, {4, 5}), b = make(Element::F32, {5, 6}), result = make(Element::F32, {4, 6});
  program::Matmul matmul;
  matmul.a = a.view, matmul.b = b.view, matmul.result = result.view;
  std::optional<uint32_t> prepared = device->prepare(program, matmul, {a.address, b.address, result.address});
  ASSERT_TRUE(prepared);
  Setting fail("CLEAVE_EMULATION_FAIL", "cublasLtMatmul=13");
  device->call(*prepared, 0);
  EXPECT_EQ(settle(), "a library cannot compute: cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED");
}
