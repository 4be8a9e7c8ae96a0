//===- CheckTensors.cpp - inputs, outputs, states, variants ---------------===//
//
// What a caller sees of a program: tensors by name, cut into the boxes that ranks hold.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"

#include <algorithm>
#include <map>
#include <set>

using namespace cleave::program;

//===----------------------------------------------------------------------===//
// Inputs and outputs (P25)
//===----------------------------------------------------------------------===//

/// Only integers are looked up.
static Status checkRange(const Program &program, const Variant &variant, const IndexRange &range) {
  if (range.input >= variant.inputs.size() || range.node < -1 || range.node >= int64_t(program.nodes.size()))
    return makeError("a range of indices is for input ", range.input, " of ", variant.inputs.size(), " and node ",
                     range.node, " of ", program.nodes.size(), " (P25)");
  if (program.types[variant.inputs[range.input].type].element < Element::I8)
    return makeError("input ", quote(variant.inputs[range.input].name),
                     " has a range of indices, and does not hold integers (P25)");
  return kGood;
}

/// Whether a tensor's box lies in it, on all ranks of a role.
static bool liesIn(const Type &whole, const Type &local, size_t dim, const std::optional<Spread> &start) {
  return start && start->least >= 0 && local.shape[dim] <= whole.shape[dim] &&
         start->most <= whole.shape[dim] - local.shape[dim];
}

/// What there is of a box that may end behind the tensor is what lies in the tensor, on every rank.
Status Checker::checkPresent(const Place &place, const Type &whole) {
  if (place.present.empty())
    return kGood;
  const Type &local = getType(place.view);
  const std::vector<uint32_t> &ranks = program.roles[place.role].ranks;
  if (place.present.size() != whole.shape.size())
    return makeError(place.present.size(), " dims are present of ", format(whole), " (P25)");
  if (Status error = spend(ranks.size() * whole.shape.size()))
    return error;
  for (size_t dim = 0; dim < whole.shape.size(); ++dim) {
    if (!getSpread(place.role, place.starts[dim]) || !getSpread(place.role, place.present[dim]))
      return makeError("dim ", dim, " of ", format(local), " does not lie in ", format(whole), " (P25)");
    for (uint32_t rank : ranks) {
      int64_t start = program.evaluate(place.starts[dim], rank), held = program.evaluate(place.present[dim], rank);
      if (start < 0 || start > whole.shape[dim] || held != std::min(local.shape[dim], whole.shape[dim] - start))
        return makeError("of dim ", dim, " of ", format(local), " from ", start, " on, ", held, " are present on rank ",
                         rank, " (P25)");
    }
  }
  return kGood;
}

/// The tensor of a checkpoint that a state is of has it inside. That it is a state is not asked: an origin of what is given at each call
/// says nothing, and harms nobody.
static Status checkOrigin(const Tensor &tensor, const Type &whole, bool isOutput) {
  const Origin &origin = tensor.origin;
  if (isOutput && (tensor.role != StepRole::None || !origin.name.empty()))
    return makeError("is an output, and has a role or an origin (P25)");
  if (origin.shape.empty() && origin.starts.empty())
    return kGood;
  if (origin.shape.size() != whole.shape.size() || origin.starts.size() != whole.shape.size())
    return makeError("begins at ", origin.starts.size(), " dims of ", origin.shape.size(), ", and is ", format(whole),
                     " (P25)");
  for (size_t dim = 0; dim < whole.shape.size(); ++dim)
    if (origin.starts[dim] < 0 || origin.shape[dim] < whole.shape[dim] ||
        origin.starts[dim] > origin.shape[dim] - whole.shape[dim])
      return makeError("dim ", dim, " of ", format(whole), " from ", origin.starts[dim], " does not lie in the ",
                       origin.shape[dim], " of ", quote(origin.name), " (P25)");
  return kGood;
}

