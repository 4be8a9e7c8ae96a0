//===- LoadTest.cpp - weights from files into memory ----------------------===//
//
// Programs load random boxes of random weights in random layouts, and hand them out again as they lie in memory. What must
// be there is worked out from the place of each element in its panel.
//
//===----------------------------------------------------------------------===//
#include "Oracle.h"
#include "RunnableSamples.h"
#include "Weights.h"
#include "cleave/Program/Digest.h"
#include "cleave/Program/Operands.h"
#include "cleave/Runtime/Files.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <numeric>
#include <random>
#include <sys/resource.h>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

namespace {

/// A weight, and a load of it.
struct Case {
  Shape whole, starts, shape;
  Shape present; ///< what there is of the slice, which may end behind the weight; none: all of it
  Element from = Element::F32, to = Element::F32;
  Layout layout;
  bool isSplat = false, isInFile = false;
  std::string bytes;
};

class Draw {
public:
  explicit Draw(unsigned seed) : random(seed) {}
  int64_t upTo(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); }

  Case draw() {
    Case c;
    int64_t dims = upTo(4);
    bool isPacked = dims >= 2 && upTo(2) > 0;
    for (int64_t dim = 0; dim < dims; ++dim) {
      c.whole.push_back(1 + upTo(isPacked ? 20 : 6));
      c.shape.push_back(upTo(9) ? 1 + upTo(c.whole.back() - 1) : c.whole.back());
      c.starts.push_back(upTo(c.whole.back() - c.shape.back()));
    }
    if (upTo(2) == 0)
      for (size_t dim = 0; dim < size_t(dims); ++dim) {
        c.starts[dim] = upTo(c.whole[dim]);
        c.present.push_back(upTo(std::min(c.shape[dim], c.whole[dim] - c.starts[dim])));
      }
    constexpr Element floats[] = {Element::F16, Element::BF16, Element::F32, Element::F64};
    c.from = c.to = Element(upTo(int64_t(Element::UI64)));
    if (upTo(1)) {
      c.from = floats[upTo(3)];
      c.to = floats[upTo(3)];
    }
    if (upTo(1) && dims) {
      c.layout.order.resize(size_t(dims));
      std::iota(c.layout.order.begin(), c.layout.order.end(), 0);
      std::shuffle(c.layout.order.begin(), c.layout.order.end(), random);
    }
    if (isPacked) {
      c.layout.width = upTo(1) ? 16 : 1 + uint32_t(upTo(7));
      c.layout.interleave = 1 + uint32_t(upTo(3));
      c.layout.batch = uint32_t(upTo(dims - 2));
    }
    c.isSplat = upTo(7) == 0;
    c.isInFile = upTo(1);
    int64_t count = 1;
    for (int64_t size : c.whole)
      count *= c.isSplat ? 1 : size;
    for (int64_t i = 0; i < count; ++i) {
      char element[8];
      writeElement(element, c.from, makeElement(c.from, Reduction::Sum, random()));
      c.bytes.append(element, getElementBytes(c.from));
    }
    return c;
  }

private:
  std::mt19937_64 random;
};

} // namespace

/// Bits of a float as those of another type, by way of long double.
static uint64_t cast(uint64_t bits, Element from, Element to) {
  if (from == to)
    return bits;
  long double value;
  float single;
  double real;
  std::memcpy(&single, &bits, sizeof(single));
  std::memcpy(&real, &bits, sizeof(real));
  value = from == Element::F32 ? single : from == Element::F64 ? real : decodeNarrow(from, bits);
  bits = 0;
  single = float(value);
  real = double(value);
  if (to == Element::F32)
    std::memcpy(&bits, &single, sizeof(single));
  else if (to == Element::F64)
    std::memcpy(&bits, &real, sizeof(real));
  else
    bits = encodeNarrow(to, single);
  return bits;
}

