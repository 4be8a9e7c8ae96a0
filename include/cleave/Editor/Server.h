//===- Server.h - plans in an editor ----------------------------*- C++ -*-===//
//
//   editor ──stdin──▶ one thread reads messages ──queue──▶ one thread answers, in order ──stdout──▶ editor
//                                                            └ nothing to answer: looks at plans that were edited
//
// A server of the language server protocol (3.17) for plan files: what is wrong with a plan, as its reader and `cleave shard` say it; completion,
// hover texts, hints, definitions. `.mlir` files have a server of their own, cleave-lsp-server.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EDITOR_SERVER_H
#define CLEAVE_EDITOR_SERVER_H

#include "cleave/Compiler/CompileOptions.h"

namespace cleave::editor {

/// Serves standard input and output until the editor says that it ends. `options`: the model of plans that name none, which may be empty, sizes
/// of its dims, and its weights. Returns 0 where the editor shut it down before, as the protocol asks for, else 1.
int servePlans(const CompileOptions &options);

} // namespace cleave::editor

#endif // CLEAVE_EDITOR_SERVER_H
