//===- Text.h - the text of a plan as an editor counts it -------*- C++ -*-===//
//
// Editors count lines from 0 and characters of a line in units of UTF-16; places of plans count both from 1, and bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EDITOR_TEXT_H
#define CLEAVE_LIB_EDITOR_TEXT_H

#include "llvm/Support/LSP/Protocol.h"

namespace cleave::editor {

class Text {
public:
  explicit Text(std::string text);

  llvm::StringRef get() const { return text; }
  /// Of a line from 0, without its end; empty behind the last.
  llvm::StringRef getLine(size_t line) const;
  size_t countLines() const { return lineStarts.size(); }
  /// The nearest place that there is.
  size_t toOffset(const llvm::lsp::Position &position) const;
  llvm::lsp::Position toPosition(size_t offset) const;
  /// Of a line and a column of a plan; those that are 0 or too large are the nearest that there are.
  size_t toOffset(unsigned line, unsigned column) const;
  std::pair<unsigned, unsigned> toPlace(size_t offset) const;
  llvm::lsp::Range toRange(size_t start, size_t end) const { return {toPosition(start), toPosition(end)}; }
  /// The whole text, or a part of it, becomes another one.
  void change(const llvm::lsp::TextDocumentContentChangeEvent &event);

private:
  void findLines();

  std::string text;
  std::vector<size_t> lineStarts;
};

} // namespace cleave::editor

#endif // CLEAVE_LIB_EDITOR_TEXT_H
