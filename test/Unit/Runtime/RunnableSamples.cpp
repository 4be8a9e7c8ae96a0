//===- RunnableSamples.cpp - programs that run, with their files ----------===//
#include "RunnableSamples.h"

#include "cleave/Program/Digest.h"
#include <cstring>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

Builder test::makeChain() {
  Builder b;
  uint32_t type = b.addType({4, 8});
  uint32_t kernel = b.addKernel("test_affine", {type, type}, 1, 2);
  uint32_t x = b.addBuffer(BufferKind::Input, 128), y = b.addBuffer(BufferKind::Output, 128);
  uint32_t arena = b.addBuffer(BufferKind::Activations, 256);
  View inX{x, type, {}}, first{arena, type, {}}, second{arena, type, {128, -1}}, inY{y, type, {}};
  b.launch(kernel, {inX, first}, {32, 1}, b.addNode("/a"));
  b.launch(kernel, {first, second}, {32, 2}, b.addNode("/b"));
  b.add(Copy{second, inY}, 0, b.addNode("/c"));
  b.addInput("x", type, inX);
  b.addOutput("y", type, inY);
  return b;
}

//===----------------------------------------------------------------------===//
// Tensor parallel
//===----------------------------------------------------------------------===//

std::vector<float> test::makeW() { return makeFloats(16 * 32, 77); }

std::string test::makeWeightsFile() {
  std::vector<float> w = makeW();
  std::string bytes(64 + w.size() * sizeof(float) + 100, 'x');
  std::memcpy(bytes.data() + 64, w.data(), w.size() * sizeof(float));
  return bytes;
}

Builder test::makeTensorParallel() {
  Builder b(4);
  b.program.axes = {{"data", 2}, {"model", 2}};
  int32_t row = b.addColumn({0, 0, 4, 4}), column = b.addColumn({0, 8, 0, 8});
  b.addGroup({0, 1, 2, 3}, 2);
  uint32_t x = b.addType({8, 16}), localX = b.addType({4, 8}), w = b.addType({16, 32});
  uint32_t panels = b.addType({2, 8, 16, 1}), y = b.addType({8, 32}), localY = b.addType({4, 32});
  std::string file = makeWeightsFile();
  b.program.files = {{"weights.bin", file.size()}};
  std::string digest = digestSample(2048, [&](uint64_t offset, char *to, size_t bytes) {
    std::memcpy(to, file.data() + 64 + offset, bytes);
    return true;
  });
  static const float three = 3;
  b.program.weights = {{"w", w, 0, 64, 2048, digest, {}, false},
                       {"three", localY, -1, 0, 0, "", {reinterpret_cast<const char *>(&three), 4}, true}};
  uint32_t inputs = b.addBuffer(BufferKind::Input, 128), outY = b.addBuffer(BufferKind::Output, 512),
           outZ = b.addBuffer(BufferKind::Output, 128), weights = b.addBuffer(BufferKind::Weights, 1024 + 512),
           sums = b.addBuffer(BufferKind::Communication, 512);
  b.role().loads = {{0, {{0, column}, {}}, {8, 32}, {{}, 0, 16, 1}, {weights, panels, {}}},
                    {1, {{}, {}}, {4, 32}, {}, {weights, localY, {1024, -1}}}};
  View inX{inputs, localX, {}}, inW{weights, panels, {}}, inThree{weights, localY, {1024, -1}};
  View inSums{sums, localY, {}}, inY{outY, localY, {}}, inZ{outZ, localX, {}};
  uint32_t multiply = b.addKernel("test_matmul", {localX, panels, localY}, 1, 3);
  uint32_t affine = b.addKernel("test_affine", {localX, localX}, 1, 2);
  uint32_t add = b.addKernel("test_add", {localY, localY, localY}, 1, 1);
  int32_t dot = b.addNode("/fc/MatMul"), side = b.addNode("/side"), bias = b.addNode("/fc/Add");
  b.variant().lists[0].events = 2;
  b.launch(multiply, {inX, inW, inSums}, {4, 8, 32}, dot);
  b.add(Record{0});
  b.add(Wait{0}, 1);
  b.add(Collective{CollectiveKind::AllReduce, Reduction::Sum, 0, {inSums}, {inSums}, {}, {}}, 1, dot);
  b.add(Record{1}, 1);
  b.launch(affine, {inX, inZ}, {32, 5}, side);
  b.add(Wait{1});
  b.launch(add, {inSums, inThree, inY}, {128}, bias);
  b.addInput("x", x, inX, {{0, row}, {0, column}});
  b.addOutput("y", y, inY, {{0, row}, {}});
  b.addOutput("z", x, inZ, {{0, row}, {0, column}});
  return b;
}

