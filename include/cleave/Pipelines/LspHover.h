//===- LspHover.h - what an editor shows of ops and shardings ---*- C++ -*-===//
//
// MLIR's language server has no hook for hover texts, so its answers are added to on their way out.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_LSPHOVER_H
#define CLEAVE_PIPELINES_LSPHOVER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace cleave {

/// A message of the server, as JSON: if it is a hover text, with the description of the op that it is about, or with the
/// sharding of the value in the notation of plans and the type that one rank has. Others come back as they are. Types are
/// read in `context`.
std::string describeHover(llvm::StringRef message, mlir::MLIRContext &context);

/// Runs `server` in a process of its own, and changes each message (`Content-Length: N`, an empty line, N bytes) that it
/// writes to its standard output. Returns its exit code.
int filterMessages(llvm::function_ref<int()> server, llvm::function_ref<std::string(llvm::StringRef)> change);

} // namespace cleave

#endif // CLEAVE_PIPELINES_LSPHOVER_H
