//===- Status.cpp - errors of libraries without MLIR ----------------------===//
//
// Text of a file may hold any byte and be of any length. What a message quotes of it is split at 200 bytes, and whatever
// a terminal would take for a command, or is no UTF-8, is printed as hex.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Status.h"
#include "llvm/Support/ConvertUTF.h"

using namespace llvm;

namespace cleave {

Error addContext(StringRef prefix, Error error) { return makeError("{0}{1}", prefix, toString(std::move(error))); }

/// Bytes of the printable character that `text` starts with; 0 if it starts with a control character or no character.
static size_t printableLength(StringRef text) {
  auto *begin = reinterpret_cast<const UTF8 *>(text.begin());
  size_t length = getNumBytesForUTF8(*begin);
  if (length > text.size() || !isLegalUTF8Sequence(begin, begin + length))
    return 0;
  if (length == 1)
    return *begin < 0x20 || *begin == 0x7f ? 0 : 1;
  bool isControl = length == 2 && begin[0] == 0xc2 && begin[1] < 0xa0;
  return isControl ? 0 : length;
}

std::string quote(StringRef text) {
  constexpr size_t maxBytes = 200;
  std::string quoted = "'";
  StringRef rest = text.take_front(maxBytes);
  while (!rest.empty()) {
    if (size_t length = printableLength(rest)) {
      quoted += rest.take_front(length);
      rest = rest.drop_front(length);
      continue;
    }
    quoted += formatv("\\x{0:x-2}", static_cast<uint8_t>(rest.front())).str();
    rest = rest.drop_front();
  }
  return quoted + (text.size() > maxBytes ? "...'" : "'");
}

} // namespace cleave
