//===- NpzTest.cpp - numpy's archive of arrays ----------------------------===//
//
// The expected headers are what numpy 1.26 writes, typed in here.
//
//===----------------------------------------------------------------------===//
#include "cleave/Support/Npz.h"
#include "TempFolder.h"
#include "llvm/ADT/STLExtras.h"
#include <random>
#include <zip.h>

using namespace cleave;
using namespace cleave::test;

namespace {

std::vector<char> toBytes(llvm::StringRef text) { return {text.begin(), text.end()}; }

/// An .npy file with the given header text, unpadded.
std::string makeNpy(llvm::StringRef header, llvm::StringRef data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {version, '\0', static_cast<char>(header.size()), '\0'};
  if (version > 1)
    bytes += {'\0', '\0'};
  return bytes + header.str() + data.str();
}

std::string makeHeader(llvm::StringRef descr, llvm::StringRef shape) {
  return ("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }").str();
}

//===--- One array ----------------------------------------------------------===//

TEST(Npy, IsReadAsNumpyWritesIt) {
  std::string header = makeHeader("<i2", "(2, 3)");
  header.resize(128 - 10 - 1, ' ');
  auto array = parseNpy(makeNpy(header + "\n", llvm::StringRef("\1\0\2\0\3\0\4\0\5\0\6\0", 12)));
  ASSERT_TRUE(bool(array));
  EXPECT_EQ(array->dtype, "i2");
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array->data, toBytes({"\1\0\2\0\3\0\4\0\5\0\6\0", 12}));
}

TEST(Npy, IsWrittenAsNumpyWritesIt) {
  NpyArray array{"f4", {3}, std::vector<char>(12, 'x')};
  std::string bytes = formatNpy(array);
  llvm::StringRef text = bytes;
  EXPECT_TRUE(text.consume_front(llvm::StringRef("\x93NUMPY\1\0\x76\0", 10)));
  EXPECT_TRUE(text.consume_front("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_EQ(text.ltrim(' '), "\nxxxxxxxxxxxx");
  EXPECT_EQ(bytes.size(), 128u + 12u);
}

TEST(Npy, ScalarsEmptyArraysAndAllTypesSurvive) {
  for (llvm::StringRef dtype : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "V2"})
    for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {0}, {5, 0, 7}, {2, 3}}) {
      int64_t count = 1;
      for (int64_t dim : shape)
        count *= dim;
      NpyArray array{dtype.str(), shape, std::vector<char>(count * *NpyArray::getElementBytes(dtype), 1)};
      auto again = parseNpy(formatNpy(array));
      ASSERT_TRUE(bool(again)) << dtype.str();
      EXPECT_EQ(again->dtype, array.dtype);
      EXPECT_EQ(again->shape, array.shape);
      EXPECT_EQ(again->data, array.data);
    }
}

TEST(Npy, AllVersionsAndSpellingsAreRead) {
  for (char version : {1, 2, 3})
    EXPECT_EQ(getText(parseNpy(makeNpy(makeHeader("<i1", "(1,)"), "x", version))), "");
  EXPECT_EQ(getText(parseNpy(makeNpy("{\"shape\":(1L,),\"fortran_order\":False,\"descr\":\"|i1\"}\n", "x"))), "");
  EXPECT_EQ(getText(parseNpy(makeNpy(makeHeader("?", "(1,)"), "\1"))), "");
  EXPECT_EQ(getText(parseNpy(makeNpy(makeHeader("<V2", "()"), "ab"))), "");
  EXPECT_EQ(getText(parseNpy(makeNpy(makeHeader("=f4", "()"), "abcd"))), "");
}

// Column-major 2x3x2: element (i, j, k) stands at i + 2*j + 6*k and belongs to 6*i + 2*j + k.
TEST(Npy, FortranOrderBecomesCOrder) {
  std::string data(12, '\0'), want(12, '\0');
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k)
        data[i + 2 * j + 6 * k] = want[6 * i + 2 * j + k] = 'a' + 6 * i + 2 * j + k;
  auto array = parseNpy(makeNpy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", data));
  ASSERT_TRUE(bool(array));
  EXPECT_EQ(array->data, toBytes(want));
}

// No element has a place, so no place may overflow.
TEST(Npy, EmptyFortranOrderWithHugeDims) {
  auto array = parseNpy(
      makeNpy("{'descr': '<f8', 'fortran_order': True, 'shape': (4611686018427387904, 4611686018427387904, 0), }", ""));
  ASSERT_TRUE(bool(array));
  EXPECT_TRUE(array->data.empty());
}

