//===- RandomPrograms.cpp - what random tests of pipelines begin with -----===//
//
// Dims that are split are dims of arguments that nobody means to be a batch: most of that mixes samples, and is refused.
//
//===----------------------------------------------------------------------===//
#include "RandomPrograms.h"

#include "../../../Differential/Generator.h"
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace cleave;

/// Takes all shardings out of a module: types lose theirs, and constraints go.
static void dropAnnotations(ModuleOp module) {
  auto drop = [](Value value) {
    value.setType(spmd::withSharding(cast<RankedTensorType>(value.getType()), spmd::ShardingAttr()));
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    Block &body = func.getBody().front();
    llvm::for_each(body.getArguments(), drop);
    for (Operation &op : llvm::make_early_inc_range(body)) {
      llvm::for_each(op.getResults(), drop);
      if (auto constraint = dyn_cast<spmd::ConstrainOp>(op)) {
        constraint.replaceAllUsesWith(constraint.getInput());
        constraint.erase();
      }
    }
    func.setFunctionType(
        FunctionType::get(func.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  }
  module->removeAttr(spmd::SpmdDialect::kMeshAttr);
}

OwningOpRef<ModuleOp> cleave::pipe::testing::makeProgram(MLIRContext &context, uint64_t seed) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(test::generateModule(seed), &context);
  if (!module)
    return nullptr;
  dropAnnotations(*module);
  return succeeded(nn::inlineCalls(*module)) ? std::move(module) : nullptr;
}

spmd::PlanPipeline cleave::pipe::testing::drawBatch(func::FuncOp func, std::mt19937_64 &random) {
  spmd::PlanPipeline pipeline;
  pipeline.microbatches = 2 + random() % 3;
  pipeline.uneven = random() % 2 == 0;
  bool isAlone = random() % 2 == 0;
  size_t chosen = random() % std::max<size_t>(1, func.getNumArguments());
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(func.getArgumentTypes()[index]).getShape();
    int64_t dim = spmd::PlanPipeline::kNoBatch;
    if (!shape.empty() && (index == chosen || (!isAlone && random() % 2 == 0)))
      dim = random() % shape.size();
    bool isFit = dim < 0 || (pipeline.uneven ? shape[dim] >= *pipeline.microbatches
                                             : shape[dim] != 0 && shape[dim] % *pipeline.microbatches == 0);
    if (!isFit)
      dim = spmd::PlanPipeline::kNoBatch;
    pipeline.batch.push_back({{spmd::getArgumentName(func, index).str(), {}}, dim});
  }
  return pipeline;
}
