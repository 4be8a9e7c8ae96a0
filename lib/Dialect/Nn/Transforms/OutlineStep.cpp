//===- OutlineStep.cpp - from a model to a loss of its weights ------------===//
//
//   main(x) -> logits                    main(x, labels, w, b) -> loss
//     w = load @w, b = load @b     =>      logits = ..
//     logits = ..                          loss = mean(.. logits, labels)
//
// What is trained is each load of floats that reaches the loss through floats: not what is frozen, nor the statistics of batch norms, which
// are no function of the weights, nor the angles of rotations. Two loads of one part are one argument, to whose gradient both add.
//
//===----------------------------------------------------------------------===//
#include "../Training/Step.h"

#include "cleave/Dialect/Nn/Gradients/Differentiate.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/IndexRange.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Nn/Transforms/TrainPasses.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNOUTLINESTEP
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {
class StepOutliner {
public:
  StepOutliner(func::FuncOp func, const spmd::PlanTrain &train, bool evaluates)
      : func(func), train(train), evaluates(evaluates), freeze(train.freeze), only(train.only),
        builder(func.getBody().front().getTerminator()), f(builder, makeStepLoc(func.getContext(), "loss", "loss")),
        signature(func) {}

  LogicalResult run();

private:
  Value findTensor(const spmd::PlanPattern &name);
  bool isTensor(StringRef name);
  Value findLabels(const spmd::PlanLoss &loss, Value value);
  Value takeNext(const spmd::PlanLoss &loss, Value value);
  ComposedLoss addLoss(const spmd::PlanLoss &loss);
  SmallVector<LoadOp> findTrained(Value loss);
  LogicalResult checkPatterns(ArrayRef<LoadOp> loads);
  Type getKeptType(LoadOp load);
  LogicalResult checkMemory();
  void makeArgument(ArrayRef<LoadOp> loads);
  void dropWholes();
  void scaleLoss(Value loss, ArrayRef<LoadOp> loads);
  void countClassesFromZero();

  InFlightDiagnostic emitError(const spmd::PlanPlace &place) { return emitErrorAt(func.getContext(), place); }

  func::FuncOp func;
  const spmd::PlanTrain &train;
  bool evaluates;
  PickedNames freeze, only;
  OpBuilder builder;
  Composer f;
  SignatureBuilder signature;
  /// Annotations that arguments have taken over, with the names of their tensors.
  llvm::DenseSet<std::pair<Attribute, Attribute>> handedDown;
  /// Labels that are classes as they come in.
  llvm::StringSet<> classes;
};
} // namespace

//===----------------------------------------------------------------------===//
// The loss
//===----------------------------------------------------------------------===//

/// A result by its name, or any tensor of the model that has kept its own.
Value StepOutliner::findTensor(const spmd::PlanPattern &name) {
  Operation *terminator = func.getBody().front().getTerminator();
  SmallVector<StringRef> names;
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    names.push_back(spmd::getResultName(func, index));
    if (names.back() == name.text)
      return terminator->getOperand(index);
  }
  for (Operation &op : func.getBody().front().without_terminator())
    for (Value result : op.getResults())
      if (llvm::is_contained(spmd::getTensorNames(result), name.text))
        return result;
  emitError(name.place) << "the loss is of '" << name.text << "', which the model does not compute"
                        << suggestNames(name.text, names);
  return {};
}

