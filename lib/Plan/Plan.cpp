//===- Plan.cpp - reading a plan file -------------------------------------===//
//
// LLVM's YAML parser gives nodes with source ranges; one function per key of the format reads them in the order in
// which they stand. Before that, one scan over the text finds what the parser would not (PlanScan.h), and turns a bare
// `?` into `~`. What an entry says is read from the original text, so a `~` of the user is not taken for a `?`.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/Plan.h"
#include "cleave/Plan/NamePattern.h"

#include "PlanScan.h"
#include "PlanText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace cleave::spmd;
using namespace llvm;

static constexpr size_t kMaxPlanSize = 1 << 24;
static constexpr int64_t kMaxPriority = 1000;

//===----------------------------------------------------------------------===//
// The reader
//===----------------------------------------------------------------------===//

namespace {
class PlanReader {
public:
  PlanReader(StringRef text, StringRef file, PlanError &error);

  LogicalResult readPlan(Plan &plan);
  /// The whole text is one list of dims.
  LogicalResult readDimsOnly(PlanRule &rule);

private:
  using KeyHandler = function_ref<LogicalResult(StringRef key, yaml::KeyValueNode &entry)>;

  PlanPlace placeOf(const yaml::Node *node) const;
  PlanPlace placeOf(SMLoc loc) const;
  LogicalResult fail(const yaml::Node *node, const Twine &message);
  /// The reader's own error if the parser had one, else `message`.
  LogicalResult failExpecting(const yaml::Node *node, const Twine &expected);
  yaml::Node *open();
  LogicalResult close();

  /// `message`, of a text that is no single word; where blanks part it, rather that a comma is missing there.
  LogicalResult failWord(yaml::Node *node, const Twine &message);

  LogicalResult readText(yaml::Node *node, std::string &text);
  LogicalResult readInteger(yaml::Node *node, int64_t &value, int64_t least, int64_t most);
  LogicalResult readFlag(yaml::Node *node, bool &value);
  LogicalResult readMapping(yaml::Node *node, StringRef what, ArrayRef<StringRef> known, KeyHandler handler,
                            StringRef value = "a number");
  LogicalResult readSequence(yaml::Node *node, StringRef what, function_ref<LogicalResult(yaml::Node *)> handler);

  LogicalResult readMesh(yaml::Node *node, Plan &plan);
  LogicalResult readDevices(yaml::Node *node, Plan &plan);
  LogicalResult readSymbols(yaml::Node *node, Plan &plan);
  LogicalResult readStates(yaml::Node *node, Plan &plan);
  LogicalResult readRule(yaml::Node *node, Plan &plan);
  LogicalResult readDims(yaml::Node *node, PlanRule &rule);
  LogicalResult readDim(yaml::Node *node, PlanDim &dim);
  LogicalResult readReplicated(yaml::Node *node, PlanRule &rule);
  LogicalResult readExcept(yaml::Node *node, PlanRule &rule);
  LogicalResult readWhere(yaml::Node *node, PlanRule &rule);

  StringRef original;
  std::string file, scanned;
  std::optional<PlanProblem> problem;
  PlanError &error;
  bool hasError = false;
  SourceMgr sources;
  std::unique_ptr<yaml::Stream> stream;
  yaml::document_iterator document;
};
} // namespace

