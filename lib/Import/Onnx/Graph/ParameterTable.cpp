//===- ParameterTable.cpp - the weights of a model, by their symbols ------===//
//
// A digest takes three reads of a file, in all a tenth of the time of an import. A thread takes a batch of them, as one
// for each digest would take longer than the digest.
//
//===----------------------------------------------------------------------===//
#include "ParameterTable.h"
#include "../PackedTensor.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Support/Digest.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static constexpr size_t kBatch = 1024;

/// Most names are symbols as they are.
StringAttr ParameterTable::makeSymbol(StringAttr name) {
  auto isTaken = [&](StringRef symbol) { return symbol == "main" || bySymbol.contains(symbol); };
  if (!name.empty() && !isTaken(name))
    return name;
  std::string base = name.empty() ? "param" : name.str(), symbol = base;
  while (isTaken(symbol))
    symbol = base + "_" + std::to_string(++suffixes[base]);
  return StringAttr::get(name.getContext(), symbol);
}

void ParameterTable::readDigests() {
  readers.emplace_back([batch = std::exchange(waiting, {})] {
    for (Parameter *parameter : batch)
      parameter->digest = digestSample(*parameter->data.file, parameter->data.bytes);
  });
}

StringAttr ParameterTable::add(StringAttr name, Location loc, RankedTensorType type, TensorData data) {
  Parameter &added = parameters.emplace_back(Parameter{makeSymbol(name), loc, type, std::move(data)});
  bySymbol[added.symbol] = &added;
  if (added.data.isReference())
    waiting.push_back(&added);
  if (waiting.size() == kBatch)
    readDigests();
  return added.symbol;
}

const TensorData *ParameterTable::find(StringRef symbol) const {
  const Parameter *found = bySymbol.lookup(symbol);
  return found ? &found->data : nullptr;
}

void ParameterTable::create(func::FuncOp func, const llvm::DenseSet<StringAttr> &used,
                            const llvm::StringMap<SmallVector<std::string, 1>> &modules) {
  if (!waiting.empty())
    readDigests();
  readers.clear();
  OpBuilder builder(func);
  for (const Parameter &parameter : parameters) {
    if (!used.contains(parameter.symbol))
      continue;
    const TensorData &data = parameter.data;
    Attribute value;
    if (data.isReference())
      value = nn::WeightAttr::get(func.getContext(), data.file->getPath(), int64_t(data.file->getOffset(data.bytes)),
                                  int64_t(data.bytes.size()), data.file->getBytes().size(), parameter.digest);
    else
      value = toTensor(func.getContext(), data).toAttr();
    auto made = nn::ParamOp::create(builder, parameter.loc, parameter.symbol, TypeAttr::get(parameter.type), value,
                                    StringAttr());
    if (auto readers = modules.find(parameter.symbol); readers != modules.end() && !readers->second.empty()) {
      SmallVector<StringRef> paths(readers->second.begin(), readers->second.end());
      made->setAttr(spmd::kModulesAttr, builder.getStrArrayAttr(paths));
    }
  }
}
