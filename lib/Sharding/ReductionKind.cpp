//===- ReductionKind.cpp - how partial results combine --------------------===//
//
// The words are those of plans, of the text form of shardings and of collectives, in the order of the enum.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ReductionKind.h"

#include <iterator>

using namespace cleave::spmd;

static constexpr llvm::StringLiteral kWords[] = {"sum", "prod", "max", "min"};

llvm::StringRef cleave::spmd::stringifyReductionKind(ReductionKind kind) { return kWords[static_cast<uint32_t>(kind)]; }

std::optional<ReductionKind> cleave::spmd::symbolizeReductionKind(llvm::StringRef word) {
  for (uint32_t kind = 0; kind < std::size(kWords); ++kind)
    if (kWords[kind] == word)
      return static_cast<ReductionKind>(kind);
  return std::nullopt;
}
