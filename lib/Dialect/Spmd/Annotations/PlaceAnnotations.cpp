//===- PlaceAnnotations.cpp - from the rules of a plan to pins ------------===//
//
//   plan     {tensor: hidden, dims: [data, _]}
//   before   %h = nn.exp %x      %y = nn.neg %h
//   after    %h = nn.exp %x      %p = spmd.pin %h "hidden" wants #spmd.annotation<..>      %y = nn.neg %p
//
// Each rule looks up its tensors and is checked against them; only when all rules agree is anything written. A value has
// several names where the model passes it on (Identity); each that is named gets a pin of its own, one behind the
// other, so that they may be wanted differently. Arguments and results of functions cannot vanish: their annotation is an
// attribute.
//
//===----------------------------------------------------------------------===//
#include "PlaceStates.h"
#include "PlanTargets.h"

#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/AttentionRequest.h"
#include "cleave/Dialect/Spmd/IR/ClusterAttr.h"
#include "cleave/Dialect/Spmd/IR/FreeAxes.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <deque>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Places and errors
//===----------------------------------------------------------------------===//

/// Where in the plan something is said, for notes.
static FileLineColLoc toLoc(MLIRContext *context, const PlanPlace &place) {
  return FileLineColLoc::get(context, place.file, place.line, place.column);
}

LogicalResult cleave::spmd::emitError(MLIRContext *context, const PlanError &error) {
  InFlightDiagnostic diagnostic = mlir::emitError(toLoc(context, error.place)) << error.message;
  for (const auto &[place, note] : error.notes)
    diagnostic.attachNote(toLoc(context, place)) << note;
  return diagnostic;
}

FailureOr<PlanRef> cleave::spmd::readPlan(MLIRContext *context, const PlanSource &source) {
  if (source.isEmpty())
    return PlanRef();
  auto plan = std::make_shared<Plan>();
  PlanError error;
  if (failed(readPlan(source, *plan, error)))
    return emitError(context, error);
  return PlanRef(plan);
}

//===----------------------------------------------------------------------===//
// From rules to annotations
//===----------------------------------------------------------------------===//

/// The axis of a plan as an attribute.
static AxisAttr toAttr(MLIRContext *context, const PlanAxis &axis) {
  return AxisAttr::get(context, axis.name, axis.preSize, axis.size);
}

static AnnotationAttr toAnnotation(MeshAttr mesh, const Plan &plan, const PlanRule &rule) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimShardingAttr> dims;
  SmallVector<PlanDim> asked(rule.dims.begin(), rule.dims.end());
  // A stack of the tensors has a dim more, in front; nn-stack-experts makes it.
  if (rule.experts)
    asked.insert(asked.begin(), *rule.experts);
  for (const PlanDim &dim : asked) {
    auto axes = llvm::map_to_vector(dim.axes, [&](const PlanAxis &axis) { return toAttr(context, axis); });
    dims.push_back(DimShardingAttr::get(context, axes, dim.isOpen, rule.priority));
  }
  auto replicated = llvm::map_to_vector(rule.replicated, [&](const PlanAxis &axis) { return toAttr(context, axis); });
  auto sharding = ShardingAttr::get(context, mesh, dims, ArrayRef<AxisAttr>(), ReductionKind::Sum, replicated,
                                    rule.uneven || plan.uneven);
  return AnnotationAttr::get(context, sharding, toLoc(context, rule.place), toLoc(context, rule.patternPlace));
}

/// The mesh of a plan as an attribute.
static MeshAttr toMesh(MLIRContext *context, ArrayRef<MeshAxis> axes, ArrayRef<int64_t> devices) {
  auto names = llvm::map_to_vector(axes, [](const MeshAxis &axis) -> StringRef { return axis.name; });
  auto sizes = llvm::map_to_vector(axes, [](const MeshAxis &axis) { return axis.size; });
  return MeshAttr::get(context, names, sizes, devices);
}

MeshAttr cleave::spmd::getMesh(MLIRContext *context, const Plan &plan) {
  return toMesh(context, plan.mesh, plan.devices);
}

MeshAttr cleave::spmd::getInnerMesh(MLIRContext *context, const Plan &plan) {
  if (!plan.pipeline)
    return getMesh(context, plan);
  std::vector<MeshAxis> axes = plan.mesh;
  llvm::erase_if(axes, [&](const MeshAxis &axis) { return axis.name == plan.pipeline->axis; });
  return axes.empty() ? MeshAttr::get(context, {"device"}, {1}, {}) : toMesh(context, axes, {});
}

/// What a rule picked, as errors name it.
static std::string describe(const PlanRule &rule, StringRef name) {
  if (rule.target == PlanRule::Target::Tensor || name == rule.pattern)
    return "'" + name.str() + "'";
  if (rule.target == PlanRule::Target::Module)
    return "'" + name.str() + "', which module '" + rule.pattern + "' reads,";
  return std::string(rule.target == PlanRule::Target::Operand ? "operand " : "result ") + std::to_string(rule.index) +
         ", '" + name.str() + "',";
}

