//===- Session.cpp - what all commands of `cleave` share ------------------===//
#include "cleave/Driver/Session.h"

#include "cleave/Plan/NamePattern.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"
#include "cleave/Driver/Values.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Pipelines/Registration.h"
#include "cleave/Reference/Weights.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"

#include <chrono>
#include <climits>
#include <unistd.h>

using namespace mlir;
using namespace cleave;
using namespace cleave::driver;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

Session::Session(const Options &options) : options(options) {
  DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  useColor =
      options.color == Color::Always || (options.color == Color::Auto && llvm::sys::Process::StandardErrHasColors());
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    printDiagnostic(diagnostic);
    return success();
  });
}

Session::~Session() = default;

/// `file:line:col` of the innermost file location, or of the ONNX node: `model.onnx: node '/x'`.
static std::string formatPlace(Location loc, StringRef model) {
  std::string place;
  loc->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      llvm::raw_string_ostream os(place);
      os << file.getFilename().getValue();
      if (file.getLine())
        os << ':' << file.getLine() << ':' << file.getColumn();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return place.empty() ? model.str() : place;
}

static std::string formatNode(Location loc) {
  for (const nn::NodeInfo &info : nn::getNodeInfos(loc))
    if (!info.node.empty())
      return info.node.str();
  return "";
}

void Session::printLine(StringRef severity, StringRef color, StringRef prefix, StringRef text) {
  llvm::errs() << prefix << ": " << (useColor ? color : "") << severity << ": " << (useColor ? "\033[0m" : "") << text
               << '\n';
}

void Session::printDiagnostic(Diagnostic &diagnostic) {
  std::string place = formatPlace(diagnostic.getLocation(), options.model), text = diagnostic.str();
  std::string node = formatNode(diagnostic.getLocation());
  if (!node.empty() && !StringRef(text).contains(node))
    text = "node '" + node + "': " + text;
  // Several ops of one node may have the same to say.
  bool isRemark = diagnostic.getSeverity() == DiagnosticSeverity::Remark;
  if (isRemark && (!options.remarks || !remarks.insert(place + ": " + text).second))
    return;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    printLine("error", "\033[1;31m", place, text);
    break;
  case DiagnosticSeverity::Warning:
    printLine("warning", "\033[1;35m", place, text);
    break;
  case DiagnosticSeverity::Remark:
    printLine("remark", "\033[1;34m", place, text);
    break;
  case DiagnosticSeverity::Note:
    printLine("note", "\033[1;36m", place, text);
    break;
  }
  for (Diagnostic &note : diagnostic.getNotes())
    printLine("note", "\033[1;36m", formatPlace(note.getLocation(), options.model), note.str());
}

int Session::fail(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    printLine("error", "\033[1;31m", "cleave", info.message());
  });
  return kBadInput;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// Tensors of `graph` that the plan addresses by their whole name, or as operand or result of a node.
static void keepNamed(const spmd::Plan &plan, const onnx::GraphProto &graph, llvm::StringSet<> &kept) {
  for (const spmd::PlanRule &rule : plan.rules) {
    std::string error;
    spmd::NamePattern pattern = *spmd::NamePattern::create(rule.pattern, error);
    if (rule.target == spmd::PlanRule::Target::Tensor) {
      if (pattern.isLiteral())
        kept.insert(pattern.getText());
      continue;
    }
    for (const onnx::NodeProto &node : graph.node) {
      ArrayRef<StringRef> list = rule.target == spmd::PlanRule::Target::Operand ? node.input : node.output;
      if (rule.index < list.size() && !list[rule.index].empty() && pattern.matches(node.name))
        kept.insert(list[rule.index]);
    }
  }
}

/// What the plan says of the model: dims, those of --dim first, and tensors.
void Session::addPlan(const onnx::GraphProto &graph, onnx::ImportOptions &import) {
  for (const auto &[name, size] : options.dims)
    import.dims[name] = size;
  if (!plan)
    return;
  keepNamed(*plan, graph, import.kept);
  for (const auto &[name, size] : plan->dims)
    if (import.dims.try_emplace(name, size).second) {
      const spmd::PlanPlace &place = plan->dimPlaces.at(name);
      import.dimPlaces.emplace(name, FileLineColLoc::get(context.get(), place.file, place.line, place.column));
    }
}

