//===- ApiTest.cpp - the runtime for C ------------------------------------===//
//
// What examples/run.c does not: everything that a caller can get wrong, states, and memory that outputs lie in.
//
//===----------------------------------------------------------------------===//
#include "RunnableSamples.h"
#include "cleave/runtime.h"

#include <atomic>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>

using namespace cleave::runtime::test;

namespace {

/// A program that is open.
struct Opened {
  explicit Opened(const Builder &builder) {
    std::string bytes = builder.write();
    EXPECT_EQ(cleave_open_memory(bytes.data(), bytes.size(), nullptr, nullptr, &program), CLEAVE_OK);
  }
  ~Opened() { cleave_close(program); }
  cleave_program *program = nullptr;
};

} // namespace

static cleave_tensor makeTensor(const char *name, const Shape &shape, const std::vector<float> &data) {
  return {name, CLEAVE_F32, shape.size(), shape.data(), data.data(), data.size() * sizeof(float)};
}

TEST(Api, RunsPrograms) {
  Opened opened(makeChain());
  EXPECT_EQ(cleave_rank_count(opened.program), 1u);
  EXPECT_EQ(cleave_rank(opened.program), 0u);
  EXPECT_EQ(cleave_peak_bytes(opened.program), 512u);
  EXPECT_GT(cleave_load_seconds(opened.program), 0);
  EXPECT_STREQ(cleave_version(), "0.1.0");
  Shape shape = {4, 8};
  std::vector<float> x = makeFloats(32, 1);
  cleave_tensor input = makeTensor("x", shape, x), output = {};
  output.name = "y";
  ASSERT_EQ(cleave_run(opened.program, &input, 1, &output, 1), CLEAVE_OK);
  EXPECT_GT(cleave_run_seconds(opened.program), 0);
  ASSERT_EQ(output.bytes, 128u);
  EXPECT_EQ(output.type, CLEAVE_F32);
  EXPECT_EQ(Shape(output.shape, output.shape + output.rank), shape);
  for (size_t i = 0; i < 32; ++i)
    EXPECT_EQ(static_cast<const float *>(output.data)[i], 4 * x[i] + 4);
}

