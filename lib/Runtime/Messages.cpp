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

/// A message with room for `elements` of them behind its header.
static Message makeMessage(const Operation &operation, uint64_t digest, Traffic traffic) {
  Header header;
  header.digest = digest;
  header.count = operation.count;
  header.traffic = traffic;
  header.kind = operation.kind;
  header.type = operation.type;
  header.reduction = operation.reduction;
  Message message(sizeof(header) + traffic.elements * getElementBytes(operation.type));
  std::memcpy(message.data(), &header, sizeof(header));
  return message;
}

static Message packElements(const Operation &operation, uint64_t digest, const char *from, uint64_t elements) {
  Message message = makeMessage(operation, digest, {1, elements});
  if (elements > 0)
    std::memcpy(message.data() + sizeof(Header), from, elements * getElementBytes(operation.type));
  return message;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

static Message packPart(const Operation &operation, uint64_t digest, uint64_t part) {
  Message message = makeMessage(operation, digest, {1, operation.count});
  uint64_t bytes = operation.count * getElementBytes(operation.type);
  copyRows(getInput(operation, part * operation.from.partStride), getRows(operation.from, operation.type),
           message.data() + sizeof(Header), {bytes, bytes}, bytes);
  return message;
}

static Message packPieces(const Operation &operation, uint64_t digest, uint32_t source, uint32_t target) {
  Message message = makeMessage(operation, digest, getTraffic(operation, source, target));
  uint64_t size = getElementBytes(operation.type);
  char *at = message.data() + sizeof(Header);
  for (uint64_t i = 0; i < operation.numPieces; ++i) {
    const Piece &piece = operation.pieces[i];
    if (piece.source != source || piece.target != target)
      continue;
    uint64_t row = piece.row * size;
    copyRows(getInput(operation, piece.sourceOffset), {row, piece.sourceStride * size}, at, {row, row},
             piece.rows * row);
    at += piece.rows * row;
  }
  return message;
}

static Message packFor(const Operation &operation, uint64_t digest, uint64_t members, uint32_t index, uint32_t member) {
  if (operation.kind == OperationKind::Exchange)
    return packPieces(operation, digest, index, member);
  if (!hasTensors(operation.kind))
    return makeMessage(operation, digest, {});
  if (slices(operation.kind))
    return packPart(operation, digest, member);
  Share share = hasSecondRound(operation) ? getShare(operation, members, member) : Share{0, operation.count};
  return packElements(operation, digest, getInput(operation, share.begin), share.end - share.begin);
}

std::vector<Message> cleave::runtime::packFirst(const Operation &operation, uint64_t digest, uint64_t members,
                                                uint32_t index) {
  std::vector<Message> messages;
  for (uint32_t member = 0; member < members; ++member)
    messages.push_back(packFor(operation, digest, members, index, member));
  return messages;
}

bool cleave::runtime::hasSecondRound(const Operation &operation) {
  return reduces(operation.kind) && !slices(operation.kind) &&
         operation.count * getElementBytes(operation.type) > kSmall;
}

std::vector<Message> cleave::runtime::packSecond(const Operation &operation, uint64_t digest, uint64_t members,
                                                 uint32_t index) {
  Share share = getShare(operation, members, index);
  return std::vector<Message>(
      members, packElements(operation, digest, getOutput(operation, share.begin), share.end - share.begin));
}

//===----------------------------------------------------------------------===//
// Unpacking
//===----------------------------------------------------------------------===//

static void combine(const Operation &operation, const std::vector<Message> &messages, char *to, uint64_t elements) {
  std::vector<const char *> sources;
  for (const Message &message : messages)
    sources.push_back(getPayload(message));
  reduce(operation.reduction, operation.type, sources, to, elements);
}

static void unpackPieces(const Operation &operation, const Message &message, uint32_t source, uint32_t target) {
  uint64_t size = getElementBytes(operation.type);
  const char *at = getPayload(message);
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

void cleave::runtime::unpackFirst(const Operation &operation, const std::vector<Message> &messages, uint32_t index) {
  if (reduces(operation.kind)) {
    Share share = hasSecondRound(operation) ? getShare(operation, messages.size(), index) : Share{0, operation.count};
    return combine(operation, messages, getOutput(operation, share.begin), share.end - share.begin);
  }
  uint64_t bytes = operation.count * getElementBytes(operation.type);
  for (uint32_t member = 0; member < messages.size(); ++member)
    if (operation.kind == OperationKind::Exchange)
      unpackPieces(operation, messages[member], member, index);
    else if (gathers(operation.kind))
      copyRows(getPayload(messages[member]), {bytes, bytes}, getOutput(operation, member * operation.to.partStride),
               getRows(operation.to, operation.type), bytes);
}

void cleave::runtime::unpackSecond(const Operation &operation, const std::vector<Message> &messages, uint32_t index) {
  for (uint32_t member = 0; member < messages.size(); ++member) {
    Share share = getShare(operation, messages.size(), member);
    if (member != index && share.end > share.begin)
      std::memcpy(getOutput(operation, share.begin), getPayload(messages[member]),
                  (share.end - share.begin) * getElementBytes(operation.type));
  }
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

std::optional<std::string> cleave::runtime::findMismatch(const Operation &operation, uint64_t digest, uint32_t member,
                                                         uint32_t index, const Message &message) {
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
  Traffic expected = getTraffic(operation, member, index);
  if (operation.kind == OperationKind::Exchange && !(header.traffic == expected))
    return "sends " + format(header.traffic) + ", expected " + format(expected);
  if (message.size() != sizeof(header) + header.traffic.elements * getElementBytes(operation.type))
    return "sent a message of " + std::to_string(message.size()) + " bytes";
  return std::nullopt;
}
