//===- KernelTest.cpp - errors planted in kernels are found and named -----===//
//
// Each kernel stands twice: as it should be, where nothing may be found and results are those of a formula; and with one
// error, which must be found, with block, thread, byte and object.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "gmock/gmock.h"
#include <numeric>

using namespace cleave::emulation;
using ::testing::HasSubstr;

static std::string replace(std::string text, const std::string &what, const std::string &with) {
  size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

static std::vector<float> count(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.f);
  return values;
}

// Element i of 100 in blocks of 64.
static const std::string twice = R"(
define ptx_kernel void @twice(ptr noalias readonly align 16 dereferenceable(400) %x, ptr noalias align 16 dereferenceable(400) %y) "nvvm.maxntid"="64" {
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %m = mul i32 %b, %n
  %i = add i32 %m, %t
  %in = icmp ult i32 %i, 100
  br i1 %in, label %body, label %end
body:
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p, align 4
  %w = fadd float %v, %v
  %q = getelementptr float, ptr %y, i32 %i
  store float %w, ptr %q, align 4
  br label %end
end:
  ret void
})";

TEST_F(KernelTest, RunsEveryThread) {
  load(twice);
  std::vector<float> x = count(100), y(100);
  EXPECT_EQ(run("twice", 2, 64, {x.data(), y.data()}), "");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(y[i], 2 * x[i]);
  EXPECT_EQ(find("twice")->parameters[0].flags, uint32_t(parameterIsPointer | parameterIsAlone));
  EXPECT_EQ(find("twice")->parameters[1].flags, uint32_t(parameterIsPointer | parameterIsAlone | parameterIsWritten));
  EXPECT_EQ(find("twice")->parameters[1].pointee, 400u);
}

TEST_F(KernelTest, FindsAMissingGuard) {
  load(replace(twice, "%i, 100", "%i, 128"));
  std::vector<float> x = count(100), y(100);
  EXPECT_EQ(
      run("twice", 2, 64, {x.data(), y.data()}),
      "kernel \"twice\", block (1,0,0), thread (36,0,0): load of 4 bytes at byte 400 of argument 0, which has 400: "
      "out of bounds (access 0)");
}

TEST_F(KernelTest, FindsAnIndexOffByOne) {
  load(replace(twice, "%q = getelementptr float, ptr %y, i32 %i",
               "%j = add i32 %i, 1\n  %q = getelementptr float, ptr %y, i32 %j"));
  std::vector<float> x = count(100), y(100);
  EXPECT_EQ(
      run("twice", 2, 64, {x.data(), y.data()}),
      "kernel \"twice\", block (1,0,0), thread (35,0,0): store of 4 bytes at byte 400 of argument 1, which has 400: "
      "out of bounds (access 1)");
}

TEST_F(KernelTest, FindsBlocksThatWriteTheSameBytes) {
  load(replace(twice, "%i = add i32 %m, %t", "%i = add i32 0, %t"));
  std::vector<float> x = count(100), y(100);
  EXPECT_EQ(run("twice", 2, 64, {x.data(), y.data()}),
            "kernel \"twice\", block (1,0,0), thread (0,0,0): store of 4 bytes at byte 0 of argument 1: race: thread "
            "(0,0,0) of block (0,0,0) wrote it in the same launch (access 1)");
}

TEST_F(KernelTest, HoldsBlocksToTheirSize) {
  load(twice);
  std::vector<float> x = count(100), y(100);
  EXPECT_EQ(run("twice", 1, 128, {x.data(), y.data()}),
            "kernel \"twice\": launched with 128 threads a block, it may have 64");
}

// y = x backwards, through shared memory.
static const std::string reverse = R"(
@tile = internal addrspace(3) global [64 x float] undef
define ptx_kernel void @reverse(ptr dereferenceable(256) %x, ptr dereferenceable(256) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr %x, i32 %t
  %v = load float, ptr %p, align 4
  %s = getelementptr float, ptr addrspace(3) @tile, i32 %t
  store float %v, ptr addrspace(3) %s, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r = sub i32 63, %t
  %u = getelementptr float, ptr addrspace(3) @tile, i32 %r
  %w = load float, ptr addrspace(3) %u, align 4
  %q = getelementptr float, ptr %y, i32 %t
  store float %w, ptr %q, align 4
  ret void
})";

