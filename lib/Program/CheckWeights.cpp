//===- CheckWeights.cpp - weights, buffers, loads -------------------------===//
//
// What a rank has before its first command: where bytes come from, where they go, and that nothing goes there twice.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"
#include "cleave/Program/Digest.h"
#include "cleave/Program/Words.h"

#include <algorithm>

using namespace cleave::program;

static bool isDigest(const std::string &text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

//===----------------------------------------------------------------------===//
// Weights (P13)
//===----------------------------------------------------------------------===//

/// The parts of a stack stand before it, have bytes of their own, and are alike.
static Status checkParts(const Program &program, const Weight &weight, size_t index) {
  const Type &type = program.types[weight.type];
  if (weight.file >= 0 || !weight.embedded.empty() || weight.splat || !weight.blocks.empty())
    return makeError("has parts and bytes of its own (P13)");
  if (type.shape.size() < 2 || type.shape.front() != static_cast<int64_t>(weight.parts.size()))
    return makeError("has ", weight.parts.size(), " parts, which are not ", format(type), " (P13)");
  Type wanted{type.element, {type.shape.begin() + 1, type.shape.end()}, {}};
  for (uint32_t part : weight.parts) {
    if (part >= index || !program.weights[part].parts.empty())
      return makeError("part ", part, " does not stand before it, or has parts itself (P13)");
    const Type &got = program.types[program.weights[part].type];
    if (got.element != wanted.element || got.shape != wanted.shape)
      return makeError("part ", part, " is ", format(got), ", expected ", format(wanted), " (P13)");
  }
  return kGood;
}

/// All of a weight's bytes are there, by what the file itself says; whether the other file still has them is asked when it
/// is opened.
static Status checkWeight(const Program &program, const Weight &weight, size_t index) {
  if (weight.type >= program.types.size() || !isDense(program.types[weight.type]))
    return makeError("type ", weight.type, " is not there or has strides (P13)");
  if (!weight.parts.empty())
    return checkParts(program, weight, index);
  const Type &type = program.types[weight.type];
  uint64_t bytes = weight.splat ? getElementBytes(type.element) : getBytes(type);
  uint64_t length = weight.file < 0 ? weight.embedded.size() : weight.length;
  if (length != bytes)
    return makeError("has ", length, " bytes, but ", format(type), weight.splat ? " of one element takes " : " takes ",
                     bytes, " (P13)");
  if (!weight.blocks.empty() && weight.blocks.size() != countBlocks(length))
    return makeError("has the digests of ", weight.blocks.size(), " blocks, its bytes are ", countBlocks(length),
                     " (P13)");
  if (weight.file < 0)
    return kGood;
  if (static_cast<size_t>(weight.file) >= program.files.size())
    return makeError("file ", weight.file, " of ", program.files.size(), " (P13)");
  const File &file = program.files[weight.file];
  if (weight.offset > file.bytes || length > file.bytes - weight.offset)
    return makeError("bytes ", weight.offset, " + ", length, " do not lie in ", quote(file.path), " of ", file.bytes,
                     " (P13)");
  if (!isDigest(weight.digest))
    return makeError("digest ", quote(weight.digest), ", expected 16 hexadecimal digits (P13)");
  return kGood;
}

Status Checker::checkWeights() {
  for (const File &file : program.files)
    if (file.path.empty() || file.path.find('\0') != std::string::npos)
      return makeError("file ", quote(file.path), " is not a path (P13)");
  for (size_t index = 0; index < program.weights.size(); ++index)
    if (Status error = checkWeight(program, program.weights[index], index))
      return addPlace(concat("weight ", quote(program.weights[index].name), ": "), error);
  return kGood;
}

//===----------------------------------------------------------------------===//
// Buffers (P14)
//===----------------------------------------------------------------------===//

/// Sums stay small enough for everything that is computed from them.
Status Checker::checkBuffers() {
  constexpr uint32_t mostAlignment = 1 << 20;
  for (const Role &role : program.roles) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < role.buffers.size(); ++i) {
      const Buffer &buffer = role.buffers[i];
      std::string place = concat("role ", quote(role.name), ", buffer ", i, ": ");
      if (!isPowerOfTwo(buffer.alignment) || buffer.alignment > mostAlignment)
        return makeError(place, "alignment ", buffer.alignment, ", expected a power of two up to ", mostAlignment,
                         " (P14)");
      // Callers, loads and meetings know the memory that the program runs in.
      if (buffer.memory == Memory::Host && buffer.kind != BufferKind::Activations)
        return makeError(place, "of kind ", getWord(buffer.kind), " in the host's memory (P14)");
      if (buffer.bytes > kMostBytes - bytes)
        return makeError(place, "more than 2^48 bytes (P14)");
      bytes += buffer.bytes;
    }
  }
  return kGood;
}

