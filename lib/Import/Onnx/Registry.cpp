//===- Registry.cpp - which function imports which op ---------------------===//
//
// Rows of one op are kept ascending by version, whatever the order in which families add them; the last one that is not
// too young counts. Versions are those of the op's own domain.
//
//===----------------------------------------------------------------------===//
#include "Registry.h"

#include "llvm/ADT/STLExtras.h"

using namespace cleave::onnx;

const Registry &Registry::get() {
  static const Registry registry = [] {
    Registry all;
#define CLEAVE_NN_FAMILY(Family) register##Family(all);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
    registerControl(all);
    registerGradient(all);
    registerLoss(all);
    registerLinearAttention(all);
    registerMicrosoftFused(all);
    registerMicrosoftAttention(all);
    registerMicrosoftQuantized(all);
    registerQuantizedRecurrence(all);
    registerLearning(all);
    registerRandom(all);
    registerSampling(all);
    registerScan(all);
    registerSelection(all);
    registerSequence(all);
    registerSignal(all);
    registerTraining(all);
    registerTrees(all);
    return all;
  }();
  return registry;
}

OpImporter &Registry::add(llvm::StringRef opType, unsigned sinceVersion, Arity arity, ImportFn import) {
  auto &list = rows[opType];
  auto place = llvm::partition_point(list, [&](const OpImporter &row) { return row.sinceVersion < sinceVersion; });
  return *list.insert(place, OpImporter{sinceVersion, arity, import});
}

const OpImporter *Registry::find(llvm::StringRef domain, llvm::StringRef opType, int64_t opset) const {
  auto it = rows.find(domain.empty() ? opType.str() : (domain + "." + opType).str());
  if (it == rows.end())
    return nullptr;
  const OpImporter *best = nullptr;
  for (const OpImporter &row : it->second)
    if (row.sinceVersion <= opset)
      best = &row;
  return best && best->import ? best : nullptr;
}
