//===- Weights.h - weights from files into memory ---------------*- C++ -*-===//
//
// A load takes a box of a weight, row by row, and puts each element where its layout says:
//
//   file ──pread, a megabyte at a time──▶ rows ──cast──▶ target[table0[i0] + table1[i1] + ..]
//
// In every layout the place of an element is a sum over its dims, of tables made once per load. Files are read, not mapped:
// one that shrinks meanwhile is an error, and no signal. So are weights that stand in the program's own file.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_WEIGHTS_H
#define CLEAVE_LIB_RUNTIME_WEIGHTS_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"

namespace cleave::runtime {

class FileBytes;
class Scatter;

class WeightFiles {
public:
  /// Files are looked for in `folder`, where there is one, else where the program says, relative paths beside it. What
  /// stands in the program is read from its file, where `programFile` is mapped; without one it is in memory.
  WeightFiles(const program::Program &program, std::string programFolder, std::string folder,
              const FileBytes *programFile = nullptr);
  ~WeightFiles();
  WeightFiles(const WeightFiles &) = delete;
  WeightFiles &operator=(const WeightFiles &) = delete;

  /// Opens the file of a weight, and sees that its bytes are those that the program was compiled with.
  program::Status check(const program::Weight &weight);
  /// What `load` asks for, on `rank`, into memory that is full of zeros. Any thread. Precondition: `check`.
  program::Status load(const program::Load &load, uint32_t rank, char *target) const;

private:
  class Rows;
  program::Status open(size_t file);
  Rows getRows(const program::Weight &weight) const;
  program::Status loadRows(const program::Weight &weight, const std::vector<int64_t> &shape,
                           const std::vector<int64_t> &starts, size_t first, std::vector<int64_t> index,
                           Scatter &scatter, char *target) const;

  const program::Program &program;
  std::string programFolder, folder;
  const FileBytes *programFile;
  /// By file of the program; -1 where it is not open.
  std::vector<int> descriptors;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_WEIGHTS_H
