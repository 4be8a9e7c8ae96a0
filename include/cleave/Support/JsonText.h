//===- JsonText.h - JSON that somebody else has written ---------*- C++ -*-===//
#ifndef CLEAVE_SUPPORT_JSONTEXT_H
#define CLEAVE_SUPPORT_JSONTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace cleave {

/// What the text says. LLVM's parser calls itself for each level, so that a text of brackets alone would end the process: one that nests
/// deeper than 32 levels is an error, as what is no JSON is.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace cleave

#endif // CLEAVE_SUPPORT_JSONTEXT_H
