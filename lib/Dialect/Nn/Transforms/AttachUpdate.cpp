//===- AttachUpdate.cpp - from gradients to the next weights --------------===//
//
//   main(x, w) -> loss, grad(w)    =>    main(x, w, count, m(w), v(w)) -> loss, rate, next(count), next(w), next(m(w)), next(v(w))
//
// A weight of few bits has a master of f32 that learns, of which the next weight is a cast. ZeRO is a sharding of what is added here: an
// axis more on the first dim of the weight that it divides after what a rule asks of the weight.
//
// Gradients of a scaled loss are divided by the scale. Where they are too long for a number, all states stay as they are:
//
//   next(s) = select(|g| is finite, new, old)      scale = 2 scale after 2,000 good steps, scale / 2 after a bad one
//
//===----------------------------------------------------------------------===//
#include "../Training/Optimizers.h"
#include "../Training/Step.h"

#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Nn/Transforms/TrainPasses.h"
#include "cleave/Dialect/Spmd/IR/AddAxis.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

namespace cleave::nn {
#define GEN_PASS_DEF_NNATTACHUPDATE
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;
using spmd::AnnotationAttr;
using spmd::ShardingAttr;

namespace {
class UpdateAttacher {
public:
  UpdateAttacher(func::FuncOp func, const spmd::PlanTrain &train, bool keepsGradients)
      : func(func), train(train), keepsGradients(keepsGradients), context(func.getContext()),
        mesh(func->getParentOfType<ModuleOp>()->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr)),
        builder(func.getBody().front().getTerminator()), f(builder, UnknownLoc::get(context)), signature(func) {
    for (const spmd::PlanGroup &group : train.groups)
      groups.emplace_back(group.tensors);
  }

  LogicalResult run();

private:
  /// A parameter and its gradient.
  struct Weight {
    unsigned argument;
    std::string name;
    Value gradient;
    /// How what is added of it is sharded, and how it is itself; null: nothing is asked.
    AnnotationAttr states, own;
  };

  LogicalResult takeGradients();
  /// All gradients by one number.
  void multiply(Value factor);
  void widenWire();
  void unscale();
  void weigh();
  void measure();
  void clip();
  void compose(Weight &weight, const StepNumbers &numbers);
  void attachScale();
  void keepBad();
  LogicalResult checkNames();
  void shard(Weight &weight);
  bool sharesAccumulators() const;
  Operation *pinGradient(Weight &weight, AnnotationAttr annotation);
  AnnotationAttr addAxis(AnnotationAttr known, RankedTensorType type, const spmd::PlanZero &zero);
  AnnotationAttr replicate(AnnotationAttr known, RankedTensorType type, const spmd::PlanZero &zero);
  Value addState(Weight &weight, StringRef word, RankedTensorType type);
  Location locate(StringRef node) { return makeStepLoc(context, node); }

  func::FuncOp func;
  const spmd::PlanTrain &train;
  bool keepsGradients;
  MLIRContext *context;
  spmd::MeshAttr mesh;
  OpBuilder builder;
  Composer f;
  std::vector<Weight> weights;
  SignatureBuilder signature;
  std::vector<PickedNames> groups;
  /// Of the loss, f32; null: it is not scaled.
  Value scale;
  /// The length of all gradients together, f32, and whether it is a number; null: nobody asks.
  Value norm, isGood;
};
} // namespace

/// Takes the results `grad(w)`, and the scaled loss that they are of.
LogicalResult UpdateAttacher::takeGradients() {
  Operation *terminator = func.getBody().front().getTerminator();
  llvm::StringMap<unsigned> results;
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    results[spmd::getResultName(func, index)] = index;
  llvm::BitVector taken(func.getNumResults());
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    if (!spmd::isParameter(func, index))
      continue;
    std::string name = spmd::getArgumentName(func, index).str();
    auto found = results.find("grad(" + name + ")");
    if (found == results.end())
      return func.emitError() << "has no gradient of parameter '" << name << "': nn-differentiate makes them";
    weights.push_back({index, name, terminator->getOperand(found->second), {}, {}});
    taken.set(found->second);
  }
  if (weights.empty())
    return func.emitError() << "has no parameters";
  if (auto scaled = results.find(kScaledLoss); scaled != results.end()) {
    taken.set(scaled->second);
    Value known = findArgument(func, "scale", spmd::kScaleRole);
    scale = known ? known : f.scalar(f.f32(), train.precision.fixedScale);
  }
  terminator->eraseOperands(taken);
  (void)func.eraseResults(taken);
  return success();
}

