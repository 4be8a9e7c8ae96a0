//===- Conformance.cpp - what every communicator must do ------------------===//
//
// A case is an operation with two operands of this rank; what the output must be is said element by element. Cases are
// started, a few at a time, and checked when they are done.
//
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "Oracle.h"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace cleave::runtime;
using namespace cleave::runtime::test;

namespace {

/// Elements at some address that is aligned to nothing else, and some more around them.
class Buffer {
public:
  static constexpr uint64_t kMargin = 64;

  Buffer(ElementType type, uint64_t extent, uint64_t seed)
      : type(type), extent(extent), bytes((extent + 2 * kMargin) * getElementBytes(type) + 64, char(0xA5)) {
    uint64_t misaligned = reinterpret_cast<uintptr_t>(bytes.data()) % 64;
    first = bytes.data() + (64 - misaligned) % 64 + (kMargin / 2 + seed % 16) * getElementBytes(type);
  }
  char *at(uint64_t index) { return first + index * getElementBytes(type); }
  void set(uint64_t index, uint64_t bits) { writeElement(at(index), type, bits); }

  ElementType type;
  uint64_t extent;
  std::vector<char> bytes;
  char *first;
};

/// A group of this rank.
struct Members {
  GroupId id;
  std::vector<int> ranks;
  uint64_t index;

  uint64_t size() const { return ranks.size(); }
};

struct Case {
  Operation operation;
  std::shared_ptr<Buffer> input, output;
  /// All bytes of the output's buffer.
  std::vector<char> expected;
  std::shared_ptr<std::vector<Piece>> pieces;
};

class Suite {
public:
  Suite(Communicator &communicator, const Mesh &mesh, Scope scope, Tally &tally)
      : communicator(communicator), mesh(mesh), scope(scope), tally(tally) {}

  void run();

private:
  void makeGroups();
  void checkGroup(const Members &group);
  void checkLarge(const Members &group);
  void checkPending();
  void checkInterleavings();
  void checkReductions(const Members &group, ElementType type, uint64_t count, bool all);
  void checkMoves(const Members &group, ElementType type, uint64_t count);

  Case makeAllReduce(const Members &group, Reduction reduction, ElementType type, uint64_t count, bool inPlace);
  Case makeAllGather(const Members &group, ElementType type, Tiling to, bool inPlace);
  Case makeReduceScatter(const Members &group, Reduction reduction, ElementType type, Tiling from, bool inPlace);
  Case makeAllToAll(const Members &group, ElementType type, Tiling from, Tiling to);
  Case makeExchange(const Members &group, ElementType type, uint64_t count);

  /// The element at `index` of what a member gives to the case that is being made.
  uint64_t given(const Members &group, uint64_t member, ElementType type, Reduction reduction, uint64_t index) const {
    return makeElement(type, reduction, scramble(seed * 64 + group.ranks[member], index));
  }
  void fill(Buffer &buffer, const Members &group, Reduction reduction, uint64_t extent);
  uint64_t combine(const Members &group, ElementType type, Reduction reduction, uint64_t index);
  template <typename Fn> void expect(Case &test, uint64_t count, Fn &&placeAndBits);

  bool failed() const { return !tally.error.empty(); }
  void fail(std::string text) {
    if (!failed())
      tally.error = "rank " + std::to_string(communicator.getRank()) + ", mesh " + getName(mesh) + ": " + text;
  }
  void runAll(std::vector<Case> cases);
  void check(Case &test);

  Communicator &communicator;
  const Mesh &mesh;
  const Scope scope;
  Tally &tally;
  std::vector<Members> groups;
  /// Of the case that is being made; equal on all ranks.
  uint64_t seed = 0;
  std::vector<uint64_t> terms;
};

} // namespace

/// Where element `index` of part `part` lies.
static uint64_t placeOf(const Tiling &tiling, uint64_t part, uint64_t index) {
  return part * tiling.partStride + index / tiling.row * tiling.rowStride + index % tiling.row;
}

static uint64_t extentOf(const Tiling &tiling, uint64_t parts) {
  return tiling.numElements() == 0 ? 0 : placeOf(tiling, parts - 1, tiling.numElements() - 1) + 1;
}

