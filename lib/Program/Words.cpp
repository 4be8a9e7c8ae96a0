//===- Words.cpp - programs as people read them ---------------------------===//
//
// Tables in the order of the enums. Readers have seen to it that no value lies beyond their ends (P3).
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Words.h"

#include "cleave/Program/Error.h"
#include <cassert>
#include <iterator>

using namespace cleave::program;

template <size_t N> static const char *pick(const char *const (&words)[N], size_t index) {
  return index < N ? words[index] : "?";
}

template <size_t N, typename Enum> static const char *pick(const char *const (&words)[N], Enum value) {
  return pick(words, static_cast<size_t>(value));
}

const char *cleave::program::getWord(Element element) {
  return pick({"f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}, element);
}

const char *cleave::program::getWord(Reduction reduction) {
  return pick({"none", "sum", "prod", "max", "min"}, reduction);
}

/// In the order of the enum. Of a GPU's block, what any has.
static constexpr DeviceTraits kDevices[] = {{"host", true, 1}, {"cuda", false, 1024}};

const DeviceTraits &cleave::program::getTraits(Device device) {
  assert(static_cast<size_t>(device) < std::size(kDevices) && "no device");
  return kDevices[static_cast<size_t>(device)];
}

const char *cleave::program::getWord(Device device) {
  return static_cast<size_t>(device) < std::size(kDevices) ? getTraits(device).word : "?";
}

const char *cleave::program::getWord(Format format) { return pick({"shared object", "ptx", "cubin"}, format); }

const char *cleave::program::getWord(Access access) { return pick({"read", "write", "read and write"}, access); }

const char *cleave::program::getWord(BufferKind kind) {
  return pick({"activations", "communication", "weights", "input", "output", "state"}, kind);
}

const char *cleave::program::getWord(StepRole role) {
  return pick({"none", "batch", "parameter", "optimizer", "running", "count", "scale"}, role);
}

const char *cleave::program::getWord(Memory memory) { return pick({"device", "host"}, memory); }

const char *cleave::program::getWord(Activation activation) {
  return pick({"none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"}, activation);
}

const char *cleave::program::getWord(const Action &action) {
  if (const auto *collective = std::get_if<Collective>(&action))
    return getWord(collective->kind);
  return pick({"launch", "matmul", "convolution", "attention", "copy", "collective", "exchange", "record", "wait",
               "loop", "end_loop"},
              action.index());
}

static std::string formatList(const std::vector<int64_t> &numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string cleave::program::format(const Type &type) {
  std::string strides = type.strides.empty() ? "" : " strides " + formatList(type.strides);
  return getWord(type.element) + formatList(type.shape) + strides;
}

uint32_t cleave::program::getElementBytes(Element element) {
  constexpr uint8_t bytes[] = {2, 2, 4, 8, 1, 1, 2, 4, 8, 1, 2, 4, 8};
  auto index = static_cast<size_t>(element);
  return index < std::size(bytes) ? bytes[index] : 1;
}
