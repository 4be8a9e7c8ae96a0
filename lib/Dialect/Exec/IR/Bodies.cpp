//===- Bodies.cpp - which kernels are the same ----------------------------===//
//
// A body is hashed with its values numbered in order, so that equal bodies have equal hashes wherever they stand.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace cleave;

static constexpr auto kIgnored = static_cast<OperationEquivalence::Flags>(OperationEquivalence::IgnoreLocations |
                                                                          OperationEquivalence::IgnoreDiscardableAttrs);

llvm::hash_code cleave::exec::hashBody(Region &body) {
  llvm::DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) { return numbers.try_emplace(value, numbers.size()).first->second; };
  llvm::hash_code hash(0);
  for (BlockArgument argument : body.getArguments())
    hash = llvm::hash_combine(hash, number(argument), argument.getType());
  for (Operation &op : body.front()) {
    // Operands by number; the hash of an op itself is of its name, properties and result types.
    for (Value operand : op.getOperands())
      hash = llvm::hash_combine(hash, number(operand));
    hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(&op, OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::ignoreHashValue, kIgnored));
    for (Value result : op.getResults())
      number(result);
  }
  return hash;
}

bool cleave::exec::haveEqualBodies(Region &a, Region &b) {
  return OperationEquivalence::isRegionEquivalentTo(&a, &b, kIgnored);
}
