//===- ExecutorFaultsTest.cpp - what an executor refuses, and says --------===//
//
// Damage of files, other machines, wrong arguments; kernels that crash, make a NaN, or do not come back.
//
//===----------------------------------------------------------------------===//
#include "RunnableSamples.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

/// The error of opening a program, whose kind must be `kind`.
static std::string refuse(const std::string &bytes, ErrorKind kind, const ExecutorOptions &options = {}) {
  std::unique_ptr<Executor> executor;
  ExecutorStatus status = Executor::open(bytes, "", options, executor);
  EXPECT_TRUE(status);
  EXPECT_FALSE(executor);
  EXPECT_EQ(status ? status->kind : kind, kind);
  return getMessage(status);
}

TEST(ExecutorFaults, DamagedProgramsAreRefused) {
  std::string bytes = makeChain().write();
  EXPECT_THAT(refuse(bytes.substr(0, 100), ErrorKind::Program), HasSubstr("(P1)"));
  EXPECT_THAT(refuse("", ErrorKind::Program), HasSubstr("(P1)"));
  Builder damaged = makeChain();
  damaged.program.modules[0].objects[0].code = "no code at all";
  EXPECT_THAT(refuse(damaged.write(), ErrorKind::Program),
              StartsWith("module \"kernels\": cannot load the code of \"kernels\": "));
  Builder renamed = makeChain();
  renamed.program.kernels[0].entry = "nothing";
  EXPECT_EQ(refuse(renamed.write(), ErrorKind::Program), "kernel \"test_affine\": the code has no \"nothing\"");
  std::unique_ptr<Executor> executor;
  EXPECT_THAT(getMessage(Executor::open("/nowhere/m.cleave", {}, executor)),
              "cannot read /nowhere/m.cleave: No such file or directory");
}

TEST(ExecutorFaults, OtherMachinesAreNamed) {
  Builder b = makeChain();
  std::string own = b.program.targets[0].architecture;
  b.program.targets[0].features = {"quantum", "time.travel"};
  b.program.targets.push_back({cleave::program::Device::Host, "vax", {}});
  b.program.modules[0].objects.push_back({1, Format::SharedObject, "code"});
  EXPECT_EQ(refuse(b.write(), ErrorKind::Machine),
            "the program has no code for this machine: target 0: this processor has no \"quantum\", \"time.travel\"; "
            "target 1: it is for \"vax\", this machine is " +
                own);
  // The second target is the first that suits.
  std::swap(b.program.targets[1].architecture, own);
  b.program.modules[0].objects[1].code = makeChain().program.modules[0].objects[0].code;
  EXPECT_TRUE(openProgram(b));
}

TEST(ExecutorFaults, MissingDevicesAreNamed) {
  Builder b = makeChain();
  b.program.targets = {{cleave::program::Device::Cuda, "sm_90", {}}};
  b.program.modules[0].objects[0].format = Format::Ptx;
  setenv("CLEAVE_CUDA_RUNTIME", "/no/such/libcleave_cuda.so", 1);
  EXPECT_EQ(
      refuse(b.write(), ErrorKind::Machine),
      "programs for CUDA need libcleave_cuda: /no/such/libcleave_cuda.so: cannot open shared object file: No such "
      "file or directory");
  unsetenv("CLEAVE_CUDA_RUNTIME");
}

TEST(ExecutorFaults, CompilersNamesOfFeaturesAreKnown) {
#if defined(__x86_64__)
  Builder b = makeChain();
  b.program.targets[0].features = {"sse4.2", "lzcnt", "pclmul", "sse3", "64bit", "fxsr"};
  EXPECT_TRUE(openProgram(b));
#endif
}

