//===- NamePattern.cpp - how a plan picks tensors and nodes ---------------===//
//
// A glob is checked by LLVM, whose syntax it has, and written as a regular expression; RE2 matches both in time that is linear
// in the name, whatever the pattern (a plan is untrusted input), and refuses what it would take too much memory for.
//
//   layer.{0,1}.w*     layer\.(?:0|1)\.w.*
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/NamePattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

#include "cleave/Support/Status.h"
#include <re2/re2.h>

using namespace cleave;
using namespace cleave::spmd;
using llvm::StringRef;

static constexpr size_t kMaxPatternLength = 4096;
static constexpr size_t kMaxAlternatives = 1024;
static constexpr StringRef kRegexPrefix = "re:";

struct NamePattern::Matcher {
  std::string text;
  std::string required;
  std::unique_ptr<re2::RE2> expression; ///< null for a literal
  bool isGlob = true;
};

//===----------------------------------------------------------------------===//
// From globs to regular expressions
//===----------------------------------------------------------------------===//

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

/// One byte, by its number: whatever it means in an expression.
static std::string escapeByte(char byte) {
  bool isPlain = llvm::isAlnum(byte) || byte == '_';
  return isPlain ? std::string(1, byte) : llvm::formatv("\\x{0:x-2}", uint8_t(byte)).str();
}

/// What is between the brackets of `[a-f]`, `[^a]`, `[!a]`: characters and ranges, none of which is escaped.
static std::string translateSet(StringRef set) {
  bool isInverted = set.starts_with("^") || set.starts_with("!");
  set = set.drop_front(isInverted);
  if (set.empty())
    return ".";
  std::string text = isInverted ? "[^" : "[";
  while (!set.empty()) {
    bool isRange = set.size() >= 3 && set[1] == '-';
    text += escapeByte(set[0]) + (isRange ? "-" + escapeByte(set[2]) : "");
    set = set.drop_front(isRange ? 3 : 1);
  }
  return text + "]";
}

/// Precondition: LLVM takes the glob.
static std::string translateGlob(StringRef glob) {
  assert(!llvm::errorToBool(llvm::GlobPattern::create(glob, kMaxAlternatives).takeError()) && "not a glob");
  std::string text;
  bool isInGroup = false;
  for (size_t i = 0; i < glob.size(); ++i) {
    char c = glob[i];
    if (c == '*' || c == '?') {
      text += c == '*' ? ".*" : ".";
    } else if (c == '[') {
      // A bracket that comes first is one of the set.
      size_t end = glob.find(']', i + 2);
      text += translateSet(glob.slice(i + 1, end));
      i = end;
    } else if (c == '{' || (isInGroup && (c == ',' || c == '}'))) {
      isInGroup = c != '}';
      text += c == '{' ? "(?:" : c == ',' ? "|" : ")";
    } else {
      i += c == '\\' && i + 1 < glob.size();
      text += escapeByte(glob[i]);
    }
  }
  return text;
}

/// The longest text of a glob that stands for itself.
static std::string findRequired(StringRef glob) {
  StringRef longest;
  for (size_t start = 0; start < glob.size();) {
    size_t end = std::min(glob.find_first_of("*?[{\\", start), glob.size());
    if (end - start > longest.size())
      longest = glob.slice(start, end);
    char stop = end < glob.size() ? glob[end] : '\0';
    size_t close = stop == '[' ? glob.find(']', end + 2) : stop == '{' ? glob.find('}', end) : end;
    start = close == StringRef::npos ? glob.size() : close + (stop == '\\' ? 2 : 1);
  }
  return longest.str();
}

