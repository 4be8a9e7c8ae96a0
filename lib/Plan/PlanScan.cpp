//===- PlanScan.cpp - a look at a plan's text before it is parsed ---------===//
//
// LLVM's YAML parser is lenient in places and names others late: `{tensor: x dims: [data]}` gives it a tensor called
// "x dims". So one scan walks over the text, in which every token is quoted, a plain word, or a bracket:
//
//   {tensor: x dims: [data, _]}      a second ':' in one entry: what is missing is a comma, before the word of the key
//   [[data] _]                       two tokens that cannot be one, side by side
//   [data, _}                        the innermost open bracket is another one
//
// Two plain words side by side are one text, which may hold blanks: whoever reads it must see whether it may.
//
//===----------------------------------------------------------------------===//
#include "PlanScan.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave::spmd;
using namespace llvm;

static constexpr unsigned kMaxNesting = 16;

namespace {
class PlanScan {
public:
  explicit PlanScan(std::string &text) : text(text) {}
  std::optional<PlanProblem> run();

private:
  /// An open bracket, and what its current entry has so far.
  struct Level {
    size_t position;
    bool hasColon = false;
  };
  /// A token that ends right before `end`.
  struct Token {
    size_t start, end;
    bool isPlain;
  };

  size_t step(size_t i);
  size_t stepInFlow(size_t i);
  size_t stepOutside(size_t i);
  void open(size_t i);
  void close(size_t i);
  void colon();
  void addToken(size_t start, size_t end, bool isPlain);
  void failBefore(const Token &next);
  void fail(size_t position, const Twine &message);

  char at(size_t i) const { return i < text.size() ? text[i] : '\0'; }
  bool endsWord(size_t i) const { return i >= text.size() || isSpace(text[i]) || StringRef("[]{},").contains(text[i]); }
  bool isComment(size_t i) const { return at(i) == '#' && (i == 0 || isSpace(text[i - 1])); }
  bool isColon(size_t i) const {
    return at(i) == ':' && (endsWord(i + 1) || (last && !last->isPlain && last->end == i));
  }
  size_t skipQuoted(size_t i) const;
  size_t skipLine(size_t i) const { return std::min(text.find('\n', i), text.size()); }
  void checkTab(size_t lineStart);

  std::string &text;
  SmallVector<Level> levels;
  /// The last token of the current entry's key or value, and the one before it.
  std::optional<Token> last, beforeLast;
  /// Of this line, outside brackets: each opens a collection.
  unsigned indicators = 0;
  std::optional<PlanProblem> problem;
};
} // namespace

void PlanScan::fail(size_t position, const Twine &message) {
  if (!problem)
    problem = {position, message.str()};
}

/// Position behind the closing quote.
size_t PlanScan::skipQuoted(size_t i) const {
  char quote = text[i];
  for (++i; i < text.size() && text[i] != quote; ++i)
    if (quote == '"' && text[i] == '\\')
      ++i;
  return std::min(i + 1, text.size());
}

/// The parser takes some tabs for indentation, passes over others, and names a line too late.
void PlanScan::checkTab(size_t lineStart) {
  size_t end = StringRef(text).find_first_not_of(" \t\r", lineStart);
  size_t tab = StringRef(text).slice(lineStart, end).find('\t');
  if (tab != StringRef::npos && end != StringRef::npos && text[end] != '\n' && text[end] != '#')
    fail(lineStart + tab, "not valid YAML: a tab indents this line, where only blanks may");
}

/// Tells what is missing between the last token and `next`.
void PlanScan::failBefore(const Token &next) {
  StringRef before = StringRef(text).slice(last->start, last->end);
  bool isMapping = text[levels.back().position] == '{';
  std::string expected = isMapping && !levels.back().hasColon ? "':'" : isMapping ? "',' or '}'" : "',' or ']'";
  bool isPattern = last->isPlain && last->end == next.start && StringRef("[{").contains(text[next.start]);
  fail(last->end, "not valid YAML: expected " + expected + " after '" + before.take_front(40) + "'" +
                      (isPattern ? "; a name with brackets must be quoted" : ""));
}

