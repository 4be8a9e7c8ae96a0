//===- Search.h - the state of one search -----------------------*- C++ -*-===//
//
// What a solver keeps between its steps. Solver.cpp searches, Answer.cpp turns the strategies found into a decision,
// Explain.cpp answers questions afterwards.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_SOLVER_SEARCH_H
#define CLEAVE_LIB_SOLVER_SEARCH_H

#include "CoordinateDescent.h"
#include "cleave/Solver/Solver.h"

namespace cleave::spmd {

/// What an answer comes to.
struct Account {
  std::vector<uint16_t> choices;
  /// Around each value, and inside each op.
  std::vector<int64_t> valueBytes, innerBytes;
  std::vector<double> flops;
  int64_t wireBytes = 0;
};

class Solver::Search {
public:
  Search(const Problem &problem, SolverOptions options);

  bool run();
  /// What every node could be, without any search: annotations of all levels flow, and nodes get their profiles. False if there are errors.
  bool classify();

  std::vector<CauseLink> explain(NodeId node, FactorId factor, AtomId atom) const;
  std::optional<NextBest> findNextBest(ValueId value, AtomId atom);

  const Problem &problem;
  SolverOptions options;
  Decision decision;
  std::vector<SolverError> errors;
  SearchGraph graph;
  Candidates candidates;
  Launches launches;

private:
  friend class JointTables;

  // Solver.cpp: annotations.
  void checkAnnotation(ValueId value, const Annotation &annotation);
  void checkAnnotations();

  // Solver.cpp: levels and stages.
  void prepare();
  void classifyAll();
  Signature makeSignature(NodeId node);
  Profile makeProfile(NodeId node);
  void allowChoices(NodeId node, Profile &profile) const;
  StrategyId adaptPresent(NodeId node, const Profile &profile);
  bool descend(const DescentUnit &unit);
  void runRounds(bool withFallbacks);
  void descendPairs();
  void descendHalves();
  void keepWhatIsSplit();
  bool isStorageDecided(NodeId node) const {
    return graph.node(node).kind == NodeKind::Input && problem.isStorageDecided(graph.node(node).id);
  }
  bool isSmall() const { return problem.numOps() < options.maxOpsForPairs; }
  void runLastStage();
  SolverOptions optionsByBytes() const;
  std::vector<StrategyId> search();
  std::vector<ChoiceId> listChoices(llvm::ArrayRef<StrategyId> of) const;
  std::vector<StrategyId> takeChoices(llvm::ArrayRef<ChoiceId> listed);
  void searchFromBytes(std::vector<StrategyId> &annotated);

  // Answer.cpp.
  void answer();
  void answerOps();
  void answerConstraint(OpId op);
  void answerValues();
  State storedState(ValueId value, llvm::ArrayRef<StateId> wants);
  int64_t reshardBytes(ShapeId shape, StateId from, StateId to);
  int64_t serveBytes(ValueId value, llvm::ArrayRef<StateId> wants);
  void listForced();
  void listForcedAt(OpId op, AtomId atom);
  void listMovedAt(OpId op, AtomId atom);

  // Detours.cpp.
  Account accountFor(std::vector<StrategyId> strategies);
  Account takeAccount(llvm::ArrayRef<StrategyId> of) const;
  void compareWith(const Account &now, const Account &other, Detour::Kind kind, int64_t sign);
  bool mayFewerBytesDo() const;
  void listDetours(const Account *annotated);

  ReshardPlanner planner;
  ReshardCosts costs;
  Strategies strategies;
  Objective objective;
  std::vector<ShapeId> shapeIds;
  std::vector<SignatureId> signatures;
  std::vector<ProfileId> profiles;
  std::vector<StrategyId> present;
  /// Of the last answer: bytes sent around each value.
  std::vector<int64_t> valueBytes;
  std::vector<AtomMask> stays;
  std::unique_ptr<CoordinateDescent> descent;
  llvm::DenseMap<std::pair<uint32_t, uint64_t>, int64_t> knownBytes;
};

} // namespace cleave::spmd

#endif // CLEAVE_LIB_SOLVER_SEARCH_H
