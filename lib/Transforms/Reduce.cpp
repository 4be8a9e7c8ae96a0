//===- Reduce.cpp - a module made small that still shows something --------===//
//
// Each edit is made on a copy, from large pieces of a function to single ops:
//
//   a b c d e f      whole function away, if nobody calls it
//   a b c            it ends here: what c and others make is returned
//         d e f      it begins here: what came before are arguments
//   a b _ d e f      op left out: an operand of the same type in its place, or an argument
//   results          fewer are returned
//
// What nothing needs any more goes with it: ops without users, arguments, symbols.
//
//===----------------------------------------------------------------------===//
#include "cleave/Transforms/Reduce.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Edits
//===----------------------------------------------------------------------===//

static unsigned countOps(ModuleOp module) {
  unsigned count = 0;
  module.walk([&](func::FuncOp func) { func.getBody().walk([&](Operation *) { ++count; }); });
  return count;
}

static bool hasOneBlock(func::FuncOp func) { return func.getBody().hasOneBlock(); }

/// Ops without users, from the end on, then arguments and private symbols that nothing names.
static void dropUnused(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!hasOneBlock(func))
      continue;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
      if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
        op.erase();
    if (!SymbolTable::symbolKnownUseEmpty(func, module))
      continue;
    BitVector unused(func.getNumArguments());
    for (BlockArgument argument : func.getArguments())
      if (argument.use_empty())
        unused.set(argument.getArgNumber());
    (void)func.eraseArguments(unused);
  }
  for (Operation &op : llvm::make_early_inc_range(module.getBody()->getOperations()))
    if (isa<SymbolOpInterface>(op) && !isa<func::FuncOp>(op) && SymbolTable::symbolKnownUseEmpty(&op, module))
      op.erase();
}

/// The function returns `values` from now on.
static void returnValues(func::FuncOp func, ValueRange values) {
  Operation *terminator = func.getBody().front().getTerminator();
  // What attributes say of results and of the terminator's operands is about others.
  for (NamedAttribute attribute : llvm::to_vector(terminator->getDiscardableAttrs()))
    terminator->removeDiscardableAttr(attribute.getName());
  terminator->setOperands(values);
  func->removeAttr(func.getResAttrsAttrName());
  func.setType(FunctionType::get(func.getContext(), func.getArgumentTypes(), values.getTypes()));
}

/// The function ends behind its first `count` ops.
static bool endBehind(func::FuncOp func, unsigned count) {
  Block &body = func.getBody().front();
  llvm::SetVector<Value> ends;
  unsigned place = 0;
  for (Operation &op : body.without_terminator()) {
    if (place++ >= count)
      break;
    for (Value result : op.getResults()) {
      auto isLater = [&](Operation *user) {
        Operation *at = body.findAncestorOpInBlock(*user);
        return at == body.getTerminator() || std::distance(body.begin(), at->getIterator()) >= count;
      };
      if (result.use_empty() || llvm::any_of(result.getUsers(), isLater))
        ends.insert(result);
    }
  }
  if (ends.empty() || place <= count)
    return false;
  returnValues(func, ends.getArrayRef());
  return true;
}

/// Results of these ops become arguments; ops of one operand of their result's type hand that on instead.
static bool leaveOut(func::FuncOp func, unsigned first, unsigned last, bool handsOn) {
  unsigned place = 0;
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front().without_terminator())
    if (unsigned here = place++; first <= here && here < last)
      ops.push_back(&op);
  bool isChanged = false;
  for (Operation *op : llvm::reverse(ops)) {
    for (Value result : op->getResults()) {
      auto isLike = [&](Value operand) { return operand.getType() == result.getType(); };
      auto like = llvm::find_if(op->getOperands(), isLike);
      if (handsOn && like == op->operand_end())
        continue;
      Value other;
      if (handsOn)
        other = *like;
      else if (!result.use_empty() &&
               succeeded(func.insertArgument(func.getNumArguments(), result.getType(), {}, op->getLoc())))
        other = func.getArguments().back();
      else
        continue;
      result.replaceAllUsesWith(other);
      isChanged = true;
    }
    if (op->use_empty()) {
      op->erase();
      isChanged = true;
    }
  }
  return isChanged;
}

static bool returnFewer(func::FuncOp func, unsigned first, unsigned last) {
  SmallVector<Value> kept;
  for (auto [index, value] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands()))
    if (index < first || index >= last)
      kept.push_back(value);
  returnValues(func, kept);
  return true;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
class Reducer {
public:
  Reducer(OwningOpRef<ModuleOp> &module, llvm::function_ref<bool(ModuleOp)> isInteresting)
      : module(module), isInteresting(isInteresting) {}

