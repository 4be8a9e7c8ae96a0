//===- Dnn.cpp - cuDNN as a plain convolution -----------------------------===//
//
//   Y = activation(alpha conv(X, W) + beta Z + bias)
//
// Tensors may have any strides; filters are dense, channels first or last. Operands are put into dense arrays of f32 (f64 for
// f64) first; sums go along channels, then taps, in order. As cuDNN does, it wants channels last everywhere where the filter
// has them so, and takes a bias without an activation with one algorithm only.
//
//===----------------------------------------------------------------------===//
#include "Dnn.h"
#include "Entries.h"

#include <algorithm>
#include <array>

using namespace cleave::cuda;
using namespace cleave::emulation;

/// Dims behind the batch and the channels, always as many: those that are not there have size 1.
static constexpr size_t kSpatial = 3;
using Spatial = std::array<int64_t, kSpatial>;

namespace cleave::cuda {
/// [N, C, spatial..]
struct DnnTensorHandle {
  DnnType type = DnnType::F32;
  int64_t batch = 0, channels = 0, batchStride = 0, channelStride = 0;
  Spatial sizes{}, strides{};
};
/// Channels of a group in, of all groups out.
struct DnnFilterHandle {
  DnnType type = DnnType::F32;
  DnnFormat format = DnnFormat::ChannelsFirst;
  int64_t out = 0, in = 0;
  Spatial sizes{};
};
struct DnnConvolutionHandle {
  Spatial pads{}, strides{}, dilations{};
  int64_t groups = 1;
  DnnMath math = DnnMath::Default;
  DnnType compute = DnnType::F32;
};
struct DnnActivationHandle {
  DnnActivationMode mode = DnnActivationMode::Identity;
};
} // namespace cleave::cuda

/// An algorithm that there is, and that gives other bits in every run: nobody who wants the same may take it.
static constexpr auto kWinograd = DnnAlgorithm(6);

namespace {
/// A convolution with all that it needs, as it stood when it was enqueued.
struct Convolved {
  DnnTensorHandle x, y, z, bias;
  DnnFilterHandle w;
  DnnConvolutionHandle window;
  DnnActivationMode activation = DnnActivationMode::Identity;
  const char *px = nullptr, *pw = nullptr, *pz = nullptr, *pbias = nullptr;
  char *py = nullptr;
  double alpha = 1, beta = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

/// Calls `fn` at each place of a box.
template <typename Fn> static void over(const Spatial &sizes, Fn fn) {
  Spatial at{};
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2])
        fn(at);
}

static int64_t getPlace(const Spatial &at, const Spatial &strides) {
  return at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2];
}

