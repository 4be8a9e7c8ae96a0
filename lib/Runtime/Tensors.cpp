//===- Tensors.cpp - callers' tensors and the boxes of ranks --------------===//
//
// Inputs are cut into boxes, outputs put together from them. Of ranks that hold copies of a box of an output, that of the
// first counts.
//
//===----------------------------------------------------------------------===//
#include "Tensors.h"
#include "Numbers.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <cmath>
#include <limits>
#include <map>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::Element;
using program::Tensor;
using program::Type;

namespace {
/// A box of a tensor and the term that it is of.
using BoxKey = std::vector<int64_t>;
} // namespace

/// What `rank` holds at a place: boxes of one tensor are of one size, so their starts tell them apart.
static BoxKey getKey(const program::Program &program, const program::Place &place, uint32_t rank) {
  BoxKey key{program.evaluate(place.term, rank)};
  for (const program::Number &start : place.starts)
    key.push_back(program.evaluate(start, rank));
  return key;
}

/// By box, the rank that hands it out and the place that says how it holds it.
static std::map<BoxKey, std::pair<uint32_t, const program::Place *>> findHolders(const program::Program &program,
                                                                                 const Tensor &tensor) {
  std::map<BoxKey, std::pair<uint32_t, const program::Place *>> holders;
  for (const program::Place &place : tensor.places)
    for (uint32_t rank : program.roles[place.role].ranks) {
      auto [it, isNew] = holders.try_emplace(getKey(program, place, rank), rank, &place);
      if (!isNew && rank < it->second.first)
        it->second = {rank, &place};
    }
  return holders;
}

/// Elements from the start of the whole to a box.
static uint64_t getOffset(const BoxKey &key, const std::vector<int64_t> &strides) {
  uint64_t offset = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim)
    offset += uint64_t(key[dim + 1] * strides[dim]);
  return offset;
}

/// Addresses and copies of one rank's box, so far as it is there.
static TensorBox makeBox(const BindContext &context, const Tensor &tensor, uint32_t index, const program::Place &place,
                         bool isInput) {
  const Type &whole = context.program.types[tensor.type], &local = context.program.types[place.view.type];
  BoxKey key = getKey(context.program, place, context.rank);
  uint64_t size = program::getElementBytes(whole.element);
  TensorBox box;
  box.tensor = index;
  box.term = uint32_t(key.front());
  box.shape = local.shape;
  box.strides = getStrides(local);
  box.fullStrides = getStrides(whole);
  box.offset = getOffset(key, box.fullStrides) * size;
  box.address = context.addresses.get(place.view);
  std::vector<int64_t> present = program::getPresent(context.program, place.present, local.shape, context.rank);
  box.isPadded = present != local.shape;
  box.box = isInput ? planCopy(size, present, box.fullStrides, box.strides)
                    : planCopy(size, present, box.strides, box.fullStrides);
  return box;
}

std::vector<TensorBox> cleave::runtime::findInputs(const BindContext &context, uint32_t variant) {
  std::vector<TensorBox> boxes;
  const std::vector<Tensor> &inputs = context.program.variants[variant].inputs;
  for (uint32_t index = 0; index < inputs.size(); ++index)
    for (const program::Place &place : inputs[index].places)
      if (place.role == context.role)
        boxes.push_back(makeBox(context, inputs[index], index, place, /*isInput=*/true));
  return boxes;
}

std::vector<TensorBox> cleave::runtime::findOutputs(const BindContext &context, uint32_t variant) {
  std::vector<TensorBox> boxes;
  const std::vector<Tensor> &outputs = context.program.variants[variant].outputs;
  for (uint32_t index = 0; index < outputs.size(); ++index)
    for (const auto &[key, holder] : findHolders(context.program, outputs[index]))
      if (holder.first == context.rank)
        boxes.push_back(makeBox(context, outputs[index], index, *holder.second, /*isInput=*/false));
  return boxes;
}

const program::Place *cleave::runtime::findOwnPlace(const program::Program &program, const Tensor &tensor,
                                                    uint32_t rank) {
  for (const auto &[key, holder] : findHolders(program, tensor))
    if (holder.first == rank)
      return holder.second;
  return nullptr;
}

/// In the order of boxes, which is one on all ranks.
std::vector<Piece> cleave::runtime::findGatherPieces(const program::Program &program, uint32_t variant, uint32_t output,
                                                     uint32_t term, uint32_t rank) {
  const Tensor &tensor = program.variants[variant].outputs[output];
  std::vector<int64_t> fullStrides = getStrides(program.types[tensor.type]);
  std::vector<Piece> pieces;
  for (const auto &[key, holder] : findHolders(program, tensor)) {
    if (key.front() != int64_t(term) || (holder.first != rank && rank != 0))
      continue;
    const Type &local = program.types[holder.second->view.type];
    addPieces(getPresent(program, holder.second->present, local.shape, holder.first), getStrides(local), 0, fullStrides,
              getOffset(key, fullStrides), holder.first, 0, pieces);
  }
  return pieces;
}

//===----------------------------------------------------------------------===//
// Neutral elements
//===----------------------------------------------------------------------===//

template <typename T, typename C> static std::string bitsOf(C value) {
  T stored;
  store(stored, value);
  return std::string(reinterpret_cast<const char *>(&stored), sizeof(stored));
}

/// The neutral element of a number type whose least and greatest values are these.
template <typename T, typename C> static std::string pickNeutral(Reduction reduction, C least, C most) {
  return bitsOf<T>(reduction == Reduction::Prod  ? C(1)
                   : reduction == Reduction::Max ? least
                   : reduction == Reduction::Min ? most
                                                 : C(0));
}

template <typename T> static std::string pickNeutral(Reduction reduction) {
  return pickNeutral<T, T>(reduction, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
}

static std::string getNeutral(Reduction reduction, Element element) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (element) {
  case Element::F16:
    return pickNeutral<Half, float>(reduction, -infinity, infinity);
  case Element::BF16:
    return pickNeutral<BFloat, float>(reduction, -infinity, infinity);
  case Element::F32:
    return pickNeutral<float, float>(reduction, -infinity, infinity);
  case Element::F64:
    return pickNeutral<double, double>(reduction, -double(infinity), double(infinity));
  case Element::I1:
    return pickNeutral<uint8_t, uint8_t>(reduction, 0, 1);
  case Element::I8:
    return pickNeutral<int8_t>(reduction);
  case Element::I16:
    return pickNeutral<int16_t>(reduction);
  case Element::I32:
    return pickNeutral<int32_t>(reduction);
  case Element::I64:
    return pickNeutral<int64_t>(reduction);
  case Element::UI8:
    return pickNeutral<uint8_t>(reduction);
  case Element::UI16:
    return pickNeutral<uint16_t>(reduction);
  case Element::UI32:
    return pickNeutral<uint32_t>(reduction);
  case Element::UI64:
    break;
  }
  return pickNeutral<uint64_t>(reduction);
}

void cleave::runtime::fillNeutral(const Type &type, Reduction reduction, char *address) {
  std::string one = getNeutral(reduction, type.element);
  // All bytes of the view: what lies between its elements is nobody's.
  for (uint64_t at = 0, end = program::getSpanBytes(type); at < end; at += one.size())
    std::memcpy(address + at, one.data(), one.size());
}
