//===- SentReport.h - what reports say of what is sent ----------*- C++ -*-===//
#ifndef CLEAVE_LIB_PIPELINES_SENTREPORT_H
#define CLEAVE_LIB_PIPELINES_SENTREPORT_H

#include "cleave/Pipelines/Report.h"
#include "mlir/IR/Operation.h"

namespace cleave {

/// What an op sends to other ranks, value by value; none for what sends nothing.
std::vector<CollectiveReport> describeSent(mlir::Operation *op);

/// Of the time that sending all of it together takes, each gets its part by bytes.
void share(llvm::MutableArrayRef<CollectiveReport> sent, double ns);

/// What is in a loop counts for all iterations that decisions counted.
void repeat(llvm::MutableArrayRef<CollectiveReport> sent, int64_t runs);

/// Adds what one op sends, which totals count once.
void addSent(std::vector<CollectiveReport> sent, Report &report);

} // namespace cleave

#endif // CLEAVE_LIB_PIPELINES_SENTREPORT_H
