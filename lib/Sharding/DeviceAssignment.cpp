//===- DeviceAssignment.cpp - which links each axis of a mesh has ---------===//
//
// A level takes a digit of each axis, from the minor end: its ranks are those that the level connects. All combinations
// of divisors are tried whose product is the largest that divides the level's devices; what is left goes to the next
// level, and the last one takes all. Device numbers count digits, nearest level first, in it minor axes first:
//
//   data=2, model=8, levels of 8 and 2       digits (1, 8), (2, 1)       device = model + 8 data
//                                            digits (2, 4), (1, 2)       device = model % 4 + 4 data + 8 (model / 4)
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/DeviceAssignment.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <functional>
#include <numeric>

using namespace cleave::spmd;
using namespace llvm;

using Digits = SmallVector<int64_t, 4>;

static int64_t getProduct(ArrayRef<int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t(1), std::multiplies<>());
}

/// A divisor of each of `sizes`, in every combination whose product divides `devices`; those of the largest product,
/// most ranks of the last axis first.
static SmallVector<Digits> findDigits(ArrayRef<int64_t> sizes, int64_t devices) {
  SmallVector<Digits> found{Digits(sizes.size(), 1)};
  for (size_t axis = sizes.size(); axis-- > 0;) {
    SmallVector<Digits> longer;
    for (const Digits &digits : found)
      for (int64_t digit = sizes[axis]; digit > 0; --digit)
        if (sizes[axis] % digit == 0 && devices % (getProduct(digits) * digit) == 0) {
          longer.push_back(digits);
          longer.back()[axis] = digit;
        }
    found = std::move(longer);
  }
  int64_t most = 1;
  for (const Digits &digits : found)
    most = std::max(most, getProduct(digits));
  erase_if(found, [&](const Digits &digits) { return getProduct(digits) != most; });
  return found;
}

namespace {
class Placer {
public:
  Placer(const Cluster &cluster, const ClusterMesh &mesh) : cluster(cluster), mesh(mesh) {}

  std::vector<DeviceAssignment> run() {
    place(0, Digits(mesh.sizes.begin(), mesh.sizes.end()));
    return std::move(assignments);
  }

private:
  void place(size_t level, Digits left);
  DeviceAssignment make() const;

  const Cluster &cluster;
  const ClusterMesh &mesh;
  SmallVector<Digits> byLevel;
  std::vector<DeviceAssignment> assignments;
};
} // namespace

/// Fills one level after the other; what the last one cannot hold is no way.
void Placer::place(size_t level, Digits left) {
  const ClusterLevel &here = cluster.levels[level];
  bool isLast = level + 1 == cluster.levels.size();
  if (isLast && here.devices != 0 && getProduct(left) > here.devices)
    return;
  SmallVector<Digits> choices = isLast ? SmallVector<Digits>{left} : findDigits(left, here.devices);
  for (const Digits &digits : choices) {
    Digits next = left;
    for (auto [size, digit] : zip_equal(next, digits))
      size /= digit;
    byLevel.push_back(digits);
    if (isLast)
      assignments.push_back(make());
    else
      place(level + 1, next);
    byLevel.pop_back();
  }
}

/// Device numbers and words of the digits that each level has now.
DeviceAssignment Placer::make() const {
  DeviceAssignment assignment;
  size_t numAxes = mesh.sizes.size();
  int64_t ranks = getProduct(mesh.sizes);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Digits place(numAxes);
    int64_t rest = rank, device = 0, stride = 1;
    for (size_t axis = numAxes; axis-- > 0; rest /= mesh.sizes[axis])
      place[axis] = rest % mesh.sizes[axis];
    for (const Digits &digits : byLevel)
      for (size_t axis = numAxes; axis-- > 0;) {
        device += place[axis] % digits[axis] * stride;
        stride *= digits[axis];
        place[axis] /= digits[axis];
      }
    assignment.devices.push_back(device);
  }
  for (size_t axis = 0; axis < numAxes; ++axis) {
    SmallVector<std::string> links;
    bool isSplit = count_if(byLevel, [&](const Digits &digits) { return digits[axis] > 1; }) > 1;
    for (auto [level, digits] : zip_equal(cluster.levels, byLevel))
      if (digits[axis] > 1)
        links.push_back(level.name + (isSplit ? " (" + std::to_string(digits[axis]) + ")" : ""));
    if (!links.empty())
      assignment.axes.push_back(mesh.names[axis] + " over " + join(links, " and "));
  }
  return assignment;
}

std::vector<DeviceAssignment> cleave::spmd::findDeviceAssignments(const Cluster &cluster, const ClusterMesh &mesh) {
  assert(!errorToBool(checkFit(cluster, mesh)) && "a mesh of another machine");
  return Placer(cluster, mesh).run();
}