/// A gradient in f32 that was never narrower, so far as linear ops made it.
static Value widenFromStart(Composer &f, Value gradient) {
  Operation *op = gradient.getDefiningOp();
  auto type = cast<RankedTensorType>(gradient.getType());
  bool isShared = op && !op->use_empty() && !op->hasOneUse();
  if (!op || isShared || type.getElementTypeBitWidth() >= 32)
    return f.widen(gradient);
  if (isa<CastOp>(op) && getElementType(op->getOperand(0)).getIntOrFloatBitWidth() >= 32)
    return op->getOperand(0);
  auto reduce = dyn_cast<ReduceOp>(op);
  bool isSum = reduce && reduce.getKind() == ReduceKind::Sum;
  if (!isa<EinsumOp, AddOp, ReshapeOp, TransposeOp>(op) && !isSum)
    return f.widen(gradient);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(widenFromStart(f, operand));
  return f.again(op, operands, RankedTensorType::get(type.getShape(), f.f32()));
}

void UpdateAttacher::multiply(Value factor) {
  for (Weight &weight : weights) {
    Value g = f.widen(weight.gradient);
    weight.gradient = f.mul(g, f.cast(factor, Composer::elementType(g)));
  }
}

/// Brings gradients into the floats that they are added up in over ranks.
void UpdateAttacher::widenWire() {
  f.at(locate("unscale"));
  if (train.precision.wire == spmd::PlanPrecision::Wire::F32)
    for (Weight &weight : weights)
      weight.gradient = widenFromStart(f, weight.gradient);
}

/// Undoes the scale of the loss.
void UpdateAttacher::unscale() {
  f.at(locate("unscale"));
  if (scale)
    multiply(f.div(f.scalar(f.f32(), 1), scale));
}

//===----------------------------------------------------------------------===//
// Where states are
//===----------------------------------------------------------------------===//

static FileLineColLoc getCause(MLIRContext *context, const spmd::PlanPlace &place) {
  return FileLineColLoc::get(context, place.file, place.line, place.column);
}

/// Null where the axis divides no dim, or what is small stays replicated.
AnnotationAttr UpdateAttacher::addAxis(AnnotationAttr known, RankedTensorType type, const spmd::PlanZero &zero) {
  if (spmd::getBytes(type) < zero.minBytes)
    return {};
  return spmd::addAxis(mesh, known, type, zero.axis, getCause(context, zero.place));
}

/// The parameter itself stays whole along the axis.
AnnotationAttr UpdateAttacher::replicate(AnnotationAttr known, RankedTensorType type, const spmd::PlanZero &zero) {
  if (known)
    return known;
  ShardingAttr open = spmd::getAsked(mesh, {}, type);
  auto sharding = ShardingAttr::get(context, mesh, open.getDims(), ArrayRef<spmd::AxisAttr>(), spmd::ReductionKind::Sum,
                                    {spmd::AxisAttr::get(context, zero.axis, 1, 0)}, false);
  FileLineColLoc cause = getCause(context, zero.place);
  return AnnotationAttr::get(context, sharding, cause, cause);
}

/// Whether gradients of microbatches add up as states are sharded.
bool UpdateAttacher::sharesAccumulators() const {
  if (train.microbatches == 1 || train.accumulate != spmd::PlanAccumulate::Auto)
    return train.microbatches > 1 && train.accumulate == spmd::PlanAccumulate::Split;
  return llvm::any_of(train.zero, [](const spmd::PlanZero &zero) { return zero.stage >= 2; });
}

Operation *UpdateAttacher::pinGradient(Weight &weight, AnnotationAttr annotation) {
  auto pin = spmd::PinOp::create(builder, f.getLoc(), weight.gradient,
                                 builder.getStringAttr("grad(" + weight.name + ")"), annotation);
  weight.gradient = pin;
  return pin;
}

void UpdateAttacher::shard(Weight &weight) {
  auto type = cast<RankedTensorType>(func.getArgumentTypes()[weight.argument]);
  weight.own = func.getArgAttrOfType<AnnotationAttr>(weight.argument, spmd::SpmdDialect::kAnnotationAttr);
  weight.states = weight.own;
  for (const spmd::PlanZero &zero : train.zero) {
    AnnotationAttr sharded = addAxis(weight.states, type, zero);
    // What stays replicated along one axis may still be sharded along the next.
    if (!sharded)
      continue;
    weight.states = sharded;
    weight.own = zero.stage == 3 ? addAxis(weight.own, type, zero) : replicate(weight.own, type, zero);
    if (zero.stage == 2 && !sharesAccumulators())
      pinGradient(weight, sharded);
  }
  if (sharesAccumulators() && weight.states)
    pinGradient(weight, weight.states)->setAttr(spmd::kOfPartsAttr, builder.getUnitAttr());
  if (weight.own)
    func.setArgAttr(weight.argument, spmd::SpmdDialect::kAnnotationAttr, weight.own);
}

