//===- CommandLine.cpp - the command line of `cleave` ---------------------===//
//
// LLVM's option library tells options from arguments by the table of Options.td; the type of the member that an option
// fills says how its argument reads. (llvm::cl is not used: the shared LLVM library registers hundreds of options of
// its own there.)
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "cleave/Plan/Gpus.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Program/Content.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace cleave;
using namespace cleave::driver;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::opt::Option;

//===----------------------------------------------------------------------===//
// Arguments: each reader returns what is wrong, or an empty string
//===----------------------------------------------------------------------===//

static std::string read(bool &field, StringRef) {
  field = true;
  return "";
}

static std::string read(std::string &field, StringRef text) {
  field = text.str();
  return "";
}

static std::string read(llvm::SmallVector<std::string> &field, StringRef text) {
  field.push_back(text.str());
  return "";
}

static std::string read(uint64_t &field, StringRef text) {
  return text.getAsInteger(10, field) ? "expected a number" : "";
}

/// A tolerance.
static std::string read(std::optional<double> &field, StringRef text) {
  double number;
  if (text.getAsDouble(number) || !(number >= 0))
    return "expected a number that is not negative";
  field = number;
  return "";
}

/// Numbers behind names; which names there are, their user knows.
static std::string read(NamedNumbers &field, StringRef text) {
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    auto [name, number] = entry.split('=');
    double value;
    if (name.empty() || number.getAsDouble(value) || !std::isfinite(value))
      return llvm::formatv("'{0}' is not of the form NAME=NUMBER", entry);
    if (!field.try_emplace(name.str(), value).second)
      return llvm::formatv("'{0}' is given twice", name);
  }
  return "";
}

/// A size, or numbers behind names: which of both a command takes is known later.
static std::string read(MemoryOption &field, StringRef text) {
  field.isLeast = text == "least";
  if (field.isLeast)
    return "";
  if (text.contains('='))
    return read(field.actions, text);
  if (llvm::isDigit(text.back()))
    return llvm::formatv("a size has a unit: {0}GB, {0}GiB", text);
  field.bytes = spmd::parseBytes(text.str()).value_or(0);
  return field.bytes > 0 ? "" : "expected a size, such as 72GB or 72GiB, or least";
}

static std::string read(std::vector<double> &field, StringRef text) {
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries)
    if (entry.getAsDouble(field.emplace_back()) || !std::isfinite(field.back()) || field.back() < 0)
      return llvm::formatv("'{0}' is not a number that is not negative", entry);
  return "";
}

/// How many parts something is cut into; 0 leaves it to the cost model.
static std::string read(std::optional<int64_t> &field, StringRef text) {
  int64_t number = 0;
  if (text != "auto" && (text.getAsInteger(10, number) || number < 1))
    return "expected auto, or a number of parts";
  field = number;
  return "";
}

/// Sizes of dims: `batch=8,seq=128`; a number behind a comma is another size of the same dim.
static std::string read(DimSizes &field, StringRef text) {
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  std::map<std::string, std::vector<int64_t>> read;
  StringRef name;
  for (StringRef entry : entries) {
    auto [left, number] = entry.rsplit('=');
    bool isNamed = left.size() < entry.size();
    name = isNamed ? left : name;
    int64_t size;
    if (name.empty() || (isNamed ? number : entry).getAsInteger(10, size) || size < 0)
      return llvm::formatv("'{0}' is not of the form NAME=SIZE", entry);
    std::vector<int64_t> &sizes = read[name.str()];
    if (isNamed && !sizes.empty() && sizes.back() != size)
      return llvm::formatv("'{0}' is given as {1} and as {2}", name, sizes.back(), size);
    if (!llvm::is_contained(sizes, size))
      sizes.push_back(size);
  }
  for (const auto &[name, sizes] : read) {
    auto [it, isNew] = field.sizes.try_emplace(name, sizes);
    if (!isNew && it->second != sizes)
      return llvm::formatv("'{0}' is given as {1} and as {2}", name, it->second.front(), sizes.front());
  }
  return "";
}

