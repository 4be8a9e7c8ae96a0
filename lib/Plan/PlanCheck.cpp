//===- PlanCheck.cpp - options, and what a plan may say -------------------===//
//
// The text forms of `--mesh` and `--shard`, and all checks that need the whole plan or a tensor's shape. The parser has
// seen to syntax; here axes get their meaning.
//
//===----------------------------------------------------------------------===//
#include "ClusterReader.h"
#include "PlanPipeline.h"
#include "PlanText.h"
#include "PlanTrain.h"
#include "cleave/Plan/ClusterFile.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Sharding/Mesh.h"
#include "cleave/Sharding/MeshLimits.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "cleave/Support/Status.h"
#include <cassert>
#include <set>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Text of axes, dims and errors
//===----------------------------------------------------------------------===//

static std::string formatPlace(const PlanPlace &place) {
  std::string text = place.file;
  if (place.line)
    text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  return text;
}

std::string PlanError::format() const {
  std::string text = formatPlace(place) + ": error: " + message + "\n";
  for (const auto &[notePlace, note] : notes)
    text += formatPlace(notePlace) + ": note: " + note + "\n";
  return text;
}

std::string PlanAxis::format() const {
  return isSubAxis() ? name + ":(" + std::to_string(preSize) + ")" + std::to_string(size) : name;
}

/// As a plan writes it: `_`, `?`, `data`, `model?`, `[data, model]`, `...`.
static std::string formatDim(const PlanDim &dim) {
  if (dim.isRest)
    return "...";
  if (dim.axes.empty())
    return dim.isOpen ? "?" : "_";
  std::string text;
  for (const PlanAxis &axis : dim.axes)
    text += (text.empty() ? "" : ", ") + axis.format();
  text += dim.isOpen ? "?" : "";
  return dim.axes.size() == 1 ? text : "[" + text + "]";
}

std::string PlanRule::formatTarget() const {
  if (target == Target::Tensor)
    return pattern;
  if (target == Target::Module)
    return "module:" + pattern;
  return "node:" + pattern + (target == Target::Operand ? "#" : "#r") + std::to_string(index);
}

std::string PlanRule::formatDims() const {
  std::string text;
  for (const PlanDim &dim : dims)
    text += (text.empty() ? "" : ", ") + formatDim(dim);
  return "[" + text + "]";
}

std::string PlanRule::formatAnnotation() const {
  std::string text = formatDims();
  if (experts)
    text += ", experts " + formatDim(*experts);
  if (priority)
    text += ", priority " + std::to_string(priority);
  for (const PlanAxis &axis : replicated)
    text += (&axis == replicated.data() ? ", replicated " : " ") + axis.format();
  return text + (uneven ? ", uneven" : "") + (whereDivides ? ", where divides" : "");
}

/// Axes are compared by what they say; where they stand differs from rule to rule.
static bool sayTheSame(ArrayRef<PlanAxis> lhs, ArrayRef<PlanAxis> rhs) {
  return lhs.size() == rhs.size() &&
         all_of_zip(lhs, rhs, [](const PlanAxis &a, const PlanAxis &b) { return a.format() == b.format(); });
}

bool PlanRule::asksSameAs(const PlanRule &other) const {
  return formatDims() == other.formatDims() && priority == other.priority && sayTheSame(replicated, other.replicated) &&
         uneven == other.uneven && experts.has_value() == other.experts.has_value() &&
         (!experts || formatDim(*experts) == formatDim(*other.experts));
}

/// For words that other tools write for a dim that is not sharded.
static StringRef hintAtUnsharded(StringRef text) {
  bool isNothing = is_contained({"none", "null", "~", "nil"}, text.lower());
  return isNothing ? "; a dim that is not sharded is '_'" : "";
}

llvm::Error cleave::spmd::parseAxisText(StringRef text, PlanAxis &axis) {
  auto [name, digit] = text.split(':');
  bool isName = !name.empty() && name != "_" &&
                all_of(name, [](char c) { return isAlnum(c) || c == '_' || c == '-' || c == '.'; });
  if (!isName)
    return makeError("expected an axis, '_' or '?', got '{0}'{1}", text, hintAtUnsharded(text));
  axis.name = name.str();
  if (!text.contains(':'))
    return llvm::Error::success();
  if (!digit.consume_front("(") || digit.consumeInteger(10, axis.preSize) || !digit.consume_front(")") ||
      digit.getAsInteger(10, axis.size) || axis.preSize < 1 || axis.size < 2)
    return makeError("expected a sub-axis such as model:(1)2, got '{0}'", text);
  return llvm::Error::success();
}

