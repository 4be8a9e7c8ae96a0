//===- Complete.cpp - what may stand at a place of a plan -----------------===//
//
// Keys and words come from PlanKeys.h, names from the text (axes, links) and from the model. A pattern of many names is offered where names
// differ in numbers alone: `model.layers.*.mlp.up_proj`.
//
//   mesh: {data: 2}              the reader's keys, but for those that are there
//   shard:
//     - {tensor: c_at|, dims: [_, da|]}
//                    |             └ axes as they are in the text, and `_`, `?`, `...`
//                    └ h.*.attn.c_attn.weight, h.0.attn.c_attn.weight, ..
//
// What is offered replaces all of the word that the cursor is in, also what is behind the cursor.
//
//===----------------------------------------------------------------------===//
#include "Answers.h"
#include "Cursor.h"

#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/Expect.h"
#include "cleave/Plan/Gpus.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Style.h"
#include "cleave/Schedule/Generate.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace cleave;
using namespace cleave::editor;
using namespace cleave::spmd;
using namespace llvm;

/// Editors ask again while a word grows, so that no list need be long.
static constexpr size_t kMostItems = 500;

namespace {
class Completer {
public:
  Completer(const Text &text, size_t offset, const Model *model)
      : text(text), cursor(findCursor(text.get(), offset)), model(model),
        typed(text.get().slice(cursor.start, std::max(cursor.start, std::min(offset, cursor.end)))) {}

  lsp::CompletionList complete();

private:
  void addKeys();
  void addUserKeys();
  void addValues();
  void addAxes(bool isDim);
  void addNames(ArrayRef<Model::Name> names, StringRef what);
  void addPatterns(ArrayRef<Model::Name> names, StringRef what);
  void addTensors();
  void add(StringRef label, const Twine &detail, lsp::CompletionItemKind kind, bool isName = false);
  bool matches(StringRef label) const;
  std::string quote(StringRef label) const;

  const Text &text;
  Cursor cursor;
  const Model *model;
  /// The part of the word that is in front of the cursor.
  StringRef typed;
  std::optional<NamePattern> pattern;
  lsp::CompletionList list;
  StringSet<> offered;
};
} // namespace

/// What is typed may be anywhere in a name; what is a pattern already is held against its beginning.
bool Completer::matches(StringRef label) const {
  return label.contains_insensitive(typed) || (pattern && pattern->matches(label));
}

/// What is put in place of the word. Within quotes of the text what YAML reads otherwise is escaped; outside of them
/// a name gets quotes if it needs some:
///
///   wte.weight      wte.weight
///   h.*.weight      "h.*.weight"     which would begin an alias, were the star in front
///   461             "461"            a number
///
/// A name that YAML would take for something else needs quotes.
std::string Completer::quote(StringRef label) const {
  bool isPlain = all_of(label, [](char c) { return isAlnum(c) || StringRef("_-./").contains(c); }) && !label.empty() &&
                 (isAlpha(label.front()) || label.front() == '_' || label.front() == '/');
  std::string escaped;
  for (char c : label)
    escaped += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  return cursor.isQuoted ? escaped : isPlain ? label.str() : "\"" + escaped + "\"";
}

/// Takes one item, unless the word so far is no part of it. Those that begin with the word come first; among themselves they stay in the order in
/// which they are added, which is that of the model.
void Completer::add(StringRef label, const Twine &detail, lsp::CompletionItemKind kind, bool isName) {
  if (list.items.size() >= kMostItems) {
    list.isIncomplete = true;
    return;
  }
  if (label.empty() || !matches(label) || !offered.insert(label).second)
    return;
  lsp::CompletionItem &item = list.items.emplace_back();
  item.label = label.str();
  item.kind = kind;
  item.detail = detail.str();
  item.insertTextFormat = lsp::InsertTextFormat::PlainText;
  // Editors hold what is typed against this.
  item.filterText = label.starts_with(typed) ? label.str() : (typed + label).str();
  item.sortText = formatv("{0}{1,0+6}", label.starts_with(typed) ? 0 : 1, list.items.size()).str();
  bool isNewKey = cursor.isKey && !text.get().substr(cursor.end + cursor.isQuoted).ltrim(" ").starts_with(":");
  std::string inserted = isName ? quote(label) : label.str();
  item.textEdit =
      lsp::TextEdit{text.toRange(cursor.start, cursor.end), inserted + (isNewKey && !cursor.isQuoted ? ": " : "")};
}

/// Keys of the mapping that it has not yet.
void Completer::addKeys() {
  for (const PlanKey &key : getPlanKeys(*cursor.section))
    if (!is_contained(cursor.present, key.name))
      add(key.name, key.says, lsp::CompletionItemKind::Property);
}

/// Keys that users choose, as far as it is known which there are.
void Completer::addUserKeys() {
  using Kind = lsp::CompletionItemKind;
  switch (*cursor.section) {
  case PlanSection::Mesh:
    for (auto [axis, style] : zip_equal(kStyleAxes, kStyleWords))
      if (!is_contained(cursor.present, axis))
        add(axis, "an axis, as style " + style + " calls it", Kind::Variable);
    break;
  case PlanSection::Symbols:
    for (const std::string &symbol : model ? model->symbols : std::vector<std::string>())
      if (!is_contained(cursor.present, symbol))
        add(symbol, "a symbolic dimension of the model", Kind::Variable, /*isName=*/true);
    break;
  case PlanSection::States:
  case PlanSection::Batch:
    if (model)
      addNames(model->inputs, "input");
    break;
  case PlanSection::LinksOfAxes:
    addAxes(/*isDim=*/false);
    break;
  default:
    break;
  }
}

