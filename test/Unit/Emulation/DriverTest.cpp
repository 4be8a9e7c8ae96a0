//===- DriverTest.cpp - the driver of devices that are not there ----------===//
#include "Devices.h"
#include "Harness.h"
#include "cleave/Runtime/Cuda.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

using namespace cleave;
using namespace cleave::cuda;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// y[i] = x[i] + 1 for 256 floats, x and y apart.
static const char *const increment = R"(
define ptx_kernel void @increment(ptr noalias readonly dereferenceable(1024) %x, ptr noalias dereferenceable(1024) %y) {
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %m = mul i32 %b, 64
  %i = add i32 %m, %t
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p, align 4
  %w = fadd float %v, 1.0
  %q = getelementptr float, ptr %y, i32 %i
  store float %w, ptr %q, align 4
  ret void
}
@dynamic = external addrspace(3) global [0 x i32], align 16
define ptx_kernel void @shared(i32 %n) {
  %p = getelementptr i8, ptr addrspace(3) @dynamic, i32 %n
  store i8 1, ptr addrspace(3) %p, align 1
  ret void
})";

class DriverTest : public ::testing::Test {
protected:
  DriverTest() {
    static const std::string image = [] {
      std::string error, made = emulation::compileKernels(increment, error);
      EXPECT_FALSE(made.empty()) << error;
      return made;
    }();
    EXPECT_EQ(driver.cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr), Result::Success);
    EXPECT_EQ(driver.cuModuleGetFunction(&function, module, "increment"), Result::Success);
    takeFindings();
  }
  ~DriverTest() override { driver.cuModuleUnload(module); }

  Result launch(DevicePointer x, DevicePointer y, Stream stream, unsigned blocks = 4) {
    void *parameters[] = {&x, &y};
    return driver.cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr);
  }
  static std::vector<float> count(float first = 0) {
    std::vector<float> values(256);
    std::iota(values.begin(), values.end(), first);
    return values;
  }

  const Driver &driver = getDriver();
  UseDevice use{0};
  Module module = nullptr;
  Function function = nullptr;
};

TEST_F(DriverTest, CopiesAndLaunches) {
  DevicePointer x = upload(count()), y = allocate(1024);
  for (float value : download<float>(y, 256))
    EXPECT_TRUE(std::isnan(value)) << "memory that nobody wrote";
  Stream stream = makeStream();
  EXPECT_EQ(launch(x, y, stream), Result::Success);
  EXPECT_EQ(launch(y, x, stream), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), Result::Success);
  EXPECT_EQ(download<float>(x, 256), count(2));
  EXPECT_EQ(driver.cuMemsetD8Async(x, 0, 512, stream), Result::Success);
  EXPECT_EQ(driver.cuMemcpyDtoDAsync_v2(y, x, 512, stream), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), Result::Success);
  std::vector<float> expected = count(1);
  std::fill(expected.begin(), expected.begin() + 128, 0.f);
  EXPECT_EQ(download<float>(y, 256), expected);
  EXPECT_EQ(takeFindings(), "");
}

// Which of two streams goes first is chance; both happen.
TEST_F(DriverTest, StreamsRunInARandomOrder) {
  Stream one = makeStream(), other = makeStream();
  DevicePointer x = allocate(64), y = allocate(64);
  int first = 0;
  for (int i = 0; i < 64; ++i) {
    Event ofOne = makeEvent(kEventDefault), ofOther = makeEvent(kEventDefault);
    EXPECT_EQ(driver.cuMemsetD8Async(x, 1, 64, one), Result::Success);
    EXPECT_EQ(driver.cuEventRecord(ofOne, one), Result::Success);
    EXPECT_EQ(driver.cuMemsetD8Async(y, 1, 64, other), Result::Success);
    EXPECT_EQ(driver.cuEventRecord(ofOther, other), Result::Success);
    float between = 0;
    EXPECT_EQ(driver.cuEventElapsedTime(&between, ofOne, ofOther), Result::NotReady) << "it ran when it was enqueued";
    EXPECT_EQ(driver.cuStreamSynchronize(one), Result::Success);
    EXPECT_EQ(driver.cuStreamSynchronize(other), Result::Success);
    EXPECT_EQ(driver.cuEventElapsedTime(&between, ofOne, ofOther), Result::Success);
    first += between > 0;
    EXPECT_EQ(driver.cuEventDestroy_v2(ofOne), Result::Success);
    EXPECT_EQ(driver.cuEventDestroy_v2(ofOther), Result::Success);
  }
  EXPECT_GT(first, 10);
  EXPECT_LT(first, 54);
}

