//===- Warp.cpp - what the lanes of a warp do together --------------------===//
//
// Lanes meet once all that their mask names stand at one place. Then one loop does the work of all: from the words that each
// lane brought to those that it takes away, as PTX describes the instruction.
//
//===----------------------------------------------------------------------===//
#include "Block.h"
#include "Halves.h"

#include <cstring>

using namespace cleave::emulation;

/// Products of matrices, of which each lane holds a part.
static bool isMultiply(WarpKind kind) { return kind >= WarpKind::MultiplyF16K16 && kind <= WarpKind::MultiplyBf16K8; }

/// How many 8 x 8 matrices are loaded; 0: it is something else.
static uint32_t countMatrices(WarpKind kind) {
  switch (kind) {
  case WarpKind::LoadMatrix1:
  case WarpKind::LoadMatrix1Turned:
    return 1;
  case WarpKind::LoadMatrix2:
  case WarpKind::LoadMatrix2Turned:
    return 2;
  case WarpKind::LoadMatrix4:
  case WarpKind::LoadMatrix4Turned:
    return 4;
  default:
    return 0;
  }
}

/// An address is two words.
static const char *getPointer(const uint32_t *words) {
  const char *pointer = nullptr;
  memcpy(&pointer, words, sizeof pointer);
  return pointer;
}

void Block::meetWarp(WarpKind kind, uint32_t mask, const uint32_t *in, uint32_t *out, const Site *site) {
  uint32_t lane = getId() % warpLanes;
  if (!(mask >> lane & 1)) {
    fail(nameThread(getId()) + ": warp operation " + std::to_string(site->number) +
         " names lanes without the one that calls it");
    leave();
  }
  // Each lane loads the row whose address it brought.
  if (lane < 8 * countMatrices(kind))
    access(getPointer(in), nullptr, 16, *site);
  current->kind = kind;
  current->mask = mask;
  current->in = in;
  current->out = out;
  wait(ThreadState::AtWarp, site);
}

/// shfl.sync: c has the clamp in its low 5 bits, and from bit 8 on the mask of a segment's number.
/// What a lane that is not there gives is undefined: a NaN.
static void shuffle(Thread *lanes, uint32_t mask, uint32_t lane) {
  const uint32_t *in = lanes[lane].in;
  int32_t mine = int32_t(lane), b = int32_t(in[1] & 31), clamp = int32_t(in[2] & 31),
          segment = int32_t(in[2] >> 8 & 31);
  int32_t low = mine & segment, limit = low | (clamp & ~segment), from = mine;
  bool isValid = false;
  switch (lanes[lane].kind) {
  case WarpKind::ShuffleXor:
    from = mine ^ b;
    isValid = from <= limit;
    break;
  case WarpKind::ShuffleUp: // here the clamp is the lower end
    from = mine - b;
    isValid = from >= limit;
    break;
  case WarpKind::ShuffleDown:
    from = mine + b;
    isValid = from <= limit;
    break;
  default:
    from = low | (b & ~segment);
    isValid = from <= limit;
  }
  bool isThere = mask >> from & 1;
  lanes[lane].out[0] = !isValid ? in[0] : isThere ? lanes[from].in[0] : ~0u;
  lanes[lane].out[1] = isValid;
}

/// Of those that the mask names; what others hold does not count.
static uint32_t vote(const Thread *lanes, uint32_t mask, WarpKind kind) {
  uint32_t set = 0;
  for (uint32_t lane = 0; lane < warpLanes; ++lane)
    if (mask >> lane & 1 && lanes[lane].in[0])
      set |= 1u << lane;
  switch (kind) {
  case WarpKind::VoteAll:
    return set == mask;
  case WarpKind::VoteAny:
    return set != 0;
  case WarpKind::VoteUniform:
    return set == mask || set == 0;
  default:
    return set;
  }
}

/// Modulo 2^32; signed where PTX's name has no u.
static uint32_t combine(WarpKind kind, uint32_t a, uint32_t b) {
  switch (kind) {
  case WarpKind::ReduceAdd:
    return a + b;
  case WarpKind::ReduceMin:
    return int32_t(a) < int32_t(b) ? a : b;
  case WarpKind::ReduceMax:
    return int32_t(a) > int32_t(b) ? a : b;
  case WarpKind::ReduceUMin:
    return a < b ? a : b;
  case WarpKind::ReduceUMax:
    return a > b ? a : b;
  case WarpKind::ReduceAnd:
    return a & b;
  case WarpKind::ReduceOr:
    return a | b;
  default:
    return a ^ b;
  }
}

/// From the first lane on; the order shows in nothing, as these are integers.
static uint32_t reduce(const Thread *lanes, uint32_t mask, WarpKind kind) {
  bool isFirst = true;
  uint32_t result = 0;
  for (uint32_t lane = 0; lane < warpLanes; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    result = isFirst ? lanes[lane].in[0] : combine(kind, result, lanes[lane].in[0]);
    isFirst = false;
  }
  return result;
}

/// The lanes that hold the same.
static uint32_t match(const Thread *lanes, uint32_t mask, uint32_t value) {
  uint32_t same = 0;
  for (uint32_t lane = 0; lane < warpLanes; ++lane)
    if (mask >> lane & 1 && lanes[lane].in[0] == value)
      same |= 1u << lane;
  return same;
}

//===----------------------------------------------------------------------===//
// mma.sync.m16n8: lane = 4 g + t holds rows g and g + 8 of a and of the result, column g of b
//===----------------------------------------------------------------------===//

