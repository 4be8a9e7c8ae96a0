//===- RestOfLoop.cpp - a loop over microbatches of two sizes -------------===//
//
//   before   pipe.microbatches 3 samples 7 (%i = %x split 0) .. {      written for 5 samples, say
//              %h = call @main.stage0(%i)
//            }
//   after    pipe.microbatches 3 samples 7 (%i = %x split 0) .. {
//              %h = call @main.stage0(%i)                              3 samples
//            } rest {
//              %h = call @main.stage0.rest(%i)                         2 samples: the same ops, shorter along the batch
//            }
//
// Which dims are the batch is known of what the loop takes, and follows from stage to stage. All that was decided of a stage, how it
// is sharded, what it computes again, holds for both of its functions, which are made of it.
//
//===----------------------------------------------------------------------===//
#include "RestOfLoop.h"

#include "SplitInTime.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// What a microbatch has of an operand of the loop.
static Type getPartType(Type whole, PieceAttr piece, Deal deal, int64_t microbatch) {
  auto tensor = cast<RankedTensorType>(whole);
  if (!piece.isSplit())
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[piece.getDim()] = deal.getExtent(shape[piece.getDim()], microbatch);
  return tensor.clone(shape);
}

/// `made`, the body of a microbatch, out of `body`; its functions have the names of those and `suffix`.
static LogicalResult makeBody(MicrobatchesOp loop, Block &body, Block &made, int64_t perShard, int64_t microbatch,
                              StringRef suffix) {
  Deal deal = loop.getDeal();
  OpBuilder builder = OpBuilder::atBlockEnd(&made);
  IRMapping mapping;
  llvm::DenseMap<Value, std::optional<int64_t>> dims;
  for (auto [argument, input, take] :
       llvm::zip_equal(body.getArguments(), loop.getInputs(), loop.getTakes().getAsRange<PieceAttr>())) {
    mapping.map(argument, made.addArgument(getPartType(input.getType(), take, deal, microbatch), argument.getLoc()));
    dims[argument] = take.isSplit() ? std::optional(take.getDim()) : std::nullopt;
  }
  for (auto call : body.getOps<func::CallOp>()) {
    auto stage = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(loop, call.getCalleeAttr());
    func::FuncOp own = stage.clone();
    own.setName((stage.getName() + suffix).str());
    stage->getBlock()->getOperations().insert(stage->getIterator(), own);
    auto operandDims = llvm::map_to_vector(call.getOperands(), [&](Value operand) { return dims.lookup(operand); });
    auto resultDims = splitStage(own, operandDims, perShard, deal.getSize(microbatch));
    if (failed(resultDims))
      return failure();
    auto operands = llvm::map_to_vector(call.getOperands(), [&](Value operand) { return mapping.lookup(operand); });
    auto ownCall = func::CallOp::create(builder, call.getLoc(), own, operands);
    for (auto [old, result, dim] : llvm::zip_equal(call.getResults(), ownCall.getResults(), *resultDims)) {
      mapping.map(old, result);
      dims[old] = dim;
    }
  }
  builder.clone(*body.getTerminator(), mapping);
  return success();
}

LogicalResult cleave::pipe::makeBodies(MicrobatchesOp loop, int64_t perShard) {
  // The body stands aside, and its functions in front of those that are made of them.
  Region written;
  written.takeBody(loop.getBody());
  Block &body = written.front();
  constexpr StringLiteral kLarger = ".larger", kRest = ".rest";
  if (failed(makeBody(loop, body, loop.getBody().emplaceBlock(), perShard, 0, kLarger)) ||
      failed(makeBody(loop, body, loop.getRest().emplaceBlock(), perShard, loop.getDeal().count - 1, kRest)))
    return failure();
  for (auto [call, larger] :
       llvm::zip_equal(body.getOps<func::CallOp>(), loop.getBody().front().getOps<func::CallOp>())) {
    auto stage = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(loop, call.getCalleeAttr());
    auto own = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(loop, larger.getCalleeAttr());
    own.setName(stage.getName());
    larger.setCallee(stage.getName());
    stage.erase();
  }
  return success();
}
