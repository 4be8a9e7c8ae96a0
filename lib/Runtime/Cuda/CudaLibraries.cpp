//===- CudaLibraries.cpp - what NVIDIA's libraries compute ----------------===//
//
// A library is opened when the first command asks for it. Whatever it says no to, its kernel computes: libraries are faster,
// and never needed.
//
//===----------------------------------------------------------------------===//
#include "CudaLibraries.h"
#include "cleave/Program/Operands.h"

#include <algorithm>

using namespace cleave::runtime;
namespace program = cleave::program;

/// Operands by name, from the list that has them in order.
template <typename Contraction>
static CallTensors getTensors(const program::Program &program, const Contraction &contraction,
                              const CallAddresses &addresses, const program::View &a, const program::View &b) {
  CallTensors tensors;
  size_t next = 0;
  auto take = [&](CallTensor &tensor, const program::View &view) {
    const program::Type &type = program.types[view.type];
    tensor = {&type, program::getStrides(type), addresses[next++]};
  };
  take(tensors.a, a);
  take(tensors.b, b);
  if (contraction.bias)
    take(tensors.bias, *contraction.bias);
  if (contraction.residual)
    take(tensors.residual, *contraction.residual);
  take(tensors.result, contraction.result);
  return tensors;
}

template <typename Library, typename Contraction>
std::optional<uint32_t> CudaLibraries::prepare(Opened<Library> &opened, const Contraction &contraction,
                                               const CallTensors &tensors) {
  if (!opened.state)
    opened.state = opened.library.open();
  PreparedCall call = *opened.state ? PreparedCall(**opened.state) : opened.library.prepare(contraction, tensors);
  LibraryUse &use = opened.use;
  if (!call) {
    if (use.fallbacks++ == 0)
      use.reason = call.getError().message;
    return std::nullopt;
  }
  ++use.calls;
  use.workspace = std::max(use.workspace, (*call)->workspaceBytes);
  workspace = std::max(workspace, use.workspace);
  calls.push_back(std::move(*call));
  return uint32_t(calls.size() - 1);
}

std::optional<uint32_t> CudaLibraries::prepare(const program::Program &program, const program::Action &action,
                                               const CallAddresses &addresses) {
  if (const auto *matmul = std::get_if<program::Matmul>(&action))
    return prepare(blas, *matmul, getTensors(program, *matmul, addresses, matmul->a, matmul->b));
  if (const auto *conv = std::get_if<program::Convolution>(&action))
    return prepare(dnn, *conv, getTensors(program, *conv, addresses, conv->input, conv->filter));
  return std::nullopt;
}

std::vector<LibraryUse> CudaLibraries::getUses() const {
  std::vector<LibraryUse> asked;
  for (const LibraryUse &use : {blas.use, dnn.use})
    if (use.calls || use.fallbacks)
      asked.push_back(use);
  return asked;
}
