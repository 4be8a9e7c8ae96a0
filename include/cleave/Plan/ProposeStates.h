//===- ProposeStates.h - states that nobody has named -----------*- C++ -*-===//
#ifndef CLEAVE_PLAN_PROPOSESTATES_H
#define CLEAVE_PLAN_PROPOSESTATES_H

#include "cleave/Plan/Plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave::spmd {

/// Outputs that look like next values of inputs, of caches and the like, by names (`past_key_values.0.key`, `present.0.key`) and by `fits`,
/// which says of an input and an output, by number, whether one can be the other's next value. Patterns where there are several. All that
/// one of these patterns names has a partner.
std::vector<PlanState> proposeStates(llvm::ArrayRef<llvm::StringRef> inputs, llvm::ArrayRef<llvm::StringRef> outputs,
                                     llvm::function_ref<bool(size_t, size_t)> fits);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_PROPOSESTATES_H
