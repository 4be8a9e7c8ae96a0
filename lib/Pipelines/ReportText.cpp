//===- ReportText.cpp - a report as people see it -------------------------===//
//
// A line for what ranks send, by kind, axes and shape, then bytes, memory and compute of a rank. Numbers are scaled by powers of
// 1000, with a unit.
//
//===----------------------------------------------------------------------===//
#include "ChoicesReport.h"
#include "MachineReport.h"
#include "OffloadReport.h"
#include "PipelineReport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using llvm::StringRef;

/// `2.05 kB`; powers of 1000.
static std::string formatScaled(double value, StringRef unit) {
  const char *prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  unsigned scale = 0;
  for (; value >= 1000 && scale < 6; ++scale)
    value /= 1000;
  return scale ? llvm::formatv("{0:f2} {1}{2}", value, prefixes[scale], unit).str()
               : llvm::formatv("{0:f0} {1}", value, unit).str();
}

std::string cleave::formatBytes(int64_t bytes) { return formatScaled(bytes, "B"); }

std::string cleave::formatTime(double ns) {
  const char *units[] = {"ns", "us", "ms", "s"};
  unsigned scale = 0;
  for (; ns >= 1000 && scale < 3; ++scale)
    ns /= 1000;
  return scale ? llvm::formatv("{0:f2} {1}", ns, units[scale]).str() : llvm::formatv("{0:f0} ns", ns).str();
}

/// One line per kind, axes and shape, in order of first appearance, with how often that is sent.
static void printCollectives(llvm::raw_ostream &os, const Report &report) {
  struct Line {
    const CollectiveReport *first;
    int64_t count = 0, bytes = 0;
  };
  std::vector<Line> lines;
  auto isSame = [](const CollectiveReport &a, const CollectiveReport &b) {
    return a.kind == b.kind && a.axes == b.axes && a.operandShape == b.operandShape && a.type == b.type;
  };
  for (const CollectiveReport &collective : report.collectives) {
    auto it = llvm::find_if(lines, [&](const Line &line) { return isSame(*line.first, collective); });
    if (it == lines.end())
      it = lines.insert(lines.end(), {&collective});
    it->count += collective.times;
    it->bytes += collective.wireBytes;
  }
  if (lines.empty())
    os << "no communication\n";
  // The shape is that of the operand on one rank: what goes in, not what it stands for.
  for (const Line &line : lines) {
    std::string shape;
    for (int64_t extent : line.first->operandShape)
      shape += std::to_string(extent) + "x";
    os << llvm::formatv("{0,5} x {1,-14} over {2,-16} {3,-24} {4,12}\n", line.count, line.first->kind,
                        llvm::join(line.first->axes, ", "), shape + line.first->type, formatBytes(line.bytes));
  }
}

static void printProgram(llvm::raw_ostream &os, const ProgramReport &program) {
  os << "program:              " << program.kernels << " kernels, ";
  if (program.variants.size() > 1)
    os << program.variants.size() << " variants of at most ";
  os << program.commands << " commands" << (program.precision == "bf16" ? ", bf16 in memory" : "") << '\n';
}

/// `8 B (20.0 %) of inputs, 24 B (12.5 %) of values`, on all ranks together; nothing where shards divide.
static void printPadding(llvm::raw_ostream &os, const PaddingReport &padding) {
  std::string text;
  for (auto [name, one] : {std::pair("parameters", padding.parameters),
                           {"inputs", padding.inputs},
                           {"outputs", padding.outputs},
                           {"values", padding.values}})
    if (one.bytes)
      text += llvm::formatv("{0}{1} ({2:f1} %) of {3}", text.empty() ? "" : ", ", formatBytes(one.bytes),
                            100 * one.getShare(), name);
  if (!text.empty())
    os << "padding of all ranks: " << text << '\n';
}

void cleave::printReport(llvm::raw_ostream &os, const Report &report) {
  std::string mesh;
  for (const auto &[axis, size] : report.mesh)
    mesh += (mesh.empty() ? "" : ", ") + axis + "=" + std::to_string(size);
  os << "mesh " << mesh << " (" << report.ranks << (report.ranks == 1 ? " rank)\n" : " ranks)\n");
  if (report.pipeline)
    printPipeline(os, *report.pipeline);
  printCollectives(os, report);
  os << "sent by a rank:       " << formatBytes(report.getWireBytes()) << '\n';
  os << "parameters of a rank: " << formatBytes(report.parameterBytesPerRank) << " of "
     << formatBytes(report.parameterBytes) << '\n';
  printPadding(os, report.padding);
  os << "peak memory of a rank: " << formatBytes(report.peakBytesPerRank) << '\n';
  if (report.train) {
    std::string text;
    for (const auto &[role, bytes] : report.memoryByRole)
      if (bytes)
        text += (text.empty() ? "" : ", ") + role + " " + formatBytes(bytes);
    os << "  of which:           " << text << '\n';
  }
  if (report.arena)
    os << "arena of a rank:      " << formatBytes(report.arena->bytes) << ", at least "
       << formatBytes(report.arena->bound) << " by lifetimes, ratio "
       << llvm::formatv("{0:f2}", report.arena->bound ? double(report.arena->bytes) / double(report.arena->bound) : 1)
       << '\n';
  if (report.flops > 0)
    os << "compute of a rank:    " << formatScaled(report.flopsPerRank, "flop") << " of "
       << formatScaled(report.flops, "flop") << '\n';
  if (report.time)
    os << "time of a rank:       " << formatTime(report.time->computeNs) << " of compute, "
       << formatTime(report.time->communicationNs) << " of communication, as predicted for " << report.time->cluster
       << (report.time->overlappedNs > 0 ? ", " + formatTime(report.time->overlappedNs) + " of it at the same time"
                                         : "")
       << '\n';
  if (report.time && report.time->ranks)
    os << "time of a call:       " << formatTime(report.time->getCallNs()) << ", "
       << formatTime(report.time->getSpanNs()) << " where calls follow each other\n";
  printChoices(os, report.recompute);
  printOffload(os, report.offload);
  if (report.placement)
    printPlacement(os, *report.placement);
  if (report.program)
    printProgram(os, *report.program);
  for (const ReplicationReport &entry : report.replicated)
    os << "replicated: " << entry.op << (entry.node.empty() ? "" : " " + entry.node) << " over "
       << llvm::join(entry.axes, ", ") << ": " << entry.reason << '\n';
}
