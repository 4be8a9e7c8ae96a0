//===- CudaAttention.cpp - attention by cuDNN -----------------------------===//
//
// cuDNN has no call for attention, but engines that know it when they see it, as a graph of operations on tensors, all between
// the operands and the result virtual:
//
//   s = query x key'  ->  * scale  ->  + mask  ->  s or -inf, by the positions of query and key  ->  softmax, in parts
//   result = softmax x value
//
// The softmax must come with its statistics (largest score + log of the sum), though nobody reads them: without, engines
// do not see an attention whose scale is a number of the host. Heuristics offer engines, the fastest first; the first is taken
// that gives the same bits in every run, and works in no more memory than there is. What no engine takes, the kernel computes.
//
// As cuDNN names its operations, with a mask and causal, K - Q keys more than queries:
//
//   matmul, mul scale, add mask
//   gen_index 2, gen_index 3, add K, sub Q, cmp_ge, binary_select -inf
//   reduction max, sub, exp, reduction add, log, add, div
//   matmul
//
// Source of the graph's form: what NVIDIA's cudnn-frontend makes of its node for attention.
//
//===----------------------------------------------------------------------===//
#include "CudaLibraries.h"

#include <algorithm>
#include <deque>
#include <limits>

using namespace cleave::runtime;
namespace cuda = cleave::cuda;
namespace program = cleave::program;
using cuda::DnnAttribute;
using cuda::DnnElement;
using cuda::DnnKind;
using cuda::DnnPointwise;
using cuda::DnnType;
using program::kGood;
using program::makeError;

using Sizes = std::vector<int64_t>;

/// Addresses of all tensors, and lines of all but the mask, are multiples of it: so engines load.
static constexpr int64_t kAlignment = 16;
/// More configurations than that are not looked at.
static constexpr int64_t kMostConfigs = 16;

namespace {

/// Attention, with cuDNN's descriptors.
class AttentionCall final : public LibraryCall {
public:
  AttentionCall(const cuda::Dnn &dnn, cuda::DnnHandle handle) : dnn(dnn), handle(handle) {}
  ~AttentionCall() override;
  program::Status plan(const program::Attention &attention, const AttentionTensors &tensors);
  program::Status enqueue(cuda::Stream stream, cuda::DevicePointer workspace) override;

private:
  // Making descriptors; after the first failure nothing more is done.
  void keep(cuda::DnnStatus status, const char *entry) {
    if (!failed && status != cuda::DnnStatus::Success)
      failed = makeError(entry, ": ", cuda::describe(status));
  }
  cuda::DnnDescriptor create(DnnKind kind);
  void set(cuda::DnnDescriptor of, DnnAttribute attribute, DnnElement element, int64_t count, const void *elements) {
    if (!failed)
      keep(dnn.cudnnBackendSetAttribute(of, attribute, element, count, elements), "cudnnBackendSetAttribute");
  }
  template <typename T> void set(cuda::DnnDescriptor of, DnnAttribute attribute, DnnElement element, T value) {
    set(of, attribute, element, 1, &value);
  }
  void set(cuda::DnnDescriptor of, DnnAttribute attribute, cuda::DnnDescriptor value) {
    set(of, attribute, DnnElement::Descriptor, 1, &value);
  }
  bool finish(cuda::DnnDescriptor descriptor) {
    if (!failed)
      keep(dnn.cudnnBackendFinalize(descriptor), "cudnnBackendFinalize");
    return !failed;
  }

  // Tensors of the graph.
  cuda::DnnDescriptor describe(DnnType type, const Sizes &sizes, const Sizes &strides, DnnAttribute how);
  cuda::DnnDescriptor addOperand(const CallTensor &tensor, bool isTurned = false);
  cuda::DnnDescriptor addVirtual(DnnType type, const Sizes &sizes);
  template <typename T> cuda::DnnDescriptor addNumber(DnnType type, T value);

  // Operations; each makes its result.
  void addOperation(cuda::DnnDescriptor operation) {
    if (finish(operation))
      operations.push_back(operation);
  }
  void multiply(cuda::DnnDescriptor a, cuda::DnnDescriptor b, cuda::DnnDescriptor c);
  cuda::DnnDescriptor compute(DnnPointwise mode, cuda::DnnDescriptor result, cuda::DnnDescriptor x,
                              cuda::DnnDescriptor b = nullptr, cuda::DnnDescriptor t = nullptr,
                              DnnType precision = DnnType::F32, int64_t axis = -1);
  cuda::DnnDescriptor reduce(cuda::DnnReduction by, cuda::DnnDescriptor x);
  cuda::DnnDescriptor hide(cuda::DnnDescriptor scores, int64_t offset);
  cuda::DnnDescriptor weigh(cuda::DnnDescriptor scores, DnnType type);

