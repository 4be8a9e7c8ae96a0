//===- Page.h - a decision as a page, for callers of the driver -*- C++ -*-===//
#ifndef CLEAVE_DRIVER_PAGE_H
#define CLEAVE_DRIVER_PAGE_H

#include "cleave/Compiler/Compilation.h"

namespace cleave::driver {

/// What a page shows of a model under its plan (docs/page.md), next to that of `compare`, another plan's file, and to `measured`, the trace of a
/// run; both may be empty. Nothing after an error, which `compilation` has.
std::optional<llvm::json::Object> makePage(Compilation &compilation, const std::string &compare,
                                           const std::string &measured);
/// As one file of HTML.
void writePage(llvm::raw_ostream &os, llvm::json::Object page);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_PAGE_H
