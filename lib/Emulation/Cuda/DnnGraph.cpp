//===- DnnGraph.cpp - graphs of operations of the emulated cuDNN ----------===//
//
// A handle is a reference to a descriptor. What has been finalized cannot be changed; what heuristics and engines say is written
// into descriptors that the caller has made for it, as in cuDNN. An execution reads the host's numbers at once, and computes
// when its stream comes to it, in memory that it leaves full of NaN.
//
//===----------------------------------------------------------------------===//
#include "DnnGraph.h"
#include "Entries.h"

using namespace cleave::cuda;
using namespace cleave::emulation;

static DescriptorRef &getRef(DnnDescriptor handle) { return *static_cast<DescriptorRef *>(handle); }

/// What a caller's array has for each element.
static size_t getElementBytes(DnnElement element) {
  switch (element) {
  case DnnElement::Boolean:
    return 1;
  case DnnElement::Handle:
  case DnnElement::Integer:
  case DnnElement::Pointer:
  case DnnElement::Descriptor:
    return 8;
  default:
    return 4;
  }
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// Numbers to the caller, as many as it has room for; with none of that, how many there are.
template <typename T>
static DnnStatus answer(const std::vector<T> &values, int64_t wanted, int64_t *count, void *elements) {
  *count = wanted == 0 ? int64_t(values.size()) : std::min<int64_t>(wanted, int64_t(values.size()));
  if (wanted > 0)
    memcpy(elements, values.data(), size_t(*count) * sizeof(T));
  return DnnStatus::Success;
}

/// The caller's descriptor becomes one that is whole.
static bool fill(DnnDescriptor handle, DnnKind kind, int engine, const DescriptorRef &graph) {
  GraphDescriptor &to = *getRef(handle);
  if (to.kind != kind || to.isFinal)
    return false;
  to.engine = engine;
  to.graph = graph;
  to.isFinal = true;
  return true;
}

/// Engines that know the graph: the caller's empty configurations become theirs.
static DnnStatus answerHeuristics(const GraphDescriptor &heuristics, int64_t wanted, int64_t *count, void *elements) {
  const DescriptorRef &graph = heuristics.values.at(DnnAttribute::HeuristicsGraph).descriptors.front();
  std::vector<int> engines;
  if (checkGraph(*graph).empty())
    engines = listEngines(heuristics.get<DnnHeuristics>(DnnAttribute::HeuristicsMode));
  auto *configs = static_cast<DnnDescriptor *>(elements);
  *count = 0;
  for (int engine : engines) {
    if (wanted > 0 && *count == wanted)
      break;
    if (wanted > 0 && !fill(configs[*count], DnnKind::EngineConfig, engine, graph))
      return DnnStatus::BadParameter;
    ++*count;
  }
  return DnnStatus::Success;
}

/// What each kind of descriptor tells once it is finalized; attributes that were set cannot be read back here.
static DnnStatus getAttribute(const DescriptorRef &of, DnnAttribute attribute, DnnElement element, int64_t wanted,
                              int64_t *count, void *elements) {
  bool isAsked = false;
  auto asks = [&](DnnKind kind, DnnAttribute name) {
    isAsked = of->kind == kind && attribute == name;
    return isAsked;
  };
  if (asks(DnnKind::Heuristics, DnnAttribute::HeuristicsResults) && element == DnnElement::Descriptor)
    return answerHeuristics(*of, wanted, count, elements);
  if (asks(DnnKind::EngineConfig, DnnAttribute::ConfigEngine) && element == DnnElement::Descriptor) {
    *count = 1;
    bool isFilled =
        wanted == 1 && fill(*static_cast<DnnDescriptor *>(elements), DnnKind::Engine, of->engine, of->graph);
    return isFilled ? DnnStatus::Success : DnnStatus::BadParameter;
  }
  if (asks(DnnKind::Engine, DnnAttribute::EngineNotes) && element == DnnElement::Note)
    return answer(getNotes(of->engine), wanted, count, elements);
  if (asks(DnnKind::ExecutionPlan, DnnAttribute::PlanWorkspace) && element == DnnElement::Integer)
    return answer(std::vector<int64_t>{getWorkspaceBytes(*of->graph)}, wanted, count, elements);
  return isAsked ? DnnStatus::AttributeType : DnnStatus::BadParameter;
}

//===----------------------------------------------------------------------===//
// Executing
//===----------------------------------------------------------------------===//

/// All tensors of a graph, each once, and which of them are written.
static std::map<int64_t, std::pair<GraphTensor, bool>> listTensors(const GraphDescriptor &graph) {
  std::map<int64_t, std::pair<GraphTensor, bool>> tensors;
  for (const DescriptorRef &operation : graph.values.at(DnnAttribute::GraphOperations).descriptors) {
    for (DnnAttribute input : getInputs(operation->kind))
      if (const GraphDescriptor *child = operation->getChild(input)) {
        GraphTensor tensor(*child);
        tensors.emplace(tensor.id, std::pair(tensor, false));
      }
    GraphTensor tensor(*operation->getChild(getOutput(operation->kind)));
    tensors.emplace(tensor.id, std::pair(tensor, true)).first->second.second = true;
  }
  return tensors;
}

/// Bytes from the first to behind the last element.
static Touch getTouch(const GraphTensor &tensor, const char *from, bool writes) {
  int64_t last = 0;
  for (size_t dim = 0; dim < tensor.sizes.size(); ++dim)
    last += (tensor.sizes[dim] - 1) * tensor.strides[dim];
  return {from, uint64_t(last + 1) * getBytes(getKind(tensor.type)), writes};
}

/// A number of the host, which the caller may change once its call has returned.
static double loadNumber(const GraphTensor &tensor, const char *from) {
  if (tensor.type != DnnType::I32)
    return loadFloat(from, getKind(tensor.type));
  int32_t number;
  memcpy(&number, from, sizeof number);
  return number;
}

/// Every tensor that is not virtual must have an address: numbers lie on the host, all else in memory of the device.
/// \param call the entry, for what is said of mistakes.
static DnnStatus execute(const char *call, StreamHandle &stream, const GraphDescriptor &plan,
                         const GraphDescriptor &pack) {
  std::map<int64_t, char *> addresses;
  std::vector<int64_t> ids = pack.getList(DnnAttribute::PackIds);
  for (size_t i = 0; i < ids.size(); ++i)
    addresses[ids[i]] = pack.get<char *>(DnnAttribute::PackPointers, i);
  HostNumbers numbers;
  std::vector<Touch> touches;
  for (const auto &[id, entry] : listTensors(*plan.graph)) {
    const auto &[tensor, isWritten] = entry;
    if (tensor.isVirtual)
      continue;
    auto address = addresses.find(id);
    if (address == addresses.end())
      return refuseCall(call, DnnStatus::BadParameter, "a tensor has no address");
    if (tensor.isByValue) {
      numbers[id] = loadNumber(tensor, address->second);
      continue;
    }
    if (reinterpret_cast<uintptr_t>(address->second) % uint64_t(tensor.alignment) != 0)
      return refuseCall(call, DnnStatus::BadParameter, "a tensor is not aligned as it was said to be");
    touches.push_back(getTouch(tensor, address->second, isWritten));
  }
  auto *workspace = pack.get<char *>(DnnAttribute::PackWorkspace);
  auto workspaceBytes = uint64_t(getWorkspaceBytes(*plan.graph));
  touches.push_back({workspace, workspaceBytes, true});
  for (const Touch &touch : touches)
    if (!isDeviceMemory(*stream.device, touch.from, touch.bytes))
      return refuseCall(call, DnnStatus::BadParameter, "an operand is not all in memory of the device");
  DescriptorRef graph = plan.graph;
  Result result = enqueue(stream, "a graph of cuDNN's", touches, [=]() -> Step {
    return [=] {
      memset(workspace, 0xff, workspaceBytes);
      computeGraph(*graph, addresses, numbers);
      return Progress::Done;
    };
  });
  return result == Result::Success ? DnnStatus::Success : DnnStatus::ExecutionFailed;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

namespace cleave::cuda {
extern "C" {

/// Kinds that nobody here asks for are not emulated.
DnnStatus cudnnBackendCreateDescriptor(DnnKind kind, DnnDescriptor *descriptor) {
  CLEAVE_ENTER_DNN();
  if (!isKnown(kind))
    return DnnStatus::NotSupported;
  *descriptor = new DescriptorRef(std::make_shared<GraphDescriptor>());
  getRef(*descriptor)->kind = kind;
  return DnnStatus::Success;
}

DnnStatus cudnnBackendDestroyDescriptor(DnnDescriptor descriptor) {
  CLEAVE_ENTER_DNN();
  delete static_cast<DescriptorRef *>(descriptor);
  return DnnStatus::Success;
}

DnnStatus cudnnBackendSetAttribute(DnnDescriptor descriptor, DnnAttribute attribute, DnnElement element, int64_t count,
                                   const void *elements) {
  CLEAVE_ENTER_DNN();
  if (!descriptor || !elements)
    return DnnStatus::NullPointer;
  GraphDescriptor &to = *getRef(descriptor);
  if (to.isFinal)
    return refuseCall(__func__, DnnStatus::BadParameter, "a descriptor that is finalized stays as it is");
  if (DnnStatus status = checkAttribute(to.kind, attribute, element, count); status != DnnStatus::Success)
    return refuseCall(__func__, status,
                      "attribute " + std::to_string(int(attribute)) + " of a descriptor of kind " +
                          std::to_string(int(to.kind)) + ", as " + std::to_string(count) + " elements of type " +
                          std::to_string(int(element)));
  AttributeValue value;
  if (element == DnnElement::Descriptor)
    for (int64_t i = 0; i < count; ++i)
      value.descriptors.push_back(getRef(static_cast<const DnnDescriptor *>(elements)[i]));
  else
    value.bytes.assign(static_cast<const char *>(elements),
                       static_cast<const char *>(elements) + size_t(count) * getElementBytes(element));
  to.values[attribute] = std::move(value);
  return DnnStatus::Success;
}

/// A plan is compiled here: engines that cannot be are found out.
DnnStatus cudnnBackendFinalize(DnnDescriptor descriptor) {
  CLEAVE_ENTER_DNN();
  if (!descriptor)
    return DnnStatus::NullPointer;
  GraphDescriptor &of = *getRef(descriptor);
  if (of.isFinal || of.kind == DnnKind::EngineConfig || of.kind == DnnKind::Engine)
    return refuseCall(__func__, DnnStatus::BadParameter, "a descriptor is finalized once, and answers never");
  if (std::string why = checkComplete(of); !why.empty())
    return refuseCall(__func__, DnnStatus::BadParameter, why);
  if (of.kind == DnnKind::ExecutionPlan) {
    const GraphDescriptor &config = *of.getChild(DnnAttribute::PlanConfig);
    if (!canCompile(config.engine))
      return DnnStatus::NotSupported;
    of.engine = config.engine;
    of.graph = config.graph;
  }
  of.isFinal = true;
  return DnnStatus::Success;
}

DnnStatus cudnnBackendGetAttribute(DnnDescriptor descriptor, DnnAttribute attribute, DnnElement element, int64_t wanted,
                                   int64_t *count, void *elements) {
  CLEAVE_ENTER_DNN();
  if (!descriptor || !count || (wanted > 0 && !elements))
    return DnnStatus::NullPointer;
  if (!getRef(descriptor)->isFinal)
    return refuseCall(__func__, DnnStatus::NotInitialized, "a descriptor that is not finalized knows nothing");
  return getAttribute(getRef(descriptor), attribute, element, wanted, count, elements);
}

DnnStatus cudnnBackendExecute(DnnHandle handle, DnnDescriptor plan, DnnDescriptor pack) {
  CLEAVE_ENTER_DNN();
  if (!handle || !plan || !pack)
    return DnnStatus::NullPointer;
  const GraphDescriptor &how = *getRef(plan), &with = *getRef(pack);
  if (!how.isFinal || !with.isFinal || how.kind != DnnKind::ExecutionPlan || with.kind != DnnKind::VariantPack)
    return refuseCall(__func__, DnnStatus::NotFinalized, "a plan and a pack, both finalized, are executed");
  StreamHandle *stream = getStream(handle->stream);
  if (!stream)
    return DnnStatus::NotInitialized;
  if (how.engine == 0)
    return refuseCall(__func__, DnnStatus::NotSupported, "this engine gives other bits in every run");
  Lock lock(stream->device->mutex);
  return execute(__func__, *stream, how, with);
}

} // extern "C"
} // namespace cleave::cuda