// Whatever order commands happen to run in: of 32 runs all find it.
TEST_F(DriverTest, AMissingEventIsFoundInEveryRun) {
  int found = 0, clean = 0;
  for (int i = 0; i < 32; ++i) {
    for (bool hasEvent : {true, false}) {
      UseDevice another(1);
      DevicePointer x = upload(count()), y = allocate(1024), z = allocate(1024);
      Stream compute = makeStream(), copy = makeStream();
      Event event = makeEvent();
      EXPECT_EQ(launch(x, y, compute), Result::Success);
      EXPECT_EQ(driver.cuEventRecord(event, compute), Result::Success);
      if (hasEvent)
        EXPECT_EQ(driver.cuStreamWaitEvent(copy, event, 0), Result::Success);
      Result result = driver.cuMemcpyDtoDAsync_v2(z, y, 1024, copy);
      EXPECT_EQ(result, hasEvent ? Result::Success : Result::LaunchFailed);
      std::string findings = takeFindings();
      EXPECT_EQ(findings, hasEvent ? ""
                                   : "device 1: copy of 1024 bytes reads what kernel \"increment\" writes on another "
                                     "stream, and no event orders them\n");
      (hasEvent ? clean : found) += 1;
      if (hasEvent) {
        EXPECT_EQ(driver.cuStreamSynchronize(copy), Result::Success);
        EXPECT_EQ(download<float>(z, 256), count(1));
      } else {
        EXPECT_EQ(driver.cuStreamSynchronize(copy), Result::LaunchFailed);
      }
    }
  }
  EXPECT_EQ(found, 32);
  EXPECT_EQ(clean, 32);
}

// A host that waited orders all that it enqueues from then on; readers do not disturb one another; a writer must wait for both.
TEST_F(DriverTest, TheHostAndReadersOrder) {
  DevicePointer x = upload(count()), y = allocate(1024), z = allocate(1024);
  Stream one = makeStream(), other = makeStream();
  EXPECT_EQ(launch(x, y, one), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(one), Result::Success);
  EXPECT_EQ(launch(y, z, other), Result::Success);
  EXPECT_EQ(driver.cuMemcpyDtoDAsync_v2(x, y, 1024, one), Result::Success) << "both read y";
  // A host that asked until an event was there has waited for it, too.
  Event event = makeEvent();
  EXPECT_EQ(driver.cuEventRecord(event, one), Result::Success);
  while (driver.cuEventQuery(event) == Result::NotReady)
    continue;
  EXPECT_EQ(launch(x, allocate(1024), makeStream()), Result::Success);
  EXPECT_EQ(driver.cuMemsetD8Async(y, 0, 1024, one), Result::LaunchFailed);
  EXPECT_EQ(takeFindings(),
            "device 0: fill of 1024 bytes writes what kernel \"increment\" reads on another stream, and no "
            "event orders them\n");
}

// One reader waits for the writer; another, which does not, is no better off for that.
TEST_F(DriverTest, AReaderDoesNotWaitForAnother) {
  DevicePointer x = upload(count()), y = allocate(1024), z = allocate(1024), w = allocate(1024);
  Stream writer = makeStream(), reader = makeStream(), other = makeStream();
  Event event = makeEvent();
  EXPECT_EQ(launch(x, y, writer), Result::Success);
  EXPECT_EQ(driver.cuEventRecord(event, writer), Result::Success);
  EXPECT_EQ(driver.cuStreamWaitEvent(reader, event, 0), Result::Success);
  EXPECT_EQ(launch(y, z, reader), Result::Success);
  EXPECT_EQ(driver.cuMemcpyDtoDAsync_v2(w, y, 1024, other), Result::LaunchFailed);
  EXPECT_EQ(takeFindings(),
            "device 0: copy of 1024 bytes reads what kernel \"increment\" writes on another stream, and no "
            "event orders them\n");
}

