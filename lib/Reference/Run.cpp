//===- Run.cpp - interprets a function on all ranks -----------------------===//
//
// Ops run in program order, each on every rank before the next one starts, so a collective finds all its operands. A
// value is dropped after the last op that uses it. Ranks whose operands share their bytes have equal operands, and so
// equal results: those are computed once.
//
//===----------------------------------------------------------------------===//
#include "Interpreter.h"

#include "Kernels.h"
#include "Loops.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Support/Interruption.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// `type` without encoding, or null if it is no ranked tensor, and no memory of one.
static RankedTensorType getPlainType(Type type) {
  auto shaped = isa<RankedTensorType, MemRefType>(type) ? cast<ShapedType>(type) : ShapedType();
  return shaped ? RankedTensorType::get(shaped.getShape(), shaped.getElementType()) : nullptr;
}

/// Kernels trust the types of their operands, and nothing but this stands between them and a caller.
static LogicalResult checkInputs(func::FuncOp func, TypeRange types, int64_t numRanks,
                                 ArrayRef<SmallVector<Tensor>> inputs) {
  if (int64_t(inputs.size()) != numRanks)
    return func.emitError() << "runs on " << numRanks << " ranks, but has inputs for " << inputs.size();
  for (ArrayRef<Tensor> ofRank : inputs) {
    if (ofRank.size() != types.size())
      return func.emitError() << "takes " << types.size() << " arguments, but was given " << ofRank.size();
    for (auto [index, tensor] : llvm::enumerate(ofRank)) {
      Type want = types[index];
      if (tensor.getType() != getPlainType(want))
        return func.emitError() << "takes " << want << " as argument " << index << ", but was given "
                                << tensor.getType();
    }
  }
  return success();
}

/// In order, so that the last entry is that of the last user.
void Interpreter::findLastUses() {
  SmallVector<Operation *> loops;
  for (Operation &op : block) {
    if (isa<exec::LeaveOp>(op) && !loops.empty())
      loops.pop_back();
    bool isInLoop = !loops.empty();
    for (Value operand : op.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      bool isFromOutside = isInLoop && (!maker || maker == loops.back() || maker->isBeforeInBlock(loops.back()));
      bool isKept = lastUses.contains(operand) && !lastUses[operand];
      lastUses[operand] = isFromOutside || isKept ? nullptr : &op;
    }
    if (isa<exec::EnterOp>(op))
      loops.push_back(&op);
  }
}

SmallVector<Tensor> Interpreter::getOperands(Operation &op, int64_t rank) {
  SmallVector<Tensor> operands;
  for (Value operand : op.getOperands())
    operands.push_back(values[operand][rank]);
  return operands;
}

int64_t Interpreter::findTwin(ArrayRef<SmallVector<Tensor>> operands, int64_t rank) {
  for (int64_t other = 0; other < rank; ++other)
    if (llvm::equal(operands[other], operands[rank], [](const Tensor &a, const Tensor &b) {
          return a.getBytes().data() == b.getBytes().data() && a.getType() == b.getType();
        }))
      return other;
  return rank;
}

/// Looking for a twin is quadratic in the ranks, and still cheap next to computing one op a second time.
LogicalResult Interpreter::compute(Operation &op) {
  SmallVector<SmallVector<Tensor>> operands;
  SmallVector<PerRank> results(op.getNumResults());
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    operands.push_back(getOperands(op, rank));
    int64_t twin = findTwin(operands, rank);
    SmallVector<Tensor> own;
    if (twin == rank && failed(evaluate(&op, operands[rank], own)))
      return failure();
    for (auto [index, ofRanks] : llvm::enumerate(results))
      ofRanks.push_back(twin == rank ? own[index] : Tensor(ofRanks[twin]));
  }
  for (auto [value, ofRanks] : llvm::zip_equal(op.getResults(), results))
    values[value] = std::move(ofRanks);
  return success();
}

/// The weight, or the part that several ops share, is read once; each rank takes its shard of it.
LogicalResult Interpreter::load(nn::LoadOp op) {
  FailureOr<Tensor> whole = params.get(op.getParam());
  if (failed(whole))
    return failure();
  FailureOr<nn::LoadedBox> box = nn::getLoadedBox(op, params.getParam(op.getParam()), mesh);
  if (failed(box))
    return op.emitOpError() << "cannot be evaluated: " << *op.getSharding()
                            << " is not a sharding of the parameter over the mesh of the module";
  if (op.isPart()) {
    Tensor part = Tensor::zeros(RankedTensorType::get(box->sizes, whole->getElementType()));
    copyBox(box->sizes, *whole, box->starts, part, SmallVector<int64_t>(box->sizes.size(), 0));
    whole = part;
  }
  PerRank shards = box->sharding ? takeShards(*whole, box->sharding) : PerRank(numRanks, *whole);
  if (shards.front().getType() != getPlainType(op.getResult().getType()))
    return op.emitOpError() << "loads " << shards.front().getType() << ", not " << op.getResult().getType();
  values[op.getResult()] = std::move(shards);
  return success();
}