/// Element `number` of a fragment's word, of which there are `perWord`.
static float getElement(WarpKind kind, uint32_t word, uint32_t number) {
  if (kind == WarpKind::MultiplyTf32K8)
    return asFloat(word & 0xffffe000); // 10 bits of fraction
  uint32_t half = word >> (16 * number) & 0xffff;
  bool isHalf = kind == WarpKind::MultiplyF16K16 || kind == WarpKind::MultiplyF16K8;
  return isHalf ? halfToFloat(uint16_t(half)) : bf16ToFloat(uint16_t(half));
}

/// Two words of a hold 8 rows each of one chunk of k, one of b a chunk of its column; the sum begins with c.
static void multiply(Thread *lanes, WarpKind kind) {
  uint32_t perWord = kind == WarpKind::MultiplyTf32K8 ? 1 : 2;
  uint32_t depth = kind == WarpKind::MultiplyF16K16 || kind == WarpKind::MultiplyBf16K16 ? 16 : 8;
  uint32_t chunks = depth / (4 * perWord); // of k, that the four lanes of a row hold in one word each
  float a[16][16], b[16][8];
  for (uint32_t lane = 0; lane < warpLanes; ++lane)
    for (uint32_t chunk = 0; chunk < chunks; ++chunk)
      for (uint32_t i = 0; i < perWord; ++i) {
        uint32_t k = (chunk * 4 + lane % 4) * perWord + i, group = lane / 4;
        a[group][k] = getElement(kind, lanes[lane].in[size_t(2) * chunk], i);
        a[group + 8][k] = getElement(kind, lanes[lane].in[2 * chunk + 1], i);
        b[k][group] = getElement(kind, lanes[lane].in[2 * chunks + chunk], i);
      }
  for (uint32_t lane = 0; lane < warpLanes; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      float sum = asFloat(lanes[lane].in[3 * chunks + i]);
      for (uint32_t k = 0; k < depth; ++k)
        sum += a[row][k] * b[k][column];
      memcpy(&lanes[lane].out[i], &sum, sizeof sum);
    }
}

/// ldmatrix: lane 8 m + r brought row r of matrix m; lane 4 r + c takes elements 2 c and 2 c + 1 of row r of each, or of
/// column r where they are turned.
static void loadMatrices(Thread *lanes, WarpKind kind, uint32_t lane) {
  bool isTurned = kind >= WarpKind::LoadMatrix1Turned;
  for (uint32_t matrix = 0; matrix < countMatrices(kind); ++matrix) {
    uint16_t halves[2];
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t row = isTurned ? lane % 4 * 2 + i : lane / 4, column = isTurned ? lane / 4 : lane % 4 * 2 + i;
      memcpy(&halves[i], getPointer(lanes[8 * matrix + row].in) + size_t(2) * column, 2);
    }
    lanes[lane].out[matrix] = halves[0] | uint32_t(halves[1]) << 16;
  }
}

/// All at once for a product, lane by lane for what has no more than one result.
void Block::exchange(Thread *lanes, uint32_t mask) {
  WarpKind kind = lanes[__builtin_ctz(mask)].kind;
  if (isMultiply(kind))
    return multiply(lanes, kind);
  for (uint32_t lane = 0; lane < warpLanes; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    if (kind <= WarpKind::ShuffleIndex)
      shuffle(lanes, mask, lane);
    else if (kind >= WarpKind::VoteAll && kind <= WarpKind::Ballot)
      lanes[lane].out[0] = vote(lanes, mask, kind);
    else if (kind >= WarpKind::ReduceAdd && kind <= WarpKind::ReduceXor)
      lanes[lane].out[0] = reduce(lanes, mask, kind);
    else if (kind == WarpKind::MatchAny)
      lanes[lane].out[0] = match(lanes, mask, lanes[lane].in[0]);
    else if (countMatrices(kind))
      loadMatrices(lanes, kind, lane);
  }
}

/// True if lanes of the warp went on.
bool Block::meet(uint32_t firstThread) {
  Thread *lanes = &threads[firstThread];
  uint32_t count = std::min<uint32_t>(warpLanes, uint32_t(threads.size()) - firstThread);
  bool moved = false;
  for (uint32_t lane = 0; lane < count; ++lane) {
    if (lanes[lane].state != ThreadState::AtWarp)
      continue;
    // A mask may name lanes that a last warp, not full, does not have.
    uint32_t mask = count == warpLanes ? lanes[lane].mask : lanes[lane].mask & ((1u << count) - 1);
    bool areAll = true;
    for (uint32_t other = 0; other < count; ++other)
      if (mask >> other & 1)
        areAll &= lanes[other].state == ThreadState::AtWarp && lanes[other].site == lanes[lane].site;
    if (!areAll)
      continue;
    bool isFull = mask == ~0u || !(isMultiply(lanes[lane].kind) || countMatrices(lanes[lane].kind));
    if (!isFull) {
      fail(nameThread(firstThread + lane) + ": warp operation " + std::to_string(lanes[lane].site->number) +
           " needs all 32 lanes");
      return false;
    }
    exchange(lanes, mask);
    if (lanes[lane].kind == WarpKind::Sync)
      lastMeeting[firstThread / warpLanes] = ++machine.now;
    for (uint32_t other = 0; other < count; ++other)
      if (mask >> other & 1)
        lanes[other].state = ThreadState::Ready;
    moved = true;
  }
  return moved;
}
