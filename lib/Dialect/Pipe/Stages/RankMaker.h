//===- RankMaker.h - the function of one rank of the pipeline ---*- C++ -*-===//
//
// What pipe-lower makes of a row of a table. Between two actions a rank has values of microbatches, and values outside of the loop: of several
// steps without a flush by the weights and the batch that they are made of.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_STAGES_RANKMAKER_H
#define CLEAVE_LIB_DIALECT_PIPE_STAGES_RANKMAKER_H

#include "CallSteps.h"
#include "Staged.h"

#include "mlir/IR/Builders.h"

#include <map>

namespace cleave::pipe {

/// The attributes of argument or result `index` of the whole (null: none) for the rank that has it.
mlir::DictionaryAttr withIndex(mlir::DictionaryAttr attributes, unsigned index, mlir::Builder builder);

/// Makes the function of one rank.
class RankMaker {
public:
  RankMaker(Staged &staged, int32_t rank, const StepSignature &signature, bool isBehind)
      : staged(staged), rank(rank), signature(signature), isBehind(isBehind), builder(staged.func),
        loc(staged.func.getLoc()), perStep(static_cast<int32_t>(staged.loop.getCount())),
        steps(staged.table.numMicrobatches / perStep) {}

  llvm::LogicalResult run();
  mlir::func::FuncOp getMade() const { return made; }

private:
  llvm::LogicalResult act(const schedule::Action &action);
  llvm::LogicalResult compute(int32_t unit, int32_t microbatch);
  llvm::LogicalResult pass(const schedule::Action &action);
  llvm::LogicalResult choose(int32_t microbatch);
  llvm::LogicalResult finishStep(int32_t step);
  llvm::LogicalResult checkAlone();
  mlir::FailureOr<mlir::Value> advance(mlir::BlockArgument state, int32_t step);
  mlir::FailureOr<mlir::Value> advanceAlone(mlir::Value next, int32_t step);
  void keepResults(mlir::Operation *call, int32_t microbatch);
  void add(mlir::Value &sum, spmd::ReductionKind kind, mlir::Value addend);
  void combine(unsigned result, spmd::ReductionKind kind, int32_t microbatch, mlir::Value addend);
  mlir::FailureOr<mlir::Value> getInner(mlir::Value value, int32_t microbatch);
  mlir::Value getOuter(mlir::Value value);
  mlir::Value getPart(unsigned input, int32_t microbatch);
  llvm::LogicalResult update(int32_t stage);
  void joinResults(std::optional<int32_t> only = std::nullopt);
  void exchange(int32_t sender, int32_t receiver, int64_t channel, llvm::ArrayRef<mlir::Value> values);
  void gatherWays(std::optional<int32_t> only);
  void sendHome(int32_t stage);
  void shareStates();
  void shareInvariants();
  void shareInvariant(mlir::Operation *call);
  void runAfter();
  void receive(mlir::Operation *behind);
  void finish(mlir::Operation *ret);

  Staged &staged;
  int32_t rank;
  const StepSignature &signature;
  /// Weights of a microbatch are those of the step before.
  bool isBehind;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::func::FuncOp made;
  /// Of the microbatches of the loop; of those of the table as many steps.
  int32_t perStep, steps;
  /// The weights and the batch that values outside of the loop are made of: how often weights have been updated; which step's batch.
  std::pair<int32_t, int32_t> now = {0, 0};
  /// The pair whose calls are being made, as they say it (`kPairAttr`); how many there are.
  std::optional<int64_t> pair;
  int64_t numPairs = 0;
  /// Updates done; microbatches of each step whose W is done; the version that each microbatch reads.
  int32_t numUpdates = 0;
  std::map<int32_t, int32_t> numDone, versions;
  /// For values outside of the loop, by what they are made of; for values in the loop, by microbatch; parts of inputs of the loop.
  std::map<std::pair<int32_t, int32_t>, llvm::DenseMap<mlir::Value, mlir::Value>> outers;
  llvm::DenseMap<mlir::Value, mlir::Value> &getOuters() { return outers[now]; }
  /// Of each step what it returns.
  std::vector<llvm::SmallVector<mlir::Value>> given;
  llvm::DenseMap<std::pair<mlir::Value, int32_t>, mlir::Value> inner;
  llvm::DenseMap<std::pair<unsigned, int32_t>, mlir::Value> parts;
  /// Per result of the loop: its parts by microbatch, or what is equal in all of these.
  std::vector<llvm::SmallVector<mlir::Value>> gathered;
  /// What is combined over microbatches: so far; addends that may wait for those of earlier ones; whose turn it is, of those of the way.
  struct Sum {
    mlir::Value value;
    llvm::DenseMap<int32_t, mlir::Value> early;
    size_t turn = 0;
  };
  /// By result of the loop and way.
  std::map<std::pair<unsigned, size_t>, Sum> sums;
  /// Values behind the loop that ranks have of others; the same on all ranks.
  llvm::DenseSet<std::pair<int32_t, mlir::Value>> arrived;
};

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_STAGES_RANKMAKER_H