TEST_F(KernelTest, PassesBarriers) {
  load(reverse);
  std::vector<float> x = count(64), y(64);
  EXPECT_EQ(run("reverse", 1, 64, {x.data(), y.data()}), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(y[i], x[63 - i]);
}

// In place: what is read through one name is written through another, and the barrier stands between.
TEST_F(KernelTest, SeesOneBufferUnderTwoNames) {
  load(reverse);
  std::vector<float> x = count(64);
  EXPECT_EQ(run("reverse", 1, 64, {x.data(), x.data()}), "");
  EXPECT_EQ(x[0], 64.f);
  load(replace(twice, "%p = getelementptr float, ptr %x, i32 %i",
               "%j = xor i32 %i, 1\n  %p = getelementptr float, ptr %x, i32 %j"));
  std::vector<float> z = count(128);
  EXPECT_THAT(run("twice", 1, 64, {z.data(), z.data()}),
              HasSubstr("race: thread (0,0,0) wrote it since the last barrier"));
}

TEST_F(KernelTest, FindsAMissingBarrier) {
  load(replace(reverse, "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", ""));
  std::vector<float> x = count(64), y(64);
  EXPECT_EQ(
      run("reverse", 1, 64, {x.data(), y.data()}),
      "kernel \"reverse\", block (0,0,0), thread (32,0,0): store of 4 bytes at byte 128 of shared variable \"tile\": "
      "race: thread (31,0,0) read it since the last barrier (access 1)");
}

TEST_F(KernelTest, FindsADivergentBarrier) {
  load(replace(reverse, "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", R"(
  %few = icmp ult i32 %t, 16
  br i1 %few, label %meet, label %on
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %on
on:)"));
  std::vector<float> x = count(64), y(64);
  // The others go on, and the first that reads what one of those wrote is a race too: that comes first here.
  EXPECT_THAT(run("reverse", 1, 64, {x.data(), y.data()}), HasSubstr("race"));
  load(R"(
define ptx_kernel void @diverge() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %few = icmp ult i32 %t, 16
  br i1 %few, label %meet, label %on
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %on
on:
  ret void
})");
  EXPECT_EQ(run("diverge", 1, 64, {}),
            "kernel \"diverge\", block (0,0,0), thread (0,0,0): divergence: 16 of 64 threads wait at barrier 0, 0 "
            "elsewhere, and 48 have left the kernel");
}

TEST_F(KernelTest, FindsOneValueStoredByMany) {
  load(replace(twice, "%q = getelementptr float, ptr %y, i32 %i", "%q = getelementptr float, ptr %y, i32 0"));
  std::vector<float> x(100, 1.f), y(100);
  EXPECT_EQ(run("twice", 1, 64, {x.data(), y.data()}),
            "kernel \"twice\", block (0,0,0), thread (1,0,0): store of 4 bytes at byte 0 of argument 1: race: thread "
            "(0,0,0) wrote it since the last barrier (access 1)");
}

TEST_F(KernelTest, FindsMisalignedVectors) {
  const std::string text = R"(
define ptx_kernel void @copy(ptr dereferenceable(64) %x, ptr dereferenceable(64) %y) {
  %p = getelementptr float, ptr %x, i32 4
  %v = load <4 x float>, ptr %p, align 16
  store <4 x float> %v, ptr %y, align 16
  ret void
})";
  alignas(16) float x[16] = {0, 1, 2, 3, 4, 5, 6, 7}, y[16] = {};
  load(text);
  EXPECT_EQ(run("copy", 1, 1, {x, y}), "");
  EXPECT_EQ(y[3], 7.f);
  load(replace(text, "i32 4", "i32 5"));
  EXPECT_EQ(run("copy", 1, 1, {x, y}),
            "kernel \"copy\", block (0,0,0), thread (0,0,0): load of 16 bytes at byte 20 of argument 0: misaligned, it "
            "must be a multiple of 16 (access 0)");
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

TEST_F(KernelTest, SumsAWarpByShuffles) {
  load(R"(
define ptx_kernel void @sum(ptr dereferenceable(256) %x, ptr dereferenceable(256) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr %x, i32 %t
  %v0 = load float, ptr %p, align 4
  %s0 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v0, i32 16, i32 31)
  %v1 = fadd float %v0, %s0
  %s1 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v1, i32 8, i32 31)
  %v2 = fadd float %v1, %s1
  %s2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v2, i32 4, i32 31)
  %v3 = fadd float %v2, %s2
  %s3 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v3, i32 2, i32 31)
  %v4 = fadd float %v3, %s3
  %s4 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %v4, i32 1, i32 31)
  %v5 = fadd float %v4, %s4
  %q = getelementptr float, ptr %y, i32 %t
  store float %v5, ptr %q, align 4
  ret void
})");
  std::vector<float> x = count(64), y(64);
  EXPECT_EQ(run("sum", 1, 64, {x.data(), y.data()}), "");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(y[i], i < 32 ? 528.f : 1552.f);
}

