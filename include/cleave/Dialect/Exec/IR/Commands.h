//===- Commands.h - what commands send --------------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECT_EXEC_IR_COMMANDS_H
#define CLEAVE_DIALECT_EXEC_IR_COMMANDS_H

#include "cleave/Dialect/Exec/IR/Exec.h"

namespace cleave::exec {

/// Bytes that a rank sends of source `index` alone; of all sources they add up to `getWireBytes`.
int64_t countWireBytes(CollectiveOp op, unsigned index);

} // namespace cleave::exec

#endif // CLEAVE_DIALECT_EXEC_IR_COMMANDS_H
