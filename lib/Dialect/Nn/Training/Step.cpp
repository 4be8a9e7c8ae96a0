//===- Step.cpp - what the passes of a step share -------------------------===//
//
// Arguments and results are appended, in the order in which passes ask for them: what is there keeps its number.
//
//===----------------------------------------------------------------------===//
#include "Step.h"

#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/Entry.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/NamePattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// Of passes alone: the compiler hands its plan to them.
PlanRef cleave::nn::readTrainPlan(ModuleOp module, StringRef file, StringRef section) {
  spmd::PlanSource source;
  source.file = file.str();
  source.train = section.str();
  FailureOr<PlanRef> plan = spmd::readPlan(module.getContext(), source);
  if (failed(plan))
    return nullptr;
  if (*plan && (*plan)->train)
    return *plan;
  module.emitError() << "a step of training needs a plan with a section 'train'";
  return nullptr;
}

InFlightDiagnostic cleave::nn::emitErrorAt(MLIRContext *context, const spmd::PlanPlace &place) {
  return mlir::emitError(FileLineColLoc::get(context, place.file, place.line, place.column));
}

func::FuncOp cleave::nn::findStep(ModuleOp module) {
  func::FuncOp func = spmd::findEntry(module);
  if (!func)
    module.emitError() << "has " << llvm::range_size(module.getOps<func::FuncOp>())
                       << " functions, and none is called main: which one is trained?";
  return func;
}

Location cleave::nn::makeStepLoc(MLIRContext *context, StringRef node, StringRef tensor) {
  ArrayRef<StringRef> names(tensor);
  NodeInfo info{node, "Train", {}, {}};
  if (!tensor.empty())
    info.results = names;
  return makeNodeLoc(context, info);
}

NamedAttrList cleave::nn::describeArgument(MLIRContext *context, StringRef name, StringRef role) {
  Builder builder(context);
  NamedAttrList attrs;
  attrs.append(spmd::kNameAttr, builder.getStringAttr(name));
  attrs.append(spmd::kRoleAttr, builder.getStringAttr(role));
  return attrs;
}

NamedAttrList cleave::nn::describeLoaded(ModuleOp module, LoadOp load, StringRef role) {
  NamedAttrList attrs = describeArgument(module.getContext(), getTensorName(load), role);
  Attribute begins = makeBegins(load);
  attrs.append(kBeginsAttr, begins);
  if (Attribute origin = makeOrigin(module, begins, load.getParam()))
    attrs.append(kOriginAttr, origin);
  return attrs;
}

static Value appendArgument(func::FuncOp func, Type type, NamedAttrList attrs) {
  unsigned index = func.getNumArguments();
  (void)func.insertArgument(index, type, attrs.getDictionary(func.getContext()), func.getLoc());
  return func.getArgument(index);
}

Value cleave::nn::addArgument(func::FuncOp func, RankedTensorType type, StringRef name, StringRef role) {
  return appendArgument(func, type, describeArgument(func.getContext(), name, role));
}

Value cleave::nn::addLoaded(func::FuncOp func, LoadOp load, Type elementType, StringRef role) {
  auto type = RankedTensorType::get(getShape(load), elementType);
  return appendArgument(func, type, describeLoaded(func->getParentOfType<ModuleOp>(), load, role));
}

/// Names of the model may be the same: the role tells.
Value cleave::nn::findArgument(func::FuncOp func, StringRef name, StringRef role) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    auto known = func.getArgAttrOfType<StringAttr>(index, spmd::kRoleAttr);
    if (known && known.getValue() == role && spmd::getArgumentName(func, index) == name)
      return func.getArgument(index);
  }
  return {};
}

/// One for all that count steps, whoever asks first.
Value cleave::nn::getCount(func::FuncOp func) {
  Value known = findArgument(func, "count", spmd::kCountRole);
  auto type = RankedTensorType::get({}, IntegerType::get(func.getContext(), 64));
  return known ? known : addArgument(func, type, "count", spmd::kCountRole);
}

/// Through what a plan names and other floats.
LoadOp cleave::nn::findLoad(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto load = dyn_cast<LoadOp>(op))
      return load;
    if (!isa<spmd::PinOp>(op) && !op->hasTrait<ConvertsNumbers>())
      return {};
    value = op->getOperand(0);
  }
  return {};
}