/// Each place is a box of the whole, of one size on all ranks, in a buffer that callers may touch.
Status Checker::checkTensor(const Tensor &tensor, bool isOutput) {
  if (tensor.type >= program.types.size() || !isDense(program.types[tensor.type]))
    return makeError("type ", tensor.type, " is not there or has strides (P25)");
  if (tensor.terms == 0 || (tensor.terms == 1) != (tensor.reduction == Reduction::None))
    return makeError(tensor.terms, " terms with the reduction ", getWord(tensor.reduction), " (P25)");
  const Type &whole = program.types[tensor.type];
  if (!tensor.value.empty() && (isOutput || tensor.value.size() != getBytes(whole)))
    return makeError("has a value of ", tensor.value.size(), " bytes, and is ", isOutput ? "an output " : "",
                     format(whole), " (P25)");
  if (Status error = checkOrigin(tensor, whole, isOutput))
    return error;
  for (const Place &place : tensor.places) {
    if (place.role >= program.roles.size())
      return makeError("role ", place.role, " of ", program.roles.size(), " (P25)");
    if (Status error = checkView(place.role, place.view))
      return error;
    const Type &local = getType(place.view), &first = getType(tensor.places.front().view);
    if (local.element != whole.element || local.shape.size() != whole.shape.size() ||
        place.starts.size() != whole.shape.size() || !isAlike(local, first))
      return makeError(format(local), " is held of ", format(whole), " (P25)");
    for (size_t dim = 0; dim < whole.shape.size() && place.present.empty(); ++dim)
      if (!liesIn(whole, local, dim, getSpread(place.role, place.starts[dim])))
        return makeError("dim ", dim, " of ", format(local), " does not lie in ", format(whole), " (P25)");
    if (Status error = checkPresent(place, whole))
      return error;
    std::optional<Spread> term = getSpread(place.role, place.term);
    if (!term || term->least < 0 || term->most >= int64_t(tensor.terms))
      return makeError("a term that is not among ", tensor.terms, " (P25)");
    BufferKind kind = program.roles[place.role].buffers[place.view.buffer].kind;
    if (kind != BufferKind::State && kind != (isOutput ? BufferKind::Output : BufferKind::Input))
      return makeError("is in a buffer of kind ", getWord(kind), " (P25)");
  }
  return kGood;
}

/// Of an output, ranks hold every element of every term. Boxes are all of one size, and start at its multiples; where they
/// may end behind the tensor, those that lie there wholly do not count.
Status Checker::checkCovers(const Tensor &tensor) {
  const Type &whole = program.types[tensor.type];
  if (getBytes(whole) == 0)
    return kGood;
  std::set<std::vector<int64_t>> boxes;
  uint64_t wanted = tensor.terms;
  for (const Place &place : tensor.places) {
    const Type &local = getType(place.view);
    if (Status error = spend(program.roles[place.role].ranks.size() * (whole.shape.size() + 1)))
      return error;
    bool isPadded = !place.present.empty();
    for (uint32_t rank : program.roles[place.role].ranks) {
      std::vector<int64_t> box{program.evaluate(place.term, rank)};
      bool isEmpty = false;
      for (size_t dim = 0; dim < whole.shape.size(); ++dim) {
        box.push_back(program.evaluate(place.starts[dim], rank));
        isEmpty |= isPadded && box.back() == whole.shape[dim];
        if (local.shape[dim] == 0 || (box.back() % local.shape[dim] && (!isPadded || box.back() != whole.shape[dim])) ||
            (!isPadded && whole.shape[dim] % local.shape[dim]))
          return makeError("rank ", rank, " holds ", format(local), " from ", box.back(), " in dim ", dim,
                           ", no multiple of its size (P25)");
      }
      if (!isEmpty)
        boxes.insert(std::move(box));
    }
  }
  if (!tensor.places.empty())
    // At most 2^48 boxes, and 2^32 terms: compared as what is left of them.
    for (size_t dim = 0; dim < whole.shape.size(); ++dim) {
      int64_t size = getType(tensor.places.front().view).shape[dim];
      if (__builtin_mul_overflow(wanted, whole.shape[dim] / size + (whole.shape[dim] % size != 0), &wanted))
        break;
    }
  if (boxes.size() != wanted)
    return makeError("ranks hold ", boxes.size(), " of ", wanted, " pieces (P25)");
  return kGood;
}

