//===- DnnEngines.cpp - graphs that the emulated cuDNN has engines for ----===//
//
// There is an engine for attention, and for nothing else, as cuDNN's are told apart by patterns: two products, what stands between
// them virtual, a softmax with its statistics, halves, heads of multiples of 8. Whether the operations are attention is not asked:
// they are computed one by one, each but one into a dense array of f32, rounded where its tensor is of a narrower type, so that whoever
// says the wrong graph gets the wrong numbers. Weights are divided by their sum behind the product with the values, in f32, as
// engines do that go through the keys once: what is rounded is the weight before.
//
//   engine 0   not the same in every run: nobody who wants the same may take it, and who does is refused
//   engine 1   never compiles
//   engine 2   computes
//
//===----------------------------------------------------------------------===//
#include "DnnGraph.h"

#include <algorithm>
#include <cmath>

using namespace cleave::cuda;
using namespace cleave::emulation;

std::vector<DnnAttribute> cleave::cuda::getInputs(DnnKind kind) {
  if (kind == DnnKind::MatmulOperation)
    return {DnnAttribute::MatmulA, DnnAttribute::MatmulB};
  if (kind == DnnKind::ReductionOperation)
    return {DnnAttribute::ReductionX};
  return {DnnAttribute::PointwiseX, DnnAttribute::PointwiseB, DnnAttribute::PointwiseT};
}

DnnAttribute cleave::cuda::getOutput(DnnKind kind) {
  if (kind == DnnKind::MatmulOperation)
    return DnnAttribute::MatmulC;
  return kind == DnnKind::ReductionOperation ? DnnAttribute::ReductionY : DnnAttribute::PointwiseY;
}

//===----------------------------------------------------------------------===//
// What engines there are
//===----------------------------------------------------------------------===//

/// The fallback is slow, and always works.
std::vector<int> cleave::cuda::listEngines(DnnHeuristics mode) {
  return mode == DnnHeuristics::A ? std::vector<int>{0, 1, 2} : std::vector<int>{2};
}

std::vector<DnnNote> cleave::cuda::getNotes(int engine) {
  return engine == 0 ? std::vector<DnnNote>{DnnNote::TensorCore, DnnNote::Nondeterministic}
                     : std::vector<DnnNote>{DnnNote::TensorCore};
}

bool cleave::cuda::canCompile(int engine) { return engine != 1; }

using Operations = std::vector<DescriptorRef>;

static const Operations &getOperations(const GraphDescriptor &graph) {
  return graph.values.at(DnnAttribute::GraphOperations).descriptors;
}

static bool isPointwise(const GraphDescriptor &operation, DnnPointwise mode) {
  const GraphDescriptor *pointwise = operation.getChild(DnnAttribute::PointwiseOfOperation);
  return pointwise && pointwise->get<DnnPointwise>(DnnAttribute::PointwiseMode) == mode;
}

/// An operand in memory: a half, or a mask.
static std::string checkOperand(const GraphTensor &tensor, bool isMask) {
  bool isHalf = tensor.type == DnnType::F16 || tensor.type == DnnType::BF16;
  if (!isHalf && !(isMask && tensor.type == DnnType::F32))
    return "attention is of halves";
  if (tensor.strides.back() != 1)
    return "elements of the last dim are contiguous";
  return tensor.alignment >= 16 ? "" : "tensors are aligned to 16 bytes";
}

/// Of the operands of products alone: keys lie with their last two dims exchanged.
static std::string checkFactors(const GraphDescriptor &product, bool isFirst) {
  GraphTensor a(*product.getChild(DnnAttribute::MatmulA)), b(*product.getChild(DnnAttribute::MatmulB)),
      c(*product.getChild(DnnAttribute::MatmulC));
  if (isFirst)
    for (std::vector<int64_t> *list : {&b.sizes, &b.strides})
      std::swap((*list)[2], (*list)[3]);
  const GraphTensor &outer = isFirst ? a : c, &inner = isFirst ? c : a;
  for (const GraphTensor *tensor : {&outer, static_cast<const GraphTensor *>(&b)}) {
    if (std::string why = checkOperand(*tensor, false); !why.empty())
      return why;
    if (tensor->sizes.back() % 8 != 0 || tensor->sizes.back() > 256)
      return "heads have a multiple of 8 components, up to 256";
  }
  return inner.isVirtual && outer.isInMemory() && b.isInMemory() ? "" : "scores are never in memory";
}

/// What stands between the products, and what it reads.
static std::string checkBetween(const GraphDescriptor &operation) {
  if (!GraphTensor(*operation.getChild(getOutput(operation.kind))).isVirtual)
    return "what is between the products is virtual";
  for (DnnAttribute input : getInputs(operation.kind))
    if (const GraphDescriptor *child = operation.getChild(input))
      if (GraphTensor tensor(*child); tensor.isInMemory())
        if (std::string why = checkOperand(tensor, true); !why.empty())
          return why;
  return "";
}

