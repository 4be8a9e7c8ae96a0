//===- Content.cpp - what a file is, by its bytes -------------------------===//
//
// Formats with letters of their own at the start are known by these; an ONNX model, which has none, by its first field (the
// version), and text by words that a line of it begins with.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Content.h"
#include "cleave/Program/File.h"

#include <unistd.h>

using namespace cleave::program;

namespace {
struct Mark {
  std::string_view start;
  Content content;
};
} // namespace

static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// How files of each kind begin, in the order in which they are tried.
static constexpr Mark kMarks[] = {
    {"ML\xefR", Content::Mlir},
    {"PK\x03\x04", Content::Npz},
    {"PK\x05\x06", Content::Npz},
    {"\x93NUMPY", Content::Npy},
    {"\x7f"
     "ELF",
     Content::Library},
    {"\x1f\x8b", Content::Gzip},
    {"\x89HDF\r\n", Content::Hdf5},
    {"\xff\xfe", Content::Utf16},
    {"\xfe\xff", Content::Utf16},
};

/// What a line of a text begins with.
static constexpr Mark kWords[] = {
    {"mesh:", Content::Plan},     {"shard:", Content::Plan},     {"pipeline:", Content::Plan},
    {"dims:", Content::Plan},     {"state:", Content::Plan},     {"device:", Content::Cluster},
    {"links:", Content::Cluster}, {"module {", Content::Mlir},   {"module attributes", Content::Mlir},
    {"module @", Content::Mlir},  {"func.func ", Content::Mlir}, {"#loc", Content::Mlir},
    {"#mesh", Content::Mlir},     {"0F0,", Content::Schedule},
};

static constexpr std::string_view kNames[] = {"",
                                              "an ONNX model",
                                              "MLIR",
                                              "a program that cleave compile made",
                                              "a plan",
                                              "a description of a cluster",
                                              "an .npz archive of arrays",
                                              "a single array (.npy)",
                                              "the table of a schedule",
                                              "a file of torch.save",
                                              "a file of safetensors",
                                              "an HDF5 file",
                                              "a gzip archive",
                                              "machine code",
                                              "text in UTF-16"};

static bool startsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

/// Field 1, a small number, and another field behind it.
static bool isOnnx(std::string_view bytes) {
  return bytes.size() > 4 && bytes[0] == '\x08' && bytes[1] > 0 && bytes[1] < 64 && bytes[2] != '\n' &&
         uint8_t(bytes[2]) >= 0x12 && (bytes[2] & 7) == 2;
}

/// Eight bytes that say how long the JSON behind them is.
static bool isSafetensors(std::string_view bytes) {
  return bytes.size() > 9 && bytes[6] == 0 && bytes[7] == 0 && startsWith(bytes.substr(8), "{\"");
}

/// Only the first kilobytes are looked at.
static Content findText(std::string_view text) {
  text = dropByteOrderMark(text).substr(0, 8192);
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    for (const Mark &word : kWords)
      if (startsWith(text.substr(start, end - start), word.start))
        return word.content;
    start = end + 1;
  }
  return Content::Unknown;
}

/// Marks of binary files go before words of text, as these may be in a binary one by chance.
Content cleave::program::findContent(std::string_view bytes) {
  if (isProgram(bytes))
    return Content::Program;
  for (const Mark &mark : kMarks)
    if (startsWith(bytes, mark.start))
      return mark.content == Content::Npz && bytes.substr(0, 4096).find("data.pkl") != bytes.npos ? Content::Torch
                                                                                                  : mark.content;
  if (isOnnx(bytes))
    return Content::Onnx;
  return isSafetensors(bytes) ? Content::Safetensors : findText(bytes);
}

std::string_view cleave::program::describe(Content content) { return kNames[size_t(content)]; }

std::string cleave::program::describeOther(std::string_view bytes, Content expected, std::string_view what) {
  Content content = findContent(bytes);
  if (content == Content::Unknown || content == expected)
    return "";
  return concat("it is ", describe(content), ", not ", what);
}

std::string cleave::program::hintAtHome(std::string_view path) {
  if (path.empty() || path.front() != '~' || access(std::string(path.substr(0, path.find('/'))).c_str(), F_OK) == 0)
    return "";
  return "'~' is the shell's, which replaces it at the beginning of a word alone: write the whole path";
}

std::string_view cleave::program::dropByteOrderMark(std::string_view text) {
  return startsWith(text, kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}
