//===- ReductionKind.h - how partial results combine ------------*- C++ -*-===//
//
// The enum behind `#spmd.reduction` (dialects/Spmd/SpmdAttrs.td), which has the same cases in the same order.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_REDUCTIONKIND_H
#define CLEAVE_SHARDING_REDUCTIONKIND_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace cleave::spmd {

/// How the terms of a partial value combine to it, element by element.
enum class ReductionKind : uint32_t { Sum, Prod, Max, Min };

/// `sum`, `prod`, `max` or `min`.
llvm::StringRef stringifyReductionKind(ReductionKind kind);
/// The kind with that name; nothing for another word.
std::optional<ReductionKind> symbolizeReductionKind(llvm::StringRef word);

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_REDUCTIONKIND_H
