//===- Params.cpp - reads parameters --------------------------------------===//
//
// A parameter's tensor is a view of the mapped bytes of its file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Evaluator.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

nn::ParamOp ParamStore::getParam(StringRef name) {
  if (params.empty())
    for (auto param : module.getOps<nn::ParamOp>())
      params.try_emplace(param.getSymName(), param);
  return params.lookup(name);
}

FailureOr<Tensor> ParamStore::get(StringRef name) {
  auto [entry, isNew] = loaded.try_emplace(name);
  if (!isNew)
    return entry->second;
  FailureOr<Tensor> value = load(name);
  if (failed(value))
    loaded.erase(entry);
  else
    entry->second = *value;
  return value;
}

FailureOr<Tensor> ParamStore::load(StringRef name) {
  nn::ParamOp param = getParam(name);
  if (!param)
    return module.emitError() << "has no parameter @" << name;
  if (!Tensor::fits(cast<RankedTensorType>(param.getType())))
    return param.emitOpError() << "of type " << param.getType() << " does not fit into memory";
  // All bytes are looked at before anything runs (`checkWeights`).
  SmallVector<Attribute> pieces = nn::getPieces(param);
  if (!nn::isStack(param)) {
    FailureOr<WeightPiece> piece = files.read(param, pieces.front());
    return failed(piece) ? FailureOr<Tensor>() : piece->toTensor();
  }
  // Parts that lie apart come together in memory.
  Tensor whole = Tensor::zeros(cast<RankedTensorType>(param.getType()));
  char *to = whole.write<char>().data();
  for (Attribute piece : pieces) {
    FailureOr<WeightPiece> part = files.read(param, piece);
    if (failed(part))
      return failure();
    to = llvm::copy(part->toTensor().getBytes(), to);
  }
  return whole;
}