// up, down and idx, with a segment of 8 lanes for idx; a vote and a reduction.
TEST_F(KernelTest, ExchangesAsPtxSays) {
  load(R"(
define ptx_kernel void @lanes(ptr dereferenceable(640) %y) {
  %l = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %up = call {i32, i1} @llvm.nvvm.shfl.sync.up.i32p(i32 -1, i32 %l, i32 3, i32 0)
  %u = extractvalue {i32, i1} %up, 0
  %valid = extractvalue {i32, i1} %up, 1
  %d = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %l, i32 3, i32 31)
  %s = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %l, i32 2, i32 6175)
  %votes = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %valid)
  %all = call i32 @llvm.nvvm.redux.sync.add(i32 %l, i32 -1)
  %i = mul i32 %l, 5
  %q0 = getelementptr i32, ptr %y, i32 %i
  store i32 %u, ptr %q0, align 4
  %q1 = getelementptr i32, ptr %q0, i32 1
  store i32 %d, ptr %q1, align 4
  %q2 = getelementptr i32, ptr %q0, i32 2
  store i32 %s, ptr %q2, align 4
  %q3 = getelementptr i32, ptr %q0, i32 3
  store i32 %votes, ptr %q3, align 4
  %q4 = getelementptr i32, ptr %q0, i32 4
  store i32 %all, ptr %q4, align 4
  ret void
})");
  std::vector<uint32_t> y(160);
  EXPECT_EQ(run("lanes", 1, 32, {y.data()}), "");
  for (uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(y[5 * l], l < 3 ? l : l - 3);
    EXPECT_EQ(y[5 * l + 1], l > 28 ? l : l + 3);
    EXPECT_EQ(y[5 * l + 2], (l & 24) + 2);
    EXPECT_EQ(y[5 * l + 3], 0xfffffff8u);
    EXPECT_EQ(y[5 * l + 4], 496u);
  }
}

TEST_F(KernelTest, FindsShufflesThatLanesNeverReach) {
  load(R"(
define ptx_kernel void @half(ptr dereferenceable(128) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %few = icmp ult i32 %t, 16
  br i1 %few, label %meet, label %on
meet:
  %s = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float 1.0, i32 1, i32 31)
  br label %on
on:
  ret void
})");
  std::vector<float> y(32);
  EXPECT_THAT(run("half", 1, 32, {y.data()}),
              HasSubstr("thread (0,0,0): divergence: 16 of 32 threads wait at warp operation 0"));
}

