//===- Step.cpp - what the passes of a step share -------------------------===//
//
// Arguments and results are appended, in the order in which passes ask for them: what is there keeps its number.
//
//===----------------------------------------------------------------------===//
#include "Step.h"

#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Plan/NamePattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

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
  if (auto func = module.lookupSymbol<func::FuncOp>("main"))
    return func;
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  if (functions.size() == 1)
    return functions.front();
  module.emitError() << "has " << functions.size() << " functions, and none is called main: which one is trained?";
  return {};
}

Location cleave::nn::makeStepLoc(MLIRContext *context, StringRef node, StringRef tensor) {
  ArrayRef<StringRef> names(tensor);
  NodeInfo info{node, "Train", {}, {}};
  if (!tensor.empty())
    info.results = names;
  return makeNodeLoc(context, info);
}

Value cleave::nn::addArgument(func::FuncOp func, RankedTensorType type, StringRef name, StringRef role) {
  Builder builder(func.getContext());
  auto attrs = builder.getDictionaryAttr({builder.getNamedAttr(spmd::kNameAttr, builder.getStringAttr(name)),
                                          builder.getNamedAttr(spmd::kRoleAttr, builder.getStringAttr(role))});
  unsigned index = func.getNumArguments();
  (void)func.insertArgument(index, type, attrs, func.getLoc());
  return func.getArgument(index);
}

void cleave::nn::addResult(func::FuncOp func, Value value, StringRef name, StringRef state) {
  Builder builder(func.getContext());
  SmallVector<NamedAttribute> attrs = {builder.getNamedAttr(spmd::kNameAttr, builder.getStringAttr(name))};
  if (!state.empty())
    attrs.push_back(builder.getNamedAttr(spmd::SpmdDialect::kStateAttr, builder.getStringAttr(state)));
  (void)func.insertResult(func.getNumResults(), value.getType(), builder.getDictionaryAttr(attrs));
  Operation *terminator = func.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
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

bool cleave::nn::isPicked(ArrayRef<spmd::PlanPattern> patterns, StringRef name) {
  return llvm::any_of(patterns, [&](const spmd::PlanPattern &pattern) {
    return llvm::cantFail(spmd::NamePattern::create(pattern.text)).matches(name);
  });
}
