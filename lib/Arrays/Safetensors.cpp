//===- Safetensors.cpp - tensors by name in one file ----------------------===//
//
// Of JSON just what the format has: an object of objects, whose values are texts and lists of whole numbers. Whoever wrote the file is
// a stranger: every number is held against the file before it is used, and nothing is taken that the file does not have.
//
//   readSafetensors     8 bytes ─▶ length ─▶ header ─▶ per tensor: type, shape, [begin, end)
//   layOutSafetensors   tensors ─▶ order ─▶ [begin, end) of each ─▶ header, filled up with spaces
//
// The format wants tensors one behind the other without gaps, and gives no alignment but that of the header's end. Written largest
// elements first, each tensor begins at a multiple of its elements' size, so that who maps a file can use it where it lies.
//
//===----------------------------------------------------------------------===//
#include "cleave/Arrays/Safetensors.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace cleave::arrays;
namespace program = cleave::program;
using program::concat;
using program::Element;
using program::makeError;
using program::quote;
using program::Result;
using program::Status;

/// What may stand before the elements: as much as the format's own reader takes.
static constexpr uint64_t kMostHeader = 100'000'000;
static constexpr size_t kLengthBytes = 8;

/// In the order of the enum.
static constexpr const char *kTypes[] = {"F16", "BF16", "F32", "F64", "BOOL", "I8", "I16",
                                         "I32", "I64",  "U8",  "U16", "U32",  "U64"};

const SafeTensor *Safetensors::find(std::string_view name) const {
  auto found = std::find_if(tensors.begin(), tensors.end(), [&](const SafeTensor &each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Reads values from the beginning of a text; after the first error nothing is read any more.
class Json {
public:
  explicit Json(std::string_view text) : text(text) {}

  /// `{"key": value, ..}`: calls `value` behind each key.
  void readObject(const std::function<void(const std::string &key)> &value);
  std::string readText();
  std::vector<int64_t> readNumbers();
  void fail() { isBad = true; }
  bool isGood() const { return !isBad; }
  /// Nothing but spaces is left.
  bool isAtEnd() {
    skipSpace();
    return text.empty();
  }

private:
  void skipSpace() { text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size())); }
  bool take(char wanted) {
    skipSpace();
    if (isBad || text.empty() || text.front() != wanted)
      return false;
    text.remove_prefix(1);
    return true;
  }
  void expect(char wanted) { isBad |= !take(wanted); }
  /// `\u0041`, without the backslash and the letter, as UTF-8.
  void readCode(std::string &to);
  uint32_t readHex();

  std::string_view text;
  bool isBad = false;
};
} // namespace

/// The first thing that is not as it should be ends all loops.
void Json::readObject(const std::function<void(const std::string &key)> &value) {
  expect('{');
  if (take('}'))
    return;
  do {
    std::string key = readText();
    expect(':');
    if (!isBad)
      value(key);
  } while (!isBad && take(','));
  expect('}');
}

/// Four digits.
uint32_t Json::readHex() {
  uint32_t code = 0;
  for (int digit = 0; digit < 4; ++digit) {
    constexpr std::string_view digits = "0123456789abcdef";
    size_t value = text.empty() ? std::string_view::npos : digits.find(char(text.front() | 32));
    isBad |= value == std::string_view::npos;
    if (isBad)
      return 0;
    code = code << 4 | uint32_t(value);
    text.remove_prefix(1);
  }
  return code;
}

/// A pair of surrogates is one character.
void Json::readCode(std::string &to) {
  uint32_t code = readHex();
  if (code >= 0xd800 && code < 0xdc00 && text.substr(0, 2) == "\\u") {
    text.remove_prefix(2);
    code = 0x10000 + ((code & 0x3ff) << 10) + (readHex() & 0x3ff);
  }
  if (code < 0x80) {
    to += char(code);
    return;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t firsts[] = {0, 0xc0, 0xe0, 0xf0};
  to += char(firsts[more] | code >> (6 * more));
  while (more-- > 0)
    to += char(0x80 | (code >> (6 * more) & 0x3f));
}

/// What stands between quotes may be any UTF-8: it is a name, and nobody looks into it.
std::string Json::readText() {
  std::string result;
  expect('"');
  while (!isBad) {
    isBad = text.empty();
    char next = isBad ? '"' : text.front();
    text.remove_prefix(isBad ? 0 : 1);
    if (next == '"')
      break;
    if (next != '\\') {
      result += next;
      continue;
    }
    constexpr std::string_view escapes = "\"\\/bfnrtu", meant = "\"\\/\b\f\n\r\t";
    size_t which = text.empty() ? std::string_view::npos : escapes.find(text.front());
    isBad = which == std::string_view::npos;
    text.remove_prefix(isBad ? 0 : 1);
    if (which < meant.size())
      result += meant[which];
    else if (!isBad)
      readCode(result);
  }
  return result;
}

/// Whole numbers that are not negative.
std::vector<int64_t> Json::readNumbers() {
  std::vector<int64_t> numbers;
  expect('[');
  if (take(']'))
    return numbers;
  do {
    skipSpace();
    size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    isBad |= digits == 0 || digits > 18;
    int64_t number = 0;
    for (size_t i = 0; i < digits && !isBad; ++i)
      number = number * 10 + (text[i] - '0');
    text.remove_prefix(digits);
    numbers.push_back(number);
  } while (!isBad && take(','));
  expect(']');
  return numbers;
}

/// One entry, whose bytes are counted from `begin` on.
static Status readTensor(Json &json, uint64_t begin, uint64_t fileBytes, SafeTensor &tensor) {
  std::string type;
  std::vector<int64_t> ends;
  json.readObject([&](const std::string &key) {
    if (key == "dtype")
      type = json.readText();
    else if (key == "shape")
      tensor.shape = json.readNumbers();
    else if (key == "data_offsets")
      ends = json.readNumbers();
    else
      json.fail();
  });
  if (!json.isGood() || ends.size() != 2 || ends[0] > ends[1] || uint64_t(ends[1]) > fileBytes - begin)
    return makeError("tensor ", quote(tensor.name), " does not lie in the file");
  const auto *known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const char *word) { return type == word; });
  if (known == std::end(kTypes))
    return makeError("tensor ", quote(tensor.name), " has elements of type ", quote(type),
                     ", which programs do not have");
  tensor.element = Element(known - std::begin(kTypes));
  tensor.offset = begin + uint64_t(ends[0]);
  tensor.bytes = uint64_t(ends[1] - ends[0]);
  uint64_t wanted = program::getElementBytes(tensor.element);
  for (int64_t extent : tensor.shape)
    if (__builtin_mul_overflow(wanted, uint64_t(extent), &wanted))
      return makeError("tensor ", quote(tensor.name), " has more elements than there are bytes");
  if (wanted != tensor.bytes)
    return makeError("tensor ", quote(tensor.name), " has ", tensor.bytes, " bytes, its shape asks for ", wanted);
  return program::kGood;
}

