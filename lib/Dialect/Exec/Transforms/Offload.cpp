//===- Offload.cpp - values wait in the host's memory ---------------------===//
//
//   %h = ..                         %h = ..
//                                   %o = exec.offload %h
//   %s = nn.reshape %h              %s = nn.reshape %h
//   .. forward reads %h, %s         .. forward reads %h, %s
//   .. the loss                     .. the loss
//                                   %f = exec.fetch %o      %t = nn.reshape %f
//   .. backward reads %h, %s        .. backward reads %f, %t
//
// Bytes go and come: of a value that only shows another one's, that one goes. Which op is behind the loss is known where the step is one function
// by its place, and of a rank of a pipeline by the action that it is of.
//
// What cannot go is an error, at the pattern that asks for it, where none of the tensors that it names can: nothing that is asked for is
// passed over in silence, and patterns may name more than what is kept.
//
//===----------------------------------------------------------------------===//
#include "../Memory/Loss.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Exec/Transforms/RecomputePass.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Pipe/IR/Action.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Plan/NamePattern.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/Statistic.h"

namespace cleave::exec {
#define GEN_PASS_DEF_OFFLOAD
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-offload"

ALWAYS_ENABLED_STATISTIC(numOffloaded, "values that go to the host's memory and come back");

namespace {
/// A pattern of the plan, and what is known of the tensors that it names: one of them goes, or why the first one does not.
struct Wish {
  spmd::NamePattern pattern;
  spmd::PlanPlace place;
  bool isMet = false;
  std::string reason;
};

/// The values of one function.
class Offloader {
public:
  /// Null `loss`: the function is a pipeline's rank, whose ops say what they are of.
  Offloader(func::FuncOp func, Operation *loss, MutableArrayRef<Wish> wishes);

  /// Finds what goes.
  void find();
  void insert();
  ArrayRef<StringRef> getNames() const { return names.getArrayRef(); }

private:
  bool isOfBackward(Operation *op) const { return loss ? backward.contains(op) : pipe::isOfBackward(op); }
  void look(Value value);
  std::string findHindrance(Value root) const;
  void collect(Value value, SmallVectorImpl<OpOperand *> &reads, bool &isReturned) const;
  Value getBack(Value value, Value root, Value back, Operation *reader);

  func::FuncOp func;
  Operation *loss;
  MutableArrayRef<Wish> wishes;
  DenseSet<Operation *> backward;
  /// Made of weights and constants alone, or an argument.
  DenseSet<Value> given;
  llvm::SetVector<Value> roots;
  llvm::SetVector<StringRef> names;
  /// What stands for a value behind the loss.
  DenseMap<Value, Value> returned;
};

struct Offload : cleave::exec::impl::OffloadBase<Offload> {
  using Base::Base;
  Offload(OffloadOptions options, std::vector<spmd::PlanPlace> places, OffloadMode mode, MemoryJudge before,
          MemoryJudge after)
      : Base(std::move(options)), places(std::move(places)), mode(mode), before(std::move(before)),
        after(std::move(after)) {}

  void runOnOperation() override;

private:
  LogicalResult readWishes(std::vector<Wish> &wishes);
  LogicalResult tellHindrances(ArrayRef<Wish> wishes, ArrayRef<StringRef> names);
  Location getPlace(const spmd::PlanPlace &place);
  void drop();
  SmallVector<int64_t> measure(const MemoryJudge &judge);

