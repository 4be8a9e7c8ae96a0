//===- CudaDnn.cpp - convolutions by cuDNN --------------------------------===//
//
// A convolution is one call: with a bias the one that adds it, and a residual, and takes relu; without all of that the plain
// one. What cuDNN has no words for goes to the kernel:
//
//   pads that differ at both ends, unless no window reaches the additional ones
//   a residual or an activation without a bias
//   filters that lie neither channels first nor channels last
//
// Of cuDNN's algorithms the first is taken that gives the same bits in every run, and needs no more memory than there is.
//
//===----------------------------------------------------------------------===//
#include "CudaLibraries.h"

#include <algorithm>
#include <climits>

using namespace cleave::runtime;
namespace cuda = cleave::cuda;
namespace program = cleave::program;
using program::kGood;
using program::makeError;

/// Sizes or strides as cuDNN takes them.
using Ints = std::vector<int>;

std::optional<cuda::DnnType> cleave::runtime::getDnnType(program::Element element) {
  switch (element) {
  case program::Element::F16:
    return cuda::DnnType::F16;
  case program::Element::BF16:
    return cuda::DnnType::BF16;
  case program::Element::F32:
    return cuda::DnnType::F32;
  case program::Element::F64:
    return cuda::DnnType::F64;
  default:
    return std::nullopt;
  }
}

/// [N, spatial.., C] as [N, C, spatial..], with a spatial dim of 1 in front where there is one alone: cuDNN wants two.
/// \param added what stands for that dim.
static std::optional<Ints> toChannelsFirst(const std::vector<int64_t> &list, int64_t added) {
  std::vector<int64_t> moved{list.front(), list.back()};
  if (list.size() == 3)
    moved.push_back(added);
  moved.insert(moved.end(), list.begin() + 1, list.end() - 1);
  if (std::any_of(moved.begin(), moved.end(), [](int64_t number) { return number > INT_MAX; }))
    return std::nullopt;
  return Ints(moved.begin(), moved.end());
}

/// A number for each spatial dim.
static Ints toSpatial(const std::vector<int64_t> &list, int added) {
  Ints result(list.begin(), list.end());
  if (result.size() == 1)
    result.insert(result.begin(), added);
  return result;
}

/// Whether dims in this order, outermost first, lie one behind another.
static bool liesDense(const CallTensor &tensor, const std::vector<size_t> &order) {
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= tensor.type->shape[order[i]])
    if (tensor.type->shape[order[i]] != 1 && tensor.strides[order[i]] != stride)
      return false;
  return true;
}

static bool isChannelsLast(const CallTensor &image) { return image.getSize(0) == 1 || image.getStride(0) == 1; }

/// How the filter [C out, spatial.., C in] lies; nothing if it is neither. Of one tap it is both, and taken for what the images
/// are: cuDNN has no channels last in the filter alone.
static std::optional<cuda::DnnFormat> getFormat(const CallTensors &tensors) {
  const CallTensor &filter = tensors.b;
  std::vector<size_t> last, first{0, filter.strides.size() - 1};
  for (size_t i = 0; i < filter.strides.size(); ++i)
    last.push_back(i);
  first.insert(first.end(), last.begin() + 1, last.end() - 1);
  bool areLast = isChannelsLast(tensors.a) && isChannelsLast(tensors.result);
  if (liesDense(filter, last) && (areLast || !liesDense(filter, first)))
    return cuda::DnnFormat::ChannelsLast;
  return liesDense(filter, first) ? std::optional(cuda::DnnFormat::ChannelsFirst) : std::nullopt;
}

