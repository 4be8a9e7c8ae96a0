//===- CheckCommands.cpp - each command by itself -------------------------===//
//
// What a command refers to is there, fits its kind, and lies where it may. Order comes later.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <cassert>
#include <tuple>

using namespace cleave::program;

/// P17: one list per role; streams and nodes that are there.
Status Checker::checkCommands() {
  if (program.variants.empty())
    return makeError("has no variant (P17)");
  for (size_t variant = 0; variant < program.variants.size(); ++variant) {
    size_t lists = program.variants[variant].lists.size();
    if (lists != program.roles.size())
      return makeError("variant ", variant, ": ", lists, " lists for ", program.roles.size(), " roles (P17)");
    for (size_t role = 0; role < lists; ++role)
      if (Status error = checkList(variant, role))
        return error;
  }
  return kGood;
}

Status Checker::checkList(size_t variant, size_t role) {
  const List &list = program.variants[variant].lists[role];
  if (list.streams == 0 || list.streams > kMostStreams)
    return makeError("role ", quote(program.roles[role].name), ": ", list.streams, " streams, expected 1 to ",
                     kMostStreams, " (P17)");
  // P23: an event is recorded once, and waited for behind that.
  std::vector<bool> recorded(std::min<size_t>(list.events, list.commands.size()));
  if (recorded.size() < list.events)
    return makeError("role ", quote(program.roles[role].name), ": ", list.events, " events in ", list.commands.size(),
                     " commands (P23)");
  for (size_t i = 0; i < list.commands.size(); ++i) {
    Spot spot{variant, role, i};
    if (Status error = checkCommand(spot))
      return addPlace(locate(spot), error);
    const Action &action = list.commands[i].action;
    if (const auto *record = std::get_if<Record>(&action)) {
      if (recorded[record->event])
        return addPlace(locate(spot), makeError("event ", record->event, " is recorded twice (P23)"));
      recorded[record->event] = true;
    } else if (const auto *wait = std::get_if<Wait>(&action)) {
      if (!recorded[wait->event])
        return addPlace(locate(spot), makeError("event ", wait->event, " has not been recorded before (P23)"));
    }
  }
  return checkLoops(variant, role);
}

/// P33: what begins ends, on one stream; what is recorded in a body is waited for in it. Who meets in one comes later.
Status Checker::checkLoops(size_t variant, size_t role) const {
  const List &list = program.variants[variant].lists[role];
  std::vector<const Loop *> open;
  std::vector<uint32_t> numbers{0}; // of the bodies around a command, 0 outside of all
  std::vector<uint32_t> bodyOf(list.events);
  uint32_t bodies = 0;
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const Command &command = list.commands[i];
    auto refuse = [&](const auto &...words) {
      return addPlace(locate({variant, role, i}), makeError(words..., " (P33)"));
    };
    const auto *loop = std::get_if<Loop>(&command.action);
    const auto *end = std::get_if<EndLoop>(&command.action);
    if ((loop || end) && command.stream != 0)
      return refuse("is on stream ", command.stream, ", expected 0");
    if (loop && open.size() == kMostNestedLoops)
      return refuse("is in more than ", kMostNestedLoops, " loops");
    if (loop) {
      open.push_back(loop);
      numbers.push_back(++bodies);
    } else if (end && open.empty()) {
      return refuse("ends no loop");
    } else if (end) {
      if (open.back()->condition.has_value() != end->condition.has_value())
        return refuse("has ", end->condition ? "a" : "no", " condition, unlike its loop");
      open.pop_back();
      numbers.pop_back();
    } else if (const auto *record = std::get_if<Record>(&command.action)) {
      bodyOf[record->event] = numbers.back();
    } else if (const auto *wait = std::get_if<Wait>(&command.action)) {
      if (bodyOf[wait->event] != numbers.back())
        return refuse("waits for event ", wait->event, " across the border of a loop");
    }
  }
  if (!open.empty())
    return makeError("role ", quote(program.roles[role].name), ": ", open.size(), " loops do not end (P33)");
  return kGood;
}

