//===- DataSet.h - samples that a step is trained on ------------*- C++ -*-===//
//
// Arrays named as the inputs of a step, whose dim 0 counts samples:
//
//   data.npz        "x" f32[1000, 64], "labels" i64[1000]      in memory
//   data/x.npy      f32[1000, 64], data/labels.npy i64[1000]   mapped: of what is on the disk only the rows of a batch are read
//   data/0.npz ..   shards, in the order of their names        in memory, one behind the other
//
// Where a call makes several steps, inputs have one more dim in front, which counts these: as many batches, one behind the other.
//
// An input without dims is the same in each batch.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNNER_DATASET_H
#define CLEAVE_LIB_RUNNER_DATASET_H

#include "cleave/Arrays/Npz.h"
#include "cleave/Program/Program.h"
#include "cleave/Runtime/Executor.h"
#include "cleave/Runtime/Files.h"
#include <memory>

namespace cleave::runner {

/// The steps of a call of a program that is a step of training: as many as it gives losses.
uint64_t countStepsPerCall(const program::Program &program);

class DataSet {
public:
  /// The inputs of the first variant that are no states, from `path`. Errors: it cannot be read, an array is missing, has other samples
  /// than the others, or a type or shape that the input does not take; there are fewer samples than in a batch.
  static program::Result<DataSet> open(const std::string &path, const program::Program &program);

  uint64_t countSamples() const { return samples; }
  uint64_t getBatch() const { return batch; }

  /// The samples of a batch, or of as many batches as a call makes steps, one behind the other; of one batch, arguments have the shapes of
  /// one step. They stay until the next call. Errors: an index of a sample that the program cannot look up.
  program::Result<std::vector<runtime::Argument>> read(const std::vector<uint64_t> &which);

private:
  /// Some samples of an array, in the bytes of a file.
  struct Chunk {
    const char *data;
    uint64_t samples;
  };
  struct Column {
    const program::Tensor *input;
    program::Type type;                               ///< of one step
    program::Element element = program::Element::F32; ///< in the files
    std::vector<int64_t> shape;                       ///< of all samples
    std::vector<Chunk> chunks;
    std::vector<char> batch;
    std::optional<program::IndexRange> range;
  };

  program::Status openFile(const std::string &path);
  program::Status openArrays(const std::string &folder, const std::vector<std::string> &names);
  program::Status add(const std::string &name, const std::string &dtype, const std::vector<int64_t> &shape,
                      const char *data, const std::string &file);
  program::Status check(const std::string &path);
  program::Status checkColumn(const Column &column) const;
  program::Status fill(Column &column, const std::vector<uint64_t> &which, uint64_t times);
  program::Status checkRange(const Column &column, uint64_t sample, const char *elements, uint64_t count) const;
  Column *find(const std::string &name);
  program::Status splitSteps(Column &column) const;

  std::vector<Column> columns;
  std::vector<std::string> unknown; ///< arrays that no input takes
  uint64_t samples = 0, batch = 0, steps = 1;
  std::vector<std::unique_ptr<arrays::NpzArrays>> archives;
  std::vector<std::unique_ptr<runtime::FileBytes>> files;
};

} // namespace cleave::runner

#endif // CLEAVE_LIB_RUNNER_DATASET_H
