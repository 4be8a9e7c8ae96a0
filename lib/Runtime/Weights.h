//===- Weights.h - weights from files into memory ---------------*- C++ -*-===//
//
// A load takes a box of a weight, row by row, and puts each element where its layout says:
//
//   file ──pread, blocks of a megabyte──▶ digest ──▶ rows ──cast──▶ target[table0[i0] + table1[i1] + ..]
//
// A block is verified where it is read: what goes into memory are just the bytes that the program was compiled with.
// In every layout the place of an element is a sum over its dims, of tables made once per load. Files are read, not mapped:
// one that shrinks meanwhile is an error, and no signal. So are weights that stand in the program's own file.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_RUNTIME_WEIGHTS_H
#define CLEAVE_LIB_RUNTIME_WEIGHTS_H

#include "cleave/Program/Error.h"
#include "cleave/Program/Program.h"
#include <memory>

namespace cleave::runtime {

class FileBytes;
class Scatter;

/// Where a file of weights may be: in `folder`, where there is one, else where the program says, relative paths in
/// `programFolder`; under its path first, then by its name alone.
std::vector<std::string> getCandidates(const program::File &file, const std::string &programFolder,
                                       const std::string &folder);

class WeightFiles {
public:
  /// Files are looked for in `folder`, where there is one, else where the program says, relative paths beside it. What
  /// stands in the program is read from its file, where `programFile` is mapped; without one it is in memory. Digests are
  /// held against what is there where it `verifies`.
  WeightFiles(const program::Program &program, std::string programFolder, std::string folder,
              const FileBytes *programFile = nullptr, bool verifies = true);
  ~WeightFiles();
  WeightFiles(const WeightFiles &) = delete;
  WeightFiles &operator=(const WeightFiles &) = delete;

  /// Opens the file of a weight, and sees that it is the one that the program was compiled with.
  program::Status check(const program::Weight &weight);

private:
  class Rows;

public:
  /// What one thread has read last, which the next load may begin with.
  class Reader {
  public:
    Reader();
    ~Reader();

  private:
    friend class WeightFiles;
    const program::Weight *weight = nullptr;
    std::unique_ptr<Rows> rows;
  };

  /// What `load` asks for, on `rank`, into memory that is full of zeros. Any thread. Precondition: `check`.
  program::Status load(const program::Load &load, uint32_t rank, char *target, Reader &reader) const;

private:
  program::Status open(size_t file);
  Rows &getRows(const program::Weight &weight, Reader &reader) const;
  program::Error fail(const program::Weight &weight, const program::Error &why) const;
  program::Status loadRows(const program::Weight &weight, const std::vector<int64_t> &shape,
                           const std::vector<int64_t> &starts, size_t first, std::vector<int64_t> index,
                           Scatter &scatter, char *target, Reader &reader) const;

  const program::Program &program;
  std::string programFolder, folder;
  const FileBytes *programFile;
  const bool verifies;
  /// By file of the program; -1 where it is not open.
  std::vector<int> descriptors;
};

} // namespace cleave::runtime

#endif // CLEAVE_LIB_RUNTIME_WEIGHTS_H
