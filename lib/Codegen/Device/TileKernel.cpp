//===- TileKernel.cpp - how a tile goes along the depth -------------------===//
//
// A stage of shared memory holds a part of both sides, as they lie in memory: neighbors stay neighbors, so that 16 bytes are
// moved at a time, and rows begin 16 bytes apart in banks. What lies in memory as it is copied by cp.async, some stages ahead;
// the rest is loaded a step ahead, and stored when the step before is multiplied. One barrier a step: it says that this step's
// stage is there, and that nobody reads the one that is written next.
//
//   step      0        1        2        3
//   stage 0   read     write             read
//   stage 1   write    read     write
//   stage 2            write    read     write          three stages; copies arrive two steps after they began
//
// What lies behind the end of the depth counts as 0; rows and columns behind theirs are computed of others and not stored. Sums
// leave through the same memory: so all threads store neighbors, and what is computed of sums stands in the code once a pass.
//
//===----------------------------------------------------------------------===//
#include "TileKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace cleave::codegen;

/// What a block may have without asking for more at launch.
static constexpr int64_t kMaxShared = 48 << 10;
/// Between rows of sums: pairs of eight rows and four columns lie in different banks.
static constexpr int64_t kSumsApart = 8;

TileKernel::TileKernel(DeviceEmitter &e, TileSource &source, Blocking blocking)
    : e(e), source(source), blocking(blocking), compute(ElementBuilder::getComputeType(source.element)) {}

/// Blocks next to each other have the same rows.
void TileKernel::place() {
  PlaceBuilder &p = e.places;
  int64_t down = llvm::divideCeil(source.sides[0].count, blocking.rows);
  int64_t across = llvm::divideCeil(source.sides[1].count, blocking.columns);
  int64_t teamsDown = blocking.rows / blocking.rowsEach, teamsAcross = blocking.columns / blocking.columnsEach;
  e.launch(source.batches * down * across, blocking.groups * teamsDown * teamsAcross * getTeam());
  SmallVector<Value> at = p.delinearize(e.getBlock(), {source.batches, down, across});
  source.enter(at[0]);
  parts[0].first = p.mul(at[1], blocking.rows);
  parts[1].first = p.mul(at[2], blocking.columns);
  SmallVector<Value> team = p.delinearize(p.div(e.getThread(), getTeam()), {blocking.groups, teamsDown, teamsAcross});
  group = team[0];
  teamRow = team[1];
  teamColumn = team[2];
}

/// As many stages as there is memory for, if they are of any use.
void TileKernel::layMemory() {
  Type stored = ElementBuilder::getStoredType(source.element);
  int64_t elementBytes = stored.getIntOrFloatBitWidth() / 8, together = kDeviceAlignment / elementBytes, used = 0;
  for (unsigned side : {0, 1}) {
    Part &part = parts[side];
    part.extent = side == 0 ? blocking.rows : blocking.columns;
    part.wide = std::gcd(source.sides[side].together, together);
    // Rows of 32 bits that are read one by one, four at a time, are twice as far apart.
    bool alongDepth = source.sides[side].alongDepth;
    part.pitch = alongDepth ? blocking.depth + together : part.extent + std::max<int64_t>(together, 8);
    part.size = part.pitch * (alongDepth ? part.extent : blocking.depth);
    part.isCopied = canCopy(side);
    used += part.size * elementBytes;
  }
  int64_t steps = llvm::divideCeil(source.depth, blocking.depth);
  stages = copies() ? std::clamp<int64_t>(kMaxShared / used, 2, std::clamp<int64_t>(steps, 2, 3)) : 2;
  int64_t sumsBytes = blocking.groups * blocking.rows / blocking.rowsEach * getRowsEachPass() *
                      (blocking.columns + kSumsApart) * (compute.getIntOrFloatBitWidth() / 8);
  bytes = e.share(e.b.getI8Type(), std::max(stages * used, sumsBytes));
  int64_t from = 0;
  for (Part &part : parts) {
    part.memory = e.viewShared(bytes, from, source.element, stages * part.size);
    from += stages * part.size * elementBytes;
  }
}

//===----------------------------------------------------------------------===//
// Into shared memory
//===----------------------------------------------------------------------===//

