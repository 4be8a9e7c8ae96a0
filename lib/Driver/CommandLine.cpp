//===- CommandLine.cpp - the command line of `cleave` ---------------------===//
//
// LLVM's option library tells options from arguments by the table of Options.td; how an argument reads is said in OptionArguments.cpp. (llvm::cl
// is not used: the shared LLVM library registers hundreds of options of its own there.)
//
//===----------------------------------------------------------------------===//
#include "OptionTable.h"

#include "cleave/Compiler/Compile.h"
#include "cleave/Compiler/LikePlan.h"
#include "cleave/Plan/Gpus.h"
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Program/Content.h"
#include "cleave/Schedule/Generate.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave;
using namespace cleave::driver;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::opt::Option;

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
    bool findsPlan = options.command == "plan" && options.compile.like.empty();
    options.compile.sharding.free |= findsPlan && !asksForNoPlan();
    if (findsPlan)
      fillPlanRequest();
    options.schedule.microbatches = options.microbatches.most;
    options.compile.variants = options.dims.getVariants();
    options.compile.dims = options.compile.variants.front();
    options.compile.variants.erase(options.compile.variants.begin());
    bool hasArtifacts = !options.compile.artifacts.empty();
    options.compile.train |= !options.compile.trainText.empty() || options.command == "train" || hasArtifacts;
    if (hasArtifacts && options.compile.model.empty())
      options.compile.model = getArtifactsModel(options.compile.artifacts);
    options.compile.hasObjective = given.count(OPT_optimize) > 0;
    options.check |= given.count(OPT_check_eq) > 0;
    // What is wrong with a gradient hardly shows in the weight that it changes. A training has a step of its own for it.
    options.compile.keepsGradients = options.check && options.command == "run";
    options.compile.returnsAll = options.check && options.checkKind == CheckKind::All;
    // A program file is trained by whoever has it, who may want to evaluate.
    options.compile.evaluates =
        options.compile.train && (options.command == "compile" || !options.train.evalData.empty());
    if (options.device != DeviceKind::Host)
      options.compile.target = getTraits(options.device).target.str();
    if (std::string problem = takeGpu(); !problem.empty())
      return problem;
    if (std::string problem = takeTraining(); !problem.empty())
      return problem;
    bool needsModel = options.command != "schedule" && options.command != "lsp" && !options.calibrate;
    if (needsModel && options.compile.model.empty())
      return "no model is named";
    std::string problem = checkTogether();
    llvm::append_range(options.compile.sharding.shard, options.pins);
    program::Status lost = problem.empty() ? listFiles(options).check() : program::kGood;
    return lost ? lost->message : problem;
  }

  Options options;