static DictionaryAttr makeResultAttrs(MLIRContext *context, StringRef name, StringRef state) {
  Builder builder(context);
  SmallVector<NamedAttribute> attrs = {builder.getNamedAttr(spmd::kNameAttr, builder.getStringAttr(name))};
  if (!state.empty())
    attrs.push_back(builder.getNamedAttr(spmd::SpmdDialect::kStateAttr, builder.getStringAttr(state)));
  return builder.getDictionaryAttr(attrs);
}

void cleave::nn::addResult(func::FuncOp func, Value value, StringRef name, StringRef state) {
  (void)func.insertResult(func.getNumResults(), value.getType(), makeResultAttrs(func.getContext(), name, state));
  Operation *terminator = func.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
}

//===----------------------------------------------------------------------===//
// Many at once
//===----------------------------------------------------------------------===//

Value SignatureBuilder::addArgument(Type type, NamedAttrList attrs) {
  argumentAttrs.push_back(attrs.getDictionary(func.getContext()));
  return func.getBody().front().addArgument(type, func.getLoc());
}

void SignatureBuilder::addResult(Value value, StringRef name, StringRef state) {
  results.push_back(value);
  resultAttrs.push_back(makeResultAttrs(func.getContext(), name, state));
}

void SignatureBuilder::apply() {
  SmallVector<DictionaryAttr> arguments, all;
  func.getAllArgAttrs(arguments);
  func.getAllResultAttrs(all);
  llvm::append_range(arguments, argumentAttrs);
  llvm::append_range(all, resultAttrs);
  Block &body = func.getBody().front();
  body.getTerminator()->insertOperands(body.getTerminator()->getNumOperands(), results);
  func.setFunctionType(
      FunctionType::get(func.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  func.setAllArgAttrs(arguments);
  func.setAllResultAttrs(all);
  argumentAttrs.clear();
  results.clear();
  resultAttrs.clear();
}

Attribute cleave::nn::makeOrigin(ModuleOp module, Attribute begins, StringRef name) {
  auto part = dyn_cast_if_present<DictionaryAttr>(begins);
  auto param = part ? module.lookupSymbol<ParamOp>(getBeginsParam(begins).getAttr()) : ParamOp();
  if (!param)
    return {};
  Builder builder(module.getContext());
  auto shape = cast<RankedTensorType>(param.getType()).getShape();
  return builder.getDictionaryAttr({builder.getNamedAttr("name", builder.getStringAttr(name)),
                                    builder.getNamedAttr("starts", part.get("starts")),
                                    builder.getNamedAttr("shape", builder.getDenseI64ArrayAttr(shape))});
}

std::string cleave::nn::getTensorName(LoadOp load) {
  std::string name = load.getParam().str();
  if (!load.isPart())
    return name;
  auto starts = llvm::map_range(*load.getStarts(), [](int64_t start) { return std::to_string(start); });
  return name + "[" + llvm::join(starts, ", ") + "]";
}

PickedNames::PickedNames(ArrayRef<spmd::PlanPattern> written) : written(written) {
  for (const spmd::PlanPattern &pattern : written)
    patterns.push_back(llvm::cantFail(spmd::NamePattern::create(pattern.text)));
}

bool PickedNames::contains(StringRef name) const {
  return llvm::any_of(patterns, [&](const spmd::NamePattern &pattern) { return pattern.matches(name); });
}

LogicalResult PickedNames::check(MLIRContext *context, StringRef key, StringRef what, ArrayRef<StringRef> names) const {
  for (size_t i = 0; i < patterns.size(); ++i)
    if (llvm::none_of(names, [&](StringRef name) { return patterns[i].matches(name); }))
      return emitErrorAt(context, written[i].place)
             << "'" << key << "' picks '" << written[i].text << "', which no " << what << " is called"
             << spmd::suggestPatterns(written[i].text, names);
  return success();
}

/// Of several that a pattern picks, integers stay as they are, as all that is not trained does; one that says nothing else is a mistake.
LogicalResult PickedNames::checkFloats(MLIRContext *context, StringRef key, ArrayRef<LoadOp> loads) const {
  for (size_t i = 0; i < patterns.size(); ++i) {
    LoadOp integers;
    bool hasFloats = false;
    for (LoadOp load : loads)
      if (!hasFloats && patterns[i].matches(load.getParam())) {
        hasFloats = isa<FloatType>(getElementType(load));
        integers = load;
      }
    if (!hasFloats)
      return emitErrorAt(context, written[i].place)
             << "'" << key << "' picks '" << integers.getParam() << "', which is " << integers.getType()
             << ": integers are not trained; their scales may be";
  }
  return success();
}
