//===- Operands.cpp - what a command reads and writes ---------------------===//
//
// The one place that knows which fields of a command are tensors, and how a tensor's elements lie.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Operands.h"

#include "cleave/Program/Words.h"
#include <algorithm>
#include <cassert>
#include <map>

using namespace cleave::program;

namespace {

/// Gathers operands of one command.
struct Collector {
  const Program &program;
  std::vector<Operand> operands;

  void read(const View &view) { operands.push_back({view, Access::Read}); }
  void read(const std::optional<View> &view) {
    if (view)
      read(*view);
  }
  void write(const View &view, int32_t alias = -1) { operands.push_back({view, Access::Write, alias}); }

  /// A result lies in the bytes of the residual, the operand before it, where the fallback does so, too.
  template <typename Contraction> void finish(const Contraction &contraction) {
    read(contraction.bias), read(contraction.residual);
    auto residual = int32_t(operands.size()) - 1;
    bool hasKernel = contraction.fallback >= 0 && contraction.fallback < int64_t(program.kernels.size());
    const Kernel *kernel = hasKernel ? &program.kernels[contraction.fallback] : nullptr;
    bool isInPlace =
        contraction.residual && kernel && !kernel->parameters.empty() && kernel->parameters.back().alias == residual;
    write(contraction.result, isInPlace ? residual : -1);
  }

  void operator()(const Launch &launch) {
    const std::vector<Parameter> &parameters = program.kernels[launch.kernel].parameters;
    for (size_t i = 0; i < launch.operands.size(); ++i)
      operands.push_back({launch.operands[i], parameters[i].access, parameters[i].alias});
  }
  void operator()(const Matmul &matmul) {
    read(matmul.a), read(matmul.b);
    finish(matmul);
  }
  void operator()(const Convolution &conv) {
    read(conv.input), read(conv.filter);
    finish(conv);
  }
  void operator()(const Attention &attention) {
    read(attention.query), read(attention.key), read(attention.value), read(attention.mask);
    write(attention.result);
  }
  void operator()(const Copy &copy) {
    read(copy.source);
    write(copy.target, 0);
  }
  void operator()(const Collective &collective) {
    for (const View &view : collective.operands)
      read(view);
    // In place as far as members do not meet; the checks of collectives (P21) say how far.
    for (size_t i = 0; i < collective.results.size(); ++i)
      write(collective.results[i], static_cast<int32_t>(i));
  }
  void operator()(const Exchange &exchange) {
    read(exchange.operand);
    // Beside what it sends; the checks of overlaps (P24) say how.
    if (exchange.result)
      write(*exchange.result, exchange.operand ? 0 : -1);
  }
  void operator()(const Record &) {}
  void operator()(const Wait &) {}
  void operator()(const Loop &loop) { read(loop.condition); }
  void operator()(const EndLoop &loop) { read(loop.condition); }
};

} // namespace

std::vector<Operand> cleave::program::getOperands(const Program &program, const Action &action) {
  Collector collector{program, {}};
  std::visit([&](const auto &which) { collector(which); }, action);
  return std::move(collector.operands);
}

// Strides are not negative (P6), so that the last element lies last.
uint64_t cleave::program::getSpanBytes(const Type &type) {
  assert((type.strides.empty() || type.strides.size() == type.shape.size()) && "a stride per dim (P6)");
  uint64_t last = 0;
  if (type.strides.empty())
    return getBytes(type);
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (type.shape[i] == 0)
      return 0;
    last += static_cast<uint64_t>(type.shape[i] - 1) * type.strides[i];
  }
  return (last + 1) * getElementBytes(type.element);
}

uint64_t cleave::program::getBytes(const Type &type) {
  uint64_t elements = 1;
  for (int64_t size : type.shape)
    elements *= static_cast<uint64_t>(size);
  return elements * getElementBytes(type.element);
}

// The stride of a dim of size 1 is never used.
bool cleave::program::isDense(const Type &type) {
  int64_t stride = 1;
  for (size_t i = type.strides.size(); i-- > 0; stride *= type.shape[i])
    if (type.shape[i] != 1 && type.strides[i] != stride)
      return false;
  return true;
}

std::vector<int64_t> cleave::program::getStrides(const Type &type) {
  std::vector<int64_t> strides = type.strides;
  int64_t stride = 1;
  strides.resize(type.shape.size());
  for (size_t i = type.strides.empty() ? type.shape.size() : 0; i-- > 0; stride *= type.shape[i])
    strides[i] = stride;
  return strides;
}

