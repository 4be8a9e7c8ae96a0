//===- Plan.cpp - reading a plan file -------------------------------------===//
//
// One function per key of the format, in terms of nodes (YamlReader.h).
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/Plan.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/PlanKeys.h"
#include "cleave/Support/File.h"

#include "ClusterReader.h"
#include "PlanExpect.h"
#include "PlanPipeline.h"
#include "PlanText.h"
#include "PlanTrain.h"
#include "YamlReader.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

static constexpr size_t kMaxPlanSize = 1 << 24;
static constexpr int64_t kMaxPriority = 1000;

//===----------------------------------------------------------------------===//
// The reader
//===----------------------------------------------------------------------===//

namespace {
class PlanReader : YamlReader {
public:
  using YamlReader::YamlReader;

  LogicalResult readPlan(Plan &plan);
  /// The whole text is one list of dims.
  LogicalResult readDimsOnly(PlanRule &rule);

private:
  LogicalResult readMesh(yaml::Node *node, Plan &plan);
  LogicalResult readDevices(yaml::Node *node, Plan &plan);
  LogicalResult readSymbols(yaml::Node *node, Plan &plan);
  LogicalResult readStates(yaml::Node *node, Plan &plan);
  LogicalResult readFree(yaml::Node *node, Plan &plan);
  LogicalResult readLike(yaml::Node *node, Plan &plan);
  LogicalResult readAttention(yaml::Node *node, Plan &plan);
  LogicalResult readRule(yaml::Node *node, Plan &plan);
  LogicalResult readDims(yaml::Node *node, PlanRule &rule);
  LogicalResult readDim(yaml::Node *node, PlanDim &dim);
  LogicalResult readAxes(yaml::Node *node, std::vector<PlanAxis> &axes);
  LogicalResult readExcept(yaml::Node *node, PlanRule &rule);
  LogicalResult readWhere(yaml::Node *node, PlanRule &rule);
  LogicalResult readExperts(yaml::Node *node, PlanRule &rule);
};
} // namespace

/// Keys may come in any order, so what they say of each other is checked when all are read (PlanCheck.cpp).
LogicalResult PlanReader::readPlan(Plan &plan) {
  yaml::Node *root = open();
  if (!root)
    return failure();
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "mesh")
      return readMesh(value, plan);
    if (key == "devices")
      return readDevices(value, plan);
    if (key == "dims")
      return readSymbols(value, plan);
    if (key == "state")
      return readStates(value, plan);
    if (key == "pipeline")
      return readPipeline(*this, value, plan.pipeline);
    if (key == "uneven")
      return readFlag(value, plan.uneven);
    if (key == "free")
      return readFree(value, plan);
    if (key == "like")
      return readLike(value, plan);
    if (key == "train")
      return readTrain(*this, value, plan.train.emplace());
    if (key == "expect")
      return readExpect(*this, value, plan.bounds);
    if (key == "attention")
      return readAttention(value, plan);
    if (key == "cluster") {
      plan.clusterPlace = placeOf(value);
      if (isa_and_nonnull<yaml::ScalarNode>(value) && failed(readText(value, plan.clusterFile)))
        return failure();
      return readClusterEntry(*this, value, plan.cluster.emplace());
    }
    return readSequence(value, "a list of rules", [&](yaml::Node *rule) { return readRule(rule, plan); });
  };
  if (failed(readMapping(root,
                         "a mapping with mesh, devices, dims, shard, like, free, uneven, attention, state, pipeline, "
                         "train, expect or cluster",
                         getPlanKeyNames(PlanSection::Plan), readEntry)))
    return failure();
  return close();
}

/// Axes stay in the order in which they stand: it is that of the ranks, major to minor.
LogicalResult PlanReader::readMesh(yaml::Node *node, Plan &plan) {
  return readMapping(node, "axes and sizes, such as {data: 2, model: 4}", {},
                     [&](StringRef name, yaml::KeyValueNode &entry) {
                       if (name == "devices" && isa_and_nonnull<yaml::SequenceNode>(entry.getValue()))
                         return readDevices(entry.getValue(), plan);
                       MeshAxis axis{name.str(), 1, placeOf(entry.getKey())};
                       if (failed(readInteger(entry.getValue(), axis.size, 1, INT32_MAX)))
                         return failure();
                       plan.mesh.push_back(std::move(axis));
                       return success();
                     });
}

/// Stands next to the mesh, or inside it: a list, or `auto`.
LogicalResult PlanReader::readDevices(yaml::Node *node, Plan &plan) {
  if (!plan.devices.empty() || plan.areDevicesAuto)
    return fail(node, "devices is given twice");
  plan.devicesPlace = placeOf(node);
  if (auto *word = dyn_cast_if_present<yaml::ScalarNode>(node); word && word->getRawValue() == "auto") {
    plan.areDevicesAuto = true;
    return success();
  }
  return readSequence(node, "a list of devices, one per rank",
                      [&](yaml::Node *entry) { return readInteger(entry, plan.devices.emplace_back(), 0, INT32_MAX); });
}

