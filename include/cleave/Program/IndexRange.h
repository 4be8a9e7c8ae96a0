//===- IndexRange.h - numbers of an input that are indices ------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_INDEXRANGE_H
#define CLEAVE_PROGRAM_INDEXRANGE_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"

namespace cleave::program {

/// Looks at `count` integers at `data`, an input that `node` (empty: nobody knows) looks up as it is:
/// `input "ids": element 3, 100, is an index out of range: node "/embed/Gather" looks it up in 100 places, -100 to 99`
Status checkIndices(std::string_view input, Element element, const char *data, uint64_t count, std::string_view node,
                    int64_t least, int64_t most);

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_INDEXRANGE_H
