//===- ComparePlans.cpp - where two plans of a model differ ---------------===//
//
// A place is a weight, or a node that sends. Places whose names differ in numbers alone and that do the same are one, with how many there
// are; weights of several places that change alike are one line, by what they are to the model.
//
//   model ──▶ by A ──▶ weights, sendings ──┐
//         └─▶ by B ──▶ weights, sendings ──┴─▶ places that differ, the most bytes first
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/ComparePlans.h"

#include "cleave/Compiler/ModelStructure.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/NumberedName.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace cleave;
using llvm::formatv;

namespace {

/// How a weight is stored: `[_, [data, model]]`, as a plan has it; empty: it is replicated everywhere.
struct StoredWeight {
  std::string dims;
  int64_t bytes = 0;
};

/// What equal collectives of equal nodes send: kind, bytes of one.
using Sending = std::pair<std::string, int64_t>;
struct Sendings {
  std::map<Sending, int64_t> counts;
  double ns = 0;
  int64_t bytes = 0;
};

/// One of both plans: the model as it was sharded by it, what it stores, and what its nodes send.
struct Taken {
  PlanTotals totals;
  llvm::MapVector<StringRef, StoredWeight> weights;
  std::map<std::string, Sendings> sendings;
  std::unique_ptr<Compilation> compilation;
};

} // namespace

/// Of the module as propagation leaves it: types are those of the whole tensor, and say how it is split.
static void noteWeight(Taken &taken, StringRef name, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  spmd::ShardingAttr sharding = tensor ? spmd::getSharding(tensor) : nullptr;
  if (!sharding)
    return;
  int64_t bytes = spmd::getBytes(spmd::getLocalType(tensor));
  bool isSplit = llvm::any_of(sharding.getDims(), [](spmd::DimShardingAttr dim) { return !dim.getAxes().empty(); });
  StoredWeight &weight = taken.weights[name];
  // What is read in parts is stored in parts.
  if (weight.bytes == 0 && isSplit)
    weight.dims = spmd::formatSharding(sharding);
  weight.bytes += bytes;
  taken.totals.storedBytes += bytes;
}

/// Weights are arguments of functions that are written by hand, and ops where a file has them.
static void readWeights(Taken &taken) {
  func::FuncOp func = taken.compilation->getEntry();
  if (!func)
    return;
  for (BlockArgument argument : func.getArguments())
    if (spmd::isParameter(func, argument.getArgNumber()))
      noteWeight(taken, spmd::getArgumentName(func, argument.getArgNumber()), argument.getType());
  func->walk([&](spmd::ParameterOpInterface parameter) {
    noteWeight(taken, parameter.getParameterName(), parameter->getResult(0).getType());
  });
}

/// What a node sends several times is one entry with a count; equal layers are one place.
static void readReport(Taken &taken, const Report &report) {
  std::string mesh;
  for (const auto &[name, size] : report.mesh)
    mesh += formatv("{0}{1}={2}", mesh.empty() ? "" : ",", name, size);
  taken.totals.mesh = mesh;
  taken.totals.sentBytes = report.getWireBytes();
  taken.totals.peakBytes = report.peakBytesPerRank;
  if (report.time)
    taken.totals.ns = report.time->getCallNs();
  for (const CollectiveReport &one : report.collectives) {
    Sendings &place = taken.sendings[NumberedName(one.node).getStarred()];
    place.counts[{one.kind, one.wireBytes / std::max<int64_t>(one.times, 1)}] += one.times;
    place.ns += one.ns;
    place.bytes += one.wireBytes;
  }
}

/// Weights are read before the program is partitioned, sendings when kernels are formed, as a report of `cleave shard` counts them. A
/// pipeline ends before kernels.
static std::optional<Taken> take(CompileOptions options, StringRef plan, const DiagnosticHandler &handler) {
  Taken taken;
  options.sharding.plan = plan.str();
  taken.compilation = std::make_unique<Compilation>(std::move(options), handler);
  Compilation &compilation = *taken.compilation;
  if (!compilation.load() || !compilation.advance(Phase::Propagated))
    return std::nullopt;
  readWeights(taken);
  Phase last = compilation.isPipelined() ? compilation.getLastPhase() : Phase::Clustered;
  if (!compilation.advance(last))
    return std::nullopt;
  std::optional<Report> report = compilation.makeReport();
  if (!report)
    return std::nullopt;
  readReport(taken, *report);
  return taken;
}

//===----------------------------------------------------------------------===//
// In words
//===----------------------------------------------------------------------===//

/// Of B against A.
static std::string formatChange(int64_t bytes) { return (bytes < 0 ? "-" : "+") + formatBytes(std::abs(bytes)); }

namespace {
/// Words, and the bytes by which they are ordered.
struct WeighedText {
  std::string text;
  int64_t bytes = 0;
};
} // namespace