/// Which rows (or columns) and depth of the block piece `number` of this thread is; `isThere`: there may be fewer pieces than
/// threads.
std::pair<Value, Value> TileKernel::findPiece(unsigned side, int64_t number, Value &isThere) {
  PlaceBuilder &p = e.places;
  const Part &part = parts[side];
  bool alongDepth = source.sides[side].alongDepth;
  int64_t pieces = countPieces(part), across = (alongDepth ? blocking.depth : part.extent) / part.wide;
  Value piece = p.add(e.getThread(), number * e.getThreads());
  if ((number + 1) * e.getThreads() > pieces) {
    isThere = p.isLess(piece, pieces);
    piece = p.clamp(piece, 0, pieces - 1);
  }
  Value fast = p.mul(p.rem(piece, across), part.wide), slow = p.div(piece, across);
  return alongDepth ? std::make_pair(slow, fast) : std::make_pair(fast, slow);
}

Value TileKernel::getStored(unsigned side, Value inOuter, Value inDepth, Value stage) {
  PlaceBuilder &p = e.places;
  const Part &part = parts[side];
  bool alongDepth = source.sides[side].alongDepth;
  Value slow = alongDepth ? inOuter : inDepth, fast = alongDepth ? inDepth : inOuter;
  return p.add(p.mul(stage, part.size), p.add(p.mul(slow, part.pitch), fast));
}

/// What is behind an end is read at the last place there is.
Value TileKernel::toOuter(unsigned side, Value inOuter) {
  const Part &part = parts[side];
  int64_t count = source.sides[side].count;
  Value outer = e.places.add(part.first, inOuter);
  bool isWide = !source.sides[side].alongDepth;
  return count % part.extent == 0 ? outer : e.places.clamp(outer, 0, count - (isWide ? part.wide : 1));
}

Value TileKernel::toDepth(unsigned side, Value step, Value inDepth) {
  PlaceBuilder &p = e.places;
  Value depth = p.add(p.mul(step, blocking.depth), inDepth);
  return p.clamp(depth, 0, source.depth - (source.sides[side].alongDepth ? parts[side].wide : 1));
}

/// 16 bytes at a time, from multiples of 16 bytes.
bool TileKernel::canCopy(unsigned side) {
  const Part &part = parts[side];
  int64_t elementBytes = ElementBuilder::getStoredType(source.element).getIntOrFloatBitWidth() / 8;
  if (part.wide * elementBytes != kDeviceAlignment)
    return false;
  Value isThere;
  auto [inOuter, inDepth] = findPiece(side, 0, isThere);
  std::optional<TileSource::Location> from =
      source.locate(side, toOuter(side, inOuter), toDepth(side, e.places.number(0), inDepth));
  return from && e.getAlignment(from->buffer) >= kDeviceAlignment &&
         PlaceBuilder::getDivisor(from->place) % part.wide == 0;
}

void TileKernel::copy(unsigned side, Value step, Value stage) {
  PlaceBuilder &p = e.places;
  const Part &part = parts[side];
  for (int64_t i = 0; i * e.getThreads() < countPieces(part); ++i) {
    Value isThere, present;
    auto [inOuter, inDepth] = findPiece(side, i, isThere);
    std::optional<TileSource::Location> from =
        source.locate(side, toOuter(side, inOuter), toDepth(side, step, inDepth));
    Value isInside = from->isThere;
    if (source.depth % blocking.depth != 0) {
      Value isBefore = p.isLess(p.add(p.mul(step, blocking.depth), inDepth), source.depth);
      isInside = isInside ? e.elements.both(isInside, isBefore) : isBefore;
    }
    if (isInside)
      present = p.select(isInside, p.number(part.wide), p.number(0));
    Value to = getStored(side, inOuter, inDepth, stage);
    auto begin = [&] { e.copyAsync(part.memory, to, from->buffer, from->place, present); };
    isThere ? e.when(isThere, begin) : begin();
  }
}

/// What goes through registers.
Values TileKernel::fetch(Value step) {
  PlaceBuilder &p = e.places;
  Values pieces;
  for (unsigned side : {0, 1}) {
    const Part &part = parts[side];
    for (int64_t i = 0; !part.isCopied && i * e.getThreads() < countPieces(part); ++i) {
      Value isThere;
      auto [inOuter, inDepth] = findPiece(side, i, isThere);
      Value outer = toOuter(side, inOuter), depth = toDepth(side, step, inDepth);
      Value unbounded = p.add(p.mul(step, blocking.depth), inDepth);
      pieces.push_back(e.withLanes(part.wide, part.wide, [&] {
        Value value = source.load(side, outer, depth);
        if (source.depth % blocking.depth == 0)
          return value;
        Value isInside = p.isLess(unbounded, source.depth);
        return Value(arith::SelectOp::create(e.b, e.loc, isInside, value, e.elements.like(value, 0)));
      }));
    }
  }
  return pieces;
}

