//===- JsonRead.cpp - schedules and costs from JSON -----------------------===//
//
// Files may come from anybody: how deep they nest and how long they are is limited before they are parsed, and all
// numbers are checked against what is there before anything of their size is made.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Text.h"

#include "cleave/Program/Content.h"
#include "cleave/Support/JsonText.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace cleave;
using namespace cleave::schedule;
using llvm::Error;
using llvm::formatv;
using llvm::StringRef;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// LLVM's documents take kilobytes for an object and tens of bytes for any other value.
static constexpr size_t kMostObjects = 100'000, kMostValues = 2'000'000;

/// Counts what a document would be made of, without making it.
static Error checkSize(StringRef text) {
  size_t objects = 0, values = 0;
  forEachOutsideStrings(text, [&](char c) {
    objects += c == '{';
    values += c == ',';
  });
  if (objects > kMostObjects || values > kMostValues)
    return makeError("it has {0} objects and {1} values, more than the {2} and {3} of a schedule in JSON: a table in a "
                     ".csv file may be longer",
                     objects, values, kMostObjects, kMostValues);
  return Error::success();
}

/// The limits first, then the syntax, whose errors have a line and a column.
static llvm::Expected<Object> parse(StringRef text) {
  text = program::dropByteOrderMark(text);
  if (std::string other = program::describeOther(text, program::Content::Unknown, "JSON"); !other.empty())
    return makeError("{0}", other);
  if (Error error = checkSize(text))
    return std::move(error);
  llvm::Expected<Value> value = parseJson(text);
  if (!value)
    return makeError("{0}", llvm::toString(value.takeError()));
  Object *object = value->getAsObject();
  if (!object)
    return makeError("expected an object");
  return std::move(*object);
}

/// An integer in [0, below).
static Error readIndex(const Value *value, int64_t below, const llvm::Twine &where, int32_t &index) {
  std::optional<int64_t> number = value ? value->getAsInteger() : std::nullopt;
  if (!number || *number < 0 || *number >= below)
    return makeError("{0}: expected a whole number from 0 to {1}", where.str(), below - 1);
  index = int32_t(*number);
  return Error::success();
}

/// A list of integers in [0, below).
static Error readIndices(const Object &object, StringRef field, int64_t below, const llvm::Twine &where,
                         std::vector<int32_t> &indices) {
  const Array *array = object.getArray(field);
  std::string place = (where + "." + field).str();
  if (!array)
    return makeError("{0}: expected a list", place);
  for (auto [i, value] : llvm::enumerate(*array))
    if (Error error = readIndex(&value, below, formatv("{0}[{1}]", place, i).str(), indices.emplace_back()))
      return error;
  return Error::success();
}

/// A number for all, or a list with one for each; what is not there stays.
static Error readNumbers(const Object &object, StringRef field, const llvm::Twine &where, size_t count, bool isSigned,
                         std::vector<double> &numbers) {
  const Value *value = object.get(field);
  if (!value || value->kind() == Value::Null)
    return Error::success();
  std::string place = (where + "." + field).str();
  auto isGood = [&](const std::optional<double> &number) {
    return number && std::isfinite(*number) && (isSigned || *number >= 0);
  };
  const char *kind = isSigned ? "a number" : "a number that is not negative";
  if (const Array *array = value->getAsArray()) {
    if (array->size() != count)
      return makeError("{0}: expected a number or a list of {1}, got {2}", place, count, array->size());
    numbers.clear();
    for (auto [i, entry] : llvm::enumerate(*array)) {
      if (!isGood(entry.getAsNumber()))
        return makeError("{0}[{1}]: expected {2}", place, i, kind);
      numbers.push_back(*entry.getAsNumber());
    }
    return Error::success();
  }
  if (!isGood(value->getAsNumber()))
    return makeError("{0}: expected {1}, or a list of them", place, kind);
  numbers.assign(count, *value->getAsNumber());
  return Error::success();
}

/// One number, which stays as it is where the field is missing.
static Error readNumber(const Object &object, StringRef field, const llvm::Twine &where, double &number) {
  std::vector<double> one{number};
  if (Error error = readNumbers(object, field, where, 1, /*isSigned=*/false, one))
    return error;
  number = one[0];
  return Error::success();
}

