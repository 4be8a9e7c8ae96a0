//===- OffloadReport.cpp - what waits in the host's memory ----------------===//
//
// Before memory is planned the ops say it (exec.offload), and then what `exec-plan-memory` has left on the function, and the buffer of the host.
//
//===----------------------------------------------------------------------===//
#include "OffloadReport.h"

#include "cleave/Cost/Memory.h"
#include "cleave/Dialect/Exec/Transforms/RecomputePass.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;

static int64_t getInteger(DictionaryAttr fields, StringRef key) {
  auto value = fields.getAs<IntegerAttr>(key);
  return value ? value.getInt() : 0;
}

std::optional<OffloadReport> cleave::readOffload(func::FuncOp func, const SymbolTable &symbols) {
  OffloadReport report;
  for (auto out : func.getOps<exec::OffloadOp>()) {
    ++report.values;
    report.bytes += spmd::getBytes(out.getType());
  }
  if (auto transfers = func->getAttrOfType<DictionaryAttr>(exec::kTransfersAttr)) {
    report.values = getInteger(transfers, "values");
    report.bytes = getInteger(transfers, "bytes");
    report.stayed = getInteger(transfers, "stayed");
    if (auto exposed = transfers.getAs<FloatAttr>("exposed_ns"))
      report.exposedNs = exposed.getValueAsDouble();
    for (exec::BufferOp buffer : cost::getBuffers(func, symbols))
      report.hostBytes += buffer.getOnHost() ? static_cast<int64_t>(buffer.getBytes()) : 0;
  }
  if (report.values == 0 && report.stayed == 0)
    return std::nullopt;
  auto module = func->getParentOfType<ModuleOp>();
  if (auto peaks = module->getAttrOfType<DictionaryAttr>(exec::kOffloadAttr)) {
    report.peakBefore = getInteger(peaks, "before");
    report.peakAfter = getInteger(peaks, "after");
  }
  return report;
}

// Under the names that docs/report.md fixes.
void cleave::writeOffload(llvm::json::OStream &json, const std::optional<OffloadReport> &offload) {
  if (!offload)
    return;
  json.attributeObject("offload", [&] {
    json.attribute("values", offload->values);
    json.attribute("bytes", offload->bytes);
    json.attribute("stayed", offload->stayed);
    if (offload->hostBytes > 0) {
      json.attribute("host_peak_bytes", offload->hostBytes);
      json.attribute("exposed_ns", offload->exposedNs);
    }
    if (offload->peakBefore) {
      json.attribute("peak_bytes_without", *offload->peakBefore);
      json.attribute("peak_bytes_with", *offload->peakAfter);
    }
  });
}

void cleave::printOffload(llvm::raw_ostream &os, const std::optional<OffloadReport> &offload) {
  if (!offload)
    return;
  os << "in the host's memory: " << offload->values << (offload->values == 1 ? " value" : " values") << " of a rank, "
     << formatBytes(offload->bytes);
  if (offload->stayed > 0)
    os << "; " << offload->stayed << " stay, for want of time";
  if (offload->peakBefore)
    os << "; peak memory " << formatBytes(*offload->peakBefore) << " -> " << formatBytes(*offload->peakAfter);
  if (offload->exposedNs > 0)
    os << "; kernels wait " << formatTime(offload->exposedNs);
  os << '\n';
}
