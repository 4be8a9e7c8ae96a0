//===- HeadersTest.cpp - our declarations against NVIDIA's ----------------===//
//
// Built where NVIDIA's headers are found. An entry that we declare as NVIDIA does has parameters of the same kind and size,
// one by one: names of types differ, what a caller puts into registers does not.
//
//===----------------------------------------------------------------------===//
#include "cleave/Cuda/Libraries.h"

#include <cublasLt.h>
#include <cuda.h>
#include <gtest/gtest.h>
#include <nccl.h>
#ifdef CLEAVE_HAS_DNN_HEADERS
#include <cudnn.h>
#endif
#include <tuple>
#include <type_traits>

namespace cuda = cleave::cuda;

/// Equal to a caller: both pointers, or both numbers (enums among them) or structures of one size.
template <typename Ours, typename Theirs> constexpr bool isAlike() {
  constexpr bool isPointer = std::is_pointer_v<Ours>;
  return isPointer == std::is_pointer_v<Theirs> && std::is_class_v<Ours> == std::is_class_v<Theirs> &&
         std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
}

template <typename... Ours, typename... Theirs>
constexpr bool haveAlikeParameters(std::tuple<Ours...> *, std::tuple<Theirs...> *) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return (isAlike<Ours, Theirs>() && ...);
  else
    return false;
}

template <typename R, typename... Ours, typename S, typename... Theirs>
constexpr bool isAlike(R (*)(Ours...), S (*)(Theirs...)) {
  return isAlike<R, S>() && haveAlikeParameters((std::tuple<Ours...> *)nullptr, (std::tuple<Theirs...> *)nullptr);
}

#if CUDA_VERSION >= 13000
// From 13 on the header calls another entry by this name, with the same parameters; the driver keeps both.
#undef cuEventElapsedTime
inline CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
#endif

TEST(CudaHeadersTest, EntriesAreDeclaredAlike) {
  int count = 0;
#define CLEAVE_CUDA_COMPARE(table, name)                                                                               \
  EXPECT_TRUE(isAlike(decltype(table::name)(), decltype (&::name)())) << #name;                                        \
  ++count;
#define CLEAVE_CUDA_DRIVER(name, parameters) CLEAVE_CUDA_COMPARE(cuda::Driver, name)
#define CLEAVE_CUDA_BLAS(name, parameters) CLEAVE_CUDA_COMPARE(cuda::Blas, name)
#define CLEAVE_CUDA_NCCL(name, parameters) CLEAVE_CUDA_COMPARE(cuda::Nccl, name)
  CLEAVE_CUDA_DRIVER_ENTRIES(CLEAVE_CUDA_DRIVER)
  CLEAVE_CUDA_BLAS_ENTRIES(CLEAVE_CUDA_BLAS)
  CLEAVE_CUDA_NCCL_ENTRIES(CLEAVE_CUDA_NCCL)
  CLEAVE_CUDA_NCCL_LATER_ENTRIES(CLEAVE_CUDA_NCCL)
  RecordProperty("entries", count);
  EXPECT_GE(count, 75);
}

template <typename A, typename B> static void expectNumber(A ours, B theirs, const char *name) {
  EXPECT_EQ(long(ours), long(theirs)) << name;
}
#define CLEAVE_NUMBER(ours, theirs) expectNumber(ours, theirs, #ours)