/// The element at `index` of the slice in its layout: bits, or zero beside the slice.
static uint64_t getExpected(const Case &c, Shape index) {
  size_t dims = c.shape.size();
  Shape ordered = index;
  if (c.layout.width) {
    // [b.., n / width, k.., k last / interleave, width, interleave]
    uint32_t batch = c.layout.batch;
    ordered.assign(index.begin(), index.begin() + batch);
    ordered.insert(ordered.end(), index.begin() + batch + 1, index.begin() + int64_t(dims));
    ordered.back() = ordered.back() * c.layout.interleave + index[dims + 1];
    ordered.push_back(index[batch] * c.layout.width + index[dims]);
  }
  Shape own(dims);
  for (size_t place = 0; place < dims; ++place)
    own[c.layout.order.empty() ? place : c.layout.order[place]] = ordered[place];
  uint64_t element = 0;
  for (size_t dim = 0; dim < dims; ++dim) {
    if (own[dim] >= (c.present.empty() ? c.shape : c.present)[dim])
      return 0;
    element = element * uint64_t(c.whole[dim]) + uint64_t(c.starts[dim] + own[dim]);
  }
  uint64_t at = c.isSplat ? 0 : element * getElementBytes(c.from);
  return cast(readElement(c.bytes.data() + at, c.from), c.from, c.to);
}

/// A weight of these bytes, which stand in `file` or in the program.
static Weight makeWeight(const std::string &name, uint32_t type, std::string_view bytes, bool isInFile,
                         std::string &file) {
  Weight weight;
  weight.name = name;
  weight.type = type;
  if (!isInFile) {
    weight.embedded = bytes;
    return weight;
  }
  weight.file = 0;
  weight.offset = file.size();
  weight.length = bytes.size();
  weight.digest = digestSample(bytes.size(), [&](uint64_t offset, char *to, size_t count) {
    std::memcpy(to, bytes.data() + offset, count);
    return true;
  });
  file += bytes;
  return weight;
}

/// A weight in parts, one per entry of its first dim, by turns in the file and in the program.
static Weight addStack(Builder &b, const std::string &name, const Case &c, std::string &file) {
  Weight stack;
  stack.name = name;
  stack.type = b.addType(c.whole, c.from);
  uint32_t part = b.addType(Shape(c.whole.begin() + 1, c.whole.end()), c.from);
  uint64_t bytes = c.bytes.size() / uint64_t(c.whole[0]);
  for (int64_t i = 0; i < c.whole[0]; ++i) {
    std::string_view own = std::string_view(c.bytes).substr(uint64_t(i) * bytes, bytes);
    stack.parts.push_back(uint32_t(b.program.weights.size()));
    b.program.weights.push_back(makeWeight(name + "[" + std::to_string(i) + "]", part, own, i % 2 == 0, file));
  }
  b.program.version = kVersion;
  return stack;
}

/// Loads all cases in one program; returns how many elements were compared.
static uint64_t checkLoads(unsigned seed) {
  Draw draw(seed);
  std::vector<Case> cases;
  for (int i = 0; i < 12; ++i)
    cases.push_back(draw.draw());
  std::string file(7, 'x');
  Builder b;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case &c = cases[i];
    std::string name = "w" + std::to_string(i);
    bool isStack = c.whole.size() >= 2 && !c.isSplat && i % 3 == 0;
    Weight weight =
        isStack ? addStack(b, name, c, file) : makeWeight(name, b.addType(c.whole, c.from), c.bytes, c.isInFile, file);
    weight.splat = c.isSplat;
    uint32_t number = uint32_t(b.program.weights.size());
    b.program.weights.push_back(weight);
    uint32_t type = b.addType(*getLaidOutShape(c.shape, c.layout), c.to);
    uint64_t bytes = getBytes(b.program.types[type]);
    uint32_t to = b.addBuffer(BufferKind::Weights, bytes), out = b.addBuffer(BufferKind::Output, bytes);
    Load load{number, {}, c.shape, c.layout, {to, type, {}}};
    for (int64_t start : c.starts)
      load.starts.push_back({start, -1});
    for (int64_t present : c.present)
      load.present.push_back({present, -1});
    b.role().loads.push_back(load);
    b.add(Copy{{to, type, {}}, {out, type, {}}});
    b.addOutput(name.c_str(), type, {out, type, {}});
  }
  b.program.files = {{"some/folder/model.onnx", file.size()}};
  Folder folder;
  folder.write("model.onnx", file);
  ExecutorOptions options;
  options.weightsFolder = folder.path;
  auto executor = openProgram(b, options);
  std::vector<Value> outputs;
  if (!executor || executor->run({}, outputs))
    return 0;
  uint64_t compared = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Value &output = outputs[i];
    uint64_t size = getElementBytes(output.type);
    for (uint64_t at = 0; at < output.data.size() / size; ++at, ++compared) {
      Shape index(output.shape.size());
      uint64_t rest = at;
      for (size_t dim = index.size(); dim-- > 0; rest /= uint64_t(output.shape[dim]))
        index[dim] = int64_t(rest % uint64_t(output.shape[dim]));
      EXPECT_EQ(readElement(output.data.data() + at * size, output.type), getExpected(cases[i], index))
          << "seed " << seed << ", weight " << i << ", element " << at;
    }
  }
  return compared;
}

