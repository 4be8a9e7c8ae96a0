//===- CudaLoading.cpp - weights from files to the device -----------------===//
//
// Weights go in slices of at most 4 MiB, however large they are: while one is copied, a thread reads the next ones.
//
//   file ──thread──▶ slice 0, 1, 2 ──memcpy──▶ pinned block 0, 1 ──device──▶ target
//
// A load whose elements stay in their order is cut along its outer dims, so that each slice is a box of its own, and one stretch
// of the target. Others (what packs weights for processors makes them) go whole.
//
//===----------------------------------------------------------------------===//
#include "CudaDevice.h"
#include "cleave/Program/Thread.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

using namespace cleave::runtime;
namespace cuda = cleave::cuda;
namespace program = cleave::program;

/// As large as what the device copies at once.
static constexpr uint64_t kSlice = uint64_t{4} << 20;
/// One is copied, one is there, one is read.
static constexpr size_t kSlices = 3;

namespace {

/// A box of a load, and where it lies from the load's target on.
struct Slice {
  const Filling *of;
  program::Load part;
  uint64_t offset, bytes;
};

/// Slices on their way from the thread that reads them to the one that copies them.
class Slices {
public:
  /// Reader: a free place, or null when nobody wants more.
  std::vector<char> *begin() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return isOver || read - copied < kSlices; });
    return isOver ? nullptr : &places[read % kSlices];
  }
  /// Reader: what it got is there, or why it is not.
  void end(program::Status error) {
    std::lock_guard<std::mutex> lock(mutex);
    failed = std::move(error);
    read += !failed;
    changed.notify_all();
  }
  /// Copier: the next slice; null, and why, where there is none.
  std::vector<char> *take(program::Status &error) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return failed || read > copied; });
    if (read > copied)
      return &places[copied % kSlices];
    error = failed;
    return nullptr;
  }
  /// Copier: its place is free.
  void drop() {
    std::lock_guard<std::mutex> lock(mutex);
    ++copied;
    changed.notify_all();
  }
  void stop() {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
    changed.notify_all();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<char> places[kSlices];
  size_t read = 0, copied = 0;
  bool isOver = false;
  program::Status failed;
};

} // namespace

/// Along the first dim that is no slice by itself; rows that are too large are cut again.
static void addSlices(const Filling &filling, const program::Load &box, uint64_t offset, std::vector<Slice> &slices) {
  uint64_t bytes = filling.elementBytes;
  for (int64_t size : box.shape)
    bytes *= uint64_t(size);
  size_t dim = 0;
  while (dim < box.shape.size() && box.shape[dim] == 1)
    ++dim;
  bool isPlain = box.layout.order.empty() && box.layout.width == 0;
  if (!isPlain || bytes <= kSlice || dim == box.shape.size()) {
    slices.push_back({&filling, box, offset, isPlain ? bytes : filling.bytes});
    return;
  }
  uint64_t row = bytes / uint64_t(box.shape[dim]);
  int64_t step = std::max<int64_t>(int64_t(kSlice / row), 1);
  for (int64_t at = 0; at < box.shape[dim]; at += step) {
    program::Load part = box;
    part.shape[dim] = std::min(step, box.shape[dim] - at);
    part.starts[dim].base += at;
    if (!part.present.empty())
      part.present[dim].base -= at; // below 0 and above the part where nothing and all of it is there
    addSlices(filling, part, offset + uint64_t(at) * row, slices);
  }
}

/// The thread reads; this one, which has the device, copies.
program::Status CudaDevice::fill(const std::vector<Filling> &fillings, const ReadBox &readBox) {
  enter();
  std::vector<Slice> list;
  for (const Filling &filling : fillings)
    addSlices(filling, *filling.load, 0, list);
  Slices slices;
  program::Thread reader;
  program::Status error = reader.start([&] {
    for (const Slice &slice : list) {
      std::vector<char> *place = slices.begin();
      if (!place)
        return;
      // What is read relies on zeros where it puts nothing.
      place->assign(slice.bytes, 0);
      program::Status error = readBox(slice.part, place->data());
      slices.end(error);
      if (error)
        return;
    }
  });
  if (error)
    return error;
  cuda::Stream stream = getStream(0);
  follows.assign(streams.size(), false);
  for (const Slice &slice : list) {
    std::vector<char> *place = slices.take(error);
    if (!place)
      break;
    auto target = reinterpret_cast<cuda::DevicePointer>(slice.of->target) + slice.offset;
    error = staging->upload(target, place->data(), slice.bytes, stream);
    slices.drop();
    if (error)
      break;
  }
  slices.stop();
  reader.join();
  return error;
}