/// What names that match an expression begin with.
static std::string findRequired(const re2::RE2 &expression) {
  constexpr int most = 32;
  std::string least, greatest;
  if (!expression.PossibleMatchRange(&least, &greatest, most))
    return "";
  auto end = std::mismatch(least.begin(), least.end(), greatest.begin(), greatest.end()).first;
  return std::string(least.begin(), end);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Names are bytes to patterns: those of strangers need not be UTF-8.
static std::unique_ptr<re2::RE2> compile(const std::string &expression) {
  re2::RE2::Options options(re2::RE2::Latin1);
  options.set_log_errors(false);
  options.set_dot_nl(true);
  options.set_never_capture(true);
  return std::make_unique<re2::RE2>(expression, options);
}

llvm::Expected<NamePattern> NamePattern::create(StringRef text) {
  if (text.empty())
    return makeError("pattern is empty");
  if (text.size() > kMaxPatternLength)
    return makeError("pattern is longer than {0}", kMaxPatternLength);
  auto matcher = std::make_shared<Matcher>();
  matcher->text = text.str();
  StringRef expression = matcher->text;
  matcher->isGlob = !expression.consume_front(kRegexPrefix);
  if (!matcher->isGlob) {
    matcher->expression = compile(expression.str());
    if (!matcher->expression->ok())
      return makeError("bad regular expression '{0}': {1}", expression, matcher->expression->error());
    matcher->required = findRequired(*matcher->expression);
  } else if (!isLiteral(text)) {
    std::string glob = dropLoneBraces(expression);
    if (llvm::Error bad = llvm::GlobPattern::create(glob, kMaxAlternatives).takeError())
      return makeError("bad pattern '{0}': {1}", expression, llvm::toString(std::move(bad)));
    matcher->expression = compile(translateGlob(glob));
    if (!matcher->expression->ok())
      return makeError("bad pattern '{0}': it is too large", expression);
    matcher->required = findRequired(expression);
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
  return matcher->expression && re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *matcher->expression);
}

bool NamePattern::isLiteral(StringRef text) {
  return !text.starts_with(kRegexPrefix) && text.find_first_of("*?[{\\") == StringRef::npos;
}

bool NamePattern::isLiteral() const { return !matcher->expression && exclusions.empty(); }

StringRef NamePattern::getText() const { return matcher->text; }

StringRef NamePattern::getRequired() const { return matcher->expression ? matcher->required : matcher->text; }

std::vector<std::pair<std::string, NamePattern>> NamePattern::getAlternatives() const {
  std::vector<std::pair<std::string, NamePattern>> found;
  StringRef text = matcher->text;
  if (!matcher->isGlob || text.find_first_of("[\\") != StringRef::npos)
    return found;
  for (size_t open = text.find('{'); open != StringRef::npos; open = text.find('{', open + 1)) {
    size_t close = text.find('}', open);
    if (close == StringRef::npos)
      break;
    StringRef group = text.slice(open + 1, close);
    if (!group.contains(','))
      continue;
    for (StringRef one : llvm::split(group, ",")) {
      llvm::Expected<NamePattern> pattern = create((text.take_front(open) + one + text.drop_front(close + 1)).str());
      if (!llvm::errorToBool(pattern.takeError()))
        found.emplace_back(one.str(), std::move(*pattern));
    }
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Many names
//===----------------------------------------------------------------------===//

/// Three characters in a row, as a number.
static uint32_t getTriple(const char *text) {
  return uint32_t(uint8_t(text[0])) << 16 | uint32_t(uint8_t(text[1])) << 8 | uint8_t(text[2]);
}

NameIndex::NameIndex(std::vector<StringRef> given) : names(std::move(given)) {
  numbers.reserve(names.size());
  for (auto [number, name] : llvm::enumerate(names))
    numbers.try_emplace(name, number);
}

void NameIndex::build() const {
  for (auto [number, name] : llvm::enumerate(names))
    for (size_t i = 0; i + 3 <= name.size(); ++i)
      if (std::vector<uint32_t> &list = holders[getTriple(name.data() + i)]; list.empty() || list.back() != number)
        list.push_back(uint32_t(number));
}

bool NameIndex::forEachMatch(const NamePattern &pattern, llvm::function_ref<void(size_t)> use) const {
  bool any = false;
  auto tryOne = [&](size_t number) {
    if (!pattern.matches(names[number]))
      return;
    any = true;
    use(number);
  };
  auto exact = numbers.find(pattern.getText());
  if (pattern.isLiteral()) {
    if (exact != numbers.end())
      tryOne(exact->second);
    return any;
  }
  constexpr unsigned few = 16; // lookups that cost less than to build the table
  StringRef required = pattern.getRequired();
  if (required.size() < 3 || ++lookups <= few) {
    for (size_t number = 0; number < names.size(); ++number)
      tryOne(number);
    return any;
  }
  if (holders.empty())
    build();
  const std::vector<uint32_t> *rarest = nullptr, none;
  for (size_t i = 0; i + 3 <= required.size(); ++i) {
    auto found = holders.find(getTriple(required.data() + i));
    const std::vector<uint32_t> *list = found == holders.end() ? &none : &found->second;
    if (!rarest || list->size() < rarest->size())
      rarest = list;
  }
  // A name that is the pattern need not have what others must.
  bool isExactLeft = exact != numbers.end() && !llvm::binary_search(*rarest, exact->second);
  for (uint32_t number : *rarest) {
    if (isExactLeft && exact->second < number) {
      tryOne(exact->second);
      isExactLeft = false;
    }
    tryOne(number);
  }
  if (isExactLeft)
    tryOne(exact->second);
  return any;
}

//===----------------------------------------------------------------------===//
// Suggestions
//===----------------------------------------------------------------------===//

std::string cleave::spmd::suggestPatterns(StringRef wanted, llvm::ArrayRef<StringRef> names) {
  std::string text = suggestNames(wanted, names);
  bool isRegex = wanted.starts_with(kRegexPrefix);
  StringRef core = isRegex ? wanted.drop_front(kRegexPrefix.size()) : wanted;
  StringRef any = isRegex ? ".*" : "*", prefix = isRegex ? kRegexPrefix : "";
  for (auto [front, back] : {std::pair(false, true), std::pair(true, false), std::pair(true, true)}) {
    bool isSame = (front && core.starts_with(any)) || (back && core.ends_with(any));
    std::string tried = (prefix + (front ? any : "") + core + (back ? any : "")).str();
    if (isSame)
      continue;
    llvm::Expected<NamePattern> pattern = NamePattern::create(tried);
    if (llvm::errorToBool(pattern.takeError()))
      continue;
    auto matching = llvm::make_filter_range(names, [&](StringRef name) { return pattern->matches(name); });
    size_t count = std::distance(matching.begin(), matching.end());
    if (count == 0)
      continue;
    std::string more = count > 1 ? llvm::formatv(" and {0} more", count - 1).str() : "";
    return text + llvm::formatv("; try '{0}', which matches '{1}'{2}", tried, *matching.begin(), more).str();
  }
  return text;
}