TEST(Loads, PutEachElementWhereItsLayoutSays) {
  uint64_t compared = 0;
  for (unsigned seed = 0; seed < 60; ++seed)
    compared += checkLoads(seed);
  std::printf("720 loads, %llu elements compared\n", (unsigned long long)compared);
  EXPECT_GT(compared, 100000u);
}

/// Longer than a window of the reader, in rows that are longer and rows that are shorter than one.
TEST(Loads, LargeWeightsAreReadInPieces) {
  for (Shape shape : {Shape{3, 400000}, Shape{1500, 700}}) {
    Builder b;
    std::vector<float> elements = makeFloats(size_t(shape[0] * shape[1]), 1);
    uint32_t whole = b.addType(shape), part = b.addType({shape[0], shape[1] - 1});
    uint64_t bytes = uint64_t(shape[0] * (shape[1] - 1)) * 4;
    std::string file(reinterpret_cast<const char *>(elements.data()), elements.size() * 4);
    b.program.files = {{"w.bin", file.size()}};
    std::string digest = digestSample(file.size(), [&](uint64_t offset, char *to, size_t count) {
      std::memcpy(to, file.data() + offset, count);
      return true;
    });
    b.program.weights = {{"w", whole, 0, 0, file.size(), digest, {}, false}};
    uint32_t to = b.addBuffer(BufferKind::Weights, bytes), out = b.addBuffer(BufferKind::Output, bytes);
    b.role().loads = {{0, {{}, {1, -1}}, {shape[0], shape[1] - 1}, {}, {to, part, {}}}};
    b.add(Copy{{to, part, {}}, {out, part, {}}});
    b.addOutput("w", part, {out, part, {}});
    Folder folder;
    folder.write("w.bin", file);
    ExecutorOptions options;
    options.weightsFolder = folder.path;
    auto executor = openProgram(b, options);
    ASSERT_TRUE(executor);
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({}, outputs)), "");
    std::vector<float> got = getFloats(outputs[0]);
    uint64_t wrong = 0;
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 1; j < shape[1]; ++j)
        wrong += got[size_t(i * (shape[1] - 1) + j - 1)] != elements[size_t(i * shape[1] + j)];
    EXPECT_EQ(wrong, 0u);
  }
}

/// A load by a thread that has read nothing before.
static cleave::program::Status read(const WeightFiles &files, const Load &load, std::vector<char> &target) {
  WeightFiles::Reader reader;
  return files.load(load, 0, target.data(), reader);
}

// Every byte that is read is held against its block's digest, and no other: a rank that has one column of a matrix, or rows in
// its middle, takes no harm from what is damaged elsewhere.
TEST(Loads, BlocksThatAreReadAreVerified) {
  constexpr int64_t rows = 4, columns = 300000; // 4.6 blocks, rows across their borders
  Builder b;
  std::vector<float> elements = makeFloats(rows * columns, 1);
  std::string file(reinterpret_cast<const char *>(elements.data()), elements.size() * 4);
  uint32_t whole = b.addType({rows, columns}), row = b.addType({1, columns}), end = b.addType({rows, 2});
  b.program.files = {{"w.bin", file.size() + 100}};
  Weight weight{"w", whole, 0, 100, file.size(), "", {}, false};
  weight.blocks = digestBlocks(file);
  ASSERT_EQ(weight.blocks.size(), 5u);
  b.program.weights = {weight};
  Load all{0, {{}, {}}, {rows, columns}, {}, {0, whole, {}}}, second{0, {{1, -1}, {}}, {1, columns}, {}, {0, row, {}}};
  Load corner{0, {{}, {columns - 2, -1}}, {rows, 2}, {}, {0, end, {}}};
  // In each block one byte, the first and the last of all among them; which of the loads see it, by their bytes.
  for (uint64_t at : {uint64_t{0}, uint64_t{1} << 20, uint64_t{2097151}, uint64_t{2097152}, uint64_t{3500000},
                      uint64_t(file.size()) - 1}) {
    std::string damaged = file;
    damaged[at] = char(damaged[at] ^ 64);
    Folder folder;
    folder.write("w.bin", std::string(100, 'x') + damaged);
    for (bool verifies : {true, false}) {
      WeightFiles files(b.program, folder.path, "", nullptr, verifies);
      b.program.weights[0].digest = digestSample(file.size(), [&](uint64_t offset, char *to, size_t count) {
        std::memcpy(to, damaged.data() + offset, count); // that it is another file is not what is tried here
        return true;
      });
      ASSERT_FALSE(files.check(b.program.weights[0]));
      std::vector<char> target(file.size());
      uint64_t block = at >> 20;
      EXPECT_EQ(bool(read(files, all, target)), verifies) << at;
      EXPECT_EQ(bool(read(files, second, target)), verifies && block >= 1 && block <= 2) << at;
      EXPECT_EQ(bool(read(files, corner, target)), verifies && block >= 1) << at;
    }
  }
}