/// Strides of dense spatial dims.
static Spatial getDense(const Spatial &sizes) { return {sizes[1] * sizes[2], sizes[2], 1}; }
static int64_t count(const Spatial &sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/// Elements between one and the same of the next batch, in bytes.
static int64_t getOffset(const DnnTensorHandle &tensor, int64_t n, int64_t c, const Spatial &at) {
  return (n * tensor.batchStride + c * tensor.channelStride + getPlace(at, tensor.strides)) *
         int64_t(getBytes(getKind(tensor.type)));
}

/// All of a tensor, dense.
template <typename T> static std::vector<T> gather(const DnnTensorHandle &tensor, const char *from, bool isTf32) {
  std::vector<T> values;
  for (int64_t n = 0; n < tensor.batch; ++n)
    for (int64_t c = 0; c < tensor.channels; ++c)
      over(tensor.sizes, [&](const Spatial &at) {
        double value = loadFloat(from + getOffset(tensor, n, c, at), getKind(tensor.type));
        values.push_back(isTf32 ? T(roundToTf32(float(value))) : T(value));
      });
  return values;
}

/// A filter as a tensor of as many batches as there are channels out.
static DnnTensorHandle asTensor(const DnnFilterHandle &filter) {
  bool isLast = filter.format == DnnFormat::ChannelsLast;
  DnnTensorHandle tensor{filter.type, filter.out, filter.in, filter.in * count(filter.sizes), 0, filter.sizes, {}};
  tensor.channelStride = isLast ? 1 : count(filter.sizes);
  tensor.strides = getDense(filter.sizes);
  if (isLast)
    for (int64_t &stride : tensor.strides)
      stride *= filter.in;
  return tensor;
}

/// One channel of the result. A tap outside of the input adds nothing.
template <typename T>
static std::vector<T> convolve(const Convolved &p, const std::vector<T> &x, const std::vector<T> &w, int64_t n,
                               int64_t k) {
  int64_t group = k / (p.w.out / p.window.groups);
  std::vector<T> sums(size_t(count(p.y.sizes)));
  for (int64_t c = 0; c < p.w.in; ++c) {
    const T *plane = &x[size_t((n * p.x.channels + group * p.w.in + c) * count(p.x.sizes))];
    const T *taps = &w[size_t((k * p.w.in + c) * count(p.w.sizes))];
    over(p.w.sizes, [&](const Spatial &tap) {
      T factor = taps[getPlace(tap, getDense(p.w.sizes))];
      size_t next = 0;
      over(p.y.sizes, [&](const Spatial &at) {
        Spatial from{};
        bool isInside = true;
        for (size_t dim = 0; dim < kSpatial; ++dim) {
          from[dim] = at[dim] * p.window.strides[dim] - p.window.pads[dim] + tap[dim] * p.window.dilations[dim];
          isInside &= from[dim] >= 0 && from[dim] < p.x.sizes[dim];
        }
        if (isInside)
          sums[next] += factor * plane[getPlace(from, getDense(p.x.sizes))];
        ++next;
      });
    });
  }
  return sums;
}

/// NaN stays NaN under relu, as the caller asks.
template <typename T> static void compute(const Convolved &p) {
  bool isTf32 = p.x.type == DnnType::F32 && p.window.math != DnnMath::Fma;
  std::vector<T> x = gather<T>(p.x, p.px, isTf32), w = gather<T>(asTensor(p.w), p.pw, isTf32);
  for (int64_t n = 0; n < p.y.batch; ++n)
    for (int64_t k = 0; k < p.y.channels; ++k) {
      std::vector<T> sums = convolve(p, x, w, n, k);
      size_t next = 0;
      over(p.y.sizes, [&](const Spatial &at) {
        T value = T(p.alpha) * sums[next++];
        if (p.beta != 0)
          value += T(p.beta) * T(loadFloat(p.pz + getOffset(p.z, n, k, at), getKind(p.z.type)));
        if (p.pbias)
          value += T(loadFloat(p.pbias + getOffset(p.bias, 0, k, {}), getKind(p.bias.type)));
        if (p.activation == DnnActivationMode::Relu)
          value = value < 0 ? T(0) : value;
        storeFloat(p.py + getOffset(p.y, n, k, at), getKind(p.y.type), value);
      });
    }
}

//===----------------------------------------------------------------------===//
// What fits
//===----------------------------------------------------------------------===//

/// Sizes that contradict each other are a mistake of the caller; empty if there are none.
static std::string checkShapes(const Convolved &p) {
  for (size_t dim = 0; dim < kSpatial; ++dim) {
    int64_t reach = (p.w.sizes[dim] - 1) * p.window.dilations[dim] + 1;
    int64_t room = p.x.sizes[dim] + 2 * p.window.pads[dim] - reach;
    int64_t windows = room < 0 ? 0 : room / p.window.strides[dim] + 1;
    if (windows != p.y.sizes[dim])
      return "there is room for " + std::to_string(windows) + " windows, and the result has " +
             std::to_string(p.y.sizes[dim]);
  }
  if (p.x.batch != p.y.batch || p.y.channels != p.w.out || p.x.channels != p.w.in * p.window.groups ||
      p.w.out % p.window.groups != 0)
    return "channels or batches do not fit";
  return "";
}

/// Channels side by side, and all else dense around them.
static bool isChannelsLast(const DnnTensorHandle &tensor) {
  Spatial dense = getDense(tensor.sizes);
  bool isLast = tensor.channels == 1 || tensor.channelStride == 1;
  for (size_t dim = 0; dim < kSpatial; ++dim)
    isLast &= tensor.sizes[dim] == 1 || tensor.strides[dim] == dense[dim] * tensor.channels;
  return isLast;
}

/// What cuDNN says no to, though it makes sense.
static DnnStatus checkSupport(const Convolved &p) {
  bool isWide = p.x.type == DnnType::F64;
  if (p.x.type != p.w.type || p.x.type != p.y.type || isWide != (p.window.compute == DnnType::F64) ||
      (p.window.compute != DnnType::F32 && !isWide))
    return DnnStatus::TypeNotSupported;
  if (p.w.format == DnnFormat::ChannelsLast && !(isChannelsLast(p.x) && isChannelsLast(p.y)))
    return DnnStatus::LayoutNotSupported;
  return DnnStatus::Success;
}

/// An index for each window.
static uint64_t getWorkspace(const Convolved &p, DnnAlgorithm algorithm) {
  return algorithm == DnnAlgorithm::PrecomputedGemm ? uint64_t(4 * count(p.y.sizes)) : 0;
}

/// Bytes from the first to behind the last element.
static Touch getTouch(const DnnTensorHandle &tensor, const char *from, bool writes) {
  Spatial last{tensor.sizes[0] - 1, tensor.sizes[1] - 1, tensor.sizes[2] - 1};
  uint64_t end = uint64_t(getOffset(tensor, tensor.batch - 1, tensor.channels - 1, last));
  return {from, end + getBytes(getKind(tensor.type)), writes};
}

/// All operands are known from here on: the caller may change its descriptors at once.
static DnnStatus enqueueConvolution(const char *call, DnnHandle handle, const Convolved &p, DnnAlgorithm algorithm,
                                    void *workspace, size_t workspaceBytes) {
  StreamHandle *stream = getStream(handle->stream);
  if (!stream)
    return DnnStatus::NotInitialized;
  Lock lock(stream->device->mutex);
  if (std::string why = checkShapes(p); !why.empty())
    return refuseCall(call, DnnStatus::ShapeMismatch, why);
  if (DnnStatus status = checkSupport(p); status != DnnStatus::Success)
    return status;
  if (algorithm != DnnAlgorithm::Gemm && algorithm != DnnAlgorithm::PrecomputedGemm)
    return DnnStatus::NotSupported;
  if (p.pbias && p.activation == DnnActivationMode::Identity && algorithm != DnnAlgorithm::PrecomputedGemm)
    return DnnStatus::NotSupported;
  if (workspaceBytes < getWorkspace(p, algorithm))
    return refuseCall(call, DnnStatus::BadParameter,
                      "a workspace of " + std::to_string(workspaceBytes) + " bytes, of " +
                          std::to_string(getWorkspace(p, algorithm)));
  std::vector<Touch> touches{getTouch(p.x, p.px, false), getTouch(asTensor(p.w), p.pw, false),
                             getTouch(p.y, p.py, true)};
  if (p.beta != 0)
    touches.push_back(getTouch(p.z, p.pz, false));
  if (p.pbias)
    touches.push_back(getTouch(p.bias, p.pbias, false));
  if (workspaceBytes)
    touches.push_back({static_cast<const char *>(workspace), workspaceBytes, true});
  for (const Touch &touch : touches)
    if (!isDeviceMemory(*stream->device, touch.from, touch.bytes))
      return refuseCall(call, DnnStatus::BadParameter, "an operand is not all in memory of the device");
  std::string name = "a convolution of " + std::to_string(p.x.channels) + " channels to " + std::to_string(p.w.out);
  Result result = enqueue(*stream, name, touches, [p, workspace, workspaceBytes]() -> Step {
    return [=] {
      if (workspaceBytes)
        memset(workspace, 0xff, workspaceBytes);
      p.window.compute == DnnType::F64 ? compute<double>(p) : compute<float>(p);
      return Progress::Done;
    };
  });
  return result == Result::Success ? DnnStatus::Success : DnnStatus::ExecutionFailed;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// The last of as many dims as there are; those that are not there come first.
static Spatial toSpatial(const int *numbers, int dims, int64_t otherwise) {
  Spatial spatial;
  spatial.fill(otherwise);
  std::copy(numbers, numbers + dims, spatial.end() - dims);
  return spatial;
}

/// Alpha and beta are double for f64, else float.
static double loadScale(const void *scale, DnnType type) {
  return loadFloat(static_cast<const char *>(scale), type == DnnType::F64 ? FloatKind::F64 : FloatKind::F32);
}

namespace cleave::cuda {
extern "C" {

/// A context must be current, as for the real one.
DnnStatus cudnnCreate(DnnHandle *handle) {
  CLEAVE_ENTER_DNN();
  if (!getCurrent())
    return DnnStatus::NotInitialized;
  *handle = new DnnContext;
  return DnnStatus::Success;
}
DnnStatus cudnnDestroy(DnnHandle handle) {
  CLEAVE_ENTER_DNN();
  delete handle;
  return DnnStatus::Success;
}
DnnStatus cudnnSetStream(DnnHandle handle, Stream stream) {
  CLEAVE_ENTER_DNN();
  handle->stream = stream;
  return DnnStatus::Success;
}

DnnStatus cudnnCreateTensorDescriptor(DnnTensor *tensor) {
  CLEAVE_ENTER_DNN();
  *tensor = new DnnTensorHandle;
  return DnnStatus::Success;
}
DnnStatus cudnnDestroyTensorDescriptor(DnnTensor tensor) {
  CLEAVE_ENTER_DNN();
  delete tensor;
  return DnnStatus::Success;
}
/// Four or five dims: cuDNN knows none of three.
DnnStatus cudnnSetTensorNdDescriptor(DnnTensor tensor, DnnType type, int dims, const int sizes[], const int strides[]) {
  CLEAVE_ENTER_DNN();
  if (dims < 4 || dims > 5)
    return DnnStatus::BadParameter;
  *tensor = {type,
             sizes[0],
             sizes[1],
             strides[0],
             strides[1],
             toSpatial(sizes + 2, dims - 2, 1),
             toSpatial(strides + 2, dims - 2, 0)};
  return DnnStatus::Success;
}

DnnStatus cudnnCreateFilterDescriptor(DnnFilter *filter) {
  CLEAVE_ENTER_DNN();
  *filter = new DnnFilterHandle;
  return DnnStatus::Success;
}
DnnStatus cudnnDestroyFilterDescriptor(DnnFilter filter) {
  CLEAVE_ENTER_DNN();
  delete filter;
  return DnnStatus::Success;
}
/// Sizes are [C out, C in, spatial..] in both formats.
DnnStatus cudnnSetFilterNdDescriptor(DnnFilter filter, DnnType type, DnnFormat format, int dims, const int sizes[]) {
  CLEAVE_ENTER_DNN();
  if (dims < 4 || dims > 5)
    return DnnStatus::BadParameter;
  *filter = {type, format, sizes[0], sizes[1], toSpatial(sizes + 2, dims - 2, 1)};
  return DnnStatus::Success;
}

DnnStatus cudnnCreateConvolutionDescriptor(DnnConvolution *convolution) {
  CLEAVE_ENTER_DNN();
  *convolution = new DnnConvolutionHandle;
  return DnnStatus::Success;
}
DnnStatus cudnnDestroyConvolutionDescriptor(DnnConvolution convolution) {
  CLEAVE_ENTER_DNN();
  delete convolution;
  return DnnStatus::Success;
}
/// Filters that are turned around are not emulated.
DnnStatus cudnnSetConvolutionNdDescriptor(DnnConvolution convolution, int dims, const int pads[], const int strides[],
                                          const int dilations[], DnnMode mode, DnnType compute) {
  CLEAVE_ENTER_DNN();
  if (dims < 2 || dims > 3 || mode != DnnMode::CrossCorrelation)
    return DnnStatus::NotSupported;
  convolution->pads = toSpatial(pads, dims, 0);
  convolution->strides = toSpatial(strides, dims, 1);
  convolution->dilations = toSpatial(dilations, dims, 1);
  convolution->compute = compute;
  return DnnStatus::Success;
}
DnnStatus cudnnSetConvolutionGroupCount(DnnConvolution convolution, int groups) {
  CLEAVE_ENTER_DNN();
  convolution->groups = groups;
  return groups > 0 ? DnnStatus::Success : DnnStatus::BadParameter;
}
/// With all but `Fma`, f32 is rounded to TF32.
DnnStatus cudnnSetConvolutionMathType(DnnConvolution convolution, DnnMath math) {
  CLEAVE_ENTER_DNN();
  convolution->math = math;
  return DnnStatus::Success;
}

DnnStatus cudnnCreateActivationDescriptor(DnnActivation *activation) {
  CLEAVE_ENTER_DNN();
  *activation = new DnnActivationHandle;
  return DnnStatus::Success;
}
DnnStatus cudnnDestroyActivationDescriptor(DnnActivation activation) {
  CLEAVE_ENTER_DNN();
  delete activation;
  return DnnStatus::Success;
}
/// NaN that does not go through relu is not emulated.
DnnStatus cudnnSetActivationDescriptor(DnnActivation activation, DnnActivationMode mode, DnnNan propagates, double) {
  CLEAVE_ENTER_DNN();
  if ((mode != DnnActivationMode::Relu && mode != DnnActivationMode::Identity) || propagates != DnnNan::Yes)
    return DnnStatus::NotSupported;
  activation->mode = mode;
  return DnnStatus::Success;
}

/// Three, in an order that must not be trusted: the first is not the same in every run.
DnnStatus cudnnGetConvolutionForwardAlgorithm_v7(DnnHandle, DnnTensor input, DnnFilter filter,
                                                 DnnConvolution convolution, DnnTensor result, int wanted, int *found,
                                                 DnnChoice *choices) {
  CLEAVE_ENTER_DNN();
  *found = 0;
  Convolved p;
  p.x = *input, p.w = *filter, p.window = *convolution, p.y = *result;
  if (std::string why = checkShapes(p); !why.empty())
    return refuseCall(__func__, DnnStatus::ShapeMismatch, why);
  DnnStatus status = checkSupport(p);
  for (DnnAlgorithm algorithm : {kWinograd, DnnAlgorithm::PrecomputedGemm, DnnAlgorithm::Gemm})
    if (*found < wanted)
      choices[(*found)++] = {algorithm,
                             status,
                             -1,
                             getWorkspace(p, algorithm),
                             algorithm == kWinograd ? DnnDeterminism::No : DnnDeterminism::Yes,
                             p.window.math,
                             {}};
  return DnnStatus::Success;
}

DnnStatus cudnnGetConvolutionForwardWorkspaceSize(DnnHandle, DnnTensor input, DnnFilter filter,
                                                  DnnConvolution convolution, DnnTensor result, DnnAlgorithm algorithm,
                                                  size_t *bytes) {
  CLEAVE_ENTER_DNN();
  Convolved p;
  p.x = *input, p.w = *filter, p.window = *convolution, p.y = *result;
  if (std::string why = checkShapes(p); !why.empty())
    return refuseCall(__func__, DnnStatus::ShapeMismatch, why);
  *bytes = getWorkspace(p, algorithm);
  return checkSupport(p);
}

/// Scales are read from the host now. What was in the result counts beta times.
DnnStatus cudnnConvolutionForward(DnnHandle handle, const void *alpha, DnnTensor inputTensor, const void *input,
                                  DnnFilter filterShape, const void *filter, DnnConvolution convolution,
                                  DnnAlgorithm algorithm, void *workspace, size_t workspaceBytes, const void *beta,
                                  DnnTensor resultTensor, void *result) {
  CLEAVE_ENTER_DNN();
  Convolved p;
  p.x = *inputTensor, p.w = *filterShape, p.window = *convolution, p.y = p.z = *resultTensor;
  p.px = static_cast<const char *>(input), p.pw = static_cast<const char *>(filter);
  p.pz = p.py = static_cast<char *>(result);
  p.alpha = loadScale(alpha, p.x.type), p.beta = loadScale(beta, p.x.type);
  return enqueueConvolution(__func__, handle, p, algorithm, workspace, workspaceBytes);
}

/// The residual may be the result: it is read first.
DnnStatus cudnnConvolutionBiasActivationForward(DnnHandle handle, const void *alpha, DnnTensor inputTensor,
                                                const void *input, DnnFilter filterShape, const void *filter,
                                                DnnConvolution convolution, DnnAlgorithm algorithm, void *workspace,
                                                size_t workspaceBytes, const void *beta, DnnTensor residualTensor,
                                                const void *residual, DnnTensor biasTensor, const void *bias,
                                                DnnActivation activation, DnnTensor resultTensor, void *result) {
  CLEAVE_ENTER_DNN();
  Convolved p;
  p.x = *inputTensor, p.w = *filterShape, p.window = *convolution, p.y = *resultTensor, p.z = *residualTensor;
  p.bias = *biasTensor, p.activation = activation->mode;
  p.px = static_cast<const char *>(input), p.pw = static_cast<const char *>(filter);
  p.pz = static_cast<const char *>(residual), p.pbias = static_cast<const char *>(bias);
  p.py = static_cast<char *>(result);
  p.alpha = loadScale(alpha, p.x.type), p.beta = loadScale(beta, p.x.type);
  if (p.bias.type != p.x.type || p.z.type != p.y.type)
    return DnnStatus::TypeNotSupported;
  return enqueueConvolution(__func__, handle, p, algorithm, workspace, workspaceBytes);
}

} // extern "C"
} // namespace cleave::cuda
