//===- Analysis.cpp - what a plan says, and what is wrong with it ---------===//
//
// Everything that is said comes from who says it on the command line: the reader of plans, the placing of annotations, and the phases of
// `cleave shard` up to its decisions.
//
//===----------------------------------------------------------------------===//
#include "Analysis.h"

#include "cleave/Compiler/Compilation.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <set>

using namespace cleave;
using namespace cleave::editor;
using llvm::StringRef;

/// So many wrong rules are told at once; of more, those that are first.
static constexpr unsigned kMostErrors = 32;
/// What is parsed again for each error should not be large.
static constexpr size_t kLargeText = size_t(1) << 20;

const std::vector<PickedTensor> *Analysis::findPicked(const spmd::PlanPlace &rule) const {
  auto found = picked.find({rule.line, rule.column});
  return found == picked.end() ? nullptr : &found->second;
}

//===----------------------------------------------------------------------===//
// The plan by itself
//===----------------------------------------------------------------------===//

/// An error of the reader, as a compilation would tell it: with its place, and those of its notes.
static Diagnostic toDiagnostic(const spmd::PlanError &error) {
  Diagnostic diagnostic;
  diagnostic.line = error.place.line;
  diagnostic.column = error.place.column;
  diagnostic.file = error.place.file;
  diagnostic.message = error.message;
  for (const auto &[place, note] : error.notes) {
    Diagnostic &added = diagnostic.notes.emplace_back();
    added.severity = Diagnostic::Severity::Note;
    added.file = place.file;
    added.line = place.line;
    added.column = place.column;
    added.message = note;
  }
  return diagnostic;
}

/// Makes blanks of the rule that has this line, an entry of `shard`. Places of all else stay as they are.
static bool eraseRule(std::string &text, unsigned line) {
  Text lines(text);
  auto indentOf = [&](size_t number) { return lines.getLine(number).find_first_not_of(' '); };
  size_t first = line ? line - 1 : 0;
  while (first > 0 && !lines.getLine(first).ltrim().starts_with("- "))
    --first;
  size_t top = first;
  while (top > 0 && (indentOf(top) != 0 || lines.getLine(top).starts_with("-")))
    --top;
  if (!line || first == top || !lines.getLine(top).starts_with("shard:"))
    return false;
  // The next line that is not indented more is of the next entry.
  size_t last = first + 1;
  while (last < lines.countLines() && (indentOf(last) == StringRef::npos || indentOf(last) > indentOf(first)))
    ++last;
  size_t end = last < lines.countLines() ? lines.toOffset(unsigned(last) + 1, 1) : text.size();
  for (size_t at = lines.toOffset(unsigned(first) + 1, 1); at < end; ++at)
    if (text[at] != '\n')
      text[at] = ' ';
  return line <= last;
}

/// Reads the plan; a rule that cannot be read, or says what no mesh has, is told and left out. False where nothing can be read.
static bool readPlan(std::string &text, StringRef file, Analysis &analysis) {
  for (unsigned errors = 0; errors <= kMostErrors; ++errors) {
    spmd::Plan plan;
    spmd::PlanError error;
    bool isRead = succeeded(spmd::parsePlan(text, file, plan, error));
    // Without a mesh a plan leaves it to the command line, and nothing is known of axes.
    if (isRead && (plan.mesh.empty() || succeeded(spmd::checkPlan(plan, error)))) {
      analysis.plan = std::move(plan);
      return true;
    }
    // What is left when all rules are blank is no error of the user's.
    bool isLeftOver = errors > 0 && (error.message.find("expected a list") == 0 || error.place.line == 0);
    if (!isLeftOver)
      analysis.diagnostics.push_back(toDiagnostic(error));
    if (isLeftOver || text.size() > kLargeText || !eraseRule(text, error.place.line))
      return false;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The plan on its model
//===----------------------------------------------------------------------===//

/// A tensor, how it is sharded, and what of it one rank has, all as people write them.
static PickedTensor describe(StringRef name, mlir::RankedTensorType type, spmd::ShardingAttr sharding) {
  mlir::RankedTensorType bare = spmd::withSharding(type, {});
  mlir::RankedTensorType local = spmd::getLocalType(spmd::withSharding(bare, sharding));
  return {name.str(), formatType(bare), spmd::formatSharding(sharding), formatType(local)};
}

/// What rules have put on a module.
static void collectPicked(mlir::ModuleOp module, Analysis &analysis) {
  auto add = [&](StringRef name, mlir::Type type, spmd::AnnotationAttr annotation) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    auto place = annotation ? annotation.getPlace().findInstanceOf<mlir::FileLineColLoc>() : mlir::FileLineColLoc();
    size_t rank = annotation ? annotation.getSharding().getDims().size() : 0;
    // Weights of experts become one tensor, with a dim more.
    if (tensor && place && rank == static_cast<size_t>(tensor.getRank()))
      analysis.picked[{place.getLine(), place.getColumn()}].push_back(describe(name, tensor, annotation.getSharding()));
  };
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      add(spmd::getArgumentName(func, index), func.getArgumentTypes()[index],
          func.getArgAttrOfType<spmd::AnnotationAttr>(index, spmd::SpmdDialect::kAnnotationAttr));
    func.walk([&](spmd::PinOp pin) {
      if (std::optional<spmd::AnnotationAttr> annotation = pin.getAnnotation())
        add(pin.getName(), pin.getType(), *annotation);
    });
    for (unsigned index = 0; index < func.getNumResults(); ++index)
      add(spmd::getResultName(func, index), func.getResultTypes()[index],
          func.getResultAttrOfType<spmd::AnnotationAttr>(index, spmd::SpmdDialect::kAnnotationAttr));
  }
}

