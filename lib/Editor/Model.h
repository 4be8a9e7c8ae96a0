//===- Model.h - what a plan can name of a model ----------------*- C++ -*-===//
#ifndef CLEAVE_LIB_EDITOR_MODEL_H
#define CLEAVE_LIB_EDITOR_MODEL_H

#include "cleave/Compiler/CompileOptions.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace cleave::editor {

/// The names of a model, and what people want to know of what has them.
struct Model {
  struct Name {
    std::string name, detail;
  };
  /// `detail` is a type, `f32[8, 128]`; of a node what plans address of it, of a module its parameters.
  std::vector<Name> inputs, outputs, parameters, tensors, nodes, modules;
  /// Symbolic dims that have no size in the file.
  std::vector<std::string> symbols;
};

/// Models that were looked at, each as long as its file stays as it is.
class Models {
public:
  /// What is in the model of `options`; null where it cannot be read, which who looks at the plan tells.
  std::shared_ptr<const Model> get(const CompileOptions &options);

private:
  llvm::StringMap<std::shared_ptr<const Model>> known;
};

} // namespace cleave::editor

#endif // CLEAVE_LIB_EDITOR_MODEL_H
