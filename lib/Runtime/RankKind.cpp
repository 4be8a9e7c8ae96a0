//===- RankKind.cpp - where ranks are, and what connects them -------------===//
//
// One row for each kind; what is asked of them is worked out from the rows.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/RankKind.h"
#include "OwnLibraries.h"
#include "cleave/Runtime/Threads.h"

#include <algorithm>

using namespace cleave::runtime;
using cleave::program::concat;

namespace program = cleave::program;

/// mpirun's ranks, and those that srun starts with PMIx, have MPI.
static bool hasMpi(const Launch &launch, const GetEnv &getEnv) {
  std::string launcher = launch.launcher;
  return launcher == "mpirun" || launcher == "mpiexec" || (launcher == "srun" && getEnv("PMIX_RANK"));
}

static bool isAny(const Launch &, const GetEnv &) { return true; }

const std::array<RankKindTraits, kNumRankKinds> &cleave::runtime::getRankKinds() {
  // Open MPI's own plugins look for its symbols in all that is loaded.
  static constexpr std::array<RankKindTraits, kNumRankKinds> kKinds = {{
      {"threads", nullptr, nullptr, nullptr, false, false, nullptr},
      {"mpi", nullptr, "ranks under MPI", "CLEAVE_MPI_LIBRARY", true, false, hasMpi},
      {"tcp", "without MPI", "ranks without MPI", "CLEAVE_TCP_LIBRARY", false, true, isAny},
  }};
  return kKinds;
}

const RankKindTraits &cleave::runtime::getTraits(RankKind kind) { return getRankKinds()[size_t(kind)]; }

std::optional<RankKind> cleave::runtime::findRankKind(const std::string &word) {
  for (size_t kind = 0; kind < kNumRankKinds; ++kind)
    if (word == getRankKinds()[kind].word)
      return RankKind(kind);
  return std::nullopt;
}

std::string cleave::runtime::listRankKinds() {
  std::string text;
  for (size_t kind = 0; kind < kNumRankKinds; ++kind)
    text += concat(kind == 0 ? "" : kind + 1 == kNumRankKinds ? " or " : ", ", getRankKinds()[kind].word);
  return text;
}

std::string cleave::runtime::describeRankKinds() {
  std::string here, several;
  for (const RankKindTraits &kind : getRankKinds()) {
    std::string &text = kind.areProcesses() ? several : here;
    text += concat(text.empty() ? "" : ", ", kind.word, kind.note ? concat(" (", kind.note, ")") : "");
  }
  return here + "; or this process is one rank of several: " + several;
}

/// The last one suits any launcher, and can be told.
RankKind cleave::runtime::pickRankKind(const Launch &launch, bool hasRendezvous, const GetEnv &getEnv) {
  auto fits = [&](const RankKindTraits &kind) {
    return kind.areProcesses() && (!hasRendezvous || kind.takesRendezvous) && kind.suits(launch, getEnv);
  };
  const auto &kinds = getRankKinds();
  return RankKind(std::find_if(kinds.begin(), kinds.end(), fits) - kinds.begin());
}

std::vector<std::unique_ptr<Communicator>> cleave::runtime::openRanks(RankKind kind, uint32_t ranks,
                                                                      const Options &options,
                                                                      const std::string &rendezvous, Status &status) {
  const RankKindTraits &traits = getTraits(kind);
  if (!traits.areProcesses())
    return makeThreads(int(ranks), options);
  using Open = Communicator *(*)(const Options &, const std::string &, Status &);
  std::vector<std::unique_ptr<Communicator>> opened;
  program::Result<void *> open = openOwn(traits.word, traits.variable, traits.sharesSymbols);
  if (!open) {
    Failure failure;
    failure.cause = Cause::System;
    failure.detail = concat(traits.processes, " need libcleave_", traits.word, ": ", open.getError().message);
    status = failure;
  } else if (Communicator *own = reinterpret_cast<Open>(*open)(options, rendezvous, status)) {
    opened.emplace_back(own);
  }
  return opened;
}
