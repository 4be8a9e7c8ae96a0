//===- Layout.h - where a weight's elements lie, and as what ----*- C++ -*-===//
#ifndef CLEAVE_LIB_RUNTIME_LAYOUT_H
#define CLEAVE_LIB_RUNTIME_LAYOUT_H

#include "cleave/Program/Program.h"

namespace cleave::runtime {

/// Puts the rows of a load's slice where they belong, cast if need be.
class Scatter {
public:
  /// `from` and `to` are equal, or both floats. Precondition: the layout suits the slice (P16).
  Scatter(const program::Load &load, program::Element from, program::Element to);

  /// `count` elements from `source`: those from `first` on along the last dim, of the row at `index` (whose last entry
  /// does not count).
  void put(const std::vector<int64_t> &index, int64_t first, int64_t count, const char *source, char *target) const;
  /// The element at `source` everywhere in the first `extents` of the slice.
  void fill(const char *source, const std::vector<int64_t> &extents, char *target) const;

private:
  int64_t getBase(const std::vector<int64_t> &index) const;

  std::vector<int64_t> shape;
  program::Element from, to;
  /// Per dim of the slice, how far each of its indices moves an element, in elements.
  std::vector<std::vector<int64_t>> tables;
  /// Whether rows stay rows.
  bool keepsRows = true;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_LAYOUT_H
