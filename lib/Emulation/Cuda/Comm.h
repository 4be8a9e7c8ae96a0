//===- Comm.h - communicators that are not there ----------------*- C++ -*-===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_COMM_H
#define CLEAVE_LIB_EMULATION_CUDA_COMM_H

#include "Room.h"
#include "State.h"

namespace cleave::cuda {

/// One rank's side of a communicator. Commands in queues hold it, and may outlive its handle.
struct Member {
  ContextHandle *device = nullptr;
  std::shared_ptr<Room> room;
  uint64_t collectives = 0;              // enqueued
  std::vector<uint64_t> sends, receives; // to and from each rank
  uint64_t splits = 0;
  std::atomic<bool> isAborted{false};
  std::atomic<NcclResult> error{NcclResult::Success};
  // While it is made by a split: the members of the parent say what they want, then it has a room.
  std::shared_ptr<Member> parent;
  uint64_t splitNumber = 0;
  int color = 0;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  bool isBlocking = true;
  uint64_t windows = 0;                      // registered
  std::map<const char *, uint64_t> windowOf; // bytes, by address
  bool hangs = false;                        // planned: it never comes into being
  std::vector<std::weak_ptr<Member>> parts;  // that this one was split into

  uint32_t getRank() const { return room->rank; }
  uint32_t getSize() const { return room->size; }
};
using MemberRef = std::shared_ptr<Member>;

struct NcclCommHandle {
  MemberRef member;
};

uint64_t getBytes(NcclType type);
/// An error of a communicator, found and kept: one line.
Progress failMember(Member &member, NcclResult error, const std::string &why);
/// True when the communicator can be used; goes on with making it.
bool isReady(Member &member);

/// Sends and receives of one group.
struct Message {
  bool isSend;
  char *memory;
  Call call;
  uint32_t peer;
  uint64_t number = 0; // in its channel
  bool isPosted = false, isDone = false;
};

// Collective.cpp, Messages.cpp: the steps of commands.
MakeStep makeCollective(const MemberRef &member, const Call &call, const void *input, void *output, bool hangs);
MakeStep makeMessages(const MemberRef &member, const std::vector<Message> &messages, bool hangs);
/// Combines terms of `ranks` ranks that lie one after the other, from the first to the last: f16 and bf16 in f32 and rounded
/// once, integers modulo 2^bits; NaN wins a maximum and a minimum.
void combine(NcclReduction reduction, NcclType type, const char *terms, uint64_t stride, uint32_t ranks, char *result,
             uint64_t count);

} // namespace cleave::cuda

#endif // CLEAVE_LIB_EMULATION_CUDA_COMM_H
