//===- CheckCollectives.cpp - each collective by itself (P21) -------------===//
//
// Who takes part, what shapes come of it, and which bytes may be both operand and result. Whether all members come to the
// same collective is asked in CheckMeetings.cpp.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>

using namespace cleave::program;

/// All ranks of the role are in a group.
Status Checker::checkMembers(const Spot &spot, const Collective &collective) {
  if (collective.groups >= program.groups.size())
    return makeError("groups ", collective.groups, " of ", program.groups.size(), " (P21)");
  const Groups &groups = program.groups[collective.groups];
  if (Status error = spend(uint64_t(program.ranks) + groups.ranks.size()))
    return error;
  std::vector<bool> isMember(program.ranks);
  for (uint32_t rank : groups.ranks)
    isMember[rank] = true;
  for (uint32_t rank : program.roles[spot.role].ranks)
    if (!isMember[rank])
      return makeError("rank ", rank, " is in no group of ", quote(groups.axes), " (P21)");
  return kGood;
}

/// How many pieces `list` makes of all dims; 0 where it does not suit a tensor of `rank` dims.
static uint64_t countPieces(const std::vector<uint32_t> &list, size_t rank) {
  uint64_t count = 1;
  for (uint32_t pieces : list)
    if (list.size() != rank || pieces == 0 || (count *= pieces) > kMostRanks)
      return 0;
  return count;
}

/// Operand and result of each pair fit the kind, and lie row by row.
Status Checker::checkShapes(const Collective &collective) const {
  uint64_t size = program.groups[collective.groups].size;
  for (size_t i = 0; i < collective.operands.size(); ++i) {
    const Type &operand = getType(collective.operands[i]), &result = getType(collective.results[i]);
    size_t rank = operand.shape.size();
    bool fits = operand.element == result.element && result.shape.size() == rank && isDense(operand) &&
                isDense(result) && countPieces(collective.gather, rank) == (gathers(collective.kind) ? size : 1) &&
                countPieces(collective.slice, rank) == (slices(collective.kind) ? size : 1);
    for (size_t dim = 0; fits && dim < rank; ++dim) {
      int64_t gather = collective.gather.empty() ? 1 : collective.gather[dim];
      int64_t slice = collective.slice.empty() ? 1 : collective.slice[dim];
      fits = operand.shape[dim] * gather == result.shape[dim] * slice;
    }
    if (!fits)
      return makeError("the ", getWord(collective.kind), " of ", format(operand), " among ", size, " ranks is not ",
                       format(result), " (P21)");
    if (reduces(collective.kind) && operand.element == Element::I1 && collective.reduction <= Reduction::Prod)
      return makeError("a ", getWord(collective.reduction), " of i1 (P21)");
  }
  return kGood;
}

/// A result may lie where its operand does: all of it (all_reduce), or so that the operand is the rank's own piece of the
/// result (all_gather) or the result that of the operand (reduce_scatter), pieces being rows.
Status Checker::checkInPlace(const Spot &spot, const Collective &collective) {
  const Groups &groups = program.groups[collective.groups];
  std::vector<uint32_t> place(program.ranks);
  for (size_t i = 0; i < groups.ranks.size(); ++i)
    place[groups.ranks[i]] = static_cast<uint32_t>(i % groups.size);
  for (size_t i = 0; i < collective.operands.size(); ++i) {
    const View &operand = collective.operands[i], &result = collective.results[i];
    int64_t operandBytes = getBytes(getType(operand)), resultBytes = getBytes(getType(result));
    if (operand.buffer != result.buffer)
      continue;
    if (Status error = spend(program.roles[spot.role].ranks.size()))
      return error;
    const std::vector<uint32_t> &split = gathers(collective.kind) ? collective.gather : collective.slice;
    bool areRows = !split.empty() && split[0] == groups.size && hasOwnPiece(collective.kind);
    for (uint32_t rank : program.roles[spot.role].ranks) {
      int64_t from = program.evaluate(operand.offset, rank), to = program.evaluate(result.offset, rank);
      if (from >= to + resultBytes || to >= from + operandBytes)
        continue;
      int64_t own = areRows ? int64_t(place[rank]) * std::min(operandBytes, resultBytes) : 0;
      bool isFull = keepsShape(collective.kind) && from == to;
      bool isPiece = areRows && (operandBytes < resultBytes ? from == to + own : to == from + own);
      if (!isFull && !isPiece)
        return makeError("operand and result ", i, " share bytes on rank ", rank, ", and not in place (P21)");
    }
  }
  return kGood;
}

/// A barrier has no tensors, all others have pairs of them.
Status Checker::checkAction(const Spot &spot, const Collective &collective) {
  if (Status error = checkMembers(spot, collective))
    return error;
  if (collective.operands.size() != collective.results.size() ||
      collective.operands.empty() == hasTensors(collective.kind))
    return makeError("has ", collective.operands.size(), " operands and ", collective.results.size(), " results (P21)");
  if (reduces(collective.kind) != (collective.reduction != Reduction::None))
    return makeError("has the reduction ", getWord(collective.reduction), " (P21)");
  if (Status error = checkShapes(collective))
    return error;
  return checkInPlace(spot, collective);
}
