//===- KeepOnFirst.cpp - a whole value as terms, by a kernel --------------===//
//
// No command does this: what a rank keeps depends on its number, which a kernel can be given.
//
//   spmd.keep_on_first sum %x     ->     exec.launch @keep_on_first_0(%i, %x), %i = spmd.axis_index
//   exec.kernel @keep_on_first_0(%i, %x) { select (%i == 0), %x, 0 }
//
//===----------------------------------------------------------------------===//
#include "KeepOnFirst.h"

#include "cleave/Dialect/Nn/IR/Composer.h"

#include <map>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

static KernelOp createKernel(ModuleOp module, SymbolTable &symbols, RankedTensorType type, spmd::ReductionKind kind,
                             Location loc) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto kernel = KernelOp::create(builder, loc, "keep_on_first_0", /*sym_visibility=*/StringAttr(),
                                 /*in_place=*/DenseI64ArrayAttr());
  symbols.insert(kernel); // which makes the name unique
  Block &body = kernel.getBody().emplaceBlock();
  auto indexType = RankedTensorType::get({}, builder.getI64Type());
  Value index = body.addArgument(indexType, loc), value = body.addArgument(type, loc);
  builder.setInsertionPointToEnd(&body);
  nn::Composer f(builder, loc);
  Value zero = f.position(0), nothing = f.identity(kind, type.getElementType());
  Value kept = f.select(f.eq(index, zero), value, nothing);
  YieldOp::create(builder, loc, kept);
  return kernel;
}

void cleave::exec::keepOnFirstByKernels(Block &block) {
  auto module = block.getParentOp()->getParentOfType<ModuleOp>();
  std::optional<SymbolTable> symbols;
  std::map<std::pair<const void *, spmd::ReductionKind>, KernelOp> kernels;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto keep = dyn_cast<spmd::KeepOnFirstOp>(op);
    if (!keep)
      continue;
    if (!symbols)
      symbols.emplace(module);
    auto type = cast<RankedTensorType>(keep.getInput().getType());
    KernelOp &kernel = kernels[{type.getAsOpaquePointer(), keep.getKind()}];
    if (!kernel)
      kernel = createKernel(module, *symbols, type, keep.getKind(), keep.getLoc());
    OpBuilder builder(keep);
    auto indexType = RankedTensorType::get({}, builder.getI64Type());
    Value index = spmd::AxisIndexOp::create(builder, keep.getLoc(), indexType, keep.getAxes());
    auto launch = LaunchOp::create(builder, keep.getLoc(), TypeRange(type),
                                   FlatSymbolRefAttr::get(kernel.getSymNameAttr()), ValueRange{index, keep.getInput()});
    launch->setDiscardableAttrs(keep->getDiscardableAttrDictionary());
    keep.replaceAllUsesWith(launch.getResult(0));
    keep.erase();
  }
}
