//===- Style.h - plans that people know, by name ----------------*- C++ -*-===//
//
// What each splits says Search/Styles.h; here are their words, which the command line and plan files have.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_STYLE_H
#define CLEAVE_PLAN_STYLE_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace cleave::spmd {

enum class Style : uint8_t { Data, Fsdp, Megatron, Sequence, Context, Expert, Channels, Spatial };

/// In the order of the enum; and what an axis without a name is then called.
inline constexpr llvm::StringLiteral kStyleWords[] = {"data",    "fsdp",   "megatron", "sequence",
                                                      "context", "expert", "channels", "spatial"};
inline constexpr llvm::StringLiteral kStyleAxes[] = {"data",    "data",   "model", "model",
                                                     "context", "expert", "model", "rows"};

/// `megatron`, or `data,megatron`: one for each axis, or one for all.
llvm::Expected<std::vector<Style>> parseStyles(llvm::StringRef text);
/// The same text.
std::string formatStyles(llvm::ArrayRef<Style> styles);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_STYLE_H