/// All channels of a schedule, in any order; defaults are gone once there is a list.
static Error readChannels(const Array &array, Schedule &schedule) {
  schedule.channels.clear();
  for (auto [i, value] : llvm::enumerate(array)) {
    std::string where = formatv("channels[{0}]", i);
    const Object *object = value.getAsObject();
    if (!object)
      return makeError("{0}: expected an object", where);
    Channel &channel = schedule.channels.emplace_back();
    double bytes = 0;
    if (Error error = readIndex(object->get("to"), schedule.numStages, where + ".to", channel.to))
      return error;
    if (Error error = readIndex(object->get("from"), channel.to, where + ".from", channel.from))
      return error;
    if (Error error = readNumber(*object, "latency", where, channel.latency))
      return error;
    if (Error error = readNumber(*object, "bytes", where, bytes))
      return error;
    if (bytes > 1e18)
      return makeError("{0}.bytes: {1} bytes are too many", where, bytes);
    channel.bytes = int64_t(bytes);
    if (const Array *values = object->getArray("values"))
      for (const Value &name : *values)
        channel.values.push_back(name.getAsString().value_or("").str());
  }
  auto getEnds = [](const Channel &channel) { return std::pair(channel.to, channel.from); };
  llvm::sort(schedule.channels, [&](const Channel &a, const Channel &b) { return getEnds(a) < getEnds(b); });
  for (size_t i = 1; i < schedule.channels.size(); ++i)
    if (getEnds(schedule.channels[i - 1]) == getEnds(schedule.channels[i]))
      return makeError("channels: stages {0} and {1} have two", schedule.channels[i].from, schedule.channels[i].to);
  return Error::success();
}

/// `comm`: what a hop of each default channel takes, of which there is one less than stages. Not given: what was known.
static Error readHops(const Object &times, Schedule &schedule) {
  std::vector<double> comm(schedule.numStages - 1);
  auto isDefault = [](const Channel &channel) { return channel.to == channel.from + 1; };
  for (const Channel &channel : schedule.channels)
    if (isDefault(channel))
      comm[channel.from] = channel.latency;
  if (Error error = readNumbers(times, "comm", "costs", comm.size(), /*isSigned=*/false, comm))
    return error;
  for (Channel &channel : schedule.channels)
    if (isDefault(channel))
      channel.latency = comm[channel.from];
  return Error::success();
}

/// `costs`, `channels` and `memory`, over what is there.
static Error readCostFields(const Object &object, Schedule &schedule, Costs &costs) {
  size_t stages = schedule.numStages;
  if (const Array *channels = object.getArray("channels"))
    if (Error error = readChannels(*channels, schedule))
      return error;
  if (const Object *times = object.getObject("costs")) {
    for (auto [field, values] :
         {std::pair("F", &costs.forward), std::pair("I", &costs.inputGrad), std::pair("W", &costs.weightGrad),
          std::pair("update", &costs.update), std::pair("reduction", &costs.reduction)})
      if (Error error = readNumbers(*times, field, "costs", stages, /*isSigned=*/false, *values))
        return error;
    if (Error error = readNumber(*times, "overlap", "costs", costs.overlap))
      return error;
    if (Error error = readNumber(*times, "bandwidth", "costs", costs.bandwidth))
      return error;
    if (std::optional<StringRef> unit = times->getString("unit"))
      costs.unit = unit->str();
    // Channels say the same and more, where they are there.
    if (!object.getArray("channels"))
      if (Error error = readHops(*times, schedule))
        return error;
  }
  if (const Object *memory = object.getObject("memory")) {
    for (auto [field, values] : {std::pair("F", &costs.memoryForward), std::pair("I", &costs.memoryInputGrad),
                                 std::pair("W", &costs.memoryWeightGrad)})
      if (Error error = readNumbers(*memory, field, "memory", stages, /*isSigned=*/true, *values))
        return error;
    if (Error error = readNumber(*memory, "byte", "memory", costs.memoryByte))
      return error;
    if (Error error = readNumbers(*memory, "limit", "memory", schedule.numRanks, /*isSigned=*/false, costs.memoryLimit))
      return error;
  }
  return Error::success();
}

namespace {

/// One section after the other: later ones are held against what earlier ones list.
class ScheduleReader {
public:
  ScheduleReader(Object root, StringRef name) : root(std::move(root)) { schedule.name = name.str(); }

