//===- MainPath.cpp - do stages of a model follow from each other? --------===//
//
// Per op the path to it whose largest gap is least: that of an operand's op, and what stands between the two; or none before it, and all that
// is in front. It ends where what comes after is little, too. Linear in operands.
//
//===----------------------------------------------------------------------===//
#include "cleave/Search/MainPath.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace cleave::spmd;

static double countElements(const Problem &problem, OpId op) {
  double elements = 0;
  for (ValueId value : llvm::concat<const ValueId>(problem.operands(op), problem.results(op))) {
    double product = 1;
    for (int64_t extent : problem.shape(value))
      product *= static_cast<double>(extent);
    elements += product;
  }
  return elements;
}

/// The work of the ops in front of each, and of all: operations, or, of a model that has none of these, what its ops read and make.
static std::vector<double> addWork(const Problem &problem) {
  std::vector<double> flops{0}, elements{0};
  for (OpId op = 0; op < problem.numOps(); ++op) {
    flops.push_back(flops.back() + problem.rule(problem.ruleOf(op)).flops);
    elements.push_back(elements.back() + countElements(problem, op));
  }
  return flops.back() > 0 ? flops : elements;
}

double cleave::spmd::findShareBeside(const Problem &problem) {
  std::vector<double> before = addWork(problem);
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
