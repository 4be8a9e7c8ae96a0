//===- JointTables.h - all that could be decided, as tables -----*- C++ -*-===//
//
// Passes look at one axis at a time. Here is the whole of what they look at: per node of the search graph every strategy of all atoms
// jointly, and what each costs, by the same objective; per edge what each pair of states at its ends costs. A decision takes the sum of
// one cell of each, and what is proved of the sum is proved of all decisions (Messages.h, docs/finding-plans.md).
//
//   x ──▶ einsum ──▶ add        a variable for each, an edge for each value
//
//   einsum   options 0 .. 124   costs by option       what the op takes
//   edge     rows × columns     cells                 rows: states in which options of the einsum make the value,
//                                                     columns: those in which options of the add take it
//
// Many options make the same state, so that an edge has far fewer rows than its end has options. Nodes that are alike share domains, edges
// tables: equal layers cost what one does. Of options with the same states everywhere only the least expensive is there.
//
// Most pairs of states cost far too much to matter, and planning how to get from one to the other is what takes longest. So a cell is first a
// number that is no more than what it costs; what it costs itself is found out where it matters (`JointTable::refine`).
//
// Where there would be too many strategies, a node is *relaxed*: it has one option, which costs no more than any strategy, and its edges
// cost nothing. Where an edge would have too many cells, it costs nothing. Both make a bound lower and never wrong.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SOLVER_JOINTTABLES_H
#define CLEAVE_SOLVER_JOINTTABLES_H

#include "cleave/Solver/Solver.h"

namespace cleave::spmd {

/// What is too many. All are counted, so that the same tables come out on any machine.
struct JointLimits {
  /// Combinations of choices of one node.
  size_t mostStrategies = size_t(1) << 14;
  /// Of one edge, and of all different ones together.
  size_t mostCells = size_t(1) << 21, mostCellsInAll = size_t(1) << 25;
};

/// The options of a variable.
struct JointDomain {
  /// Units, a price of memory apart.
  std::vector<int64_t> costs;
  /// What a rank stores, of an input whose storage is decided; else empty.
  std::vector<int64_t> storedBytes;
  /// numAtoms choices for each option, one after the other; none where it is relaxed.
  std::vector<uint16_t> choices;

  size_t size() const { return costs.size(); }
};

/// Row by row; `kForbiddenCell` or more for what must not be.
struct JointTable {
  uint32_t rows = 0, columns = 0;
  /// What is not exact costs so much at least.
  std::vector<int64_t> cells;
  /// By cell; empty: all are.
  std::vector<char> exact;
  /// What a cell costs.
  std::function<int64_t(uint32_t row, uint32_t column)> costOf;

  bool isExact(size_t cell) const { return exact.empty() || exact[cell]; }
  /// Makes a cell exact, and gives it.
  int64_t refine(size_t cell);
};
inline constexpr int64_t kForbiddenCell = int64_t(1) << 58;

struct JointEdge {
  /// Variables; never the same.
  uint32_t from, to;
  JointTable *table;
  /// Per option of `from` its row, of `to` its column.
  const std::vector<uint16_t> *rows, *columns;

  /// At two options.
  size_t findCell(uint16_t ofFrom, uint16_t ofTo) const {
    return size_t((*rows)[ofFrom]) * table->columns + (*columns)[ofTo];
  }
  int64_t getCell(uint16_t ofFrom, uint16_t ofTo) const { return table->cells[findCell(ofFrom, ofTo)]; }
};

/// A sum of tables: an option for each variable takes a cost of each, and a cell of each edge.
struct JointGraph {
  std::vector<const JointDomain *> variables;
  std::vector<JointEdge> edges;
};

class JointTables {
public:
  /// Null where the problem has errors. `problem` must outlive them. Precondition: costs are times without surcharges (`Optimize::Time`).
  static std::unique_ptr<JointTables> create(const Problem &problem, SolverOptions options, JointLimits limits = {});
  ~JointTables();

  const JointGraph &getGraph() const { return graph; }
  /// Units for what there is in any case: kernels other than those of products start however ops are split.
  int64_t getConstant() const { return constant; }
  /// Units that the op which takes longest takes at least, however it is split.
  int64_t getLargest() const { return largest; }
  /// Bytes that a rank stores at least of parameters whose storage is not decided.
  int64_t getFixedBytes() const { return fixedBytes; }
  /// Nodes with one option for all of their strategies, and edges that cost nothing for having too many cells.
  unsigned getNumRelaxed() const { return numRelaxed; }
  unsigned getNumDropped() const { return numDropped; }
  /// Of all costs, sizes, and cells as they were before any was refined.
  uint64_t getDigest() const { return digest; }

  /// The options that ops and decided inputs have by a decision of this problem, or of one with the same ops and other annotations; what is
  /// between them (hubs, outputs) as is least expensive. Nothing if an op does what no option does.
  std::optional<std::vector<uint16_t>> place(const Decision &decision) const;
  /// Units of one option for each variable, the constant included; nothing for what must not be, or is no option.
  std::optional<int64_t> costOf(llvm::ArrayRef<uint16_t> options) const;
  /// What a rank then stores, `getFixedBytes` included. Precondition: they are options.
  int64_t countStored(llvm::ArrayRef<uint16_t> options) const;

private:
  JointTables();
  class Builder;
  uint64_t computeDigest() const;

  std::unique_ptr<Builder> builder;
  JointGraph graph;
  int64_t constant = 0, largest = 0, fixedBytes = 0;
  unsigned numRelaxed = 0, numDropped = 0;
  uint64_t digest = 0;
};

} // namespace cleave::spmd

#endif // CLEAVE_SOLVER_JOINTTABLES_H
