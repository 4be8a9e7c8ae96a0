//===- RankKind.h - where ranks are, and what connects them -----*- C++ -*-===//
//
// The registry of communicators. Ranks are threads of this process, or this process is one of those that a launcher started; then a
// library of its own connects them (libcleave_WORD), which is opened by name. Who offers a choice, reads one, takes one by itself, or
// opens one asks here: a new kind is a row of `RankKind.cpp` and its library.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_RANKKIND_H
#define CLEAVE_RUNTIME_RANKKIND_H

#include "cleave/Runtime/Communicator.h"
#include "cleave/Runtime/Launch.h"
#include <array>

namespace cleave::runtime {

/// The numbers are those of cleave/runtime.h.
enum class RankKind : uint8_t { Threads, Mpi, Tcp };
inline constexpr size_t kNumRankKinds = 3;

/// What is known of a kind.
struct RankKindTraits {
  const char *word; ///< of `--ranks`, and of the library
  const char *note; ///< behind the word in help; null: none
  /// Whose ranks are processes: what they are called where their library is missing. Null: they are threads of this process.
  const char *processes;
  const char *variable;                                      ///< names another library
  bool sharesSymbols;                                        ///< all that is loaded later sees those of the library
  bool takesRendezvous;                                      ///< can be told where processes find rank 0
  bool (*suits)(const Launch &launch, const GetEnv &getEnv); ///< may connect what this launcher started

  bool areProcesses() const { return processes; }
};

/// By number.
const std::array<RankKindTraits, kNumRankKinds> &getRankKinds();
const RankKindTraits &getTraits(RankKind kind);
/// The kind that has a word; nothing if none has.
std::optional<RankKind> findRankKind(const std::string &word);
/// `threads, mpi or tcp`
std::string listRankKinds();
/// The same as help: `threads; or this process is one rank of several: mpi, tcp (without MPI)`
std::string describeRankKinds();
/// For whoever does not say: the first kind of process that suits the launcher, and, where it is said where processes meet, can be told.
RankKind pickRankKind(const Launch &launch, bool hasRendezvous, const GetEnv &getEnv);

/// The communicators of the ranks that this process runs: one for each of `ranks` threads, or its own. Empty, and a failure, where the
/// library is missing, or a rank does not come.
std::vector<std::unique_ptr<Communicator>> openRanks(RankKind kind, uint32_t ranks, const Options &options,
                                                     const std::string &rendezvous, Status &status);

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_RANKKIND_H
