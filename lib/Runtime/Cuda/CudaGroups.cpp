//===- CudaGroups.cpp - what ranks do together, by NCCL -------------------===//
//
// Parts are contiguous by the time they come here, and pieces are runs: what all_to_all and exchanges move goes point to
// point, in one group call. Sizes that NCCL has no type for are moved as bytes.
//
//===----------------------------------------------------------------------===//
#include "CudaGroups.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace cleave::runtime;
using namespace cleave::cuda;
using cleave::program::kGood;
using cleave::program::makeError;
namespace program = cleave::program;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

program::Status CudaGroups::describe(NcclResult result, const char *what) const {
  if (result == NcclResult::Success)
    return kGood;
  return makeError("NCCL cannot ", what, ": ", cuda::describe(result));
}

/// Waits until a call is through that NCCL goes on with by itself: not for ever, and not when a rank has failed.
program::Status CudaGroups::finish(NcclResult result, const char *what, NcclComm comm, int64_t deadline) const {
  while (result == NcclResult::InProgress) {
    if (peers->hasFailed())
      return makeError("NCCL did not ", what, ": another rank has failed");
    if (getNow() > deadline)
      return makeError("NCCL did not ", what, " within ", formatSeconds(peers->getDeadline()),
                       ", though all ranks have come");
    std::this_thread::yield();
    if (NcclResult asked = nccl.ncclCommGetAsyncError(comm, &result); asked != NcclResult::Success)
      return describe(asked, what);
  }
  return describe(result, what);
}

/// All ranks have called when this returns, and NCCL is done with it.
program::Status CudaGroups::meetAll(Communicator &ranks, NcclResult result, const char *what, NcclComm comm) const {
  if (result != NcclResult::Success && result != NcclResult::InProgress)
    return describe(result, what);
  if (cleave::runtime::Status met = ranks.run(barrier(kWorld)); !met.isOk())
    return makeError("NCCL did not ", what, ": ", met.getMessage());
  return finish(result, what, comm, getNow() + int64_t(ranks.getDeadline() * 1e9));
}

/// That another rank is gone is told a second late: whoever knows why says so before.
program::Status CudaGroups::getError() {
  constexpr int64_t second = 1000000000;
  for (const Group &group : groups) {
    NcclResult result = NcclResult::Success;
    if (!group.comm || group.isShared)
      continue;
    if (program::Status error = describe(nccl.ncclCommGetAsyncError(group.comm, &result), "be asked for errors"))
      return error;
    if (result == NcclResult::InProgress || result == NcclResult::Success)
      continue;
    lostAt = lostAt ? lostAt : getNow();
    if (result != NcclResult::RemoteError || getNow() - lostAt > second)
      return describe(result, "go on");
  }
  return kGood;
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

namespace {
/// What all tell all: the id, which is rank 0's, and where they are.
struct Card {
  NcclUniqueId id;
  Uuid device;
};
} // namespace

/// NCCL wants a device for each rank, and says so in words of its own.
static program::Status compareDevices(const std::vector<Card> &cards) {
  auto areAlike = [&](size_t a, size_t b) {
    const Uuid none = {};
    return std::memcmp(&cards[a].device, &none, sizeof(none)) != 0 &&
           std::memcmp(&cards[a].device, &cards[b].device, sizeof(none)) == 0;
  };
  for (size_t rank = 0; rank < cards.size(); ++rank)
    for (size_t other = 0; other < rank; ++other)
      if (areAlike(rank, other))
        return makeError("ranks ", other, " and ", rank,
                         " are on the same CUDA device, NCCL wants one for each; what a "
                         "process sees is in CUDA_VISIBLE_DEVICES, and which it takes in LOCAL_RANK");
  return kGood;
}

/// Rank 0 makes the id, and all get it. Where it cannot, nobody waits for it: what fails there is the failure of all.
program::Status CudaGroups::connect(Communicator &ranks, const Uuid &device) {
  peers = &ranks;
  rank = uint32_t(ranks.getRank());
  uint32_t size = uint32_t(ranks.getSize());
  Card own = {{}, device};
  if (rank == 0)
    if (program::Status error = describe(nccl.ncclGetUniqueId(&own.id), "make an id"))
      return error;
  std::vector<Card> cards(size);
  Tiling each = Tiling::contiguous(sizeof(Card));
  if (cleave::runtime::Status got = ranks.run(allGather(kWorld, ElementType::UI8, &own, cards.data(), each));
      !got.isOk())
    return makeError("NCCL did not connect the ranks: ", got.getMessage());
  if (program::Status error = compareDevices(cards))
    return error;
  NcclConfig config;
  config.blocking = 0;
  Group &all = groups.emplace_back();
  all.size = size;
  all.index = rank;
  for (uint32_t member = 0; member < size; ++member)
    all.members.push_back(int(member));
  NcclResult begun = nccl.ncclCommInitRankConfig(&all.comm, int(size), cards.front().id, int(rank), &config);
  return meetAll(ranks, begun, "connect the ranks", all.comm);
}

/// All ranks take part, those that are in no group too.
program::Status CudaGroups::split(Communicator &ranks, const std::vector<int> &members) {
  Group all = groups.front();
  Group &group = groups.emplace_back();
  group.size = uint32_t(members.size());
  group.members = members;
  group.index = uint32_t(std::find(members.begin(), members.end(), int(rank)) - members.begin());
  if (members.size() == all.size && std::is_sorted(members.begin(), members.end())) {
    group.comm = all.comm;
    group.isShared = true;
    return kGood;
  }
  NcclConfig config;
  config.blocking = 0;
  config.splitShare = 1;
  int color = members.empty() ? kNcclNoColor : *std::min_element(members.begin(), members.end());
  NcclResult begun = nccl.ncclCommSplit(all.comm, color, int(group.index), &group.comm, &config);
  program::Status error = meetAll(ranks, begun, "split the ranks", all.comm);
  if (error || !group.comm)
    return error;
  return finish(NcclResult::InProgress, "make a group", group.comm, getNow() + int64_t(ranks.getDeadline() * 1e9));
}

/// Groups before what they were split from. All that ranks do together is done, or given up: so nobody need be waited for.
CudaGroups::~CudaGroups() {
  for (auto [comm, window] : windows)
    (void)nccl.ncclCommWindowDeregister(comm, window);
  abort();
}

void CudaGroups::abort() {
  windows.clear();
  for (; !groups.empty(); groups.pop_back())
    if (groups.back().comm && !groups.back().isShared)
      (void)nccl.ncclCommAbort(groups.back().comm);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
/// A type of NCCL, and how many of it an element is.
struct Elements {
  NcclType type;
  uint64_t count;
};
} // namespace

static Elements convert(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return {NcclType::F16, 1};
  case ElementType::BF16:
    return {NcclType::BF16, 1};
  case ElementType::F32:
    return {NcclType::F32, 1};
  case ElementType::F64:
    return {NcclType::F64, 1};
  case ElementType::I8:
    return {NcclType::I8, 1};
  case ElementType::I1:
  case ElementType::UI8:
    return {NcclType::UI8, 1};
  case ElementType::I16:
  case ElementType::UI16:
    return {NcclType::UI8, 2};
  case ElementType::I32:
    return {NcclType::I32, 1};
  case ElementType::UI32:
    return {NcclType::UI32, 1};
  case ElementType::I64:
    return {NcclType::I64, 1};
  case ElementType::UI64:
    break;
  }
  return {NcclType::UI64, 1};
}

