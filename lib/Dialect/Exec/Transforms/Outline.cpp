//===- Outline.cpp - each distinct kernel once, by name -------------------===//
//
// Bodies are looked up by what they compute (`hashBody`): locations and notes do not count. The first one found becomes
// the kernel, and keeps its locations; notes of nodes go, as a kernel that layers share is no node's. Its name is made
// of its ops:
//
//   exec.fused { nn.add; nn.layer_norm }     ->     exec.kernel @add_layer_norm_0, and _1 for other shapes
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::exec {
#define GEN_PASS_DEF_OUTLINE
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-outline"

ALWAYS_ENABLED_STATISTIC(numLaunches, "launches of kernels");
ALWAYS_ENABLED_STATISTIC(numBodies, "kernels with different bodies");

/// Ops that give a kernel its name; more would not tell more.
static constexpr size_t kMostWords = 4;

/// What computes, in order and each once; what only moves or provides where nothing else does.
static std::string makeName(Region &body) {
  SmallVector<StringRef> computing, all;
  for (Operation &op : body.front().without_terminator()) {
    StringRef word = isa<nn::EinsumOp>(op) ? "matmul" : op.getName().stripDialect();
    nn::Form form = cast<nn::FormOpInterface>(op).getForm();
    if (form != nn::Form::Data && !llvm::is_contained(all, word))
      all.push_back(word);
    if (form != nn::Form::Data && form != nn::Form::Movement && !llvm::is_contained(computing, word))
      computing.push_back(word);
  }
  ArrayRef<StringRef> words = computing.empty() ? all : computing;
  return words.empty() ? "constant" : llvm::join(words.take_front(kMostWords), "_");
}

namespace {
struct Outline : cleave::exec::impl::OutlineBase<Outline> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(enterPhase(getOperation(), Phase::Outlined)))
      return signalPassFailure();
    OwnFaults faults(&getContext());
    for (Operation &op : *getOperation().getBody())
      if (auto symbol = dyn_cast<SymbolOpInterface>(op))
        taken.insert(symbol.getName());
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      for (auto fused : llvm::make_early_inc_range(func.getOps<FusedOp>())) {
        ++numLaunches;
        launch(fused, getKernel(fused));
      }
  }

private:
  KernelOp getKernel(FusedOp fused) {
    SmallVector<KernelOp, 1> &known = kernels[hashBody(fused.getBody())];
    for (KernelOp kernel : known)
      if (haveEqualBodies(kernel.getBody(), fused.getBody()))
        return kernel;
    return known.emplace_back(createKernel(fused));
  }

  KernelOp createKernel(FusedOp fused) {
    std::string base = makeName(fused.getBody());
    unsigned &number = numbers[base];
    std::string name = base + "_" + std::to_string(number++);
    while (!taken.insert(name).second)
      name = base + "_" + std::to_string(number++);
    auto builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto kernel = KernelOp::create(builder, fused.getLoc(), name, /*sym_visibility=*/StringAttr(),
                                   /*in_place=*/DenseI64ArrayAttr());
    ++numBodies;
    kernel.getBody().takeBody(fused.getBody());
    for (Operation &op : kernel.getBody().front())
      op.removeDiscardableAttr(spmd::kNodeAttr);
    return kernel;
  }

  static void launch(FusedOp fused, KernelOp kernel) {
    OpBuilder builder(fused);
    auto launch = LaunchOp::create(builder, fused.getLoc(), fused.getResultTypes(),
                                   FlatSymbolRefAttr::get(kernel.getSymNameAttr()), fused.getInputs());
    launch->setDiscardableAttrs(fused->getDiscardableAttrDictionary());
    fused.replaceAllUsesWith(launch);
    fused.erase();
  }

  /// By the hash of their bodies.
  llvm::DenseMap<size_t, SmallVector<KernelOp, 1>> kernels;
  /// Per name of ops, how many kernels have been called so.
  llvm::StringMap<unsigned> numbers;
  llvm::StringSet<> taken;
};
} // namespace
