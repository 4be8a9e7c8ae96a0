//===- YamlReader.cpp - reading nodes of a plan file ----------------------===//
//
// LLVM's YAML parser gives nodes with source ranges, once, in the order in which they stand. Before that, one scan over
// the text finds what the parser would not (PlanScan.h), and turns a bare `?` into `~`. What an entry says is read from
// the original text, so a `~` of the user is not taken for a `?`.
//
//===----------------------------------------------------------------------===//
#include "YamlReader.h"

#include "PlanText.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Program/Content.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

/// The parser prints its errors; the handler keeps the first of them instead, as the others usually follow from it.
YamlReader::YamlReader(StringRef text, StringRef file, PlanError &error, StringRef what)
    : original(program::dropByteOrderMark(text)), file(file.str()), scanned(original.str()), what(what.str()),
      error(error) {
  std::string other =
      program::describeOther(original, what == "plan" ? program::Content::Plan : program::Content::Cluster,
                             what == "plan" ? "a plan" : "a cluster");
  problem = other.empty() ? scanPlan(scanned) : PlanProblem{0, other};
  for (size_t end = scanned.find('\n'); end != std::string::npos; end = scanned.find('\n', end + 1))
    lineStarts.push_back(end + 1);
  sources.setDiagHandler(
      [](const SMDiagnostic &diagnostic, void *context) {
        auto &reader = *static_cast<YamlReader *>(context);
        if (reader.hasError)
          return;
        reader.hasError = true;
        std::string message = diagnostic.getMessage().str();
        if (!message.empty())
          message[0] = toLower(message[0]);
        reader.error = {{reader.file, unsigned(std::max(diagnostic.getLineNo(), 1)),
                         unsigned(std::max(diagnostic.getColumnNo(), 0)) + 1},
                        "not valid YAML: " + StringRef(message).rtrim('.').str(),
                        {}};
      },
      this);
  stream = std::make_unique<yaml::Stream>(MemoryBufferRef(scanned, this->file), sources, /*ShowColors=*/false);
}

/// The scan replaces characters one for one, so a place in what is parsed is one in the file.
PlanPlace YamlReader::placeOf(SMLoc loc) const {
  const char *begin = scanned.data();
  if (!loc.isValid() || loc.getPointer() < begin || loc.getPointer() > begin + scanned.size())
    return {file, 1, 1};
  size_t offset = loc.getPointer() - begin;
  size_t line = upper_bound(lineStarts, offset) - lineStarts.begin();
  return {file, unsigned(line), unsigned(offset - lineStarts[line - 1]) + 1};
}

PlanPlace YamlReader::placeOf(const yaml::Node *node) const {
  if (!node)
    return {file, 1, 1};
  const char *start = node->getSourceRange().Start.getPointer();
  // The parser leaves the range of some broken nodes empty.
  if (start < scanned.data() || start > scanned.data() + scanned.size())
    return {file, 1, 1};
  // The range of a flow collection begins behind its bracket.
  if (isa<yaml::SequenceNode, yaml::MappingNode>(node) && start > scanned.data() && StringRef("[{").contains(start[-1]))
    --start;
  // That of an alias, which is an error anyway, behind its name.
  if (auto *alias = dyn_cast<yaml::AliasNode>(node))
    start -= std::min<ptrdiff_t>(alias->getName().size() + 1, start - scanned.data());
  return placeOf(SMLoc::getFromPointer(start));
}

/// The first error stays: later ones usually follow from it.
LogicalResult YamlReader::fail(const yaml::Node *node, const Twine &message) {
  if (!hasError)
    error = {placeOf(node), message.str(), {}};
  hasError = true;
  return failure();
}

LogicalResult YamlReader::failWith(PlanError other) {
  if (!hasError)
    error = std::move(other);
  hasError = true;
  return failure();
}

/// Without quotes `*query*` is an alias to YAML, which is the likeliest reason for a node of another kind.
LogicalResult YamlReader::failExpecting(const yaml::Node *node, const Twine &expected) {
  if (isa_and_nonnull<yaml::AliasNode>(node))
    return fail(node, "a pattern that starts with '*' must be quoted");
  return fail(node, "expected " + expected);
}

LogicalResult YamlReader::failWord(yaml::Node *node, const Twine &message) {
  StringRef raw = cast<yaml::ScalarNode>(node)->getRawValue();
  size_t blank = raw.find_first_of(" \t\r\n");
  if (blank == StringRef::npos || raw.starts_with("\"") || raw.starts_with("'"))
    return fail(node, message);
  if (!hasError)
    error = {placeOf(SMLoc::getFromPointer(raw.data() + blank)),
             ("expected ',' after '" + raw.take_front(blank) + "'").str(),
             {}};
  hasError = true;
  return failure();
}

