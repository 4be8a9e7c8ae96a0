//===- Registry.cpp - which function imports which op ---------------------===//
#include "Registry.h"

#include "llvm/ADT/STLExtras.h"

using namespace cleave::onnx;

const Registry &Registry::get() {
  static const Registry registry = [] {
    Registry all;
    registerPlumbing(all);
    registerMovement(all);
    registerIndexing(all);
    registerElementwise(all);
    registerActivations(all);
    registerContractions(all);
    registerReductions(all);
    registerNormalizations(all);
    registerAttention(all);
    registerConvolutions(all);
    registerPooling(all);
    registerResize(all);
    registerQuantization(all);
    registerLosses(all);
    registerControl(all);
    return all;
  }();
  return registry;
}

void Registry::add(llvm::StringRef opType, unsigned sinceVersion, Arity arity, ImportFn import) {
  auto &list = rows[opType];
  auto place = llvm::partition_point(list, [&](const OpImporter &row) { return row.sinceVersion < sinceVersion; });
  list.insert(place, {sinceVersion, arity, import});
}

const OpImporter *Registry::find(llvm::StringRef domain, llvm::StringRef opType, int64_t opset) const {
  auto it = rows.find(opType);
  if (it == rows.end() || !domain.empty())
    return nullptr;
  const OpImporter *best = nullptr;
  for (const OpImporter &row : it->second)
    if (row.sinceVersion <= opset)
      best = &row;
  return best && best->import ? best : nullptr;
}
