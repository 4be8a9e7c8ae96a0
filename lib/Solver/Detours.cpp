//===- Detours.cpp - where another decision sends less, or would have sent more --===//
//
// Two answers to one problem are compared: what ops do, what is sent around each value and inside each op. Ops that do
// otherwise, and the values between them, are *places*: a layer whose attention goes by heads, a pair of dots whose weights
// stay. The bytes of a place are told for both answers; all places together differ by what the answers differ by.
//
// The answer is held against two others: what annotations alone say, before fallbacks (another strategy was taken than the one that
// the splits name), and what deciding by bytes alone says (compute is more expensive than bytes, or a strategy is kept). The latter is
// a second search, hence for graphs that are small enough only.
//
//===----------------------------------------------------------------------===//
#include "Search.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace cleave::spmd;
using namespace llvm;

/// Of a hundred bytes that are sent, those that a remark is worth.
static constexpr int64_t kLeastShare = 100;

//===----------------------------------------------------------------------===//
// Accounts
//===----------------------------------------------------------------------===//

/// Answers anew for other strategies than those at present; the present ones have to be answered for again afterwards.
Account Solver::Search::accountFor(std::vector<StrategyId> of) {
  std::swap(present, of);
  answerOps();
  answerValues();
  std::swap(present, of);
  return takeAccount(of);
}

Account Solver::Search::takeAccount(ArrayRef<StrategyId> of) const {
  Account account{decision.choices, valueBytes, decision.innerBytes, {}, decision.wireBytes};
  for (OpId op = 0; op < problem.numOps(); ++op)
    account.flops.push_back(problem.isConstraint(op) ? 0 : strategies[of[graph.nodeOfOp(op)]].flops);
  return account;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Ops that differ are of one place if a value lies between them, or one that both take lies otherwise.
static std::vector<Detour> findPlaces(const Problem &problem, const Account &now, const Account &other) {
  size_t numOps = problem.numOps(), numAtoms = problem.getMesh().numAtoms();
  auto opDiffers = [&](OpId op) {
    auto choicesOf = [&](const Account &account) {
      return ArrayRef<uint16_t>(account.choices).slice(op * numAtoms, numAtoms);
    };
    return choicesOf(now) != choicesOf(other) || now.innerBytes[op] != other.innerBytes[op];
  };
  auto bytesDiffer = [&](ValueId value) { return now.valueBytes[value] != other.valueBytes[value]; };
  IntEqClasses classes(numOps + problem.numValues());
  for (OpId op = 0; op < numOps; ++op) {
    bool differs = opDiffers(op);
    auto join = [&](ValueId value) {
      bool isMade = problem.producer(value) != kNone;
      if (differs ? isMade || bytesDiffer(value) : bytesDiffer(value) && problem.producer(value) == op)
        classes.join(op, numOps + value);
    };
    for_each(problem.operands(op), join);
    for_each(problem.results(op), join);
  }
  classes.compress();
  std::vector<Detour> places(classes.getNumClasses());
  for (OpId op = 0; op < numOps; ++op) {
    Detour &place = places[classes[op]];
    if (opDiffers(op))
      place.ops.push_back(op);
    place.bytes += now.innerBytes[op];
    place.otherBytes += other.innerBytes[op];
    place.flops += now.flops[op];
    place.otherFlops += other.flops[op];
  }
  for (ValueId value = 0; value < problem.numValues(); ++value) {
    Detour &place = places[classes[numOps + value]];
    place.bytes += now.valueBytes[value];
    place.otherBytes += other.valueBytes[value];
    // All do the same, and a value is returned otherwise: the place is where it is made.
    if (place.ops.empty() && bytesDiffer(value) && problem.producer(value) != kNone)
      place.ops.push_back(problem.producer(value));
  }
  llvm::erase_if(places, [](const Detour &place) { return place.ops.empty(); });
  return places;
}

/// Equal places, those of equal layers, become one that counts them.
static std::vector<Detour> mergeEqual(const Problem &problem, std::vector<Detour> places) {
  std::map<std::tuple<size_t, int64_t, int64_t, double, double>, size_t> known;
  std::vector<Detour> merged;
  for (Detour &place : places) {
    hash_code rules = hash_combine_range(map_range(place.ops, [&](OpId op) { return problem.ruleOf(op); }));
    auto [entry, isNew] = known.try_emplace(
        {static_cast<size_t>(rules), place.bytes, place.otherBytes, place.flops, place.otherFlops}, merged.size());
    if (isNew)
      merged.push_back(std::move(place));
    else
      ++merged[entry->second].numPlaces;
  }
  return merged;
}

/// Notes the places where `sign` times the bytes that are sent more than in `other` is worth a word.
void Solver::Search::compareWith(const Account &now, const Account &other, Detour::Kind kind, int64_t sign) {
  for (Detour &place : mergeEqual(problem, findPlaces(problem, now, other))) {
    int64_t more = sign * place.numPlaces * (place.bytes - place.otherBytes);
    if (more <= 0 || more < std::max(now.wireBytes, other.wireBytes) / kLeastShare)
      continue;
    place.kind = kind;
    decision.detours.push_back(std::move(place));
  }
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// Deciding by bytes alone can be no better where nothing is sent, and is the same where no flop has a cost.
bool Solver::Search::mayFewerBytesDo() const {
  return options.lookForFewerBytes && isSmall() && decision.wireBytes > 0;
}

void Solver::Search::listDetours(const Account *annotated) {
  if (!annotated && !mayFewerBytesDo())
    return;
  Account now = takeAccount(present);
  if (annotated)
    compareWith(now, *annotated, Detour::Kind::OtherStrategy, /*sign=*/-1);
  if (!mayFewerBytesDo())
    return;
  SolverOptions byBytes = optionsByBytes();
  byBytes.lookForFewerBytes = byBytes.keepParameters = false;
  byBytes.maxOpsForPairs = 0; // What it finds is told, not taken.
  Search search(problem, std::move(byBytes));
  search.run();
  if (search.decision.wireBytes < decision.wireBytes)
    compareWith(now, search.takeAccount(search.present), Detour::Kind::SendsMore, /*sign=*/1);
}