/// The parser prints its errors; the handler keeps the first of them instead, as the others usually follow from it.
PlanReader::PlanReader(StringRef text, StringRef file, PlanError &error)
    : original(text), file(file.str()), scanned(text.str()), error(error) {
  problem = scanPlan(scanned);
  sources.setDiagHandler(
      [](const SMDiagnostic &diagnostic, void *context) {
        auto &reader = *static_cast<PlanReader *>(context);
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
PlanPlace PlanReader::placeOf(SMLoc loc) const {
  const char *begin = scanned.data();
  if (!loc.isValid() || loc.getPointer() < begin || loc.getPointer() > begin + scanned.size())
    return {file, 1, 1};
  StringRef before(begin, loc.getPointer() - begin);
  size_t lineStart = before.rfind('\n');
  unsigned column = before.size() - (lineStart == StringRef::npos ? 0 : lineStart + 1);
  return {file, unsigned(before.count('\n')) + 1, column + 1};
}

PlanPlace PlanReader::placeOf(const yaml::Node *node) const {
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
LogicalResult PlanReader::fail(const yaml::Node *node, const Twine &message) {
  if (!hasError)
    error = {placeOf(node), message.str(), {}};
  hasError = true;
  return failure();
}

/// Without quotes `*query*` is an alias to YAML, which is the likeliest reason for a node of another kind.
LogicalResult PlanReader::failExpecting(const yaml::Node *node, const Twine &expected) {
  if (isa_and_nonnull<yaml::AliasNode>(node))
    return fail(node, "a pattern that starts with '*' must be quoted");
  return fail(node, "expected " + expected);
}

LogicalResult PlanReader::failWord(yaml::Node *node, const Twine &message) {
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
yaml::Node *PlanReader::open() {
  if (problem) {
    error = {placeOf(SMLoc::getFromPointer(scanned.data() + problem->position)), problem->message, {}};
    hasError = true;
    return nullptr;
  }
  document = stream->begin();
  yaml::Node *root = document == stream->end() ? nullptr : document->getRoot();
  if (!root || stream->failed() || isa<yaml::NullNode>(root)) {
    (void)fail(nullptr, "the plan is empty");
    return nullptr;
  }
  return root;
}

/// The parser finds some errors only when it is moved on, so what is behind the document is looked at too.
LogicalResult PlanReader::close() {
  if (hasError || stream->failed())
    return fail(nullptr, "not valid YAML");
  if (++document != stream->end() && !stream->failed() && document->getRoot() &&
      !isa<yaml::NullNode>(document->getRoot()))
    return fail(document->getRoot(), "a plan is one document");
  return failure(hasError);
}

LogicalResult PlanReader::readText(yaml::Node *node, std::string &text) {
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

LogicalResult PlanReader::readInteger(yaml::Node *node, int64_t &value, int64_t least, int64_t most) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  if (StringRef(text).getAsInteger(10, value) || value < least || value > most)
    return failWord(node, "expected a number from " + Twine(least) + " to " + Twine(most) + ", got '" + text + "'");
  return success();
}

LogicalResult PlanReader::readFlag(yaml::Node *node, bool &value) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  if (text != "true" && text != "false")
    return fail(node, "expected true or false, got '" + text + "'");
  value = text == "true";
  return success();
}

/// Calls `handler` for every entry of a mapping; keys are distinct and, unless `known` is empty, among `known`.
LogicalResult PlanReader::readMapping(yaml::Node *node, StringRef what, ArrayRef<StringRef> known, KeyHandler handler,
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

LogicalResult PlanReader::readSequence(yaml::Node *node, StringRef what,
                                       function_ref<LogicalResult(yaml::Node *)> handler) {
  auto *sequence = dyn_cast_or_null<yaml::SequenceNode>(node);
  if (!sequence)
    return failExpecting(node, what);
  for (yaml::Node &entry : *sequence)
    if (failed(handler(&entry)) || stream->failed())
      return failure();
  return failure(hasError || stream->failed());
}

/// Keys may come in any order, so what they say of each other is checked when all are read (PlanCheck.cpp).
LogicalResult PlanReader::readPlan(Plan &plan) {
  yaml::Node *root = open();
  if (!root)
    return failure();
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "mesh")
      return readMesh(value, plan);
    if (key == "devices")
      return readDevices(value, plan);
    if (key == "dims")
      return readSymbols(value, plan);
    if (key == "state")
      return readStates(value, plan);
    return readSequence(value, "a list of rules", [&](yaml::Node *rule) { return readRule(rule, plan); });
  };
  if (failed(readMapping(root, "a mapping with mesh, devices, dims, shard or state",
                         {"mesh", "devices", "dims", "shard", "state"}, readEntry)))
    return failure();
  return close();
}

/// Axes stay in the order in which they stand: it is that of the ranks, major to minor.
LogicalResult PlanReader::readMesh(yaml::Node *node, Plan &plan) {
  return readMapping(node, "axes and sizes, such as {data: 2, model: 4}", {},
                     [&](StringRef name, yaml::KeyValueNode &entry) {
                       if (name == "devices" && isa_and_nonnull<yaml::SequenceNode>(entry.getValue()))
                         return readDevices(entry.getValue(), plan);
                       MeshAxis axis{name.str(), 1, placeOf(entry.getKey())};
                       if (failed(readInteger(entry.getValue(), axis.size, 1, INT32_MAX)))
                         return failure();
                       plan.mesh.push_back(std::move(axis));
                       return success();
                     });
}

/// Stands next to the mesh, or inside it.
LogicalResult PlanReader::readDevices(yaml::Node *node, Plan &plan) {
  if (!plan.devices.empty())
    return fail(node, "devices is given twice");
  plan.devicesPlace = placeOf(node);
  return readSequence(node, "a list of devices, one per rank",
                      [&](yaml::Node *entry) { return readInteger(entry, plan.devices.emplace_back(), 0, INT32_MAX); });
}

LogicalResult PlanReader::readSymbols(yaml::Node *node, Plan &plan) {
  return readMapping(node, "values of symbolic dimensions, such as {batch: 8}", {},
                     [&](StringRef name, yaml::KeyValueNode &entry) {
                       plan.dimPlaces[name.str()] = placeOf(entry.getKey());
                       return readInteger(entry.getValue(), plan.dims[name.str()], 0, INT32_MAX);
                     });
}

LogicalResult PlanReader::readStates(yaml::Node *node, Plan &plan) {
  auto readState = [&](StringRef input, yaml::KeyValueNode &entry) -> LogicalResult {
    PlanState state{{input.str(), placeOf(entry.getKey())}, {"", placeOf(entry.getValue())}};
    if (failed(readText(entry.getValue(), state.output.text)))
      return failure();
    if (std::string reason = describeBadState(state); !reason.empty())
      return fail(entry.getKey(), reason);
    plan.states.push_back(std::move(state));
    return success();
  };
  return readMapping(node, "inputs and outputs, such as {\"past_*\": \"present_*\"}", {}, readState, "an output");
}

/// Keys may come in any order here too: what a rule must have, and have only one of, is counted on the way.
LogicalResult PlanReader::readRule(yaml::Node *node, Plan &plan) {
  PlanRule rule;
  rule.place = placeOf(node);
  bool hasTensor = false, hasNode = false, hasIndex = false, hasDims = false;
  auto readIndex = [&](yaml::Node *value, PlanRule::Target target) -> LogicalResult {
    int64_t index = 0;
    if (hasIndex)
      return fail(value, "a rule has an operand or a result, not both");
    if (failed(readInteger(value, index, 0, 100000)))
      return failure();
    hasIndex = true;
    rule.target = target;
    rule.index = static_cast<unsigned>(index);
    return success();
  };
  auto readPattern = [&](yaml::Node *value, bool &has) -> LogicalResult {
    if (hasTensor || hasNode)
      return fail(value, "a rule has a tensor or a node, not both");
    has = true;
    rule.patternPlace = placeOf(value);
    if (isa_and_nonnull<yaml::SequenceNode, yaml::MappingNode>(value))
      return fail(value, "expected one pattern; one of several names is \"{a,b}\", in quotes");
    if (failed(readText(value, rule.pattern)))
      return failure();
    std::string reason;
    return NamePattern::create(rule.pattern, reason) ? success() : fail(value, reason);
  };
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "tensor")
      return readPattern(value, hasTensor);
    if (key == "node")
      return readPattern(value, hasNode);
    if (key == "operand")
      return readIndex(value, PlanRule::Target::Operand);
    if (key == "result")
      return readIndex(value, PlanRule::Target::Result);
    if (key == "priority")
      return readInteger(value, rule.priority, 0, kMaxPriority);
    if (key == "replicated")
      return readReplicated(value, rule);
    if (key == "except")
      return readExcept(value, rule);
    if (key == "where")
      return readWhere(value, rule);
    if (key == "uneven")
      return readFlag(value, rule.uneven);
    hasDims = true;
    return readDims(value, rule);
  };
  if (failed(readMapping(
          node, "a rule, such as {tensor: x, dims: [data, _]}",
          {"tensor", "node", "operand", "result", "dims", "except", "where", "priority", "replicated", "uneven"},
          readEntry)))
    return failure();
  if (!hasTensor && !hasNode)
    return fail(node, "a rule needs a tensor or a node");
  if (hasNode != hasIndex)
    return fail(node, hasNode ? "a rule for a node needs an operand or a result"
                              : "only a rule for a node has an operand or a result");
  if (!hasDims)
    return fail(node, "a rule needs dims");
  plan.rules.push_back(std::move(rule));
  return success();
}

LogicalResult PlanReader::readDims(yaml::Node *node, PlanRule &rule) {
  rule.dimsPlace = placeOf(node);
  bool hasRest = false;
  return readSequence(node, "a list with one entry per dim, such as [data, _]", [&](yaml::Node *entry) {
    PlanDim &dim = rule.dims.emplace_back();
    if (failed(readDim(entry, dim)) || (dim.isRest && hasRest))
      return dim.isRest ? fail(entry, "'...' stands for the rest once") : failure();
    hasRest |= dim.isRest;
    return success();
  });
}

/// One entry, or a list of axes that cut the dim together, major to minor.
LogicalResult PlanReader::readDim(yaml::Node *node, PlanDim &dim) {
  dim.place = placeOf(node);
  auto readEntry = [&](yaml::Node *entry) -> LogicalResult {
    std::string text, reason;
    PlanPlace place = placeOf(entry);
    if (failed(readText(entry, text)))
      return failure();
    if (dim.isOpen)
      return fail(entry, "'?' must be the last entry of a dim");
    if ((text == "_" || text == "...") && entry != node)
      return fail(entry, "'" + text + "' stands alone, not in a list of axes");
    return succeeded(parseDimEntry(text, place, dim, reason)) ? success() : failWord(entry, reason);
  };
  return isa_and_nonnull<yaml::SequenceNode>(node) ? readSequence(node, "axes", readEntry) : readEntry(node);
}

LogicalResult PlanReader::readReplicated(yaml::Node *node, PlanRule &rule) {
  return readSequence(node, "a list of axes", [&](yaml::Node *entry) -> LogicalResult {
    std::string text, reason;
    PlanAxis axis;
    axis.place = placeOf(entry);
    if (failed(readText(entry, text)))
      return failure();
    if (failed(parseAxisText(text, axis, reason)))
      return failWord(entry, reason);
    rule.replicated.push_back(std::move(axis));
    return success();
  });
}

/// One pattern or a list of them, each of which must be one: names are compared much later.
LogicalResult PlanReader::readExcept(yaml::Node *node, PlanRule &rule) {
  auto readPattern = [&](yaml::Node *entry) -> LogicalResult {
    PlanPattern &pattern = rule.except.emplace_back();
    pattern.place = placeOf(entry);
    if (failed(readText(entry, pattern.text)))
      return failure();
    std::string reason;
    return NamePattern::create(pattern.text, reason) ? success() : fail(entry, reason);
  };
  return isa_and_nonnull<yaml::SequenceNode>(node) ? readSequence(node, "patterns", readPattern) : readPattern(node);
}

LogicalResult PlanReader::readWhere(yaml::Node *node, PlanRule &rule) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  rule.whereDivides = text == "divides";
  return rule.whereDivides ? success() : fail(node, "expected divides, got '" + text + "'");
}

LogicalResult PlanReader::readDimsOnly(PlanRule &rule) {
  yaml::Node *root = open();
  if (!root || failed(readDims(root, rule)))
    return failure();
  return close();
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

LogicalResult cleave::spmd::parsePlan(StringRef text, StringRef file, Plan &plan, PlanError &error) {
  if (text.size() > kMaxPlanSize) {
    error = {{file.str(), 1, 1}, "the plan is larger than 16 MB", {}};
    return failure();
  }
  return PlanReader(text, file, error).readPlan(plan);
}

/// As bytes: the scan sees tabs and carriage returns as they are.
LogicalResult cleave::spmd::readPlanFile(StringRef path, Plan &plan, PlanError &error) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true);
  if (!buffer) {
    error = {{path.str(), 0, 0}, "cannot read the plan: " + StringRef(buffer.getError().message()).lower(), {}};
    return failure();
  }
  return parsePlan((*buffer)->getBuffer(), path, plan, error);
}

LogicalResult cleave::spmd::parseDimsText(StringRef text, StringRef file, PlanRule &rule, PlanError &error) {
  return PlanReader(text, file, error).readDimsOnly(rule);
}
