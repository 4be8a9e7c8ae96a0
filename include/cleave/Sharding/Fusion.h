//===- Fusion.h - which ops may share a kernel ------------------*- C++ -*-===//
//
// One table for all who ask: deciding, which foresees kernels before anything is partitioned (Solver/Launches.h), and fusion itself
// (Exec/Fusion/Clusters.h), which also asks whether it pays. A kernel walks elements, rows or tiles, and an op that reads what it
// made goes on with it or not:
//
//   kernel  │ map         movement   transpose   row, scan
//   ────────┼─────────────────────────────────────────────────
//   points  │ any         any        any         any
//   rows    │ any         never      never       the same rows
//   tiles   │ any         never      as last     never
//
// Ops of other forms begin a kernel, and only that of an anchor, on whose tiles others go on.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SHARDING_FUSION_H
#define CLEAVE_SHARDING_FUSION_H

#include "cleave/Sharding/Form.h"

namespace cleave::spmd {

/// What the loops of a kernel go through.
enum class KernelKind : uint8_t {
  Points, ///< elements
  Rows,   ///< whole rows of one shape along the same dims
  Tiles,  ///< tiles of the result of a contraction, convolution, attention or window, its anchor
};

/// Whether what reads a value may go on in the kernel that made it.
enum class Joining : uint8_t {
  Never,
  Any,      ///< where it reads in place, or pays
  SameRows, ///< where its rows are those of the kernel
  AsLast,   ///< where it is the one reader, and then nothing follows
};

/// True for what a kernel is built around.
constexpr bool isAnchorForm(Form form) {
  return form == Form::Window || form == Form::Contraction || form == Form::Convolution || form == Form::Attention;
}
constexpr bool isRowForm(Form form) { return form == Form::Row || form == Form::Scan; }
/// True for what may go on in a kernel that others began.
constexpr bool isFusableForm(Form form) { return form == Form::Map || form == Form::Movement || isRowForm(form); }

/// Of the kernel that an op of this form begins.
constexpr KernelKind getKernelKind(Form form) {
  return isAnchorForm(form) ? KernelKind::Tiles : isRowForm(form) ? KernelKind::Rows : KernelKind::Points;
}

/// The table above. `transposes`: of movement, that each element of the operand is one of the result.
constexpr Joining getJoining(KernelKind kernel, Form form, bool transposes) {
  if (!isFusableForm(form))
    return Joining::Never;
  if (kernel == KernelKind::Points || form == Form::Map)
    return Joining::Any;
  if (form == Form::Movement)
    return kernel == KernelKind::Tiles && transposes ? Joining::AsLast : Joining::Never;
  return kernel == KernelKind::Rows ? Joining::SameRows : Joining::Never;
}

/// Whether two kernels, of which an op reads, may become one with it.
constexpr Joining getMerging(KernelKind one, KernelKind other) {
  if (one == KernelKind::Points || other == KernelKind::Points)
    return Joining::Any;
  return one == KernelKind::Rows && other == KernelKind::Rows ? Joining::SameRows : Joining::Never;
}

} // namespace cleave::spmd

#endif // CLEAVE_SHARDING_FUSION_H
