//===- Room.h - where the ranks of a communicator meet ----------*- C++ -*-===//
//
// A file that all of them map: ranks are threads of one process, or processes, and it is all the same. Its name is the unique
// id; once all have come the name goes away.
//
//   header | a seat per rank | a channel per pair of ranks | data: a part per rank, a part per pair
//
// What is meant for others is written into the data part of its rank; a counter says that it is there, and others that they
// have read it. So each rank does its own part of a collective, whenever its stream comes to it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_ROOM_H
#define CLEAVE_LIB_EMULATION_CUDA_ROOM_H

#include "cleave/Cuda/Nccl.h"
#include <atomic>
#include <memory>
#include <string>

namespace cleave::cuda {

enum class CallKind : uint32_t { None, AllReduce, ReduceScatter, AllGather, Send, Recv };

/// What members of a collective must agree on, and both ends of a message.
struct Call {
  CallKind kind = CallKind::None;
  NcclType type = NcclType::I8;
  NcclReduction reduction = NcclReduction::Sum;
  uint64_t count = 0;
  /// Where operands lie in windows, which all members must do alike; -1: not in one.
  int64_t input = -1, output = -1;

  bool operator==(const Call &other) const {
    return kind == other.kind && type == other.type && reduction == other.reduction && count == other.count &&
           input == other.input && output == other.output;
  }
  /// `all_reduce sum of 12 f32`.
  std::string describe() const;
};

/// What a rank says.
struct Seat {
  std::atomic<uint32_t> isTaken;
  std::atomic<uint32_t> hasAborted;
  std::atomic<int64_t> process;
  std::atomic<uint64_t> posted, read;       // collectives
  Call call;                                // the last one posted
  std::atomic<uint64_t> splits, splitsRead; // likewise
  std::atomic<int32_t> color, key;
  std::atomic<uint64_t> windows, windowBytes; // how many it has registered, and the last
};

/// Messages from one rank to another.
struct Channel {
  std::atomic<uint64_t> sent, received;
  Call call;
};

class Room {
public:
  /// Opens the file for `size` ranks and takes the seat of `rank`; null, with a reason, if that is impossible.
  static std::shared_ptr<Room> open(const std::string &path, uint32_t size, uint32_t rank, std::string &error);
  /// A name that nobody else has.
  static std::string makePath();
  ~Room();

  bool areAllHere() const;
  /// The ranks that have not come.
  std::string nameMissing() const;
  /// A member that has aborted or died, or -1.
  int findLost() const;
  Seat &getSeat(uint32_t rank) const;
  Channel &getChannel(uint32_t source, uint32_t target) const;

  // Data. False if there is no room on the disk, or in the part.
  bool write(uint32_t part, const void *from, uint64_t bytes) const;
  bool read(uint32_t part, uint64_t offset, void *to, uint64_t bytes) const;
  uint32_t getPart(uint32_t source, uint32_t target) const { return size + source * size + target; }

  const uint32_t size, rank;
  const std::string path;

private:
  Room(const std::string &path, uint32_t size, uint32_t rank) : size(size), rank(rank), path(path) {}
  struct Header {
    std::atomic<uint32_t> size, joined;
  };
  Header &getHeader() const { return *reinterpret_cast<Header *>(memory); }

  int file = -1;
  bool isMember = false;
  char *memory = nullptr;
  uint64_t bytes = 0, partBytes = 0;
};

} // namespace cleave::cuda

#endif // CLEAVE_LIB_EMULATION_CUDA_ROOM_H