bool cleave::program::movesDown(const Program &program, const Copy &copy) {
  const Type &type = program.types[copy.source.type];
  std::vector<int64_t> strides = getStrides(type);
  int64_t span = 1;
  for (size_t i = strides.size(); i-- > 0; span += (type.shape[i] - 1) * strides[i])
    if (type.shape[i] > 1 && strides[i] < span)
      return false;
  return strides == getStrides(program.types[copy.target.type]) &&
         copy.source.offset.column == copy.target.offset.column && copy.target.offset.base < copy.source.offset.base;
}

std::vector<uint32_t> cleave::program::getRoles(const Program &program) {
  std::vector<uint32_t> roles(program.ranks);
  for (uint32_t role = 0; role < program.roles.size(); ++role)
    for (uint32_t rank : program.roles[role].ranks)
      roles[rank] = role;
  return roles;
}

/// A forest: who has no other rank above it is the first of its meeting.
std::vector<std::vector<uint32_t>> cleave::program::getMeetings(const Pieces &pieces) {
  std::map<uint32_t, uint32_t> above;
  auto find = [&](uint32_t rank) {
    while (above[rank] != rank)
      rank = above[rank] = above[above[rank]];
    return rank;
  };
  for (const Ends &ends : pieces.ends)
    for (uint32_t rank : {ends.source, ends.target})
      above.emplace(rank, rank);
  for (const Ends &ends : pieces.ends) {
    uint32_t a = find(ends.source), b = find(ends.target);
    above[std::max(a, b)] = std::min(a, b);
  }
  std::vector<std::vector<uint32_t>> meetings;
  std::map<uint32_t, size_t> numbers;
  for (const auto &[rank, other] : above) {
    auto [number, isNew] = numbers.emplace(find(rank), meetings.size());
    if (isNew)
      meetings.emplace_back();
    meetings[number->second].push_back(rank);
  }
  return meetings;
}

bool cleave::program::isAlike(const Type &a, const Type &b) { return a.element == b.element && a.shape == b.shape; }

/// The sizes of `shape` in another order; nothing if `order` is no permutation.
static std::optional<std::vector<int64_t>> permute(const std::vector<int64_t> &shape,
                                                   const std::vector<uint32_t> &order) {
  if (order.empty())
    return shape;
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (sorted[i] != i || order.size() != shape.size())
      return std::nullopt;
  std::vector<int64_t> permuted;
  for (uint32_t dim : order)
    permuted.push_back(shape[dim]);
  return permuted;
}

std::optional<std::vector<int64_t>> cleave::program::getLaidOutShape(const std::vector<int64_t> &shape,
                                                                     const Layout &layout) {
  std::optional<std::vector<int64_t>> dims = permute(shape, layout.order);
  if (!dims || layout.width == 0)
    return dims;
  // batch.., k.., n: at least one k.
  if (layout.interleave == 0 || dims->size() < 2 || layout.batch > dims->size() - 2)
    return std::nullopt;
  auto divide = [](int64_t size, uint32_t by) { return size / by + (size % by != 0); };
  std::vector<int64_t> packed(dims->begin(), dims->begin() + layout.batch);
  packed.push_back(divide(dims->back(), layout.width));
  packed.insert(packed.end(), dims->begin() + layout.batch, dims->end() - 1);
  packed.back() = divide(packed.back(), layout.interleave);
  packed.insert(packed.end(), {static_cast<int64_t>(layout.width), static_cast<int64_t>(layout.interleave)});
  return packed;
}

/// The one place that clips: reading, binding and gathering ask here.
std::vector<int64_t> cleave::program::getPresent(const Program &program, const std::vector<Number> &present,
                                                 const std::vector<int64_t> &shape, uint32_t rank) {
  std::vector<int64_t> extents = shape;
  // None, or one per dim (P16, P25).
  for (size_t dim = 0; dim < present.size(); ++dim)
    extents[dim] = std::min(std::max<int64_t>(program.evaluate(present[dim], rank), 0), shape[dim]);
  return extents;
}

int64_t cleave::program::findKernel(const Action &action) {
  if (const auto *launch = std::get_if<Launch>(&action))
    return launch->kernel;
  if (const auto *matmul = std::get_if<Matmul>(&action))
    return matmul->fallback;
  if (const auto *conv = std::get_if<Convolution>(&action))
    return conv->fallback;
  const auto *attention = std::get_if<Attention>(&action);
  return attention ? attention->fallback : -1;
}