TEST_F(DriverTest, ErrorsOfKernelsStick) {
  DevicePointer x = upload(count()), y = allocate(1024);
  Stream stream = makeStream();
  EXPECT_EQ(launch(x, y, stream, 5), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), Result::IllegalAddress);
  EXPECT_EQ(takeFindings(),
            "device 0: kernel \"increment\", block (4,0,0), thread (0,0,0): load of 4 bytes at byte 1024 of "
            "argument 0, which has 1024: out of bounds (access 0)\n");
  EXPECT_EQ(launch(x, y, stream), Result::IllegalAddress);
  EXPECT_EQ(driver.cuStreamQuery(stream), Result::IllegalAddress);
  const char *name = nullptr;
  EXPECT_EQ(driver.cuGetErrorName(Result::IllegalAddress, &name), Result::Success);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(DriverTest, ArgumentsLieInMemoryAndApart) {
  DevicePointer x = upload(count()), small = allocate(512);
  Stream stream = makeStream();
  EXPECT_EQ(launch(x, x + 512, stream), Result::IllegalAddress);
  EXPECT_EQ(takeFindings(), "device 0: increment: argument 1 (1024 bytes) is not all in memory of the device\n");
  {
    UseDevice another(2);
    DevicePointer both = allocate(2048);
    Stream own = makeStream();
    EXPECT_EQ(launch(both, both + 512, own), Result::LaunchFailed);
    EXPECT_EQ(takeFindings(),
              "device 2: increment: argument 0 (1024 bytes) overlaps argument 1 (1024 bytes), which it was "
              "promised not to\n");
  }
  UseDevice again(0);
  EXPECT_EQ(launch(x, small, stream), Result::IllegalAddress) << "it sticks";
}

TEST_F(DriverTest, MemoryEndsAndIsFreed) {
  size_t before = 0, after = 0, all = 0;
  EXPECT_EQ(driver.cuMemGetInfo_v2(&before, &all), Result::Success);
  DevicePointer x = allocate(1024);
  EXPECT_EQ(x % 256, 0u);
  EXPECT_EQ(driver.cuMemGetInfo_v2(&after, &all), Result::Success);
  EXPECT_EQ(before - after, 1024u);
  DevicePointer large = 0;
  EXPECT_EQ(driver.cuMemAlloc_v2(&large, all), Result::OutOfMemory);
  auto *bytes = reinterpret_cast<volatile char *>(x);
  bytes[1023] = 1;
  EXPECT_EXIT(bytes[1024] = 1, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(driver.cuMemFree_v2(x), Result::Success);
  EXPECT_EXIT(bytes[0] = 1, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(driver.cuMemFree_v2(x), Result::InvalidValue);
  DevicePointer left = 0;
  {
    UseDevice another(3);
    left = allocate(64);
  }
  EXPECT_EXIT(*reinterpret_cast<volatile char *>(left) = 1, ::testing::KilledBySignal(SIGSEGV), "")
      << "the context is gone";
}

// Memory that is not pinned is read when the copy is enqueued, pinned memory when it runs.
TEST_F(DriverTest, OnlyPinnedMemoryIsReadLater) {
  DevicePointer x = allocate(4), y = allocate(4);
  void *pinned = nullptr;
  EXPECT_EQ(driver.cuMemHostAlloc(&pinned, 4, kHostPortable), Result::Success);
  int32_t plain = 1;
  memcpy(pinned, &plain, 4);
  Stream stream = makeStream();
  EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(x, &plain, 4, stream), Result::Success);
  EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(y, pinned, 4, stream), Result::Success);
  plain = 2;
  memcpy(pinned, &plain, 4);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), Result::Success);
  EXPECT_EQ(download<int32_t>(x, 1)[0], 1);
  EXPECT_EQ(download<int32_t>(y, 1)[0], 2);
  EXPECT_EQ(driver.cuMemFreeHost(pinned), Result::Success);
}