// Lane l reads what lane l ^ 1 wrote: a meeting of the warp stands between, or not. Another warp's it would not order.
TEST_F(KernelTest, MeetingsOrderAWarpsMemory) {
  const std::string text = R"(
@tile = internal addrspace(3) global [64 x float] undef
define ptx_kernel void @swap(ptr dereferenceable(256) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %s = getelementptr float, ptr addrspace(3) @tile, i32 %t
  %f = uitofp i32 %t to float
  store float %f, ptr addrspace(3) %s, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %o = xor i32 %t, 1
  %u = getelementptr float, ptr addrspace(3) @tile, i32 %o
  %w = load float, ptr addrspace(3) %u, align 4
  %q = getelementptr float, ptr %y, i32 %t
  store float %w, ptr %q, align 4
  ret void
})";
  std::vector<float> y(64);
  load(text);
  EXPECT_EQ(run("swap", 1, 64, {y.data()}), "");
  EXPECT_EQ(y[6], 7.f);
  load(replace(text, "xor i32 %t, 1", "xor i32 %t, 32"));
  EXPECT_THAT(run("swap", 1, 64, {y.data()}), HasSubstr("race: thread (32,0,0) wrote it since the last barrier"));
  load(replace(text, "call void @llvm.nvvm.bar.warp.sync(i32 -1)", ""));
  EXPECT_THAT(run("swap", 1, 64, {y.data()}), HasSubstr("race: thread (0,0,0) read it since the last barrier"));
}

//===----------------------------------------------------------------------===//
// Atomics, asynchronous copies, other memory
//===----------------------------------------------------------------------===//

TEST_F(KernelTest, AtomicsDoNotRaceWithAtomics) {
  const std::string text = R"(
define ptx_kernel void @sum(ptr dereferenceable(4) %y) {
  %old = atomicrmw fadd ptr %y, float 1.0 monotonic, align 4
  ret void
})";
  load(text);
  float y = 0;
  EXPECT_EQ(run("sum", 3, 64, {&y}), "");
  EXPECT_EQ(y, 192.f);
  load(replace(text, "ret void", "%v = load float, ptr %y, align 4\n  store float %v, ptr %y, align 4\n  ret void"));
  EXPECT_THAT(run("sum", 1, 2, {&y}), HasSubstr("race: thread (0,0,0) read it since the last barrier"));
}

// Lane t copies element t; lane 31 - t reads it.
TEST_F(KernelTest, AsynchronousCopiesMustBeWaitedFor) {
  const std::string text = R"(
@tile = internal addrspace(3) global [32 x float] undef
define ptx_kernel void @copy(ptr addrspace(1) dereferenceable(128) %x, ptr addrspace(1) dereferenceable(128) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %x, i32 %t
  %s = getelementptr float, ptr addrspace(3) @tile, i32 %t
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %s, ptr addrspace(1) %p)
  call void @llvm.nvvm.cp.async.commit.group()
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %o = sub i32 31, %t
  %u = getelementptr float, ptr addrspace(3) @tile, i32 %o
  %w = load float, ptr addrspace(3) %u, align 4
  %q = getelementptr float, ptr addrspace(1) %y, i32 %t
  store float %w, ptr addrspace(1) %q, align 4
  ret void
})";
  std::vector<float> x = count(32), y(32);
  load(text);
  EXPECT_EQ(run("copy", 2, 32, {x.data(), y.data()}).find("thread (0,0,0) of block (0,0,0) wrote it") !=
                std::string::npos,
            true);
  EXPECT_EQ(run("copy", 1, 32, {x.data(), y.data()}), "");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(y[i], x[31 - i]);
  load(replace(text, "call void @llvm.nvvm.cp.async.wait.group(i32 0)",
               "call void @llvm.nvvm.cp.async.wait.group(i32 1)"));
  EXPECT_THAT(
      run("copy", 1, 32, {x.data(), y.data()}),
      HasSubstr(
          "load of 4 bytes at byte 124 of shared variable \"tile\": an asynchronous copy into it is not waited for"));
  load(replace(text, "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", ""));
  EXPECT_THAT(run("copy", 1, 32, {x.data(), y.data()}),
              HasSubstr("race: thread (15,0,0) read it since the last barrier"));
}

