//===- Programs.cpp - programs that run, made by hand ---------------------===//
#include "Programs.h"
#include "Oracle.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <numeric>

using namespace cleave::program;
using namespace cleave::runtime;
using namespace cleave::runtime::test;

/// The shared object of Kernels.c.
static const std::string &getKernels() {
  static const std::string kernels = [] {
    std::ifstream file(CLEAVE_TEST_KERNELS, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return kernels;
}

Builder::Builder(uint32_t ranks) {
#if defined(__aarch64__)
  program.targets = {{cleave::program::Device::Host, "aarch64", {}}};
#else
  program.targets = {{cleave::program::Device::Host, "x86-64", {"sse2"}}};
#endif
  program.modules = {{"kernels", {{0, Format::SharedObject, getKernels()}}}};
  if (ranks > 1)
    program.axes = {{"x", ranks}};
  program.ranks = ranks;
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  program.roles = {{"all", all, {}, {}}};
  program.variants.emplace_back();
  variant().lists.emplace_back();
}

uint32_t Builder::addType(Shape shape, Element element, Shape strides) {
  program.types.push_back({element, std::move(shape), std::move(strides)});
  return uint32_t(program.types.size() - 1);
}

uint32_t Builder::addBuffer(BufferKind kind, uint64_t bytes, size_t index) {
  role(index).buffers.push_back({kind, Memory::Device, bytes, 64});
  return uint32_t(role(index).buffers.size() - 1);
}

uint32_t Builder::addKernel(const char *entry, std::vector<uint32_t> types, size_t writes, uint32_t scalars) {
  Kernel kernel;
  kernel.name = entry;
  kernel.entry = entry;
  for (size_t i = 0; i < types.size(); ++i)
    kernel.parameters.push_back({types[i], i + writes < types.size() ? Access::Read : Access::Write, -1, 4});
  kernel.scalars = scalars;
  program.kernels.push_back(std::move(kernel));
  return uint32_t(program.kernels.size() - 1);
}

int32_t Builder::addColumn(std::vector<int64_t> values) {
  std::vector<int64_t> table;
  size_t columns = program.columns.size();
  for (size_t rank = 0; rank < program.ranks; ++rank) {
    table.insert(table.end(), program.rankTable.begin() + rank * columns,
                 program.rankTable.begin() + (rank + 1) * columns);
    table.push_back(values[rank]);
  }
  program.rankTable = std::move(table);
  program.columns.push_back("column");
  return int32_t(columns);
}

void Builder::addGroup(std::vector<uint32_t> ranks, uint32_t size) {
  program.groups.push_back({"x", size, std::move(ranks)});
}

int32_t Builder::addNode(const char *name) {
  program.nodes.push_back(name);
  return int32_t(program.nodes.size() - 1);
}

void Builder::launch(uint32_t kernel, std::vector<View> operands, std::vector<int64_t> scalars, int32_t node,
                     size_t index) {
  cleave::program::Launch launch{kernel, std::move(operands), {}};
  for (int64_t scalar : scalars)
    launch.scalars.push_back({scalar, -1});
  add(std::move(launch), 0, node, index);
}

void Builder::add(Action action, uint32_t stream, int32_t node, size_t index) {
  List &list = variant().lists[index];
  list.streams = std::max(list.streams, stream + 1);
  list.commands.push_back({stream, node, std::move(action)});
}

static Tensor &addTensor(std::vector<Tensor> &tensors, const char *name, uint32_t type, View view,
                         std::vector<Number> starts, size_t dims) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = type;
  starts.resize(dims);
  tensor.places = {{0, view, std::move(starts), {}}};
  tensors.push_back(std::move(tensor));
  return tensors.back();
}

Tensor &Builder::addInput(const char *name, uint32_t type, View view, std::vector<Number> starts) {
  return addTensor(variant().inputs, name, type, view, std::move(starts), program.types[type].shape.size());
}

Tensor &Builder::addOutput(const char *name, uint32_t type, View view, std::vector<Number> starts) {
  return addTensor(variant().outputs, name, type, view, std::move(starts), program.types[type].shape.size());
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

std::string test::getMessage(const ExecutorStatus &status) { return status ? status->message : ""; }

std::unique_ptr<Executor> test::openProgram(const Builder &builder, const ExecutorOptions &options) {
  std::unique_ptr<Executor> executor;
  EXPECT_EQ(getMessage(Executor::open(builder.write(), "", options, executor)), "");
  return executor;
}

test::Folder::Folder() {
  char name[] = "/tmp/cleave-test-XXXXXX";
  path = mkdtemp(name);
}

test::Folder::~Folder() { std::filesystem::remove_all(path); }

void test::Folder::write(const std::string &name, const std::string &bytes) const {
  std::ofstream(path + "/" + name, std::ios::binary) << bytes;
}

Argument test::makeArgument(const char *name, Shape shape, const std::vector<float> &elements) {
  return {name, ElementType::F32, std::move(shape), elements.data()};
}

std::vector<float> test::getFloats(const Value &value) {
  std::vector<float> floats(value.data.size() / sizeof(float));
  if (!floats.empty())
    std::memcpy(floats.data(), value.data.data(), value.data.size());
  return floats;
}

std::vector<float> test::makeFloats(size_t count, uint64_t seed) {
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; ++i)
    floats[i] = float(int64_t(scramble(seed, i) % 17) - 8);
  return floats;
}
