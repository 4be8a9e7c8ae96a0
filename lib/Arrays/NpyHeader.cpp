//===- NpyHeader.cpp - one array in numpy's format ------------------------===//
//
//   \x93NUMPY  version (2 bytes)  length of the header (2 bytes, from version 2 on 4)  header  elements
//
// The header is a Python dictionary with the keys descr, fortran_order and shape, in any order, padded with spaces so
// that the elements start at a multiple of 64:
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// Only such a dictionary is parsed, by the few functions of `HeaderParser`.
//
//===----------------------------------------------------------------------===//
#include "NpyHeader.h"

#include <algorithm>
#include <cassert>
#include <cstring>

using namespace cleave::arrays;
using cleave::program::concat;
using cleave::program::kGood;
using cleave::program::makeError;
using cleave::program::Result;
using cleave::program::Status;

static constexpr size_t kMagicLength = 6;
static constexpr char kMagic[kMagicLength + 1] = "\x93NUMPY";
/// numpy's own limit on dims (from version 2 on).
static constexpr size_t kMaxRank = 64;

std::optional<int64_t> NpyArray::getElementBytes(std::string_view dtype) {
  static constexpr std::string_view known[] = {"f2", "f4", "f8", "i1", "i2", "i4", "i8",
                                               "u1", "u2", "u4", "u8", "b1", "V1", "V2"};
  return std::find(std::begin(known), std::end(known), dtype) != std::end(known)
             ? std::optional<int64_t>(dtype.back() - '0')
             : std::nullopt;
}

/// Empty arrays are looked for first: their other extents may be anything.
std::optional<uint64_t> cleave::arrays::countNpyBytes(const NpyArray &array) {
  std::optional<int64_t> bytes = NpyArray::getElementBytes(array.dtype);
  if (!bytes || std::any_of(array.shape.begin(), array.shape.end(), [](int64_t dim) { return dim < 0; }))
    return std::nullopt;
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end())
    return 0;
  int64_t total = *bytes;
  for (int64_t dim : array.shape)
    if (__builtin_mul_overflow(total, dim, &total))
      return std::nullopt;
  return total;
}

//===----------------------------------------------------------------------===//
// Text of files
//===----------------------------------------------------------------------===//

/// Bytes of the printable character that `text` starts with; 0 if it starts with none. (UTF-8 by its lead bytes: what a
/// terminal makes of rare ill-formed sequences does no harm.)
static size_t getPrintableLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80)
    return byte(0) >= 0x20 && byte(0) != 0x7f;
  size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || length > text.size() || (byte(0) == 0xc2 && byte(1) < 0xa0))
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  return length;
}

std::string cleave::arrays::quote(std::string_view text) {
  constexpr size_t most = 200;
  constexpr char digits[] = "0123456789abcdef";
  std::string quoted = "'";
  for (std::string_view rest = text.substr(0, most); !rest.empty();) {
    size_t length = getPrintableLength(rest);
    unsigned char byte = static_cast<unsigned char>(rest.front());
    if (length)
      quoted += rest.substr(0, length);
    else
      quoted += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    rest.remove_prefix(length ? length : 1);
  }
  return quoted + (text.size() > most ? "...'" : "'");
}

//===----------------------------------------------------------------------===//
// Parsing the header
//===----------------------------------------------------------------------===//

namespace {

/// Recursive descent over the dictionary. Functions return false where the text is something else.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  bool parse(std::string &descr, bool &isFortranOrder, std::vector<int64_t> &shape) {
    // Each key once, and all three of them.
    unsigned seen = 0;
    if (!take("{"))
      return false;
    while (!take("}")) {
      std::string key;
      if (!takeString(key) || !take(":"))
        return false;
      unsigned bit = 0;
      if (key == "descr" && takeString(descr))
        bit = 1;
      else if (key == "fortran_order" && takeBool(isFortranOrder))
        bit = 2;
      else if (key == "shape" && takeTuple(shape))
        bit = 4;
      if (!bit || (seen & bit))
        return false;
      seen |= bit;
      if (!take(",") && !peek("}"))
        return false;
    }
    skipSpace();
    return seen == 7 && rest.empty();
  }