//===----------------------------------------------------------------------===//
// The update
//===----------------------------------------------------------------------===//

/// The loss and its gradients by the factor that is known behind all microbatches, where there is one (`kLossFactor`).
void UpdateAttacher::weigh() {
  Operation *terminator = func.getBody().front().getTerminator();
  std::optional<unsigned> loss, factor;
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    StringRef name = spmd::getResultName(func, index);
    if (name == kLossFactor)
      factor = index;
    else if (name == "loss")
      loss = index;
  }
  if (!factor || !loss)
    return;
  f.at(locate("loss"));
  Value times = terminator->getOperand(*factor);
  terminator->setOperand(*loss, f.mul(terminator->getOperand(*loss), times));
  multiply(times);
  terminator->eraseOperand(*factor);
  (void)func.eraseResult(*factor);
}

/// The length of all gradients together: one that is no number has an element that is none, or is too long for f32.
void UpdateAttacher::measure() {
  f.at(locate("norm"));
  Value sum;
  for (Weight &weight : weights) {
    Value square = f.cast(f.sumAll(f.square(f.widen(weight.gradient))), f.f32());
    sum = sum ? f.add(sum, square) : square;
  }
  norm = f.sqrt(sum);
  addResult(func, norm, "norm");
  if (scale)
    isGood = f.le(sum, double(std::numeric_limits<float>::max()));
}

/// All gradients by one factor, where together they are longer than they may be; as torch.nn.utils.clip_grad_norm_.
void UpdateAttacher::clip() {
  f.at(locate("clip"));
  multiply(f.min(f.div(f.scalar(f.f32(), *train.clip), f.add(norm, 1e-6)), 1));
}

/// A scale that is a state follows what becomes of gradients.
void UpdateAttacher::attachScale() {
  constexpr double goodSteps = 2000, most = 0x1p100;
  if (!isa_and_present<BlockArgument>(scale))
    return;
  f.at(locate("scale"));
  auto number = RankedTensorType::get({}, builder.getI64Type());
  Value good = f.add(addArgument(func, number, "good", spmd::kScaleRole), 1), grows = f.ge(good, goodSteps);
  Value grown = f.select(grows, f.min(f.mul(scale, 2), most), scale);
  addResult(func, scale, "scale");
  addResult(func, f.select(isGood, grown, f.mul(scale, 0.5)), "next(scale)", "scale");
  addResult(func, f.select(f.both(isGood, f.negate(grows)), good, 0), "next(good)", "good");
}

/// What is made of bad gradients is thrown away: all states stay, but for the scale.
void UpdateAttacher::keepBad() {
  Operation *terminator = func.getBody().front().getTerminator();
  llvm::StringMap<unsigned> arguments;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    arguments[spmd::getArgumentName(func, index)] = index;
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (auto state = func.getResultAttrOfType<StringAttr>(index, spmd::SpmdDialect::kStateAttr)) {
      f.at(locate("keep(" + state.getValue().str() + ")"));
      Value old = func.getArgument(arguments.lookup(state.getValue()));
      terminator->setOperand(index, f.select(isGood, terminator->getOperand(index), old));
    }
}

Value UpdateAttacher::addState(Weight &weight, StringRef word, RankedTensorType type) {
  std::string name = (word + "(" + weight.name + ")").str();
  NamedAttrList attrs = describeArgument(context, name, "optimizer");
  Attribute begins = func.getArgAttr(weight.argument, kBeginsAttr);
  bool isMaster = word == "master";
  if (isMaster)
    attrs.append(kBeginsAttr, begins);
  // A part of a fused weight is a part of its states; a master is the weight, with all its digits.
  auto param = begins ? getBeginsParam(begins) : FlatSymbolRefAttr();
  std::string whole = param ? param.getValue().str() : weight.name;
  ModuleOp module = func->getParentOfType<ModuleOp>();
  if (Attribute origin = makeOrigin(module, begins, isMaster ? whole : (word + "(" + whole + ")").str()))
    attrs.append(kOriginAttr, origin);
  else if (isMaster)
    attrs.append(kOriginAttr, builder.getStringAttr(whole));
  if (weight.states)
    attrs.append(spmd::SpmdDialect::kAnnotationAttr, weight.states);
  return signature.addArgument(type, std::move(attrs));
}

