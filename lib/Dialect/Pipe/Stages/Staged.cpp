//===- Staged.cpp - what all ranks of one entry share ---------------------===//
//
// Who reads a value follows from its uses: in the loop the stages whose calls do, before it the stage that makes what is made
// of it, behind it the last stage.
//
//===----------------------------------------------------------------------===//
#include "Staged.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// What stage `to` reads of stage `from` and its rank has not got through an earlier stage.
SmallVector<Value> Staged::getMessage(int32_t from, int32_t to) {
  auto isReadBy = [&](int32_t stage, Value value) {
    return llvm::is_contained(calls[static_cast<size_t>(stage)]->getOperands(), value);
  };
  SmallVector<Value> values;
  for (Value value : calls[from]->getResults()) {
    bool isThere = false;
    for (int32_t stage = from + 1; stage < to; ++stage)
      isThere |= getRank(stage) == getRank(to) && isReadBy(stage, value);
    if (!isThere && isReadBy(to, value))
      values.push_back(value);
  }
  return values;
}

/// Pairs without a channel of their own, before or behind the loop, are numbered behind the others by their first stage.
int64_t Staged::getChannel(int32_t from, int32_t to) const {
  for (auto [number, channel] : llvm::enumerate(table.channels))
    if (channel.from == from && channel.to == to)
      return static_cast<int64_t>(number);
  return static_cast<int64_t>(table.channels.size()) + from;
}

/// -1 for what nobody reads.
int32_t Staged::getMaker(Operation *call) const {
  int32_t maker = -1;
  for (Value result : call->getResults())
    if (auto found = readers.find(result); found != readers.end())
      maker = maker < 0 ? *found->second.begin() : std::min(maker, *found->second.begin());
  return maker;
}

/// The rank of the first stage that reads an argument; 0 for what nobody reads.
int32_t Staged::getReader(Value argument) const {
  auto found = readers.find(argument);
  return getRank(found == readers.end() ? 0 : *found->second.begin());
}

/// From the loop backward, as calls before it read each other's results. What stands behind it runs where the last stage does.
void Staged::findReaders() {
  auto read = [&](Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (user == loop) {
        for (Operation *call : loop.getBody().front().getArgument(use.getOperandNumber()).getUsers())
          if (auto stage = stageOf.find(call); stage != stageOf.end())
            readers[use.get()].insert(stage->second);
      } else if (loop->isBeforeInBlock(user)) {
        // A caller gets an argument from whoever has it.
        if (value.getDefiningOp() || !user->hasTrait<OpTrait::IsTerminator>())
          readers[value].insert(table.numStages - 1);
      } else if (int32_t maker = getMaker(user); maker >= 0) {
        readers[use.get()].insert(maker);
      }
    }
  };
  // Arguments come last: who reads them depends on who makes what is made of them.
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    llvm::for_each(op->getResults(), read);
  llvm::for_each(func.getArguments(), read);
}