LogicalResult PlanReader::readSymbols(yaml::Node *node, Plan &plan) {
  return readMapping(node, "values of symbolic dimensions, such as {batch: 8}", {},
                     [&](StringRef name, yaml::KeyValueNode &entry) {
                       plan.dimPlaces[name.str()] = placeOf(entry.getKey());
                       return readInteger(entry.getValue(), plan.dims[name.str()], 0, INT32_MAX);
                     });
}

/// `true`, or a list of whole axes, which may be empty: what rules leave open is then decided by time.
LogicalResult PlanReader::readFree(yaml::Node *node, Plan &plan) {
  plan.isByTime = true;
  if (!isa_and_nonnull<yaml::SequenceNode>(node))
    return readFlag(node, plan.areAllFree);
  return readAxes(node, plan.free);
}

/// One style for all axes, or a list with one for each.
LogicalResult PlanReader::readLike(yaml::Node *node, Plan &plan) {
  plan.likePlace = placeOf(node);
  auto readOne = [&](yaml::Node *entry) -> LogicalResult {
    std::string text;
    if (failed(readText(entry, text)))
      return failure();
    Expected<std::vector<Style>> styles = parseStyles(text);
    if (!styles)
      return fail(entry, toString(styles.takeError()));
    append_range(plan.like, *styles);
    return success();
  };
  return isa_and_nonnull<yaml::SequenceNode>(node) ? readSequence(node, "styles, one for each axis", readOne)
                                                   : readOne(node);
}

LogicalResult PlanReader::readAttention(yaml::Node *node, Plan &plan) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  const auto *word = find(kAttentionWords, text);
  if (word == std::end(kAttentionWords))
    return fail(node, "attention is auto, gather or ring, got '" + text + "'");
  plan.attention = static_cast<AttentionMethod>(word - std::begin(kAttentionWords));
  return success();
}

LogicalResult PlanReader::readStates(yaml::Node *node, Plan &plan) {
  auto readState = [&](StringRef input, yaml::KeyValueNode &entry) -> LogicalResult {
    PlanState state{{input.str(), placeOf(entry.getKey())}, {"", placeOf(entry.getValue())}};
    if (failed(readText(entry.getValue(), state.output.text)))
      return failure();
    if (llvm::Error bad = checkState(state))
      return fail(entry.getKey(), llvm::toString(std::move(bad)));
    plan.states.push_back(std::move(state));
    return success();
  };
  return readMapping(node, "inputs and outputs, such as {\"past_*\": \"present_*\"}", {}, readState, "an output");
}

/// Keys may come in any order here too: what a rule must have, and have only one of, is counted on the way.
LogicalResult PlanReader::readRule(yaml::Node *node, Plan &plan) {
  PlanRule rule;
  rule.place = placeOf(node);
  bool hasTensor = false, hasNode = false, hasModule = false, hasIndex = false, hasDims = false;
  auto readIndex = [&](yaml::Node *value, PlanRule::Target target) -> LogicalResult {
    int64_t index = 0;
    if (hasIndex)
      return fail(value, "a rule has an operand or a result, not both");
    if (failed(readInteger(value, index, 0, 100000)))
      return failure();
    hasIndex = true;
    rule.target = target;
    rule.index = static_cast<unsigned>(index);
    return success();
  };
  auto readPattern = [&](yaml::Node *value, bool &has) -> LogicalResult {
    if (hasTensor || hasNode || hasModule)
      return fail(value, "a rule has one of tensor, node and module");
    has = true;
    rule.patternPlace = placeOf(value);
    if (isa_and_nonnull<yaml::SequenceNode, yaml::MappingNode>(value))
      return fail(value, "expected one pattern; one of several names is \"{a,b}\", in quotes");
    if (failed(readText(value, rule.pattern)))
      return failure();
    if (llvm::Error bad = NamePattern::create(rule.pattern).takeError())
      return fail(value, llvm::toString(std::move(bad)));
    return success();
  };
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "tensor")
      return readPattern(value, hasTensor);
    if (key == "node")
      return readPattern(value, hasNode);
    if (key == "module") {
      rule.target = PlanRule::Target::Module;
      return readPattern(value, hasModule);
    }
    if (key == "operand")
      return readIndex(value, PlanRule::Target::Operand);
    if (key == "result")
      return readIndex(value, PlanRule::Target::Result);
    if (key == "priority")
      return readInteger(value, rule.priority, 0, kMaxPriority);
    if (key == "replicated")
      return readAxes(value, rule.replicated);
    if (key == "except")
      return readExcept(value, rule);
    if (key == "where")
      return readWhere(value, rule);
    if (key == "uneven")
      return readFlag(value, rule.uneven);
    if (key == "experts")
      return readExperts(value, rule);
    hasDims = true;
    return readDims(value, rule);
  };
  if (failed(readMapping(node, "a rule, such as {tensor: x, dims: [data, _]}", getPlanKeyNames(PlanSection::Rule),
                         readEntry)))
    return failure();
  if (!hasTensor && !hasNode && !hasModule)
    return fail(node, "a rule needs a tensor, a node or a module");
  if (hasNode != hasIndex)
    return fail(node, hasNode ? "a rule for a node needs an operand or a result"
                              : "only a rule for a node has an operand or a result");
  if (!hasDims)
    return fail(node, "a rule needs dims");
  plan.rules.push_back(std::move(rule));
  return success();
}

