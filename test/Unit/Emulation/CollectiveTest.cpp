//===- CollectiveTest.cpp - NCCL of devices that are not there ------------===//
//
// Ranks are threads. What they compute is held against formulas; what they do wrong must be named.
//
//===----------------------------------------------------------------------===//
#include "Devices.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

using namespace cleave::cuda;
using ::testing::AnyOf;
using ::testing::HasSubstr;

namespace {
/// What a rank has.
struct Rank {
  int number, size;
  NcclComm comm;
  Stream stream;
};
} // namespace

static void runRank(const NcclUniqueId &id, int number, int size, const std::function<void(Rank &)> &body) {
  UseDevice use(number);
  Rank rank{number, size, nullptr, makeStream()};
  EXPECT_EQ(getNccl().ncclCommInitRankConfig(&rank.comm, size, id, number, nullptr), NcclResult::Success);
  body(rank);
  if (rank.comm)
    EXPECT_EQ(getNccl().ncclCommDestroy(rank.comm), NcclResult::Success);
}

/// Runs `body` on `size` threads.
static void runRanks(int size, const std::function<void(Rank &)> &body) {
  NcclUniqueId id = makeId();
  std::vector<std::thread> threads;
  for (int number = 0; number < size; ++number)
    threads.emplace_back([&, number] { runRank(id, number, size, body); });
  for (std::thread &thread : threads)
    thread.join();
}

static Result synchronize(const Rank &rank) { return getDriver().cuStreamSynchronize(rank.stream); }

/// Element i of what rank r gives.
static int getTerm(int rank, size_t i) { return int((rank * 3 + i * 5) % 4) + 1; }

static double combineTerms(NcclReduction reduction, int size, size_t i) {
  double result = getTerm(0, i);
  for (int rank = 1; rank < size; ++rank) {
    double term = getTerm(rank, i);
    result = reduction == NcclReduction::Sum    ? result + term
             : reduction == NcclReduction::Prod ? result * term
             : reduction == NcclReduction::Max  ? std::max(result, term)
                                                : std::min(result, term);
  }
  return result;
}

/// All three kinds on one type; adds up what was compared.
template <typename T>
static void checkCollectives(Rank &rank, NcclType type, NcclReduction reduction, size_t count,
                             std::atomic<int> &compared) {
  const Nccl &nccl = getNccl();
  size_t all = count * size_t(rank.size);
  std::vector<T> terms(all);
  for (size_t i = 0; i < all; ++i)
    terms[i] = T(getTerm(rank.number, i));
  DevicePointer input = upload(terms), reduced = allocate(all * sizeof(T)), scattered = allocate(count * sizeof(T)),
                gathered = allocate(all * sizeof(T));
  EXPECT_EQ(nccl.ncclAllReduce(pointer(input), pointer(reduced), all, type, reduction, rank.comm, rank.stream),
            NcclResult::Success);
  EXPECT_EQ(nccl.ncclReduceScatter(pointer(input), pointer(scattered), count, type, reduction, rank.comm, rank.stream),
            NcclResult::Success);
  EXPECT_EQ(nccl.ncclAllGather(pointer(input), pointer(gathered), count, type, rank.comm, rank.stream),
            NcclResult::Success);
  EXPECT_EQ(synchronize(rank), Result::Success);
  std::vector<T> r = download<T>(reduced, all), s = download<T>(scattered, count), g = download<T>(gathered, all);
  for (size_t i = 0; i < all; ++i, compared += 2) {
    EXPECT_EQ(r[i], T(combineTerms(reduction, rank.size, i)));
    EXPECT_EQ(g[i], T(getTerm(int(i / count), i % count)));
  }
  for (size_t i = 0; i < count; ++i, ++compared)
    EXPECT_EQ(s[i], T(combineTerms(reduction, rank.size, size_t(rank.number) * count + i)));
  for (DevicePointer memory : {input, reduced, scattered, gathered})
    EXPECT_EQ(getDriver().cuMemFree_v2(memory), Result::Success);
}

