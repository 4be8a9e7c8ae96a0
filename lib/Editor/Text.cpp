//===- Text.cpp - the text of a plan as an editor counts it ---------------===//
//
// Characters of up to three bytes in UTF-8 are one unit in UTF-16, those of four are two. Texts come as JSON, so that they are valid; a position
// need not be.
//
//===----------------------------------------------------------------------===//
#include "Text.h"

#include "llvm/ADT/STLExtras.h"

using namespace cleave::editor;
using namespace llvm;

Text::Text(std::string text) : text(std::move(text)) { findLines(); }

void Text::findLines() {
  lineStarts = {0};
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1))
    lineStarts.push_back(end + 1);
}

/// Lines that end as on Windows have a character more, which is no part of them.
StringRef Text::getLine(size_t line) const {
  if (line >= lineStarts.size())
    return {};
  size_t end = line + 1 < lineStarts.size() ? lineStarts[line + 1] - 1 : text.size();
  return StringRef(text).slice(lineStarts[line], end).rtrim('\r');
}

/// Bytes of the character that begins so.
static size_t countBytes(unsigned char lead) { return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1; }

size_t Text::toOffset(const lsp::Position &position) const {
  if (position.line < 0)
    return 0;
  size_t line = position.line;
  if (line >= lineStarts.size())
    return text.size();
  StringRef content = getLine(line);
  size_t byte = 0;
  // A position between both units of a character is that of the character.
  for (int64_t units = position.character; units > 0 && byte < content.size();) {
    size_t bytes = countBytes(content[byte]);
    units -= bytes == 4 ? 2 : 1;
    if (units < 0)
      break;
    byte = std::min(byte + bytes, content.size());
  }
  return lineStarts[line] + byte;
}

/// The other way round; an offset within a character is behind it.
lsp::Position Text::toPosition(size_t offset) const {
  offset = std::min(offset, text.size());
  size_t line = upper_bound(lineStarts, offset) - lineStarts.begin() - 1;
  int units = 0;
  for (size_t byte = lineStarts[line]; byte < offset;) {
    size_t bytes = countBytes(text[byte]);
    units += bytes == 4 ? 2 : 1;
    byte += bytes;
  }
  return lsp::Position(static_cast<int>(line), units);
}

size_t Text::toOffset(unsigned line, unsigned column) const {
  size_t number = line ? line - 1 : 0;
  if (number >= lineStarts.size())
    return text.size();
  return lineStarts[number] + std::min<size_t>(column ? column - 1 : 0, getLine(number).size());
}

std::pair<unsigned, unsigned> Text::toPlace(size_t offset) const {
  size_t line = upper_bound(lineStarts, offset) - lineStarts.begin();
  return {static_cast<unsigned>(line), static_cast<unsigned>(offset - lineStarts[line - 1]) + 1};
}

/// An end in front of its start is that of nothing.
void Text::change(const lsp::TextDocumentContentChangeEvent &event) {
  if (event.range) {
    size_t start = toOffset(event.range->start), end = std::max(start, toOffset(event.range->end));
    text.replace(start, end - start, event.text);
  } else {
    text = event.text;
  }
  findLines();
}
