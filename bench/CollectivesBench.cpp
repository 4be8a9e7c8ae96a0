//===- CollectivesBench.cpp - how long thread ranks take ------------------===//
//
//   CollectivesBench RANKS SECONDS
//
// Prints a line per operation: name, bytes of the operand, microseconds (minimum, median, 90th percentile), rounds. A round
// of small operations is 50 of them, between two barriers that are not timed. All ranks are pinned, rank r to core r modulo the
// number of cores. Operands are aligned to huge pages, so that the kernel may use them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/Threads.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <thread>

using namespace cleave::runtime;

namespace {

struct Test {
  const char *name;
  uint64_t bytes;
  /// The operation of a rank with these operands.
  std::function<Operation(float *input, float *output, uint64_t count)> make;
};

constexpr uint64_t kSmall = 1024, kLarge = uint64_t(4) << 20;

} // namespace

static float *allocate(uint64_t bytes) {
  void *memory = std::aligned_alloc(size_t(2) << 20, (bytes + (2 << 20) - 1) & ~uint64_t((2 << 20) - 1));
  std::memset(memory, 0, bytes);
  return static_cast<float *>(memory);
}

static void printTimes(const char *name, uint64_t bytes, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  auto at = [&](double share) { return times[size_t(share * double(times.size() - 1))]; };
  std::printf("%s %llu %.3f %.3f %.3f %zu\n", name, (unsigned long long)bytes, at(0), at(0.5), at(0.9), times.size());
}

/// One core alone, from one buffer to another: what any collective is measured against. The contents are not known to the
/// compiler, which would make a memset of it.
static void timeCopy(double seconds) {
  float *from = allocate(kLarge), *to = allocate(kLarge);
  asm volatile("" ::"r"(from) : "memory");
  std::vector<double> times;
  for (int64_t end = getNow() + int64_t(seconds * 1e9); getNow() < end;) {
    int64_t begin = getNow();
    std::memcpy(to, from, kLarge);
    times.push_back(double(getNow() - begin) * 1e-3);
    asm volatile("" ::"r"(to) : "memory");
  }
  printTimes("memcpy", kLarge, times);
}

static void pin(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(rank % int(std::thread::hardware_concurrency()), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void check(const Status &status) {
  if (status.isOk())
    return;
  std::fprintf(stderr, "%s\n", status.getMessage().c_str());
  std::_Exit(1);
}

/// Rounds until rank 0 says that the time is over. Its times count.
static std::vector<double> timeRounds(Communicator &communicator, const Operation &operation, unsigned inner,
                                      double seconds, std::atomic<bool> &isOver) {
  std::vector<double> times;
  int64_t end = getNow() + int64_t(seconds * 1e9);
  while (!isOver) {
    check(communicator.run(barrier(kWorld)));
    int64_t begin = getNow();
    for (unsigned i = 0; i < inner; ++i)
      check(communicator.run(operation));
    times.push_back(double(getNow() - begin) * 1e-3 / inner);
    check(communicator.run(barrier(kWorld)));
    // Between two barriers, so that all ranks leave after the same round.
    if (communicator.getRank() == 0 && getNow() > end && times.size() > 8)
      isOver = true;
    check(communicator.run(barrier(kWorld)));
  }
  return times;
}

static void timeOperation(int size, const Test &test, double seconds) {
  auto ranks = makeThreads(size, Options());
  std::vector<std::thread> threads;
  std::atomic<bool> isOver{false};
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      pin(rank);
      float *input = allocate(test.bytes), *output = allocate(test.bytes);
      check(ranks[rank]->run(barrier(kWorld)));
      std::vector<double> times = timeRounds(*ranks[rank], test.make(input, output, test.bytes / 4),
                                             test.bytes <= kSmall ? 50 : 1, seconds, isOver);
      if (rank == 0)
        printTimes(test.name, test.bytes, times);
    });
  for (std::thread &thread : threads)
    thread.join();
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  int size = std::atoi(argv[1]);
  double seconds = std::atof(argv[2]);
  auto reduceAll = [](float *input, float *output, uint64_t count) {
    return allReduce(kWorld, Reduction::Sum, ElementType::F32, input, output, count);
  };
  auto part = [size](uint64_t count) { return Tiling::contiguous(count / size); };
  timeCopy(seconds);
  for (const Test &test : std::initializer_list<Test>{
           {"all_reduce", kSmall, reduceAll},
           {"all_gather", kSmall,
            [&](float *in, float *out, uint64_t n) { return allGather(kWorld, ElementType::F32, in, out, part(n)); }},
           {"all_reduce", kLarge, reduceAll},
           {"all_gather", kLarge,
            [&](float *in, float *out, uint64_t n) { return allGather(kWorld, ElementType::F32, in, out, part(n)); }},
           {"reduce_scatter", kLarge,
            [&](float *in, float *out, uint64_t n) {
              return makeOperation(OperationKind::ReduceScatter, kWorld, Reduction::Sum, ElementType::F32, in, out, 0,
                                   part(n), {});
            }},
           {"all_to_all", kLarge, [&](float *in, float *out, uint64_t n) {
              return makeOperation(OperationKind::AllToAll, kWorld, Reduction::None, ElementType::F32, in, out, 0,
                                   part(n), part(n));
            }}})
    timeOperation(size, test, seconds);
  return 0;
}
