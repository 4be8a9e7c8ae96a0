//===- Annotate.cpp - writes a plan's wishes into types -------------------===//
//
//   plan     {tensor: x, dims: [data, _]}
//   before   func.func @f(%x: tensor<8x4xf32> {nn.name = "x"})
//   after    func.func @f(%x: tensor<8x4xf32, #spmd.sharding<#mesh, [{"data"}, {}]>> {nn.name = "x"})
//
// The plan is read and checked by itself, then each rule looks up its tensors and is checked against them; only when
// all rules agree are types written. Every error has its place in the plan.
//
//===----------------------------------------------------------------------===//
#include "PlanTargets.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/Transforms/Cause.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_ANNOTATE
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

namespace {
/// One tensor's wish, and the rule that it came from.
struct Wish {
  PlanTarget target;
  const PlanRule *rule;
};

struct Annotate : spmd::impl::AnnotateBase<Annotate> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult readPlan(Plan &plan, PlanError &error);
  LogicalResult setMesh(Plan &plan);
  LogicalResult collectWishes(const Plan &plan, PlanError &error);
  LogicalResult addWish(const Plan &plan, const PlanRule &rule, const PlanTarget &target, PlanError &error);
  bool canCut(const Plan &plan, const PlanRule &rule, nn::LoadOp part);
  LogicalResult write(MeshAttr mesh);
  LogicalResult emit(const PlanError &error);
  FileLineColLoc toLoc(const PlanPlace &place);

  SmallVector<Wish> wishes;
  llvm::DenseMap<PlanTarget::Key, unsigned> wishOf;
};
} // namespace

//===----------------------------------------------------------------------===//
// From plan to wishes
//===----------------------------------------------------------------------===//

LogicalResult Annotate::readPlan(Plan &result, PlanError &error) {
  if (!plan.empty() && failed(readPlanFile(plan, result, error)))
    return failure();
  if (failed(parseMeshOption(mesh, result, error)))
    return failure();
  for (const std::string &rule : shard)
    if (failed(parseShardOption(rule, result, error)))
      return failure();
  if (failed(setMesh(result)))
    return failure();
  return checkPlan(result, error);
}

/// A file that has a mesh already lends it to a plan without one.
LogicalResult Annotate::setMesh(Plan &result) {
  if (!result.mesh.empty())
    return success();
  MeshAttr given = resolveMesh(getOperation());
  if (!given)
    return failure();
  for (auto [name, size] : llvm::zip_equal(given.getNames(), given.getSizes()))
    result.mesh.push_back({name.str(), size, {}});
  result.devices.assign(given.getDevices().begin(), given.getDevices().end());
  return success();
}

static std::string describe(const PlanRule &rule, StringRef name) {
  if (rule.target == PlanRule::Target::Tensor || name == rule.pattern)
    return "'" + name.str() + "'";
  return std::string(rule.target == PlanRule::Target::Operand ? "operand " : "result ") + std::to_string(rule.index) +
         ", '" + name.str() + "',";
}

/// The shape of the parameter that `part` is cut out of.
static ArrayRef<int64_t> getParamShape(nn::LoadOp part) {
  auto param = SymbolTable::lookupNearestSymbolFrom<nn::ParamOp>(part, part.getParamAttr());
  return cast<RankedTensorType>(param.getType()).getShape();
}

/// True if what `rule` wants of a parameter can be had of this part; else says that and why.
bool Annotate::canCut(const Plan &plan, const PlanRule &rule, nn::LoadOp part) {
  PlanError error;
  std::string what = llvm::formatv("the part of '{0}' at [{1:$[, ]}]", part.getParam(),
                                   llvm::make_range(part.getStarts()->begin(), part.getStarts()->end()));
  if (succeeded(checkRule(plan, rule, what, *part.getSizes(), error))) {
    emitRemark(toLoc(rule.place)) << what << " is cut by itself, as the model reads it by itself";
    return true;
  }
  emitWarning(toLoc(rule.place)) << error.message << ": propagation decides how that part is cut";
  return false;
}

