//===- BufferAssignment.cpp - where every value of a program lies ---------===//
//
// One walk each, all linear but for the planning of the arena:
//
//   steps       forwards    collectives move up to where their operand exists
//   roots       forwards    aliases are seen through
//   waits       backwards   when a collective is waited for
//   uses        forwards    the last two ops that read each root
//   in place    kernels     which argument a result may take the place of: the one that allows it most often
//   places      backwards
//   lifetimes   storages
//
// What in place means for a root, from the back: at step q a kernel writes %r where %a lies. Whatever else is placed inside
// of %a's bytes (a part of it, if %a is a concat) has to be read for the last time before q, which `until` says of %a.
//
//   step       ...  p          q
//   %a              concat  ─▶ read here, for the last time
//   %part     ─▶ in %a         must not be read from here on
//   %r                         made here, in the bytes of %a
//
//===----------------------------------------------------------------------===//
#include "BufferAssignment.h"

#include "cleave/Dialect/Exec/IR/Bucket.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <limits>

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

static constexpr unsigned kNone = std::numeric_limits<unsigned>::max();
/// Collectives that are on their way at once because of being moved up; more would hold memory for little.
static constexpr size_t kMostAhead = 2;
/// Messages of which the later ones start before the first one is done; what they send is kept.
static constexpr size_t kMostMessages = 2;

//===----------------------------------------------------------------------===//
// Kinds of ops
//===----------------------------------------------------------------------===//

bool cleave::exec::communicates(Operation *op) {
  auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
  return collective && collective.communicates();
}

static bool isMessage(Operation *op) { return isa<pipe::SendOp, pipe::RecvOp>(op); }
/// What starts where it stands, and is done where somebody waits for it.
static bool meets(Operation *op) { return communicates(op) || isMessage(op); }
static bool isTransfer(Operation *op) { return isa<OffloadOp, FetchOp>(op); }
/// What goes on while other ops do, and touches its operands and results until it is waited for.
static bool goesOn(Operation *op) { return meets(op) || isTransfer(op); }

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

BufferAssignment::BufferAssignment(Block &block, RankTable &table, ArrayRef<spmd::StatePlace> states,
                                   codegen::KernelRules rules, TransferEnds ends)
    : block(block), table(table), rules(rules), ends(std::move(ends)), states(states) {
  auto module = block.getParentOp()->getParentOfType<ModuleOp>();
  for (auto kernel : module.getOps<KernelOp>())
    kernels[kernel.getSymNameAttr()] = kernel;
}

KernelOp BufferAssignment::getKernel(LaunchOp op) const { return kernels.lookup(op.getKernelAttr().getAttr()); }

/// Those of a bucket stand behind what the last of them reads, and what reads them and moves along behind that.
static void alignBuckets(Block &block, DenseMap<Operation *, int64_t> &keys, const DenseSet<Operation *> &moved) {
  DenseMap<Attribute, int64_t> ofBucket;
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    for (Operation &op : block) {
      if (!moved.contains(&op))
        continue;
      int64_t &key = keys[&op], before = key;
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp())
          key = std::max(key, keys.lookup(maker));
      if (IntegerAttr bucket = getBucket(&op)) {
        int64_t &most = ofBucket.try_emplace(bucket, -1).first->second;
        hasChanged |= key > most;
        most = std::max(most, key);
        key = most;
      }
      hasChanged |= key != before;
    }
  }
}

/// Aliases and loads are moved along with collectives, so that none stands in the way of another. Moving up is bounded: what
/// is gathered from weights could start at once, all of it, and would have to be kept until it is read. Gradients are there anyway.
/// Every op stands behind the one that it has to wait for: `keys`, the number of that op, or its own where it stays. Messages
/// stay where the schedule has them: in another order ranks could wait for each other for ever.
void BufferAssignment::orderSteps() {
  DenseMap<Operation *, int64_t> keys, firstReads;
  SmallVector<Operation *> collectives;
  DenseSet<Operation *> moved;
  int64_t number = 0, lastMark = -1;
  for (Operation &op : block) {
    int64_t key = number;
    bool isMoved = communicates(&op), isAlias = getAliasOffset(&op).has_value();
    if (isMoved || isAlias || (op.getNumResults() == 1 && isLoaded(op.getResult(0)))) {
      moved.insert(&op);
      key = -1;
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp())
          key = std::max(key, keys[maker]);
    }
    if (isMoved && !getBucket(&op) && collectives.size() >= kMostAhead) {
      auto read = firstReads.find(collectives[collectives.size() - kMostAhead]);
      key = std::max(key, read == firstReads.end() ? number : read->second);
    }
    for (Value operand : op.getOperands())
      if (Operation *maker = lookThrough(operand).getDefiningOp(); maker && !isAlias)
        firstReads.try_emplace(maker, number);
    if (isMoved && !getBucket(&op))
      collectives.push_back(&op);
    key = std::max(key, lastMark);
    if (isMark(&op))
      lastMark = number;
    keys[&op] = key;
    numbers[&op] = number++;
    steps.push_back(&op);
  }
  alignBuckets(block, keys, moved);
  llvm::sort(steps, [&](Operation *a, Operation *b) {
    return std::pair(keys[a], numbers[a]) < std::pair(keys[b], numbers[b]);
  });
  for (auto [step, op] : llvm::enumerate(steps)) {
    numbers[op] = step;
    op->moveBefore(&block, block.end());
  }
  pairMarks();
}

