//===- Memory.cpp - buffers of ranks --------------------------------------===//
//
// Which loads are alike, who does each, and where views lie then.
//
//===----------------------------------------------------------------------===//
#include "Memory.h"
#include "cleave/Program/Operands.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::BufferKind;
using program::makeError;

Memory::Memory(const program::Program &program, const std::vector<std::pair<uint32_t, Device *>> &local)
    : program(program), ranges(program.roles.size()), owners(local.size()) {
  for (uint32_t role = 0; role < program.roles.size(); ++role) {
    const std::vector<program::Load> &loads = program.roles[role].loads;
    for (uint32_t i = 0; i < loads.size(); ++i) {
      uint64_t begin = uint64_t(loads[i].target.offset.base);
      uint64_t bytes = program::getSpanBytes(program.types[loads[i].target.type]);
      if (bytes)
        ranges[role].push_back({loads[i].target.buffer, begin, begin + bytes, i});
    }
    std::sort(ranges[role].begin(), ranges[role].end(),
              [](const Range &a, const Range &b) { return std::tie(a.buffer, a.begin) < std::tie(b.buffer, b.begin); });
  }
  const std::vector<uint32_t> roleOf = program::getRoles(program);
  for (auto [rank, device] : local)
    ranks.emplace_back(*this, *device, rank, roleOf[rank]);
  shareLoads();
}

// Such a load is done again when states are reset, and what it fills changes with each call.
bool cleave::runtime::isOfState(const program::Program &program, uint32_t role, const program::Load &load) {
  return program.roles[role].buffers[load.target.buffer].kind == BufferKind::State;
}

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

/// Loads that are one on several ranks of a device are done by these in turn.
void Memory::shareLoads() {
  for (uint32_t role = 0; role < program.roles.size(); ++role) {
    const std::vector<program::Load> &loads = program.roles[role].loads;
    for (uint32_t load = 0; load < loads.size(); ++load) {
      std::map<std::pair<Device *, std::vector<int64_t>>, std::vector<uint32_t>> sharers;
      for (uint32_t local = 0; local < ranks.size(); ++local) {
        if (ranks[local].role != role)
          continue;
        std::vector<int64_t> starts;
        for (const program::Number &start : loads[load].starts)
          starts.push_back(program.evaluate(start, ranks[local].rank));
        for (const program::Number &present : loads[load].present)
          starts.push_back(program.evaluate(present, ranks[local].rank));
        // What a state begins as is each rank's own.
        if (isOfState(program, role, loads[load]))
          starts.push_back(local);
        sharers[{&ranks[local].device, starts}].push_back(local);
      }
      for (const auto &[key, those] : sharers)
        for (uint32_t local : those)
          owners[local].push_back(those[load % those.size()]);
    }
    keepSpanned(role);
  }
}

/// The load that fills the byte at `offset`; null if none does.
const Memory::Range *Memory::findRange(uint32_t role, uint32_t buffer, uint64_t offset) const {
  const std::vector<Range> &all = ranges[role];
  auto behind = std::upper_bound(all.begin(), all.end(), std::pair(buffer, offset),
                                 [](const auto &key, const Range &b) { return key < std::pair(b.buffer, b.begin); });
  if (behind == all.begin() || (behind - 1)->buffer != buffer || (behind - 1)->end <= offset)
    return nullptr;
  return &*(behind - 1);
}

/// A view that lies in more than one load needs all of them in one buffer: then each rank keeps its own.
void Memory::keepSpanned(uint32_t role) {
  std::set<uint32_t> spanned;
  for (const program::Variant &variant : program.variants)
    for (const program::Command &command : variant.lists[role].commands)
      for (const program::Operand &operand : program::getOperands(program, command.action)) {
        const program::View &view = operand.view;
        if (program.roles[role].buffers[view.buffer].kind != BufferKind::Weights)
          continue;
        for (const RankMemory &rank : ranks) {
          uint64_t begin = uint64_t(program.evaluate(view.offset, rank.rank));
          const Range *range = rank.role == role ? findRange(role, view.buffer, begin) : nullptr;
          if (range && begin + program::getSpanBytes(program.types[view.type]) > range->end)
            spanned.insert(view.buffer);
        }
      }
  for (uint32_t local = 0; local < ranks.size(); ++local)
    if (ranks[local].role == role)
      for (uint32_t load = 0; load < owners[local].size(); ++load)
        if (spanned.count(program.roles[role].loads[load].target.buffer))
          owners[local][load] = local;
}

