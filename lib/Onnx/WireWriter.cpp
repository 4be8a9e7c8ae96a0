//===- WireWriter.cpp - protobuf bytes ------------------------------------===//
//
// The encoding is that of "Encoding" in the Protocol Buffers documentation, the reverse of what WireReader.cpp reads.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/WireWriter.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"

using namespace llvm;
using namespace cleave::onnx;

std::string &WireMessage::tail() {
  if (pieces.empty() || !pieces.back().view.empty())
    pieces.emplace_back();
  return pieces.back().own;
}

/// Seven bits a byte, least significant first; the eighth says that more follow.
void WireMessage::varint(uint64_t value) {
  std::string &out = tail();
  for (; value >= 0x80; value >>= 7, ++bytes)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
  ++bytes;
}

void WireMessage::tag(uint32_t field, WireType type) { varint(uint64_t(field) << 3 | static_cast<uint64_t>(type)); }

/// A short piece costs more to refer to than to copy.
void WireMessage::add(StringRef view) {
  constexpr size_t shortest = 64;
  bytes += view.size();
  if (view.size() < shortest)
    tail() += view;
  else
    pieces.push_back({view, ""});
}

void WireMessage::integer(uint32_t field, int64_t value) {
  tag(field, WireType::Varint);
  varint(static_cast<uint64_t>(value));
}

/// Four bytes, the least significant first.
void WireMessage::real(uint32_t field, float value) {
  tag(field, WireType::Fixed32);
  char encoded[sizeof(float)];
  support::endian::write32le(encoded, bit_cast<uint32_t>(value));
  tail().append(encoded, sizeof(encoded));
  bytes += sizeof(encoded);
}

void WireMessage::text(uint32_t field, StringRef text) {
  tag(field, WireType::Bytes);
  varint(text.size());
  tail() += text;
  bytes += text.size();
}

void WireMessage::copy(const WireField &field) {
  tag(field.number, field.type);
  if (field.type == WireType::Bytes)
    varint(field.payload.size());
  add(field.payload);
}

void WireMessage::message(uint32_t field, WireMessage inner) {
  tag(field, WireType::Bytes);
  varint(inner.size());
  bytes += inner.size();
  for (Piece &piece : inner.pieces)
    if (piece.view.empty())
      tail() += piece.own;
    else
      pieces.push_back(std::move(piece));
}

void WireMessage::write(raw_ostream &os) const {
  for (const Piece &piece : pieces)
    os << (piece.view.empty() ? StringRef(piece.own) : piece.view);
}

std::string WireMessage::str() const {
  std::string text;
  raw_string_ostream os(text);
  write(os);
  return text;
}
