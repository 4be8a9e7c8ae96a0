//===- Status.h - errors of libraries without MLIR --------------*- C++ -*-===//
//
// Libraries that do not link MLIR report what a user can cause as `llvm::Error` / `llvm::Expected`. The text is what
// stands after `FILE: error: `: one line, lower case, no full stop; it says what, where, and got against expected. The
// caller, who knows the file in question, prints the prefix.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_STATUS_H
#define CLEAVE_SUPPORT_STATUS_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace cleave {

/// An error with a text in the style of `llvm::formatv`: `makeError("dim {0} is {1}, want {2}", dim, got, want)`.
/// Precondition: `format` is a literal; text from a file is only ever an argument.
template <size_t N, typename... Args> llvm::Error makeError(const char (&format)[N], Args &&...args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv(format, std::forward<Args>(args)...).str());
}

/// The same error with `prefix` before its text.
llvm::Error addContext(llvm::StringRef prefix, llvm::Error error);

/// Text from an untrusted file as it may appear in a message: quoted, control characters and invalid UTF-8 as \xNN,
/// at most 200 bytes of it.
std::string quote(llvm::StringRef text);

} // namespace cleave

#endif // CLEAVE_SUPPORT_STATUS_H
