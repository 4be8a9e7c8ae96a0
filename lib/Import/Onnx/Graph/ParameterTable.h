//===- ParameterTable.h - the weights of a model, by their symbols -*- C++ -*-===//
//
// What is too large for a constant becomes an `nn.param`. Its digest is read from the weights' file: other threads read
// digests while the nodes are imported, and the ops are made in the end, of what is used then.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRAPH_PARAMETERTABLE_H
#define CLEAVE_LIB_IMPORT_ONNX_GRAPH_PARAMETERTABLE_H

#include "cleave/Onnx/TensorData.h"
#include "cleave/Support/Beside.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

namespace cleave::onnx {

class ParameterTable {
public:
  /// Adds a parameter under `name`, or a symbol made of it where that is taken: tensors of function bodies may repeat
  /// names. Returns the symbol.
  mlir::StringAttr add(mlir::StringAttr name, mlir::Location loc, mlir::RankedTensorType type, TensorData data);

  /// The elements; null for a symbol that was not given.
  const TensorData *find(llvm::StringRef symbol) const;

  /// Makes the ops of those that are `used` in front of `func`, in the order in which they were added. `modules`: by name, who reads them.
  void create(mlir::func::FuncOp func, const llvm::DenseSet<mlir::StringAttr> &used,
              const llvm::StringMap<llvm::SmallVector<std::string, 1>> &modules);

private:
  struct Parameter {
    mlir::StringAttr symbol;
    mlir::Location loc;
    mlir::RankedTensorType type;
    TensorData data;
    std::string digest = {};
  };

  mlir::StringAttr makeSymbol(mlir::StringAttr name);
  void readDigests();

  std::deque<Parameter> parameters;
  llvm::StringMap<const Parameter *> bySymbol;
  /// For names that repeat: the last suffix taken.
  llvm::StringMap<unsigned> suffixes;
  /// Parameters of files whose digests nobody reads yet.
  std::vector<Parameter *> waiting;
  /// They write into `parameters`, and so end before those go.
  std::vector<Beside> readers;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRAPH_PARAMETERTABLE_H
