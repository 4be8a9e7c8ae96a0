//===- CallSteps.cpp - several steps of training in one call --------------===//
//
// Everything that a signature says of a value says it of its dims by number or by position: with a dim in front all move by one.
//
//===----------------------------------------------------------------------===//
#include "CallSteps.h"

#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// What another entry changes is no state here, and is not given either.
FailureOr<StepSignature> StepSignature::get(func::FuncOp func) {
  FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
  if (failed(states))
    return failure();
  StepSignature signature{llvm::BitVector(func.getNumArguments(), true), llvm::BitVector(func.getNumResults(), true)};
  for (const spmd::StatePlace &state : *states) {
    signature.arguments.reset(state.argument);
    signature.results.reset(state.result);
  }
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (func.getArgAttr(index, spmd::kKeptAttr))
      signature.arguments.reset(index);
  return signature;
}

/// No axis of the mesh counts steps.
RankedTensorType cleave::pipe::addSteps(Type type, int64_t steps) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape{steps};
  llvm::append_range(shape, tensor.getShape());
  auto sharding = dyn_cast_if_present<spmd::ShardingAttr>(tensor.getEncoding());
  if (!sharding)
    return RankedTensorType::get(shape, tensor.getElementType());
  MLIRContext *context = type.getContext();
  SmallVector<spmd::DimShardingAttr> dims{spmd::DimShardingAttr::get(context, {}, /*isOpen=*/false, 0)};
  llvm::append_range(dims, sharding.getDims());
  auto moved = spmd::ShardingAttr::get(context, sharding.getMesh(), dims, sharding.getPartial(),
                                       sharding.getPartialKind(), sharding.getReplicated(), sharding.getUneven());
  return RankedTensorType::get(shape, tensor.getElementType(), moved);
}

/// The same for each step; null for what has no bytes of its own, as bools.
static Attribute repeat(Attribute value, int64_t steps) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || dense.getElementType().isInteger(1))
    return {};
  RankedTensorType type = addSteps(dense.getType(), steps);
  if (dense.isSplat())
    return dense.resizeSplat(type);
  std::vector<char> bytes;
  for (int64_t step = 0; step < steps; ++step)
    bytes.insert(bytes.end(), dense.getRawData().begin(), dense.getRawData().end());
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

DictionaryAttr cleave::pipe::addSteps(DictionaryAttr attributes, int64_t steps) {
  if (!attributes)
    return attributes;
  Builder builder(attributes.getContext());
  NamedAttrList list(attributes);
  if (auto global = attributes.getAs<TypeAttr>(spmd::SpmdDialect::kGlobalTypeAttr))
    list.set(spmd::SpmdDialect::kGlobalTypeAttr, TypeAttr::get(addSteps(global.getValue(), steps)));
  if (auto names = attributes.getAs<ArrayAttr>(spmd::kDimsAttr)) {
    SmallVector<Attribute> moved{builder.getStringAttr("step")};
    llvm::append_range(moved, names);
    list.set(spmd::kDimsAttr, builder.getArrayAttr(moved));
  }
  if (auto dim = attributes.getAs<IntegerAttr>(PipeDialect::kSplitAttr))
    list.set(PipeDialect::kSplitAttr, builder.getI64IntegerAttr(dim.getInt() + 1));
  if (Attribute value = attributes.get(nn::NnDialect::kValueAttr))
    if (Attribute repeated = repeat(value, steps))
      list.set(nn::NnDialect::kValueAttr, repeated);
  return list.getDictionary(attributes.getContext());
}

Value cleave::pipe::takeStep(OpBuilder &builder, Location loc, Value all, int64_t step) {
  nn::Composer f(builder, loc);
  return f.reshape(f.sliceDim(all, 0, step, 1), getShape(all).drop_front());
}

Value cleave::pipe::joinSteps(OpBuilder &builder, Location loc, ArrayRef<Value> values) {
  nn::Composer f(builder, loc);
  auto one = llvm::map_to_vector(values, [&](Value value) {
    SmallVector<int64_t> shape{1};
    llvm::append_range(shape, getShape(value));
    return f.reshape(value, shape);
  });
  return f.concat(one, 0);
}

//===----------------------------------------------------------------------===//
// Steps one behind the other
//===----------------------------------------------------------------------===//

namespace {
/// Repeats the body of one function.
class StepRepeater {
public:
  StepRepeater(func::FuncOp func, const StepSignature &signature, int64_t steps, int64_t stride)
      : func(func), signature(signature), steps(steps), stride(stride), builder(func.getContext()) {}