/// Of a model of language: the token behind each, of which the last has none.
Value StepOutliner::takeNext(const spmd::PlanLoss &loss, Value value) {
  RankedTensorType type = getLabelType(func.getContext(), loss, value);
  if (!type)
    return {};
  SmallVector<StringRef> names;
  Value tokens;
  for (BlockArgument argument : func.getArguments()) {
    names.push_back(spmd::getArgumentName(func, argument.getArgNumber()));
    if (names.back() == loss.next->text)
      tokens = argument;
  }
  if (!tokens || Composer::shape(tokens) != type.getShape() || isa<FloatType>(Composer::elementType(tokens))) {
    InFlightDiagnostic error = emitError(loss.next->place);
    if (tokens)
      return error << "'" << loss.next->text << "' is " << tokens.getType() << ", and labels of '" << loss.of.text
                   << "' are " << type,
             Value();
    return error << "'" << loss.next->text << "' is not an input of the model" << suggestNames(loss.next->text, names),
           Value();
  }
  // ids 3 7 2 9  ─▶  labels 7 2 9 none
  int64_t last = type.getRank() - 1, size = type.getDimSize(last);
  SmallVector<int64_t> one(type.getShape());
  one.back() = 1;
  Value none = f.broadcast(f.scalar(f.i64(), double(*loss.ignored)), one);
  return f.concat({f.sliceDim(f.cast(tokens, f.i64()), last, 1, size - 1), none}, last);
}

/// Something that the model computes, or a parameter that it reads, is called so.
bool StepOutliner::isTensor(StringRef name) {
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (spmd::getResultName(func, index) == name)
      return true;
  return llvm::any_of(func.getBody().front().without_terminator(), [&](Operation &op) {
    auto load = dyn_cast<LoadOp>(op);
    return (load && load.getParam() == name) || llvm::any_of(op.getResults(), [&](Value result) {
             return llvm::is_contained(spmd::getTensorNames(result), name);
           });
  });
}

/// Inputs that the losses share are one.
Value StepOutliner::findLabels(const spmd::PlanLoss &loss, Value value) {
  RankedTensorType type = getLabelType(func.getContext(), loss, value);
  if (!type)
    return {};
  const spmd::PlanPlace &place = loss.labels.place.line ? loss.labels.place : loss.place;
  for (BlockArgument argument : func.getArguments())
    if (spmd::getArgumentName(func, argument.getArgNumber()) == loss.labels.text) {
      if (argument.getType() == type)
        return argument;
      emitError(place) << "labels '" << loss.labels.text << "' are the input " << argument.getType() << ", expected "
                       << type;
      return {};
    }
  if (isTensor(loss.labels.text)) {
    emitError(place) << "labels '" << loss.labels.text
                     << "' are to be an input of the step, and the model has a tensor of that name";
    return {};
  }
  return addArgument(func, type, loss.labels.text, spmd::kBatchRole);
}

ComposedLoss StepOutliner::addLoss(const spmd::PlanLoss &given) {
  spmd::PlanLoss loss = given;
  Value value = findTensor(loss.of);
  if (!value)
    return {};
  if (loss.kind == spmd::PlanLoss::Kind::Output)
    return composeLoss(f, loss, value, {}, /*factorsCount=*/false);
  if (loss.next)
    loss.ignored = loss.ignored.value_or(-100); // as everybody writes it
  Value compared = loss.next ? takeNext(loss, value) : findLabels(loss, value);
  if (!compared)
    return {};
  bool areClasses = loss.kind == spmd::PlanLoss::Kind::CrossEntropy || loss.kind == spmd::PlanLoss::Kind::Nll;
  if (areClasses && !loss.next && !loss.ignored)
    classes.insert(loss.labels.text);
  // One loss is divided behind the last microbatch, by what has counted in all of them. The terms of a list each have a number of their own,
  // which their gradients need at once: it is that of labels which are whole in each microbatch (Compilation::State::splitSteps), or known.
  bool isList = train.losses.size() > 1, isInParts = train.microbatches > 1;
  ComposedLoss composed = composeLoss(f, loss, value, compared, isInParts && (!isList || loss.next));
  if (!isList || !composed.factor)
    return composed;
  if (given.ignored) {
    emitError(loss.place) << "of tokens that are compared with the next one, those that count are counted in all "
                             "microbatches, by which a "
                             "term of several losses is not divided: no 'ignore' here, or no 'microbatches'";
    return {};
  }
  // No token is the one that the last position is compared with.
  double size = double(Composer::shape(compared).back());
  return {f.mul(composed.value, size / std::max(size - 1, 1.0)), {}};
}

