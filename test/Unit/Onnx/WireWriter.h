//===- WireWriter.h - protobuf bytes for tests ------------------*- C++ -*-===//
//
// Messages are strings; their fields are made by the functions below and put together with +:
//
//   std::string node = text(1, "x") + text(2, "y") + text(4, "Relu");
//   std::string graph = message(1, node) + text(2, "g");
//
// The numbers are the field numbers of onnx.proto.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_ONNX_WIREWRITER_H
#define CLEAVE_TEST_UNIT_ONNX_WIREWRITER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <cstring>
#include <string>

namespace cleave::test {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string tag(uint64_t number, unsigned wireType) { return varint(number << 3 | wireType); }

inline std::string integer(unsigned number, int64_t value) { return tag(number, 0) + varint(value); }

inline std::string text(unsigned number, llvm::StringRef bytes) {
  return tag(number, 2) + varint(bytes.size()) + bytes.str();
}

inline std::string message(unsigned number, llvm::StringRef bytes) { return text(number, bytes); }

/// The elements of an array as they stand in memory; tests run on little-endian machines.
template <typename T> std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char *>(values.begin()), values.size() * sizeof(T)};
}

inline std::string real(unsigned number, float value) { return tag(number, 5) + raw({value}); }

inline std::string packed(unsigned number, llvm::ArrayRef<int64_t> values) {
  std::string bytes;
  for (int64_t value : values)
    bytes += varint(value);
  return text(number, bytes);
}

/// A TensorProto without elements.
inline std::string tensorHead(llvm::StringRef name, int32_t dataType, llvm::ArrayRef<int64_t> dims) {
  return packed(1, dims) + integer(2, dataType) + text(8, name);
}

/// A ModelProto around a graph's bytes. The opset stands last, so that no proper prefix is a model.
inline std::string model(llvm::StringRef graph) {
  return integer(1, 10) + text(2, "test") + message(7, graph) + message(8, text(1, "") + integer(2, 21));
}

} // namespace cleave::test

#endif // CLEAVE_TEST_UNIT_ONNX_WIREWRITER_H
