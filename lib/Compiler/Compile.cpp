//===- Compile.cpp - what becomes of a model ------------------------------===//
//
// A model with several sizes of a dim takes the way once for each: every variant is a compilation of its own, of which only
// commands, and kernels and weights that are new, go into the program. The file appears whole or not at all.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Compile.h"

#include "State.h"

#include "cleave/Codegen/Device/Device.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Program/File.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// Code for several processors, the best first.
static std::vector<std::string> getIsas(StringRef isa) {
  if (isa == "portable")
    return {"x86-64-v4", "x86-64-v3", "x86-64"};
  return {isa.str()};
}

namespace {

/// Targets of options that exist.
struct Targets {
  std::vector<std::string> isas, devices;
  /// The first of the host's; null with devices.
  std::unique_ptr<codegen::HostTarget> host;
};

} // namespace

/// `cuda:sm_90,sm_80`: the architectures.
static llvm::Expected<Targets> getTargets(const CompileOptions &options) {
  Targets targets;
  StringRef text = options.target;
  if (text == "host") {
    if (codegen::AllowedTraits allowed = getTraits(options.allowed); allowed.isOfDevices)
      return makeError("--allow {0} is about CUDA devices: use --target or --device", allowed.word);
    targets.isas = getIsas(options.isa);
    llvm::Expected<std::unique_ptr<codegen::HostTarget>> host = codegen::HostTarget::create(targets.isas.front());
    if (!host)
      return makeError("--isa {0}: {1}", options.isa, llvm::toString(host.takeError()));
    targets.host = std::move(*host);
    return targets;
  }
  if (!text.consume_front("cuda:"))
    return makeError("--target {0}: expected host, or cuda: and architectures, as in cuda:sm_90", options.target);
  if (options.isa != "native")
    return makeError("--isa {0} is about the host, and --target is {1}", options.isa, options.target);
  if (options.precision == Precision::Split)
    return makeError("--precision split is for the host; on CUDA devices there are f32 and bf16");
  SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names) {
    if (llvm::Error unknown = codegen::CudaTarget::create(name).takeError())
      return makeError("--target {0}: {1}, nor is it '{2}'", options.target, llvm::toString(std::move(unknown)),
                       codegen::CudaTarget::kEmulated);
    targets.devices.push_back(name.str());
  }
  return targets;
}

llvm::Error cleave::checkArchitecture(StringRef name) { return codegen::CudaTarget::create(name).takeError(); }

