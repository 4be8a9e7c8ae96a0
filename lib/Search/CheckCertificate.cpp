//===- CheckCertificate.cpp - does a proof hold? --------------------------===//
//
// What a message moves to a node it takes from the edge: sums of all tables stay what they are, so that what least cells add up to is
// below every decision, whatever the messages are. Sums are of 128 bits: no numbers in a file make them overflow.
//
//   per cell   tables from the model ─▶ messages move ─▶ least cells ─▶ their sum, less the price of the limit  =  what is claimed
//   its plan   options ─▶ cells of the same tables ─▶ their sum  =  what is claimed
//   the space  every cell that has a program is there, once
//
// Of a pipeline the tables are those of a microbatch, and the limit is that of all stages together: what they store adds up to at least what
// the microbatch's program does.
//
// A certificate that claims too little is refused as well: then something in it is not what was written.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/CheckCertificate.h"
#include "cleave/Search/MainPath.h"
#include "cleave/Solver/JointTables.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace cleave::spmd;
using namespace llvm;

namespace {
using Wide = __int128;

class Checker {
public:
  Checker(const Certificate &certificate, ArrayRef<SpaceCell> space) : certificate(certificate), space(space) {}

  void checkSpace(ProblemOfCell makeProblem);
  void checkCell(size_t number, const JointTables &tables, const Problem &problem, double perNs);
  void checkPlan(const JointTables &tables, const Problem &problem, double perNs);
  template <typename... Args> void note(const char *format, Args &&...args) {
    proof.mistakes.push_back(formatv(format, std::forward<Args>(args)...));
  }

  Proof proof;

private:
  bool fits(const JointTables &tables, const Messages &messages) const;
  Wide sumLeast(const JointTables &tables, MemoryPrice price, const Messages &messages) const;

  const Certificate &certificate;
  ArrayRef<SpaceCell> space;
};
} // namespace

/// `mesh 2x2`, `2 stages, 4 microbatches, mesh 2`.
static std::string format(const SpaceCell &cell) {
  std::string mesh = formatv("mesh {0:$[x]}", make_range(cell.mesh.begin(), cell.mesh.end()));
  if (cell.stages == StageCell())
    return mesh;
  return formatv("{0} stages, {1} microbatches, {2}", cell.stages.stages, cell.stages.microbatches, mesh);
}

/// Every cell of the space that has a program once, and no other.
void Checker::checkSpace(ProblemOfCell makeProblem) {
  for (const SpaceCell &wanted : space)
    if (none_of(certificate.cells, [&](const CertifiedCell &cell) { return cell.of == wanted; }) &&
        makeProblem(wanted, [](const Problem &, const SolverOptions &) {}))
      note("{0} is missing: nothing is proved of it", format(wanted));
  for (auto [number, cell] : enumerate(certificate.cells)) {
    if (!is_contained(space, cell.of))
      note("{0} is none of {1} devices", format(cell.of), certificate.devices);
    if (any_of(ArrayRef(certificate.cells).take_front(number),
               [&, &of = cell.of](const CertifiedCell &other) { return other.of == of; }))
      note("{0} is there twice", format(cell.of));
  }
}

/// A message has a number for each row and column of its edge.
bool Checker::fits(const JointTables &tables, const Messages &messages) const {
  return messages.size() == tables.getGraph().edges.size() &&
         all_of(zip(tables.getGraph().edges, messages), [](const auto &pair) {
           const auto &[edge, message] = pair;
           return message.toRows.size() == edge.table->rows && message.toColumns.size() == edge.table->columns;
         });
}

/// What is least of an edge. A cell that is not exact costs more than it says: it is found out where what it says is the least of all.
static Wide findLeast(JointTable &table, const EdgeMessage &message) {
  std::vector<std::pair<Wide, size_t>> left;
  for (int64_t toRow : message.toRows)
    for (int64_t toColumn : message.toColumns)
      left.push_back({Wide(table.cells[left.size()]) - toRow - toColumn, left.size()});
  std::make_heap(left.begin(), left.end(), std::greater<>());
  while (!table.isExact(left.front().second)) {
    std::pop_heap(left.begin(), left.end(), std::greater<>());
    auto &[value, cell] = left.back();
    int64_t before = table.cells[cell];
    value += table.refine(cell) - before;
    std::push_heap(left.begin(), left.end(), std::greater<>());
  }
  return left.front().first;
}

/// Of all nodes and edges, once messages have moved what they say.
Wide Checker::sumLeast(const JointTables &tables, MemoryPrice price, const Messages &messages) const {
  std::vector<std::vector<Wide>> costs;
  for (const JointDomain *domain : tables.getGraph().variables) {
    costs.emplace_back(domain->costs.begin(), domain->costs.end());
    for (auto [cost, bytes] : zip(costs.back(), domain->storedBytes))
      cost += price.of(bytes);
  }
  Wide sum = 0;
  for (const auto &[edge, message] : zip(tables.getGraph().edges, messages)) {
    for (auto [cost, row] : zip(costs[edge.from], *edge.rows))
      cost += message.toRows[row];
    for (auto [cost, column] : zip(costs[edge.to], *edge.columns))
      cost += message.toColumns[column];
    sum += findLeast(*edge.table, message);
  }
  for (const std::vector<Wide> &list : costs)
    sum += *min_element(list);
  return sum;
}

