//===- ChoicesReport.cpp - what a step may make again ---------------------===//
//
// The front of time against memory that `exec-recompute` has left on the function: the first takes least time, the last least memory.
//
//===----------------------------------------------------------------------===//
#include "ChoicesReport.h"

#include "cleave/Dialect/Exec/Transforms/RecomputePass.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;

std::vector<RecomputeReport> cleave::readChoices(func::FuncOp func) {
  std::vector<RecomputeReport> choices;
  auto front = func->getAttrOfType<ArrayAttr>(exec::kFrontAttr);
  for (auto row : front ? front.getAsRange<DictionaryAttr>()
                        : ArrayAttr::get(func.getContext(), {}).getAsRange<DictionaryAttr>()) {
    auto number = [&](StringRef key) {
      auto value = row.getAs<FloatAttr>(key);
      return value ? value.getValueAsDouble() : 0;
    };
    auto bytes = [&](StringRef key) {
      auto value = row.getAs<IntegerAttr>(key);
      return value ? value.getInt() : 0;
    };
    choices.push_back(
        {number("ns"), number("again_ns"), number("least_ns"), bytes("bytes"), bytes("kept"), row.contains("taken")});
  }
  return choices;
}

// Under the names that docs/report.md fixes.
void cleave::writeChoices(llvm::json::OStream &json, llvm::ArrayRef<RecomputeReport> choices) {
  if (choices.empty())
    return;
  json.attributeArray("recompute", [&] {
    for (const RecomputeReport &choice : choices)
      json.object([&] {
        json.attribute("ns", choice.ns);
        json.attribute("peak_bytes_per_rank", choice.bytes);
        json.attribute("kept_bytes", choice.keptBytes);
        json.attribute("again_ns", choice.againNs);
        json.attribute("least_again_ns", choice.leastNs);
        json.attribute("taken", choice.isTaken);
      });
  });
}

void cleave::printChoices(llvm::raw_ostream &os, llvm::ArrayRef<RecomputeReport> choices) {
  if (choices.empty())
    return;
  os << llvm::formatv("computed again:       {0,12} {1,12} {2,12} {3,12}\n", "of a step", "of it again", "peak memory",
                      "of it kept");
  for (const RecomputeReport &choice : choices)
    os << llvm::formatv("{0,-21} {1,12} {2,12} {3,12} {4,12}\n", choice.isTaken ? "  taken" : "", formatTime(choice.ns),
                        formatTime(choice.againNs), formatBytes(choice.bytes), formatBytes(choice.keptBytes));
}