void UpdateAttacher::compose(Weight &weight, const StepNumbers &numbers) {
  f.at(locate("update(" + weight.name + ")"));
  Value own = func.getArgument(weight.argument), value = own, gradient = f.widen(weight.gradient);
  auto type = cast<RankedTensorType>(gradient.getType());
  bool isNarrow = own.getType() != type;
  if (isNarrow)
    value = addState(weight, "master", type);
  // The first group that picks it counts: the last one here.
  double decay = train.optimizer.decay, rate = 1;
  for (auto [group, picked] : llvm::reverse(llvm::zip_equal(train.groups, groups)))
    if (picked.contains(weight.name)) {
      decay = group.decay.value_or(train.optimizer.decay);
      rate = group.rate;
    }
  SmallVector<Value, 2> states;
  for (StringRef word : getStateWords(train.optimizer))
    states.push_back(addState(weight, word, type));
  Value next = composeUpdate(f, train.optimizer, numbers, value, gradient, states, decay, rate);
  signature.addResult(f.cast(next, Composer::elementType(own)), "next(" + weight.name + ")", weight.name);
  if (isNarrow)
    signature.addResult(next, "next(master(" + weight.name + "))", "master(" + weight.name + ")");
  for (auto [word, state] : llvm::zip_equal(getStateWords(train.optimizer), states)) {
    std::string name = (word + "(" + weight.name + ")").str();
    signature.addResult(state, "next(" + name + ")", name);
  }
}

/// States are found by their names.
LogicalResult UpdateAttacher::checkNames() {
  llvm::StringSet<> seen;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (StringRef name = spmd::getArgumentName(func, index); !seen.insert(name).second) {
      auto ofLabels = llvm::find_if(train.losses,
                                    [&](const spmd::PlanLoss &loss) { return !loss.next && loss.labels.text == name; });
      InFlightDiagnostic error = ofLabels != train.losses.end() && ofLabels->labels.place.line
                                     ? emitErrorAt(func.getContext(), ofLabels->labels.place)
                                     : func.emitError();
      return error << "has two arguments '" << name
                   << "': a tensor of the model, or labels, have the name of a state of the step";
    }
  return success();
}

LogicalResult UpdateAttacher::run() {
  if (failed(takeGradients()))
    return failure();
  widenWire();
  f.at(locate("rate"));
  Value done = getCount(func), next = f.add(done, 1);
  addResult(func, next, "next(count)", "count");
  bool isGiven = train.rate.kind == spmd::PlanRate::Kind::Input;
  Value rate = isGiven ? addArgument(func, RankedTensorType::get({}, builder.getF32Type()), "rate", spmd::kBatchRole)
                       : composeRate(f, train.rate, done);
  if (!isGiven)
    addResult(func, f.cast(rate, f.f32()), "rate");
  StepNumbers numbers = {f.cast(rate, f.f64()), next};
  for (Weight &weight : weights)
    shard(weight);
  unscale();
  weigh();
  if (keepsGradients)
    for (Weight &weight : weights)
      signature.addResult(weight.gradient, "grad(" + weight.name + ")");
  signature.apply();
  if (train.clip || scale)
    measure();
  if (train.clip)
    clip();
  for (Weight &weight : weights)
    compose(weight, numbers);
  signature.apply();
  if (scale)
    keepBad();
  attachScale();
  return checkNames();
}

namespace {
struct AttachUpdate : cleave::nn::impl::NnAttachUpdateBase<AttachUpdate> {
  using Base::Base;
  AttachUpdate(PlanRef plan, bool keepsGradients) : given(std::move(plan)) { gradients = keepsGradients; }

  void runOnOperation() override {
    PlanRef read = given ? given : readTrainPlan(getOperation(), plan, train);
    func::FuncOp func = read ? findStep(getOperation()) : func::FuncOp();
    if (!func || failed(UpdateAttacher(func, *read->train, gradients).run()))
      signalPassFailure();
  }

private:
  PlanRef given;
};
} // namespace

std::unique_ptr<Pass> cleave::nn::createNnAttachUpdate(PlanRef plan, bool keepsGradients) {
  return std::make_unique<AttachUpdate>(std::move(plan), keepsGradients);
}
