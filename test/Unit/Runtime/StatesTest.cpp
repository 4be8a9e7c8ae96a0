//===- StatesTest.cpp - states that begin as weights, and checkpoints -----===//
//
// A step adds x to a weight and to what an optimizer keeps of it, on meshes that cut the two in different ways. What is written on one
// mesh is read on each other one; elements are whole numbers, so that nothing is rounded.
//
//===----------------------------------------------------------------------===//
#include "Conformance.h"
#include "Programs.h"
#include "cleave/Runtime/Checkpoint.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <unistd.h>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

namespace {

enum class Cut { None, Rows, Columns };

/// How a program holds "w" and "m(w)", f32[8, 4].
struct Held {
  uint32_t ranks;
  Cut ofWeight, ofMoment;
};
constexpr Held kLayouts[] = {{1, Cut::None, Cut::None}, {2, Cut::Rows, Cut::Columns}, {2, Cut::None, Cut::Rows},
                             {3, Cut::Rows, Cut::Rows}, {4, Cut::Columns, Cut::Rows}, {4, Cut::None, Cut::None}};

std::vector<float> makeWeight() {
  std::vector<float> w(32);
  std::iota(w.begin(), w.end(), 100.0F);
  return w;
}

std::string getBytes(const std::vector<float> &elements) {
  return {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(float)};
}

/// Puts a program together; what it refers to must stay.
class Step {
public:
  explicit Step(uint32_t ranks) : b(ranks), ranks(ranks) {}

  /// `name` += x, and an output of it that is no state, of which all copies are seen, one below the other. Cut in rows that may be uneven.
  Tensor &add(const std::string &name, StepRole role, Cut cut, Element element = Element::F32) {
    int64_t rows = cut == Cut::Rows ? (8 + ranks - 1) / ranks : 8, columns = cut == Cut::Columns ? 4 / ranks : 4;
    std::vector<int64_t> starts, present;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      starts.push_back(std::min<int64_t>(rank * (cut == Cut::Rows ? rows : columns), cut == Cut::Rows ? 8 : 4));
      present.push_back(std::min<int64_t>(rows, 8 - starts.back()));
    }
    uint32_t local = b.addType({rows, columns}, element), whole = b.addType({8, 4}, element);
    uint64_t bytes = uint64_t(rows * columns * (element == Element::F64 ? 8 : 4));
    View state{b.addBuffer(BufferKind::State, bytes), local, {}},
        seen{b.addBuffer(BufferKind::Output, bytes), local, {}};
    Number start = cut == Cut::None ? Number{} : Number{0, b.addColumn(starts)};
    std::vector<Number> at{cut == Cut::Rows ? start : Number{}, cut == Cut::Columns ? start : Number{}}, held;
    if (cut == Cut::Rows && 8 % ranks)
      held = {{0, b.addColumn(present)}, {4, -1}};
    if (element == Element::F32) {
      View x{b.addBuffer(BufferKind::Input, bytes), local, {}};
      uint32_t kernel = b.addKernel("test_accumulate", {local, local, local}, 2, 1);
      b.program.kernels[kernel].parameters[1].access = Access::ReadWrite;
      b.launch(kernel, {x, state, seen}, {rows * columns});
      b.addInput(keep("x of " + name), whole, x, at).places[0].present = held;
    } else {
      b.add(Copy{state, seen});
    }
    b.addInput(keep(name), whole, state, at).places[0].present = held;
    uint32_t input = uint32_t(b.variant().inputs.size() - 1), output = uint32_t(b.variant().outputs.size());
    b.addOutput(keep("next(" + name + ")"), whole, state, at).places[0].present = held;
    if (cut == Cut::None) {
      std::vector<int64_t> copies;
      for (int64_t rank = 0; rank < ranks; ++rank)
        copies.push_back(8 * rank);
      b.addOutput(keep("seen " + name), b.addType({8 * ranks, 4}, element), seen, {{0, b.addColumn(copies)}, {}});
    } else {
      b.addOutput(keep("seen " + name), whole, seen, at).places[0].present = held;
    }
    b.variant().states.push_back({input, int32_t(output)});
    lastLoad = {0, at, {rows, columns}, {}, {state.buffer, local, {}}, held};
    lastLoad.target = state;
    Tensor &tensor = b.variant().inputs[input];
    tensor.role = role;
    return tensor;
  }

