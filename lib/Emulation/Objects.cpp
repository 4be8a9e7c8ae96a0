//===- Objects.cpp - what a launch's kernel may touch, and where it lies --===//
//
// Arguments say how long what they point to is; what they do not say, the device's memory tells. Objects that are written have
// shadows; those that overlap (a result in the place of an argument) have one, so that a race is seen through both names.
//
//===----------------------------------------------------------------------===//
#include "Block.h"

#include <algorithm>
#include <cstring>

using namespace cleave::emulation;

/// What is at the address that a launch passes. Bytes that nothing tells of are as many as the allocation has from there.
Range Block::findArgument(const Object &object) const {
  const char *base = nullptr;
  memcpy(&base, launch.parameters[object.argument], sizeof base);
  bool isEmpty = kernel.parameters[object.argument].flags & parameterIsEmpty;
  if (object.bytes || isEmpty || !launch.findMemory)
    return {base, object.bytes};
  Range memory = launch.findMemory(base);
  return {base, memory.base ? uint64_t(memory.base + memory.bytes - base) : 0};
}

/// A region for `object`, together with those that it overlaps.
void Block::addRegion(unsigned object) {
  Range range = objects[object].range;
  Region region{range.base, range.bytes, kernel.objects[object].granule,
                kernel.objects[object].kind == ObjectKind::Shared ||
                    kernel.objects[object].kind == ObjectKind::DynamicShared};
  int number = int(regions.size());
  for (size_t i = 0; i < regions.size(); ++i) {
    Region &old = regions[i];
    if (old.bytes == 0 || region.base >= old.base + old.bytes || old.base >= region.base + region.bytes)
      continue;
    const char *end = std::max(region.base + region.bytes, old.base + old.bytes);
    region.base = std::min(region.base, old.base);
    region.bytes = uint64_t(end - region.base);
    // Two objects need not begin at a multiple of one another's granules.
    region.granule = 1;
    old.bytes = 0;
    for (LiveObject &other : objects)
      other.region = other.region == int(i) ? number : other.region;
  }
  objects[object].region = number;
  regions.push_back(region);
}

/// Shadows are kept from launch to launch: what is older than a launch counts for nothing.
bool Block::takeShadows() {
  machine.shadows.resize(std::max(machine.shadows.size(), regions.size()));
  for (size_t i = 0; i < regions.size(); ++i) {
    ShadowMemory &shadows = machine.shadows[i];
    size_t wanted = regions[i].bytes / regions[i].granule + 1;
    if (shadows.count < wanted) {
      shadows.memory.reset(static_cast<Shadow *>(calloc(wanted, sizeof(Shadow))));
      shadows.count = shadows.memory ? wanted : 0;
    }
    regions[i].shadows = shadows.memory.get();
    if (!regions[i].shadows)
      return false;
  }
  return true;
}

/// False if there is no memory for shadows.
bool Block::placeObjects() {
  objects.resize(kernel.objectCount);
  for (uint32_t i = 0; i < kernel.objectCount; ++i) {
    const Object &object = kernel.objects[i];
    if (object.kind == ObjectKind::Argument)
      objects[i].range = findArgument(object);
    else if (object.kind == ObjectKind::Shared)
      objects[i].range = {shared.data() + object.offset, object.bytes};
    else if (object.kind == ObjectKind::DynamicShared)
      objects[i].range = {shared.data() + kernel.sharedBytes, launch.dynamicBytes};
    else if (object.kind == ObjectKind::Variable)
      objects[i].range = {static_cast<const char *>(object.address), object.bytes};
  }
  for (uint32_t i = 0; i < kernel.objectCount; ++i)
    if (kernel.objects[i].isWritten && objects[i].range.bytes)
      addRegion(i);
  // What is read through one name may be written through another.
  for (uint32_t i = 0; i < kernel.objectCount; ++i)
    for (const Region &region : regions)
      if (objects[i].region < 0 && region.bytes && objects[i].range.bytes &&
          objects[i].range.base < region.base + region.bytes &&
          region.base < objects[i].range.base + objects[i].range.bytes) {
        addRegion(i);
        break;
      }
  return takeShadows();
}

/// By address: among the objects of the kernel, then in the device's memory.
LiveObject Block::findObject(const char *at) const {
  for (const LiveObject &object : objects)
    if (at >= object.range.base && at < object.range.base + object.range.bytes)
      return object;
  LiveObject found;
  if (launch.findMemory)
    found.range = launch.findMemory(at);
  return found;
}

/// As reports call it; what was looked up has the name of the object that it was found in.
std::string Block::nameObject(const Site &site, const char *at) const {
  if (site.object != unknownObject)
    return kernel.objects[site.object].name;
  for (size_t i = 0; i < objects.size(); ++i)
    if (at >= objects[i].range.base && at < objects[i].range.base + objects[i].range.bytes)
      return kernel.objects[i].name;
  return "an object that no argument names";
}