/// The rule that an error is about: the last one that begins in front of it.
static size_t findRule(const spmd::Plan &plan, const Diagnostic &diagnostic) {
  size_t found = plan.rules.size();
  for (size_t number = 0; number < plan.rules.size(); ++number) {
    const spmd::PlanPlace &place = plan.rules[number].place;
    if (std::pair(place.line, place.column) <= std::pair(diagnostic.line, diagnostic.column))
      found = number;
  }
  return found;
}

/// How values are sharded in the end, by each of their names.
static void updatePicked(mlir::ModuleOp module, Analysis &analysis) {
  llvm::StringMap<PickedTensor *> wanted;
  for (auto &[place, tensors] : analysis.picked)
    for (PickedTensor &tensor : tensors)
      wanted[tensor.name] = &tensor;
  auto update = [&](StringRef name, mlir::Type type) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    spmd::ShardingAttr sharding = tensor ? spmd::getSharding(tensor) : spmd::ShardingAttr();
    PickedTensor *known = wanted.lookup(name);
    if (!known || !sharding)
      return;
    PickedTensor decided = describe(name, tensor, sharding);
    if (decided.type == known->type)
      *known = std::move(decided);
  };
  module.walk([&](mlir::Operation *op) {
    for (mlir::Value value : op->getResults())
      for (StringRef name : spmd::getTensorNames(value))
        update(name, value.getType());
  });
  for (auto func : module.getOps<mlir::func::FuncOp>())
    for (mlir::BlockArgument argument : func.getArguments())
      update(spmd::getArgumentName(func, argument.getArgNumber()), argument.getType());
}

namespace {
/// A plan on a model: what it picks, and what is wrong there.
class ModelLook {
public:
  ModelLook(Analysis &analysis, StringRef file) : analysis(analysis), file(file) {}

  void look(const CompileOptions &options);

private:
  void keep(const Diagnostic &diagnostic);
  bool place(mlir::ModuleOp module);

  Analysis &analysis;
  StringRef file;
  std::set<std::tuple<unsigned, unsigned, std::string>> said;
  /// The last error, if there was one since this was reset.
  std::optional<Diagnostic> error;
};
} // namespace

/// The same warning comes again where rules are placed again. Of remarks the first about each place of the plan is told: a rule of many tensors
/// has one for each.
void ModelLook::keep(const Diagnostic &diagnostic) {
  bool isError = diagnostic.severity == Diagnostic::Severity::Error, isOfPlan = diagnostic.file == file;
  if (isError && !error)
    error = diagnostic;
  if (!isOfPlan && !isError && diagnostic.severity != Diagnostic::Severity::Warning)
    return;
  bool isRemark = diagnostic.severity == Diagnostic::Severity::Remark;
  if (said.insert({diagnostic.line, diagnostic.column, isRemark ? "" : diagnostic.message}).second)
    analysis.diagnostics.push_back(diagnostic);
}

/// Puts rules on copies of the model until no rule is wrong. False where something else is.
bool ModelLook::place(mlir::ModuleOp module) {
  spmd::Plan plan = analysis.plan;
  for (unsigned errors = 0; errors <= kMostErrors; ++errors) {
    mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
    error.reset();
    if (succeeded(spmd::placeAnnotations(*copy, plan))) {
      collectPicked(*copy, analysis);
      return errors == 0;
    }
    size_t wrong = error && error->file == file ? findRule(plan, *error) : plan.rules.size();
    if (wrong == plan.rules.size())
      return false;
    plan.rules.erase(plan.rules.begin() + static_cast<std::ptrdiff_t>(wrong));
  }
  return false;
}

/// Loading also tells what is wrong with sizes of dims, and with the model. A plan that has an error is not decided by: its shardings would be
/// those of another one.
void ModelLook::look(const CompileOptions &options) {
  Compilation compilation(options, [&](const Diagnostic &diagnostic) { keep(diagnostic); });
  if (!compilation.load())
    return;
  // What styles stand for is known to the compilation alone.
  bool isPlaced = !analysis.plan.like.empty() || place(compilation.getModule());
  if (!isPlaced || !compilation.hasMesh() || !compilation.advance(Phase::Propagated))
    return;
  updatePicked(compilation.getModule(), analysis);
  analysis.isSharded = true;
}

Analysis cleave::editor::analyze(const Text &text, const CompileOptions &options) {
  Analysis analysis;
  // A file, as all who read plans want; what is told of it is told of the text.
  llvm::SmallString<128> path;
  int descriptor = -1;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile("plan", "yaml", descriptor, path)) {
    analysis.diagnostics.push_back({});
    analysis.diagnostics.back().message = "no temporary file for the plan: " + code.message();
    return analysis;
  }
  llvm::FileRemover remover(path);
  std::string content = text.get().str();
  analysis.isRead = readPlan(content, path, analysis);
  llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << content;
  if (analysis.isRead && !options.model.empty()) {
    CompileOptions sharding = options;
    sharding.sharding.plan = path.str().str();
    ModelLook(analysis, path).look(sharding);
  }
  // The editor's text is the file.
  auto rename = [&](Diagnostic &diagnostic) {
    if (diagnostic.file == path)
      diagnostic.file.clear();
    else
      diagnostic.line = 0;
  };
  for (Diagnostic &diagnostic : analysis.diagnostics) {
    llvm::for_each(diagnostic.notes, rename);
    rename(diagnostic);
  }
  return analysis;
}
