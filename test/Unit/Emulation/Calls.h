//===- Calls.h - commands that libraries compute, in tests ------*- C++ -*-===//
//
//   make    tensors on the device, full of numbers
//   call    hands a contraction to the device, which plans and runs it
//
// A device of the runtime with the emulated libraries behind it, and a program of one contraction at a time. Numbers are small
// integers, which all types hold.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_EMULATION_CALLS_H
#define CLEAVE_TEST_UNIT_EMULATION_CALLS_H

#include "../../../lib/Emulation/Halves.h"
#include "Devices.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Cuda.h"

#include <cstring>
#include <random>

namespace cleave::cuda {

using program::Element;

/// A tensor of a test, on the host and on the device.
struct Operand {
  program::View view;
  program::Type type;
  std::vector<int64_t> strides;
  std::vector<char> bytes;
  char *address = nullptr;

  /// Elements from the first to the one at `index`.
  int64_t place(const std::vector<int64_t> &index) const {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at += index[i] * strides[i];
    return at;
  }
  /// What lies there; exact, whatever the type.
  double get(const std::vector<int64_t> &index) const {
    const char *from = bytes.data() + place(index) * program::getElementBytes(type.element);
    float single;
    double wide;
    uint16_t half;
    switch (type.element) {
    case Element::F64:
      memcpy(&wide, from, 8);
      return wide;
    case Element::F32:
      memcpy(&single, from, 4);
      return single;
    default:
      memcpy(&half, from, 2);
      return type.element == Element::F16 ? emulation::halfToFloat(half) : emulation::bf16ToFloat(half);
    }
  }
  /// \param at elements from the first.
  void set(int64_t at, double value) {
    char *to = bytes.data() + at * program::getElementBytes(type.element);
    auto single = float(value);
    uint16_t half = type.element == Element::F16 ? emulation::floatToHalf(single) : emulation::floatToBf16(single);
    if (type.element == Element::F64)
      memcpy(to, &value, 8);
    else if (type.element == Element::F32)
      memcpy(to, &single, 4);
    else
      memcpy(to, &half, 2);
  }
};

/// Calls `fn` at each place of a tensor.
template <typename Fn> void forEach(const std::vector<int64_t> &shape, Fn fn) {
  std::vector<int64_t> at(shape.size());
  for (size_t dim = 0; dim < shape.size() || dim == 0;) {
    fn(at);
    for (dim = shape.size(); dim-- > 0; at[dim] = 0)
      if (++at[dim] < shape[dim])
        break;
    if (dim > shape.size())
      return;
  }
}

/// One device, a program of one command, and what it works on.
class CallsTest : public testing::Test {
protected:
  void SetUp() override {
    getDriver(); // names the library
    takeFindings();
    open();
  }
  void TearDown() override { EXPECT_EQ(takeFindings(), ""); }

  /// A device that has been asked nothing.
  void open() {
    auto opened = runtime::openCuda(1, {0});
    ASSERT_TRUE(bool(opened)) << opened.getError().message;
    device = std::move(opened->front());
  }

  int64_t draw(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); }

  /// Dims lie in memory in the order `order`, outermost first, with some room behind the innermost lines; all on the device.
  Operand make(Element element, std::vector<int64_t> shape, const std::vector<size_t> &order, int64_t room) {
    Operand operand;
    operand.strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      operand.strides[order[i]] = stride;
      stride *= shape[order[i]] + (i + 1 == order.size() ? room : 0);
    }
    operand.type = {element, shape, operand.strides};
    operand.view.type = uint32_t(program.types.size());
    program.types.push_back(operand.type);
    operand.bytes.resize(program::getSpanBytes(operand.type));
    for (size_t at = 0; at * program::getElementBytes(element) < operand.bytes.size(); ++at)
      operand.set(int64_t(at), double(draw(-1, 1)));
    auto memory = device->allocate(operand.bytes.size(), 256, program::Memory::Device, false);
    EXPECT_TRUE(bool(memory));
    operand.address = *memory;
    device->write(operand.address, operand.bytes.data(), operand.bytes.size());
    return operand;
  }
  /// Row-major.
  Operand make(Element element, std::vector<int64_t> shape) {
    std::vector<size_t> order(shape.size());
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    return make(element, std::move(shape), order, 0);
  }

  /// Whether a library took it; if so the result is in the operand.
  bool call(const program::Action &action, std::vector<Operand *> operands, Operand &result) {
    std::vector<char *> addresses;
    for (Operand *operand : operands)
      addresses.push_back(operand->address);
    addresses.push_back(result.address);
    std::optional<uint32_t> prepared = device->prepare(program, action, addresses);
    if (!prepared)
      return false;
    device->call(*prepared, 0);
    EXPECT_EQ(settle(), "");
    device->download({{}, result.bytes.size()}, result.address, result.bytes.data());
    return true;
  }
  /// Waits for all that was issued; empty, or what went wrong.
  std::string settle() {
    for (;;) {
      program::Result<bool> done = device->getQueue()->poll();
      if (!done || *done)
        return done ? "" : done.getError().message;
    }
  }
  /// Of the one library that was asked.
  runtime::LibraryUse getUse() const {
    std::vector<runtime::LibraryUse> uses = device->getLibraries();
    return uses.empty() ? runtime::LibraryUse() : uses.front();
  }

  program::Program program;
  std::unique_ptr<runtime::Device> device;
  std::mt19937 random{7};
};

} // namespace cleave::cuda

#endif // CLEAVE_TEST_UNIT_EMULATION_CALLS_H