/// In this order: what is referred to is there, views lie in their buffers, the kind's own constraints, overlaps.
Status Checker::checkCommand(const Spot &spot) {
  const Command &command = getCommand(spot);
  uint32_t streams = program.variants[spot.variant].lists[spot.role].streams;
  if (command.stream >= streams)
    return makeError("stream ", command.stream, " of ", streams, " (P17)");
  if (command.node < -1 || command.node >= int64_t(program.nodes.size()))
    return makeError("node ", command.node, " of ", program.nodes.size(), " (P17)");
  if (command.unit < -1 || command.unit >= int64_t(program.units.size()))
    return makeError("unit ", command.unit, " of ", program.units.size(), " (P17)");
  // A kernel and its operands are there before they are asked for.
  if (const auto *launch = std::get_if<Launch>(&command.action)) {
    if (launch->kernel >= program.kernels.size())
      return makeError("kernel ", launch->kernel, " of ", program.kernels.size(), " (P18)");
    size_t wanted = program.kernels[launch->kernel].parameters.size();
    if (launch->operands.size() != wanted)
      return makeError("has ", launch->operands.size(), " operands for the ", wanted, " of kernel ",
                       quote(program.kernels[launch->kernel].name), " (P18)");
  }
  for (const Operand &operand : getOperands(program, command.action))
    if (Status error = checkView(spot.role, operand.view))
      return error;
  // A device reaches its host's memory by copies.
  for (const Operand &operand : getOperands(program, command.action))
    if (program.roles[spot.role].buffers[operand.view.buffer].memory == Memory::Host &&
        !std::holds_alternative<Copy>(command.action))
      return makeError("reads or writes buffer ", operand.view.buffer, ", which is in the host's memory (P24)");
  if (Status error = std::visit([&](const auto &action) { return checkAction(spot, action); }, command.action))
    return error;
  return checkOverlaps(spot);
}

//===----------------------------------------------------------------------===//
// Kernels (P18)
//===----------------------------------------------------------------------===//

/// What a library sees with the dims of its own may have others in a kernel: rows that lie one behind another are one dim.
static bool haveSameBytes(const Type &kernels, const Type &command) {
  bool isFull = isDense(kernels) && getBytes(kernels) == getSpanBytes(command);
  return kernels.element == command.element && isFull;
}

/// Each operand is of the type that the code was made for, aligned as it expects.
Status Checker::checkSignature(size_t role, int32_t number, const std::vector<Operand> &operands,
                               bool isFallback) const {
  const Kernel &kernel = program.kernels[number];
  for (size_t i = 0; i < operands.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    const Type &wanted = program.types[parameter.type], &type = getType(operands[i].view);
    bool isSame = isAlike(wanted, type) && wanted.strides == type.strides;
    if (!isSame && !(isFallback && haveSameBytes(wanted, type)))
      return makeError("operand ", i, " is ", format(type), ", but kernel ", quote(kernel.name), " takes ",
                       format(wanted), " (P18)");
    if (!isAligned(role, operands[i].view, parameter.alignment))
      return makeError("operand ", i, " is not aligned to the ", parameter.alignment, " bytes that kernel ",
                       quote(kernel.name), " relies on (P18)");
  }
  return kGood;
}

/// As many numbers as the code takes, each one a number on all ranks (P9).
Status Checker::checkAction(const Spot &spot, const Launch &launch) const {
  const Kernel &kernel = program.kernels[launch.kernel];
  if (launch.scalars.size() != kernel.scalars)
    return makeError("has ", launch.scalars.size(), " numbers for the ", kernel.scalars, " of kernel ",
                     quote(kernel.name), " (P18)");
  for (const Number &number : launch.scalars)
    if (!getSpread(spot.role, number))
      return makeError("a number ", number.base, " with column ", number.column, " (P9)");
  return checkSignature(spot.role, static_cast<int32_t>(launch.kernel), getOperands(program, launch));
}

