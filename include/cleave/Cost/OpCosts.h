//===- OpCosts.h - what one op takes ----------------------------*- C++ -*-===//
//
// Of an op before kernels are formed and after: its flops by its sharding rule, the bytes that it reads and writes, each once, what it
// sends; of a kernel the flops of its body, and of what it reads no more than it uses, as rows of a table that are looked up. Movement becomes
// part of what reads it, and takes nothing by itself.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COST_OPCOSTS_H
#define CLEAVE_COST_OPCOSTS_H

#include "cleave/Cost/OpTimes.h"
#include "cleave/Dialect/Spmd/IR/SameRule.h"
#include "mlir/IR/SymbolTable.h"

namespace cleave::cost {

/// What one run of an op takes on one rank.
struct OpCost {
  double flops = 0;
  double computeNs = 0, communicationNs = 0;

  double getNs() const { return computeNs + communicationNs; }
};

/// Bytes of a tensor or buffer; 0 for other values.
int64_t countBytes(mlir::Value value);

/// In the words of spmd (`all_reduce`): once memory is planned, a collective is one of several kinds, and a permute an exchange.
llvm::StringRef getKindOfCollective(mlir::Operation *op);

/// The part of a batch that an op is counted for: flops and what is sent are divided by `parts`, bytes of a value are what
/// `countBytes` says.
struct Share {
  int64_t parts = 1;
  llvm::function_ref<int64_t(mlir::Value)> countBytes = cost::countBytes;
};

/// Costs of the ops of one program. Equal layers are made of equal ops: what was found of one holds for all.
class OpCosts {
public:
  /// Null `times`: nothing takes time, flops are counted. Null `symbols`: no op launches a kernel by name. Both outlive this.
  explicit OpCosts(const OpTimes *times, const mlir::SymbolTable *symbols = nullptr) : times(times), symbols(symbols) {}

  /// Of one run; of a kernel, those of its body.
  double countFlops(mlir::Operation &op);
  /// Of one run; of a loop (nn.loop) its body as often as it was counted for in decisions, or will be.
  OpCost get(mlir::Operation &op, const Share &share = {});

private:
  struct Work {
    double flops = 0;
    bool isMovement = true;
  };

  Work getWork(mlir::Operation &op);
  double countKernel(llvm::StringRef name);
  double countBody(mlir::Block &body);
  OpCost getLoop(mlir::Operation &op, const Share &share);
  mlir::Block *findBody(mlir::Operation &op);
  double countReadElements(mlir::Value value, unsigned depth);
  double getReadShare(mlir::Block *body, unsigned operand);
  double getComputeNs(mlir::Operation &op, double flops, const Share &share);
  double getCommunicationNs(mlir::Operation &op, const Share &share);

  const OpTimes *times;
  const mlir::SymbolTable *symbols;
  spmd::SameRuleMap<Work> known;
};

} // namespace cleave::cost

#endif // CLEAVE_COST_OPCOSTS_H