private:
  /// Numbers and words of options that other commands have, too.
  std::string takeTraining() {
    if (options.command != "train")
      return "";
    runner::TrainOptions &train = options.train;
    train.steps = llvm::is_contained(options.given, OPT_steps) ? options.schedule.steps : 0;
    train.isShuffled = options.order == SampleOrder::Shuffled;
    if (llvm::is_contained(options.given, OPT_seed))
      train.seed = options.seed;
    if (train.data.empty())
      return "there is nothing to train on: '--data' names it";
    for (auto [option, number] : {std::pair(OPT_steps, train.steps),
                                  {OPT_epochs, train.epochs},
                                  {OPT_save_every, train.saveEvery},
                                  {OPT_eval_every, train.evalEvery},
                                  {OPT_keep, train.keep}})
      if (number == 0 && llvm::is_contained(options.given, option))
        return llvm::formatv("'{0} 0': expected a number of 1 or more",
                             getOptionTable().getOption(option).getPrefixedName());
    for (auto [path, name] : {std::pair(options.trained, "--export"), std::pair(options.adapters, "--export-adapters")})
      if (!path.empty() && train.save.empty())
        return llvm::formatv("'{0}' writes the weights that '--save' names", name);
    program::Status problem = runner::checkOptions(train);
    return problem ? problem->message : "";
  }

  /// Of a word that names no file, but nearly a schedule.
  std::string hintAtSchedule(StringRef word) const {
    auto names = llvm::map_to_vector(schedule::getGenerators(),
                                     [](const schedule::GeneratorInfo &info) { return StringRef(info.name); });
    std::string suggestion = suggestNames(word, names);
    if (llvm::is_contained(names, word))
      suggestion = "; '--schedule " + word.str() + "'";
    bool isFile = llvm::sys::fs::exists(word);
    return isFile || suggestion.empty()
               ? ""
               : llvm::formatv("'{0}' names no model; '--schedule NAME' names a schedule{1}", word, suggestion).str();
  }

  std::string parsePositional(StringRef word) {
    if (word.empty())
      return "an argument is empty";
    if (std::string hint = program::hintAtHome(word); options.compile.model.empty() && !hint.empty())
      return llvm::formatv("'{0}': {1}", word, hint);
    if (std::string hint = options.command == "schedule" ? hintAtSchedule(word) : ""; !hint.empty())
      return hint;
    if (options.compile.model.empty())
      options.compile.model = word.str();
    else if (comparesPlans() && options.value.empty() && StringRef(options.compile.model).ends_with(".yaml"))
      options.value = std::exchange(options.compile.model, word.str()); // --compare A.yaml B.yaml MODEL
    else if ((options.command == "explain" || comparesPlans()) && options.value.empty())
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
    std::string problem = readArgument(options, option, argument);
    return problem.empty()
               ? ""
               : llvm::formatv("'{0}{1}{2}': {3}", name, name.ends_with("=") ? "" : " ", argument, problem).str();
  }

  /// What can be told before the argument is read: it takes back an earlier one, or is a path that only a shell can read.
  std::string checkGiven(Option option, StringRef argument) {
    StringRef name = option.getPrefixedName();
    bool isOnce = saysAllOfIt(option);
    auto [known, isNew] = given.try_emplace(option.getID(), argument);
    if (isOnce && !isNew && known->second != argument)
      return llvm::formatv("'{0}' is given twice: as {1} and as {2}", name, known->second, argument);
    constexpr StringRef paths[] = {"FILE", "DIR", "MODEL"};
    StringRef usage = getOptionTable().getOptionMetaVar(option.getID());
    bool isPath = llvm::any_of(paths, [&](StringRef word) { return usage.contains(word); });
    std::string hint = isPath ? program::hintAtHome(argument) : "";
    return hint.empty() ? "" : llvm::formatv("'{0} {1}': {2}", name, argument, hint).str();
  }

  bool comparesPlans() const { return options.command == "plan" && !options.schedule.compare.empty(); }
  /// What is asked is about the model, or plans that there are.
  bool asksForNoPlan() const {
    const spmd::AnnotateOptions &plan = options.compile.sharding;
    bool isWithout = options.compile.devices == 0 && plan.mesh.empty() && plan.plan.empty();
    return comparesPlans() || ((options.roles || options.support) && isWithout);
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
    for (auto [name, rules] : {std::pair("shard", &options.compile.sharding.shard), std::pair("pin", &options.pins)})
      for (const std::string &rule : *rules)
        if (failed(spmd::parseShardOption(rule, plan, error)) ||
            (!plan.mesh.empty() && failed(spmd::checkPlan(plan, error))))
          return llvm::formatv("'--{0} {1}': {2}", name, rule, error.message);
    if (llvm::Error error = options.compile.like.empty() ? llvm::Error::success() : checkStyles(options.compile.like))
      return llvm::formatv("'--like {0}': {1}", options.compile.like, llvm::toString(std::move(error)));
    return "";
  }

  /// What other commands say in other words, or are asked in.
  void fillPlanRequest() {
    if (options.compile.devices > 0)
      options.compile.exampleBatch = options.compile.devices;
    options.plan.devices = static_cast<int64_t>(std::exchange(options.compile.devices, 0));
    options.plan.memoryBytes = options.memory.bytes;
    options.plan.takesLeast = options.memory.isLeast;
    options.plan.withinNs = options.within.ns;
    options.plan.mostAxes = static_cast<int64_t>(options.axes);
    options.plan.wantsProof = !options.certificate.empty();
    options.plan.top = std::max<size_t>(1, options.top);
    if (given.count(OPT_microbatches))
      options.plan.microbatches = options.microbatches;
  }

  /// What is about a search has nothing to say of a plan that a style makes; in silence it would be taken for kept.
  std::string checkLike() {
    for (auto option : {OPT_memory, OPT_objective, OPT_within, OPT_top, OPT_front, OPT_explain, OPT_stages, OPT_axes,
                        OPT_microbatches, OPT_certificate})
      if (given.count(option))
        return llvm::formatv("'{0}' is about a plan that is searched for, and '--like' makes one by rules: 'like:' in "
                             "a plan that is given keeps these and has the rest found",
                             getOptionTable().getOption(option).getPrefixedName());
    return "";
  }

  std::string checkPlan() {
    const spmd::AnnotateOptions &plan = options.compile.sharding;
    if (!options.memory.actions.empty())
      return "'--memory' of a plan is a size, such as 72GB or 1.5GiB, or least";
    if (!options.verify.empty() && (!options.certificate.empty() || !options.output.empty() || !options.report.empty()))
      return "'--verify' finds no plan: there is nothing to write";
    if (comparesPlans() && (!options.certificate.empty() || !options.output.empty()))
      return "'--compare' finds no plan: there is nothing to write but a '--report'";
    if (comparesPlans() && options.value.empty())
      return "two plans are compared: --compare A.yaml B.yaml, after the model";
    bool isWithout =
        options.plan.devices == 0 && options.compile.devices == 0 && plan.mesh.empty() && plan.plan.empty();
    if (options.verify.empty() && isWithout && !asksForNoPlan())
      return "how many devices? --devices 8, or --mesh data=2,model=4";
    if (std::string problem = options.compile.like.empty() ? "" : checkLike(); !problem.empty())
      return problem;
    if (options.plan.devices == 0)
      for (auto [number, name] : {std::pair(OPT_stages, "--stages"), std::pair(OPT_microbatches, "--microbatches"),
                                  std::pair(OPT_axes, "--axes")})
        if (given.count(number))
          return llvm::formatv("'{0}' is about meshes that are found, which '--devices N' asks for", name);
    if (options.axes < 1)
      return "'--axes 0': expected at least one axis";
    if (given.count(OPT_top) && (options.top < 1 || options.writesToOutput()))
      return "'--top K' writes the K best plans: expected a number above 0, and a folder, '-o DIR'";
    if (options.plan.wantsFront && options.plan.takesLeast)
      return "'--front' goes from the least time to the least memory, '--memory least' asks for its end";
    if (options.explain && options.compile.model == "-")
      return "'--explain' takes the model anew for each style, and standard input is read once: name a file";
    if (StringRef picture = options.schedule.draw; !picture.empty()) {
      if (!options.plan.wantsFront)
        return "'--draw' draws time against memory, which '--front' asks for";
      if (!picture.ends_with(".svg"))
        return llvm::formatv("'--draw {0}': expected a file that ends in .svg", picture);
    }
    return "";
  }

  // What each option says may be right and all of them not.
  std::string checkTogether() {
    for (const auto &[name, sizes] : options.dims.sizes)
      if (sizes.size() > 1 && options.command != "compile" && options.command != "plan")
        return llvm::formatv("'{0}' is given as {1} and as {2}: several sizes are variants, which only 'compile' makes",
                             name, sizes[0], sizes[1]);
    bool finds = options.verify.empty() && options.schedule.compare.empty() && options.compile.like.empty() &&
                 options.compile.sharding.free;
    if (options.command == "plan" && !options.compile.variants.empty() && !finds)
      return "several sizes of a dim are looked at where a plan is to be found: '--devices N' or '--mesh ..', and no "
             "style";
    if (given.count(OPT_steps_per_call) && options.compile.stepsPerCall == 0)
      return "'--steps-per-call 0': expected at least one step";
    if (options.compile.stepsPerCall > 1 && !options.compile.train)
      return "'--steps-per-call' is about a step of training, which '--train' asks for";
    if (options.compile.stepsPerCall > 1 && options.command == "run" && options.check &&
        options.checkKind == CheckKind::Differences)
      return "'--check=differences' is about the gradients of one step, and '--steps-per-call' asks for several";
    if (options.command == "schedule")
      return checkSchedule();
    if (std::string problem = options.command == "plan" ? checkPlan() : ""; !problem.empty())
      return problem;
    if (given.count(OPT_devices) && options.compile.devices == 0 && options.plan.devices == 0)
      return "'--devices 0': expected at least one device";
    if (options.quiet && options.verbose)
      return "'--quiet' and '--verbose' contradict each other";
    if (options.compile.returnsAll && (options.command == "train" || options.compile.train))
      return "'--check=all' is about tensors of a model; of a step '--check' compares all gradients";
    if (options.compile.returnsAll && !options.against.empty())
      return "'--check=all' makes outputs of all tensors, and '--against' compares those that a file has";
    if ((options.rtol || options.atol) && !options.check)
      return "'--rtol' and '--atol' are tolerances of '--check'";
    if (options.emit.form != EmitForm::Module && options.command == "run")
      return llvm::formatv("'run' runs a partitioned program, '--emit {0}' stops before",
                           kEmitWords[static_cast<size_t>(options.emit.form) - 1]);
    if (options.emit.form == EmitForm::Onnx && options.writesToOutput())
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
    if (options.command == "page" && options.output.empty())
      return "'page' writes a page: name it with '-o page.html'";
    if (options.command == "export" && options.writesToOutput())
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
    // Also where nothing is compiled, or a wrong one would be told only by the command that does.
    if (llvm::Error unknown = gpu ? llvm::Error::success() : checkArchitecture(options.gpu))
      return llvm::formatv("'--gpu {0}': {1}", options.gpu, llvm::toString(std::move(unknown)));
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
    if (options.microbatches.least != options.microbatches.most)
      return "'--microbatches' of a schedule is one number";
    if (options.memory.bytes > 0 || options.memory.isLeast)
      return "'--memory' of a schedule is what actions take, such as F=1,I=0,W=-1; what a rank may take is "
             "'--memory-limit'";
    if (options.compile.model.empty() && !options.compile.sharding.plan.empty())
      return llvm::formatv("'--plan {0}' is about a model, which is not named", options.compile.sharding.plan);
    if (options.compile.model.empty() && !options.html.empty())
      return llvm::formatv("'--html {0}' is about a model, which is not named; '--draw FILE.html' draws a schedule",
                           options.html);
    if (options.compile.model.empty() && llvm::is_contained(options.given, OPT_target))
      return llvm::formatv("'--target {0}' is about a model, which is not named", options.compile.target);
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
    if (!maySearch && (schedule.placement || schedule.effort))
      return llvm::formatv("'--placement' and '--effort' are about '--schedule auto', not '{0}'",
                           schedule.name.empty() ? "1f1b" : schedule.name);
    if (schedule.computeOnly && schedule.table.empty())
      return "'--compute-only' is about a table: name it with '--table FILE.csv'";
    constexpr StringRef pictures[] = {".svg", ".html", ".json"};
    bool isKnown = llvm::any_of(pictures, [&](StringRef ending) { return StringRef(schedule.draw).ends_with(ending); });
    if (!schedule.draw.empty() && !isKnown)
      return llvm::formatv("'--draw {0}': expected a file that ends in {1}", schedule.draw,
                           llvm::join(ArrayRef(pictures), ", "));
    if (!schedule.compare.empty() && !(schedule.table + schedule.draw + schedule.measured + options.report).empty())
      return "'--compare' prints lines: '--table', '--draw', '--measured' and '--report' are about one schedule";
    if (!schedule.measured.empty() && StringRef(schedule.draw).ends_with(".json"))
      return "'--measured' is a trace already: '--draw' lays it next to the schedule in a picture (.svg) or a page "
             "(.html)";
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
