//===- Cursor.cpp - where in a plan a cursor is ---------------------------===//
//
// One walk over the text keeps the mappings and lists that are open. Lines outside of brackets belong to those that are indented less; inside,
// commas and brackets tell. Which mapping of a plan one is follows from the keys around it (PlanKeys.h).
//
//===----------------------------------------------------------------------===//
#include "Cursor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::editor;
using namespace cleave::spmd;
using namespace llvm;

/// Where no word can be of a plan.
static Cursor nowhere(size_t offset) {
  Cursor cursor;
  cursor.start = cursor.end = offset;
  return cursor;
}

static bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

namespace {
/// A mapping or list that is open.
struct Level {
  bool isList = false, isFlow = false;
  /// Outside of brackets its column.
  size_t indent = 0, start = 0;
  /// Of a mapping the key whose value comes next, and all so far.
  bool hasKey = false, isOpen = false;
  StringRef key;
  SmallVector<StringRef, 8> keys;
};

class Walk {
public:
  using Handler = function_ref<bool(const Walk &, size_t start, size_t end, bool isKey)>;

  /// Until `handler`, which is told of each word, says that it is the one.
  Walk(StringRef text, Handler handler) : text(text), handler(handler) {}

  /// Looks for the place `offset` too, where no word is.
  Cursor find(size_t offset);
  void run();
  /// The key of the plan that the walk is below; empty: of none.
  StringRef getTopKey() const { return levels.empty() || !levels.front().hasKey ? StringRef() : levels.front().key; }
  /// What a word, or no word, between these is, with what is open now.
  Cursor describe(size_t start, size_t end, bool isKey) const;

private:
  void stepLine();
  void stepEntry(size_t lineStart, size_t lineEnd);
  void stepNode(size_t column, size_t lineEnd);
  void stepValue(size_t lineEnd);
  void stepInFlow();
  bool skipInFlow();
  bool isNewEntry(size_t lineStart) const;
  size_t findWordEnd(size_t start, size_t lineEnd, bool isFlow) const;
  bool isColon(size_t at) const {
    return at < text.size() && text[at] == ':' &&
           (at + 1 >= text.size() || isSpace(text[at + 1]) || StringRef(",]}[{").contains(text[at + 1]));
  }
  size_t skipBlanks(size_t at) const {
    while (at < text.size() && isBlank(text[at]))
      ++at;
    return at;
  }
  size_t findLineEnd(size_t at) const { return std::min(text.find('\n', at), text.size()); }
  bool isComment(size_t at) const { return at < text.size() && text[at] == '#' && (at == 0 || isSpace(text[at - 1])); }
  void push(bool isList, bool isFlow, size_t indent, size_t start);
  void setKey(StringRef key);
  void visitWord(size_t start, size_t end, bool isKey);
  /// No word is from `from` up to `to`; `includes`: nor at `to`.
  void visitGap(size_t from, size_t to, bool includes, bool isKey);
  void visitBlank(size_t lineStart, size_t lineEnd);
  void stop(Cursor found) {
    result = std::move(found);
    isDone = true;
  }
  Cursor describeMaybeKey(size_t start, size_t end, size_t column) const;

