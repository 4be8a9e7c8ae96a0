//===- InlineCalls.cpp - bodies instead of calls --------------------------===//
//
// A walk through the call graph, callees first, so that a body that is copied has no calls any more. A callee on the
// path that led to it calls itself. Sizes are added up before anything is copied: a chain of functions that each call
// the next one twice would be 2^n ops.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"

#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace cleave::nn {
#define GEN_PASS_DEF_NNINLINECALLS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave::nn;

namespace {
/// n functions that each call the next one twice become 2^n ops; this is where that ends in an error.
constexpr int64_t kMaxOps = 1000000;

class Inliner {
public:
  explicit Inliner(ModuleOp module) : module(module) {}

  LogicalResult run();

private:
  /// A function of the module, and where the walk over the graph of calls stands with it.
  struct Function {
    SmallVector<func::CallOp> calls;
    int64_t numOps = 0;
    enum { Waiting, OnPath, Done } state = Waiting;
    bool isCalled = false;
  };
  /// One function of the path, and the next of its calls to follow.
  struct Step {
    func::FuncOp func;
    size_t next = 0;
  };

  void collectCalls();
  /// Depth first, with a path of its own instead of recursion: a file may nest calls as deep as it is long. A function
  /// is inlined when all its callees are done; one that is met again while on the path calls itself.
  LogicalResult visit(func::FuncOp root);
  FailureOr<func::FuncOp> getCallee(func::CallOp call);
  LogicalResult reportCycle(ArrayRef<Step> path, func::CallOp last, func::FuncOp callee);
  LogicalResult inlineAll(func::FuncOp func);

  ModuleOp module;
  SymbolTableCollection symbols;
  llvm::MapVector<func::FuncOp, Function> functions;
};

struct InlineCalls : cleave::nn::impl::NnInlineCallsBase<InlineCalls> {
  void runOnOperation() override {
    if (failed(inlineCalls(getOperation())))
      signalPassFailure();
  }
};
} // namespace

void Inliner::collectCalls() {
  for (auto func : module.getOps<func::FuncOp>()) {
    Function &entry = functions[func];
    for (Block &block : func.getBody())
      for (Operation &op : block) {
        ++entry.numOps;
        if (auto call = dyn_cast<func::CallOp>(op))
          entry.calls.push_back(call);
      }
  }
}

FailureOr<func::FuncOp> Inliner::getCallee(func::CallOp call) {
  auto callee = symbols.lookupSymbolIn<func::FuncOp>(module, call.getCalleeAttr());
  auto refuse = [&](StringRef why) {
    InFlightDiagnostic error = call.emitOpError() << "cannot be inlined: '" << call.getCallee() << "' has " << why;
    if (callee)
      error.attachNote(callee.getLoc()) << "it is here";
    return error;
  };
  if (!callee || callee.isExternal())
    return refuse("no body");
  if (!callee.getBody().hasOneBlock() || !isa<func::ReturnOp>(callee.getBody().front().getTerminator()))
    return refuse("control flow");
  return callee;
}

LogicalResult Inliner::reportCycle(ArrayRef<Step> path, func::CallOp last, func::FuncOp callee) {
  InFlightDiagnostic error = last.emitOpError() << "cannot be inlined: '" << last.getCallee() << "' calls itself";
  // Of a long way round the beginning is enough.
  constexpr unsigned maxNotes = 4;
  path = path.drop_until([&](Step step) { return step.func == callee; });
  for (const Step &step : path.drop_back().take_front(maxNotes)) {
    func::CallOp call = functions[step.func].calls[step.next - 1];
    error.attachNote(call.getLoc()) << "by way of '" << call.getCallee() << "'";
  }
  return error;
}

/// The results of the call are what the body returns; locations stay those of the body. What the call's says beside its place (pipe-lower:
/// which action of a schedule it is) goes around these, so that a trace can tell one call's commands from another's.
static void inlineOne(func::CallOp call, func::FuncOp callee) {
  OpBuilder builder(call);
  IRMapping locals;
  locals.map(callee.getArguments(), call.getOperands());
  Block &body = callee.getBody().front();
  auto said = dyn_cast<FusedLoc>(Location(call.getLoc()));
  for (Operation &op : body.without_terminator()) {
    Operation *clone = builder.clone(op, locals);
    if (said && said.getMetadata())
      clone->setLoc(FusedLoc::get({clone->getLoc()}, said.getMetadata(), clone->getContext()));
  }
  for (auto [result, value] : llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(locals.lookup(value));
  call.erase();
}

/// Precondition: callees have no calls any more.
LogicalResult Inliner::inlineAll(func::FuncOp func) {
  Function &entry = functions[func];
  for (func::CallOp call : entry.calls) {
    assert(functions[*getCallee(call)].calls.empty() && "the callee still calls");
    // Counted before anything is cloned, so that too large a program costs nothing.
    entry.numOps += functions[*getCallee(call)].numOps;
    if (entry.numOps > kMaxOps)
      return call.emitOpError() << "cannot be inlined: '" << func.getName() << "' would have more than " << kMaxOps
                                << " ops";
  }
  for (func::CallOp call : entry.calls)
    inlineOne(call, *getCallee(call));
  entry.calls.clear();
  entry.state = Function::Done;
  return success();
}

LogicalResult Inliner::visit(func::FuncOp root) {
  if (functions[root].state == Function::Done)
    return success();
  SmallVector<Step> path{{root}};
  functions[root].state = Function::OnPath;
  while (!path.empty()) {
    Step &step = path.back();
    ArrayRef<func::CallOp> calls = functions[step.func].calls;
    if (step.next == calls.size()) {
      if (failed(inlineAll(step.func)))
        return failure();
      path.pop_back();
      continue;
    }
    func::CallOp call = calls[step.next++];
    FailureOr<func::FuncOp> callee = getCallee(call);
    if (failed(callee))
      return failure();
    Function &next = functions[*callee];
    next.isCalled = true;
    if (next.state == Function::OnPath)
      return reportCycle(path, call, *callee);
    if (next.state == Function::Done)
      continue;
    next.state = Function::OnPath;
    path.push_back({*callee});
  }
  return success();
}

LogicalResult Inliner::run() {
  collectCalls();
  if (llvm::all_of(functions, [](const auto &entry) { return entry.second.calls.empty(); }))
    return success();
  for (auto &[func, entry] : functions)
    if (failed(visit(func)))
      return failure();
  for (auto &[func, entry] : functions)
    if (entry.isCalled && func.isPrivate())
      func.erase();
  return success();
}

LogicalResult cleave::nn::inlineCalls(ModuleOp module) { return Inliner(module).run(); }
