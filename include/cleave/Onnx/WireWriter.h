//===- WireWriter.h - protobuf bytes ----------------------------*- C++ -*-===//
//
// A message as it is put together: a list of pieces, of which most are parts of a file that stay where they are, so that
// a model is written with its weights without holding them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_WIREWRITER_H
#define CLEAVE_ONNX_WIREWRITER_H

#include "cleave/Onnx/WireReader.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace cleave::onnx {

class WireMessage {
public:
  void integer(uint32_t field, int64_t value);
  /// A float of 32 bits.
  void real(uint32_t field, float value);
  /// A string or an encoded message; it is copied.
  void text(uint32_t field, llvm::StringRef bytes);
  /// A field as a reader found it; its bytes must live as long as this.
  void copy(const WireField &field);
  /// A message within this one, which takes over its pieces.
  void message(uint32_t field, WireMessage inner);

  uint64_t size() const { return bytes; }
  void write(llvm::raw_ostream &os) const;
  /// All pieces in one; for small messages.
  std::string str() const;

private:
  /// Either bytes of a file, or some of `own`.
  struct Piece {
    llvm::StringRef view;
    std::string own;
  };

  void tag(uint32_t field, WireType type);
  void varint(uint64_t value);
  void add(llvm::StringRef view);
  /// The end of the last piece, which can be added to.
  std::string &tail();

  std::vector<Piece> pieces;
  uint64_t bytes = 0;
};

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_WIREWRITER_H
