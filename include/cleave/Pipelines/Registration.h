//===- Registration.h - dialects and passes for the tools -------*- C++ -*-===//
//
// Every tool that reads IR registers the same things: what one of them prints, the others read.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PIPELINES_REGISTRATION_H
#define CLEAVE_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace cleave {

/// Adds Cleave's dialects and the upstream dialects that they stand in.
void registerDialects(mlir::DialectRegistry &registry);

/// Leaves out of --help what the shared LLVM library registers for itself. Call it before the tool's own options.
void hideForeignOptions();

/// Registers Cleave's passes and pipelines, and the upstream passes on any IR, for textual pipelines. Call it once.
void registerPasses();

} // namespace cleave

#endif // CLEAVE_PIPELINES_REGISTRATION_H
