//===- PlanState.cpp - which inputs stay between calls --------------------===//
//
//   state: {"past_*": "present_*"}        past_key_0 ─▶ `key_0` stands for the star ─▶ present_key_0
//
// A star takes as little as it can, from the left, so there is one way to read a name: what stands in front of the first
// star and behind the last is fixed, each piece between two stars is where it is found first.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/NamePattern.h"
#include "cleave/Plan/Plan.h"

#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

/// What each star of `pattern` stands for in `name`; nothing where the name does not fit.
static std::optional<SmallVector<StringRef>> readStars(StringRef pattern, StringRef name) {
  SmallVector<StringRef> pieces, stars;
  pattern.split(pieces, '*');
  if (pieces.size() == 1)
    return name == pattern ? std::optional(stars) : std::nullopt;
  if (!name.consume_front(pieces.front()) || !name.consume_back(pieces.back()))
    return std::nullopt;
  for (StringRef piece : ArrayRef(pieces).drop_front().drop_back()) {
    size_t found = name.find(piece);
    if (found == StringRef::npos)
      return std::nullopt;
    stars.push_back(name.take_front(found));
    name = name.drop_front(found + piece.size());
  }
  stars.push_back(name);
  return stars;
}

static std::string writeStars(StringRef pattern, ArrayRef<StringRef> stars) {
  SmallVector<StringRef> pieces;
  pattern.split(pieces, '*');
  std::string name = pieces.front().str();
  for (auto [star, piece] : zip_equal(stars, ArrayRef(pieces).drop_front()))
    name += (star + piece).str();
  return name;
}

llvm::Error cleave::spmd::checkState(const PlanState &state) {
  StringRef input = state.input.text, output = state.output.text;
  if (input.empty() || output.empty())
    return makeError("a state is an input and an output, such as past_*=present_*");
  if (input.count('*') != output.count('*'))
    return makeError("'{0}' and '{1}' have not as many stars", input, output);
  return llvm::Error::success();
}

LogicalResult cleave::spmd::parseStateOption(StringRef text, Plan &plan, PlanError &error) {
  auto [input, output] = text.split('=');
  PlanState state{{input.str(), {"--state", 1, 1}}, {output.str(), {"--state", 1, unsigned(input.size()) + 2}}};
  if (llvm::Error bad = checkState(state)) {
    error = {{"--state", 1, 1}, llvm::toString(std::move(bad)), {}};
    return failure();
  }
  plan.states.push_back(std::move(state));
  return success();
}

namespace {
/// Looks up one state after the other.
class StatePairing {
public:
  StatePairing(ArrayRef<StringRef> inputs, ArrayRef<StringRef> outputs, std::vector<StatePair> &pairs, PlanError &error)
      : inputs(inputs), outputs(outputs), pairs(pairs), error(error) {}

  LogicalResult add(const PlanState &state);

private:
  LogicalResult addPair(const PlanState &state, size_t input, StringRef wanted);
  LogicalResult fail(const PlanPlace &place, const Twine &message) {
    error = {place, message.str(), {}};
    return failure();
  }

  ArrayRef<StringRef> inputs, outputs;
  std::vector<StatePair> &pairs;
  PlanError &error;
};
} // namespace

LogicalResult StatePairing::addPair(const PlanState &state, size_t input, StringRef wanted) {
  const auto *found = find(outputs, wanted);
  if (found == outputs.end())
    return fail(state.output.place, "input '" + inputs[input] + "' is a state, but there is no output '" + wanted +
                                        "'" + suggestNames(wanted, outputs));
  size_t output = found - outputs.begin();
  for (const StatePair &other : pairs) {
    if (other.input == input && other.output == output)
      return success();
    if (other.input == input || other.output == output) {
      (void)fail(state.input.place, "'" + (other.input == input ? inputs[input] : wanted) + "' is of two states");
      error.notes.push_back({other.state->input.place, "the other one is here"});
      return failure();
    }
  }
  pairs.push_back({input, output, &state});
  return success();
}

/// Both ways: an output that the pattern names, and no input goes with, is a mistake as well.
LogicalResult StatePairing::add(const PlanState &state) {
  bool isFound = false;
  for (auto [input, name] : enumerate(inputs))
    if (auto stars = readStars(state.input.text, name)) {
      isFound = true;
      if (failed(addPair(state, input, writeStars(state.output.text, *stars))))
        return failure();
    }
  if (!isFound)
    return fail(state.input.place,
                "'" + state.input.text + "' is not an input" + suggestNames(state.input.text, inputs));
  for (StringRef name : outputs)
    if (auto stars = readStars(state.output.text, name)) {
      std::string wanted = writeStars(state.input.text, *stars);
      if (!is_contained(inputs, wanted))
        return fail(state.input.place, "output '" + name + "' is a state, but there is no input '" + wanted + "'" +
                                           suggestNames(wanted, inputs));
    }
  return success();
}

LogicalResult cleave::spmd::pairStates(const Plan &plan, ArrayRef<StringRef> inputs, ArrayRef<StringRef> outputs,
                                       std::vector<StatePair> &pairs, PlanError &error) {
  StatePairing table(inputs, outputs, pairs, error);
  for (const PlanState &state : plan.states)
    if (failed(table.add(state)))
      return failure();
  return success();
}
