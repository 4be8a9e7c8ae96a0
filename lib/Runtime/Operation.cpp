//===- Operation.cpp - what a group of ranks does together ----------------===//
//
// Making, naming and checking operations. All arithmetic on sizes is checked: they may come from a file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Operation.h"

#include <algorithm>
#include <map>

using namespace cleave::runtime;

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

static Operation make(OperationKind kind, GroupId group, ElementType type, const void *input, void *output) {
  Operation operation;
  operation.kind = kind;
  operation.group = group;
  operation.type = type;
  operation.input = input;
  operation.output = output;
  return operation;
}

Operation cleave::runtime::makeOperation(OperationKind kind, GroupId group, Reduction reduction, ElementType type,
                                         const void *input, void *output, uint64_t count, Tiling from, Tiling to) {
  Operation operation = make(kind, group, type, input, output);
  operation.count = slices(kind) ? from.numElements() : gathers(kind) ? to.numElements() : count;
  if (reduces(kind))
    operation.reduction = reduction;
  if (slices(kind))
    operation.from = from;
  if (gathers(kind))
    operation.to = to;
  return operation;
}

Operation cleave::runtime::allReduce(GroupId group, Reduction reduction, ElementType type, const void *input,
                                     void *output, uint64_t count) {
  return makeOperation(OperationKind::AllReduce, group, reduction, type, input, output, count, {}, {});
}

Operation cleave::runtime::allGather(GroupId group, ElementType type, const void *input, void *output, Tiling to) {
  return makeOperation(OperationKind::AllGather, group, Reduction::None, type, input, output, 0, {}, to);
}

Operation cleave::runtime::exchange(GroupId group, ElementType type, const void *input, void *output,
                                    const std::vector<Piece> &pieces) {
  Operation operation = make(OperationKind::Exchange, group, type, input, output);
  operation.pieces = pieces.data();
  operation.numPieces = pieces.size();
  return operation;
}

Operation cleave::runtime::barrier(GroupId group) {
  return make(OperationKind::Barrier, group, ElementType::UI8, nullptr, nullptr);
}

//===----------------------------------------------------------------------===//
// Naming
//===----------------------------------------------------------------------===//

std::string cleave::runtime::describe(const Operation &operation) {
  std::string text = getWord(operation.kind);
  if (operation.kind == OperationKind::Barrier)
    return text;
  if (reduces(operation.kind))
    text += std::string(" ") + getWord(operation.reduction);
  text += std::string(" ") + getWord(operation.type);
  return !hasTensors(operation.kind) ? text : text + "[" + std::to_string(operation.count) + "]";
}

std::string cleave::runtime::describeOther(const Operation &other, const Operation &own) {
  std::string text = describe(other);
  return text == describe(own) ? text + " with parts that lie otherwise" : text + " instead";
}

static void mix(uint64_t &hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  hash ^= hash >> 29;
}

static void mix(uint64_t &hash, const Tiling &tiling) {
  for (uint64_t value : {tiling.rows, tiling.row, tiling.rowStride, tiling.partStride})
    mix(hash, value);
}

