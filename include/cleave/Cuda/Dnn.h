//===- Dnn.h - what Cleave calls of cuDNN -----------------------*- C++ -*-===//
//
// As Driver.h, for cuDNN 9. Convolutions are calls of their own, which cuDNN keeps beside the newer way, graphs of
// operations. They say in one call what Cleave wants: a convolution, a residual, a bias, relu, in f32 without TF32
// (`CUDNN_FMA_MATH`), which graphs only fuse for halves; a description of that as a graph would have thirty attributes.
// Attention is such a graph (DnnGraph.h): there is no call for it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CUDA_DNN_H
#define CLEAVE_CUDA_DNN_H

#include "cleave/Cuda/DnnGraph.h"
#include "cleave/Cuda/Driver.h"

namespace cleave::cuda {

// Descriptors are made empty, then set: of images, filters, how windows move, and what is done last.
using DnnHandle = struct DnnContext *;
using DnnTensor = struct DnnTensorHandle *;
using DnnFilter = struct DnnFilterHandle *;
using DnnConvolution = struct DnnConvolutionHandle *;
using DnnActivation = struct DnnActivationHandle *;

/// cudnnStatus_t. Thousands say what kind it is: 1 set-up, 2 what was asked for, 3 what is not supported, 4 and 5 faults.
enum class DnnStatus : int {
  Success = 0,
  NotInitialized = 1001,
  SublibraryLoadingFailed = 1008,
  BadParameter = 2000,
  NullPointer = 2002,
  NotFinalized = 2004,
  ShapeMismatch = 2008,
  AttributeType = 2010,
  NotSupported = 3000,
  PatternNotSupported = 3001,
  ShapeNotSupported = 3002,
  TypeNotSupported = 3003,
  LayoutNotSupported = 3004,
  InternalError = 4000,
  ExecutionFailed = 5000,
};

/// cudnnDataType_t.
enum class DnnType : int { F32 = 0, F64 = 1, F16 = 2, I32 = 4, BF16 = 9, Boolean = 11 };
/// cudnnTensorFormat_t, of filters: [C out, C in, spatial..], or [C out, spatial.., C in].
enum class DnnFormat : int { ChannelsFirst = 0, ChannelsLast = 1 };
/// cudnnConvolutionMode_t.
enum class DnnMode : int { Convolution = 0, CrossCorrelation = 1 };
/// cudnnMathType_t: `Fma` never rounds operands to TF32.
enum class DnnMath : int { Default = 0, TensorOp = 1, Fma = 3 };
/// cudnnActivationMode_t.
enum class DnnActivationMode : int { Relu = 1, Identity = 5 };
/// cudnnNanPropagation_t.
enum class DnnNan : int { No = 0, Yes = 1 };
/// cudnnDeterminism_t.
enum class DnnDeterminism : int { No = 0, Yes = 1 };
/// cudnnConvolutionFwdAlgo_t. With a bias and no activation cuDNN takes `PrecomputedGemm` alone.
enum class DnnAlgorithm : int { Gemm = 0, PrecomputedGemm = 1 };

/// cudnnConvolutionFwdAlgoPerf_t.
struct DnnChoice {
  DnnAlgorithm algorithm;
  DnnStatus status;
  float time;
  size_t workspaceBytes;
  DnnDeterminism determinism;
  DnnMath math;
  int reserved[3];
};

// A convolution is planned once, and then called as often as one likes:
//
//   cudnnSetTensorNdDescriptor .. cudnnSetConvolutionNdDescriptor     shapes and windows
//   cudnnGetConvolutionForwardAlgorithm_v7                            algorithms, the fastest first
//   cudnnConvolutionForward                                           Y = alpha conv(X, W) + beta Y
//   cudnnConvolutionBiasActivationForward                             Y = activation(alpha conv(X, W) + beta Z + bias)
//
// Pads are the same at both ends of a dim. A handle works on the stream that it was told last.

/// All return a DnnStatus. Dims of tensors are [N, C, spatial..], whatever their strides.
#define CLEAVE_CUDA_DNN_ENTRIES(ENTRY)                                                                                 \
  ENTRY(cudnnCreate, (DnnHandle * handle))                                                                             \
  ENTRY(cudnnDestroy, (DnnHandle handle))                                                                              \
  ENTRY(cudnnSetStream, (DnnHandle handle, Stream stream))                                                             \
  ENTRY(cudnnCreateTensorDescriptor, (DnnTensor * tensor))                                                             \
  ENTRY(cudnnDestroyTensorDescriptor, (DnnTensor tensor))                                                              \
  ENTRY(cudnnSetTensorNdDescriptor,                                                                                    \
        (DnnTensor tensor, DnnType type, int dims, const int sizes[], const int strides[]))                            \
  ENTRY(cudnnCreateFilterDescriptor, (DnnFilter * filter))                                                             \
  ENTRY(cudnnDestroyFilterDescriptor, (DnnFilter filter))                                                              \
  ENTRY(cudnnSetFilterNdDescriptor, (DnnFilter filter, DnnType type, DnnFormat format, int dims, const int sizes[]))   \
  ENTRY(cudnnCreateConvolutionDescriptor, (DnnConvolution * convolution))                                              \
  ENTRY(cudnnDestroyConvolutionDescriptor, (DnnConvolution convolution))                                               \
  ENTRY(cudnnSetConvolutionNdDescriptor, (DnnConvolution convolution, int dims, const int pads[], const int strides[], \
                                          const int dilations[], DnnMode mode, DnnType compute))                       \
  ENTRY(cudnnSetConvolutionGroupCount, (DnnConvolution convolution, int groups))                                       \
  ENTRY(cudnnSetConvolutionMathType, (DnnConvolution convolution, DnnMath math))                                       \
  ENTRY(cudnnCreateActivationDescriptor, (DnnActivation * activation))                                                 \
  ENTRY(cudnnDestroyActivationDescriptor, (DnnActivation activation))                                                  \
  ENTRY(cudnnSetActivationDescriptor,                                                                                  \
        (DnnActivation activation, DnnActivationMode mode, DnnNan propagates, double coefficient))                     \
  ENTRY(cudnnGetConvolutionForwardAlgorithm_v7,                                                                        \
        (DnnHandle handle, DnnTensor input, DnnFilter filter, DnnConvolution convolution, DnnTensor result,            \
         int wanted, int *found, DnnChoice *choices))                                                                  \
  ENTRY(cudnnGetConvolutionForwardWorkspaceSize,                                                                       \
        (DnnHandle handle, DnnTensor input, DnnFilter filter, DnnConvolution convolution, DnnTensor result,            \
         DnnAlgorithm algorithm, size_t *bytes))                                                                       \
  ENTRY(cudnnConvolutionForward,                                                                                       \
        (DnnHandle handle, const void *alpha, DnnTensor inputTensor, const void *input, DnnFilter filterShape,         \
         const void *filter, DnnConvolution convolution, DnnAlgorithm algorithm, void *workspace,                      \
         size_t workspaceBytes, const void *beta, DnnTensor resultTensor, void *result))                               \
  ENTRY(cudnnConvolutionBiasActivationForward,                                                                         \
        (DnnHandle handle, const void *alpha, DnnTensor inputTensor, const void *input, DnnFilter filterShape,         \
         const void *filter, DnnConvolution convolution, DnnAlgorithm algorithm, void *workspace,                      \
         size_t workspaceBytes, const void *beta, DnnTensor residualTensor, const void *residual,                      \
         DnnTensor biasTensor, const void *bias, DnnActivation activation, DnnTensor resultTensor, void *result))      \
  ENTRY(cudnnBackendCreateDescriptor, (DnnKind kind, DnnDescriptor * descriptor))                                      \
  ENTRY(cudnnBackendDestroyDescriptor, (DnnDescriptor descriptor))                                                     \
  ENTRY(cudnnBackendFinalize, (DnnDescriptor descriptor))                                                              \
  ENTRY(cudnnBackendSetAttribute,                                                                                      \
        (DnnDescriptor descriptor, DnnAttribute attribute, DnnElement element, int64_t count, const void *elements))   \
  ENTRY(cudnnBackendGetAttribute, (DnnDescriptor descriptor, DnnAttribute attribute, DnnElement element,               \
                                   int64_t wanted, int64_t *count, void *elements))                                    \
  ENTRY(cudnnBackendExecute, (DnnHandle handle, DnnDescriptor plan, DnnDescriptor pack))

#define CLEAVE_CUDA_MEMBER(name, parameters) DnnStatus(*name) parameters = nullptr;
/// libcudnn.
struct Dnn {
  CLEAVE_CUDA_DNN_ENTRIES(CLEAVE_CUDA_MEMBER)
};
#undef CLEAVE_CUDA_MEMBER

} // namespace cleave::cuda

#endif // CLEAVE_CUDA_DNN_H
