//===- CheckTables.cpp - machine code, groups, pieces ---------------------===//
//
// Tables that commands refer to. What stands in them is sound by itself; whether a command uses it well is asked there.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <cassert>

using namespace cleave::program;

//===----------------------------------------------------------------------===//
// Machine code (P7)
//===----------------------------------------------------------------------===//

static bool suits(Format format, Device device) {
  return (format == Format::SharedObject) == getTraits(device).takesSharedObjects;
}

/// Every target finds an object in it.
static Status checkModule(const Program &program, const Module &module) {
  std::vector<bool> served(program.targets.size());
  for (const Object &object : module.objects) {
    if (object.target >= program.targets.size())
      return makeError("target ", object.target, " of ", program.targets.size(), " (P7)");
    if (!suits(object.format, program.targets[object.target].device))
      return makeError("a ", getWord(object.format), " for ", getWord(program.targets[object.target].device), " (P7)");
    if (object.code.empty())
      return makeError("an object without code (P7)");
    served[object.target] = true;
  }
  for (size_t target = 0; target < served.size(); ++target)
    if (!served[target])
      return makeError("has no object for target ", target, " (P7)");
  return kGood;
}

static uint64_t countAll(const Extent &extent) { return uint64_t(extent.x) * extent.y * extent.z; }

/// Host code is called once; what a device starts must not be empty, and no block larger than any device takes.
Status Checker::checkKernel(const Kernel &kernel) const {
  if (kernel.module >= program.modules.size())
    return makeError("module ", kernel.module, " of ", program.modules.size(), " (P7)");
  if (kernel.entry.empty() || kernel.entry.find('\0') != std::string::npos)
    return makeError("entry ", quote(kernel.entry), " is not a symbol (P7)");
  // Whatever the hardware bounds: sizes of 20 bits each keep their product in 64.
  uint32_t most = getTraits(program.targets.front().device).mostThreads;
  for (uint32_t size : {kernel.grid.x, kernel.grid.y, kernel.grid.z, kernel.block.x, kernel.block.y, kernel.block.z})
    if (size == 0 || size > (most == 1 ? 1 : INT32_MAX))
      return makeError("a launch of size ", size, " (P7)");
  if (std::max({kernel.block.x, kernel.block.y, kernel.block.z}) > most || countAll(kernel.block) > most)
    return makeError("blocks of more than ", most, " threads (P7)");
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    if (parameter.type >= program.types.size())
      return makeError("parameter ", i, ": type ", parameter.type, " of ", program.types.size(), " (P7)");
    if (!isPowerOfTwo(parameter.alignment))
      return makeError("parameter ", i, ": alignment ", parameter.alignment, " (P7)");
    if (parameter.alias < -1 || parameter.alias >= int64_t(i))
      return makeError("parameter ", i, ": alias of ", parameter.alias, ", expected an earlier one or -1 (P7)");
  }
  return kGood;
}

/// Targets are alternatives, so they are for one kind of device: commands and buffers are made for that.
Status Checker::checkCode() {
  if (program.targets.empty())
    return makeError("has no target (P7)");
  for (const Target &target : program.targets)
    if (target.architecture.empty() || target.device != program.targets.front().device)
      return makeError("target ", quote(target.architecture), " next to ", quote(program.targets.front().architecture),
                       ": expected architectures of one kind of device (P7)");
  for (size_t i = 0; i < program.modules.size(); ++i)
    if (Status error = checkModule(program, program.modules[i]))
      return addPlace(concat("module ", i, " ", quote(program.modules[i].name), ": "), error);
  for (size_t i = 0; i < program.kernels.size(); ++i)
    if (Status error = checkKernel(program.kernels[i]))
      return addPlace(concat("kernel ", i, " ", quote(program.kernels[i].name), ": "), error);
  return kGood;
}

//===----------------------------------------------------------------------===//
// Groups (P11)
//===----------------------------------------------------------------------===//

Status Checker::checkGroups() {
  for (size_t i = 0; i < program.groups.size(); ++i) {
    const Groups &groups = program.groups[i];
    std::string place = concat("groups ", i, " ", quote(groups.axes), ": ");
    if (groups.size == 0 || groups.ranks.empty() || groups.ranks.size() % groups.size)
      return makeError(place, groups.ranks.size(), " ranks in groups of ", groups.size, " (P11)");
    std::vector<uint32_t> ranks = groups.ranks;
    std::sort(ranks.begin(), ranks.end());
    if (ranks.back() >= program.ranks)
      return makeError(place, "rank ", ranks.back(), " of ", program.ranks, " (P11)");
    auto twice = std::adjacent_find(ranks.begin(), ranks.end());
    if (twice != ranks.end())
      return makeError(place, "rank ", *twice, " is there twice (P11)");
  }
  return kGood;
}

//===----------------------------------------------------------------------===//
// Pieces (P12)
//===----------------------------------------------------------------------===//

/// Whether two pieces fill an element twice. Precondition: same target.
static bool meet(const Pieces &pieces, size_t a, size_t b) {
  assert(pieces.ends[a].target == pieces.ends[b].target && "pieces of two ranks");
  for (uint32_t dim = 0; dim < pieces.dims; ++dim) {
    const int64_t *boxA = &pieces.boxes[a * 3 * pieces.dims], *boxB = &pieces.boxes[b * 3 * pieces.dims];
    int64_t startA = boxA[2 * pieces.dims + dim], startB = boxB[2 * pieces.dims + dim];
    if (startA + boxA[dim] <= startB || startB + boxB[dim] <= startA)
      return false;
  }
  return true;
}

/// Boxes that come to one rank do not overlap there.
Status Checker::checkBoxes(const Pieces &pieces, size_t index) {
  std::vector<size_t> order(pieces.ends.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  auto targetOf = [&](size_t piece) { return pieces.ends[piece].target; };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::make_pair(targetOf(a), a) < std::make_pair(targetOf(b), b); });
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1; j < order.size() && targetOf(order[j]) == targetOf(order[i]); ++j) {
      if (Status error = spend(1))
        return error;
      if (meet(pieces, order[i], order[j]))
        return makeError("pieces ", index, ": ", order[i], " and ", order[j], " fill the same elements of rank ",
                         targetOf(order[i]), " (P12)");
    }
  return kGood;
}

/// Starts and extents stay below 2^48: their sums need no care.
Status Checker::checkPieces() {
  for (size_t i = 0; i < program.pieces.size(); ++i) {
    const Pieces &pieces = program.pieces[i];
    if (pieces.dims > kMostDims || pieces.boxes.size() != pieces.ends.size() * 3 * pieces.dims)
      return makeError("pieces ", i, ": ", pieces.boxes.size(), " numbers for ", pieces.ends.size(), " boxes of ",
                       pieces.dims, " dims (P12)");
    if (pieces.ends.empty())
      return makeError("pieces ", i, ": there are none (P12)");
    for (const Ends &ends : pieces.ends)
      if (std::max(ends.source, ends.target) >= program.ranks)
        return makeError("pieces ", i, ": rank ", std::max(ends.source, ends.target), " of ", program.ranks, " (P12)");
    for (int64_t number : pieces.boxes)
      if (number < 0 || number > int64_t(kMostBytes))
        return makeError("pieces ", i, ": a box with ", number, " (P12)");
    if (Status error = checkBoxes(pieces, i))
      return error;
  }
  return kGood;
}
