//===- CertifyPlan.cpp - how far a plan is from the best ------------------===//
//
// Each mesh of the space becomes a problem with all axes free, as when plans are searched (FindPlan.cpp), and its tables are bounded. The
// plan is decided as whoever takes it would, and its decision is priced in the tables of the mesh whose ranks lie as its own.
//
//   certify   space ─▶ problems ─▶ tables ─▶ messages ─▶ bounds      found plan ─▶ its problem ─▶ decision ─▶ options ─▶ cost
//   verify    the same without messages, which are those of the file; the plan is its text
//
// Nothing of what was searched is asked for: any plan with one stage can be certified.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/CertifyPlan.h"

#include "MeshProblem.h"

#include "cleave/Plan/FormatPlan.h"
#include "cleave/Search/CheckCertificate.h"
#include "cleave/Search/MeshCells.h"
#include "cleave/Support/Status.h"

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
  bool listSpace(int64_t devices);
  std::unique_ptr<MeshProblem> makeProblem(const Plan &plan, bool storesParameters);
  std::unique_ptr<MeshProblem> makeProblem(ArrayRef<int64_t> mesh);
  std::optional<uint32_t> findCell(const Plan &plan) const;
  bool decide(const Plan &plan, const JointTables &tables, std::vector<uint16_t> &options);
  void bound(const JointTables &tables, uint32_t cell, Certificate &certificate);
  std::string formatSpace(int64_t devices) const;
  PlanProof makeProof(const Proof &proof, int64_t devices) const;
  bool fail(llvm::Error error, Blame blame = Blame::Input) { return state.fail(std::move(error), blame); }

  State &state;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  /// What options and their plan ask for, with all axes free.
  Plan given;
  std::vector<std::vector<int64_t>> space;
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

/// The mesh that is given, or all of so many devices: those that `cleave plan` looks at.
bool Compilation::PlanProver::listSpace(int64_t devices) {
  if (!given.mesh.empty()) {
    std::vector<int64_t> &sizes = space.emplace_back();
    for (const MeshAxis &axis : given.mesh)
      sizes.push_back(axis.size);
    return true;
  }
  llvm::Expected<std::vector<MeshCell>> cells = listMeshCells(*given.cluster, devices, /*mostAxes=*/3);
  if (!cells)
    return fail(cells.takeError(), Blame::Options);
  for (MeshCell &cell : *cells)
    space.push_back(std::move(cell.sizes));
  return true;
}

/// A copy of the model as far as annotations, which is what propagation would decide. Null where the model cannot be sharded so.
///
/// `storesParameters`: how weights are stored is decided at no price; where plans are taken it follows from who uses them.
std::unique_ptr<MeshProblem> Compilation::PlanProver::makeProblem(const Plan &plan, bool storesParameters) {
  return state.makeProblem(plan, state.searchBy(plan), storesParameters);
}

/// A mesh of the space, with all that is given and axes free: whatever plan is found there decides something of this problem.
std::unique_ptr<MeshProblem> Compilation::PlanProver::makeProblem(ArrayRef<int64_t> mesh) {
  Plan plan = given;
  if (plan.mesh.empty())
    plan.mesh = makeAxes(mesh);
  return makeProblem(plan, /*storesParameters=*/true);
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// In the order of the plan, major to minor.
static SmallVector<int64_t> sizesOf(const Plan &plan) {
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : plan.mesh)
    sizes.push_back(axis.size);
  return sizes;
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
  SmallVector<int64_t> sizes = sizesOf(plan);
  for (auto [number, mesh] : llvm::enumerate(space))
    if (ArrayRef<int64_t>(mesh) == ArrayRef<int64_t>(sizes))
      return number;
  for (auto [number, mesh] : llvm::enumerate(space))
    if (atomsOf(mesh) == atomsOf(sizes))
      return number;
  return std::nullopt;
}