OwningOpRef<ModuleOp> Session::import(std::shared_ptr<const MappedFile> file, bool collectAllErrors) {
  onnx::ImportOptions import;
  import.collectAllErrors = collectAllErrors;
  std::unique_ptr<onnx::ModelFile> model = onnx::readModel(context.get(), std::move(file));
  if (!model)
    return nullptr;
  addPlan(model->model.graph, import);
  for (const auto &[name, shape] : options.shapes)
    import.shapes[name].assign(shape.begin(), shape.end());
  if (!options.inputs.empty()) {
    auto shapes = readInputShapes(options.inputs);
    if (!shapes) {
      fail(shapes.takeError());
      return nullptr;
    }
    for (const auto &[name, shape] : *shapes)
      import.arrayShapes.try_emplace(name, shape.begin(), shape.end());
    auto values = readSmallInputs(*context, options.inputs);
    if (!values) {
      fail(values.takeError());
      return nullptr;
    }
    for (auto &[name, value] : *values)
      import.inputValues.try_emplace(name, std::move(value));
  }
  return onnx::importOnnx(context.get(), *model, import);
}

/// The shapes of an .mlir file are given; what is typed may repeat them.
static llvm::Error checkTypedShapes(const Options &options, ModuleOp module) {
  if (!options.dims.empty())
    return makeError("{0} has no symbolic dim {1}: it has no symbolic dims", options.model,
                     quote(options.dims.begin()->first));
  for (const auto &[name, shape] : options.shapes) {
    llvm::Expected<func::FuncOp> func = getEntry(module);
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

/// Arguments and results of all functions are tensors of static shape: what comes after import relies on it.
static LogicalResult checkSignatures(ModuleOp module) {
  auto check = [](func::FuncOp func, TypeRange types, StringRef what) {
    for (auto [index, type] : llvm::enumerate(types))
      if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
        return LogicalResult(func.emitOpError()
                             << what << " " << index << " is " << type << ", expected a tensor of static shape");
    return success();
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      return func.emitOpError() << "has no body";
    if (failed(check(func, func.getArgumentTypes(), "argument")) ||
        failed(check(func, func.getResultTypes(), "result")))
      return failure();
  }
  return success();
}

/// MLIR's bytecode starts with letters of its own.
static constexpr StringLiteral kBytecodeMagic = "ML\xefR";
static constexpr int kMaxNesting = 256;

/// Where brackets first nest deeper than any program's, or null: MLIR's parser follows each on the stack.
static const char *findDeepNesting(StringRef text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
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
      if (i > 0 && text[i - 1] != '-')
        depth = std::max(depth - 1, 0);
      break;
    default:
      break;
    }
  }
  return nullptr;
}

OwningOpRef<ModuleOp> Session::parse(std::unique_ptr<llvm::MemoryBuffer> buffer) {
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
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, context.get());
  if (module && (failed(nn::inlineCalls(*module)) || failed(checkSignatures(*module))))
    return nullptr;
  if (module && !options.weights.empty() && failed(reference::moveWeights(*module, options.weights)))
    return nullptr;
  if (llvm::Error error = module ? checkTypedShapes(options, *module) : llvm::Error::success()) {
    fail(std::move(error));
    return nullptr;
  }
  return module;
}

/// True for what can only be an ONNX model: text has no control characters, and an ONNX model has some at its start
/// (the tag and the value of ir_version).
static bool looksLikeOnnx(StringRef bytes) {
  return !bytes.starts_with(kBytecodeMagic) && llvm::any_of(bytes.take_front(4096), [](unsigned char byte) {
    return byte < 0x20 && !StringRef("\t\n\v\f\r").contains(static_cast<char>(byte));
  });
}

