//===- DnnGraphRules.cpp - when descriptors of graphs are whole -----------===//
//
// A table of all attributes: of which kind of descriptor, what their elements are, how many there may be, whether there must be
// some. Statuses are those of cuDNN 9.19, as it answers without a device: another type is a status of its own, an attribute of
// another kind a bad parameter. What cuDNN forgives (a tensor without a name, sizes of 0), is refused here.
//
//===----------------------------------------------------------------------===//
#include "DnnGraph.h"

#include <algorithm>
#include <set>

using namespace cleave::cuda;

namespace {
struct Rule {
  DnnKind kind;
  DnnAttribute attribute;
  DnnElement element;
  int64_t most = 1;
  bool isNeeded = true;
  DnnKind child = DnnKind::Tensor; ///< of elements that are descriptors
};
} // namespace

/// Operations read as many tensors as their mode wants: `checkComplete` sees to those that are optional here.
static const std::vector<Rule> &getRules() {
  using K = DnnKind;
  using A = DnnAttribute;
  using E = DnnElement;
  static const std::vector<Rule> rules = {
      {K::Tensor, A::TensorId, E::Integer},
      {K::Tensor, A::TensorType, E::DataType},
      {K::Tensor, A::TensorSizes, E::Integer, 8},
      {K::Tensor, A::TensorStrides, E::Integer, 8},
      {K::Tensor, A::TensorAlignment, E::Integer},
      {K::Tensor, A::TensorIsVirtual, E::Boolean, 1, false},
      {K::Tensor, A::TensorIsByValue, E::Boolean, 1, false},
      {K::Pointwise, A::PointwiseMode, E::PointwiseMode},
      {K::Pointwise, A::PointwisePrecision, E::DataType},
      {K::Pointwise, A::PointwiseAxis, E::Integer, 1, false},
      {K::PointwiseOperation, A::PointwiseOfOperation, E::Descriptor, 1, true, K::Pointwise},
      {K::PointwiseOperation, A::PointwiseX, E::Descriptor},
      {K::PointwiseOperation, A::PointwiseB, E::Descriptor, 1, false},
      {K::PointwiseOperation, A::PointwiseT, E::Descriptor, 1, false},
      {K::PointwiseOperation, A::PointwiseY, E::Descriptor},
      {K::Matmul, A::MatmulPrecision, E::DataType},
      {K::MatmulOperation, A::MatmulOfOperation, E::Descriptor, 1, true, K::Matmul},
      {K::MatmulOperation, A::MatmulA, E::Descriptor},
      {K::MatmulOperation, A::MatmulB, E::Descriptor},
      {K::MatmulOperation, A::MatmulC, E::Descriptor},
      {K::Reduction, A::ReductionOperator, E::ReductionOperator},
      {K::Reduction, A::ReductionPrecision, E::DataType},
      {K::ReductionOperation, A::ReductionOfOperation, E::Descriptor, 1, true, K::Reduction},
      {K::ReductionOperation, A::ReductionX, E::Descriptor},
      {K::ReductionOperation, A::ReductionY, E::Descriptor},
      {K::OperationGraph, A::GraphHandle, E::Handle},
      {K::OperationGraph, A::GraphOperations, E::Descriptor, 64, true, K::PointwiseOperation},
      {K::Heuristics, A::HeuristicsGraph, E::Descriptor, 1, true, K::OperationGraph},
      {K::Heuristics, A::HeuristicsMode, E::HeuristicsMode},
      {K::ExecutionPlan, A::PlanHandle, E::Handle},
      {K::ExecutionPlan, A::PlanConfig, E::Descriptor, 1, true, K::EngineConfig},
      {K::VariantPack, A::PackIds, E::Integer, 64},
      {K::VariantPack, A::PackPointers, E::Pointer, 64},
      {K::VariantPack, A::PackWorkspace, E::Pointer},
  };
  return rules;
}

/// Configurations and engines have no attributes that a caller could set.
bool cleave::cuda::isKnown(DnnKind kind) {
  const std::vector<Rule> &rules = getRules();
  return kind == DnnKind::Engine || kind == DnnKind::EngineConfig ||
         std::any_of(rules.begin(), rules.end(), [&](const Rule &rule) { return rule.kind == kind; });
}

/// The first rule that names the attribute counts: there is one for each kind.
DnnStatus cleave::cuda::checkAttribute(DnnKind kind, DnnAttribute attribute, DnnElement element, int64_t count) {
  for (const Rule &rule : getRules())
    if (rule.kind == kind && rule.attribute == attribute) {
      if (rule.element != element)
        return DnnStatus::AttributeType;
      return count >= 1 && count <= rule.most ? DnnStatus::Success : DnnStatus::BadParameter;
    }
  return DnnStatus::BadParameter;
}

/// Graphs are made of these.
static bool isOperation(DnnKind kind) {
  return kind == DnnKind::PointwiseOperation || kind == DnnKind::MatmulOperation || kind == DnnKind::ReductionOperation;
}