/// Decides the plan as propagation does, and looks its decision up.
bool Compilation::PlanProver::decide(const Plan &plan, const JointTables &tables, std::vector<uint16_t> &options) {
  std::unique_ptr<MeshProblem> problem = makeProblem(plan, /*storesParameters=*/false);
  if (!problem)
    return fail(makeError("the plan of the certificate has no program"));
  Solver solver(problem->getProblem(), problem->options);
  if (!solver.solve())
    return fail(makeError("the plan of the certificate contradicts itself"));
  std::optional<std::vector<uint16_t>> placed = tables.place(solver.getDecision());
  if (!placed)
    return fail(makeError("the plan decides what is not in the tables of its mesh"));
  options = std::move(*placed);
  return true;
}

//===----------------------------------------------------------------------===//
// Making and checking
//===----------------------------------------------------------------------===//

/// A mesh whose tables are those of an earlier one has its bound.
void Compilation::PlanProver::bound(const JointTables &tables, uint32_t cell, Certificate &certificate) {
  CertifiedCell &made = certificate.cells[cell];
  made.mesh = space[cell];
  made.tables = tables.getDigest();
  for (const CertifiedCell &other : certificate.cells)
    if (&other != &made && !other.mesh.empty() && other.tables == made.tables) {
      made = other;
      made.mesh = space[cell];
      return;
    }
  CellBound best = boundCell(tables, certificate.memoryBytes, certificate.units);
  made.price = best.price;
  made.bound = best.bound;
  made.messages = certificate.messages.size();
  certificate.messages.push_back(std::move(best.messages));
}

/// What the bound is of; all else is not in it.
std::string Compilation::PlanProver::formatSpace(int64_t devices) const {
  if (!given.mesh.empty())
    return "mesh " + formatMesh(given.mesh) + ", 1 stage";
  size_t axes = 0;
  for (const std::vector<int64_t> &mesh : space)
    axes = std::max(axes, mesh.size());
  if (space.size() == 1)
    return llvm::formatv("the one mesh of {0} devices, 1 stage", devices);
  return llvm::formatv("{0} meshes of {1} devices, of up to {2} axes, 1 stage", space.size(), devices, axes);
}

/// In the words and units of users, who know nothing of tables.
PlanProof Compilation::PlanProver::makeProof(const Proof &proof, int64_t devices) const {
  PlanProof made;
  made.mistakes = proof.mistakes;
  made.ns = proof.ns;
  made.boundNs = proof.boundNs;
  made.gap = proof.getGap();
  made.space = formatSpace(devices);
  if (proof.numRelaxed + proof.numDropped > 0)
    made.relaxed =
        llvm::formatv("{0} ops and {1} values count less than they cost", proof.numRelaxed, proof.numDropped);
  made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return made;
}