/// What needs more than operands is dealt with here: weights, other ranks, and ops that leave a value as it is.
LogicalResult Interpreter::step(Operation &op) {
  if (auto loadOp = dyn_cast<nn::LoadOp>(op))
    return load(loadOp);
  if (auto collective = dyn_cast<spmd::CollectiveOpInterface>(op)) {
    if (!mesh)
      return op.emitOpError("cannot be evaluated: the module has no mesh");
    PerRank inputs = op.getNumOperands() ? values[op.getOperand(0)] : PerRank();
    FailureOr<PerRank> results = evaluateCollective(collective, inputs);
    if (failed(results))
      return failure();
    values[op.getResult(0)] = std::move(*results);
    return success();
  }
  if (isa<spmd::ReshardOp, spmd::ConstrainOp, spmd::PinOp>(op)) {
    if (mesh)
      return op.emitOpError("cannot be evaluated in a partitioned function");
    values[op.getResult(0)] = PerRank(values[op.getOperand(0)]);
    return success();
  }
  if (auto call = dyn_cast<func::CallOp>(op))
    return runCall(call);
  if (auto loop = dyn_cast<nn::LoopOp>(op))
    return runLoop(loop);
  if (auto loop = dyn_cast<pipe::MicrobatchesOp>(op))
    return runMicrobatches(loop);
  if (isa<pipe::PartOp, pipe::JoinOp>(op))
    return runParts(op);
  return compute(op);
}

Interpreter::Interpreter(Block &block, spmd::MeshAttr mesh, ParamStore &params)
    : block(block), next(&block.front()), mesh(mesh), numRanks(mesh ? mesh.getNumRanks() : 1), params(params) {
  assert(block.mightHaveTerminator() && "a block without an end");
  findLastUses();
}

void Interpreter::begin(SmallVector<PerRank> arguments) {
  for (auto [argument, ofRanks] : llvm::zip_equal(block.getArguments(), arguments))
    set(argument, std::move(ofRanks));
}

/// A value without users would stay for ever.
void Interpreter::set(Value value, PerRank ofRanks) {
  if (!value.use_empty())
    values[value] = std::move(ofRanks);
}

void Interpreter::finish(Operation &op) {
  for (Value operand : op.getOperands())
    if (lastUses[operand] == &op)
      values.erase(operand);
  next = op.getNextNode();
}

FailureOr<Operation *> Interpreter::advance() {
  while (!next->hasTrait<OpTrait::IsTerminator>() && !isa<pipe::SendOp, pipe::RecvOp>(next)) {
    Operation &op = *next;
    if (Interruption::isAsked())
      return op.emitError("interrupted");
    if (isa<exec::EnterOp, exec::LeaveOp>(op)) {
      auto enter = dyn_cast<exec::EnterOp>(op);
      if (failed(enter ? runEnter(enter) : runLeave(cast<exec::LeaveOp>(op))))
        return failure();
      continue;
    }
    if (failed(step(op)))
      return failure();
    for (Value result : op.getResults())
      if (result.use_empty())
        values.erase(result);
    finish(op);
  }
  return next;
}

LogicalResult Interpreter::run(SmallVector<PerRank> arguments, SmallVectorImpl<PerRank> &results) {
  begin(std::move(arguments));
  FailureOr<Operation *> last = advance();
  if (failed(last))
    return failure();
  if (!(*last)->hasTrait<OpTrait::IsTerminator>())
    return (*last)->emitOpError("cannot be evaluated: there is no other rank of its pipeline");
  results = getOperands(**last);
  return success();
}

SmallVector<PerRank> Interpreter::getOperands(Operation &op) {
  return llvm::map_to_vector(op.getOperands(), [&](Value operand) { return values[operand]; });
}

/// The entry of a pipeline says what its ranks do; they are what runs.
static LogicalResult runOps(func::FuncOp func, spmd::MeshAttr mesh, bool isPerRank,
                            ArrayRef<SmallVector<Tensor>> inputs, SmallVectorImpl<SmallVector<Tensor>> &outputs) {
  int64_t numRanks = mesh ? mesh.getNumRanks() : 1;
  if (failed(checkInputs(func, func.getArgumentTypes(), numRanks, inputs)))
    return failure();
  SmallVector<PerRank> arguments(func.getNumArguments()), results;
  for (ArrayRef<Tensor> ofRank : inputs)
    for (auto [argument, tensor] : llvm::zip_equal(arguments, ofRank))
      argument.push_back(tensor);
  ParamStore params(func->getParentOfType<ModuleOp>());
  Block &block = func.getBody().front();
  if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
    return func.emitError("has no return");
  bool isPipeline = isPerRank && !func.getOps<pipe::MicrobatchesOp>().empty();
  if (failed(isPipeline ? runRanks(func, mesh, params, arguments, results)
                        : Interpreter(block, mesh, params).run(std::move(arguments), results)))
    return failure();
  outputs.resize(outputs.size() + numRanks);
  for (const PerRank &result : results)
    for (auto [ofRank, tensor] : llvm::zip_equal(MutableArrayRef(outputs).take_back(numRanks), result))
      ofRank.push_back(tensor);
  return success();
}

bool cleave::reference::isPartitioned(func::FuncOp func) {
  return getPhase(func->getParentOfType<ModuleOp>()) >= Phase::Partitioned && spmd::getMesh(func);
}

LogicalResult cleave::reference::run(func::FuncOp func, ArrayRef<SmallVector<Tensor>> inputs,
                                     SmallVectorImpl<SmallVector<Tensor>> &outputs) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return func.emitError("cannot be evaluated: its body is not one block");
  spmd::MeshAttr mesh = isPartitioned(func) ? spmd::getMesh(func) : spmd::MeshAttr();
  Phase phase = getPhase(func->getParentOfType<ModuleOp>());
  if (phase < Phase::Planned)
    return runOps(func, mesh, phase == Phase::PerRank, inputs, outputs);
  auto types = llvm::map_to_vector(func.getOps<exec::InputOp>(),
                                   [](exec::InputOp op) -> Type { return op.getView().getType(); });
  int64_t numRanks = mesh ? mesh.getNumRanks() : 1;
  return failed(checkInputs(func, types, numRanks, inputs)) ? failure() : runCommands(func, numRanks, inputs, outputs);
}
