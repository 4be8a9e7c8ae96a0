//===- MathTest.cpp - errors of functions of one float --------------------===//
//
// In units of the last place, against the C library in long double: floats of every exponent and sign, and the stretches
// where functions are neither constant nor straight. The bounds are what Math.cpp claims.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {

class MathTest : public KernelTest {};

/// 256 floats of each exponent and sign, and 2^17 between -110 and 110.
std::vector<float> drawFloats() {
  std::vector<float> floats = {0.0f, -0.0f};
  for (uint32_t exponent = 0; exponent < 255; ++exponent)
    for (uint32_t step = 0; step < 256; ++step)
      for (uint32_t sign : {0u, 1u}) {
        uint32_t bits = sign << 31 | exponent << 23 | (step * 0x8000u + step * 2654435761u % 0x8000u);
        float number;
        std::memcpy(&number, &bits, sizeof(number));
        floats.push_back(number);
      }
  for (int step = 0; step < 1 << 17; ++step)
    floats.push_back(-110.0f + 220.0f * float(step) / float(1 << 17) + 1e-4f);
  for (int step = 0; step < 1 << 16; ++step)
    floats.push_back(-5.0f + 10.0f * float(step) / float(1 << 16) + 1e-5f);
  return floats;
}

/// How far `got` is from `exact`, in distances of floats there.
double getUlps(float got, long double exact) {
  if (std::isnan(exact))
    return std::isnan(got) ? 0 : INFINITY;
  auto rounded = float(exact);
  if (std::isinf(rounded) || std::isinf(got))
    return rounded == got ? 0 : INFINITY;
  int exponent = rounded == 0 ? -149 : std::max(std::ilogb(rounded) - 23, -149);
  return double(std::fabs((long double)(got)-exact) / std::ldexp(1.0L, exponent));
}

struct Function {
  const char *op;
  long double (*exact)(long double);
  double bound;
  double least = 0; ///< what is smaller may be 0
};

long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }

TEST_F(MathTest, ErrorsAreWithinWhatIsClaimed) {
  std::vector<float> floats = drawFloats();
  auto type = RankedTensorType::get({int64_t(floats.size())}, Float32Type::get(&context));
  Tensor input = Tensor::zeros(type);
  llvm::copy(floats, input.write<float>().begin());
  for (const Function &function : {Function{"exp", expl, 1}, Function{"log", logl, 1}, Function{"erf", erfl, 1},
                                   Function{"tanh", tanhl, 2}, Function{"sigmoid", sigmoid, 3, 0x1p-125}}) {
    FailureOr<std::string> object =
        compile(llvm::formatv("func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{\n"
                              "%y = nn.{1} %x : (tensor<{0}xf32>) -> tensor<{0}xf32>\nreturn %y : tensor<{0}xf32>\n}",
                              floats.size(), function.op)
                    .str());
    ASSERT_TRUE(succeeded(object)) << errors;
    SmallVector<Tensor> got = runObject(*object, "kernel", {input}, {type});
    double worst = 0;
    float where = 0;
    for (auto [x, y] : llvm::zip_equal(floats, got.front().as<float>()))
      if (double ulps = getUlps(y, function.exact(x));
          !(ulps <= worst) && (y != 0 || function.exact(x) >= function.least)) {
        worst = ulps;
        where = x;
      }
    EXPECT_LE(worst, function.bound) << function.op << " at " << where;
    RecordProperty(function.op, std::to_string(worst));
  }
}

} // namespace
