//===- SameRule.cpp - ops that have one rule ------------------------------===//
//
// An op's rule is made of its name, its properties and the types of its operands and results, and of nothing else; so
// these are compared, by the hashes and comparisons that the op's definition generates. Any parameter may be split as its type
// lets it be: a model has as many as there are names, and few types.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/SameRule.h"

#include "cleave/Dialect/Spmd/IR/Spmd.h"

using namespace mlir;
using namespace cleave::spmd;

/// Parameters differ in what they are called only, which no rule asks.
static bool isByTypes(Operation *op) { return isa<ParameterOpInterface>(op); }

unsigned SameRuleInfo::getHashValue(const Operation *constOp) {
  auto *op = const_cast<Operation *>(constOp);
  return llvm::hash_combine(op->getName(), isByTypes(op) ? llvm::hash_code(0) : op->hashProperties(),
                            llvm::hash_combine_range(op->operand_type_begin(), op->operand_type_end()),
                            llvm::hash_combine_range(op->result_type_begin(), op->result_type_end()));
}

bool SameRuleInfo::isEqual(const Operation *constLhs, const Operation *constRhs) {
  auto *lhs = const_cast<Operation *>(constLhs), *rhs = const_cast<Operation *>(constRhs);
  if (lhs == rhs)
    return true;
  auto isMarker = [](Operation *op) { return op == getEmptyKey() || op == getTombstoneKey(); };
  if (isMarker(lhs) || isMarker(rhs))
    return false;
  return lhs->getName() == rhs->getName() &&
         (isByTypes(lhs) ||
          lhs->getName().compareOpProperties(lhs->getPropertiesStorage(), rhs->getPropertiesStorage())) &&
         lhs->getOperandTypes() == rhs->getOperandTypes() && lhs->getResultTypes() == rhs->getResultTypes();
}
