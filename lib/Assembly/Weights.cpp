//===- Weights.cpp - parameters by reference ------------------------------===//
//
// A program says which bytes of which file a weight is, with their digest; only what stands in the module itself, and
// what is asked for, is copied into it. Paths are those from the program's folder, so that a program and its model can be
// moved together.
//
//===----------------------------------------------------------------------===//
#include "Assembler.h"

#include "cleave/Reference/Tensor.h"
#include "cleave/Support/Digest.h"

#include <filesystem>

using namespace mlir;
using namespace cleave;

/// `path` as seen from `folder`; as it is where there is no way from one to the other.
static std::string makeRelative(StringRef path, StringRef folder) {
  std::error_code error;
  auto resolve = [&](StringRef name) { return std::filesystem::weakly_canonical(name.str(), error); };
  std::filesystem::path target = resolve(path), relative = target.lexically_relative(resolve(folder));
  return error || relative.empty() ? path.str() : relative.string();
}

int32_t Assembler::addFile(const MappedFile &file) {
  auto [it, isNew] = files.try_emplace(file.getPath(), program.files.size());
  if (isNew)
    program.files.push_back({makeRelative(file.getPath(), options.folder), file.getBytes().size()});
  return it->second;
}

/// Says where the bytes are.
LogicalResult Assembler::fill(program::Weight &weight, nn::ParamOp param) {
  if (auto elements = dyn_cast<ElementsAttr>(param.getValue())) {
    FailureOr<reference::Tensor> value = reference::Tensor::fromAttr(elements);
    if (failed(value))
      return param.emitOpError("has a value that is not a dense attribute of its type's size");
    ArrayRef<char> bytes = value->getBytes();
    weight.splat = elements.isSplat() && !bytes.empty();
    size_t length = weight.splat ? bytes.size() / value->getNumElements() : bytes.size();
    weight.embedded = made->bytes.emplace_back(bytes.data(), length);
    weight.length = length;
    return success();
  }
  auto attr = dyn_cast<nn::WeightAttr>(param.getValue());
  if (!attr)
    return param.emitOpError() << "has neither elements nor a place in a file, but " << param.getValue();
  FailureOr<reference::WeightFiles::Range> range = weightFiles.find(param, attr);
  if (failed(range))
    return failure();
  weight.length = range->bytes.size();
  if (options.embedsWeights || !range->file->isOnDisk()) {
    weight.embedded = range->bytes;
    made->files.push_back(range->file);
    return success();
  }
  weight.file = addFile(*range->file);
  weight.offset = attr.getOffset();
  weight.digest = attr.getDigest().empty() ? digestSample(*range->file, {range->bytes.data(), range->bytes.size()})
                                           : attr.getDigest().str();
  return success();
}

FailureOr<uint32_t> Assembler::addWeight(nn::ParamOp param) {
  auto [it, isNew] = weights.try_emplace(param.getSymName(), program.weights.size());
  if (!isNew)
    return it->second;
  program::Weight weight;
  weight.name = param.getSymName().str();
  weight.type = addType(cast<ShapedType>(param.getType()));
  if (failed(fill(weight, param)))
    return failure();
  program.weights.push_back(std::move(weight));
  return it->second;
}

LogicalResult Assembler::addLoad(exec::LoadOp op) {
  FailureOr<uint32_t> weight = addWeight(params.lookup(op.getParam()));
  if (failed(weight))
    return failure();
  program::Load &load = role.loads.emplace_back();
  load.weight = *weight;
  load.starts = getNumbers(op.getStarts());
  load.shape = op.getSizes().vec();
  if (std::optional<ArrayRef<int64_t>> order = op.getOrder())
    load.layout.order.assign(order->begin(), order->end());
  load.layout.batch = op.getBatch();
  load.layout.width = op.getWidth();
  load.layout.interleave = op.getInterleave();
  load.target = getView(op.getTarget());
  return success();
}