  /// By pattern; none where the options alone ask.
  std::vector<spmd::PlanPlace> places;
  OffloadMode mode = OffloadMode::Insert;
  MemoryJudge before, after;
};
} // namespace

Offloader::Offloader(func::FuncOp func, Operation *loss, MutableArrayRef<Wish> wishes)
    : func(func), loss(loss), wishes(wishes) {
  bool isForward = true;
  given.insert_range(func.getArguments());
  for (Operation &op : func.getBody().front()) {
    if (!isForward)
      backward.insert(&op);
    isForward &= &op != loss;
    if (llvm::all_of(op.getOperands(), [&](Value value) { return value.getDefiningOp() && given.contains(value); }))
      given.insert_range(op.getResults());
  }
}

/// The value whose bytes it shows.
static Value getShown(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!getAliasOffset(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// What reads a value behind the loss, or what only shows its bytes. What shows them there is a reader itself: it is made of the copy then.
void Offloader::collect(Value value, SmallVectorImpl<OpOperand *> &reads, bool &isReturned) const {
  for (OpOperand &use : value.getUses()) {
    Operation *reader = use.getOwner();
    isReturned |= isa<func::ReturnOp>(reader);
    if (isOfBackward(reader) && !isa<func::ReturnOp, pipe::SendOp>(reader))
      reads.push_back(&use);
    else if (getAliasOffset(reader))
      collect(reader->getResult(0), reads, isReturned);
  }
}

/// Why the value does not go; empty if it does.
std::string Offloader::findHindrance(Value root) const {
  if (given.contains(root))
    return "is given: weights, inputs and what is made of weights alone stay where they are";
  SmallVector<OpOperand *> reads;
  bool isReturned = false;
  collect(root, reads, isReturned);
  if (isReturned)
    return "is what the step gives back, which has bytes of its own";
  return reads.empty() ? "is not kept: no gradient reads it" : "";
}

/// One more name of a pattern changes nothing where an earlier one has met it.
void Offloader::look(Value value) {
  for (StringRef name : spmd::getTensorNames(value)) {
    names.insert(name);
    for (Wish &wish : wishes) {
      if (!wish.pattern.matches(name))
        continue;
      Value root = getShown(value);
      std::string hindrance = findHindrance(root);
      if (hindrance.empty())
        roots.insert(root);
      wish.isMet |= hindrance.empty();
      if (wish.reason.empty() && !hindrance.empty())
        wish.reason = ("'" + name + "' " + hindrance).str();
    }
  }
}

void Offloader::find() {
  for (BlockArgument argument : func.getArguments())
    look(argument);
  for (Operation &op : func.getBody().front())
    if (!isOfBackward(&op))
      for (Value result : op.getResults())
        look(result);
}

/// The copy, or a clone of what shows a part of it.
Value Offloader::getBack(Value value, Value root, Value back, Operation *reader) {
  if (value == root)
    return back;
  Value &known = returned[value];
  if (!known) {
    Operation *shows = value.getDefiningOp();
    Value shown = getBack(shows->getOperand(0), root, back, reader);
    OpBuilder builder(shows->getContext());
    builder.setInsertionPointAfterValue(shown);
    Operation *made = builder.clone(*shows);
    made->setOperand(0, shown);
    known = made->getResult(0);
  }
  return known;
}

void Offloader::insert() {
  OpBuilder builder(func.getContext());
  for (Value root : roots) {
    SmallVector<OpOperand *> reads;
    bool isReturned = false;
    collect(root, reads, isReturned);
    Operation *first = reads.front()->getOwner();
    for (OpOperand *read : reads)
      if (read->getOwner()->isBeforeInBlock(first))
        first = read->getOwner();
    Operation *maker = root.getDefiningOp();
    builder.setInsertionPointAfter(maker);
    auto out = OffloadOp::create(builder, maker->getLoc(), root.getType(), root);
    builder.setInsertionPoint(first);
    auto back = FetchOp::create(builder, first->getLoc(), root.getType(), out);
    // What clones are made for comes behind them: the first reader is behind all.
    returned.clear();
    for (OpOperand *read : reads)
      read->set(getBack(read->get(), root, back, first));
    ++numOffloaded;
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

Location Offload::getPlace(const spmd::PlanPlace &place) {
  return place.line ? Location(FileLineColLoc::get(&getContext(), place.file, place.line, place.column))
                    : getOperation().getLoc();
}

/// Patterns of a plan have been checked.
LogicalResult Offload::readWishes(std::vector<Wish> &wishes) {
  for (auto [index, text] : llvm::enumerate(tensors)) {
    llvm::Expected<spmd::NamePattern> pattern = spmd::NamePattern::create(text);
    if (!pattern)
      return getOperation().emitError() << llvm::toString(pattern.takeError());
    wishes.push_back({*pattern, index < places.size() ? places[index] : spmd::PlanPlace(), false, {}});
  }
  return success();
}

/// All of them, not the first alone.
LogicalResult Offload::tellHindrances(ArrayRef<Wish> wishes, ArrayRef<StringRef> names) {
  LogicalResult result = success();
  for (const Wish &wish : wishes) {
    if (wish.isMet)
      continue;
    StringRef text = wish.pattern.getText();
    InFlightDiagnostic error = emitError(getPlace(wish.place)) << "'offload' asks for '" << text << "', ";
    if (wish.reason.empty())
      error << "which names no tensor of the model" << suggestNames(text, names);
    else
      error << "of which nothing can wait in the host's memory: " << wish.reason;
    result = failure();
  }
  return result;
}

/// Of a program for the host: its memory is that of the device.
void Offload::drop() {
  getOperation().walk([](FetchOp back) {
    auto out = back.getInput().getDefiningOp<OffloadOp>();
    back.getResult().replaceAllUsesWith(out.getInput());
    back.erase();
    if (out->use_empty())
      out.erase();
  });
  emitWarning(getPlace(places.empty() ? spmd::PlanPlace() : places.front()))
      << "'offload' changes nothing: the program runs on the host, which has no other memory";
}

/// By rank, of a copy, of which the judge makes a program; none without a judge.
SmallVector<int64_t> Offload::measure(const MemoryJudge &judge) {
  if (!judge)
    return {};
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>(getOperation()->clone()));
  return judge(*copy);
}

void Offload::runOnOperation() {
  if (mode == OffloadMode::Drop)
    return drop();
  std::vector<Wish> wishes;
  if (failed(readWishes(wishes)))
    return signalPassFailure();
  std::vector<Offloader> offloaders;
  std::vector<func::FuncOp> steps;
  llvm::SetVector<StringRef> names;
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    bool isRank = pipe::getRank(func).has_value();
    if (func.isExternal() || !func.getBody().hasOneBlock())
      continue;
    FailureOr<SmallVector<spmd::StatePlace>> states = spmd::getStates(func);
    if (failed(states))
      return signalPassFailure();
    Operation *loss = isRank || states->empty() ? nullptr : findLoss(func);
    if (!isRank && !loss)
      continue;
    steps.push_back(func);
    offloaders.emplace_back(func, loss, wishes).find();
    names.insert_range(offloaders.back().getNames());
  }
  // Where there is no step there is nothing that is kept. Of a pipeline's ranks each has some of the tensors: errors have been told before.
  bool areRanks = !steps.empty() && pipe::getRank(steps.front());
  if (!steps.empty() && !areRanks && failed(tellHindrances(wishes, names.getArrayRef())))
    return signalPassFailure();
  if (steps.empty())
    return;
  SmallVector<int64_t> peakBefore = measure(before);
  if (mode == OffloadMode::Insert)
    for (Offloader &offloader : offloaders)
      offloader.insert();
  SmallVector<int64_t> peakAfter = measure(after);
  if (peakBefore.empty() || peakAfter.empty())
    return;
  Builder builder(&getContext());
  auto getMost = [&](ArrayRef<int64_t> bytes) { return builder.getI64IntegerAttr(*llvm::max_element(bytes)); };
  getOperation()->setAttr(kOffloadAttr, builder.getDictionaryAttr({builder.getNamedAttr("before", getMost(peakBefore)),
                                                                   builder.getNamedAttr("after", getMost(peakAfter))}));
}

std::unique_ptr<Pass> cleave::exec::createOffload(const spmd::PlanMemory &plan, OffloadMode mode, MemoryJudge before,
                                                  MemoryJudge after) {
  OffloadOptions options;
  std::vector<spmd::PlanPlace> places;
  for (const spmd::PlanPattern &pattern : plan.offload) {
    options.tensors.push_back(pattern.text);
    places.push_back(pattern.place);
  }
  return std::make_unique<Offload>(std::move(options), std::move(places), mode, std::move(before), std::move(after));
}
