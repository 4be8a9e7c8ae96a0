//===- MathTest.cpp - errors of functions of one float --------------------===//
//
// In units of the last place, against the C library in long double: floats of every exponent and sign, and the stretches
// where functions are neither constant nor straight. The bounds are what Math.cpp claims.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "cleave/Codegen/Device/Device.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {

struct Function;

class MathTest : public KernelTest {
protected:
  MathTest() {
    loadDeviceDialects(context);
    cuda = llvm::cantFail(CudaTarget::create("sm_90"));
  }
  void expectNear(const Function &function, double bound, llvm::ArrayRef<float> floats, const Tensor &got,
                  const std::string &where);

  std::unique_ptr<CudaTarget> cuda;
};

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

void MathTest::expectNear(const Function &function, double bound, llvm::ArrayRef<float> floats, const Tensor &got,
                          const std::string &where) {
  double worst = 0;
  float worstAt = 0;
  for (auto [x, y] : llvm::zip_equal(floats, got.as<float>()))
    if (double ulps = getUlps(y, function.exact(x));
        !(ulps <= worst) && (y != 0 || function.exact(x) >= function.least)) {
      worst = ulps;
      worstAt = x;
    }
  EXPECT_LE(worst, bound) << function.op << where << " at " << worstAt;
  RecordProperty(function.op + where, std::to_string(worst));
}

TEST_F(MathTest, ErrorsAreWithinWhatIsClaimed) {
  std::vector<float> floats = drawFloats();
  auto type = RankedTensorType::get({int64_t(floats.size())}, Float32Type::get(&context));
  Tensor input = Tensor::zeros(type);
  llvm::copy(floats, input.write<float>().begin());
  for (const Function &function : {Function{"exp", expl, 1}, Function{"log", logl, 1}, Function{"erf", erfl, 1},
                                   Function{"tanh", tanhl, 2}, Function{"sigmoid", sigmoid, 3, 0x1p-125}}) {
    std::string text =
        llvm::formatv("func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{\n"
                      "%y = nn.{1} %x : (tensor<{0}xf32>) -> tensor<{0}xf32>\nreturn %y : tensor<{0}xf32>\n}",
                      floats.size(), function.op)
            .str();
    FailureOr<std::string> object = compile(text);
    ASSERT_TRUE(succeeded(object)) << errors;
    SmallVector<Tensor> got;
    ASSERT_EQ(runObject(*object, "kernel", {input}, {type}, got), "");
    expectNear(function, function.bound, floats, got.front(), "");
    // What the emulated device has for approximations is exact: these are the errors of what is made of them.
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    got.clear();
    ASSERT_EQ(runOnDevice((*module->getOps<func::FuncOp>().begin()).front(), *cuda, *target, {input}, got), "");
    expectNear(function, std::max(function.bound, 2.0), floats, got.front(), " on a device");
  }
}

} // namespace