/// Whether windows from the lower pad on, as many as there is room for with as much at the upper end, are those wanted.
static bool hasEqualPads(const program::Convolution &conv, const CallTensors &tensors) {
  for (size_t i = 0; i < conv.strides.size(); ++i) {
    int64_t reach = (tensors.b.type->shape[i + 1] - 1) * conv.dilations[i] + 1;
    int64_t room = tensors.a.type->shape[i + 1] + 2 * conv.padsLow[i] - reach;
    if (room < 0 || room / conv.strides[i] + 1 != tensors.result.type->shape[i + 1])
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {

/// A convolution, with cuDNN's descriptors.
class ConvolutionCall final : public LibraryCall {
public:
  ConvolutionCall(const cuda::Dnn &dnn, cuda::DnnHandle handle) : dnn(dnn), handle(handle) {}
  ~ConvolutionCall() override;
  program::Status plan(const program::Convolution &conv, const CallTensors &tensors);
  program::Status enqueue(cuda::Stream stream, cuda::DevicePointer workspace) override;

private:
  /// The first error of several calls is kept.
  void keep(cuda::DnnStatus status, const char *what) {
    if (!failed && status != cuda::DnnStatus::Success)
      failed = makeError(what, ": ", cuda::describe(status));
  }
  cuda::DnnTensor describe(const CallTensor &tensor);
  cuda::DnnTensor describeBias(const CallTensor &bias, size_t dims);
  void describeFilter(const CallTensor &tensor, cuda::DnnFormat format);
  void describeWindow(const program::Convolution &conv);
  void choose(bool hasIdentity);

  const cuda::Dnn &dnn;
  cuda::DnnHandle handle;
  std::vector<cuda::DnnTensor> descriptors; ///< all that were made
  cuda::DnnTensor input = nullptr, result = nullptr, residual = nullptr, bias = nullptr;
  cuda::DnnFilter filter = nullptr;
  cuda::DnnConvolution window = nullptr;
  cuda::DnnActivation activation = nullptr;
  cuda::DnnAlgorithm algorithm = cuda::DnnAlgorithm::PrecomputedGemm;
  CallTensors tensors;
  bool isWide = false; ///< numbers are f64
  program::Status failed;
};

} // namespace

ConvolutionCall::~ConvolutionCall() {
  for (cuda::DnnTensor tensor : descriptors)
    (void)dnn.cudnnDestroyTensorDescriptor(tensor);
  if (filter)
    (void)dnn.cudnnDestroyFilterDescriptor(filter);
  if (window)
    (void)dnn.cudnnDestroyConvolutionDescriptor(window);
  if (activation)
    (void)dnn.cudnnDestroyActivationDescriptor(activation);
}

cuda::DnnTensor ConvolutionCall::describe(const CallTensor &tensor) {
  const std::vector<int64_t> &shape = tensor.type->shape;
  // The dim that is put in front of the only spatial one steps over all of it.
  int64_t over = tensor.strides.size() == 3 ? shape[1] * tensor.strides[1] : 0;
  std::optional<Ints> sizes = toChannelsFirst(shape, 1), strides = toChannelsFirst(tensor.strides, over);
  if (!sizes || !strides) {
    failed = makeError("a tensor is too large for it");
    return nullptr;
  }
  cuda::DnnTensor made = nullptr;
  keep(dnn.cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor");
  if (failed)
    return nullptr;
  descriptors.push_back(made);
  keep(dnn.cudnnSetTensorNdDescriptor(made, *getDnnType(tensor.type->element), int(sizes->size()), sizes->data(),
                                      strides->data()),
       "cudnnSetTensorNdDescriptor");
  return made;
}

/// [1, C, 1, 1]
cuda::DnnTensor ConvolutionCall::describeBias(const CallTensor &tensor, size_t dims) {
  program::Type type{tensor.type->element, std::vector<int64_t>(dims, 1), {}};
  type.shape.back() = tensor.type->shape.front();
  CallTensor spread{&type, std::vector<int64_t>(dims, type.shape.back()), tensor.address};
  spread.strides.back() = 1;
  return describe(spread);
}

void ConvolutionCall::describeFilter(const CallTensor &tensor, cuda::DnnFormat format) {
  std::optional<Ints> sizes = toChannelsFirst(tensor.type->shape, 1);
  keep(dnn.cudnnCreateFilterDescriptor(&filter), "cudnnCreateFilterDescriptor");
  if (!failed)
    keep(dnn.cudnnSetFilterNdDescriptor(filter, *getDnnType(tensor.type->element), format, int(sizes->size()),
                                        sizes->data()),
         "cudnnSetFilterNdDescriptor");
}

void ConvolutionCall::describeWindow(const program::Convolution &conv) {
  Ints pads = toSpatial(conv.padsLow, 0), strides = toSpatial(conv.strides, 1),
       dilations = toSpatial(conv.dilations, 1);
  keep(dnn.cudnnCreateConvolutionDescriptor(&window), "cudnnCreateConvolutionDescriptor");
  if (failed)
    return;
  keep(dnn.cudnnSetConvolutionNdDescriptor(window, int(pads.size()), pads.data(), strides.data(), dilations.data(),
                                           cuda::DnnMode::CrossCorrelation,
                                           isWide ? cuda::DnnType::F64 : cuda::DnnType::F32),
       "cudnnSetConvolutionNdDescriptor");
  keep(dnn.cudnnSetConvolutionGroupCount(window, int(conv.groups)), "cudnnSetConvolutionGroupCount");
  // f32 stays f32 unless the program says otherwise; halves are multiplied as such in any case.
  bool isHalf = program::getElementBytes(tensors.a.type->element) == 2;
  keep(dnn.cudnnSetConvolutionMathType(window, isHalf      ? cuda::DnnMath::TensorOp
                                               : conv.tf32 ? cuda::DnnMath::Default
                                                           : cuda::DnnMath::Fma),
       "cudnnSetConvolutionMathType");
}

/// cuDNN's own order, the fastest first; where only one will do, that.
void ConvolutionCall::choose(bool hasIdentity) {
  size_t bytes = 0;
  if (hasIdentity) {
    algorithm = cuda::DnnAlgorithm::PrecomputedGemm;
    keep(dnn.cudnnGetConvolutionForwardWorkspaceSize(handle, input, filter, window, result, algorithm, &bytes),
         "cudnnGetConvolutionForwardWorkspaceSize");
    if (!failed && bytes > kMostWorkspace)
      failed = makeError("it needs ", bytes, " bytes to work in");
    workspaceBytes = bytes;
    return;
  }
  cuda::DnnChoice choices[8] = {};
  int found = 0;
  keep(dnn.cudnnGetConvolutionForwardAlgorithm_v7(handle, input, filter, window, result, 8, &found, choices),
       "cudnnGetConvolutionForwardAlgorithm_v7");
  auto *end = choices + (failed ? 0 : found);
  auto *chosen = std::find_if(choices, end, [](const cuda::DnnChoice &choice) {
    return choice.status == cuda::DnnStatus::Success && choice.determinism == cuda::DnnDeterminism::Yes &&
           choice.workspaceBytes <= kMostWorkspace;
  });
  if (chosen == end) {
    failed = failed ? failed : makeError("it knows no algorithm");
    return;
  }
  algorithm = chosen->algorithm;
  workspaceBytes = chosen->workspaceBytes;
}

program::Status ConvolutionCall::plan(const program::Convolution &conv, const CallTensors &given) {
  tensors = given;
  std::optional<cuda::DnnFormat> format = getFormat(tensors);
  bool isEpilogue = conv.activation != program::Activation::None || tensors.residual.type;
  if (conv.activation != program::Activation::None && conv.activation != program::Activation::Relu)
    return makeError("it has no such activation");
  if (isEpilogue && !tensors.bias.type)
    return makeError("it takes a residual and relu with a bias only");
  if (!format)
    return makeError("the filter has channels neither first nor last");
  if (tensors.a.type->shape.size() > 5)
    return makeError("it knows up to three spatial dims");
  if (!hasEqualPads(conv, tensors))
    return makeError("pads differ at both ends");
  isWide = tensors.a.type->element == program::Element::F64;
  for (const CallTensor *tensor : {&tensors.a, &tensors.result})
    if (!getDnnType(tensor->type->element))
      return makeError("it has no such type");
  input = describe(tensors.a);
  if (!failed)
    result = describe(tensors.result);
  if (!failed)
    describeFilter(tensors.b, *format);
  if (!failed)
    describeWindow(conv);
  residual = result;
  if (!failed && tensors.residual.type)
    residual = describe(tensors.residual);
  if (!failed && tensors.bias.type) {
    bias = describeBias(tensors.bias, tensors.result.type->shape.size());
    keep(dnn.cudnnCreateActivationDescriptor(&activation), "cudnnCreateActivationDescriptor");
  }
  bool hasRelu = conv.activation == program::Activation::Relu;
  if (!failed && activation)
    keep(dnn.cudnnSetActivationDescriptor(activation,
                                          hasRelu ? cuda::DnnActivationMode::Relu : cuda::DnnActivationMode::Identity,
                                          cuda::DnnNan::Yes, 0),
         "cudnnSetActivationDescriptor");
  if (!failed)
    choose(bias && !hasRelu);
  return failed;
}

/// Without a residual the result stands for it, times 0.
program::Status ConvolutionCall::enqueue(cuda::Stream stream, cuda::DevicePointer workspace) {
  float numbers[] = {1, tensors.residual.type ? 1.f : 0.f};
  double wideNumbers[] = {1, numbers[1]};
  const void *alpha = isWide ? static_cast<const void *>(&wideNumbers[0]) : &numbers[0];
  const void *beta = isWide ? static_cast<const void *>(&wideNumbers[1]) : &numbers[1];
  keep(dnn.cudnnSetStream(handle, stream), "cudnnSetStream");
  auto *room = reinterpret_cast<void *>(workspace);
  if (failed)
    return failed;
  if (!bias)
    keep(dnn.cudnnConvolutionForward(handle, alpha, input, tensors.a.address, filter, tensors.b.address, window,
                                     algorithm, room, workspaceBytes, beta, result, tensors.result.address),
         "cudnnConvolutionForward");
  else
    keep(dnn.cudnnConvolutionBiasActivationForward(
             handle, alpha, input, tensors.a.address, filter, tensors.b.address, window, algorithm, room,
             workspaceBytes, beta, residual, tensors.residual.type ? tensors.residual.address : tensors.result.address,
             bias, tensors.bias.address, activation, result, tensors.result.address),
         "cudnnConvolutionBiasActivationForward");
  return failed;
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

program::Status CudaDnn::open() {
  program::Result<const cuda::Dnn *> opened = cuda::openDnn();
  if (!opened)
    return opened.getError();
  dnn = *opened;
  if (cuda::DnnStatus status = dnn->cudnnCreate(&handle); status != cuda::DnnStatus::Success)
    return makeError("cudnnCreate: ", cuda::describe(status));
  return kGood;
}

CudaDnn::~CudaDnn() {
  if (handle)
    (void)dnn->cudnnDestroy(handle);
}

PreparedCall CudaDnn::prepare(const program::Convolution &conv, const CallTensors &tensors) {
  auto call = std::make_unique<ConvolutionCall>(*dnn, handle);
  if (program::Status error = call->plan(conv, tensors))
    return *error;
  return PreparedCall(std::move(call));
}