  // What becomes of the graph.
  bool isSameInEveryRun(cuda::DnnDescriptor config);
  bool tryConfig(cuda::DnnDescriptor config);
  bool choose(cuda::DnnDescriptor graph, cuda::DnnHeuristics mode);

  const cuda::Dnn &dnn;
  cuda::DnnHandle handle;
  std::vector<cuda::DnnDescriptor> descriptors;
  program::Status failed;
  std::vector<cuda::DnnDescriptor> operations;
  Sizes scores, rows; ///< shapes of all scores, and of a number for each row
  cuda::DnnDescriptor chosen = nullptr;
  cuda::DnnStatus refusal = cuda::DnnStatus::Success; ///< of the last plan that could not be made
  std::vector<int64_t> ids;                           ///< of tensors that have an address
  std::vector<void *> addresses;                      ///< of these
  std::deque<std::array<char, 8>> numbers;
};

} // namespace

AttentionCall::~AttentionCall() {
  for (size_t i = descriptors.size(); i-- > 0;)
    (void)dnn.cudnnBackendDestroyDescriptor(descriptors[i]);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

cuda::DnnDescriptor AttentionCall::create(DnnKind kind) {
  cuda::DnnDescriptor made = nullptr;
  if (!failed)
    keep(dnn.cudnnBackendCreateDescriptor(kind, &made), "cudnnBackendCreateDescriptor");
  if (!failed)
    descriptors.push_back(made);
  return made;
}

/// \param how TensorIsVirtual, TensorIsByValue, or TensorId for one in memory. Ids count descriptors.
cuda::DnnDescriptor AttentionCall::describe(DnnType type, const Sizes &sizes, const Sizes &strides, DnnAttribute how) {
  cuda::DnnDescriptor tensor = create(DnnKind::Tensor);
  auto id = int64_t(descriptors.size());
  set(tensor, DnnAttribute::TensorId, DnnElement::Integer, id);
  set(tensor, DnnAttribute::TensorType, DnnElement::DataType, type);
  set(tensor, DnnAttribute::TensorSizes, DnnElement::Integer, int64_t(sizes.size()), sizes.data());
  set(tensor, DnnAttribute::TensorStrides, DnnElement::Integer, int64_t(strides.size()), strides.data());
  set(tensor, DnnAttribute::TensorAlignment, DnnElement::Integer, kAlignment);
  if (how != DnnAttribute::TensorId)
    set(tensor, how, DnnElement::Boolean, true);
  if (how != DnnAttribute::TensorIsVirtual)
    ids.push_back(id);
  finish(tensor);
  return tensor;
}

/// \param isTurned with the last two dims exchanged.
cuda::DnnDescriptor AttentionCall::addOperand(const CallTensor &tensor, bool isTurned) {
  Sizes sizes = tensor.type->shape, strides = tensor.strides;
  if (isTurned)
    for (Sizes *list : {&sizes, &strides})
      std::swap((*list)[2], (*list)[3]);
  addresses.push_back(tensor.address);
  return describe(*getDnnType(tensor.type->element), sizes, strides, DnnAttribute::TensorId);
}

/// What is never in memory is dense: nobody sees its strides.
cuda::DnnDescriptor AttentionCall::addVirtual(DnnType type, const Sizes &sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t dim = sizes.size() - 1; dim-- > 0;)
    strides[dim] = strides[dim + 1] * sizes[dim + 1];
  return describe(type, sizes, strides, DnnAttribute::TensorIsVirtual);
}

