//===- PlanExpect.cpp - what a plan expects of its program ----------------===//
//
// A bound is read by what it is of: counts have no unit, sizes and times have one.
//
//===----------------------------------------------------------------------===//
#include "PlanExpect.h"
#include "cleave/Plan/PlanKeys.h"
#include "cleave/Program/Collective.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

/// Those that take a tensor and give one, and what is sent from rank to rank.
SmallVector<StringRef> cleave::spmd::getPlanKinds() {
  SmallVector<StringRef> kinds;
  for (auto kind = program::CollectiveKind(); program::isKnown(kind); kind = program::CollectiveKind(int(kind) + 1))
    if (program::getTraits(kind).hasTensors)
      kinds.push_back(program::getTraits(kind).word);
  kinds.append({"permute", "window", "send"});
  return kinds;
}

/// What a number is counted in; 0: no such unit.
static double getFactor(PlanBound::Of of, StringRef unit) {
  switch (of) {
  case PlanBound::Of::Count:
    return unit.empty() ? 1 : 0;
  case PlanBound::Of::Time:
    return StringSwitch<double>(unit).Case("ns", 1).Case("us", 1e3).Case("ms", 1e6).Case("s", 1e9).Default(0);
  case PlanBound::Of::Bytes:
  case PlanBound::Of::Memory:
    return unit.empty() ? 0 : static_cast<double>(parseBytes(("1" + unit).str()).value_or(0));
  }
  return 0;
}

static StringRef getExample(PlanBound::Of of) {
  switch (of) {
  case PlanBound::Of::Count:
    return "64, <= 64 or 2 per block";
  case PlanBound::Of::Time:
    return "<= 5ms";
  case PlanBound::Of::Bytes:
  case PlanBound::Of::Memory:
    return "<= 1.9GB";
  }
  return "";
}

/// `<= 1.9GB`, `64`, `2 per block`: at most, or exactly. Only 0 goes without a unit.
static bool parseNumber(StringRef text, PlanBound &bound) {
  bound.isMost = text.consume_front("<=");
  bound.isPerBlock = bound.of == PlanBound::Of::Count && text.consume_back(" per block");
  text = text.trim();
  StringRef unit = text.drop_while([](char c) { return isDigit(c) || c == '.'; });
  double number;
  if (text.drop_back(unit.size()).getAsDouble(number))
    return false;
  double factor = number == 0 && unit.empty() ? 1 : getFactor(bound.of, unit.trim());
  double product = number * factor;
  if (factor == 0 || product > 1e18 || (bound.of == PlanBound::Of::Count && product != std::floor(product)))
    return false;
  bound.number = static_cast<int64_t>(product);
  return true;
}

/// `permute`, `permute over model`, `all_gather of weights`, `all_reduce of gradients over data`.
static LogicalResult readAbsent(YamlReader &reader, yaml::Node *node, PlanBound &bound) {
  std::string text;
  if (failed(reader.readText(node, text)))
    return failure();
  bound.of = PlanBound::Of::Count;
  bound.text = "no " + text;
  auto [kind, axis] = StringRef(text).split(" over ");
  if (kind.consume_back(" of weights"))
    bound.what = PlanBound::What::Weights;
  else if (kind.consume_back(" of gradients"))
    bound.what = PlanBound::What::Gradients;
  bound.kind = kind.trim().str();
  bound.axis = axis.trim().str();
  SmallVector<StringRef> kinds = getPlanKinds();
  if (is_contained(kinds, bound.kind))
    return success();
  return reader.fail(node,
                     "expected " + join(kinds, ", ") + ", got '" + bound.kind + "'" + suggestNames(bound.kind, kinds));
}

static LogicalResult readNone(YamlReader &reader, yaml::Node *node, std::vector<PlanBound> &bounds) {
  return reader.readSequence(node, "kinds of collectives, such as [permute over data]", [&](yaml::Node *one) {
    PlanBound bound;
    bound.place = reader.placeOf(one);
    if (failed(readAbsent(reader, one, bound)))
      return failure();
    bounds.push_back(std::move(bound));
    return success();
  });
}

LogicalResult cleave::spmd::readExpect(YamlReader &reader, yaml::Node *node, std::vector<PlanBound> &bounds) {
  auto readEntry = [&](StringRef key, yaml::KeyValueNode &entry) -> LogicalResult {
    yaml::Node *value = entry.getValue();
    if (key == "no")
      return readNone(reader, value, bounds);
    PlanBound bound;
    bound.place = reader.placeOf(value);
    bound.of = StringSwitch<PlanBound::Of>(key)
                   .Case("bytes", PlanBound::Of::Bytes)
                   .Case("memory", PlanBound::Of::Memory)
                   .Case("time", PlanBound::Of::Time)
                   .Default(PlanBound::Of::Count);
    if (bound.of == PlanBound::Of::Count)
      bound.kind = key.str();
    std::string text;
    if (failed(reader.readText(value, text)))
      return failure();
    bound.text = (key + " " + text).str();
    if (!parseNumber(text, bound))
      return reader.fail(value, "expected " + getExample(bound.of) + ", got '" + text + "'");
    bounds.push_back(std::move(bound));
    return success();
  };
  return reader.readMapping(node, "bounds, such as {bytes: <= 1.9GB, memory: <= 8GB}",
                            getPlanKeyNames(PlanSection::Expect), readEntry, "a bound");
}
