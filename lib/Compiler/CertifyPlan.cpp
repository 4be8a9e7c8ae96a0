//===- CertifyPlan.cpp - how far a plan is from the best ------------------===//
//
// Each cell of the space becomes a problem with all axes free, as when plans are searched (FindPlan.cpp), and its tables are bounded. The
// plan is decided as whoever takes it would, and its decision is priced in the tables of the cell whose ranks lie as its own.
//
//   certify   space ─▶ problems ─▶ tables ─▶ messages ─▶ bounds      found plan ─▶ its problem ─▶ decision ─▶ options ─▶ cost
//   verify    the same without messages, which are those of the file; the plan is its text
//
// The problem of a cell with stages is that of one microbatch, as for the search. What a call of a plan with stages takes is not a sum of its
// tables, for stages wait for each other: it is predicted, by whoever checks once more.
//
// Nothing of what was searched is asked for: any plan can be certified.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/CertifyPlan.h"

#include "MeshProblem.h"

#include "cleave/Dialect/Pipe/Microbatches/Samples.h"
#include "cleave/Plan/FormatPlan.h"
#include "cleave/Search/CheckCertificate.h"
#include "cleave/Search/MeshCells.h"
#include "cleave/Support/Status.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;

class Compilation::PlanProver {
public:
  explicit PlanProver(State &state) : state(state) {}

  std::optional<PlanProof> certify(const FoundPlan &found, const PlanRequest &request);
  std::optional<PlanProof> verify(const Certificate &certificate, PlanRequest request);

private:
  bool takeCluster(const std::optional<Cluster> &cluster);
  bool listSpace(const Certificate &certificate);
  std::unique_ptr<MeshProblem> makeProblem(const Plan &plan, bool storesParameters);
  std::unique_ptr<MeshProblem> makeProblem(const SpaceCell &cell);
  std::optional<uint32_t> findCell(const Plan &plan) const;
  bool decide(const Plan &plan, const Problem &cell, const JointTables &tables, std::vector<uint16_t> &options);
  bool predictStages(const Plan &plan, bool isOfMany);
  void takeRequest(const FoundPlan &found, const PlanRequest &request, Certificate &certificate) const;
  bool price(const Plan &plan, const Problem &cell, const JointTables &tables, Certificate &certificate);
  void bound(const JointTables &tables, CertifiedCell &made, int64_t reach, Certificate &certificate) const;
  std::optional<Proof> certifyCells(const Plan &plan, uint32_t own, Certificate &certificate);
  bool takePlan(const Certificate &certificate, Plan &plan);
  bool checkDecision(const Plan &plan, const Certificate &certificate, Proof &proof);
  std::string formatSpace(int64_t devices) const;
  PlanProof makeProof(const Proof &proof, int64_t devices) const;
  bool fail(llvm::Error error, Blame blame = Blame::Input) { return state.fail(std::move(error), blame); }

  State &state;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  /// What options and their plan ask for, with all axes free.
  Plan given;
  std::vector<SpaceCell> space;
  /// What is predicted of the plan, where it has stages: of what is to be least, and of its stages as they were cut.
  double predictedNs = 0;
  std::optional<StagesTime> stagesTime;
};

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// The machine is that of the options, or of their plan, or else the one that the plan was found for. A target stands for one, as where
/// plans are found.
bool Compilation::PlanProver::takeCluster(const std::optional<Cluster> &cluster) {
  given = state.plan ? *state.plan : Plan();
  if (given.pipeline)
    return fail(makeError("a certificate is of plans with one stage: the plan that is given has a pipeline"),
                Blame::Options);
  given.areAllFree = given.isByTime = true;
  if (!given.cluster)
    given.cluster = cluster ? *cluster : state.getTargetCluster().value_or(Cluster());
  return true;
}