llvm::Error cleave::spmd::parseDimEntry(StringRef text, const PlanPlace &place, PlanDim &dim) {
  dim.isRest = text == "...";
  if (text == "_" || dim.isRest)
    return llvm::Error::success();
  if (text.consume_back("?"))
    dim.isOpen = true;
  if (text.empty() && dim.isOpen)
    return llvm::Error::success();
  PlanAxis axis;
  axis.place = place;
  if (llvm::Error error = parseAxisText(text, axis))
    return error;
  dim.axes.push_back(std::move(axis));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static LogicalResult failAt(PlanError &error, StringRef option, size_t offset, const Twine &message) {
  error = {{option.str(), 1, unsigned(offset) + 1}, message.str(), {}};
  return failure();
}

LogicalResult cleave::spmd::parseMeshOption(StringRef text, Plan &plan, PlanError &error) {
  if (text.empty())
    return success();
  std::vector<MeshAxis> mesh;
  SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    size_t offset = entry.data() - text.data();
    auto [name, number] = entry.split('=');
    MeshAxis axis{name.trim().str(), 1, {"--mesh", 1, unsigned(offset) + 1}};
    if (!entry.contains('='))
      return failAt(error, "--mesh", offset, "expected an axis and its size, such as data=2, got '" + entry + "'");
    if (number.trim().getAsInteger(10, axis.size) || axis.size < 1 || axis.size > INT32_MAX)
      return failAt(error, "--mesh", number.data() - text.data(),
                    "expected a size of at least 1, got '" + number + "'");
    mesh.push_back(std::move(axis));
  }
  // The option replaces the mesh of the file: axes of both in one mesh would be in no order.
  plan.mesh = std::move(mesh);
  return success();
}

/// `node:PATTERN#1`, `node:PATTERN#r0`, `module:PATTERN` or a tensor's pattern.
static LogicalResult parseTarget(StringRef text, PlanRule &rule, PlanError &error) {
  if (text.consume_front("node:")) {
    // The last one: names of nodes may have others.
    auto [pattern, index] = text.rsplit('#');
    rule.target = index.consume_front("r") ? PlanRule::Target::Result : PlanRule::Target::Operand;
    if (!text.contains('#') || index.getAsInteger(10, rule.index))
      return failAt(error, "--shard", 0,
                    "a rule for a node ends in #N (operand N) or #rN (result N), got 'node:" + text + "'");
    text = pattern;
  } else if (text.consume_front("module:")) {
    rule.target = PlanRule::Target::Module;
  }
  rule.pattern = text.str();
  if (llvm::Error bad = NamePattern::create(text).takeError())
    return failAt(error, "--shard", 0, llvm::toString(std::move(bad)));
  return success();
}