/// Where a real engine looks for operations in a certain order, this looks for what no order can hide. The product of scores is
/// the one whose result is virtual.
std::string cleave::cuda::checkGraph(const GraphDescriptor &graph) {
  std::vector<const GraphDescriptor *> products;
  const GraphDescriptor *weights = nullptr;
  bool hasStatistics = false;
  for (const DescriptorRef &operation : getOperations(graph)) {
    GraphTensor result(*operation->getChild(getOutput(operation->kind)));
    if (result.sizes.size() != 4)
      return "tensors have four dims";
    if (operation->kind == DnnKind::MatmulOperation) {
      products.insert(result.isVirtual ? products.begin() : products.end(), operation.get());
      continue;
    }
    if (std::string why = checkBetween(*operation); !why.empty())
      return why;
    hasStatistics |= isPointwise(*operation, DnnPointwise::Log);
    if (isPointwise(*operation, DnnPointwise::Divide))
      weights = operation->getChild(DnnAttribute::PointwiseY);
  }
  if (products.size() != 2 || !hasStatistics)
    return "two products with a softmax between them, and its statistics";
  if (weights && weights != products[1]->getChild(DnnAttribute::MatmulA))
    return "what is divided is multiplied by values";
  std::string why = checkFactors(*products[0], true);
  return why.empty() ? checkFactors(*products[1], false) : why;
}

/// A number for each row, as engines keep.
int64_t cleave::cuda::getWorkspaceBytes(const GraphDescriptor &graph) {
  for (const DescriptorRef &operation : getOperations(graph))
    if (operation->kind == DnnKind::ReductionOperation) {
      GraphTensor rows(*operation->getChild(DnnAttribute::ReductionY));
      int64_t bytes = 4;
      for (int64_t size : rows.sizes)
        bytes *= size;
      return bytes;
    }
  return 16;
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

namespace {

/// Elements of a tensor, row-major.
struct Elements {
  std::vector<int64_t> sizes;
  std::vector<float> values;
  /// What a product divides by, a number for each row.
  const Elements *divisor = nullptr;

  /// That at a place of a tensor of these sizes or larger ones: dims of 1 are the same all along.
  float at(const std::array<int64_t, 4> &place) const {
    int64_t index = 0;
    for (size_t dim = 0; dim < 4; ++dim)
      index = index * sizes[dim] + (sizes[dim] == 1 ? 0 : place[dim]);
    return values[size_t(index)];
  }
};

/// One run through a graph.
class GraphRun {
public:
  GraphRun(const std::map<int64_t, char *> &addresses, const HostNumbers &numbers)
      : addresses(addresses), numbers(numbers) {}
  /// False where an operand has not been computed yet.
  bool run(const GraphDescriptor &operation);

private:
  const Elements *find(const GraphDescriptor &tensor);
  float compute(const GraphDescriptor &operation, const std::vector<const Elements *> &from,
                const std::array<int64_t, 4> &place) const;
  void store(const GraphTensor &tensor, Elements made);

  const std::map<int64_t, char *> &addresses;
  const HostNumbers &numbers;
  std::map<int64_t, Elements> known;
};

} // namespace

template <typename Fn> static void over(const std::vector<int64_t> &sizes, Fn fn) {
  std::array<int64_t, 4> at{};
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2])
        for (at[3] = 0; at[3] < sizes[3]; ++at[3])
          fn(at);
}

/// In bytes, in memory.
static uint64_t getOffset(const GraphTensor &tensor, const std::array<int64_t, 4> &place) {
  int64_t offset = 0;
  for (size_t dim = 0; dim < 4; ++dim)
    offset += place[dim] * tensor.strides[dim];
  return uint64_t(offset) * getBytes(getKind(tensor.type));
}

/// What has been computed, a number of the host, or what lies in memory.
const Elements *GraphRun::find(const GraphDescriptor &of) {
  GraphTensor tensor(of);
  auto found = known.find(tensor.id);
  if (found != known.end() || tensor.isVirtual)
    return found == known.end() ? nullptr : &found->second;
  Elements loaded{tensor.sizes, {}, nullptr};
  over(tensor.sizes, [&](const auto &place) {
    loaded.values.push_back(
        tensor.isByValue ? float(numbers.at(tensor.id))
                         : float(loadFloat(addresses.at(tensor.id) + getOffset(tensor, place), getKind(tensor.type))));
  });
  return &known.emplace(tensor.id, std::move(loaded)).first->second;
}

/// To memory, or rounded as if it went there.
void GraphRun::store(const GraphTensor &tensor, Elements made) {
  size_t next = 0;
  over(tensor.sizes, [&](const auto &place) {
    float &value = made.values[next++];
    if (!tensor.isVirtual)
      storeFloat(addresses.at(tensor.id) + getOffset(tensor, place), getKind(tensor.type), value);
    char rounded[8];
    storeFloat(rounded, getKind(tensor.type), value);
    value = float(loadFloat(rounded, getKind(tensor.type)));
  });
  known.emplace(tensor.id, std::move(made));
}

