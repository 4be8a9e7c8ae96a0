//===- CommandFiles.h - what a command reads and writes ---------*- C++ -*-===//
//
// A command that writes onto what it reads, or two results into one file, loses data. So a command lists all its files before
// it writes the first of them:
//
//   CommandFiles files;
//   files.addInput("the model", "m.onnx");
//   files.addOutput("-o", "m.onnx");
//   if (program::Status error = files.check())
//     return error;   // '-o m.onnx' is the file of the model: it would be lost
//
// Files are the same by device and inode, whatever they are called, or, where there is none yet, by their place: the real path
// of the folder, and the name in it. Devices and pipes keep nothing that could be lost, nor is `-` a file.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_COMMANDFILES_H
#define CLEAVE_RUNTIME_COMMANDFILES_H

#include "cleave/Program/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace cleave::runtime {

class CommandFiles {
public:
  /// Whether a name in a folder is one that the command may write there.
  using IsWritten = bool (*)(std::string_view name);

  /// `what` is for messages: `the model`, `--inputs`. A file that is not there is no input; an empty path is none. Of a folder each file is
  /// one.
  void addInput(std::string what, const std::string &path);
  /// A program, and the files of its weights; in `weightsFolder`, if that is not empty. Precondition: all outputs are known, as
  /// only what is there can be lost.
  void addProgram(const std::string &path, const std::string &weightsFolder);
  /// The option that names it. An empty path is none.
  void addOutput(std::string option, const std::string &path);
  /// Files with the names that `isWritten` tells, in a folder that need not be there.
  void addOutputFolder(std::string option, const std::string &folder, IsWritten isWritten);
  /// Standard output, which a shell may have sent into a file.
  void addStandardOutput();

  /// An error if an output is an input, or another output.
  program::Status check() const;

private:
  /// Where a file is, and which one it is, if it is there.
  struct Identity {
    std::string path;
    uint64_t device = 0, inode = 0;
    bool exists = false;
    bool isSame(const Identity &other) const;
  };
  struct Entry {
    std::string what, given;
    Identity identity;
    IsWritten isWritten = nullptr; ///< of a folder
  };
  static std::optional<Identity> identify(const std::string &path);
  static std::string collide(const Entry &output, const Entry &other);

  std::vector<Entry> inputs, outputs;
};

} // namespace cleave::runtime

#endif // CLEAVE_RUNTIME_COMMANDFILES_H
