//===- Partition.cpp - from the global program to one device's ------------===//
//
//   before   %r = spmd.reshard %x : tensor<8x4xf32, #rows> to tensor<8x4xf32, #replicated>
//            %y = nn.exp %r : (tensor<8x4xf32, #replicated>) -> tensor<8x4xf32, #replicated>
//   after    %r = spmd.all_gather %x dims [{"data"}, {}] : (tensor<4x4xf32>) -> tensor<8x4xf32>
//            %y = nn.exp %r : (tensor<8x4xf32>) -> tensor<8x4xf32>
//
// One pass over each function in order: a new body grows next to the old one, `locals` maps each global value to its
// per-device form. An op gets, through `PartitionContext`, its local operands and the axes that split each factor of its
// rule (`RuleMatches`); a reshard becomes the steps of its plan (`EmitReshard`). A loop's body is done like the function's.
//
//===----------------------------------------------------------------------===//
#include "../Resharding/EmitReshard.h"

#include "cleave/Dialect/Spmd/IR/Costs.h"
#include "cleave/Dialect/Spmd/IR/Even.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/IR/Partition.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PARTITION
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

#define DEBUG_TYPE "spmd-partition"

ALWAYS_ENABLED_STATISTIC(numLowered, "reshards made collectives");
ALWAYS_ENABLED_STATISTIC(numCollectives, "collectives of a rank");
ALWAYS_ENABLED_STATISTIC(numBytes, "bytes that a rank sends");

namespace {
/// Builds the per-device body of one function.
class FunctionPartitioner {
public:
  FunctionPartitioner(func::FuncOp func, MeshAtoms &atoms, const CostModel &costs)
      : func(func), atoms(atoms), rules(atoms), reshards(atoms, rules, costs), builder(func.getContext()) {}

  LogicalResult run();

private:
  void partitionSignature(Block &from, Block &to);
  LogicalResult partition(Operation *op);
  LogicalResult partitionByInterface(PartitionOpInterface op);
  LogicalResult partitionLoop(LoopOpInterface loop);
  SmallVector<Value> getLocals(ValueRange values);
  LogicalResult define(Operation *op, ValueRange results);
  void finishMade(Operation *op, Operation *before);

  func::FuncOp func;
  MeshAtoms &atoms;
  RuleMatches rules;
  ReshardEmitter reshards;
  OpBuilder builder;
  llvm::DenseMap<Value, Value> locals;
  /// Models of many layers have few types: what a device holds of each, and how much of that is padding.
  llvm::DenseMap<Type, std::pair<RankedTensorType, Padding>> kinds;
  double flops = 0;
  Padding padding;
};

struct Partition : spmd::impl::PartitionBase<Partition> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult compareBytes(func::FuncOp func);
};
} // namespace

/// `attributes` with the global type added; annotations are done.
static DictionaryAttr withGlobalType(DictionaryAttr attributes, Type type) {
  NamedAttrList list(attributes);
  list.erase(SpmdDialect::kAnnotationAttr);
  list.erase(kEvenAttr);
  list.set(SpmdDialect::kGlobalTypeAttr, TypeAttr::get(type));
  return list.getDictionary(type.getContext());
}

/// Maps arguments, and records what the caller passes and gets.
void FunctionPartitioner::partitionSignature(Block &from, Block &to) {
  SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
  for (BlockArgument argument : from.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    argumentAttrs.push_back(withGlobalType(func.getArgAttrDict(argument.getArgNumber()), type));
    locals[argument] = to.addArgument(getLocalType(type), argument.getLoc());
    addPadding(type, padding);
  }
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    resultAttrs.push_back(withGlobalType(func.getResultAttrDict(index), type));
  func->removeAttr(kEvenAttr);
  func.setAllArgAttrs(argumentAttrs);
  func.setAllResultAttrs(resultAttrs);
}