TEST(ExecutorFaults, ContractionsNeedAKernel) {
  Builder b;
  uint32_t type = b.addType({4, 4});
  uint32_t x = b.addBuffer(BufferKind::Input, 64), y = b.addBuffer(BufferKind::Output, 64);
  Matmul matmul;
  matmul.a = matmul.b = {x, type, {}};
  matmul.result = {y, type, {}};
  b.add(matmul);
  b.addInput("x", type, {x, type, {}});
  b.addOutput("y", type, {y, type, {}});
  EXPECT_EQ(refuse(b.write(), ErrorKind::Machine),
            "rank 0: command 0 (matmul) has no fallback kernel, and this device no library for it");
}

TEST(ExecutorFaults, ChangedWeightsAreRefused) {
  Folder folder;
  ExecutorOptions options;
  options.weightsFolder = folder.path;
  std::string bytes = makeTensorParallel().write(), file = makeWeightsFile();
  EXPECT_EQ(refuse(bytes, ErrorKind::Weights, options),
            "cannot open the file of weights \"weights.bin\": No such file or directory (tried \"" + folder.path +
                "/weights.bin\"; --weights names a folder)");
  folder.write("weights.bin", file.substr(1));
  EXPECT_THAT(refuse(bytes, ErrorKind::Weights, options),
              HasSubstr("has 2211 bytes, the program was compiled with 2212: compile it again"));
  file[64 + 1000] ^= 1;
  folder.write("weights.bin", file);
  EXPECT_THAT(
      refuse(bytes, ErrorKind::Weights, options),
      AllOf(StartsWith("weight \"w\" in \"weights.bin\" has changed: its digest is "), HasSubstr("compile it again")));
  // What does not belong to a weight may change.
  file[64 + 1000] ^= 1;
  file[3] ^= 1;
  folder.write("weights.bin", file);
  EXPECT_TRUE(openProgram(makeTensorParallel(), options));
}

TEST(ExecutorFaults, TooLittleMemoryIsSaidBeforeAnythingIsTaken) {
  ExecutorOptions options;
  options.memoryLimit = 511;
  EXPECT_EQ(refuse(makeChain().write(), ErrorKind::Memory, options),
            "the program needs 512 bytes of memory on this machine, 511 are free");
  Builder b = makeChain();
  b.addBuffer(BufferKind::Activations, uint64_t(1) << 46);
  EXPECT_THAT(refuse(b.write(), ErrorKind::Memory), HasSubstr("the program needs 70368744178176 bytes"));
}

// Each argument that does not fit, and that the executor is as good as before.
TEST(ExecutorFaults, WrongArgumentsAreNamed) {
  auto executor = openProgram(makeChain());
  ASSERT_TRUE(executor);
  std::vector<float> x(32);
  Argument right = makeArgument("x", {4, 8}, x), wrong;
  auto run = [&](const std::vector<Argument> &inputs, const std::vector<std::string> &wanted = {}) {
    std::vector<Value> outputs;
    ExecutorStatus status = executor->run(inputs, outputs, wanted);
    EXPECT_TRUE(!status || status->kind == ErrorKind::Arguments);
    return getMessage(status);
  };
  EXPECT_EQ(run({}), "input \"x\" is missing; it is f32[4, 8]");
  EXPECT_EQ(run({makeArgument("z", {4, 8}, x)}), "the program has no input \"z\"; its inputs are \"x\"");
  EXPECT_EQ(run({makeArgument("x", {8, 4}, x)}), "input \"x\" is f32[8, 4], expected f32[4, 8]");
  wrong = right;
  wrong.type = ElementType::I32;
  EXPECT_EQ(run({wrong}), "input \"x\" is i32[4, 8], expected f32[4, 8]");
  wrong = right;
  wrong.data = nullptr;
  EXPECT_EQ(run({wrong}), "input \"x\" has no data");
  EXPECT_EQ(run({right, right}), "input \"x\" is given twice");
  EXPECT_EQ(run({right}, {"q"}), "the program has no output \"q\"; its outputs are \"y\"");
  EXPECT_EQ(run({right}), "");
}

//===----------------------------------------------------------------------===//
// Ranks that fail
//===----------------------------------------------------------------------===//

namespace {
/// What came of a run of `makeFault`.
struct Outcome {
  ErrorKind kind = ErrorKind::Program;
  std::string message, again, record;
  double seconds = 0;
};
} // namespace

