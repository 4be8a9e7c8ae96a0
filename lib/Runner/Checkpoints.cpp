//===- Checkpoints.cpp - the last few files of a training -----------------===//
//
// With three files kept, at step 300:
//
//   before   out 200, out-000100                          out-000000 has gone
//   link     out 200, out-000200, out-000100              the newest has two names
//   save     out 300, out-000200, out-000100              by a rename: at no time there is no out
//
// What cannot be kept or taken away of older files is no reason to end a training.
//
//===----------------------------------------------------------------------===//
#include "Checkpoints.h"
#include "cleave/Program/Words.h"
#include "cleave/Runtime/Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <filesystem>
#include <unistd.h>

using namespace cleave::runner;
using cleave::runtime::ExecutorStatus;

static constexpr const char *kStep = "cleave.step", *kSeed = "cleave.seed", *kOrder = "cleave.order";

/// What others have written may be anything: a step that is no number is none, since rates and samples go by it.
std::optional<Progression> cleave::runner::readProgression(const std::map<std::string, std::string> &metadata) {
  auto step = metadata.find(kStep), seed = metadata.find(kSeed), order = metadata.find(kOrder);
  constexpr size_t mostDigits = 18;
  if (step == metadata.end() || step->second.empty() || step->second.size() > mostDigits ||
      step->second.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  Progression progression;
  progression.step = std::strtoull(step->second.c_str(), nullptr, 10);
  progression.seed = seed == metadata.end() ? 0 : std::strtoull(seed->second.c_str(), nullptr, 10);
  progression.isShuffled = order == metadata.end() || order->second != "given";
  return progression;
}

/// What comes before the step in the names of older files, and behind it.
static std::pair<std::string, std::string> splitName(const std::string &path) {
  size_t slash = path.rfind('/'), dot = path.rfind('.');
  bool hasEnding = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return {path.substr(0, hasEnding ? dot : path.size()) + "-", hasEnding ? path.substr(dot) : ""};
}

/// The newest file by its step, too, and no more files than wanted when there is another one.
void Checkpoints::keepOlder() const {
  auto [before, behind] = splitName(path);
  if (program::Result<arrays::Safetensors> newest = runtime::readCheckpoint(path)) {
    std::optional<Progression> progression = readProgression(newest->metadata);
    char step[32];
    std::snprintf(step, sizeof(step), "%06llu", static_cast<unsigned long long>(progression ? progression->step : 0));
    if (progression)
      (void)!link(path.c_str(), (before + step + behind).c_str());
  }
  size_t slash = before.rfind('/');
  std::string folder = slash == std::string::npos ? "." : before.substr(0, slash + 1), name = before.substr(slash + 1);
  std::vector<std::pair<unsigned long long, std::string>> older;
  DIR *open = opendir(folder.c_str());
  for (dirent *entry = open ? readdir(open) : nullptr; entry; entry = readdir(open)) {
    std::string each = entry->d_name;
    if (each.size() <= name.size() + behind.size() || each.compare(0, name.size(), name) != 0 ||
        each.compare(each.size() - behind.size(), behind.size(), behind) != 0)
      continue;
    std::string step = each.substr(name.size(), each.size() - name.size() - behind.size());
    // A file may have several names.
    std::error_code error;
    bool isRead = std::any_of(read.begin(), read.end(), [&](const std::string &file) {
      return std::filesystem::equivalent(folder + "/" + each, file, error);
    });
    if (!isRead && step.size() >= 6 && step.find_first_not_of("0123456789") == std::string::npos)
      older.emplace_back(std::strtoull(step.c_str(), nullptr, 10), folder + "/" + each);
  }
  if (open)
    closedir(open);
  std::sort(older.begin(), older.end());
  for (size_t i = 0; i + keep - 1 < older.size(); ++i)
    unlink(older[i].second.c_str());
}

cleave::program::Status Checkpoints::check() const {
  if (path.empty())
    return program::kGood;
  std::error_code error;
  int reason = std::filesystem::is_directory(path, error) ? EISDIR : 0;
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (reason == 0 && access(folder.c_str(), W_OK | X_OK) != 0)
    reason = errno;
  if (reason == 0)
    return program::kGood;
  return program::makeError("cannot write ", program::printable(path), ": ", std::strerror(reason));
}

/// What metadata say of the training is what `readProgression` reads; the digest is for people who find a file.
ExecutorStatus Checkpoints::save(const Progression &progression) {
  if (keep > 1 && executor.getRank() == 0)
    keepOlder();
  const program::Program &program = executor.getProgram();
  std::map<std::string, std::string> metadata = {{kStep, std::to_string(progression.step)},
                                                 {kSeed, std::to_string(progression.seed)},
                                                 {kOrder, progression.isShuffled ? "shuffled" : "given"}};
  if (!program.metadata.modelDigest.empty())
    metadata["cleave.model_digest"] = program.metadata.modelDigest;
  return executor.saveStates(path, metadata);
}
