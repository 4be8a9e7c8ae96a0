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
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>

using namespace llvm;

namespace cleave {

static constexpr size_t kMagicLength = 6;
static constexpr char kMagic[kMagicLength + 1] = "\x93NUMPY";
/// numpy's own limit on dims (from version 2 on).
static constexpr size_t kMaxRank = 64;

std::optional<int64_t> NpyArray::getElementBytes(StringRef dtype) {
  static constexpr StringRef known[] = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "V2"};
  return is_contained(known, dtype) ? std::optional<int64_t>(dtype.back() - '0') : std::nullopt;
}

/// Empty arrays are looked for first: their other extents may be anything.
std::optional<uint64_t> countNpyBytes(const NpyArray &array) {
  std::optional<int64_t> bytes = NpyArray::getElementBytes(array.dtype);
  if (!bytes || any_of(array.shape, [](int64_t dim) { return dim < 0; }))
    return std::nullopt;
  if (is_contained(array.shape, 0))
    return 0;
  int64_t total = *bytes;
  for (int64_t dim : array.shape)
    if (MulOverflow(total, dim, total))
      return std::nullopt;
  return total;
}

//===----------------------------------------------------------------------===//
// Parsing the header
//===----------------------------------------------------------------------===//

namespace {

/// Recursive descent over the dictionary. Functions return false where the text is something else.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

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
    return seen == 7 && rest.trim(" \n").empty();
  }

private:
  bool peek(StringRef token) {
    rest = rest.ltrim(" \n");
    return rest.starts_with(token);
  }
  bool take(StringRef token) { return peek(token) && rest.consume_front(token); }

  bool takeString(std::string &value) {
    if (!peek("'") && !peek("\""))
      return false;
    size_t end = rest.find(rest.front(), 1);
    if (end == StringRef::npos)
      return false;
    value = rest.slice(1, end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }

  bool takeBool(bool &value) {
    value = take("True");
    return value || take("False");
  }

  bool takeTuple(std::vector<int64_t> &values) {
    if (!take("("))
      return false;
    while (!take(")")) {
      int64_t value;
      if (!peek("") || rest.empty() || !isDigit(rest.front()) || rest.consumeInteger(10, value))
        return false;
      rest.consume_front("L"); // a long of Python 2
      values.push_back(value);
      if (!take(",") && !peek(")"))
        return false;
    }
    return true;
  }

  StringRef rest;
};

} // namespace

/// From numpy's descr to a dtype without byte order.
static Expected<std::string> parseDescr(StringRef descr) {
  StringRef order = descr.take_front(1);
  StringRef dtype = descr == "?" ? "b1" : descr.drop_front(order.empty() || isAlpha(order[0]) ? 0 : 1);
  std::optional<int64_t> bytes = NpyArray::getElementBytes(dtype);
  if (!bytes)
    return makeError("element type {0} is not supported", quote(descr));
  if (order == ">" && *bytes > 1 && dtype != "V2")
    return makeError("element type {0} is big-endian, which is not supported", quote(descr));
  return dtype.str();
}

/// What the header claims is held against the bytes that are there before it is read.
Expected<NpyHeader> parseNpyHeader(StringRef bytes) {
  if (!bytes.starts_with(StringRef(kMagic, kMagicLength)) || bytes.size() < kMagicLength + 4)
    return makeError("it is not a numpy array");
  unsigned major = static_cast<uint8_t>(bytes[kMagicLength]);
  if (major < 1 || major > 3)
    return makeError("numpy format version {0} is not known", major);
  size_t textStart = kMagicLength + (major == 1 ? 4 : 6);
  if (bytes.size() < textStart)
    return makeError("it ends inside the header");
  const char *lengthField = bytes.data() + kMagicLength + 2;
  uint64_t length = major == 1 ? support::endian::read16le(lengthField) : support::endian::read32le(lengthField);
  if (length > bytes.size() - textStart)
    return makeError("it ends inside the header, which claims {0} bytes", length);

  NpyHeader header;
  std::string descr;
  StringRef text = bytes.substr(textStart, length);
  if (!HeaderParser(text).parse(descr, header.isFortranOrder, header.array.shape))
    return makeError("cannot understand the header {0}", quote(text.rtrim()));
  if (header.array.shape.size() > kMaxRank)
    return makeError("it has {0} dims, at most {1} are supported", header.array.shape.size(), kMaxRank);
  Expected<std::string> dtype = parseDescr(descr);
  if (!dtype)
    return dtype.takeError();
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
static std::vector<char> toRowMajor(ArrayRef<char> data, ArrayRef<int64_t> shape, int64_t elementBytes) {
  std::vector<char> result(data.size());
  SmallVector<int64_t> stride, index(shape.size(), 0);
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
Error finishNpy(NpyHeader &header) {
  NpyArray &array = header.array;
  if (header.isFortranOrder && array.shape.size() > 1 && !array.data.empty())
    array.data = toRowMajor(array.data, array.shape, *NpyArray::getElementBytes(array.dtype));
  header.isFortranOrder = false;
  if (array.dtype == "b1")
    for (auto [index, byte] : enumerate(array.data))
      if (static_cast<uint8_t>(byte) > 1)
        return makeError("element {0} is {1}, a bool must be 0 or 1", index, static_cast<uint8_t>(byte));
  return Error::success();
}

Expected<NpyArray> parseNpy(StringRef bytes) {
  Expected<NpyHeader> header = parseNpyHeader(bytes);
  if (!header)
    return header.takeError();
  StringRef data = bytes.drop_front(header->dataStart);
  if (data.size() != header->dataBytes)
    return makeError("it has {0} bytes of elements, its shape needs {1}", data.size(), header->dataBytes);
  header->array.data.assign(data.begin(), data.end());
  if (Error error = finishNpy(*header))
    return std::move(error);
  return std::move(header->array);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string formatNpyHeader(const NpyArray &array) {
  assert(!errorToBool(checkNpy(array)) && "the array has not been checked");
  std::string shape;
  for (int64_t dim : array.shape)
    shape += std::to_string(dim) + ", ";
  // As numpy writes it: (), (3,), (2, 3).
  if (array.shape.size() > 1)
    shape.resize(shape.size() - 2);
  else if (!shape.empty())
    shape.pop_back();
  bool hasOrder = array.dtype.back() != '1' && array.dtype != "V2";
  std::string text = formatv("{{'descr': '{0}{1}', 'fortran_order': False, 'shape': ({2}), }", hasOrder ? '<' : '|',
                             array.dtype, shape);
  constexpr size_t prefix = kMagicLength + 4, alignment = 64;
  text.resize(alignTo(prefix + text.size() + 1, alignment) - prefix - 1, ' ');
  text += '\n';
  std::string header(kMagic, kMagicLength);
  header += {'\x01', '\x00'};
  header += {static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

std::string formatNpy(const NpyArray &array) {
  std::string bytes = formatNpyHeader(array);
  bytes.append(array.data.begin(), array.data.end());
  return bytes;
}

Error checkNpy(const NpyArray &array) {
  if (!NpyArray::getElementBytes(array.dtype))
    return makeError("element type {0} is not supported", quote(array.dtype));
  if (array.shape.size() > kMaxRank)
    return makeError("it has {0} dims, at most {1} are supported", array.shape.size(), kMaxRank);
  std::optional<uint64_t> want = countNpyBytes(array);
  if (!want)
    return makeError("its shape is negative or overflows 64 bits");
  if (array.data.size() != *want)
    return makeError("it has {0} bytes of elements, its shape needs {1}", array.data.size(), *want);
  return Error::success();
}

} // namespace cleave