LogicalResult cleave::spmd::parseShardOption(StringRef text, Plan &plan, PlanError &error) {
  // The last one: a name may have the same characters.
  size_t equals = text.rfind("=[");
  if (equals == StringRef::npos)
    return failAt(error, "--shard", 0, "expected PATTERN=[data, _], got '" + text + "'");
  PlanRule rule;
  rule.place = rule.patternPlace = {"--shard", 1, 1};
  if (failed(parseTarget(text.take_front(equals), rule, error)))
    return failure();
  // Blanks in front keep the columns of the list right.
  std::string dims = std::string(equals + 1, ' ') + text.drop_front(equals + 1).str();
  if (failed(parseDimsText(dims, "--shard", rule, error)))
    return failure();
  plan.rules.push_back(std::move(rule));
  return success();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

std::vector<MeshAxis> Plan::getInnerAxes() const {
  std::vector<MeshAxis> axes = mesh;
  llvm::erase_if(axes, [&](const MeshAxis &axis) { return pipeline && axis.name == pipeline->axis; });
  return axes;
}

const MeshAxis *Plan::findAxis(StringRef name) const {
  auto it = find_if(mesh, [&](const MeshAxis &axis) { return axis.name == name; });
  return it == mesh.end() ? nullptr : &*it;
}

int64_t Plan::getExtent(const PlanAxis &axis) const {
  if (axis.isSubAxis())
    return axis.size;
  const MeshAxis *whole = findAxis(axis.name);
  return whole ? whole->size : 1;
}

bool Plan::isFree(StringRef axis) const {
  if (pipeline && pipeline->axis == axis)
    return false;
  return areAllFree || any_of(free, [&](const PlanAxis &one) { return one.name == axis; });
}

SmallVector<SplitAxis> Plan::getSplits(const PlanDim &dim) const {
  SmallVector<SplitAxis> splits;
  for (const PlanAxis &axis : dim.axes)
    splits.push_back({axis.format(), getExtent(axis)});
  return splits;
}

static LogicalResult failAt(PlanError &error, const PlanPlace &place, const Twine &message,
                            decltype(PlanError::notes) notes = {}) {
  error = {place, message.str(), std::move(notes)};
  return failure();
}

/// Axes have names that plans can spell and sizes whose product counts ranks; devices are a permutation of these.
static LogicalResult checkMesh(const Plan &plan, PlanError &error) {
  if (plan.mesh.size() > kMostAxes)
    return failAt(error, plan.mesh[kMostAxes].place, "the mesh has more than " + Twine(kMostAxes) + " axes");
  int64_t ranks = 1;
  for (auto [index, axis] : enumerate(plan.mesh)) {
    PlanAxis asAxis;
    if (llvm::errorToBool(parseAxisText(axis.name, asAxis)) || asAxis.isSubAxis())
      return failAt(error, axis.place, "'" + axis.name + "' is not a name for an axis: letters, digits, '_', '-', '.'");
    for (const MeshAxis &other : ArrayRef(plan.mesh).take_front(index))
      if (other.name == axis.name)
        return failAt(error, axis.place, "axis \"" + axis.name + "\" is named twice", {{other.place, "named here"}});
    if (axis.size > kMostRanks / ranks)
      return failAt(error, axis.place, Twine("the ") + kTooManyRanks);
    ranks *= axis.size;
  }
  if (plan.devices.empty())
    return success();
  if (static_cast<int64_t>(plan.devices.size()) != ranks)
    return failAt(error, plan.devicesPlace,
                  "the mesh has " + Twine(ranks) + " ranks but devices lists " + Twine(plan.devices.size()),
                  {{plan.mesh.front().place, "the mesh is here"}});
  std::vector<int64_t> sorted = plan.devices;
  llvm::sort(sorted);
  for (auto [rank, device] : enumerate(sorted))
    if (device != static_cast<int64_t>(rank))
      return failAt(error, plan.devicesPlace, "devices is not a permutation of 0 to " + Twine(ranks - 1));
  return success();
}

/// The axis is one of the mesh, and a sub-axis is a digit of it: what lies on either side divides.
static LogicalResult checkAxis(const Plan &plan, const PlanAxis &axis, PlanError &error) {
  const MeshAxis *whole = plan.findAxis(axis.name);
  if (!whole) {
    SmallVector<StringRef> names;
    for (const MeshAxis &known : plan.mesh)
      names.push_back(known.name);
    std::string unknown = "unknown axis '" + axis.name + "'";
    if (plan.mesh.empty())
      return failAt(error, axis.place, unknown + ": there is no mesh" + hintAtUnsharded(axis.name));
    StringRef hint = hintAtUnsharded(axis.name);
    return failAt(error, axis.place,
                  unknown + ", the mesh is " + formatMesh(plan.mesh, ", ") +
                      (hint.empty() ? suggestNames(axis.name, names) : hint.str()));
  }
  bool fits = axis.preSize <= whole->size && axis.size <= whole->size;
  if (axis.isSubAxis() && (!fits || whole->size % (axis.preSize * axis.size) != 0))
    return failAt(error, axis.place,
                  "sub-axis '" + axis.format() + "' does not divide axis \"" + axis.name + "\"=" + Twine(whole->size),
                  {{whole->place, "the axis is here"}});
  return success();
}

/// Sub-axes as intervals [preSize, preSize * size): those that only touch have no digit in common.
static bool overlap(const Plan &plan, const PlanAxis &lhs, const PlanAxis &rhs) {
  return lhs.name == rhs.name && lhs.preSize < rhs.preSize * plan.getExtent(rhs) &&
         rhs.preSize < lhs.preSize * plan.getExtent(lhs);
}

/// No axis, and no digit of one, stands twice in a tensor.
static LogicalResult checkAxesOfRule(const Plan &plan, const PlanRule &rule, PlanError &error) {
  SmallVector<const PlanAxis *> axes = rule.getAxes();
  for (auto [index, axis] : enumerate(axes)) {
    if (failed(checkAxis(plan, *axis, error)))
      return failure();
    for (const PlanAxis *other : ArrayRef(axes).take_front(index)) {
      if (!overlap(plan, *axis, *other))
        continue;
      error = {axis->place, "axis '" + axis->format() + "' is used twice in one tensor", {{other->place, "used here"}}};
      return failure();
    }
  }
  return success();
}

/// All sub-axes of a plan must be digits of one way to write their axis: (1)2 and (1)3 of an axis of 6 exclude each
/// other.
static LogicalResult checkSubAxes(const Plan &plan, PlanError &error) {
  SmallVector<int64_t> sizes;
  SmallVector<StringRef> names;
  for (const MeshAxis &axis : plan.mesh) {
    sizes.push_back(axis.size);
    names.push_back(axis.name);
  }
  SmallVector<SubAxis> annotations;
  std::set<std::tuple<unsigned, int64_t, int64_t>> known;
  auto check = [&](const PlanAxis &axis) -> LogicalResult {
    if (!axis.isSubAxis())
      return success();
    unsigned number = plan.findAxis(axis.name) - plan.mesh.data();
    if (!known.insert({number, axis.preSize, axis.size}).second)
      return success();
    annotations.push_back({number, axis.preSize, axis.size});
    if (llvm::Error exclusive = AtomMesh::create(sizes, annotations, names).takeError())
      return failAt(error, axis.place, llvm::toString(std::move(exclusive)));
    return success();
  };
  for (const PlanRule &rule : plan.rules)
    for (const PlanAxis *axis : rule.getAxes())
      if (failed(check(*axis)))
        return failure();
  return success();
}

/// To choose among links takes some, and a program that can be timed as a whole.
static LogicalResult checkAuto(const Plan &plan, PlanError &error) {
  if (!plan.areDevicesAuto)
    return success();
  if (!plan.cluster)
    return failAt(error, plan.devicesPlace, "'devices: auto' needs a cluster, which says how devices are connected");
  return plan.pipeline
             ? failAt(error, plan.devicesPlace, "'devices: auto' is not for pipelines: list the devices of their ranks")
             : success();
}

static LogicalResult checkFree(const Plan &plan, PlanError &error) {
  for (const PlanAxis &axis : plan.free) {
    if (failed(checkAxis(plan, axis, error)))
      return failure();
    if (axis.isSubAxis())
      return failAt(error, axis.place, "only whole axes can be free, '" + axis.format() + "' is a part of one");
    if (plan.pipeline && plan.pipeline->axis == axis.name)
      return failAt(error, axis.place, "axis '" + axis.name + "' is that of the pipeline: it cuts stages, not tensors",
                    {{plan.pipeline->axisPlace, "the pipeline is here"}});
  }
  return success();
}

static LogicalResult checkBounds(const Plan &plan, PlanError &error) {
  for (const PlanBound &bound : plan.bounds) {
    if (!bound.axis.empty() && failed(checkAxis(plan, {bound.axis, 1, 0, bound.place}, error)))
      return failure();
    if (bound.isPerBlock && plan.pipeline)
      return failAt(error, bound.place, "'per block' is about one stage: a rank of a pipeline has some blocks alone",
                    {{plan.pipeline->axisPlace, "the pipeline is here"}});
  }
  return success();
}

/// One style is for all axes.
static LogicalResult checkLike(const Plan &plan, PlanError &error) {
  if (plan.like.size() > 1 && plan.like.size() != plan.mesh.size())
    return failAt(
        error, plan.likePlace,
        formatv("{0} styles for {1} axes: give one for each, or one for all", plan.like.size(), plan.mesh.size()));
  if (!plan.like.empty() && plan.pipeline)
    return failAt(error, plan.likePlace, "a style is about one stage, and the plan has a pipeline",
                  {{plan.pipeline->axisPlace, "the pipeline is here"}});
  return success();
}

/// The mesh comes first, as all other checks ask it.
LogicalResult cleave::spmd::checkPlan(const Plan &plan, PlanError &error) {
  if (failed(checkMesh(plan, error)) || failed(checkAuto(plan, error)))
    return failure();
  for (const PlanRule &rule : plan.rules)
    if (failed(checkAxesOfRule(plan, rule, error)))
      return failure();
  if (failed(checkSubAxes(plan, error)) || failed(checkFree(plan, error)) || failed(checkBounds(plan, error)) ||
      failed(checkLike(plan, error)) || failed(checkPipeline(plan, error)) || failed(checkTrain(plan, error)))
    return failure();
  return checkCluster(plan, error);
}

/// Options count as if they stood behind the file. Without a mesh axes mean nothing yet: the model may bring one.
LogicalResult cleave::spmd::readPlan(const PlanSource &source, Plan &plan, PlanError &error) {
  if (!source.file.empty() && failed(readPlanFile(source.file, plan, error)))
    return failure();
  if (failed(parseMeshOption(source.mesh, plan, error)))
    return failure();
  if (source.free)
    plan.areAllFree = plan.isByTime = true;
  plan.uneven |= source.uneven;
  for (const std::string &rule : source.shard)
    if (failed(parseShardOption(rule, plan, error)))
      return failure();
  for (const std::string &state : source.state)
    if (failed(parseStateOption(state, plan, error)))
      return failure();
  if (!source.cluster.empty()) {
    plan.clusterPlace = {"--cluster", 1, 1};
    if (failed(readCluster(source.cluster, plan.clusterPlace, plan.cluster.emplace(), error)))
      return failure();
  }
  if (!source.train.empty() && failed(parseTrain(source.train, "--train", plan.train.emplace(), error)))
    return failure();
  if (plan.train)
    plan.train->isPartial = source.fillsTrain;
  return plan.mesh.empty() ? checkTrainWhole(plan, error) : checkPlan(plan, error);
}

static int64_t countShards(ArrayRef<SplitAxis> axes) {
  int64_t shards = 1;
  for (const auto &[axis, size] : axes)
    shards *= size;
  return shards;
}

std::string cleave::spmd::describeUndivided(unsigned dim, int64_t extent, ArrayRef<SplitAxis> axes, Granule granule) {
  int64_t shards = countShards(axes), size = extent / shards;
  bool divides = extent % shards == 0;
  if (shards == 1 || (divides && size % granule.perByte == 0 && size % granule.block == 0))
    return "";
  auto each =
      map_range(axes, [](const SplitAxis &axis) { return "\"" + axis.first + "\"=" + std::to_string(axis.second); });
  std::string text = join(each, " times ");
  if (!divides)
    return formatv(" has size {0} in dim {1}, which axis {2} does not divide", extent, dim, text);
  bool isInByte = size % granule.perByte != 0;
  return formatv(" has size {0} in dim {1}, of which axis {2} makes shards of {3}: {4} elements share a {5}", extent,
                 dim, text, size, isInByte ? granule.perByte : granule.block, isInByte ? "byte" : "scale");
}

/// What `uneven: true` does with a dim: whole bytes go to each shard.
static std::string describeUneven(int64_t extent, ArrayRef<SplitAxis> axes, Granule granule) {
  int64_t shards = countShards(axes);
  int64_t size = divideCeil(divideCeil(extent, granule.perByte), shards) * granule.perByte;
  if (size * shards == extent)
    return "'uneven: true' would cut it there, and elements are gathered before they are scaled";
  return "'uneven: true' would pad it to " + std::to_string(size * shards);
}

LogicalResult cleave::spmd::checkRule(const Plan &plan, const PlanRule &rule, const Twine &what,
                                      ArrayRef<int64_t> shape, PlanError &error, ArrayRef<Granule> granules) {
  assert(succeeded(checkAxesOfRule(plan, rule, error)) && "the plan has not been checked");
  std::optional<std::vector<PlanDim>> dims = rule.expand(shape.size());
  if (!dims) {
    bool hasRest = any_of(rule.dims, [](const PlanDim &dim) { return dim.isRest; });
    return failAt(error, rule.dimsPlace,
                  what + " has " + Twine(shape.size()) + " dims but the rule lists " + (hasRest ? "at least " : "") +
                      Twine(rule.dims.size() - hasRest));
  }
  if (rule.uneven || plan.uneven)
    return success();
  for (auto [index, dim] : enumerate(*dims)) {
    Granule granule = granules.empty() ? Granule() : granules[index];
    std::string reason = describeUndivided(index, shape[index], plan.getSplits(dim), granule);
    if (reason.empty())
      continue;
    std::string instead = describeUneven(shape[index], plan.getSplits(dim), granule);
    error = {dim.place, (what + reason).str(), {{dim.place, std::move(instead)}}};
    return failure();
  }
  return success();
}
