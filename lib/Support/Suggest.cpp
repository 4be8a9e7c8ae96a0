//===- Suggest.cpp - what a user may have meant ---------------------------===//
//
// The distance between a pattern and a name is Levenshtein's, one row at a time, with `*` free.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

/// The first alternative of every `{a,b}`; enough to tell how far a name is.
static std::string simplify(StringRef pattern) {
  std::string text;
  while (!pattern.empty()) {
    auto [before, rest] = pattern.split('{');
    text += before;
    size_t close = rest.find('}');
    if (close == StringRef::npos)
      return text + rest.str();
    text += rest.take_front(close).split(',').first;
    pattern = rest.drop_front(close + 1);
  }
  return text;
}

/// Levenshtein distance; a `*` of the pattern takes any text for nothing, `?` any character.
static size_t getDistance(StringRef pattern, StringRef name) {
  llvm::SmallVector<size_t, 128> row(name.size() + 1);
  for (size_t i = 0; i <= name.size(); ++i)
    row[i] = i;
  for (char wanted : pattern) {
    bool isStar = wanted == '*';
    size_t diagonal = row[0];
    row[0] += !isStar;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t above = row[i];
      size_t change = llvm::toLower(wanted) == llvm::toLower(name[i - 1]) || wanted == '?' ? 0 : 1;
      row[i] = isStar ? std::min(above, row[i - 1]) : std::min({above + 1, row[i - 1] + 1, diagonal + change});
      diagonal = above;
    }
  }
  return row[name.size()];
}

std::vector<std::string> cleave::findNearestNames(StringRef wanted, llvm::ArrayRef<StringRef> names, size_t count) {
  if (wanted.starts_with("re:"))
    return {};
  std::string pattern = simplify(wanted);
  size_t literal = pattern.size() - llvm::count(pattern, '*');
  // A third of the letters may be wrong; beyond that a suggestion is a guess.
  size_t limit = std::max<size_t>(1, (literal + 2) / 3);
  std::vector<std::pair<size_t, StringRef>> near;
  for (StringRef name : names)
    if (size_t distance = getDistance(pattern, name); distance <= limit)
      near.push_back({distance, name});
  llvm::sort(near);
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> result;
  for (const auto &[distance, name] : llvm::ArrayRef(near).take_front(count))
    result.push_back(name.str());
  return result;
}

std::string cleave::suggestNames(StringRef wanted, llvm::ArrayRef<StringRef> names) {
  std::vector<std::string> near = findNearestNames(wanted, names);
  if (near.empty())
    return "";
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i)
    text += (i == 0 ? "'" : i + 1 == near.size() ? " or '" : ", '") + near[i] + "'";
  return text + "?";
}