//===----------------------------------------------------------------------===//
// What is trained
//===----------------------------------------------------------------------===//

/// Positions: integers in a type to compute with, and constants.
static bool isPosition(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return !isa<FloatType>(getElementType(value));
  if (op->hasTrait<KeepsNumbers>())
    return llvm::all_of(op->getOperands(), isPosition);
  return isa<ConstantOp, IotaOp>(op) || !isa<FloatType>(getElementType(value));
}

/// Statistics, angles and their frequencies: what a load is read for alone, through movement or not.
static bool isGiven(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<SinOp, CosOp>(user))
      return true;
    if (isa<MulOp, EinsumOp>(user))
      return llvm::all_of(user->getOperands(), [&](Value other) { return other == use.get() || isPosition(other); }) &&
             isGiven(user->getResult(0));
    if (isa<BatchNormOp>(user))
      return use.getOperandNumber() >= 3;
    if (isa<RotaryEmbeddingOp>(user))
      return use.getOperandNumber() >= 1;
    return (isa<spmd::PinOp>(user) || user->hasTrait<KeepsNumbers>()) && user->getNumResults() == 1 &&
           isGiven(user->getResult(0));
  });
}

SmallVector<LoadOp> StepOutliner::findTrained(Value loss) {
  SmallVector<Value> loads;
  func.walk([&](LoadOp load) {
    StringRef name = load.getParam();
    bool isAsked = train.lora       ? name.ends_with(kLoraA) || name.ends_with(kLoraB)
                   : only.isEmpty() ? !freeze.contains(name)
                                    : only.contains(name);
    if (isa<FloatType>(getElementType(load)) && isAsked && !isGiven(load) && !load->hasAttr(spmd::kFixedAttr))
      loads.push_back(load);
  });
  GradientPath path = findGradientPath(loss, loads, loads.size());
  // On the way are those that an op of floats reads.
  DenseSet<Value> reached;
  for (Operation *op : path.ops)
    if (llvm::any_of(op->getResults(), [&](Value result) { return path.active.contains(result); }))
      reached.insert(op->operand_begin(), op->operand_end());
  SmallVector<LoadOp> trained;
  for (Value load : loads)
    if (reached.contains(load))
      trained.push_back(load.getDefiningOp<LoadOp>());
  return trained;
}

/// What patterns pick: initializers that nothing reads are none.
static constexpr StringLiteral kRead = "parameter that the model reads";

/// Each pattern picks a parameter of the model, and one of floats where it says what is trained, and how.
LogicalResult StepOutliner::checkPatterns(ArrayRef<LoadOp> trained) {
  SmallVector<StringRef> names;
  SmallVector<LoadOp> loads;
  func.walk([&](LoadOp load) {
    names.push_back(load.getParam());
    loads.push_back(load);
  });
  MLIRContext *context = func.getContext();
  if (failed(freeze.check(context, "freeze", kRead, names)) || failed(only.check(context, "only", kRead, names)) ||
      failed(only.checkFloats(context, "only", loads)))
    return failure();
  for (const spmd::PlanGroup &group : train.groups) {
    PickedNames picked(group.tensors);
    if (failed(picked.check(context, "groups", kRead, names)) || failed(picked.checkFloats(context, "groups", loads)))
      return failure();
  }
  if (!trained.empty())
    return success();
  bool isFrozen = !train.freeze.empty();
  return emitError(isFrozen ? train.freeze.front().place : train.place)
         << (isFrozen ? "'freeze' leaves nothing to train" : "nothing that is trained reaches the loss")
         << ": the model has " << names.size() << " parameters";
}

/// The plan may keep parameters in other floats than the file does.
Type StepOutliner::getKeptType(LoadOp load) {
  switch (train.precision.parameters) {
  case spmd::PlanPrecision::Parameters::F32:
    return builder.getF32Type();
  case spmd::PlanPrecision::Parameters::Bf16:
    return builder.getBF16Type();
  case spmd::PlanPrecision::Parameters::F16:
    return builder.getF16Type();
  case spmd::PlanPrecision::Parameters::Own:
    return getElementType(load);
  }
  return {};
}

