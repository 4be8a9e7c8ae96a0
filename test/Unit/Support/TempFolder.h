//===- TempFolder.h - a folder for one test ---------------------*- C++ -*-===//
//
// Made empty, removed with everything in it when the object dies; and the text of an error, empty where there is none.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_UNIT_SUPPORT_TEMPFOLDER_H
#define CLEAVE_TEST_UNIT_SUPPORT_TEMPFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <fstream>
#include <iterator>

namespace cleave::test {

class TempFolder {
public:
  TempFolder() {
    if (llvm::sys::fs::createUniqueDirectory("cleave-test", folder))
      ADD_FAILURE() << "cannot create a temporary folder";
  }
  ~TempFolder() { llvm::sys::fs::remove_directories(folder); }

  std::string getPath() const { return folder.str().str(); }
  std::string operator/(llvm::StringRef name) const { return (folder + "/" + name).str(); }

  /// Writes a file and returns its path.
  std::string write(llvm::StringRef name, llvm::StringRef bytes) const {
    std::ofstream(*this / name, std::ios::binary).write(bytes.data(), bytes.size());
    return *this / name;
  }
  std::string read(llvm::StringRef name) const {
    std::ifstream stream(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  /// Number of entries, hidden ones included.
  size_t count() const {
    std::error_code code;
    size_t entries = 0;
    for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
      ++entries;
    return entries;
  }

private:
  llvm::SmallString<128> folder;
};

inline std::string getText(llvm::Error error) { return llvm::toString(std::move(error)); }
template <typename T> std::string getText(llvm::Expected<T> value) {
  return value ? std::string() : llvm::toString(value.takeError());
}

/// Whether an error's text holds `part`.
inline testing::AssertionResult hasPart(const std::string &text, llvm::StringRef part) {
  if (llvm::StringRef(text).contains(part))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << (text.empty() ? "no error" : text) << "\nwant: " << part.str();
}

} // namespace cleave::test

/// `expression`, an llvm::Error or Expected, fails and its text holds `part`.
#define EXPECT_ERROR(expression, part) EXPECT_TRUE(::cleave::test::hasPart(::cleave::test::getText(expression), part))

#endif // CLEAVE_TEST_UNIT_SUPPORT_TEMPFOLDER_H
