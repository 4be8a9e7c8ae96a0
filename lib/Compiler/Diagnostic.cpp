//===- Diagnostic.cpp - diagnostics as text -------------------------------===//
//
// A line for the diagnostic and one for each note, in the form that editors know from compilers: place, severity, text.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Diagnostic.h"

using namespace cleave;

std::string cleave::Diagnostic::formatPlace() const {
  return line ? file + ':' + std::to_string(line) + ':' + std::to_string(column) : file;
}

const char *cleave::Diagnostic::formatSeverity() const {
  constexpr const char *words[] = {"error", "warning", "remark", "note"};
  return words[static_cast<int>(severity)];
}

std::string cleave::Diagnostic::formatText() const {
  bool isNamed = node.empty() || message.find(node) != std::string::npos;
  return isNamed ? message : "node '" + node + "': " + message;
}

std::string cleave::Diagnostic::format() const {
  std::string text = formatPlace() + ": " + formatSeverity() + ": " + formatText() + '\n';
  for (const cleave::Diagnostic &note : notes)
    text += note.format();
  return text;
}
