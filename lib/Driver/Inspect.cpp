//===- Inspect.cpp - what is in a model -----------------------------------===//
#include "cleave/Compiler/Values.h"
#include "cleave/Driver/Session.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

static int64_t getBytes(RankedTensorType type) {
  return type.getNumElements() * reference::getElementBytes(type.getElementType());
}

static void printSignature(StringRef title, ArrayRef<std::string> names, ArrayRef<RankedTensorType> types) {
  llvm::outs() << title << ":\n";
  for (auto [name, type] : llvm::zip_equal(names, types))
    llvm::outs() << llvm::formatv("  {0,-40} {1}\n", name, formatType(type));
}

/// Nodes that read a parameter, as a plan addresses them: `node:/enc/MatMul#1`.
static SmallVector<std::string> getUses(nn::LoadOp load) {
  SmallVector<std::string> uses;
  for (OpOperand &use : load.getResult().getUses())
    for (const nn::NodeInfo &info : nn::getNodeInfos(use.getOwner()->getLoc()))
      for (auto [index, name] : llvm::enumerate(info.operands))
        if (name == load.getParam() && !info.node.empty())
          uses.push_back(("node:" + info.node + "#" + Twine(index)).str());
  return uses;
}

static void printParameters(ModuleOp module, func::FuncOp func) {
  llvm::MapVector<StringRef, SmallVector<std::string>> uses;
  func.walk([&](nn::LoadOp load) { llvm::append_range(uses[load.getParam()], getUses(load)); });
  int64_t count = 0, bytes = 0;
  for (nn::ParamOp param : module.getOps<nn::ParamOp>()) {
    ++count;
    bytes += getBytes(cast<RankedTensorType>(param.getType()));
  }
  llvm::outs() << llvm::formatv("parameters: {0}, {1} bytes\n", count, bytes);
  for (nn::ParamOp param : module.getOps<nn::ParamOp>()) {
    SmallVector<std::string> &places = uses[param.getSymName()];
    llvm::outs() << llvm::formatv("  {0,-40} {1,-16} {2}\n", param.getSymName(),
                                  formatType(cast<RankedTensorType>(param.getType())), llvm::join(places, " "));
  }
}

/// Tensors inside, by their names, with the node that computes each.
static void printTensors(func::FuncOp func) {
  llvm::outs() << "tensors:\n";
  func.walk([&](Operation *op) {
    for (Value result : op->getResults())
      for (StringRef name : nn::getTensorNames(result))
        llvm::outs() << llvm::formatv("  {0,-40} {1,-16} {2}\n", name,
                                      formatType(cast<RankedTensorType>(result.getType())), nn::describeNode(op));
  });
}

static void printOps(func::FuncOp func) {
  std::map<std::string, int64_t> counts;
  double flops = 0;
  func.walk([&](Operation *op) {
    if (auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op)) {
      ++counts[op->getName().getStringRef().str()];
      flops += ruled.getShardingRule().flops;
    }
  });
  int64_t total = 0;
  for (const auto &[name, count] : counts)
    total += count;
  llvm::outs() << llvm::formatv("ops: {0}, {1:e2} floating-point operations in contractions\n", total, flops);
  for (const auto &[name, count] : counts)
    llvm::outs() << llvm::formatv("  {0,-40} {1}\n", name, count);
}

ExitCode cleave::driver::inspectCommand(Session &session) {
  func::FuncOp func = session.load(/*collectAllErrors=*/true) ? session.getEntry() : nullptr;
  if (!func)
    return session.getExitCode();
  printSignature("inputs", getInputNames(func), getInputTypes(func));
  printSignature("outputs", getOutputNames(func), getOutputTypes(func));
  printOps(func);
  printParameters(session.getModule(), func);
  if (session.getOptions().verbose)
    printTensors(func);
  return kDone;
}