  llvm::Expected<CostedSchedule> read() {
    for (auto step : {&ScheduleReader::readReplicas, &ScheduleReader::readReductions, &ScheduleReader::readPrograms,
                      &ScheduleReader::checkSize, &ScheduleReader::readVersions})
      if (Error error = (this->*step)())
        return std::move(error);
    schedule.indexReplicas();
    Costs costs = Costs::uniform(schedule.numStages, std::max(1, schedule.numStages / schedule.numRanks));
    if (Error error = readCostFields(root, schedule, costs))
      return std::move(error);
    return CostedSchedule{std::move(schedule), std::move(costs)};
  }

private:
  /// Ranks, stages and microbatches are counted by what is listed, whatever other fields claim.
  Error readReplicas() {
    const Array *programs = root.getArray("programs"), *replicas = root.getArray("replicas");
    if (!programs || programs->empty())
      return makeError("programs: expected a list with one list of actions per rank");
    if (!replicas || replicas->empty())
      return makeError("replicas: expected a list of objects with 'placement' and 'microbatches'");
    if (std::optional<StringRef> name = root.getString("schedule"))
      schedule.name = name->str();
    schedule.numRanks = int32_t(programs->size());
    std::vector<int32_t> all;
    for (auto [i, value] : llvm::enumerate(*replicas)) {
      std::string where = formatv("replicas[{0}]", i);
      const Object *object = value.getAsObject();
      if (!object)
        return makeError("{0}: expected an object", where);
      Replica &replica = schedule.replicas.emplace_back();
      if (Error error = readIndices(*object, "placement", schedule.numRanks, where, replica.placement))
        return error;
      if (Error error = readIndices(*object, "microbatches", INT32_MAX, where, replica.microbatches))
        return error;
      if (replica.placement.empty() || replica.placement.size() != schedule.replicas[0].placement.size())
        return makeError("{0}.placement: {1} stages, and the first replica has {2}", where, replica.placement.size(),
                         schedule.replicas[0].placement.size());
      llvm::append_range(all, replica.microbatches);
    }
    if (all.empty())
      return makeError("replicas: there is no microbatch");
    // Each microbatch once: sorted, they count up from 0.
    llvm::sort(all);
    for (auto [i, microbatch] : llvm::enumerate(all))
      if (microbatch != int32_t(i))
        return makeError("replicas: microbatch {0} {1}", microbatch < int32_t(i) ? microbatch : int32_t(i),
                         microbatch < int32_t(i) ? "takes two ways" : "is in none");
    Schedule blank = makeSchedule(schedule.name, schedule.replicas[0].placement, schedule.numRanks, 0);
    blank.numMicrobatches = int32_t(all.size());
    blank.replicas = std::move(schedule.replicas);
    schedule = std::move(blank);
    return Error::success();
  }

  /// Groups may stand in a list of their own, or be named where they are reduced.
  Error readReductions() {
    const Array *array = root.getArray("reductions");
    for (size_t i = 0; array && i < array->size(); ++i) {
      std::string where = formatv("reductions[{0}]", i);
      const Object *object = (*array)[i].getAsObject();
      std::optional<StringRef> name = object ? object->getString("name") : std::nullopt;
      if (!name)
        return makeError("{0}: expected an object with 'name' and 'ranks'", where);
      std::vector<int32_t> ranks;
      if (Error error = readIndices(*object, "ranks", schedule.numRanks, where, ranks))
        return error;
      if (Error error = addGroup(*name, ranks, where))
        return error;
    }
    return Error::success();
  }

  /// A group is known by its name, and has the same ranks wherever it is named.
  Error addGroup(StringRef name, llvm::ArrayRef<int32_t> ranks, StringRef where) {
    auto [it, isNew] = groups.try_emplace(name, int32_t(schedule.reductions.size()));
    if (isNew)
      schedule.reductions.push_back({name.str(), ranks.vec()});
    else if (schedule.reductions[it->second].ranks != ranks.vec())
      return makeError("{0}: group {1} has other ranks elsewhere", where, quote(name));
    return Error::success();
  }

  /// Whether a schedule is for inference is said by its actions.
  Error readPrograms() {
    schedule.isForwardOnly = true;
    for (auto [rank, list] : llvm::enumerate(*root.getArray("programs"))) {
      const Array *actions = list.getAsArray();
      if (!actions)
        return makeError("programs[{0}]: expected a list of actions", rank);
      for (auto [i, value] : llvm::enumerate(*actions))
        if (Error error = readEntry(value, formatv("programs[{0}][{1}]", rank, i).str(), schedule.programs[rank]))
          return error;
    }
    return Error::success();
  }

