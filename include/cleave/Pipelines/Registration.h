//===- Registration.h - dialects and passes for the tools -------*- C++ -*-===//
//
// Every tool that reads IR registers the same things: what one of them prints, the others read.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_REGISTRATION_H
#define CLEAVE_PIPELINES_REGISTRATION_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace cleave {

/// Adds Cleave's dialects and the upstream dialects that they stand in.
void registerDialects(mlir::DialectRegistry &registry);

/// Diagnostics of every context with these dialects name the ONNX nodes that they are about, `node "/enc/MatMul" (MatMul)`,
/// and stand at `file` where a location has no place in one. Not for --verify-diagnostics, which wants locations as they are.
void nameNodesInDiagnostics(mlir::DialectRegistry &registry, llvm::StringRef file);

/// A reproducer, if one is asked for, keeps locations: plans and messages name what stands in them. Call it when the command
/// line is parsed.
void keepLocationsInReproducers();

/// What every tool does first: crashes are to be reported to this project, and --help leaves out what the shared LLVM
/// library registers for itself; memory that runs out is an error of `tool`.
void setUpTool(const char *tool);

/// Makes `--mlir-pass-statistics` print what Cleave's passes did when LLVM is shut down. Packaged LLVM counts nothing in passes: what
/// they have are statistics of LLVM that are always on (docs/tools.md). Call it when the command line is parsed.
void printStatistics();

/// `--debug-only=PASS,..`, in builds with assertions; packaged LLVM has none. Call it before the command line is parsed.
void registerDebugOptions();

/// Registers Cleave's passes and pipelines, and the upstream passes on any IR, for textual pipelines. Call it once.
void registerPasses();

} // namespace cleave

#endif // CLEAVE_PIPELINES_REGISTRATION_H
