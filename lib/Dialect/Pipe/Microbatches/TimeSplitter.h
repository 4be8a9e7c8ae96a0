//===- TimeSplitter.h - a function for other samples ------------*- C++ -*-===//
//
// Walks through a function and builds it anew for another number of samples, by the sharding rules of its ops (TimeSplitter.cpp). What is the
// batch, and what is done with states and annotations, is the business of SplitInTime.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_TIMESPLITTER_H
#define CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_TIMESPLITTER_H

#include "BatchDims.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "mlir/IR/IRMapping.h"

namespace cleave::nn {
class LoopOp;
class YieldOp;
} // namespace cleave::nn

namespace cleave::pipe {

/// How a value is there while microbatches go by.
struct InTime {
  enum class Kind { Invariant, Split, Accumulated };
  Kind kind = Kind::Invariant;
  /// Of a split value: the dim that is split, and the input whose batch that is.
  unsigned dim = 0, argument = 0;
  /// Of an accumulated one: what accumulates.
  mlir::Operation *accumulated = nullptr;

  bool isSplit() const { return kind == Kind::Split; }
};

/// What an op does with the batch: the factor that is it, and how its rule takes that.
struct BatchSplit {
  spmd::FactorId factor = -1;
  std::optional<spmd::ReductionKind> partial;
  /// Per result the dim that is split; nothing if it has none.
  llvm::SmallVector<std::optional<unsigned>, 1> resultDims;
};

/// How many samples of how many a program is made for.
struct SplitSizes {
  /// Extents along the batch are so many times as long as what one sample has; they become `to` times that.
  int64_t from = 1, to = 1;
  /// Where microbatches differ in size: how samples of one shard are dealt out, and to how many shards.
  std::optional<Deal> deal = std::nullopt;
  int64_t shards = 1;
  /// A stage is made for another number of samples, device by device: nothing is accumulated here, and what a whole value
  /// has for samples has to follow from constants.
  bool isOfStage = false;
};

/// Builds the body of one microbatch.
class TimeSplitter {
public:
  TimeSplitter(mlir::func::FuncOp func, const Batch &batch, SplitSizes sizes)
      : func(func), batch(batch), sizes(sizes), builder(func.getContext()),
        axis(spmd::AxisAttr::get(func.getContext(), "microbatch")),
        mesh(spmd::MeshAttr::get(func.getContext(), {"microbatch"}, {std::max<int64_t>(batch.microbatches, 2)}, {})) {}

  llvm::LogicalResult run();
  /// The least number of shards that what a plan wants of split values goes with; the function stays as it is.
  /// `others` gets the extents of all that is no batch.
  mlir::FailureOr<int64_t> countShards(llvm::DenseSet<int64_t> &others);

private:
  llvm::LogicalResult buildBody(mlir::Block &from, mlir::Block &to);
  llvm::LogicalResult splitArguments(mlir::Block &from, mlir::Block &to);
  llvm::LogicalResult split(mlir::Operation *op);
  void pinAddends(spmd::PinOp pin);
  llvm::LogicalResult splitOfSplit(mlir::Operation *op, const InTime &source);
  llvm::LogicalResult splitCollective(mlir::Operation *op, const InTime &source);

  /// A loop whose body is being made.
  struct LoopSplit;
  llvm::LogicalResult splitLoop(nn::LoopOp loop, const InTime &source);
  llvm::LogicalResult splitBody();
  llvm::LogicalResult splitYield(nn::YieldOp yield);
  mlir::FailureOr<mlir::Value> splitNextOf(unsigned index, mlir::Value next);
  llvm::LogicalResult takeInitial(LoopSplit &own, llvm::SmallVectorImpl<mlir::Value> &initial);
  llvm::LogicalResult accumulates(nn::LoopOp loop, const llvm::Twine &what, const InTime &time, const InTime &source);
  mlir::Value getPartOfArgument(mlir::BlockArgument argument, unsigned dim);
  void forgetParts(mlir::Block &block);
  void makeInvariantLoop(nn::LoopOp loop, mlir::IRMapping &mapping);

  llvm::LogicalResult checkStates(mlir::Operation *terminator);
  llvm::LogicalResult checkResults(mlir::Operation *before, mlir::Operation *after);
  llvm::LogicalResult checkAnnotation(spmd::AnnotationAttr annotation, llvm::StringRef name, mlir::Type type,
                                      const InTime &present);
  /// `value`, or what a pin makes of it: where `annotation` pads the batch inside the loop, and callers see other shards (`ofCallers`).
  mlir::Value pinPadded(mlir::Value value, llvm::StringRef name, spmd::AnnotationAttr annotation, const InTime &time,
                        mlir::OpBuilder &at, spmd::AnnotationAttr &ofCallers);

  /// The factor that split operands bring, the same for all; -1 after an error.
  spmd::FactorId findFactor(mlir::Operation *op, const spmd::ShardingRule &rule);
  /// What `factor` split means to an op; nothing, and the reason in `why`, if it cannot be split by itself.
  std::optional<BatchSplit> findSplit(mlir::Operation *op, const spmd::ShardingRule &rule, spmd::FactorId factor,
                                      std::string &why);
  /// The operands of a microbatch; false, and the reason, if one has the batch where it cannot be split.
  bool takeParts(mlir::Operation *op, const spmd::ShardingRule &rule, spmd::FactorId factor,
                 llvm::SmallVectorImpl<mlir::Value> &operands, std::string &why);
  bool build(mlir::Operation *op, const spmd::ShardingRule &rule, const BatchSplit &split,
             llvm::ArrayRef<mlir::Value> operands, llvm::SmallVectorImpl<mlir::Value> &results);

  mlir::Value getPart(mlir::Value whole, unsigned dim);
  mlir::Value makeSmall(mlir::Value whole, unsigned dim, unsigned depth);
  mlir::Value makeSmallAnew(mlir::Operation *op, unsigned result, unsigned dim, unsigned depth);

  mlir::RankedTensorType getPartType(mlir::Type type, unsigned dim) const;
  mlir::ElementsAttr findRepeated(mlir::ElementsAttr elements, unsigned dim) const;
  /// `maker`: what made of all microbatches what the op would use, for a note; null where the error names it.
  llvm::LogicalResult mixes(mlir::Operation *op, const llvm::Twine &why, const InTime &source,
                            mlir::Operation *maker = nullptr);

  mlir::func::FuncOp func;
  const Batch &batch;
  SplitSizes sizes;
  /// Shards that annotations have been seen to split the batch into; checked only once all are known.
  int64_t shards = 1;
  bool onlyCounts = false;
  /// By argument or result, what a plan wants of it at the boundary, where that is other than inside; null elsewhere.
  llvm::SmallVector<spmd::AnnotationAttr> ofArguments, ofResults;
  /// Of which all that is split has a multiple, in one order; 0: nothing is split.
  int64_t samples = 0;
  mlir::OpBuilder builder;
  spmd::AxisAttr axis;
  spmd::MeshAttr mesh;
  /// Values of the batch -> those of a microbatch, and how these are there.
  mlir::IRMapping locals;
  llvm::DenseMap<mlir::Value, InTime> times;
  /// By whole value and dim: what a microbatch has of it, and what is equal in all microbatches (null: nothing).
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> parts, smalls;
  /// The innermost one; null in the function's own block.
  LoopSplit *loopSplit = nullptr;
};

} // namespace cleave::pipe

#endif // CLEAVE_LIB_DIALECT_PIPE_MICROBATCHES_TIMESPLITTER_H