namespace {
/// Looks up the rules of one plan, then writes.
class AnnotationPlacer {
public:
  AnnotationPlacer(ModuleOp module, const Plan &plan, MeshAttr mesh) : module(module), plan(plan), mesh(mesh) {}

  LogicalResult collect(PlanError &error);
  LogicalResult checkProgram();
  void write();

private:
  struct Placed {
    PlanTarget target;
    const PlanRule *rule;
    AnnotationAttr annotation;
  };

  const PlanRule *fit(const PlanRule &rule, const Twine &what, ArrayRef<int64_t> shape, ArrayRef<Granule> granules,
                      PlanError &error);
  LogicalResult add(const PlanRule &rule, AnnotationAttr annotation, const PlanTarget &target, PlanError &error);
  void pin(Value value, ArrayRef<const Placed *> annotations);

  ModuleOp module;
  const Plan &plan;
  MeshAttr mesh;
  SmallVector<Placed> placed;
  /// Of rules that ask something else of each shape.
  std::deque<PlanRule> fittedRules;
  llvm::DenseMap<PlanTarget::Key, unsigned> placeOf;
};
} // namespace

/// What `rule` asks of a tensor of this shape; `rule` itself where that is the same for all. Null after an error.
const PlanRule *AnnotationPlacer::fit(const PlanRule &rule, const Twine &what, ArrayRef<int64_t> shape,
                                      ArrayRef<Granule> granules, PlanError &error) {
  if (!rule.dependsOnShape())
    return succeeded(checkRule(plan, rule, what, shape, error, granules)) ? &rule : nullptr;
  std::vector<PlanNote> left;
  PlanRule &fitted = fittedRules.emplace_back();
  if (failed(fitRule(plan, rule, what, shape, fitted, left, error, granules)))
    return nullptr;
  for (const PlanNote &note : left)
    emitRemark(toLoc(module.getContext(), note.place)) << note.message;
  return &fitted;
}

/// Only what is read from the model's files can be put together without moving anything.
static bool isWeight(const PlanTarget &target) {
  return target.value && isa_and_present<ParameterOpInterface>(target.value.getDefiningOp()) && !getPart(target.value);
}

LogicalResult AnnotationPlacer::add(const PlanRule &rule, AnnotationAttr annotation, const PlanTarget &target,
                                    PlanError &error) {
  RankedTensorType type = target.getType();
  if (!type) {
    error = {rule.patternPlace, "'" + target.name.str() + "' is not a tensor", {}};
    return failure();
  }
  if (rule.experts && !isWeight(target)) {
    error = {
        rule.patternPlace, "'" + target.name.str() + "' is not a weight, and only those of experts are stacked", {}};
    return failure();
  }
  ParameterOpInterface part = target.value ? getPart(target.value) : ParameterOpInterface();
  ArrayRef<int64_t> shape = part ? part.getParameterShape() : type.getShape();
  std::string what = describe(rule, target.name);
  // A plan speaks of elements; a shard of some is one of bytes where it ends with one.
  std::optional<PackedTensor> packed;
  if (target.value && !part)
    packed = ProgramDialect::get(mesh.getContext()).getPacked(target.value);
  SmallVector<Granule> granules;
  if (packed) {
    shape = packed->type.getShape();
    for (int64_t block : packed->blocks)
      granules.push_back({1, block});
    granules.back().perByte = packed->perByte;
    what += llvm::formatv(", {0},", packed->type).str();
  }
  const PlanRule *fitted = fit(rule, what, shape, granules, error);
  if (!fitted)
    return failure();
  if (fitted != &rule) {
    if (fitted->asksNothing())
      return success();
    annotation = toAnnotation(mesh, plan, *fitted);
  }
  auto [it, isNew] = placeOf.try_emplace(target.getKey(), placed.size());
  if (isNew) {
    placed.push_back({target, fitted, annotation});
    return success();
  }
  const PlanRule &other = *placed[it->second].rule;
  if (fitted->asksSameAs(other))
    return success();
  error = {rule.place,
           "two rules disagree on '" + target.name.str() + "': " + fitted->formatAnnotation() + " here",
           {{other.place, other.formatAnnotation() + " here"}}};
  return failure();
}

LogicalResult AnnotationPlacer::collect(PlanError &error) {
  PlanTargets table(module);
  llvm::StringSet<> said;
  for (const PlanRule &rule : plan.rules) {
    std::string text = rule.formatTarget() + " " + rule.formatAnnotation();
    for (const PlanPattern &other : rule.except)
      text += " " + other.text;
    if (!said.insert(text).second)
      continue; // says nothing new
    AnnotationAttr annotation = toAnnotation(mesh, plan, rule);
    PlanTargets::Found found;
    if (failed(table.find(rule, found, error)))
      return failure();
    for (StringRef name : found.unused)
      emitWarning(annotation.getPatternPlace())
          << "'" << name << "' matches, but no op of the program needs its elements";
    for (const std::string &note : found.notes)
      emitWarning(annotation.getPatternPlace()) << note;
    for (const PlanTarget &target : found.targets)
      if (failed(add(rule, annotation, target, error)))
        return failure();
  }
  return success();
}