private:
  void skipSpace() { rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size())); }
  bool peek(std::string_view token) {
    skipSpace();
    return rest.substr(0, token.size()) == token;
  }
  bool take(std::string_view token) {
    bool isThere = peek(token);
    rest.remove_prefix(isThere ? token.size() : 0);
    return isThere;
  }

  bool takeString(std::string &value) {
    if (!peek("'") && !peek("\""))
      return false;
    size_t end = rest.find(rest.front(), 1);
    if (end == std::string_view::npos)
      return false;
    value = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return true;
  }

  bool takeBool(bool &value) {
    value = take("True");
    return value || take("False");
  }

  bool takeNumber(int64_t &value) {
    skipSpace();
    value = 0;
    size_t digits = 0;
    for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(rest[digits] - '0'), &value))
        return false;
    rest.remove_prefix(digits);
    return digits > 0;
  }

  bool takeTuple(std::vector<int64_t> &values) {
    if (!take("("))
      return false;
    while (!take(")")) {
      int64_t value;
      if (!takeNumber(value))
        return false;
      if (!rest.empty() && rest.front() == 'L') // a long of Python 2
        rest.remove_prefix(1);
      values.push_back(value);
      if (!take(",") && !peek(")"))
        return false;
    }
    return true;
  }

  std::string_view rest;
};

} // namespace

/// From numpy's descr to a dtype without byte order.
static Result<std::string> parseDescr(std::string_view descr) {
  std::string_view order = descr.substr(0, 1), dtype = descr;
  bool hasOrder = !descr.empty() && !std::isalpha(static_cast<unsigned char>(descr.front()));
  dtype.remove_prefix(hasOrder ? 1 : 0);
  if (descr == "?")
    dtype = "b1";
  if (dtype == "f1") // as ml_dtypes calls two of its floats of 8 bits
    dtype = "V1";
  std::optional<int64_t> bytes = NpyArray::getElementBytes(dtype);
  if (!bytes)
    return makeError("element type ", quote(descr), " is not supported");
  if (order == ">" && *bytes > 1 && dtype != "V2")
    return makeError("element type ", quote(descr), " is big-endian, which is not supported");
  return std::string(dtype);
}

