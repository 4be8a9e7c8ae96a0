//===- Export.h - a partitioned program as ONNX files -----------*- C++ -*-===//
//
// Each rank's program as an ONNX model that other runtimes run: local shapes, weights as the rank's shards beside it, and
// collectives as nodes (docs/export.md says what each means).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXPORT_ONNX_EXPORT_H
#define CLEAVE_EXPORT_ONNX_EXPORT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string_view>

namespace cleave::onnx {

/// The domain of collectives that are Cleave's own, and its version.
constexpr llvm::StringLiteral kOwnDomain = "cleave";
constexpr int64_t kOwnVersion = 1;
/// The version of ONNX's own ops, and that of the file format.
constexpr int64_t kOpset = 23;
constexpr int64_t kFileVersion = 11;

/// What collectives become: onnxruntime's ops where these mean the same, else Cleave's own; or these alone.
enum class CollectiveOps { Auto, Own };

struct ExportOptions {
  CollectiveOps collectives = CollectiveOps::Auto;
};

/// What was written.
struct ExportSummary {
  int64_t ranks = 0, files = 0, nodes = 0, collectives = 0;
  /// Of weights, in all files.
  int64_t bytes = 0;
};

struct OnnxGraph;
struct GraphDeleter {
  void operator()(OnnxGraph *graph) const;
};
using OnnxGraphPtr = std::unique_ptr<OnnxGraph, GraphDeleter>;

/// The graph that all ranks share, or, of a pipeline, those on one place of it. Null after an error on an op that ONNX has no form for.
/// `func` stays as it is. Preconditions: it is partitioned; of a pipeline it is a rank's, behind pipe-inline.
OnnxGraphPtr makeGraph(mlir::func::FuncOp func, const ExportOptions &options);

/// What ranks run: all of them one program, or those on each place of a pipeline their own.
struct ExportedProgram {
  OnnxGraphPtr graph;
  mlir::func::FuncOp func;
};

/// Whether `writeModels` may give a file this name: `rank-3.onnx`, `rank-3.data`, `export.json`.
bool isExportedName(std::string_view name);

/// Writes a model for each set of ranks that have equal ones, `rank-N.onnx` with the shards of weights in `rank-N.data`, N being
/// the first of them, and, last, `export.json`. The folder is made if it is not there. Errors: a file cannot be written; what
/// is wrong with a weight's file is emitted at the parameter, and the failure says no more than that.
llvm::Expected<ExportSummary> writeModels(llvm::ArrayRef<ExportedProgram> programs, llvm::StringRef folder);

} // namespace cleave::onnx

#endif // CLEAVE_EXPORT_ONNX_EXPORT_H
