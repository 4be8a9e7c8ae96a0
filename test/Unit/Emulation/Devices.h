//===- Devices.h - emulated devices in tests --------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_EMULATION_DEVICES_H
#define CLEAVE_TEST_UNIT_EMULATION_DEVICES_H

#include "cleave/Cuda/Libraries.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <functional>
#include <string>
#include <vector>

namespace cleave::cuda {

/// The libraries, opened as programs open them, from the one that stands in for all.
const Driver &getDriver();
const Blas &getBlas();
const Nccl &getNccl();
/// What was found since the last time.
std::string takeFindings();

/// A variable of the environment for the life of this.
class Setting {
public:
  Setting(const char *name, const std::string &value) : name(name) { setenv(name, value.c_str(), 1); }
  ~Setting() { unsetenv(name); }

private:
  const char *name;
};

/// A context for the life of this, current in this thread; when the last of a device goes, so do its memory and errors.
class UseDevice {
public:
  explicit UseDevice(int ordinal);
  ~UseDevice();

private:
  int ordinal;
};

// What tests do all the time; a failure is one of the test.
Stream makeStream();
Event makeEvent(unsigned flags = kEventDisableTiming);
DevicePointer allocate(size_t bytes);
NcclUniqueId makeId();
/// An address of a device, as NCCL takes it.
template <typename T> void *pointer(T address) { return reinterpret_cast<void *>(address); }
template <typename T> DevicePointer upload(const std::vector<T> &values);
template <typename T> std::vector<T> download(DevicePointer from, size_t count);

template <typename T> DevicePointer upload(const std::vector<T> &values) {
  DevicePointer memory = allocate(values.size() * sizeof(T));
  Stream stream = makeStream();
  EXPECT_EQ(getDriver().cuMemcpyHtoDAsync_v2(memory, values.data(), values.size() * sizeof(T), stream),
            Result::Success);
  EXPECT_EQ(getDriver().cuStreamSynchronize(stream), Result::Success);
  return memory;
}

template <typename T> std::vector<T> download(DevicePointer from, size_t count) {
  std::vector<T> values(count);
  Stream stream = makeStream();
  EXPECT_EQ(getDriver().cuMemcpyDtoHAsync_v2(values.data(), from, count * sizeof(T), stream), Result::Success);
  return values;
}

} // namespace cleave::cuda

#endif // CLEAVE_TEST_UNIT_EMULATION_DEVICES_H