/// The check of every partition function: what it made has the local type that the sharding asks for.
LogicalResult FunctionPartitioner::define(Operation *op, ValueRange results) {
  for (auto [global, local] : llvm::zip_equal(op->getResults(), results)) {
    auto &[expected, padded] = kinds[global.getType()];
    if (!expected) {
      auto type = cast<RankedTensorType>(global.getType());
      expected = getLocalType(type);
      addPadding(type, padded);
    }
    if (local.getType() != expected)
      return op->emitOpError() << "has a per-device result of type " << local.getType() << ", expected " << expected;
    locals[global] = local;
    padding += padded;
  }
  return success();
}

/// Of the ops made for `op`, behind `before`: collectives say what they are for, and no plan addresses any of them.
void FunctionPartitioner::finishMade(Operation *op, Operation *before) {
  Block *block = builder.getInsertionBlock();
  for (Operation *made = before           ? before->getNextNode()
                         : block->empty() ? nullptr
                                          : &block->front();
       made; made = made->getNextNode()) {
    if (NamedAttrList attributes = made->getRawDictionaryAttrs(); !attributes.empty()) {
      attributes.erase(kNodeAttr);
      attributes.erase(SpmdDialect::kAnnotationAttr);
      made->setDiscardableAttrs(attributes.getDictionary(op->getContext()));
    }
    if (auto collective = dyn_cast<CollectiveOpInterface>(made); collective && collective.communicates())
      collective.setCauseAttr(builder.getStringAttr("a dim that " + op->getName().getStringRef() +
                                                    " works along is sharded over " +
                                                    formatAxes(collective.getGroupAxes())));
  }
}

LogicalResult FunctionPartitioner::partitionByInterface(PartitionOpInterface op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op.getOperation());
  if (!ruled)
    return op.emitOpError() << "has no sharding rule";
  const RuleMatches::Entry &entry = rules.get(ruled);
  if (!entry.match)
    return op.emitOpError() << "cannot be partitioned: " << entry.error;
  flops += double(getTimes(op)) * entry.rule.flops;
  PartitionContext context{builder,    op.getLoc(),           atoms.getMesh(), {}, entry.localResults,
                           entry.rule, ArrayRef(entry.splits)};
  llvm::append_range(context.operands, getLocals(op->getOperands()));
  Block *block = builder.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  SmallVector<Value> results;
  if (failed(op.partition(context, results)))
    return failure();
  if (results.size() != op->getNumResults())
    return op.emitOpError() << "has " << results.size() << " per-device results, expected " << op->getNumResults();
  finishMade(op, last);
  return define(op, results);
}

SmallVector<Value> FunctionPartitioner::getLocals(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return locals.lookup(value); });
}

/// The same loop on local values.
LogicalResult FunctionPartitioner::partitionLoop(LoopOpInterface loop) {
  auto types = llvm::map_to_vector(loop->getResultTypes(),
                                   [](Type type) -> Type { return getLocalType(cast<RankedTensorType>(type)); });
  Value condition = loop.getCondition() ? locals.lookup(loop.getCondition()) : Value();
  auto local = cast<LoopOpInterface>(
      loop.makeLike(builder, types, condition, getLocals(loop.getInitial()), getLocals(loop.getCaptured())));
  if (Attribute times = loop->getAttr(kTimesAttr))
    local->setAttr(kTimesAttr, times);
  Block &body = local.getBody().front();
  for (BlockArgument argument : loop.getBody().getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    locals[argument] = body.addArgument(getLocalType(type), argument.getLoc());
    addPadding(type, padding);
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  for (Operation &op : loop.getBody().front().without_terminator())
    if (failed(partition(&op)))
      return failure();
  Value next = loop.getNextCondition() ? locals.lookup(loop.getNextCondition()) : Value();
  loop.makeEnd(builder, next, getLocals(loop.getNext()));
  return define(loop, local->getResults());
}

LogicalResult FunctionPartitioner::partition(Operation *op) {
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    ++numLowered;
    Value local = reshards.emit(builder, reshard, locals.lookup(reshard.getInput()));
    return local ? define(op, local) : failure();
  }
  if (auto terminator = dyn_cast<func::ReturnOp>(op)) {
    func::ReturnOp::create(builder, terminator.getLoc(), getLocals(terminator.getOperands()));
    return success();
  }
  if (auto loop = dyn_cast<LoopOpInterface>(op))
    return partitionLoop(loop);
  if (auto partitionable = dyn_cast<PartitionOpInterface>(op))
    return partitionByInterface(partitionable);
  return op->emitOpError() << "cannot be partitioned";
}