/// With x any decision that fits, what it takes is no less than its sum with the price of what it stores, less that of the limit: the price
/// of what fits is no more. Parameters whose storage is not decided cost their price in any case.
void Checker::checkCell(size_t number, const JointTables &tables, const Problem &problem, double perNs) {
  const CertifiedCell &cell = certificate.cells[number];
  std::string name = format(cell.of);
  double ns = static_cast<double>(cell.bound) / perNs, largest = static_cast<double>(tables.getLargest()) / perNs;
  double least = boundMeasure(certificate, cell.of.stages, problem, ns, largest);
  proof.addBound(cell.of.stages, least);
  if (number == certificate.planCell)
    proof.ownBoundNs = ns;
  proof.numRelaxed += tables.getNumRelaxed();
  proof.numDropped += tables.getNumDropped();
  if (cell.tables != tables.getDigest())
    note("{0}: its tables are others, so the certificate is of another model, machine or version", name);
  // A price below 0, or one without a limit, would prove nothing of times.
  if (cell.price.numerator < 0 || certificate.memoryBytes < 0 ||
      (cell.price.numerator > 0 && certificate.memoryBytes == 0))
    return note("{0}: memory cannot have the price {1} here", name, cell.price.numerator);
  if (cell.messages >= certificate.messages.size() || !fits(tables, certificate.messages[cell.messages]))
    return note("{0}: its messages are not for its tables", name);
  Wide bound = sumLeast(tables, cell.price, certificate.messages[cell.messages]) + tables.getConstant() +
               cell.price.of(tables.getFixedBytes()) - limitUnits(cell.price, limitBytes(certificate, cell.of.stages));
  if (bound != cell.bound)
    note("{0}: its bound is said to be {1} units, and its messages prove {2}", name, cell.bound,
         static_cast<int64_t>(std::clamp<Wide>(bound, -kForbiddenCell, kForbiddenCell)));
}

/// The cost of a decision is looked up cell by cell.
void Checker::checkPlan(const JointTables &tables, const Problem &problem, double perNs) {
  const StageCell &stages = certificate.cells[certificate.planCell].of.stages;
  proof.ns = static_cast<double>(certificate.units) / perNs;
  proof.measureNs =
      boundMeasure(certificate, stages, problem, proof.ns, static_cast<double>(tables.getLargest()) / perNs);
  std::optional<int64_t> units = tables.costOf(certificate.options);
  if (!units)
    return note("the options of the plan are no decision on its mesh");
  if (*units != certificate.units)
    note("the plan is said to cost {0} units, and costs {1}", certificate.units, *units);
  int64_t bytes = tables.countStored(certificate.options), limit = limitBytes(certificate, stages);
  if (bytes != certificate.storedBytes)
    note("the plan is said to store {0} bytes, and stores {1}", certificate.storedBytes, bytes);
  if (limit != 0 && bytes > limit)
    note("the plan stores {0} bytes, {1} are allowed", bytes, limit);
}

double cleave::spmd::boundMeasure(const Certificate &certificate, const StageCell &stages, const Problem &problem,
                                  double ns, double largestNs) {
  if (certificate.isStep)
    return stages.boundSlowest(ns, largestNs);
  return certificate.isOfMany ? stages.boundSpan(ns, largestNs)
                              : stages.boundCall(ns, findShareBeside(problem), largestNs);
}

Proof cleave::spmd::checkCertificate(const Certificate &certificate, ArrayRef<SpaceCell> space,
                                     ProblemOfCell makeProblem) {
  Checker checker(certificate, space);
  // One cell after the other: tables are large, and no two are needed at once.
  checker.checkSpace(makeProblem);
  if (certificate.planCell >= certificate.cells.size())
    checker.note("the plan has no mesh of the certificate");
  for (auto [number, cell] : enumerate(certificate.cells)) {
    bool isPlans = number == certificate.planCell, hasProblem = false;
    if (is_contained(space, cell.of))
      hasProblem = makeProblem(cell.of, [&, number = number](const Problem &problem, const SolverOptions &options) {
        if (std::unique_ptr<JointTables> tables = JointTables::create(problem, options)) {
          checker.checkCell(number, *tables, problem, options.costs.perNs);
          if (isPlans)
            checker.checkPlan(*tables, problem, options.costs.perNs);
        }
      });
    if (!hasProblem)
      checker.note("{0}: there is no such problem", format(cell.of));
  }
  Proof &proof = checker.proof;
  if (proof.mistakes.empty() && proof.ns < proof.ownBoundNs * (1 - 1e-12))
    checker.note("the plan is below its own bound");
  return std::move(checker.proof);
}