/// No two tensors lie in one buffer, but for those of a state.
Status Checker::checkOwnBuffers(const Variant &variant) const {
  std::set<std::pair<uint32_t, uint32_t>> taken;
  std::vector<bool> isState(variant.outputs.size());
  for (const State &state : variant.states)
    if (state.output >= 0)
      isState[size_t(state.output)] = true;
  std::set<std::string_view> inputs, outputs;
  for (const Tensor &input : variant.inputs) {
    if (!inputs.insert(input.name).second)
      return makeError("input ", quote(input.name), " is there twice (P25)");
    for (const Place &place : input.places)
      if (!taken.insert({place.role, place.view.buffer}).second)
        return makeError("input ", quote(input.name), " shares its buffer ", place.view.buffer, " (P25)");
  }
  for (size_t i = 0; i < variant.outputs.size(); ++i) {
    const Tensor &output = variant.outputs[i];
    if (!outputs.insert(output.name).second)
      return makeError("output ", quote(output.name), " is there twice (P25)");
    for (const Place &place : output.places)
      if (!isState[i] && !taken.insert({place.role, place.view.buffer}).second)
        return makeError("output ", quote(output.name), " shares its buffer ", place.view.buffer, " (P25)");
  }
  return kGood;
}

/// States first: that the two tensors of one share a buffer is right.
Status Checker::checkTensors() {
  for (const Variant &variant : program.variants) {
    for (const Tensor &input : variant.inputs)
      if (Status error = checkTensor(input, /*isOutput=*/false))
        return addPlace(concat("input ", quote(input.name), ": "), error);
    for (const Tensor &output : variant.outputs) {
      Status error = checkTensor(output, /*isOutput=*/true);
      if (!error)
        error = checkCovers(output);
      if (error)
        return addPlace(concat("output ", quote(output.name), ": "), error);
    }
    if (Status error = checkStates(variant))
      return error;
    if (Status error = checkOwnBuffers(variant))
      return error;
  }
  return checkVariants();
}

//===----------------------------------------------------------------------===//
// States (P26)
//===----------------------------------------------------------------------===//

static bool isSame(const Number &a, const Number &b) { return a.base == b.base && a.column == b.column; }

/// Number by number.
static bool isSame(const std::vector<Number> &a, const std::vector<Number> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Number &a, const Number &b) { return isSame(a, b); });
}

/// Whether two tensors lie at the same bytes on all ranks, and mean the same part of the whole there.
static bool isSame(const Place &a, const Place &b) {
  return a.role == b.role && a.view.buffer == b.view.buffer && a.view.type == b.view.type &&
         isSame(a.view.offset, b.view.offset) && isSame(a.term, b.term) && isSame(a.starts, b.starts) &&
         isSame(a.present, b.present);
}

/// The dim along which `to` has more positions than `from`, which is like it otherwise; nothing if there is none, or several.
static std::optional<size_t> findGrowth(const Type &from, const Type &to) {
  std::optional<size_t> grown;
  if (from.element != to.element || from.shape.size() != to.shape.size())
    return std::nullopt;
  for (size_t dim = 0; dim < to.shape.size(); ++dim) {
    bool isMore = from.shape[dim] < to.shape[dim];
    if (from.shape[dim] > to.shape[dim] || (isMore && grown))
      return std::nullopt;
    if (isMore)
      grown = dim;
  }
  return grown;
}

/// Whether the place of a state's input is the end, along a dim, of that of its output, which is dense and whole there. Along other dims
/// both may have less than their shape.
bool Checker::isEnd(const Place &input, const Place &output, size_t dim) const {
  const Type &part = getType(input.view), &whole = getType(output.view);
  if (findGrowth(part, whole) != dim || !isDense(whole) || getType(output.view).shape[dim] == 0)
    return false;
  bool isFull = output.present.empty() || isSame(output.present[dim], {whole.shape[dim], -1});
  if (!isFull)
    return false;
  std::vector<int64_t> strides = getStrides(whole);
  int64_t added = whole.shape[dim] - part.shape[dim];
  Place end = output;
  end.view.type = input.view.type;
  end.view.offset.base += added * strides[dim] * int64_t(getElementBytes(whole.element));
  if (!end.present.empty())
    end.present[dim].base -= added;
  return isSame(input, end) && getStrides(part) == strides;
}

