//===- ProposeStates.cpp - states that nobody has named -------------------===//
//
//   past_key_values.0.key, present.0.key        end alike from a word on: `past_key_values` becomes `present`
//   past_key_values.0.value, present.0.value    so do these, so that one pattern is for both
//
// What most names say counts first, and a pattern must hold for all that it names.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/ProposeStates.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave::spmd;
using namespace llvm;

/// Words for what a call finds as the last one has left it.
static bool isNamedAsState(StringRef input) {
  static constexpr StringRef words[] = {"past", "cache", "state", "prev", "mem"};
  return any_of(words, [&](StringRef word) { return input.contains_insensitive(word); });
}

/// What both names end with, from the end of a word on: `.0.key` of `past.0.key` and `present.0.key`.
static StringRef findCommonEnd(StringRef input, StringRef output) {
  size_t length = 0;
  while (length < std::min(input.size(), output.size()) &&
         input[input.size() - 1 - length] == output[output.size() - 1 - length])
    ++length;
  StringRef end = input.take_back(length);
  size_t begin = find_if_not(end, isAlnum) - end.begin();
  return end.drop_front(std::min(begin, end.size()));
}

/// Of one layer.
static bool haveSameNumbers(StringRef input, StringRef output) {
  auto next = [](StringRef &name) {
    name = name.drop_until(isDigit);
    StringRef number = name.take_while(isDigit);
    name = name.drop_front(number.size());
    return number;
  };
  while (!input.empty() || !output.empty())
    if (next(input) != next(output))
      return false;
  return true;
}

std::vector<PlanState> cleave::spmd::proposeStates(ArrayRef<StringRef> inputs, ArrayRef<StringRef> outputs,
                                                   function_ref<bool(size_t, size_t)> fits) {
  // How names begin, and how many pairs begin so: of the keys and values of all layers there are many, and of chance hits few.
  MapVector<std::pair<StringRef, StringRef>, size_t> begins;
  for (auto [input, name] : enumerate(inputs))
    for (auto [output, other] : enumerate(outputs)) {
      StringRef end = findCommonEnd(name, other);
      if (isNamedAsState(name) && haveSameNumbers(name, other) && !end.empty() && name.size() > end.size() &&
          fits(input, output))
        ++begins[{name.drop_back(end.size()), other.drop_back(end.size())}];
    }
  auto ordered = begins.takeVector();
  // Of equally many the first by name.
  llvm::sort(ordered, [](const auto &lhs, const auto &rhs) {
    return std::tuple(rhs.second, lhs.first) < std::tuple(lhs.second, rhs.first);
  });
  std::vector<PlanState> states;
  for (const auto &[begin, count] : ordered) {
    Plan plan;
    plan.states = states;
    plan.states.push_back({{(begin.first + "*").str(), {}}, {(begin.second + "*").str(), {}}});
    std::vector<StatePair> pairs;
    PlanError error;
    if (succeeded(pairStates(plan, inputs, outputs, pairs, error)) &&
        all_of(pairs, [&](const StatePair &pair) { return fits(pair.input, pair.output); }))
      states = std::move(plan.states);
  }
  return states;
}