/// From the back: a result is needed at the first step that reads it. Who only sees it in another shape passes on when that
/// one is needed, and so does a collective that reads it, as streams keep their order. A later one is waited for behind all
/// that were started before. Nobody reads what was sent: it is kept until a few messages later, or all microbatches would be.
void BufferAssignment::findWaits() {
  DenseMap<Value, int64_t> needed;
  SmallVector<int64_t> messages; // from the back
  int64_t next = steps.size() - 1;
  for (Operation *op : llvm::reverse(steps)) {
    int64_t step = numbers[op];
    if (meets(op)) {
      if (isMessage(op) && messages.size() >= kMostMessages)
        next = std::min(next, messages[messages.size() - kMostMessages]);
      for (Value result : op->getResults())
        if (auto read = needed.find(result); read != needed.end())
          next = std::min(next, read->second);
      if (isMessage(op))
        messages.push_back(step);
      step = waits[op] = next;
    }
    // Copies have streams of their own, and what they read is there when they begin.
    if (isa<OffloadOp>(op)) {
      Operation *end = ends.lookup(op);
      waits[op] = end ? std::max(step, numbers[end]) : step;
    } else if (isa<FetchOp>(op)) {
      auto read = needed.find(op->getResult(0));
      waits[op] = read == needed.end() ? step : std::max(step, read->second);
    }
    if (isMark(op))
      next = std::min(next, step);
    if (isSeenThrough(op)) {
      auto read = needed.find(op->getResult(0));
      step = read == needed.end() ? kNever : read->second;
    }
    for (Value operand : op->getOperands()) {
      auto [entry, isNew] = needed.try_emplace(operand, step);
      entry->second = std::min(entry->second, step);
    }
  }
}