TEST(EmulatedNccl, ComputesWhatFormulasSay) {
  std::atomic<int> compared{0};
  for (int size : {1, 2, 4, 8})
    runRanks(size, [&](Rank &rank) {
      for (NcclReduction reduction : {NcclReduction::Sum, NcclReduction::Prod, NcclReduction::Max, NcclReduction::Min})
        for (size_t count : {size_t(1), size_t(37)}) {
          checkCollectives<float>(rank, NcclType::F32, reduction, count, compared);
          checkCollectives<double>(rank, NcclType::F64, reduction, count, compared);
          checkCollectives<int32_t>(rank, NcclType::I32, reduction, count, compared);
          checkCollectives<int64_t>(rank, NcclType::I64, reduction, count, compared);
          checkCollectives<uint64_t>(rank, NcclType::UI64, reduction, count, compared);
          if (reduction != NcclReduction::Prod) { // 4^8 has no byte
            checkCollectives<int8_t>(rank, NcclType::I8, reduction, count, compared);
            checkCollectives<uint8_t>(rank, NcclType::UI8, reduction, count, compared);
          }
        }
    });
  // Per rank count * (2 size + 1), for 38 elements, 5 types and 4 reductions, and 2 types and 3 reductions.
  int expected = 0;
  for (int size : {1, 2, 4, 8})
    expected += size * (2 * size + 1) * 38 * (5 * 4 + 2 * 3);
  EXPECT_EQ(compared, expected);
  EXPECT_EQ(takeFindings(), "");
}

// f16: 2048 + 1 + 1 is 2050, in f32 and rounded once; a NaN wins a maximum. bf16: 256 + 1 + 1.
TEST(EmulatedNccl, HalvesAreRoundedOnceAndNaNWins) {
  runRanks(3, [&](Rank &rank) {
    const Nccl &nccl = getNccl();
    std::vector<uint16_t> halves{uint16_t(rank.number ? 0x3c00 : 0x6800)},
        brains{uint16_t(rank.number ? 0x3f80 : 0x4380)};
    std::vector<float> nan{rank.number == 1 ? NAN : 5.f};
    DevicePointer h = upload(halves), b = upload(brains), f = upload(nan);
    EXPECT_EQ(nccl.ncclAllReduce(pointer(h), pointer(h), 1, NcclType::F16, NcclReduction::Sum, rank.comm, rank.stream),
              NcclResult::Success);
    EXPECT_EQ(nccl.ncclAllReduce(pointer(b), pointer(b), 1, NcclType::BF16, NcclReduction::Sum, rank.comm, rank.stream),
              NcclResult::Success);
    EXPECT_EQ(nccl.ncclAllReduce(pointer(f), pointer(f), 1, NcclType::F32, NcclReduction::Max, rank.comm, rank.stream),
              NcclResult::Success);
    EXPECT_EQ(synchronize(rank), Result::Success);
    EXPECT_EQ(download<uint16_t>(h, 1)[0], 0x6801);
    EXPECT_EQ(download<uint16_t>(b, 1)[0], 0x4381);
    EXPECT_TRUE(std::isnan(download<float>(f, 1)[0]));
  });
  EXPECT_EQ(takeFindings(), "");
}

// A ring: each sends to the next and receives from the one before, twice; in a group, as it must be.
static void passAround(Rank &rank, bool inGroup) {
  const Nccl &nccl = getNccl();
  std::vector<int32_t> own{rank.number * 10, rank.number * 10 + 1};
  DevicePointer from = upload(own), to = allocate(8);
  int next = (rank.number + 1) % rank.size, before = (rank.number + rank.size - 1) % rank.size;
  for (int round = 0; round < 2; ++round) {
    if (inGroup)
      EXPECT_EQ(nccl.ncclGroupStart(), NcclResult::Success);
    EXPECT_EQ(nccl.ncclSend(pointer(from), 2, NcclType::I32, next, rank.comm, rank.stream), NcclResult::Success);
    EXPECT_EQ(nccl.ncclRecv(pointer(to), 2, NcclType::I32, before, rank.comm, rank.stream), NcclResult::Success);
    if (inGroup)
      EXPECT_EQ(nccl.ncclGroupEnd(), NcclResult::Success);
  }
  Result result = synchronize(rank);
  EXPECT_EQ(result, inGroup ? Result::Success : Result::LaunchTimeout);
  if (result == Result::Success)
    EXPECT_EQ(download<int32_t>(to, 2), (std::vector<int32_t>{before * 10, before * 10 + 1}));
}

TEST(EmulatedNccl, MessagesGoAround) {
  for (int size : {1, 2, 4, 8})
    runRanks(size, [](Rank &rank) { passAround(rank, true); });
  EXPECT_EQ(takeFindings(), "");
}

