//===- OwnFaults.cpp - errors that are nobody's fault but ours ------------===//
//
// The mark is a piece of metadata, which travels with a diagnostic and is not printed.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

using namespace mlir;
using namespace cleave;

static constexpr llvm::StringLiteral kMark = "cleave: own fault";

OwnFaults::OwnFaults(MLIRContext *context)
    : ScopedDiagnosticHandler(context, [](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          diagnostic.getMetadata().push_back(DiagnosticArgument(kMark));
        // Others print it.
        return failure();
      }) {}

bool cleave::isOwnFault(mlir::Diagnostic &diagnostic) {
  return llvm::any_of(diagnostic.getMetadata(), [](const DiagnosticArgument &argument) {
    return argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::String && argument.getAsString() == kMark;
  });
}