static Outcome runFault(const char *entry, int64_t what, ExecutorOptions options = {}) {
  Folder folder;
  Outcome outcome;
  options.communication.recordFolder = folder.path;
  auto executor = openProgram(makeFault(entry, what), options);
  if (!executor)
    return outcome;
  std::vector<float> x(2);
  std::vector<Value> outputs;
  auto began = std::chrono::steady_clock::now();
  ExecutorStatus status = executor->run({makeArgument("x", {2}, x)}, outputs);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  outcome.kind = status ? status->kind : ErrorKind::Program;
  outcome.message = getMessage(status);
  if (status)
    outcome.again = getMessage(executor->run({makeArgument("x", {2}, x)}, outputs));
  std::ifstream file(folder.path + "/flight-recorder.txt");
  std::stringstream text;
  text << file.rdbuf();
  outcome.record = text.str();
  return outcome;
}

// A crash is a failure of its rank, with command, node and signal, for all ranks, in the record, and from then on.
TEST(ExecutorFaults, KernelsThatCrashAreFailures) {
  ExecutorOptions options;
  options.catchesCrashes = true;
  const char *signals[] = {"SIGSEGV at 0x10", "SIGFPE at 0x[0-9a-f]+", "SIGILL at 0x[0-9a-f]+",
                           "SIGSEGV at 0x[0-9a-f]+", "SIGABRT"};
  struct sigaction before;
  sigaction(SIGSEGV, nullptr, &before);
  for (int64_t which : {0, 1, 2, 3, 4}) {
    Outcome outcome = runFault("test_crash", which, options);
    EXPECT_EQ(outcome.kind, ErrorKind::Ranks);
    EXPECT_THAT(outcome.message,
                testing::ContainsRegex(std::string("^rank 1: command 0, launch test_crash, of node \"/bad\": "
                                                   "the kernel ended with ") +
                                       signals[which] + " \\(aborted\\)$"));
    EXPECT_EQ(outcome.again, outcome.message);
    EXPECT_THAT(outcome.record,
                AllOf(StartsWith(outcome.message + "\n"), HasSubstr("\nrank 0, "), HasSubstr("\nrank 1, "),
                      HasSubstr("  command 0, launch test_crash, of node \"/bad\", began -")));
    EXPECT_LT(outcome.seconds, 2);
  }
  // The handlers are gone with the executor.
  struct sigaction action;
  sigaction(SIGSEGV, nullptr, &action);
  EXPECT_TRUE(action.sa_handler == before.sa_handler);
}

TEST(ExecutorFaults, NanIsFoundWhereItIsMade) {
  ExecutorOptions options;
  EXPECT_EQ(runFault("test_nan", 1, options).message, "");
  options.findsNan = true;
  EXPECT_EQ(runFault("test_nan", -1, options).message, "");
  EXPECT_EQ(runFault("test_nan", 1, options).message,
            "rank 1: command 0, launch test_nan, of node \"/bad\": its result has a NaN (aborted)");
}

// Who is late is named, with the command that it is at, by who waits; nobody waits longer than said.
TEST(ExecutorFaults, LateRanksAreNamed) {
  ExecutorOptions options;
  options.communication.deadline = 0.3;
  options.communication.silence = 60;
  Outcome outcome = runFault("test_sleep", 1200, options);
  EXPECT_THAT(outcome.message, testing::ContainsRegex(
                                   "^rank 0: all_reduce sum f32\\[1\\], number 1 in group 1 \\{0, 1\\}, at command 1, "
                                   "all_reduce, of node \"/sum\": rank 1 did not come within 0.3 s; it has not come to "
                                   "any operation, at command 0, "
                                   "launch test_sleep, of node \"/bad\" \\(timeout\\)$"));
  EXPECT_LT(outcome.seconds, 3);
  options.communication.deadline = 60;
  options.communication.silence = 0.2;
  EXPECT_THAT(runFault("test_sleep", 800, options).message, HasSubstr("rank 1 has given no sign of life for 0."));
}