TEST(EmulatedNccl, SendsThatAllWaitForAreADeadlock) {
  Setting patience("CLEAVE_EMULATION_PATIENCE", "0.1");
  runRanks(2, [](Rank &rank) { passAround(rank, false); });
  EXPECT_THAT(takeFindings(), HasSubstr("nothing moves: device 0 stream "));
}

//===----------------------------------------------------------------------===//
// Parts of communicators
//===----------------------------------------------------------------------===//

// 8 ranks as 2 x 4: sums of rows, sums of columns, with keys that turn the order of a row around.
TEST(EmulatedNccl, SplitsByColorAndKey) {
  runRanks(8, [](Rank &rank) {
    const Nccl &nccl = getNccl();
    NcclComm row = nullptr, column = nullptr, none = nullptr;
    EXPECT_EQ(nccl.ncclCommSplit(rank.comm, rank.number / 4, -rank.number, &row, nullptr), NcclResult::Success);
    EXPECT_EQ(nccl.ncclCommSplit(rank.comm, rank.number % 4, 0, &column, nullptr), NcclResult::Success);
    EXPECT_EQ(nccl.ncclCommSplit(rank.comm, rank.number ? kNcclNoColor : 0, 0, &none, nullptr), NcclResult::Success);
    EXPECT_EQ(none != nullptr, rank.number == 0);
    DevicePointer own = upload(std::vector<int32_t>{rank.number}), gathered = allocate(16), sum = allocate(4);
    EXPECT_EQ(nccl.ncclAllGather(pointer(own), pointer(gathered), 1, NcclType::I32, row, rank.stream),
              NcclResult::Success);
    EXPECT_EQ(nccl.ncclAllReduce(pointer(own), pointer(sum), 1, NcclType::I32, NcclReduction::Sum, column, rank.stream),
              NcclResult::Success);
    EXPECT_EQ(synchronize(rank), Result::Success);
    int first = rank.number / 4 * 4;
    EXPECT_EQ(download<int32_t>(gathered, 4), (std::vector<int32_t>{first + 3, first + 2, first + 1, first}));
    EXPECT_EQ(download<int32_t>(sum, 1)[0], rank.number % 4 * 2 + 4);
    for (NcclComm comm : {row, column, none})
      EXPECT_EQ(nccl.ncclCommDestroy(comm), NcclResult::Success);
  });
  EXPECT_EQ(takeFindings(), "");
}

// One thread for four devices: made in a group, called one after the other, and a host that waits for one moves all.
TEST(EmulatedNccl, OneThreadHasManyDevices) {
  const Nccl &nccl = getNccl();
  NcclUniqueId id = makeId();
  std::vector<std::unique_ptr<UseDevice>> devices;
  std::vector<Rank> ranks;
  std::vector<DevicePointer> memory;
  EXPECT_EQ(nccl.ncclGroupStart(), NcclResult::Success);
  for (int number = 0; number < 4; ++number) {
    devices.push_back(std::make_unique<UseDevice>(number));
    ranks.push_back({number, 4, nullptr, makeStream()});
    EXPECT_EQ(nccl.ncclCommInitRankConfig(&ranks.back().comm, 4, id, number, nullptr), NcclResult::Success);
    memory.push_back(upload(std::vector<float>{float(number)}));
  }
  EXPECT_EQ(nccl.ncclGroupEnd(), NcclResult::Success);
  for (Rank &rank : ranks)
    EXPECT_EQ(nccl.ncclAllReduce(pointer(memory[rank.number]), pointer(memory[rank.number]), 1, NcclType::F32,
                                 NcclReduction::Sum, rank.comm, rank.stream),
              NcclResult::Success);
  EXPECT_EQ(synchronize(ranks[2]), Result::Success);
  float sum = 0;
  EXPECT_EQ(getDriver().cuMemcpyDtoHAsync_v2(&sum, memory[2], 4, ranks[2].stream), Result::Success);
  EXPECT_EQ(sum, 6.f);
  for (Rank &rank : ranks) {
    EXPECT_EQ(synchronize(rank), Result::Success);
    EXPECT_EQ(nccl.ncclCommDestroy(rank.comm), NcclResult::Success);
  }
  EXPECT_EQ(takeFindings(), "");
}