/// Strides of 0, which repeat an element, are said by a size of 1.
static std::string checkTensor(const GraphDescriptor &of) {
  GraphTensor tensor(of);
  if (tensor.sizes.size() != tensor.strides.size())
    return "a tensor has as many strides as sizes";
  auto isPositive = [](int64_t number) { return number > 0; };
  if (!std::all_of(tensor.sizes.begin(), tensor.sizes.end(), isPositive) ||
      !std::all_of(tensor.strides.begin(), tensor.strides.end(), isPositive))
    return "sizes and strides are positive";
  if (tensor.alignment <= 0 || (tensor.alignment & (tensor.alignment - 1)) != 0)
    return "an alignment is a power of two";
  return tensor.isVirtual && tensor.isByValue ? "a tensor is virtual or a number, not both" : "";
}

/// How many tensors a mode reads.
static size_t countInputs(DnnPointwise mode) {
  switch (mode) {
  case DnnPointwise::Exp:
  case DnnPointwise::Log:
  case DnnPointwise::GenIndex:
    return 1;
  case DnnPointwise::Select:
    return 3;
  default:
    return 2;
  }
}

/// Every dim is the result's, or 1.
static bool isSpread(const GraphTensor &from, const GraphTensor &to) {
  if (from.sizes.size() != to.sizes.size())
    return false;
  for (size_t dim = 0; dim < to.sizes.size(); ++dim)
    if (from.sizes[dim] != 1 && from.sizes[dim] != to.sizes[dim])
      return false;
  return true;
}

/// As many operands as the mode reads, each spread over the result.
static std::string checkPointwise(const GraphDescriptor &operation) {
  const GraphDescriptor &pointwise = *operation.getChild(DnnAttribute::PointwiseOfOperation);
  auto mode = pointwise.get<DnnPointwise>(DnnAttribute::PointwiseMode);
  size_t inputs = 0;
  for (DnnAttribute input : getInputs(operation.kind))
    inputs += operation.has(input);
  if (inputs != countInputs(mode))
    return "the mode reads another number of tensors";
  if (mode == DnnPointwise::GenIndex && !pointwise.has(DnnAttribute::PointwiseAxis))
    return "an index needs an axis";
  GraphTensor y(*operation.getChild(DnnAttribute::PointwiseY));
  for (DnnAttribute input : getInputs(operation.kind))
    if (operation.has(input) && !isSpread(GraphTensor(*operation.getChild(input)), y))
      return "an operand is not spread over the result";
  return "";
}

/// Batches are the result's; heads of the second operand may serve several of the first's.
static std::string checkMatmul(const GraphDescriptor &operation) {
  GraphTensor a(*operation.getChild(DnnAttribute::MatmulA)), b(*operation.getChild(DnnAttribute::MatmulB)),
      c(*operation.getChild(DnnAttribute::MatmulC));
  bool fits = a.sizes.size() == 4 && b.sizes.size() == 4 && c.sizes.size() == 4;
  fits = fits && a.sizes[3] == b.sizes[2] && a.sizes[2] == c.sizes[2] && b.sizes[3] == c.sizes[3];
  for (size_t dim = 0; fits && dim < 2; ++dim)
    fits = a.sizes[dim] == c.sizes[dim] && c.sizes[dim] % b.sizes[dim] == 0;
  return fits ? "" : "sizes of a product do not fit";
}

/// Addresses are matched with tensors by their place in the list.
static std::string checkPack(const GraphDescriptor &pack) {
  std::vector<int64_t> ids = pack.getList(DnnAttribute::PackIds);
  if (pack.getList(DnnAttribute::PackPointers).size() != ids.size())
    return "a pack has as many addresses as tensors";
  return std::set<int64_t>(ids.begin(), ids.end()).size() == ids.size() ? "" : "a tensor is in the pack twice";
}

/// What is missing first, then what does not fit together: checks of a kind rely on its attributes.
std::string cleave::cuda::checkComplete(const GraphDescriptor &descriptor) {
  for (const Rule &rule : getRules()) {
    if (rule.kind != descriptor.kind)
      continue;
    auto value = descriptor.values.find(rule.attribute);
    if (value == descriptor.values.end()) {
      if (rule.isNeeded)
        return "attribute " + std::to_string(int(rule.attribute)) + " is missing";
      continue;
    }
    for (const DescriptorRef &child : value->second.descriptors)
      if (!child->isFinal || (child->kind != rule.child && !(isOperation(rule.child) && isOperation(child->kind))))
        return "attribute " + std::to_string(int(rule.attribute)) + " is another kind of descriptor, or not finalized";
  }
  switch (descriptor.kind) {
  case DnnKind::Tensor:
    return checkTensor(descriptor);
  case DnnKind::PointwiseOperation:
    return checkPointwise(descriptor);
  case DnnKind::MatmulOperation:
    return checkMatmul(descriptor);
  case DnnKind::ReductionOperation:
    return isSpread(GraphTensor(*descriptor.getChild(DnnAttribute::ReductionY)),
                    GraphTensor(*descriptor.getChild(DnnAttribute::ReductionX)))
               ? ""
               : "a reduction keeps a dim, or makes it 1";
  case DnnKind::VariantPack:
    return checkPack(descriptor);
  default:
    return "";
  }
}
