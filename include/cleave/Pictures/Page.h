//===- Page.h - a decision as one HTML file ---------------------*- C++ -*-===//
//
// A page needs nothing else: no server, no network. What it shows is a JSON model (docs/page.md), which is in it as it is given; styles and
// scripts are those of lib/Pictures/page.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PICTURES_PAGE_H
#define CLEAVE_PICTURES_PAGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace cleave::pictures {

/// The model of a page, version 1: `plans` are objects as `Compilation::describeForPage` makes them, one, or two that are compared;
/// `differences` say in words where two differ.
llvm::json::Object makePage(llvm::StringRef model, llvm::json::Array plans,
                            llvm::ArrayRef<std::string> differences = {});

/// The file. `note` stands below its title.
void writePage(llvm::raw_ostream &os, llvm::json::Object page, llvm::StringRef note);

} // namespace cleave::pictures

#endif // CLEAVE_PICTURES_PAGE_H
