//===- RunGlobal.cpp - runs a partitioned function on global tensors ------===//
//
// Inputs are split by the shardings that the function's arguments keep in their `spmd.global` types; results are put
// together by those of its results. A piece that several ranks hold must be the same on all of them. Where an argument
// is partial, one rank of each group gets the value and the others nothing (0 for a sum); a partial result is combined.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/ShardBox.h"
#include "cleave/Reference/Evaluator.h"

#include "Loops.h"
#include "Ranks.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Sharding/RankGroups.h"

#include <cstring>
#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// The global type in an argument's or result's attribute, or `local` where it has none.
static RankedTensorType getGlobalType(Attribute attr, Type local) {
  auto type = dyn_cast_or_null<TypeAttr>(attr);
  return dyn_cast<RankedTensorType>(type ? type.getValue() : local);
}

SmallVector<RankedTensorType> cleave::reference::getInputTypes(func::FuncOp func) {
  SmallVector<RankedTensorType> types;
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    types.push_back(getGlobalType(func.getArgAttr(index, spmd::SpmdDialect::kGlobalTypeAttr), type));
  for (auto input : func.getOps<exec::InputOp>())
    types.push_back(cast<RankedTensorType>(input.getGlobal()));
  return types;
}

SmallVector<RankedTensorType> cleave::reference::getOutputTypes(func::FuncOp func) {
  SmallVector<RankedTensorType> types;
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    types.push_back(getGlobalType(func.getResultAttr(index, spmd::SpmdDialect::kGlobalTypeAttr), type));
  for (auto output : func.getOps<exec::OutputOp>())
    types.push_back(cast<RankedTensorType>(output.getGlobal()));
  return types;
}

/// Row-major index of the first element that differs; NaN equals NaN; -1: none.
static int64_t findDifference(const Tensor &a, const Tensor &b) {
  if (a.getBytes() == b.getBytes())
    return -1;
  return dispatchCompute(a.getElementType(), [&](auto tag) -> int64_t {
    using C = typename decltype(tag)::type;
    Elements<C> x(a), y(b);
    int64_t elementBytes = getElementBytes(a.getElementType());
    for (int64_t i = 0; i < x.size(); ++i) {
      bool isSame =
          a.getBytes().slice(i * elementBytes, elementBytes) == b.getBytes().slice(i * elementBytes, elementBytes);
      if (!isSame && !(x[i] != x[i] && y[i] != y[i]))
        return i;
    }
    return -1;
  });
}

/// The part of a shard that is no padding.
static Tensor crop(const Tensor &shard, ArrayRef<int64_t> shape) {
  if (shard.getShape() == shape)
    return shard;
  SmallVector<int64_t> zeros(shape.size(), 0);
  Tensor result = Tensor::zeros(RankedTensorType::get(shape, shard.getElementType()));
  copyBox(shape, shard, zeros, result, zeros);
  return result;
}

/// An error of result `index`, with a note at what is returned.
static InFlightDiagnostic emitResultError(func::FuncOp func, unsigned index) {
  InFlightDiagnostic error = func.emitError();
  Operation *ret = func.getBody().front().getTerminator();
  auto outputs = llvm::to_vector(func.getOps<exec::OutputOp>());
  error.attachNote(outputs.empty() ? ret->getOperand(index).getLoc() : outputs[index].getLoc())
      << "the result is made here";
  return error;
}

