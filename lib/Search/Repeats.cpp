//===- Repeats.cpp - equal layers of a sequence ---------------------------===//
//
// For each length of a layer, runs of letters that are equal to those one layer further: quadratic, in weights of a model.
//
//===----------------------------------------------------------------------===//
#include "Repeats.h"

using namespace cleave::spmd;
using llvm::ArrayRef;

namespace {
struct Run {
  size_t begin = 0, length = 0, layers = 0;
  size_t covered() const { return length * layers; }
};
} // namespace

/// Of those that cover as much, the one with the shortest layers.
static Run findLongest(ArrayRef<unsigned> letters) {
  Run best;
  for (size_t length = 2; 2 * length <= letters.size(); ++length)
    for (size_t begin = 0; begin + length < letters.size(); ++begin) {
      size_t equal = 0;
      while (begin + equal + length < letters.size() && letters[begin + equal] == letters[begin + equal + length])
        ++equal;
      Run run{begin, length, equal / length + 1};
      if (run.layers > 1 && run.covered() > best.covered())
        best = run;
      begin += equal;
    }
  return best;
}

/// True if the letters are one, again and again: such a run is no layer.
static bool isUniform(ArrayRef<unsigned> letters) {
  for (unsigned letter : letters)
    if (letter != letters.front())
      return false;
  return true;
}

/// Numbers go on from run to run, so that no two layers have one.
static void number(ArrayRef<unsigned> letters, unsigned &next, unsigned *blocks) {
  Run run = findLongest(letters);
  if (run.layers == 0 || isUniform(letters.slice(run.begin, run.length)))
    return;
  number(letters.take_front(run.begin), next, blocks);
  for (size_t index = 0; index < run.covered(); ++index)
    blocks[run.begin + index] = next + index / run.length;
  next += run.layers;
  size_t end = run.begin + run.covered();
  number(letters.drop_front(end), next, blocks + end);
}

std::vector<unsigned> cleave::spmd::numberRepeats(ArrayRef<unsigned> letters) {
  std::vector<unsigned> blocks(letters.size(), 0);
  unsigned next = 1;
  number(letters, next, blocks.data());
  return blocks;
}
