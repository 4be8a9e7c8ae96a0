//===- Nccl.cpp - communicators: made, split, called, given up ------------===//
//
// Calls of a group that are messages become one command per communicator and stream when the group ends, and communicators
// that are made in a group are waited for then. A communicator that is made without blocking is ready when all ranks have
// come; whoever asks for its error lets that go on.
//
// What a GPU would do at once is done here when its stream comes to it, so a collective that a rank forgot blocks the others'
// streams, and nothing else: their hosts see it in queries and in errors, as with the real one.
//
//===----------------------------------------------------------------------===//
#include "Comm.h"
#include "Entries.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace cleave::cuda;

/// As CLEAVE_ENTER, for functions with results of their own.
#define CLEAVE_ENTER_NCCL()                                                                                            \
  if (Result planned = enter(__func__); planned != Result::Success)                                                    \
  return NcclResult(planned)

/// A mistake of the caller: this call alone fails.
static NcclResult refuseUsage(const char *call, const std::string &why) {
  refuse(call, Result::InvalidValue, why);
  return NcclResult::InvalidUsage;
}

Progress cleave::cuda::failMember(Member &member, NcclResult error, const std::string &why) {
  member.error = error;
  fail(*member.device, Result::LaunchFailed, why);
  return Progress::Blocked;
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

/// Sits down; others may not be there yet.
static void takeRoom(Member &member, const std::string &path, uint32_t size, uint32_t rank) {
  std::string error;
  member.room = Room::open(path, size, rank, error);
  if (!member.room) {
    member.error = NcclResult::InvalidUsage;
    refuse("ncclCommInitRankConfig", Result::InvalidValue, error);
    return;
  }
  member.sends.resize(size);
  member.receives.resize(size);
}

/// Members of one color meet in a room of their own, in the order of their keys; between equal keys in that of the parent.
static void joinPart(Member &member) {
  const Room &room = *member.parent->room;
  for (uint32_t rank = 0; rank < room.size; ++rank)
    if (room.getSeat(rank).splits < member.splitNumber)
      return;
  std::vector<std::pair<int, uint32_t>> members;
  for (uint32_t rank = 0; rank < room.size; ++rank)
    if (room.getSeat(rank).color == member.color)
      members.push_back({room.getSeat(rank).key, rank});
  std::sort(members.begin(), members.end());
  auto own = std::find_if(members.begin(), members.end(), [&](auto other) { return other.second == room.rank; });
  room.getSeat(room.rank).splitsRead = member.splitNumber;
  takeRoom(member, room.path + "-" + std::to_string(member.splitNumber) + "-" + std::to_string(member.color),
           uint32_t(members.size()), uint32_t(own - members.begin()));
  member.parent = nullptr;
}

/// All members register, as much as each other; who has not keeps the others from going on.
static bool haveAllRegistered(const Member &member) {
  for (uint32_t rank = 0; member.windows && rank < member.getSize(); ++rank)
    if (member.room->getSeat(rank).windows < member.windows)
      return false;
  return true;
}

static void checkWindows(Member &member) {
  uint64_t own = member.room->getSeat(member.getRank()).windowBytes;
  for (uint32_t rank = 0; rank < member.getSize() && member.error == NcclResult::Success; ++rank) {
    const Seat &seat = member.room->getSeat(rank);
    if (seat.windows != member.windows || seat.windowBytes == own)
      continue;
    member.error = NcclResult::InvalidUsage;
    refuse("ncclCommWindowRegister", Result::InvalidValue,
           "rank " + std::to_string(member.getRank()) + " registers " + std::to_string(own) + " bytes, rank " +
               std::to_string(rank) + " " + std::to_string(seat.windowBytes));
  }
}

/// Where an operand lies in the communicator's windows; -1 if in none.
static int64_t findInWindow(const Member &member, const void *operand) {
  auto *address = static_cast<const char *>(operand);
  auto next = member.windowOf.upper_bound(address);
  if (next == member.windowOf.begin())
    return -1;
  --next;
  return address < next->first + next->second ? address - next->first : -1;
}

bool cleave::cuda::isReady(Member &member) {
  if (member.hangs)
    return false;
  if (member.parent)
    joinPart(member);
  if (member.windows)
    checkWindows(member);
  return member.error != NcclResult::Success ||
         (!member.parent && (!member.room || member.room->areAllHere()) && haveAllRegistered(member));
}

/// Ranks that never come are named, after ten times the patience of a stream: processes start when they start.
static NcclResult waitUntilReady(Member &member) {
  auto patience = std::chrono::duration<double>(10 * getPatience());
  while (!isReady(member)) {
    if (std::chrono::steady_clock::now() - member.begun > patience) {
      member.error = NcclResult::SystemError;
      const Room &room = member.parent ? *member.parent->room : *member.room;
      return refuseUsage("ncclCommInitRankConfig", "no communicator: of " + std::to_string(room.size) +
                                                       " ranks these have not come: " + room.nameMissing());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return member.error;
}

/// What was said for a split must have been read by all before the next is said. Whoever made parts without blocking may not
/// have looked at them since.
static void waitForSplits(Member &parent, uint64_t number) {
  for (uint32_t rank = 0; rank < parent.getSize(); ++rank)
    while (parent.room->getSeat(rank).splitsRead < number) {
      for (auto &part : parent.parts)
        if (MemberRef member = part.lock())
          isReady(*member);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

namespace {
/// What a thread's group has gathered.
struct Group {
  struct Entry {
    MemberRef member;
    StreamHandle *stream;
    std::vector<Message> messages;
    bool hangs = false;
  };
  int depth = 0;
  std::vector<Entry> messages;
  std::vector<MemberRef> making;
};
} // namespace

static thread_local Group group;

/// In a group, and without blocking, the caller goes on.
static NcclResult begin(const MemberRef &member, const NcclConfig *config) {
  member->isBlocking = !config || config->blocking != 0;
  if (member->error != NcclResult::Success)
    return member->error;
  if (group.depth > 0) {
    group.making.push_back(member);
    return NcclResult::Success;
  }
  if (!member->isBlocking)
    return isReady(*member) ? member->error.load() : NcclResult::InProgress;
  return waitUntilReady(*member);
}

namespace cleave::cuda {
extern "C" {

/// 2.28.9, which has all entries of the list.
NcclResult ncclGetVersion(int *version) {
  CLEAVE_ENTER_NCCL();
  *version = 22809;
  return NcclResult::Success;
}

/// The name of a file that will be made by the rank that comes first.
NcclResult ncclGetUniqueId(NcclUniqueId *id) {
  CLEAVE_ENTER_NCCL();
  std::string path = Room::makePath();
  if (path.size() >= sizeof id->bytes)
    return refuseUsage(__func__, "the name of the folder for temporary files is too long");
  *id = {};
  memcpy(id->bytes, path.data(), path.size());
  return NcclResult::Success;
}

/// There is a handle in any case but that of wrong arguments: it can be asked, aborted and destroyed.
NcclResult ncclCommInitRankConfig(NcclComm *comm, int ranks, NcclUniqueId id, int rank, NcclConfig *config) {
  *comm = nullptr;
  ContextHandle *device = getCurrent();
  if (!device)
    return NcclResult::UnhandledCudaError;
  Fault fault = takeFault(__func__, device->ordinal);
  if (fault.code)
    return NcclResult(fault.code);
  if (ranks <= 0 || ranks > 1024 || rank < 0 || rank >= ranks)
    return NcclResult::InvalidArgument;
  auto member = std::make_shared<Member>();
  member->device = device;
  member->hangs = fault.hangs;
  id.bytes[sizeof id.bytes - 1] = 0;
  if (!fault.hangs)
    takeRoom(*member, id.bytes, uint32_t(ranks), uint32_t(rank));
  *comm = new NcclCommHandle{member};
  return begin(member, config);
}

/// All ranks of the communicator call it, those without a group too.
NcclResult ncclCommSplit(NcclComm comm, int color, int key, NcclComm *part, NcclConfig *config) {
  *part = nullptr;
  if (!comm || !isReady(*comm->member))
    return refuseUsage(__func__, "the communicator is still being made");
  Member &parent = *comm->member;
  Fault fault = takeFault(__func__, parent.device->ordinal);
  if (fault.code)
    return NcclResult(fault.code);
  auto member = std::make_shared<Member>();
  member->device = parent.device;
  member->parent = comm->member;
  member->hangs = fault.hangs;
  member->splitNumber = ++parent.splits;
  member->color = color;
  const Room &room = *parent.room;
  waitForSplits(parent, member->splitNumber - 1);
  parent.parts.push_back(member);
  Seat &seat = room.getSeat(room.rank);
  seat.color = color;
  seat.key = key;
  seat.splits = member->splitNumber;
  if (color == kNcclNoColor) { // nothing is made here
    member->parent = nullptr;
    seat.splitsRead = member->splitNumber;
    return NcclResult::Success;
  }
  *part = new NcclCommHandle{member};
  return begin(member, config);
}

/// Nothing is left to be flushed: commands hold what they need.
NcclResult ncclCommFinalize(NcclComm comm) {
  CLEAVE_ENTER_NCCL();
  return comm ? NcclResult::Success : NcclResult::InvalidArgument;
}

NcclResult ncclCommDestroy(NcclComm comm) {
  CLEAVE_ENTER_NCCL();
  // Whoever leaves so is not missed, when its process ends.
  if (comm && comm->member->room)
    comm->member->room->getSeat(comm->member->getRank()).process = 0;
  delete comm;
  return NcclResult::Success;
}

/// Commands of this rank that wait for others end, without a result; others get to know.
NcclResult ncclCommAbort(NcclComm comm) {
  CLEAVE_ENTER_NCCL();
  if (!comm)
    return NcclResult::InvalidArgument;
  comm->member->isAborted = true;
  if (comm->member->room)
    comm->member->room->getSeat(comm->member->getRank()).hasAborted = 1;
  delete comm;
  return NcclResult::Success;
}

/// Also what lets a communicator that is made without blocking go on.
NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult *error) {
  if (!comm)
    return NcclResult::InvalidArgument;
  Member &member = *comm->member;
  // A fault that is planned for this call is one of the communicator.
  if (Fault fault = takeFault(__func__, member.device->ordinal); fault.code)
    member.error = NcclResult(fault.code);
  bool ready = isReady(member);
  if (ready && member.error == NcclResult::Success && member.room->findLost() >= 0)
    member.error = NcclResult::RemoteError;
  *error = ready ? member.error.load() : NcclResult::InProgress;
  return NcclResult::Success;
}

/// Groups nest; the outermost one counts.
NcclResult ncclGroupStart() {
  CLEAVE_ENTER_NCCL();
  ++group.depth;
  return NcclResult::Success;
}

/// Communicators first: messages may go over those.
NcclResult ncclGroupEnd() {
  CLEAVE_ENTER_NCCL();
  if (group.depth == 0)
    return refuseUsage(__func__, "no group has begun");
  if (--group.depth > 0)
    return NcclResult::Success;
  NcclResult result = NcclResult::Success;
  std::vector<MemberRef> making = std::move(group.making);
  std::vector<Group::Entry> messages = std::move(group.messages);
  group = {};
  for (const MemberRef &member : making) {
    bool goesOn = !member->isBlocking && !isReady(*member);
    NcclResult one = goesOn ? NcclResult::InProgress : waitUntilReady(*member);
    result = one == NcclResult::Success ? result : one;
  }
  for (const Group::Entry &entry : messages) {
    std::vector<Touch> touches;
    for (const Message &message : entry.messages)
      touches.push_back({message.memory, message.call.count * getBytes(message.call.type), !message.isSend});
    Lock lock(entry.member->device->mutex);
    Result enqueued = enqueue(*entry.stream, "a group of " + std::to_string(entry.messages.size()) + " messages",
                              touches, makeMessages(entry.member, entry.messages, entry.hangs));
    if (enqueued != Result::Success)
      result = NcclResult::UnhandledCudaError;
  }
  return result;
}

} // extern "C"
} // namespace cleave::cuda

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// What every call must have: a communicator that is ready, a stream of its device, memory of that.
static NcclResult check(const char *name, NcclComm comm, StreamHandle *stream, const std::vector<Touch> &touches) {
  if (!comm || !stream)
    return NcclResult::InvalidArgument;
  Member &member = *comm->member;
  if (!isReady(member))
    return refuseUsage(name, "the communicator is still being made");
  if (member.error != NcclResult::Success)
    return member.error;
  if (stream->device != member.device)
    return refuseUsage(name, "the stream is of device " + std::to_string(stream->device->ordinal) +
                                 ", the communicator of device " + std::to_string(member.device->ordinal));
  for (const Touch &touch : touches)
    if (touch.bytes && !isDeviceMemory(*member.device, touch.from, touch.bytes))
      return refuseUsage(name, "an operand is not all in memory of the device");
  return NcclResult::Success;
}

/// Enqueued at once, in a group too: nothing here waits for other devices of the same thread.
static NcclResult callCollective(const char *name, Call call, const void *input, void *output, NcclComm comm,
                                 Stream handle) {
  StreamHandle *stream = getStream(handle);
  if (!comm || !stream || getBytes(call.type) == 0)
    return NcclResult::InvalidArgument;
  Fault fault = takeFault(name, comm->member->device->ordinal);
  if (fault.code)
    return NcclResult(fault.code);
  Lock lock(stream->device->mutex);
  uint64_t bytes = call.count * getBytes(call.type), ranks = comm->member->room ? comm->member->getSize() : 1;
  Touch reads{static_cast<const char *>(input), bytes * (call.kind == CallKind::ReduceScatter ? ranks : 1), false};
  Touch writes{static_cast<const char *>(output), bytes * (call.kind == CallKind::AllGather ? ranks : 1), true};
  if (NcclResult result = check(name, comm, stream, {reads, writes}); result != NcclResult::Success)
    return result;
  // In place a rank's part lies among those of all.
  uint64_t part = comm->member->room ? comm->member->getRank() * bytes : 0;
  bool gathersInPlace = call.kind == CallKind::AllGather && input == static_cast<char *>(output) + part;
  bool scattersInPlace = call.kind == CallKind::ReduceScatter && output == static_cast<const char *>(input) + part;
  call.input = findInWindow(*comm->member, gathersInPlace ? output : input);
  call.output = findInWindow(*comm->member, scattersInPlace ? input : output);
  std::string what =
      call.describe() + ", rank " + std::to_string(comm->member->getRank()) + " of " + std::to_string(ranks);
  Result result =
      enqueue(*stream, what, {reads, writes}, makeCollective(comm->member, call, input, output, fault.hangs));
  return result == Result::Success ? NcclResult::Success : NcclResult::UnhandledCudaError;
}

/// A message alone is a group of one.
static NcclResult callMessage(const char *name, bool isSend, void *memory, size_t count, NcclType type, int peer,
                              NcclComm comm, Stream handle) {
  StreamHandle *stream = getStream(handle);
  if (!comm || !stream || getBytes(type) == 0)
    return NcclResult::InvalidArgument;
  Fault fault = takeFault(name, comm->member->device->ordinal);
  if (fault.code)
    return NcclResult(fault.code);
  {
    Lock lock(stream->device->mutex);
    Touch touch{static_cast<const char *>(memory), count * getBytes(type), !isSend};
    if (NcclResult result = check(name, comm, stream, {touch}); result != NcclResult::Success)
      return result;
  }
  if (peer < 0 || uint32_t(peer) >= comm->member->getSize())
    return NcclResult::InvalidArgument;
  bool isAlone = group.depth == 0;
  group.depth += isAlone;
  auto entry = std::find_if(group.messages.begin(), group.messages.end(), [&](const Group::Entry &other) {
    return other.member == comm->member && other.stream == stream;
  });
  if (entry == group.messages.end())
    entry = group.messages.insert(entry, {comm->member, stream, {}, false});
  entry->hangs |= fault.hangs;
  Call call{isSend ? CallKind::Send : CallKind::Recv, type, NcclReduction::Sum, count};
  entry->messages.push_back({isSend, static_cast<char *>(memory), call, uint32_t(peer)});
  return isAlone ? ncclGroupEnd() : NcclResult::Success;
}

namespace cleave::cuda {
extern "C" {

NcclResult ncclAllReduce(const void *input, void *output, size_t count, NcclType type, NcclReduction reduction,
                         NcclComm comm, Stream stream) {
  return callCollective(__func__, {CallKind::AllReduce, type, reduction, count}, input, output, comm, stream);
}

NcclResult ncclReduceScatter(const void *input, void *output, size_t outputCount, NcclType type,
                             NcclReduction reduction, NcclComm comm, Stream stream) {
  return callCollective(__func__, {CallKind::ReduceScatter, type, reduction, outputCount}, input, output, comm, stream);
}

NcclResult ncclAllGather(const void *input, void *output, size_t inputCount, NcclType type, NcclComm comm,
                         Stream stream) {
  return callCollective(__func__, {CallKind::AllGather, type, NcclReduction::Sum, inputCount}, input, output, comm,
                        stream);
}

NcclResult ncclSend(const void *input, size_t count, NcclType type, int peer, NcclComm comm, Stream stream) {
  return callMessage(__func__, true, const_cast<void *>(input), count, type, peer, comm, stream);
}

NcclResult ncclRecv(void *output, size_t count, NcclType type, int peer, NcclComm comm, Stream stream) {
  return callMessage(__func__, false, output, count, type, peer, comm, stream);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

NcclResult ncclMemAlloc(void **memory, size_t bytes) {
  CLEAVE_ENTER_NCCL();
  DevicePointer address = 0;
  // Whole pages begin at pages.
  size_t whole = (bytes + kNcclWindowAlignment - 1) / kNcclWindowAlignment * kNcclWindowAlignment;
  Result result = cuMemAlloc_v2(&address, std::max(whole, kNcclWindowAlignment));
  *memory = reinterpret_cast<void *>(address);
  return result == Result::Success ? NcclResult::Success : NcclResult::UnhandledCudaError;
}

/// No window may be left; that is not checked.
NcclResult ncclMemFree(void *memory) {
  CLEAVE_ENTER_NCCL();
  Result result = cuMemFree_v2(reinterpret_cast<DevicePointer>(memory));
  return result == Result::Success ? NcclResult::Success : NcclResult::UnhandledCudaError;
}

/// Collectives do not need windows here; but operands in one must lie alike on all ranks.
NcclResult ncclCommWindowRegister(NcclComm comm, void *memory, size_t bytes, NcclWindow *window, int) {
  CLEAVE_ENTER_NCCL();
  if (!comm || !isReady(*comm->member))
    return refuseUsage(__func__, "the communicator is still being made");
  Member &member = *comm->member;
  {
    ContextHandle &device = *member.device;
    Lock lock(device.mutex);
    if (reinterpret_cast<uintptr_t>(memory) % kNcclWindowAlignment || !isDeviceMemory(device, memory, bytes))
      return refuseUsage(__func__, "a window must be memory of the device that begins at a multiple of 4096");
    auto *begin = static_cast<const char *>(memory);
    for (auto [other, otherBytes] : device.windows)
      if (begin < other + otherBytes && other < begin + bytes)
        return refuseUsage(__func__, "some of the memory is in another window");
    device.windows[begin] = bytes;
    member.windowOf[begin] = bytes;
  }
  Seat &seat = member.room->getSeat(member.getRank());
  seat.windowBytes = bytes;
  seat.windows = ++member.windows;
  *window = reinterpret_cast<NcclWindow>(memory);
  if (member.isBlocking)
    return waitUntilReady(member);
  return isReady(member) ? member.error.load() : NcclResult::InProgress;
}

NcclResult ncclCommWindowDeregister(NcclComm comm, NcclWindow window) {
  CLEAVE_ENTER_NCCL();
  if (!comm || !window)
    return NcclResult::InvalidArgument;
  auto *begin = reinterpret_cast<const char *>(window);
  Lock lock(comm->member->device->mutex);
  comm->member->device->windows.erase(begin);
  return comm->member->windowOf.erase(begin) ? NcclResult::Success : NcclResult::InvalidArgument;
}

} // extern "C"
} // namespace cleave::cuda
