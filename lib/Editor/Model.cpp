//===- Model.cpp - what a plan can name of a model ------------------------===//
//
// A model is read without its plan, so that names are there while nothing of the plan can be read. Of one whose sizes are not given only what the
// file says is known.
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include "cleave/Compiler/Outline.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::editor;
using namespace llvm;

/// Changes with the file, and with the sizes that are given.
static std::string makeKey(const CompileOptions &options) {
  sys::fs::file_status status;
  if (sys::fs::status(options.model, status))
    return "";
  std::string key = formatv("{0}\n{1}\n{2}", options.model, status.getSize(),
                            status.getLastModificationTime().time_since_epoch().count());
  for (const auto &[dim, size] : options.dims)
    key += formatv("\n{0}={1}", dim, size);
  return key;
}

/// Of `f32[batch, 128]` the dims that are names.
static void addSymbols(StringRef type, StringSet<> &seen, std::vector<std::string> &symbols) {
  SmallVector<StringRef> dims;
  type.split('[').second.split(']').first.split(dims, ',', -1, /*KeepEmpty=*/false);
  for (StringRef dim : dims)
    if (dim = dim.trim(); !dim.empty() && !isDigit(dim.front()) && dim != "?" && seen.insert(dim).second)
      symbols.push_back(dim.str());
}

/// Names and types, in the order of the model.
static void addNames(ArrayRef<TensorOutline> tensors, std::vector<Model::Name> &names) {
  for (const TensorOutline &tensor : tensors)
    names.push_back({tensor.name, tensor.type});
}

/// Parameters say which nodes read them, as a plan addresses these (`node:/enc/MatMul#1`), tensors inside which node makes them.
static void addNodes(const Outline &outline, std::vector<Model::Name> &nodes) {
  StringSet<> seen;
  auto add = [&](StringRef node, const Twine &detail) {
    if (!node.empty() && seen.insert(node).second)
      nodes.push_back({node.str(), detail.str()});
  };
  for (const TensorOutline &tensor : outline.parameters)
    for (StringRef node : tensor.nodes) {
      auto [name, operand] = node.rsplit('#');
      name.consume_front("node:");
      add(name, "operand " + operand + " is " + tensor.name + ": " + tensor.type);
    }
  for (const TensorOutline &tensor : outline.tensors)
    for (const std::string &node : tensor.nodes)
      add(node, "makes " + tensor.name + ": " + tensor.type);
}

/// Errors are left to who looks at the plan, where they have a place.
static std::shared_ptr<const Model> read(const CompileOptions &options) {
  auto model = std::make_shared<Model>();
  // First without sizes, which is quick, for the names of dims.
  CompileOptions open;
  open.model = options.model;
  open.weights = options.weights;
  Compilation unsized(open);
  std::optional<Outline> outline = makeOutline(unsized);
  StringSet<> seen;
  if (outline)
    for (const auto *list : {&outline->inputs, &outline->outputs})
      for (const TensorOutline &tensor : *list)
        addSymbols(tensor.type, seen, model->symbols);
  if (!outline || !options.dims.empty()) {
    open.dims = options.dims;
    Compilation sized(open);
    if (std::optional<Outline> known = makeOutline(sized))
      outline = std::move(known);
  }
  if (!outline)
    return nullptr;
  addNames(outline->inputs, model->inputs);
  addNames(outline->outputs, model->outputs);
  addNames(outline->parameters, model->parameters);
  addNames(outline->tensors, model->tensors);
  addNodes(*outline, model->nodes);
  for (const ModuleOutline &module : outline->modules)
    if (!module.types.empty())
      model->modules.push_back({module.path, join(module.types, ", ")});
  return model;
}

/// What cannot be read is not tried again until the file is another one.
std::shared_ptr<const Model> Models::get(const CompileOptions &options) {
  std::string key = options.model.empty() ? "" : makeKey(options);
  if (key.empty())
    return nullptr;
  auto [entry, isNew] = known.try_emplace(key);
  if (isNew)
    entry->second = read(options);
  return entry->second;
}
