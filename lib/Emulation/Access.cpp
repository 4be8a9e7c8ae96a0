//===- Access.cpp - every load and store of a kernel is looked at ---------===//
//
// Inside of its object? Aligned as it says? And, where the kernel writes the object, ordered after all that others did to the
// same bytes? Block.h says what orders two accesses.
//
//===----------------------------------------------------------------------===//
#include "Block.h"

#include <algorithm>
#include <cstring>

using namespace cleave::emulation;

/// Is an access of this block ordered before one of the current thread?
bool Block::isOrdered(uint32_t by, Time when) const {
  if (when < lastBarrier)
    return true;
  uint32_t me = getId(), other = by & shadowThread;
  if (by & shadowMany)
    return false;
  bool isSameWarp = other / warpLanes == me / warpLanes;
  if (isSameWarp && when < lastMeeting[me / warpLanes])
    return true;
  return !(by & shadowWarp) && other == me;
}

/// Null, or what the other did; `byWriter` if that was a store.
const char *Block::findRace(const Shadow &shadow, const Region &region, const Site &site, bool &byWriter) const {
  // Shared memory is another for each block.
  Time oldest = region.isShared ? blockStarts.back() : launchStart;
  bool areAtomic = (site.flags & accessIsAtomic) && (shadow.writer & shadowAtomic);
  auto races = [&](uint32_t by, Time when) {
    return when >= oldest && (when < blockStarts.back() || !isOrdered(by, when));
  };
  byWriter = true;
  if (!areAtomic && races(shadow.writer, shadow.written))
    return "wrote";
  byWriter = false;
  if ((site.flags & accessStores) && races(shadow.reader, shadow.read))
    return "read";
  return nullptr;
}

/// The current access is the last one from here on. Readers since the last barrier are one, those of a warp, or many.
void Block::stamp(Shadow &shadow, const Site &site) {
  uint32_t me = getId();
  if (site.flags & accessStores) {
    shadow.writer = me | (site.flags & accessIsAtomic ? shadowAtomic : 0);
    shadow.written = machine.now;
    return;
  }
  bool hasReaders = shadow.read >= lastBarrier && shadow.read >= launchStart;
  uint32_t other = shadow.reader & shadowThread;
  if (!hasReaders || (shadow.reader == me))
    shadow.reader = me;
  else if (!(shadow.reader & shadowMany) && other / warpLanes == me / warpLanes)
    shadow.reader = me | shadowWarp;
  else
    shadow.reader = shadowMany;
  shadow.read = machine.now;
}

/// Of which thread a shadow tells, and of which block, if of another: by the time at which blocks began.
std::string Block::nameOther(uint32_t by, Time when) const {
  auto start = std::upper_bound(blockStarts.begin(), blockStarts.end(), when);
  bool isOther = when < blockStarts.back();
  std::string who = by & shadowMany ? "several threads" : nameThread(by & shadowThread);
  if (isOther)
    who += " of " + nameBlock(uint64_t(start - blockStarts.begin()) - 1);
  return who;
}

/// Ends the thread. All that it allocates but `why` is given back before.
void Block::failAccess(const Site &site, const Range &range, const char *at, uint64_t bytes, const std::string &why) {
  {
    const char *verb = site.flags & accessIsAtomic ? "atomic" : site.flags & accessStores ? "store" : "load";
    std::string what = nameThread(getId()) + ": " + verb + " of " + std::to_string(bytes) + " bytes";
    if (range.base)
      what += " at byte " + std::to_string(at - range.base);
    what += " of " + nameObject(site, at) + why + " (access " + std::to_string(site.number);
    fail(what + (site.source ? std::string(", ") + site.source + ")" : ")"));
  } // before the thread is left behind, with what it holds
  leave();
}

