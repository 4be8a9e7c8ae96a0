//===- PrintRules.cpp - how each op may be split, as remarks --------------===//
//
//   %c = nn.einsum %a, %b "ik,kj->ij" : ...
//   remark: ([i,j],[j,k])->([i,k]) {i=8,j=16,k=4} reduce={j} linear(sum)={0} linear(sum)={1}
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_PRINTRULES
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave::spmd;

namespace {
struct PrintRules : cleave::spmd::impl::PrintRulesBase<PrintRules> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](ShardingRuleOpInterface op) {
      std::string text;
      llvm::raw_string_ostream(text) << op.getShardingRule();
      op.emitRemark() << text;
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
