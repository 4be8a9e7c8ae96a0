//===- Messages.cpp - operations as messages between members --------------===//
//
// Parts travel packed; who gets them lays them out.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"
#include "Reduce.h"

#include <algorithm>
#include <cstring>

using namespace cleave::runtime;

/// Operands up to this many bytes are combined by everybody.
static constexpr uint64_t kSmall = 8192;
/// Bytes of operands in one message of an operation that can be split anywhere: a multiple of all elements. Small enough for a few of
/// them to stay in the cache between sockets, sums and results, large enough for their headers not to count.
static constexpr uint64_t kMessage = uint64_t(1) << 18;

namespace {
/// A multiple of every alignment that elements have, so that terms can be combined where they came.
struct alignas(64) Header {
  uint64_t digest = 0, count = 0;
  Traffic traffic;
  OperationKind kind = OperationKind::Barrier;
  ElementType type = ElementType::UI8;
  Reduction reduction = Reduction::None;
};

/// Elements from `begin` to `end`.
struct Share {
  uint64_t begin, end;
};
} // namespace

static_assert(sizeof(Header) == kMessageHeader);

/// Shares differ by one element at most.
static Share getShare(const Operation &operation, uint64_t members, uint64_t index) {
  auto start = [&](uint64_t share) {
    return operation.count / members * share + std::min(share, operation.count % members);
  };
  return {start(index), start(index + 1)};
}

static const char *getInput(const Operation &operation, uint64_t element) {
  return static_cast<const char *>(operation.input) + element * getElementBytes(operation.type);
}

static char *getOutput(const Operation &operation, uint64_t element) {
  return static_cast<char *>(operation.output) + element * getElementBytes(operation.type);
}

static const char *getPayload(const Message &message) { return message.data() + sizeof(Header); }

//===----------------------------------------------------------------------===//
// How operands are split
//===----------------------------------------------------------------------===//

bool cleave::runtime::hasSecondRound(const Operation &operation) {
  return reduces(operation.kind) && !slices(operation.kind) &&
         operation.count * getElementBytes(operation.type) > kSmall;
}

/// Rows that follow each other are one row.
static bool isContiguous(const Tiling &tiling) { return tiling.rows == 1 || tiling.rowStride == tiling.row; }

/// Whether what a member sends lies in one piece, as does what it makes: then it can be split anywhere.
static bool isSplittable(const Operation &operation) {
  return hasTensors(operation.kind) && operation.kind != OperationKind::Exchange &&
         (!slices(operation.kind) || isContiguous(operation.from)) &&
         (!gathers(operation.kind) || isContiguous(operation.to));
}

/// So many go in one message.
static uint64_t getMostElements(const Operation &operation) { return kMessage / getElementBytes(operation.type); }

uint64_t cleave::runtime::countMessages(const Operation &operation, uint64_t members) {
  if (!isSplittable(operation))
    return 1;
  uint64_t longest = hasSecondRound(operation) ? (operation.count + members - 1) / members : operation.count;
  uint64_t most = getMostElements(operation);
  return std::max<uint64_t>((longest + most - 1) / most, 1);
}

/// The elements that a letter carries (not of exchanges), counted from the first of a part, or of the operand.
static Share getElements(const Operation &operation, const Letter &letter) {
  if (!hasTensors(operation.kind))
    return {0, 0};
  Share all = {0, operation.count};
  if (hasSecondRound(operation))
    all = getShare(operation, letter.members, letter.round == 0 ? letter.to : letter.from);
  if (!isSplittable(operation))
    return all;
  uint64_t most = getMostElements(operation), begin = std::min(all.begin + letter.number * most, all.end);
  return {begin, std::min(begin + most, all.end)};
}

/// What its header says that it carries, and what who gets it expects.
static Traffic getLetterTraffic(const Operation &operation, const Letter &letter) {
  if (operation.kind == OperationKind::Exchange)
    return getTraffic(operation, letter.from, letter.to);
  Share elements = getElements(operation, letter);
  return {hasTensors(operation.kind) ? 1u : 0u, elements.end - elements.begin};
}

