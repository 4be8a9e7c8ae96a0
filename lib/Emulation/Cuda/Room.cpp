//===- Room.cpp - where the ranks of a communicator meet ------------------===//
//
// A new file is full of zeros, and zeros are the state at the beginning: whoever comes first makes it, and no one has to wait
// for it. Data lies behind the tables, in a file with holes.
//
//===----------------------------------------------------------------------===//
#include "Room.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace cleave::cuda;

static constexpr uint64_t headerBytes = 4096, seatBytes = 256, channelBytes = 64, pageBytes = 4096;
static_assert(sizeof(Seat) <= seatBytes && sizeof(Channel) <= channelBytes);
/// File systems hold files of some terabytes.
static constexpr uint64_t allDataBytes = uint64_t(4) << 40, mostPartBytes = uint64_t(64) << 30;

/// Process, time and a counter: no other run on this machine has it.
std::string Room::makePath() {
  static std::atomic<uint32_t> next{0};
  const char *folder = std::getenv("TMPDIR");
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::string(folder && *folder ? folder : "/tmp") + "/cleave-nccl-" + std::to_string(getpid()) + "-" +
         std::to_string(now.tv_sec % 100000 * 1000000000 + now.tv_nsec) + "-" + std::to_string(next++);
}

/// Every rank may be the first one: the file is opened or made, and sized, in one way.
std::shared_ptr<Room> Room::open(const std::string &path, uint32_t size, uint32_t rank, std::string &error) {
  std::shared_ptr<Room> room(new Room(path, size, rank));
  uint64_t tables = headerBytes + size * seatBytes + uint64_t(size) * size * channelBytes;
  room->bytes = (tables + pageBytes - 1) / pageBytes * pageBytes;
  room->partBytes = std::min(mostPartBytes, allDataBytes / (size + uint64_t(size) * size) / pageBytes * pageBytes);
  room->file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (room->file < 0 || ftruncate(room->file, off_t(room->bytes + allDataBytes)) != 0) {
    error = "cannot make " + path;
    return nullptr;
  }
  void *mapped = mmap(nullptr, room->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, room->file, 0);
  if (mapped == MAP_FAILED) {
    error = "cannot map " + path;
    return nullptr;
  }
  room->memory = static_cast<char *>(mapped);
  uint32_t said = 0;
  if (!room->getHeader().size.compare_exchange_strong(said, size) && said != size) {
    error = "rank " + std::to_string(rank) + " says that there are " + std::to_string(size) + " ranks, another " +
            std::to_string(said);
    return nullptr;
  }
  Seat &seat = room->getSeat(rank);
  if (seat.isTaken.exchange(1)) {
    error = "two ranks say that they are " + std::to_string(rank) + " of " + std::to_string(size);
    return nullptr;
  }
  seat.process = getpid();
  room->isMember = true;
  // From here on the file is known by those that have it.
  if (++room->getHeader().joined == size)
    unlink(path.c_str());
  return room;
}

/// Who leaves before all have come takes the name away, so that no file is left.
Room::~Room() {
  if (memory) {
    if (isMember && !areAllHere())
      unlink(path.c_str());
    munmap(memory, bytes);
  }
  if (file >= 0)
    close(file);
}

bool Room::areAllHere() const { return getHeader().joined == size; }

/// For the message of who waited for them.
std::string Room::nameMissing() const {
  std::string names;
  for (uint32_t other = 0; other < size; ++other)
    if (!getSeat(other).isTaken)
      names += (names.empty() ? "" : ", ") + std::to_string(other);
  return names;
}

/// A process that is gone has no number that answers to signal 0; one that left as it should has said so.
int Room::findLost() const {
  for (uint32_t other = 0; other < size; ++other) {
    int64_t process = getSeat(other).process;
    if (getSeat(other).hasAborted || (process && kill(pid_t(process), 0) != 0))
      return int(other);
  }
  return -1;
}

Seat &Room::getSeat(uint32_t number) const {
  return *reinterpret_cast<Seat *>(memory + headerBytes + number * seatBytes);
}

Channel &Room::getChannel(uint32_t source, uint32_t target) const {
  uint64_t number = uint64_t(source) * size + target;
  return *reinterpret_cast<Channel *>(memory + headerBytes + size * seatBytes + number * channelBytes);
}

/// Holes of the file are filled as they are needed; a disk that is full shows here.
bool Room::write(uint32_t part, const void *from, uint64_t count) const {
  if (count > partBytes)
    return false;
  auto *next = static_cast<const char *>(from);
  for (uint64_t done = 0; done < count;) {
    ssize_t now = pwrite(file, next + done, count - done, off_t(bytes + part * partBytes + done));
    if (now <= 0)
      return false;
    done += uint64_t(now);
  }
  return true;
}

/// What was not written is zeros, and nobody reads that: counters say when it is there.
bool Room::read(uint32_t part, uint64_t offset, void *to, uint64_t count) const {
  auto *next = static_cast<char *>(to);
  for (uint64_t done = 0; done < count;) {
    ssize_t now = pread(file, next + done, count - done, off_t(bytes + part * partBytes + offset + done));
    if (now <= 0)
      return false;
    done += uint64_t(now);
  }
  return true;
}