/// `B replicates query, key (12 layers, +4.0 MB)`.
static std::string describeWeights(StringRef what, StringRef a, StringRef b, unsigned layers, int64_t change) {
  std::string many = layers > 1 ? formatv("{0} layers, ", layers).str() : "";
  std::string size = "(" + many + formatChange(change) + ")";
  if (b.empty())
    return formatv("B replicates {0}, which A splits {1} {2}", what, a, size);
  if (a.empty())
    return formatv("B splits {0} {1}, which A replicates {2}", what, b, size);
  return formatv("B splits {0} {1} where A splits it {2} {3}", what, b, a, size);
}

/// Weights of one role that change alike are counted, and roles that change alike as often are one line: queries, keys and values.
static void compareWeights(const Taken &a, const Taken &b, ArrayRef<NamedRole> roles,
                           std::vector<WeighedText> &places) {
  struct Group {
    unsigned layers = 0;
    int64_t change = 0;
  };
  std::map<StringRef, StringRef> roleOf;
  for (const NamedRole &role : roles)
    roleOf[role.weight] = role.role;
  // By dims in A and in B, then by role: of each how many layers.
  llvm::MapVector<std::pair<std::string, std::string>, llvm::MapVector<StringRef, Group>,
                  std::map<std::pair<std::string, std::string>, unsigned>>
      changes;
  for (const auto &[name, stored] : a.weights) {
    auto found = b.weights.find(name);
    if (found == b.weights.end() || found->second.dims == stored.dims)
      continue;
    auto role = roleOf.find(name);
    Group &group = changes[{stored.dims, found->second.dims}][role == roleOf.end() ? name : role->second];
    ++group.layers;
    group.change += found->second.bytes - stored.bytes;
  }
  for (const auto &[dims, groups] : changes) {
    // Roles of as many layers are one line.
    std::map<unsigned, std::pair<SmallVector<StringRef>, int64_t>> byLayers;
    for (const auto &[role, group] : groups) {
      byLayers[group.layers].first.push_back(role);
      byLayers[group.layers].second += group.change;
    }
    for (const auto &[layers, group] : byLayers)
      places.push_back({describeWeights(llvm::join(group.first, ", "), dims.first, dims.second, layers, group.second),
                        std::abs(group.second)});
  }
}

/// `64 all_gather of 29.40 MB and 2 permute of 8 B`; `nothing`.
static std::string describeSendings(const Sendings *sendings) {
  std::vector<std::string> texts;
  for (const auto &[sending, count] : sendings ? sendings->counts : std::map<Sending, int64_t>())
    texts.push_back(formatv("{0} {1} of {2}", count, sending.first, formatBytes(sending.second)));
  return texts.empty() ? "nothing" : llvm::join(texts, " and ");
}

/// Where both send the same from nodes that differ in numbers alone, nothing is said, whichever of them it is.
static void compareSendings(const Taken &a, const Taken &b, std::vector<WeighedText> &places) {
  std::map<StringRef, std::pair<const Sendings *, const Sendings *>> both;
  for (const auto &[node, sendings] : a.sendings)
    both[node].first = &sendings;
  for (const auto &[node, sendings] : b.sendings)
    both[node].second = &sendings;
  bool isTimed = a.totals.ns && b.totals.ns;
  for (const auto &[node, pair] : both) {
    auto [inA, inB] = pair;
    if (inA && inB && inA->counts == inB->counts)
      continue;
    int64_t bytes = (inB ? inB->bytes : 0) - (inA ? inA->bytes : 0);
    double ns = (inB ? inB->ns : 0) - (inA ? inA->ns : 0);
    std::string change = isTimed ? (ns < 0 ? "-" : "+") + formatTime(std::abs(ns)) : formatChange(bytes);
    std::string where = node.empty() ? "elsewhere" : ("at " + node).str();
    places.push_back({formatv("B sends {0} where A sends {1}, {2}: {3}", describeSendings(inB), describeSendings(inA),
                              where, change),
                      std::max(inA ? inA->bytes : 0, inB ? inB->bytes : 0)});
  }
}

std::optional<PlanDifference> cleave::comparePlans(const CompileOptions &options, StringRef a, StringRef b,
                                                   const DiagnosticHandler &handler) {
  // Sizes of dims may be in a plan.
  CompileOptions alone = options;
  alone.sharding.plan = a.str();
  Compilation model(alone, handler);
  if (!model.load())
    return std::nullopt;
  auto structure = ModelStructure::create(model, nullptr);
  if (!structure)
    return std::nullopt;
  std::optional<Taken> takenA = take(options, a, handler), takenB;
  if (takenA)
    takenB = take(options, b, handler);
  if (!takenB)
    return std::nullopt;
  std::vector<WeighedText> places;
  compareWeights(*takenA, *takenB, structure->findRoles(nullptr), places);
  compareSendings(*takenA, *takenB, places);
  llvm::sort(places, [](const WeighedText &lhs, const WeighedText &rhs) {
    return lhs.bytes != rhs.bytes ? lhs.bytes > rhs.bytes : lhs.text < rhs.text;
  });
  PlanDifference difference{takenA->totals, takenB->totals, {}};
  for (WeighedText &place : places)
    difference.places.push_back(std::move(place.text));
  return difference;
}