//===----------------------------------------------------------------------===//
// States, variants, stages
//===----------------------------------------------------------------------===//

Builder test::makeAccumulator() {
  Builder b(2);
  int32_t column = b.addColumn({0, 4});
  uint32_t whole = b.addType({2, 8}), local = b.addType({2, 4});
  uint32_t x = b.addBuffer(BufferKind::Input, 32), state = b.addBuffer(BufferKind::State, 32);
  uint32_t y = b.addBuffer(BufferKind::Output, 32);
  uint32_t add = b.addKernel("test_accumulate", {local, local, local}, 2, 1);
  b.program.kernels[add].parameters[1].access = Access::ReadWrite;
  View inX{x, local, {}}, inState{state, local, {}}, inY{y, local, {}};
  b.launch(add, {inX, inState, inY}, {8});
  b.addInput("x", whole, inX, {{}, {0, column}});
  b.addInput("past", whole, inState, {{}, {0, column}});
  b.addOutput("total", whole, inState, {{}, {0, column}});
  b.addOutput("y", whole, inY, {{}, {0, column}});
  b.variant().states = {{1, 0}};
  return b;
}

Builder test::makeVariants() {
  Builder b;
  uint32_t x = b.addBuffer(BufferKind::Input, 64), y = b.addBuffer(BufferKind::Output, 64);
  b.program.variants.clear();
  for (int64_t rows : {1, 2}) {
    uint32_t type = b.addType({rows, 8});
    uint32_t kernel = b.addKernel("test_affine", {type, type}, 1, 2);
    View inX{x, type, {}}, inY{y, type, {}};
    // The builder adds to the first variant: this one is it, while it is made.
    Variant variant;
    variant.dims = {{"batch", rows}};
    variant.lists.emplace_back();
    b.program.variants.insert(b.program.variants.begin(), variant);
    b.launch(kernel, {inX, inY}, {rows * 8, rows});
    b.addInput("x", type, inX);
    b.addOutput("y", type, inY);
  }
  return b;
}

Builder test::makeEntries() {
  Builder b;
  uint32_t type = b.addType({1}), kernel = b.addKernel("test_accumulate", {type, type, type}, 2, 1);
  b.program.kernels[kernel].parameters[1].access = Access::ReadWrite;
  View x{b.addBuffer(BufferKind::Input, 4), type, {}}, w{b.addBuffer(BufferKind::State, 4), type, {}},
      loss{b.addBuffer(BufferKind::Output, 4), type, {}};
  b.launch(kernel, {x, w, loss}, {1});
  b.addInput("x", type, x).role = StepRole::Batch;
  b.addInput("w", type, w).role = StepRole::Parameter;
  b.addOutput("loss", type, loss);
  Variant eval = b.variant();
  b.addOutput("next(w)", type, w);
  b.variant().states = {{1, 1}};
  b.variant().entry = "step";
  eval.states = {{1, -1}};
  eval.entry = "eval";
  eval.lists[0].commands = {{0, -1, Copy{w, loss}}};
  b.program.variants.push_back(eval);
  b.program.version = kBeginsVersion;
  return b;
}

Builder test::makeNap() {
  Builder b;
  uint32_t type = b.addType({1}), kernel = b.addKernel("test_sleep", {type}, 1, 1);
  View y{b.addBuffer(BufferKind::Output, 4), type, {}};
  b.launch(kernel, {y}, {20000});
  b.addOutput("y", type, y);
  return b;
}

Builder test::makeLarge() {
  Builder b;
  uint32_t type = b.addType({64, 1024}), kernel = b.addKernel("test_affine", {type, type}, 1, 2);
  View x{b.addBuffer(BufferKind::Input, 1 << 18), type, {}}, y{b.addBuffer(BufferKind::Output, 1 << 18), type, {}};
  b.launch(kernel, {x, y}, {1 << 16, 7});
  b.addInput("x", type, x);
  b.addOutput("y", type, y);
  return b;
}

