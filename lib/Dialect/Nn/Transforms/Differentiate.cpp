//===- Differentiate.cpp - gradients as further results -------------------===//
//
// The walk is that of Gradients/Differentiate.h; here it begins at a result, by arguments that are parameters, and what it makes gets
// names: of node n the node `grad(n)`, of tensor h the tensor `grad(h)`.
//
//===----------------------------------------------------------------------===//
#include "../Training/Step.h"

#include "cleave/Dialect/Nn/Gradients/Differentiate.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Support/Suggest.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNDIFFERENTIATE
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// `grad(/enc/MatMul)`, and the tensors that the gradients of its results are; where several nodes were fused, the first.
static Location makeGradientLoc(Operation *op) {
  SmallVector<NodeInfo, 1> infos = getNodeInfos(op);
  std::string name = spmd::describeNode(op);
  if (infos.empty() || name.empty())
    return UnknownLoc::get(op->getContext());
  std::string node = "grad(" + name + ")";
  NodeInfo info;
  info.node = node;
  info.opType = infos.front().opType;
  info.module = infos.front().module;
  return makeNodeLoc(op->getContext(), info);
}

namespace {
class StepDifferentiation {
public:
  StepDifferentiation(func::FuncOp func, StringRef of, ArrayRef<std::string> by) : func(func), of(of), by(by) {}

  LogicalResult run();

private:
  Value findTarget();
  LogicalResult findWanted();
  void explain(const Differentiation &walk);
  void nameGradients(const Differentiation &walk, const GradientPath &path);
  static void nameGradient(Value gradient, StringRef of);

  func::FuncOp func;
  StringRef of;
  ArrayRef<std::string> by;
  SmallVector<Value> wanted;
};
} // namespace

Value StepDifferentiation::findTarget() {
  Operation *terminator = func.getBody().front().getTerminator();
  SmallVector<StringRef> names;
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    names.push_back(spmd::getResultName(func, index));
  // Gradients of a loss may be those of its product with a scale.
  const auto *found = of == "loss" ? llvm::find(names, kScaledLoss) : names.end();
  if (found == names.end())
    found = llvm::find(names, of);
  if (found == names.end()) {
    func.emitError() << "has no result '" << of << "' that could be differentiated" << suggestNames(of, names);
    return {};
  }
  Value target = terminator->getOperand(found - names.begin());
  if (isa<FloatType>(getElementType(target)) && Composer::rank(target) == 0)
    return target;
  func.emitError() << "result '" << of << "' is " << target.getType() << ": a loss is one number of floats";
  return {};
}

LogicalResult StepDifferentiation::findWanted() {
  SmallVector<StringRef> names;
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    names.push_back(spmd::getArgumentName(func, index));
    if (by.empty() ? spmd::isParameter(func, index) : llvm::is_contained(by, names.back()))
      wanted.push_back(func.getArgument(index));
  }
  for (StringRef name : by)
    if (!llvm::is_contained(names, name))
      return func.emitError() << "has no argument '" << name << "'" << suggestNames(name, names);
  for (Value value : wanted)
    if (!isa<FloatType>(getElementType(value)))
      return func.emitError() << "argument '" << spmd::getArgumentName(func, cast<BlockArgument>(value).getArgNumber())
                              << "' is " << value.getType() << ": integers have no gradient";
  return success();
}

/// Names what cannot be had for lack of the gradient.
void StepDifferentiation::explain(const Differentiation &walk) {
  Operation *op = walk.getObstacle();
  if (!op)
    return;
  InFlightDiagnostic error = op->emitError() << "'" << op->getName().getStringRef() << "' has no gradient";
  if (!walk.getReason().empty())
    error << ": " << walk.getReason();
  if (isa<spmd::LoopOpInterface>(op))
    error.attachNote(op->getLoc()) << "a trip count that is known at import is unrolled";
  SmallVector<StringRef> blocked;
  for (Value value : wanted)
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand == value || !findGradientPath(operand, {value}, 1).ops.empty();
        }))
      blocked.push_back(spmd::getArgumentName(func, cast<BlockArgument>(value).getArgNumber()));
  if (!blocked.empty())
    error.attachNote(func.getLoc()) << "'" << blocked.front() << "'"
                                    << (blocked.size() > 1 ? " and " + std::to_string(blocked.size() - 1) + " others"
                                                           : std::string())
                                    << (blocked.size() > 1 ? " need its gradient: freeze them"
                                                           : " needs its gradient: freeze it")
                                    << ", or take the loss of another value";
}

/// It is called `grad(of)`, where its op makes nothing else that has a name.
void StepDifferentiation::nameGradient(Value gradient, StringRef of) {
  Operation *maker = gradient ? gradient.getDefiningOp() : nullptr;
  if (!maker || maker->getNumResults() != 1 || !spmd::getTensorNames(gradient).empty())
    return;
  SmallVector<NodeInfo, 1> infos = getNodeInfos(maker->getLoc());
  NodeInfo info = infos.empty() ? NodeInfo() : infos.front();
  std::string name = ("grad(" + of + ")").str();
  StringRef tensor = name;
  ArrayRef<StringRef> ofResult(tensor);
  info.results = ofResult;
  maker->setLoc(makeNodeLoc(maker->getContext(), info));
}

/// Of activations and of what is trained: plans, `explain` and reports address them.
void StepDifferentiation::nameGradients(const Differentiation &walk, const GradientPath &path) {
  for (Operation *op : path.ops)
    for (Value result : op->getResults())
      if (SmallVector<StringRef, 1> names = spmd::getTensorNames(result); !names.empty())
        nameGradient(walk.getGradient(result), names.front());
  for (Value value : wanted)
    nameGradient(walk.getGradient(value), spmd::getArgumentName(func, cast<BlockArgument>(value).getArgNumber()));
}

LogicalResult StepDifferentiation::run() {
  Value target = findTarget();
  if (!target || failed(findWanted()))
    return failure();
  OpBuilder builder(func.getBody().front().getTerminator());
  Composer f(builder, makeStepLoc(func.getContext(), "grad(loss)"));
  GradientPath path = findGradientPath(target, wanted, wanted.size());
  Differentiation walk(f, path);
  Value one = f.scalarLike(target, 1);
  if (failed(walk.run(target, one, [&](Operation *op) { f.at(makeGradientLoc(op)); })))
    return explain(walk), failure();
  nameGradients(walk, path);
  SignatureBuilder signature(func);
  for (Value value : wanted) {
    StringRef name = spmd::getArgumentName(func, cast<BlockArgument>(value).getArgNumber());
    Value gradient = walk.getGradient(value);
    f.at(makeStepLoc(func.getContext(), ("grad(" + name + ")").str()));
    if (!gradient)
      func.emitWarning() << "'" << name << "' has a gradient of zeros: the loss depends on it in steps alone";
    if (!gradient)
      gradient = f.broadcast(f.scalarLike(value, 0), Composer::shape(value));
    signature.addResult(gradient, ("grad(" + name + ")").str());
  }
  signature.apply();
  return success();
}

namespace {
struct DifferentiateStep : cleave::nn::impl::NnDifferentiateBase<DifferentiateStep> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = findStep(getOperation());
    SmallVector<std::string> names(by.begin(), by.end());
    if (!func || failed(StepDifferentiation(func, of, names).run()))
      signalPassFailure();
  }
};
} // namespace
