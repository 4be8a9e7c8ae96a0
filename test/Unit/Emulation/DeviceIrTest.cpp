//===- DeviceIrTest.cpp - what device IR computes, against formulas -------===//
#include "Harness.h"
#include "gmock/gmock.h"
#include <cmath>
#include <cstring>

using namespace cleave::emulation;
using ::testing::HasSubstr;

/// Small numbers, exact in every type.
static float getA(int row, int k) { return float((row * 3 + k * 5) % 7 - 3); }
static float getB(int k, int column) { return float((k * 2 + column * 3) % 5 - 2); }

/// f16 of a small integer.
static uint16_t toHalf(float value) {
  if (value == 0)
    return 0;
  int exponent = 0;
  float fraction = std::frexp(std::fabs(value), &exponent); // in [0.5, 1)
  return uint16_t((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | int((fraction * 2 - 1) * 1024));
}

static std::string makeMultiply(const std::string &body) {
  return R"(
define ptx_kernel void @multiply(ptr dereferenceable(1024) %x, ptr dereferenceable(512) %y) {
  %l = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %i = mul i32 %l, 6
  %x0 = getelementptr i32, ptr %x, i32 %i
  %x1 = getelementptr i32, ptr %x0, i32 1
  %x2 = getelementptr i32, ptr %x0, i32 2
  %x3 = getelementptr i32, ptr %x0, i32 3
  %x4 = getelementptr i32, ptr %x0, i32 4
  %x5 = getelementptr i32, ptr %x0, i32 5
)" + body +
         R"(
  %j = mul i32 %l, 4
  %y0 = getelementptr float, ptr %y, i32 %j
  %r0 = extractvalue {float, float, float, float} %d, 0
  store float %r0, ptr %y0, align 4
  %y1 = getelementptr float, ptr %y0, i32 1
  %r1 = extractvalue {float, float, float, float} %d, 1
  store float %r1, ptr %y1, align 4
  %y2 = getelementptr float, ptr %y0, i32 2
  %r2 = extractvalue {float, float, float, float} %d, 2
  store float %r2, ptr %y2, align 4
  %y3 = getelementptr float, ptr %y0, i32 3
  %r3 = extractvalue {float, float, float, float} %d, 3
  store float %r3, ptr %y3, align 4
  ret void
})";
}

static std::string loadSix(const std::string &type) {
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += "  %v" + std::to_string(i) + " = load " + type + ", ptr %x" + std::to_string(i) + ", align 4\n";
  return text;
}

/// Row and column of accumulator i of a lane, as the PTX manual draws them.
static void checkProduct(const std::vector<float> &y, int depth) {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      int row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      float sum = 1;
      for (int k = 0; k < depth; ++k)
        sum += getA(row, k) * getB(k, column);
      EXPECT_EQ(y[4 * lane + i], sum) << lane << " " << i;
    }
}

TEST_F(KernelTest, MultipliesF16) {
  load(makeMultiply(loadSix("<2 x half>") +
                    "  %d = call {float, float, float, float} @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(<2 x half> %v0, "
                    "<2 x half> %v1, <2 x half> %v2, <2 x half> %v3, <2 x half> %v4, <2 x half> %v5, float 1.0, float "
                    "1.0, float 1.0, float 1.0)"));
  std::vector<uint32_t> x(256);
  std::vector<float> y(128);
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, k = lane % 4 * 2;
    auto pack = [](float low, float high) { return toHalf(low) | uint32_t(toHalf(high)) << 16; };
    // a0 a1: (g, k); a2 a3: (g + 8, k); a4 a5: (g, k + 8); a6 a7: (g + 8, k + 8)
    for (int i = 0; i < 4; ++i) {
      int row = group + 8 * (i & 1), depth = k + 8 * (i >> 1);
      x[6 * lane + i] = pack(getA(row, depth), getA(row, depth + 1));
    }
    for (int i = 0; i < 2; ++i)
      x[6 * lane + 4 + i] = pack(getB(k + 8 * i, group), getB(k + 8 * i + 1, group));
  }
  EXPECT_EQ(run("multiply", 1, 32, {x.data(), y.data()}), "");
  checkProduct(y, 16);
  EXPECT_THAT(run("multiply", 1, 16, {x.data(), y.data()}), HasSubstr("needs all 32 lanes"));
}

