//===- ReportJson.cpp - the report for programs ---------------------------===//
//
// As a stream: an llvm::json::Object would sort its keys, but the axes of a mesh are major to minor. Words are those of
// docs/report.md: they are added to, and never changed.
//
//===----------------------------------------------------------------------===//
#include "ChoicesReport.h"
#include "MachineReport.h"
#include "OffloadReport.h"

using namespace llvm;
using namespace cleave;

/// Extents in order.
static void writeShape(llvm::json::OStream &json, StringRef key, ArrayRef<int64_t> shape) {
  json.attributeArray(key, [&] { llvm::for_each(shape, [&](int64_t extent) { json.value(extent); }); });
}

/// Axes, major to minor.
static void writeNames(llvm::json::OStream &json, StringRef key, ArrayRef<std::string> names) {
  json.attributeArray(key, [&] { llvm::for_each(names, [&](const std::string &name) { json.value(name); }); });
}

/// An input or output: the whole, and what a rank has of it.
static void write(llvm::json::OStream &json, const TensorReport &tensor) {
  json.attribute("name", tensor.name);
  json.attribute("type", tensor.type);
  writeShape(json, "shape", tensor.shape);
  writeShape(json, "local_shape", tensor.localShape);
  json.attribute("sharding", tensor.sharding);
  if (tensor.heldType.empty())
    return;
  json.attributeObject("holds", [&] {
    json.attribute("type", tensor.heldType);
    writeShape(json, "shape", tensor.heldShape);
    writeShape(json, "local_shape", tensor.heldLocalShape);
  });
}

/// Only where shards are uneven.
static void write(llvm::json::OStream &json, const PaddingReport &padding) {
  auto writeOne = [&](StringRef key, const spmd::Padding &one) {
    json.attributeObject(key, [&] {
      json.attribute("bytes", one.bytes);
      json.attribute("share", one.getShare());
    });
  };
  if (padding.values.bytes + padding.parameters.bytes + padding.inputs.bytes + padding.outputs.bytes == 0)
    return;
  json.attributeObject("padding", [&] {
    writeOne("parameters", padding.parameters);
    writeOne("inputs", padding.inputs);
    writeOne("outputs", padding.outputs);
    writeOne("values", padding.values);
  });
}

/// Times only where a cluster is known.
static void write(llvm::json::OStream &json, const CollectiveReport &collective) {
  json.attribute("kind", collective.kind);
  writeNames(json, "axes", collective.axes);
  json.attribute("group_size", collective.groupSize);
  json.attribute("type", collective.type);
  writeShape(json, "operand_shape", collective.operandShape);
  writeShape(json, "result_shape", collective.resultShape);
  json.attribute("wire_bytes_per_rank", collective.wireBytes);
  if (collective.peers > 0)
    json.attribute("peers", collective.peers);
  if (collective.times != 1)
    json.attribute("times", collective.times);
  if (collective.ns > 0)
    json.attribute("ns", collective.ns);
  if (collective.isOfWeights)
    json.attribute("of_weights", true);
  if (collective.isOfGradients)
    json.attribute("of_gradients", true);
  json.attribute("node", collective.node);
  json.attribute("cause", collective.cause);
}

/// As the remark says it.
static void write(llvm::json::OStream &json, const ReplicationReport &replication) {
  json.attribute("op", replication.op);
  json.attribute("node", replication.node);
  writeNames(json, "axes", replication.axes);
  json.attribute("reason", replication.reason);
}

template <typename T>
static void writePairs(llvm::json::OStream &json, StringRef key, const std::vector<std::pair<std::string, T>> &pairs) {
  json.attributeObject(key, [&] {
    for (const auto &[name, number] : pairs)
      json.attribute(name, number);
  });
}

static void write(llvm::json::OStream &json, const VariantReport &variant) {
  writePairs(json, "dims", variant.dims);
  json.attribute("commands", variant.commands);
  json.attribute("liveness_bound_bytes", variant.liveBytes);
}

