//===- JsonText.h - JSON that somebody else has written ---------*- C++ -*-===//
#ifndef CLEAVE_SUPPORT_JSONTEXT_H
#define CLEAVE_SUPPORT_JSONTEXT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace cleave {

/// What the text says. LLVM's parser calls itself for each level, so that a text of brackets alone would end the process: one that nests
/// deeper than 32 levels is an error, as what is no JSON is.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

/// Hands out the characters of a text in order, without those in its strings: what a document would be made of can be counted so,
/// without making it.
void forEachOutsideStrings(llvm::StringRef text, llvm::function_ref<void(char)> body);

} // namespace cleave

#endif // CLEAVE_SUPPORT_JSONTEXT_H