  /// The state that was added last begins as the weight.
  void begin() {
    lastLoad.weight = uint32_t(b.program.weights.size() - 1);
    b.role().loads.push_back(lastLoad);
    b.program.version = kBeginsVersion;
  }

  void addWeight(std::string_view bytes) {
    Weight weight;
    weight.name = "w";
    weight.type = b.addType({8, 4});
    weight.embedded = bytes;
    weight.length = bytes.size();
    b.program.weights.push_back(weight);
  }

  Builder b;

private:
  const char *keep(const std::string &name) { return names.emplace_back(std::make_unique<std::string>(name))->c_str(); }

  uint32_t ranks;
  Load lastLoad;
  std::vector<std::unique_ptr<std::string>> names;
};

/// The step of a layout, whose weight begins as `bytes`.
std::unique_ptr<Executor> openStep(const Held &layout, const std::string &bytes, bool fromFile = false) {
  Step step(layout.ranks);
  step.addWeight(bytes);
  step.add("w", StepRole::Parameter, layout.ofWeight);
  step.begin();
  step.add("m(w)", StepRole::Optimizer, layout.ofMoment);
  if (!fromFile)
    return openProgram(step.b);
  Folder folder;
  folder.write("step.cleave", step.b.write());
  std::unique_ptr<Executor> executor;
  EXPECT_EQ(getMessage(Executor::open(folder.path + "/step.cleave", {}, executor)), "");
  return executor;
}

/// The first copy of a state. All are one.
std::vector<float> getState(const Value &seen) {
  std::vector<float> all = getFloats(seen), first(all.begin(), all.begin() + 32);
  for (size_t i = 32; i < all.size(); ++i)
    EXPECT_EQ(all[i], first[i % 32]) << "a copy differs";
  return first;
}

/// A call; what the two are then.
std::pair<std::vector<float>, std::vector<float>> run(Executor &executor, const std::vector<float> &x) {
  std::vector<Value> outputs;
  EXPECT_EQ(getMessage(executor.run({makeArgument("x of w", {8, 4}, x), makeArgument("x of m(w)", {8, 4}, x)}, outputs,
                                    {"seen w", "seen m(w)"})),
            "");
  return {getState(outputs[0]), getState(outputs[1])};
}

std::vector<float> add(std::vector<float> a, const std::vector<float> &b, float times = 1) {
  for (size_t i = 0; i < a.size(); ++i)
    a[i] += times * b[i];
  return a;
}

} // namespace

// What is in the program, and what is in its file, is there before the first call, and again when states are reset.
TEST(States, BeginAsWeights) {
  std::vector<float> x = makeFloats(32, 1), w = makeWeight(), none(32, 0.0F);
  for (const Held &layout : kLayouts)
    for (bool fromFile : {false, true}) {
      auto bytes = std::make_unique<std::string>(getBytes(w));
      auto executor = openStep(layout, *bytes, fromFile);
      ASSERT_TRUE(executor);
      // Whoever opened a program in memory may throw it away.
      std::fill(bytes->begin(), bytes->end(), 'x');
      bytes.reset();
      EXPECT_EQ(run(*executor, x), std::pair(add(w, x), x));
      EXPECT_EQ(run(*executor, x), std::pair(add(w, x, 2), add(x, x)));
      ASSERT_EQ(getMessage(executor->resetStates()), "");
      EXPECT_EQ(run(*executor, x), std::pair(add(w, x), x));
    }
}

// Progress is told while a program is opened; who listened may be gone when states are read again.
TEST(States, ResetsAreNotTold) {
  std::string bytes = getBytes(makeWeight());
  Step step(2);
  step.addWeight(bytes);
  step.add("w", StepRole::Parameter, Cut::Rows);
  step.begin();
  uint64_t told = 0;
  ExecutorOptions options;
  options.onLoad = [&](uint64_t loaded, uint64_t) { told = loaded; };
  auto executor = openProgram(step.b, options);
  ASSERT_TRUE(executor);
  EXPECT_EQ(told, 128u);
  told = 0;
  ASSERT_EQ(getMessage(executor->resetStates()), "");
  EXPECT_EQ(told, 0u);
}

