//===- PlanStyle.cpp - plans that people know, by name --------------------===//
//
// A list of words, as the command line has it; in plan files each entry of a list is one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/Style.h"
#include "cleave/Support/Status.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave::spmd;
using namespace llvm;

/// Words are separated by commas; each is checked by itself.
Expected<std::vector<Style>> cleave::spmd::parseStyles(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ',');
  std::vector<Style> styles;
  for (StringRef word : words) {
    std::vector<StringRef> known(std::begin(kStyleWords), std::end(kStyleWords));
    auto found = llvm::find(known, word);
    if (found == known.end())
      return cleave::makeError("'{0}' is not a style; there are {1}{2}", word, join(known, ", "),
                               suggestNames(word, known));
    styles.push_back(static_cast<Style>(found - known.begin()));
  }
  return styles;
}

/// As it is parsed.
std::string cleave::spmd::formatStyles(ArrayRef<Style> styles) {
  return join(map_range(styles, [](Style style) { return kStyleWords[static_cast<int>(style)].str(); }), ",");
}
