//===- WireReader.h - bounded reading of protobuf bytes ---------*- C++ -*-===//
//
// A protobuf message is a run of fields: a tag (field number and wire type), then a varint, four or eight bytes, or a
// length and as many bytes. Nothing says what a field means but the schema, so a reader walks the fields of a message
// and asks for each in the form that the schema gives it:
//
//   bool Reader::read(StringRef bytes, OperatorSetIdProto &opset) {
//     return wire.fields(bytes, [&](const WireField &field) {
//       switch (field.number) {
//       case 1: return wire.text(field, "domain", opset.domain);
//       case 2: return wire.integer(field, "version", opset.version);
//       default: return wire.skip(field);
//       }
//     });
//   }
//
// Every function returns false after an error; the first one is kept, with its byte offset and the path of fields that
// leads there. Bounds: nothing outside the message is looked at, depth and the memory of what is made are budgeted.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_WIREREADER_H
#define CLEAVE_ONNX_WIREREADER_H

#include "cleave/Onnx/Model.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/SmallVector.h"

namespace cleave::onnx {

enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

/// One field as it stands in the file.
struct WireField {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  uint64_t value = 0;      ///< of Varint, Fixed32 and Fixed64
  llvm::StringRef payload; ///< the encoded value without tag and length
};

/// Decodes the varint that `bytes` starts with and drops it; nothing if it is truncated or exceeds 64 bits.
std::optional<uint64_t> takeVarint(llvm::StringRef &bytes);

class WireReader {
public:
  /// `file` is what byte offsets in errors count from.
  WireReader(llvm::StringRef file, const ReadLimits &limits) : file(file), limits(limits) {}

  /// Calls `handle` with each field of a message until one returns false.
  template <typename Handler> bool fields(llvm::StringRef message, Handler handle) {
    WireField field;
    while (!message.empty())
      if (!nextField(message, field) || !handle(field))
        return false;
    return true;
  }

  //===--- A field's value, by the schema's type ---------------------------===//

  bool text(const WireField &field, const char *name, llvm::StringRef &value);
  bool integer(const WireField &field, const char *name, int64_t &value);
  bool integer32(const WireField &field, const char *name, int32_t &value);
  bool real(const WireField &field, const char *name, float &value);
  /// Repeated fields; numbers also in packed form.
  bool texts(const WireField &field, const char *name, std::vector<llvm::StringRef> &values);
  bool integers(const WireField &field, const char *name, std::vector<int64_t> &values);
  bool reals(const WireField &field, const char *name, std::vector<float> &values);
  /// Elements of a tensor's typed field, left encoded; `type` is their wire type where they stand one by one.
  bool elements(const WireField &field, const char *name, WireType type, std::vector<TensorProto::Chunk> &chunks);

  /// A message within this one: `read(bytes)` reads it. `index` is its position in a repeated field, -1 for others.
  template <typename Read> bool message(const WireField &field, const char *name, int64_t index, Read read) {
    if (!enter(field, name, index))
      return false;
    bool ok = read(field.payload);
    if (ok)
      path.pop_back();
    return ok;
  }

  /// A field that the schema knows and the model's structs leave out.
  bool ignore() { return true; }
  /// A field that the schema does not know.
  bool skip(const WireField &field);

  //===--- Budgets and errors ----------------------------------------------===//

  /// Counts memory that is about to be taken.
  bool charge(uint64_t bytes, llvm::StringRef where);
  /// Records an error at a place in the file; always false.
  bool fail(const char *where, const llvm::Twine &message);

  const std::string &getError() const { return error; }
  uint64_t getUnknownFields() const { return unknownFields; }
  /// Path and number of the first unknown field.
  const std::string &getFirstUnknownField() const { return firstUnknownField; }

private:
  struct Step {
    const char *name;
    int64_t index;
  };

  bool nextField(llvm::StringRef &message, WireField &field);
  bool takeTag(llvm::StringRef &message, WireField &field);
  bool takePayload(llvm::StringRef &message, WireField &field);
  bool enter(const WireField &field, const char *name, int64_t index);
  bool expect(const WireField &field, const char *name, WireType type);
  bool failIn(const WireField &field, const char *name, const llvm::Twine &message);
  std::string formatPath() const;

  llvm::StringRef file;
  ReadLimits limits;
  uint64_t memory = 0;
  uint64_t unknownFields = 0;
  std::string firstUnknownField;
  llvm::SmallVector<Step> path;
  std::string error;
};

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_WIREREADER_H