//===----------------------------------------------------------------------===//
// Making cases
//===----------------------------------------------------------------------===//

void Suite::fill(Buffer &buffer, const Members &group, Reduction reduction, uint64_t extent) {
  for (uint64_t i = 0; i < extent; ++i)
    buffer.set(i, given(group, group.index, buffer.type, reduction, i));
}

uint64_t Suite::combine(const Members &group, ElementType type, Reduction reduction, uint64_t index) {
  terms.clear();
  for (uint64_t member = 0; member < group.size(); ++member)
    terms.push_back(given(group, member, type, reduction, index));
  return combineElements(type, reduction, terms);
}

/// The output as it is now, with `count` elements replaced by pairs of place and bits.
template <typename Fn> void Suite::expect(Case &test, uint64_t count, Fn &&placeAndBits) {
  Buffer &output = *test.output;
  test.expected = output.bytes;
  for (uint64_t i = 0; i < count; ++i) {
    auto [place, bits] = placeAndBits(i);
    writeElement(test.expected.data() + (output.at(place) - output.bytes.data()), output.type, bits);
  }
}

Case Suite::makeAllReduce(const Members &group, Reduction reduction, ElementType type, uint64_t count, bool inPlace) {
  ++seed;
  Case test;
  test.input = std::make_shared<Buffer>(type, count, seed);
  test.output = inPlace ? test.input : std::make_shared<Buffer>(type, count, seed + group.index);
  fill(*test.input, group, reduction, count);
  expect(test, count, [&](uint64_t i) { return std::pair(i, combine(group, type, reduction, i)); });
  test.operation = allReduce(group.id, reduction, type, test.input->first, test.output->first, count);
  return test;
}

Case Suite::makeAllGather(const Members &group, ElementType type, Tiling to, bool inPlace) {
  ++seed;
  Case test;
  uint64_t count = to.numElements();
  test.output = std::make_shared<Buffer>(type, extentOf(to, group.size()), seed);
  test.input = inPlace ? test.output : std::make_shared<Buffer>(type, count, seed + group.index);
  char *input = inPlace ? test.output->at(group.index * count) : test.input->first;
  for (uint64_t i = 0; i < count; ++i)
    writeElement(input + i * getElementBytes(type), type, given(group, group.index, type, Reduction::Max, i));
  expect(test, group.size() * count, [&](uint64_t i) {
    return std::pair(placeOf(to, i / count, i % count), given(group, i / count, type, Reduction::Max, i % count));
  });
  test.operation = allGather(group.id, type, input, test.output->first, to);
  return test;
}

Case Suite::makeReduceScatter(const Members &group, Reduction reduction, ElementType type, Tiling from, bool inPlace) {
  ++seed;
  Case test;
  uint64_t extent = extentOf(from, group.size()), count = from.numElements();
  test.input = std::make_shared<Buffer>(type, extent, seed + group.index);
  fill(*test.input, group, reduction, extent);
  test.output = inPlace ? test.input : std::make_shared<Buffer>(type, count, seed);
  uint64_t start = inPlace ? group.index * count : 0;
  expect(test, count, [&](uint64_t i) {
    return std::pair(start + i, combine(group, type, reduction, placeOf(from, group.index, i)));
  });
  test.operation = makeOperation(OperationKind::ReduceScatter, group.id, reduction, type, test.input->first,
                                 test.output->at(start), 0, from, {});
  return test;
}

Case Suite::makeAllToAll(const Members &group, ElementType type, Tiling from, Tiling to) {
  ++seed;
  Case test;
  uint64_t extent = extentOf(from, group.size()), count = from.numElements();
  test.input = std::make_shared<Buffer>(type, extent, seed);
  fill(*test.input, group, Reduction::Max, extent);
  test.output = std::make_shared<Buffer>(type, extentOf(to, group.size()), seed + group.index);
  expect(test, group.size() * count, [&](uint64_t i) {
    uint64_t member = i / count, index = i % count;
    return std::pair(placeOf(to, member, index),
                     given(group, member, type, Reduction::Max, placeOf(from, group.index, index)));
  });
  test.operation = makeOperation(OperationKind::AllToAll, group.id, Reduction::None, type, test.input->first,
                                 test.output->first, 0, from, to);
  return test;
}

