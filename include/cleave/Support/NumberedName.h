//===- NumberedName.h - names that differ in numbers ------------*- C++ -*-===//
//
// Layers are called alike but for a number: equal ones share a line, or a rule.
//
//   layer.0.weight, layer.1.weight    ──▶    layer.{0,1}.weight
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_NUMBEREDNAME_H
#define CLEAVE_SUPPORT_NUMBEREDNAME_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace cleave {

/// Text and the numbers in it, one text more than numbers. A number behind `#` is an operand's, and part of the text.
struct NumberedName {
  explicit NumberedName(llvm::StringRef name);
  std::vector<std::string> texts, numbers;

  /// `layer.*.weight`.
  std::string getStarred() const;
};

/// The only place where the numbers of two names differ; nothing if there are more, or none. Precondition: their texts are equal.
std::optional<size_t> findDifference(const NumberedName &a, const NumberedName &b);

/// One text for all of them: `layer.{0,1}.weight`, and `layer.*.weight` where the list would have more than `longest` letters. Precondition:
/// their texts are equal.
std::string listNumbers(const NumberedName &first, llvm::ArrayRef<NumberedName> others,
                        size_t longest = std::string::npos);

} // namespace cleave

#endif // CLEAVE_SUPPORT_NUMBEREDNAME_H