TEST(EmulatedNccl, IsMadeWithoutBlocking) {
  const Nccl &nccl = getNccl();
  NcclUniqueId id = makeId();
  NcclConfig config;
  config.blocking = 0;
  UseDevice use(0);
  NcclComm comm = nullptr;
  NcclResult error = NcclResult::Success;
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&comm, 2, id, 0, &config), NcclResult::InProgress);
  EXPECT_EQ(nccl.ncclCommGetAsyncError(comm, &error), NcclResult::Success);
  EXPECT_EQ(error, NcclResult::InProgress);
  DevicePointer memory = allocate(4);
  EXPECT_EQ(
      nccl.ncclAllReduce(pointer(memory), pointer(memory), 1, NcclType::F32, NcclReduction::Sum, comm, makeStream()),
      NcclResult::InvalidUsage);
  EXPECT_EQ(takeFindings(), "ncclAllReduce: the communicator is still being made\n");
  std::thread other([&] {
    UseDevice second(1);
    NcclComm own = nullptr;
    EXPECT_EQ(nccl.ncclCommInitRankConfig(&own, 2, id, 1, nullptr), NcclResult::Success);
    EXPECT_EQ(nccl.ncclCommDestroy(own), NcclResult::Success);
  });
  do
    EXPECT_EQ(nccl.ncclCommGetAsyncError(comm, &error), NcclResult::Success);
  while (error == NcclResult::InProgress);
  EXPECT_EQ(error, NcclResult::Success);
  other.join();
  EXPECT_EQ(nccl.ncclCommDestroy(comm), NcclResult::Success);
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

// Rank 1 gives another count, type, reduction or kind: one of both says so, with both calls.
TEST(EmulatedNccl, CallsThatDifferAreNamed) {
  struct Case {
    size_t count;
    NcclType type;
    NcclReduction reduction;
    const char *name;
  };
  for (Case other : {Case{5, NcclType::F32, NcclReduction::Sum, "all_reduce sum of 5 f32"},
                     Case{6, NcclType::I32, NcclReduction::Sum, "all_reduce sum of 6 i32"},
                     Case{6, NcclType::F32, NcclReduction::Max, "all_reduce max of 6 f32"}}) {
    runRanks(2, [&](Rank &rank) {
      DevicePointer memory = allocate(64);
      Case own = rank.number ? other : Case{6, NcclType::F32, NcclReduction::Sum, ""};
      EXPECT_EQ(getNccl().ncclAllReduce(pointer(memory), pointer(memory), own.count, own.type, own.reduction, rank.comm,
                                        rank.stream),
                NcclResult::Success);
      EXPECT_EQ(synchronize(rank), Result::LaunchFailed);
      NcclResult error = NcclResult::Success;
      EXPECT_EQ(getNccl().ncclCommGetAsyncError(rank.comm, &error), NcclResult::Success);
      EXPECT_EQ(error, NcclResult::InvalidUsage);
    });
    EXPECT_THAT(takeFindings(),
                HasSubstr("device 1: rank 1 calls " + std::string(other.name) +
                          " where rank 0 calls all_reduce sum of 6 f32, number 1 of their communicator\n"));
  }
  Setting patience("CLEAVE_EMULATION_PATIENCE", "0.1");
  runRanks(2, [&](Rank &rank) {
    DevicePointer memory = allocate(64);
    if (rank.number)
      getNccl().ncclSend(pointer(memory), 3, NcclType::F32, 0, rank.comm, rank.stream);
    else
      getNccl().ncclRecv(pointer(memory), 4, NcclType::F32, 1, rank.comm, rank.stream);
    EXPECT_EQ(synchronize(rank), rank.number ? Result::LaunchTimeout : Result::LaunchFailed)
        << "nobody takes what was sent";
  });
  EXPECT_THAT(takeFindings(), HasSubstr("rank 0 expects recv of 4 f32 from rank 1, which calls send of 3 f32"));
}

// Rank 1 never calls: the other says what it stands at.
TEST(EmulatedNccl, NothingMovesIsNoticed) {
  Setting patience("CLEAVE_EMULATION_PATIENCE", "0.1");
  runRanks(2, [](Rank &rank) {
    if (rank.number)
      return;
    DevicePointer memory = allocate(64);
    EXPECT_EQ(getNccl().ncclAllReduce(pointer(memory), pointer(memory), 6, NcclType::F32, NcclReduction::Sum, rank.comm,
                                      rank.stream),
              NcclResult::Success);
    EXPECT_EQ(synchronize(rank), Result::LaunchTimeout);
  });
  EXPECT_THAT(takeFindings(), HasSubstr("at all_reduce sum of 6 f32, rank 0 of 2"));
}

