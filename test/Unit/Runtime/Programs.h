//===- Programs.h - programs that run, made by hand -------------*- C++ -*-===//
//
// Their kernels are those of Kernels.c, as a shared object. A test puts a program together, writes it to bytes, and opens
// these as an executor does.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_RUNTIME_PROGRAMS_H
#define CLEAVE_TEST_UNIT_RUNTIME_PROGRAMS_H

#include "cleave/Program/File.h"
#include "cleave/Runtime/Executor.h"
#include <memory>

namespace cleave::runtime::test {

using Shape = std::vector<int64_t>;

/// A program with one variant, whose ranks all have one role unless a test adds others.
class Builder {
public:
  explicit Builder(uint32_t ranks = 1);

  uint32_t addType(Shape shape, program::Element element = program::Element::F32, Shape strides = {});
  uint32_t addBuffer(program::BufferKind kind, uint64_t bytes, size_t role = 0);
  /// `entry` of Kernels.c on tensors of these types, the last `writes` of which it writes.
  uint32_t addKernel(const char *entry, std::vector<uint32_t> types, size_t writes, uint32_t scalars);
  /// A column of the rank table.
  int32_t addColumn(std::vector<int64_t> values);
  void addGroup(std::vector<uint32_t> ranks, uint32_t size);
  int32_t addNode(const char *name);

  void launch(uint32_t kernel, std::vector<program::View> operands, std::vector<int64_t> scalars, int32_t node = -1,
              size_t role = 0);
  void add(program::Action action, uint32_t stream = 0, int32_t node = -1, size_t role = 0);
  program::Tensor &addInput(const char *name, uint32_t type, program::View view,
                            std::vector<program::Number> starts = {});
  program::Tensor &addOutput(const char *name, uint32_t type, program::View view,
                             std::vector<program::Number> starts = {});

  program::Variant &variant() { return program.variants.front(); }
  program::Role &role(size_t index = 0) { return program.roles[index]; }
  std::string write() const { return program::writeProgram(program); }

  program::Program program;
};

/// An executor for a program, or a failure of the test.
std::unique_ptr<Executor> openProgram(const Builder &builder, const ExecutorOptions &options = {});
/// The message of an error; empty if there is none.
std::string getMessage(const ExecutorStatus &status);

/// A folder of its own, which goes away with what is in it.
struct Folder {
  Folder();
  ~Folder();
  void write(const std::string &name, const std::string &bytes) const;
  std::string path;
};

/// Floats as an argument; they must stay.
Argument makeArgument(const char *name, Shape shape, const std::vector<float> &elements);
std::vector<float> getFloats(const Value &value);
/// `count` floats that follow from `seed`: small whole numbers, whose sums and products are exact.
std::vector<float> makeFloats(size_t count, uint64_t seed);

} // namespace cleave::runtime::test

#endif // CLEAVE_TEST_UNIT_RUNTIME_PROGRAMS_H
