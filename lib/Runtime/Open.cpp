//===- Open.cpp - from the bytes of a program to ranks that can run -------===//
//
//   read and check ─▶ communicators, devices ─▶ target, code ─▶ memory ─▶ weights, all ranks at once ─▶ commands bound
//
// Where ranks are processes, they first see that they have the same program, and that all have come this far.
//
//===----------------------------------------------------------------------===//
#include "ExecutorState.h"
#include "OwnLibraries.h"
#include "cleave/Program/Digest.h"
#include "cleave/Program/File.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <numeric>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::concat;
using program::quote;
using program::Result;

static ExecutorStatus fail(ErrorKind kind, std::string message) { return ExecutorError{kind, std::move(message)}; }

/// `file` is what `bytes` are mapped from, if they are.
ExecutorStatus Executor::State::open(std::string_view bytes, const std::string &programFolder,
                                     std::shared_ptr<const FileBytes> programFile) {
  folder = programFolder;
  file = std::move(programFile);
  Result<program::Program> read = program::readProgram(bytes, program::Verify(options.verifies));
  if (!read)
    return ::fail(ErrorKind::Program, read.getError().message);
  program = std::move(*read);
  if (ExecutorStatus error = openRanks(bytes))
    return error;
  ExecutorStatus status = openDevices();
  if (!status)
    status = loadCode();
  if (!status)
    status = loadWeights();
  if (!status)
    status = bindRanks();
  if (ExecutorStatus error = agree(std::move(status)))
    return error;
  // What code and weights were made of is not needed any more.
  for (program::Module &module : program.modules)
    for (program::Object &object : module.objects)
      object.code = {};
  keepBeginnings();
  // Whoever listens does so while a program is opened.
  options.onLoad = nullptr;
  if (options.catchesCrashes)
    handlers.emplace();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// Communicators first: with them a rank can tell the others what goes wrong after.
ExecutorStatus Executor::State::openRanks(std::string_view bytes) {
  Status status;
  Options communication = options.communication;
  if (areProcesses()) {
    communication.program = program::hashBytes(bytes);
    // Until the program's own meetings are known (Together.cpp), messages are short.
    communication.largestMessage = 1 << 20;
  }
  std::vector<std::unique_ptr<Communicator>> communicators =
      runtime::openRanks(options.ranks, program.ranks, communication, options.rendezvous, status);
  if (!status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  ranks = std::vector<LocalRank>(communicators.size());
  for (size_t local = 0; local < ranks.size(); ++local) {
    ranks[local].rank = uint32_t(communicators[local]->getRank());
    ranks[local].communicator = std::move(communicators[local]);
  }
  threads = std::make_unique<RankThreads>(ranks.size(), options.pinsThreads);
  if (program::Status error = threads->start())
    return ::fail(ErrorKind::Machine, error->message);
  return areProcesses() ? comparePrograms(bytes) : std::nullopt;
}

/// What the program was compiled for.
ExecutorStatus Executor::State::makeDevices() {
  if (options.makeDevice) {
    devices.push_back(options.makeDevice());
    return std::nullopt;
  }
  if (program.targets.empty() || program.targets.front().device == program::Device::Host) {
    devices.push_back(makeHost());
    return std::nullopt;
  }
  std::vector<uint32_t> numbers;
  for (const LocalRank &rank : ranks)
    numbers.push_back(rank.rank);
  // Ranks that never meet need no library for it.
  bool areAlone = program.groups.empty() && program.pieces.empty();
  Result<std::vector<std::unique_ptr<Device>>> opened =
      openCudaLibrary(areAlone ? 1 : program.ranks, numbers, areProcesses(), options.cudaLibrary);
  if (!opened)
    return ::fail(ErrorKind::Machine, opened.getError().message);
  devices = std::move(*opened);
  return std::nullopt;
}

/// A device for each rank, or one for all of this process.
ExecutorStatus Executor::State::openDevices() {
  if (ExecutorStatus error = makeDevices())
    return error;
  std::vector<std::pair<uint32_t, Device *>> deviceOf;
  for (size_t local = 0; local < ranks.size(); ++local)
    deviceOf.emplace_back(ranks[local].rank, devices[devices.size() == 1 ? 0 : local].get());
  memory.emplace(program, deviceOf);
  for (size_t local = 0; local < ranks.size(); ++local) {
    LocalRank &rank = ranks[local];
    rank.role = memory->getRole(local);
    rank.memory = &memory->get(local);
    rank.device = deviceOf[local].second;
    rank.queue = rank.device->getQueue();
    rank.log = std::make_shared<CommandLog>(program, clock, rank.role);
    rank.communicator->setWork(rank.log);
  }
  return std::nullopt;
}

/// As many as the program is for, and all must have read the same file.
ExecutorStatus Executor::State::comparePrograms(std::string_view bytes) {
  Communicator &communicator = *ranks.front().communicator;
  uint64_t own = program::hashBytes(bytes);
  std::vector<uint64_t> all(size_t(communicator.getSize()));
  Status status = communicator.run(allGather(kWorld, ElementType::UI64, &own, all.data(), Tiling::contiguous(1)));
  if (!status.isOk())
    return ::fail(ErrorKind::Ranks, status.getMessage());
  if (std::all_of(all.begin(), all.end(), [&](uint64_t other) { return other == all.front(); })) {
    if (all.size() == program.ranks)
      return std::nullopt;
    return ::fail(ErrorKind::Machine,
                  concat("the program is for ", program.ranks, " ranks, the launcher started ", all.size()));
  }
  std::string table;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    char text[64];
    std::snprintf(text, sizeof(text), "%srank %zu: %016llx", rank ? ", " : "", rank,
                  static_cast<unsigned long long>(all[rank]));
    table += text;
  }
  return ::fail(ErrorKind::Program, "ranks have different programs: " + table);
}

/// The error of one rank is that of all.
ExecutorStatus Executor::State::agree(ExecutorStatus status) {
  if (!areProcesses())
    return status;
  Communicator &communicator = *ranks.front().communicator;
  Status failed = status ? communicator.fail(Cause::Aborted, status->message) : communicator.run(barrier(kWorld));
  if (failed.isOk())
    return std::nullopt;
  return ::fail(status ? status->kind : ErrorKind::Ranks, failed.getMessage());
}

/// Group by group in the program's order, which is that of all ranks.
void Executor::State::splitGroups(LocalRank &rank) {
  program::Status error;
  auto split = [&](std::vector<int> members, std::vector<GroupId> &ids) {
    if (std::find(members.begin(), members.end(), int(rank.rank)) == members.end())
      members.clear();
    ids.emplace_back();
    // What fails here, every operation will tell.
    (void)rank.communicator->split(members, ids.back());
    if (rank.queue && !error)
      error = rank.queue->split(*rank.communicator, members);
  };
  if (rank.queue && !(program.groups.empty() && program.pieces.empty()))
    error = rank.queue->connect(*rank.communicator);
  for (const program::Groups &groups : program.groups) {
    auto own = std::find(groups.ranks.begin(), groups.ranks.end(), rank.rank);
    auto begin = groups.ranks.begin() + (own - groups.ranks.begin()) / groups.size * groups.size;
    split(own == groups.ranks.end() ? std::vector<int>() : std::vector<int>(begin, begin + groups.size), rank.groups);
  }
  for (const program::Pieces &pieces : program.pieces) {
    std::vector<int> members;
    for (const std::vector<uint32_t> &meeting : program::getMeetings(pieces))
      if (std::binary_search(meeting.begin(), meeting.end(), rank.rank))
        members.assign(meeting.begin(), meeting.end());
    split(std::move(members), rank.pieceGroups);
  }
  // The others may be waiting for this rank.
  if (error)
    (void)rank.communicator->fail(Cause::Aborted, error->message);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// The first target that suits this machine. If none does, why each does not.
ExecutorStatus Executor::State::pickTarget(const Device &device, uint32_t &target) const {
  std::string reasons;
  for (target = 0; target < program.targets.size(); ++target) {
    std::optional<std::string> missing = device.findMissing(program.targets[target]);
    if (!missing)
      return std::nullopt;
    reasons += concat(reasons.empty() ? "" : "; ", "target ", target, ": ", *missing);
  }
  return ::fail(ErrorKind::Machine, concat("the program has no code for this machine: ", reasons));
}

/// Nothing runs that nobody wrote.
program::Status Executor::State::checkCode(const program::Object &object) const {
  uint64_t digest = options.verifies && object.digest ? program::hashBytes(object.code) : object.digest;
  if (digest == object.digest)
    return program::kGood;
  return program::makeError("its code is damaged: its digest is ", program::formatDigest(digest),
                            ", when it was written it was ", program::formatDigest(object.digest));
}

/// Of several objects for the target the first that loads counts; the last error is told if none does.
ExecutorStatus Executor::State::loadCode(Device &device, std::vector<KernelEntry> &entries) {
  uint32_t target = 0;
  if (ExecutorStatus error = pickTarget(device, target))
    return error;
  std::vector<uint32_t> code;
  for (const program::Module &module : program.modules) {
    bool isDamaged = false;
    Result<uint32_t> loaded = program::makeError("there is none for target ", target);
    for (const program::Object &object : module.objects)
      if (object.target == target && !loaded && !isDamaged) {
        program::Status damage = checkCode(object);
        isDamaged = damage.has_value();
        loaded = damage ? Result<uint32_t>(*damage) : device.load(object, module.name);
      }
    if (!loaded)
      return ::fail(ErrorKind::Program, concat("module ", quote(module.name), ": ", loaded.getError().message));
    code.push_back(*loaded);
  }
  for (const program::Kernel &kernel : program.kernels) {
    Result<KernelEntry> entry = device.find(code[kernel.module], kernel.entry);
    if (!entry)
      return ::fail(ErrorKind::Program, concat("kernel ", quote(kernel.name), ": ", entry.getError().message));
    entries.push_back(*entry);
  }
  return std::nullopt;
}

ExecutorStatus Executor::State::loadCode() {
  kernels.resize(devices.size());
  for (size_t i = 0; i < devices.size(); ++i)
    if (ExecutorStatus error = loadCode(*devices[i], kernels[i]))
      return error;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Weights that are loaded, those that states begin as or the others, are those that the program says.
program::Status Executor::State::checkWeights(WeightFiles &files, bool ofStates) const {
  std::vector<bool> isChecked(program.weights.size());
  for (const LocalRank &rank : ranks)
    for (const program::Load &load : program.roles[rank.role].loads) {
      if (isChecked[load.weight] || isOfState(program, rank.role, load) != ofStates)
        continue;
      isChecked[load.weight] = true;
      if (program::Status error = files.check(program.weights[load.weight]))
        return error;
    }
  return program::kGood;
}

/// All ranks of this process at once. Precondition: `checkWeights`.
program::Status Executor::State::fillWeights(const WeightFiles &files, bool ofStates) {
  auto getBytes = [&](const program::Load &load) {
    return program::getBytes({program.types[load.target.type].element, load.shape, {}});
  };
  auto getLoads = [&](size_t local) {
    std::vector<const program::Load *> loads;
    for (uint32_t number : memory->getLoads(local))
      if (const program::Load &load = program.roles[ranks[local].role].loads[number];
          isOfState(program, ranks[local].role, load) == ofStates)
        loads.push_back(&load);
    return loads;
  };
  uint64_t loaded = 0, total = 0;
  for (size_t local = 0; local < ranks.size(); ++local)
    for (const program::Load *load : getLoads(local))
      total += getBytes(*load);
  std::mutex mutex;
  std::vector<program::Status> errors(ranks.size());
  auto loadAll = [&](size_t local) {
    const LocalRank &rank = ranks[local];
    std::vector<Filling> fillings;
    for (const program::Load *load : getLoads(local)) {
      const program::Type &type = program.types[load->target.type];
      fillings.push_back(
          {load, rank.memory->getTarget(*load), program::getSpanBytes(type), program::getElementBytes(type.element)});
    }
    WeightFiles::Reader reader;
    auto read = [&](const program::Load &part, char *to) {
      program::Status error = files.load(part, rank.rank, to, reader);
      if (options.onLoad) {
        std::lock_guard<std::mutex> lock(mutex);
        options.onLoad(loaded += getBytes(part), total);
      }
      return error;
    };
    if (rank.queue)
      errors[local] = rank.queue->fill(fillings, read);
    else
      for (size_t i = 0; i < fillings.size() && !errors[local]; ++i)
        errors[local] = read(*fillings[i].load, fillings[i].target);
  };
  threads->run(loadAll, [] { return true; });
  for (const program::Status &error : errors)
    if (error)
      return error;
  return program::kGood;
}

/// All weights are compared with what the program says before any memory is taken.
ExecutorStatus Executor::State::loadWeights() {
  WeightFiles files(program, folder, options.weightsFolder, file.get(), options.verifies);
  for (bool ofStates : {false, true})
    if (program::Status error = checkWeights(files, ofStates))
      return ::fail(ErrorKind::Weights, error->message);
  if (program::Status error = memory->allocate(options.memoryLimit))
    return ::fail(ErrorKind::Memory, error->message);
  for (bool ofStates : {false, true})
    if (program::Status error = fillWeights(files, ofStates))
      return ::fail(ErrorKind::Weights, error->message);
  return checkExhausted();
}

/// A weight that stands in a program in memory is a view of bytes that the caller may throw away, one in a mapped file a view of pages.
/// What states begin as may be asked for again; where it stands in the program's own file, that stays open. Other weights in the
/// program are not needed any more.
void Executor::State::keepBeginnings() {
  std::vector<bool> isKept(program.weights.size());
  auto keep = [&](uint32_t weight) { isKept[weight] = !program.weights[weight].embedded.empty(); };
  for (uint32_t role = 0; role < program.roles.size(); ++role)
    for (const program::Load &load : program.roles[role].loads)
      if (isOfState(program, role, load)) {
        keep(load.weight);
        for (uint32_t part : program.weights[load.weight].parts)
          keep(part);
      }
  bool isAny = false;
  for (size_t i = 0; i < program.weights.size(); ++i) {
    program::Weight &weight = program.weights[i];
    isAny |= isKept[i];
    if (isKept[i] && !file)
      keptWeights.emplace_back(weight.embedded);
    else if (!isKept[i])
      weight.embedded = {};
  }
  // In the end: texts move while there are more.
  auto kept = keptWeights.begin();
  for (size_t i = 0; i < program.weights.size() && !file; ++i)
    if (isKept[i])
      program.weights[i].embedded = *kept++;
  if (!isAny)
    file.reset();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// Where memory has run out, the ranks are where nobody knows.
ExecutorStatus Executor::State::checkExhausted() const {
  return threads->isExhausted() ? ::fail(ErrorKind::Memory, "out of memory") : std::nullopt;
}

/// Something that all ranks do together, each on its own thread.
ExecutorStatus Executor::State::runRanks(void (State::*job)(LocalRank &)) {
  // Nobody is late because of what was done one by one before.
  for (LocalRank &rank : ranks)
    rank.communicator->beat();
  threads->run([&](size_t local) { (this->*job)(ranks[local]); }, [] { return true; });
  if (ExecutorStatus error = checkExhausted())
    return error;
  Communicator &any = *ranks.front().communicator;
  return any.hasFailed() ? ::fail(ErrorKind::Ranks, any.fail(Cause::Aborted, "stopped").getMessage()) : std::nullopt;
}

/// What collectives were bound to is known now.
void Executor::State::shareMemory(LocalRank &rank) {
  if (program::Status error = rank.queue ? rank.queue->share(*rank.communicator) : program::kGood)
    (void)rank.communicator->fail(Cause::Aborted, error->message);
}

/// Groups are made by all ranks before any binds: members look each other up.
ExecutorStatus Executor::State::bindRanks() {
  if (ExecutorStatus error = runRanks(&State::splitGroups))
    return error;
  for (size_t local = 0; local < ranks.size(); ++local) {
    LocalRank &rank = ranks[local];
    const std::vector<KernelEntry> &entries = kernels[devices.size() == 1 ? 0 : local];
    BindContext context = {program, rank.rank,   rank.role,        *rank.device,     *rank.memory,
                           entries, rank.groups, rank.pieceGroups, options.findsNan, rank.queue};
    rank.graphs.resize(program.variants.size());
    rank.hasRun.resize(program.variants.size());
    rank.lists.resize(program.variants.size());
    for (uint32_t variant = 0; variant < program.variants.size(); ++variant) {
      if (program::Status error = bind(context, variant, rank.lists[variant]))
        return ::fail(ErrorKind::Machine, concat("rank ", rank.rank, ": ", error->message));
      rank.inputs.push_back(findInputs(context, variant));
      rank.outputs.push_back(findOutputs(context, variant));
      if (options.keepsTimes)
        rank.times.reserve(std::max(rank.times.capacity(), rank.lists[variant].steps.size()));
    }
  }
  if (ExecutorStatus error = runRanks(&State::shareMemory))
    return error;
  // All are here again (`agree`) before any sends what is longer.
  largestMessage = areProcesses() ? findLargestMessage(ranks.front()) : 0;
  ranks.front().communicator->expectMessages(largestMessage);
  return std::nullopt;
}
