//===- States.cpp - what stays in ranks, in and out of files --------------===//
//
// A checkpoint is one file of all ranks, in which each tensor is whole: no matter how the program cuts it.
//
//   rank 0   m(w), rows 0-3 ─┐                              ┌─▶ columns 0-1   rank 0 of another mesh
//   rank 1   m(w), rows 4-7 ─┴─▶ "m(w)" f32[8, 4] in a file ┴─▶ columns 2-3   rank 1
//
// Writing: the file begins with what is in it, which all ranks know from the program. Rank 0 makes it under a name of its own, each
// rank writes the boxes of which it has the first copy, then it gets its name: who is killed before leaves the older file. Reading: to
// a rank the file is one of weights, of which it loads its boxes, cast if need be.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Checkpoint.h"
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave::runtime;
namespace program = cleave::program;
using cleave::arrays::SafeTensor;
using cleave::arrays::Safetensors;
using program::concat;
using program::makeError;
using program::printable;
using program::quote;
using program::StepRole;

static ExecutorStatus fail(ErrorKind kind, std::string message) { return ExecutorError{kind, std::move(message)}; }

//===----------------------------------------------------------------------===//
// What states begin as
//===----------------------------------------------------------------------===//

/// Zeros first, everywhere: a load fills what there is of an uneven box, and what is behind it is nobody's to fill.
ExecutorStatus Executor::State::resetStates() {
  for (LocalRank &rank : ranks)
    rank.memory->clearStates();
  WeightFiles files(program, folder, options.weightsFolder, file.get(), options.verifies);
  program::Status error = checkWeights(files, /*ofStates=*/true);
  if (!error)
    error = fillWeights(files, /*ofStates=*/true);
  return agree(error ? ::fail(ErrorKind::Weights, error->message) : std::nullopt);
}

//===----------------------------------------------------------------------===//
// What is in a checkpoint
//===----------------------------------------------------------------------===//

namespace {
/// The tensor of a checkpoint that a state is of, and where it begins there.
struct Whole {
  std::string name;
  std::vector<int64_t> starts, shape;
};
} // namespace

/// As its origin says; without one the state by itself.
static Whole getWhole(const program::Program &program, const program::Tensor &state) {
  const program::Origin &origin = state.origin;
  const std::vector<int64_t> &own = program.types[state.type].shape;
  return {origin.name.empty() ? state.name : origin.name,
          origin.starts.empty() ? std::vector<int64_t>(own.size(), 0) : origin.starts,
          origin.shape.empty() ? own : origin.shape};
}

/// The state by itself, under its own name.
static Whole getOwn(const program::Program &program, const program::Tensor &state) {
  const std::vector<int64_t> &shape = program.types[state.type].shape;
  return {state.name, std::vector<int64_t>(shape.size(), 0), shape};
}

static uint64_t countElements(const std::vector<int64_t> &shape) {
  uint64_t count = 1;
  for (int64_t extent : shape)
    count *= uint64_t(extent);
  return count;
}

/// The inputs that are states, in order.
static std::vector<uint32_t> listStates(const program::Program &program) {
  std::set<uint32_t> inputs;
  for (const program::State &state : program.variants.front().states)
    inputs.insert(state.input);
  return {inputs.begin(), inputs.end()};
}

namespace {
/// Which states are written, and as what.
class Contents {
public:
  explicit Contents(const program::Program &program) : program(program) {}

  program::Result<Safetensors> plan(std::vector<SavedState> &saved);

private:
  const program::Tensor &getState(uint32_t input) const { return program.variants.front().inputs[input]; }
  program::Element getElement(uint32_t input) const { return program.types[getState(input).type].element; }
  std::vector<uint32_t> pickWidest(const std::vector<uint32_t> &states) const;
  bool areAll(const std::vector<uint32_t> &parts) const;

  const program::Program &program;
};
} // namespace

/// Of states that are one part of a tensor, as a weight and its master are, that with the largest elements.
std::vector<uint32_t> Contents::pickWidest(const std::vector<uint32_t> &states) const {
  std::map<std::vector<int64_t>, uint32_t> parts;
  for (uint32_t input : states) {
    auto [known, isNew] = parts.try_emplace(getWhole(program, getState(input)).starts, input);
    if (!isNew && program::getElementBytes(getElement(input)) > program::getElementBytes(getElement(known->second)))
      known->second = input;
  }
  std::vector<uint32_t> widest;
  for (const auto &[starts, input] : parts)
    widest.push_back(input);
  return widest;
}

