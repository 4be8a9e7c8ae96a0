//===- Answers.cpp - what an editor asks about a plan ---------------------===//
//
// Hover texts are Markdown. What a rule picks is as the last look at the plan found it (Analysis.h), what a key means is said in PlanKeys.h.
//
//===----------------------------------------------------------------------===//
#include "Answers.h"
#include "Cursor.h"

#include "cleave/Plan/NamePattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::editor;
using namespace cleave::spmd;
using namespace llvm;

/// So many tensors of a rule are shown.
static constexpr size_t kMostShown = 20;
/// And so many diagnostics of a plan.
static constexpr size_t kMostDiagnostics = 500;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// The axis of an entry: `model` of `model?`, `model:(1)2`, `permute over model`.
static StringRef getAxis(StringRef word) {
  if (word.contains(" over "))
    word = word.rsplit(' ').second;
  return word.split(':').first.rtrim('?');
}

/// The word may be an axis: of a rule, say, or of a pipeline.
static bool mayBeAxis(const Cursor &cursor) {
  if (cursor.isKey)
    return cursor.section == PlanSection::Mesh || cursor.section == PlanSection::LinksOfAxes;
  return cursor.key && is_contained({PlanValue::Axis, PlanValue::DimEntry, PlanValue::AbsentKind}, cursor.key->value);
}

/// Axes as the text has them, major to minor; a size that is no number is 0.
static std::vector<std::pair<Cursor, int64_t>> listAxes(StringRef text) {
  std::vector<std::pair<Cursor, int64_t>> axes;
  forEachKey(text, PlanSection::Mesh, [&](const Cursor &key, StringRef value) {
    int64_t size = 0;
    if (key.word != "devices")
      axes.emplace_back(key, value.getAsInteger(10, size) || size < 0 ? 0 : size);
  });
  return axes;
}

/// How many ranks an axis has, and how far apart two are that are next to each other on it: as many as all axes behind it have together.
static std::string describeAxis(StringRef text, StringRef name) {
  std::vector<std::pair<Cursor, int64_t>> axes = listAxes(text);
  auto axis = find_if(axes, [&](const auto &known) { return known.first.word == name; });
  if (axis == axes.end())
    return "";
  double stride = 1;
  for (auto minor = axis + 1; minor != axes.end(); ++minor)
    stride *= static_cast<double>(minor->second);
  std::string description = formatv("axis `{0}` of the mesh: {1} ranks along it", name, axis->second);
  if (axis->second > 1 && stride >= 1)
    description += formatv(", {0:f0} apart: rank 0 meets rank {0:f0}", stride);
  return description;
}