/// The mesh that is given, or all numbers of stages and microbatches, each with all meshes that `cleave plan` looks at. Devices of a stage
/// that do not fill nodes have none.
///
/// By what ops take on the slowest of unlike devices nothing is proved of stages, of which each has its own.
bool Compilation::PlanProver::listSpace(const Certificate &certificate) {
  constexpr int64_t kMostAxes = 3;
  if (!given.mesh.empty()) {
    SpaceCell &cell = space.emplace_back();
    for (const MeshAxis &axis : given.mesh)
      cell.mesh.push_back(axis.size);
    return true;
  }
  if (llvm::Expected<std::vector<MeshCell>> all = listMeshCells(*given.cluster, certificate.devices, kMostAxes); !all)
    return fail(all.takeError());
  int64_t samples = 1;
  if (llvm::Expected<func::FuncOp> func = findEntry(*state.module))
    samples = pipe::countSamples(*func);
  else
    llvm::consumeError(func.takeError());
  CountRange stages = certificate.stages;
  if (!given.cluster->unlike.empty())
    stages.most = 1;
  for (StageCell cell : listStageCells(certificate.devices, samples, stages, certificate.microbatches)) {
    llvm::Expected<std::vector<MeshCell>> meshes =
        listMeshCells(*given.cluster, certificate.devices / cell.stages, kMostAxes);
    if (!meshes) {
      llvm::consumeError(meshes.takeError());
      continue;
    }
    for (MeshCell &mesh : *meshes)
      space.push_back({cell, std::move(mesh.sizes)});
  }
  return true;
}

/// A copy of the model as far as annotations, which is what propagation would decide. Null where the model cannot be sharded so.
///
/// `storesParameters`: how weights are stored is decided at no price; where plans are taken it follows from who uses them.
std::unique_ptr<MeshProblem> Compilation::PlanProver::makeProblem(const Plan &plan, bool storesParameters) {
  return state.makeProblem(plan, state.searchBy(plan), storesParameters);
}

/// A cell of the space, with all that is given and axes free: whatever plan is found there decides something of this problem.
std::unique_ptr<MeshProblem> Compilation::PlanProver::makeProblem(const SpaceCell &cell) {
  std::vector<MeshAxis> mesh = given.mesh.empty() ? makeAxes(cell.mesh) : given.mesh;
  return makeProblem(makeCellPlan(given, cell.stages, std::move(mesh)), /*storesParameters=*/true);
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// In the order of the plan, major to minor.
static SmallVector<int64_t> sizesOf(ArrayRef<MeshAxis> axes) {
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : axes)
    sizes.push_back(axis.size);
  return sizes;
}

/// Nothing of a pipeline that does not say both.
static std::optional<StageCell> stagesOf(const Plan &plan) {
  if (!plan.pipeline)
    return StageCell();
  const MeshAxis *axis = plan.findAxis(plan.pipeline->axis);
  if (!axis || !plan.pipeline->microbatches)
    return std::nullopt;
  return StageCell{axis->size, *plan.pipeline->microbatches};
}

/// Prime factors of the axes, in their order.
static SmallVector<int64_t> atomsOf(ArrayRef<int64_t> sizes) {
  AtomMesh mesh(sizes);
  SmallVector<int64_t> atoms;
  for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
    atoms.push_back(mesh.size(atom));
  return atoms;
}

/// Axes are runs of atoms, whatever they are called: states are the same on meshes whose atoms are.
std::optional<uint32_t> Compilation::PlanProver::findCell(const Plan &plan) const {
  std::optional<StageCell> stages = stagesOf(plan);
  SmallVector<int64_t> sizes = sizesOf(plan.getInnerAxes());
  if (sizes.empty()) // The stages of one device each have an axis of one rank in the space.
    sizes.push_back(1);
  auto find = [&](llvm::function_ref<bool(ArrayRef<int64_t>)> isSame) -> std::optional<uint32_t> {
    for (auto [number, cell] : llvm::enumerate(space))
      if (stages == cell.stages && isSame(cell.mesh))
        return number;
    return std::nullopt;
  };
  if (std::optional<uint32_t> same = find([&](ArrayRef<int64_t> mesh) { return mesh == ArrayRef<int64_t>(sizes); }))
    return same;
  return find([&](ArrayRef<int64_t> mesh) { return atomsOf(mesh) == atomsOf(sizes); });
}

