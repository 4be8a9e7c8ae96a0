//===- DnnGraph.h - cuDNN's graphs of operations ----------------*- C++ -*-===//
//
// What cuDNN has no call of its own for is said as a graph: descriptors of one kind of handle, whose attributes are set one by
// one, each an array of elements of a type. A descriptor that is whole is finalized, and may then be one of another's attributes.
//
//   Tensor                 shape, strides, type; virtual: never in memory; by value: a number of the host
//   Matmul, Pointwise, Reduction, and an Operation of each on tensors
//   OperationGraph         operations, in any order
//   Heuristics             asked for configurations of engines that can do the graph, the fastest first
//   ExecutionPlan          a configuration, compiled; how much memory it works in
//   VariantPack            addresses of tensors, for one execution
//
// Numbers are those of cuDNN 9 (cudnn_graph.h), and only what attention needs.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CUDA_DNNGRAPH_H
#define CLEAVE_CUDA_DNNGRAPH_H

namespace cleave::cuda {

/// cudnnBackendDescriptor_t.
using DnnDescriptor = void *;

/// cudnnBackendDescriptorType_t.
enum class DnnKind : int {
  Pointwise = 0,
  Engine = 2,
  EngineConfig = 3,
  Heuristics = 4,
  ExecutionPlan = 5,
  PointwiseOperation = 13,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17,
  Matmul = 18,
  MatmulOperation = 19,
  Reduction = 21,
  ReductionOperation = 22,
};

/// cudnnBackendAttributeName_t.
enum class DnnAttribute : int {
  PointwiseMode = 0,
  PointwisePrecision = 1,
  PointwiseAxis = 9,
  HeuristicsMode = 200,
  HeuristicsGraph = 201,
  HeuristicsResults = 202,
  ConfigEngine = 300,
  PlanHandle = 400,
  PlanConfig = 401,
  PlanWorkspace = 402,
  PointwiseOfOperation = 750,
  PointwiseX = 751,
  PointwiseB = 752,
  PointwiseY = 753,
  PointwiseT = 758,
  GraphHandle = 800,
  GraphOperations = 801,
  TensorAlignment = 900,
  TensorType = 901,
  TensorSizes = 902,
  TensorStrides = 903,
  TensorId = 906,
  TensorIsVirtual = 907,
  TensorIsByValue = 908,
  PackIds = 1000,
  PackPointers = 1001,
  PackWorkspace = 1003,
  EngineNotes = 1303,
  MatmulPrecision = 1500,
  MatmulA = 1520,
  MatmulB = 1521,
  MatmulC = 1522,
  MatmulOfOperation = 1523,
  ReductionOperator = 1600,
  ReductionPrecision = 1601,
  ReductionX = 1610,
  ReductionY = 1611,
  ReductionOfOperation = 1612,
};

/// cudnnBackendAttributeType_t: what an array of elements is made of. `Boolean` has a byte, enums four, `Integer` eight.
enum class DnnElement : int {
  Handle = 0,
  DataType = 1,
  Boolean = 2,
  Integer = 3,
  Pointer = 6,
  HeuristicsMode = 8,
  Note = 11,
  PointwiseMode = 14,
  Descriptor = 15,
  ReductionOperator = 18,
};

/// cudnnPointwiseMode_t. y of x, and of b and t where there are two or three; `GenIndex`: where x's element lies along an axis;
/// `Select`: t ? x : b.
enum class DnnPointwise : int {
  Add = 0,
  Multiply = 1,
  Divide = 6,
  Subtract = 9,
  Exp = 13,
  Log = 15,
  GreaterEqual = 303,
  GenIndex = 501,
  Select = 601,
};

/// cudnnReduceTensorOp_t.
enum class DnnReduction : int { Add = 0, Max = 3 };
/// cudnnBackendHeurMode_t.
enum class DnnHeuristics : int { Fallback = 2, A = 3 };
/// cudnnBackendNumericalNote_t.
enum class DnnNote : int { TensorCore = 0, Nondeterministic = 4 };

} // namespace cleave::cuda

#endif // CLEAVE_CUDA_DNNGRAPH_H