/// The root of the first document.
yaml::Node *YamlReader::open() {
  if (problem) {
    error = {placeOf(SMLoc::getFromPointer(scanned.data() + problem->position)), problem->message, {}};
    hasError = true;
    return nullptr;
  }
  document = stream->begin();
  yaml::Node *root = document == stream->end() ? nullptr : document->getRoot();
  if (!root || stream->failed() || isa<yaml::NullNode>(root)) {
    (void)fail(nullptr, "the " + what + " is empty");
    return nullptr;
  }
  return root;
}

/// The parser finds some errors only when it is moved on, so what is behind the document is looked at too.
LogicalResult YamlReader::close() {
  if (hasError || stream->failed())
    return fail(nullptr, "not valid YAML");
  if (++document != stream->end() && !stream->failed() && document->getRoot() &&
      !isa<yaml::NullNode>(document->getRoot()))
    return fail(document->getRoot(), "a " + what + " is one document");
  return failure(hasError);
}

LogicalResult YamlReader::readText(yaml::Node *node, std::string &text) {
  auto *scalar = dyn_cast_or_null<yaml::ScalarNode>(node);
  if (!scalar)
    return failExpecting(node, "text");
  SmallString<64> storage;
  text = scalar->getValue(storage).str();
  // Undo what the scan changed: a bare `?`.
  if (text == "~" && scalar->getRawValue().starts_with("~"))
    text = original[scalar->getSourceRange().Start.getPointer() - scanned.data()];
  return failure(stream->failed());
}

LogicalResult YamlReader::readInteger(yaml::Node *node, int64_t &value, int64_t least, int64_t most) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  if (StringRef(text).getAsInteger(10, value) || value < least || value > most)
    return failWord(node, "expected a number from " + Twine(least) + " to " + Twine(most) + ", got '" + text + "'");
  return success();
}

LogicalResult YamlReader::readPattern(yaml::Node *node, PlanPattern &pattern) {
  pattern.place = placeOf(node);
  if (failed(readText(node, pattern.text)))
    return failure();
  if (llvm::Error bad = NamePattern::create(pattern.text).takeError())
    return fail(node, llvm::toString(std::move(bad)));
  return success();
}

LogicalResult YamlReader::readBytes(yaml::Node *node, int64_t &bytes) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  std::optional<int64_t> size = parseBytes(text);
  if (!size || *size < 1)
    return fail(node, "expected bytes, such as 40GB or 512MiB, got '" + text + "'");
  bytes = *size;
  return success();
}

LogicalResult YamlReader::readFlag(yaml::Node *node, bool &value) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  if (text != "true" && text != "false")
    return fail(node, "expected true or false, got '" + text + "'");
  value = text == "true";
  return success();
}

/// Calls `handler` for every entry of a mapping; keys are distinct and, unless `known` is empty, among `known`.
LogicalResult YamlReader::readMapping(yaml::Node *node, StringRef what, ArrayRef<StringRef> known, KeyHandler handler,
                                      StringRef value) {
  auto *mapping = dyn_cast_or_null<yaml::MappingNode>(node);
  if (!mapping)
    return failExpecting(node, what);
  StringSet<> seen;
  for (yaml::KeyValueNode &entry : *mapping) {
    std::string key;
    yaml::Node *keyNode = entry.getKey();
    if (failed(readText(keyNode, key)))
      return failure();
    if (!known.empty() && !is_contained(known, key))
      return fail(keyNode,
                  "unknown key '" + key + "'" + suggestNames(key, known) + " (known: " + join(known, ", ") + ")");
    if (known.empty() && isa_and_nonnull<yaml::NullNode>(entry.getValue()))
      return fail(keyNode, "expected a name, ': ' and " + value + ", got '" + key + "'");
    if (!seen.insert(key).second)
      return fail(keyNode, "key '" + key + "' is given twice");
    if (failed(handler(key, entry)) || stream->failed())
      return failure();
  }
  return failure(hasError || stream->failed());
}

LogicalResult YamlReader::readSequence(yaml::Node *node, StringRef what,
                                       function_ref<LogicalResult(yaml::Node *)> handler) {
  auto *sequence = dyn_cast_or_null<yaml::SequenceNode>(node);
  if (!sequence)
    return failExpecting(node, what);
  for (yaml::Node &entry : *sequence)
    if (failed(handler(&entry)) || stream->failed())
      return failure();
  return failure(hasError || stream->failed());
}
