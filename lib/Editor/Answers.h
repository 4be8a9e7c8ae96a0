//===- Answers.h - what an editor asks about a plan -------------*- C++ -*-===//
#ifndef CLEAVE_LIB_EDITOR_ANSWERS_H
#define CLEAVE_LIB_EDITOR_ANSWERS_H

#include "Analysis.h"
#include "Model.h"

namespace cleave::editor {

/// Keys, and what their values may be, of the tables that also the reader of plans has; names of `model`, which may be null. The word at `offset`
/// is what is replaced, and only what has its part in front of `offset` is offered.
llvm::lsp::CompletionList complete(const Text &text, size_t offset, const Model *model);

/// What a key means, what an axis is, what a rule picks. Nothing where there is nothing to say.
std::optional<llvm::lsp::Hover> hover(const Text &text, size_t offset, const Analysis &analysis, const Model *model);

/// Behind rules of the lines `range` how many tensors they pick and what of them a rank has, behind the mesh how many ranks there are.
std::vector<llvm::lsp::InlayHint> listHints(const Text &text, const llvm::lsp::Range &range, const Analysis &analysis);

/// Where the axis is named that the word at `offset` is.
std::optional<llvm::lsp::Range> findDefinition(const Text &text, size_t offset);

/// What is said of a plan, as the protocol has diagnostics of the document `uri`; what is about no place of it is about `fallback`, a line from 0.
llvm::json::Array listDiagnostics(const Text &text, const Analysis &analysis, llvm::StringRef uri, size_t fallback);

} // namespace cleave::editor

#endif // CLEAVE_LIB_EDITOR_ANSWERS_H
