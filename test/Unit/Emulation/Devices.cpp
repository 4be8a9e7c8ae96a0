//===- Devices.cpp - emulated devices in tests ----------------------------===//
#include "Devices.h"

#include <dlfcn.h>

using namespace cleave;
using namespace cleave::cuda;

template <typename T> static const T &getTable(program::Result<const T *> (*open)()) {
  static const T *table = [&] {
    setenv("CLEAVE_CUDA_LIBRARY", CLEAVE_EMULATED_CUDA, 1);
    program::Result<const T *> opened = open();
    if (!opened) {
      fprintf(stderr, "%s\n", opened.getError().message.c_str());
      abort();
    }
    return *opened;
  }();
  return *table;
}

const Driver &cleave::cuda::getDriver() { return getTable(openDriver); }
const Blas &cleave::cuda::getBlas() { return getTable(openBlas); }
const Nccl &cleave::cuda::getNccl() { return getTable(openNccl); }

NcclUniqueId cleave::cuda::makeId() {
  NcclUniqueId id{};
  EXPECT_EQ(getNccl().ncclGetUniqueId(&id), NcclResult::Success);
  return id;
}

std::string cleave::cuda::takeFindings() {
  getDriver();
  static void *library = dlopen(CLEAVE_EMULATED_CUDA, RTLD_NOW | RTLD_NOLOAD);
  std::string found = reinterpret_cast<const char *(*)()>(dlsym(library, "cleave_emulation_findings"))();
  reinterpret_cast<void (*)()>(dlsym(library, "cleave_emulation_forget"))();
  return found;
}

UseDevice::UseDevice(int ordinal) : ordinal(ordinal) {
  const Driver &driver = getDriver();
  Context context = nullptr;
  EXPECT_EQ(driver.cuInit(0), Result::Success);
  EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, ordinal), Result::Success);
  EXPECT_EQ(driver.cuCtxSetCurrent(context), Result::Success);
}

UseDevice::~UseDevice() {
  getDriver().cuCtxSetCurrent(nullptr);
  EXPECT_EQ(getDriver().cuDevicePrimaryCtxRelease_v2(ordinal), Result::Success);
}

Stream cleave::cuda::makeStream() {
  Stream stream = nullptr;
  EXPECT_EQ(getDriver().cuStreamCreateWithPriority(&stream, kStreamNonBlocking, 0), Result::Success);
  return stream;
}

Event cleave::cuda::makeEvent(unsigned flags) {
  Event event = nullptr;
  EXPECT_EQ(getDriver().cuEventCreate(&event, flags), Result::Success);
  return event;
}

DevicePointer cleave::cuda::allocate(size_t bytes) {
  DevicePointer memory = 0;
  EXPECT_EQ(getDriver().cuMemAlloc_v2(&memory, bytes), Result::Success);
  return memory;
}