std::optional<lsp::Range> cleave::editor::findDefinition(const Text &text, size_t offset) {
  Cursor cursor = findCursor(text.get(), offset);
  if (!mayBeAxis(cursor))
    return std::nullopt;
  for (const auto &[axis, size] : listAxes(text.get()))
    if (axis.word == getAxis(cursor.word))
      return text.toRange(axis.start, axis.end);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Hover texts
//===----------------------------------------------------------------------===//

/// Of a rule that is wrong, or that no model was looked at for: which names have its pattern.
static std::string describeNames(const Cursor &cursor, const Model &model) {
  Expected<NamePattern> pattern = NamePattern::create(cursor.word);
  if (!pattern) {
    consumeError(pattern.takeError());
    return "";
  }
  using List = std::vector<Model::Name>;
  SmallVector<const List *> lists;
  if (cursor.key->value == PlanValue::NodePattern)
    lists = {&model.nodes};
  else if (cursor.key->value == PlanValue::ModulePattern)
    lists = {&model.modules};
  else if (cursor.key->value == PlanValue::WeightPattern)
    lists = {&model.parameters};
  else
    lists = {&model.inputs, &model.parameters, &model.tensors, &model.outputs};
  size_t count = 0;
  std::string lines;
  for (const List *list : lists)
    for (const Model::Name &name : *list)
      if (pattern->matches(name.name) && ++count <= kMostShown)
        lines += formatv("- `{0}` {1}\n", name.name, name.detail);
  return formatv("matches {0} name{1} of the model\n\n{2}", count, count == 1 ? "" : "s", lines);
}

/// The tensors of a rule, a line each: `wte.weight` f32[50257, 768] is `[model, _]`: a rank has f32[12565, 768].
static std::string describePicked(ArrayRef<PickedTensor> tensors, bool isSharded) {
  std::string text = formatv("picks {0} tensor{1}{2}\n\n", tensors.size(), tensors.size() == 1 ? "" : "s",
                             isSharded ? "" : ", sharded as the rule asks");
  for (const PickedTensor &tensor : tensors.take_front(kMostShown))
    text += formatv("- `{0}` {1} is `{2}`: a rank has {3}\n", tensor.name, tensor.type, tensor.sharding, tensor.local);
  if (tensors.size() > kMostShown)
    text += formatv("- and {0} more\n", tensors.size() - kMostShown);
  return text;
}

/// The rule that begins at this place of the text; null: none that could be read.
static const std::vector<PickedTensor> *findPicked(const Text &text, const Cursor &cursor, const Analysis &analysis) {
  auto [line, column] = text.toPlace(cursor.entryStart);
  return analysis.findPicked({"", line, column});
}

/// A value that names are held against.
static bool isPattern(const Cursor &cursor) {
  return !cursor.isKey && cursor.key &&
         is_contained(
             {PlanValue::TensorPattern, PlanValue::WeightPattern, PlanValue::NodePattern, PlanValue::ModulePattern},
             cursor.key->value);
}

std::optional<lsp::Hover> cleave::editor::hover(const Text &text, size_t offset, const Analysis &analysis,
                                                const Model *model) {
  Cursor cursor = findCursor(text.get(), offset);
  if (!cursor.section || cursor.start == cursor.end)
    return std::nullopt;
  std::string said;
  const PlanKey *key = cursor.isKey ? findPlanKey(*cursor.section, cursor.word) : cursor.key;
  if (mayBeAxis(cursor))
    said = describeAxis(text.get(), getAxis(cursor.word));
  const std::vector<PickedTensor> *picked =
      cursor.section == PlanSection::Rule ? findPicked(text, cursor, analysis) : nullptr;
  bool isOfRule = isPattern(cursor) && key->name != "except";
  if (isOfRule && picked)
    said = describePicked(*picked, analysis.isSharded);
  else if (isPattern(cursor) && model)
    said = describeNames(cursor, *model);
  else if (isPattern(cursor))
    said =
        "which tensors it picks is not known without a model: `# model: FILE` in the first lines of the plan names it";
  if (key && said.empty())
    said = formatv("`{0}`: {1}", key->name, key->says);
  if (key && cursor.isKey && !key->words.empty())
    said +=
        "\n\nOne of " + join(map_range(key->words, [](StringRef word) { return "`" + word.str() + "`"; }), ", ") + ".";
  if (said.empty())
    return std::nullopt;
  lsp::Hover result(text.toRange(cursor.start, cursor.end));
  result.contents = {lsp::MarkupKind::Markdown, said};
  return result;
}

//===----------------------------------------------------------------------===//
// Hints
//===----------------------------------------------------------------------===//

/// What stands behind a rule: a tensor's local shape, or how many there are and the one that all of them have.
static std::string describeShort(ArrayRef<PickedTensor> tensors) {
  bool isAlike = all_of(tensors, [&](const PickedTensor &tensor) { return tensor.local == tensors.front().local; });
  std::string count = tensors.size() == 1 ? "" : formatv("{0} tensors, ", tensors.size()).str();
  return count + (isAlike ? tensors.front().local + " a rank" : "of several shapes");
}

std::vector<lsp::InlayHint> cleave::editor::listHints(const Text &text, const lsp::Range &range,
                                                      const Analysis &analysis) {
  std::vector<lsp::InlayHint> hints;
  auto add = [&](unsigned line, std::string label) {
    // Places may be older than the text where that cannot be read.
    if (line == 0 || line > text.countLines() || int(line) - 1 < range.start.line || int(line) - 1 > range.end.line)
      return;
    size_t end = text.toOffset(line, 1) + text.getLine(line - 1).rtrim().size();
    lsp::InlayHint &hint = hints.emplace_back(lsp::InlayHintKind::Type, text.toPosition(end));
    hint.label = std::move(label);
    hint.paddingLeft = true;
  };
  if (!analysis.isRead)
    return hints;
  if (!analysis.plan.mesh.empty()) {
    int64_t ranks = 1;
    for (const MeshAxis &axis : analysis.plan.mesh)
      ranks *= axis.size;
    add(analysis.plan.mesh.back().place.line, formatv("{0} ranks", ranks));
  }
  for (const PlanRule &rule : analysis.plan.rules)
    if (const std::vector<PickedTensor> *picked = analysis.findPicked(rule.place); picked && !picked->empty())
      add(rule.patternPlace.line, describeShort(*picked));
  return hints;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// From a place to the end of what begins there: a word, or what is in quotes or brackets on its line.
static lsp::Range findRange(const Text &text, unsigned line, unsigned column) {
  size_t start = text.toOffset(line, column), lineEnd = text.toOffset(line, ~0u);
  StringRef rest = text.get().slice(start, lineEnd);
  size_t size = rest.size();
  if (rest.starts_with("\"") || rest.starts_with("'"))
    size = rest.find(rest.front(), 1) + 1;
  else if (!rest.starts_with("[") && !rest.starts_with("{"))
    size = std::max<size_t>(rest.find_first_of(",[]{}: \t"), 1);
  return text.toRange(start, start + std::min(size ? size : rest.size(), rest.size()));
}

static lsp::DiagnosticSeverity toSeverity(Diagnostic::Severity severity) {
  switch (severity) {
  case Diagnostic::Severity::Error:
    return lsp::DiagnosticSeverity::Error;
  case Diagnostic::Severity::Warning:
    return lsp::DiagnosticSeverity::Warning;
  case Diagnostic::Severity::Remark:
  case Diagnostic::Severity::Note:
    return lsp::DiagnosticSeverity::Information;
  }
  return lsp::DiagnosticSeverity::Information;
}

json::Array cleave::editor::listDiagnostics(const Text &text, const Analysis &analysis, StringRef uri,
                                            size_t fallback) {
  json::Array list;
  for (const Diagnostic &diagnostic : ArrayRef(analysis.diagnostics).take_front(kMostDiagnostics)) {
    std::string message = diagnostic.formatText();
    bool isOfPlan = diagnostic.line > 0;
    if (!isOfPlan && !diagnostic.file.empty())
      message = diagnostic.file + ": " + message;
    json::Array related;
    for (const Diagnostic &note : diagnostic.notes) {
      // A note without a place of the plan goes with the message.
      if (note.line == 0 || !note.file.empty())
        message += "\n" + note.formatText();
      else
        related.push_back(
            json::Object{{"location", json::Object{{"uri", uri}, {"range", findRange(text, note.line, note.column)}}},
                         {"message", note.formatText()}});
    }
    json::Object shown{{"range", isOfPlan ? findRange(text, diagnostic.line, diagnostic.column)
                                          : findRange(text, static_cast<unsigned>(fallback) + 1, 1)},
                       {"severity", static_cast<int>(toSeverity(diagnostic.severity))},
                       {"source", "cleave"},
                       {"message", message}};
    if (!related.empty())
      shown["relatedInformation"] = std::move(related);
    list.push_back(std::move(shown));
  }
  return list;
}