// The message says which bytes, and both digests.
TEST(Loads, DamagedBlocksAreTold) {
  Builder b;
  std::vector<float> elements = makeFloats(600000, 1);
  std::string file(reinterpret_cast<const char *>(elements.data()), elements.size() * 4), damaged = file;
  damaged[1500000] = char(damaged[1500000] ^ 1);
  uint32_t type = b.addType({600000});
  b.program.files = {{"w.bin", file.size()}};
  Weight weight{"w", type, 0, 0, file.size(), "", {}, false};
  weight.blocks = digestBlocks(file);
  b.program.weights = {weight};
  Folder folder;
  folder.write("w.bin", damaged);
  WeightFiles files(b.program, folder.path, "");
  b.program.weights[0].digest = digestSample(file.size(), [&](uint64_t offset, char *to, size_t count) {
    std::memcpy(to, damaged.data() + offset, count);
    return true;
  });
  ASSERT_FALSE(files.check(b.program.weights[0]));
  std::vector<char> target(file.size());
  cleave::program::Status failed = read(files, {0, {{}}, {600000}, {}, {0, type, {}}}, target);
  ASSERT_TRUE(failed);
  EXPECT_THAT(
      failed->message,
      testing::MatchesRegex("weight .w. in .w.bin.: its bytes 1048576 to 2097151 have changed, or are damaged: their "
                            "digest is [0-9a-f]+, the program was compiled with [0-9a-f]+: compile it again"));
}

// A file that is cut while it is being read is an error that says what is gone.
TEST(Loads, FilesThatShrinkAreErrors) {
  Builder b;
  std::vector<float> elements = makeFloats(1000000, 1);
  std::string file(reinterpret_cast<const char *>(elements.data()), elements.size() * 4);
  uint32_t type = b.addType({1000000});
  b.program.files = {{"w.bin", file.size()}};
  std::string digest = digestSample(file.size(), [&](uint64_t offset, char *to, size_t count) {
    std::memcpy(to, file.data() + offset, count);
    return true;
  });
  b.program.weights = {{"w", type, 0, 0, file.size(), digest, {}, false}};
  Load load{0, {{}}, {1000000}, {}, {0, type, {}}};
  Folder folder;
  folder.write("w.bin", file);
  WeightFiles files(b.program, folder.path, "");
  ASSERT_FALSE(files.check(b.program.weights[0]));
  std::vector<char> target(file.size());
  EXPECT_FALSE(read(files, load, target));
  EXPECT_EQ(std::string(target.begin(), target.end()), file);
  std::filesystem::resize_file(folder.path + "/w.bin", 3000000);
  cleave::program::Status failed = read(files, load, target);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->message,
            "weight \"w\" in \"w.bin\": the file has become shorter, 145728 bytes are missing at 3000000");
}

/// Bytes of private memory that the process may write to.
static uint64_t getDataBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t kilobytes = 0;
  while (status >> word && word != "VmData:")
    continue;
  status >> kilobytes;
  return kilobytes << 10;
}

