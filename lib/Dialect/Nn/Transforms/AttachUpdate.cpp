//===- AttachUpdate.cpp - from gradients to the next weights --------------===//
//
//   main(x, w) -> loss, grad(w)    =>    main(x, w, count, m(w), v(w)) -> loss, rate, next(count), next(w), next(m(w)), next(v(w))
//
// A weight of few bits has a master of f32 that learns, of which the next weight is a cast. ZeRO is a sharding of what is added here: an
// axis more on the first dim of the weight that it divides after what a rule asks of the weight.
//
//===----------------------------------------------------------------------===//
#include "../Training/Optimizers.h"
#include "../Training/Step.h"

#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Nn/Transforms/TrainPasses.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"

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
        builder(func.getBody().front().getTerminator()), f(builder, UnknownLoc::get(context)) {}

  LogicalResult run();

private:
  /// A parameter and its gradient.
  struct Weight {
    unsigned argument;
    std::string name;
    Value gradient;
    /// Where the gradient is a result, which one.
    std::optional<unsigned> result;
    /// How what is added of it is sharded, and how it is itself; null: nothing is asked.
    AnnotationAttr states, own;
  };

  LogicalResult takeGradients();
  void compose(Weight &weight, const StepNumbers &numbers);
  void weigh();
  void clip();
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
  OpBuilder builder;
  Composer f;
  std::vector<Weight> weights;
};
} // namespace

/// Results `grad(w)`, which stay where they are asked for.
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
    weights.push_back({index, name, terminator->getOperand(found->second), {}, {}, {}});
    taken.set(found->second);
    if (keepsGradients)
      weights.back().result = found->second;
  }
  if (weights.empty())
    return func.emitError() << "has no parameters";
  if (!keepsGradients) {
    terminator->eraseOperands(taken);
    (void)func.eraseResults(taken);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Where states are
//===----------------------------------------------------------------------===//

/// The sharding of a rule, or of none: all dims open.
static ShardingAttr getAsked(MLIRContext *context, spmd::MeshAttr mesh, AnnotationAttr known, RankedTensorType type) {
  if (known)
    return known.getSharding();
  SmallVector<spmd::DimShardingAttr> dims(type.getRank(), spmd::DimShardingAttr::get(context, {}, /*isOpen=*/true, 0));
  return ShardingAttr::get(context, mesh, dims, ArrayRef<spmd::AxisAttr>(), spmd::ReductionKind::Sum, {}, false);
}

static AnnotationAttr makeAnnotation(MLIRContext *context, ShardingAttr sharding, const spmd::PlanPlace &place) {
  auto loc = FileLineColLoc::get(context, place.file, place.line, place.column);
  return AnnotationAttr::get(context, sharding, loc, loc);
}

/// Null where the axis divides no dim, or what is small stays replicated.
AnnotationAttr UpdateAttacher::addAxis(AnnotationAttr known, RankedTensorType type, const spmd::PlanZero &zero) {
  auto mesh = func->getParentOfType<ModuleOp>()->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr);
  std::optional<unsigned> position = mesh ? mesh.findAxis(zero.axis) : std::nullopt;
  if (!position || spmd::getBytes(type) < zero.minBytes)
    return {};
  ShardingAttr asked = getAsked(context, mesh, known, type);
  SmallVector<spmd::DimShardingAttr> dims;
  bool isAdded = llvm::any_of(asked.getDims(), [&](spmd::DimShardingAttr dim) {
    return llvm::any_of(dim.getAxes(), [&](spmd::AxisAttr axis) { return axis.getName() == zero.axis; });
  });
  if (isAdded)
    return known;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    SmallVector<spmd::AxisAttr> axes(asked.getDims()[dim].getAxes());
    int64_t shards = mesh.getSizes()[*position];
    for (spmd::AxisAttr axis : axes)
      shards *= axis.getExtent(mesh);
    if (!isAdded && extent % shards == 0) {
      axes.push_back(spmd::AxisAttr::get(context, zero.axis, 1, 0));
      isAdded = true;
    }
    dims.push_back(spmd::DimShardingAttr::get(context, axes, /*isOpen=*/false, 0));
  }
  if (!isAdded)
    return {};
  auto sharding = ShardingAttr::get(context, mesh, dims, ArrayRef<spmd::AxisAttr>(), spmd::ReductionKind::Sum, {},
                                    asked.getUneven());
  return makeAnnotation(context, sharding, zero.place);
}

