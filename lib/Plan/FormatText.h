//===- FormatText.h - words and lists of a written plan ---------*- C++ -*-===//
//
// Shared by whoever writes a part of a plan (FormatPlan.cpp, FormatTrain.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_PLAN_FORMATTEXT_H
#define CLEAVE_LIB_PLAN_FORMATTEXT_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/YAMLParser.h"

namespace cleave::spmd {

/// Names of a model may have any letters.
inline std::string quoteText(llvm::StringRef text) { return "\"" + llvm::yaml::escape(text) + "\""; }

/// `[a, b]` of the texts that `format` makes of what is in a list.
template <typename List, typename FormatFn> std::string formatList(const List &list, FormatFn format) {
  return "[" + llvm::join(llvm::map_range(list, format), ", ") + "]";
}

} // namespace cleave::spmd

#endif // CLEAVE_LIB_PLAN_FORMATTEXT_H
