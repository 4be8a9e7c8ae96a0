//===- ExplanationText.cpp - explanations as people read them -------------===//
//
// Each axis of each dim has a chain of causes, one a line, from the op that took it over back to the annotation:
//
//   h: f32[8, 128] [data, _]
//     dim 0 over data:
//       nn.einsum /enc/MatMul, dim 0 of the result
//       from asked for in plan.yaml:7:5
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Explanation.h"

#include "llvm/ADT/STLExtras.h"

using namespace cleave;

static std::string format(const CauseStep &step) {
  switch (step.kind) {
  case CauseStep::Kind::Op:
    return step.name + (step.node.empty() ? "" : " " + step.node) + ", " + step.dim +
           (step.avoidsConflict ? ", to avoid a conflict" : "");
  case CauseStep::Kind::Value:
    return step.dim + " of " + step.name;
  case CauseStep::Kind::Output:
    return step.dim + " of output " + step.name;
  case CauseStep::Kind::PassedOn:
    return "passed on from " + step.name;
  case CauseStep::Kind::Annotation:
    return "asked for in " + step.name;
  case CauseStep::Kind::Chosen:
    return "chosen: " + step.name;
  case CauseStep::Kind::Free:
    return "the axis is free: that takes least time";
  }
  return "";
}

void cleave::printExplanation(llvm::raw_ostream &os, const ShardedValue &value) {
  os << value.name << ": " << value.type << ' ' << value.sharding;
  if (!value.holds.empty())
    os << ", holds " << value.holds;
}

void cleave::printExplanation(llvm::raw_ostream &os, const Alternative &alternative) {
  os << "    the next best choice here costs " << alternative.bytes << " bytes more, ";
  if (alternative.ns > 0)
    os << formatTime(alternative.ns) << " on this cluster, ";
  os << "surcharges of the objective included: " << alternative.sharding << '\n';
}

static void printAxis(llvm::raw_ostream &os, const AxisExplanation &axis) {
  os << "  " << (axis.dim ? "dim " + std::to_string(*axis.dim) : "partial") << " over " << axis.axes << ":\n";
  for (auto [index, step] : llvm::enumerate(axis.chain))
    os << (index ? "    from " : "    ") << format(step) << '\n';
  if (axis.dim && axis.chain.empty())
    os << "    chosen because it costs less, without an annotation\n";
  if (axis.nextBest)
    printExplanation(os, *axis.nextBest);
}

void cleave::printExplanation(llvm::raw_ostream &os, const ValueExplanation &value) {
  for (const ShardedValue &output : value.returned) {
    printExplanation(os, output);
    os << ", as it is returned; inside:\n";
  }
  printExplanation(os, static_cast<const ShardedValue &>(value));
  os << '\n';
  for (const AxisExplanation &axis : value.axes)
    printAxis(os, axis);
  if (value.isReplicated)
    os << "  replicated on every rank: " << (value.isReached ? "that costs least" : "no annotation reaches it") << '\n';
  for (const Alternative &alternative : value.alternatives)
    printExplanation(os, alternative);
  for (const std::string &axis : value.unfollowed)
    os << "  the annotation for " << axis << " is not followed here (see --remarks)\n";
}
