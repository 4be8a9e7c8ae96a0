//===- Plan.cpp - a plan that is found ------------------------------------===//
//
// What the library finds (Compiler/FindPlan.h) is printed as a table of what was looked at, and written as a plan, or several. What is asked of
// plans that there are, or of the model alone, is answered without a search.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/FindPlan.h"

#include "TextTable.h"
#include "cleave/Compiler/CertifyPlan.h"
#include "cleave/Driver/FoundPlanText.h"
#include "cleave/Driver/PlanProof.h"
#include "cleave/Driver/PlanQuestions.h"
#include "cleave/Driver/PlanReasons.h"
#include "cleave/Driver/Session.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace cleave;
using namespace cleave::driver;

/// The plans that are written, where there are several.
static std::vector<PlanCell> listWritten(const Options &options, const FoundPlan &found) {
  std::vector<PlanCell> written = options.plan.wantsFront ? found.front : found.cells;
  llvm::erase_if(written, [](const PlanCell &cell) { return cell.text.empty(); });
  if (!options.plan.wantsFront && written.size() > options.top)
    written.resize(options.top);
  return written;
}

/// One file for each plan, `plan-1.yaml` the first.
static llvm::Error writePlans(llvm::StringRef folder, llvm::ArrayRef<PlanCell> cells) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return makeError("cannot create {0}: {1}", quote(folder), code.message());
  size_t number = 0;
  for (const PlanCell &cell : cells) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, getPlanName(++number));
    if (llvm::Error error = writeTextAtomically(path, cell.text))
      return error;
  }
  return llvm::Error::success();
}

/// A picture where one is asked for; plans into a folder where there are several, a file where there is one.
static llvm::Error writeFound(const Options &options, const FoundPlan &found) {
  if (!options.schedule.draw.empty()) {
    std::string picture;
    llvm::raw_string_ostream os(picture);
    drawFrontSvg(os, found);
    if (llvm::Error error = writeTextAtomically(options.schedule.draw, picture))
      return error;
  }
  if (options.writesToOutput())
    return llvm::Error::success();
  if (options.plan.wantsFront || options.top > 0)
    return writePlans(options.output, listWritten(options, found));
  return writeTextAtomically(options.output, found.getBest().text);
}

/// What is asked of plans that there are, or of the model alone; nothing: a plan is to be found.
static std::optional<ExitCode> answerInstead(Session &session) {
  const Options &options = session.getOptions();
  if (!options.verify.empty())
    return verifyCertificate(session);
  if (!options.schedule.compare.empty())
    return comparePlans(session);
  if (!session.load())
    return session.getExitCode();
  // Rules of a style that stands in a plan are kept like its own: the rest is found.
  if (const LikePlan *like = options.compile.like.empty() ? nullptr : session.getLikePlan())
    return likePlan(session, *like);
  if (!options.compile.sharding.free)
    return answerWithout(session);
  return std::nullopt;
}

/// Nothing after an error; where pins are its reason, that is said.
static std::optional<FoundPlan> findPinned(Session &session) {
  const Options &options = session.getOptions();
  if (!options.pins.empty() && !checkPins(session))
    return std::nullopt;
  std::optional<FoundPlan> found = findPlan(session, options.plan);
  if (!found && !options.pins.empty())
    explainPins(session);
  if (found)
    found->cells.front().text = noteRoles(session, *found->plan, found->getBest().text);
  return found;
}

/// With -o to standard output, else to where no plan is.
static void print(llvm::raw_ostream &os, Session &session, const FoundPlan &found, const PlanProof *proof,
                  const PlanReasons *reasons) {
  const Options &options = session.getOptions();
  printCells(os, found);
  if (options.plan.wantsFront)
    drawFront(os, found);
  for (const std::string &line : summarize(found))
    os << "found: " << line << '\n';
  if (reasons)
    printReasons(os, found, *reasons);
  for (const std::string &proposed : found.proposedStates) {
    auto [input, output] = llvm::StringRef(proposed).split('=');
    os << llvm::formatv("outputs {1} look like the next values of {0}: --state '{2}' keeps these in the ranks\n", input,
                        output, proposed);
  }
  if (size_t written = options.writesToOutput() ? 0 : listWritten(options, found).size())
    os << "wrote " << written << (written == 1 ? " plan into " : " plans into ") << options.output
       << (written < options.top && !options.plan.wantsFront ? ": no other one was found that fits\n" : "\n");
  if (proof)
    printProof(os, "proved: ", *proof);
  if (std::optional<std::string> pins = options.pins.empty() ? std::nullopt : describePins(session, found))
    os << *pins << '\n';
}