/// Axes of the mesh as it is in the text, which may be no plan now.
void Completer::addAxes(bool isDim) {
  using Kind = lsp::CompletionItemKind;
  forEachKey(text.get(), PlanSection::Mesh, [&](const Cursor &axis, StringRef size) {
    if (axis.word != "devices")
      add(axis.word, "an axis of " + (size.empty() ? "the mesh" : size + " ranks"), Kind::Variable);
  });
  if (!isDim)
    return;
  add("_", "not sharded, and stays so", Kind::Value);
  add("?", "propagation decides", Kind::Value);
  add("...", "all dims that the other entries leave, each '_'", Kind::Value);
}

/// Names as they are. What they have, such as a type, stands next to them.
void Completer::addNames(ArrayRef<Model::Name> names, StringRef what) {
  for (const Model::Name &name : names)
    add(name.name, what + (name.detail.empty() ? "" : ": " + name.detail), lsp::CompletionItemKind::Reference,
        /*isName=*/true);
}

/// `h.*.attn.weight` of `h.0.attn.weight`: stars in place of numbers. Empty where there are none.
static std::string generalize(StringRef name) {
  std::string result;
  bool isMore = false;
  for (size_t at = 0; at < name.size();) {
    size_t end = at;
    while (end < name.size() && isDigit(name[end]))
      ++end;
    bool isBetween = end > at && (at == 0 || StringRef("./_").contains(name[at - 1])) &&
                     (end == name.size() || StringRef("./_").contains(name[end]));
    // Characters that mean something in patterns cannot be taken over.
    if (end == at && StringRef("*?[]{}").contains(name[at]))
      return "";
    result += isBetween ? StringRef("*") : name.slice(at, std::max(end, at + 1));
    isMore |= isBetween;
    at = std::max(end, at + 1);
  }
  return isMore ? result : "";
}

/// Patterns come before names: a rule is about the weights of all layers, and seldom of one.
void Completer::addPatterns(ArrayRef<Model::Name> names, StringRef what) {
  std::map<std::string, size_t> patterns;
  for (const Model::Name &name : names)
    if (std::string general = generalize(name.name); !general.empty())
      ++patterns[general];
  for (const auto &[general, count] : patterns)
    if (count > 1)
      add(general, Twine(count) + " " + what, lsp::CompletionItemKind::Reference, /*isName=*/true);
  addNames(names, what);
}

/// What is split most often is first: inputs, then weights.
void Completer::addTensors() {
  addNames(model->inputs, "input");
  addPatterns(model->parameters, "parameter");
  addNames(model->outputs, "output");
  addPatterns(model->tensors, "tensor inside");
}

/// The value of a key. Of a list it is the same as of one entry; names need a model, all else does not.
void Completer::addValues() {
  using Kind = lsp::CompletionItemKind;
  const PlanKey &key = *cursor.key;
  for (StringRef word : key.words)
    add(word, key.says, Kind::EnumMember);
  switch (key.value) {
  case PlanValue::Number:
  case PlanValue::Words:
  case PlanValue::Section:
    return;
  case PlanValue::Axis:
  case PlanValue::DimEntry:
    return addAxes(key.value == PlanValue::DimEntry);
  case PlanValue::Cluster:
    for (StringRef name : getClusterNames())
      add(name, "a machine", Kind::Constant);
    for (const Gpu &gpu : getGpus())
      add(gpu.name, formatv("as many as the mesh has ranks, {0} GB each", gpu.memoryGb).str(), Kind::Constant);
    return;
  case PlanValue::Schedule:
    for (const schedule::GeneratorInfo &info : schedule::getGenerators())
      add(info.name, key.says, Kind::EnumMember);
    return;
  case PlanValue::AbsentKind:
    for (StringRef kind : getPlanKinds())
      add(kind, key.says, Kind::EnumMember);
    return;
  case PlanValue::LinkName:
    return;
  default:
    break;
  }
  if (!model)
    return;
  if (key.value == PlanValue::TensorPattern)
    addTensors();
  else if (key.value == PlanValue::WeightPattern)
    addPatterns(model->parameters, "parameter");
  else if (key.value == PlanValue::NodePattern)
    addPatterns(model->nodes, "node");
  else if (key.value == PlanValue::ModulePattern)
    addPatterns(model->modules, "module");
  else
    addNames(key.value == PlanValue::Output ? model->outputs : model->inputs,
             key.value == PlanValue::Output ? "output" : "input");
}

/// A word that is a pattern already, `*.c_at`, is held against names as one that is to go on.
lsp::CompletionList Completer::complete() {
  if (!cursor.section)
    return list;
  if (!typed.empty() && !NamePattern::isLiteral(typed)) {
    Expected<NamePattern> beginning = NamePattern::create((typed + "*").str());
    if (beginning)
      pattern = std::move(*beginning);
    else
      consumeError(beginning.takeError());
  }
  if (cursor.isKey && !getPlanKeys(*cursor.section).empty())
    addKeys();
  else if (cursor.isKey)
    addUserKeys();
  else if (cursor.key)
    addValues();
  else if (*cursor.section == PlanSection::States && model)
    addNames(model->outputs, "output");
  else if (*cursor.section == PlanSection::Batch)
    add("none", "the input has no batch", lsp::CompletionItemKind::EnumMember);
  else if (*cursor.section == PlanSection::LinksOfAxes)
    forEachKey(text.get(), PlanSection::Level, [&](const Cursor &key, StringRef value) {
      if (key.word == "name")
        add(value, "a link of the cluster", lsp::CompletionItemKind::Constant);
    });
  return list;
}

lsp::CompletionList cleave::editor::complete(const Text &text, size_t offset, const Model *model) {
  return Completer(text, offset, model).complete();
}
