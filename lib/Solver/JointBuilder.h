//===- JointBuilder.h - how joint tables are made ---------------*- C++ -*-===//
//
// JointTables.cpp makes options and edges, JointDecisions.cpp looks decisions up in them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_JOINTBUILDER_H
#define CLEAVE_LIB_SOLVER_JOINTBUILDER_H

#include "Search.h"
#include "cleave/Solver/JointTables.h"

namespace cleave::spmd {

/// A domain, and what is known of its options beside costs.
struct JointOptions {
  JointDomain domain;
  std::vector<StrategyId> strategies;
  /// By any valid strategy the option with the same states.
  llvm::DenseMap<StrategyId, uint16_t> optionOf;
  bool isRelaxed = false;
};

/// The states of a value at one end of edges, and which option has which.
struct Labels {
  std::vector<uint16_t> ofOptions;
  /// Per label an option that has it.
  std::vector<uint16_t> examples;
};

class JointTables::Builder {
public:
  Builder(JointTables &tables, const Problem &problem, const SolverOptions &options, JointLimits limits)
      : tables(tables), problem(problem), limits(limits), search(problem, options) {}

  bool run();
  std::optional<std::vector<uint16_t>> place(const Decision &decision);

private:
  std::vector<llvm::SmallVector<ChoiceId, 8>> listChoices(const Profile &profile) const;
  JointOptions makeOptions(ProfileId id, NodeId node);
  void enumerate(ProfileId id, llvm::ArrayRef<llvm::SmallVector<ChoiceId, 8>> choices, JointOptions &made);
  void relax(ProfileId id, JointOptions &made);
  const JointOptions &optionsOf(NodeId node) const { return *ofNodes[node]; }
  int64_t storedBytes(NodeId node, StrategyId strategy) const;
  const Labels &labelsOf(NodeId node, bool isResult, unsigned place, unsigned twin);
  void addEdge(EdgeId id);
  void addTie(NodeId input, NodeId output);
  /// What a pair of strategies costs: at least, without planning anything; or exactly.
  using EdgeCost = std::function<int64_t(StrategyId, StrategyId, bool isExact)>;
  void addTable(NodeId from, NodeId to, std::array<uint64_t, 4> key, const Labels &rows, const Labels &columns,
                EdgeCost cost);
  void mergeParallel();
  const JointEdge *merge(llvm::ArrayRef<JointEdge> edges);
  int64_t costOfEdge(const SearchEdge &edge, StrategyId from, StrategyId to, EdgeTraits traits, bool isExact);
  int64_t countConstant() const;
  int64_t findLargest() const;
  int64_t countFixed() const;
  void complete(std::vector<uint16_t> &options, llvm::ArrayRef<char> isPlaced) const;

  JointTables &tables;
  const Problem &problem;
  JointLimits limits;
  Solver::Search search;
  std::deque<JointOptions> all;
  /// (profile, whether it is stored) -> its options.
  llvm::DenseMap<std::pair<ProfileId, unsigned>, JointOptions *> known;
  std::vector<JointOptions *> ofNodes;
  /// (options, is a result, place, twin).
  std::map<std::tuple<const JointOptions *, bool, unsigned, unsigned>, Labels> labels;
  /// Null: it would have too many cells.
  std::map<std::pair<std::pair<const Labels *, const Labels *>, std::array<uint64_t, 4>>, std::unique_ptr<JointTable>>
      knownTables;
  /// Several edges between the same two variables as one; the tables of an edge say which it is.
  struct Merged {
    JointTable table;
    Labels rows, columns;
    std::optional<JointEdge> edge;
  };
  std::map<std::vector<const void *>, std::unique_ptr<Merged>> merged;
  size_t numCells = 0;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_JOINTBUILDER_H