// From another thread: all ranks come back, with that failure.
TEST(ExecutorFaults, RunsCanBeInterrupted) {
  auto executor = openProgram(makeFault("test_sleep", 300));
  ASSERT_TRUE(executor);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    executor->fail(Cause::Aborted, "enough");
  });
  std::vector<float> x(2);
  std::vector<Value> outputs;
  EXPECT_EQ(getMessage(executor->run({makeArgument("x", {2}, x)}, outputs)), "rank 0: enough (aborted)");
  other.join();
}

// What is run is what was written, for whoever does not ask for less.
TEST(ExecutorFaults, DamagedCodeIsRefused) {
  std::string bytes = makeChain().write();
  size_t at = bytes.find("\177ELF") + 200;
  bytes[at] = char(bytes[at] ^ 1);
  EXPECT_THAT(
      refuse(bytes, ErrorKind::Program),
      MatchesRegex(
          "module .kernels.: its code is damaged: its digest is [0-9a-f]+, when it was written it was [0-9a-f]+"));
}

namespace {
/// y = x[ids], x and ids inputs; with a range for the ids where that `isChecked`.
Builder makeLookup(bool isChecked) {
  Builder b;
  uint32_t ids = b.addType({4}, Element::I64), table = b.addType({3}), rows = b.addType({4});
  uint32_t idsBuffer = b.addBuffer(BufferKind::Input, 32), tableBuffer = b.addBuffer(BufferKind::Input, 12);
  uint32_t out = b.addBuffer(BufferKind::Output, 16), kernel = b.addKernel("test_look_up", {ids, table, rows}, 1, 0);
  b.program.version = kReportsVersion;
  b.program.kernels[kernel].reports = true;
  int32_t node = b.addNode("/embed/Gather");
  b.launch(kernel, {{idsBuffer, ids, {}}, {tableBuffer, table, {}}, {out, rows, {}}}, {}, node);
  b.addInput("ids", ids, {idsBuffer, ids, {}});
  b.addInput("x", table, {tableBuffer, table, {}});
  b.addOutput("y", rows, {out, rows, {}});
  if (isChecked)
    b.variant().ranges = {{0, node, -3, 2}};
  return b;
}
} // namespace

// Indices of the caller's are looked at before anything runs, and the next call is as good as any. Those that only a kernel sees end the
// program, with the command that saw it.
TEST(ExecutorFaults, IndicesOutOfRangeAreErrors) {
  for (bool isChecked : {true, false}) {
    auto executor = openProgram(makeLookup(isChecked));
    ASSERT_TRUE(executor);
    std::vector<float> x = {10, 20, 30};
    std::vector<int64_t> ids = {2, -3, 0, -1};
    std::vector<Argument> arguments = {{"ids", ElementType::I64, {4}, ids.data()}, makeArgument("x", {3}, x)};
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run(arguments, outputs)), "");
    EXPECT_EQ(getFloats(outputs[0]), (std::vector<float>{30, 10, 10, 30}));
    for (int64_t wrong : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
      if (!isChecked && wrong != 3)
        break;
      ids[2] = wrong;
      ExecutorStatus status = executor->run(arguments, outputs);
      ASSERT_TRUE(status) << wrong;
      if (isChecked) {
        EXPECT_EQ(status->kind, ErrorKind::Arguments);
        EXPECT_EQ(status->message,
                  "input \"ids\": element 2, " + std::to_string(wrong) +
                      ", is an index out of range: node \"/embed/Gather\" looks it up in 3 places, -3 to 2");
        ids[2] = 0;
        EXPECT_EQ(getMessage(executor->run(arguments, outputs)), "");
        continue;
      }
      EXPECT_EQ(status->kind, ErrorKind::Ranks);
      EXPECT_THAT(status->message,
                  StartsWith("rank 0: command 0, launch test_look_up, of node \"/embed/Gather\": the index 3 is out of "
                             "range: there are 3 places here, -3 to 2"));
    }
  }
}
