//===- Options.cpp - the command line of `cleave-run` ---------------------===//
//
// One row per option: its name, what its value is called, its help, and what it sets.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Content.h"
#include "cleave/Runner/Runner.h"

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>

using namespace cleave::runner;
using cleave::program::concat;
using cleave::program::makeError;
using cleave::program::Result;
using cleave::program::Status;

namespace {
struct Row {
  const char *name;
  const char *value; ///< null: it has none; in brackets: it may have one, behind '='
  const char *help;  ///< null: that of kinds of ranks
  Status (*set)(RunOptions &options, const std::string &value);
};
} // namespace

/// A path: anything but nothing.
static Status takeText(std::string &text, const std::string &value) {
  if (value.empty())
    return makeError("is empty");
  if (std::string hint = cleave::program::hintAtHome(value); !hint.empty())
    return makeError("is '", value, "': ", hint);
  text = value;
  return cleave::program::kGood;
}

template <std::string RunOptions::*member> static Status setText(RunOptions &options, const std::string &value) {
  return takeText(options.*member, value);
}
template <std::string TrainOptions::*member> static Status setText(RunOptions &options, const std::string &value) {
  return takeText(options.train.*member, value);
}

/// More than no time, and not for ever.
template <double RunOptions::*member> static Status setSeconds(RunOptions &options, const std::string &value) {
  char *end = nullptr;
  double seconds = std::strtod(value.c_str(), &end);
  if (value.empty() || *end || !(seconds > 0) || !std::isfinite(seconds))
    return makeError("is '", value, "', expected a number of seconds");
  options.*member = seconds;
  return cleave::program::kGood;
}

/// An option that takes no value.
template <bool RunOptions::*member, bool kValue> static Status setFlag(RunOptions &options, const std::string &) {
  options.*member = kValue;
  return cleave::program::kGood;
}

/// Printed in any case, and written where a file is named.
static Status setProfile(RunOptions &options, const std::string &value) {
  options.profile = true;
  return value.empty() ? cleave::program::kGood : takeText(options.profileFile, value);
}

/// A number of calls: 0 is one call, the first.
static Status setRepeat(RunOptions &options, const std::string &value) {
  char *end = nullptr;
  errno = 0;
  long number = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end || errno || number < 0 || number > INT_MAX)
    return makeError("is '", value, "', expected a number of calls");
  options.repeat = unsigned(number);
  return cleave::program::kGood;
}

/// One or more.
template <uint64_t TrainOptions::*member> static Status setCount(RunOptions &options, const std::string &value) {
  char *end = nullptr;
  errno = 0;
  unsigned long long number = std::strtoull(value.c_str(), &end, 10);
  if (value.empty() || *end || errno || number == 0 || value.front() == '-')
    return makeError("is '", value, "', expected a number of 1 or more");
  options.train.*member = number;
  return cleave::program::kGood;
}

/// Any number is a seed.
static Status setSeed(RunOptions &options, const std::string &value) {
  char *end = nullptr;
  errno = 0;
  options.train.seed = std::strtoull(value.c_str(), &end, 10);
  return value.empty() || *end || errno || value.front() == '-'
             ? Status(makeError("is '", value, "', expected a number of 0 or more"))
             : cleave::program::kGood;
}

/// The words of docs/command-line.md.
static Status setOrder(RunOptions &options, const std::string &value) {
  options.train.isShuffled = value == "shuffled";
  return options.train.isShuffled || value == "given" ? cleave::program::kGood
                                                      : Status(makeError("is '", value, "', expected shuffled, given"));
}

/// Without it the environment says where ranks are.
static Status setRanks(RunOptions &options, const std::string &value) {
  options.ranks = cleave::runtime::findRankKind(value);
  if (!options.ranks)
    return makeError("is '", value, "', expected ", cleave::runtime::listRankKinds());
  return cleave::program::kGood;
}