/// The two tensors of a state are one, or one the end of the other, and nothing else lies in buffers of states.
Status Checker::checkStates(const Variant &variant) const {
  std::vector<bool> inputs(variant.inputs.size()), outputs(variant.outputs.size());
  for (const State &state : variant.states) {
    bool isThere = state.input < inputs.size() && state.output >= -1 && state.output < int64_t(outputs.size());
    if (!isThere || inputs[state.input] || (state.output >= 0 && outputs[size_t(state.output)]))
      return makeError("a state of input ", state.input, " and output ", state.output,
                       ", which are not there or have one (P26)");
    inputs[state.input] = true;
    if (state.output < 0)
      continue;
    const Tensor &input = variant.inputs[state.input], &output = variant.outputs[size_t(state.output)];
    bool isOne = isAlike(program.types[input.type], program.types[output.type]) &&
                 std::equal(input.places.begin(), input.places.end(), output.places.begin(), output.places.end(),
                            [](const Place &a, const Place &b) { return isSame(a, b); });
    std::optional<size_t> grown = findGrowth(program.types[input.type], program.types[output.type]);
    bool isPart =
        grown && std::equal(input.places.begin(), input.places.end(), output.places.begin(), output.places.end(),
                            [&](const Place &a, const Place &b) { return isEnd(a, b, *grown); });
    bool isAsOne =
        input.sharding == output.sharding && input.reduction == output.reduction && input.terms == output.terms;
    if (!isAsOne || !(isOne || isPart))
      return makeError("state ", quote(output.name), " is not the input ", quote(input.name),
                       " in type, sharding and place (P26)");
    outputs[size_t(state.output)] = true;
  }
  auto checkKinds = [&](const std::vector<Tensor> &tensors, const std::vector<bool> &areStates) -> Status {
    for (size_t i = 0; i < tensors.size(); ++i)
      for (const Place &place : tensors[i].places)
        if ((program.roles[place.role].buffers[place.view.buffer].kind == BufferKind::State) != areStates[i])
          return makeError(quote(tensors[i].name),
                           areStates[i] ? " is a state outside of its buffers"
                                        : " is not a state, but is in a buffer of one",
                           " (P26)");
    return kGood;
  };
  Status error = checkKinds(variant.inputs, inputs);
  return error ? error : checkKinds(variant.outputs, outputs);
}

//===----------------------------------------------------------------------===//
// Variants (P27)
//===----------------------------------------------------------------------===//

/// Whether states are the same tensors at the same places, so that one variant goes on from what another one has left. One of another
/// entry may leave them as they are.
static bool haveSameStates(const Variant &a, const Variant &b) {
  return std::equal(a.states.begin(), a.states.end(), b.states.begin(), b.states.end(),
                    [&](const State &x, const State &y) {
                      const std::vector<Place> &from = a.inputs[x.input].places, &to = b.inputs[y.input].places;
                      return x.input == y.input && (x.output == y.output || a.entry != b.entry) &&
                             std::equal(from.begin(), from.end(), to.begin(), to.end(),
                                        [](const Place &a, const Place &b) { return isSame(a, b); });
                    });
}

/// Variants have the same inputs and states, those of one entry the same outputs, and no two of one the same input shapes.
Status Checker::checkVariants() const {
  std::map<std::pair<std::string, std::vector<std::vector<int64_t>>>, size_t> seen;
  const Variant &first = program.variants.front();
  auto areNamed = [&](const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Tensor &a, const Tensor &b) {
      return a.name == b.name && program.types[a.type].element == program.types[b.type].element;
    });
  };
  for (size_t i = 0; i < program.variants.size(); ++i) {
    const Variant &variant = program.variants[i];
    const Variant &same = *std::find_if(program.variants.begin(), program.variants.end(),
                                        [&](const Variant &other) { return other.entry == variant.entry; });
    if (!areNamed(variant.inputs, first.inputs) || !areNamed(variant.outputs, same.outputs))
      return makeError("variant ", i, " has other inputs or outputs than variant 0 (P27)");
    if (!haveSameStates(variant, first) || !haveSameStates(variant, same))
      return makeError("variant ", i, " has other states than variant 0, or has them elsewhere (P27)");
    for (const IndexRange &range : variant.ranges)
      if (Status error = checkRange(program, variant, range))
        return addPlace(concat("variant ", i, ": "), error);
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor &input : variant.inputs)
      shapes.push_back(program.types[input.type].shape);
    auto [other, isNew] = seen.emplace(std::pair(variant.entry, std::move(shapes)), i);
    if (!isNew)
      return makeError("variants ", other->second, " and ", i, " have inputs of the same shapes (P27)");
  }
  return kGood;
}