void PlanScan::addToken(size_t start, size_t end, bool isPlain) {
  Token token{start, end, isPlain};
  if (last && !(last->isPlain && isPlain))
    failBefore(token);
  beforeLast = last;
  last = token;
}

void PlanScan::open(size_t i) {
  if (last)
    failBefore({i, i + 1, false});
  if (levels.size() == kMaxNesting)
    return fail(i, "nested too deep for a plan");
  levels.push_back({i});
  last.reset();
}

void PlanScan::close(size_t i) {
  char wanted = text[levels.back().position] == '[' ? ']' : '}';
  if (text[i] != wanted)
    return fail(i, "not valid YAML: expected '" + Twine(wanted) + "', got '" + Twine(text[i]) + "'");
  levels.pop_back();
  last = Token{i, i + 1, false};
}

/// The end of a key. If the entry has one already, this one's last word belongs to the next entry.
void PlanScan::colon() {
  Level &level = levels.back();
  if (level.hasColon && last && beforeLast && last->isPlain && beforeLast->isPlain && text[level.position] == '{') {
    Token key = *last;
    last = beforeLast;
    failBefore(key);
  }
  level.hasColon = true;
  last.reset();
}

size_t PlanScan::stepInFlow(size_t i) {
  char c = text[i];
  if (c == '[' || c == '{') {
    open(i);
  } else if (c == ']' || c == '}') {
    close(i);
  } else if (c == ',') {
    levels.back().hasColon = false;
    last.reset();
  } else if (isColon(i)) {
    colon();
  } else if ((c == '"' || c == '\'') && !(last && last->isPlain)) {
    size_t end = skipQuoted(i);
    addToken(i, end, /*isPlain=*/false);
    return end;
  } else {
    size_t end = i + 1;
    while (!endsWord(end) && !isColon(end))
      ++end;
    // A bare `?` entry would be YAML's mark of a complex key.
    size_t next = StringRef(text).find_first_not_of(" \t\r\n", end);
    if (c == '?' && end == i + 1 && !last && next != StringRef::npos && StringRef(",]").contains(text[next]))
      text[i] = '~';
    // Anchors and tags stand before what they belong to.
    if (c != '&' && c != '!')
      addToken(i, end, /*isPlain=*/true);
    return end;
  }
  return i + 1;
}

size_t PlanScan::stepOutside(size_t i) {
  char c = text[i];
  if (c == '[' || c == '{') {
    last.reset();
    open(i);
    return i + 1;
  }
  if (c == '"' || c == '\'')
    return skipQuoted(i);
  if (StringRef("-?:").contains(c)) {
    if (++indicators > kMaxNesting)
      fail(i, "nested too deep for a plan");
    return i + 1;
  }
  // Anchors and tags stand before what they belong to.
  if (StringRef("&!*").contains(c))
    return std::min(StringRef(text).find_first_of(" \t\r\n[{", i), text.size());
  // A plain text goes on to the end of the line, or to a colon.
  for (++i; i < text.size() && text[i] != '\n' && !isComment(i); ++i)
    if (text[i] == ':' && (i + 1 == text.size() || isSpace(text[i + 1])))
      break;
  return i;
}

/// Position of the first character that is not looked at yet.
size_t PlanScan::step(size_t i) {
  if (text[i] == '\n') {
    indicators = 0;
    if (levels.empty())
      checkTab(i + 1);
    return i + 1;
  }
  if (isSpace(text[i]))
    return i + 1;
  if (isComment(i))
    return skipLine(i);
  return levels.empty() ? stepOutside(i) : stepInFlow(i);
}

std::optional<PlanProblem> PlanScan::run() {
  checkTab(0);
  for (size_t i = 0; i < text.size() && !problem;)
    i = step(i);
  if (!levels.empty())
    fail(levels.back().position, "not valid YAML: this '" + Twine(text[levels.back().position]) + "' is never closed");
  return problem;
}

std::optional<PlanProblem> cleave::spmd::scanPlan(std::string &text) { return PlanScan(text).run(); }
