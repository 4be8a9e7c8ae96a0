//===- Collective.h - what ranks of a group can do together -----*- C++ -*-===//
//
// The one list of kinds of collectives: the compiler and the runtime, which sees neither MLIR nor LLVM, both ask it what a kind
// is called, how its ranks reach each other, and what it does to a tensor of n ranks:
//
//               operand      result
//   reduces     n terms      their combination
//   gathers     a piece      n pieces, put together
//   slices      n pieces     the rank's own one
//
// A kind may do several of these: a reduce_scatter reduces and slices, an all_to_all gathers and slices. Whose result has which
// shape, which bytes are sent, and which operand has parts, follows from them. CONTRIBUTING.md says where else a kind is named.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_COLLECTIVE_H
#define CLEAVE_PROGRAM_COLLECTIVE_H

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cleave::program {

/// How ranks of a group reach each other, which is what a collective takes beside its bytes.
enum class Traffic : uint8_t {
  Ring,     ///< from neighbor to neighbor, once around
  TwoRings, ///< twice
  Pairwise, ///< every rank to every other
  Direct,   ///< point to point, or nothing is sent: exchanges, messages, barriers
};

// Those that take a tensor and give one: name, word, traffic, and what they do. In the order of the program file (Program.fbs): a
// new one goes to the end.
#define CLEAVE_COLLECTIVES(KIND)                                                                                       \
  KIND(AllReduce, "all_reduce", TwoRings, kReduces)                                                                    \
  KIND(AllGather, "all_gather", Ring, kGathers)                                                                        \
  KIND(ReduceScatter, "reduce_scatter", Ring, kReduces | kSlices)                                                      \
  KIND(AllToAll, "all_to_all", Pairwise, kGathers | kSlices)
// Those that do not: they only wait for each other, or send pieces that a list says. Their numbers are in no file but for a barrier's.
#define CLEAVE_MEETINGS(KIND)                                                                                          \
  KIND(Barrier, "barrier", Direct, kNothing)                                                                           \
  KIND(Exchange, "exchange", Direct, kNothing)

enum class CollectiveKind : uint8_t {
#define CLEAVE_NAME(name, word, traffic, does) name,
  CLEAVE_COLLECTIVES(CLEAVE_NAME) CLEAVE_MEETINGS(CLEAVE_NAME)
#undef CLEAVE_NAME
};

/// What is known of a kind.
struct CollectiveTraits {
  enum Does : uint8_t { kNothing = 0, kReduces = 1, kGathers = 2, kSlices = 4 };

  const char *word;
  Traffic traffic;
  uint8_t does;
  bool hasTensors; ///< an operand and a result for each tensor
};

namespace detail {
/// In the order of the enum.
struct CollectiveTable : CollectiveTraits {
  static constexpr CollectiveTraits kRows[] = {
#define CLEAVE_ROW(name, word, traffic, does) {word, Traffic::traffic, does, true},
      CLEAVE_COLLECTIVES(CLEAVE_ROW)
#undef CLEAVE_ROW
#define CLEAVE_ROW(name, word, traffic, does) {word, Traffic::traffic, does, false},
          CLEAVE_MEETINGS(CLEAVE_ROW)
#undef CLEAVE_ROW
  };
  static constexpr size_t kSize = sizeof(kRows) / sizeof(kRows[0]);
};
} // namespace detail

constexpr bool isKnown(CollectiveKind kind) { return static_cast<size_t>(kind) < detail::CollectiveTable::kSize; }
/// Precondition: it is a kind.
constexpr const CollectiveTraits &getTraits(CollectiveKind kind) {
  assert(isKnown(kind) && "no kind");
  return detail::CollectiveTable::kRows[static_cast<size_t>(kind)];
}
/// `all_reduce`, in messages, reports, IR and docs/program-file.md; `?` for what is no kind.
constexpr const char *getWord(CollectiveKind kind) { return isKnown(kind) ? getTraits(kind).word : "?"; }

constexpr bool hasTensors(CollectiveKind kind) { return getTraits(kind).hasTensors; }
constexpr bool reduces(CollectiveKind kind) { return getTraits(kind).does & CollectiveTraits::kReduces; }
constexpr bool gathers(CollectiveKind kind) { return getTraits(kind).does & CollectiveTraits::kGathers; }
constexpr bool slices(CollectiveKind kind) { return getTraits(kind).does & CollectiveTraits::kSlices; }
/// Operand and result are alike, and may be the same bytes: an all_reduce.
constexpr bool keepsShape(CollectiveKind kind) { return hasTensors(kind) && !gathers(kind) && !slices(kind); }
/// One of operand and result has a piece for each rank, and the other one of them: that may lie in its own place among them.
constexpr bool hasOwnPiece(CollectiveKind kind) { return gathers(kind) != slices(kind); }
/// Of n ranks each sends (n-1)/n of the larger of operand and result so often.
constexpr int getTurns(CollectiveKind kind) { return getTraits(kind).traffic == Traffic::TwoRings ? 2 : 1; }
/// The larger one is the result; else it is the operand, or both are alike.
constexpr bool hasLargerResult(CollectiveKind kind) { return gathers(kind) && !slices(kind); }

/// The kind that has a word; nothing for others, as `permute`, which is an exchange in a program.
constexpr std::optional<CollectiveKind> findCollective(std::string_view word) {
  for (size_t kind = 0; kind < detail::CollectiveTable::kSize; ++kind)
    if (word == detail::CollectiveTable::kRows[kind].word)
      return static_cast<CollectiveKind>(kind);
  return std::nullopt;
}

/// How ranks reach each other in an op of spmd or exec that is called so: what is no kind of its own sends pieces.
constexpr Traffic getTraffic(std::string_view word) {
  std::optional<CollectiveKind> kind = findCollective(word);
  return kind ? getTraits(*kind).traffic : Traffic::Direct;
}

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_COLLECTIVE_H
