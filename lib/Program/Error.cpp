//===- Error.cpp - text from strangers ------------------------------------===//
//
// Whatever a file says, a message stays on one line, in ASCII, and of bearable length.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Error.h"

#include <algorithm>

using namespace cleave::program;

void Part::appendTo(std::string &message) const {
  switch (kind) {
  case Kind::Text:
    message.append(text, length);
    break;
  case Kind::Literal:
    message += text;
    break;
  case Kind::Signed:
    message += std::to_string(static_cast<int64_t>(bits));
    break;
  case Kind::Unsigned:
    message += std::to_string(bits);
    break;
  case Kind::Real:
    message += std::to_string(real);
  }
}

std::string cleave::program::concat(std::initializer_list<Part> parts) {
  std::string message;
  for (const Part &part : parts)
    part.appendTo(message);
  return message;
}

Error cleave::program::makeError(std::initializer_list<Part> parts) { return {concat(parts)}; }

std::string cleave::program::quote(std::string_view text) {
  constexpr size_t most = 100;
  constexpr char digits[] = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (unsigned char byte : text.substr(0, most)) {
    if (byte == '"' || byte == '\\') {
      quoted += {'\\', static_cast<char>(byte)};
    } else if (byte >= 0x20 && byte < 0x7f) {
      quoted += static_cast<char>(byte);
    } else {
      quoted += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    }
  }
  return quoted + (text.size() > most ? "...\"" : "\"");
}

std::string cleave::program::printable(std::string_view text) {
  bool isPlain = std::all_of(text.begin(), text.end(), [](unsigned char byte) { return byte >= 0x20 && byte != 0x7f; });
  return isPlain ? std::string(text) : quote(text);
}