TEST_F(KernelTest, MultipliesTf32) {
  load(makeMultiply(loadSix("i32") +
                    "  %d = call {float, float, float, float} @llvm.nvvm.mma.m16n8k8.row.col.tf32(i32 %v0, i32 %v1, "
                    "i32 %v2, i32 %v3, i32 %v4, i32 %v5, float 1.0, float 1.0, float 1.0, float 1.0)"));
  std::vector<float> x(256), y(128);
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, k = lane % 4;
    for (int i = 0; i < 4; ++i)
      x[6 * lane + i] = getA(group + 8 * (i & 1), k + 4 * (i >> 1));
    for (int i = 0; i < 2; ++i)
      x[6 * lane + 4 + i] = getB(k + 4 * i, group);
    x[6 * lane] *= 1 + 0x1p-12f; // a bit that tf32 does not have
  }
  EXPECT_EQ(run("multiply", 1, 32, {x.data(), y.data()}), "");
  checkProduct(y, 8);
}

// Lane l brings row l of two matrices that follow one another in shared memory.
TEST_F(KernelTest, LoadsMatrices) {
  const std::string text = R"(
@tile = internal addrspace(3) global [16 x [8 x i16]] undef, align 16
define ptx_kernel void @matrices(ptr dereferenceable(384) %y) {
  %l = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %r = and i32 %l, 15
  %row = getelementptr [8 x i16], ptr addrspace(3) @tile, i32 %r
  %mine = icmp ult i32 %l, 16
  br i1 %mine, label %fill, label %filled
fill:
  %base = mul i32 %l, 8
  br label %next
next:
  %c = phi i32 [ 0, %fill ], [ %c1, %next ]
  %e = getelementptr i16, ptr addrspace(3) %row, i32 %c
  %n = add i32 %base, %c
  %v = trunc i32 %n to i16
  store i16 %v, ptr addrspace(3) %e, align 2
  %c1 = add i32 %c, 1
  %more = icmp ult i32 %c1, 8
  br i1 %more, label %next, label %filled
filled:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %two = call {i32, i32} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3) %row)
  %one = call i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.trans.b16.p3(ptr addrspace(3) %row)
  %a = extractvalue {i32, i32} %two, 0
  %b = extractvalue {i32, i32} %two, 1
  %j = mul i32 %l, 3
  %y0 = getelementptr i32, ptr %y, i32 %j
  store i32 %a, ptr %y0, align 4
  %y1 = getelementptr i32, ptr %y0, i32 1
  store i32 %b, ptr %y1, align 4
  %y2 = getelementptr i32, ptr %y0, i32 2
  store i32 %one, ptr %y2, align 4
  ret void
})";
  load(text);
  std::vector<uint32_t> y(96);
  EXPECT_EQ(run("matrices", 1, 32, {y.data()}), "");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t row = lane / 4, column = lane % 4 * 2, first = row * 8 + column;
    EXPECT_EQ(y[3 * lane], first | (first + 1) << 16);
    EXPECT_EQ(y[3 * lane + 1], (first + 64) | (first + 65) << 16);
    EXPECT_EQ(y[3 * lane + 2], (column * 8 + row) | ((column + 1) * 8 + row) << 16);
  }
}

/// To nearest even, by comparing distances in f64.
static uint16_t roundToBf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (value != value)
    return uint16_t(bits >> 16 | 0x40);
  uint32_t low = bits & 0xffff0000u, high = low + 0x10000;
  float below, above;
  memcpy(&below, &low, 4);
  memcpy(&above, &high, 4);
  double down = std::fabs(double(value) - below), up = std::isinf(above)
                                                           ? double(std::ldexp(1., 128)) - std::fabs(double(value))
                                                           : std::fabs(double(above) - value);
  if (bits == low || down < up || (down == up && !(low >> 16 & 1)))
    return uint16_t(low >> 16);
  return uint16_t(high >> 16);
}