/// What the plan wants of the parameter, which pins say behind the load, becomes what it wants of the argument. The model computes in its own
/// floats, whatever the parameter is kept in.
void StepOutliner::makeArgument(ArrayRef<LoadOp> loads) {
  LoadOp load = loads.front();
  NamedAttrList attrs = describeLoaded(func->getParentOfType<ModuleOp>(), load, spmd::kParameterRole);
  for (LoadOp one : loads)
    for (Operation *user : one->getUsers())
      if (auto pin = dyn_cast<spmd::PinOp>(user); pin && pin.getAnnotation())
        attrs.set(spmd::SpmdDialect::kAnnotationAttr, *pin.getAnnotation());
  Value argument = signature.addArgument(RankedTensorType::get(getShape(load), getKeptType(load)), std::move(attrs));
  OpBuilder atStart = OpBuilder::atBlockBegin(&func.getBody().front());
  Value value = Composer(atStart, makeStepLoc(func.getContext(), ("cast(" + getTensorName(load) + ")")))
                    .cast(argument, getElementType(load));
  for (LoadOp one : loads) {
    for (Operation *user : llvm::make_early_inc_range(one->getUsers()))
      if (auto pin = dyn_cast<spmd::PinOp>(user); pin && pin.getAnnotation()) {
        handedDown.insert({*pin.getAnnotation(), pin.getNameAttr()});
        pin.replaceAllUsesWith(value);
        pin.erase();
      }
    one.replaceAllUsesWith(value);
    one.erase();
  }
}

/// What a plan wants of a fused weight its parts have taken along: nothing reads the weight itself any more.
void StepOutliner::dropWholes() {
  for (spmd::PinOp pin : llvm::make_early_inc_range(func.getBody().front().getOps<spmd::PinOp>()))
    if (pin.use_empty() && pin.getAnnotation() && handedDown.contains({*pin.getAnnotation(), pin.getNameAttr()}))
      pin.erase();
}

/// The scale of the loss, which begins as a power of two large enough that gradients of f16 seldom vanish.
static Value addScale(func::FuncOp func) {
  constexpr float first = 65536;
  MLIRContext *context = func.getContext();
  auto type = RankedTensorType::get({}, Float32Type::get(context));
  OpBuilder atEnd = OpBuilder::atBlockEnd(func->getParentOfType<ModuleOp>().getBody());
  auto param =
      ParamOp::create(atEnd, func.getLoc(), "scale(loss)", type, DenseElementsAttr::get(type, first), StringAttr());
  Value scale = addArgument(func, type, "scale", spmd::kScaleRole);
  func.setArgAttr(func.getNumArguments() - 1, kBeginsAttr, FlatSymbolRefAttr::get(param.getSymNameAttr()));
  return scale;
}

/// Gradients of f16 hold nothing below 6e-8: they are of the loss times a scale, which the update divides by.
void StepOutliner::scaleLoss(Value loss, ArrayRef<LoadOp> loads) {
  using Scale = spmd::PlanPrecision::Scale;
  const spmd::PlanPrecision &precision = train.precision;
  bool hasHalves =
      llvm::any_of(loads, [&](LoadOp load) { return getElementType(load).isF16() || getKeptType(load).isF16(); });
  if (precision.scale == Scale::None && hasHalves)
    mlir::emitWarning(FileLineColLoc::get(func.getContext(), precision.scalePlace.file, precision.scalePlace.line,
                                          precision.scalePlace.column))
        << "precision f16 with 'scale: none': gradients below 6e-8 vanish";
  if (precision.scale == Scale::None || (precision.scale == Scale::Auto && !hasHalves))
    return;
  Value scale = precision.scale == Scale::Number ? f.scalar(f.f32(), precision.fixedScale) : addScale(func);
  addResult(func, f.mul(loss, f.cast(scale, getElementType(loss))), kScaledLoss);
}