// A weight in the program's own file is in memory once, where it is wanted: half as much again is room enough to open it. It
// is read from the file, so that one that shrinks is an error.
TEST(Loads, WeightsInsideAreReadOnce) {
  constexpr int64_t rows = 4096, count = rows * rows;
  Builder b;
  std::vector<float> elements = makeFloats(count, 1);
  uint32_t whole = b.addType({rows, rows}), end = b.addType({4});
  b.program.weights = {{"w", whole, -1, 0, 0, "", {reinterpret_cast<const char *>(elements.data()), count * 4}, false}};
  uint32_t to = b.addBuffer(BufferKind::Weights, count * 4), out = b.addBuffer(BufferKind::Output, 16);
  uint32_t half = b.addType({rows / 2, rows});
  b.role().loads = {{0, {{}, {}}, {rows / 2, rows}, {}, {to, half, {}}},
                    {0, {{rows / 2, -1}, {}}, {rows / 2, rows}, {}, {to, half, {count * 2, -1}}}};
  b.add(Copy{{to, end, {count * 4 - 16, -1}}, {out, end, {}}});
  b.addOutput("w", end, {out, end, {}});
  Folder folder;
  folder.write("m.cleave", b.write());
  rlimit before;
  getrlimit(RLIMIT_DATA, &before);
  rlimit tight = {getDataBytes() + count * 6, before.rlim_max};
  setrlimit(RLIMIT_DATA, &tight);
  std::unique_ptr<Executor> executor;
  ExecutorOptions options;
  uint64_t loaded = 0;
  options.onLoad = [&](uint64_t now, uint64_t total) { loaded = now * (total == count * 4); };
  ExecutorStatus error = Executor::open(folder.path + "/m.cleave", options, executor);
  setrlimit(RLIMIT_DATA, &before);
  ASSERT_EQ(getMessage(error), "");
  EXPECT_EQ(loaded, count * 4);
  std::vector<Value> outputs;
  ASSERT_EQ(getMessage(executor->run({}, outputs)), "");
  EXPECT_EQ(getFloats(outputs[0]), std::vector<float>(elements.end() - 4, elements.end()));

  FileBytes file;
  ASSERT_FALSE(file.map(folder.path + "/m.cleave"));
  auto program = readProgram(file.get());
  ASSERT_TRUE(program);
  WeightFiles files(*program, folder.path, "", &file);
  std::filesystem::resize_file(folder.path + "/m.cleave", 3 << 20);
  std::vector<char> target(count * 4);
  cleave::program::Status failed = read(files, program->roles[0].loads[1], target);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->message, testing::StartsWith("weight \"w\": the file has become shorter, "));
}

// What two ranks load alike lies at one address; what they load apart, at two. A view over both keeps them apart.
TEST(Loads, EqualWeightsExistOnce) {
  for (bool spans : {false, true}) {
    Builder b(2);
    int32_t rank = b.addColumn({0, 1}), half = b.addColumn({0, 8});
    static const std::vector<float> elements = makeFloats(16, 1);
    uint32_t whole = b.addType({16}), part = b.addType({8}), address = b.addType({1}, Element::I64);
    uint32_t addresses = b.addType({2}, Element::I64), both = b.addType({32});
    b.program.weights = {{"w", whole, -1, 0, 0, "", {reinterpret_cast<const char *>(elements.data()), 64}, false}};
    uint32_t weights = b.addBuffer(BufferKind::Weights, 128);
    b.role().loads = {{0, {{}}, {16}, {}, {weights, whole, {}}},
                      {0, {{0, half}}, {8}, {}, {weights, part, {64, -1}}},
                      {0, {{8, -1}}, {8}, {}, {weights, part, {96, -1}}}};
    struct {
      const char *name;
      View view;
    } tensors[] = {{"whole", {weights, whole, {}}}, {"part", {weights, part, {64, -1}}}, {"all", {weights, both, {}}}};
    for (auto &tensor : tensors) {
      if (!spans && std::string(tensor.name) == "all")
        continue;
      uint32_t out = b.addBuffer(BufferKind::Output, 8);
      uint32_t kernel = b.addKernel("test_address", {tensor.view.type, address}, 1, 0);
      b.launch(kernel, {tensor.view, {out, address, {}}}, {});
      b.addOutput(tensor.name, addresses, {out, address, {}}, {{0, rank}});
    }
    auto executor = openProgram(b);
    ASSERT_TRUE(executor);
    std::vector<Value> outputs;
    ASSERT_EQ(getMessage(executor->run({}, outputs)), "");
    auto isOne = [&](size_t output) {
      return readElement(outputs[output].data.data(), Element::I64) ==
             readElement(outputs[output].data.data() + 8, Element::I64);
    };
    EXPECT_EQ(isOne(0), !spans);
    EXPECT_FALSE(isOne(1));
    if (spans)
      EXPECT_FALSE(isOne(2));
  }
}