TEST_F(DriverTest, BoxesAreCopied) {
  std::vector<uint8_t> source(6 * 5 * 4);
  std::iota(source.begin(), source.end(), uint8_t(0));
  DevicePointer x = upload(source), y = upload(std::vector<uint8_t>(3 * 7 * 2, 255));
  Stream stream = makeStream();
  Copy3D copy;
  copy.sourceDevice = x, copy.targetDevice = y;
  copy.sourceX = 1, copy.sourceY = 2, copy.sourceZ = 1, copy.sourcePitch = 6, copy.sourceHeight = 5;
  copy.targetY = 3, copy.targetPitch = 3, copy.targetHeight = 7;
  copy.width = 3, copy.height = 2, copy.depth = 2;
  EXPECT_EQ(driver.cuMemcpy3DAsync_v2(&copy, stream), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), Result::Success);
  std::vector<uint8_t> target = download<uint8_t>(y, 3 * 7 * 2);
  int moved = 0;
  for (size_t z = 0; z < 2; ++z)
    for (size_t row = 0; row < 7; ++row)
      for (size_t i = 0; i < 3; ++i) {
        bool isInside = row >= 3 && row < 5;
        size_t from = ((z + 1) * 5 + (row - 3) + 2) * 6 + i + 1;
        EXPECT_EQ(target[(z * 7 + row) * 3 + i], isInside ? source[from] : 255);
        moved += isInside;
      }
  EXPECT_EQ(moved, 12);
  copy.sourceX = 4;
  copy.sourceZ = 3;
  EXPECT_EQ(driver.cuMemcpy3DAsync_v2(&copy, stream), Result::InvalidValue) << "beyond the end";
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

// compute: y = x + 1, then x = y + 1; beside it the copy stream fills z. Both are joined.
TEST_F(DriverTest, GraphsRunAsCaptured) {
  DevicePointer x = upload(count()), y = allocate(1024), z = allocate(1024), w = allocate(1024);
  Stream compute = makeStream(), copy = makeStream();
  Event fork = makeEvent(), join = makeEvent();
  Graph graph = nullptr;
  GraphExec executable = nullptr;
  EXPECT_EQ(driver.cuStreamBeginCapture_v2(compute, CaptureMode::ThreadLocal), Result::Success);
  EXPECT_EQ(launch(x, y, compute), Result::Success);
  EXPECT_EQ(driver.cuEventRecord(fork, compute), Result::Success);
  EXPECT_EQ(driver.cuStreamWaitEvent(copy, fork, 0), Result::Success);
  EXPECT_EQ(driver.cuMemcpyDtoDAsync_v2(z, y, 1024, copy), Result::Success);
  EXPECT_EQ(launch(z, w, copy), Result::Success);
  EXPECT_EQ(launch(y, x, compute), Result::Success);
  EXPECT_EQ(driver.cuEventRecord(join, copy), Result::Success);
  EXPECT_EQ(driver.cuStreamWaitEvent(compute, join, 0), Result::Success);
  EXPECT_EQ(driver.cuStreamEndCapture(compute, &graph), Result::Success);
  EXPECT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), Result::Success);
  EXPECT_EQ(driver.cuGraphDestroy(graph), Result::Success);
  EXPECT_EQ(download<float>(x, 256), count()) << "capturing runs nothing";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(driver.cuGraphLaunch(executable, compute), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(compute), Result::Success);
  EXPECT_EQ(download<float>(x, 256), count(6));
  EXPECT_EQ(download<float>(z, 256), count(5));
  EXPECT_EQ(download<float>(w, 256), count(6));
  EXPECT_EQ(driver.cuGraphExecDestroy(executable), Result::Success);
  EXPECT_EQ(takeFindings(), "");
}

