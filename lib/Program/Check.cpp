//===- Check.cpp - whether a program may be run ---------------------------===//
//
// Checks go from tables to their order in time; each relies on those before it. First of all come sizes, so that no
// check takes longer than the size of a file warrants; then what everything refers to: types, ranks, numbers, views.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <cassert>

using namespace cleave::program;

Status cleave::program::checkProgram(const Program &program) { return Checker(program).check(); }

Status Checker::check() {
  using Step = Status (Checker::*)();
  for (Step step : {&Checker::checkSize, &Checker::checkTypes, &Checker::checkMesh, &Checker::checkRoles,
                    &Checker::checkCode, &Checker::checkGroups, &Checker::checkPieces, &Checker::checkWeights,
                    &Checker::checkBuffers, &Checker::checkLoads, &Checker::checkCommands, &Checker::checkTensors,
                    &Checker::checkLifetimes, &Checker::checkMeetings})
    if (Status error = (this->*step)())
      return error;
  return kGood;
}

Status Checker::spend(uint64_t steps) {
  work += steps;
  if (work > kMostWork)
    return makeError("asks for more than ", kMostWork, " steps of checking (P5)");
  return kGood;
}

std::string Checker::locate(const Spot &spot, std::optional<uint32_t> rank) const {
  const Command &command = getCommand(spot);
  std::string variant = program.variants.size() > 1 ? concat("variant ", spot.variant, ", ") : "";
  std::string node;
  if (command.node >= 0 && static_cast<size_t>(command.node) < program.nodes.size())
    node = ", node " + quote(program.nodes[command.node]);
  return concat(variant, "rank ", rank.value_or(program.roles[spot.role].ranks.front()), ", stream ", command.stream,
                ", command ", spot.command, " (", getWord(command.action), node, "): ");
}

/// P5: ranks times commands times streams, which the checks of order walk.
Status Checker::checkSize() {
  if (program.ranks == 0 || program.ranks > kMostRanks)
    return makeError("has ", program.ranks, " ranks, expected 1 to ", kMostRanks, " (P5)");
  for (const Variant &variant : program.variants)
    for (size_t role = 0; role < std::min(variant.lists.size(), program.roles.size()); ++role)
      if (Status error = spend(uint64_t(program.roles[role].ranks.size()) * variant.lists[role].commands.size() *
                               std::min(variant.lists[role].streams, kMostStreams)))
        return error;
  return kGood;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// P6: whether all sizes and strides can be computed with, and both bytes and span stay in bounds.
static Status checkType(const Type &type) {
  if (type.shape.size() > kMostDims)
    return makeError("has ", type.shape.size(), " dims, expected at most ", kMostDims, " (P6)");
  if (!type.strides.empty() && type.strides.size() != type.shape.size())
    return makeError("has ", type.strides.size(), " strides for ", type.shape.size(), " dims (P6)");
  unsigned __int128 elements = 1, last = 0;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    int64_t stride = type.strides.empty() ? 0 : type.strides[i];
    if (type.shape[i] < 0 || stride < 0)
      return makeError("has a negative size or stride in dim ", i, " (P6)");
    // What is below 2^48 times a number of 63 bits fits.
    unsigned bytes = getElementBytes(type.element);
    elements *= std::max<int64_t>(type.shape[i], 1);
    if (elements * bytes <= kMostBytes)
      last += static_cast<unsigned __int128>(std::max<int64_t>(type.shape[i] - 1, 0)) * stride;
    if (std::max(elements, last + 1) * bytes > kMostBytes)
      return makeError("is larger than 2^48 bytes (P6)");
  }
  return kGood;
}

Status Checker::checkTypes() {
  for (size_t i = 0; i < program.types.size(); ++i)
    if (Status error = checkType(program.types[i]))
      return addPlace(concat("type ", i, ": "), error);
  return kGood;
}

//===----------------------------------------------------------------------===//
// Ranks and numbers
//===----------------------------------------------------------------------===//

