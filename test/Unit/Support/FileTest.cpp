//===- FileTest.cpp - mapped, atomically written and confined files -------===//
#include "cleave/Support/File.h"
#include "TempFolder.h"
#include "cleave/Support/Status.h"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::test;

namespace {

//===--- Mapping ------------------------------------------------------------===//

TEST(MappedFile, HasTheFilesBytes) {
  TempFolder folder;
  auto file = MappedFile::open(folder.write("a.bin", "some bytes"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->getBytes(), "some bytes");
  EXPECT_EQ((*file)->getOffset((*file)->getBytes().drop_front(5)), 5u);
  EXPECT_TRUE((*file)->isOnDisk());
}

TEST(MappedFile, MayBeEmpty) {
  TempFolder folder;
  auto file = MappedFile::open(folder.write("empty", ""));
  ASSERT_TRUE(bool(file));
  EXPECT_TRUE((*file)->getBytes().empty());
}

// What is behind the new end of a file that was cut off while it is mapped cannot be read: an error of the input, that names the file.
TEST(MappedFileDeathTest, SaysThatItHasShrunk) {
  TempFolder folder;
  std::string path = folder.write("cut.bin", std::string(3 * 4096, 'a'));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(bool(file));
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  volatile char there = (*file)->getBytes()[4095];
  EXPECT_EQ(there, 'a');
  EXPECT_EXIT(
      {
        volatile char gone = (*file)->getBytes()[8192];
        (void)gone;
      },
      testing::ExitedWithCode(1), "cut.bin: error: the file has become shorter while it was read");
  std::vector<char> buffer(4096);
  EXPECT_EXIT((*file)->copy(8192, buffer), testing::ExitedWithCode(1), "cut.bin: error: the file has become shorter");
}

// The signal is what it was where no file has to do with it.
TEST(MappedFileDeathTest, LeavesOtherSignals) {
  TempFolder folder;
  ASSERT_TRUE(bool(MappedFile::open(folder.write("a.bin", "a"))));
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

TEST(MappedFile, MayLiveInMemory) {
  auto file = MappedFile::fromMemory("<stdin>", "abc");
  EXPECT_EQ(file->getBytes(), "abc");
  EXPECT_EQ(file->getPath(), "<stdin>");
  EXPECT_FALSE(file->isOnDisk());
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_ERROR(MappedFile::open(folder / "none"), "no such file or directory");
  EXPECT_ERROR(MappedFile::open(folder.getPath()), "it is a folder");
  EXPECT_ERROR(MappedFile::open(folder / "pipe"), "it is not a regular file");
  EXPECT_ERROR(MappedFile::open("/dev/zero"), "it is not a regular file");
  EXPECT_ERROR(MappedFile::open(llvm::StringRef("a\0b", 3)), "holds a NUL");
}

/// Resident pages of this process.
long getResidentPages() {
  std::ifstream stream("/proc/self/statm");
  long total = 0, resident = 0;
  stream >> total >> resident;
  return resident;
}

TEST(MappedFile, OfEightGigabytesDoesNotBecomeResident) {
  constexpr off_t size = off_t(8) << 30;
  TempFolder folder;
  ASSERT_EQ(truncate(folder.write("sparse", "").c_str(), size), 0);
  long before = getResidentPages();
  auto file = MappedFile::open(folder / "sparse");
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->getBytes().size(), size_t(size));
  EXPECT_EQ((*file)->getBytes().back(), '\0');
  EXPECT_LT((getResidentPages() - before) * getpagesize(), 16 << 20);
}

//===--- Confined opening ---------------------------------------------------===//

/// A folder `model` with weights, beside a file that no path in a model may reach.
struct Confined : testing::Test {
  Confined() {
    mkdir((temp / "model").c_str(), 0700);
    mkdir((temp / "model/sub").c_str(), 0700);
    temp.write("secret", "secret");
    temp.write("model/w.bin", "weights");
    temp.write("model/sub/w.bin", "more weights");
    link("../secret", "model/up");
    link("w.bin", "model/sideways");
    link("..", "model/parent");
    link("sub", "model/subfolder");
    link("/etc/passwd", "model/absolute");
  }
  void link(const char *to, const char *name) { EXPECT_EQ(symlink(to, (temp / name).c_str()), 0); }
  auto open(llvm::StringRef relative) { return openBeneath(temp / "model", relative); }

  TempFolder temp;
};

TEST_F(Confined, OpensFilesInTheFolderAndBelow) {
  for (auto [name, bytes] : {std::pair("w.bin", "weights"), {"sub/w.bin", "more weights"}, {"./w.bin", "weights"}}) {
    auto file = open(name);
    ASSERT_TRUE(bool(file)) << name;
    EXPECT_EQ((*file)->getBytes(), bytes);
    EXPECT_EQ((*file)->getPath(), temp / (std::string("model/") + name));
  }
}

TEST_F(Confined, AnEmptyFolderIsTheWorkingDirectory) {
  EXPECT_ERROR(openBeneath("", "no-such-file"), "cannot open 'no-such-file' in folder '.': no such file");
}

TEST_F(Confined, RefusesPathsThatNameSomethingElse) {
  EXPECT_ERROR(open(""), "cannot open '': the path is empty");
  EXPECT_ERROR(open("/etc/passwd"), "cannot open '/etc/passwd': the path is absolute");
  EXPECT_ERROR(open("../secret"), "the path holds '..'");
  EXPECT_ERROR(open("sub/../w.bin"), "the path holds '..'");
  EXPECT_ERROR(open("sub/.."), "the path holds '..'");
  EXPECT_ERROR(open(llvm::StringRef("w.bin\0.txt", 10)), "the path holds a NUL character");
  EXPECT_ERROR(open("none.bin"), "no such file or directory");
  EXPECT_ERROR(open("w.bin/x"), "not a directory");
  EXPECT_ERROR(open("sub"), "it is a folder");
  EXPECT_ERROR(open("."), "it is a folder");
}

TEST_F(Confined, RefusesSymbolicLinksEvenHarmlessOnes) {
  for (const char *name : {"up", "sideways", "absolute", "parent/secret", "subfolder/w.bin"})
    EXPECT_ERROR(open(name), "a symbolic link is not followed");
}

TEST_F(Confined, RefusesPipes) {
  ASSERT_EQ(mkfifo((temp / "model/pipe").c_str(), 0600), 0);
  EXPECT_ERROR(open("pipe"), "it is not a regular file");
}

TEST_F(Confined, AMissingFolderIsNamed) {
  EXPECT_ERROR(openBeneath(temp / "nowhere", "w.bin"), "nowhere': no such file or directory");
}

// What is used where the kernel has no openat2 draws the same line.
TEST_F(Confined, WalkingIsAsStrictAsTheKernel) {
  int folder = ::open((temp / "model").c_str(), O_PATH | O_DIRECTORY);
  ASSERT_GE(folder, 0);
  for (const char *name : {"w.bin", "sub/w.bin", "./w.bin", "sub//w.bin"}) {
    int descriptor = detail::openBeneathByWalking(folder, name);
    EXPECT_GE(descriptor, 0) << name;
    close(descriptor);
  }
  for (const char *name : {"up", "sideways", "absolute", "parent/secret", "subfolder/w.bin"}) {
    EXPECT_EQ(detail::openBeneathByWalking(folder, name), -1) << name;
    EXPECT_EQ(errno, ELOOP) << name;
  }
  EXPECT_EQ(detail::openBeneathByWalking(folder, "none/w.bin"), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(detail::openBeneathByWalking(folder, "w.bin/x"), -1);
  EXPECT_EQ(errno, ENOTDIR);
  close(folder);
}

//===--- Atomic writing -----------------------------------------------------===//

llvm::Error writeText(const std::string &path, llvm::StringRef text) {
  return writeFileAtomically(path, [&](llvm::raw_ostream &stream) {
    stream << text;
    return llvm::Error::success();
  });
}

TEST(WriteFileAtomically, CreatesAndReplaces) {
  TempFolder folder;
  EXPECT_EQ(getText(writeText(folder / "out", "first")), "");
  EXPECT_EQ(folder.read("out"), "first");
  EXPECT_EQ(getText(writeText(folder / "out", "second")), "");
  EXPECT_EQ(folder.read("out"), "second");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(WriteFileAtomically, AFailedCallbackLeavesTheOldFileAndNothingElse) {
  TempFolder folder;
  folder.write("out", "old");
  auto fail = [](llvm::raw_ostream &stream) {
    stream << std::string(1 << 20, 'x');
    return makeError("changed my mind");
  };
  EXPECT_ERROR(writeFileAtomically(folder / "out", fail), "changed my mind");
  EXPECT_ERROR(writeFileAtomically(folder / "new", fail), "changed my mind");
  EXPECT_EQ(folder.read("out"), "old");
  EXPECT_EQ(folder.count(), 1u);
}

// What is checked meanwhile decides in the end, when all is written.
TEST(WriteFileAtomically, IsCheckedBeforeItHasItsName) {
  TempFolder folder;
  folder.write("out", "old");
  bool isWritten = false;
  auto write = [&](llvm::raw_ostream &stream) {
    stream << "new";
    isWritten = true;
    return llvm::Error::success();
  };
  auto refuse = [&] {
    EXPECT_TRUE(isWritten);
    EXPECT_EQ(folder.read("out"), "old");
    return makeError("not legal");
  };
  EXPECT_ERROR(writeFileAtomically(folder / "out", write, refuse), "not legal");
  EXPECT_EQ(folder.read("out"), "old");
  EXPECT_EQ(folder.count(), 1u);
  EXPECT_EQ(getText(writeFileAtomically(folder / "out", write, [] { return llvm::Error::success(); })), "");
  EXPECT_EQ(folder.read("out"), "new");
}

TEST(WriteFileAtomically, KeepsPermissionsAndLinks) {
  TempFolder folder;
  chmod(folder.write("real", "old").c_str(), 0640);
  ASSERT_EQ(symlink("real", (folder / "link").c_str()), 0);
  EXPECT_EQ(getText(writeText(folder / "link", "new")), "");
  EXPECT_EQ(folder.read("real"), "new");
  struct stat status;
  ASSERT_EQ(lstat((folder / "link").c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  ASSERT_EQ(stat((folder / "real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(WriteFileAtomically, WritesIntoDevicesInPlace) {
  EXPECT_EQ(getText(writeText("/dev/null", "nothing")), "");
  struct stat status;
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST(WriteFileAtomically, AFullDiskIsAnError) {
  EXPECT_ERROR(writeText("/dev/full", "something"), "cannot write '/dev/full': no space left on device");
}

TEST(WriteFileAtomically, RefusesFoldersAndMissingFolders) {
  TempFolder folder;
  EXPECT_ERROR(writeText(folder.getPath(), "x"), "it is a folder");
  EXPECT_ERROR(writeText(folder / "none/out", "x"), "no such file or directory");
  EXPECT_ERROR(writeText("", "x"), "not a path");
}

} // namespace