std::vector<std::map<std::string, int64_t>> DimSizes::getVariants() const {
  std::vector<std::map<std::string, int64_t>> variants(1);
  for (const auto &[name, list] : sizes) {
    std::vector<std::map<std::string, int64_t>> longer;
    for (const std::map<std::string, int64_t> &variant : variants)
      for (int64_t size : list)
        longer.emplace_back(variant).emplace(name, size);
    variants = std::move(longer);
  }
  return variants;
}

/// Shapes of inputs.
static std::string read(std::map<std::string, std::vector<int64_t>> &field, StringRef text) {
  auto [name, dims] = text.rsplit('=');
  llvm::SmallVector<StringRef> sizes;
  dims.split(sizes, 'x');
  std::vector<int64_t> shape;
  for (StringRef size : sizes)
    if (name.empty() || size.getAsInteger(10, shape.emplace_back()) || shape.back() < 0)
      return llvm::formatv("'{0}' is not of the form NAME=8x128", text);
  auto [it, isNew] = field.try_emplace(name.str(), shape);
  return isNew || it->second == shape ? "" : llvm::formatv("two shapes for '{0}'", name).str();
}

template <typename T> static std::vector<StringRef> wordsOf(const T &) { return {}; }
static std::vector<StringRef> wordsOf(Color) { return {std::begin(kColorWords), std::end(kColorWords)}; }
static std::vector<StringRef> wordsOf(ExecutorKind) { return {std::begin(kExecutorWords), std::end(kExecutorWords)}; }
static std::vector<StringRef> wordsOf(Precision) { return {std::begin(kPrecisionWords), std::end(kPrecisionWords)}; }
static std::vector<StringRef> wordsOf(LibraryUse) { return {std::begin(kLibraryUseWords), std::end(kLibraryUseWords)}; }
static std::vector<StringRef> wordsOf(codegen::Allowed) {
  std::vector<StringRef> words;
  for (const codegen::AllowedTraits &allowed : codegen::kAllowed)
    words.push_back(allowed.word);
  return words;
}
static std::vector<StringRef> wordsOf(DeviceKind) {
  std::vector<StringRef> words;
  for (const DeviceTraits &device : kDevices)
    words.push_back(device.word);
  return words;
}
static std::vector<StringRef> wordsOf(onnx::CollectiveOps) {
  return {std::begin(kCollectiveOpsWords), std::end(kCollectiveOpsWords)};
}
static std::vector<StringRef> wordsOf(std::optional<schedule::Placement>) {
  return {std::begin(kPlacementWords), std::end(kPlacementWords)};
}
static std::vector<StringRef> wordsOf(schedule::Effort) {
  return {std::begin(schedule::kEffortWords), std::end(schedule::kEffortWords)};
}
static std::vector<StringRef> wordsOf(schedule::MessageMode) {
  return {std::begin(schedule::kMessageModeWords), std::end(schedule::kMessageModeWords)};
}
static std::vector<StringRef> wordsOf(spmd::Optimize) {
  return {std::begin(spmd::kOptimizeWords), std::end(spmd::kOptimizeWords)};
}
static std::vector<StringRef> wordsOf(spmd::AttentionForm) {
  return {std::begin(spmd::kAttentionWords), std::end(spmd::kAttentionWords)};
}
static std::vector<StringRef> wordsOf(Phase) {
  std::vector<StringRef> words;
  for (const PhaseName &name : getPhaseNames())
    words.push_back(name.word);
  return words;
}

/// One of an enum's words, which stand in the order of its values.
template <typename Enum> static std::string read(Enum &field, StringRef text) {
  static_assert(std::is_enum_v<Enum>, "a type of options without a reader");
  std::vector<StringRef> words = wordsOf(field);
  size_t index = llvm::find(words, text) - words.begin();
  if (index == words.size())
    return "expected one of " + llvm::join(words, ", ") + suggestNames(text, words);
  field = static_cast<Enum>(index);
  return "";
}

/// The first of the words is none.
static std::string read(std::optional<schedule::Placement> &field, StringRef text) {
  std::vector<StringRef> words = wordsOf(field);
  if (!llvm::is_contained(words, text))
    return "expected one of " + llvm::join(words, ", ") + suggestNames(text, words);
  field = schedule::parsePlacement(text);
  return "";
}

