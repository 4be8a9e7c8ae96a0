//===- Operation.h - what a group of ranks does together --------*- C++ -*-===//
//
// An operation is data: what a command of a program file says, what the flight recorder keeps, and what ranks compare
// before they touch each other's memory. Where a rank's operand consists of one *part* per member of the group, a tiling
// says where they lie; a gather along an inner dim needs no packing:
//
//   all_gather of [2][3] pieces of 2 ranks along dim 1        a a a b b b      2 rows of 3 elements, 6 apart,
//                                                             a a a b b b      part p begins at 3 * p
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_OPERATION_H
#define CLEAVE_RUNTIME_OPERATION_H

#include "cleave/Runtime/Element.h"
#include <optional>
#include <string>
#include <vector>

namespace cleave::runtime {

using OperationKind = program::CollectiveKind;

/// Where the parts of a group's members lie in a buffer, in elements: part p is `rows` rows of `row` elements, the first
/// row at `p * partStride`, each `rowStride` behind the one before.
struct Tiling {
  uint64_t rows = 1, row = 0, rowStride = 0, partStride = 0;

  /// Parts one behind the other.
  static Tiling contiguous(uint64_t count) { return {1, count, count, count}; }
  /// Parts side by side along a dim: `rows` is what lies outside of it, `row` what one member has of it and inside.
  static Tiling inner(uint64_t rows, uint64_t row, uint64_t members) { return {rows, row, row * members, row}; }
  uint64_t numElements() const { return rows * row; }
};

/// A box that moves from member `source` of the group to member `target`: rows of elements, as in a tiling. A box that
/// is cut in more than two levels is several pieces.
struct Piece {
  uint32_t source = 0, target = 0;
  uint64_t rows = 1, row = 0;
  /// In elements: into the input of `source`, and into the output of `target`.
  uint64_t sourceOffset = 0, sourceStride = 0, targetOffset = 0, targetStride = 0;
};

using GroupId = uint32_t;
/// All ranks.
constexpr GroupId kWorld = 0;

struct Operation {
  OperationKind kind = OperationKind::Barrier;
  ElementType type = ElementType::F32;
  Reduction reduction = Reduction::None;
  GroupId group = kWorld;
  /// Aligned to the element type.
  const void *input = nullptr;
  void *output = nullptr;
  /// Elements of a part: where the operand has one for each member (kinds that slice), of what one of them gets; else of all of it.
  uint64_t count = 0;
  /// Parts in the input, of kinds that slice, and in the output, of kinds that gather.
  Tiling from, to;
  /// The pieces of an exchange: all that the rank sends or receives, in an order that both sides of a pair agree on.
  const Piece *pieces = nullptr;
  uint64_t numPieces = 0;
};

/// Every rank gets the terms of all combined, in the order of the group. In place if `input == output`.
Operation allReduce(GroupId group, Reduction reduction, ElementType type, const void *input, void *output,
                    uint64_t count);
/// Every rank gets the parts of all, laid out as `to` says. In place, for contiguous parts, if `input` is the rank's own part of `output`.
Operation allGather(GroupId group, ElementType type, const void *input, void *output, Tiling to);
/// Pieces from point to point; a rank may send to itself, and get none between the first and the last byte that it sends. The list must stay until the operation is done.
Operation exchange(GroupId group, ElementType type, const void *input, void *output, const std::vector<Piece> &pieces);
/// Returns when all members have come.
Operation barrier(GroupId group);
/// One of the kinds that have tensors. Where the operand has parts, `from` says where they lie, and each rank gets its own one, of the terms
/// combined if the kind reduces; where the result has some, `to`, and part p becomes, at rank p, the part of the sender. `count` is for
/// operands without parts; what the kind does not need may be anything. In place, for contiguous parts, where one side is the rank's own
/// part of the other one; never where both have parts.
Operation makeOperation(OperationKind kind, GroupId group, Reduction reduction, ElementType type, const void *input,
                        void *output, uint64_t count, Tiling from, Tiling to);

/// `all_reduce sum f32[256]`
std::string describe(const Operation &operation);
/// `other` for one who does `own`: its description, and whether it is one with the same and other parts.
std::string describeOther(const Operation &other, const Operation &own);
/// A number that differs, but for rare accidents, between operations that cannot be one and the same collective: of
/// kind, type, reduction, count and tilings. Addresses and pieces are each rank's own.
uint64_t digest(const Operation &operation);
/// Why member `index` of `members` cannot take part; nothing if it can.
std::optional<std::string> findMistake(const Operation &operation, uint64_t members, uint64_t index);

/// Elements that an exchange moves from `source` to `target`, and in how many pieces.
struct Traffic {
  uint64_t pieces = 0, elements = 0;
  bool operator==(const Traffic &other) const { return pieces == other.pieces && elements == other.elements; }
};
Traffic getTraffic(const Operation &operation, uint32_t source, uint32_t target);
/// Bytes of operands in the largest message that an operation brings to this member, or takes to another.
uint64_t getLargestMessage(const Operation &operation);
/// `12 elements in 1 pieces`
std::string format(Traffic traffic);
/// Elements from the start of the input up to the last one that the operation reads (exchange: 0).
uint64_t getInputExtent(const Operation &operation, uint64_t members);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_OPERATION_H
