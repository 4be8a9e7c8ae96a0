//===- NamePattern.cpp - how a plan picks tensors and nodes ---------------===//
//
// Matching is LLVM's; what is added are limits (a plan is untrusted input: `(a{255}){255}` would expand to gigabytes)
// and suggestions. The distance between a pattern and a name is Levenshtein's, one row at a time, with `*` free.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/NamePattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/Regex.h"

using namespace cleave::spmd;
using llvm::StringRef;

// Plans are input like any other: these bound what a pattern may cost, in alternatives of braces and in states of a
// compiled expression.
static constexpr size_t kMaxPatternLength = 4096;
static constexpr size_t kMaxAlternatives = 1024;
static constexpr uint64_t kMaxRepeats = 10000;

struct NamePattern::Matcher {
  std::string text;
  std::string globText; ///< what `glob` refers to
  std::optional<llvm::GlobPattern> glob;
  std::optional<llvm::Regex> regex;
};

/// Product of the bounds of all `{m,n}` of a regular expression: how much it grows when compiled.
static uint64_t countRepeats(StringRef expression) {
  uint64_t product = 1;
  for (size_t open = expression.find('{'); open != StringRef::npos; open = expression.find('{', open + 1)) {
    auto [low, high] = expression.substr(open + 1).split('}').first.split(',');
    uint64_t bound = 0;
    if ((high.empty() ? low : high).getAsInteger(10, bound))
      continue;
    product = std::min(product, kMaxRepeats + 1) * std::clamp<uint64_t>(bound, 1, kMaxRepeats + 1);
  }
  return product;
}

/// `{a}`, of which LLVM's globs know nothing, is `a`.
static std::string dropLoneBraces(StringRef pattern) {
  std::string text;
  while (!pattern.empty()) {
    auto [before, rest] = pattern.split('{');
    // A group has a comma, and an escaped or nested brace is left to the glob.
    size_t close = rest.find_first_of("{}[\\");
    bool isLone = close != StringRef::npos && close > 0 && rest[close] == '}' &&
                  !rest.take_front(close).contains(',') && !before.ends_with("\\");
    text += before;
    if (isLone)
      text += rest.take_front(close);
    else if (before.size() < pattern.size())
      text += '{';
    pattern = isLone ? rest.drop_front(close + 1) : rest;
  }
  return text;
}

std::optional<NamePattern> NamePattern::create(StringRef text, std::string &error) {
  if (text.empty() || text.size() > kMaxPatternLength) {
    error = text.empty() ? "pattern is empty" : "pattern is longer than " + std::to_string(kMaxPatternLength);
    return std::nullopt;
  }
  auto matcher = std::make_shared<Matcher>();
  matcher->text = text.str();
  StringRef expression = matcher->text;
  if (expression.consume_front("re:")) {
    if (countRepeats(expression) > kMaxRepeats) {
      error = "regular expression repeats more than " + std::to_string(kMaxRepeats) + " times";
      return std::nullopt;
    }
    // The whole name must match, as with the other kind of pattern.
    matcher->regex.emplace("^(" + expression.str() + ")$");
    std::string reason;
    if (!matcher->regex->isValid(reason)) {
      error = "bad regular expression '" + expression.str() + "': " + reason;
      return std::nullopt;
    }
  } else {
    matcher->globText = dropLoneBraces(expression);
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(matcher->globText, kMaxAlternatives);
    if (!glob) {
      error = "bad pattern '" + expression.str() + "': " + llvm::toString(glob.takeError());
      return std::nullopt;
    }
    matcher->glob = std::move(*glob);
  }
  NamePattern pattern;
  pattern.matcher = std::move(matcher);
  return pattern;
}

void NamePattern::exclude(NamePattern other) { exclusions.push_back(std::move(other)); }

// A name that is spelled out matches even if it holds characters that mean something in a pattern.
bool NamePattern::matches(StringRef name) const {
  if (llvm::any_of(exclusions, [&](const NamePattern &other) { return other.matches(name); }))
    return false;
  if (name == matcher->text)
    return true;
  return matcher->glob ? matcher->glob->match(name) : matcher->regex->match(name);
}

bool NamePattern::isLiteral() const {
  return matcher->glob && exclusions.empty() && StringRef(matcher->text).find_first_of("*?[{\\") == StringRef::npos;
}

StringRef NamePattern::getText() const { return matcher->text; }

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
      size_t change = wanted == name[i - 1] || wanted == '?' ? 0 : 1;
      row[i] = isStar ? std::min(above, row[i - 1]) : std::min({above + 1, row[i - 1] + 1, diagonal + change});
      diagonal = above;
    }
  }
  return row[name.size()];
}

std::vector<std::string> cleave::spmd::findNearestNames(StringRef wanted, llvm::ArrayRef<StringRef> names,
                                                        size_t count) {
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

std::string cleave::spmd::suggestNames(StringRef wanted, llvm::ArrayRef<StringRef> names) {
  std::vector<std::string> near = findNearestNames(wanted, names);
  if (near.empty())
    return "";
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i)
    text += (i == 0 ? "'" : i + 1 == near.size() ? " or '" : ", '") + near[i] + "'";
  return text + "?";
}