/// Every value must be a sharded tensor.
static LogicalResult checkTypes(func::FuncOp func) {
  LogicalResult result = success();
  forEachValue(func, [&](Value value) {
    if (succeeded(result) && !getSharding(value.getType()))
      result = emitError(value.getLoc()) << "value of type " << value.getType()
                                         << " has no sharding: spmd-propagate and spmd-insert-reshards come first";
  });
  func.walk([&](Operation *op) {
    if (succeeded(result) &&
        (op->hasAttr(SpmdDialect::kOperandShardingsAttr) || op->hasAttr(SpmdDialect::kResultShardingsAttr)))
      result = op->emitOpError() << "takes a value with another sharding than it has; run spmd-insert-reshards first";
  });
  return result;
}

LogicalResult FunctionPartitioner::run() {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError() << "has control flow: only functions of one block can be partitioned";
  if (failed(checkTypes(func)))
    return failure();
  // The new body stands behind the old one until all went well; after an error the function is as it was.
  Block &oldBody = func.getBody().front();
  Block *body = new Block();
  func.getBody().push_back(body);
  builder.setInsertionPointToEnd(body);
  partitionSignature(oldBody, *body);
  for (Operation &op : oldBody)
    if (failed(partition(&op))) {
      body->erase();
      return failure();
    }
  oldBody.erase();
  func.setFunctionType(
      FunctionType::get(func.getContext(), body->getArgumentTypes(), body->getTerminator()->getOperandTypes()));
  if (flops > 0)
    func->setAttr(SpmdDialect::kFlopsAttr, builder.getF64FloatAttr(flops));
  if (padding.bytes > 0)
    func->setAttr(SpmdDialect::kPaddingAttr, builder.getDenseI64ArrayAttr({padding.bytes, padding.heldBytes}));
  return success();
}

/// What was decided must be what is sent. Bytes of one collective are rounded up, which in a loop was done once for all
/// iterations, and of microbatches for all of them, and is now done for each.
LogicalResult Partition::compareBytes(func::FuncOp func) {
  auto decided = func->getAttrOfType<IntegerAttr>(SpmdDialect::kWireBytesAttr);
  if (!decided)
    return success();
  func->removeAttr(SpmdDialect::kWireBytesAttr);
  if (!checkBytes)
    return success();
  int64_t sent = countWireBytes(func);
  int64_t rounded = 0;
  forEachCollective(func, [&](CollectiveOpInterface, int64_t runs) { rounded += runs - 1; });
  if (sent >= decided.getInt() && sent <= decided.getInt() + rounded)
    return success();
  return func.emitOpError() << "sends " << sent << " bytes a rank, but " << decided.getInt() << " were decided";
}

void Partition::runOnOperation() {
  if (failed(enterPhase(getOperation(), Phase::Partitioned)))
    return signalPassFailure();
  OwnFaults faults(&getContext());
  std::unique_ptr<MeshAtoms> atoms = MeshAtoms::create(getOperation());
  FailureOr<CostModel> costs = readCosts(getOperation());
  if (!atoms || failed(costs))
    return signalPassFailure();
  getOperation()->removeAttr(SpmdDialect::kCostsAttr);
  for (func::FuncOp func : getFunctions(getOperation())) {
    FunctionPartitioner partitioner(func, *atoms, *costs);
    if (failed(partitioner.run()) || failed(compareBytes(func)))
      return signalPassFailure();
    func.walk([](CollectiveOpInterface op) {
      numCollectives += op.communicates();
      LDBG() << op.getWireBytes() << " bytes: " << op;
    });
    numBytes += countWireBytes(func);
  }
}