/// Decides the plan as propagation does, and looks its decision up.
/// \param cell of which the tables are
bool Compilation::PlanProver::decide(const Plan &plan, const Problem &cell, const JointTables &tables,
                                     std::vector<uint16_t> &options) {
  std::unique_ptr<MeshProblem> problem = makeProblem(plan, /*storesParameters=*/false);
  if (!problem)
    return fail(makeError("the plan of the certificate has no program"));
  if (!haveSameValues(problem->getProblem(), cell))
    return fail(makeError("nothing is proved of this plan: a rule of it names what the model otherwise takes apart, "
                          "and makes another program of it"));
  Solver solver(problem->getProblem(), problem->options);
  if (!solver.solve())
    return fail(makeError("the plan of the certificate contradicts itself"));
  std::optional<std::vector<uint16_t>> placed = tables.place(solver.getDecision());
  if (!placed)
    return fail(makeError("the plan decides what is not in the tables of its mesh"));
  options = std::move(*placed);
  return true;
}

/// Of one stage nothing: its tables say what it takes.
bool Compilation::PlanProver::predictStages(const Plan &plan, bool isOfMany) {
  if (!plan.pipeline)
    return true;
  State::Prediction taken =
      state.predict(std::make_shared<Plan>(plan), state.searchBy(plan), State::Trial::WithKernels);
  if (!std::isfinite(taken.ns))
    return fail(makeError("the plan of the certificate has no program"));
  predictedNs = isOfMany ? taken.spanNs : taken.ns;
  stagesTime = taken.stages;
  return true;
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

/// What was asked for, and what was found.
void Compilation::PlanProver::takeRequest(const FoundPlan &found, const PlanRequest &request,
                                          Certificate &certificate) const {
  certificate.model = state.options.model;
  certificate.cluster = found.plan->clusterFile;
  certificate.dims = state.options.dims;
  certificate.devices = request.devices;
  certificate.stages = request.stages;
  certificate.microbatches = request.microbatches;
  certificate.isStep = found.isStep;
  certificate.isOfMany = !found.isStep && request.objective == PlanObjective::Throughput;
  certificate.memoryBytes = found.memoryBytes;
  certificate.plan = found.getBest().text;
}

/// What the plan decides, and what that costs and stores. False after an error.
bool Compilation::PlanProver::price(const Plan &plan, const Problem &cell, const JointTables &tables,
                                    Certificate &certificate) {
  if (!decide(plan, cell, tables, certificate.options))
    return false;
  std::optional<int64_t> units = tables.costOf(certificate.options);
  if (!units)
    return fail(makeError("the plan decides what must not be"));
  certificate.units = *units;
  certificate.storedBytes = tables.countStored(certificate.options);
  return true;
}

/// A cell whose tables are those of an earlier one has its bound.
void Compilation::PlanProver::bound(const JointTables &tables, CertifiedCell &made, int64_t reach,
                                    Certificate &certificate) const {
  made.tables = tables.getDigest();
  for (const CertifiedCell &other : certificate.cells)
    if (other.tables == made.tables && other.of.stages == made.of.stages) {
      made.price = other.price;
      made.bound = other.bound;
      made.messages = other.messages;
      return;
    }
  CellBound best = boundCell(tables, limitBytes(certificate, made.of.stages), reach);
  made.price = best.price;
  made.bound = best.bound;
  made.messages = certificate.messages.size();
  certificate.messages.push_back(std::move(best.messages));
}

/// The cell of the plan comes first: messages of others need not go on once they reach its bound. A cell without a program has no plans.
std::optional<Proof> Compilation::PlanProver::certifyCells(const Plan &plan, uint32_t own, Certificate &certificate) {
  Proof proof;
  std::swap(space[0], space[own]);
  for (const SpaceCell &cell : space) {
    std::unique_ptr<MeshProblem> problem = makeProblem(cell);
    if (!problem)
      continue;
    std::unique_ptr<JointTables> tables = JointTables::create(problem->getProblem(), problem->options);
    if (!tables)
      return fail(makeError("mesh {0} has no problem", llvm::make_range(cell.mesh.begin(), cell.mesh.end()))),
             std::nullopt;
    double perNs = problem->options.costs.perNs;
    bool isOwn = certificate.cells.empty();
    if (isOwn && !price(plan, problem->getProblem(), *tables, certificate))
      return std::nullopt;
    CertifiedCell made;
    made.of = cell;
    double largest = static_cast<double>(tables->getLargest()) / perNs;
    auto measure = [&](double ns) {
      return boundMeasure(certificate, cell.stages, problem->getProblem(), ns, largest);
    };
    // Without the largest op a measure is a multiple of what it is of, and the least that is enough is above what would be. Of one stage it is
    // said apart how far the plan is from the best.
    bool isApart = !cell.stages.isPipeline() && !plan.pipeline;
    double enough = (isApart ? proof.oneStageNs : proof.boundNs) /
                    boundMeasure(certificate, cell.stages, problem->getProblem(), 1, /*largestNs=*/0);
    bound(*tables, made, isOwn ? certificate.units : static_cast<int64_t>(std::ceil(enough * perNs)), certificate);
    certificate.cells.push_back(made);
    double ns = static_cast<double>(made.bound) / perNs, least = measure(ns);
    if (isOwn) {
      proof.ns = static_cast<double>(certificate.units) / perNs;
      proof.ownBoundNs = ns;
      proof.measureNs = measure(proof.ns);
    }
    proof.addBound(cell.stages, least);
    proof.numRelaxed += tables->getNumRelaxed();
    proof.numDropped += tables->getNumDropped();
  }
  return proof;
}

std::optional<PlanProof> Compilation::PlanProver::certify(const FoundPlan &found, const PlanRequest &request) {
  const Plan &plan = *found.plan;
  if (request.takesLeast)
    return fail(makeError("--certificate is about time, and --memory least about memory"), Blame::Options),
           std::nullopt;
  Certificate certificate;
  takeRequest(found, request, certificate);
  if (!takeCluster(plan.cluster) || !listSpace(certificate))
    return std::nullopt;
  Telling telling(state.onProgress, "certificate");
  std::optional<uint32_t> own = findCell(plan);
  if (!own && !given.cluster->unlike.empty() && plan.pipeline)
    return fail(makeError("of devices that differ a certificate is of plans with one stage, and the one that was "
                          "found has a pipeline: --stages 1 finds another")),
           std::nullopt;
  if (!own)
    return fail(makeError("{0} is not among the meshes of the space", formatMesh(plan.mesh))), std::nullopt;
  if (!predictStages(plan, certificate.isOfMany))
    return std::nullopt;
  certificate.predictedNs = predictedNs;
  std::optional<Proof> proof = certifyCells(plan, *own, certificate);
  if (!proof)
    return std::nullopt;
  PlanProof made = makeProof(*proof, request.devices);
  made.certificate = formatCertificate(certificate);
  return made;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

/// The plan of the certificate is read as a file would be. False after an error.
bool Compilation::PlanProver::takePlan(const Certificate &certificate, Plan &plan) {
  PlanError error;
  if (failed(parsePlan(certificate.plan, "plan of the certificate", plan, error)) || failed(checkPlan(plan, error)))
    return fail(makeError("{0}", error.format()));
  if (!takeCluster(plan.cluster))
    return false;
  // What may be padded is more, so that what is proved is no less.
  given.uneven |= plan.uneven;
  // Of a mesh that was given the certificate says no number of devices.
  if (given.mesh.empty() && certificate.devices == 0)
    given.mesh = plan.mesh;
  int64_t ranks = 1;
  for (int64_t size : sizesOf(plan.mesh))
    ranks *= size;
  if (given.mesh.empty() && ranks != certificate.devices)
    return fail(makeError("the certificate is of {0} devices, and its plan of {1}", certificate.devices, ranks));
  if (!plan.cluster)
    plan.cluster = given.cluster;
  return true;
}

/// What the plan decides is what was priced, and what is predicted of it what is said. False after an error.
bool Compilation::PlanProver::checkDecision(const Plan &plan, const Certificate &certificate, Proof &proof) {
  std::optional<uint32_t> own = findCell(plan);
  bool isPriced = own && certificate.planCell < certificate.cells.size() &&
                  certificate.cells[certificate.planCell].of == space[*own];
  std::unique_ptr<MeshProblem> problem = isPriced ? makeProblem(space[*own]) : nullptr;
  std::unique_ptr<JointTables> tables =
      problem ? JointTables::create(problem->getProblem(), problem->options) : nullptr;
  if (!tables) {
    proof.mistakes.push_back("its plan is of another mesh than its decision");
    return true;
  }
  std::vector<uint16_t> options;
  if (!decide(plan, problem->getProblem(), *tables, options) || !predictStages(plan, certificate.isOfMany))
    return false;
  if (options != certificate.options)
    proof.mistakes.push_back("its plan decides otherwise than what is priced");
  if (std::abs(predictedNs - certificate.predictedNs) > 1e-9 * predictedNs)
    proof.mistakes.push_back(llvm::formatv("its plan is said to take {0}, and {1} is predicted",
                                           formatTime(certificate.predictedNs), formatTime(predictedNs)));
  return true;
}

/// All that the proof rests on is made anew from the model; the certificate has nothing but messages, prices and what they are said to prove.
std::optional<PlanProof> Compilation::PlanProver::verify(const Certificate &certificate, PlanRequest request) {
  Plan plan;
  // The bounds of stages are others.
  if (certificate.isStep != state.handed.hasStep())
    return fail(makeError("the certificate is of {0}", certificate.isStep
                                                           ? "a step of training: --train makes the model one"
                                                           : "the model, and not of a step of training")),
           std::nullopt;
  if (!takePlan(certificate, plan) || !listSpace(certificate))
    return std::nullopt;
  Proof proof = checkCertificate(certificate, space, [&](const SpaceCell &cell, VisitProblem visit) {
    std::unique_ptr<MeshProblem> problem = makeProblem(cell);
    if (problem)
      visit(problem->getProblem(), problem->options);
    return problem != nullptr;
  });
  if (request.devices != 0 && request.devices != certificate.devices)
    proof.mistakes.push_back(
        llvm::formatv("it is of {0} devices, {1} are asked for", certificate.devices, request.devices));
  if (request.memoryBytes != 0 && request.memoryBytes != certificate.memoryBytes)
    proof.mistakes.push_back(
        llvm::formatv("it is of {0} bytes of memory, {1} are asked for", certificate.memoryBytes, request.memoryBytes));
  if (!checkDecision(plan, certificate, proof))
    return std::nullopt;
  return makeProof(proof, certificate.devices);
}

//===----------------------------------------------------------------------===//
// In words
//===----------------------------------------------------------------------===//

/// What the bound is of; all else is not in it.
std::string Compilation::PlanProver::formatSpace(int64_t devices) const {
  if (!given.mesh.empty())
    return "mesh " + formatMesh(given.mesh) + ", 1 stage";
  size_t axes = 0;
  StageCell most;
  for (const SpaceCell &cell : space) {
    axes = std::max(axes, cell.mesh.size());
    most = {std::max(most.stages, cell.stages.stages), std::max(most.microbatches, cell.stages.microbatches)};
  }
  std::string stages =
      most.isPipeline() ? llvm::formatv("up to {0} stages and {1} microbatches", most.stages, most.microbatches).str()
                        : "1 stage";
  if (space.size() == 1)
    return llvm::formatv("the one mesh of {0} devices, {1}", devices, stages);
  return llvm::formatv("{0} {1} of {2} devices, of up to {3} axes, {4}", space.size(),
                       most.isPipeline() ? "cells" : "meshes", devices, axes, stages);
}

/// In the words and units of users, who know nothing of tables.
PlanProof Compilation::PlanProver::makeProof(const Proof &proof, int64_t devices) const {
  PlanProof made;
  made.mistakes = proof.mistakes;
  made.ns = proof.measureNs;
  made.boundNs = proof.boundNs;
  made.gap = proof.getGap();
  if (!stagesTime && std::isfinite(proof.oneStageNs)) {
    made.oneStageNs = proof.oneStageNs;
    made.oneStageGap = proof.getOneStageGap();
  }
  made.space = formatSpace(devices);
  if (stagesTime)
    made.stages =
        StagesProof{proof.ns, proof.ownBoundNs, proof.getOwnGap(), predictedNs, *stagesTime, state.handed.hasStep()};
  if (proof.numRelaxed + proof.numDropped > 0)
    made.relaxed =
        llvm::formatv("{0} ops and {1} values count less than they cost", proof.numRelaxed, proof.numDropped);
  made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return made;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

/// The gap in hundredths of a percent: rounding of bounds alone is less.
std::string PlanProof::format() const {
  std::string text = llvm::formatv("{0} by the solver's costs{1}, bound {2}, gap {3:f2} %; space: {4}", formatTime(ns),
                                   stages ? " if no stage waited" : "", formatTime(boundNs), 100 * gap, space);
  // What is proved of all is then no more than that of the space as far as it has stages, whose waits the bound leaves out.
  constexpr double kRounding = 5e-5;
  if (oneStageNs > 0 && gap > oneStageGap + kRounding)
    text += llvm::formatv("; of one stage bound {0}, gap {1:f2} %: what may be faster has more stages",
                          formatTime(oneStageNs), 100 * oneStageGap);
  return relaxed.empty() ? text : text + "; " + relaxed;
}

std::string StagesProof::format() const {
  return llvm::formatv("{0} in all stages together {1} by the solver's costs, bound {2}, gap {3:f2} %; stages as they "
                       "are cut {4}, no order below {5}, the slowest {6}, no cuts below {7}; predicted {8}",
                       isStep ? "all microbatches" : "a microbatch", formatTime(ns), formatTime(boundNs), 100 * gap,
                       formatTime(time.ns), formatTime(time.orderBoundNs), formatTime(time.slowestNs),
                       formatTime(time.splitBoundNs), formatTime(predictedNs));
}

std::optional<PlanProof> Compilation::certifyPlan(const FoundPlan &found, const PlanRequest &request) {
  return PlanProver(*state).certify(found, request);
}

std::optional<PlanProof> Compilation::verifyPlan(llvm::StringRef text, const PlanRequest &request) {
  llvm::Expected<Certificate> certificate = parseCertificate(text);
  if (!certificate)
    return state->fail(certificate.takeError()), std::nullopt;
  return PlanProver(*state).verify(*certificate, request);
}

llvm::Expected<std::map<std::string, int64_t>> cleave::readCertifiedDims(llvm::StringRef text) {
  llvm::Expected<Certificate> certificate = parseCertificate(text);
  if (!certificate)
    return certificate.takeError();
  return std::move(certificate->dims);
}

std::optional<PlanProof> cleave::certifyPlan(Compilation &compilation, const FoundPlan &found,
                                             const PlanRequest &request) {
  return compilation.certifyPlan(found, request);
}

std::optional<PlanProof> cleave::verifyPlan(Compilation &compilation, llvm::StringRef text, PlanRequest request) {
  if (!compilation.isLoaded() && !compilation.load())
    return std::nullopt;
  return compilation.verifyPlan(text, request);
}