/// What cannot be kept is said rather than approximated.
static llvm::Error checkPrecision(const CompileOptions &options, Phase phase, const AssemblyOptions &assembly) {
  if (options.precision == Precision::BF16 && phase >= Phase::Clustered)
    return makeError("{0} is {1} already: --precision comes too late", options.model, toString(phase));
  if (options.precision == Precision::Split)
    for (const std::string &isa : assembly.isas) {
      llvm::Expected<std::unique_ptr<codegen::HostTarget>> target = codegen::HostTarget::create(isa);
      if (!target)
        return makeError("--isa {0}: {1}", isa, llvm::toString(target.takeError()));
      if (!(*target)->hasTiles())
        return makeError("--precision split computes in tiles (AMX), and --isa {0} has none: f32 and bf16 are there",
                         isa);
    }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

static AssemblyOptions makeAssemblyOptions(const CompileOptions &options, const Targets &targets) {
  AssemblyOptions assembly;
  assembly.isas = targets.isas;
  assembly.devices = targets.devices;
  assembly.usesLibraries = options.libraries == LibraryUse::Auto;
  assembly.embedsWeights = options.embedWeights;
  assembly.metadata.producer = "cleave " CLEAVE_VERSION;
  assembly.metadata.model = llvm::sys::path::filename(options.model).str();
  assembly.metadata.precision = kPrecisionWords[static_cast<size_t>(options.precision)].str();
  assembly.allowed = options.allowed;
  if (options.allowed != codegen::Allowed::Nothing)
    assembly.metadata.precision += std::string("+") + getTraits(options.allowed).word;
  assembly.splitsProducts = options.precision == Precision::Split;
  assembly.guardsScratch = options.guardsScratch;
  return assembly;
}

bool Compilation::State::addTo(Assembler &assembler, StringRef entry) {
  SmallVector<func::FuncOp, 4> functions = pipe::getRankFunctions(*module);
  if (functions.empty()) {
    llvm::Expected<func::FuncOp> entry = findEntry(*module);
    if (!entry)
      return fail(entry.takeError());
    functions = {*entry};
  }
  std::vector<program::Dim> dims;
  for (const auto &[name, size] : options.dims)
    dims.push_back({name, size});
  const bool hadFailed = worst.has_value();
  Telling telling(onProgress, "kernels");
  if (worst && !hadFailed)
    return false;
  auto from = std::chrono::steady_clock::now();
  bool isAdded = assembler.add(functions, dims, entry);
  addSeconds("assemble", std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  return isAdded;
}

/// Kernels are formed for what they will run on.
static void setKernels(const CompileOptions &options, const Targets &targets, MLIRContext *context,
                       ShardOptions &sharding) {
  sharding.narrowsFloats = options.precision == Precision::BF16;
  sharding.isForDevices = !targets.host;
  sharding.usesLibraries = sharding.isForDevices && options.libraries == LibraryUse::Auto;
  if (targets.host)
    sharding.panelWidth = codegen::getPanelWidth(*targets.host, Float32Type::get(context));
}

/// The same model for other sizes, of which no more than these is said here.
static CompileOptions makeVariant(CompileOptions options, const std::map<std::string, int64_t> &dims,
                                  std::string &name) {
  options.dims = dims;
  options.variants.clear();
  // As the first one is, whose states this one has.
  options.hasObjective = true;
  for (const auto &[dim, size] : dims)
    name += llvm::formatv("{0}{1}={2}", name.empty() ? "" : ",", dim, size);
  if (!options.dumpPhases.empty())
    options.dumpPhases += "/" + name;
  return options;
}

bool Compilation::planMemory() {
  llvm::Expected<Targets> targets = getTargets(state->options);
  if (!targets)
    return fail(targets.takeError(), Blame::Options);
  setKernels(state->options, *targets, &getContext(), state->options.sharding);
  return advance(Phase::Ordered);
}

std::unique_ptr<Assembly> Compilation::makeProgram(StringRef folder, bool digests) {
  const CompileOptions &options = state->options;
  llvm::Expected<Targets> targets = getTargets(options);
  if (!targets) {
    fail(targets.takeError(), Blame::Options);
    return nullptr;
  }
  AssemblyOptions assembly = makeAssemblyOptions(options, *targets);
  assembly.digestsWeights = digests;
  assembly.folder = folder.empty() ? "." : folder.str();
  assembly.onProgress = getProgress();
  if (llvm::Error error = checkPrecision(options, getPhase(), assembly)) {
    fail(std::move(error), Blame::Options);
    return nullptr;
  }
  Assembler assembler(assembly);
  auto add = [&](Compilation &variant) {
    return variant.planMemory() && variant.state->addTo(assembler, options.evaluates ? kStepEntry : "") &&
           variant.addEvaluation(assembler);
  };
  bool isFull = add(*this);
  for (const std::map<std::string, int64_t> &dims : options.variants) {
    std::string name;
    // What comes up says of which variant it is.
    Compilation variant(makeVariant(getGivenOptions(), dims, name), [&](cleave::Diagnostic diagnostic) {
      if (diagnostic.severity == cleave::Diagnostic::Severity::Error)
        diagnostic.message += " (with " + name + ")";
      report(diagnostic);
    });
    variant.tellProgress(getProgress());
    // Who hears of progress may have ended all of it meanwhile.
    bool isEnded = getBlame() && *getBlame() != Blame::Expectation;
    if (!isFull || isEnded || !variant.load())
      return nullptr;
    if (!variant.hasMesh())
      variant.useOneDevice();
    isFull = add(variant);
  }
  return isFull ? assembler.take() : nullptr;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// Memory is that of the variant, and of the role, that wants most: all variants use the same.
static ProgramReport describe(const Assembly &assembly, double seconds) {
  const program::Program &program = assembly.program;
  ProgramReport report;
  report.kernels = program.kernels.size();
  report.compileSeconds = seconds;
  report.precision = program.metadata.precision;
  for (const program::Role &role : program.roles) {
    int64_t bytes = 0;
    for (const program::Buffer &buffer : role.buffers)
      if (buffer.memory == program::Memory::Device &&
          (buffer.kind == program::BufferKind::Activations || buffer.kind == program::BufferKind::Communication))
        bytes += buffer.bytes;
    report.arena.bytes = std::max<int64_t>(report.arena.bytes, bytes);
  }
  for (auto [variant, bound] : llvm::zip_equal(program.variants, assembly.bounds)) {
    VariantReport &made = report.variants.emplace_back();
    for (const program::Dim &dim : variant.dims)
      made.dims.emplace_back(dim.name, dim.size);
    for (const program::List &list : variant.lists)
      made.commands = std::max<int64_t>(made.commands, list.commands.size());
    made.liveBytes = bound;
    report.commands = std::max(report.commands, made.commands);
    report.arena.bound = std::max(report.arena.bound, made.liveBytes);
  }
  return report;
}

/// On one device, where there is no mesh. False after an error.
static bool loadForRanks(Compilation &compilation) {
  if (!compilation.isLoaded() && !compilation.load())
    return false;
  if (!compilation.hasMesh())
    compilation.useOneDevice();
  return true;
}

std::optional<Report> cleave::compileModel(Compilation &compilation, StringRef path) {
  if (!loadForRanks(compilation))
    return std::nullopt;
  std::unique_ptr<Assembly> assembly =
      compilation.makeProgram(llvm::sys::path::parent_path(path), !compilation.getOptions().sampleDigests);
  std::optional<Report> report = assembly ? compilation.makeReport() : std::nullopt;
  if (!report)
    return std::nullopt;
  llvm::Error error = writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    os << program::writeProgram(assembly->program);
    return llvm::Error::success();
  });
  if (error) {
    compilation.fail(std::move(error));
    return std::nullopt;
  }
  report->program = describe(*assembly, compilation.getElapsedSeconds());
  return report;
}

std::optional<Report> cleave::predictModel(Compilation &compilation) {
  if (!loadForRanks(compilation) || !compilation.advance(compilation.getLastPhase()))
    return std::nullopt;
  return compilation.makeReport();
}
