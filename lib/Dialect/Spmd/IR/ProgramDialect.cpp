//===- ProgramDialect.cpp - the dialect whose ops are split ---------------===//
//
// Found among the dialects of the context, of which one implements the interface.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace cleave::spmd;

const ProgramDialect &ProgramDialect::get(MLIRContext *context) {
  DialectInterfaceCollection<ProgramDialect> all(context);
  if (all.begin() == all.end())
    llvm::report_fatal_error("no dialect of the context has ops that spmd can split");
  return *all.begin();
}