/// Whether an option says all of its field, so that a second one would take back what the first says.
template <typename T> static bool saysAll(const T &) { return true; }
static bool saysAll(bool) { return false; }
static bool saysAll(const llvm::SmallVector<std::string> &) { return false; }
static bool saysAll(const DimSizes &) { return false; }
static bool saysAll(const NamedNumbers &) { return false; }
static bool saysAll(const MemoryOption &) { return false; }
static bool saysAll(const std::map<std::string, std::vector<int64_t>> &) { return false; }

static std::vector<StringRef> wordsOf(const Emit &) {
  std::vector<StringRef> words = wordsOf(Phase());
  words.push_back("onnx");
  return words;
}

/// Values are decided once propagated; what comes after is not said of tensors of the model.
static std::string read(Emit &field, StringRef text) {
  if (field.isOnnx = text == "onnx"; field.isOnnx) {
    field.phase = Phase::Propagated;
    return "";
  }
  std::vector<StringRef> words = wordsOf(field);
  return llvm::is_contained(words, text) ? read(field.phase.emplace(), text)
                                         : "expected one of " + llvm::join(words, ", ") + suggestNames(text, words);
}

/// Calls `use` with the member of `options` that an option fills.
template <typename Use> static auto withField(Options &options, unsigned option, Use use) {
  switch (option) {
#define OPTION_WITH_MARSHALLING(PREFIX, NAME, ID, KIND, GROUP, ALIAS, ALIASARGS, FLAGS, VISIBILITY, PARAM, HELP,       \
                                HELPS, METAVAR, VALUES, COMMANDS, PARSE, EMIT, FIELD, ...)                             \
  case OPT_##ID:                                                                                                       \
    return use(options.FIELD);
#include "Options.inc"
#undef OPTION_WITH_MARSHALLING
  default:
    return decltype(use(options.quiet))();
  }
}