TEST(States, OfOneMeshAreThoseOfAnyOther) {
  std::vector<float> x = makeFloats(32, 2), y = makeFloats(32, 3), w = makeWeight();
  std::string bytes = getBytes(w);
  Folder folder;
  std::string path = folder.path + "/s.safetensors", first;
  for (const Held &from : kLayouts) {
    auto writer = openStep(from, bytes);
    ASSERT_TRUE(writer);
    run(*writer, x);
    ASSERT_EQ(getMessage(writer->saveStates(path, {{"step", "1"}, {"who \"\\\n", "\xc3\xa9"}})), "");
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    first = first.empty() ? text : first;
    EXPECT_EQ(text, first) << "the file says how it was cut";
    for (const Held &to : kLayouts) {
      auto reader = openStep(to, bytes);
      ASSERT_TRUE(reader);
      run(*reader, y);
      std::map<std::string, std::string> metadata;
      ASSERT_EQ(getMessage(reader->loadStates(path, false, &metadata)), "");
      EXPECT_EQ(metadata["step"], "1");
      EXPECT_EQ(metadata["who \"\\\n"], "\xc3\xa9");
      EXPECT_EQ(run(*reader, y), std::pair(add(add(w, x), y), add(x, y)));
      // Weights alone: the moment begins anew.
      ASSERT_EQ(getMessage(reader->loadStates(path, true)), "");
      EXPECT_EQ(run(*reader, y), std::pair(add(add(w, x), y), y));
    }
  }
}

// Parts of a fused weight are written as that, at their places, and a master as the weight that it is of.
TEST(States, AreCalledAsTheirOriginSays) {
  std::vector<float> x = makeFloats(32, 4), y = makeFloats(32, 5);
  Folder folder;
  std::string path = folder.path + "/s.safetensors";
  auto open = [](bool isAll, Element element) {
    auto step = std::make_unique<Step>(2);
    for (const char *name : {"k", "q"}) {
      bool isFirst = name[0] == 'q';
      if (!isFirst || isAll)
        step->add(name, StepRole::Parameter, Cut::Rows).origin = {"qkv", {0, isFirst ? 0 : 4}, {8, 8}};
    }
    step->add("v", StepRole::Parameter, Cut::Columns).origin = {"w", {}, {}};
    step->add("master(v)", StepRole::Optimizer, Cut::Rows, element).origin = {"w", {}, {}};
    return step;
  };
  auto step = open(true, Element::F32);
  auto executor = openProgram(step->b);
  ASSERT_TRUE(executor);
  std::vector<Value> outputs;
  ASSERT_EQ(getMessage(executor->run({makeArgument("x of q", {8, 4}, x), makeArgument("x of k", {8, 4}, y),
                                      makeArgument("x of v", {8, 4}, x), makeArgument("x of master(v)", {8, 4}, x)},
                                     outputs)),
            "");
  ASSERT_EQ(getMessage(executor->saveStates(path)), "");
  Result<cleave::arrays::Safetensors> contents = readCheckpoint(path);
  ASSERT_TRUE(contents);
  ASSERT_EQ(contents->tensors.size(), 2u);
  ASSERT_TRUE(contents->find("qkv"));
  EXPECT_EQ(contents->find("qkv")->shape, (Shape{8, 8}));
  EXPECT_EQ(contents->find("w")->shape, (Shape{8, 4}));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (size_t i = 0; i < 64; ++i) {
    float got = 0;
    std::memcpy(&got, text.data() + contents->find("qkv")->offset + 4 * i, 4);
    EXPECT_EQ(got, (i % 8 < 4 ? x : y)[i / 8 * 4 + i % 4]);
  }
  // Of a weight in two, one of which is frozen, the other one is found at its place; what is of another type is cast.
  auto other = open(false, Element::F64);
  auto reader = openProgram(other->b);
  ASSERT_TRUE(reader);
  ASSERT_EQ(getMessage(reader->loadStates(path)), "");
  std::vector<float> none(32, 0.0F);
  ASSERT_EQ(getMessage(reader->run({makeArgument("x of k", {8, 4}, none), makeArgument("x of v", {8, 4}, none)},
                                   outputs, {"seen k", "seen v", "seen master(v)"})),
            "");
  EXPECT_EQ(getFloats(outputs[0]), y);
  EXPECT_EQ(getFloats(outputs[1]), x);
  for (size_t i = 0; i < 32; ++i) {
    double got = 0;
    std::memcpy(&got, outputs[2].data.data() + 8 * i, 8);
    EXPECT_EQ(got, x[i]);
  }
  // It alone is not all of the weight, and is written under its own name, from which it is read, too.
  ASSERT_EQ(getMessage(reader->saveStates(path)), "");
  contents = readCheckpoint(path);
  ASSERT_TRUE(contents);
  EXPECT_TRUE(contents->find("k") && !contents->find("qkv"));
  EXPECT_EQ(contents->find("w")->element, Element::F64);
  EXPECT_EQ(getMessage(reader->loadStates(path)), "");
}

