//===- SplitRemarks.cpp - what stages have or make more than once ---------===//
//
// Splitting a model into stages costs memory and time that nobody asked for: a parameter on several ranks, a value that each
// stage makes for itself, or that one makes and sends. A remark says each, with its bytes and nanoseconds.
//
//===----------------------------------------------------------------------===//
#include "SplitRemarks.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/InterleavedRange.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

void cleave::pipe::tellOfShared(func::FuncOp func, const ModelParts &parts, ArrayRef<int64_t> ranks) {
  llvm::MapVector<StringRef, std::pair<int64_t, SmallVector<int64_t>>> users;
  for (auto [number, stage] : llvm::enumerate(parts.stages))
    for (Operation *op : stage.ops)
      if (auto load = dyn_cast<nn::LoadOp>(op)) {
        auto &[bytes, stages] = users[load.getParam()];
        bytes = std::max(bytes, spmd::getBytes(load.getType()));
        if (int64_t own = parts.units.getStage(static_cast<int64_t>(number)); !llvm::is_contained(stages, own))
          stages.push_back(own);
      }
  for (const auto &[name, use] : users)
    if (llvm::any_of(use.second,
                     [&, first = use.second.front()](int64_t stage) { return ranks[stage] != ranks[first]; }))
      mlir::emitRemark(func.getLoc()) << "parameter '" << name << "', " << use.first << " bytes, is used by stages "
                                      << llvm::interleaved(use.second) << ": each of their ranks holds it";
}

void cleave::pipe::tell(StringRef what, const SharedInvariant &value) {
  auto names = spmd::getTensorNames(value.op->getResult(0));
  std::string node = spmd::describeNode(value.op);
  StringRef name = !names.empty() ? names[0] : !node.empty() ? StringRef(node) : value.op->getName().getStringRef();
  InFlightDiagnostic remark = mlir::emitRemark(value.op->getLoc());
  remark << what << " '" << name << "', " << value.bytes << " bytes, takes " << std::llround(value.ns)
         << " ns to make and " << std::llround(value.sendNs) << " ns to send: ";
  ArrayRef<int64_t> stages = value.stages;
  if (value.isSent)
    remark << "stage " << stages.front() << " makes it for stages " << llvm::interleaved(stages.drop_front());
  else
    remark << "stages " << llvm::interleaved(stages) << " each make it";
}

void cleave::pipe::tellOfCheap(func::FuncOp func, const ModelParts &parts, const DeviceRates &rates) {
  // An op that is in several stages is one that findParts has put there again.
  DenseMap<Operation *, SmallVector<int64_t>> makers;
  auto getStage = [&](size_t unit) { return parts.units.getStage(static_cast<int64_t>(unit)); };
  for (auto [number, stage] : llvm::enumerate(parts.stages))
    for (Operation *op : stage.ops)
      if (!isOfEveryStage(op))
        if (SmallVector<int64_t> &own = makers[op]; !llvm::is_contained(own, getStage(number)))
          own.push_back(getStage(number));
  for (Operation &op : func.getBody().front()) {
    auto own = makers.find(&op);
    if (own == makers.end() || own->second.size() < 2)
      continue;
    SharedInvariant cheap{&op, {}};
    // What is only on the way to another cheap value is no news: of a chain, the end is told.
    for (int64_t stage : own->second)
      if (llvm::any_of(op.getUsers(), [&, stage = stage](Operation *user) {
            auto found = makers.find(user);
            return found != makers.end() && found->second.size() == 1 && found->second.front() == stage;
          }))
        cheap.stages.push_back(stage);
    if (cheap.stages.size() < 2)
      continue;
    // The cost is that of all that it is made of, each once however often it is read.
    llvm::SetVector<Operation *> madeOf;
    madeOf.insert(&op);
    for (size_t next = 0; next < madeOf.size(); ++next) {
      cheap.ns += getOpNs(*madeOf[next], rates);
      for (Value operand : madeOf[next]->getOperands())
        if (Operation *producer = operand.getDefiningOp(); makers.lookup(producer).size() > 1)
          madeOf.insert(producer);
    }
    cheap.bytes = countResultBytes(&op);
    cheap.sendNs = rates.getMessageNs(cheap.bytes);
    tell("value", cheap);
  }
}