/// A collective reads its operand until it is waited for. That moves uses behind later ones, hence the comparisons.
void BufferAssignment::findUses() {
  for (Operation *op : steps) {
    if (isSeenThrough(op))
      continue;
    // Where a body ends, what it yields is written to what the loop carries.
    SmallVector<Value> touched(op->getOperands());
    if (isa<LeaveOp>(op))
      llvm::append_range(touched, op->getResults());
    for (Value operand : touched) {
      Value root = getRoot(operand).value;
      Use use{op, getEnd(root, goesOn(op) ? waits[op] : numbers[op])};
      Uses &known = uses[root];
      if (known.last.op == op)
        continue;
      if (use.step >= known.last.step)
        known.before = std::exchange(known.last, use);
      else if (use.step >= known.before.step && known.before.op != op)
        known.before = use;
    }
  }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Another reader may be a collective that is waited for at this very step: the wait comes first.
bool BufferAssignment::dies(OpOperand &operand) const {
  Operation *op = operand.getOwner();
  Root root = getRoot(operand.get());
  const Uses &known = uses.find(root.value)->second;
  const Use &other = known.last.op == op ? known.before : known.last;
  auto isSame = [&](Value value) { return getRoot(value).value == root.value; };
  if (getEnd(root.value, numbers.lookup(op)) != numbers.lookup(op))
    return false;
  return isAllOf(operand.get(), root) && other.step <= numbers.lookup(op) &&
         llvm::count_if(op->getOperands(), isSame) == 1;
}

/// Ranks that meet want what they meet with at one offset; `op` may be an all_gather, which puts it elsewhere on purpose.
bool BufferAssignment::mayLie(Value value, const BufferPlace &at, Operation *op) const {
  Root root = getRoot(value);
  if (!isAllOf(value, root) || places.contains(root.value))
    return false;
  const Storage &storage = storages[at.storage];
  if ((storage.kind == BufferKind::State && !mayReplace(root.value, storage)) || !mayFollow(root.value, at))
    return false;
  return !at.offset.hasColumn() || !(communicates(root.value.getDefiningOp()) || feedsCollective(root.value, op));
}

void BufferAssignment::place(Value root, const BufferPlace &at, int64_t end) {
  places[root] = at;
  until[root] = end;
}

const BufferPlace &BufferAssignment::placeAnywhere(Value root) {
  if (!places.contains(root)) {
    unsigned number = root.getDefiningOp<OffloadOp>() ? kHostArena : kDeviceArena;
    storages.push_back({BufferKind::Activations, spmd::getBytes(root.getType()), number});
    place(root, {unsigned(storages.size() - 1), table.get(0), root}, kNever);
  }
  return getPlace(root);
}

/// Per result of each kernel the argument that could give its place most often.
/// (A kernel that another function launches, too, has been asked about there.)
void BufferAssignment::chooseInPlace() {
  DenseMap<KernelOp, SmallVector<SmallVector<int64_t>>> votes; // by result, then argument; -1 is impossible
  for (Operation *op : steps) {
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      continue;
    KernelOp kernel = getKernel(launch);
    if (kernel.getInPlace())
      continue;
    auto [entry, isNew] = votes.try_emplace(kernel);
    if (isNew) {
      Block &body = kernel.getBody().front();
      std::string reason;
      bool isEmitted = !getConcatenated(kernel) && rules.canEmit(body, reason);
      for (unsigned result = 0; result < launch.getNumResults(); ++result)
        for (unsigned argument = 0; argument < launch.getNumOperands(); ++argument) {
          entry->second.resize(launch.getNumResults());
          entry->second[result].push_back(isEmitted && rules.canBeInPlace(body, argument, result) ? 0 : -1);
        }
    }
    // What a state stands for in the next call cannot be had another way: it counts for more.
    for (OpOperand &operand : launch->getOpOperands())
      for (auto [result, ofResult] : llvm::zip_equal(launch.getResults(), entry->second))
        if (int64_t &count = ofResult[operand.getOperandNumber()]; count >= 0)
          count += isUpdated(operand, result) || isReplaced(operand, result) ? 2 : dies(operand);
  }
  Builder builder(block.getParentOp()->getContext());
  for (auto &[kernel, ofResults] : votes) {
    SmallVector<int64_t> chosen(kernel.getResultTypes().size(), -1);
    for (auto [result, counts] : llvm::enumerate(ofResults)) {
      int64_t most = 0;
      for (auto [argument, count] : llvm::enumerate(counts))
        if (count > most && !llvm::is_contained(chosen, int64_t(argument)))
          most = count, chosen[result] = argument;
    }
    if (llvm::any_of(chosen, [](int64_t argument) { return argument >= 0; }))
      KernelOp(kernel).setInPlaceAttr(builder.getDenseI64ArrayAttr(chosen));
  }
}

/// There is a buffer for each output, also where its value is elsewhere already and will be copied. That of a state is
/// there already.
void BufferAssignment::placeReturned(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (outputs[number] == kNone) {
      outputs[number] = storages.size();
      storages.push_back({BufferKind::Output, spmd::getBytes(operand.get().getType()), number});
    }
    Value root = getRoot(operand.get()).value;
    BufferPlace at{outputs[number], table.get(0), root};
    if (mayLie(operand.get(), at, op))
      place(root, at, kNever);
  }
}

/// A part may be read elsewhere, too, for as long as nothing else is in the whole's bytes.
void BufferAssignment::placeParts(LaunchOp op, ArrayRef<unsigned> parts) {
  BufferPlace whole = placeAnywhere(op.getResult(0));
  int64_t end = until[op.getResult(0)], offset = 0;
  for (auto [number, part] : llvm::enumerate(parts)) {
    Value operand = op.getOperand(part), root = getRoot(operand).value;
    BufferPlace at{whole.storage, table.add(whole.offset, offset), whole.tensor};
    if (mayLie(operand, at, op) && uses[root].last.step < end) {
      place(root, at, end);
      inPart.insert({op, number});
    }
    offset += spmd::getBytes(operand.getType());
  }
}

/// As with parts; a value is framed once.
void BufferAssignment::placeInWindow(spmd::WindowOp op) {
  BufferPlace at = placeAnywhere(op.getResult());
  std::optional<int64_t> own = getOwnOffset(op);
  Value root = getRoot(op.getInput()).value;
  int64_t end = until[op.getResult()];
  if (!own || !mayLie(op.getInput(), {at.storage, table.add(at.offset, *own), at.tensor}, op) ||
      uses[root].last.step >= end)
    return;
  at.offset = table.add(at.offset, *own);
  place(root, at, end);
  inPart.insert({op, 0});
}

void BufferAssignment::share(OpOperand &operand, const BufferPlace &at, int64_t end) {
  Value root = getRoot(operand.get()).value;
  if (dies(operand) && !framed.contains(root) && mayLie(operand.get(), at, operand.getOwner()))
    place(root, at, end);
}