void TileKernel::putPieces(ValueRange pieces, Value stage) {
  for (unsigned side : {0, 1}) {
    const Part &part = parts[side];
    for (int64_t i = 0; !part.isCopied && i * e.getThreads() < countPieces(part); ++i, pieces = pieces.drop_front()) {
      Value isThere, piece = pieces.front();
      auto [inOuter, inDepth] = findPiece(side, i, isThere);
      Value to = getStored(side, inOuter, inDepth, stage);
      auto store = [&] {
        e.withLanes(part.wide, part.wide, [&] {
          e.store(part.memory, piece, {to, 1});
          return 0;
        });
      };
      isThere ? e.when(isThere, store) : store();
    }
  }
}

//===----------------------------------------------------------------------===//
// Along the depth
//===----------------------------------------------------------------------===//

Values TileKernel::walkDepth() {
  PlaceBuilder &p = e.places;
  int64_t steps = llvm::divideCeil(source.depth, blocking.depth);
  auto copyBoth = [&](Value step, Value stage) {
    for (unsigned side : {0, 1})
      if (parts[side].isCopied)
        copy(side, step, stage);
  };
  for (int64_t ahead = 0; copies() && ahead < stages - 1; ++ahead) {
    if (ahead < steps)
      copyBoth(p.number(ahead), p.number(ahead));
    e.commitCopies();
  }
  putPieces(fetch(p.number(0)), p.number(0));
  return e.loop(steps, makeSums(), [&](Value step, Values sums) {
    Value stage = p.rem(step, stages), next = p.add(step, 1), last = p.add(step, stages - 1);
    if (copies())
      e.waitForCopies(stages - 2);
    e.barrier();
    if (copies() && steps > stages - 1)
      e.when(p.isLess(last, steps), [&] { copyBoth(last, p.rem(last, stages)); });
    // A group without copies, too: which one is waited for is told by their number.
    if (copies())
      e.commitCopies();
    Values pieces = steps > 1 ? fetch(next) : Values();
    multiply({p.mul(stage, parts[0].size), p.mul(stage, parts[1].size)}, sums);
    if (steps > 1)
      putPieces(pieces, p.rem(next, stages));
    return sums;
  });
}

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

/// Sums of groups are added in their order. Vectors where all of their elements are there together, or none.
void TileKernel::storePass(int64_t pass, Value memory) {
  PlaceBuilder &p = e.places;
  int64_t lanes = source.storeLanes, across = blocking.columns / lanes, pitch = blocking.columns + kSumsApart;
  int64_t rows = blocking.rows / blocking.rowsEach * getRowsEachPass(), total = rows * across;
  auto store = [&](Value number) {
    Value inPass = p.div(number, across), inColumns = p.mul(p.rem(number, across), lanes);
    Value row = p.add(parts[0].first, getRow(pass, inPass)), column = p.add(parts[1].first, inColumns), isThere;
    if (source.sides[0].count % blocking.rows != 0)
      isThere = p.isLess(row, source.sides[0].count);
    if (source.sides[1].count % blocking.columns != 0) {
      Value isIn = p.isLess(column, source.sides[1].count);
      isThere = isThere ? e.elements.both(isThere, isIn) : isIn;
    }
    auto hand = [&] {
      e.withLanes(lanes, lanes, [&] {
        Value place = p.add(p.mul(inPass, pitch), inColumns), sum = e.load(memory, compute, {place, 1});
        for (int64_t i = 1; i < blocking.groups; ++i)
          sum = e.elements.add(sum, e.load(memory, compute, {p.add(place, i * rows * pitch), 1}));
        source.store(row, column, sum);
        return 0;
      });
    };
    isThere ? e.when(isThere, hand) : hand();
  };
  if (total == e.getThreads())
    return store(e.getThread());
  e.loop(e.getThread(), p.number(total), e.getThreads(), {}, [&](Value number, Values) {
    store(number);
    return Values();
  });
}

void TileKernel::storeSums(ValueRange sums) {
  PlaceBuilder &p = e.places;
  int64_t each = getRowsEachPass(), rows = blocking.rows / blocking.rowsEach * each;
  int64_t pitch = blocking.columns + kSumsApart;
  Value memory = e.viewShared(bytes, 0, compute, blocking.groups * rows * pitch);
  for (int64_t pass = 0; pass < blocking.rowsEach / each; ++pass) {
    e.barrier(); // nobody reads what was there
    put(pass, sums, memory, pitch, p.mul(group, rows));
    e.barrier();
    storePass(pass, memory);
  }
}

void TileKernel::run() {
  e.preferRegisters();
  place();
  layMemory();
  begin();
  storeSums(walkDepth());
}