/// Whether parts of one tensor are all of it, in one type. Those of a weight do not overlap.
bool Contents::areAll(const std::vector<uint32_t> &parts) const {
  uint64_t held = 0;
  for (uint32_t input : parts) {
    held += countElements(program.types[getState(input).type].shape);
    if (getElement(input) != getElement(parts.front()) ||
        getWhole(program, getState(input)).shape != getWhole(program, getState(parts.front())).shape)
      return false;
  }
  return held == countElements(getWhole(program, getState(parts.front())).shape);
}

/// A tensor of which some is no state is not written whole: its parts are, each under its own name.
program::Result<Safetensors> Contents::plan(std::vector<SavedState> &saved) {
  std::map<std::string, std::vector<uint32_t>> byName;
  for (uint32_t input : listStates(program)) {
    if (getState(input).terms > 1)
      return makeError("state ", quote(getState(input).name), " is held in ", getState(input).terms,
                       " addends, which no file takes");
    byName[getWhole(program, getState(input)).name].push_back(input);
  }
  Safetensors contents;
  std::map<std::string, std::vector<std::pair<uint32_t, Whole>>> states;
  for (const auto &[name, inputs] : byName) {
    std::vector<uint32_t> parts = pickWidest(inputs);
    bool isAll = areAll(parts);
    for (uint32_t input : parts) {
      Whole whole = isAll ? getWhole(program, getState(input)) : getOwn(program, getState(input));
      auto &known = states[whole.name];
      if (known.empty())
        contents.tensors.push_back({whole.name, getElement(input), whole.shape, 0, 0});
      known.emplace_back(input, std::move(whole));
    }
  }
  (void)cleave::arrays::layOutSafetensors(contents);
  for (const SafeTensor &tensor : contents.tensors)
    for (const auto &[input, whole] : states[tensor.name]) {
      SavedState &state = saved.emplace_back();
      state.input = input;
      state.strides = program::getStrides({tensor.element, tensor.shape, {}});
      state.offset = 0;
      for (size_t dim = 0; dim < state.strides.size(); ++dim)
        state.offset += uint64_t(whole.starts[dim] * state.strides[dim]) * program::getElementBytes(tensor.element);
      state.tensor = tensor.name;
    }
  return contents;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// All bytes, however many of them the system takes at once.
static program::Status writeAt(int file, const char *from, uint64_t bytes, uint64_t offset) {
  while (bytes > 0) {
    ssize_t written = pwrite(file, from, bytes, off_t(offset));
    if (written < 0 && errno != EINTR)
      return makeError(std::strerror(errno));
    uint64_t count = written > 0 ? uint64_t(written) : 0;
    from += count;
    offset += count;
    bytes -= count;
  }
  return program::kGood;
}

/// The loops of `box` from `level` on, whose target is a file.
static program::Status writeBox(int file, const BoxCopy &box, size_t level, const char *from, uint64_t offset) {
  if (level == box.dims.size())
    return writeAt(file, from, box.run, offset);
  const BoxCopy::Dim &dim = box.dims[level];
  for (int64_t i = 0; i < dim.size; ++i)
    if (program::Status error =
            writeBox(file, box, level + 1, from + i * dim.source, offset + uint64_t(i * dim.target)))
      return error;
  return program::kGood;
}

/// What `rank` hands out of one state: out of the device in one piece, into the file row by row.
static program::Status writeState(const program::Program &program, const LocalRank &rank, const SavedState &saved,
                                  int file) {
  const program::Tensor &tensor = program.variants.front().inputs[saved.input];
  const program::Place *place = findOwnPlace(program, tensor, rank.rank);
  if (!place || place->role != rank.role)
    return program::kGood;
  const program::Type &local = program.types[place->view.type];
  std::vector<int64_t> present = program::getPresent(program, place->present, local.shape, rank.rank);
  uint64_t size = program::getElementBytes(local.element), count = countElements(present), offset = saved.offset;
  if (count == 0)
    return program::kGood;
  for (size_t dim = 0; dim < present.size(); ++dim)
    offset += uint64_t(program.evaluate(place->starts[dim], rank.rank) * saved.strides[dim]) * size;
  std::vector<char> elements(count * size);
  rank.device->download(planCopy(size, present, program::getStrides(local), {}), rank.memory->get(place->view),
                        elements.data());
  return writeBox(file, planCopy(size, present, {}, saved.strides), 0, elements.data(), offset);
}

/// All ranks of this process at once, each on its own thread: they write into one file at different places.
program::Status Executor::State::writeStates(int descriptor, const std::vector<SavedState> &saved) {
  std::vector<program::Status> errors(ranks.size());
  threads->run(
      [&](size_t local) {
        for (const SavedState &state : saved)
          if (!errors[local])
            errors[local] = writeState(program, ranks[local], state, descriptor);
      },
      [] { return true; });
  for (program::Status &error : errors)
    if (error)
      return error;
  return program::kGood;
}

/// Of processes rank 0 makes the file, and tells the others what it is called until it is whole.
ExecutorStatus Executor::State::saveStates(const std::string &path,
                                           const std::map<std::string, std::string> &metadata) {
  std::vector<SavedState> saved;
  program::Result<Safetensors> contents = Contents(program).plan(saved);
  if (!contents)
    return ::fail(ErrorKind::Arguments, contents.getError().message);
  contents->metadata = metadata;
  std::string head = cleave::arrays::layOutSafetensors(*contents);
  for (SavedState &state : saved)
    state.offset += contents->find(state.tensor)->offset;
  auto failWrite = [&](const std::string &why) {
    return ::fail(ErrorKind::Arguments, concat("cannot write ", printable(path), ": ", why));
  };
  NewFile made;
  int code = isHub() ? made.open(path, /*hasName=*/areProcesses()) : 0;
  program::Status error = code ? program::Status(makeError(std::strerror(code))) : program::kGood;
  if (isHub() && !error && ftruncate(made.getDescriptor(), off_t(contents->fileBytes)) != 0)
    error = makeError(std::strerror(errno));
  if (isHub() && !error)
    error = writeAt(made.getDescriptor(), head.data(), head.size(), 0);
  if (ExecutorStatus failed = agree(error ? failWrite(error->message) : std::nullopt))
    return failed;
  std::string name = made.getName();
  if (Status status = tellAll(name); !status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  int descriptor = isHub() ? made.getDescriptor() : ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0)
    return agree(::fail(ErrorKind::Arguments, concat("rank ", ranks.front().rank, " does not see ", printable(name),
                                                     ": --save needs a disk that all ranks see")));
  error = writeStates(descriptor, saved);
  // Rank 0 sends what it knows of to the disk when it gives the file its name; what others have written may be on their machines yet.
  if (!isHub() && !error && fsync(descriptor) != 0)
    error = makeError(std::strerror(errno));
  if (!isHub())
    close(descriptor);
  if (ExecutorStatus failed = agree(error ? failWrite(error->message) : checkExhausted()))
    return failed;
  code = isHub() ? made.publish() : 0;
  return agree(code ? failWrite(std::strerror(code)) : std::nullopt);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// An open file, to be read.
struct Input {
  explicit Input(const std::string &path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Input() {
    if (descriptor >= 0)
      close(descriptor);
  }
  const int descriptor;
};
} // namespace

/// Elements are not looked at: a file of any size is told in the time that its header takes.
// A pipe or a device is refused, since nobody can read it twice.
program::Result<Safetensors> cleave::runtime::readCheckpoint(const std::string &path) {
  Input file(path);
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0)
    return makeError("cannot read ", printable(path), ": ", std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return makeError("cannot read ", printable(path), ": it is not a regular file");
  program::Result<Safetensors> contents = cleave::arrays::readSafetensors(
      [&](uint64_t offset, char *to, size_t bytes) { return readAt(file.descriptor, offset, to, bytes); },
      uint64_t(status.st_size));
  if (!contents)
    return makeError(printable(path), ": ", contents.getError().message);
  return contents;
}

/// Statistics of batch norms are the model's, as its weights are; a master is a weight.
static bool isOfModel(const program::Program &program, const program::Tensor &state) {
  if (state.role == StepRole::Parameter || state.role == StepRole::Running)
    return true;
  const std::vector<program::Tensor> &inputs = program.variants.front().inputs;
  std::string name = getWhole(program, state).name;
  return state.role == StepRole::Optimizer && std::any_of(inputs.begin(), inputs.end(), [&](const auto &other) {
           return other.role == StepRole::Parameter && getWhole(program, other).name == name;
         });
}

static bool isFloat(program::Element element) { return element <= program::Element::F64; }

/// Where a state's elements are in a file: in the tensor that it is of, or in one of its own name.
static program::Result<const SafeTensor *> findSaved(const program::Program &program, const program::Tensor &state,
                                                     const Safetensors &contents, Whole &whole) {
  const program::Type &type = program.types[state.type];
  whole = getWhole(program, state);
  const SafeTensor *found = contents.find(whole.name);
  if (!found && state.name != whole.name) {
    whole = getOwn(program, state);
    found = contents.find(state.name);
  }
  if (!found)
    return makeError("has no ", quote(whole.name),
                     isOfModel(program, state) ? "" : ": --weights-from begins with new states");
  program::Type wanted{type.element, whole.shape, {}}, got{found->element, found->shape, {}};
  if (found->shape != whole.shape ||
      (got.element != wanted.element && !(isFloat(got.element) && isFloat(wanted.element))))
    return makeError(quote(whole.name), " is ", format(got), ", the model has ", format(wanted));
  return found;
}

namespace {
/// A checkpoint as weights of a program, and what a rank loads of them.
struct Loads {
  program::Program weights;
  std::vector<std::pair<const program::Place *, program::Load>> loads;
};
} // namespace

/// The load of what a place holds of a state.
static program::Load makeLoad(program::Program &weights, const program::Place &place, const program::Type &local,
                              uint32_t weight, const std::vector<int64_t> &starts) {
  program::Load load;
  load.weight = weight;
  load.starts = place.starts;
  for (size_t dim = 0; dim < starts.size(); ++dim)
    load.starts[dim].base += starts[dim];
  load.shape = local.shape;
  load.present = place.present;
  load.target.type = uint32_t(weights.types.size());
  weights.types.push_back({local.element, local.shape, {}});
  return load;
}

/// Into memory of the host, dense, and from there to where the state lies. What is not there of an uneven box is zeros.
static program::Status readState(const Loads &from, const WeightFiles &files, const program::Program &program,
                                 const LocalRank &rank) {
  WeightFiles::Reader reader;
  for (const auto &[place, load] : from.loads) {
    if (place->role != rank.role)
      continue;
    const program::Type &local = program.types[place->view.type];
    std::vector<char> elements(program::getBytes({local.element, local.shape, {}}));
    if (program::Status error = files.load(load, rank.rank, elements.data(), reader))
      return error;
    uint64_t size = program::getElementBytes(local.element);
    rank.device->upload(planCopy(size, local.shape, {}, program::getStrides(local)), elements.data(),
                        rank.memory->get(place->view));
  }
  return program::kGood;
}

/// In three steps: what the file has is compared with what the program wants, before anything changes; states that do not come from the
/// file begin anew; then each rank loads its boxes. Each process reads the file by itself, and they agree at the end.
ExecutorStatus Executor::State::loadStates(const std::string &path, bool onlyParameters,
                                           std::map<std::string, std::string> *metadata) {
  program::Result<Safetensors> contents = readCheckpoint(path);
  if (!contents)
    return agree(::fail(ErrorKind::Weights, contents.getError().message));
  if (metadata)
    *metadata = contents->metadata;
  Loads from;
  from.weights.ranks = program.ranks;
  from.weights.columns = program.columns;
  from.weights.rankTable = program.rankTable;
  from.weights.files.push_back({path, contents->fileBytes});
  for (uint32_t input : listStates(program)) {
    const program::Tensor &state = program.variants.front().inputs[input];
    if (onlyParameters && !isOfModel(program, state))
      continue;
    Whole whole;
    program::Result<const SafeTensor *> found = findSaved(program, state, *contents, whole);
    if (!found)
      return agree(::fail(ErrorKind::Weights, concat(printable(path), ": ", found.getError().message)));
    program::Weight weight;
    weight.name = (*found)->name;
    weight.type = uint32_t(from.weights.types.size());
    weight.file = 0;
    weight.offset = (*found)->offset;
    weight.length = (*found)->bytes;
    from.weights.types.push_back({(*found)->element, (*found)->shape, {}});
    for (const program::Place &place : state.places)
      from.loads.emplace_back(&place, makeLoad(from.weights, place, program.types[place.view.type],
                                               uint32_t(from.weights.weights.size()), whole.starts));
    from.weights.weights.push_back(std::move(weight));
  }
  if (onlyParameters)
    if (ExecutorStatus error = resetStates())
      return error;
  WeightFiles files(from.weights, "", "", nullptr, /*verifies=*/false);
  program::Status error;
  for (const program::Weight &weight : from.weights.weights)
    if (!error)
      error = files.check(weight);
  std::vector<program::Status> errors(ranks.size());
  if (!error)
    threads->run([&](size_t local) { errors[local] = readState(from, files, program, ranks[local]); },
                 [] { return true; });
  for (const program::Status &each : errors)
    error = error ? error : each;
  return agree(error ? ::fail(ErrorKind::Weights, error->message) : checkExhausted());
}
