//===- Numbers.h - numbers as people read them ------------------*- C++ -*-===//
#ifndef CLEAVE_SCHEDULE_NUMBERS_H
#define CLEAVE_SCHEDULE_NUMBERS_H

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace cleave::schedule {

/// `28.5`, `33`, `1e+12`: at most `digits` significant digits, and no zeros behind them.
inline std::string formatNumber(double number, int digits = 6) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, number);
  return text;
}

} // namespace cleave::schedule

#endif // CLEAVE_SCHEDULE_NUMBERS_H
