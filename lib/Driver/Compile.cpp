//===- Compile.cpp - from a model to a program file -----------------------===//
//
// The file appears whole or not at all.
//
//===----------------------------------------------------------------------===//
#include "cleave/Codegen/Codegen.h"
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

std::unique_ptr<Assembly> cleave::driver::makeProgram(Session &session, llvm::StringRef folder) {
  const Options &options = session.getOptions();
  AssemblyOptions assembly;
  assembly.isas = getIsas(options.isa);
  assembly.embedsWeights = options.embedWeights;
  assembly.folder = folder.empty() ? "." : folder.str();
  assembly.metadata.producer = "cleave " CLEAVE_VERSION;
  assembly.metadata.model = llvm::sys::path::filename(options.compile.model).str();
  std::string error;
  std::unique_ptr<codegen::HostTarget> target = codegen::HostTarget::create(assembly.isas.front(), error);
  if (!target) {
    session.fail(makeError("--isa {0}: {1}", options.isa, error));
    return nullptr;
  }
  session.packWeights(codegen::getPanelWidth(*target, mlir::Float32Type::get(&session.getContext())));
  return session.advance(Phase::Ordered) ? session.assemble(assembly) : nullptr;
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

static ProgramReport describe(const program::Program &program, double seconds) {
  ProgramReport report;
  report.kernels = program.kernels.size();
  for (const program::Variant &variant : program.variants)
    for (const program::List &list : variant.lists)
      report.commands = std::max<int64_t>(report.commands, list.commands.size());
  report.compileSeconds = seconds;
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
  report->program = describe(assembly->program, seconds.count());
  return writeReport(session, *report, !options.quiet);
}
