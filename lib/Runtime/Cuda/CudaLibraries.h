//===- CudaLibraries.h - what NVIDIA's libraries compute --------*- C++ -*-===//
//
// Contractions and attention of a program that a library takes, each planned once: descriptors, algorithm and workspace are kept, a call
// only enqueues. What a library does not take, the program's own kernel computes; who asks is told how many, and why.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_CUDA_CUDALIBRARIES_H
#define CLEAVE_LIB_RUNTIME_CUDA_CUDALIBRARIES_H

#include "cleave/Cuda/Libraries.h"
#include "cleave/Runtime/Device.h"

namespace cleave::runtime {

//   prepare   when a program is opened: descriptors, an algorithm, how much memory that needs
//   enqueue   at every call, or once into a CUDA graph
//
// Calls of one stream run one after the other, so they share what they work in.

/// Addresses of a command's operands, in the order of program::getOperands.
using CallAddresses = std::vector<char *>;

/// A contraction or attention, planned.
class LibraryCall {
public:
  virtual ~LibraryCall() = default;
  /// Bytes that it needs to itself while it runs.
  uint64_t workspaceBytes = 0;
  virtual program::Status enqueue(cuda::Stream stream, cuda::DevicePointer workspace) = 0;
};

using PreparedCall = program::Result<std::unique_ptr<LibraryCall>>;

/// More than that no call may need: what cuBLASLt recommends for large devices.
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;

/// What a tensor of a call is. Dims are counted from the last, since those of the batch come and go.
struct CallTensor {
  const program::Type *type = nullptr;
  std::vector<int64_t> strides; ///< of every dim
  char *address = nullptr;

  int64_t getSize(size_t fromLast) const { return type->shape[type->shape.size() - 1 - fromLast]; }
  int64_t getStride(size_t fromLast) const { return strides[strides.size() - 1 - fromLast]; }
};
/// The operands of a contraction: a matrix and another, or an image and a filter; `bias` and `residual` have no type where there is none.
struct CallTensors {
  CallTensor a, b, bias, residual, result;
};
/// Those of attention, [batch, heads, length, size]; `mask` as above.
struct AttentionTensors {
  CallTensor query, key, value, mask, result;
};

/// cuBLASLt on one device.
class CudaBlas {
public:
  ~CudaBlas();
  /// Precondition of `prepare`; an error says why products are left to kernels.
  program::Status open();
  PreparedCall prepare(const program::Matmul &matmul, const CallTensors &tensors);

private:
  const cuda::Blas *blas = nullptr;
  cuda::BlasHandle handle = nullptr;
};

/// cuDNN's type of an element; nothing of what is no float.
std::optional<cuda::DnnType> getDnnType(program::Element element);

/// cuDNN on one device.
class CudaDnn {
public:
  ~CudaDnn();
  /// As above, of convolutions and attention.
  program::Status open();
  PreparedCall prepare(const program::Convolution &conv, const CallTensors &tensors);
  PreparedCall prepare(const program::Attention &attention, const AttentionTensors &tensors);

private:
  const cuda::Dnn *dnn = nullptr;
  cuda::DnnHandle handle = nullptr;
};

/// All of a device's.
class CudaLibraries {
public:
  std::optional<uint32_t> prepare(const program::Program &program, const program::Action &action,
                                  const CallAddresses &addresses);
  LibraryCall &get(uint32_t call) { return *calls[call]; }
  /// What the largest call needs.
  uint64_t getWorkspace() const { return workspace; }
  std::vector<LibraryUse> getUses() const;

private:
  /// One that is opened when it is first asked for.
  template <typename Library> struct Opened {
    explicit Opened(const char *name) { use.name = name; }
    Library library;
    LibraryUse use;
    /// Once it was asked for: why it cannot be used, if it cannot.
    std::optional<program::Status> state;
  };
  template <typename Library, typename Command, typename Tensors>
  std::optional<uint32_t> prepare(Opened<Library> &opened, const Command &command, const Tensors &tensors);

  Opened<CudaBlas> blas{"cuBLASLt"};
  Opened<CudaDnn> dnn{"cuDNN"};
  uint64_t workspace = 0;
  std::vector<std::unique_ptr<LibraryCall>> calls;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_CUDA_CUDALIBRARIES_H
