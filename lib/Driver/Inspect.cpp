//===- Inspect.cpp - what is in a model -----------------------------------===//
#include "Outline.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Driver/Session.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

static int64_t getBytes(RankedTensorType type) {
  return type.getNumElements() * reference::getElementBytes(type.getElementType());
}

static std::vector<TensorOutline> describe(ArrayRef<std::string> names, ArrayRef<RankedTensorType> types) {
  std::vector<TensorOutline> tensors;
  for (auto [name, type] : llvm::zip_equal(names, types))
    tensors.push_back({name, formatType(type), getBytes(type), {}});
  return tensors;
}

/// Nodes that read a parameter, as a plan addresses them: `node:/enc/MatMul#1`.
static SmallVector<std::string, 1> getUses(nn::LoadOp load) {
  SmallVector<std::string, 1> uses;
  for (OpOperand &use : load.getResult().getUses())
    for (const nn::NodeInfo &info : nn::getNodeInfos(use.getOwner()->getLoc()))
      for (auto [index, name] : llvm::enumerate(info.operands))
        if (name == load.getParam() && !info.node.empty())
          uses.push_back(("node:" + info.node + "#" + Twine(index)).str());
  return uses;
}

static std::vector<TensorOutline> describeParameters(ModuleOp module, func::FuncOp func) {
  llvm::StringMap<SmallVector<std::string, 1>> uses;
  func.walk([&](nn::LoadOp load) { llvm::append_range(uses[load.getParam()], getUses(load)); });
  std::vector<TensorOutline> parameters;
  for (nn::ParamOp param : module.getOps<nn::ParamOp>()) {
    auto type = cast<RankedTensorType>(param.getType());
    parameters.push_back({param.getSymName().str(), formatType(type), getBytes(type), uses.lookup(param.getSymName())});
  }
  return parameters;
}

/// Tensors inside, by their names, with the node that computes each.
static void printTensors(func::FuncOp func) {
  llvm::outs() << "tensors:\n";
  Table table;
  func.walk([&](Operation *op) {
    for (Value result : op->getResults())
      for (StringRef name : nn::getTensorNames(result))
        table.add({name.str(), formatType(cast<RankedTensorType>(result.getType())), nn::describeNode(op)});
  });
  table.print(llvm::outs());
}

static void countOps(func::FuncOp func, Outline &outline) {
  double flops = 0;
  int64_t total = 0;
  func.walk([&](Operation *op) {
    if (auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op)) {
      ++total;
      ++outline.ops[op->getName().getStringRef().str()];
      flops += ruled.getShardingRule().flops;
    }
  });
  outline.opsTitle = llvm::formatv("ops: {0}, {1:e2} floating-point operations in contractions", total, flops);
}

ExitCode cleave::driver::inspectCommand(Session &session) {
  const Options &options = session.getOptions();
  std::string open;
  llvm::Expected<std::optional<Outline>> fromFile = outlineFile(options, open);
  if (!fromFile)
    return session.fail(fromFile.takeError());
  if (*fromFile) {
    (*fromFile)->print(llvm::outs(), options.verbose);
    llvm::outs() << "not known without " << open
                 << ": other shapes, ops after import, their floating-point operations, "
                 << "and what cannot be imported\n";
    return kDone;
  }
  func::FuncOp func = session.load(/*collectAllErrors=*/true) ? session.getEntry() : nullptr;
  if (!func)
    return session.getExitCode();
  Outline outline;
  outline.inputs = describe(getInputNames(func), getInputTypes(func));
  outline.outputs = describe(getOutputNames(func), getOutputTypes(func));
  outline.parameters = describeParameters(session.getModule(), func);
  countOps(func, outline);
  outline.print(llvm::outs(), options.verbose);
  if (options.verbose)
    printTensors(func);
  return kDone;
}