TEST(Api, TellsWhatAProgramTakesAndGives) {
  Opened opened(makeVariants());
  ASSERT_EQ(cleave_variant_count(opened.program), 2u);
  EXPECT_EQ(cleave_input_count(opened.program), 1u);
  EXPECT_EQ(cleave_output_count(opened.program), 1u);
  cleave_tensor tensor;
  ASSERT_EQ(cleave_describe_input(opened.program, 1, 0, &tensor), CLEAVE_OK);
  EXPECT_STREQ(tensor.name, "x");
  EXPECT_EQ(tensor.shape[0], 1);
  EXPECT_EQ(tensor.bytes, 32u);
  EXPECT_EQ(tensor.data, nullptr);
  ASSERT_EQ(cleave_describe_output(opened.program, 0, 0, &tensor), CLEAVE_OK);
  EXPECT_EQ(tensor.shape[0], 2);
  EXPECT_EQ(cleave_describe_output(opened.program, 2, 0, &tensor), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_STREQ(cleave_last_error(), "variant 2 of 2");
  EXPECT_EQ(cleave_describe_input(opened.program, 0, 1, &tensor), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_STREQ(cleave_last_error(), "tensor 1 of 1");
}

TEST(Api, KeepsAndResetsStates) {
  Opened opened(makeAccumulator());
  Shape shape = {2, 8};
  std::vector<float> x = makeFloats(16, 1);
  cleave_tensor input = makeTensor("x", shape, x), outputs[2] = {};
  outputs[0].name = "total";
  outputs[1].name = "y";
  for (int times : {1, 2, 1}) {
    if (times == 1)
      EXPECT_EQ(cleave_reset_states(opened.program), CLEAVE_OK);
    ASSERT_EQ(cleave_run(opened.program, &input, 1, outputs, 2), CLEAVE_OK);
    EXPECT_EQ(std::memcmp(outputs[0].data, outputs[1].data, 64), 0);
    EXPECT_EQ(static_cast<const float *>(outputs[1].data)[5], float(times) * x[5]);
  }
}

// What another thread asks for while a run goes on is the same call. What was stopped is not run any more.
TEST(Api, StopsRanks) {
  Opened opened(makeAccumulator());
  Shape shape = {2, 8};
  std::vector<float> x = makeFloats(16, 1);
  cleave_tensor input = makeTensor("x", shape, x), output = {};
  output.name = "y";
  ASSERT_EQ(cleave_run(opened.program, &input, 1, &output, 1), CLEAVE_OK);
  cleave_stop(opened.program, "a person asked for it");
  EXPECT_EQ(cleave_run(opened.program, &input, 1, &output, 1), CLEAVE_ERROR_RANKS);
  EXPECT_NE(std::strstr(cleave_last_error(), "a person asked for it"), nullptr) << cleave_last_error();
  cleave_stop(nullptr, nullptr);
}

// States by name, into a file and back.
TEST(Api, SavesAndLoadsStates) {
  Opened opened(makeAccumulator());
  Folder folder;
  std::string path = folder.path + "/s.safetensors";
  Shape shape = {2, 8};
  std::vector<float> x = makeFloats(16, 1);
  cleave_tensor input = makeTensor("x", shape, x), output = {}, state = {};
  output.name = "y";
  ASSERT_EQ(cleave_state_count(opened.program), 1u);
  ASSERT_EQ(cleave_describe_state(opened.program, 0, &state), CLEAVE_OK);
  EXPECT_STREQ(state.name, "past");
  EXPECT_STREQ(cleave_state_output(opened.program, 0), "total");
  EXPECT_EQ(cleave_state_output(opened.program, 1), nullptr);
  EXPECT_EQ(cleave_state_output(nullptr, 0), nullptr);
  EXPECT_EQ(state.bytes, 64u);
  EXPECT_EQ(cleave_describe_state(opened.program, 1, &state), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_STREQ(cleave_last_error(), "state 1 of 1");
  ASSERT_EQ(cleave_run(opened.program, &input, 1, &output, 1), CLEAVE_OK);
  ASSERT_EQ(cleave_save(opened.program, path.c_str()), CLEAVE_OK);
  for (int times : {2, 3, 2}) {
    if (times == 2)
      ASSERT_EQ(cleave_load(opened.program, path.c_str(), 0), CLEAVE_OK);
    ASSERT_EQ(cleave_run(opened.program, &input, 1, &output, 1), CLEAVE_OK);
    EXPECT_EQ(static_cast<const float *>(output.data)[5], float(times) * x[5]);
  }
  EXPECT_EQ(cleave_load(opened.program, "/nowhere/s.safetensors", 0), CLEAVE_ERROR_WEIGHTS);
  EXPECT_STREQ(cleave_last_error(), "cannot read /nowhere/s.safetensors: No such file or directory");
  EXPECT_EQ(cleave_save(opened.program, nullptr), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_load(nullptr, path.c_str(), 0), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_state_count(nullptr), 0u);
}

// Nothing that a caller gets wrong ends the process, or the program.
TEST(Api, RefusesWhatIsWrong) {
  cleave_program *program = nullptr;
  EXPECT_EQ(cleave_open(nullptr, nullptr, &program), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_STREQ(cleave_last_error(), "path is null");
  EXPECT_EQ(cleave_open("/nowhere/m.cleave", nullptr, nullptr), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_open("/nowhere/m.cleave", nullptr, &program), CLEAVE_ERROR_PROGRAM);
  EXPECT_STREQ(cleave_last_error(), "cannot read /nowhere/m.cleave: No such file or directory");
  EXPECT_EQ(cleave_open_memory("abc", 3, nullptr, nullptr, &program), CLEAVE_ERROR_PROGRAM);
  EXPECT_EQ(program, nullptr);
  cleave_options options;
  cleave_options_init(&options);
  options.memory_limit = 100;
  std::string bytes = makeChain().write();
  EXPECT_EQ(cleave_open_memory(bytes.data(), bytes.size(), "", &options, &program), CLEAVE_ERROR_MEMORY);
  EXPECT_EQ(cleave_run(nullptr, nullptr, 0, nullptr, 0), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_reset_states(nullptr), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_rank_count(nullptr) + cleave_input_count(nullptr) + cleave_peak_bytes(nullptr), 0u);
  cleave_close(nullptr);

  Opened opened(makeChain());
  Shape shape = {4, 8};
  std::vector<float> x(32);
  cleave_tensor right = makeTensor("x", shape, x), output = {};
  output.name = "y";
  struct {
    void (*change)(cleave_tensor &input, cleave_tensor &output);
    const char *message;
  } cases[] = {
      {[](auto &input, auto &) { input.name = nullptr; }, "the name of an input is null"},
      {[](auto &input, auto &) { input.name = "z"; }, "the program has no input \"z\"; its inputs are \"x\""},
      {[](auto &input, auto &) { input.shape = nullptr; }, "the shape of an input is null"},
      {[](auto &input, auto &) { input.bytes = 127; }, "input \"x\" has 127 bytes, its type and shape need 128"},
      {[](auto &input, auto &) { input.type = cleave_type(99); }, "input \"x\" has no known type"},
      {[](auto &input, auto &) { input.type = CLEAVE_I32; }, "input \"x\" is i32[4, 8], expected f32[4, 8]"},
      {[](auto &input, auto &) { input.data = nullptr; }, "input \"x\" has no data"},
      {[](auto &, auto &output) { output.name = nullptr; }, "the name of an output is null"},
      {[](auto &, auto &output) { output.name = "q"; }, "the program has no output \"q\"; its outputs are \"y\""},
  };
  for (const auto &test : cases) {
    cleave_tensor input = right, wanted = output;
    test.change(input, wanted);
    EXPECT_EQ(cleave_run(opened.program, &input, 1, &wanted, 1), CLEAVE_ERROR_ARGUMENTS);
    EXPECT_STREQ(cleave_last_error(), test.message);
  }
  EXPECT_EQ(cleave_run(opened.program, &right, 1, &output, 1), CLEAVE_OK);
}

// A handle that has been closed is an error wherever it is given, and closing it again is nothing. Another program does not get it.
TEST(Api, ClosedProgramsAreErrors) {
  cleave_program *closed;
  {
    Opened opened(makeChain());
    closed = opened.program;
  }
  Opened other(makeChain());
  EXPECT_NE(other.program, closed);
  Shape shape = {4, 8};
  std::vector<float> x = makeFloats(32, 1);
  cleave_tensor input = makeTensor("x", shape, x), output = {};
  output.name = "y";
  EXPECT_EQ(cleave_run(closed, &input, 1, &output, 1), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_STREQ(cleave_last_error(), "the program is closed");
  EXPECT_EQ(cleave_reset_states(closed), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_describe_input(closed, 0, 0, &input), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_describe_output(closed, 0, 0, &output), CLEAVE_ERROR_ARGUMENTS);
  EXPECT_EQ(cleave_variant_count(closed), 0u);
  EXPECT_EQ(cleave_rank_count(closed), 0u);
  EXPECT_EQ(cleave_run_seconds(closed), 0);
  cleave_close(closed);
  EXPECT_EQ(cleave_rank_count(other.program), 1u);
}

// Threads that call one program at a time are told apart from those that do at once: each call is right or says so, and the program
// lives on. One that is closed meanwhile ends when the last call does.
TEST(Api, ProgramsInUseSaySo) {
  std::string bytes = makeChain().write();
  cleave_program *chain;
  ASSERT_EQ(cleave_open_memory(bytes.data(), bytes.size(), nullptr, nullptr, &chain), CLEAVE_OK);
  std::atomic<int> calls{0}, done{0}, busy{0}, wrong{0};
  auto call = [&](unsigned seed) {
    Shape shape = {4, 8};
    std::vector<float> x = makeFloats(32, seed);
    // On a machine with other work threads may come one after the other for a while.
    for (int i = 0; i < 2000 || (busy == 0 && i < 500000); ++i, ++calls) {
      cleave_tensor input = makeTensor("x", shape, x), output = {};
      output.name = "y";
      cleave_status status = cleave_run(chain, &input, 1, &output, 1);
      if (status == CLEAVE_OK)
        ++done;
      else if (status == CLEAVE_ERROR_IN_USE && std::string(cleave_last_error()).find("in use") != std::string::npos)
        ++busy;
      else
        ++wrong;
      if (cleave_reset_states(chain) == CLEAVE_ERROR_RANKS)
        ++wrong;
    }
  };
  std::thread first(call, 1), second(call, 2), third(call, 3);
  first.join();
  second.join();
  third.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(done, 0);
  EXPECT_EQ(done + busy, calls);
  EXPECT_GT(busy, 0);
  std::atomic<bool> isClosed{false};
  std::thread last([&] {
    Shape shape = {4, 8};
    std::vector<float> x = makeFloats(32, 1);
    for (;;) {
      cleave_tensor input = makeTensor("x", shape, x), output = {};
      output.name = "y";
      bool wasClosed = isClosed;
      cleave_status status = cleave_run(chain, &input, 1, &output, 1);
      wrong += status != CLEAVE_OK && status != CLEAVE_ERROR_ARGUMENTS;
      wrong += wasClosed && status == CLEAVE_OK;
      if (status == CLEAVE_ERROR_ARGUMENTS)
        return;
    }
  });
  cleave_close(chain);
  isClosed = true;
  last.join();
  EXPECT_EQ(wrong, 0);
}

// Memory that is not there is an error of the call, and the program can be called again when there is some. (AddressSanitizer ends a
// process that asks for too much.)
#if !__has_feature(address_sanitizer)
TEST(Api, TooLittleMemoryIsAnError) {
  constexpr int64_t count = int64_t{1} << 25; // 128 MiB
  Builder b;
  uint32_t type = b.addType({count}), buffer = b.addBuffer(cleave::program::BufferKind::Output, count * 4);
  b.launch(b.addKernel("test_nan", {type}, 1, 1), {{buffer, type, {}}}, {-1});
  b.addOutput("y", type, {buffer, type, {}});
  Opened opened(b);
  cleave_tensor output = {};
  output.name = "y";
  rlimit before;
  getrlimit(RLIMIT_DATA, &before);
  std::ifstream status("/proc/self/status");
  std::string word;
  rlim_t kilobytes = 0;
  while (status >> word && word != "VmData:")
    continue;
  status >> kilobytes;
  rlimit tight = {(kilobytes << 10) + (16 << 20), before.rlim_max};
  setrlimit(RLIMIT_DATA, &tight);
  cleave_status first = cleave_run(opened.program, nullptr, 0, &output, 1);
  std::string message = cleave_last_error();
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(first, CLEAVE_ERROR_MEMORY);
  EXPECT_EQ(message, "out of memory");
  EXPECT_EQ(cleave_run(opened.program, nullptr, 0, &output, 1), CLEAVE_OK) << cleave_last_error();
  EXPECT_EQ(output.bytes, uint64_t(count) * 4);
}
#endif
