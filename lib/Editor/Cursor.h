//===- Cursor.h - where in a plan a cursor is -------------------*- C++ -*-===//
//
// A reader of YAML that takes every text: what is being typed is seldom a plan. It knows the keys around a place, in both styles,
//
//   shard:
//     - {tensor: x, dims: [da|          the value of `dims`, in a rule
//     - tensor: y
//       wh|                             a key of a rule
//
// and begins anew at each line that can only be the next entry, so that a bracket which is open ends there.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EDITOR_CURSOR_H
#define CLEAVE_LIB_EDITOR_CURSOR_H

#include "cleave/Plan/PlanKeys.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace cleave::editor {

/// A word of a plan, or the place of one, and what it is of. Views of the text.
struct Cursor {
  /// Of the word, without quotes; both are the cursor where there is none.
  size_t start = 0, end = 0;
  llvm::StringRef word;
  bool isQuoted = false;
  /// The word is a key, or may become one.
  bool isKey = false;
  /// Of the mapping that the word is in; nothing: of none that plans have.
  std::optional<spmd::PlanSection> section;
  /// Whose value the word is; null: it is a key, or the key is the user's own (`name`).
  const spmd::PlanKey *key = nullptr;
  llvm::StringRef name;
  /// Of keys around it: of this mapping those in front of the word.
  std::vector<llvm::StringRef> present;
  /// Where the innermost entry of a list that is a mapping begins: a rule.
  size_t entryStart = 0;
  /// In brackets, where a key must not be written on a line of its own.
  bool isInFlow = false;
};

/// The word at `offset`, or in front of it.
Cursor findCursor(llvm::StringRef text, size_t offset);

/// Calls `use` with every word that is a key of a mapping `section`, in order, and what stands behind its colon if that is a word.
void forEachKey(llvm::StringRef text, spmd::PlanSection section,
                llvm::function_ref<void(const Cursor &key, llvm::StringRef value)> use);

} // namespace cleave::editor

#endif // CLEAVE_LIB_EDITOR_CURSOR_H
