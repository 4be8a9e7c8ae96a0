//===- Compile.cpp - from a model to a program file -----------------------===//
//
// A model with several sizes of a dim takes the way once for each: every variant is a compilation of its own, of which only
// commands, and kernels and weights that are new, go into the program. The file appears whole or not at all.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Device.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Driver/Session.h"
#include "cleave/Program/File.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace cleave;
using namespace cleave::driver;

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// Code for several processors, the best first.
static std::vector<std::string> getIsas(llvm::StringRef isa) {
  if (isa == "portable")
    return {"x86-64-v4", "x86-64-v3", "x86-64"};
  return {isa.str()};
}

namespace {

/// Targets of the command line that exist.
struct Targets {
  std::vector<std::string> isas, devices;
  /// The first of the host's; null with devices.
  std::unique_ptr<codegen::HostTarget> host;
};

} // namespace

/// `cuda:sm_90,sm_80`: the architectures.
static llvm::Expected<Targets> getTargets(const Options &options) {
  Targets targets;
  std::string error;
  llvm::StringRef ofDevice = getTraits(options.device).target, text = ofDevice.empty() ? options.target : ofDevice;
  if (text == "host") {
    if (codegen::AllowedTraits allowed = getTraits(options.allowed); allowed.isOfDevices)
      return makeError("--allow {0} is about CUDA devices: use --target or --device", allowed.word);
    targets.isas = getIsas(options.isa);
    targets.host = codegen::HostTarget::create(targets.isas.front(), error);
    if (!targets.host)
      return makeError("--isa {0}: {1}", options.isa, error);
    return targets;
  }
  if (!text.consume_front("cuda:"))
    return makeError("--target {0}: expected host, or cuda: and architectures, as in cuda:sm_90", options.target);
  if (options.isa != "native")
    return makeError("--isa {0} is about the host, and --target is {1}", options.isa, options.target);
  if (options.precision == Precision::Split)
    return makeError("--precision split is for the host; on CUDA devices there are f32 and bf16");
  llvm::SmallVector<llvm::StringRef> names;
  text.split(names, ',');
  for (llvm::StringRef name : names) {
    if (!codegen::CudaTarget::create(name, error))
      return makeError("--target {0}: {1}, nor is it '{2}'", options.target, error, codegen::CudaTarget::kEmulated);
    targets.devices.push_back(name.str());
  }
  return targets;
}

static bool addVariant(Compilation &variant, const Options &options, const Targets &targets, Assembler &assembler) {
  if (options.precision == Precision::BF16)
    variant.narrowFloats();
  if (targets.host)
    variant.packWeights(codegen::getPanelWidth(*targets.host, mlir::Float32Type::get(&variant.getContext())));
  else
    variant.useDevices(options.libraries == LibraryUse::Auto);
  return variant.advance(Phase::Ordered) && variant.addTo(assembler);
}

/// The model anew, for other sizes. What comes up says so.
static bool addOtherVariant(Session &first, const std::map<std::string, int64_t> &dims, const Targets &targets,
                            Assembler &assembler) {
  CompileOptions options = first.getOptions().compile;
  options.dims = dims;
  std::string name;
  for (const auto &[dim, size] : dims)
    name += llvm::formatv("{0}{1}={2}", name.empty() ? "" : ",", dim, size);
  if (!options.dumpPhases.empty())
    options.dumpPhases += "/" + name;
  Compilation variant(options, [&](Diagnostic diagnostic) {
    if (diagnostic.severity == Diagnostic::Severity::Error)
      diagnostic.message += " (with " + name + ")";
    first.report(diagnostic);
  });
  variant.tellProgress(first.getProgress());
  if (!variant.load())
    return false;
  if (!variant.hasMesh())
    variant.useOneDevice();
  return addVariant(variant, first.getOptions(), targets, assembler);
}

/// What cannot be kept is said rather than approximated. False after an error.
static bool checkPrecision(Session &session, const AssemblyOptions &assembly) {
  const Options &options = session.getOptions();
  if (options.precision == Precision::BF16 && session.getPhase() >= Phase::Clustered)
    return session.Compilation::fail(makeError("{0} is {1} already: --precision comes too late", options.compile.model,
                                               toString(session.getPhase())),
                                     Blame::Options);
  std::string error;
  if (options.precision == Precision::Split)
    for (const std::string &isa : assembly.isas)
      if (std::unique_ptr<codegen::HostTarget> target = codegen::HostTarget::create(isa, error);
          target && !target->hasTiles())
        return session.Compilation::fail(
            makeError("--precision split computes in tiles (AMX), and --isa {0} has none: f32 and bf16 are there", isa),
            Blame::Options);
  return true;
}

std::unique_ptr<Assembly> cleave::driver::makeProgram(Session &session, llvm::StringRef folder) {
  const Options &options = session.getOptions();
  llvm::Expected<Targets> targets = getTargets(options);
  if (!targets) {
    session.fail(targets.takeError(), Blame::Options);
    return nullptr;
  }
  AssemblyOptions assembly;
  assembly.isas = targets->isas;
  assembly.devices = targets->devices;
  assembly.usesLibraries = options.libraries == LibraryUse::Auto;
  assembly.embedsWeights = options.embedWeights;
  assembly.digestsWeights = options.command == "compile" && !options.compile.sampleDigests;
  assembly.folder = folder.empty() ? "." : folder.str();
  assembly.metadata.producer = "cleave " CLEAVE_VERSION;
  assembly.metadata.model = llvm::sys::path::filename(options.compile.model).str();
  assembly.onProgress = session.getProgress();
  assembly.metadata.precision = kPrecisionWords[static_cast<size_t>(options.precision)].str();
  assembly.allowed = options.allowed;
  if (options.allowed != codegen::Allowed::Nothing)
    assembly.metadata.precision += std::string("+") + getTraits(options.allowed).word;
  assembly.splitsProducts = options.precision == Precision::Split;
  if (!checkPrecision(session, assembly))
    return nullptr;
  Assembler assembler(assembly);
  bool isWhole = addVariant(session, options, *targets, assembler);
  std::vector<std::map<std::string, int64_t>> variants = options.dims.getVariants();
  for (const std::map<std::string, int64_t> &dims : llvm::drop_begin(variants))
    isWhole = isWhole && addOtherVariant(session, dims, *targets, assembler);
  return isWhole ? assembler.take() : nullptr;
}

//===----------------------------------------------------------------------===//
// The command
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
      if (buffer.kind == program::BufferKind::Activations || buffer.kind == program::BufferKind::Communication)
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

ExitCode cleave::driver::compileCommand(Session &session) {
  auto start = std::chrono::steady_clock::now();
  const Options &options = session.getOptions();
  if (!session.load())
    return session.getExitCode();
  if (!session.hasMesh())
    session.useOneDevice();
  std::unique_ptr<Assembly> assembly = makeProgram(session, llvm::sys::path::parent_path(options.output));
  std::optional<Report> report = assembly ? session.makeReport() : std::nullopt;
  if (!report)
    return session.getExitCode();
  llvm::Error error = writeFileAtomically(options.output, [&](llvm::raw_ostream &os) {
    os << program::writeProgram(assembly->program);
    return llvm::Error::success();
  });
  if (error)
    return session.fail(std::move(error));
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report->program = describe(*assembly, seconds.count());
  return writeReport(session, *report, !options.quiet);
}
