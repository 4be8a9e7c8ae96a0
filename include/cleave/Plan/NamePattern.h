//===- NamePattern.h - how a plan picks tensors and nodes -------*- C++ -*-===//
//
// Names of tensors and nodes are matched whole, by a glob (`*` any text, `?` one character, `[abc]` one of these,
// `{a,b}` either) or, after `re:`, by a regular expression, as RE2 has them. A name that is the pattern, character by
// character, always matches, whatever characters it holds.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_NAMEPATTERN_H
#define CLEAVE_PLAN_NAMEPATTERN_H

#include "cleave/Support/Suggest.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::spmd {

class NamePattern {
public:
  /// Parses `text`. An error if it is no valid pattern, or would expand beyond reason.
  static llvm::Expected<NamePattern> create(llvm::StringRef text);

  /// Takes time that is linear in the name.
  bool matches(llvm::StringRef name) const;
  /// From now on this does not match what `other` matches.
  void exclude(NamePattern other);
  /// True if only one name can match, the pattern's text: a table lookup will do.
  bool isLiteral() const;
  /// The same of a text that may be a pattern.
  static bool isLiteral(llvm::StringRef text);
  llvm::StringRef getText() const;
  /// Text that is part of every name that matches, the pattern itself apart; empty: nothing is known.
  llvm::StringRef getRequired() const;
  /// Of a glob with `{a,b}` each alternative, and the glob with this one in place of all of its group.
  std::vector<std::pair<std::string, NamePattern>> getAlternatives() const;

private:
  struct Matcher;
  std::shared_ptr<const Matcher> matcher;
  std::vector<NamePattern> exclusions;
};

/// Names, and where three characters in a row stand in which of them: of many names a pattern is held only against those that
/// have its rarest ones.
class NameIndex {
public:
  /// The names must outlive the index.
  explicit NameIndex(std::vector<llvm::StringRef> names);

  /// Calls `use` with the number of each name that matches, in order. True if there is one.
  bool forEachMatch(const NamePattern &pattern, llvm::function_ref<void(size_t)> use) const;
  llvm::ArrayRef<llvm::StringRef> getNames() const { return names; }

private:
  void build() const;

  std::vector<llvm::StringRef> names;
  llvm::DenseMap<llvm::StringRef, size_t> numbers;
  /// Made once it pays.
  mutable unsigned lookups = 0;
  mutable llvm::DenseMap<uint32_t, std::vector<uint32_t>> holders;
};

/// For a pattern that matches none of `names`: those that come close, and the pattern with a `*` in front, behind, or both, if
/// that matches some: `; try '*query*', which matches 'layer.0.query' and 3 more`.
std::string suggestPatterns(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_NAMEPATTERN_H
