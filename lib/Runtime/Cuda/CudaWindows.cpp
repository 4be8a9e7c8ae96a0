//===- CudaWindows.cpp - memory that all ranks of a group may address -----===//
//
// NCCL is faster with operands in memory of its own, registered as a window of a communicator that all members give alike: as
// large, with operands at equal offsets. One address may be in one window only, so the group whose collectives move most gets
// the arenas. Whether they are alike ranks find out by telling all what they would register; where they are not, or where NCCL
// cannot, nothing is registered, on any rank, and the program runs as well.
//
//===----------------------------------------------------------------------===//
#include "CudaGroups.h"
#include "cleave/Program/Digest.h"

#include <algorithm>

using namespace cleave::runtime;
using namespace cleave::cuda;
namespace cuda = cleave::cuda;
namespace program = cleave::program;

/// What a rank would register, in numbers that members compare.
namespace {
struct Proposal {
  uint64_t group, digest;
};
} // namespace

/// Where in the arenas: which one, and the byte; -1 elsewhere.
static std::string locate(const std::vector<Arena> &arenas, const void *operand) {
  for (size_t i = 0; i < arenas.size(); ++i) {
    const auto *at = static_cast<const char *>(operand);
    if (at >= arenas[i].memory && at < arenas[i].memory + arenas[i].bytes)
      return std::to_string(i) + "+" + std::to_string(at - arenas[i].memory);
  }
  return "-1";
}

/// A collective that was bound: its bytes, and where its operands lie.
void CudaGroups::note(const Operation &operation) {
  if (!hasTensors(operation.kind))
    return;
  uint64_t bytes = operation.count * program::getElementBytes(operation.type);
  const char *input = static_cast<const char *>(operation.input), *output = static_cast<const char *>(operation.output);
  // In place a rank's part lies where it belongs among those of all, which is not where others' lie, and right.
  uint64_t part = groups[operation.group].index * bytes;
  if (hasOwnPiece(operation.kind) && gathers(operation.kind) && input == output + part)
    input = output;
  if (hasOwnPiece(operation.kind) && slices(operation.kind) && output == input + part)
    output = input;
  notes.push_back({operation.group, bytes, input, output});
}

/// Of groups that move as much the first.
static uint64_t pickGroup(const std::vector<Noted> &notes) {
  std::vector<uint64_t> bytes(1);
  for (const Noted &note : notes) {
    bytes.resize(std::max<size_t>(bytes.size(), note.group + 1));
    bytes[note.group] += note.bytes;
  }
  return uint64_t(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

program::Status CudaGroups::share(Communicator &ranks, const std::vector<Arena> &arenas) {
  Proposal own = {pickGroup(notes), 0};
  std::string text;
  for (const Arena &arena : arenas)
    text += std::to_string(arena.bytes) + " ";
  for (const Noted &note : notes)
    if (note.group == own.group)
      text += locate(arenas, note.input) + " " + locate(arenas, note.output) + " ";
  // Zero is nobody's: there is nothing to register.
  bool canShare = nccl.ncclCommWindowRegister && nccl.ncclCommWindowDeregister && !arenas.empty();
  own.digest = canShare && !notes.empty() ? program::hashBytes(text) | 1 : 0;
  std::vector<Proposal> all(size_t(ranks.getSize()));
  if (Status met =
          ranks.run(allGather(kWorld, ElementType::UI64, &own, all.data(), Tiling::contiguous(sizeof(Proposal) / 8)));
      !met.isOk())
    return program::makeError("NCCL did not share memory: ", met.getMessage());
  const Group &group = groups[own.group];
  bool areAlike = own.digest != 0 && std::all_of(group.members.begin(), group.members.end(), [&](int member) {
                    const Proposal &other = all[size_t(member)];
                    return other.group == own.group && other.digest == own.digest;
                  });
  if (!canShare)
    why = nccl.ncclCommWindowRegister ? "no memory of NCCL's" : "this NCCL has no windows";
  else if (!areAlike)
    why = notes.empty() ? "no collectives" : "operands lie otherwise on other ranks";
  windowGroup = own.group;
  for (const Arena &arena : arenas)
    if (program::Status error = areAlike ? registerArena(group.comm, arena) : program::kGood)
      return error;
  return program::kGood;
}

/// A library that sees no use in it on this machine gives no window, or refuses, on all ranks alike.
program::Status CudaGroups::registerArena(NcclComm comm, const Arena &arena) {
  NcclWindow window = nullptr;
  NcclResult result = nccl.ncclCommWindowRegister(comm, arena.memory, arena.bytes, &window, kNcclWindowSymmetric);
  if (result == NcclResult::InvalidUsage || result == NcclResult::InvalidArgument)
    why = cuda::describe(result);
  else if (program::Status error =
               finish(result, "register memory", comm, getNow() + int64_t(peers->getDeadline() * 1e9)))
    return error;
  else if (window)
    windows.push_back({comm, window});
  else
    why = "NCCL makes no window here";
  return program::kGood;
}

/// How many collectives have their operands in a window.
WindowUse CudaGroups::getWindows() const {
  WindowUse use;
  for (const Noted &note : notes)
    ++(!windows.empty() && note.group == windowGroup ? use.collectives : use.without);
  if (use.without)
    use.reason = windows.empty() ? why : "of another group";
  return use;
}
