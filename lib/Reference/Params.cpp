//===- Params.cpp - reads parameters --------------------------------------===//
//
// A parameter's tensor is a view of the mapped bytes of its file.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Evaluator.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Nn.h"

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

FailureOr<Tensor> ParamStore::load(StringRef name) {
  auto found = params.find(name);
  if (found == params.end())
    return module.emitError() << "has no parameter @" << name;
  auto param = cast<nn::ParamOp>(found->second);
  if (!Tensor::fits(cast<RankedTensorType>(param.getType())))
    return param.emitOpError() << "of type " << param.getType() << " does not fit into memory";
  if (auto elements = dyn_cast<ElementsAttr>(param.getValue())) {
    FailureOr<Tensor> value = Tensor::fromAttr(elements);
    return succeeded(value) ? value : param.emitOpError("has a value that is not a dense attribute of its type's size");
  }
  auto weight = dyn_cast<nn::WeightAttr>(param.getValue());
  if (!weight)
    return param.emitOpError() << "has neither elements nor a place in a file, but " << param.getValue();
  FailureOr<WeightFiles::Range> range = files.find(param, weight);
  if (failed(range))
    return failure();
  return Tensor::fromBytes(cast<RankedTensorType>(param.getType()),
                           ArrayRef<char>(range->bytes.data(), range->bytes.size()), range->file);
}