  ReduceSummary run();

private:
  using Edit = llvm::function_ref<bool(ModuleOp)>;
  bool tryEdit(Edit edit);
  bool tryFunction(StringRef name, llvm::function_ref<bool(func::FuncOp)> edit);
  bool dropFunctions();
  bool shorten(StringRef name);
  bool thin(StringRef name, bool handsOn);
  bool dropResults(StringRef name);
  func::FuncOp find(StringRef name) const { return module->lookupSymbol<func::FuncOp>(name); }
  unsigned countTop(StringRef name) const {
    func::FuncOp func = find(name);
    return static_cast<unsigned>(llvm::range_size(func.getBody().front().without_terminator()));
  }

  OwningOpRef<ModuleOp> &module;
  llvm::function_ref<bool(ModuleOp)> isInteresting;
  unsigned tried = 0;
};
} // namespace

/// The copy takes the module's place where it verifies, is smaller or simpler, and interesting.
bool Reducer::tryEdit(Edit edit) {
  OwningOpRef<ModuleOp> copy(module->clone());
  ScopedDiagnosticHandler quiet(module->getContext(), [](Diagnostic &) { return success(); });
  if (!edit(*copy))
    return false;
  dropUnused(*copy);
  if (failed(verify(*copy)))
    return false;
  ++tried;
  if (!isInteresting(*copy))
    return false;
  module = std::move(copy);
  return true;
}

bool Reducer::tryFunction(StringRef name, llvm::function_ref<bool(func::FuncOp)> edit) {
  return tryEdit([&](ModuleOp copy) { return edit(copy.lookupSymbol<func::FuncOp>(name)); });
}

bool Reducer::dropFunctions() {
  bool isChanged = false;
  SmallVector<std::string> names;
  for (auto func : module->getOps<func::FuncOp>())
    names.push_back(func.getName().str());
  for (const std::string &name : names)
    isChanged |= tryEdit([&](ModuleOp copy) {
      auto func = copy.lookupSymbol<func::FuncOp>(name);
      if (!SymbolTable::symbolKnownUseEmpty(func, copy))
        return false;
      func.erase();
      return true;
    });
  return isChanged;
}

/// Ends the function as early as it can: by halves, then op by op.
bool Reducer::shorten(StringRef name) {
  bool isChanged = false;
  for (unsigned step = std::max(countTop(name) / 2, 1u); step > 0; step /= 2)
    while (countTop(name) > step &&
           tryFunction(name, [&](func::FuncOp func) { return endBehind(func, countTop(name) - step); }))
      isChanged = true;
  return isChanged;
}

/// Leaves out runs of ops, from halves down to single ones.
bool Reducer::thin(StringRef name, bool handsOn) {
  bool isChanged = false;
  for (unsigned size = std::max(countTop(name) / 2, 1u); size > 0; size /= 2)
    for (unsigned first = 0; first < countTop(name);) {
      unsigned before = countTop(name);
      bool isTaken =
          tryFunction(name, [&](func::FuncOp func) { return leaveOut(func, first, first + size, handsOn); }) &&
          countTop(name) < before;
      isChanged |= isTaken;
      first += isTaken ? 0 : size;
    }
  return isChanged;
}

bool Reducer::dropResults(StringRef name) {
  bool isChanged = false;
  for (unsigned size = std::max(find(name).getNumResults() / 2, 1u); size > 0; size /= 2)
    for (unsigned first = 0; first < find(name).getNumResults();) {
      bool isTaken = tryFunction(name, [&](func::FuncOp func) { return returnFewer(func, first, first + size); });
      isChanged |= isTaken;
      first += isTaken ? 0 : size;
    }
  return isChanged;
}

ReduceSummary Reducer::run() {
  ReduceSummary summary;
  summary.before = countOps(*module);
  for (bool isChanged = true; isChanged;) {
    isChanged = dropFunctions();
    SmallVector<std::string> names;
    for (auto func : module->getOps<func::FuncOp>())
      if (hasOneBlock(func) && SymbolTable::symbolKnownUseEmpty(func, *module))
        names.push_back(func.getName().str());
    for (const std::string &name : names)
      for (bool isSmaller = true; isSmaller;) {
        unsigned before = countOps(*module);
        shorten(name);
        dropResults(name);
        thin(name, /*handsOn=*/false);
        thin(name, /*handsOn=*/true);
        isSmaller = countOps(*module) < before;
        isChanged |= isSmaller;
      }
  }
  summary.after = countOps(*module);
  summary.tried = tried;
  return summary;
}

ReduceSummary cleave::reduceModule(OwningOpRef<ModuleOp> &module, llvm::function_ref<bool(ModuleOp)> isInteresting) {
  return Reducer(module, isInteresting).run();
}
