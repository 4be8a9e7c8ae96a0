//===- MainPath.cpp - do stages of a model follow from each other? --------===//
//
// Per op the path to it whose largest gap is least: that of an operand's op, and what stands between the two; or none before it, and all that
// is in front. It ends where what comes after is little, too. Linear in operands.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/MainPath.h"

#include <algorithm>

using namespace cleave::spmd;

double cleave::spmd::findShareBeside(const Problem &problem) {
  // Of the ops in front of each.
  std::vector<double> before{0};
  for (OpId op = 0; op < problem.numOps(); ++op)
    before.push_back(before.back() + problem.rule(problem.ruleOf(op)).flops);
  double all = before.back(), least = all;
  if (all <= 0)
    return 1;
  std::vector<double> largest;
  for (OpId op = 0; op < problem.numOps(); ++op) {
    double gap = before[op];
    for (ValueId value : problem.operands(op))
      if (OpId maker = problem.producer(value); maker != kNone)
        gap = std::min(gap, std::max(largest[maker], before[op] - before[maker + 1]));
    largest.push_back(gap);
    least = std::min(least, std::max(gap, all - before[op + 1]));
  }
  return least / all;
}