/// What the header claims is held against the bytes that are there before it is read.
Result<NpyHeader> cleave::arrays::parseNpyHeader(std::string_view bytes) {
  if (bytes.substr(0, kMagicLength) != std::string_view(kMagic, kMagicLength) || bytes.size() < kMagicLength + 4)
    return makeError("it is not a numpy array");
  unsigned major = static_cast<uint8_t>(bytes[kMagicLength]);
  if (major < 1 || major > 3)
    return makeError("numpy format version ", major, " is not known");
  size_t textStart = kMagicLength + (major == 1 ? 4 : 6);
  if (bytes.size() < textStart)
    return makeError("it ends inside the header");
  uint64_t length = 0;
  for (size_t i = textStart; i-- > kMagicLength + 2;)
    length = length << 8 | static_cast<uint8_t>(bytes[i]);
  if (length > bytes.size() - textStart)
    return makeError("it ends inside the header, which claims ", length, " bytes");

  NpyHeader header;
  std::string descr;
  std::string_view text = bytes.substr(textStart, length);
  if (!HeaderParser(text).parse(descr, header.isFortranOrder, header.array.shape))
    return makeError("cannot understand the header ", quote(text.substr(0, text.find_last_not_of(" \t\n\v\f\r") + 1)));
  if (header.array.shape.size() > kMaxRank)
    return makeError("it has ", header.array.shape.size(), " dims, at most ", kMaxRank, " are supported");
  Result<std::string> dtype = parseDescr(descr);
  if (!dtype)
    return dtype.getError();
  header.array.dtype = *dtype;
  header.dataStart = textStart + length;
  std::optional<uint64_t> dataBytes = countNpyBytes(header.array);
  if (!dataBytes)
    return makeError("its shape overflows 64 bits");
  header.dataBytes = *dataBytes;
  return header;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Row-major elements from column-major ones: the result is written in order, `source` is the matching offset.
static std::vector<char> toRowMajor(const std::vector<char> &data, const std::vector<int64_t> &shape,
                                    int64_t elementBytes) {
  std::vector<char> result(data.size());
  std::vector<int64_t> stride, index(shape.size(), 0);
  int64_t step = elementBytes;
  for (int64_t dim : shape) {
    stride.push_back(step);
    step *= dim;
  }
  int64_t source = 0;
  for (size_t at = 0; at < data.size(); at += elementBytes) {
    std::memcpy(result.data() + at, data.data() + source, elementBytes);
    for (size_t dim = shape.size(); dim-- > 0;) {
      source += stride[dim];
      if (++index[dim] < shape[dim])
        break;
      source -= stride[dim] * shape[dim];
      index[dim] = 0;
    }
  }
  return result;
}

/// Everything behind this relies on rows first and on bools that are 0 or 1.
Status cleave::arrays::finishNpy(NpyHeader &header) {
  NpyArray &array = header.array;
  if (header.isFortranOrder && array.shape.size() > 1 && !array.data.empty())
    array.data = toRowMajor(array.data, array.shape, *NpyArray::getElementBytes(array.dtype));
  header.isFortranOrder = false;
  if (array.dtype == "b1")
    for (size_t index = 0; index < array.data.size(); ++index)
      if (unsigned byte = static_cast<uint8_t>(array.data[index]); byte > 1)
        return makeError("element ", index, " is ", byte, ", a bool must be 0 or 1");
  return kGood;
}

/// The header of a whole file, whose bytes after it are exactly the elements of its shape.
static Result<NpyHeader> parseWholeNpy(std::string_view bytes) {
  Result<NpyHeader> header = parseNpyHeader(bytes);
  if (header && bytes.size() - header->dataStart != header->dataBytes)
    return makeError("it has ", bytes.size() - header->dataStart, " bytes of elements, its shape needs ",
                     header->dataBytes);
  return header;
}

Result<NpyArray> cleave::arrays::parseNpy(std::string_view bytes) {
  Result<NpyHeader> header = parseWholeNpy(bytes);
  if (!header)
    return header.getError();
  header->array.data.assign(bytes.begin() + header->dataStart, bytes.end());
  if (Status error = finishNpy(*header))
    return *error;
  return std::move(header->array);
}

Result<NpyView> cleave::arrays::viewNpy(std::string_view bytes) {
  Result<NpyHeader> header = parseWholeNpy(bytes);
  if (!header)
    return header.getError();
  if (header->isFortranOrder)
    return makeError("it is in Fortran order, in which samples are not one after the other");
  return NpyView{header->array.dtype, header->array.shape, bytes.data() + header->dataStart};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string cleave::arrays::formatNpyHeader(const NpyArray &array) {
  assert(!checkNpy(array) && "the array has not been checked");
  std::string shape;
  for (int64_t dim : array.shape)
    shape += std::to_string(dim) + ", ";
  // As numpy writes it: (), (3,), (2, 3).
  if (array.shape.size() > 1)
    shape.resize(shape.size() - 2);
  else if (!shape.empty())
    shape.pop_back();
  bool hasOrder = array.dtype.back() != '1' && array.dtype != "V2";
  std::string text =
      concat("{'descr': '", hasOrder ? "<" : "|", array.dtype, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t prefix = kMagicLength + 4, alignment = 64;
  text.resize((prefix + text.size() + alignment) / alignment * alignment - prefix - 1, ' ');
  text += '\n';
  std::string header(kMagic, kMagicLength);
  header += {'\x01', '\x00'};
  header += {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

std::string cleave::arrays::formatNpy(const NpyArray &array) {
  std::string bytes = formatNpyHeader(array);
  bytes.append(array.data.begin(), array.data.end());
  return bytes;
}

Status cleave::arrays::checkNpy(const NpyArray &array) {
  if (!NpyArray::getElementBytes(array.dtype))
    return makeError("element type ", quote(array.dtype), " is not supported");
  if (array.shape.size() > kMaxRank)
    return makeError("it has ", array.shape.size(), " dims, at most ", kMaxRank, " are supported");
  std::optional<uint64_t> want = countNpyBytes(array);
  if (!want)
    return makeError("its shape is negative or overflows 64 bits");
  if (array.data.size() != *want)
    return makeError("it has ", array.data.size(), " bytes of elements, its shape needs ", *want);
  return kGood;
}