/// The parameter itself stays whole along the axis.
AnnotationAttr UpdateAttacher::replicate(AnnotationAttr known, RankedTensorType type, const spmd::PlanZero &zero) {
  if (known)
    return known;
  auto mesh = func->getParentOfType<ModuleOp>()->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr);
  ShardingAttr open = getAsked(context, mesh, {}, type);
  auto sharding = ShardingAttr::get(context, mesh, open.getDims(), ArrayRef<spmd::AxisAttr>(), spmd::ReductionKind::Sum,
                                    {spmd::AxisAttr::get(context, zero.axis, 1, 0)}, false);
  return makeAnnotation(context, sharding, zero.place);
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
  for (Weight &weight : weights) {
    Value given = weight.gradient, weighed = f.mul(given, f.cast(times, Composer::elementType(given)));
    weight.gradient = weighed;
    if (weight.result)
      terminator->setOperand(*weight.result, weighed);
  }
  terminator->eraseOperand(*factor);
  (void)func.eraseResult(*factor);
}

/// All gradients by one factor, where together they are longer than they may be; as torch.nn.utils.clip_grad_norm_.
void UpdateAttacher::clip() {
  f.at(locate("clip"));
  Value sum;
  for (Weight &weight : weights) {
    Value g = f.widen(weight.gradient);
    Value square = f.cast(f.sum(f.square(g), llvm::to_vector(llvm::seq<int64_t>(0, Composer::rank(g)))), f.f32());
    sum = sum ? f.add(sum, square) : square;
  }
  Value norm = f.sqrt(sum);
  addResult(func, norm, "norm");
  Value factor = f.min(f.div(f.scalar(f.f32(), *train.clip), f.add(norm, 1e-6)), 1);
  for (Weight &weight : weights) {
    Value g = f.widen(weight.gradient);
    weight.gradient = f.mul(g, f.cast(factor, Composer::elementType(g)));
  }
}

Value UpdateAttacher::addState(Weight &weight, StringRef word, RankedTensorType type) {
  std::string name = (word + "(" + weight.name + ")").str();
  Value state = addArgument(func, type, name, "optimizer");
  unsigned index = func.getNumArguments() - 1;
  Attribute begins = func.getArgAttr(weight.argument, kBeginsAttr);
  bool isMaster = word == "master";
  if (isMaster)
    func.setArgAttr(index, kBeginsAttr, begins);
  // A part of a fused weight is a part of its states; a master is the weight, with all its digits.
  auto param = begins ? getBeginsParam(begins) : FlatSymbolRefAttr();
  std::string whole = param ? param.getValue().str() : weight.name;
  ModuleOp module = func->getParentOfType<ModuleOp>();
  if (Attribute origin = makeOrigin(module, begins, isMaster ? whole : (word + "(" + whole + ")").str()))
    func.setArgAttr(index, kOriginAttr, origin);
  else if (isMaster)
    func.setArgAttr(index, kOriginAttr, builder.getStringAttr(whole));
  if (weight.states)
    func.setArgAttr(index, spmd::SpmdDialect::kAnnotationAttr, weight.states);
  return state;
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
  for (const spmd::PlanGroup &group : llvm::reverse(train.groups))
    if (isPicked(group.tensors, weight.name)) {
      decay = group.decay.value_or(train.optimizer.decay);
      rate = group.rate;
    }
  SmallVector<Value, 2> states;
  for (StringRef word : getStateWords(train.optimizer))
    states.push_back(addState(weight, word, type));
  Value next = composeUpdate(f, train.optimizer, numbers, value, gradient, states, decay, rate);
  addResult(func, f.cast(next, Composer::elementType(own)), "next(" + weight.name + ")", weight.name);
  if (isNarrow)
    addResult(func, next, "next(master(" + weight.name + "))", "master(" + weight.name + ")");
  for (auto [word, state] : llvm::zip_equal(getStateWords(train.optimizer), states)) {
    std::string name = (word + "(" + weight.name + ")").str();
    addResult(func, state, "next(" + name + ")", name);
  }
}

LogicalResult UpdateAttacher::run() {
  if (failed(takeGradients()))
    return failure();
  f.at(locate("rate"));
  auto number = RankedTensorType::get({}, builder.getI64Type());
  Value done = addArgument(func, number, "count", "count"), next = f.add(done, 1);
  addResult(func, next, "next(count)", "count");
  bool isGiven = train.rate.kind == spmd::PlanRate::Kind::Input;
  Value rate = isGiven ? addArgument(func, RankedTensorType::get({}, builder.getF32Type()), "rate", spmd::kBatchRole)
                       : composeRate(f, train.rate, done);
  if (!isGiven)
    addResult(func, f.cast(rate, f.f32()), "rate");
  StepNumbers numbers = {f.cast(rate, f.f64()), next};
  for (Weight &weight : weights)
    shard(weight);
  weigh();
  if (train.clip)
    clip();
  for (Weight &weight : weights)
    compose(weight, numbers);
  return success();
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
