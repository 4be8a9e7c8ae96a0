//===- ParseMlir.cpp - MLIR from strangers --------------------------------===//
//
// Text and bytecode. What comes after relies on more than MLIR's verifier checks: signatures of tensors of static shape,
// no calls, brackets that do not nest deeper than MLIR's parser has stack for.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/Bytecode.h"
#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace cleave;

/// The shapes of an .mlir file are given; what is typed may repeat them.
llvm::Error Compilation::State::checkTypedShapes(ModuleOp module) {
  if (!options.dims.empty())
    return makeError("{0} has no symbolic dim {1}: it has no symbolic dims", options.model,
                     quote(options.dims.begin()->first));
  for (const auto &[name, shape] : options.shapes) {
    llvm::Expected<func::FuncOp> func = findEntry(module);
    if (!func)
      return func.takeError();
    auto names = getInputNames(*func);
    const auto *it = llvm::find(names, name);
    if (it == names.end())
      return makeError("a shape is given for input {0}, which {1} lacks", quote(name), options.model);
    if (getInputTypes(*func)[it - names.begin()].getShape() != ArrayRef<int64_t>(shape))
      return makeError("input {0} of {1} has another shape than the one given", quote(name), options.model);
  }
  return llvm::Error::success();
}

/// What the entry calls is in it by now.
llvm::Error Compilation::State::keepEntry(ModuleOp module) {
  if (options.entry.empty())
    return llvm::Error::success();
  auto entry = module.lookupSymbol<func::FuncOp>(options.entry);
  if (!entry) {
    auto names = llvm::map_to_vector(module.getOps<func::FuncOp>(), [](func::FuncOp func) { return func.getName(); });
    return makeError("{0} has no function {1}, but {2}{3}", options.model, quote(options.entry),
                     names.empty() ? "none at all" : listFunctions(module), suggestNames(options.entry, names));
  }
  if (!pipe::getRankFunctions(module).empty())
    return makeError("{0} is {1} already: its functions are those of ranks, --entry comes too late", options.model,
                     toString(cleave::getPhase(module)));
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (func != entry)
      func.erase();
  // Parameters that only others had.
  SymbolTableCollection tables;
  SymbolUserMap users(tables, module);
  for (auto param : llvm::make_early_inc_range(module.getOps<nn::ParamOp>()))
    if (users.useEmpty(param))
      param.erase();
  return llvm::Error::success();
}

/// Arguments and results of all functions are tensors of static shape, of numbers: what comes after import relies on it.
static LogicalResult checkSignature(Location loc, StringRef what, unsigned index, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return emitError(loc) << what << " " << index << " is " << type << ", expected a tensor of static shape";
  if (!spmd::isElementType(tensor.getElementType()))
    return emitError(loc) << what << " " << index << " is " << type
                          << ", whose elements are not of a numeric type of nn (S8)";
  return success();
}

static LogicalResult checkSignatures(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      return func.emitOpError() << "has no body";
    for (BlockArgument argument : func.getArguments())
      if (failed(checkSignature(argument.getLoc(), "argument", argument.getArgNumber(), argument.getType())))
        return failure();
    for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
      if (failed(checkSignature(func.getLoc(), "result", index, type)))
        return failure();
  }
  return success();
}

static constexpr int kMaxNesting = 256;

/// Where brackets first nest deeper than any program's, or null: MLIR's parser follows each on the stack.
static const char *findDeepNesting(StringRef text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    // Brackets in strings and comments are no brackets.
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      break;
    case '/':
      if (text.substr(i).starts_with("//"))
        i = std::min(text.find('\n', i), text.size());
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > kMaxNesting)
        return text.data() + i;
      break;
    case ')':
    case ']':
    case '}':
      depth = std::max(depth - 1, 0);
      break;
    case '>':
      // The end of an arrow closes nothing.
      if (i > 0 && text[i - 1] != '-')
        depth = std::max(depth - 1, 0);
      break;
    default:
      break;
    }
  }
  return nullptr;
}

OwningOpRef<ModuleOp> Compilation::State::parseMlir(std::unique_ptr<llvm::MemoryBuffer> buffer) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  StringRef text = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  const char *deep = text.starts_with(kBytecodeMagic) ? nullptr : findDeepNesting(text);
  if (deep) {
    auto [line, column] = sources.getLineAndColumn(llvm::SMLoc::getFromPointer(deep));
    emitError(FileLineColLoc::get(context.get(), options.model, line, column))
        << "brackets nest more than " << kMaxNesting << " deep";
    return nullptr;
  }
  // A process of its own has a context of its own, without threads.
  llvm::Error damage = checkBytecode(text, [&] {
    MLIRContext apart(context->getDialectRegistry(), MLIRContext::Threading::DISABLED);
    (void)parseSourceFile<ModuleOp>(sources, &apart);
  });
  if (damage) {
    fail(makeError("{0}: {1}", options.model, llvm::toString(std::move(damage))));
    return nullptr;
  }
  ParserConfig config(context.get());
  // Passes that a reproducer asks for are no part of a model.
  config.attachResourceParser("mlir_reproducer", [&](AsmParsedResourceEntry &entry) {
    if (entry.getKey() == "pipeline")
      emitWarning(FileLineColLoc::get(context.get(), options.model, 1, 1))
          << "the file is a reproducer, whose passes are not run here: 'cleave-opt --run-reproducer' runs them";
    return success();
  });
  OwningOpRef<ModuleOp> parsed = parseSourceFile<ModuleOp>(sources, config);
  if (parsed && (failed(nn::inlineCalls(*parsed)) || failed(checkSignatures(*parsed))))
    return nullptr;
  if (llvm::Error error = parsed ? keepEntry(*parsed) : llvm::Error::success()) {
    fail(std::move(error), Blame::Options);
    return nullptr;
  }
  if (parsed && options.ignoreDigests)
    reference::dropDigests(*parsed);
  if (parsed && failed(reference::placeWeights(*parsed, options.model, options.weights)))
    return nullptr;
  if (llvm::Error error = parsed ? checkTypedShapes(*parsed) : llvm::Error::success()) {
    fail(std::move(error));
    return nullptr;
  }
  return parsed;
}
