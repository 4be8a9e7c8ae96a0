//===- Profile.cpp - measured times of a model's nodes --------------------===//
//
// A flat object is read word by word, since a document of LLVM's knows no places: names and numbers are JSON by
// themselves, and what stands between them is one character each.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Profile.h"
#include "cleave/Program/Content.h"

#include "cleave/Support/Status.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Regex.h"

using namespace cleave;
using namespace cleave::schedule;
using llvm::StringRef;

/// A node takes no quarter of an hour; sums over models stay far below what 64 bits hold.
static constexpr double kMostNs = 1e12;

namespace {
class ProfileReader {
public:
  explicit ProfileReader(StringRef text) : text(text) {}

  bool read(std::vector<ProfileEntry> &entries) {
    if (!take('{', "expected an object of nodes and their nanoseconds"))
      return false;
    for (bool isFirst = true; !isAt('}'); isFirst = false)
      if ((!isFirst && !take(',', "expected ',' or '}'")) || !readEntry(entries.emplace_back()))
        return false;
    ++position;
    skipBlanks();
    return position == text.size() || fail(position, "nothing may come after the object");
  }

  ProfileProblem problem;

private:
  /// Places are asked for in the order of the text, so lines are counted once.
  ProfilePlace getPlace(size_t at) {
    StringRef passed = text.slice(counted, at);
    if (size_t last = passed.rfind('\n'); last != StringRef::npos) {
      line += unsigned(passed.count('\n'));
      lineStart = counted + last + 1;
    }
    counted = at;
    return {line, unsigned(at - lineStart + 1)};
  }

  bool fail(ProfilePlace place, std::string message) {
    problem = {place, std::move(message)};
    return false;
  }

  bool fail(size_t at, std::string message) { return fail(getPlace(at), std::move(message)); }

  void skipBlanks() { position = std::min(text.find_first_not_of(" \t\r\n", position), text.size()); }

  bool isAt(char c) {
    skipBlanks();
    return position < text.size() && text[position] == c;
  }

  bool take(char c, const char *message) {
    if (!isAt(c))
      return fail(position, message);
    ++position;
    return true;
  }

  bool readEntry(ProfileEntry &entry) {
    skipBlanks();
    size_t start = position;
    entry.place = getPlace(start);
    if (!readName(entry.node))
      return false;
    if (!names.insert(entry.node).second)
      return fail(entry.place, "node " + quote(entry.node) + " is given twice");
    return take(':', "expected ':' and nanoseconds") && readNumber(entry.ns);
  }

  /// From quote to quote: a backslash takes the character behind it along.
  bool readName(std::string &name) {
    size_t start = position, end = start + 1;
    if (!isAt('"'))
      return fail(start, "expected the name of a node, in double quotes");
    while (end < text.size() && text[end] != '"')
      end += text[end] == '\\' ? 2 : 1;
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text.slice(start, end + 1));
    if (!value) {
      llvm::consumeError(value.takeError());
      return fail(start, "a name ends with '\"' on its line, and has no other control characters than escaped ones");
    }
    name = value->getAsString()->str();
    position = end + 1;
    return true;
  }

  bool readNumber(double &number) {
    skipBlanks();
    size_t start = position, end = std::min(text.find_first_of(",} \t\r\n", start), text.size());
    StringRef word = text.slice(start, end);
    // LLVM's own reader takes `01` and `1.`, too.
    static const llvm::Regex form("^(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$");
    if (!form.match(word) || word.getAsDouble(number) || !(number <= kMostNs))
      return fail(start, "expected nanoseconds, a number from 0 to 1e12, got " + quote(word));
    position = end;
    return true;
  }

  StringRef text;
  size_t position = 0;
  /// Up to where lines are counted, the line that this lies in, and where that begins.
  size_t counted = 0, lineStart = 0;
  unsigned line = 1;
  llvm::StringSet<> names;
};
} // namespace

std::optional<ProfileProblem> cleave::schedule::readProfile(StringRef text, std::vector<ProfileEntry> &entries) {
  if (std::string other = program::describeOther(text, program::Content::Unknown, "JSON"); !other.empty())
    return ProfileProblem{{1, 1}, other};
  ProfileReader reader(program::dropByteOrderMark(text));
  if (reader.read(entries))
    return std::nullopt;
  return reader.problem;
}
