//===- BindMeetings.cpp - collectives and exchanges as operations ---------===//
//
// A collective that cuts one dim is one operation per tensor, with a tiling along that dim. One that cuts several at once
// goes through packed parts, and on a device with a queue, whose library knows no tilings, all whose parts have rows:
//
//   gather    parts one behind the other ──unpack──▶ boxes of the result
//   scatter   boxes of the operand ──pack──▶ parts one behind the other
//
//===----------------------------------------------------------------------===//
#include "Bind.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>

using namespace cleave::runtime;
using cleave::program::Collective;
using cleave::program::Exchange;
using cleave::program::getElementBytes;
using cleave::program::makeError;
using cleave::program::Type;
using cleave::program::View;

namespace program = cleave::program;
using Shape = std::vector<int64_t>;

static int64_t multiply(const Shape &shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t dim = begin; dim < end; ++dim)
    product *= shape[dim];
  return product;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// The dim that `cut` cuts; -1 if it cuts several. (If none, any will do.)
static int findSplitDim(const std::vector<uint32_t> &split) {
  int found = 0, dims = 0;
  for (size_t dim = 0; dim < split.size(); ++dim)
    if (split[dim] != 1) {
      found = int(dim);
      ++dims;
    }
  return dims > 1 ? -1 : found;
}

/// Where the parts of a tensor lie that is cut along one dim; `part` is the shape of one.
static Tiling tile(const Shape &part, int dim, uint64_t members) {
  if (part.empty())
    return Tiling::contiguous(1);
  return Tiling::inner(uint64_t(multiply(part, 0, size_t(dim))), uint64_t(multiply(part, size_t(dim), part.size())),
                       members);
}

namespace {
/// One pair of tensors of a collective.
class Pair {
public:
  Pair(const BindContext &context, const Collective &collective, size_t index, Meeting &meeting)
      : context(context), collective(collective), operand(context.program.types[collective.operands[index].type]),
        result(context.program.types[collective.results[index].type]), meeting(meeting),
        input(context.addresses.get(collective.operands[index])),
        output(context.addresses.get(collective.results[index])),
        members(context.program.groups[collective.groups].size) {}

  program::Status bind();

private:
  /// The shape of a piece of `whole`.
  static Shape divide(const Shape &whole, const std::vector<uint32_t> &by) {
    Shape part = whole;
    for (size_t dim = 0; dim < by.size(); ++dim)
      part[dim] /= int64_t(by[dim]);
    return part;
  }
  /// Parts of `whole` as a tiling, or, where none describes them, packed: `address` is then that of the packed ones.
  program::Result<Tiling> lay(const Type &whole, const std::vector<uint32_t> &split, char *&address, bool packs);

  const BindContext &context;
  const Collective &collective;
  const Type &operand, &result;
  Meeting &meeting;
  char *input, *output;
  uint64_t members;
};
} // namespace

program::Result<Tiling> Pair::lay(const Type &whole, const std::vector<uint32_t> &split, char *&address, bool packs) {
  Shape part = divide(whole.shape, split);
  if (int dim = findSplitDim(split); dim >= 0)
    if (Tiling tiling = tile(part, dim, members); !context.queue || tiling.rows == 1)
      return tiling;
  uint64_t size = getElementBytes(whole.element), elements = uint64_t(multiply(part, 0, part.size()));
  program::Result<char *> packed = context.addresses.getScratch(elements * members * size);
  if (!packed)
    return packed.getError();
  Shape strides = getStrides(whole);
  for (uint64_t member = 0; member < members; ++member) {
    uint64_t rest = member, offset = 0;
    for (size_t d = split.size(); d-- > 0; rest /= split[d])
      offset += (rest % split[d]) * uint64_t(part[d] * strides[d]);
    char *box = address + offset * size, *flat = *packed + member * elements * size;
    if (packs)
      meeting.packs.push_back({planCopy(size, part, strides, {}), box, flat});
    else
      meeting.unpacks.push_back({planCopy(size, part, {}, strides), flat, box});
  }
  address = *packed;
  return Tiling::contiguous(elements);
}

