//===- Blas.h - what Cleave calls of cuBLASLt -------------------*- C++ -*-===//
//
// As Driver.h, for cuBLASLt 12 and 13.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CUDA_BLAS_H
#define CLEAVE_CUDA_BLAS_H

#include "cleave/Cuda/Driver.h"

namespace cleave::cuda {

using BlasHandle = struct BlasContext *;
using MatmulDescription = struct MatmulDescriptionHandle *;
using MatrixLayout = struct MatrixLayoutHandle *;
using MatmulPreference = struct MatmulPreferenceHandle *;

/// cublasStatus_t.
enum class BlasStatus : int {
  Success = 0,
  NotInitialized = 1,
  AllocFailed = 3,
  InvalidValue = 7,
  ArchMismatch = 8,
  MappingError = 11,
  ExecutionFailed = 13,
  InternalError = 14,
  NotSupported = 15,
};

/// cudaDataType.
enum class BlasType : int { F32 = 0, F64 = 1, F16 = 2, I8 = 3, I32 = 10, BF16 = 14 };
/// cublasComputeType_t: `F32` never rounds operands to TF32.
enum class BlasCompute : int { F32 = 68, F64 = 70, I32 = 72, F32AsTF32 = 77 };
/// cublasOperation_t.
enum class BlasTranspose : int32_t { No = 0, Yes = 1 };
/// cublasLtOrder_t.
enum class BlasOrder : int32_t { Columns = 0, Rows = 1 };

/// cublasLtMatmulDescAttributes_t, with the type of each value.
enum class MatmulAttribute : int {
  TransposeA = 3,   ///< BlasTranspose
  TransposeB = 4,   ///< BlasTranspose
  Epilogue = 7,     ///< BlasEpilogue
  BiasPointer = 8,  ///< DevicePointer
  BiasDataType = 26 ///< BlasType
};
/// cublasLtMatrixLayoutAttribute_t.
enum class LayoutAttribute : int {
  Order = 1,      ///< BlasOrder
  BatchCount = 5, ///< int32_t
  BatchStride = 6 ///< int64_t, elements
};
/// cublasLtMatmulPreferenceAttributes_t.
enum class PreferenceAttribute : int {
  MaxWorkspaceBytes = 1, ///< uint64_t
  MinAlignmentA = 5,     ///< uint32_t, bytes; 256 unless told
  MinAlignmentB = 6,
  MinAlignmentC = 7,
  MinAlignmentD = 8
};
/// cublasLtEpilogue_t; Gelu is the one by tanh.
enum class BlasEpilogue : int32_t {
  Default = 1,
  Relu = 2,
  Bias = 4,
  ReluBias = 6,
  Gelu = 32,
  GeluBias = 36,
};

/// cublasLtMatmulAlgo_t.
struct MatmulAlgorithm {
  uint64_t data[8];
};
/// cublasLtMatmulHeuristicResult_t.
struct MatmulHeuristic {
  MatmulAlgorithm algorithm;
  size_t workspaceBytes;
  BlasStatus state;
  float waves;
  int reserved[4];
};

/// All return a BlasStatus.
#define CLEAVE_CUDA_BLAS_ENTRIES(ENTRY)                                                                                \
  ENTRY(cublasLtCreate, (BlasHandle * handle))                                                                         \
  ENTRY(cublasLtDestroy, (BlasHandle handle))                                                                          \
  ENTRY(cublasLtMatmulDescCreate, (MatmulDescription * description, BlasCompute compute, BlasType scale))              \
  ENTRY(cublasLtMatmulDescDestroy, (MatmulDescription description))                                                    \
  ENTRY(cublasLtMatmulDescSetAttribute,                                                                                \
        (MatmulDescription description, MatmulAttribute attribute, const void *value, size_t bytes))                   \
  ENTRY(cublasLtMatrixLayoutCreate,                                                                                    \
        (MatrixLayout * layout, BlasType type, uint64_t rows, uint64_t columns, int64_t leading))                      \
  ENTRY(cublasLtMatrixLayoutDestroy, (MatrixLayout layout))                                                            \
  ENTRY(cublasLtMatrixLayoutSetAttribute,                                                                              \
        (MatrixLayout layout, LayoutAttribute attribute, const void *value, size_t bytes))                             \
  ENTRY(cublasLtMatmulPreferenceCreate, (MatmulPreference * preference))                                               \
  ENTRY(cublasLtMatmulPreferenceDestroy, (MatmulPreference preference))                                                \
  ENTRY(cublasLtMatmulPreferenceSetAttribute,                                                                          \
        (MatmulPreference preference, PreferenceAttribute attribute, const void *value, size_t bytes))                 \
  ENTRY(cublasLtMatmulAlgoGetHeuristic,                                                                                \
        (BlasHandle handle, MatmulDescription description, MatrixLayout a, MatrixLayout b, MatrixLayout c,             \
         MatrixLayout d, MatmulPreference preference, int wanted, MatmulHeuristic *results, int *found))               \
  ENTRY(cublasLtMatmul, (BlasHandle handle, MatmulDescription description, const void *alpha, const void *a,           \
                         MatrixLayout layoutA, const void *b, MatrixLayout layoutB, const void *beta, const void *c,   \
                         MatrixLayout layoutC, void *d, MatrixLayout layoutD, const MatmulAlgorithm *algorithm,        \
                         void *workspace, size_t workspaceBytes, Stream stream))

#define CLEAVE_CUDA_MEMBER(name, parameters) BlasStatus(*name) parameters = nullptr;
/// libcublasLt.
struct Blas {
  CLEAVE_CUDA_BLAS_ENTRIES(CLEAVE_CUDA_MEMBER)
};
#undef CLEAVE_CUDA_MEMBER

} // namespace cleave::cuda

#endif // CLEAVE_CUDA_BLAS_H
