//===- Memory.h - buffers of ranks ------------------------------*- C++ -*-===//
//
// Each rank has the buffers of its role. What ranks of one device load alike exists once: each such load is done by one of
// them, and the others look into its buffer. Their own has room at the same place, whose pages are never touched.
//
//   rank 0   | w, rows 0-7 | bias ....|      views of rank 1 into `bias` lie in the buffer of rank 0
//   rank 1   | w, rows 8-15|  (none)  |
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_MEMORY_H
#define CLEAVE_LIB_RUNTIME_MEMORY_H

#include "Bind.h"

namespace cleave::runtime {

class Memory;

/// Whether a load is of what a state begins as.
bool isOfState(const program::Program &program, uint32_t role, const program::Load &load);

/// The buffers of one rank.
class RankMemory final : public Addresses {
public:
  RankMemory(Memory &memory, Device &device, uint32_t rank, uint32_t role)
      : memory(memory), device(device), rank(rank), role(role) {}

  char *get(const program::View &view) const override;
  program::Result<char *> getScratch(uint64_t bytes) override;
  /// Where this rank does a load.
  char *getTarget(const program::Load &load) const { return buffers[load.target.buffer] + load.target.offset.base; }
  /// Sets the buffers of states to zeros.
  void clearStates();
  /// Bytes of buffers, weights that others have among them.
  uint64_t getBytes() const;

private:
  friend class Memory;
  Memory &memory;
  Device &device;
  const uint32_t rank, role;
  std::vector<char *> buffers;
  uint64_t scratchBytes = 0;
};

class Memory {
public:
  /// Of the ranks of this process, each with its device.
  Memory(const program::Program &program, const std::vector<std::pair<uint32_t, Device *>> &ranks);

  /// Gets memory for all buffers, unless a device would give more than `limit` (0: than what is free).
  program::Status allocate(uint64_t limit);
  RankMemory &get(size_t local) { return ranks[local]; }
  uint32_t getRole(size_t local) const { return ranks[local].role; }
  /// The loads, by number in the rank's role, that a rank has to do.
  std::vector<uint32_t> getLoads(size_t local) const;

private:
  friend class RankMemory;
  /// What a load fills.
  struct Range {
    uint32_t buffer;
    uint64_t begin, end;
    uint32_t load;
  };
  void shareLoads();
  void keepSpanned(uint32_t role);
  uint64_t countBytes(const Device &device) const;
  const Range *findRange(uint32_t role, uint32_t buffer, uint64_t offset) const;

  const program::Program &program;
  std::vector<RankMemory> ranks;
  /// By role, in the order of buffers and places.
  std::vector<std::vector<Range>> ranges;
  /// By local rank and load of its role, which local rank does it.
  std::vector<std::vector<uint32_t>> owners;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_MEMORY_H
