//===- Convolution.cpp - regions that are one convolution -----------------===//
//
// Dims of nn.conv are known by their place; a library is told all of them with channels last, whatever lies side by side.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "../View.h"
#include "Epilogue.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

/// [N, C, spatial..] as [N, spatial.., C].
static LibraryTensor makeChannelsLast(const Placed &placed, ArrayRef<int64_t> shape) {
  LibraryTensor tensor{placed.buffer, llvm::to_vector(shape), placed.strides};
  for (SmallVector<int64_t> *list : {&tensor.shape, &tensor.strides})
    std::rotate(list->begin() + 1, list->begin() + 2, list->end());
  return tensor;
}

/// cuDNN multiplies by nothing else, and knows one activation. A bias moves along channels alone.
static bool addEpilogue(LibraryConvolution &made, const Epilogue &epilogue, ArrayRef<int64_t> shape) {
  if (epilogue.scale != 1 || epilogue.activation == LibraryActivation::GeluTanh)
    return false;
  made.epilogue.activation = epilogue.activation;
  for (const Placed &tensor : epilogue.added) {
    bool isBias = true, isResidual = true;
    for (auto [dim, stride] : llvm::enumerate(tensor.strides)) {
      isBias &= shape[dim] == 1 || (dim == 1 ? stride == 1 : stride == 0);
      isResidual &= shape[dim] == 1 || stride != 0;
    }
    if (isBias && !made.epilogue.bias)
      made.epilogue.bias = LibraryTensor{tensor.buffer, {shape[1]}, {1}};
    else if (isResidual && !made.epilogue.residual)
      made.epilogue.residual = makeChannelsLast(tensor, shape);
    else
      return false;
  }
  return true;
}

std::optional<LibraryConvolution> cleave::codegen::findConvolution(Block &region) {
  auto conv = findOnly<nn::ConvOp>(region);
  std::optional<Placed> input = conv ? placeOperand(conv.getInput()) : std::nullopt,
                        filter = conv ? placeOperand(conv.getWeight()) : std::nullopt;
  if (!conv || !areFactors(input, filter, region, conv.getResult()))
    return std::nullopt;
  std::optional<Epilogue> epilogue = Epilogue::find(region, conv);
  if (!epilogue)
    return std::nullopt;
  if (Value bias = conv.getBias()) {
    std::optional<Placed> placed = placeOperand(bias);
    bool isOfResult =
        placed && getElementType(View::get(bias).base) == getElementType(region.getTerminator()->getOperand(0));
    if (!isOfResult || epilogue->scale != 1)
      return std::nullopt;
    Strides strides(getShape(conv.getResult()).size());
    strides[1] = placed->strides.front();
    epilogue->added.push_back({placed->buffer, strides});
  }
  LibraryConvolution made;
  made.input = makeChannelsLast(*input, getShape(conv.getInput()));
  made.filter = makeChannelsLast(*filter, getShape(conv.getWeight()));
  made.result = makeChannelsLast(epilogue->result, getShape(conv.getResult()));
  made.strides = llvm::to_vector(conv.getStrides());
  made.dilations = llvm::to_vector(conv.getDilations());
  made.padsLow = llvm::to_vector(conv.getPadsLow());
  made.padsHigh = llvm::to_vector(conv.getPadsHigh());
  made.groups = conv.getGroups();
  if (!addEpilogue(made, *epilogue, getShape(conv.getResult())))
    return std::nullopt;
  return made;
}

SmallVector<const LibraryTensor *> LibraryConvolution::getTensors() const {
  SmallVector<const LibraryTensor *> tensors{&input, &filter};
  for (const std::optional<LibraryTensor> *tensor : {&epilogue.bias, &epilogue.residual})
    if (*tensor)
      tensors.push_back(&**tensor);
  tensors.push_back(&result);
  return tensors;
}