/// Where the elements of a letter begin in the memory of its sender, where they lie in one piece.
static const char *getSent(const Operation &operation, const Letter &letter) {
  uint64_t begin = getElements(operation, letter).begin;
  if (letter.round == 1)
    return getOutput(operation, begin);
  return getInput(operation, begin + (slices(operation.kind) ? letter.to * operation.from.partStride : 0));
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

static void packPieces(const Operation &operation, const Letter &letter, char *at) {
  uint64_t size = getElementBytes(operation.type);
  for (uint64_t i = 0; i < operation.numPieces; ++i) {
    const Piece &piece = operation.pieces[i];
    if (piece.source != letter.from || piece.target != letter.to)
      continue;
    uint64_t row = piece.row * size;
    copyRows(getInput(operation, piece.sourceOffset), {row, piece.sourceStride * size}, at, {row, row},
             piece.rows * row);
    at += piece.rows * row;
  }
}

/// Parts travel packed: rows of a tiling, and pieces, one behind the other.
void cleave::runtime::pack(const Operation &operation, uint64_t digest, const Letter &letter, Message &message) {
  Header header;
  header.digest = digest;
  header.count = operation.count;
  header.traffic = getLetterTraffic(operation, letter);
  header.kind = operation.kind;
  header.type = operation.type;
  header.reduction = operation.reduction;
  uint64_t bytes = header.traffic.elements * getElementBytes(operation.type);
  message.resize(sizeof(header) + bytes);
  std::memcpy(message.data(), &header, sizeof(header));
  char *to = message.data() + sizeof(header);
  if (operation.kind == OperationKind::Exchange)
    packPieces(operation, letter, to);
  else if (slices(operation.kind) && !isSplittable(operation))
    copyRows(getSent(operation, letter), getRows(operation.from, operation.type), to, {bytes, bytes}, bytes);
  else if (bytes > 0)
    std::memcpy(to, getSent(operation, letter), bytes);
}

//===----------------------------------------------------------------------===//
// Unpacking
//===----------------------------------------------------------------------===//

/// Terms are combined where they lie, in the order of the group, and the own one where it always was.
static void combine(const Operation &operation, const Letter &letter, const std::vector<const Message *> &messages) {
  Letter own = letter;
  own.from = letter.to;
  Share elements = getElements(operation, own);
  Message packed;
  const char *ownTerm = nullptr;
  if (isSplittable(operation)) {
    ownTerm = getSent(operation, own);
  } else {
    pack(operation, 0, own, packed);
    ownTerm = getPayload(packed);
  }
  std::vector<const char *> sources;
  for (uint32_t member = 0; member < messages.size(); ++member)
    sources.push_back(member == letter.to ? ownTerm : getPayload(*messages[member]));
  reduce(operation.reduction, operation.type, sources, getOutput(operation, elements.begin),
         elements.end - elements.begin);
}

static void unpackPieces(const Operation &operation, const char *at, uint32_t source, uint32_t target) {
  uint64_t size = getElementBytes(operation.type);
  for (uint64_t i = 0; i < operation.numPieces; ++i) {
    const Piece &piece = operation.pieces[i];
    if (piece.source != source || piece.target != target)
      continue;
    uint64_t row = piece.row * size;
    copyRows(at, {row, row}, getOutput(operation, piece.targetOffset), {row, piece.targetStride * size},
             piece.rows * row);
    at += piece.rows * row;
  }
}

/// What one member has sent, or this one keeps, to its place in the output.
static void place(const Operation &operation, const Letter &letter, const char *from) {
  Share elements = getElements(operation, letter);
  uint64_t bytes = (elements.end - elements.begin) * getElementBytes(operation.type);
  if (operation.kind == OperationKind::Exchange)
    return unpackPieces(operation, from, letter.from, letter.to);
  if (letter.round == 1 || isSplittable(operation)) {
    uint64_t part = letter.round == 0 ? letter.from * operation.to.partStride : 0;
    // In place the own part is where it should be.
    if (char *to = getOutput(operation, part + elements.begin); bytes > 0 && to != from)
      std::memcpy(to, from, bytes);
    return;
  }
  copyRows(from, {bytes, bytes}, getOutput(operation, letter.from * operation.to.partStride),
           getRows(operation.to, operation.type), bytes);
}

void cleave::runtime::unpack(const Operation &operation, const Letter &letter,
                             const std::vector<const Message *> &messages) {
  if (reduces(operation.kind) && letter.round == 0)
    return combine(operation, letter, messages);
  if (!hasTensors(operation.kind) && operation.kind != OperationKind::Exchange)
    return;
  Letter each = letter;
  for (each.from = 0; each.from < messages.size(); ++each.from) {
    if (each.from != letter.to) {
      place(operation, each, getPayload(*messages[each.from]));
    } else if (letter.round == 0 && isSplittable(operation)) {
      place(operation, each, getSent(operation, each));
    } else if (letter.round == 0) {
      Message own;
      pack(operation, 0, each, own);
      place(operation, each, getPayload(own));
    }
  }
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

std::optional<std::string> cleave::runtime::findMismatch(const Operation &operation, uint64_t digest,
                                                         const Letter &letter, const Message &message) {
  Header header;
  if (message.size() < sizeof(header))
    return "sent a message of " + std::to_string(message.size()) + " bytes";
  std::memcpy(&header, message.data(), sizeof(header));
  if (header.digest != digest) {
    Operation other;
    other.kind = header.kind;
    other.type = header.type;
    other.reduction = header.reduction;
    other.count = header.count;
    return "called " + describeOther(other, operation);
  }
  Traffic expected = getLetterTraffic(operation, letter);
  if (operation.kind == OperationKind::Exchange && !(header.traffic == expected))
    return "sends " + format(header.traffic) + ", expected " + format(expected);
  if (message.size() != sizeof(header) + expected.elements * getElementBytes(operation.type))
    return "sent a message of " + std::to_string(message.size()) + " bytes";
  return std::nullopt;
}