/// In the order of the help.
static constexpr Row kRows[] = {
    {"--inputs", "FILE.npz", "input tensors by their ONNX names; zeros without it", setText<&RunOptions::inputs>},
    {"--outputs", "FILE.npz", "where the outputs of the last call go", setText<&RunOptions::outputs>},
    {"--weights", "DIR", "where the files of weights lie now", setText<&RunOptions::weights>},
    {"--repeat", "N", "calls after the first one", setRepeat},
    {"--report", "FILE.json", "seconds of loading and of each call after the first, memory",
     setText<&RunOptions::report>},
    {"--data", "PATH", "trains: .npz, or a folder of .npy or .npz, whose arrays are samples of the inputs",
     setText<&TrainOptions::data>},
    {"--steps", "N", "how many steps there are in the end", setCount<&TrainOptions::steps>},
    {"--epochs", "N", "the same, in rounds through all samples", setCount<&TrainOptions::epochs>},
    {"--order", "HOW", "of samples: shuffled (without it), given", setOrder},
    {"--seed", "N", "of the order (0)", setSeed},
    {"--save", "FILE", "a checkpoint in the end, .safetensors", setText<&TrainOptions::save>},
    {"--save-every", "N", "and after so many steps", setCount<&TrainOptions::saveEvery>},
    {"--keep", "N", "so many checkpoints, the older ones by their steps (1)", setCount<&TrainOptions::keep>},
    {"--resume", "FILE", "goes on where that checkpoint was written, on any mesh", setText<&TrainOptions::resume>},
    {"--weights-from", "FILE", "begins with the weights of a .safetensors file", setText<&TrainOptions::weightsFrom>},
    {"--eval-data", "PATH", "what the entry 'eval' is run on in the end", setText<&TrainOptions::evalData>},
    {"--eval-every", "N", "and after so many steps", setCount<&TrainOptions::evalEvery>},
    {"--entry", "NAME", "which function of several; eval with --data gives the mean loss", setText<&RunOptions::entry>},
    {"--log", "FILE", "a line for each step, .jsonl or .csv", setText<&TrainOptions::log>},
    {"--local", nullptr, "starts a process for each rank on this machine", setFlag<&RunOptions::local, true>},
    {"--ranks", "WHERE", nullptr, setRanks},
    {"--rendezvous", "WHERE",
     "host:port (with CLEAVE_SECRET) or file:PATH, where processes find rank 0 if no launcher says it",
     setText<&RunOptions::rendezvous>},
    {"--trace", "FILE.json", "what each rank did in the last call, for Perfetto", setText<&RunOptions::trace>},
    {"--profile", "[=FILE.json]", "prints where the time of the last call went; also as JSON, for Perfetto",
     setProfile},
    {"--record", "DIR", "where the flight recorder goes when a rank fails", setText<&RunOptions::record>},
    {"--deadline", "SECONDS", "how long ranks wait for each other (60)", setSeconds<&RunOptions::deadline>},
    {"--silence", "SECONDS", "how long a rank may give no sign of life (5 for processes)",
     setSeconds<&RunOptions::silence>},
    {"--find-nan", nullptr, "ends at the first command whose result has a NaN; slow", setFlag<&RunOptions::nan, true>},
    {"--no-verify", nullptr, "takes a program and weights that have changed since they were written",
     setFlag<&RunOptions::verify, false>},
    {"--no-pin", nullptr, "leaves it to the system on which cores ranks run", setFlag<&RunOptions::pin, false>},
    {"--no-graph", nullptr, "gives a CUDA device its commands one by one in every call",
     setFlag<&RunOptions::graph, false>},
};

static bool isOptional(const Row &row) { return row.value && row.value[0] == '['; }

/// Help and version go before everything else on the line.
std::string cleave::runner::printsOnly(const std::vector<std::string> &words) {
  for (const std::string &word : words) {
    if (word == "--version")
      return "cleave-run " CLEAVE_VERSION "\n";
    if (word != "--help" && word != "-h")
      continue;
    std::string text = "cleave-run PROGRAM\n  runs a program that `cleave compile` made\n\n";
    for (const Row &row : kRows) {
      std::string left = concat("  ", row.name, row.value && !isOptional(row) ? " " : "", row.value ? row.value : "");
      left.resize(std::max<size_t>(left.size() + 1, 25), ' ');
      text += left + (row.help ? row.help : cleave::runtime::describeRankKinds()) + "\n";
    }
    text += "  --help                 prints this\n  --version              prints the version\n";
    return text + "\nExit codes: 0 done, 1 program, weights, arrays or machine, 2 command line, 4 a rank failed.\n";
  }
  return "";
}

static const Row *findRow(const std::string &name) {
  for (const Row &row : kRows)
    if (name == row.name)
      return &row;
  return nullptr;
}

static Status checkTraining(const RunOptions &options) {
  // One entry is run on data without being trained; what else a program has is run on inputs.
  const TrainOptions &train = options.train;
  bool isEvaluated = !options.entry.empty() && !train.data.empty();
  if (isEvaluated && (options.entry != "eval" || train.steps || train.epochs))
    return makeError("'--data' with '--entry' evaluates: it takes 'eval', and no steps");
  if (Status error = isEvaluated ? cleave::program::kGood : checkOptions(train); error || train.data.empty())
    return error;
  if (!options.inputs.empty() || !options.outputs.empty() || options.repeat)
    return makeError("'--data' trains, and takes no '--inputs', '--outputs' or '--repeat'");
  return cleave::program::kGood;
}

/// `--name value` and `--name=value` are one.
Result<RunOptions> cleave::runner::parseOptions(const std::vector<std::string> &words) {
  RunOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    options.words.push_back(words[i]);
    if (words[i].empty() || words[i].front() != '-') {
      if (!options.program.empty())
        return makeError("there are two programs, '", options.program, "' and '", words[i], "'");
      options.program = words[i];
      continue;
    }
    size_t equals = words[i].find('=');
    std::string name = words[i].substr(0, equals),
                value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    const Row *row = findRow(name);
    if (!row)
      return makeError("unknown option '", name, "'; --help lists them");
    if (!row->value && equals != std::string::npos)
      return makeError("'", name, "' takes no value");
    if (isOptional(*row) && equals != std::string::npos && value.empty())
      return makeError("'", name, "' is empty");
    if (row->value && !isOptional(*row) && equals == std::string::npos) {
      if (++i == words.size())
        return makeError("'", name, "' needs a value, ", row->value);
      options.words.push_back(value = words[i]);
    }
    if (Status error = row->set(options, value))
      return makeError("'", name, "' ", error->message);
    if (name == "--local")
      options.words.erase(options.words.end() - 1);
  }
  if (options.program.empty())
    return makeError("no program given; --help says how");
  if (Status error = checkTraining(options))
    return *error;
  if (options.local && options.ranks)
    return makeError("'--local' starts its ranks itself, and '--ranks' is about those that a launcher has started");
  return options;
}