/// Lets what dies at `op` lie where its result does.
void BufferAssignment::placeOperands(Operation *op) {
  for (Value result : op->getResults())
    placeAnywhere(result);
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    ArrayRef<int64_t> inPlace = getKernel(launch).getInPlace().value_or(ArrayRef<int64_t>());
    for (auto [result, argument] : llvm::zip(launch.getResults(), inPlace)) {
      if (argument < 0)
        continue;
      share(launch->getOpOperand(argument), getInPlace(result, launch.getOperand(argument)), numbers[op]);
    }
  } else if (isa<spmd::AllReduceOp>(op)) {
    share(op->getOpOperand(0), getInPlace(op->getResult(0), op->getOperand(0)), numbers[op]);
  } else if (auto gather = dyn_cast<spmd::AllGatherOp>(op)) {
    auto axes = getRowAxes(gather.getDims(), gather.getInput().getType().getShape());
    if (!axes || gather.getDims().empty() || cast<ArrayAttr>(gather.getDims()[0]).empty())
      return;
    BufferPlace at = getPlace(gather.getResult());
    at.offset = table.add(at.offset, table.get(*axes, spmd::getBytes(gather.getInput().getType())));
    share(op->getOpOperand(0), at, until[gather.getResult()]);
  }
}

/// From the back, so that a value's users have said where they want it before it is reached.
void BufferAssignment::placeAll() {
  outputs.assign(block.getTerminator()->getNumOperands(), kNone);
  placeArguments();
  for (Operation *op : steps)
    if (auto window = dyn_cast<spmd::WindowOp>(op); window && getOwnOffset(window))
      framed.insert(getRoot(window.getInput()).value);
  for (Operation *op : llvm::reverse(steps)) {
    auto launch = dyn_cast<LaunchOp>(op);
    auto parts = launch ? getConcatenated(getKernel(launch)) : std::nullopt;
    if (isa<func::ReturnOp>(op))
      placeReturned(op);
    else if (parts)
      placeParts(launch, *parts);
    else if (auto window = dyn_cast<spmd::WindowOp>(op))
      placeInWindow(window);
    else if (isa<LeaveOp>(op))
      placeCarried(numbers[op]);
    else if (auto enter = dyn_cast<EnterOp>(op))
      placeInitial(enter);
    else if (llvm::all_of(op->getResults(),
                          [&](Value result) { return getRoot(result).value == result && !isLoaded(result); }))
      placeOperands(op);
  }
}

/// A value that nothing reads is written nevertheless.
void BufferAssignment::findLifetimes() {
  for (auto &[root, at] : places) {
    Operation *maker = root.getDefiningOp();
    Storage &storage = storages[at.storage];
    auto used = uses.find(root);
    int64_t first = maker ? numbers[maker] : 0;
    if (maker && goesOn(maker))
      storage.last = std::max(storage.last, waits[maker]);
    storage.first = storage.first < 0 ? first : std::min(storage.first, first);
    int64_t last = used == uses.end() ? first : used->second.last.step;
    // A copy to the host's memory is done in front of that step, which may have the bytes for what it makes.
    if (used != uses.end() && isa<OffloadOp>(used->second.last.op) && last > numbers[used->second.last.op])
      last = std::max(last - 1, used->second.before.step);
    storage.last = std::max({storage.last, first, last});
  }
}

void BufferAssignment::run() {
  orderSteps();
  findRoots();
  findWaits();
  findUses();
  findCarried();
  chooseInPlace();
  placeAll();
  findLifetimes();
  planArena(kDeviceArena);
  planArena(kHostArena);
}

void BufferAssignment::planArena(unsigned number) {
  SmallVector<LiveInterval> intervals;
  SmallVector<Storage *> planned;
  for (Storage &storage : storages)
    if (storage.kind == BufferKind::Activations && storage.number == number) {
      intervals.push_back({storage.first, storage.last, storage.bytes});
      planned.push_back(&storage);
    }
  arenas[number] = planMemory(intervals, kAlignment);
  for (auto [storage, offset] : llvm::zip_equal(planned, arenas[number].offsets))
    storage->offset = offset;
}

bool BufferAssignment::isInOutput(Value value, unsigned number) const {
  Root root = getRoot(value);
  auto at = places.find(root.value);
  // A state may stay as it is.
  bool isOld = root.value == getOutput(number).old && spmd::getBytes(value.getType()) == getOutput(number).bytes;
  if (at == places.end() || !(isAllOf(value, root) || isOld))
    return false;
  NumberAttr offset = at->second.offset;
  return at->second.storage == outputs[number] && offset.getBase() == 0 && !offset.hasColumn();
}

bool BufferAssignment::isInPart(Operation *concat, unsigned number) const { return inPart.contains({concat, number}); }