  LogicalResult run();

private:
  void addStep(int64_t step);
  void renumber(Operation *clone, int64_t step);
  void countBuckets();

  func::FuncOp func;
  const StepSignature &signature;
  int64_t steps, stride, buckets = 0;
  OpBuilder builder;
  Block *old = nullptr, *made = nullptr;
  /// By argument: what the next step reads of a state. By result: what steps gave.
  SmallVector<Value> current;
  std::vector<SmallVector<Value>> given;
  SmallVector<spmd::StatePlace> states;
};
} // namespace

/// Buckets of different steps are different ones: what is reduced of one step, its update waits for.
void StepRepeater::countBuckets() {
  for (Operation &op : *old)
    if (IntegerAttr bucket = exec::getBucket(&op))
      buckets = std::max(buckets, bucket.getInt() + 1);
}

/// Messages outside of microbatches have no number that grows.
void StepRepeater::renumber(Operation *clone, int64_t step) {
  if (IntegerAttr bucket = exec::getBucket(clone))
    clone->setAttr(exec::kBucketAttr, builder.getI64IntegerAttr(bucket.getInt() + step * buckets));
  auto move = [&](auto message) {
    if (auto number = static_cast<int64_t>(message.getMicrobatch()); number >= 0)
      message.setMicrobatch(number + step * stride);
  };
  if (auto send = dyn_cast<SendOp>(clone))
    move(send);
  else if (auto recv = dyn_cast<RecvOp>(clone))
    move(recv);
}

void StepRepeater::addStep(int64_t step) {
  IRMapping mapping;
  for (BlockArgument argument : old->getArguments()) {
    unsigned index = argument.getArgNumber();
    mapping.map(argument, signature.arguments.test(index)
                              ? takeStep(builder, argument.getLoc(), made->getArgument(index), step)
                              : current[index]);
  }
  for (Operation &op : old->without_terminator())
    renumber(builder.clone(op, mapping), step);
  ValueRange returned = old->getTerminator()->getOperands();
  for (auto [value, all] : llvm::zip_equal(returned, given))
    all.push_back(mapping.lookup(value));
  for (const spmd::StatePlace &state : states)
    current[state.argument] = given[state.result].back();
}

LogicalResult StepRepeater::run() {
  FailureOr<SmallVector<spmd::StatePlace>> found = spmd::getStates(func);
  if (failed(found))
    return failure();
  states = *found;
  if (llvm::any_of(states, [](const spmd::StatePlace &state) { return state.dim.has_value(); }))
    return func.emitOpError("has a state that grows: it has another size in each step of a call");
  old = &func.getBody().front();
  countBuckets();
  made = new Block();
  func.getBody().push_back(made);
  SmallVector<Type> argumentTypes, resultTypes;
  for (BlockArgument argument : old->getArguments()) {
    bool isOfStep = signature.arguments.test(argument.getArgNumber());
    argumentTypes.push_back(isOfStep ? Type(addSteps(argument.getType(), steps)) : argument.getType());
    current.push_back(made->addArgument(argumentTypes.back(), argument.getLoc()));
  }
  given.resize(func.getNumResults());
  builder.setInsertionPointToEnd(made);
  for (int64_t step = 0; step < steps; ++step)
    addStep(step);
  Operation *ret = old->getTerminator();
  SmallVector<Value> returned;
  for (auto [index, values] : llvm::enumerate(given)) {
    returned.push_back(signature.results.test(index) ? joinSteps(builder, values.back().getLoc(), values)
                                                     : values.back());
    resultTypes.push_back(returned.back().getType());
  }
  func::ReturnOp::create(builder, ret->getLoc(), returned);
  old->erase();
  func.setFunctionType(FunctionType::get(func.getContext(), argumentTypes, resultTypes));
  for (unsigned index : signature.arguments.set_bits())
    func.setArgAttrs(index, addSteps(func.getArgAttrDict(index), steps));
  for (unsigned index : signature.results.set_bits())
    func.setResultAttrs(index, addSteps(func.getResultAttrDict(index), steps));
  if (auto flops = func->getAttrOfType<FloatAttr>(spmd::SpmdDialect::kFlopsAttr))
    func->setAttr(spmd::SpmdDialect::kFlopsAttr,
                  builder.getF64FloatAttr(flops.getValueAsDouble() * static_cast<double>(steps)));
  return success();
}

LogicalResult cleave::pipe::repeatStep(func::FuncOp func, const StepSignature &signature, int64_t steps,
                                       int64_t stride) {
  return StepRepeater(func, signature, steps, stride).run();
}