// Which of two arguments is read shows only at run time, and what a pointer in memory leads to only the device knows.
TEST_F(KernelTest, LooksUpWhatNoArgumentNames) {
  load(R"(
define ptx_kernel void @pick(ptr dereferenceable(64) %x, ptr dereferenceable(64) %y, ptr dereferenceable(8) %z) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %odd = icmp uge i32 %t, 8
  %p = select i1 %odd, ptr %x, ptr %y
  %i = mul i32 %t, 4
  %a = getelementptr i8, ptr %p, i32 %i
  %v = load float, ptr %a, align 4
  %far = load ptr, ptr %z, align 8
  %first = icmp eq i32 %t, 0
  br i1 %first, label %body, label %end
body:
  store float %v, ptr %far, align 4
  br label %end
end:
  ret void
})");
  std::vector<float> x = count(16), y = count(16), far(4);
  float *pointer = far.data();
  auto memory = [&](const void *at) {
    bool isFar = at >= far.data() && at < far.data() + 4;
    return isFar ? Range{reinterpret_cast<const char *>(far.data()), 16} : Range{};
  };
  EXPECT_EQ(run("pick", 1, 16, {x.data(), y.data(), &pointer}, 0, memory), "");
  EXPECT_EQ(far[0], 1.f);
  pointer = far.data() + 4;
  EXPECT_THAT(
      run("pick", 1, 16, {x.data(), y.data(), &pointer}, 0, memory),
      HasSubstr("thread (0,0,0): store of 4 bytes of an object that no argument names, which has 0: out of bounds"));
}

TEST_F(KernelTest, HasDynamicSharedMemory) {
  const std::string text = R"(
@fixed = internal addrspace(3) global [4 x i32] undef
@dynamic = external addrspace(3) global [0 x i32], align 16
define ptx_kernel void @own(ptr dereferenceable(128) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %f = getelementptr i32, ptr addrspace(3) @fixed, i32 3
  %s = getelementptr i32, ptr addrspace(3) @dynamic, i32 %t
  store i32 %t, ptr addrspace(3) %s, align 4
  %first = icmp eq i32 %t, 0
  br i1 %first, label %body, label %end
body:
  store i32 5, ptr addrspace(3) %f, align 4
  br label %end
end:
  %v = load i32, ptr addrspace(3) %s, align 4
  %q = getelementptr i32, ptr %y, i32 %t
  store i32 %v, ptr %q, align 4
  ret void
})";
  load(text);
  std::vector<int32_t> y(32);
  EXPECT_EQ(find("own")->sharedBytes, 128u);
  EXPECT_EQ(run("own", 1, 32, {y.data()}, 128), "");
  EXPECT_EQ(y[31], 31);
  EXPECT_THAT(
      run("own", 1, 32, {y.data()}, 64),
      HasSubstr(
          "thread (16,0,0): store of 4 bytes at byte 64 of the dynamic shared memory, which has 64: out of bounds"));
  EXPECT_EQ(run("own", 1, 32, {y.data()}, 300000),
            "kernel \"own\": needs 300128 bytes of shared memory, there are 232448");
}

TEST_F(KernelTest, HoldsLocalVariablesToTheirSize) {
  const std::string text = R"(
define ptx_kernel void @local(ptr dereferenceable(4) %n, ptr dereferenceable(4) %y) {
  %a = alloca [4 x float], align 4
  %i = load i32, ptr %n, align 4
  %p = getelementptr float, ptr %a, i32 %i
  store float 2.0, ptr %p, align 4
  %v = load float, ptr %p, align 4
  store float %v, ptr %y, align 4
  ret void
})";
  load(text);
  int32_t n = 3;
  float y = 0;
  EXPECT_EQ(run("local", 1, 1, {&n, &y}), "");
  n = 4;
  EXPECT_THAT(run("local", 1, 1, {&n, &y}),
              HasSubstr("store of 4 bytes at byte 16 of a local variable, which has 16: out of bounds"));
}