static void write(llvm::json::OStream &json, const LibraryReport &library) {
  json.attribute("name", library.name);
  json.attribute("calls", library.calls);
  json.attribute("fallbacks", library.fallbacks);
  json.attribute("reason", library.reason);
  json.attribute("workspace_bytes", library.workspaceBytes);
}

template <typename T> static void writeList(llvm::json::OStream &json, StringRef key, const std::vector<T> &list) {
  json.attributeArray(key, [&] {
    for (const T &entry : list)
      json.object([&] { write(json, entry); });
  });
}

/// By kind of collective.
static void writeTotals(llvm::json::OStream &json, const std::map<std::string, CollectiveTotal> &totals) {
  for (const auto &[kind, total] : totals)
    json.attributeObject(kind, [&, &total = total] {
      json.attribute("count", total.count);
      json.attribute("wire_bytes_per_rank", total.wireBytes);
    });
}

static void write(llvm::json::OStream &json, const ProgramReport &program) {
  json.attribute("kernels", program.kernels);
  json.attribute("commands", program.commands);
  json.attribute("arena_bytes", program.arena.bytes);
  json.attribute("liveness_bound_bytes", program.arena.bound);
  writeList(json, "variants", program.variants);
  json.attribute("compile_seconds", program.compileSeconds);
  json.attribute("precision", program.precision);
}

void cleave::writeJson(llvm::raw_ostream &os, const Report &report) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("model", report.model);
    writePairs(json, "mesh", report.mesh);
    json.attribute("ranks", report.ranks);
    json.attributeObject("parameters", [&] {
      json.attribute("bytes", report.parameterBytes);
      json.attribute("bytes_per_rank", report.parameterBytesPerRank);
    });
    write(json, report.padding);
    json.attribute("peak_bytes_per_rank", report.peakBytesPerRank);
    if (report.train) {
      writePairs(json, "memory_by_role", report.memoryByRole);
      json.attributeObject("train", [&] {
        json.attribute("parameters", report.train->trained + int64_t(report.train->frozen.size()));
        json.attribute("trained", report.train->trained);
        writeNames(json, "frozen", report.train->frozen);
      });
    }
    if (report.arena) {
      json.attribute("arena_bytes", report.arena->bytes);
      json.attribute("liveness_bound_bytes", report.arena->bound);
    }
    json.attributeObject("flops", [&] {
      json.attribute("total", report.flops);
      json.attribute("per_rank", report.flopsPerRank);
    });
    writeList(json, "inputs", report.inputs);
    writeList(json, "outputs", report.outputs);
    writeList(json, "collectives", report.collectives);
    json.attributeObject("totals", [&] { writeTotals(json, report.totals); });
    writeList(json, "replicated", report.replicated);
    if (report.time)
      json.attributeObject("time", [&] {
        json.attribute("cluster", report.time->cluster);
        json.attribute("compute_ns", report.time->computeNs);
        json.attribute("communication_ns", report.time->communicationNs);
        if (report.time->overlappedNs > 0)
          json.attribute("overlapped_ns", report.time->overlappedNs);
        if (report.time->ranks) {
          json.attribute("call_ns", report.time->getCallNs());
          json.attribute("span_ns", report.time->getSpanNs());
        }
      });
    writeMachine(json, report);
    writeChoices(json, report.recompute);
    writeOffload(json, report.offload);
    if (report.program)
      json.attributeObject("program", [&] { write(json, *report.program); });
    if (!report.libraries.empty())
      writeList(json, "libraries", report.libraries);
    if (report.windows)
      json.attributeObject("nccl_windows", [&] {
        json.attribute("collectives", report.windows->collectives);
        json.attribute("without", report.windows->without);
        json.attribute("reason", report.windows->reason);
      });
    if (report.pipeline)
      json.attribute("pipeline", llvm::json::Object(*report.pipeline));
    writePairs(json, "seconds", report.seconds);
  });
}
