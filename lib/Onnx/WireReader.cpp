//===- WireReader.cpp - bounded reading of protobuf bytes -----------------===//
//
// The encoding is defined in "Encoding" of the Protocol Buffers documentation. Stricter than protobuf's own parser in
// three places, because a model that needs them is damaged: groups, a known field with another wire type, and a 32-bit
// field with a larger value are errors.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/WireReader.h"
#include "llvm/Support/Endian.h"
#include <cstring>

using namespace llvm;

namespace cleave::onnx {

/// Seven bits a byte, least significant first. Ten bytes hold 64 bits, so the tenth may have one.
std::optional<uint64_t> takeVarint(StringRef &bytes) {
  uint64_t value = 0;
  for (size_t index = 0; index < bytes.size() && index < 10; ++index) {
    uint8_t byte = bytes[index];
    if (index == 9 && byte > 1)
      return std::nullopt;
    value |= uint64_t(byte & 0x7f) << (7 * index);
    if (byte < 0x80) {
      bytes = bytes.drop_front(index + 1);
      return value;
    }
  }
  return std::nullopt;
}

static const char *getName(WireType type) {
  switch (type) {
  case WireType::Varint:
    return "a varint";
  case WireType::Fixed64:
    return "eight bytes";
  case WireType::Bytes:
    return "a length and bytes";
  case WireType::Fixed32:
    return "four bytes";
  }
  return "an unknown form";
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

bool WireReader::nextField(StringRef &message, WireField &field) {
  return takeTag(message, field) && takePayload(message, field);
}

bool WireReader::takeTag(StringRef &message, WireField &field) {
  const char *start = message.data();
  std::optional<uint64_t> tag = takeVarint(message);
  if (!tag)
    return fail(start, "truncated or oversized field tag");
  // A tag is the field number, from 1 on, above three bits of wire type.
  if (*tag > UINT32_MAX || *tag < 8)
    return fail(start, "field number " + Twine(*tag >> 3) + " is out of range");
  uint32_t wireType = *tag & 7;
  field.number = *tag >> 3;
  if (wireType == 3 || wireType == 4)
    return fail(start, "field " + Twine(field.number) + " is a group, which ONNX does not use");
  if (wireType > 5)
    return fail(start, "field " + Twine(field.number) + " has wire type " + Twine(wireType) + ", which does not exist");
  field.type = static_cast<WireType>(wireType);
  return true;
}

/// Every length is held against what is left before it is used; no message is larger than what it stands in.
bool WireReader::takePayload(StringRef &message, WireField &field) {
  const char *start = message.data();
  uint64_t length = field.type == WireType::Fixed64 ? 8 : 4;
  if (field.type == WireType::Varint || field.type == WireType::Bytes) {
    std::optional<uint64_t> value = takeVarint(message);
    if (!value)
      return fail(start, "field " + Twine(field.number) + ": truncated or oversized varint");
    field.value = length = *value;
    if (field.type == WireType::Varint) {
      field.payload = StringRef(start, message.data() - start);
      return true;
    }
  }
  if (length > message.size())
    return fail(start, "field " + Twine(field.number) + ": length " + Twine(length) + " runs past the end of the " +
                           (path.empty() ? "file" : "message that holds it") + ", " + Twine(message.size()) +
                           " bytes are left");
  field.payload = message.take_front(length);
  message = message.drop_front(length);
  if (field.type == WireType::Fixed64)
    field.value = support::endian::read64le(field.payload.data());
  if (field.type == WireType::Fixed32)
    field.value = support::endian::read32le(field.payload.data());
  return true;
}

bool WireReader::enter(const WireField &field, const char *name, int64_t index) {
  if (!expect(field, name, WireType::Bytes))
    return false;
  path.push_back({name, index});
  if (path.size() > limits.maxDepth)
    return fail(field.payload.data(), "messages are nested deeper than " + Twine(limits.maxDepth));
  return true;
}

bool WireReader::expect(const WireField &field, const char *name, WireType type) {
  if (field.type == type)
    return true;
  return failIn(field, name, Twine("got ") + getName(field.type) + ", want " + getName(type));
}

/// Models come from newer writers too: unknown fields are counted, and the first is named.
bool WireReader::skip(const WireField &field) {
  if (unknownFields++ == 0) {
    std::string where = formatPath();
    firstUnknownField = (where.empty() ? "field " : where + " field ") + std::to_string(field.number);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool WireReader::text(const WireField &field, const char *name, StringRef &value) {
  value = field.payload;
  return expect(field, name, WireType::Bytes);
}

bool WireReader::integer(const WireField &field, const char *name, int64_t &value) {
  value = static_cast<int64_t>(field.value);
  return expect(field, name, WireType::Varint);
}

bool WireReader::integer32(const WireField &field, const char *name, int32_t &value) {
  int64_t wide = 0;
  if (!integer(field, name, wide))
    return false;
  if (wide < INT32_MIN || wide > INT32_MAX)
    return failIn(field, name, "value " + Twine(wide) + " does not fit 32 bits");
  value = static_cast<int32_t>(wide);
  return true;
}

/// The float with the given bits.
static float toFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

bool WireReader::real(const WireField &field, const char *name, float &value) {
  value = toFloat(field.value);
  return expect(field, name, WireType::Fixed32);
}

bool WireReader::texts(const WireField &field, const char *name, std::vector<StringRef> &values) {
  if (!expect(field, name, WireType::Bytes) || !charge(sizeof(StringRef), field.payload))
    return false;
  values.push_back(field.payload);
  return true;
}

/// Packed or one by one: protobuf readers must take both.
bool WireReader::integers(const WireField &field, const char *name, std::vector<int64_t> &values) {
  if (field.type == WireType::Varint) {
    values.push_back(static_cast<int64_t>(field.value));
    return charge(sizeof(int64_t), field.payload);
  }
  if (!expect(field, name, WireType::Bytes))
    return false;
  StringRef rest = field.payload;
  while (!rest.empty()) {
    const char *start = rest.data();
    std::optional<uint64_t> value = takeVarint(rest);
    if (!value)
      return fail(start, Twine(name) + ": truncated or oversized varint");
    if (!charge(sizeof(int64_t), field.payload))
      return false;
    values.push_back(static_cast<int64_t>(*value));
  }
  return true;
}

bool WireReader::reals(const WireField &field, const char *name, std::vector<float> &values) {
  if (field.type != WireType::Fixed32 && !expect(field, name, WireType::Bytes))
    return false;
  if (field.payload.size() % sizeof(float) != 0)
    return failIn(field, name, "length " + Twine(field.payload.size()) + " is not a multiple of 4");
  if (!charge(field.payload.size(), field.payload))
    return false;
  for (size_t at = 0; at < field.payload.size(); at += sizeof(float))
    values.push_back(toFloat(support::endian::read32le(field.payload.data() + at)));
  return true;
}

/// Elements stay where they are in the file; a chunk is a view of some of them.
bool WireReader::elements(const WireField &field, const char *name, WireType type,
                          std::vector<TensorProto::Chunk> &chunks) {
  if (field.type != type && !expect(field, name, WireType::Bytes))
    return false;
  if (field.payload.empty() && field.number != TensorProto::StringData)
    return true;
  chunks.push_back({static_cast<TensorProto::Field>(field.number), field.payload});
  return charge(sizeof(TensorProto::Chunk), field.payload);
}

//===----------------------------------------------------------------------===//
// Budgets and errors
//===----------------------------------------------------------------------===//

/// What a byte of the file turns into may be many: the sum is bounded, not each part of it.
bool WireReader::charge(uint64_t bytes, StringRef where) {
  memory += bytes;
  if (memory <= limits.maxMemory)
    return true;
  return fail(where.data(), "the model's graph takes more than " + Twine(limits.maxMemory) + " bytes");
}

std::string WireReader::formatPath() const {
  std::string text;
  for (const Step &step : path) {
    text += text.empty() ? "" : ".";
    text += step.name;
    if (step.index >= 0)
      text += "[" + std::to_string(step.index) + "]";
  }
  return text;
}

bool WireReader::failIn(const WireField &field, const char *name, const Twine &message) {
  return fail(field.payload.data(), Twine(name) + ": " + message);
}

bool WireReader::fail(const char *where, const Twine &message) {
  if (!error.empty())
    return false;
  std::string text = formatPath();
  error = ("byte " + Twine(where - file.data()) + ": " + text + (text.empty() ? "" : ": ") + message).str();
  return false;
}

} // namespace cleave::onnx
