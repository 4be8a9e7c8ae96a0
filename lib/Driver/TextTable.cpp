//===- TextTable.cpp - tables for terminals -------------------------------===//
//
// Blanks at the end of a line are left out, so that an empty last column is none.
//
//===----------------------------------------------------------------------===//
#include "TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace cleave::driver;

void cleave::driver::printTable(llvm::raw_ostream &os, llvm::ArrayRef<std::vector<std::string>> rows,
                                TextColumns columns) {
  std::vector<size_t> widths(rows.front().size());
  for (llvm::ArrayRef<std::string> row : rows)
    for (auto [width, text] : llvm::zip_equal(widths, row))
      width = std::max(width, text.size());
  for (llvm::ArrayRef<std::string> row : rows) {
    std::string line;
    for (auto [index, text] : llvm::enumerate(row)) {
      bool isLeft = columns == TextColumns::AllLeft || index == 0;
      std::string blanks(widths[index] - text.size(), ' ');
      line += (index > 0 ? "  " : "") + (isLeft ? text + blanks : blanks + text);
    }
    os << llvm::StringRef(line).rtrim() << '\n';
  }
}