/// Asked of the member that the option fills, so that no list repeats its words.
std::vector<StringRef> cleave::driver::getWords(const Option &option) {
  Options options;
  return withField(options, option.getID(), [](const auto &field) { return wordsOf(field); });
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// The words behind a command, taken one after the other.
class Parser {
public:
  Parser(StringRef command, ArrayRef<const char *> words) : words(words.begin(), words.end()) {
    options.command = command.str();
  }

  /// Returns what is wrong, or an empty string.
  std::string parse() {
    bool onlyPositionals = false;
    for (unsigned index = 0; index < words.getNumInputArgStrings();) {
      StringRef word = words.getArgString(index);
      bool isDashes = word == "--" && !onlyPositionals;
      onlyPositionals |= isDashes;
      std::string problem;
      if (isDashes)
        ++index;
      else if (onlyPositionals)
        problem = parsePositional(words.getArgString(index++));
      else
        problem = parseWord(index);
      if (!problem.empty())
        return problem;
    }
    options.remarks |= options.verbose;
    options.timePhases |= options.verbose;
    options.schedule.memory = options.memory.actions;
    // Who looks for plans names devices of that search; others take the plan that it finds. What is found leaves axes free.
    options.compile.sharding.free |= options.command == "plan";
    if (options.command == "plan")
      options.plan = {static_cast<int64_t>(std::exchange(options.compile.devices, 0)), options.memory.bytes,
                      options.memory.isLeast};
    options.compile.variants = options.dims.getVariants();
    options.compile.dims = options.compile.variants.front();
    options.compile.variants.erase(options.compile.variants.begin());
    if (options.device != DeviceKind::Host)
      options.compile.target = getTraits(options.device).target.str();
    if (std::string problem = takeGpu(); !problem.empty())
      return problem;
    bool needsModel = options.command != "schedule" && !options.calibrate;
    if (needsModel && options.compile.model.empty())
      return "no model is named";
    std::string problem = checkTogether();
    program::Status lost = problem.empty() ? listFiles(options).check() : program::kGood;
    return lost ? lost->message : problem;
  }

  Options options;

private:
  std::string parsePositional(StringRef word) {
    if (word.empty())
      return "an argument is empty";
    if (std::string hint = program::hintAtHome(word); options.compile.model.empty() && !hint.empty())
      return llvm::formatv("'{0}': {1}", word, hint);
    if (options.compile.model.empty())
      options.compile.model = word.str();
    else if (options.command == "explain" && options.value.empty())
      options.value = word.str();
    else
      return llvm::formatv("unexpected argument '{0}'", word);
    return "";
  }

  std::string parseWord(unsigned &index) {
    StringRef word = words.getArgString(index);
    std::unique_ptr<llvm::opt::Arg> arg = getOptionTable().ParseOneArg(words, index);
    Option option = arg ? arg->getOption().getUnaliasedOption() : findOption(word);
    if (option.getID() == OPT_INPUT)
      return parsePositional(word);
    if (option.getID() == OPT_UNKNOWN)
      return explainUnknown(word);
    StringRef name = option.getPrefixedName();
    if (!option.isRegisteredSC(options.command))
      return llvm::formatv("'{0}' is not an option of 'cleave {1}'", name, options.command);
    if (!arg)
      return llvm::formatv("'{0}' needs an argument: {1}", name, formatUsage(option));
    options.given.push_back(option.getID());
    StringRef argument = arg->getNumValues() ? arg->getValue() : "";
    if (arg->getNumValues() && argument.empty())
      return llvm::formatv("the argument of '{0}' is empty: {1}", name, formatUsage(option));
    if (std::string problem = checkGiven(option, argument); !problem.empty())
      return problem;
    std::string problem =
        withField(options, option.getID(), [=](auto &field) -> std::string { return read(field, argument); });
    return problem.empty() ? "" : llvm::formatv("'{0} {1}': {2}", name, argument, problem).str();
  }

  /// What can be told before the argument is read: it takes back an earlier one, or is a path that only a shell can read.
  std::string checkGiven(Option option, StringRef argument) {
    StringRef name = option.getPrefixedName();
    bool isOnce = withField(options, option.getID(), [](const auto &field) { return saysAll(field); });
    auto [known, isNew] = given.try_emplace(option.getID(), argument);
    if (isOnce && !isNew && known->second != argument)
      return llvm::formatv("'{0}' is given twice: as {1} and as {2}", name, known->second, argument);
    constexpr StringRef paths[] = {"FILE", "DIR", "MODEL"};
    StringRef usage = getOptionTable().getOptionMetaVar(option.getID());
    bool isPath = llvm::any_of(paths, [&](StringRef word) { return usage.contains(word); });
    std::string hint = isPath ? program::hintAtHome(argument) : "";
    return hint.empty() ? "" : llvm::formatv("'{0} {1}': {2}", name, argument, hint).str();
  }

  /// The option of that name, of any command; OPT_UNKNOWN where there is none.
  static Option findOption(StringRef name) {
    for (const OptionGroup &group : getOptionGroups(""))
      for (const Option &option : group.options)
        if (option.getPrefixedName() == name)
          return option;
    return getOptionTable().getOption(OPT_UNKNOWN);
  }

  std::string explainUnknown(StringRef word) {
    StringRef name = word.starts_with("--") ? word.split('=').first : word;
    if (findOption(name).getID() != OPT_UNKNOWN)
      return llvm::formatv("'{0}' takes no argument", name);
    std::vector<StringRef> names;
    for (const OptionGroup &group : getOptionGroups(options.command))
      for (const Option &option : group.options)
        names.push_back(option.getPrefixedName());
    // A single letter is short for many a word.
    if (name.size() == 2)
      llvm::erase_if(names, [&](StringRef known) { return !known.starts_with("-" + name.str()); });
    std::string near = name.size() == 2 && !names.empty()
                           ? llvm::formatv("; did you mean '{0}'?", llvm::join(names, "' or '")).str()
                           : suggestNames(name, names);
    return llvm::formatv("unknown option '{0}'{1}", name, near);
  }

  /// The mesh and the rules, whose syntax is that of plan files.
  std::string checkPlanOptions() {
    spmd::Plan plan;
    spmd::PlanError error;
    if (failed(spmd::parseMeshOption(options.compile.sharding.mesh, plan, error)) ||
        failed(spmd::checkPlan(plan, error)))
      return llvm::formatv("'--mesh {0}': {1}", options.compile.sharding.mesh, error.message);
    for (const std::string &rule : options.compile.sharding.shard)
      if (failed(spmd::parseShardOption(rule, plan, error)) ||
          (!plan.mesh.empty() && failed(spmd::checkPlan(plan, error))))
        return llvm::formatv("'--shard {0}': {1}", rule, error.message);
    return "";
  }

  // What each option says may be right and all of them not.
  std::string checkTogether() {
    for (const auto &[name, sizes] : options.dims.sizes)
      if (sizes.size() > 1 && options.command != "compile")
        return llvm::formatv("'{0}' is given as {1} and as {2}: several sizes are variants, which only 'compile' makes",
                             name, sizes[0], sizes[1]);
    if (options.command == "schedule")
      return checkSchedule();
    const spmd::AnnotateOptions &plan = options.compile.sharding;
    if (options.command == "plan" && !options.memory.actions.empty())
      return "'--memory' of a plan is a size, such as 72GB or 72GiB, or least";
    if (options.command == "plan" && options.plan.devices == 0 && plan.mesh.empty() && plan.plan.empty())
      return "how many devices? --devices 8, or --mesh data=2,model=4";
    if (given.count(OPT_devices) && options.compile.devices == 0 && options.plan.devices == 0)
      return "'--devices 0': expected at least one device";
    if (options.quiet && options.verbose)
      return "'--quiet' and '--verbose' contradict each other";
    if ((options.rtol || options.atol) && !options.check)
      return "'--rtol' and '--atol' are tolerances of '--check'";
    if (options.emit.isOnnx && options.command == "run")
      return "'run' runs a partitioned program, '--emit onnx' stops before";
    if (options.emit.isOnnx && (options.output.empty() || options.output == "-"))
      return "'--emit onnx' writes a model: name it with '-o annotated.onnx'";
    if (!options.report.empty() && options.getEmit() < Phase::Partitioned)
      return llvm::formatv("'--report' is about a partitioned program, '--emit {0}' stops before",
                           toString(options.getEmit()));
    if (options.command == "bench")
      if (std::string problem = checkBench(); !problem.empty())
        return problem;
    bool isProgram =
        options.command != "run" || options.executor == ExecutorKind::Program || options.device != DeviceKind::Host;
    if (!isProgram && options.compile.precision != Precision::F32)
      return "'--precision' is about programs: use --executor=program";
    if (!isProgram && options.compile.allowed != codegen::Allowed::Nothing)
      return "'--allow' is about programs: use --device";
    if (options.command == "compile" && options.output.empty())
      return "'compile' writes a program: name it with '-o m.cleave'";
    if (options.command == "export" && (options.output.empty() || options.output == "-"))
      return "'export' writes files into a folder: name it with '-o DIR'";
    if (options.command == "run" && options.getEmit() < Phase::Partitioned)
      return llvm::formatv("'run' runs a partitioned program, '--emit {0}' stops before", toString(options.getEmit()));
    return checkPlanOptions();
  }

  /// The architecture is what programs for devices are compiled for; of a name there is a machine, too.
  std::string takeGpu() {
    if (options.gpu.empty())
      return "";
    const spmd::Gpu *gpu = spmd::findGpu(options.gpu);
    if (!gpu && !StringRef(options.gpu).starts_with("sm_"))
      return llvm::formatv(
          "'--gpu {0}': no GPU is known by this name{1} (known: {2}, and architectures, such as sm_90)", options.gpu,
          spmd::suggestGpus(options.gpu),
          llvm::join(llvm::map_range(spmd::getGpus(), [](const spmd::Gpu &gpu) { return gpu.name; }), ", "));
    if (given.count(OPT_target))
      return "'--gpu' and '--target' both say what a program is for";
    if (options.command == "compile" || options.device == DeviceKind::Cuda)
      options.compile.target = "cuda:" + (gpu ? gpu->getArchitecture() : options.gpu);
    options.compile.gpu = gpu ? gpu->name.str() : "";
    return "";
  }

  /// A machine is measured without a model, and a model on the host without a file to write.
  std::string checkBench() {
    if (options.repeat == 0)
      return "'--repeat 0': expected at least one call";
    if (options.calibrate && !given.count(OPT_repeat))
      options.repeat = kCalibrationRounds;
    for (unsigned option : {OPT_o, OPT_device})
      if (!options.calibrate && given.count(option))
        return llvm::formatv("'{0}' of 'cleave bench' is about '--calibrate'",
                             getOptionTable().getOption(option).getPrefixedName());
    if (options.calibrate && !options.compile.model.empty())
      return llvm::formatv("'--calibrate' measures the machine, and not {0}", options.compile.model);
    return "";
  }

  /// Which shapes a schedule allows, it says itself.
  std::string checkSchedule() {
    const ScheduleCommand &schedule = options.schedule;
    if (options.memory.bytes > 0 || options.memory.isLeast)
      return "'--memory' of a schedule is what actions take, such as F=1,I=0,W=-1; what a rank may take is "
             "'--memory-limit'";
    if (options.compile.model.empty() && !options.compile.sharding.plan.empty())
      return llvm::formatv("'--plan {0}' is about a model, which is not named", options.compile.sharding.plan);
    if (options.compile.model.empty() && !schedule.profile.empty())
      return llvm::formatv("'--profile {0}' is about a model, which is not named", schedule.profile);
    for (auto [numbers, legal, name] : {std::tuple(&schedule.cost, "F, I, W, overlap", "--cost"),
                                        std::tuple(&schedule.memory, "F, I, W", "--memory")})
      for (const auto &[key, value] : *numbers)
        if (!llvm::is_contained(llvm::split(legal, ", "), StringRef(key)))
          return llvm::formatv("'{0}': '{1}' is none of {2}", name, key, legal);
        else if (value < 0 && numbers == &schedule.cost)
          return llvm::formatv("'--cost': {0} takes {1}, which is negative", key, value);
    bool maySearch = schedule.name == "auto" || llvm::is_contained(llvm::split(schedule.compare, ","), "auto") ||
                     (schedule.name.empty() && !options.compile.sharding.plan.empty());
    if (!maySearch && (schedule.placement || schedule.effort != schedule::Effort::Normal))
      return llvm::formatv("'--placement' and '--effort' are about '--schedule auto', not '{0}'",
                           schedule.name.empty() ? "1f1b" : schedule.name);
    if (schedule.computeOnly && schedule.table.empty())
      return "'--compute-only' is about a table: name it with '--table FILE.csv'";
    constexpr StringRef pictures[] = {".svg", ".html", ".json"};
    bool isKnown = llvm::any_of(pictures, [&](StringRef ending) { return StringRef(schedule.draw).ends_with(ending); });
    if (!schedule.draw.empty() && !isKnown)
      return llvm::formatv("'--draw {0}': expected a file that ends in {1}", schedule.draw,
                           llvm::join(ArrayRef(pictures), ", "));
    if (!schedule.compare.empty() && !(schedule.table + schedule.draw + options.report).empty())
      return "'--compare' prints lines: '--table', '--draw' and '--report' are about one schedule";
    return "";
  }

  llvm::opt::InputArgList words;
  /// What options have been given as, by their number.
  std::map<unsigned, StringRef> given;
};

} // namespace

ExitCode cleave::driver::printMistake(StringRef command, StringRef problem) {
  llvm::errs() << "cleave: error: " << problem << "; see 'cleave " << command << " --help'\n";
  return kBadCommandLine;
}

std::optional<Options> cleave::driver::parseCommandLine(int argc, const char *const *argv, int &exitCode) {
  llvm::SmallVector<StringRef> words(argv + 1, argv + argc);
  if (std::optional<int> code = runPrinting(words)) {
    exitCode = *code;
    return std::nullopt;
  }
  exitCode = kBadCommandLine;
  if (const auto *command = findCommand(words.front()); !command || words.front() == "manual") {
    llvm::errs() << "cleave: error: " << explainNoCommand(words) << "; see 'cleave --help'\n";
    return std::nullopt;
  }
  Parser parser(words.front(), ArrayRef(argv + 2, argv + argc));
  if (std::string problem = parser.parse(); !problem.empty()) {
    exitCode = printMistake(words.front(), problem);
    return std::nullopt;
  }
  exitCode = kDone;
  return std::move(parser.options);
}
