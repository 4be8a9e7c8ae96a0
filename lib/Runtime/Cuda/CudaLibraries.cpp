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

namespace {
/// Operands by name, from the list that has them in order.
class Taker {
public:
  Taker(const program::Program &program, const CallAddresses &addresses) : program(program), addresses(addresses) {}
  void take(CallTensor &tensor, const program::View &view) {
    const program::Type &type = program.types[view.type];
    tensor = {&type, program::getStrides(type), addresses[next++]};
  }
  void take(CallTensor &tensor, const std::optional<program::View> &view) {
    if (view)
      take(tensor, *view);
  }

private:
  const program::Program &program;
  const CallAddresses &addresses;
  size_t next = 0;
};
} // namespace

template <typename Contraction>
static CallTensors getTensors(Taker taker, const Contraction &contraction, const program::View &a,
                              const program::View &b) {
  CallTensors tensors;
  taker.take(tensors.a, a);
  taker.take(tensors.b, b);
  taker.take(tensors.bias, contraction.bias);
  taker.take(tensors.residual, contraction.residual);
  taker.take(tensors.result, contraction.result);
  return tensors;
}

static AttentionTensors getTensors(Taker taker, const program::Attention &attention) {
  AttentionTensors tensors;
  taker.take(tensors.query, attention.query);
  taker.take(tensors.key, attention.key);
  taker.take(tensors.value, attention.value);
  taker.take(tensors.mask, attention.mask);
  taker.take(tensors.result, attention.result);
  return tensors;
}

template <typename Library, typename Contraction, typename Tensors>
std::optional<uint32_t> CudaLibraries::prepare(Opened<Library> &opened, const Contraction &contraction,
                                               const Tensors &tensors) {
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
  Taker taker(program, addresses);
  if (const auto *matmul = std::get_if<program::Matmul>(&action))
    return prepare(blas, *matmul, getTensors(taker, *matmul, matmul->a, matmul->b));
  if (const auto *conv = std::get_if<program::Convolution>(&action))
    return prepare(dnn, *conv, getTensors(taker, *conv, conv->input, conv->filter));
  if (const auto *attention = std::get_if<program::Attention>(&action))
    return prepare(dnn, *attention, getTensors(taker, *attention));
  return std::nullopt;
}

std::vector<LibraryUse> CudaLibraries::getUses() const {
  std::vector<LibraryUse> asked;
  for (const LibraryUse &use : {blas.use, dnn.use})
    if (use.calls || use.fallbacks)
      asked.push_back(use);
  return asked;
}