LogicalResult Annotate::addWish(const Plan &plan, const PlanRule &rule, const PlanTarget &target, PlanError &error) {
  RankedTensorType type = target.getType();
  if (!type) {
    error = {rule.patternPlace, "'" + target.name.str() + "' is not a tensor", {}};
    return failure();
  }
  nn::LoadOp part = target.getPart();
  ArrayRef<int64_t> shape = part ? getParamShape(part) : type.getShape();
  if (failed(checkRule(plan, rule, describe(rule, target.name), shape, error)))
    return failure();
  if (part && !canCut(plan, rule, part))
    return success();
  auto [it, isNew] = wishOf.try_emplace(target.getKey(), wishes.size());
  if (isNew) {
    wishes.push_back({target, &rule});
    return success();
  }
  const PlanRule &other = *wishes[it->second].rule;
  if (rule.asksSameAs(other))
    return success();
  error = {rule.place,
           "two rules disagree on '" + target.name.str() + "': " + rule.formatWish() + " here",
           {{other.place, other.formatWish() + " here"}}};
  return failure();
}

LogicalResult Annotate::collectWishes(const Plan &plan, PlanError &error) {
  PlanTargets table(getOperation());
  for (const PlanRule &rule : plan.rules) {
    SmallVector<PlanTarget> targets;
    if (failed(table.find(rule, targets, error)))
      return failure();
    for (StringRef name : table.findUnused(rule))
      emitWarning(toLoc(rule.patternPlace)) << "'" << name << "' matches, but no op of the program needs its elements";
    for (const PlanTarget &target : targets)
      if (failed(addWish(plan, rule, target, error)))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// From wishes to types
//===----------------------------------------------------------------------===//

static AxisAttr toAttr(MLIRContext *context, const PlanAxis &axis) {
  return AxisAttr::get(context, axis.name, axis.preSize, axis.size);
}

static ShardingAttr toSharding(MeshAttr mesh, const PlanRule &rule) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimShardingAttr> dims;
  for (const PlanDim &dim : rule.dims) {
    SmallVector<AxisAttr> axes;
    for (const PlanAxis &axis : dim.axes)
      axes.push_back(toAttr(context, axis));
    dims.push_back(DimShardingAttr::get(context, axes, dim.isOpen, rule.priority));
  }
  SmallVector<AxisAttr> replicated;
  for (const PlanAxis &axis : rule.replicated)
    replicated.push_back(toAttr(context, axis));
  return ShardingAttr::get(context, mesh, dims, ArrayRef<AxisAttr>(), ReductionKind::Sum, replicated, false);
}

/// Result number `index` of `func` leaves in `type`, through an spmd.constrain.
static void constrainResult(func::FuncOp func, unsigned index, RankedTensorType type, FileLineColLoc place) {
  Operation *terminator = func.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  Value value = terminator->getOperand(index);
  terminator->setOperand(index, ConstrainOp::create(builder, withWish(value.getLoc(), place), type, value));
}

/// Gives what is wanted of a pin to its operand. False where that is not the operand's to have: others use it too.
static bool moveWish(PinOp pin, FileLineColLoc place) {
  auto input = dyn_cast<OpResult>(pin.getInput());
  if (!input || !input.hasOneUse() || getSharding(input.getType()))
    return false;
  Location loc = input.getLoc();
  // Equal ops have merged, or the op that made the tensor did nothing.
  if (!llvm::is_contained(nn::getTensorNames(input), pin.getName())) {
    if (input.getResultNumber() != 0)
      return false;
    loc = FusedLoc::get(loc.getContext(), {loc, pin.getLoc()});
  }
  input.setType(pin.getType());
  input.setLoc(withWish(loc, place));
  return true;
}

/// Takes `name` from a value's names: from now on another value is called so.
static void dropName(Value value, StringRef name) {
  auto result = dyn_cast<OpResult>(value);
  if (!result || !llvm::is_contained(nn::getTensorNames(value), name))
    return;
  SmallVector<Location> locs;
  for (nn::NodeInfo &info : nn::getNodeInfos(value.getLoc())) {
    SmallVector<ArrayRef<StringRef>, 1> lists(info.results);
    SmallVector<StringRef> names;
    if (unsigned index = result.getResultNumber(); index < lists.size()) {
      llvm::copy_if(lists[index], std::back_inserter(names), [&](StringRef other) { return other != name; });
      lists[index] = names;
    }
    info.results = lists;
    locs.push_back(nn::makeNodeLoc(value.getContext(), info));
  }
  if (locs.empty())
    return;
  FileLineColLoc place = getWish(value.getLoc());
  Location loc = locs.size() == 1 ? locs.front() : FusedLoc::get(value.getContext(), locs);
  value.setLoc(place ? withWish(loc, place) : loc);
}

/// An spmd.constrain in place of a pin.
static Value constrainPin(PinOp pin) {
  Value root = pin.getInput();
  while (auto constrain = root.getDefiningOp<ConstrainOp>())
    root = constrain.getInput();
  dropName(root, pin.getName());
  OpBuilder builder(pin);
  return ConstrainOp::create(builder, pin.getLoc(), pin.getType(), pin.getInput());
}

/// Puts what is wanted of a pin where it belongs: into the operand's type, or into an spmd.constrain. A pin that
/// nothing is wanted of goes.
static void dissolve(PinOp pin) {
  Value input = pin.getInput();
  FileLineColLoc place = getWish(pin.getLoc());
  if (place && input.getType() != pin.getType() && !moveWish(pin, place))
    input = constrainPin(pin);
  pin.replaceAllUsesWith(input);
  pin.erase();
}

/// Makes the signatures agree with arguments and returned values.
static void updateSignatures(ModuleOp module) {
  for (func::FuncOp func : getFunctions(module)) {
    Block &body = func.getBody().front();
    func.setFunctionType(
        FunctionType::get(module.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  }
}

LogicalResult Annotate::write(MeshAttr mesh) {
  for (const Wish &wish : wishes) {
    RankedTensorType type = wish.target.getType(), wanted = withSharding(type, toSharding(mesh, *wish.rule));
    if (getSharding(type) && type != wanted) {
      InFlightDiagnostic error = emitError(toLoc(wish.rule->place));
      error << "'" << wish.target.name << "' already has another sharding in the program";
      error.attachNote(wish.target.getLoc()) << "it is " << type;
      return error;
    }
    FileLineColLoc place = toLoc(wish.rule->place);
    if (Value value = wish.target.value) {
      value.setType(wanted);
      value.setLoc(withWish(value.getLoc(), place));
    } else {
      constrainResult(wish.target.func, wish.target.result, wanted, place);
    }
  }
  for (func::FuncOp func : getFunctions(getOperation()))
    for (PinOp pin : llvm::make_early_inc_range(func.getOps<PinOp>()))
      dissolve(pin);
  getOperation()->removeAttr(SpmdDialect::kNamedAttr);
  updateSignatures(getOperation());
  return success(resolveMesh(getOperation()) != nullptr);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

FileLineColLoc Annotate::toLoc(const PlanPlace &place) {
  return FileLineColLoc::get(&getContext(), place.file, place.line, place.column);
}

LogicalResult Annotate::emit(const PlanError &error) {
  if (error.message.empty()) // emitted already
    return failure();
  if (error.place.line == 0)
    return emitError(UnknownLoc::get(&getContext())) << error.place.file << ": " << error.message;
  InFlightDiagnostic diagnostic = emitError(toLoc(error.place)) << error.message;
  for (const auto &[place, note] : error.notes)
    diagnostic.attachNote(toLoc(place)) << note;
  return diagnostic;
}

static MeshAttr toMeshAttr(MLIRContext *context, const Plan &plan) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : plan.mesh) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  return MeshAttr::get(context, names, sizes, plan.devices);
}

void Annotate::runOnOperation() {
  wishes.clear();
  wishOf.clear();
  Plan result;
  PlanError error;
  for (func::FuncOp func : getFunctions(getOperation()))
    if (!func.getBody().hasOneBlock()) {
      func.emitError() << "has control flow: only functions of one block can be sharded";
      return signalPassFailure();
    }
  if (failed(readPlan(result, error)) || failed(collectWishes(result, error))) {
    (void)emit(error);
    return signalPassFailure();
  }
  MeshAttr meshAttr = toMeshAttr(&getContext(), result);
  getOperation()->setAttr(SpmdDialect::kMeshAttr, meshAttr);
  if (failed(write(meshAttr)))
    signalPassFailure();
}
