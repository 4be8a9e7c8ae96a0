//===- ToolFiles.h - what a tool's command line reads, writes ---*- C++ -*-===//
//
// LLVM opens the file of `-o` when all has been read, and empties it then: of `cleave-opt m.mlir -o m.mlir` the model is lost where a
// pass takes away what it was for. So these tools refuse what `cleave` refuses (Runtime/CommandFiles.h).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_TOOLFILES_H
#define CLEAVE_SUPPORT_TOOLFILES_H

#include "cleave/Runtime/CommandFiles.h"
#include "llvm/ADT/ArrayRef.h"

namespace cleave {

/// Of a command line for LLVM's options, without the program: outputs are what options for outputs name, inputs all other files that any
/// word names, in pass pipelines too.
runtime::CommandFiles listToolFiles(llvm::ArrayRef<const char *> words);

/// False, with a line to the user, where something would be lost.
bool checkToolFiles(llvm::StringRef tool, const runtime::CommandFiles &files);

} // namespace cleave

#endif // CLEAVE_SUPPORT_TOOLFILES_H
