//===- Annotate.cpp - annotations become types ----------------------------===//
//
//   before   func.func @f(%x: tensor<8x4xf32> {spmd.annotation = #spmd.annotation<..>})     %p = spmd.pin %h "hidden" wants ..
//   after    func.func @f(%x: tensor<8x4xf32, #data_>)                          %h : tensor<8x4xf32, #data_>
//
// A pin's annotation goes into the type of its operand, or into an spmd.constrain where others use the same value. A pin of a
// part of a parameter wants of the part what the plan wants of the whole. A plan that is given here is placed first
// (PlaceAnnotations.cpp).
//
//===----------------------------------------------------------------------===//
#include "../Annotations/PlanTargets.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/Transforms/PlanPasses.h"

namespace cleave::spmd {
#define GEN_PASS_DEF_ANNOTATE
#include "cleave/Dialect/Spmd/IR/SpmdPasses.h.inc"
} // namespace cleave::spmd

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

namespace {
/// Turns all annotations of a module into types.
class AnnotationDissolver {
public:
  explicit AnnotationDissolver(ModuleOp module) : module(module) {}

  LogicalResult run();

private:
  void dissolveSignature(func::FuncOp func);
  void dissolve(PinOp pin);
  LogicalResult reportUnused();

  ModuleOp module;
  /// Places of rules that a tensor of the program follows.
  llvm::DenseSet<Attribute> followed;
  /// Annotations that a part of a parameter took over, with its name.
  llvm::DenseSet<std::pair<Attribute, Attribute>> handedDown;
  /// Pins with an annotation that nothing uses.
  SmallVector<PinOp> unused;
};

struct Annotate : cleave::spmd::impl::AnnotateBase<Annotate> {
  using Base::Base;
  explicit Annotate(PlanRef plan) : given(std::move(plan)) {}

  void runOnOperation() override;

private:
  PlanRef given;
};
} // namespace

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

/// What the caller wants goes through an spmd.constrain, which leaves the value inside free.
static void constrainResult(func::FuncOp func, unsigned index, AnnotationAttr annotation) {
  Operation *terminator = func.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  Value value = terminator->getOperand(index);
  auto wanted = withSharding(cast<RankedTensorType>(value.getType()), annotation.getSharding());
  auto constraint =
      ConstrainOp::create(builder, value.getLoc(), wanted, value, builder.getStringAttr(getResultName(func, index)));
  constraint->setDiscardableAttr(SpmdDialect::kAnnotationAttr, annotation.getPlace());
  terminator->setOperand(index, constraint);
}

/// A step has as many arguments as three times its weights: attributes of all are set at once.
void AnnotationDissolver::dissolveSignature(func::FuncOp func) {
  Block &body = func.getBody().front();
  SmallVector<DictionaryAttr> all;
  func.getAllArgAttrs(all);
  for (auto [argument, attrs] : llvm::zip_equal(body.getArguments(), all)) {
    auto annotation = attrs.getAs<AnnotationAttr>(SpmdDialect::kAnnotationAttr);
    if (!annotation)
      continue;
    argument.setType(withSharding(cast<RankedTensorType>(argument.getType()), annotation.getSharding()));
    NamedAttrList changed(attrs);
    changed.set(SpmdDialect::kAnnotationAttr, annotation.getPlace());
    attrs = changed.getDictionary(func.getContext());
    followed.insert(annotation.getPlace());
  }
  func.setAllArgAttrs(all);
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (auto annotation = func.getResultAttrOfType<AnnotationAttr>(index, SpmdDialect::kAnnotationAttr)) {
      constrainResult(func, index, annotation);
      func.removeResultAttr(index, StringAttr::get(func.getContext(), SpmdDialect::kAnnotationAttr));
      followed.insert(annotation.getPlace());
    }
}

//===----------------------------------------------------------------------===//
// Pins
//===----------------------------------------------------------------------===//

/// True if what is wanted of a parameter can be had of this part of it; else says that and why.
static bool canSplit(ParameterOpInterface part, AnnotationAttr annotation) {
  std::string what = llvm::formatv("the part of '{0}' at [{1:$[, ]}]", part.getParameterName(),
                                   llvm::make_range(part.getPartOffset()->begin(), part.getPartOffset()->end()));
  MeshAttr mesh = annotation.getSharding().getMesh();
  bool isUneven = annotation.getSharding().getUneven();
  auto type = cast<RankedTensorType>(part->getResult(0).getType());
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    SmallVector<SplitAxis> axes;
    for (AxisAttr axis : annotation.getSharding().getDims()[dim].getAxes())
      axes.push_back({formatAxis(axis), axis.getExtent(mesh)});
    std::string reason = describeUndivided(dim, extent, axes);
    if (reason.empty() || isUneven)
      continue;
    emitWarning(annotation.getPlace()) << what << reason << ": propagation decides how that part is cut";
    return false;
  }
  emitRemark(annotation.getPlace())
      << what << " is sharded separately, because the model reads this part of a fused weight separately";
  return true;
}

