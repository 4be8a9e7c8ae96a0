//===- Manifest.h - what exported files say of themselves -------*- C++ -*-===//
#ifndef CLEAVE_LIB_EXPORT_ONNX_MANIFEST_H
#define CLEAVE_LIB_EXPORT_ONNX_MANIFEST_H

#include "GraphBuilder.h"

namespace cleave::onnx {

/// A model that some ranks share.
struct ExportedFile {
  std::string model, data; ///< `data` is empty where no weights are
  std::vector<int64_t> ranks;
  int64_t bytes = 0; ///< of weights
};

/// True for nodes in which ranks meet.
bool isCollective(const Node &node);
/// The domains of all nodes, each with its version.
std::vector<std::pair<std::string, int64_t>> getDomains(const OnnxGraph &graph);
/// What a model's file says besides, the same in all files: the mesh, and how inputs and outputs are split.
std::vector<std::pair<std::string, std::string>> getProperties(const OnnxGraph &graph, mlir::func::FuncOp func);
/// `export.json` (docs/report.md).
void writeManifest(llvm::ArrayRef<ExportedProgram> programs, llvm::ArrayRef<ExportedFile> files, llvm::raw_ostream &os);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_EXPORT_ONNX_MANIFEST_H
