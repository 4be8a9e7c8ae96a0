//===- Transfers.cpp - when values go to the host and back ----------------===//
//
// Times are looked up in one table: when each op that is no copy begins, if nothing waits. Copies of one direction are one behind the other:
// those that go are looked at from the front, those that come back from the end.
//
//===----------------------------------------------------------------------===//
#include "Transfers.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

/// Copies of one direction that are under way at a time, or wait to be read: more would take the memory that they are to save.
static constexpr size_t kMostUnderWay = 2;

namespace {
/// A value that goes and comes back; numbers are those of ops that are no copies.
struct Transfer {
  OffloadOp out;
  FetchOp back;
  double ns = 0;
  size_t begin = 0;  ///< the op in front of which it begins to go
  size_t end = 0;    ///< the op in front of which it is gone
  size_t fetch = 0;  ///< the op in front of which it begins to come back
  size_t read = 0;   ///< the first op that reads it then
  size_t number = 0; ///< which it is of all, in the order of the block
};

class TransferPlacer {
public:
  TransferPlacer(Block &block, cost::OpCosts &costs, double hostBytesPerNs);

  TransferPlan run();

private:
  size_t findReader(Value value) const;
  size_t findFirst(double ns, size_t from) const;
  size_t findLast(double ns) const;
  size_t leaveLoops(size_t fetch, size_t read) const;
  bool hasTime(const Transfer &transfer) const;
  void placeOut();
  void placeBack();
  double countExposed() const;
  void move(TransferPlan &plan);

  Block &block;
  double bytesPerNs;
  SmallVector<Operation *> ops; ///< all but copies, the return last
  DenseMap<Operation *, size_t> numbers;
  std::vector<double> begins; ///< of each op, in ns
  std::vector<Transfer> transfers;
};
} // namespace

/// What goes between ranks goes on beside kernels, so it gives no time.
TransferPlacer::TransferPlacer(Block &block, cost::OpCosts &costs, double hostBytesPerNs)
    : block(block), bytesPerNs(hostBytesPerNs) {
  double now = 0;
  for (Operation &op : block) {
    if (isa<OffloadOp, FetchOp>(op))
      continue;
    numbers[&op] = ops.size();
    ops.push_back(&op);
    begins.push_back(now);
    now += costs.get(op).computeNs;
  }
}

/// The first op that reads the value, or what only shows its bytes.
size_t TransferPlacer::findReader(Value value) const {
  size_t first = ops.size() - 1;
  for (Operation *user : value.getUsers())
    if (!isa<OffloadOp, FetchOp>(user))
      first = std::min(first, getAliasOffset(user) ? findReader(user->getResult(0)) : numbers.lookup(user));
  return first;
}

/// The first op from `from` on that does not begin before `ns`; the last one if all do.
size_t TransferPlacer::findFirst(double ns, size_t from) const {
  auto found = std::lower_bound(begins.begin() + static_cast<ptrdiff_t>(from), begins.end(), ns);
  return std::min(static_cast<size_t>(found - begins.begin()), ops.size() - 1);
}

/// The last op that does not begin behind `ns`; the first one if all do.
size_t TransferPlacer::findLast(double ns) const {
  auto next = static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), ns) - begins.begin());
  return next == 0 ? 0 : next - 1;
}

/// A copy in a loop's body would be made in each iteration: it begins behind the last mark before its reader.
size_t TransferPlacer::leaveLoops(size_t fetch, size_t read) const {
  for (size_t at = fetch; at < read; ++at)
    if (isMark(ops[at]))
      fetch = at + 1;
  return fetch;
}

/// By itself, as if no other value went.
bool TransferPlacer::hasTime(const Transfer &transfer) const {
  return findFirst(begins[transfer.begin] + transfer.ns, transfer.begin) <
         findLast(begins[transfer.read] - transfer.ns);
}

/// What a collective makes is there where somebody waits for it, which is for a reader.
void TransferPlacer::placeOut() {
  llvm::sort(transfers, [](const Transfer &a, const Transfer &b) {
    return std::pair(a.begin, a.number) < std::pair(b.begin, b.number);
  });
  double free = 0;
  for (auto [index, transfer] : llvm::enumerate(transfers)) {
    free = std::max(free, begins[transfer.begin]) + transfer.ns;
    transfer.end = findFirst(free, transfer.begin);
    if (index + kMostUnderWay < transfers.size())
      transfer.end = std::min(transfer.end, transfers[index + kMostUnderWay].begin);
    // Kernels wait then, and the link is free.
    free = std::min(free, begins[transfer.end]);
  }
}

