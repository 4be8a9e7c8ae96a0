//===- Params.cpp - reads parameters --------------------------------------===//
//
// A parameter's tensor is a view of the mapped bytes of its file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Evaluator.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

FailureOr<Tensor> ParamStore::get(StringRef name) {
  if (params.empty())
    for (auto param : module.getOps<nn::ParamOp>())
      params.try_emplace(param.getSymName(), param);
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

/// Elements, or a view of mapped bytes.
static FailureOr<Tensor> loadPiece(WeightFiles &files, nn::ParamOp param, Attribute piece) {
  if (auto elements = dyn_cast<ElementsAttr>(piece)) {
    FailureOr<Tensor> value = Tensor::fromAttr(elements);
    return succeeded(value) ? value : param.emitOpError("has a value that is not a dense attribute of its type's size");
  }
  auto weight = dyn_cast<nn::WeightAttr>(piece);
  if (!weight)
    return param.emitOpError() << "has neither elements nor a place in a file, but " << piece;
  // All bytes are looked at before anything runs (`checkWeights`).
  FailureOr<WeightFiles::Range> range = files.locate(param, weight);
  if (failed(range))
    return failure();
  return Tensor::fromBytes(nn::getPieceType(param), ArrayRef<char>(range->bytes.data(), range->bytes.size()),
                           range->file);
}

FailureOr<Tensor> ParamStore::load(StringRef name) {
  auto found = params.find(name);
  if (found == params.end())
    return module.emitError() << "has no parameter @" << name;
  auto param = cast<nn::ParamOp>(found->second);
  if (!Tensor::fits(cast<RankedTensorType>(param.getType())))
    return param.emitOpError() << "of type " << param.getType() << " does not fit into memory";
  SmallVector<Attribute> pieces = nn::getPieces(param);
  if (!nn::isStack(param))
    return ::loadPiece(files, param, pieces.front());
  // Parts that lie apart come together in memory.
  Tensor whole = Tensor::zeros(cast<RankedTensorType>(param.getType()));
  char *to = whole.write<char>().data();
  for (Attribute piece : pieces) {
    FailureOr<Tensor> part = loadPiece(files, param, piece);
    if (failed(part))
      return failure();
    to = llvm::copy(part->getBytes(), to);
  }
  return whole;
}
