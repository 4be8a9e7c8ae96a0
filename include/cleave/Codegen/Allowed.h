//===- Allowed.h - what products may do to their numbers --------*- C++ -*-===//
//
// `--allow WHAT`: a row says what it is called, where it works, and how far results may be off then. The command line, the report, the
// program's metadata, --check and the kernels' target all take it from here as one value.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CODEGEN_ALLOWED_H
#define CLEAVE_CODEGEN_ALLOWED_H

#include <cstdint>

namespace cleave::codegen {

/// What products may do to the numbers that they multiply; sums stay what they are.
enum class Allowed : uint8_t {
  Nothing,
  Tf32, ///< contractions, convolutions and attention of f32 take 10 bits of each operand's fraction
};

struct AllowedTraits {
  const char *word;
  bool isOfDevices; ///< no kernel of the host does it
  double ofRow;     ///< how far --check lets f32 be off, of the largest in its row along the last dim
};

/// In the order of the enum.
inline constexpr AllowedTraits kAllowed[] = {
    {"nothing", false, 0},
    {"tf32", true, 2.5e-3},
};

constexpr const AllowedTraits &getTraits(Allowed allowed) { return kAllowed[static_cast<unsigned>(allowed)]; }

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_ALLOWED_H
