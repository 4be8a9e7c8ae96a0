//===- DigestTest.cpp - which bytes a digest looks at ---------------------===//
#include "cleave/Support/Digest.h"
#include "TempFolder.h"
#include "gtest/gtest.h"

using cleave::MappedFile;

namespace {

/// The digest of a whole file in memory.
std::string digestSample(std::string bytes) {
  auto file = MappedFile::fromMemory("bytes", std::move(bytes));
  return cleave::digestSample(*file, file->getBytes());
}

// The reference implementation, by the Python package xxhash: xxh3_64_hexdigest(sample + size.to_bytes(8, "little")).
TEST(Digest, IsXxh3OfTheSample) {
  EXPECT_EQ(digestSample(""), "c77b3abb6f87acd9");
  EXPECT_EQ(digestSample("abc"), "56c0f20a2e4aacd9");
  std::string bytes; // sample: the 4,096 bytes from each multiple of 10,000
  for (int i = 0; i < 24096; ++i)
    bytes += static_cast<char>(i % 251);
  EXPECT_EQ(digestSample(bytes), "dd0549fe10b4b94c");
}

TEST(Digest, TellsSizesApart) {
  EXPECT_NE(digestSample(std::string(100, '\0')), digestSample(std::string(101, '\0')));
  EXPECT_NE(digestSample(std::string(100000, '\0')), digestSample(std::string(100001, '\0')));
}

TEST(Digest, LooksAtEveryByteOfWhatIsSmall) {
  std::string bytes(12288, 'x'), before = digestSample(bytes);
  for (size_t i = 0; i < bytes.size(); i += 97) {
    bytes[i] = 'y';
    EXPECT_NE(digestSample(bytes), before) << i;
    bytes[i] = 'x';
  }
}

// Of 2 * 10,000 + 4,096 bytes every 10,000th starts a block.
TEST(Digest, LooksAtThreeBlocksOfWhatIsLarge) {
  std::string bytes(24096, 'x'), before = digestSample(bytes);
  for (size_t i = 0; i < bytes.size(); i += 61) {
    bytes[i] = 'y';
    EXPECT_EQ(digestSample(bytes) != before, i % 10000 < 4096) << i;
    bytes[i] = 'x';
  }
}

// Read from disk or, where many files are open, out of the mapping: the same.
TEST(Digest, IsTheSameOnDisk) {
  cleave::test::TempFolder folder;
  std::string bytes;
  for (int i = 0; i < 24096; ++i)
    bytes += static_cast<char>(i % 251);
  std::string path = folder.write("w.bin", "before" + bytes + "behind");
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (int i = 0; i < 40; ++i) {
    auto file = MappedFile::open(path);
    ASSERT_TRUE(bool(file));
    EXPECT_EQ(cleave::digestSample(**file, (*file)->getBytes().substr(6, bytes.size())), "dd0549fe10b4b94c") << i;
    files.push_back(std::move(*file));
  }
}

} // namespace