TEST_F(DriverTest, CapturesThatAreWrongAreNamed) {
  DevicePointer x = upload(count()), y = allocate(1024);
  Stream compute = makeStream(), copy = makeStream();
  Event event = makeEvent();
  Graph graph = nullptr;
  // A stream that is drawn in and never waited for.
  EXPECT_EQ(driver.cuStreamBeginCapture_v2(compute, CaptureMode::ThreadLocal), Result::Success);
  EXPECT_EQ(driver.cuEventRecord(event, compute), Result::Success);
  EXPECT_EQ(driver.cuStreamWaitEvent(copy, event, 0), Result::Success);
  EXPECT_EQ(launch(x, y, copy), Result::Success);
  EXPECT_EQ(driver.cuStreamEndCapture(compute, &graph), Result::StreamCaptureUnjoined);
  // A host that asks in between.
  EXPECT_EQ(driver.cuStreamBeginCapture_v2(compute, CaptureMode::ThreadLocal), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(compute), Result::StreamCaptureUnsupported);
  EXPECT_EQ(driver.cuStreamEndCapture(compute, &graph), Result::StreamCaptureInvalidated);
  // An event from before.
  Event early = makeEvent();
  EXPECT_EQ(driver.cuEventRecord(early, copy), Result::Success);
  EXPECT_EQ(driver.cuStreamBeginCapture_v2(compute, CaptureMode::ThreadLocal), Result::Success);
  EXPECT_EQ(driver.cuStreamWaitEvent(compute, early, 0), Result::StreamCaptureIsolation);
  EXPECT_EQ(driver.cuStreamEndCapture(compute, &graph), Result::Success);
  EXPECT_EQ(driver.cuGraphDestroy(graph), Result::Success);
  takeFindings();
  // Two branches that touch the same bytes.
  EXPECT_EQ(driver.cuStreamBeginCapture_v2(compute, CaptureMode::ThreadLocal), Result::Success);
  EXPECT_EQ(driver.cuEventRecord(event, compute), Result::Success);
  EXPECT_EQ(driver.cuStreamWaitEvent(copy, event, 0), Result::Success);
  EXPECT_EQ(launch(x, y, compute), Result::Success);
  EXPECT_EQ(driver.cuMemsetD8Async(y, 0, 8, copy), Result::LaunchFailed);
  EXPECT_THAT(takeFindings(), HasSubstr("fill of 8 bytes writes what kernel \"increment\" writes on another stream"));
}

//===----------------------------------------------------------------------===//
// What is refused, and what is planned
//===----------------------------------------------------------------------===//

TEST_F(DriverTest, OtherImagesAreRefused) {
  Module other = nullptr;
  std::string ptx = ".version 8.3\n.target sm_90\n" + std::string(64, ' ');
  EXPECT_EQ(driver.cuModuleLoadDataEx(&other, ptx.data(), 0, nullptr, nullptr), Result::NoBinaryForGpu);
  Function none = nullptr;
  EXPECT_EQ(driver.cuModuleGetFunction(&none, module, "nothing"), Result::NotFound);
}

TEST_F(DriverTest, SharedMemoryAboveTheDefaultIsAskedFor) {
  Function shared = nullptr;
  EXPECT_EQ(driver.cuModuleGetFunction(&shared, module, "shared"), Result::Success);
  Stream stream = makeStream();
  int32_t at = 65535;
  void *parameters[] = {&at};
  auto run = [&](unsigned bytes) {
    return driver.cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, bytes, stream, parameters, nullptr);
  };
  EXPECT_EQ(run(65536), Result::InvalidValue);
  EXPECT_EQ(driver.cuFuncSetAttribute(shared, FunctionAttribute::MaxDynamicSharedBytes, 65536), Result::Success);
  EXPECT_EQ(run(65536), Result::Success);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), Result::Success);
  EXPECT_EQ(driver.cuFuncSetAttribute(shared, FunctionAttribute::MaxDynamicSharedBytes, 300000), Result::InvalidValue);
}

