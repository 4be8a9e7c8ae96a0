//===- Suggest.h - what a user may have meant -------------------*- C++ -*-===//
#ifndef CLEAVE_SUPPORT_SUGGEST_H
#define CLEAVE_SUPPORT_SUGGEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace cleave {

/// Up to `count` of `names` that come closest to `wanted`, a name or a pattern, nearest first: the fewest characters to insert,
/// remove or replace, `*` standing for any text and letters for both cases. Names that are too far away (a third of the text)
/// are left out.
std::vector<std::string> findNearestNames(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names,
                                          size_t count = 3);

/// `; did you mean 'a' or 'b'?`, or nothing if no name comes close.
std::string suggestNames(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names);

} // namespace cleave

#endif // CLEAVE_SUPPORT_SUGGEST_H