uint64_t cleave::runtime::digest(const Operation &operation) {
  uint64_t hash = 1;
  mix(hash, uint64_t(operation.kind) << 16 | uint64_t(operation.type) << 8 | uint64_t(operation.reduction));
  mix(hash, operation.count);
  if (slices(operation.kind))
    mix(hash, operation.from);
  if (gathers(operation.kind))
    mix(hash, operation.to);
  return hash;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

/// More than any memory has, so that sums of a few such numbers do not overflow.
static constexpr uint64_t kLargest = uint64_t(1) << 56;

/// The product, or `kLargest` where it is not below that.
static uint64_t multiply(uint64_t x, uint64_t y) {
  uint64_t result;
  return __builtin_mul_overflow(x, y, &result) || result > kLargest ? kLargest : result;
}

/// Elements up to the end of the last row; 0 where there is none.
static uint64_t getExtent(uint64_t first, uint64_t rows, uint64_t row, uint64_t stride) {
  if (rows == 0 || row == 0)
    return 0;
  return first + multiply(rows - 1, stride) + row;
}

static uint64_t getExtent(const Tiling &tiling, uint64_t members) {
  return getExtent(multiply(members - 1, tiling.partStride), tiling.rows, tiling.row, tiling.rowStride);
}

uint64_t cleave::runtime::getInputExtent(const Operation &operation, uint64_t members) {
  return slices(operation.kind) ? getExtent(operation.from, members) : operation.count;
}

Traffic cleave::runtime::getTraffic(const Operation &operation, uint32_t source, uint32_t target) {
  Traffic traffic;
  for (uint64_t i = 0; i < operation.numPieces; ++i)
    if (const Piece &piece = operation.pieces[i]; piece.source == source && piece.target == target) {
      ++traffic.pieces;
      traffic.elements += piece.rows * piece.row;
    }
  return traffic;
}

std::string cleave::runtime::format(Traffic traffic) {
  return std::to_string(traffic.elements) + " elements in " + std::to_string(traffic.pieces) + " pieces";
}

static bool isTooLarge(uint64_t elements, ElementType type) {
  return multiply(elements, getElementBytes(type)) >= kLargest;
}

/// Whether a part of a tiling is too large, or its rows or parts overlap.
static bool isWrong(const Tiling &tiling, const Operation &operation, uint64_t members) {
  if (multiply(tiling.rows, tiling.row) != operation.count || isTooLarge(getExtent(tiling, members), operation.type))
    return true;
  if (operation.count == 0)
    return false;
  return (tiling.rows > 1 && tiling.rowStride < tiling.row) || (members > 1 && tiling.partStride < tiling.row);
}

static bool isMisaligned(const void *address, ElementType type) {
  return reinterpret_cast<uintptr_t>(address) % getElementBytes(type) != 0;
}

/// Whether a piece that member `index` gets lies between the first and the last byte that it sends.
static bool getsOverSent(const Operation &operation, uint64_t index) {
  uint64_t size = getElementBytes(operation.type), first = kLargest, last = 0;
  auto input = reinterpret_cast<uintptr_t>(operation.input), output = reinterpret_cast<uintptr_t>(operation.output);
  for (uint64_t i = 0; i < operation.numPieces; ++i)
    if (const Piece &piece = operation.pieces[i]; piece.source == index) {
      first = std::min(first, piece.sourceOffset);
      last = std::max(last, piece.sourceOffset + getExtent(0, piece.rows, piece.row, piece.sourceStride));
    }
  for (uint64_t i = 0; i < operation.numPieces; ++i)
    if (const Piece &piece = operation.pieces[i]; piece.target == index) {
      uintptr_t begin = output + piece.targetOffset * size;
      uintptr_t end = begin + getExtent(0, piece.rows, piece.row, piece.targetStride) * size;
      if (begin < input + last * size && input + first * size < end)
        return true;
    }
  return false;
}

static std::optional<std::string> findMistakeInPieces(const Operation &operation, uint64_t members, uint64_t index) {
  for (uint64_t i = 0; i < operation.numPieces; ++i) {
    const Piece &piece = operation.pieces[i];
    std::string name = "piece " + std::to_string(i);
    if (piece.source >= members || piece.target >= members)
      return name + " goes from member " + std::to_string(piece.source) + " to " + std::to_string(piece.target) +
             " of a group of " + std::to_string(members);
    if (piece.source != index && piece.target != index)
      return name + " concerns other members";
    if (isTooLarge(getExtent(std::min(piece.sourceOffset, kLargest), piece.rows, piece.row, piece.sourceStride),
                   operation.type) ||
        isTooLarge(getExtent(std::min(piece.targetOffset, kLargest), piece.rows, piece.row, piece.targetStride),
                   operation.type))
      return name + " is too large";
  }
  if (getsOverSent(operation, index))
    return "a piece comes to where another one is sent from";
  return std::nullopt;
}

std::optional<std::string> cleave::runtime::findMistake(const Operation &operation, uint64_t members, uint64_t index) {
  if (operation.type > ElementType::UI64 || operation.reduction > Reduction::Min || !isKnown(operation.kind))
    return "unknown kind, element type or reduction";
  if (operation.kind == OperationKind::Barrier)
    return std::nullopt;
  if (reduces(operation.kind) && !isLegal(operation.reduction, operation.type))
    return std::string("cannot combine ") + getWord(operation.type) + " by " + getWord(operation.reduction);
  if (isMisaligned(operation.input, operation.type) || isMisaligned(operation.output, operation.type))
    return "an operand is not aligned to its elements";
  bool moves = operation.count > 0;
  if (moves && gathers(operation.kind) && slices(operation.kind) && operation.input == operation.output &&
      operation.input)
    return std::string(getWord(operation.kind)) + " cannot be done in place";
  if (operation.kind == OperationKind::Exchange)
    return findMistakeInPieces(operation, members, index);
  if (moves && (!operation.input || !operation.output))
    return "an operand is missing";
  if (isTooLarge(operation.count, operation.type))
    return "an operand is too large";
  if ((slices(operation.kind) && isWrong(operation.from, operation, members)) ||
      (gathers(operation.kind) && isWrong(operation.to, operation, members)))
    return "parts of " + std::to_string(operation.count) + " elements do not lie as said";
  return std::nullopt;
}

/// Of an exchange the pieces of each pair of members together.
uint64_t cleave::runtime::getLargestMessage(const Operation &operation) {
  if (operation.kind != OperationKind::Exchange)
    return operation.count * getElementBytes(operation.type);
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> elements;
  uint64_t most = 0;
  for (uint64_t i = 0; i < operation.numPieces; ++i) {
    const Piece &piece = operation.pieces[i];
    uint64_t &sum = elements[{piece.source, piece.target}];
    sum += piece.rows * piece.row;
    most = std::max(most, sum);
  }
  return most * getElementBytes(operation.type);
}
