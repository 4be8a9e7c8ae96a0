//===- Certificate.h - a proof of how good a plan is ------------*- C++ -*-===//
//
// For every cell of a space a number that no decision on it is below, and what proves it: messages between the tables of the solver
// (Solver/Messages.h), and where memory is limited a price on each stored byte. With x any decision that stores no more than the limit,
//
//   time(x)  >=  time(x) + price * (stored(x) - limit)  >=  least sum of all tables - price * limit  >=  what least cells add up to
//
// A cell with stages is the program of one microbatch, on the mesh of a stage: all stages together do it, and their limits add up. What a
// call then takes follows from that (StageCells.h).
//
// The plan is there too, as the decision that it comes to, an option for each variable, and its price in the same tables. The gap between
// the two is proved by sums alone (CheckCertificate.h). As a file it is JSON, whose lists of numbers are packed (docs/finding-plans.md).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SEARCH_CERTIFICATE_H
#define CLEAVE_SEARCH_CERTIFICATE_H

#include "cleave/Search/StageCells.h"
#include "cleave/Solver/Messages.h"
#include "llvm/Support/Error.h"
#include <map>

namespace cleave::spmd {

/// Stages, microbatches, and the mesh of a stage.
struct SpaceCell {
  StageCell stages;
  std::vector<int64_t> mesh;

  bool operator==(const SpaceCell &other) const { return stages == other.stages && mesh == other.mesh; }
};

/// What is proved of one cell.
struct CertifiedCell {
  SpaceCell of;
  /// Of memory; 0 where there is no limit.
  MemoryPrice price;
  /// Number of its messages; meshes with equal tables have the same.
  uint32_t messages = 0;
  /// Units that no decision within the limit is below, launches that there are in any case included: of one microbatch.
  int64_t bound = 0;
  /// Of its tables: others mean another model, machine or version.
  uint64_t tables = 0;
};

struct Certificate {
  /// As they were typed or found, for whoever checks.
  std::string model, cluster;
  std::map<std::string, int64_t> dims;
  int64_t devices = 0;
  /// That are looked at, where devices are given.
  CountRange stages, microbatches;
  /// What is to be least is the time of a call where calls follow each other.
  bool isOfMany = false;
  /// The model is a step of training: costs are of all of its microbatches, and of its update.
  bool isStep = false;
  /// Bytes that a rank may store; 0: any number.
  int64_t memoryBytes = 0;
  /// The text of the plan, the number of the cell whose tables it is priced in, its options there, and what it costs and stores.
  std::string plan;
  uint32_t planCell = 0;
  std::vector<uint16_t> options;
  int64_t units = 0, storedBytes = 0;
  /// What is predicted of a plan with stages, nanoseconds of what is to be least, idle time and messages included. 0 of one stage.
  double predictedNs = 0;

  std::vector<CertifiedCell> cells;
  std::vector<Messages> messages;
};

/// A whole file, with a line for each cell.
std::string formatCertificate(const Certificate &certificate);
/// Errors: no JSON, a field that is missing or of another kind. What is proved is not looked at.
llvm::Expected<Certificate> parseCertificate(llvm::StringRef text);

/// What is found of one mesh.
struct CellBound {
  MemoryPrice price;
  /// See `CertifiedCell::bound`.
  int64_t bound = 0;
  Messages messages;
  unsigned passes = 0;
};

/// Bytes that the decision of a cell may store: ranks of all stages have as much each. 0: any number.
int64_t limitBytes(const Certificate &certificate, const StageCell &stages);

/// The best bound that is found of decisions that store at most `mostBytes`; 0: any number. `reach`: units of some of them, if one is known.
CellBound boundCell(const JointTables &tables, int64_t mostBytes, int64_t reach = kForbiddenCell);

/// Units for `mostBytes` at that price, rounded up: what the limit takes off a bound.
__int128 limitUnits(MemoryPrice price, int64_t mostBytes);

} // namespace cleave::spmd

#endif // CLEAVE_SEARCH_CERTIFICATE_H
