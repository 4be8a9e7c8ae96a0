//===- TextTable.h - tables for terminals -----------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DRIVER_TEXTTABLE_H
#define CLEAVE_LIB_DRIVER_TEXTTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace cleave::driver {

/// Where texts stand that are shorter than their column.
enum class TextColumns {
  AllLeft,
  FirstLeft, ///< figures, behind what they are of
};

/// Rows of equally many texts, in columns as wide as the longest text of each, two blanks apart.
void printTable(llvm::raw_ostream &os, llvm::ArrayRef<std::vector<std::string>> rows, TextColumns columns);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_TEXTTABLE_H
