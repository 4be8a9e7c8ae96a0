//===- NamePattern.h - how a plan picks tensors and nodes -------*- C++ -*-===//
//
// Names of tensors and nodes are matched whole, by a glob (`*` any text, `?` one character, `[abc]` one of these,
// `{a,b}` either) or, after `re:`, by a POSIX extended regular expression. A name that is the pattern, character by
// character, always matches, whatever characters it holds.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_NAMEPATTERN_H
#define CLEAVE_PLAN_NAMEPATTERN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::spmd {

class NamePattern {
public:
  /// Parses `text`. Nothing, and the reason in `error`, if it is no valid pattern or would expand beyond reason.
  static std::optional<NamePattern> create(llvm::StringRef text, std::string &error);

  bool matches(llvm::StringRef name) const;
  /// From now on this does not match what `other` matches.
  void exclude(NamePattern other);
  /// True if only one name can match, the pattern's text: a table lookup will do.
  bool isLiteral() const;
  llvm::StringRef getText() const;

private:
  struct Matcher;
  std::shared_ptr<const Matcher> matcher;
  std::vector<NamePattern> exclusions;
};

/// Up to `count` of `names` that come closest to the pattern `wanted`, nearest first: the fewest characters to insert,
/// remove or replace, `*` standing for any text. Names that are too far away (a third of the text) are left out.
std::vector<std::string> findNearestNames(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names,
                                          size_t count = 3);

/// `; did you mean 'a' or 'b'?`, or nothing if no name comes close.
std::string suggestNames(llvm::StringRef wanted, llvm::ArrayRef<llvm::StringRef> names);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_NAMEPATTERN_H