  StringRef text;
  Handler handler;
  size_t at = 0;
  std::optional<size_t> wanted;
  std::vector<Level> levels;
  Cursor result;
  bool isDone = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// What a place is
//===----------------------------------------------------------------------===//

/// A key that has a section of its own may have a mapping as its value.
static std::optional<PlanSection> findMapping(PlanSection section, const PlanKey *key, bool isInList) {
  if (!key || key->section == section)
    return std::nullopt;
  return key->section == PlanSection::Level && !isInList ? PlanSection::Link : key->section;
}

Cursor Walk::describe(size_t start, size_t end, bool isKey) const {
  Cursor cursor;
  cursor.start = start;
  cursor.end = end;
  // Of a word in quotes what is between them; the second one may not be typed yet.
  if (start < end && (text[start] == '"' || text[start] == '\'')) {
    cursor.isQuoted = true;
    cursor.start = start + 1;
    cursor.end = end - (end > start + 1 && text[end - 1] == text[start]);
  }
  cursor.word = text.slice(cursor.start, cursor.end);
  cursor.isKey = isKey;
  std::optional<PlanSection> expected = PlanSection::Plan;
  for (size_t number = 0; number < levels.size(); ++number) {
    const Level &level = levels[number];
    cursor.isInFlow = level.isFlow;
    if (level.isList) {
      // A plan is no list.
      if (number == 0)
        expected = std::nullopt;
      continue;
    }
    cursor.section = expected;
    cursor.key = nullptr;
    cursor.name = {};
    if (!expected)
      break;
    bool isInList = number > 0 && levels[number - 1].isList;
    if (isInList)
      cursor.entryStart = level.start;
    bool isLast = number + 1 == levels.size();
    if (isLast)
      cursor.present.assign(level.keys.begin(), level.keys.end());
    if (isLast && isKey)
      break;
    if (level.hasKey) {
      cursor.name = level.key;
      cursor.key = findPlanKey(*expected, level.key);
    }
    bool isList = !isLast && levels[number + 1].isList;
    expected = findMapping(*expected, cursor.key, isList);
  }
  if (levels.empty() && isKey)
    cursor.section = PlanSection::Plan;
  return cursor;
}

/// Of a word on a line of its own, which may be the first key of a mapping that begins there, where such may be, or a value.
Cursor Walk::describeMaybeKey(size_t start, size_t end, size_t column) const {
  Walk copy(*this);
  if (copy.levels.empty() || copy.levels.back().isList || copy.levels.back().indent < column)
    copy.push(/*isList=*/false, /*isFlow=*/false, column, start);
  Cursor asKey = copy.describe(start, end, /*isKey=*/true);
  return asKey.section ? asKey : describe(start, end, /*isKey=*/false);
}

/// The end of a word is a place of it, too: that is where a cursor is while it is typed.
void Walk::visitWord(size_t start, size_t end, bool isKey) {
  if (handler(*this, start, end, isKey))
    isDone = true;
  if (!isDone && wanted && start <= *wanted && *wanted <= end)
    stop(describe(start, end, isKey));
}

void Walk::visitGap(size_t from, size_t to, bool includes, bool isKey) {
  if (!isDone && wanted && from <= *wanted && (*wanted < to || (includes && *wanted == to)))
    stop(describe(*wanted, *wanted, isKey));
}

/// On a line without anything it is the column that says where a word would belong.
void Walk::visitBlank(size_t lineStart, size_t lineEnd) {
  if (isDone || !wanted || *wanted < lineStart || *wanted > lineEnd)
    return;
  size_t column = *wanted - lineStart;
  while (!levels.empty() && levels.back().indent > column)
    levels.pop_back();
  if (levels.size() > 1 && levels.back().isList && levels.back().indent == column)
    levels.pop_back();
  bool isBelow = levels.empty() || levels.back().isList || levels.back().isOpen;
  if (!levels.empty() && !levels.back().isList && levels.back().indent == column)
    stop(describe(*wanted, *wanted, /*isKey=*/true));
  else
    stop(isBelow ? describeMaybeKey(*wanted, *wanted, column) : nowhere(*wanted));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Walk::push(bool isList, bool isFlow, size_t indent, size_t start) {
  Level &level = levels.emplace_back();
  level.isList = isList;
  level.isFlow = isFlow;
  level.indent = indent;
  level.start = start;
}

void Walk::setKey(StringRef key) {
  Level &level = levels.back();
  level.key = key.trim("\"'");
  level.keys.push_back(level.key);
  level.hasKey = true;
  level.isOpen = false;
}

/// The end of a word: of one in quotes behind the second of them, at the latest that of its line.
size_t Walk::findWordEnd(size_t start, size_t lineEnd, bool isFlow) const {
  char quote = text[start];
  if (quote == '"' || quote == '\'') {
    for (size_t end = start + 1; end < lineEnd; ++end)
      if (text[end] == quote)
        return end + 1;
      else if (quote == '"' && text[end] == '\\')
        ++end;
    return lineEnd;
  }
  size_t end = start;
  while (end < lineEnd && !isColon(end) && !isComment(end) && !(isFlow && StringRef(",[]{}").contains(text[end])))
    ++end;
  while (end > start && isBlank(text[end - 1]))
    --end;
  return end;
}

/// The value behind a key, on its line.
void Walk::stepValue(size_t lineEnd) {
  size_t from = at;
  at = skipBlanks(at);
  bool isEmpty = at >= lineEnd || isComment(at);
  bool isBracket = !isEmpty && StringRef("[{").contains(text[at]);
  visitGap(from, at, isEmpty || isBracket, /*isKey=*/false);
  if (isEmpty) {
    levels.back().isOpen = true;
    at = lineEnd;
  } else if (isBracket) {
    push(text[at] == '[', /*isFlow=*/true, 0, at);
    ++at;
  } else {
    size_t end = findWordEnd(at, lineEnd, /*isFlow=*/false);
    // A second colon on a line: what is before it is a word all the same.
    visitWord(at, std::max(end, at + 1), /*isKey=*/false);
    at = lineEnd;
  }
}

/// A key with its value, or a value, outside of brackets.
void Walk::stepNode(size_t column, size_t lineEnd) {
  if (StringRef("[{").contains(text[at])) {
    push(text[at] == '[', /*isFlow=*/true, column, at);
    ++at;
    return;
  }
  size_t start = at, end = std::max(findWordEnd(at, lineEnd, /*isFlow=*/false), at + 1), colon = skipBlanks(end);
  bool isInMapping = !levels.empty() && !levels.back().isList && levels.back().indent == column;
  if (isColon(colon)) {
    if (!isInMapping)
      push(/*isList=*/false, /*isFlow=*/false, column, start);
    visitWord(start, end, /*isKey=*/true);
    setKey(text.slice(start, end));
    at = colon + 1;
    return stepValue(lineEnd);
  }
  if (!isDone && wanted && start <= *wanted && *wanted <= end)
    stop(isInMapping ? describe(start, end, /*isKey=*/true) : describeMaybeKey(start, end, column));
  else
    visitWord(start, end, isInMapping);
  at = lineEnd;
}

/// Dashes of lists, and what stands behind them.
void Walk::stepEntry(size_t lineStart, size_t lineEnd) {
  bool isItem = false;
  while (at < lineEnd && text[at] == '-' && (at + 1 >= lineEnd || isBlank(text[at + 1]))) {
    size_t column = at - lineStart;
    if (levels.empty() || !levels.back().isList || levels.back().indent != column || isItem)
      push(/*isList=*/true, /*isFlow=*/false, column, at);
    isItem = true;
    size_t from = ++at;
    at = skipBlanks(at);
    bool isEmpty = at >= lineEnd || isComment(at);
    if (!isDone && wanted && from <= *wanted && (*wanted < at || (isEmpty && *wanted <= lineEnd)))
      stop(describeMaybeKey(*wanted, *wanted, column + 2));
    if (isEmpty) {
      at = lineEnd;
      return;
    }
  }
  // A list at the column of its key ends where the next key is.
  if (!isItem && levels.size() > 1 && levels.back().isList && levels.back().indent == at - lineStart)
    levels.pop_back();
  stepNode(at - lineStart, lineEnd);
}

/// Levels that are indented more than the line are over.
void Walk::stepLine() {
  size_t lineStart = at, lineEnd = findLineEnd(at);
  size_t content = std::min(skipBlanks(at), lineEnd);
  at = content;
  if (content == lineEnd || text[content] == '#') {
    if (wanted && *wanted > content && *wanted <= lineEnd && content < lineEnd)
      stop(nowhere(*wanted)); // in a comment
    visitBlank(lineStart, lineEnd);
    at = lineEnd + 1;
    return;
  }
  if (wanted && *wanted >= lineStart && *wanted < content)
    visitBlank(lineStart, content);
  while (!levels.empty() && levels.back().indent > content - lineStart)
    levels.pop_back();
  stepEntry(lineStart, lineEnd);
}

/// A line that no value in brackets goes on with: the next entry of a list, or a key of the plan.
bool Walk::isNewEntry(size_t lineStart) const {
  size_t content = skipBlanks(lineStart);
  if (content >= text.size() || text[content] == '\n')
    return false;
  bool isItem = text[content] == '-' && content + 1 < text.size() && isBlank(text[content + 1]);
  bool isTop =
      content == lineStart && isAlpha(text[content]) && text.slice(content, findLineEnd(content)).contains(':');
  return isItem || isTop;
}

/// Blanks, ends of lines and comments in brackets. True if a new entry ends these.
bool Walk::skipInFlow() {
  size_t from = at;
  bool isKey = !levels.back().isList && !levels.back().hasKey;
  for (; at < text.size(); ++at) {
    if (isComment(at)) {
      visitGap(from, at, /*includes=*/true, isKey);
      size_t end = findLineEnd(at);
      if (!isDone && wanted && *wanted > at && *wanted <= end)
        stop(nowhere(*wanted));
      at = from = end;
    }
    if (at < text.size() && text[at] == '\n' && isNewEntry(at + 1)) {
      visitGap(from, at, /*includes=*/true, isKey);
      while (!levels.empty() && levels.back().isFlow)
        levels.pop_back();
      return true;
    }
    if (at >= text.size() || !isSpace(text[at]))
      break;
  }
  bool isWord = at < text.size() && !StringRef(",[]{}:").contains(text[at]);
  visitGap(from, at, !isWord, isKey);
  return false;
}

/// A bracket, a comma, or a word. One that is followed by another word instead of a comma is taken as a key: who types the next entry in
/// front of others has not come to its comma yet.
void Walk::stepInFlow() {
  if (skipInFlow() || isDone || at >= text.size())
    return;
  Level &level = levels.back();
  char c = text[at];
  if (c == ',') {
    level.hasKey = false;
    ++at;
  } else if (c == '[' || c == '{') {
    push(c == '[', /*isFlow=*/true, 0, at);
    ++at;
  } else if (c == ']' || c == '}') {
    levels.pop_back();
    ++at;
  } else if (isColon(at)) {
    ++at; // Without a key.
  } else {
    size_t lineEnd = findLineEnd(at), start = at, end = std::max(findWordEnd(at, lineEnd, /*isFlow=*/true), at + 1);
    size_t colon = skipBlanks(end);
    // Behind a key in quotes nothing need follow the colon.
    bool hasColon =
        colon < text.size() && text[colon] == ':' && (isColon(colon) || StringRef("\"'").contains(text[start]));
    bool isKey = !level.isList && (hasColon || !level.hasKey);
    // In place of the comma that is missing there.
    if (isKey)
      level.hasKey = false;
    visitWord(start, end, isKey);
    if (isKey && hasColon)
      setKey(text.slice(start, end));
    at = hasColon ? colon + 1 : end;
  }
}

void Walk::run() {
  while (!isDone && at < text.size()) {
    if (!levels.empty() && levels.back().isFlow) {
      stepInFlow();
      continue;
    }
    // Behind what closed brackets nothing counts up to the end of the line.
    bool isLineStart = at == 0 || text[at - 1] == '\n';
    if (isLineStart)
      stepLine();
    else
      at = findLineEnd(at) + 1;
  }
}

/// Brackets that are open at the end of the text still say where the cursor is.
Cursor Walk::find(size_t offset) {
  wanted = std::min(offset, text.size());
  run();
  if (isDone)
    return result;
  // At the end of the text.
  if (!levels.empty() && levels.back().isFlow)
    return describe(*wanted, *wanted, !levels.back().isList && !levels.back().hasKey);
  size_t lineStart = text.rfind('\n') + 1;
  if (*wanted == text.size() && text.substr(lineStart).trim(" \t\r").empty())
    visitBlank(lineStart, text.size());
  return isDone ? result : nowhere(*wanted);
}

Cursor cleave::editor::findCursor(StringRef text, size_t offset) {
  return Walk(text, [](const Walk &, size_t, size_t, bool) { return false; }).find(offset);
}

/// True if mappings of `section` are below those of `top`.
static bool isBelow(PlanSection section, PlanSection top) {
  return section == top || any_of(getPlanKeys(top), [&](const PlanKey &key) {
           return key.section != top && isBelow(section, key.section);
         });
}

void cleave::editor::forEachKey(StringRef text, PlanSection section,
                                function_ref<void(const Cursor &, StringRef)> use) {
  std::optional<Cursor> key;
  auto isWanted = [&](StringRef top) {
    const PlanKey *row = findPlanKey(PlanSection::Plan, top);
    return row && row->section != PlanSection::Plan && isBelow(section, row->section);
  };
  // A plan has many rules, whose words are no keys of what is looked for.
  StringRef top;
  bool isWantedTop = false;
  Walk(text, [&](const Walk &walk, size_t start, size_t end, bool isKey) {
    if (walk.getTopKey().data() != top.data()) {
      top = walk.getTopKey();
      isWantedTop = isWanted(top);
    }
    if (!isWantedTop && !key)
      return false;
    Cursor cursor = walk.describe(start, end, isKey);
    if (key)
      use(*key, isKey ? StringRef() : cursor.word);
    key.reset();
    if (isKey && cursor.section == section)
      key = cursor;
    return false;
  }).run();
  if (key)
    use(*key, "");
}