/// What is written is written before anything is printed: a table for a plan that is not there would be none.
static ExitCode tell(Session &session, const FoundPlan &found) {
  const Options &options = session.getOptions();
  llvm::json::Object structure;
  if (!answerStructure(session, found.plan.get(), &structure))
    return session.getExitCode();
  std::optional<PlanReasons> reasons;
  if (options.explain) {
    if (!(reasons = session.explainPlan(found, options.plan)))
      return session.getExitCode();
    structure["explain"] = toJson(*reasons);
  }
  std::optional<PlanProof> proof;
  if (!options.certificate.empty() && !(proof = writeCertificate(session, found)))
    return session.getExitCode();
  if (llvm::Error error = writeFound(options, found))
    return session.fail(std::move(error));
  if (!options.report.empty())
    if (llvm::Error error = writeReport(options, found, proof ? &*proof : nullptr, std::move(structure)))
      return session.fail(std::move(error));
  if (!options.quiet)
    print(options.writesToOutput() ? llvm::errs() : llvm::outs(), session, found, proof ? &*proof : nullptr,
          reasons ? &*reasons : nullptr);
  if (options.writesToOutput())
    llvm::outs() << found.getBest().text;
  return kDone;
}

//===----------------------------------------------------------------------===//
// Several sizes
//===----------------------------------------------------------------------===//

// The model is loaded anew for each: shapes are static from import on. Of what was found the best alone is kept, with its session, which is
// asked for roles, proofs and pins as of a plan for one size.
namespace {
/// What was found for sizes of dims, and the session that found it.
struct SizedPlan {
  std::unique_ptr<Options> options;
  std::unique_ptr<Session> session;
  FoundPlan found;
};
} // namespace

/// `batch=8,seq=16`.
static std::string formatSizes(const std::map<std::string, int64_t> &sizes) {
  std::string text;
  for (const auto &[name, size] : sizes)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

/// Calls follow each other.
static bool isOfMany(const Options &options) { return options.plan.objective == PlanObjective::Throughput; }

/// Its share of a call, or of one where calls follow each other.
static double getSampleNs(const Options &options, const FoundPlan &found) {
  const PlanCell &best = found.getBest();
  return (isOfMany(options) ? best.spanNs : best.ns) / static_cast<double>(found.samples);
}

/// What is to be little: where calls follow each other the time of a sample, else that of a call.
static double getMeasure(const Options &options, const FoundPlan &found) {
  return isOfMany(options) ? getSampleNs(options, found) : found.getBest().ns;
}

/// A line for each, and all that there is to say of the best; sizes are looked at one by one, for each is a program of its own.
static ExitCode planSizes(const Options &options) {
  std::vector<std::map<std::string, int64_t>> variants{options.compile.dims};
  llvm::append_range(variants, options.compile.variants);
  std::optional<SizedPlan> best;
  std::vector<std::vector<std::string>> rows{
      {"sizes", "mesh", options.compile.train ? "a step" : "a call", "a sample", "sends", "memory of a rank"}};
  for (const std::map<std::string, int64_t> &sizes : variants) {
    SizedPlan one{std::make_unique<Options>(options), nullptr, {}};
    one.options->compile.dims = sizes;
    one.options->compile.variants.clear();
    one.session = std::make_unique<Session>(*one.options);
    std::optional<FoundPlan> found = one.session->load() ? findPinned(*one.session) : std::nullopt;
    if (!found)
      return one.session->getExitCode();
    one.found = std::move(*found);
    const PlanCell &cell = one.found.getBest();
    rows.push_back({formatSizes(sizes), cell.mesh, formatTime(cell.ns), formatTime(getSampleNs(options, one.found)),
                    formatBytes(cell.sentBytes), formatBytes(cell.peakBytes)});
    if (!best || getMeasure(options, one.found) < getMeasure(options, best->found))
      best = std::move(one);
  }
  llvm::raw_ostream &os = options.writesToOutput() ? llvm::errs() : llvm::outs();
  if (!options.quiet) {
    printTable(os, rows, TextColumns::FirstLeft);
    os << "best: " << formatSizes(best->options->compile.dims) << '\n';
  }
  return tell(*best->session, best->found);
}

ExitCode cleave::driver::planCommand(Session &session) {
  const Options &options = session.getOptions();
  if (!options.compile.variants.empty())
    return planSizes(options);
  if (std::optional<ExitCode> answered = answerInstead(session))
    return *answered;
  std::optional<FoundPlan> found = findPinned(session);
  return found ? tell(session, *found) : session.getExitCode();
}
