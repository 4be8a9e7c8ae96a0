//===- Options.cpp - the command line of `cleave` -------------------------===//
//
// One table says which option each command takes, what its argument is called and what it does; parsing and help both
// come from it. (llvm::cl is not used: the shared LLVM library registers hundreds of options of its own there.)
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

using namespace cleave::driver;
using llvm::StringRef;

namespace {

/// Commands as bits, to say which of them an option belongs to.
enum Bit : unsigned { kInspect = 1, kImport = 2, kShard = 4, kExplain = 8, kRun = 16, kAll = 31 };
constexpr unsigned kSharding = kShard | kExplain | kRun;

struct CommandRow {
  StringRef name;
  Command command;
  Bit bit;
  StringRef arguments, summary;
};

constexpr CommandRow kCommands[] = {
    {"inspect", Command::Inspect, kInspect, "MODEL",
     "inputs, outputs, ops, parameters (names as a plan addresses them), FLOPs, what cannot be imported"},
    {"import", Command::Import, kImport, "MODEL -o out.mlir", "the nn dialect, before any sharding"},
    {"shard", Command::Shard, kShard, "MODEL --mesh .. -o out.mlir", "the partitioned program, or an earlier phase"},
    {"explain", Command::Explain, kExplain, "MODEL --mesh .. [VALUE]",
     "why a value is sharded as it is; what each collective is for"},
    {"run", Command::Run, kRun, "MODEL [--mesh ..] [--check]",
     "runs it on every rank (one, without a mesh); --check also runs it unsharded and compares"},
};

/// Takes an option's argument; returns what is wrong with it, or an empty string.
using Setter = std::function<std::string(Options &, StringRef)>;

struct OptionRow {
  StringRef name, argument; ///< an empty argument: a flag
  unsigned commands;
  StringRef help;
  Setter set;
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Setter text(std::string Options::*field) {
  return [=](Options &options, StringRef argument) {
    options.*field = argument.str();
    return std::string();
  };
}

Setter flag(bool Options::*field) {
  return [=](Options &options, StringRef) {
    options.*field = true;
    return std::string();
  };
}

Setter tolerance(std::optional<double> Options::*field) {
  return [=](Options &options, StringRef argument) -> std::string {
    double number;
    if (argument.getAsDouble(number) || !(number >= 0))
      return "expected a number that is not negative";
    options.*field = number;
    return "";
  };
}

Setter oneOf(std::string Options::*field, std::vector<std::string> words) {
  return [=](Options &options, StringRef argument) -> std::string {
    if (!llvm::is_contained(words, argument))
      return "expected one of " + llvm::join(words, ", ");
    options.*field = argument.str();
    return "";
  };
}

std::string setDims(Options &options, StringRef argument) {
  llvm::SmallVector<StringRef> entries;
  argument.split(entries, ',');
  for (StringRef entry : entries) {
    auto [name, number] = entry.rsplit('=');
    int64_t size;
    if (name.empty() || number.getAsInteger(10, size) || size < 0)
      return llvm::formatv("'{0}' is not of the form NAME=SIZE", entry);
    auto [it, isNew] = options.dims.try_emplace(name.str(), size);
    if (!isNew && it->second != size)
      return llvm::formatv("'{0}' is given as {1} and as {2}", name, it->second, size);
  }
  return "";
}

std::string setShape(Options &options, StringRef argument) {
  auto [name, dims] = argument.rsplit('=');
  llvm::SmallVector<StringRef> sizes;
  dims.split(sizes, 'x');
  std::vector<int64_t> shape;
  for (StringRef size : sizes)
    if (name.empty() || size.getAsInteger(10, shape.emplace_back()) || shape.back() < 0)
      return llvm::formatv("'{0}' is not of the form NAME=8x128", argument);
  auto [it, isNew] = options.shapes.try_emplace(name.str(), shape);
  return isNew || it->second == shape ? "" : llvm::formatv("two shapes for '{0}'", name).str();
}

std::string setSeed(Options &options, StringRef argument) {
  return argument.getAsInteger(10, options.seed) ? "expected a number" : "";
}

std::string addShard(Options &options, StringRef argument) {
  options.shard.push_back(argument.str());
  return "";
}

const std::vector<OptionRow> &optionTable() {
  static const std::vector<OptionRow> table = {
      {"-o", "FILE", kImport | kShard, "where to write; standard output without it", text(&Options::output)},
      {"--mesh", "data=2,model=4", kSharding, "named axes, major to minor; overrides the plan's", text(&Options::mesh)},
      {"--plan", "FILE", kSharding, "plan file: mesh, dims, sharding rules", text(&Options::plan)},
      {"--shard", "'PATTERN=[data, _]'", kSharding, "one rule of a plan; may repeat", addShard},
      {"--dim", "batch=8,seq=128", kAll, "sizes of symbolic dimensions", setDims},
      {"--shape", "NAME=8x128", kAll, "shape of an input whose dimensions have no name; may repeat", setShape},
      {"--emit", "PHASE", kShard, "imported, canonical, annotated, propagated, resharded, partitioned or optimized",
       oneOf(&Options::emit,
             {"imported", "canonical", "annotated", "propagated", "resharded", "partitioned", "optimized"})},
      {"--dump-phases", "DIR", kSharding, "writes one file per phase", text(&Options::dumpPhases)},
      {"--inputs", "FILE.npz", kAll, "input tensors by their ONNX names; shapes come from them",
       text(&Options::inputs)},
      {"--outputs", "FILE.npz", kRun, "where to write the output tensors", text(&Options::outputs)},
      {"--seed", "N", kRun, "seed of random inputs, where none are given", setSeed},
      {"--check", "", kRun, "compares every output, ranks against one device", flag(&Options::check)},
      {"--rtol", "X", kRun, "relative tolerance of --check; default by element type", tolerance(&Options::rtol)},
      {"--atol", "X", kRun, "absolute tolerance of --check, times the largest element; default by element type",
       tolerance(&Options::atol)},
      {"--report", "FILE.json", kSharding, "what was decided, sent and stored", text(&Options::report)},
      {"--optimize", "WHAT", kSharding, "balanced (bytes, compute, surprises) or bytes",
       oneOf(&Options::optimize, {"balanced", "bytes"})},
      {"--remarks", "", kSharding, "prints what was decided against a wish or at a price", flag(&Options::remarks)},
      {"--verbose", "", kAll, "prints more: remarks, the seconds of each phase, every tensor of a model",
       flag(&Options::verbose)},
      {"--quiet", "", kAll, "prints results only", flag(&Options::quiet)},
      {"--color", "WHEN", kAll, "auto, always or never", oneOf(&Options::color, {"auto", "always", "never"})},
      {"--time-phases", "", kSharding, "prints the seconds of each phase", flag(&Options::timePhases)},
  };
  return table;
}

//===----------------------------------------------------------------------===//
// Help
//===----------------------------------------------------------------------===//

void printUsage(llvm::raw_ostream &os) {
  os << "cleave: splits an ONNX model over a mesh of devices\n\n";
  for (const CommandRow &row : kCommands)
    os << llvm::formatv("  cleave {0,-8} {1,-28} {2}\n", row.name, row.arguments, row.summary);
  os << "\nMODEL is an .onnx file or an .mlir file at any phase; '-' is standard input.\n"
        "`cleave COMMAND --help` lists a command's options; `cleave --version` prints the version.\n"
        "Exit codes: 0 done; 1 the model, plan or data is wrong; 2 the command line is wrong; 3 --check found a\n"
        "difference; 4 a fault while running; 70 a bug of ours (a reproducer file is written and named).\n";
}

void printHelp(llvm::raw_ostream &os, const CommandRow &command) {
  os << llvm::formatv("cleave {0} {1}\n  {2}\n\n", command.name, command.arguments, command.summary);
  for (const OptionRow &row : optionTable())
    if (row.commands & command.bit)
      os << llvm::formatv("  {0,-34} {1}\n", (row.name + " " + row.argument).str(), row.help);
  os << llvm::formatv("  {0,-34} {1}\n", "--help", "prints this");
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// The words of the command line, taken one after the other.
class Parser {
public:
  Parser(const CommandRow &command, llvm::ArrayRef<StringRef> words) : command(command), words(words) {
    options.command = command.command;
  }

  /// Returns what is wrong, or an empty string.
  std::string parse() {
    while (!words.empty()) {
      StringRef word = take();
      bool isOption = word.size() > 1 && word.front() == '-' && !onlyPositionals;
      if (word == "--" && !onlyPositionals) {
        onlyPositionals = true;
        continue;
      }
      std::string problem = isOption ? parseOption(word) : parsePositional(word);
      if (!problem.empty())
        return problem;
    }
    options.remarks |= options.verbose;
    options.timePhases |= options.verbose;
    return options.model.empty() ? "no model is named" : checkTogether();
  }

  Options options;

private:
  StringRef take() {
    StringRef word = words.front();
    words = words.drop_front();
    return word;
  }

  std::string parsePositional(StringRef word) {
    if (options.model.empty())
      options.model = word.str();
    else if (command.bit == kExplain && options.value.empty())
      options.value = word.str();
    else
      return llvm::formatv("unexpected argument '{0}'", word);
    return "";
  }

  std::string parseOption(StringRef word) {
    auto [name, argument] = word.split('=');
    bool hasArgument = word.contains('=') && word.starts_with("--");
    if (!hasArgument)
      name = word;
    const auto *row =
        llvm::find_if(optionTable(), [&, name = name](const OptionRow &r) { return r.name == name; }).base();
    if (row == &*optionTable().end())
      return unknownOption(name);
    if (!(row->commands & command.bit))
      return llvm::formatv("'{0}' is not an option of 'cleave {1}'", name, command.name);
    if (row->argument.empty() && hasArgument)
      return llvm::formatv("'{0}' takes no argument", name);
    if (!row->argument.empty() && !hasArgument) {
      if (words.empty())
        return llvm::formatv("'{0}' needs an argument: {0} {1}", name, row->argument);
      argument = take();
    }
    if (!row->argument.empty() && argument.empty())
      return llvm::formatv("the argument of '{0}' is empty: {0} {1}", name, row->argument);
    std::string problem = row->set(options, argument);
    return problem.empty() ? "" : llvm::formatv("'{0} {1}': {2}", name, argument, problem).str();
  }

  std::string unknownOption(StringRef name) {
    const OptionRow *nearest = nullptr;
    unsigned best = 4;
    for (const OptionRow &row : optionTable())
      if (unsigned distance = name.edit_distance(row.name); distance < best && (row.commands & command.bit)) {
        best = distance;
        nearest = &row;
      }
    std::string hint = nearest ? llvm::formatv("; did you mean '{0}'?", nearest->name).str() : "";
    return llvm::formatv("unknown option '{0}'{1}", name, hint);
  }

  std::string checkTogether() {
    if (options.quiet && options.verbose)
      return "'--quiet' and '--verbose' contradict each other";
    if ((options.rtol || options.atol) && !options.check)
      return "'--rtol' and '--atol' are tolerances of '--check'";
    if (!options.report.empty() && options.emit != "partitioned" && options.emit != "optimized")
      return llvm::formatv("'--report' is about a partitioned program, '--emit {0}' stops before", options.emit);
    return "";
  }

  const CommandRow &command;
  llvm::ArrayRef<StringRef> words;
  bool onlyPositionals = false;
};

} // namespace

std::optional<Options> cleave::driver::parseCommandLine(int argc, const char *const *argv, int &exitCode) {
  llvm::SmallVector<StringRef> words(argv + 1, argv + argc);
  auto isHelp = [](StringRef word) { return word == "--help" || word == "-h"; };
  exitCode = kDone;
  if (!words.empty() && (isHelp(words.front()) || words.front() == "help")) {
    printUsage(llvm::outs());
    return std::nullopt;
  }
  if (!words.empty() && words.front() == "--version") {
    llvm::outs() << "cleave " CLEAVE_VERSION " (LLVM " CLEAVE_LLVM_VERSION ")\n";
    return std::nullopt;
  }
  exitCode = kBadCommandLine;
  if (words.empty()) {
    printUsage(llvm::errs());
    return std::nullopt;
  }
  const auto *command = llvm::find_if(kCommands, [&](const CommandRow &row) { return row.name == words.front(); });
  if (command == std::end(kCommands)) {
    llvm::errs() << "cleave: error: unknown command '" << words.front() << "'; see 'cleave --help'\n";
    return std::nullopt;
  }
  if (llvm::any_of(words, isHelp)) {
    printHelp(llvm::outs(), *command);
    exitCode = kDone;
    return std::nullopt;
  }
  Parser parser(*command, llvm::ArrayRef(words).drop_front());
  std::string problem = parser.parse();
  if (!problem.empty()) {
    llvm::errs() << "cleave: error: " << problem << "; see 'cleave " << command->name << " --help'\n";
    return std::nullopt;
  }
  exitCode = kDone;
  return std::move(parser.options);
}
