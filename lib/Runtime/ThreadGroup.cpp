//===- ThreadGroup.cpp - what thread ranks of a group share ---------------===//
//
// The two forms of each operation, and how members find out that they do not mean the same one.
//
//===----------------------------------------------------------------------===//
#include "ThreadGroup.h"
#include "Reduce.h"

#include <algorithm>
#include <cstring>

using namespace cleave::runtime;

/// Bytes that are combined before they are written to the others.
static constexpr uint64_t kPush = 8192;
/// Shares of an all_reduce are whole cache lines of an aligned operand.
static constexpr uint64_t kLine = 64;

//===----------------------------------------------------------------------===//
// Posting and comparing
//===----------------------------------------------------------------------===//

ThreadGroup::ThreadGroup(const std::vector<int> &ranks)
    : ranks(ranks), posted(ranks.size()), done(ranks.size()), members(ranks.size()) {
  for (Member &member : members) {
    member.sources.resize(ranks.size());
    for (Post &post : member.posts)
      post.sent.resize(ranks.size());
  }
}

void ThreadGroup::Stage::arrive(uint32_t index, uint64_t number) {
  arrived[index].value.store(number, std::memory_order_release);
  gate.arrive(number);
}

bool ThreadGroup::Stage::hasArrived(uint32_t index, uint64_t number) const {
  return arrived[index].value.load(std::memory_order_acquire) >= number;
}

bool ThreadGroup::isSmall(const Operation &operation) const {
  return operation.kind != OperationKind::Exchange &&
         getInputExtent(operation, ranks.size()) * getElementBytes(operation.type) <= kSmall;
}

bool ThreadGroup::isRead(uint32_t index, const Operation &operation) const {
  if (operation.kind != OperationKind::Exchange)
    return !isSmall(operation);
  return std::any_of(operation.pieces, operation.pieces + operation.numPieces,
                     [&](const Piece &piece) { return piece.source == index && piece.target != index; });
}

void ThreadGroup::post(uint32_t index, uint64_t number, uint64_t digest, const Operation &operation) {
  Post &post = getPost(index, number);
  post.digest = digest;
  post.input = static_cast<const char *>(operation.input);
  post.output = static_cast<char *>(operation.output);
  post.operation = operation;
  if (operation.kind == OperationKind::Exchange)
    for (uint32_t member = 0; member < ranks.size(); ++member)
      post.sent[member] = getTraffic(operation, index, member);
  uint64_t bytes = getInputExtent(operation, ranks.size()) * getElementBytes(operation.type);
  if (bytes == 0 || !isSmall(operation))
    return;
  // Nobody reads the slot any more when its number comes round again, so it may be another one.
  Slot &slot = members[index].slots[number % Gate::kDepth];
  if (slot.bytes < bytes) {
    slot.lines = std::make_unique<SlotLine[]>((bytes + sizeof(SlotLine) - 1) / sizeof(SlotLine));
    slot.bytes = bytes;
  }
  std::memcpy(slot.lines.get(), operation.input, bytes);
}

std::optional<std::pair<uint32_t, std::string>> ThreadGroup::findMismatch(uint32_t index, uint64_t number) {
  const Post &own = getPost(index, number);
  for (uint32_t member = 0; member < ranks.size(); ++member) {
    const Post &post = getPost(member, number);
    if (post.digest != own.digest)
      return std::pair(member, "called " + describeOther(post.operation, own.operation));
    if (own.operation.kind != OperationKind::Exchange)
      continue;
    Traffic sent = post.sent[index], expected = getTraffic(own.operation, member, index);
    if (!(sent == expected))
      return std::pair(member, "sends " + format(sent) + ", expected " + format(expected));
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Carrying out
//===----------------------------------------------------------------------===//

void ThreadGroup::carryOut(uint32_t index, uint64_t number) {
  const Operation &operation = getPost(index, number).operation;
  View view = {operation, index, number, getElementBytes(operation.type)};
  if (operation.kind == OperationKind::Exchange)
    return takePieces(view);
  if (operation.count == 0)
    return;
  if (!reduces(operation.kind))
    return takeParts(view);
  if (slices(operation.kind))
    return reduceOwnPart(view);
  return isSmall(operation) ? reduceRow(view, 0, 0, operation.count) : reduceShare(view);
}

/// Where an element of a member's operand can be read.
const char *ThreadGroup::getSource(const View &view, uint32_t member, uint64_t element) {
  const char *operand =
      isSmall(view.operation)
          ? reinterpret_cast<const char *>(members[member].slots[view.number % Gate::kDepth].lines.get())
          : getPost(member, view.number).input;
  return operand + element * view.size;
}

/// Combines `count` elements of all, from element `inSources` on, into the own output.
void ThreadGroup::reduceRow(const View &view, uint64_t inSources, uint64_t inOutput, uint64_t count) {
  std::vector<const char *> &sources = members[view.index].sources;
  for (uint32_t member = 0; member < sources.size(); ++member)
    sources[member] = getSource(view, member, inSources);
  reduce(view.operation.reduction, view.operation.type, sources, view.output(inOutput), count);
}

/// Combines this rank's share of the elements, and writes it into the outputs of all, its own first.
void ThreadGroup::reduceShare(const View &view) {
  uint64_t count = view.operation.count, lines = (count * view.size + kLine - 1) / kLine;
  uint64_t share = (lines + ranks.size() - 1) / ranks.size() * kLine / view.size;
  uint64_t begin = std::min(share * view.index, count), end = std::min(begin + share, count);
  for (uint64_t at = begin; at < end; at += kPush / view.size) {
    uint64_t size = std::min(kPush / view.size, end - at);
    reduceRow(view, at, at, size);
    for (uint32_t member = 0; member < ranks.size(); ++member)
      if (member != view.index)
        std::memcpy(getPost(member, view.number).output + at * view.size, view.output(at), size * view.size);
  }
}

void ThreadGroup::reduceOwnPart(const View &view) {
  const Tiling &from = view.operation.from;
  for (uint64_t row = 0; row < from.rows; ++row)
    reduceRow(view, view.index * from.partStride + row * from.rowStride, row * from.row, from.row);
}

/// From each member the part that is meant for this one, or, where its operand is a part, all of it: in place, the own part is where it
/// should be already.
void ThreadGroup::takeParts(const View &view) {
  const Operation &operation = view.operation;
  uint64_t bytes = operation.count * view.size;
  bool isSplit = slices(operation.kind);
  uint64_t own = isSplit ? view.index * operation.from.partStride : 0;
  ByteRows from = isSplit ? getRows(operation.from, operation.type) : ByteRows{bytes, bytes};
  for (uint32_t member = 0; member < ranks.size(); ++member)
    copyRows(getSource(view, member, own), from, view.output(member * operation.to.partStride),
             getRows(operation.to, operation.type), bytes);
}

/// Every piece is fetched by its target, at the place that its own list says.
void ThreadGroup::takePieces(const View &view) {
  for (uint64_t i = 0; i < view.operation.numPieces; ++i) {
    const Piece &piece = view.operation.pieces[i];
    uint64_t row = piece.row * view.size;
    if (piece.target == view.index)
      copyRows(getSource(view, piece.source, piece.sourceOffset), {row, piece.sourceStride * view.size},
               view.output(piece.targetOffset), {row, piece.targetStride * view.size}, piece.rows * row);
  }
}
