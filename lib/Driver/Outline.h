//===- Outline.h - what inspect prints --------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_DRIVER_OUTLINE_H
#define CLEAVE_LIB_DRIVER_OUTLINE_H

#include "cleave/Driver/Options.h"
#include "cleave/Support/File.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave::driver {

/// Cells of one line each, printed in columns: as wide as the widest cell, but no wider than a limit. A cell that is
/// longer ends its line, and the next one starts below, in its column.
class Table {
public:
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// A tensor of the signature or a parameter.
struct TensorOutline {
  std::string name, type;
  int64_t bytes = 0;
  /// Nodes that read it, as a plan addresses them: `node:/enc/MatMul#1`.
  llvm::SmallVector<std::string, 1> uses;
};

/// What is in a model.
struct Outline {
  std::vector<TensorOutline> inputs, outputs, parameters;
  std::string opsTitle; ///< `ops: 12, 1.0e+06 floating-point operations in contractions`
  std::map<std::string, int64_t> ops;

  /// `isLong`: every parameter on a line of its own. Otherwise those of one type whose names differ in a number, and
  /// that are used by nodes whose names differ in numbers, share a line.
  void print(llvm::raw_ostream &os, bool isLong) const;
};

/// What is in an ONNX file in which sizes that import needs are not known yet; nothing if all are known, or the file
/// cannot be read. Sets `open` to the options that would give the sizes. Errors: a size given for what the model lacks.
llvm::Expected<std::optional<Outline>> outlineFile(const Options &options, std::string &open);

} // namespace cleave::driver

#endif // CLEAVE_LIB_DRIVER_OUTLINE_H
