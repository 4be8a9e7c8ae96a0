//===- Bench.cpp - `cleave bench` -----------------------------------------===//
//
// What a call takes (Compiler/Bench.h), as tables and as a report.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Bench.h"
#include "cleave/Driver/Session.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Words.h"
#include "cleave/Support/File.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;

static void printCommands(llvm::ArrayRef<CommandTime> commands, bool isLong) {
  double total = 0;
  for (const CommandTime &command : commands)
    total += command.seconds;
  constexpr size_t most = 20;
  size_t shown = isLong ? commands.size() : std::min(most, commands.size());
  llvm::outs() << formatv("{0,10}  {1,6}  {2,-32} {3}\n", "us", "share", "command", "node (rank 0)");
  for (const CommandTime &command : commands.take_front(shown))
    llvm::outs() << formatv("{0,10:f1}  {1,6:p1}  {2,-32} {3}\n", command.seconds * 1e6,
                            total > 0 ? command.seconds / total : 0, command.command, command.node);
  if (shown < commands.size())
    llvm::outs() << formatv("and {0} more: --verbose\n", commands.size() - shown);
}

/// The form of docs/report.md, which cleave-run writes, too.
static llvm::Error writeReport(const std::string &path, const BenchResult &result) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    llvm::json::Object object{{"version", 1},
                              {"ranks", int64_t(result.ranks)},
                              {"load_seconds", result.load},
                              {"runs", llvm::json::Array(result.runs)},
                              {"peak_bytes_per_rank", int64_t(result.peakBytes)},
                              {"peak_bytes_of_ranks", llvm::json::Array(result.peakBytesOfRanks)}};
    llvm::json::Array list;
    for (const runtime::RoleTime &role : result.roles)
      list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(role.name)},
                                        {"ranks", int64_t(role.ranks)},
                                        {"busy_seconds", role.busy},
                                        {"meeting_seconds", role.meeting}});
    if (list.size() > 1)
      object["roles"] = std::move(list);
    os << formatv("{0:2}\n", llvm::json::Value(std::move(object)));
    return llvm::Error::success();
  });
}

/// What a rank of each role did by itself.
static void printRoles(const std::vector<runtime::RoleTime> &roles) {
  if (roles.size() < 2)
    return;
  llvm::outs() << formatv("{0,10}  {1,14}  {2}\n", "us alone", "us with others", "role, a rank of it");
  for (const runtime::RoleTime &role : roles)
    llvm::outs() << formatv("{0,10:f1}  {1,14:f1}  {2}\n", role.busy * 1e6, role.meeting * 1e6,
                            program::printable(role.name));
}

static void print(const BenchResult &result, const Options &options) {
  auto [least, most] = std::minmax_element(result.runs.begin(), result.runs.end());
  llvm::outs() << formatv("{0} {1}, loaded in {2:f4} s; {3} calls: median {4:f4} ms, least {5:f4}, largest {6:f4}\n",
                          result.ranks, result.ranks == 1 ? "rank" : "ranks", result.load, result.runs.size(),
                          getMedian(result.runs) * 1e3, *least * 1e3, *most * 1e3);
  printCommands(result.commands, options.verbose);
  printRoles(result.roles);
}

/// Of a program file; null after an error.
static std::unique_ptr<Bench> takeProgram(Session &session, const MappedFile &file, const BenchOptions &how) {
  const Options &options = session.getOptions();
  runtime::CommandFiles files = listFiles(options);
  files.addProgram(options.compile.model, options.compile.weights);
  if (!session.checkFiles(files))
    return nullptr;
  llvm::Expected<std::unique_ptr<Bench>> bench = Bench::create(file, options.compile, how);
  if (bench)
    return std::move(*bench);
  session.fail(bench.takeError());
  return nullptr;
}

ExitCode cleave::driver::benchCommand(Session &session) {
  const Options &options = session.getOptions();
  if (options.calibrate)
    return calibrateCommand(session);
  const BenchOptions how{options.seed, options.repeat};
  std::unique_ptr<Bench> bench;
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.compile.model);
  if (file && program::isProgram((*file)->getBytes())) {
    if (std::optional<std::string> idle = findIdle(options))
      return printMistake(options.command, *idle);
    bench = takeProgram(session, **file, how);
  } else {
    llvm::consumeError(file.takeError()); // whoever reads it as a model says so
    if (session.load())
      bench = Bench::create(session, how);
  }
  if (!bench)
    return session.getExitCode();
  Compilation::BlameScope running(session, Blame::Run);
  llvm::Expected<BenchResult> result = bench->run();
  if (!result)
    return session.fail(result.takeError());
  print(*result, options);
  if (!options.report.empty())
    if (llvm::Error error = writeReport(options.report, *result))
      return session.fail(std::move(error));
  return kDone;
}