//===----------------------------------------------------------------------===//
// Loads (P16)
//===----------------------------------------------------------------------===//

static bool isFloat(Element element) { return element <= Element::F64; }

/// What there is of a slice that may end behind the weight lies in both, on every rank.
Status Checker::checkPresent(size_t role, const Load &load, const Type &whole) {
  if (load.present.empty())
    return kGood;
  const std::vector<uint32_t> &ranks = program.roles[role].ranks;
  if (load.present.size() != whole.shape.size())
    return makeError(load.present.size(), " dims are present of ", format(whole), " (P16)");
  if (Status error = spend(ranks.size() * whole.shape.size()))
    return error;
  for (size_t dim = 0; dim < whole.shape.size(); ++dim) {
    if (!getSpread(role, load.starts[dim]) || !getSpread(role, load.present[dim]))
      return makeError("dim ", dim, " of the slice does not lie in ", format(whole), " (P16)");
    for (uint32_t rank : ranks) {
      int64_t start = program.evaluate(load.starts[dim], rank), held = program.evaluate(load.present[dim], rank);
      if (start < 0 || held < 0 || held > load.shape[dim] || held > whole.shape[dim] || start > whole.shape[dim] - held)
        return makeError("of dim ", dim, " of the slice from ", start, " on, ", held, " are present on rank ", rank,
                         " (P16)");
    }
  }
  return kGood;
}

/// The slice on every rank, then its layout, then where it goes.
Status Checker::checkLoad(size_t role, const Load &load) {
  if (load.weight >= program.weights.size())
    return makeError("weight ", load.weight, " of ", program.weights.size(), " (P16)");
  if (Status error = checkView(role, load.target))
    return error;
  const Type &whole = program.types[program.weights[load.weight].type], &type = getType(load.target);
  if (load.starts.size() != whole.shape.size() || load.shape.size() != whole.shape.size())
    return makeError("a slice of ", load.shape.size(), " dims of ", format(whole), " (P16)");
  for (size_t dim = 0; dim < whole.shape.size(); ++dim) {
    std::optional<Spread> start = getSpread(role, load.starts[dim]);
    int64_t size = load.shape[dim];
    if (!load.present.empty() && start && size >= 0)
      continue; // below, rank by rank
    if (!start || start->least < 0 || size < 0 || size > whole.shape[dim] || start->most > whole.shape[dim] - size)
      return makeError("dim ", dim, " of the slice does not lie in ", format(whole), " (P16)");
  }
  if (Status error = checkPresent(role, load, whole))
    return error;
  std::optional<std::vector<int64_t>> shape = getLaidOutShape(load.shape, load.layout);
  if (!shape || *shape != type.shape || !isDense(type))
    return makeError("the slice in its layout is not ", format(type), " (P16)");
  if (type.element != whole.element && !(isFloat(type.element) && isFloat(whole.element)))
    return makeError(getWord(whole.element), " is not cast to ", getWord(type.element), " (P16)");
  BufferKind kind = program.roles[role].buffers[load.target.buffer].kind;
  if ((kind != BufferKind::Weights && kind != BufferKind::State) || load.target.offset.column != -1)
    return makeError("goes to buffer ", load.target.buffer,
                     ", expected one of weights or of a state, at the same place on all ranks (P16)");
  return kGood;
}

/// No load writes what another has written.
static Status checkApart(const Program &program, const Role &role) {
  std::vector<const Load *> order;
  for (const Load &load : role.loads)
    if (getSpanBytes(program.types[load.target.type]))
      order.push_back(&load);
  auto key = [](const Load *load) { return std::make_pair(load->target.buffer, load->target.offset.base); };
  std::sort(order.begin(), order.end(), [&](const Load *a, const Load *b) { return key(a) < key(b); });
  for (size_t i = 1; i < order.size(); ++i) {
    const View &before = order[i - 1]->target, &view = order[i]->target;
    if (before.buffer == view.buffer &&
        before.offset.base + int64_t(getSpanBytes(program.types[before.type])) > view.offset.base)
      return makeError("role ", quote(role.name), ": weights ", quote(program.weights[order[i - 1]->weight].name),
                       " and ", quote(program.weights[order[i]->weight].name), " are loaded to the same bytes (P16)");
  }
  return kGood;
}

Status Checker::checkLoads() {
  for (size_t role = 0; role < program.roles.size(); ++role) {
    for (const Load &load : program.roles[role].loads)
      if (Status error = checkLoad(role, load)) {
        std::string name = load.weight < program.weights.size() ? program.weights[load.weight].name : "";
        return addPlace(concat("role ", quote(program.roles[role].name), ", load of ", quote(name), ": "), error);
      }
    if (Status error = checkApart(program, program.roles[role]))
      return error;
  }
  return kGood;
}
