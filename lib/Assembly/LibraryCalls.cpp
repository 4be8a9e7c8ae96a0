//===- LibraryCalls.cpp - runs of kernels that libraries have -------------===//
//
// A kernel whose body a library computes as one call (codegen/Libraries.h) is run as a command of that library, with the
// kernel as fallback: the same operands in the same order, seen with the dims that the library knows. So what is run where
// there is no library is what would have been run without any of this.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Codegen/Library/Libraries.h"
#include "cleave/Program/Operands.h"

using namespace mlir;
using namespace cleave;

/// True if tensors are the buffers of the kernel, each once and in order, and if the result lies nowhere but in the place of
/// the residual, if there is one.
static bool isCommand(exec::KernelOp kernel, ArrayRef<const codegen::LibraryTensor *> tensors,
                      const std::optional<codegen::LibraryTensor> &residual = std::nullopt) {
  if (tensors.size() != kernel.getBody().getNumArguments() + 1)
    return false;
  for (auto [number, tensor] : llvm::enumerate(tensors))
    if (tensor->buffer != number)
      return false;
  int64_t place = kernel.getInPlace() ? kernel.getInPlace()->front() : -1;
  return place == -1 || (residual && place == int64_t(residual->buffer));
}

static program::Activation convert(codegen::LibraryActivation activation) {
  switch (activation) {
  case codegen::LibraryActivation::None:
    return program::Activation::None;
  case codegen::LibraryActivation::Relu:
    return program::Activation::Relu;
  case codegen::LibraryActivation::GeluTanh:
    return program::Activation::GeluTanh;
  }
}

/// Strides of a row-major tensor are not told.
static bool isRowMajor(const codegen::LibraryTensor &tensor) {
  return program::isDense({program::Element::F32,
                           {tensor.shape.begin(), tensor.shape.end()},
                           {tensor.strides.begin(), tensor.strides.end()}});
}

/// A matrix whose columns lie one behind another is told as its transpose.
static bool transpose(codegen::LibraryTensor &matrix) {
  bool isTurned = matrix.strides.end()[-2] == 1 && matrix.strides.back() != 1 && matrix.shape.end()[-2] != 1;
  if (isTurned)
    for (SmallVector<int64_t> *list : {&matrix.shape, &matrix.strides})
      std::swap(list->end()[-2], list->end()[-1]);
  return isTurned;
}

std::optional<program::Action> ProgramTables::makeCall(exec::RunOp op) {
  exec::KernelOp kernel = source->bodies.lookup(op.getKernel());
  Block &body = kernel.getBody().front();
  auto fallback = int32_t(source->kernels.lookup(op.getKernel()));
  auto view = [&](const codegen::LibraryTensor &tensor) {
    program::View made = getView(op->getOperand(tensor.buffer));
    ArrayRef<int64_t> strides = tensor.strides;
    made.type =
        addType(program.types[made.type].element, tensor.shape, isRowMajor(tensor) ? ArrayRef<int64_t>() : strides);
    return made;
  };
  auto fill = [&](auto &command, const codegen::LibraryEpilogue &epilogue) {
    if (epilogue.bias)
      command.bias = view(*epilogue.bias);
    if (epilogue.residual)
      command.residual = view(*epilogue.residual);
    command.activation = convert(epilogue.activation);
    command.fallback = fallback;
    command.tf32 = options.allowed == codegen::Allowed::Tf32;
  };
  if (std::optional<codegen::LibraryMatmul> found = codegen::findMatmul(body);
      found && isCommand(kernel, found->getTensors(), found->epilogue.residual)) {
    program::Matmul matmul;
    matmul.transposeA = transpose(found->a);
    matmul.transposeB = transpose(found->b);
    matmul.a = view(found->a);
    matmul.b = view(found->b);
    matmul.result = view(found->result);
    matmul.scale = found->epilogue.scale;
    fill(matmul, found->epilogue);
    return matmul;
  }
  if (std::optional<codegen::LibraryConvolution> found = codegen::findConvolution(body);
      found && isCommand(kernel, found->getTensors(), found->epilogue.residual)) {
    program::Convolution conv;
    conv.input = view(found->input);
    conv.filter = view(found->filter);
    conv.result = view(found->result);
    conv.strides.assign(found->strides.begin(), found->strides.end());
    conv.dilations.assign(found->dilations.begin(), found->dilations.end());
    conv.padsLow.assign(found->padsLow.begin(), found->padsLow.end());
    conv.padsHigh.assign(found->padsHigh.begin(), found->padsHigh.end());
    conv.groups = found->groups;
    fill(conv, found->epilogue);
    return conv;
  }
  if (std::optional<codegen::LibraryAttention> found = codegen::findAttention(body);
      found && isCommand(kernel, found->getTensors())) {
    program::Attention attention;
    attention.query = view(found->query);
    attention.key = view(found->key);
    attention.value = view(found->value);
    attention.result = view(found->result);
    if (found->mask)
      attention.mask = view(*found->mask);
    attention.scale = found->scale;
    attention.causal = found->isCausal;
    attention.fallback = fallback;
    return attention;
  }
  return std::nullopt;
}