/// It is read at every execution, so it stays where it is.
template <typename T> cuda::DnnDescriptor AttentionCall::addNumber(DnnType type, T value) {
  const char *from = reinterpret_cast<const char *>(&value);
  std::copy(from, from + sizeof value, numbers.emplace_back().data());
  addresses.push_back(numbers.back().data());
  return describe(type, {1, 1, 1, 1}, {1, 1, 1, 1}, DnnAttribute::TensorIsByValue);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Sums are in f32, whatever is multiplied. Batches and heads are c's; a head of b may serve several.
void AttentionCall::multiply(cuda::DnnDescriptor a, cuda::DnnDescriptor b, cuda::DnnDescriptor c) {
  cuda::DnnDescriptor product = create(DnnKind::Matmul);
  set(product, DnnAttribute::MatmulPrecision, DnnElement::DataType, DnnType::F32);
  finish(product);
  cuda::DnnDescriptor operation = create(DnnKind::MatmulOperation);
  set(operation, DnnAttribute::MatmulOfOperation, product);
  set(operation, DnnAttribute::MatmulA, a);
  set(operation, DnnAttribute::MatmulB, b);
  set(operation, DnnAttribute::MatmulC, c);
  addOperation(operation);
}

/// Returns `result`.
cuda::DnnDescriptor AttentionCall::compute(DnnPointwise mode, cuda::DnnDescriptor result, cuda::DnnDescriptor x,
                                           cuda::DnnDescriptor b, cuda::DnnDescriptor t, DnnType precision,
                                           int64_t axis) {
  cuda::DnnDescriptor pointwise = create(DnnKind::Pointwise);
  set(pointwise, DnnAttribute::PointwiseMode, DnnElement::PointwiseMode, mode);
  set(pointwise, DnnAttribute::PointwisePrecision, DnnElement::DataType, precision);
  if (axis >= 0)
    set(pointwise, DnnAttribute::PointwiseAxis, DnnElement::Integer, axis);
  finish(pointwise);
  cuda::DnnDescriptor operation = create(DnnKind::PointwiseOperation);
  set(operation, DnnAttribute::PointwiseOfOperation, pointwise);
  set(operation, DnnAttribute::PointwiseX, x);
  if (b)
    set(operation, DnnAttribute::PointwiseB, b);
  if (t)
    set(operation, DnnAttribute::PointwiseT, t);
  set(operation, DnnAttribute::PointwiseY, result);
  addOperation(operation);
  return result;
}

/// Along a row of scores: a number for each query.
cuda::DnnDescriptor AttentionCall::reduce(cuda::DnnReduction by, cuda::DnnDescriptor x) {
  cuda::DnnDescriptor result = addVirtual(DnnType::F32, rows), reduction = create(DnnKind::Reduction);
  set(reduction, DnnAttribute::ReductionOperator, DnnElement::ReductionOperator, by);
  set(reduction, DnnAttribute::ReductionPrecision, DnnElement::DataType, DnnType::F32);
  finish(reduction);
  cuda::DnnDescriptor operation = create(DnnKind::ReductionOperation);
  set(operation, DnnAttribute::ReductionOfOperation, reduction);
  set(operation, DnnAttribute::ReductionX, x);
  set(operation, DnnAttribute::ReductionY, result);
  addOperation(operation);
  return result;
}

/// Keys behind the query's own number plus `offset` do not count. The offset comes in two steps, as engines know it.
cuda::DnnDescriptor AttentionCall::hide(cuda::DnnDescriptor from, int64_t offset) {
  auto add = [&](DnnType type) { return addVirtual(type, scores); };
  cuda::DnnDescriptor row = compute(DnnPointwise::GenIndex, add(DnnType::I32), from, nullptr, nullptr, DnnType::F32, 2);
  cuda::DnnDescriptor column =
      compute(DnnPointwise::GenIndex, add(DnnType::I32), from, nullptr, nullptr, DnnType::F32, 3);
  if (offset != 0) {
    row = compute(DnnPointwise::Add, add(DnnType::I32), row, addNumber(DnnType::I32, int32_t(scores[3])), nullptr,
                  DnnType::I32, 3);
    row = compute(DnnPointwise::Subtract, add(DnnType::I32), row, addNumber(DnnType::I32, int32_t(scores[2])), nullptr,
                  DnnType::I32, 3);
  }
  cuda::DnnDescriptor isSeen =
      compute(DnnPointwise::GreaterEqual, add(DnnType::Boolean), row, column, nullptr, DnnType::Boolean);
  cuda::DnnDescriptor lowest = addNumber(DnnType::F32, -std::numeric_limits<float>::infinity());
  return compute(DnnPointwise::Select, add(DnnType::F32), from, lowest, isSeen);
}

/// softmax of scores, rounded to `type`.
cuda::DnnDescriptor AttentionCall::weigh(cuda::DnnDescriptor from, DnnType type) {
  cuda::DnnDescriptor largest = reduce(cuda::DnnReduction::Max, from);
  cuda::DnnDescriptor less = compute(DnnPointwise::Subtract, addVirtual(DnnType::F32, scores), from, largest);
  cuda::DnnDescriptor weights = compute(DnnPointwise::Exp, addVirtual(DnnType::F32, scores), less);
  cuda::DnnDescriptor sum = reduce(cuda::DnnReduction::Add, weights);
  cuda::DnnDescriptor log = compute(DnnPointwise::Log, addVirtual(DnnType::F32, rows), sum);
  compute(DnnPointwise::Add, addVirtual(DnnType::F32, rows), largest, log);
  return compute(DnnPointwise::Divide, addVirtual(type, scores), weights, sum);
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

/// By the notes on the engine that the configuration is of.
bool AttentionCall::isSameInEveryRun(cuda::DnnDescriptor config) {
  cuda::DnnDescriptor engine = create(DnnKind::Engine);
  cuda::DnnNote notes[16];
  int64_t count = 0;
  if (!failed)
    keep(dnn.cudnnBackendGetAttribute(config, DnnAttribute::ConfigEngine, DnnElement::Descriptor, 1, &count, &engine),
         "cudnnBackendGetAttribute");
  if (!failed)
    keep(dnn.cudnnBackendGetAttribute(engine, DnnAttribute::EngineNotes, DnnElement::Note, std::size(notes), &count,
                                      notes),
         "cudnnBackendGetAttribute");
  return !failed && std::find(notes, notes + count, cuda::DnnNote::Nondeterministic) == notes + count;
}

/// Whether it is a plan now. That an engine cannot be compiled is no failure: there may be others.
bool AttentionCall::tryConfig(cuda::DnnDescriptor config) {
  if (!isSameInEveryRun(config))
    return false;
  cuda::DnnDescriptor plan = create(DnnKind::ExecutionPlan);
  set(plan, DnnAttribute::PlanHandle, DnnElement::Handle, handle);
  set(plan, DnnAttribute::PlanConfig, config);
  if (failed)
    return false;
  if (cuda::DnnStatus status = dnn.cudnnBackendFinalize(plan); status != cuda::DnnStatus::Success) {
    refusal = status;
    return false;
  }
  int64_t count = 0, bytes = 0;
  keep(dnn.cudnnBackendGetAttribute(plan, DnnAttribute::PlanWorkspace, DnnElement::Integer, 1, &count, &bytes),
       "cudnnBackendGetAttribute");
  if (failed || uint64_t(bytes) > kMostWorkspace)
    return false;
  workspaceBytes = uint64_t(bytes);
  chosen = plan;
  return true;
}

/// Whether one of the engines offered is taken. Heuristics that know none may say so by a status.
bool AttentionCall::choose(cuda::DnnDescriptor graph, cuda::DnnHeuristics mode) {
  cuda::DnnDescriptor heuristics = create(DnnKind::Heuristics);
  set(heuristics, DnnAttribute::HeuristicsGraph, graph);
  set(heuristics, DnnAttribute::HeuristicsMode, DnnElement::HeuristicsMode, mode);
  if (failed || dnn.cudnnBackendFinalize(heuristics) != cuda::DnnStatus::Success)
    return false;
  std::vector<cuda::DnnDescriptor> configs;
  for (int64_t i = 0; i < kMostConfigs; ++i)
    configs.push_back(create(DnnKind::EngineConfig));
  int64_t count = 0;
  if (!failed)
    keep(dnn.cudnnBackendGetAttribute(heuristics, DnnAttribute::HeuristicsResults, DnnElement::Descriptor, kMostConfigs,
                                      &count, configs.data()),
         "cudnnBackendGetAttribute");
  configs.resize(failed ? 0 : size_t(std::min(count, kMostConfigs)));
  return std::any_of(configs.begin(), configs.end(), [&](cuda::DnnDescriptor config) { return tryConfig(config); });
}

/// Why cuDNN is not asked. It takes nothing else, and does not always survive the question.
static program::Status checkTensors(const program::Attention &attention, const AttentionTensors &tensors) {
  program::Element element = tensors.query.type->element;
  if (element != program::Element::F16 && element != program::Element::BF16)
    return makeError("it knows attention of f16 and bf16 only");
  int64_t queries = tensors.query.getSize(1), keys = tensors.key.getSize(1);
  if (attention.causal && keys < queries)
    return makeError("there are queries without a key");
  for (const CallTensor *tensor : {&tensors.query, &tensors.key, &tensors.value, &tensors.result}) {
    if (tensor->getStride(0) != 1)
      return makeError("components of a head do not lie side by side");
    bool isAligned = reinterpret_cast<uintptr_t>(tensor->address) % kAlignment == 0;
    for (size_t dim = 1; dim < 4; ++dim)
      isAligned &= tensor->getSize(dim) == 1 || tensor->getStride(dim) * 2 % kAlignment == 0;
    if (!isAligned || tensor->getSize(0) * 2 % kAlignment != 0)
      return makeError("heads are not multiples of ", kAlignment, " bytes");
    if (tensor->getSize(0) > 256)
      return makeError("heads have more than 256 components");
  }
  if (!tensors.mask.type)
    return kGood;
  program::Element mask = tensors.mask.type->element;
  if (mask != element && mask != program::Element::F32)
    return makeError("a mask does not have one of its types");
  if (reinterpret_cast<uintptr_t>(tensors.mask.address) % kAlignment != 0)
    return makeError("the mask begins at no multiple of ", kAlignment, " bytes");
  if (tensors.mask.getStride(0) != 1 && tensors.mask.getSize(0) != 1)
    return makeError("the mask's elements do not lie side by side");
  return kGood;
}

/// The graph, from the scores on, then who computes it. Keys are read with their last two dims exchanged: a product is of
/// rows and columns.
program::Status AttentionCall::plan(const program::Attention &attention, const AttentionTensors &tensors) {
  if (program::Status error = checkTensors(attention, tensors))
    return error;
  const Sizes &shape = tensors.query.type->shape;
  int64_t keys = tensors.key.getSize(1);
  scores = {shape[0], shape[1], shape[2], keys};
  rows = {shape[0], shape[1], shape[2], 1};
  cuda::DnnDescriptor query = addOperand(tensors.query), key = addOperand(tensors.key, /*isTurned=*/true);
  cuda::DnnDescriptor value = addOperand(tensors.value), result = addOperand(tensors.result);
  cuda::DnnDescriptor last = addVirtual(DnnType::F32, scores);
  multiply(query, key, last);
  last = compute(DnnPointwise::Multiply, addVirtual(DnnType::F32, scores), last,
                 addNumber(DnnType::F32, float(attention.scale)));
  if (tensors.mask.type)
    last = compute(DnnPointwise::Add, addVirtual(DnnType::F32, scores), last, addOperand(tensors.mask));
  if (attention.causal)
    last = hide(last, keys - shape[2]);
  multiply(weigh(last, *getDnnType(tensors.query.type->element)), value, result);
  cuda::DnnDescriptor graph = create(DnnKind::OperationGraph);
  set(graph, DnnAttribute::GraphHandle, DnnElement::Handle, handle);
  set(graph, DnnAttribute::GraphOperations, DnnElement::Descriptor, int64_t(operations.size()), operations.data());
  finish(graph);
  if (!choose(graph, cuda::DnnHeuristics::A) && !choose(graph, cuda::DnnHeuristics::Fallback) && !failed)
    failed = refusal == cuda::DnnStatus::Success
                 ? makeError("it has no engine for this attention")
                 : makeError("its engines for this attention cannot be made: ", cuda::describe(refusal));
  return failed;
}

/// The pack is made anew: where calls work in is not known before.
program::Status AttentionCall::enqueue(cuda::Stream stream, cuda::DevicePointer workspace) {
  keep(dnn.cudnnSetStream(handle, stream), "cudnnSetStream");
  cuda::DnnDescriptor pack = create(DnnKind::VariantPack);
  set(pack, DnnAttribute::PackIds, DnnElement::Integer, int64_t(ids.size()), ids.data());
  set(pack, DnnAttribute::PackPointers, DnnElement::Pointer, int64_t(addresses.size()), addresses.data());
  set(pack, DnnAttribute::PackWorkspace, DnnElement::Pointer, reinterpret_cast<void *>(workspace));
  if (finish(pack))
    keep(dnn.cudnnBackendExecute(handle, chosen, pack), "cudnnBackendExecute");
  if (pack) {
    (void)dnn.cudnnBackendDestroyDescriptor(pack);
    descriptors.pop_back();
  }
  return failed;
}

PreparedCall CudaDnn::prepare(const program::Attention &attention, const AttentionTensors &tensors) {
  auto call = std::make_unique<AttentionCall>(*dnn, handle);
  if (program::Status error = call->plan(attention, tensors))
    return *error;
  return PreparedCall(std::move(call));
}