TEST_F(KernelTest, RoundsBf16ToNearestEven) {
  load(R"(
define ptx_kernel void @round(ptr dereferenceable(16384) %x, ptr dereferenceable(8192) %y, ptr dereferenceable(8192) %z) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %m = mul i32 %b, 256
  %i = add i32 %m, %t
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p, align 4
  %r = fptrunc float %v to bfloat
  %q = getelementptr bfloat, ptr %y, i32 %i
  store bfloat %r, ptr %q, align 2
  %s = fmul bfloat %r, 1.5
  %w = getelementptr bfloat, ptr %z, i32 %i
  store bfloat %s, ptr %w, align 2
  ret void
})");
  std::vector<float> x(4096);
  for (uint32_t i = 0; i < 4096; ++i) {
    // Every exponent, denormals and NaN among them; ties in one of four.
    uint32_t bits = (i * 2654435761u & 0xffff0000u) | (i % 4 == 0 ? 0x8000u : i * 40503u & 0xffffu);
    memcpy(&x[i], &bits, 4);
  }
  std::vector<uint16_t> y(4096), z(4096);
  EXPECT_EQ(run("round", 16, 256, {x.data(), y.data(), z.data()}), "");
  int compared = 0;
  for (uint32_t i = 0; i < 4096; ++i) {
    EXPECT_EQ(y[i], roundToBf16(x[i])) << x[i];
    uint32_t wide = uint32_t(y[i]) << 16;
    float value;
    memcpy(&value, &wide, 4);
    EXPECT_EQ(z[i], roundToBf16(value * 1.5f)) << value;
    compared += 2;
  }
  EXPECT_EQ(compared, 8192);
}

TEST_F(KernelTest, CallsTheCLibraryForLibdevice) {
  load(R"(
declare float @__nv_expf(float)
declare double @__nv_erf(double)
declare float @__nv_rsqrtf(float)
declare i32 @__nv_isnanf(float)
declare float @__nv_fast_logf(float)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
define internal float @helper(float %x) noinline {
  %a = call float @__nv_expf(float %x)
  %b = call float @__nv_rsqrtf(float %a)
  ret float %b
}
define ptx_kernel void @math(ptr dereferenceable(4) %x, ptr dereferenceable(32) %y) {
  %v = load float, ptr %x, align 4
  %a = call float @helper(float %v)
  store float %a, ptr %y, align 4
  %w = fpext float %v to double
  %b = call double @__nv_erf(double %w)
  %q1 = getelementptr double, ptr %y, i32 1
  store double %b, ptr %q1, align 8
  %n = call i32 @__nv_isnanf(float %v)
  %q2 = getelementptr i32, ptr %y, i32 4
  store i32 %n, ptr %q2, align 4
  %l = call float @__nv_fast_logf(float %v)
  %q3 = getelementptr float, ptr %y, i32 5
  store float %l, ptr %q3, align 4
  %e = call float @llvm.nvvm.ex2.approx.ftz.f(float %v)
  %q4 = getelementptr float, ptr %y, i32 6
  store float %e, ptr %q4, align 4
  ret void
})");
  float x = 0.75f;
  alignas(8) float y[8] = {};
  EXPECT_EQ(run("math", 1, 1, {&x, y}), "");
  double second;
  memcpy(&second, y + 2, 8);
  EXPECT_NEAR(y[0], std::exp(-0.375), 1e-6);
  EXPECT_NEAR(second, std::erf(0.75), 1e-12);
  EXPECT_EQ(y[4], 0.f);
  EXPECT_NEAR(y[5], std::log(0.75), 1e-6);
  EXPECT_NEAR(y[6], std::exp2(0.75), 1e-6);
}

