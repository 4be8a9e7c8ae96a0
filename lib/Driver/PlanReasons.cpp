//===- PlanReasons.cpp - why a found plan, in words and as JSON -----------===//
//
// What else there would be stands below what was found, each with what it takes more; what has no plan, or none that could be better, has
// a line that says why.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/PlanReasons.h"

#include "TextTable.h"

#include "cleave/Pipelines/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;

/// `+22 %` of a call.
static std::string formatMore(double ns, double best) {
  return formatv("{0}{1:f0} %", ns < best ? "" : "+", 100 * (ns / best - 1));
}

/// Below the columns of `printReasons`.
static std::vector<std::string> makeRow(const OtherPlan &other, double best) {
  return {other.name,
          other.mesh,
          formatTime(other.ns),
          formatMore(other.ns, best),
          formatBytes(other.peakBytes),
          formatBytes(other.sentBytes),
          other.reason};
}

/// `/h.*/attn/MatMul`, or where a collective is of no node.
static std::string nameNode(const DearCollective &one) { return one.node.empty() ? "elsewhere" : one.node; }

/// The sharding there, and what it costs more: as time where a cluster is known.
static std::string describeNext(const std::optional<Alternative> &next) {
  if (!next)
    return "";
  return formatv("{0}: +{1}", next->sharding, next->ns > 0 ? formatTime(next->ns) : formatBytes(next->bytes));
}

/// Times add up to a call, so that shares say where it goes.
void cleave::driver::printReasons(llvm::raw_ostream &os, const FoundPlan &found, const PlanReasons &reasons) {
  double best = found.getBest().ns, all = reasons.computeNs + reasons.communicationNs + reasons.waitNs;
  if (all > 0)
    os << formatv("why: of a {2} {0:f0} % is compute, {1:f0} % sending", 100 * reasons.computeNs / all,
                  100 * reasons.communicationNs / all, found.getWord())
       << (reasons.waitNs > 0 ? formatv(", {0:f0} % waiting for other stages", 100 * reasons.waitNs / all).str() : "")
       << '\n';
  std::vector<std::vector<std::string>> rows{
      {"instead", "mesh", ("a " + found.getWord()).str(), "more", "memory of a rank", "sends", ""}};
  std::string without;
  for (const std::vector<OtherPlan> *others : {&reasons.stages, &reasons.styles})
    for (const OtherPlan &other : *others)
      if (other.ns > 0)
        rows.push_back(makeRow(other, best));
      else
        without += other.name + ": " + other.reason + "\n";
  if (rows.size() > 1)
    printTable(os, rows, TextColumns::FirstLeft);
  os << without;
  if (reasons.collectives.empty()) {
    os << "nothing is sent\n";
    return;
  }
  rows = {{"collectives", "at", "time", "bytes", "instead there"}};
  for (const DearCollective &one : reasons.collectives)
    rows.push_back({formatv("{0} {1}", one.count, one.kind), nameNode(one), formatTime(one.ns), formatBytes(one.bytes),
                    describeNext(one.nextBest)});
  printTable(os, rows, TextColumns::AllLeft);
}

/// Without figures where there is no plan.
static llvm::json::Array toJson(llvm::ArrayRef<OtherPlan> others) {
  llvm::json::Array list;
  for (const OtherPlan &other : others) {
    llvm::json::Object object{{"name", other.name}};
    if (!other.reason.empty())
      object["reason"] = other.reason;
    if (other.ns > 0) {
      object["mesh"] = other.mesh;
      object["seconds"] = other.ns * 1e-9;
      object["peak"] = other.peakBytes;
      object["wire_bytes_per_rank"] = other.sentBytes;
    }
    list.push_back(std::move(object));
  }
  return list;
}

/// Keys are fixed in docs/report.md.
llvm::json::Object cleave::driver::toJson(const PlanReasons &reasons) {
  llvm::json::Array collectives;
  for (const DearCollective &one : reasons.collectives) {
    llvm::json::Object object{{"kind", one.kind},
                              {"node", one.node},
                              {"count", one.count},
                              {"wire_bytes_per_rank", one.bytes},
                              {"seconds", one.ns * 1e-9}};
    if (one.nextBest)
      object["next_best"] = llvm::json::Object{{"sharding", one.nextBest->sharding},
                                               {"more_bytes", one.nextBest->bytes},
                                               {"more_seconds", one.nextBest->ns * 1e-9}};
    collectives.push_back(std::move(object));
  }
  return llvm::json::Object{
      {"compute_seconds", reasons.computeNs * 1e-9}, {"communication_seconds", reasons.communicationNs * 1e-9},
      {"wait_seconds", reasons.waitNs * 1e-9},       {"stages", ::toJson(reasons.stages)},
      {"styles", ::toJson(reasons.styles)},          {"collectives", std::move(collectives)}};
}
