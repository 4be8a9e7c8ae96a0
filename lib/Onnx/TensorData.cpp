//===- TensorData.cpp - the elements of a tensor in an ONNX file ----------===//
//
// First the size that type and shape ask for, then the one place that holds the elements, then either a reference to
// just these bytes (raw_data, external data, float_data and double_data in one piece) or a decoded copy. A copy is made
// only after the encoded form has proved long enough for the wanted number of elements, so memory is bounded by the
// file's size.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/TensorData.h"
#include "cleave/Onnx/WireReader.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace llvm;

namespace cleave::onnx {

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

namespace {
/// A row of the table of element types.
struct ElementType {
  DataType type;
  const char *name;
  int bits;                 ///< of an element; 0: not supported
  TensorProto::Field field; ///< the typed field that carries it
  int64_t min, max;         ///< values allowed in a varint field, as its 64 bits
};
} // namespace

template <typename T> static constexpr int64_t lowest() { return std::numeric_limits<T>::min(); }
template <typename T> static constexpr int64_t highest() { return std::numeric_limits<T>::max(); }

static constexpr ElementType kElementTypes[] = {
    {UNDEFINED, "undefined", 0, TensorProto::FloatData, 0, 0},
    {FLOAT, "float", 32, TensorProto::FloatData, 0, 0},
    {UINT8, "uint8", 8, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {INT8, "int8", 8, TensorProto::Int32Data, lowest<int8_t>(), highest<int8_t>()},
    {UINT16, "uint16", 16, TensorProto::Int32Data, 0, highest<uint16_t>()},
    {INT16, "int16", 16, TensorProto::Int32Data, lowest<int16_t>(), highest<int16_t>()},
    {INT32, "int32", 32, TensorProto::Int32Data, lowest<int32_t>(), highest<int32_t>()},
    {INT64, "int64", 64, TensorProto::Int64Data, lowest<int64_t>(), highest<int64_t>()},
    {STRING, "string", 0, TensorProto::StringData, 0, 0},
    {BOOL, "bool", 8, TensorProto::Int32Data, 0, 1},
    // Half floats stand in int32_data as their bits.
    {FLOAT16, "float16", 16, TensorProto::Int32Data, 0, highest<uint16_t>()},
    {DOUBLE, "double", 64, TensorProto::DoubleData, 0, 0},
    {UINT32, "uint32", 32, TensorProto::Uint64Data, 0, highest<uint32_t>()},
    // All 64 bits are allowed.
    {UINT64, "uint64", 64, TensorProto::Uint64Data, lowest<int64_t>(), highest<int64_t>()},
    {COMPLEX64, "complex64", 0, TensorProto::FloatData, 0, 0},
    {COMPLEX128, "complex128", 0, TensorProto::DoubleData, 0, 0},
    {BFLOAT16, "bfloat16", 16, TensorProto::Int32Data, 0, highest<uint16_t>()},
    // Small floats as bits, too; of 4 and 2 bits several elements share an entry, as they do a byte.
    {FLOAT8E4M3FN, "float8e4m3fn", 8, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {FLOAT8E4M3FNUZ, "float8e4m3fnuz", 8, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {FLOAT8E5M2, "float8e5m2", 8, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {FLOAT8E5M2FNUZ, "float8e5m2fnuz", 8, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {UINT4, "uint4", 4, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {INT4, "int4", 4, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {FLOAT4E2M1, "float4e2m1", 4, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {FLOAT8E8M0, "float8e8m0", 8, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {UINT2, "uint2", 2, TensorProto::Int32Data, 0, highest<uint8_t>()},
    {INT2, "int2", 2, TensorProto::Int32Data, 0, highest<uint8_t>()},
};

/// Null for a number that onnx.proto does not have.
static const ElementType *findElementType(int32_t type) {
  for (const ElementType &row : kElementTypes)
    if (row.type == type)
      return &row;
  return nullptr;
}

std::string getDataTypeName(int32_t dataType) {
  const ElementType *row = findElementType(dataType);
  return row ? row->name : "element type " + std::to_string(dataType);
}

std::optional<int64_t> getElementBits(int32_t dataType) {
  const ElementType *row = findElementType(dataType);
  return row && row->bits ? std::optional<int64_t>(row->bits) : std::nullopt;
}

static const char *getFieldName(TensorProto::Field field) {
  switch (field) {
  case TensorProto::FloatData:
    return "float_data";
  case TensorProto::Int32Data:
    return "int32_data";
  case TensorProto::StringData:
    return "string_data";
  case TensorProto::Int64Data:
    return "int64_data";
  case TensorProto::DoubleData:
    return "double_data";
  case TensorProto::Uint64Data:
    return "uint64_data";
  }
  return "unknown field";
}

//===----------------------------------------------------------------------===//
// Sizes and places
//===----------------------------------------------------------------------===//

static std::string formatShape(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t dim : shape)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "scalar" : text;
}

/// Number of elements of a shape whose elements have `bytes` bytes each; their product with it fits 63 bits.
static Expected<uint64_t> countElements(ArrayRef<int64_t> shape, int64_t bytes) {
  for (auto [index, dim] : enumerate(shape))
    if (dim < 0)
      return makeError("dim {0} is negative ({1})", index, dim);
  // A dim of 0 makes the tensor empty, however large the others are.
  if (is_contained(shape, 0))
    return 0;
  int64_t total = bytes;
  for (int64_t dim : shape)
    if (MulOverflow(total, dim, total))
      return makeError("shape {0} of {1}-byte elements overflows 64 bits", formatShape(shape), bytes);
  return total / bytes;
}

/// The elements must stand in one place, and in the field that the type asks for.
static Error checkPlace(const TensorProto &tensor, TensorProto::Field wantField) {
  if (tensor.hasSegment)
    return makeError("segmented tensors are not supported");
  if (!tensor.isExternal && !tensor.externalData.empty())
    return makeError("it has external_data, but data_location does not say EXTERNAL");
  const char *places[] = {tensor.isExternal ? "external_data" : nullptr, tensor.rawData ? "raw_data" : nullptr,
                          tensor.chunks.empty() ? nullptr : getFieldName(tensor.chunks.front().field)};
  const char *first = nullptr;
  for (const char *place : places) {
    if (place && first)
      return makeError("its elements are in two places, {0} and {1}", first, place);
    first = place ? place : first;
  }
  for (const TensorProto::Chunk &chunk : tensor.chunks)
    if (chunk.field != wantField)
      return makeError("its elements are in {0}, but {1} elements belong into {2}", getFieldName(chunk.field),
                       getDataTypeName(tensor.dataType), getFieldName(wantField));
  return Error::success();
}

static std::string describeWanted(const TensorData &data, uint64_t bytes) {
  return formatv("shape {0} of {1} needs {2}", formatShape(data.shape), getDataTypeName(data.dataType), bytes);
}

/// Bool elements must be 0 or 1, which everything behind the importer relies on.
static Error checkBools(const TensorData &data) {
  if (data.dataType != BOOL)
    return Error::success();
  for (auto [index, byte] : enumerate(data.bytes))
    if (static_cast<uint8_t>(byte) > 1)
      return makeError("element {0} is {1}, a bool must be 0 or 1", index, static_cast<uint8_t>(byte));
  return Error::success();
}

/// Lets `data` refer to a part of a file.
static void refer(TensorData &data, std::shared_ptr<const MappedFile> file, StringRef bytes) {
  data.bytes = ArrayRef<char>(bytes.data(), bytes.size());
  data.file = std::move(file);
}

/// Gives `data` a buffer of its own.
static MutableArrayRef<char> allocate(TensorData &data, uint64_t bytes) {
  auto buffer = std::make_shared<std::vector<char>>(bytes);
  data.bytes = *buffer;
  data.buffer = buffer;
  return *buffer;
}

//===----------------------------------------------------------------------===//
// Typed fields
//===----------------------------------------------------------------------===//

static uint64_t countBytes(ArrayRef<TensorProto::Chunk> chunks) {
  uint64_t total = 0;
  for (const TensorProto::Chunk &chunk : chunks)
    total += chunk.bytes.size();
  return total;
}

/// float_data and double_data: the encoding is the elements themselves.
static Error readFixed(const TensorProto &tensor, TensorData &data, uint64_t wantBytes, const ModelFile &model) {
  uint64_t got = countBytes(tensor.chunks);
  if (got != wantBytes)
    return makeError("{0} has {1} bytes, {2}", getFieldName(tensor.chunks.front().field), got,
                     describeWanted(data, wantBytes));
  if (tensor.chunks.size() == 1) {
    refer(data, model.file, tensor.chunks.front().bytes);
    return Error::success();
  }
  char *out = allocate(data, wantBytes).data();
  for (const TensorProto::Chunk &chunk : tensor.chunks)
    out = std::copy(chunk.bytes.begin(), chunk.bytes.end(), out);
  return Error::success();
}

/// Whether an element of a varint field fits its type; `value` is the 64 bits of the varint.
static bool isInRange(const ElementType &type, int64_t value) { return value >= type.min && value <= type.max; }

/// int32_data, int64_data and uint64_data: `count` varints, narrowed to the element's width, or to the byte that several share.
static Error readVarints(const TensorProto &tensor, const ElementType &type, TensorData &data, uint64_t count) {
  const char *field = getFieldName(type.field);
  if (countBytes(tensor.chunks) < count)
    return makeError("{0} has at most {1} elements, {2}", field, countBytes(tensor.chunks),
                     describeWanted(data, count));
  int64_t width = llvm::divideCeil(type.bits, 8);
  char *out = allocate(data, count * width).data();
  uint64_t index = 0;
  for (const TensorProto::Chunk &chunk : tensor.chunks) {
    StringRef rest = chunk.bytes;
    while (!rest.empty()) {
      std::optional<uint64_t> value = takeVarint(rest);
      if (!value)
        return makeError("element {0} of {1} is truncated or exceeds 64 bits", index, field);
      if (index == count)
        return makeError("{0} has more elements than {1}", field, describeWanted(data, count));
      if (!isInRange(type, static_cast<int64_t>(*value)))
        return makeError("element {0} of {1} is {2}, which is out of the range of {3}", index, field,
                         static_cast<int64_t>(*value), type.name);
      char bytes[sizeof(uint64_t)];
      support::endian::write64le(bytes, *value);
      out = std::copy_n(bytes, width, out);
      ++index;
    }
  }
  if (index != count)
    return makeError("{0} has {1} elements, {2}", field, index, describeWanted(data, count));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

namespace {
/// The external_data entries of a tensor.
struct ExternalRange {
  StringRef location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  bool hasChecksum = false;
};
} // namespace

static Expected<uint64_t> parseNumber(const StringStringEntryProto &entry) {
  uint64_t value;
  if (!all_of(entry.value, [](char c) { return isDigit(c); }) || entry.value.getAsInteger(10, value))
    return makeError("external_data {0} is {1}, want a number of bytes", entry.key, quote(entry.value));
  return value;
}

static Expected<ExternalRange> parseExternalRange(const TensorProto &tensor) {
  ExternalRange range;
  SmallVector<StringRef> seen;
  for (const StringStringEntryProto &entry : tensor.externalData) {
    if (is_contained(seen, entry.key))
      return makeError("external_data has the key {0} twice", quote(entry.key));
    seen.push_back(entry.key);
    if (entry.key == "location") {
      range.location = entry.value;
    } else if (entry.key == "checksum") {
      range.hasChecksum = true;
    } else if (entry.key == "offset" || entry.key == "length") {
      Expected<uint64_t> value = parseNumber(entry);
      if (!value)
        return value.takeError();
      if (entry.key == "offset")
        range.offset = *value;
      else
        range.length = *value;
    } else {
      return makeError("external_data has the unknown key {0}; known are location, offset, length and checksum",
                       quote(entry.key));
    }
  }
  if (!is_contained(seen, "location"))
    return makeError("external_data has no location");
  return range;
}

Expected<std::shared_ptr<const MappedFile>> TensorReader::openExternal(StringRef location) {
  if (auto known = files.find(location); known != files.end())
    return known->second;
  auto file = openBeneath(model.getFolder(), location);
  if (file)
    files[location] = *file;
  return file;
}

Error TensorReader::readExternal(const TensorProto &tensor, TensorData &data, uint64_t wantBytes) {
  Expected<ExternalRange> range = parseExternalRange(tensor);
  if (!range)
    return range.takeError();
  Expected<std::shared_ptr<const MappedFile>> file = openExternal(range->location);
  if (!file)
    return addContext("external data: ", file.takeError());
  StringRef bytes = (*file)->getBytes();
  std::string name = quote(range->location);
  if (range->offset > bytes.size())
    return makeError("external data starts at byte {0} of {1}, which has {2} bytes", range->offset, name, bytes.size());
  uint64_t rest = bytes.size() - range->offset;
  // The length may be left out: it follows from the shape.
  uint64_t length = range->length.value_or(wantBytes);
  if (length > rest)
    return makeError("external data needs {0} bytes from byte {1} of {2}, which has {3} bytes", length, range->offset,
                     name, bytes.size());
  if (length != wantBytes)
    return makeError("external data has {0} bytes from byte {1} of {2}, {3}", length, range->offset, name,
                     describeWanted(data, wantBytes));
  if (range->hasChecksum && !notedChecksum) {
    notedChecksum = true;
    model.notes.push_back("checksums of external data were not verified");
  }
  refer(data, *file, bytes.substr(range->offset, length));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Error TensorReader::readElements(const TensorProto &tensor, TensorData &data) {
  const ElementType *type = findElementType(data.dataType);
  if (!type || !type->bits)
    return makeError("{0} elements are not supported", getDataTypeName(data.dataType));
  Expected<uint64_t> count = countElements(data.shape, llvm::divideCeil(type->bits, 8));
  if (!count)
    return count.takeError();
  bool isPacked = type->bits < 8;
  uint64_t wantBytes = isPacked ? llvm::divideCeil(*count, 8 / type->bits) : *count * (type->bits / 8);
  if (Error error = checkPlace(tensor, type->field))
    return error;

  if (tensor.isExternal)
    return readExternal(tensor, data, wantBytes);
  if (tensor.rawData) {
    if (tensor.rawData->size() != wantBytes)
      return makeError("raw_data has {0} bytes, {1}", tensor.rawData->size(), describeWanted(data, wantBytes));
    refer(data, model.file, *tensor.rawData);
    return Error::success();
  }
  if (tensor.chunks.empty()) {
    if (wantBytes)
      return makeError("it has no elements, {0} bytes", describeWanted(data, wantBytes));
    return Error::success();
  }
  if (type->field == TensorProto::FloatData || type->field == TensorProto::DoubleData)
    return readFixed(tensor, data, wantBytes, model);
  return readVarints(tensor, *type, data, isPacked ? wantBytes : *count);
}

static Error nameTensor(const TensorProto &tensor, Error error) {
  return addContext("tensor " + quote(tensor.name) + ": ", std::move(error));
}

Expected<TensorData> TensorReader::read(const TensorProto &tensor) {
  TensorData data;
  data.dataType = tensor.dataType;
  data.shape = tensor.dims;
  if (Error error = readElements(tensor, data))
    return nameTensor(tensor, std::move(error));
  if (Error error = checkBools(data))
    return nameTensor(tensor, std::move(error));
  return data;
}

//===----------------------------------------------------------------------===//
// Sparse tensors
//===----------------------------------------------------------------------===//

/// The row-major place of the element that entry `index` of the indices is about, each entry of `width` numbers.
static Expected<uint64_t> findPlace(ArrayRef<char> indices, uint64_t index, ArrayRef<int64_t> shape, bool isLinear,
                                    uint64_t count) {
  auto get = [&](uint64_t number) {
    return static_cast<int64_t>(support::endian::read64le(indices.data() + number * sizeof(int64_t)));
  };
  if (isLinear) {
    int64_t place = get(index);
    if (place < 0 || static_cast<uint64_t>(place) >= count)
      return makeError("index {0} is {1}, and there are {2} elements", index, place, count);
    return place;
  }
  uint64_t place = 0;
  for (auto [dim, extent] : enumerate(shape)) {
    int64_t at = get(index * shape.size() + dim);
    if (at < 0 || at >= extent)
      return makeError("index {0} is {1} in dim {2}, which has size {3}", index, at, dim, extent);
    place = place * extent + at;
  }
  return place;
}

/// Zeros, and the values where the indices say.
Error TensorReader::fillSparse(const SparseTensorProto &tensor, TensorData &data) {
  Expected<TensorData> values = read(tensor.values);
  if (!values)
    return values.takeError();
  Expected<TensorData> indices = read(tensor.indices);
  if (!indices)
    return addContext("indices: ", indices.takeError());
  const ElementType *type = findElementType(data.dataType);
  if (type->bits < 8)
    return makeError("sparse tensors of {0} are not supported", type->name);
  uint64_t width = type->bits / 8;
  Expected<uint64_t> count = countElements(data.shape, width);
  if (!count)
    return count.takeError();
  if (indices->dataType != INT64)
    return makeError("indices are {0}, want int64", getDataTypeName(indices->dataType));
  if (values->shape.size() != 1)
    return makeError("values have shape {0}, want one dim", formatShape(values->shape));
  int64_t given = values->shape.front(), rank = data.shape.size();
  bool isLinear = indices->shape == std::vector<int64_t>{given};
  if (!isLinear && indices->shape != std::vector<int64_t>{given, rank})
    return makeError("indices have shape {0}, want {1} or {1}x{2}", formatShape(indices->shape), given, rank);
  if (*count * width > kMostSparseBytes - sparseBytes)
    return makeError("{0} needs, with the sparse tensors before it, more than {1} bytes", formatShape(data.shape),
                     kMostSparseBytes);
  sparseBytes += *count * width;
  char *out = allocate(data, *count * width).data();
  std::optional<uint64_t> last;
  for (int64_t index = 0; index < given; ++index) {
    Expected<uint64_t> place = findPlace(indices->bytes, index, data.shape, isLinear, *count);
    if (!place)
      return place.takeError();
    if (last && *place <= *last)
      return makeError("index {0} is not greater than the one before it", index);
    last = *place;
    std::copy_n(values->bytes.data() + index * width, width, out + *place * width);
  }
  return Error::success();
}

Expected<TensorData> TensorReader::read(const SparseTensorProto &tensor) {
  TensorData data;
  data.dataType = tensor.values.dataType;
  data.shape = tensor.dims;
  if (Error error = fillSparse(tensor, data))
    return nameTensor(tensor.values, addContext("sparse: ", std::move(error)));
  return data;
}

Expected<std::vector<StringRef>> readStrings(const TensorProto &tensor) {
  if (tensor.dataType != STRING)
    return nameTensor(tensor, makeError("it has {0} elements, want string", getDataTypeName(tensor.dataType)));
  Expected<uint64_t> count = countElements(tensor.dims, 1);
  if (!count)
    return nameTensor(tensor, count.takeError());
  if (Error error = checkPlace(tensor, TensorProto::StringData))
    return nameTensor(tensor, std::move(error));
  if (tensor.isExternal || tensor.rawData)
    return nameTensor(tensor, makeError("string elements belong into string_data"));
  if (tensor.chunks.size() != *count)
    return nameTensor(tensor, makeError("string_data has {0} elements, shape {1} needs {2}", tensor.chunks.size(),
                                        formatShape(tensor.dims), *count));
  std::vector<StringRef> strings;
  for (const TensorProto::Chunk &chunk : tensor.chunks)
    strings.push_back(chunk.bytes);
  return strings;
}

} // namespace cleave::onnx