/// P8: the mesh has as many places as there are ranks, devices are all different, the rank table is whole.
Status Checker::checkMesh() {
  uint64_t places = 1;
  for (const Axis &axis : program.axes) {
    places *= axis.size;
    if (axis.size == 0 || places > kMostRanks)
      return makeError("mesh axis ", quote(axis.name), " of size ", axis.size, " (P8)");
  }
  if (places != program.ranks)
    return makeError("a mesh of ", places, " places for ", program.ranks, " ranks (P8)");
  std::vector<uint32_t> devices = program.devices;
  std::sort(devices.begin(), devices.end());
  if (!devices.empty() &&
      (devices.size() != program.ranks || std::adjacent_find(devices.begin(), devices.end()) != devices.end()))
    return makeError("devices are not one for each of ", program.ranks, " ranks (P8)");
  if (program.rankTable.size() != uint64_t(program.ranks) * program.columns.size())
    return makeError("the rank table has ", program.rankTable.size(), " entries, expected ", program.ranks, " x ",
                     program.columns.size(), " (P8)");
  return kGood;
}

/// P10: every rank has one role.
Status Checker::checkRoles() {
  std::vector<bool> seen(program.ranks);
  size_t count = 0;
  for (const Role &role : program.roles) {
    if (role.ranks.empty())
      return makeError("role ", quote(role.name), " has no ranks (P10)");
    for (uint32_t rank : role.ranks) {
      if (rank >= program.ranks || seen[rank])
        return makeError("role ", quote(role.name), ": rank ", rank, " is ",
                         rank >= program.ranks ? "not there" : "there twice", " (P10)");
      seen[rank] = true;
      ++count;
    }
    std::vector<Spread> &columns = spreads.emplace_back(program.columns.size());
    for (size_t column = 0; column < columns.size(); ++column) {
      Spread &spread = columns[column];
      spread.least = INT64_MAX, spread.most = INT64_MIN;
      for (uint32_t rank : role.ranks) {
        int64_t value = program.rankTable[rank * columns.size() + column];
        spread.least = std::min(spread.least, value), spread.most = std::max(spread.most, value);
        spread.bits |= static_cast<uint64_t>(value);
      }
    }
  }
  if (count != program.ranks)
    return makeError("roles have ", count, " of ", program.ranks, " ranks (P10)");
  return kGood;
}

std::optional<Spread> Checker::getSpread(size_t role, const Number &number) const {
  Spread spread{number.base, number.base, static_cast<uint64_t>(number.base)};
  if (number.column == -1)
    return spread;
  if (number.column < 0 || static_cast<size_t>(number.column) >= program.columns.size())
    return std::nullopt;
  const Spread &column = spreads[role][number.column];
  if (__builtin_add_overflow(number.base, column.least, &spread.least) ||
      __builtin_add_overflow(number.base, column.most, &spread.most))
    return std::nullopt;
  spread.bits |= column.bits;
  return spread;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// P15: on every rank, every byte of the view lies in its buffer, and elements are aligned.
Status Checker::checkView(size_t role, const View &view) const {
  const std::vector<Buffer> &buffers = program.roles[role].buffers;
  if (view.type >= program.types.size())
    return makeError("type ", view.type, " of ", program.types.size(), " (P15)");
  if (view.buffer >= buffers.size())
    return makeError("buffer ", view.buffer, " of ", buffers.size(), " (P15)");
  std::optional<Spread> offset = getSpread(role, view.offset);
  if (!offset)
    return makeError("an offset of ", view.offset.base, " with column ", view.offset.column, " (P9)");
  uint64_t bytes = buffers[view.buffer].bytes, span = getSpanBytes(getType(view));
  if (offset->least < 0 || uint64_t(offset->most) > bytes || span > bytes - uint64_t(offset->most))
    return makeError(format(getType(view)), " at byte ", offset->least < 0 ? offset->least : offset->most,
                     " does not lie in the ", bytes, " bytes of buffer ", view.buffer, " (P15)");
  uint32_t alignment = getElementBytes(getType(view).element);
  if (!isAligned(role, view, alignment))
    return makeError(format(getType(view)), " in buffer ", view.buffer, " is not aligned to ", alignment,
                     " bytes (P15)");
  return kGood;
}

/// Precondition: buffer and number are there.
bool Checker::isAligned(size_t role, const View &view, uint64_t alignment) const {
  assert(view.buffer < program.roles[role].buffers.size() && getSpread(role, view.offset) &&
         "buffer and number come before");
  // A sum of multiples of a power of two is one; base and column are asked for that one by one.
  return program.roles[role].buffers[view.buffer].alignment % alignment == 0 &&
         (getSpread(role, view.offset)->bits & (alignment - 1)) == 0;
}