// A rank that hangs, by plan: the other polls, gives up, and both streams are free again.
TEST(EmulatedNccl, AbortEndsWhatHangs) {
  Setting plan("CLEAVE_EMULATION_FAIL", "ncclAllReduce@1:2=hang");
  runRanks(2, [](Rank &rank) {
    const Nccl &nccl = getNccl();
    DevicePointer memory = allocate(64);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(nccl.ncclAllReduce(pointer(memory), pointer(memory), 4, NcclType::F32, NcclReduction::Sum, rank.comm,
                                   rank.stream),
                NcclResult::Success);
    auto begun = std::chrono::steady_clock::now();
    Result result = Result::NotReady;
    while (result == Result::NotReady && std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(200))
      result = getDriver().cuStreamQuery(rank.stream);
    EXPECT_EQ(result, Result::NotReady);
    EXPECT_EQ(nccl.ncclCommAbort(rank.comm), NcclResult::Success);
    rank.comm = nullptr;
    EXPECT_EQ(synchronize(rank), Result::Success);
  });
  EXPECT_EQ(takeFindings(), "");
}

TEST(EmulatedNccl, ErrorsOfOthersArrive) {
  std::atomic<bool> hasLooked{false};
  runRanks(2, [&](Rank &rank) {
    const Nccl &nccl = getNccl();
    NcclResult error = NcclResult::Success;
    if (rank.number) {
      EXPECT_EQ(nccl.ncclCommAbort(rank.comm), NcclResult::Success);
      rank.comm = nullptr;
      return;
    }
    while (error == NcclResult::Success)
      EXPECT_EQ(nccl.ncclCommGetAsyncError(rank.comm, &error), NcclResult::Success);
    EXPECT_EQ(error, NcclResult::RemoteError);
    hasLooked = true;
  });
  EXPECT_TRUE(hasLooked);
  Setting plan("CLEAVE_EMULATION_FAIL", "ncclCommGetAsyncError:2=2");
  runRanks(1, [&](Rank &rank) {
    NcclResult error = NcclResult::Success;
    EXPECT_EQ(getNccl().ncclCommGetAsyncError(rank.comm, &error), NcclResult::Success);
    EXPECT_EQ(error, NcclResult::Success);
    EXPECT_EQ(getNccl().ncclCommGetAsyncError(rank.comm, &error), NcclResult::Success);
    EXPECT_EQ(error, NcclResult::SystemError);
  });
}

TEST(EmulatedNccl, RanksThatDoNotFitAreNamed) {
  const Nccl &nccl = getNccl();
  NcclUniqueId id = makeId();
  UseDevice use(0);
  NcclConfig config;
  config.blocking = 0;
  NcclComm one = nullptr, other = nullptr;
  takeFindings();
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&one, 3, id, 1, &config), NcclResult::InProgress);
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&other, 3, id, 1, &config), NcclResult::InvalidUsage);
  EXPECT_EQ(takeFindings(), "ncclCommInitRankConfig: two ranks say that they are 1 of 3\n");
  EXPECT_EQ(nccl.ncclCommDestroy(other), NcclResult::Success);
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&other, 2, id, 0, &config), NcclResult::InvalidUsage);
  EXPECT_EQ(takeFindings(), "ncclCommInitRankConfig: rank 0 says that there are 2 ranks, another 3\n");
  EXPECT_EQ(nccl.ncclCommDestroy(other), NcclResult::Success);
  Setting patience("CLEAVE_EMULATION_PATIENCE", "0.01");
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&other, 3, id, 0, nullptr), NcclResult::InvalidUsage);
  EXPECT_EQ(takeFindings(), "ncclCommInitRankConfig: no communicator: of 3 ranks these have not come: 2\n");
  for (NcclComm comm : {one, other})
    EXPECT_EQ(nccl.ncclCommDestroy(comm), NcclResult::Success);
}

// A kernel writes on one stream what a collective of another reads, and no event stands between.
TEST(EmulatedNccl, CollectivesAreOrderedLikeAllElse) {
  runRanks(2, [](Rank &rank) {
    DevicePointer memory = allocate(64);
    Stream compute = makeStream();
    EXPECT_EQ(getDriver().cuMemsetD8Async(memory, 0, 64, compute), Result::Success);
    EXPECT_EQ(getNccl().ncclAllReduce(pointer(memory), pointer(memory), 4, NcclType::F32, NcclReduction::Sum, rank.comm,
                                      rank.stream),
              NcclResult::UnhandledCudaError);
  });
  EXPECT_THAT(takeFindings(),
              HasSubstr("all_reduce sum of 4 f32, rank 1 of 2 reads what fill of 64 bytes writes on another stream"));
}

