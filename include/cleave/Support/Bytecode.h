//===- Bytecode.h - MLIR bytecode that may be damaged -----------*- C++ -*-===//
//
// MLIR's reader of bytecode trusts what it reads: a bit that flips may end the process. So what we write says which bytes it was, in
// the name of its producer, which MLIR skips; and what others wrote is read by a child process first.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_BYTECODE_H
#define CLEAVE_SUPPORT_BYTECODE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace cleave {

/// MLIR's bytecode starts with letters of its own.
inline constexpr llvm::StringLiteral kBytecodeMagic = "ML\xefR";

/// What bytecode is to be written with as its producer, for `sealBytecode`.
inline constexpr llvm::StringLiteral kBytecodeProducer = "Cleave xxh3:0000000000000000";

/// Puts the digest of all bytes in the producer's place. Precondition: they were written with it.
void sealBytecode(std::string &bytes);

/// Bytecode that may be given to MLIR's reader. An error where it is ours, and not as we wrote it; where it is not, and `parse`, which
/// reads it in a child process, is ended there by a signal. That it cannot be read is not told here.
llvm::Error checkBytecode(llvm::StringRef bytes, llvm::function_ref<void()> parse);

} // namespace cleave

#endif // CLEAVE_SUPPORT_BYTECODE_H