TEST(Npy, RefusesOtherTypes) {
  EXPECT_ERROR(parseNpy(makeNpy(makeHeader(">f4", "(1,)"), "abcd")), "'>f4' is big-endian");
  for (llvm::StringRef descr : {"<c8", "<U3", "|O", "|S1", "<f3", "<i16", "<M8", "", "<", "V2x", "|V4"})
    EXPECT_ERROR(parseNpy(makeNpy(makeHeader(descr, "(1,)"), "abcd")), "is not supported") << descr.str();
}

TEST(Npy, RefusesHeadersThatAreNone) {
  EXPECT_ERROR(parseNpy(""), "it is not a numpy array");
  EXPECT_ERROR(parseNpy("\x93NUMPY\1"), "it is not a numpy array");
  EXPECT_ERROR(parseNpy("PK\3\4 and so on"), "it is not a numpy array");
  EXPECT_ERROR(parseNpy(makeNpy("{}", "", 4)), "version 4 is not known");
  EXPECT_ERROR(parseNpy(llvm::StringRef("\x93NUMPY\1\0\xff\xff{}", 12)), "which claims 65535 bytes");
  EXPECT_ERROR(parseNpy(llvm::StringRef("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)), "which claims 4294967295 bytes");
  EXPECT_ERROR(parseNpy(llvm::StringRef("\x93NUMPY\2\0\0\0", 10)), "it ends inside the header");
  for (llvm::StringRef text :
       {"", "{}", "{", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }",
        "{'descr': '<f4', 'fortran_order': Perhaps, 'shape': (1,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", "{'descr': '<f4, 'fortran_order': False",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "{'descr' '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } and more"})
    EXPECT_ERROR(parseNpy(makeNpy(text, "abcd")), "cannot understand the header") << text.str();
}

TEST(Npy, RefusesSizesThatDoNotFit) {
  EXPECT_ERROR(parseNpy(makeNpy(makeHeader("<f4", "(2,)"), "abcd")), "it has 4 bytes of elements, its shape needs 8");
  EXPECT_ERROR(parseNpy(makeNpy(makeHeader("<f4", "(0,)"), "abcd")), "it has 4 bytes of elements, its shape needs 0");
  EXPECT_ERROR(parseNpy(makeNpy(makeHeader("<f4", "(4611686018427387904, 4)"), "abcd")), "overflows 64 bits");
  EXPECT_ERROR(parseNpy(makeNpy(makeHeader("|b1", "(2,)"), "\1\2")), "element 1 is 2, a bool must be 0 or 1");
  std::string dims;
  for (int dim = 0; dim < 65; ++dim)
    dims += "1,";
  EXPECT_ERROR(parseNpy(makeNpy(makeHeader("|i1", "(" + dims + ")"), "x")), "it has 65 dims");
}

//===--- Archives -----------------------------------------------------------===//

NpzArrays makeArrays() {
  return {{"out:logits", {"f4", {2, 1}, toBytes("abcdefgh")}},
          {"in/x", {"i8", {}, toBytes("12345678")}},
          {"empty", {"V2", {0, 3}, {}}}};
}

TEST(Npz, IsReadBack) {
  TempFolder folder;
  NpzArrays arrays = makeArrays();
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", arrays)), "");
  auto again = readNpz(folder / "a.npz");
  ASSERT_TRUE(bool(again));
  ASSERT_EQ(again->size(), arrays.size());
  for (auto [got, want] : llvm::zip(*again, arrays)) {
    EXPECT_EQ(got.first, want.first);
    EXPECT_EQ(got.second.dtype, want.second.dtype);
    EXPECT_EQ(got.second.shape, want.second.shape);
    EXPECT_EQ(got.second.data, want.second.data);
  }
  EXPECT_EQ(findArray(*again, "in/x"), &(*again)[1].second);
  EXPECT_EQ(findArray(*again, "in"), nullptr);
}

TEST(Npz, OnlyWantedArraysAreRead) {
  TempFolder folder;
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", makeArrays())), "");
  auto some = readNpz(folder / "a.npz", [](llvm::StringRef name) { return name == "in/x"; });
  ASSERT_TRUE(bool(some));
  ASSERT_EQ(some->size(), 1u);
  EXPECT_EQ(some->front().first, "in/x");
}

TEST(Npz, HeadersComeWithoutElements) {
  TempFolder folder;
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", makeArrays())), "");
  auto headers = readNpzHeaders(folder / "a.npz");
  ASSERT_TRUE(bool(headers));
  ASSERT_EQ(headers->size(), 3u);
  EXPECT_EQ(headers->front().second.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_TRUE(headers->front().second.data.empty());
}

TEST(Npz, WithoutArraysIsAnArchiveToo) {
  TempFolder folder;
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", {})), "");
  auto again = readNpz(folder / "a.npz");
  ASSERT_TRUE(bool(again));
  EXPECT_TRUE(again->empty());
}

TEST(Npz, EqualArraysGiveEqualFiles) {
  TempFolder folder;
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", makeArrays())), "");
  ASSERT_EQ(getText(writeNpz(folder / "b.npz", makeArrays())), "");
  EXPECT_EQ(folder.read("a.npz"), folder.read("b.npz"));
  // Stored, so the elements stand in the file as they are.
  EXPECT_NE(folder.read("a.npz").find("abcdefgh"), std::string::npos);
}

TEST(Npz, RefusesToWriteWhatIsWrong) {
  TempFolder folder;
  auto write = [&](NpzArrays arrays) { return writeNpz(folder / "a.npz", arrays); };
  EXPECT_ERROR(write({{"", {"i1", {1}, {0}}}}), "'' cannot be the name of an array");
  EXPECT_ERROR(write({{"x", {"i1", {1}, {0}}}, {"x", {"i1", {1}, {0}}}}), "two arrays are named 'x'");
  EXPECT_ERROR(write({{"x", {"q1", {1}, {0}}}}), "array 'x': element type 'q1' is not supported");
  EXPECT_ERROR(write({{"x", {"i1", {2}, {0}}}}), "array 'x': it has 1 bytes of elements, its shape needs 2");
  EXPECT_ERROR(write({{"x", {"i1", {-1}, {}}}}), "its shape is negative or overflows");
  EXPECT_EQ(folder.count(), 0u);
}

/// An archive made with libzip alone.
void writeZip(const std::string &path, llvm::ArrayRef<std::pair<std::string, std::string>> entries, bool deflate) {
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  ASSERT_NE(archive, nullptr);
  for (const auto &[name, bytes] : entries) {
    zip_source_t *source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
    ASSERT_GE(index, 0);
    zip_set_file_compression(archive, index, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

TEST(Npz, CompressedArchivesAreRead) {
  TempFolder folder;
  std::string zeros(1 << 20, '\0');
  writeZip(folder / "a.npz", {{"x.npy", makeNpy(makeHeader("<f4", "(262144,)"), zeros)}}, /*deflate=*/true);
  EXPECT_LT(folder.read("a.npz").size(), 10000u);
  auto arrays = readNpz(folder / "a.npz");
  ASSERT_TRUE(bool(arrays));
  EXPECT_EQ(arrays->front().second.data, toBytes(zeros));
}

TEST(Npz, RefusesEntriesThatAreNoArrays) {
  TempFolder folder;
  writeZip(folder / "a.npz", {{"readme.txt", "hello"}}, false);
  EXPECT_ERROR(readNpz(folder / "a.npz"), "entry 'readme.txt' is not a numpy array");
  writeZip(folder / "b.npz", {{"x.npy", "hello"}}, false);
  EXPECT_ERROR(readNpz(folder / "b.npz"), "b.npz': array 'x': it is not a numpy array");
  writeZip(folder / "c.npz", {{"x.npy", makeNpy(makeHeader("<f4", "(1000000000,)"), "abcd")}}, true);
  EXPECT_ERROR(readNpz(folder / "c.npz"), "it has 4 bytes of elements, its shape needs 4000000000");
}

TEST(Npz, RefusesFilesThatAreNoArchives) {
  TempFolder folder;
  EXPECT_ERROR(readNpz(folder / "none.npz"), "no such file or directory");
  EXPECT_ERROR(readNpz(folder.write("text.npz", "not a zip archive")), "text.npz': not a zip archive");
  EXPECT_ERROR(readNpz(folder.write("empty.npz", "")), "empty.npz': the file is empty");
}

TEST(Npz, AFlippedElementIsNoticed) {
  TempFolder folder;
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", makeArrays())), "");
  std::string bytes = folder.read("a.npz");
  bytes[bytes.find("abcdefgh")] ^= 1;
  EXPECT_ERROR(readNpz(folder.write("b.npz", bytes)), "array 'out:logits': crc error");
}

// Every proper prefix of an archive is an error; thousands of damaged ones give arrays or an error, and nothing worse.
TEST(Npz, DamagedArchivesNeverCrash) {
  TempFolder folder;
  ASSERT_EQ(getText(writeNpz(folder / "a.npz", makeArrays())), "");
  std::string good = folder.read("a.npz");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(getText(readNpz(*MappedFile::fromMemory("a.npz", good.substr(0, length)))), "") << length;
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = good;
    for (int flips = random() % 4 + 1; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= 1 << random() % 8;
    refused += getText(readNpz(*MappedFile::fromMemory("a.npz", bytes))).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

} // namespace
