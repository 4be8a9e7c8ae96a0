//===- NumberedName.cpp - names that differ in numbers --------------------===//
//
// Which numbers count layers and which do not is not asked: names that differ in one place alone differ in it.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/NumberedName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cassert>

using namespace cleave;
using namespace llvm;

/// Digits in a row are one number; all between two numbers is one text.
NumberedName::NumberedName(StringRef name) : texts(1) {
  for (size_t i = 0; i < name.size();) {
    size_t digits = name.substr(i).find_if_not(isDigit);
    digits = std::min(digits, name.size() - i);
    if (digits && !(i && name[i - 1] == '#')) {
      numbers.push_back(name.substr(i, digits).str());
      texts.emplace_back();
    } else {
      digits = std::max<size_t>(digits, 1);
      texts.back() += name.substr(i, digits);
    }
    i += digits;
  }
}

std::string NumberedName::getStarred() const { return join(texts, "*"); }

std::optional<size_t> cleave::findDifference(const NumberedName &a, const NumberedName &b) {
  assert(a.texts == b.texts && "names that differ in numbers alone");
  std::optional<size_t> found;
  for (size_t i = 0; i < a.numbers.size(); ++i)
    if (a.numbers[i] != b.numbers[i]) {
      if (found)
        return std::nullopt;
      found = i;
    }
  return found;
}

std::string cleave::listNumbers(const NumberedName &first, ArrayRef<NumberedName> others, size_t longest) {
  std::string text = first.texts.front();
  for (size_t i = 0; i < first.numbers.size(); ++i) {
    std::vector<std::string> numbers{first.numbers[i]};
    for (const NumberedName &other : others)
      if (!is_contained(numbers, other.numbers[i]))
        numbers.push_back(other.numbers[i]);
    std::string list = join(numbers, ",");
    text += numbers.size() == 1 ? list : list.size() <= longest ? "{" + list + "}" : "*";
    text += first.texts[i + 1];
  }
  return text;
}