TEST_F(DriverTest, DevicesAreDescribed) {
  int devices = 0, major = 0, limit = 0;
  EXPECT_EQ(driver.cuDeviceGetCount(&devices), Result::Success);
  EXPECT_EQ(devices, 64);
  EXPECT_EQ(driver.cuDeviceGetAttribute(&major, DeviceAttribute::ComputeCapabilityMajor, 0), Result::Success);
  EXPECT_EQ(major, 9);
  EXPECT_EQ(driver.cuDeviceGetAttribute(&limit, DeviceAttribute::MaxSharedMemoryPerBlockOptin, 63), Result::Success);
  EXPECT_EQ(limit, 232448);
  EXPECT_EQ(driver.cuDeviceGetAttribute(&limit, DeviceAttribute::WarpSize, 64), Result::InvalidDevice);
}

TEST_F(DriverTest, FaultsComeAsPlanned) {
  DevicePointer x = upload(count()), y = allocate(1024), none = 0;
  Stream stream = makeStream();
  Setting plan("CLEAVE_EMULATION_FAIL", "cuMemAlloc_v2:2=2,cuLaunchKernel@0:3=719,cuStreamQuery@5=999");
  EXPECT_EQ(driver.cuMemAlloc_v2(&none, 4), Result::Success);
  EXPECT_EQ(driver.cuMemAlloc_v2(&none, 4), Result::OutOfMemory);
  EXPECT_EQ(launch(x, y, stream), Result::Success);
  EXPECT_EQ(launch(x, y, stream), Result::Success);
  EXPECT_EQ(launch(x, y, stream), Result::LaunchFailed);
  EXPECT_EQ(launch(x, y, stream), Result::LaunchFailed) << "it sticks";
  EXPECT_EQ(driver.cuStreamQuery(stream), Result::LaunchFailed) << "device 5 was meant by 999";
}

TEST_F(DriverTest, EventsTellTimeIfTheyMay) {
  Event plain = makeEvent(), timed = makeEvent(kEventDefault);
  Stream stream = makeStream();
  EXPECT_EQ(driver.cuEventQuery(timed), Result::Success) << "never recorded";
  EXPECT_EQ(driver.cuEventRecord(plain, stream), Result::Success);
  EXPECT_EQ(driver.cuEventRecord(timed, stream), Result::Success);
  int asked = 0;
  while (driver.cuEventQuery(timed) == Result::NotReady)
    ++asked;
  EXPECT_GE(asked, 1) << "each question lets one command run";
  float time = 0;
  EXPECT_EQ(driver.cuEventElapsedTime(&time, plain, timed), Result::InvalidHandle);
}

/// As NVIDIA says it of PTX: without a suffix on all later devices, with `a` on one, with `f` on those of its family.
TEST(Targets, CodeRunsOnItsDeviceAndOnLaterOnesOfItsKind) {
  using runtime::runsOn;
  for (auto [architecture, major, minor] : {std::tuple("sm_80", 8, 0),
                                            {"sm_80", 12, 1},
                                            {"sm_89", 9, 0},
                                            {"sm_90", 10, 3},
                                            {"sm_90a", 9, 0},
                                            {"sm_100f", 10, 3},
                                            {"sm_103a", 10, 3},
                                            {"sm_120f", 12, 1}})
    EXPECT_TRUE(runsOn(architecture, major, minor)) << architecture << " on " << major << "." << minor;
  for (auto [architecture, major, minor] : {std::tuple("sm_90", 8, 9),
                                            {"sm_90a", 10, 0},
                                            {"sm_103f", 10, 0},
                                            {"sm_100f", 11, 0},
                                            {"sm_100f", 12, 0},
                                            {"sm_", 9, 0},
                                            {"sm_a", 9, 0},
                                            {"90", 9, 0},
                                            {"sm_80x", 9, 0},
                                            {"sm_80aa", 8, 0},
                                            {"sm_000080", 8, 0},
                                            {"emulated", 9, 0},
                                            {"", 9, 0}})
    EXPECT_FALSE(runsOn(architecture, major, minor)) << architecture << " on " << major << "." << minor;
}