LogicalResult PlanReader::readDims(yaml::Node *node, PlanRule &rule) {
  rule.dimsPlace = placeOf(node);
  bool hasRest = false;
  return readSequence(node, "a list with one entry per dim, such as [data, _]", [&](yaml::Node *entry) {
    PlanDim &dim = rule.dims.emplace_back();
    if (failed(readDim(entry, dim)) || (dim.isRest && hasRest))
      return dim.isRest ? fail(entry, "'...' is given twice") : failure();
    hasRest |= dim.isRest;
    return success();
  });
}

/// One entry, or a list of axes that split the dim together, major to minor.
LogicalResult PlanReader::readDim(yaml::Node *node, PlanDim &dim) {
  dim.place = placeOf(node);
  auto readEntry = [&](yaml::Node *entry) -> LogicalResult {
    std::string text;
    PlanPlace place = placeOf(entry);
    if (failed(readText(entry, text)))
      return failure();
    if (dim.isOpen)
      return fail(entry, "'?' must be the last entry of a dim");
    if ((text == "_" || text == "...") && entry != node)
      return fail(entry, "'" + text + "' is written alone, not in a list of axes");
    if (llvm::Error bad = parseDimEntry(text, place, dim))
      return failWord(entry, llvm::toString(std::move(bad)));
    return success();
  };
  return isa_and_nonnull<yaml::SequenceNode>(node) ? readSequence(node, "axes", readEntry) : readEntry(node);
}

LogicalResult PlanReader::readAxes(yaml::Node *node, std::vector<PlanAxis> &axes) {
  return readSequence(node, "a list of axes", [&](yaml::Node *entry) -> LogicalResult {
    std::string text;
    PlanAxis axis;
    axis.place = placeOf(entry);
    if (failed(readText(entry, text)))
      return failure();
    if (llvm::Error bad = parseAxisText(text, axis))
      return failWord(entry, llvm::toString(std::move(bad)));
    axes.push_back(std::move(axis));
    return success();
  });
}

/// One pattern or a list of them, each of which must be one: names are compared much later.
LogicalResult PlanReader::readExcept(yaml::Node *node, PlanRule &rule) {
  auto readOne = [&](yaml::Node *entry) { return readPattern(entry, rule.except.emplace_back()); };
  return isa_and_nonnull<yaml::SequenceNode>(node) ? readSequence(node, "patterns", readOne) : readOne(node);
}

LogicalResult PlanReader::readWhere(yaml::Node *node, PlanRule &rule) {
  std::string text;
  if (failed(readText(node, text)))
    return failure();
  rule.whereDivides = text == "divides";
  return rule.whereDivides ? success() : fail(node, "expected divides, got '" + text + "'");
}

/// An entry as of `dims`, of one dim: nothing is left for `...`.
LogicalResult PlanReader::readExperts(yaml::Node *node, PlanRule &rule) {
  PlanDim &dim = rule.experts.emplace();
  if (failed(readDim(node, dim)))
    return failure();
  return dim.isRest ? fail(node, "experts is one dim, '...' means several") : success();
}

LogicalResult PlanReader::readDimsOnly(PlanRule &rule) {
  yaml::Node *root = open();
  if (!root || failed(readDims(root, rule)))
    return failure();
  return close();
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

LogicalResult cleave::spmd::parsePlan(StringRef text, StringRef file, Plan &plan, PlanError &error) {
  if (text.size() > kMaxPlanSize) {
    error = {{file.str(), 1, 1}, "the plan is larger than 16 MB", {}};
    return failure();
  }
  return PlanReader(text, file, error).readPlan(plan);
}

/// As bytes: the scan sees tabs and carriage returns as they are.
LogicalResult cleave::spmd::readPlanFile(StringRef path, Plan &plan, PlanError &error) {
  auto buffer = readBuffer(path);
  if (!buffer) {
    error = {{path.str(), 0, 0}, "cannot read the plan: " + StringRef(buffer.getError().message()).lower(), {}};
    return failure();
  }
  return parsePlan((*buffer)->getBuffer(), path, plan, error);
}

LogicalResult cleave::spmd::parseDimsText(StringRef text, StringRef file, PlanRule &rule, PlanError &error) {
  return PlanReader(text, file, error).readDimsOnly(rule);
}
