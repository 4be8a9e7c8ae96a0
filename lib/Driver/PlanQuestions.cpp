//===- PlanQuestions.cpp - what else `cleave plan` answers ----------------===//
//
// A style by its name, two plans in words, what weights are to the model, and which ops no axis splits.
//
//===----------------------------------------------------------------------===//
#include "cleave/Driver/PlanQuestions.h"

#include "TextTable.h"

#include "cleave/Compiler/ComparePlans.h"
#include "cleave/Compiler/ModelStructure.h"
#include "cleave/Driver/ReportFile.h"
#include "cleave/Plan/Plan.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace cleave;
using namespace cleave::driver;
using llvm::formatv;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Roles and support
//===----------------------------------------------------------------------===//

/// In the order in which the model reads its weights; a weight without a layer has a dash.
static void printRoles(llvm::raw_ostream &os, llvm::ArrayRef<NamedRole> roles) {
  std::vector<std::vector<std::string>> rows{{"weight", "role", "block", "shape", "split"}};
  for (const NamedRole &role : roles) {
    std::string shape = llvm::join(llvm::map_range(role.shape, [](int64_t size) { return std::to_string(size); }), "x");
    rows.push_back({role.weight, role.role, role.block ? std::to_string(role.block) : "-", shape, role.dims});
  }
  printTable(os, rows, TextColumns::AllLeft);
}

/// `2 nn.top_k (looks at whole rows)`.
static std::string describeReplicated(const ReplicatedOps &replicated) {
  return formatv("{0} {1} ({2})", replicated.count, replicated.op, replicated.reason);
}

/// Nothing is said of what there is none of.
static void printSupport(llvm::raw_ostream &os, const SupportReport &support) {
  os << formatv("{0} of {1} ops can be split", support.splittable, support.ops);
  if (!support.replicated.empty())
    os << "; replicated: " << llvm::join(llvm::map_range(support.replicated, describeReplicated), ", ");
  os << '\n';
  if (!support.uncosted.empty())
    os << "no price: "
       << llvm::join(
              llvm::map_range(support.uncosted,
                              [](const auto &kind) { return formatv("{0} {1}", kind.second, kind.first).str(); }),
              ", ")
       << " (only their bytes are counted)\n";
}

/// Keys are fixed in docs/report.md, here and below.
static llvm::json::Array rolesToJson(llvm::ArrayRef<NamedRole> roles) {
  llvm::json::Array array;
  for (const NamedRole &role : roles)
    array.push_back(llvm::json::Object{{"weight", role.weight},
                                       {"role", role.role},
                                       {"block", role.block},
                                       {"shape", llvm::json::Array(role.shape)},
                                       {"dims", role.dims}});
  return array;
}

static llvm::json::Object supportToJson(const SupportReport &support) {
  llvm::json::Array replicated, uncosted;
  for (const ReplicatedOps &ops : support.replicated)
    replicated.push_back(llvm::json::Object{{"op", ops.op}, {"count", ops.count}, {"reason", ops.reason}});
  for (const auto &[op, count] : support.uncosted)
    uncosted.push_back(llvm::json::Object{{"op", op}, {"count", count}});
  return llvm::json::Object{{"ops", support.ops},
                            {"splittable", support.splittable},
                            {"whole", std::move(replicated)},
                            {"unpriced", std::move(uncosted)}};
}

/// The structure is that of the model as it was loaded: without the plan, which says only how rules split it.
bool cleave::driver::answerStructure(Session &session, const spmd::Plan *plan, llvm::json::Object *report) {
  const Options &options = session.getOptions();
  if (!options.roles && !options.support)
    return true;
  auto structure = ModelStructure::create(session, nullptr);
  if (!structure)
    return false;
  llvm::raw_ostream &os = plan && options.writesToOutput() ? llvm::errs() : llvm::outs();
  if (options.roles) {
    std::vector<NamedRole> roles = structure->findRoles(plan);
    printRoles(os, roles);
    if (report)
      (*report)["roles"] = rolesToJson(roles);
  }
  if (options.support) {
    SupportReport support = structure->findSupport();
    printSupport(os, support);
    if (report)
      (*report)["support"] = supportToJson(support);
  }
  return true;
}