// A step with a collective as a graph, three times over.
TEST(EmulatedNccl, GraphsMeetAnewEachTime) {
  runRanks(4, [](Rank &rank) {
    const Driver &driver = getDriver();
    DevicePointer memory = upload(std::vector<float>{1.f});
    Graph graph = nullptr;
    GraphExec executable = nullptr;
    EXPECT_EQ(driver.cuStreamBeginCapture_v2(rank.stream, CaptureMode::ThreadLocal), Result::Success);
    EXPECT_EQ(getNccl().ncclAllReduce(pointer(memory), pointer(memory), 1, NcclType::F32, NcclReduction::Sum, rank.comm,
                                      rank.stream),
              NcclResult::Success);
    EXPECT_EQ(driver.cuStreamEndCapture(rank.stream, &graph), Result::Success);
    EXPECT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), Result::Success);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(driver.cuGraphLaunch(executable, rank.stream), Result::Success);
    EXPECT_EQ(synchronize(rank), Result::Success);
    EXPECT_EQ(download<float>(memory, 1)[0], 64.f);
  });
  EXPECT_EQ(takeFindings(), "");
}

TEST(EmulatedNccl, WindowsBeginAtPages) {
  runRanks(2, [](Rank &rank) {
    const Nccl &nccl = getNccl();
    void *arena = nullptr;
    NcclWindow window = nullptr;
    EXPECT_EQ(nccl.ncclMemAlloc(&arena, 10000), NcclResult::Success);
    EXPECT_EQ(nccl.ncclCommWindowRegister(rank.comm, arena, 10000, &window, kNcclWindowSymmetric), NcclResult::Success);
    // An address is in one window at most.
    NcclWindow second = nullptr;
    EXPECT_EQ(nccl.ncclCommWindowRegister(rank.comm, arena, 4096, &second, kNcclWindowSymmetric),
              NcclResult::InvalidUsage);
    EXPECT_EQ(nccl.ncclCommWindowDeregister(rank.comm, window), NcclResult::Success);
    EXPECT_EQ(
        nccl.ncclCommWindowRegister(rank.comm, static_cast<char *>(arena) + 256, 64, &window, kNcclWindowSymmetric),
        NcclResult::InvalidUsage);
    EXPECT_EQ(nccl.ncclMemFree(arena), NcclResult::Success);
  });
  takeFindings();
}

/// The finding of two ranks of which one gives a window of other bytes, or operands at another place of it.
static std::string shareWindows(bool isAsLarge, bool liesAlike) {
  runRanks(2, [&](Rank &rank) {
    const Nccl &nccl = getNccl();
    bool isOther = rank.number == 1;
    void *arena = nullptr;
    NcclWindow window = nullptr;
    EXPECT_EQ(nccl.ncclMemAlloc(&arena, 16384), NcclResult::Success);
    EXPECT_EQ(getDriver().cuMemsetD8Async(DevicePointer(arena), 0, 16384, rank.stream), Result::Success);
    NcclResult registered = nccl.ncclCommWindowRegister(rank.comm, arena, isOther && !isAsLarge ? 8192 : 16384, &window,
                                                        kNcclWindowSymmetric);
    EXPECT_EQ(registered, isAsLarge ? NcclResult::Success : NcclResult::InvalidUsage);
    if (!isAsLarge)
      return;
    char *operand = static_cast<char *>(arena) + (isOther && !liesAlike ? 256 : 0);
    EXPECT_EQ(nccl.ncclAllReduce(operand, operand, 4, NcclType::F32, NcclReduction::Sum, rank.comm, rank.stream),
              NcclResult::Success);
    EXPECT_EQ(synchronize(rank) == Result::Success, liesAlike);
  });
  return takeFindings();
}

TEST(EmulatedNccl, WindowsAreAlikeOnAllRanks) {
  EXPECT_EQ(shareWindows(true, true), "");
  EXPECT_THAT(shareWindows(false, true), testing::HasSubstr("registers 16384 bytes, rank 1 8192"));
  EXPECT_THAT(shareWindows(true, false), testing::HasSubstr("input at 256 of a window, output at 256 of a window"));
}