/// Annotations of the program itself stay.
LogicalResult AnnotationPlacer::checkProgram() {
  for (const Placed &entry : placed) {
    ShardingAttr present = getSharding(entry.target.getType());
    auto pin = entry.target.value ? entry.target.value.getDefiningOp<PinOp>() : PinOp();
    if (pin && pin.getAnnotation())
      present = pin.getAnnotation()->getSharding();
    if (!present || present == entry.annotation.getSharding())
      continue;
    InFlightDiagnostic error = emitError(entry.annotation.getPlace());
    error << "'" << entry.target.name << "' already has another sharding in the program";
    error.attachNote(entry.target.getLoc()) << "it is " << withSharding(entry.target.getType(), present);
    return error;
  }
  return success();
}

/// Pins `value` for all its users, once per name that is asked for.
void AnnotationPlacer::pin(Value value, ArrayRef<const Placed *> annotations) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Value last = value;
  for (StringRef name : getTensorNames(value)) {
    const auto *it = llvm::find_if(annotations, [&](const Placed *entry) { return entry->target.name == name; });
    if (it == annotations.end())
      continue;
    auto pin = PinOp::create(builder, value.getLoc(), last, builder.getStringAttr(name), (*it)->annotation);
    last.replaceAllUsesExcept(pin, pin);
    last = pin;
  }
}

void AnnotationPlacer::write() {
  module->setAttr(SpmdDialect::kMeshAttr, mesh);
  if (plan.attention != AttentionMethod::Auto)
    setAttentionRequest(module, plan.attention);
  SmallVector<StringRef> free;
  for (const MeshAxis &axis : plan.mesh)
    if (plan.isFree(axis.name))
      free.push_back(axis.name);
  if (plan.isByTime)
    setFreeAxes(module, free, plan.uneven);
  module->removeAttr(kUnusedAttr);
  llvm::MapVector<Value, SmallVector<const Placed *, 1>> inside;
  for (const Placed &entry : placed) {
    const PlanTarget &target = entry.target;
    auto argument = dyn_cast_if_present<BlockArgument>(target.value);
    auto func = argument ? cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp(target.func);
    if (getSharding(target.getType()))
      continue; // the same as is asked for
    if (!target.value)
      func.setResultAttr(target.result, SpmdDialect::kAnnotationAttr, entry.annotation);
    else if (argument && target.name == getArgumentName(func, argument.getArgNumber()))
      func.setArgAttr(argument.getArgNumber(), SpmdDialect::kAnnotationAttr, entry.annotation);
    else if (auto pin = target.value.getDefiningOp<PinOp>())
      pin.setAnnotationAttr(entry.annotation);
    else
      inside[target.value].push_back(&entry);
  }
  for (auto &[value, annotations] : inside)
    pin(value, annotations);
}

/// The mesh of a file that has one already is lent to a plan without.
static LogicalResult borrowMesh(ModuleOp module, Plan &plan) {
  MeshAttr given = resolveMesh(module);
  if (!given)
    return failure();
  for (auto [name, size] : llvm::zip_equal(given.getNames(), given.getSizes()))
    plan.mesh.push_back({name.str(), size, {}});
  plan.devices.assign(given.getDevices().begin(), given.getDevices().end());
  PlanError error;
  return succeeded(checkPlan(plan, error)) ? success() : emitError(module.getContext(), error);
}

LogicalResult cleave::spmd::placeAnnotations(ModuleOp module, const Plan &given) {
  if (!given.like.empty())
    return mlir::emitError(toLoc(module.getContext(), given.likePlace))
           << "a style becomes rules where a command of cleave takes the plan, before models are annotated; cleave "
              "plan "
              "--like "
           << formatStyles(given.like) << " writes them";
  PlanError error;
  if (failed(placeStates(module, given, error)))
    return emitError(module.getContext(), error);
  if (given.cluster)
    writeCluster(module, *given.cluster);
  if (given.rules.empty() && given.mesh.empty() && !given.isByTime)
    return success();
  Plan plan = given;
  if (plan.mesh.empty() && failed(borrowMesh(module, plan)))
    return failure();
  AnnotationPlacer placer(module, plan, getInnerMesh(module.getContext(), plan));
  if (failed(placer.collect(error)))
    return emitError(module.getContext(), error);
  if (failed(placer.checkProgram()))
    return failure();
  placer.write();
  return shareAnnotations(module);
}