/// Sums in order; a head of the second operand serves neighbors of the first.
static float multiply(const Elements &a, const Elements &b, const std::array<int64_t, 4> &place) {
  std::array<int64_t, 4> inA = place, inB = place;
  for (size_t dim = 0; dim < 2; ++dim)
    inB[dim] /= a.sizes[dim] / b.sizes[dim];
  float sum = 0;
  for (int64_t k = 0; k < a.sizes[3]; ++k) {
    inA[3] = inB[2] = k;
    sum += a.at(inA) * b.at(inB);
  }
  return a.divisor ? sum / a.divisor->at(place) : sum;
}

/// Along dims that the result has not.
static float reduce(const Elements &x, DnnReduction by, const std::array<int64_t, 4> &place,
                    const std::vector<int64_t> &kept) {
  bool isMax = by == DnnReduction::Max;
  float result = isMax ? -INFINITY : 0;
  std::vector<int64_t> along(4, 1);
  for (size_t dim = 0; dim < 4; ++dim)
    along[dim] = kept[dim] == 1 ? x.sizes[dim] : 1;
  over(along, [&](const std::array<int64_t, 4> &step) {
    std::array<int64_t, 4> at = place;
    for (size_t dim = 0; dim < 4; ++dim)
      at[dim] += step[dim];
    float value = x.at(at);
    result = isMax ? std::max(result, value) : result + value;
  });
  return result;
}

/// True is 1. NaN is computed with like any other number.
static float computePointwise(DnnPointwise mode, float x, float b, float t) {
  switch (mode) {
  case DnnPointwise::Add:
    return x + b;
  case DnnPointwise::Multiply:
    return x * b;
  case DnnPointwise::Divide:
    return x / b;
  case DnnPointwise::Subtract:
    return x - b;
  case DnnPointwise::Exp:
    return std::exp(x);
  case DnnPointwise::Log:
    return std::log(x);
  case DnnPointwise::GreaterEqual:
    return x >= b;
  case DnnPointwise::Select:
    return t != 0 ? x : b;
  case DnnPointwise::GenIndex:
    break;
  }
  return NAN;
}

/// One element of an operation's result.
float GraphRun::compute(const GraphDescriptor &operation, const std::vector<const Elements *> &from,
                        const std::array<int64_t, 4> &place) const {
  if (operation.kind == DnnKind::MatmulOperation)
    return multiply(*from[0], *from[1], place);
  if (operation.kind == DnnKind::ReductionOperation)
    return reduce(
        *from[0],
        operation.getChild(DnnAttribute::ReductionOfOperation)->get<DnnReduction>(DnnAttribute::ReductionOperator),
        place, GraphTensor(*operation.getChild(DnnAttribute::ReductionY)).sizes);
  const GraphDescriptor &pointwise = *operation.getChild(DnnAttribute::PointwiseOfOperation);
  auto mode = pointwise.get<DnnPointwise>(DnnAttribute::PointwiseMode);
  if (mode == DnnPointwise::GenIndex)
    return float(place[size_t(pointwise.get<int64_t>(DnnAttribute::PointwiseAxis))]);
  auto get = [&](size_t i) { return i < from.size() ? from[i]->at(place) : 0; };
  return computePointwise(mode, get(0), get(1), get(2));
}

bool GraphRun::run(const GraphDescriptor &operation) {
  std::vector<const Elements *> from;
  for (DnnAttribute input : getInputs(operation.kind))
    if (const GraphDescriptor *tensor = operation.getChild(input)) {
      from.push_back(find(*tensor));
      if (!from.back())
        return false;
    }
  GraphTensor to(*operation.getChild(getOutput(operation.kind)));
  Elements made{to.sizes, {}, nullptr};
  // Only products read what is virtual and narrow.
  bool isWeight = isPointwise(operation, DnnPointwise::Divide) && to.isVirtual && from[1]->sizes[3] == 1;
  if (isWeight)
    made.divisor = from[1], made.values = from[0]->values;
  else
    over(to.sizes, [&](const auto &place) { made.values.push_back(compute(operation, from, place)); });
  store(to, std::move(made));
  return true;
}

/// Operations stand in any order: rounds go on while one of them could be computed.
void cleave::cuda::computeGraph(const GraphDescriptor &graph, const std::map<int64_t, char *> &addresses,
                                const HostNumbers &numbers) {
  GraphRun run(addresses, numbers);
  Operations left = getOperations(graph);
  for (size_t before = 0; before != left.size();) {
    before = left.size();
    left.erase(std::remove_if(left.begin(), left.end(), [&](const DescriptorRef &next) { return run.run(*next); }),
               left.end());
  }
}
