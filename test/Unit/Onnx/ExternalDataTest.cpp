//===- ExternalDataTest.cpp - weights in files beside the model -----------===//
#include "../Support/TempFolder.h"
#include "WireWriter.h"
#include "cleave/Onnx/TensorData.h"
#include <sys/stat.h>
#include <unistd.h>

using namespace cleave;
using namespace cleave::onnx;
using namespace cleave::test;

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// A model `m.onnx` with one external tensor of four floats, beside a file `w.bin` of 24 bytes.
struct ExternalData : testing::Test {
  ExternalData() { folder.write("w.bin", "0123456789abcdefghijklmn"); }

  /// The tensor's elements with these external_data entries, or an error.
  llvm::Expected<TensorData> read(const Entries &entries, llvm::ArrayRef<int64_t> shape = {4}) {
    std::string tensor = tensorHead("w", FLOAT, shape) + integer(14, 1);
    for (const auto &[key, value] : entries)
      tensor += message(13, text(1, key) + text(2, value));
    auto opened = readModel(folder.write("m.onnx", model(message(5, tensor))));
    if (!opened)
      return opened.takeError();
    file = std::move(*opened);
    return TensorReader(*file).read(file->model.graph.initializer.at(0));
  }
  void expectBytes(const Entries &entries, llvm::StringRef want) {
    auto data = read(entries);
    ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
    EXPECT_EQ(llvm::StringRef(data->bytes.data(), data->bytes.size()), want);
  }

  TempFolder folder;
  std::unique_ptr<ModelFile> file;
};

TEST_F(ExternalData, IsAReference) {
  auto data = read({{"location", "w.bin"}, {"offset", "4"}, {"length", "16"}});
  ASSERT_TRUE(bool(data));
  ASSERT_TRUE(data->isReference());
  EXPECT_EQ(data->file->getPath(), folder / "w.bin");
  EXPECT_EQ(data->file->getOffset(data->bytes), 4u);
  EXPECT_EQ(llvm::StringRef(data->bytes.data(), data->bytes.size()), "456789abcdefghij");
}

TEST_F(ExternalData, OffsetAndLengthHaveDefaults) {
  expectBytes({{"location", "w.bin"}, {"length", "16"}}, "0123456789abcdef");
  expectBytes({{"location", "w.bin"}, {"offset", "8"}}, "89abcdefghijklmn");
  expectBytes({{"location", "w.bin"}}, "0123456789abcdef"); // the length follows from the shape
  EXPECT_ERROR(read({{"location", "w.bin"}, {"offset", "9"}}),
               "tensor 'w': external data needs 16 bytes from byte 9 of 'w.bin', which has 24 bytes");
}

TEST_F(ExternalData, ChecksumsAreNoted) {
  expectBytes({{"location", "w.bin"}, {"offset", "8"}, {"checksum", "0123"}}, "89abcdefghijklmn");
  EXPECT_EQ(file->notes, std::vector<std::string>{"checksums of external data were not verified"});
}

TEST_F(ExternalData, MayLieDeeper) {
  ASSERT_EQ(mkdir((folder / "weights").c_str(), 0700), 0);
  folder.write("weights/0.bin", "0123456789abcdef");
  expectBytes({{"location", "weights/0.bin"}}, "0123456789abcdef");
}

TEST_F(ExternalData, KeysAreAllowListed) {
  EXPECT_ERROR(read({}), "tensor 'w': external_data has no location");
  EXPECT_ERROR(read({{"location", "w.bin"}, {"basepath", "/etc"}}), "external_data has the unknown key 'basepath'");
  EXPECT_ERROR(read({{"location", "w.bin"}, {"location", "x"}}), "external_data has the key 'location' twice");
}

TEST_F(ExternalData, NumbersAreChecked) {
  for (const char *text : {"", "-1", "+1", "0x10", "1.5", " 4", "4 ", "four", "18446744073709551616"}) {
    EXPECT_ERROR(read({{"location", "w.bin"}, {"offset", text}}),
                 "external_data offset is '" + std::string(text) + "'");
    EXPECT_ERROR(read({{"location", "w.bin"}, {"length", text}}),
                 "external_data length is '" + std::string(text) + "'");
  }
}

TEST_F(ExternalData, RangesStayInTheFile) {
  std::string most = std::to_string(UINT64_MAX);
  EXPECT_ERROR(read({{"location", "w.bin"}, {"offset", "9"}, {"length", "16"}}),
               "tensor 'w': external data needs 16 bytes from byte 9 of 'w.bin', which has 24 bytes");
  EXPECT_ERROR(read({{"location", "w.bin"}, {"offset", "25"}, {"length", "0"}}),
               "external data starts at byte 25 of 'w.bin', which has 24 bytes");
  // The sum of these overflows to 15.
  EXPECT_ERROR(read({{"location", "w.bin"}, {"offset", most}, {"length", "16"}}),
               "external data starts at byte " + most);
  EXPECT_ERROR(read({{"location", "w.bin"}, {"offset", "16"}, {"length", most}}), "external data needs " + most);
}

TEST_F(ExternalData, RangesHaveTheShapesSize) {
  EXPECT_ERROR(read({{"location", "w.bin"}, {"length", "12"}}),
               "external data has 12 bytes from byte 0 of 'w.bin', shape 4 of float needs 16");
  EXPECT_ERROR(read({{"location", "w.bin"}, {"length", "24"}}), "external data has 24 bytes from byte 0 of 'w.bin'");
  EXPECT_ERROR(read({{"location", "w.bin"}}, {int64_t(1) << 61}), "shape 2305843009213693952 of 4-byte elements");
}

TEST_F(ExternalData, LocationsStayInTheFolder) {
  ASSERT_EQ(mkdir((folder / "sub").c_str(), 0700), 0);
  ASSERT_EQ(symlink("w.bin", (folder / "link").c_str()), 0);
  ASSERT_EQ(symlink("/", (folder / "root").c_str()), 0);
  EXPECT_ERROR(read({{"location", ""}}), "tensor 'w': external data: cannot open '': the path is empty");
  EXPECT_ERROR(read({{"location", "/etc/passwd"}}), "cannot open '/etc/passwd': the path is absolute");
  EXPECT_ERROR(read({{"location", "../w.bin"}}), "the path holds '..'");
  EXPECT_ERROR(read({{"location", "sub/../w.bin"}}), "the path holds '..'");
  EXPECT_ERROR(read({{"location", std::string("w.bin\0x", 7)}}), "the path holds a NUL character");
  EXPECT_ERROR(read({{"location", "link"}}), "a symbolic link is not followed");
  EXPECT_ERROR(read({{"location", "root/etc/passwd"}}), "a symbolic link is not followed");
  EXPECT_ERROR(read({{"location", "sub"}}), "it is a folder");
  EXPECT_ERROR(read({{"location", "none.bin"}}), "no such file or directory");
}

// A model of any size is read in the memory that its graph needs.
TEST_F(ExternalData, EightGigabytesAreNotRead) {
  constexpr int64_t bytes = int64_t(8) << 30;
  ASSERT_EQ(truncate(folder.write("huge.bin", "").c_str(), bytes), 0);
  auto data = read({{"location", "huge.bin"}}, {bytes / 4});
  ASSERT_TRUE(bool(data)) << llvm::toString(data.takeError());
  EXPECT_EQ(data->bytes.size(), size_t(bytes));
  EXPECT_EQ(data->bytes.back(), 0);
}

} // namespace