// Another entry reads what the first one has left, and leaves it as it is.
TEST(States, AreThoseOfAllEntries) {
  for (const Held &layout : kLayouts) {
    Step step(layout.ranks);
    std::string bytes = getBytes(makeWeight());
    step.addWeight(bytes);
    step.add("w", StepRole::Parameter, layout.ofWeight);
    step.begin();
    Variant eval = step.b.variant();
    step.b.variant().entry = "step";
    eval.entry = "eval";
    eval.states[0].output = -1;
    // w as it is, and nothing that changes it.
    View seen = eval.outputs[1].places[0].view, state = eval.inputs[1].places[0].view;
    eval.outputs = {eval.outputs[1]};
    eval.lists[0].commands = {{0, -1, Copy{state, seen}}};
    step.b.program.variants.push_back(eval);
    auto executor = openProgram(step.b);
    ASSERT_TRUE(executor);
    std::vector<float> x = makeFloats(32, 1), w = makeWeight();
    std::vector<Value> outputs;
    for (float times : {0.0F, 1.0F, 2.0F}) {
      for (int again = 0; again < 2; ++again) {
        ASSERT_EQ(getMessage(executor->run({makeArgument("x of w", {8, 4}, x)}, outputs, {}, "eval")), "");
        ASSERT_EQ(outputs.size(), 1u);
        EXPECT_EQ(getState(outputs[0]), add(w, x, times));
      }
      ASSERT_EQ(getMessage(executor->run({makeArgument("x of w", {8, 4}, x)}, outputs, {"seen w"})), "");
      EXPECT_EQ(getState(outputs[0]), add(w, x, times + 1));
    }
    EXPECT_EQ(getMessage(executor->run({makeArgument("x of w", {8, 4}, x)}, outputs, {}, "test")),
              "the program has no entry \"test\"");
  }
}

TEST(States, FilesThatAreOfAnotherModelAreRefused) {
  Folder folder;
  std::string path = folder.path + "/s.safetensors", bytes = getBytes(makeWeight());
  auto write = [&](const std::string &header, size_t data) {
    uint64_t length = header.size();
    folder.write("s.safetensors",
                 std::string(reinterpret_cast<const char *>(&length), 8) + header + std::string(data, '\0'));
  };
  auto executor = openStep(kLayouts[1], bytes);
  ASSERT_TRUE(executor);
  auto load = [&](bool onlyParameters = false) {
    std::string message = getMessage(executor->loadStates(path, onlyParameters));
    return message.substr(0, path.size() + 2) == path + ": " ? message.substr(path.size() + 2) : message;
  };
  EXPECT_EQ(load(), "cannot read " + path + ": No such file or directory");
  std::string w = R"("w":{"dtype":"F32","shape":[8,4],"data_offsets":[0,128]})";
  write("{" + w + "}", 128);
  EXPECT_EQ(load(), "has no \"m(w)\": --weights-from begins with new states");
  EXPECT_EQ(load(true), "");
  write(R"({"w":{"dtype":"F32","shape":[4,8],"data_offsets":[0,128]}})", 128);
  EXPECT_EQ(load(true), "\"w\" is f32[4, 8], the model has f32[8, 4]");
  write(R"({"w":{"dtype":"I32","shape":[8,4],"data_offsets":[0,128]}})", 128);
  EXPECT_EQ(load(true), "\"w\" is i32[8, 4], the model has f32[8, 4]");
  write(R"({"v":{"dtype":"F32","shape":[8,4],"data_offsets":[0,128]}})", 128);
  EXPECT_EQ(load(true), "has no \"w\"");
  // What the executor holds is what it held.
  EXPECT_EQ(run(*executor, std::vector<float>(32, 0.0F)).first, std::vector<float>(32, 0.0F));
}