/// One operation; where its parts lie is worked out for whichever side has several.
program::Status Pair::bind() {
  GroupId group = context.groups[collective.groups];
  ElementType type = operand.element;
  Tiling from, to;
  if (slices(collective.kind)) {
    program::Result<Tiling> tiling = lay(operand, collective.slice, input, /*packs=*/true);
    if (!tiling)
      return tiling.getError();
    from = *tiling;
  }
  if (gathers(collective.kind)) {
    program::Result<Tiling> tiling = lay(result, collective.gather, output, /*packs=*/false);
    if (!tiling)
      return tiling.getError();
    to = *tiling;
  }
  uint64_t count = uint64_t(multiply(operand.shape, 0, operand.shape.size()));
  meeting.operations.push_back(
      makeOperation(collective.kind, group, collective.reduction, type, input, output, count, from, to));
  return cleave::program::kGood;
}

program::Status cleave::runtime::bindCollective(const BindContext &context, const Collective &collective,
                                                Meeting &meeting) {
  if (!hasTensors(collective.kind))
    meeting.operations.push_back(barrier(context.groups[collective.groups]));
  for (size_t i = 0; i < collective.operands.size(); ++i)
    if (program::Status error = Pair(context, collective, i, meeting).bind())
      return error;
  for (const Operation &operation : meeting.operations)
    if (context.queue)
      if (program::Status error = context.queue->check(operation))
        return error;
  return program::kGood;
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

void cleave::runtime::addPieces(const Shape &shape, const Shape &sourceStrides, uint64_t sourceOffset,
                                const Shape &targetStrides, uint64_t targetOffset, uint32_t source, uint32_t target,
                                std::vector<Piece> &pieces) {
  BoxCopy box = planCopy(1, shape, sourceStrides, targetStrides);
  if (box.getBytes() == 0)
    return;
  // The innermost dim makes rows, those outside of it pieces.
  BoxCopy::Dim rows = box.dims.empty() ? BoxCopy::Dim{1, 0, 0} : box.dims.back();
  if (!box.dims.empty())
    box.dims.pop_back();
  std::vector<int64_t> index(box.dims.size());
  for (;;) {
    Piece piece = {source,
                   target,
                   uint64_t(rows.size),
                   box.run,
                   sourceOffset,
                   uint64_t(rows.source),
                   targetOffset,
                   uint64_t(rows.target)};
    for (size_t dim = 0; dim < index.size(); ++dim) {
      piece.sourceOffset += uint64_t(index[dim] * box.dims[dim].source);
      piece.targetOffset += uint64_t(index[dim] * box.dims[dim].target);
    }
    pieces.push_back(piece);
    size_t dim = index.size();
    while (dim-- > 0) {
      if (++index[dim] < box.dims[dim].size)
        break;
      index[dim] = 0;
    }
    if (dim == size_t(-1))
      return;
  }
}

/// The tensor that a role gives to, or gets from, its `count`-th exchange of `pieces`; null if it has none.
static const Type *findEnd(const program::Program &program, uint32_t variant, uint32_t role, uint32_t pieces,
                           size_t count, bool isSource) {
  for (const program::Command &command : program.variants[variant].lists[role].commands) {
    const auto *exchange = std::get_if<Exchange>(&command.action);
    if (!exchange || exchange->pieces != pieces || count-- > 0)
      continue;
    const std::optional<View> &view = isSource ? exchange->operand : exchange->result;
    return view ? &program.types[view->type] : nullptr;
  }
  return nullptr;
}

/// For a device whose library sends runs: where what a rank sends, or receives, has rows, all of it is packed, and its pieces
/// say where they lie then. The address of the packed ones, or `address`.
static program::Result<char *> packPieces(const BindContext &context, uint32_t member, bool isSource, uint64_t size,
                                          char *address, Meeting &meeting) {
  auto offsetOf = [&](Piece &piece) -> uint64_t & { return isSource ? piece.sourceOffset : piece.targetOffset; };
  auto strideOf = [&](Piece &piece) -> uint64_t & { return isSource ? piece.sourceStride : piece.targetStride; };
  std::vector<Piece *> own;
  uint64_t elements = 0;
  bool hasRows = false;
  for (Piece &piece : meeting.pieces)
    if ((isSource ? piece.source : piece.target) == member) {
      own.push_back(&piece);
      elements += piece.rows * piece.row;
      hasRows |= piece.rows > 1 && strideOf(piece) != piece.row;
    }
  if (!hasRows)
    return address;
  program::Result<char *> packed = context.addresses.getScratch(elements * size);
  uint64_t next = 0;
  for (Piece *piece : own) {
    if (!packed)
      break;
    Shape shape = {int64_t(piece->rows), int64_t(piece->row)}, strides = {int64_t(strideOf(*piece)), 1};
    char *box = address + offsetOf(*piece) * size, *flat = *packed + next * size;
    if (isSource)
      meeting.packs.push_back({planCopy(size, shape, strides, {}), box, flat});
    else
      meeting.unpacks.push_back({planCopy(size, shape, {}, strides), flat, box});
    offsetOf(*piece) = next;
    strideOf(*piece) = piece->row;
    next += piece->rows * piece->row;
  }
  return packed;
}

program::Status cleave::runtime::bindExchange(const BindContext &context, uint32_t variant, const Exchange &exchange,
                                              size_t count, Meeting &meeting) {
  const program::Program &program = context.program;
  const program::Pieces &pieces = program.pieces[exchange.pieces];
  std::vector<uint32_t> ranks;
  for (std::vector<uint32_t> &meeting : program::getMeetings(pieces))
    if (std::binary_search(meeting.begin(), meeting.end(), context.rank))
      ranks = std::move(meeting);
  auto indexOf = [&](uint32_t rank) {
    return uint32_t(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
  };
  // A rank that the pieces do not name has nothing to do.
  if (ranks.empty())
    return program::kGood;
  const std::vector<uint32_t> roleOf = program::getRoles(program);
  for (size_t i = 0; i < pieces.ends.size(); ++i) {
    const program::Ends &ends = pieces.ends[i];
    if (ends.source != context.rank && ends.target != context.rank)
      continue;
    const Type *source = findEnd(program, variant, roleOf[ends.source], exchange.pieces, count, true);
    const Type *target = findEnd(program, variant, roleOf[ends.target], exchange.pieces, count, false);
    if (!source || !target)
      return makeError("rank ", ends.source, " and rank ", ends.target, " do not come to the same exchange");
    auto box = pieces.boxes.begin() + int64_t(i) * pieces.dims * 3;
    Shape extents(box, box + pieces.dims), from = getStrides(*source), to = getStrides(*target);
    uint64_t sourceOffset = 0, targetOffset = 0;
    for (uint32_t dim = 0; dim < pieces.dims; ++dim) {
      sourceOffset += uint64_t(box[pieces.dims + dim] * from[dim]);
      targetOffset += uint64_t(box[2 * pieces.dims + dim] * to[dim]);
    }
    addPieces(extents, from, sourceOffset, to, targetOffset, indexOf(ends.source), indexOf(ends.target),
              meeting.pieces);
  }
  const std::optional<View> &any = exchange.operand ? exchange.operand : exchange.result;
  if (!any)
    return program::kGood;
  ElementType type = program.types[any->type].element;
  char *operand = exchange.operand ? context.addresses.get(*exchange.operand) : nullptr;
  char *result = exchange.result ? context.addresses.get(*exchange.result) : nullptr;
  for (bool isSource : {true, false}) {
    char *&address = isSource ? operand : result;
    if (!context.queue || !address)
      continue;
    program::Result<char *> packed =
        packPieces(context, indexOf(context.rank), isSource, getElementBytes(type), address, meeting);
    if (!packed)
      return packed.getError();
    address = *packed;
  }
  meeting.operations.push_back(
      cleave::runtime::exchange(context.pieceGroups[exchange.pieces], type, operand, result, meeting.pieces));
  return program::kGood;
}
