//===- MachineReport.cpp - a program beside the machine that it is for ----===//
//
// A machine has so much memory on each device: where a rank takes more, that is told with what would help most, which is
// the axis along which the most bytes of parameters stand whole. Where the plan left it to the machine which links axes
// have, that is told too.
//
//===----------------------------------------------------------------------===//
#include "MachineReport.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;

namespace {
/// Parameters that an axis does not split.
struct ReplicatedParameters {
  int64_t bytes = 0, saved = 0, largestBytes = 0;
  StringRef largest;
};
} // namespace

/// By a digit of the axis too: what is split in part is not what stands out.
static bool isSplitAlong(nn::LoadOp load, StringRef axis) {
  auto sharding = dyn_cast_if_present<spmd::ShardingAttr>(load.getSharding().value_or(Attribute()));
  return sharding && llvm::any_of(sharding.getDims(), [&](spmd::DimShardingAttr dim) {
           return llvm::any_of(dim.getAxes(), [&](spmd::AxisAttr split) { return split.getName() == axis; });
         });
}

/// Those with fewer elements than ranks cannot be split, and do not count.
static ReplicatedParameters findReplicated(func::FuncOp func, StringRef axis, int64_t size) {
  ReplicatedParameters whole;
  for (auto load : func.getOps<nn::LoadOp>()) {
    int64_t bytes = spmd::getBytes(load.getType());
    if (isSplitAlong(load, axis) || cast<RankedTensorType>(load.getType()).getNumElements() < size)
      continue;
    whole.bytes += bytes;
    whole.saved += bytes - bytes / size;
    if (bytes > whole.largestBytes) {
      whole.largestBytes = bytes;
      whole.largest = load.getParam();
    }
  }
  return whole;
}

/// What would save the most; empty where no parameter is replicated along any axis.
static std::string advise(func::FuncOp func, const Report &report) {
  std::string advice;
  int64_t most = 0;
  for (const auto &[axis, size] : report.mesh) {
    ReplicatedParameters whole = findReplicated(func, axis, size);
    if (size == 1 || whole.saved <= most)
      continue;
    most = whole.saved;
    advice = llvm::formatv(
        "parameters of {0} are replicated over axis \"{1}\"={2}, the largest of them '{3}' with {4}; cut "
        "along it, they would take {5} less",
        formatBytes(whole.bytes), axis, size, whole.largest, formatBytes(whole.largestBytes), formatBytes(whole.saved));
  }
  return advice;
}

void cleave::compareMemory(func::FuncOp func, const spmd::Cluster &cluster, Report &report) {
  if (!cluster.device.memoryBytes)
    return;
  report.memory = MemoryReport{cluster.device.memoryBytes, ""};
  if (report.peakBytesPerRank <= cluster.device.memoryBytes)
    return;
  std::string advice = advise(func, report);
  report.memory->excess =
      llvm::formatv("a rank takes {0} at its peak, {1} of them parameters, and a device of {2} has {3}: {4}",
                    formatBytes(report.peakBytesPerRank), formatBytes(report.parameterBytesPerRank), cluster.name,
                    formatBytes(cluster.device.memoryBytes),
                    advice.empty() ? "what is left to cut are values that come and go, by batch or sequence" : advice);
}

// Under the names that docs/report.md fixes.
void cleave::writeMachine(llvm::json::OStream &json, const Report &report) {
  if (report.memory)
    json.attributeObject("memory", [&] {
      json.attribute("device_bytes", report.memory->deviceBytes);
      json.attribute("fits", report.memory->excess.empty());
    });
  if (report.placement)
    json.attributeObject("placement", [&] {
      json.attributeArray("axes",
                          [&] { llvm::for_each(report.placement->axes, [&](auto &axis) { json.value(axis); }); });
      json.attributeArray(
          "devices", [&] { llvm::for_each(report.placement->devices, [&](int64_t device) { json.value(device); }); });
      json.attribute("tried", report.placement->tried);
      json.attribute("ns", report.placement->ns);
      if (report.placement->tried > 1)
        json.attribute("next_ns", report.placement->nextNs);
    });
}

void cleave::printPlacement(llvm::raw_ostream &os, const DeviceAssignmentReport &placement) {
  os << "devices chosen:       " << llvm::join(placement.axes, ", ") << ": " << formatTime(placement.ns);
  if (placement.tried > 1)
    os << ", the next best of " << placement.tried << " takes " << formatTime(placement.nextNs);
  os << '\n';
}
