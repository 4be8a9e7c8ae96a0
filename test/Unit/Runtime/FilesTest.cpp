//===- FilesTest.cpp - files that appear whole or not at all --------------===//
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace cleave::runtime;
namespace fs = std::filesystem;

namespace {
/// A folder of a test's own, both ways of writing a file into it.
class Files : public testing::TestWithParam<bool> {
protected:
  Files() {
    char name[] = "/tmp/cleave-files-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Files() override { fs::remove_all(folder); }

  std::string path(const std::string &name) const { return folder + "/" + name; }
  /// What lies in the folder.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::string read(const std::string &name) {
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(const std::string &name, const std::string &text) { std::ofstream(name) << text; }
  static void write(NewFile &file, const std::string &text) {
    EXPECT_EQ(::write(file.getDescriptor(), text.data(), text.size()), ssize_t(text.size()));
  }

  std::string folder;
};
} // namespace

using Names = std::vector<std::string>;

TEST_P(Files, HaveTheirNameWhenTheyAreWhole) {
  for (const char *text : {"first", "second"}) {
    std::string before = read(path("a"));
    NewFile file;
    ASSERT_EQ(file.open(path("a"), GetParam()), 0);
    write(file, text);
    EXPECT_EQ(read(path("a")), before);
    ASSERT_EQ(file.publish(), 0);
    EXPECT_EQ(read(path("a")), text);
    EXPECT_EQ(list(), Names{"a"});
  }
}

TEST_P(Files, LeaveNothingWithoutPublishing) {
  put(path("a"), "older");
  {
    NewFile file, other;
    ASSERT_EQ(file.open(path("a"), GetParam()), 0);
    ASSERT_EQ(other.open(path("b"), GetParam()), 0);
    write(file, "half");
  }
  EXPECT_EQ(list(), Names{"a"});
  EXPECT_EQ(read(path("a")), "older");
}

TEST_P(Files, KeepModeAndLinks) {
  put(path("a"), "older");
  chmod(path("a").c_str(), 0640);
  fs::create_symlink("a", path("link"));
  NewFile file;
  ASSERT_EQ(file.open(path("link"), GetParam()), 0);
  write(file, "new");
  ASSERT_EQ(file.publish(), 0);
  struct stat status;
  ASSERT_EQ(stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("a")), "new");
}

TEST_P(Files, SayWhyNot) {
  NewFile folderItself, nowhere, device;
  EXPECT_EQ(folderItself.open(folder, GetParam()), EISDIR);
  EXPECT_EQ(nowhere.open(path("none/a"), GetParam()), ENOENT);
  ASSERT_EQ(device.open("/dev/null", GetParam()), 0);
  write(device, "gone");
  EXPECT_EQ(device.publish(), 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// SIGKILL leaves no time to remove a name: the next file that needs one in that folder does, and spares those of who lives.
TEST_P(Files, RemoveWhatAKilledProcessLeft) {
  put(path("a"), "older");
  put(path(".cleave-kept"), "of somebody else");
  NewFile living;
  ASSERT_EQ(living.open(path("living"), true), 0);
  pid_t child = fork();
  if (child == 0) {
    NewFile file;
    if (file.open(path("a"), true) == 0)
      raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(list().size(), 4u) << "a file of another name is left";
  NewFile file;
  ASSERT_EQ(file.open(path("a"), GetParam()), 0);
  write(file, "new");
  ASSERT_EQ(file.publish(), 0);
  write(living, "lives");
  ASSERT_EQ(living.publish(), 0);
  EXPECT_EQ(list(), (Names{".cleave-kept", "a", "living"}));
  EXPECT_EQ(read(path("a")), "new");
  EXPECT_EQ(read(path("living")), "lives");
}

// As SIGINT does: whatever is not whole is gone, and what is whole stays.
TEST_P(Files, ThatAreNotWholeCanBeDiscardedFromASignalHandler) {
  put(path("older"), "older");
  pid_t child = fork();
  if (child == 0) {
    signal(SIGTERM, [](int) {
      discardUnfinished();
      _exit(143);
    });
    NewFile done, half, over;
    bool isOpen = done.open(path("done"), GetParam()) == 0 && half.open(path("half"), GetParam()) == 0 &&
                  over.open(path("older"), GetParam()) == 0 && done.publish() == 0;
    if (isOpen)
      raise(SIGTERM);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 143);
  Names left = list();
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (Names{"done", "older"}));
  EXPECT_EQ(read(path("older")), "older");
}

INSTANTIATE_TEST_SUITE_P(Runtime, Files, testing::Bool(),
                         [](const auto &info) { return info.param ? "WithAName" : "Nameless"; });