  /// An action, or two that run as one.
  Error readEntry(const Value &value, const std::string &where, std::vector<Action> &program) {
    const Object *object = value.getAsObject();
    if (!object || object->getString("do") != "OVERLAP_F_B")
      return readAction(object, where, program);
    const Array *parts = object->getArray("parts");
    if (!parts || parts->size() != 2)
      return makeError("{0}.parts: expected two actions", where);
    for (const Value &part : *parts)
      if (Error error = readAction(part.getAsObject(), where + ".parts", program))
        return error;
    program[program.size() - 2].isJoined = true;
    return Error::success();
  }

  Error readAction(const Object *object, const std::string &where, std::vector<Action> &program) {
    std::optional<StringRef> word = object ? object->getString("do") : std::nullopt;
    std::optional<ActionKind> kind = word ? parseActionKind(*word) : std::nullopt;
    if (!kind)
      return makeError("{0}: {1}", where, word ? quote(*word) + " is not an action" : "expected an object with 'do'");
    Action &action = program.emplace_back();
    action.kind = *kind;
    if (Error error = readIndex(object->get("stage"), schedule.numStages, where + ".stage", action.stage))
      return error;
    bool needsMicrobatch = isCompute(*kind) || isMessage(*kind);
    if (needsMicrobatch)
      if (Error error =
              readIndex(object->get("microbatch"), schedule.numMicrobatches, where + ".microbatch", action.microbatch))
        return error;
    if (isMessage(*kind))
      if (Error error = readIndex(object->get("other"), schedule.numStages, where + ".other", action.other))
        return error;
    if (std::optional<StringRef> group = object->getString("group"); group && *kind == ActionKind::ReduceGrad) {
      std::vector<int32_t> ranks;
      if (Error error = readIndices(*object, "ranks", schedule.numRanks, where, ranks))
        return error;
      if (Error error = addGroup(*group, ranks, where))
        return error;
      action.other = groups[*group];
    }
    numForward += *kind == ActionKind::F;
    schedule.isForwardOnly &= !isCompute(*kind) || *kind == ActionKind::F;
    return Error::success();
  }

  /// Arrays by stage and microbatch are no larger than the programs.
  Error checkSize() {
    int64_t needed = int64_t(schedule.numStages) * schedule.numMicrobatches;
    if (needed > numForward)
      return makeError("programs: {0} stages and {1} microbatches need {2} F, and there are {3}", schedule.numStages,
                       schedule.numMicrobatches, needed, numForward);
    return Error::success();
  }

  /// Where nobody says it, a rank keeps one version of its weights.
  Error readVersions() {
    const Value *value = root.get("weight_versions");
    const Array *versions = value ? value->getAsArray() : nullptr;
    for (size_t rank = 0; versions && rank < versions->size(); ++rank)
      schedule.weightVersions.push_back(int32_t((*versions)[rank].getAsInteger().value_or(0)));
    bool isGood = schedule.weightVersions.size() == size_t(schedule.numRanks) &&
                  llvm::all_of(schedule.weightVersions, [](int32_t count) { return count >= 1; });
    if (value && !isGood)
      return makeError("weight_versions: expected a list of {0}, one version at least on each rank", schedule.numRanks);
    return Error::success();
  }

  Object root;
  Schedule schedule;
  llvm::StringMap<int32_t> groups;
  int64_t numForward = 0;
};

} // namespace

llvm::Expected<CostedSchedule> cleave::schedule::readJson(StringRef text, StringRef name) {
  llvm::Expected<Object> root = parse(text);
  return root ? ScheduleReader(std::move(*root), name).read() : llvm::Expected<CostedSchedule>(root.takeError());
}

Error cleave::schedule::readCosts(StringRef text, Schedule &schedule, Costs &costs) {
  llvm::Expected<Object> root = parse(text);
  if (!root)
    return root.takeError();
  for (const auto &[field, value] : *root)
    if (StringRef(field) == "costs" || StringRef(field) == "channels" || StringRef(field) == "memory")
      return readCostFields(*root, schedule, costs);
  return makeError("expected an object with 'costs', 'channels' or 'memory'");
}
