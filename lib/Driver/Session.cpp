//===- Session.cpp - what all commands of `cleave` share ------------------===//
//
// A session is a compilation that prints what comes up at once, in color on a terminal, and turns the worst of it into
// an exit code (docs/interface.md).
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/Session.h"

#include "OptionTable.h"
#include "cleave/Driver/FoundPlanText.h"
#include "cleave/Driver/PlanQuestions.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace cleave;
using namespace cleave::driver;

Session::Session(const Options &options)
    : Compilation(options.compile, [this](const Diagnostic &diagnostic) { print(diagnostic); }), options(options),
      useColor(options.color == Color::Always ||
               (options.color == Color::Auto && llvm::sys::Process::StandardErrHasColors())) {
  if (!options.quiet)
    tellProgress([this](const std::string &text) { progress.say(text.empty() ? text : "cleave: " + text); });
}

void Session::print(const Diagnostic &diagnostic) {
  // Several ops of one node may have the same to say.
  progress.hide();
  bool isRemark = diagnostic.severity == Diagnostic::Severity::Remark;
  bool isOnce = isRemark || diagnostic.severity == Diagnostic::Severity::Warning;
  if ((isRemark && !options.remarks) || (isOnce && !said.insert(diagnostic.format()).second))
    return;
  constexpr const char *colors[] = {"\033[1;31m", "\033[1;35m", "\033[1;34m", "\033[1;36m"};
  const char *color = useColor ? colors[static_cast<int>(diagnostic.severity)] : "";
  llvm::errs() << diagnostic.formatPlace() << ": " << color << diagnostic.formatSeverity() << ": "
               << (useColor ? "\033[0m" : "") << diagnostic.formatText() << '\n';
  for (const Diagnostic &note : diagnostic.notes)
    print(note);
}

void Session::warnOfIdle() {
  for (unsigned id : options.given) {
    llvm::opt::Option option = getOptionTable().getOption(id);
    std::string reason;
    if (option.hasFlag(OfOnnxModel) && !isOnnx())
      reason = "an .mlir file has its shapes";
    bool isLate = option.hasFlag(UntilPropagated) ? getPhase() >= Phase::Propagated
                                                  : option.hasFlag(UntilOptimized) && getPhase() >= Phase::Optimized;
    if (isLate)
      reason = llvm::formatv("the file is {0} already", toString(getPhase()));
    else if ((option.hasFlag(UntilPropagated) || option.hasFlag(UntilOptimized)) && !hasMesh())
      reason = "no mesh is given, over which something could be split";
    bool isByTime = (options.compile.devices > 0 && options.compile.like.empty()) || (getPlan() && getPlan()->isByTime);
    if (reason.empty() && option.getID() == OPT_optimize && isByTime &&
        options.compile.sharding.optimize == spmd::Optimize::Balanced)
      reason = "where axes are free, time decides";
    if (reason.empty())
      continue;
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::Warning;
    warning.file = options.compile.model;
    warning.message = llvm::formatv("'{0}' has no effect: {1}", option.getPrefixedName(), reason);
    report(warning);
  }
}

ExitCode Session::getExitCode() const {
  std::optional<Blame> blame = getBlame();
  if (!blame)
    return kDone;
  switch (*blame) {
  case Blame::Input:
    return kBadInput;
  case Blame::Options:
    return kBadCommandLine;
  case Blame::Expectation:
    return kDifference;
  case Blame::Run:
    return kRunFault;
  case Blame::Bug:
    return kInternalError;
  }
}

ExitCode Session::fail(llvm::Error error, Blame blame) {
  Compilation::fail(std::move(error), blame);
  return getExitCode();
}

/// Weights are known once there is a model.
bool Session::load() {
  if (!Compilation::load())
    return false;
  runtime::CommandFiles files = listFiles(options);
  for (const auto &[what, path] : getFilesRead())
    files.addInput(what, path);
  if (!checkFiles(files))
    return false;
  warnOfIdle();
  if (const FoundPlan *found = getFoundPlan(); found && !options.quiet) {
    for (const std::string &line : summarize(*found))
      llvm::errs() << "cleave: " << line << '\n';
    llvm::errs() << "cleave: 'cleave plan' with the same options writes this plan down: -o plan.yaml\n";
  }
  if (const LikePlan *like = getLikePlan(); like && !options.quiet && options.command != "plan") {
    llvm::errs() << "cleave: " << summarize(*like) << '\n';
    if (!options.compile.like.empty())
      llvm::errs() << "cleave: 'cleave plan' with the same options writes this plan down: -o plan.yaml\n";
  }
  return true;
}

bool Session::checkFiles(const runtime::CommandFiles &files) {
  program::Status error = files.check();
  return !error || Compilation::fail(makeError("{0}", error->message), Blame::Options);
}