/// Between each two members none to two boxes of `count` elements and fewer, behind each other at the target with gaps.
Case Suite::makeExchange(const Members &group, ElementType type, uint64_t count) {
  ++seed;
  Case test;
  test.pieces = std::make_shared<std::vector<Piece>>();
  uint64_t inputExtent = 0, outputExtent = 0;
  for (uint32_t target = 0; target < group.size(); ++target) {
    uint64_t filled = 0;
    for (uint32_t source = 0; source < group.size(); ++source) {
      for (uint64_t n = scramble(seed, source * 64 + target) % 3; n > 0; --n) {
        uint64_t rows = 1 + scramble(seed + n, target) % 3, row = count / rows;
        Piece piece = {source, target, rows, row, n * 3 + target, row + 2 + n, filled, row + 1};
        filled += rows * (row + 1) + 2;
        inputExtent = std::max(inputExtent, piece.sourceOffset + rows * piece.sourceStride);
        if (source == group.index || target == group.index)
          test.pieces->push_back(piece);
      }
    }
    outputExtent = std::max(outputExtent, filled);
  }
  test.input = std::make_shared<Buffer>(type, inputExtent, seed);
  fill(*test.input, group, Reduction::Max, inputExtent);
  test.output = std::make_shared<Buffer>(type, outputExtent, seed + 1);
  std::vector<std::pair<uint64_t, uint64_t>> moved;
  for (const Piece &piece : *test.pieces)
    if (piece.target == group.index)
      for (uint64_t i = 0; i < piece.rows * piece.row; ++i)
        moved.emplace_back(piece.targetOffset + i / piece.row * piece.targetStride + i % piece.row,
                           given(group, piece.source, type, Reduction::Max,
                                 piece.sourceOffset + i / piece.row * piece.sourceStride + i % piece.row));
  expect(test, moved.size(), [&](uint64_t i) { return moved[i]; });
  test.operation = exchange(group.id, type, test.input->first, test.output->first, *test.pieces);
  return test;
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

/// Starts all, then waits for all. Precondition: no more than may be under way.
void Suite::runAll(std::vector<Case> cases) {
  std::vector<Ticket> tickets(cases.size());
  for (size_t i = 0; i < cases.size() && !failed(); ++i)
    if (Status status = communicator.start(cases[i].operation, tickets[i]); !status.isOk())
      fail(status.getMessage());
  for (size_t i = 0; i < cases.size() && !failed(); ++i) {
    if (Status status = communicator.wait(tickets[i]); !status.isOk())
      return fail(status.getMessage());
    check(cases[i]);
  }
}

void Suite::check(Case &test) {
  ++tally.operations;
  tally.elements += test.output->extent;
  const std::vector<char> &bytes = test.output->bytes;
  for (uint64_t i = 0; i < test.output->extent; ++i)
    tally.outputs = scramble(tally.outputs, readElement(test.output->at(i), test.output->type));
  if (bytes == test.expected)
    return;
  ++tally.wrong;
  size_t at = std::mismatch(bytes.begin(), bytes.end(), test.expected.begin()).first - bytes.begin();
  int64_t place = (int64_t(at) - (test.output->first - bytes.data())) / int64_t(getElementBytes(test.output->type));
  fail(describe(test.operation) + " in group " + std::to_string(test.operation.group) + ": element " +
       std::to_string(place) + " of " + std::to_string(test.output->extent) + " is wrong");
}

void Suite::checkReductions(const Members &group, ElementType type, uint64_t count, bool all) {
  Tiling contiguous = Tiling::contiguous(count), inner = Tiling::inner(3, count / 3, group.size());
  for (Reduction kind : {Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min}) {
    if (kind != Reduction::Sum && !all)
      break;
    // Truth values have no sum.
    Reduction reduction = isLegal(kind, type) ? kind : Reduction::Max;
    runAll({makeAllReduce(group, reduction, type, count, false), makeAllReduce(group, reduction, type, count, true)});
    runAll({makeReduceScatter(group, reduction, type, contiguous, false),
            makeReduceScatter(group, reduction, type, inner, false),
            makeReduceScatter(group, reduction, type, contiguous, true)});
  }
}

void Suite::checkMoves(const Members &group, ElementType type, uint64_t count) {
  Tiling contiguous = Tiling::contiguous(count), inner = Tiling::inner(3, count / 3, group.size());
  // Rows of two lengths, as a slice of an outer dim and a gather along an inner one have.
  Tiling outer = Tiling::inner(2, count / 6 * 3, group.size()), fine = Tiling::inner(6, count / 6, group.size());
  runAll({makeAllGather(group, type, contiguous, false), makeAllGather(group, type, inner, false),
          makeAllGather(group, type, contiguous, true)});
  runAll({makeAllToAll(group, type, contiguous, contiguous), makeAllToAll(group, type, outer, fine),
          makeAllToAll(group, type, fine, outer), makeExchange(group, type, count)});
}

/// Just below, at and above what communicators treat alike: blocks, slots, cache lines; divided among a group, too.
static std::vector<uint64_t> getCounts(ElementType type, uint64_t members) {
  if (type != ElementType::F32)
    return {0, 1, 7, 1025};
  uint64_t slot = 8192 / getElementBytes(type);
  return {0, 1, 7, 64, 1025, slot - 1, slot, slot + 1, slot / members, slot / members + 1, 2 * slot + 5};
}

static constexpr ElementType kTypes[] = {ElementType::F64,  ElementType::F32,  ElementType::F16,  ElementType::BF16,
                                         ElementType::I64,  ElementType::I32,  ElementType::I16,  ElementType::I8,
                                         ElementType::UI64, ElementType::UI32, ElementType::UI16, ElementType::UI8,
                                         ElementType::I1};
static_assert(std::size(kTypes) == size_t(ElementType::UI64) + 1, "all types");

/// All types in the group of all ranks, two in the others.
void Suite::checkGroup(const Members &group) {
  for (ElementType type : kTypes) {
    if (type != ElementType::F32 && type != ElementType::BF16 && (group.id != kWorld || scope == Scope::Brief))
      continue;
    for (uint64_t count : getCounts(type, group.size())) {
      if (failed())
        return;
      checkReductions(group, type, count, type != ElementType::F32 || count == 7);
      checkMoves(group, type, count);
      if (Status status = communicator.run(barrier(group.id)); !status.isOk())
        fail(status.getMessage());
    }
  }
}

/// 4 MB, and one element more.
void Suite::checkLarge(const Members &group) {
  uint64_t count = (uint64_t(4) << 20) / 4, part = count / group.size();
  runAll({makeAllReduce(group, Reduction::Sum, ElementType::F32, count + 1, true),
          makeAllGather(group, ElementType::F32, Tiling::contiguous(part), false),
          makeReduceScatter(group, Reduction::Sum, ElementType::F32, Tiling::contiguous(part), false)});
}

/// As many under way as may be, in several groups, small and large ones in turn.
void Suite::checkPending() {
  for (unsigned round = 0; round < 3 && !failed(); ++round) {
    std::vector<Case> cases;
    for (uint64_t i = 0; i < kMaxPending; ++i)
      for (const Members &group : groups) {
        uint64_t count = scramble(round, i * 8 + group.id) % 2 ? 100 + round : 3000 + 17 * round;
        cases.push_back(i % 2 ? makeAllGather(group, ElementType::F32, Tiling::contiguous(count), false)
                              : makeAllReduce(group, Reduction::Sum, ElementType::F32, count, false));
      }
    runAll(std::move(cases));
  }
}

/// All start the same in one order; when a rank moves on, and which of its groups it waits for, it draws for itself. Long operands take
/// several messages between processes.
void Suite::checkInterleavings() {
  constexpr uint64_t kCounts[] = {100, 2500, 5000, 9000}, kLong = 70001;
  for (unsigned round = 0; round < 4 && !failed(); ++round) {
    std::vector<Case> cases;
    std::vector<const Members *> of;
    for (uint64_t i = 0; i < 16; ++i) {
      const Members &group = groups[scramble(round, i) % groups.size()];
      uint64_t count = kCounts[scramble(round + 100, i) % std::size(kCounts)];
      Tiling parts = Tiling::contiguous(count);
      uint64_t kind = scramble(round + 200, i) % 5;
      if (round == 0 && i % 8 == 3) {
        kind = i / 8 * 4;
        count = i / 8 ? kLong * 2 * group.size() : kLong;
        parts = Tiling::contiguous(count);
      }
      cases.push_back(kind == 0   ? makeAllGather(group, ElementType::F32, parts, i % 2)
                      : kind == 1 ? makeReduceScatter(group, Reduction::Sum, ElementType::F32, parts, i % 2)
                      : kind == 2 ? makeExchange(group, ElementType::BF16, count)
                      : kind == 3 ? makeAllToAll(group, ElementType::I32, parts, parts)
                                  : makeAllReduce(group, Reduction::Sum, ElementType::BF16, count, i % 2));
      of.push_back(&group);
    }
    std::vector<Ticket> tickets(cases.size());
    std::vector<size_t> open;
    size_t started = 0;
    for (uint64_t turn = 0; (started < cases.size() || !open.empty()) && !failed(); ++turn) {
      uint64_t drawn = scramble(round * 1000 + 7 * uint64_t(communicator.getRank()), turn);
      Status status;
      if (drawn % 4 == 0 && !open.empty()) {
        // The oldest of a group.
        size_t at = drawn / 4 % open.size();
        at = size_t(std::find_if(open.begin(), open.end(), [&](size_t other) { return of[other] == of[open[at]]; }) -
                    open.begin());
        size_t index = open[at];
        open.erase(open.begin() + int64_t(at));
        status = communicator.wait(tickets[index]);
        if (status.isOk())
          check(cases[index]);
      } else if (drawn % 4 == 1 || started == cases.size()) {
        status = communicator.advance();
      } else {
        status = communicator.start(cases[started].operation, tickets[started]);
        open.push_back(started++);
      }
      if (!status.isOk())
        return fail(status.getMessage());
    }
  }
}

/// The groups along each axis, and of all ranks. Ranks count row-major over the mesh.
void Suite::makeGroups() {
  int rank = communicator.getRank(), size = communicator.getSize();
  groups.push_back({kWorld, {}, uint64_t(rank)});
  for (int other = 0; other < size; ++other)
    groups.back().ranks.push_back(other);
  int stride = size;
  for (size_t axis = 0; axis < mesh.size() && mesh.size() > 1; ++axis) {
    stride /= mesh[axis];
    int coordinate = rank / stride % mesh[axis];
    Members group = {0, {}, uint64_t(coordinate)};
    for (int other = 0; other < mesh[axis]; ++other)
      group.ranks.push_back(rank + (other - coordinate) * stride);
    if (Status status = communicator.split(group.ranks, group.id); !status.isOk())
      fail(status.getMessage());
    groups.push_back(group);
  }
}

void Suite::run() {
  makeGroups();
  for (const Members &group : groups)
    checkGroup(group);
  if (scope == Scope::Large)
    checkLarge(groups.front());
  checkPending();
  checkInterleavings();
}

//===----------------------------------------------------------------------===//
// For programs
//===----------------------------------------------------------------------===//

int test::getNumRanks(const Mesh &mesh) {
  int ranks = 1;
  for (int axis : mesh)
    ranks *= axis;
  return ranks;
}

std::string test::getName(const Mesh &mesh) {
  std::string text;
  for (int axis : mesh)
    text += (text.empty() ? "" : "x") + std::to_string(axis);
  return text;
}

void test::checkConformance(Communicator &communicator, const Mesh &mesh, Scope scope, Tally &tally) {
  Suite(communicator, mesh, scope, tally).run();
}

std::function<void(int)> test::makeDelays(uint64_t seed) {
  auto calls = std::make_shared<std::atomic<uint64_t>>(0);
  return [=](int rank) {
    uint64_t drawn = scramble(seed + uint64_t(rank), calls->fetch_add(1, std::memory_order_relaxed));
    if (drawn % 97 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(drawn >> 20 & 255));
    else if (drawn % 7 == 0)
      std::this_thread::yield();
  };
}