static NcclReduction convert(Reduction reduction) {
  return reduction == Reduction::Prod  ? NcclReduction::Prod
         : reduction == Reduction::Max ? NcclReduction::Max
         : reduction == Reduction::Min ? NcclReduction::Min
                                       : NcclReduction::Sum;
}

program::Status cleave::runtime::checkNccl(const Operation &operation) {
  if (reduces(operation.kind) && convert(operation.type).count > 1)
    return makeError("combines integers of 16 bits, which NCCL does not");
  return kGood;
}

/// Between start and end of a group call. Members are counted as in the group.
NcclResult CudaGroups::start(const Operation &operation, Stream stream) const {
  const Group &group = groups[operation.group];
  Elements elements = convert(operation.type);
  uint64_t count = operation.count * elements.count, bytes = cleave::program::getElementBytes(operation.type);
  const char *input = static_cast<const char *>(operation.input);
  char *output = static_cast<char *>(operation.output);
  NcclResult result = NcclResult::Success;
  auto isFine = [](NcclResult got) { return got == NcclResult::Success || got == NcclResult::InProgress; };
  switch (operation.kind) {
  case OperationKind::Barrier: {
    void *address = reinterpret_cast<void *>(word);
    return nccl.ncclAllReduce(address, address, 1, NcclType::I32, NcclReduction::Max, group.comm, stream);
  }
  case OperationKind::AllReduce:
    return nccl.ncclAllReduce(input, output, count, elements.type, convert(operation.reduction), group.comm, stream);
  case OperationKind::AllGather:
    return nccl.ncclAllGather(input, output, count, elements.type, group.comm, stream);
  case OperationKind::ReduceScatter:
    return nccl.ncclReduceScatter(input, output, count, elements.type, convert(operation.reduction), group.comm,
                                  stream);
  case OperationKind::AllToAll:
    for (uint64_t member = 0; member < group.size && isFine(result); ++member) {
      uint64_t offset = member * operation.count * bytes;
      result = nccl.ncclSend(input + offset, count, elements.type, int(member), group.comm, stream);
      if (isFine(result))
        result = nccl.ncclRecv(output + offset, count, elements.type, int(member), group.comm, stream);
    }
    return result;
  case OperationKind::Exchange:
    for (uint64_t i = 0; i < operation.numPieces && isFine(result); ++i) {
      const Piece &piece = operation.pieces[i];
      uint64_t size = piece.rows * piece.row * elements.count;
      if (piece.source == group.index)
        result = nccl.ncclSend(input + piece.sourceOffset * bytes, size, elements.type, int(piece.target), group.comm,
                               stream);
      if (piece.target == group.index && isFine(result))
        result = nccl.ncclRecv(output + piece.targetOffset * bytes, size, elements.type, int(piece.source), group.comm,
                               stream);
    }
    return result;
  }
  return result;
}

program::Status CudaGroups::meet(const std::vector<Operation> &operations, Stream stream) {
  NcclComm comm = groups[operations.front().group].comm;
  if (program::Status error = describe(nccl.ncclGroupStart(), "begin a group call"))
    return error;
  NcclResult result = NcclResult::Success;
  for (const Operation &operation : operations) {
    bool isEmpty = hasTensors(operation.kind) && operation.count == 0;
    if (!isEmpty && (result == NcclResult::Success || result == NcclResult::InProgress))
      result = start(operation, stream);
  }
  // A group that was begun must end, whatever came of what stands in it.
  NcclResult ended = nccl.ncclGroupEnd();
  if (result != NcclResult::Success && result != NcclResult::InProgress)
    return describe(result, getWord(operations.front().kind));
  return finish(ended, getWord(operations.front().kind), comm, getNow() + int64_t(peers->getDeadline() * 1e9));
}