/// The kernel that stands in for a library does with the operands what the library would.
Status Checker::checkFallback(const Spot &spot, int32_t number) const {
  if (number == -1)
    return kGood;
  if (number < -1 || number >= int64_t(program.kernels.size()))
    return makeError("kernel ", number, " of ", program.kernels.size(), " (P18)");
  const Kernel &kernel = program.kernels[number];
  std::vector<Operand> operands = getOperands(program, getCommand(spot).action);
  if (operands.size() != kernel.parameters.size() || kernel.scalars != 0)
    return makeError("has ", operands.size(), " operands for the ", kernel.parameters.size(), " of kernel ",
                     quote(kernel.name), ", and no numbers (P18)");
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].access != kernel.parameters[i].access || kernel.parameters[i].alias != operands[i].alias)
      return makeError("operand ", i, " is for ", getWord(operands[i].access), ", but kernel ", quote(kernel.name),
                       " will ", getWord(kernel.parameters[i].access), " (P18)");
  return checkSignature(spot.role, number, operands, /*isFallback=*/true);
}

//===----------------------------------------------------------------------===//
// Copies (P20), exchanges (P22), events (P23)
//===----------------------------------------------------------------------===//

/// Strides may differ: that is what copies are for.
Status Checker::checkAction(const Spot &spot, const Copy &copy) const {
  const Type &source = getType(copy.source), &target = getType(copy.target);
  if (!isAlike(source, target))
    return makeError("copies ", format(source), " to ", format(target), " (P20)");
  const std::vector<Buffer> &buffers = program.roles[spot.role].buffers;
  if (buffers[copy.source.buffer].memory == Memory::Host && buffers[copy.target.buffer].memory == Memory::Host)
    return makeError("copies within the host's memory (P20)");
  return kGood;
}

/// Whether a box of a piece lies in a tensor. `end` is 1 for the operand, 2 for the result.
static bool liesIn(const Pieces &pieces, size_t piece, size_t end, const Type &type) {
  const int64_t *box = &pieces.boxes[piece * 3 * pieces.dims];
  for (uint32_t dim = 0; dim < pieces.dims; ++dim)
    if (box[end * pieces.dims + dim] + box[dim] > type.shape[dim])
      return false;
  return true;
}

/// Of each piece that a rank of the role sends or receives, its own end. The other end is another role's, or the same.
Status Checker::checkAction(const Spot &spot, const Exchange &exchange) {
  if (exchange.pieces >= program.pieces.size())
    return makeError("pieces ", exchange.pieces, " of ", program.pieces.size(), " (P22)");
  const Pieces &pieces = program.pieces[exchange.pieces];
  if (Status error = spend(pieces.ends.size() * (pieces.dims + 1) + program.roles[spot.role].ranks.size()))
    return error;
  std::vector<uint32_t> ranks = program.roles[spot.role].ranks;
  std::sort(ranks.begin(), ranks.end());
  for (size_t i = 0; i < pieces.ends.size(); ++i)
    for (auto [rank, view, end] : {std::make_tuple(pieces.ends[i].source, &exchange.operand, 1),
                                   std::make_tuple(pieces.ends[i].target, &exchange.result, 2)}) {
      if (!std::binary_search(ranks.begin(), ranks.end(), rank))
        continue;
      const char *what = end == 1 ? "operand" : "result";
      if (!*view)
        return makeError("piece ", i, " needs ", end == 1 ? "an operand" : "a result", " on rank ", rank, " (P22)");
      const Type &type = getType(**view);
      if (type.shape.size() != pieces.dims || !liesIn(pieces, i, end, type))
        return makeError("piece ", i, " does not lie in the ", what, ", ", format(type), " (P22)");
    }
  if (exchange.operand && exchange.result && getType(*exchange.operand).element != getType(*exchange.result).element)
    return makeError("sends ", format(getType(*exchange.operand)), " and receives ", format(getType(*exchange.result)),
                     " (P22)");
  return kGood;
}

Status Checker::checkAction(const Spot &spot, const Record &record) const {
  uint32_t events = program.variants[spot.variant].lists[spot.role].events;
  if (record.event >= events)
    return makeError("event ", record.event, " of ", events, " (P23)");
  return kGood;
}

Status Checker::checkAction(const Spot &spot, const Wait &wait) const { return checkAction(spot, Record{wait.event}); }

//===----------------------------------------------------------------------===//
// Loops (P33)
//===----------------------------------------------------------------------===//

Status Checker::checkCondition(const std::optional<View> &condition) const {
  if (!condition)
    return kGood;
  const Type &type = getType(*condition);
  if (type.element != Element::I1 || getBytes(type) != 1)
    return makeError("has a condition of ", format(type), ", expected one i1 (P33)");
  return kGood;
}