// What is not known is said, by name, and nothing is run.
TEST(Emulate, NamesWhatItDoesNotKnow) {
  auto refuse = [](const std::string &text) {
    std::string error;
    EXPECT_EQ(compileKernels(text, error), "");
    return error;
  };
  EXPECT_EQ(refuse("declare i32 @llvm.nvvm.read.ptx.sreg.clock()\ndefine ptx_kernel void @k() {\n  %c = call i32 "
                   "@llvm.nvvm.read.ptx.sreg.clock()\n  ret void\n}"),
            "kernel 'k': the emulated device does not know the intrinsic 'llvm.nvvm.read.ptx.sreg.clock'");
  EXPECT_EQ(
      refuse("declare float @__nv_j0f(float)\ndefine ptx_kernel void @k() {\n  %c = call float @__nv_j0f(float 1.0)\n  "
             "ret void\n}"),
      "kernel 'k': the emulated device does not know the function '__nv_j0f'");
  EXPECT_EQ(
      refuse("declare i32 @vprintf(ptr, ptr)\ndefine ptx_kernel void @k(ptr %p) {\n  %c = call i32 @vprintf(ptr %p, "
             "ptr %p)\n  ret void\n}"),
      "kernel 'k': the emulated device does not know the function 'vprintf'");
  EXPECT_EQ(refuse("define ptx_kernel void @k() {\n  call void asm sideeffect \"trap;\", \"\"()\n  ret void\n}"),
            "kernel 'k': the emulated device does not know assembly of the device, 'trap;'");
  EXPECT_EQ(refuse("define void @k() {\n  ret void\n}"), "the device's module has no kernels");
}

#ifdef __x86_64__
// The first x86-64 has no instruction for bf16: what is left of the type would call functions that no image finds.
TEST_F(KernelTest, KnowsBf16WithoutItsInstructions) {
  load(R"(
define ptx_kernel void @halves(ptr dereferenceable(128) %x, ptr dereferenceable(128) %y, ptr dereferenceable(256) %z) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr <8 x bfloat>, ptr %x, i32 %t
  %v = load <8 x bfloat>, ptr %px, align 16
  br label %again
again:
  %i = phi i32 [0, %0], [%n, %again]
  %sum = phi <8 x bfloat> [%v, %0], [%next, %again]
  %isNegative = fcmp olt <8 x bfloat> %sum, zeroinitializer
  %negated = fneg <8 x bfloat> %sum
  %size = select <8 x i1> %isNegative, <8 x bfloat> %negated, <8 x bfloat> %sum
  %next = fadd <8 x bfloat> %size, %v
  %n = add i32 %i, 1
  %isMore = icmp slt i32 %n, 2
  br i1 %isMore, label %again, label %done
done:
  %py = getelementptr <8 x bfloat>, ptr %y, i32 %t
  store <8 x bfloat> %next, ptr %py, align 16
  %pz = getelementptr <8 x i32>, ptr %z, i32 %t
  %words = fptosi <8 x bfloat> %next to <8 x i32>
  store <8 x i32> %words, ptr %pz, align 32
  ret void
})",
       "x86-64");
  // bf16 is the upper half of f32.
  std::vector<uint16_t> x(64), y(64);
  alignas(32) int32_t z[64] = {};
  for (int i = 0; i < 64; ++i) {
    float number = float(i - 20);
    uint32_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    x[i] = uint16_t(bits >> 16);
  }
  EXPECT_EQ(run("halves", 1, 8, {x.data(), y.data(), z}), "");
  for (int i = 0; i < 64; ++i) {
    // ||v| + v| + v
    int v = i - 20, want = v < 0 ? v : 3 * v;
    uint32_t bits = uint32_t(y[i]) << 16;
    float number = 0;
    memcpy(&number, &bits, sizeof(number));
    EXPECT_EQ(number, float(want)) << i;
    EXPECT_EQ(z[i], want) << i;
  }
}
#endif
