//===- EveryChoice.h - partition one op in every way its rule allows --*- C++ -*-===//
#ifndef CLEAVE_TEST_UNIT_DIALECT_NN_PARTITION_EVERYCHOICE_H
#define CLEAVE_TEST_UNIT_DIALECT_NN_PARTITION_EVERYCHOICE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

namespace cleave {

/// Checks all choices of one op's rule by execution. `text` is a module with one function whose first op is the one
/// under test, on arguments only; integer arguments may carry `test.bound = n`: their elements are drawn from [-n, n);
/// floats may carry `test.nan`: some are NaN.
///
/// On meshes of 2, 2 x 2, 2 x 3 and 4 x 2 ranks, each axis makes each choice, as far as sizes divide. Operands arrive
/// as the choice wants them: split, or as true partial values (a reduction over a dim that is split). The function is
/// evaluated unsharded and on all ranks of its partitioned form, and the results compared; what its collectives send has
/// to be what its rule costs. Every choice must have been
/// tried on the one-dimensional and on a two-dimensional mesh. A loop may be the op: each of its values in every sharding.
void checkEveryChoice(llvm::StringRef text);

/// The same of `op`, on arguments `arguments`: both in the text form.
void check(const llvm::Twine &arguments, const llvm::Twine &op);

} // namespace cleave

#endif // CLEAVE_TEST_UNIT_DIALECT_NN_PARTITION_EVERYCHOICE_H