/// `query, key, value, 12 layers`: the roles of what a rule picks; empty where it picks no weight.
static std::string describeRule(const ModelStructure &structure, const spmd::PlanRule &rule,
                                llvm::ArrayRef<NamedRole> roles) {
  std::function<bool(StringRef)> picks = structure.getPicker(rule);
  std::vector<std::string> words;
  std::set<unsigned> blocks;
  for (const NamedRole &role : roles) {
    if (!picks(role.weight))
      continue;
    if (!llvm::is_contained(words, role.role))
      words.push_back(role.role);
    if (role.block)
      blocks.insert(role.block);
  }
  return llvm::join(words, ", ") + (blocks.size() > 1 ? formatv(", {0} layers", blocks.size()).str() : "");
}

/// Lines of rules are in the order of the rules (FormatPlan.h).
std::string cleave::driver::noteRoles(Session &session, const spmd::Plan &plan, StringRef text) {
  auto structure = ModelStructure::create(session, nullptr);
  if (!structure)
    return text.str();
  std::vector<NamedRole> roles = structure->findRoles(nullptr);
  std::string noted;
  size_t next = 0;
  for (StringRef line : llvm::split(text.rtrim('\n'), '\n')) {
    noted += line;
    bool isRule = line.starts_with("  - {") && next < plan.rules.size();
    const spmd::PlanRule *rule = isRule ? &plan.rules[next++] : nullptr;
    if (std::string words = rule ? describeRule(*structure, *rule, roles) : ""; !words.empty())
      noted += "  # " + words;
    noted += '\n';
  }
  return noted;
}

/// What all reports of the command begin with.
static llvm::json::Object beginReport(const Options &options) {
  return llvm::json::Object{{"version", 1}, {"kind", "plan"}, {"model", options.compile.model}};
}

/// No mesh is named, so nothing is searched and nothing is written but the answers.
ExitCode cleave::driver::answerWithout(Session &session) {
  const Options &options = session.getOptions();
  llvm::json::Object report = beginReport(options);
  if (!answerStructure(session, nullptr, &report))
    return session.getExitCode();
  if (!options.report.empty())
    if (llvm::Error error = writeReport(options, std::move(report)))
      return session.fail(std::move(error));
  return kDone;
}

//===----------------------------------------------------------------------===//
// Styles
//===----------------------------------------------------------------------===//

/// One line, for this command and for those that take the plan at once.
std::string cleave::driver::summarize(const LikePlan &like) {
  return formatv("{0} over {1}: {2} {3} split {4} {5}", like.style, like.mesh, like.plan->rules.size(),
                 like.plan->rules.size() == 1 ? "rule" : "rules", like.tensors,
                 like.tensors == 1 ? "tensor" : "tensors");
}

