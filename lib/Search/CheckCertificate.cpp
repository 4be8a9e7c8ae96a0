//===- CheckCertificate.cpp - does a proof hold? --------------------------===//
//
// What a message moves to a node it takes from the edge: sums of all tables stay what they are, so that what least cells add up to is
// below every decision, whatever the messages are. Sums are of 128 bits: no numbers in a file make them overflow.
//
//   per mesh   tables from the model ─▶ messages move ─▶ least cells ─▶ their sum, less the price of the limit  =  what is claimed
//   its plan   options ─▶ cells of the same tables ─▶ their sum  =  what is claimed
//   the space  every mesh is there, once
//
// A certificate that claims too little is refused as well: then something in it is not what was written.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/CheckCertificate.h"
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
  Checker(const Certificate &certificate, ArrayRef<std::vector<int64_t>> space)
      : certificate(certificate), space(space) {}

  void checkSpace();
  void checkCell(size_t number, const JointTables &tables, double perNs);
  void checkPlan(const JointTables &tables, double perNs);
  template <typename... Args> void note(const char *format, Args &&...args) {
    proof.mistakes.push_back(formatv(format, std::forward<Args>(args)...));
  }

  Proof proof;

private:
  bool fits(const JointTables &tables, const Messages &messages) const;
  Wide sumLeast(const JointTables &tables, MemoryPrice price, const Messages &messages) const;

  const Certificate &certificate;
  ArrayRef<std::vector<int64_t>> space;
};
} // namespace

static std::string formatSizes(ArrayRef<int64_t> sizes) {
  return formatv("{0:$[x]}", make_range(sizes.begin(), sizes.end()));
}

/// Every mesh of the space once, and no other.
void Checker::checkSpace() {
  for (const std::vector<int64_t> &mesh : space)
    if (none_of(certificate.cells, [&](const CertifiedCell &cell) { return cell.mesh == mesh; }))
      note("mesh {0} is missing: nothing is proved of it", formatSizes(mesh));
  for (auto [number, cell] : enumerate(certificate.cells)) {
    if (!is_contained(space, cell.mesh))
      note("mesh {0} is none of {1} devices", formatSizes(cell.mesh), certificate.devices);
    if (any_of(ArrayRef(certificate.cells).take_front(number),
               [&, &mesh = cell.mesh](const CertifiedCell &other) { return other.mesh == mesh; }))
      note("mesh {0} is there twice", formatSizes(cell.mesh));
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
void Checker::checkCell(size_t number, const JointTables &tables, double perNs) {
  const CertifiedCell &cell = certificate.cells[number];
  std::string mesh = formatSizes(cell.mesh);
  double ns = static_cast<double>(cell.bound) / perNs;
  proof.boundNs = number == 0 ? ns : std::min(proof.boundNs, ns);
  proof.numRelaxed += tables.getNumRelaxed();
  proof.numDropped += tables.getNumDropped();
  if (cell.tables != tables.getDigest())
    note("mesh {0}: its tables are others, so the certificate is of another model, machine or version", mesh);
  // A price below 0, or one without a limit, would prove nothing of times.
  if (cell.price.numerator < 0 || certificate.memoryBytes < 0 ||
      (cell.price.numerator > 0 && certificate.memoryBytes == 0))
    return note("mesh {0}: memory cannot have the price {1} here", mesh, cell.price.numerator);
  if (cell.messages >= certificate.messages.size() || !fits(tables, certificate.messages[cell.messages]))
    return note("mesh {0}: its messages are not for its tables", mesh);
  Wide bound = sumLeast(tables, cell.price, certificate.messages[cell.messages]) + tables.getConstant() +
               cell.price.of(tables.getFixedBytes()) - limitUnits(cell.price, certificate.memoryBytes);
  if (bound != cell.bound)
    note("mesh {0}: its bound is said to be {1} units, and its messages prove {2}", mesh, cell.bound,
         static_cast<int64_t>(std::clamp<Wide>(bound, -kForbiddenCell, kForbiddenCell)));
}

/// The cost of a decision is looked up cell by cell.
void Checker::checkPlan(const JointTables &tables, double perNs) {
  proof.ns = static_cast<double>(certificate.units) / perNs;
  std::optional<int64_t> units = tables.costOf(certificate.options);
  if (!units)
    return note("the options of the plan are no decision on its mesh");
  if (*units != certificate.units)
    note("the plan is said to cost {0} units, and costs {1}", certificate.units, *units);
  int64_t bytes = tables.countStored(certificate.options);
  if (bytes != certificate.storedBytes)
    note("the plan is said to store {0} bytes, and stores {1}", certificate.storedBytes, bytes);
  if (certificate.memoryBytes != 0 && bytes > certificate.memoryBytes)
    note("the plan stores {0} bytes, {1} are allowed", bytes, certificate.memoryBytes);
}

Proof cleave::spmd::checkCertificate(const Certificate &certificate, ArrayRef<std::vector<int64_t>> space,
                                     ProblemOfMesh makeProblem) {
  Checker checker(certificate, space);
  // One mesh after the other: tables are large, and no two are needed at once.
  checker.checkSpace();
  if (certificate.planCell >= certificate.cells.size())
    checker.note("the plan has no mesh of the certificate");
  for (auto [number, cell] : enumerate(certificate.cells)) {
    bool isPlans = number == certificate.planCell, hasProblem = false;
    if (is_contained(space, cell.mesh))
      hasProblem = makeProblem(cell.mesh, [&, number = number](const Problem &problem, const SolverOptions &options) {
        if (std::unique_ptr<JointTables> tables = JointTables::create(problem, options)) {
          checker.checkCell(number, *tables, options.costs.perNs);
          if (isPlans)
            checker.checkPlan(*tables, options.costs.perNs);
        }
      });
    if (!hasProblem)
      checker.note("mesh {0}: there is no such problem", formatSizes(cell.mesh));
  }
  Proof &proof = checker.proof;
  if (proof.mistakes.empty() && proof.ns < proof.boundNs * (1 - 1e-12))
    checker.note("the plan is below its own bound");
  return std::move(checker.proof);
}