/// Puts the ranks' pieces of result `index` together.
static FailureOr<Tensor> assemble(func::FuncOp func, unsigned index, RankedTensorType type,
                                  ArrayRef<SmallVector<Tensor>> results) {
  spmd::ShardingAttr sharding = spmd::getSharding(type);
  if (!sharding)
    sharding = spmd::ShardingAttr::getReplicated(spmd::getMesh(func), type.getRank());
  if (sharding.getMesh() != spmd::getMesh(func))
    return emitResultError(func, index) << "cannot put result " << index << " together: its mesh is not the module's";
  ArrayRef<int64_t> shape = type.getShape();
  Tensor result = Tensor::zeros(type);
  std::map<SmallVector<int64_t>, std::pair<int64_t, Tensor>> placed; // by offset: the first holder and its piece
  PerRank ofRanks;
  for (const SmallVector<Tensor> &tensors : results)
    ofRanks.push_back(tensors[index]);
  if (sharding.isPartial())
    ofRanks =
        combineGroups(ofRanks, sharding.getMesh().getRankGroups(sharding.getPartial()), sharding.getPartialKind());
  for (auto [rank, tensor] : llvm::enumerate(ofRanks)) {
    spmd::ShardBox box = spmd::getShardBox(sharding, shape, rank);
    if (tensor.getShape() != ArrayRef(box.extents))
      return emitResultError(func, index)
             << "gives " << tensor.getType() << " as result " << index << ", which is not a shard of " << type;
    Tensor piece = crop(tensor, box.present);
    auto [entry, isNew] = placed.try_emplace(box.start, rank, piece);
    if (isNew) {
      copyBox(piece.getShape(), piece, SmallVector<int64_t>(shape.size(), 0), result, box.start);
      continue;
    }
    int64_t position = findDifference(entry->second.second, piece);
    if (position >= 0)
      return emitResultError(func, index)
             << "gives different copies of result " << index << " on ranks " << entry->second.first << " and " << rank
             << ", first at element " << position << " of their shards";
  }
  return result;
}

/// Splits global inputs into each rank's.
static FailureOr<SmallVector<SmallVector<Tensor>>> shardInputs(func::FuncOp func, ArrayRef<Tensor> inputs) {
  spmd::MeshAttr mesh = spmd::getMesh(func);
  SmallVector<SmallVector<Tensor>> ofRanks(mesh.getNumRanks());
  SmallVector<RankedTensorType> types = getInputTypes(func);
  for (auto [index, input] : llvm::enumerate(inputs)) {
    RankedTensorType type = types[index];
    if (!type || input.getShape() != type.getShape() || input.getElementType() != type.getElementType())
      return func.emitError() << "takes " << type << " as argument " << index << ", but was given " << input.getType();
    spmd::ShardingAttr sharding = spmd::getSharding(type);
    if (sharding && sharding.getMesh() != mesh)
      return func.emitError() << "cannot cut argument " << index << ": its mesh is not the module's";
    PerRank shards = sharding ? takeShards(input, sharding) : PerRank(ofRanks.size(), input);
    for (auto [tensors, shard] : llvm::zip_equal(ofRanks, shards))
      tensors.push_back(shard);
  }
  return ofRanks;
}

LogicalResult cleave::reference::runGlobal(func::FuncOp func, ArrayRef<Tensor> inputs,
                                           SmallVectorImpl<Tensor> &outputs) {
  if (size_t count = getInputTypes(func).size(); inputs.size() != count)
    return func.emitError() << "takes " << count << " arguments, but was given " << inputs.size();
  SmallVector<SmallVector<Tensor>> ofRanks, results;
  if (!isPartitioned(func)) {
    ofRanks.emplace_back(inputs);
    if (failed(run(func, ofRanks, results)))
      return failure();
    llvm::append_range(outputs, results.front());
    return success();
  }
  // Told before anything is allocated: the kernel would end the process without a word.
  if (func.getBody().hasOneBlock() && failed(checkMemory(func, spmd::getMesh(func).getNumRanks())))
    return failure();
  FailureOr<SmallVector<SmallVector<Tensor>>> split = shardInputs(func, inputs);
  if (failed(split) || failed(run(func, *split, results)))
    return failure();
  for (auto [index, type] : llvm::enumerate(getOutputTypes(func))) {
    FailureOr<Tensor> output = assemble(func, index, type, results);
    if (failed(output))
      return failure();
    outputs.push_back(*output);
  }
  return success();
}
