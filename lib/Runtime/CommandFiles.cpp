//===- CommandFiles.cpp - what a command reads and writes -----------------===//
//
// Each file is looked up once, when it is named. One that is not there yet is known by where it will be: links that lead
// nowhere are followed, as whoever writes through them makes the file at their end.
//
//   out -> ../b/y.npz      b is a folder, y.npz is not there: the place is /real/path/of/b/y.npz
//
//===----------------------------------------------------------------------===//
#include "cleave/Runtime/CommandFiles.h"
#include "Weights.h"
#include "cleave/Program/File.h"
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave::runtime;
namespace program = cleave::program;
namespace fs = std::filesystem;
using program::concat;
using program::printable;

/// `path` behind all links, also those that lead to what is not there; nothing where that has no end.
static std::optional<fs::path> followLinks(fs::path path) {
  constexpr int most = 40; // as the kernel does
  std::error_code error;
  for (int i = 0; i < most; ++i) {
    fs::path target = fs::read_symlink(path, error);
    if (error)
      return path;
    path = path.parent_path() / target; // an absolute one replaces what is before it
  }
  return std::nullopt;
}

/// A file that is there is told by its device and number, whatever it is called; one that is not yet there by its name in a folder
/// that is.
bool CommandFiles::Identity::isSame(const Identity &other) const {
  return path == other.path || (exists && other.exists && device == other.device && inode == other.inode);
}

/// Nothing for what keeps no bytes: pipes, devices, a folder.
std::optional<CommandFiles::Identity> CommandFiles::identify(const std::string &path) {
  Identity identity;
  struct stat status;
  identity.exists = stat(path.c_str(), &status) == 0;
  if (identity.exists && !S_ISREG(status.st_mode))
    return std::nullopt;
  if (identity.exists) {
    identity.device = status.st_dev;
    identity.inode = status.st_ino;
  }
  std::error_code error;
  std::optional<fs::path> end = followLinks(path);
  fs::path absolute = end ? fs::absolute(*end, error) : fs::path();
  fs::path real = fs::weakly_canonical(absolute.parent_path(), error) / absolute.filename();
  identity.path = error || !end ? path : real.string();
  return identity;
}

void CommandFiles::addInput(std::string what, const std::string &path) {
  if (path.empty())
    return;
  std::error_code error;
  for (fs::directory_iterator file(path, error), end; !error && file != end; file.increment(error))
    if (std::optional<Identity> identity = identify(file->path().string()); identity && identity->exists)
      inputs.push_back({what, file->path().string(), std::move(*identity)});
  std::optional<Identity> identity = identify(path == "-" ? "/dev/stdin" : path);
  if (identity && identity->exists)
    inputs.push_back({std::move(what), path, std::move(*identity)});
}

void CommandFiles::addProgram(const std::string &path, const std::string &weightsFolder) {
  addInput("the program", path);
  auto exists = [](const Entry &output) { return output.identity.exists; };
  FileBytes file;
  if (std::none_of(outputs.begin(), outputs.end(), exists) || file.map(path))
    return;
  program::Result<program::Program> read = program::readProgram(file.get());
  std::string folder = fs::path(path).parent_path().string();
  for (const program::File &weights : read ? read->files : std::vector<program::File>())
    for (const std::string &candidate : getCandidates(weights, folder.empty() ? "." : folder, weightsFolder))
      addInput("a file of its weights", candidate);
}

void CommandFiles::addOutput(std::string option, const std::string &path) {
  if (path.empty() || path == "-")
    return;
  if (std::optional<Identity> identity = identify(path))
    outputs.push_back({std::move(option), path, std::move(*identity)});
}

void CommandFiles::addOutputFolder(std::string option, const std::string &folder, IsWritten isWritten) {
  if (folder.empty())
    return;
  Entry entry{std::move(option), folder, {}, isWritten};
  std::error_code error;
  entry.identity.path = fs::weakly_canonical(fs::absolute(folder, error), error).string();
  outputs.push_back(std::move(entry));
  // What is there already may be a link to elsewhere.
  std::string what = outputs.back().what;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (isWritten(file->path().filename().string()))
      addOutput(what, file->path().string());
}

void CommandFiles::addStandardOutput() {
  struct stat status;
  if (fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode))
    return;
  Identity identity{"/dev/stdout", status.st_dev, status.st_ino, true};
  outputs.push_back({"standard output", "", std::move(identity)});
}

/// What is wrong with both of them; empty if they have nothing to do with each other.
std::string CommandFiles::collide(const Entry &output, const Entry &other) {
  std::string name = output.given.empty() ? output.what : concat(output.what, " ", printable(output.given));
  if (output.isWritten) {
    fs::path path(other.identity.path);
    bool isInside = path.parent_path() == output.identity.path && output.isWritten(path.filename().string());
    return isInside ? concat("'", name, "' writes files of the name of ", printable(other.given)) : "";
  }
  return output.identity.isSame(other.identity) ? concat("'", name, "' writes onto ", printable(other.given)) : "";
}

program::Status CommandFiles::check() const {
  for (const Entry &output : outputs)
    for (const Entry &input : inputs)
      if (std::string problem = collide(output, input); !problem.empty())
        return program::makeError(problem, ", which is ", input.what, ": it would be lost");
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t j = 0; j < outputs.size(); ++j) {
      bool isOne = i == j || (outputs[j].isWritten && outputs[i].isWritten) || outputs[i].what == outputs[j].what;
      if (isOne || outputs[j].given.empty())
        continue;
      if (std::string problem = collide(outputs[i], outputs[j]); !problem.empty())
        return program::makeError(problem, ", which is what '", outputs[j].what, "' writes: one of them would be lost");
    }
  return program::kGood;
}
