//===- KernelRules.h - what kernels may hold --------------------*- C++ -*-===//
//
// What passes that fuse ops and plan memory ask of code generation, of a region as in Codegen.h.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CODEGEN_KERNELRULES_H
#define CLEAVE_CODEGEN_KERNELRULES_H

#include "cleave/Codegen/Device/Regions.h"

namespace cleave::codegen {

/// True if `region` can be one kernel; else `reason` says why not.
bool canEmit(mlir::Block &region, std::string &reason);

/// True if the kernel of `region` may write result number `result` where argument number `argument` lies: they have as many
/// bytes, and of what is written nothing is read afterwards. Holds for several pairs at once. Where one tensor is passed as
/// several arguments, it must hold for each. Precondition: `canEmit(region)`.
bool canBeInPlace(mlir::Block &region, unsigned argument, unsigned result);

/// What kernels may hold, and where their results may lie, by whose they are: the host's or a device's.
struct KernelRules {
  bool (*canEmit)(mlir::Block &region, std::string &reason);
  bool (*canBeInPlace)(mlir::Block &region, unsigned argument, unsigned result);

  static KernelRules get(bool forDevices) {
    return forDevices ? KernelRules{canEmitDevice, canBeInPlaceOnDevice}
                      : KernelRules{codegen::canEmit, codegen::canBeInPlace};
  }
};

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_KERNELRULES_H