/// An index may count from the end, a label may not: -1 is no class, and would be the last one.
void StepOutliner::countClassesFromZero() {
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (std::optional<IndexRange> range = readIndexRange(func.getArgAttr(index, kIndexRangeAttr));
        range && classes.contains(spmd::getArgumentName(func, index)))
      func.setArgAttr(index, kIndexRangeAttr,
                      builder.getArrayAttr({builder.getStringAttr(range->node), builder.getI64IntegerAttr(0),
                                            builder.getI64IntegerAttr(range->most)}));
}

/// Patterns of what is kept, and of what is made again, pick tensors of the model, and none both.
LogicalResult StepOutliner::checkMemory() {
  const spmd::PlanMemory &memory = train.memory;
  if (memory.keep.empty() && memory.again.empty())
    return success();
  SmallVector<StringRef> names;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    names.push_back(spmd::getArgumentName(func, index));
  func.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      names.push_back(load.getParam());
    for (Value result : op->getResults())
      llvm::append_range(names, spmd::getTensorNames(result));
  });
  PickedNames kept(memory.keep), repeated(memory.again);
  MLIRContext *context = func.getContext();
  if (failed(kept.check(context, "keep", "tensor", names)) || failed(repeated.check(context, "again", "tensor", names)))
    return failure();
  for (StringRef name : names)
    if (!memory.again.empty() && kept.contains(name) && repeated.contains(name))
      return emitError(memory.again.front().place)
             << "'again' picks '" << name << "', which 'keep' picks, too: it is either made again or kept";
  return success();
}

LogicalResult StepOutliner::run() {
  if (failed(checkMemory()))
    return failure();
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    func.setArgAttr(index, spmd::kRoleAttr, builder.getStringAttr(spmd::kBatchRole));
  FailureOr<SmallVector<RunningValue>> running = enterTraining(func, train, evaluates);
  if (failed(running))
    return failure();
  Value sum, factor;
  for (const spmd::PlanLoss &loss : train.losses) {
    ComposedLoss term = addLoss(loss);
    if (!term.value)
      return failure();
    sum = sum ? f.add(sum, term.value) : term.value;
    factor = term.factor; // of one loss alone
  }
  // What the model gives is read no more, and what led to it alone is unused from here on.
  llvm::BitVector all(func.getNumResults(), true);
  func.getBody().front().getTerminator()->eraseOperands(all);
  (void)func.eraseResults(all);
  addResult(func, sum, "loss");
  if (factor)
    addResult(func, factor, kLossFactor);
  SmallVector<LoadOp> trained = findTrained(sum);
  if (failed(checkPatterns(trained)))
    return failure();
  scaleLoss(sum, trained);
  for (const RunningValue &value : *running)
    addResult(func, value.next, "next(" + value.name + ")", value.name);
  llvm::MapVector<std::pair<StringRef, Attribute>, SmallVector<LoadOp, 1>> parts;
  for (LoadOp load : trained)
    parts[{load.getParam(), load.getStartsAttr()}].push_back(load);
  for (auto &[part, loads] : parts)
    makeArgument(loads);
  signature.apply();
  dropWholes();
  noteIndexRanges(func);
  countClassesFromZero();
  return success();
}

namespace {
struct OutlineStep : cleave::nn::impl::NnOutlineStepBase<OutlineStep> {
  using Base::Base;
  OutlineStep(PlanRef plan, bool evaluates) : given(std::move(plan)) { eval = evaluates; }

  void runOnOperation() override {
    PlanRef read = given ? given : readTrainPlan(getOperation(), plan, train);
    func::FuncOp func = read ? findStep(getOperation()) : func::FuncOp();
    if (!func || failed(StepOutliner(func, *read->train, eval).run()))
      signalPassFailure();
  }

private:
  PlanRef given;
};
} // namespace

std::unique_ptr<Pass> cleave::nn::createNnOutlineStep(PlanRef plan, bool evaluates) {
  return std::make_unique<OutlineStep>(std::move(plan), evaluates);
}