void TransferPlacer::placeBack() {
  llvm::sort(transfers, [](const Transfer &a, const Transfer &b) {
    return std::pair(a.read, a.number) < std::pair(b.read, b.number);
  });
  double before = begins.back();
  for (size_t index = transfers.size(); index-- > 0;) {
    Transfer &transfer = transfers[index];
    before = std::min(before, begins[transfer.read]) - transfer.ns;
    transfer.fetch = std::min(findLast(before), transfer.read);
    if (index >= kMostUnderWay)
      transfer.fetch = std::max(transfer.fetch, transfers[index - kMostUnderWay].read);
    transfer.fetch = leaveLoops(std::max(transfer.fetch, transfer.end), transfer.read);
    before = std::max(before, begins[transfer.fetch]);
  }
}

/// The ops one after the other, each waiting for the copies that it has to: those that are done in front of it, and those that it reads.
double TransferPlacer::countExposed() const {
  enum Kind { Begin, End, Fetch, Read };
  SmallVector<std::tuple<size_t, Kind, size_t>> events;
  for (size_t index = 0; index < transfers.size(); ++index) {
    const Transfer &transfer = transfers[index];
    events.push_back({transfer.begin, Begin, index});
    events.push_back({transfer.end, End, index});
    events.push_back({transfer.fetch, Fetch, index});
    events.push_back({transfer.read, Read, index});
  }
  llvm::sort(events);
  std::vector<double> gone(transfers.size()), there(transfers.size());
  double waited = 0, outFree = 0, backFree = 0;
  for (auto [op, kind, index] : events) {
    double now = begins[op] + waited;
    if (kind == Begin)
      gone[index] = outFree = std::max(outFree, now) + transfers[index].ns;
    else if (kind == Fetch)
      there[index] = backFree = std::max({backFree, now, gone[index]}) + transfers[index].ns;
    else
      waited += std::max((kind == End ? gone : there)[index] - now, 0.0);
  }
  return waited;
}

/// What only shows a value's bytes stands behind what makes it.
static void moveAliases(Operation *maker) {
  for (Operation *user : llvm::to_vector(maker->getUsers()))
    if (getAliasOffset(user)) {
      user->moveAfter(maker);
      moveAliases(user);
    }
}

void TransferPlacer::move(TransferPlan &plan) {
  // In the order of their directions, so that of two in front of one op the first that is needed is first.
  for (Transfer &transfer : transfers) {
    transfer.back->moveBefore(ops[transfer.fetch]);
    moveAliases(transfer.back);
  }
  llvm::sort(transfers, [](const Transfer &a, const Transfer &b) {
    return std::pair(a.begin, a.number) < std::pair(b.begin, b.number);
  });
  for (Transfer &transfer : transfers) {
    transfer.out->moveBefore(ops[transfer.begin]);
    plan.ends[transfer.out] = ops[transfer.end];
    ++plan.values;
    plan.bytes += spmd::getBytes(transfer.out.getType());
  }
}

TransferPlan TransferPlacer::run() {
  TransferPlan plan;
  for (OffloadOp out : llvm::make_early_inc_range(block.getOps<OffloadOp>())) {
    SmallVector<Operation *> readers(out->getUsers());
    for (Operation *reader : readers) {
      auto back = cast<FetchOp>(reader);
      Transfer transfer{out, back, double(spmd::getBytes(out.getType())) / bytesPerNs};
      Operation *maker = out.getInput().getDefiningOp();
      bool isMet = maker && (communicates(maker) || isa<pipe::RecvOp>(maker));
      transfer.begin = isMet ? findReader(out.getInput()) : maker ? numbers.lookup(maker) + 1 : 0;
      transfer.read = findReader(back.getResult());
      if (readers.size() == 1 && transfer.begin < transfer.read && hasTime(transfer)) {
        transfer.number = transfers.size();
        transfers.push_back(transfer);
        continue;
      }
      back.getResult().replaceAllUsesWith(out.getInput());
      back->erase();
      ++plan.stayed;
    }
    if (out->use_empty())
      out->erase();
  }
  placeOut();
  placeBack();
  plan.exposedNs = countExposed();
  move(plan);
  return plan;
}

TransferPlan cleave::exec::placeTransfers(Block &block, cost::OpCosts &costs, double hostBytesPerNs) {
  return TransferPlacer(block, costs, hostBytesPerNs).run();
}