Result<Safetensors> cleave::arrays::readSafetensors(const ReadBytes &read, uint64_t fileBytes) {
  uint64_t length = 0;
  Safetensors file;
  file.fileBytes = fileBytes;
  char bytes[kLengthBytes] = {};
  if (fileBytes < kLengthBytes)
    return makeError("is not a safetensors file: it has ", fileBytes, " bytes");
  if (Status error = read(0, bytes, kLengthBytes))
    return *error;
  std::memcpy(&length, bytes, kLengthBytes);
  if (length > kMostHeader || length > fileBytes - kLengthBytes)
    return makeError("is not a safetensors file: it says that ", length, " bytes tell what is in it");
  std::string header(length, ' ');
  if (Status error = read(kLengthBytes, header.data(), header.size()))
    return *error;
  Json json(header);
  Status failed;
  std::set<std::string> names;
  json.readObject([&](const std::string &key) {
    if (key == "__metadata__")
      return json.readObject([&](const std::string &name) { file.metadata[name] = json.readText(); });
    file.tensors.push_back({key, {}, {}, 0, 0});
    failed = readTensor(json, kLengthBytes + length, fileBytes, file.tensors.back());
    if (!failed && !names.insert(key).second)
      failed = makeError("tensor ", quote(key), " is there twice");
    if (failed)
      json.fail();
  });
  if (failed)
    return *failed;
  if (!json.isGood() || !json.isAtEnd())
    return makeError("is not a safetensors file: what tells what is in it is damaged");
  return file;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// As JSON has texts: what could end one, and what is no character of its own.
static std::string quoteText(std::string_view text) {
  std::string result = "\"";
  for (char each : text) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (each == '"' || each == '\\')
      result += '\\';
    if (uint8_t(each) < 0x20)
      result += concat("\\u00", digits.substr(uint8_t(each) >> 4, 1), digits.substr(each & 15, 1));
    else
      result += each;
  }
  return result + '"';
}

/// `[8,4]`; `[]` of a number.
static std::string formatShape(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += concat(text.empty() ? "" : ",", extent);
  return "[" + text + "]";
}

std::string cleave::arrays::layOutSafetensors(Safetensors &file) {
  // By name where elements are alike, so that equal tensors make equal files.
  std::sort(file.tensors.begin(), file.tensors.end(), [](const SafeTensor &a, const SafeTensor &b) {
    uint32_t size = program::getElementBytes(a.element), other = program::getElementBytes(b.element);
    return size != other ? size > other : a.name < b.name;
  });
  std::string header = "{";
  if (!file.metadata.empty()) {
    std::string entries;
    for (const auto &[name, value] : file.metadata)
      entries += concat(entries.empty() ? "" : ",", quoteText(name), ":", quoteText(value));
    header += "\"__metadata__\":{" + entries + "}";
  }
  uint64_t at = 0;
  for (SafeTensor &tensor : file.tensors) {
    tensor.offset = at;
    tensor.bytes = program::getBytes({tensor.element, tensor.shape, {}});
    at += tensor.bytes;
    header +=
        concat(header.size() > 1 ? "," : "", quoteText(tensor.name), ":{\"dtype\":\"", kTypes[size_t(tensor.element)],
               "\",\"shape\":", formatShape(tensor.shape), ",\"data_offsets\":[", tensor.offset, ",", at, "]}");
  }
  header += '}';
  header.resize((header.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  uint64_t length = header.size(), begin = kLengthBytes + length;
  for (SafeTensor &tensor : file.tensors)
    tensor.offset += begin;
  file.fileBytes = begin + at;
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + header;
}