/// The path behind `< model.onnx`, for the weights of an ONNX model stay in its file; `-` for all else.
static std::string nameStandardInput() {
  char start[4096], path[PATH_MAX];
  off_t position = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  ssize_t size = position < 0 ? -1 : ::pread(STDIN_FILENO, start, sizeof(start), position);
  if (size <= 0 || !looksLikeOnnx(StringRef(start, size)))
    return "-";
  ssize_t length = ::readlink("/proc/self/fd/0", path, sizeof(path));
  return length > 0 ? std::string(path, length) : "-";
}

/// An ONNX file is mapped, everything else read.
llvm::Error Session::open(std::shared_ptr<const MappedFile> &file, std::unique_ptr<llvm::MemoryBuffer> &buffer) {
  if (!hasOnnx) {
    auto read = llvm::MemoryBuffer::getFileOrSTDIN(options.model);
    if (!read)
      return makeError("cannot read {0}: {1}", quote(options.model), read.getError().message());
    buffer = std::move(*read);
    return llvm::Error::success();
  }
  llvm::Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(options.model);
  if (mapped)
    file = std::move(*mapped);
  return mapped.takeError();
}

OwningOpRef<ModuleOp> Session::load(bool collectAllErrors) {
  auto start = std::chrono::steady_clock::now();
  FailureOr<spmd::PlanRef> read = spmd::readPlan(context.get(), {options.plan, options.mesh, options.shard});
  if (failed(read))
    return nullptr;
  plan = *read;
  if (options.model == "-")
    options.model = nameStandardInput();
  bool isStandardInput = options.model == "-";
  hasOnnx = !isStandardInput && !StringRef(options.model).ends_with(".mlir");
  std::shared_ptr<const MappedFile> file;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  if (llvm::Error error = open(file, buffer)) {
    fail(std::move(error));
    return nullptr;
  }
  if (isStandardInput && looksLikeOnnx(buffer->getBuffer())) {
    hasOnnx = true;
    file = MappedFile::fromMemory("-", buffer->getBuffer().str());
  }
  if (hasOnnx && !options.weights.empty()) {
    fail(makeError("--weights is about .mlir files; those of {0} lie in it or beside it", options.model));
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = hasOnnx ? import(std::move(file), collectAllErrors) : parse(std::move(buffer));
  seconds.emplace_back("import", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return module;
}

llvm::Expected<func::FuncOp> cleave::driver::getEntry(ModuleOp module) {
  if (auto func = module.lookupSymbol<func::FuncOp>("main"))
    return func;
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  if (functions.size() == 1)
    return functions.front();
  return makeError("the module has {0} functions and none is called main", functions.size());
}

/// Aliases (`#mesh`, `#loc7`) are for readers, and finding them takes longer than printing all the rest. Nobody reads
/// this many ops; but where types carry shardings, it is aliases that keep the file small.
static bool isWithoutAliases(ModuleOp module) {
  constexpr unsigned manyOps = 10000;
  unsigned count = 0;
  bool isLarge =
      module.walk([&](Operation *) { return ++count > manyOps ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
  Phase phase = isLarge ? getPhase(module) : Phase::Annotated;
  return phase == Phase::Imported || phase >= Phase::Partitioned;
}

llvm::Error cleave::driver::writeModule(ModuleOp module, StringRef path) {
  OpPrintingFlags flags;
  // What is written has been verified: printing need not do so again.
  flags.enableDebugInfo(true).useLocalScope(isWithoutAliases(module)).assumeVerified();
  AsmState state(module, flags);
  if (path.empty() || path == "-") {
    module.print(llvm::outs(), state);
    llvm::outs() << '\n';
    return llvm::Error::success();
  }
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    module.print(os, state);
    os << '\n';
    return llvm::Error::success();
  });
}

bool Session::hasMesh(ModuleOp module) const {
  // Rules without a mesh are told where the plan is annotated. A program that has wishes or shardings names its mesh.
  bool isAsked = plan && (!plan->mesh.empty() || !plan->rules.empty());
  return isAsked || module->hasAttr(spmd::SpmdDialect::kMeshAttr) || getPhase(module) >= Phase::Annotated;
}