// No header makes the reader take what is not there, or crash: bytes of one are changed one by one.
TEST(States, HeadersOfStrangersAreRefused) {
  auto read = [](std::string_view text, size_t data = 128) {
    uint64_t length = text.size();
    std::string file =
        std::string(reinterpret_cast<const char *>(&length), 8) + std::string(text) + std::string(data, ' ');
    return cleave::arrays::readSafetensors(
        [&](uint64_t offset, char *to, size_t bytes) -> cleave::program::Status {
          EXPECT_LE(offset + bytes, file.size());
          std::memcpy(to, file.data() + offset, bytes);
          return kGood;
        },
        file.size());
  };
  const std::string good =
      R"({"__metadata__":{"a":"b\u00e9\ud83d\ude00"},"w":{"dtype":"F32","shape":[8,4],"data_offsets":[0,128]}} )";
  ASSERT_TRUE(read(good));
  EXPECT_EQ(read(good)->metadata.at("a"), "b\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(read(good)->find("w")->offset, 8 + good.size());
  for (
      auto [text, why] : std::initializer_list<std::pair<const char *, const char *>>{
          {"", "is not a safetensors file: what tells what is in it is damaged"},
          {"[]", "is not a safetensors file: what tells what is in it is damaged"},
          {R"({"w":{"dtype":"F32","shape":[8,4],"data_offsets":[0,132]}})", "tensor \"w\" does not lie in the file"},
          {R"({"w":{"dtype":"F32","shape":[8,4],"data_offsets":[64,0]}})", "tensor \"w\" does not lie in the file"},
          {R"({"w":{"dtype":"F32","shape":[8,4],"data_offsets":[0]}})", "tensor \"w\" does not lie in the file"},
          {R"({"w":{"dtype":"F32","shape":[8,3],"data_offsets":[0,128]}})",
           "tensor \"w\" has 128 bytes, its shape asks for 96"},
          {R"({"w":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,128]}})",
           "tensor \"w\" does not lie in the file"},
          {R"({"w":{"dtype":"F32","shape":[461168601842738790,461168601842738790],"data_offsets":[0,128]}})",
           "tensor \"w\" has more elements than there are bytes"},
          {R"({"w":{"dtype":"F8_E4M3","shape":[128],"data_offsets":[0,128]}})",
           "tensor \"w\" has elements of type \"F8_E4M3\", which programs do not have"},
          {R"({"w":{"dtype":"I8","shape":[8],"data_offsets":[0,8]},"w":{"dtype":"I8","shape":[8],"data_offsets":[0,8]}})",
           "tensor \"w\" is there twice"}}) {
    auto contents = read(text);
    EXPECT_EQ(contents ? "" : contents.getError().message, why) << text;
  }
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (char to : {'"', '{', '}', '9', '\\', ',', '\0'}) {
      std::string text = good;
      text[at] = to;
      refused += !read(text);
      refused += !read(text.substr(0, at));
    }
  EXPECT_GT(refused, 12 * good.size());
  EXPECT_FALSE(
      cleave::arrays::readSafetensors([](uint64_t, char *, size_t) -> cleave::program::Status { return kGood; }, 7));
}

// A file that cannot be written leaves the older one, and the states, as they are.
TEST(States, FilesAppearWholeOrNotAtAll) {
  Folder folder;
  std::string bytes = getBytes(makeWeight());
  auto executor = openStep(kLayouts[1], bytes);
  ASSERT_TRUE(executor);
  EXPECT_EQ(getMessage(executor->saveStates(folder.path + "/none/s.safetensors")),
            "cannot write " + folder.path + "/none/s.safetensors: No such file or directory");
  std::vector<float> x = makeFloats(32, 6);
  EXPECT_EQ(run(*executor, x).second, x);
  EXPECT_EQ(getMessage(executor->saveStates(folder.path + "/s.safetensors")), "");
}

// What a partial sum's ranks hold is no value of it.
TEST(States, StatesInAddendsAreNotWritten) {
  Folder folder;
  Step step(2);
  step.add("w", StepRole::Parameter, Cut::None);
  Number term{0, step.b.addColumn({0, 1})};
  for (Tensor *tensor : {&step.b.variant().inputs.back(), &step.b.variant().outputs[0]}) {
    tensor->reduction = Reduction::Sum;
    tensor->terms = 2;
    tensor->places[0].term = term;
  }
  auto executor = openProgram(step.b);
  ASSERT_TRUE(executor);
  EXPECT_EQ(getMessage(executor->saveStates(folder.path + "/s.safetensors")),
            "state \"w\" is held in 2 addends, which no file takes");
}
