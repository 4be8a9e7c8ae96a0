//===- Error.cpp - text from strangers ------------------------------------===//
//
// Whatever a file says, a message stays on one line, in ASCII, and of bearable length.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Error.h"

#include <algorithm>

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