/// Gives the annotation to the pinned value. False where it is not that value's to have: it has another name, or others use it.
static bool moveAnnotation(PinOp pin, AnnotationAttr annotation, RankedTensorType wanted) {
  auto input = dyn_cast<OpResult>(pin.getInput());
  if (!input || !input.hasOneUse() || input.getOwner()->getNumResults() != 1 || getSharding(input.getType()) ||
      !llvm::is_contained(getTensorNames(input), pin.getName()))
    return false;
  input.setType(wanted);
  input.getOwner()->setDiscardableAttr(SpmdDialect::kAnnotationAttr, annotation.getPlace());
  return true;
}

/// Puts what is wanted of a pin where it belongs. A pin that nothing is wanted of goes.
void AnnotationDissolver::dissolve(PinOp pin) {
  Value input = pin.getInput();
  std::optional<AnnotationAttr> annotation = pin.getAnnotation();
  if (annotation && pin.use_empty())
    return unused.push_back(pin);
  if (annotation)
    followed.insert(annotation->getPlace());
  ParameterOpInterface part = annotation ? getPart(pin.getResult()) : ParameterOpInterface();
  if (part)
    handedDown.insert({annotation->getPlace(), pin.getNameAttr()});
  if (part && !canSplit(part, *annotation))
    annotation.reset();
  if (annotation) {
    RankedTensorType wanted = withSharding(cast<RankedTensorType>(input.getType()), annotation->getSharding());
    if (input.getType() != wanted && !moveAnnotation(pin, *annotation, wanted)) {
      OpBuilder builder(pin);
      auto constraint = ConstrainOp::create(builder, pin.getLoc(), wanted, input, pin.getNameAttr());
      constraint->setDiscardableAttr(SpmdDialect::kAnnotationAttr, annotation->getPlace());
      input = constraint;
    }
  }
  pin.replaceAllUsesWith(input);
  pin.erase();
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// Erases a pin, and what only it needed.
static void eraseChain(PinOp pin) {
  SmallVector<Operation *> todo{pin};
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val();
    llvm::SmallSetVector<Operation *, 4> producers;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        producers.insert(producer);
    op->erase();
    for (Operation *producer : producers)
      if (isOpTriviallyDead(producer))
        todo.push_back(producer);
  }
}

/// A rule that nothing follows is an error, one that something else follows gets a warning.
LogicalResult AnnotationDissolver::reportUnused() {
  LogicalResult result = success();
  for (PinOp pin : unused) {
    StringRef reason = "no op of the program needs its elements";
    Attribute place = pin.getAnnotation()->getPlace();
    if (followed.contains(place) && !handedDown.contains({place, pin.getNameAttr()}))
      emitWarning(pin.getAnnotation()->getPatternPlace()) << "'" << pin.getName() << "' matches, but " << reason;
    else if (!followed.contains(place))
      result = emitError(pin.getAnnotation()->getPatternPlace()) << "'" << pin.getName() << "' is unused: " << reason;
    eraseChain(pin);
  }
  return result;
}

LogicalResult AnnotationDissolver::run() {
  for (func::FuncOp func : getFunctions(module)) {
    dissolveSignature(func);
    SmallVector<PinOp> pins;
    func.walk([&](PinOp pin) { pins.push_back(pin); });
    llvm::for_each(pins, [&](PinOp pin) { dissolve(pin); });
  }
  if (failed(reportUnused()))
    return failure();
  for (func::FuncOp func : getFunctions(module)) {
    Block &body = func.getBody().front();
    func.setFunctionType(
        FunctionType::get(module.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  }
  module->removeAttr(kUnusedAttr);
  return success(resolveMesh(module) != nullptr);
}

void Annotate::runOnOperation() {
  for (func::FuncOp func : getFunctions(getOperation()))
    if (!func.getBody().hasOneBlock()) {
      func.emitError() << "has control flow: only functions of one block can be sharded";
      return signalPassFailure();
    }
  if (failed(enterPhase(getOperation(), Phase::Annotated)))
    return signalPassFailure();
  FailureOr<PlanRef> read =
      given ? given
            : readPlan(&getContext(),
                       {plan, mesh, {shard.begin(), shard.end()}, {state.begin(), state.end()}, free, uneven});
  if (failed(read) || (*read && failed(placeAnnotations(getOperation(), **read))) ||
      failed(AnnotationDissolver(getOperation()).run()))
    signalPassFailure();
}

std::unique_ptr<Pass> cleave::spmd::createAnnotate(PlanRef plan) { return std::make_unique<Annotate>(std::move(plan)); }