/// Looks for races in the granules of an access, and stamps them.
void Block::touch(const LiveObject &object, const char *at, uint64_t bytes, const Site &site) {
  const Region &region = regions[object.region];
  uint64_t offset = uint64_t(at - region.base);
  Shadow *first = region.shadows + offset / region.granule;
  Shadow *last = region.shadows + (offset + bytes + region.granule - 1) / region.granule;
  for (Shadow *shadow = first; shadow != last; ++shadow) {
    bool byWriter = false;
    if (const char *did = findRace(*shadow, region, site, byWriter)) {
      uint32_t by = byWriter ? shadow->writer : shadow->reader;
      Time when = byWriter ? shadow->written : shadow->read;
      const char *since = when < blockStarts.back() ? " it in the same launch" : " it since the last barrier";
      failAccess(site, object.range, at, bytes, ": race: " + nameOther(by, when) + " " + did + since);
    }
    stamp(*shadow, site);
  }
}

/// The order of the checks: what lies outside has no shadow, and what is misaligned would fault.
void Block::access(const char *at, const char *base, uint64_t bytes, const Site &site) {
  LiveObject object = site.object == unknownObject ? findObject(at) : objects[site.object];
  if (site.object != unknownObject && kernel.objects[site.object].kind == ObjectKind::Local)
    object.range = {base, kernel.objects[site.object].bytes};
  uint64_t offset = uint64_t(at - object.range.base);
  if (offset > object.range.bytes || bytes > object.range.bytes - offset)
    failAccess(site, object.range, at, bytes, ", which has " + std::to_string(object.range.bytes) + ": out of bounds");
  if (reinterpret_cast<uintptr_t>(at) & (site.alignment - 1))
    failAccess(site, object.range, at, bytes,
               ": misaligned, it must be a multiple of " + std::to_string(site.alignment));
  if (!copies.empty() && at >= shared.data() && at < shared.data() + shared.size())
    for (uint64_t i = uint64_t(at - shared.data()) / 4; i < (uint64_t(at - shared.data()) + bytes + 3) / 4; ++i)
      if (underWay[i])
        failAccess(site, object.range, at, bytes, ": an asynchronous copy into it is not waited for");
  if (object.region >= 0)
    touch(object, at, bytes, site);
}

//===----------------------------------------------------------------------===//
// Asynchronous copies: bytes arrive when they are waited for, as late as they may
//===----------------------------------------------------------------------===//

/// Until it is waited for the target holds NaN, and whoever reads it is found.
void Block::copyAsync(char *to, const char *from, uint32_t bytes, uint32_t filled, const Site &store,
                      const Site &load) {
  access(to, nullptr, bytes, store);
  if (filled)
    access(from, nullptr, filled, load);
  memset(to, 0xff, bytes);
  copies.push_back({getId(), groups[getId()], to, from, bytes, filled, &store});
  for (uint64_t i = uint64_t(to - shared.data()) / 4; i < (uint64_t(to - shared.data()) + bytes) / 4; ++i)
    ++underWay[i];
}

/// Copies since the last one form a group.
void Block::commitCopies() { ++groups[getId()]; }

/// Now the bytes arrive.
void Block::complete(const AsyncCopy &copy) {
  memset(copy.to, 0, copy.bytes);
  memcpy(copy.to, copy.from, copy.filled);
  uint64_t offset = uint64_t(copy.to - shared.data());
  for (uint64_t i = offset / 4; i < (offset + copy.bytes) / 4; ++i)
    --underWay[i];
  // From here on it is a store of this thread like any other.
  access(copy.to, nullptr, copy.bytes, *copy.store);
}

/// Of this thread's copies alone: others have to wait for theirs, and then meet it at a barrier.
void Block::waitForCopies(uint32_t open) {
  uint32_t me = getId(), committed = groups[me];
  auto isDue = [&](const AsyncCopy &copy) {
    return copy.thread == me && (open == ~0u || (copy.group < committed && committed - copy.group > open));
  };
  // One by one: `complete` may find something, and then never comes back.
  for (auto it = std::find_if(copies.begin(), copies.end(), isDue); it != copies.end();
       it = std::find_if(copies.begin(), copies.end(), isDue)) {
    AsyncCopy copy = *it;
    copies.erase(it);
    complete(copy);
  }
}