/// The mesh of the plan comes first: messages need not go on once they reach what it takes.
std::optional<PlanProof> Compilation::PlanProver::certify(const FoundPlan &found, const PlanRequest &request) {
  const Plan &plan = *found.plan;
  if (request.takesLeast)
    return fail(makeError("--certificate is about time, and --memory least about memory"), Blame::Options),
           std::nullopt;
  if (plan.pipeline)
    return fail(makeError("a certificate is of plans with one stage, and the one that was found has a pipeline: "
                          "--stages 1 finds another")),
           std::nullopt;
  if (!takeCluster(plan.cluster) || !listSpace(request.devices))
    return std::nullopt;
  Telling telling(state.onProgress, "certificate");
  std::optional<uint32_t> own = findCell(plan);
  if (!own)
    return fail(makeError("{0} is not among the meshes of the space", formatMesh(plan.mesh))), std::nullopt;
  Certificate certificate;
  certificate.model = state.options.model;
  certificate.cluster = plan.clusterFile;
  certificate.dims = state.options.dims;
  certificate.devices = request.devices;
  certificate.memoryBytes = found.memoryBytes;
  certificate.plan = found.getBest().text;
  certificate.planCell = *own;
  certificate.cells.resize(space.size());
  SmallVector<uint32_t> order{*own};
  for (uint32_t cell = 0; cell < space.size(); ++cell)
    if (cell != *own)
      order.push_back(cell);
  Proof proof;
  for (uint32_t cell : order) {
    std::unique_ptr<MeshProblem> problem = makeProblem(space[cell]);
    std::unique_ptr<JointTables> tables =
        problem ? JointTables::create(problem->getProblem(), problem->options) : nullptr;
    if (!tables)
      return fail(makeError("mesh {0} has no problem", llvm::make_range(space[cell].begin(), space[cell].end()))),
             std::nullopt;
    if (cell == *own) {
      if (!decide(plan, *tables, certificate.options))
        return std::nullopt;
      std::optional<int64_t> units = tables->costOf(certificate.options);
      if (!units)
        return fail(makeError("the plan decides what must not be")), std::nullopt;
      certificate.units = *units;
      certificate.storedBytes = tables->countStored(certificate.options);
      proof.ns = static_cast<double>(*units) / problem->options.costs.perNs;
    }
    bound(*tables, cell, certificate);
    double ns = static_cast<double>(certificate.cells[cell].bound) / problem->options.costs.perNs;
    proof.boundNs = cell == *own ? ns : std::min(proof.boundNs, ns);
    proof.numRelaxed += tables->getNumRelaxed();
    proof.numDropped += tables->getNumDropped();
  }
  PlanProof made = makeProof(proof, request.devices);
  made.certificate = formatCertificate(certificate);
  return made;
}

/// The plan of the certificate is read as a file would be. All that the proof rests on is made anew from the model; the certificate has
/// nothing but messages, prices and what they are said to prove.
std::optional<PlanProof> Compilation::PlanProver::verify(const Certificate &certificate, PlanRequest request) {
  Plan plan;
  PlanError error;
  if (failed(parsePlan(certificate.plan, "plan of the certificate", plan, error)) || failed(checkPlan(plan, error)))
    return fail(makeError("{0}", error.format())), std::nullopt;
  if (!takeCluster(plan.cluster))
    return std::nullopt;
  // What may be padded is more, so that what is proved is no less.
  given.uneven |= plan.uneven;
  // Of a mesh that was given the certificate says no number of devices.
  if (given.mesh.empty() && certificate.devices == 0)
    given.mesh = plan.mesh;
  int64_t ranks = 1;
  for (int64_t size : sizesOf(plan))
    ranks *= size;
  if (given.mesh.empty() && ranks != certificate.devices)
    return fail(makeError("the certificate is of {0} devices, and its plan of {1}", certificate.devices, ranks)),
           std::nullopt;
  if (!listSpace(certificate.devices))
    return std::nullopt;
  if (!plan.cluster)
    plan.cluster = given.cluster;
  Proof proof = checkCertificate(certificate, space, [&](ArrayRef<int64_t> mesh, VisitProblem visit) {
    std::unique_ptr<MeshProblem> problem = makeProblem(mesh);
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
  // What the plan decides is what was priced.
  std::optional<uint32_t> own = findCell(plan);
  std::unique_ptr<MeshProblem> problem = own && *own == certificate.planCell ? makeProblem(space[*own]) : nullptr;
  std::unique_ptr<JointTables> tables =
      problem ? JointTables::create(problem->getProblem(), problem->options) : nullptr;
  std::vector<uint16_t> options;
  if (!tables)
    proof.mistakes.push_back("its plan is of another mesh than its decision");
  else if (!decide(plan, *tables, options))
    return std::nullopt;
  else if (options != certificate.options)
    proof.mistakes.push_back("its plan decides otherwise than what is priced");
  return makeProof(proof, certificate.devices);
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

/// The gap in hundredths of a percent: rounding of bounds alone is less.
std::string PlanProof::format() const {
  std::string text = llvm::formatv("{0} by the solver's costs, bound {1}, gap {2:f2} %; space: {3}", formatTime(ns),
                                   formatTime(boundNs), 100 * gap, space);
  return relaxed.empty() ? text : text + "; " + relaxed;
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
