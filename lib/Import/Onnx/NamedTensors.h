//===- NamedTensors.h - what a plan names and folding would lose -*- C++ -*-===//
//
// Importing folds away what is computed from constants. A tensor that a plan names stays: it is still known where a
// shape depends on it, but ops that take it are not folded (ConstantFolder::hold). If then no op takes it, the plan
// can be told that it is unused instead of unknown.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_NAMEDTENSORS_H
#define CLEAVE_LIB_IMPORT_ONNX_NAMEDTENSORS_H

#include "cleave/Import/Onnx/Model.h"
#include "cleave/Plan/Plan.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::onnx {

class NamedTensors {
public:
  /// What `rules` address: the tensors that they name without wildcards, and operands and results of nodes of `graph`.
  NamedTensors(llvm::ArrayRef<spmd::PlanRule> rules, const GraphProto &graph);

  bool empty() const { return names.empty(); }
  bool contains(llvm::StringRef name) const { return names.contains(name); }
  /// Tells that the program has no tensor called `name` in the end, though the model has.
  void noteUnused(llvm::StringRef name) { unused.insert(name); }
  /// The attribute `spmd.named`: the rules that address such a tensor, or a node, which may be gone; null if none does.
  mlir::DictionaryAttr getNamed(mlir::MLIRContext *context) const;
  /// Calls `callback` for each name, in the order of the rules.
  void forEach(llvm::function_ref<void(llvm::StringRef)> callback) const;

private:
  struct Entry {
    std::string rule;
    bool isNode;
    std::vector<llvm::StringRef> names;
  };
  void addNodes(const spmd::PlanRule &rule, const GraphProto &graph);

  std::vector<Entry> entries;
  llvm::StringSet<> names, unused;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_NAMEDTENSORS_H