/// Figures are those of the program, as `cleave shard` reports them; roles are asked for before the model goes on.
ExitCode cleave::driver::likePlan(Session &session, const LikePlan &like) {
  const Options &options = session.getOptions();
  const std::string &style = like.style;
  std::string rules = noteRoles(session, *like.plan, formatLikePlan(session, like));
  llvm::json::Object report = beginReport(options);
  report["like"] = style;
  if (!answerStructure(session, like.plan.get(), &report) || !session.advance(Phase::Clustered))
    return session.getExitCode();
  std::optional<Report> counted = session.makeReport();
  if (!counted)
    return session.getExitCode();
  std::string figures =
      formatv("a rank takes {0}, of them {1} weights and states, and sends {2}", formatBytes(counted->peakBytesPerRank),
              formatBytes(counted->parameterBytesPerRank), formatBytes(counted->getWireBytes()));
  if (counted->time)
    figures += formatv("; a call is predicted to take {0} on {1}", formatTime(counted->time->getCallNs()),
                       counted->time->cluster);
  std::string text = formatv("# by cleave plan --like {0}, from the structure of the model: {1}\n# {2}\n"
                             "# a rule may be changed, taken away or added\n{3}",
                             style, summarize(like), figures, rules);
  if (!options.report.empty()) {
    llvm::json::Object best{
        {"mesh", like.mesh},
        {"wire_bytes_per_rank", counted->getWireBytes()},
        {"memory", llvm::json::Object{{"peak", counted->peakBytesPerRank}, {"stored", counted->parameterBytesPerRank}}},
        {"plan", text}};
    if (counted->time)
      best["seconds"] = counted->time->getCallNs() * 1e-9;
    report["best"] = std::move(best);
    if (llvm::Error error = writeReport(options, std::move(report)))
      return session.fail(std::move(error));
  }
  if (options.writesToOutput()) {
    if (!options.quiet)
      llvm::errs() << summarize(like) << '\n' << figures << '\n';
    llvm::outs() << text;
    return kDone;
  }
  if (llvm::Error error = writeTextAtomically(options.output, text))
    return session.fail(std::move(error));
  if (!options.quiet)
    llvm::outs() << summarize(like) << '\n' << figures << '\n';
  return kDone;
}

//===----------------------------------------------------------------------===//
// Two plans
//===----------------------------------------------------------------------===//

/// A row of the table of totals; a dash where no machine is known.
static std::vector<std::string> formatTotals(StringRef name, const PlanTotals &totals) {
  return {name.str(),
          totals.mesh,
          totals.ns ? formatTime(*totals.ns) : "-",
          formatBytes(totals.sentBytes),
          formatBytes(totals.peakBytes),
          formatBytes(totals.storedBytes)};
}

static std::string formatChange(double change, const std::string &text) { return (change < 0 ? "-" : "+") + text; }

static llvm::json::Object totalsToJson(const PlanTotals &totals) {
  constexpr double kNsPerSecond = 1e9;
  llvm::json::Object object{{"mesh", totals.mesh},
                            {"wire_bytes_per_rank", totals.sentBytes},
                            {"peak", totals.peakBytes},
                            {"stored", totals.storedBytes}};
  if (totals.ns)
    object["seconds"] = *totals.ns / kNsPerSecond;
  return object;
}

/// Totals first: who only wants to know which plan is better need not read on.
ExitCode cleave::driver::comparePlans(Session &session) {
  const Options &options = session.getOptions();
  std::optional<PlanDifference> difference =
      cleave::comparePlans(options.compile, options.schedule.compare, options.value,
                           [&](const Diagnostic &diagnostic) { session.report(diagnostic); });
  if (!difference)
    return session.getExitCode();
  const auto &[a, b, places] = *difference;
  auto bytes = [](int64_t before, int64_t after) {
    return formatChange(static_cast<double>(after - before), formatBytes(std::abs(after - before)));
  };
  bool isTimed = a.ns && b.ns;
  printTable(llvm::outs(),
             {{"", "mesh", "a call", "sends", "memory of a rank", "weights"},
              formatTotals("A", a),
              formatTotals("B", b),
              {"B - A", "", isTimed ? formatChange(*b.ns - *a.ns, formatTime(std::abs(*b.ns - *a.ns))) : "-",
               bytes(a.sentBytes, b.sentBytes), bytes(a.peakBytes, b.peakBytes), bytes(a.storedBytes, b.storedBytes)}},
             TextColumns::AllLeft);
  for (const std::string &place : places)
    llvm::outs() << place << '\n';
  if (places.empty())
    llvm::outs() << "both split and send the same\n";
  if (options.report.empty())
    return kDone;
  llvm::json::Object report{{"version", 1},         {"kind", "comparison"}, {"model", options.compile.model},
                            {"a", totalsToJson(a)}, {"b", totalsToJson(b)}, {"differences", llvm::json::Array(places)}};
  llvm::Error error = writeReport(options, std::move(report));
  return error ? session.fail(std::move(error)) : kDone;
}
