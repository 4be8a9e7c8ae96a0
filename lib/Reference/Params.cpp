//===- Params.cpp - reads parameters --------------------------------------===//
//
// A file is mapped once, however many parameters it holds; a parameter's tensor is a view of the mapped bytes.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Evaluator.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Support/File.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// The bytes that `weight` names, as a tensor of the parameter's type.
static FailureOr<Tensor> readWeight(nn::ParamOp param, nn::WeightAttr weight, std::shared_ptr<const MappedFile> file) {
  auto type = cast<RankedTensorType>(param.getType());
  int64_t elementBytes = getElementBytes(type.getElementType());
  uint64_t size = file->getBytes().size();
  double wanted = elementBytes;
  for (int64_t extent : type.getShape())
    wanted *= extent;
  if (elementBytes == 0 || double(weight.getLength()) != wanted)
    return param.emitOpError() << "of type " << type << " cannot be read from " << weight.getLength() << " bytes";
  if (weight.getOffset() < 0 || uint64_t(weight.getOffset()) > size ||
      uint64_t(weight.getLength()) > size - uint64_t(weight.getOffset()))
    return param.emitOpError() << "is at offset " << weight.getOffset() << " with " << weight.getLength()
                               << " bytes, but '" << weight.getFile() << "' has " << size << " bytes";
  StringRef bytes = file->getBytes().substr(weight.getOffset(), weight.getLength());
  return Tensor::fromBytes(type, ArrayRef<char>(bytes.data(), bytes.size()), file);
}

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
  std::shared_ptr<const MappedFile> &file = files[weight.getFile()];
  if (!file) {
    llvm::Expected<std::shared_ptr<const MappedFile>> opened = MappedFile::open(weight.getFile());
    if (!opened)
      return param.emitOpError() << "cannot be read: " << llvm::toString(opened.takeError());
    file = std::move(*opened);
  }
  return readWeight(param, weight, file);
}