Builder test::makeStages() {
  Builder b(4);
  b.program.roles = {{"first", {0, 1}, {}, {}}, {"second", {2, 3}, {}, {}}};
  b.variant().lists.resize(2);
  int32_t column = b.addColumn({0, 4, 0, 0}), row = b.addColumn({0, 0, 0, 2});
  uint32_t whole = b.addType({4, 8}), columns = b.addType({4, 4}), rows = b.addType({2, 8});
  // Rows 0-1 of both go to rank 2, rows 2-3 to rank 3; each puts the columns side by side.
  b.program.pieces = {
      {2, {{0, 2}, {1, 2}, {0, 3}, {1, 3}}, {2, 4, 0, 0, 0, 0, 2, 4, 0, 0, 0, 4, 2, 4, 2, 0, 0, 0, 2, 4, 2, 0, 0, 4}}};
  uint32_t x = b.addBuffer(BufferKind::Input, 64, 0), sent = b.addBuffer(BufferKind::Communication, 64, 0);
  uint32_t got = b.addBuffer(BufferKind::Communication, 64, 1), y = b.addBuffer(BufferKind::Output, 64, 1);
  uint32_t first = b.addKernel("test_affine", {columns, columns}, 1, 2),
           second = b.addKernel("test_affine", {rows, rows}, 1, 2);
  b.launch(first, {{x, columns, {}}, {sent, columns, {}}}, {16, 1}, b.addNode("/first"), 0);
  b.add(Exchange{0, View{sent, columns, {}}, std::nullopt}, 0, -1, 0);
  b.add(Exchange{0, std::nullopt, View{got, rows, {}}}, 0, -1, 1);
  b.launch(second, {{got, rows, {}}, {y, rows, {}}}, {16, 2}, b.addNode("/second"), 1);
  b.addInput("x", whole, {x, columns, {}}, {{}, {0, column}});
  Tensor &output = b.addOutput("y", whole, {y, rows, {}}, {{0, row}, {}});
  output.places[0].role = 1;
  return b;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

Builder test::makeFault(const char *entry, int64_t what) {
  Builder b(2);
  int32_t column = b.addColumn({-1, what});
  b.addGroup({0, 1}, 2);
  uint32_t type = b.addType({1}), both = b.addType({2});
  uint32_t x = b.addBuffer(BufferKind::Input, 4), y = b.addBuffer(BufferKind::Output, 4);
  uint32_t arena = b.addBuffer(BufferKind::Communication, 4);
  int32_t part = b.addColumn({0, 1});
  uint32_t bad = b.addKernel(entry, {type}, 1, 1);
  View term{arena, type, {}}, sum{y, type, {}};
  b.add(cleave::program::Launch{bad, {term}, {{0, column}}}, 0, b.addNode("/bad"));
  b.add(Collective{CollectiveKind::AllReduce, Reduction::Sum, 0, {term}, {sum}, {}, {}}, 0, b.addNode("/sum"));
  b.addInput("x", both, {x, type, {}}, {{0, part}});
  b.addOutput("y", type, sum);
  return b;
}

std::vector<std::pair<std::string, std::string>> test::makeRunnableFiles() {
  std::vector<std::pair<std::string, std::string>> files = {{"chain.cleave", makeChain().write()},
                                                            {"tensor-parallel.cleave", makeTensorParallel().write()},
                                                            {"accumulator.cleave", makeAccumulator().write()},
                                                            {"variants.cleave", makeVariants().write()},
                                                            {"entries.cleave", makeEntries().write()},
                                                            {"large.cleave", makeLarge().write()},
                                                            {"nap.cleave", makeNap().write()},
                                                            {"stages.cleave", makeStages().write()},
                                                            {"segv.cleave", makeFault("test_crash", 0).write()},
                                                            {"fpe.cleave", makeFault("test_crash", 1).write()},
                                                            {"ill.cleave", makeFault("test_crash", 2).write()},
                                                            {"abort.cleave", makeFault("test_crash", 4).write()},
                                                            {"nan.cleave", makeFault("test_nan", 1).write()},
                                                            {"sleep.cleave", makeFault("test_sleep", 20000).write()},
                                                            {"endless.cleave", makeFault("test_endless", 1).write()},
                                                            {"late.cleave", makeFault("test_sleep", 300).write()},
                                                            {"weights.bin", makeWeightsFile()}};
  // One list more than the same of another program: ranks that have different ones.
  Builder other = makeTensorParallel();
  other.program.metadata.model = "another";
  files.push_back({"other.cleave", other.write()});
  Builder foreign = makeChain();
  foreign.program.targets[0].features = {"sse2", "quantum"};
  files.push_back({"foreign.cleave", foreign.write()});
  Builder gpu = makeChain();
  gpu.program.targets = {{cleave::program::Device::Cuda, "sm_90", {}}};
  gpu.program.modules[0].objects[0].format = Format::Ptx;
  files.push_back({"gpu.cleave", gpu.write()});
  Builder huge = makeChain();
  huge.addBuffer(BufferKind::Activations, uint64_t(1) << 46);
  files.push_back({"huge.cleave", huge.write()});
  return files;
}