TEST(CudaHeadersTest, NumbersOfTheDriver) {
  using cuda::Result, cuda::DeviceAttribute, cuda::FunctionAttribute;
  CLEAVE_NUMBER(Result::InvalidValue, CUDA_ERROR_INVALID_VALUE);
  CLEAVE_NUMBER(Result::OutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  CLEAVE_NUMBER(Result::NotInitialized, CUDA_ERROR_NOT_INITIALIZED);
  CLEAVE_NUMBER(Result::Deinitialized, CUDA_ERROR_DEINITIALIZED);
  CLEAVE_NUMBER(Result::NoDevice, CUDA_ERROR_NO_DEVICE);
  CLEAVE_NUMBER(Result::InvalidDevice, CUDA_ERROR_INVALID_DEVICE);
  CLEAVE_NUMBER(Result::InvalidImage, CUDA_ERROR_INVALID_IMAGE);
  CLEAVE_NUMBER(Result::InvalidContext, CUDA_ERROR_INVALID_CONTEXT);
  CLEAVE_NUMBER(Result::NoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  CLEAVE_NUMBER(Result::InvalidPtx, CUDA_ERROR_INVALID_PTX);
  CLEAVE_NUMBER(Result::UnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CLEAVE_NUMBER(Result::SharedObjectInitFailed, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
  CLEAVE_NUMBER(Result::OperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
  CLEAVE_NUMBER(Result::InvalidHandle, CUDA_ERROR_INVALID_HANDLE);
  CLEAVE_NUMBER(Result::NotFound, CUDA_ERROR_NOT_FOUND);
  CLEAVE_NUMBER(Result::NotReady, CUDA_ERROR_NOT_READY);
  CLEAVE_NUMBER(Result::IllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
  CLEAVE_NUMBER(Result::LaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CLEAVE_NUMBER(Result::LaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  CLEAVE_NUMBER(Result::ContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CLEAVE_NUMBER(Result::IllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CLEAVE_NUMBER(Result::MisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
  CLEAVE_NUMBER(Result::LaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  CLEAVE_NUMBER(Result::NotPermitted, CUDA_ERROR_NOT_PERMITTED);
  CLEAVE_NUMBER(Result::NotSupported, CUDA_ERROR_NOT_SUPPORTED);
  CLEAVE_NUMBER(Result::SystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
  CLEAVE_NUMBER(Result::StreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CLEAVE_NUMBER(Result::StreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CLEAVE_NUMBER(Result::StreamCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CLEAVE_NUMBER(Result::StreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CLEAVE_NUMBER(Result::StreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CLEAVE_NUMBER(Result::StreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CLEAVE_NUMBER(Result::StreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CLEAVE_NUMBER(Result::CapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
  CLEAVE_NUMBER(Result::Unknown, CUDA_ERROR_UNKNOWN);
  CLEAVE_NUMBER(DeviceAttribute::MaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  CLEAVE_NUMBER(DeviceAttribute::MaxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  CLEAVE_NUMBER(DeviceAttribute::WarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  CLEAVE_NUMBER(DeviceAttribute::ClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  CLEAVE_NUMBER(DeviceAttribute::MultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CLEAVE_NUMBER(DeviceAttribute::PciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  CLEAVE_NUMBER(DeviceAttribute::PciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  CLEAVE_NUMBER(DeviceAttribute::PciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  CLEAVE_NUMBER(DeviceAttribute::MemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  CLEAVE_NUMBER(DeviceAttribute::MemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  CLEAVE_NUMBER(DeviceAttribute::L2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  CLEAVE_NUMBER(DeviceAttribute::ComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CLEAVE_NUMBER(DeviceAttribute::ComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  CLEAVE_NUMBER(DeviceAttribute::MaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  CLEAVE_NUMBER(FunctionAttribute::MaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  CLEAVE_NUMBER(FunctionAttribute::SharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  CLEAVE_NUMBER(FunctionAttribute::LocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  CLEAVE_NUMBER(FunctionAttribute::Registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
  CLEAVE_NUMBER(FunctionAttribute::MaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  CLEAVE_NUMBER(cuda::JitOption::ErrorLog, CU_JIT_ERROR_LOG_BUFFER);
  CLEAVE_NUMBER(cuda::JitOption::ErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  CLEAVE_NUMBER(cuda::CaptureMode::ThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CLEAVE_NUMBER(cuda::CaptureMode::Relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  CLEAVE_NUMBER(cuda::MemoryType::Host, CU_MEMORYTYPE_HOST);
  CLEAVE_NUMBER(cuda::MemoryType::Device, CU_MEMORYTYPE_DEVICE);
  CLEAVE_NUMBER(cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  CLEAVE_NUMBER(cuda::kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
  CLEAVE_NUMBER(cuda::kHostPortable, CU_MEMHOSTALLOC_PORTABLE);
}

TEST(CudaHeadersTest, BoxesOfTheDriver) {
  static_assert(sizeof(cuda::Copy3D) == sizeof(CUDA_MEMCPY3D));
#define CLEAVE_FIELD(ours, theirs) EXPECT_EQ(offsetof(cuda::Copy3D, ours), offsetof(CUDA_MEMCPY3D, theirs)) << #ours
  CLEAVE_FIELD(sourceY, srcY);
  CLEAVE_FIELD(sourceType, srcMemoryType);
  CLEAVE_FIELD(sourceHost, srcHost);
  CLEAVE_FIELD(sourceDevice, srcDevice);
  CLEAVE_FIELD(sourcePitch, srcPitch);
  CLEAVE_FIELD(sourceHeight, srcHeight);
  CLEAVE_FIELD(targetX, dstXInBytes);
  CLEAVE_FIELD(targetType, dstMemoryType);
  CLEAVE_FIELD(targetDevice, dstDevice);
  CLEAVE_FIELD(targetPitch, dstPitch);
  CLEAVE_FIELD(targetHeight, dstHeight);
  CLEAVE_FIELD(width, WidthInBytes);
  CLEAVE_FIELD(depth, Depth);
}

TEST(CudaHeadersTest, NumbersOfCublas) {
  using namespace cuda;
  CLEAVE_NUMBER(BlasStatus::NotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
  CLEAVE_NUMBER(BlasStatus::AllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
  CLEAVE_NUMBER(BlasStatus::InvalidValue, CUBLAS_STATUS_INVALID_VALUE);
  CLEAVE_NUMBER(BlasStatus::ArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
  CLEAVE_NUMBER(BlasStatus::MappingError, CUBLAS_STATUS_MAPPING_ERROR);
  CLEAVE_NUMBER(BlasStatus::ExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
  CLEAVE_NUMBER(BlasStatus::InternalError, CUBLAS_STATUS_INTERNAL_ERROR);
  CLEAVE_NUMBER(BlasStatus::NotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  CLEAVE_NUMBER(BlasType::F32, CUDA_R_32F);
  CLEAVE_NUMBER(BlasType::F64, CUDA_R_64F);
  CLEAVE_NUMBER(BlasType::F16, CUDA_R_16F);
  CLEAVE_NUMBER(BlasType::BF16, CUDA_R_16BF);
  CLEAVE_NUMBER(BlasType::I8, CUDA_R_8I);
  CLEAVE_NUMBER(BlasType::I32, CUDA_R_32I);
  CLEAVE_NUMBER(BlasCompute::F32, CUBLAS_COMPUTE_32F);
  CLEAVE_NUMBER(BlasCompute::F64, CUBLAS_COMPUTE_64F);
  CLEAVE_NUMBER(BlasCompute::I32, CUBLAS_COMPUTE_32I);
  CLEAVE_NUMBER(BlasCompute::F32AsTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
  CLEAVE_NUMBER(BlasTranspose::Yes, CUBLAS_OP_T);
  CLEAVE_NUMBER(BlasOrder::Columns, CUBLASLT_ORDER_COL);
  CLEAVE_NUMBER(BlasOrder::Rows, CUBLASLT_ORDER_ROW);
  CLEAVE_NUMBER(MatmulAttribute::TransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  CLEAVE_NUMBER(MatmulAttribute::TransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  CLEAVE_NUMBER(MatmulAttribute::Epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  CLEAVE_NUMBER(MatmulAttribute::BiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  CLEAVE_NUMBER(MatmulAttribute::BiasDataType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  CLEAVE_NUMBER(LayoutAttribute::Order, CUBLASLT_MATRIX_LAYOUT_ORDER);
  CLEAVE_NUMBER(LayoutAttribute::BatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  CLEAVE_NUMBER(LayoutAttribute::BatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  CLEAVE_NUMBER(PreferenceAttribute::MaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  CLEAVE_NUMBER(PreferenceAttribute::MinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  CLEAVE_NUMBER(PreferenceAttribute::MinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  CLEAVE_NUMBER(BlasEpilogue::Default, CUBLASLT_EPILOGUE_DEFAULT);
  CLEAVE_NUMBER(BlasEpilogue::Relu, CUBLASLT_EPILOGUE_RELU);
  CLEAVE_NUMBER(BlasEpilogue::Bias, CUBLASLT_EPILOGUE_BIAS);
  CLEAVE_NUMBER(BlasEpilogue::ReluBias, CUBLASLT_EPILOGUE_RELU_BIAS);
  CLEAVE_NUMBER(BlasEpilogue::Gelu, CUBLASLT_EPILOGUE_GELU);
  CLEAVE_NUMBER(BlasEpilogue::GeluBias, CUBLASLT_EPILOGUE_GELU_BIAS);
  static_assert(sizeof(MatmulAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
  static_assert(sizeof(MatmulHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(MatmulHeuristic, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
}

#ifdef CLEAVE_HAS_DNN_HEADERS
TEST(CudaHeadersTest, EntriesOfCudnnAreDeclaredAlike) {
  int count = 0;
#define CLEAVE_CUDA_DNN(name, parameters) CLEAVE_CUDA_COMPARE(cuda::Dnn, name)
  CLEAVE_CUDA_DNN_ENTRIES(CLEAVE_CUDA_DNN)
  EXPECT_EQ(count, 27);
}

TEST(CudaHeadersTest, NumbersOfCudnn) {
  using cuda::DnnStatus, cuda::DnnType, cuda::DnnMath;
  CLEAVE_NUMBER(DnnStatus::Success, CUDNN_STATUS_SUCCESS);
  CLEAVE_NUMBER(DnnStatus::NotInitialized, CUDNN_STATUS_NOT_INITIALIZED);
  CLEAVE_NUMBER(DnnStatus::SublibraryLoadingFailed, CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED);
  CLEAVE_NUMBER(DnnStatus::BadParameter, CUDNN_STATUS_BAD_PARAM);
  CLEAVE_NUMBER(DnnStatus::NullPointer, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  CLEAVE_NUMBER(DnnStatus::NotFinalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  CLEAVE_NUMBER(DnnStatus::ShapeMismatch, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  CLEAVE_NUMBER(DnnStatus::AttributeType, CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  CLEAVE_NUMBER(DnnStatus::NotSupported, CUDNN_STATUS_NOT_SUPPORTED);
  CLEAVE_NUMBER(DnnStatus::PatternNotSupported, CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
  CLEAVE_NUMBER(DnnStatus::ShapeNotSupported, CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  CLEAVE_NUMBER(DnnStatus::TypeNotSupported, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
  CLEAVE_NUMBER(DnnStatus::LayoutNotSupported, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
  CLEAVE_NUMBER(DnnStatus::InternalError, CUDNN_STATUS_INTERNAL_ERROR);
  CLEAVE_NUMBER(DnnStatus::ExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
  CLEAVE_NUMBER(DnnType::F32, CUDNN_DATA_FLOAT);
  CLEAVE_NUMBER(DnnType::F64, CUDNN_DATA_DOUBLE);
  CLEAVE_NUMBER(DnnType::F16, CUDNN_DATA_HALF);
  CLEAVE_NUMBER(DnnType::BF16, CUDNN_DATA_BFLOAT16);
  CLEAVE_NUMBER(DnnType::I32, CUDNN_DATA_INT32);
  CLEAVE_NUMBER(DnnType::Boolean, CUDNN_DATA_BOOLEAN);
  CLEAVE_NUMBER(cuda::DnnFormat::ChannelsFirst, CUDNN_TENSOR_NCHW);
  CLEAVE_NUMBER(cuda::DnnFormat::ChannelsLast, CUDNN_TENSOR_NHWC);
  CLEAVE_NUMBER(cuda::DnnMode::Convolution, CUDNN_CONVOLUTION);
  CLEAVE_NUMBER(cuda::DnnMode::CrossCorrelation, CUDNN_CROSS_CORRELATION);
  CLEAVE_NUMBER(DnnMath::Default, CUDNN_DEFAULT_MATH);
  CLEAVE_NUMBER(DnnMath::TensorOp, CUDNN_TENSOR_OP_MATH);
  CLEAVE_NUMBER(DnnMath::Fma, CUDNN_FMA_MATH);
  CLEAVE_NUMBER(cuda::DnnActivationMode::Relu, CUDNN_ACTIVATION_RELU);
  CLEAVE_NUMBER(cuda::DnnActivationMode::Identity, CUDNN_ACTIVATION_IDENTITY);
  CLEAVE_NUMBER(cuda::DnnNan::No, CUDNN_NOT_PROPAGATE_NAN);
  CLEAVE_NUMBER(cuda::DnnNan::Yes, CUDNN_PROPAGATE_NAN);
  CLEAVE_NUMBER(cuda::DnnDeterminism::No, CUDNN_NON_DETERMINISTIC);
  CLEAVE_NUMBER(cuda::DnnDeterminism::Yes, CUDNN_DETERMINISTIC);
  CLEAVE_NUMBER(cuda::DnnAlgorithm::Gemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
  CLEAVE_NUMBER(cuda::DnnAlgorithm::PrecomputedGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
  EXPECT_EQ(sizeof(cuda::DnnChoice), sizeof(cudnnConvolutionFwdAlgoPerf_t));
  EXPECT_EQ(offsetof(cuda::DnnChoice, workspaceBytes), offsetof(cudnnConvolutionFwdAlgoPerf_t, memory));
  EXPECT_EQ(offsetof(cuda::DnnChoice, determinism), offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism));
}

TEST(CudaHeadersTest, NumbersOfCudnnsGraphs) {
  using namespace cuda;
  CLEAVE_NUMBER(DnnKind::Pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::EngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::Heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::ExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::PointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::OperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::Matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::MatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::Reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  CLEAVE_NUMBER(DnnKind::ReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  CLEAVE_NUMBER(DnnAttribute::PointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  CLEAVE_NUMBER(DnnAttribute::PointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
  CLEAVE_NUMBER(DnnAttribute::PointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
  CLEAVE_NUMBER(DnnAttribute::HeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  CLEAVE_NUMBER(DnnAttribute::HeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  CLEAVE_NUMBER(DnnAttribute::HeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  CLEAVE_NUMBER(DnnAttribute::ConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
  CLEAVE_NUMBER(DnnAttribute::PlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  CLEAVE_NUMBER(DnnAttribute::PlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  CLEAVE_NUMBER(DnnAttribute::PlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  CLEAVE_NUMBER(DnnAttribute::PointwiseOfOperation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  CLEAVE_NUMBER(DnnAttribute::PointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  CLEAVE_NUMBER(DnnAttribute::PointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  CLEAVE_NUMBER(DnnAttribute::PointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  CLEAVE_NUMBER(DnnAttribute::PointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  CLEAVE_NUMBER(DnnAttribute::GraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  CLEAVE_NUMBER(DnnAttribute::GraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  CLEAVE_NUMBER(DnnAttribute::TensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  CLEAVE_NUMBER(DnnAttribute::TensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  CLEAVE_NUMBER(DnnAttribute::TensorSizes, CUDNN_ATTR_TENSOR_DIMENSIONS);
  CLEAVE_NUMBER(DnnAttribute::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  CLEAVE_NUMBER(DnnAttribute::TensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  CLEAVE_NUMBER(DnnAttribute::TensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  CLEAVE_NUMBER(DnnAttribute::TensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  CLEAVE_NUMBER(DnnAttribute::PackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  CLEAVE_NUMBER(DnnAttribute::PackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  CLEAVE_NUMBER(DnnAttribute::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  CLEAVE_NUMBER(DnnAttribute::EngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  CLEAVE_NUMBER(DnnAttribute::MatmulPrecision, CUDNN_ATTR_MATMUL_COMP_TYPE);
  CLEAVE_NUMBER(DnnAttribute::MatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  CLEAVE_NUMBER(DnnAttribute::MatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  CLEAVE_NUMBER(DnnAttribute::MatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  CLEAVE_NUMBER(DnnAttribute::MatmulOfOperation, CUDNN_ATTR_OPERATION_MATMUL_DESC);
  CLEAVE_NUMBER(DnnAttribute::ReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
  CLEAVE_NUMBER(DnnAttribute::ReductionPrecision, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  CLEAVE_NUMBER(DnnAttribute::ReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  CLEAVE_NUMBER(DnnAttribute::ReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  CLEAVE_NUMBER(DnnAttribute::ReductionOfOperation, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  CLEAVE_NUMBER(DnnElement::Handle, CUDNN_TYPE_HANDLE);
  CLEAVE_NUMBER(DnnElement::DataType, CUDNN_TYPE_DATA_TYPE);
  CLEAVE_NUMBER(DnnElement::Boolean, CUDNN_TYPE_BOOLEAN);
  CLEAVE_NUMBER(DnnElement::Integer, CUDNN_TYPE_INT64);
  CLEAVE_NUMBER(DnnElement::Pointer, CUDNN_TYPE_VOID_PTR);
  CLEAVE_NUMBER(DnnElement::HeuristicsMode, CUDNN_TYPE_HEUR_MODE);
  CLEAVE_NUMBER(DnnElement::Note, CUDNN_TYPE_NUMERICAL_NOTE);
  CLEAVE_NUMBER(DnnElement::PointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
  CLEAVE_NUMBER(DnnElement::Descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  CLEAVE_NUMBER(DnnElement::ReductionOperator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  CLEAVE_NUMBER(DnnPointwise::Add, CUDNN_POINTWISE_ADD);
  CLEAVE_NUMBER(DnnPointwise::Multiply, CUDNN_POINTWISE_MUL);
  CLEAVE_NUMBER(DnnPointwise::Divide, CUDNN_POINTWISE_DIV);
  CLEAVE_NUMBER(DnnPointwise::Subtract, CUDNN_POINTWISE_SUB);
  CLEAVE_NUMBER(DnnPointwise::Exp, CUDNN_POINTWISE_EXP);
  CLEAVE_NUMBER(DnnPointwise::Log, CUDNN_POINTWISE_LOG);
  CLEAVE_NUMBER(DnnPointwise::GreaterEqual, CUDNN_POINTWISE_CMP_GE);
  CLEAVE_NUMBER(DnnPointwise::GenIndex, CUDNN_POINTWISE_GEN_INDEX);
  CLEAVE_NUMBER(DnnPointwise::Select, CUDNN_POINTWISE_BINARY_SELECT);
  CLEAVE_NUMBER(DnnReduction::Add, CUDNN_REDUCE_TENSOR_ADD);
  CLEAVE_NUMBER(DnnReduction::Max, CUDNN_REDUCE_TENSOR_MAX);
  CLEAVE_NUMBER(DnnHeuristics::Fallback, CUDNN_HEUR_MODE_FALLBACK);
  CLEAVE_NUMBER(DnnHeuristics::A, CUDNN_HEUR_MODE_A);
  CLEAVE_NUMBER(DnnNote::TensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  CLEAVE_NUMBER(DnnNote::Nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  static_assert(sizeof(DnnDescriptor) == sizeof(cudnnBackendDescriptor_t));
}
#endif

TEST(CudaHeadersTest, NumbersOfNccl) {
  using namespace cuda;
  CLEAVE_NUMBER(cuda::NcclResult::RemoteError, ncclRemoteError);
  CLEAVE_NUMBER(cuda::NcclResult::InProgress, ncclInProgress);
  CLEAVE_NUMBER(cuda::NcclResult::InvalidUsage, ncclInvalidUsage);
  CLEAVE_NUMBER(NcclType::I8, ncclInt8);
  CLEAVE_NUMBER(NcclType::UI8, ncclUint8);
  CLEAVE_NUMBER(NcclType::I32, ncclInt32);
  CLEAVE_NUMBER(NcclType::UI32, ncclUint32);
  CLEAVE_NUMBER(NcclType::I64, ncclInt64);
  CLEAVE_NUMBER(NcclType::UI64, ncclUint64);
  CLEAVE_NUMBER(NcclType::F16, ncclFloat16);
  CLEAVE_NUMBER(NcclType::F32, ncclFloat32);
  CLEAVE_NUMBER(NcclType::F64, ncclFloat64);
  CLEAVE_NUMBER(NcclType::BF16, ncclBfloat16);
  CLEAVE_NUMBER(NcclReduction::Sum, ncclSum);
  CLEAVE_NUMBER(NcclReduction::Prod, ncclProd);
  CLEAVE_NUMBER(NcclReduction::Max, ncclMax);
  CLEAVE_NUMBER(NcclReduction::Min, ncclMin);
  CLEAVE_NUMBER(kNcclUndefined, NCCL_CONFIG_UNDEF_INT);
  CLEAVE_NUMBER(kNcclNoColor, NCCL_SPLIT_NOCOLOR);
  CLEAVE_NUMBER(kNcclWindowSymmetric, NCCL_WIN_COLL_SYMMETRIC);
  CLEAVE_NUMBER(kNcclWindowAlignment, NCCL_WIN_REQUIRED_ALIGNMENT);
  static_assert(sizeof(cuda::NcclUniqueId) == sizeof(::ncclUniqueId));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(cuda::NcclConfig().magic, config.magic);
  EXPECT_LE(sizeof(cuda::NcclConfig), sizeof(config));
  EXPECT_EQ(offsetof(cuda::NcclConfig, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(offsetof(cuda::NcclConfig, network), offsetof(ncclConfig_t, netName));
  EXPECT_EQ(offsetof(cuda::NcclConfig, splitShare), offsetof(ncclConfig_t, splitShare));
}