Status Checker::checkAction(const Spot &, const Loop &loop) const {
  if (loop.count < -1 || (loop.count == -1 && !loop.condition))
    return makeError("has a count of ", loop.count, loop.condition ? "" : " and no condition", " (P33)");
  return checkCondition(loop.condition);
}

Status Checker::checkAction(const Spot &, const EndLoop &loop) const { return checkCondition(loop.condition); }

//===----------------------------------------------------------------------===//
// What may be written, and beside what (P24)
//===----------------------------------------------------------------------===//

static bool isSame(const View &a, const View &b) {
  return a.buffer == b.buffer && a.offset.base == b.offset.base && a.offset.column == b.offset.column;
}

/// True if no piece that a rank gets lies in the bytes of the operand. Precondition: P22 holds.
static bool getsBeside(const Program &program, const Exchange &exchange) {
  assert(exchange.operand && exchange.result && "P22 comes before");
  const Pieces &pieces = program.pieces[exchange.pieces];
  const View &operand = *exchange.operand, &result = *exchange.result;
  if (operand.offset.column != result.offset.column)
    return false;
  const Type &type = program.types[result.type];
  std::vector<int64_t> strides = getStrides(type);
  int64_t bytes = getElementBytes(type.element), begin = operand.offset.base,
          end = begin + int64_t(getSpanBytes(program.types[operand.type]));
  for (size_t i = 0; i < pieces.ends.size(); ++i) {
    const int64_t *extents = &pieces.boxes[i * 3 * pieces.dims], *to = extents + size_t(2) * pieces.dims;
    int64_t first = result.offset.base, last = first;
    for (uint32_t dim = 0; dim < pieces.dims; ++dim) {
      first += to[dim] * strides[dim] * bytes;
      last += (to[dim] + extents[dim] - 1) * strides[dim] * bytes;
    }
    if (first < end && begin < last + bytes)
      return false;
  }
  return true;
}

/// Operands of one command share no bytes that it writes, but for those that are declared to be one tensor in place.
/// A view with strides stands for all bytes from its first to its last element.
Status Checker::checkOverlaps(const Spot &spot) {
  const Role &role = program.roles[spot.role];
  const Action &action = getCommand(spot).action;
  std::vector<Operand> operands = getOperands(program, action);
  const auto *copy = std::get_if<Copy>(&action);
  const auto *exchange = std::get_if<Exchange>(&action);
  bool isCollective = std::holds_alternative<Collective>(action), isMoved = copy && movesDown(program, *copy);
  auto share = [&](const View &a, const View &b) {
    int64_t sizeA = getSpanBytes(getType(a)), sizeB = getSpanBytes(getType(b));
    auto meets = [&](int64_t atA, int64_t atB) { return atA < atB + sizeB && atB < atA + sizeA; };
    if (a.buffer != b.buffer || !sizeA || !sizeB)
      return false;
    if (a.offset.column == b.offset.column)
      return meets(a.offset.base, b.offset.base);
    work += role.ranks.size();
    return std::any_of(role.ranks.begin(), role.ranks.end(), [&](uint32_t rank) {
      return meets(program.evaluate(a.offset, rank), program.evaluate(b.offset, rank));
    });
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    BufferKind kind = role.buffers[operands[i].view.buffer].kind;
    bool isWritten = operands[i].access != Access::Read;
    if (isWritten && (kind == BufferKind::Weights || kind == BufferKind::Input))
      return makeError("operand ", i, " would write to a buffer of kind ", getWord(kind), " (P24)");
    if (Status error = spend(i))
      return error;
    for (size_t j = 0; j < i; ++j) {
      bool isOne = operands[i].alias == int64_t(j);
      if ((!isWritten && operands[j].access == Access::Read) || !share(operands[i].view, operands[j].view))
        continue;
      bool isInPlace = exchange ? getsBeside(program, *exchange)
                                : isCollective || isMoved || isSame(operands[i].view, operands[j].view);
      if (!isOne || !isInPlace)
        return makeError("operands ", j, " and ", i, " share bytes, and are not one tensor in place (P24)");
    }
  }
  return kGood;
}