/// In the order of the program, so that a file is read from front to back where it was written so.
std::vector<uint32_t> Memory::getLoads(size_t local) const {
  std::vector<uint32_t> loads;
  for (uint32_t load = 0; load < owners[local].size(); ++load)
    if (owners[local][load] == local)
      loads.push_back(load);
  return loads;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// In the host's memory, which the host alone has as its own.
static bool isElsewhere(Device &device, const program::Buffer &buffer) {
  return buffer.memory == program::Memory::Host && device.getQueue();
}

/// All that the ranks of a device will touch.
uint64_t Memory::countBytes(const Device &device) const {
  uint64_t bytes = 0;
  for (size_t local = 0; local < ranks.size(); ++local) {
    if (&ranks[local].device != &device)
      continue;
    const program::Role &role = program.roles[ranks[local].role];
    for (const program::Buffer &buffer : role.buffers)
      bytes += buffer.kind == BufferKind::Weights || isElsewhere(ranks[local].device, buffer) ? 0 : buffer.bytes;
    for (uint32_t load : getLoads(local))
      bytes += isOfState(program, ranks[local].role, role.loads[load])
                   ? 0
                   : program::getBytes(program.types[role.loads[load].target.type]);
  }
  return bytes;
}

/// All or nothing is known before the first byte is touched: what the system gives without asking is not there yet.
program::Status Memory::allocate(uint64_t limit) {
  for (RankMemory &rank : ranks) {
    uint64_t needed = countBytes(rank.device), most = limit ? limit : rank.device.getFreeBytes();
    if (needed > most)
      return makeError("the program needs ", needed, " bytes of memory on this ",
                       rank.device.getQueue() ? "device, " : "machine, ", most, " are free");
  }
  for (RankMemory &rank : ranks)
    for (const program::Buffer &buffer : program.roles[rank.role].buffers) {
      program::Result<char *> address =
          rank.device.allocate(buffer.bytes, buffer.alignment, buffer.memory, buffer.kind <= BufferKind::Communication);
      if (!address)
        return address.getError();
      rank.buffers.push_back(*address);
    }
  return program::kGood;
}

/// Weights lie with the rank that loads them, everything else with this one.
char *RankMemory::get(const program::View &view) const {
  uint64_t offset = uint64_t(memory.program.evaluate(view.offset, rank));
  const RankMemory *holder = this;
  if (memory.program.roles[role].buffers[view.buffer].kind == BufferKind::Weights)
    if (const Memory::Range *range = memory.findRange(role, view.buffer, offset))
      holder = &memory.ranks[memory.owners[size_t(this - memory.ranks.data())][range->load]];
  return holder->buffers[view.buffer] + offset;
}

/// Counts as a buffer.
program::Result<char *> RankMemory::getScratch(uint64_t bytes) {
  scratchBytes += bytes;
  return device.allocate(bytes, 64, program::Memory::Device, false);
}

void RankMemory::clearStates() {
  const std::vector<program::Buffer> &all = memory.program.roles[role].buffers;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == BufferKind::State && all[i].bytes) {
      std::vector<char> zeros(all[i].bytes);
      device.write(buffers[i], zeros.data(), zeros.size());
    }
}

uint64_t RankMemory::getBytes() const {
  uint64_t bytes = scratchBytes;
  for (const program::Buffer &buffer : memory.program.roles[role].buffers)
    bytes += isElsewhere(device, buffer) ? 0 : buffer.bytes;
  return bytes;
}
