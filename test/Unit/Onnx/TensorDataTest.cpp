//===- TensorDataTest.cpp - the elements of a tensor, wherever they are ---===//
#include "cleave/Onnx/TensorData.h"
#include "../Support/TempFolder.h"
#include "WireWriter.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::onnx;
using namespace cleave::test;

namespace {

/// What reading one tensor gave: its elements or an error.
struct Result {
  std::string bytes, error, path;
  uint64_t offset = 0;
  std::vector<std::string> notes;
};

Result readFrom(llvm::Expected<std::unique_ptr<ModelFile>> file) {
  Result result;
  if (!file) {
    result.error = llvm::toString(file.takeError());
    return result;
  }
  auto data = TensorReader(**file).read((*file)->model.graph.initializer.at(0));
  result.notes = (*file)->notes;
  // The data outlives the model.
  file->reset();
  if (!data) {
    result.error = llvm::toString(data.takeError());
    return result;
  }
  result.bytes.assign(data->bytes.begin(), data->bytes.end());
  if (data->isReference()) {
    result.path = data->file->getPath().str();
    result.offset = data->file->getOffset(data->bytes);
  }
  return result;
}

Result readTensor(const std::string &tensor) {
  return readFrom(readModel(MappedFile::fromMemory("model.onnx", model(message(5, tensor)))));
}

//===--- Types ----------------------------------------------------------------===//

TEST(TensorData, KnowsTheTypes) {
  EXPECT_EQ(getDataTypeName(FLOAT), "float");
  EXPECT_EQ(getDataTypeName(BFLOAT16), "bfloat16");
  EXPECT_EQ(getDataTypeName(99), "element type 99");
  for (auto [type, bytes] : {std::pair(FLOAT, 4),
                             {FLOAT16, 2},
                             {BFLOAT16, 2},
                             {DOUBLE, 8},
                             {INT8, 1},
                             {UINT8, 1},
                             {INT16, 2},
                             {UINT16, 2},
                             {INT32, 4},
                             {UINT32, 4},
                             {INT64, 8},
                             {UINT64, 8},
                             {BOOL, 1}})
    EXPECT_EQ(getElementBits(type), 8 * bytes);
  for (auto [type, bits] :
       {std::pair(FLOAT8E4M3FN, 8), {FLOAT8E8M0, 8}, {INT4, 4}, {UINT4, 4}, {FLOAT4E2M1, 4}, {INT2, 2}, {UINT2, 2}})
    EXPECT_EQ(getElementBits(type), bits);
  for (int32_t type : {0, 8, 14, 15, 28, -1})
    EXPECT_EQ(getElementBits(type), std::nullopt);
}

TEST(TensorData, UnsupportedTypesAreErrors) {
  EXPECT_EQ(readTensor(tensorHead("t", COMPLEX64, {2}) + text(9, "x")).error,
            "tensor 't': complex64 elements are not supported");
  EXPECT_EQ(readTensor(tensorHead("t", 99, {2}) + text(9, "x")).error,
            "tensor 't': element type 99 elements are not supported");
  EXPECT_EQ(readTensor(text(8, "t")).error, "tensor 't': undefined elements are not supported");
}

//===--- Raw data -------------------------------------------------------------===//

TEST(TensorData, RawDataIsTakenAsItIs) {
  for (int32_t type : {FLOAT, FLOAT16, BFLOAT16, DOUBLE, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64}) {
    std::string bytes(*getElementBits(type) / 8 * 6, 'x');
    EXPECT_EQ(readTensor(tensorHead("t", type, {2, 3}) + text(9, bytes)).bytes, bytes);
  }
  EXPECT_EQ(readTensor(tensorHead("t", INT8, {}) + text(9, "x")).bytes, "x");
}

// Of five elements the third byte has one, of three of 2 bits the only byte has all.
TEST(TensorData, SmallElementsShareBytes) {
  EXPECT_EQ(readTensor(tensorHead("t", INT4, {5}) + text(9, "abc")).bytes, "abc");
  EXPECT_EQ(readTensor(tensorHead("t", UINT2, {3}) + packed(5, {0x1b})).bytes, "\x1b");
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT4E2M1, {3}) + packed(5, {0x62, 255})).bytes, "\x62\xff");
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT8E5M2, {2}) + packed(5, {0x7c, 128})).bytes, "\x7c\x80");
  EXPECT_EQ(readTensor(tensorHead("t", INT4, {5}) + text(9, "ab")).error,
            "tensor 't': raw_data has 2 bytes, shape 5 of int4 needs 3");
  EXPECT_EQ(readTensor(tensorHead("t", INT4, {3}) + packed(5, {1, 256})).error,
            "tensor 't': element 1 of int32_data is 256, which is out of the range of int4");
}

TEST(TensorData, RawDataMustHaveTheShapesSize) {
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {2, 3}) + text(9, "12345678")).error,
            "tensor 't': raw_data has 8 bytes, shape 2x3 of float needs 24");
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {}) + text(9, "12345678")).error,
            "tensor 't': raw_data has 8 bytes, shape scalar of float needs 4");
}

TEST(TensorData, BoolsAreZeroOrOne) {
  EXPECT_EQ(readTensor(tensorHead("t", BOOL, {2}) + text(9, llvm::StringRef("\1\0", 2))).bytes, std::string("\1\0", 2));
  EXPECT_EQ(readTensor(tensorHead("t", BOOL, {2}) + text(9, "\1\xff")).error,
            "tensor 't': element 1 is 255, a bool must be 0 or 1");
}

TEST(TensorData, ReferencesSayWhereTheyAre) {
  TempFolder folder;
  std::string bytes = model(message(5, tensorHead("t", INT8, {4}) + text(9, "find")));
  Result result = readFrom(readModel(folder.write("m.onnx", bytes)));
  EXPECT_EQ(result.path, folder / "m.onnx");
  EXPECT_EQ(result.offset, bytes.find("find"));
  EXPECT_EQ(result.bytes, "find");
}

//===--- Typed fields ---------------------------------------------------------===//

TEST(TensorData, FloatsAreInFloatData) {
  std::string want = raw({1.5f, -2.0f, 3.0f});
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {3}) + text(4, want)).bytes, want);
  // One by one, and mixed.
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {3}) + real(4, 1.5f) + text(4, raw({-2.0f, 3.0f}))).bytes, want);
  EXPECT_EQ(readTensor(tensorHead("t", DOUBLE, {2}) + text(10, raw({1.5, -2.0}))).bytes, raw({1.5, -2.0}));
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {3}) + real(4, 1.5f)).error,
            "tensor 't': float_data has 4 bytes, shape 3 of float needs 12");
}

TEST(TensorData, IntegersAreNarrowedToTheirWidth) {
  EXPECT_EQ(readTensor(tensorHead("t", INT64, {3}) + packed(7, {INT64_MIN, -1, INT64_MAX})).bytes,
            raw<int64_t>({INT64_MIN, -1, INT64_MAX}));
  EXPECT_EQ(readTensor(tensorHead("t", UINT64, {2}) + packed(11, {-1, 7})).bytes, raw<uint64_t>({UINT64_MAX, 7}));
  EXPECT_EQ(readTensor(tensorHead("t", UINT32, {2}) + packed(11, {UINT32_MAX, 7})).bytes,
            raw<uint32_t>({UINT32_MAX, 7}));
  EXPECT_EQ(readTensor(tensorHead("t", INT32, {2}) + packed(5, {INT32_MIN}) + integer(5, INT32_MAX)).bytes,
            raw<int32_t>({INT32_MIN, INT32_MAX}));
  EXPECT_EQ(readTensor(tensorHead("t", INT16, {2}) + packed(5, {-32768, 32767})).bytes, raw<int16_t>({-32768, 32767}));
  EXPECT_EQ(readTensor(tensorHead("t", UINT16, {1}) + packed(5, {65535})).bytes, raw<uint16_t>({65535}));
  EXPECT_EQ(readTensor(tensorHead("t", INT8, {2}) + packed(5, {-128, 127})).bytes, raw<int8_t>({-128, 127}));
  EXPECT_EQ(readTensor(tensorHead("t", UINT8, {1}) + packed(5, {255})).bytes, raw<uint8_t>({255}));
  EXPECT_EQ(readTensor(tensorHead("t", BOOL, {2}) + packed(5, {1, 0})).bytes, raw<uint8_t>({1, 0}));
}

// 1.0 is 0x3c00 as a half float and 0x3f80 as a bfloat16.
TEST(TensorData, HalfFloatsAreInInt32DataAsBits) {
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT16, {2}) + packed(5, {0x3c00, 0xfc00})).bytes,
            raw<uint16_t>({0x3c00, 0xfc00}));
  EXPECT_EQ(readTensor(tensorHead("t", BFLOAT16, {1}) + packed(5, {0x3f80})).bytes, raw<uint16_t>({0x3f80}));
}

TEST(TensorData, ElementsMustFitTheirType) {
  EXPECT_EQ(readTensor(tensorHead("t", INT8, {2}) + packed(5, {1, 128})).error,
            "tensor 't': element 1 of int32_data is 128, which is out of the range of int8");
  for (auto [type, value] : {std::pair<int32_t, int64_t>(UINT8, -1),
                             {UINT8, 256},
                             {INT16, 32768},
                             {UINT16, 65536},
                             {BOOL, 2},
                             {FLOAT16, 65536},
                             {BFLOAT16, -1},
                             {INT32, int64_t(INT32_MAX) + 1}})
    EXPECT_TRUE(
        hasPart(readTensor(tensorHead("t", type, {1}) + packed(5, {value})).error, "which is out of the range of "));
  EXPECT_TRUE(hasPart(readTensor(tensorHead("t", UINT32, {1}) + packed(11, {int64_t(1) << 32})).error,
                      "which is out of the range of "));
}

TEST(TensorData, TypedFieldsMustHaveTheShapesCount) {
  EXPECT_EQ(readTensor(tensorHead("t", INT32, {3}) + packed(5, {1, 1000})).error,
            "tensor 't': int32_data has 2 elements, shape 3 of int32 needs 3");
  EXPECT_EQ(readTensor(tensorHead("t", INT32, {1}) + packed(5, {1, 2})).error,
            "tensor 't': int32_data has more elements than shape 1 of int32 needs 1");
  EXPECT_EQ(readTensor(tensorHead("t", INT32, {0}) + packed(5, {1})).error,
            "tensor 't': int32_data has more elements than shape 0 of int32 needs 0");
  EXPECT_TRUE(hasPart(readTensor(tensorHead("t", INT32, {1}) + text(5, "\xff")).error, "element 0 of int32_data"));
}

// The claim costs the file a few bytes and must cost us none.
TEST(TensorData, HugeShapesTakeNoMemory) {
  int64_t huge = int64_t(1) << 60;
  EXPECT_EQ(readTensor(tensorHead("t", INT8, {huge}) + packed(5, {1})).error,
            "tensor 't': int32_data has at most 1 elements, shape 1152921504606846976 of int8 needs " +
                std::to_string(huge));
  EXPECT_TRUE(hasPart(readTensor(tensorHead("t", INT8, {huge})).error, "it has no elements"));
}

TEST(TensorData, ElementsMustBeInTheTypesField) {
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {1}) + packed(5, {1})).error,
            "tensor 't': its elements are in int32_data, but float elements belong into float_data");
  EXPECT_EQ(readTensor(tensorHead("t", INT32, {2}) + packed(5, {1}) + packed(7, {1})).error,
            "tensor 't': its elements are in int64_data, but int32 elements belong into int32_data");
}

//===--- Shapes and places ----------------------------------------------------===//

TEST(TensorData, ShapesAreChecked) {
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {2, -1})).error, "tensor 't': dim 1 is negative (-1)");
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {int64_t(1) << 32, int64_t(1) << 30}) + text(9, "")).error,
            "tensor 't': shape 4294967296x1073741824 of 4-byte elements overflows 64 bits");
  EXPECT_TRUE(hasPart(readTensor(tensorHead("t", FLOAT, {INT64_MAX})).error, "overflows 64 bits"));
}

TEST(TensorData, EmptyTensorsNeedNoElements) {
  for (const std::string &elements : {std::string(), text(9, ""), packed(4, {})}) {
    Result result = readTensor(tensorHead("t", FLOAT, {INT64_MAX, INT64_MAX, 0}) + elements);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.bytes, "");
  }
  EXPECT_EQ(readTensor(tensorHead("t", FLOAT, {2})).error,
            "tensor 't': it has no elements, shape 2 of float needs 8 bytes");
}

TEST(TensorData, ElementsAreInOnePlaceOnly) {
  std::string location = message(13, text(1, "location") + text(2, "w.bin"));
  std::string head = tensorHead("t", FLOAT, {1}), bytes = raw({1.0f});
  EXPECT_EQ(readTensor(head + text(9, bytes) + text(4, bytes)).error,
            "tensor 't': its elements are in two places, raw_data and float_data");
  EXPECT_EQ(readTensor(head + text(9, bytes) + location + integer(14, 1)).error,
            "tensor 't': its elements are in two places, external_data and raw_data");
  EXPECT_EQ(readTensor(head + text(9, bytes) + location).error,
            "tensor 't': it has external_data, but data_location does not say EXTERNAL");
  EXPECT_EQ(readTensor(head + text(9, bytes) + message(3, "")).error,
            "tensor 't': segmented tensors are not supported");
}

TEST(TensorData, NamesAreQuoted) {
  EXPECT_TRUE(hasPart(readTensor(tensorHead("a\nb", FLOAT, {1})).error, "tensor 'a\\x0ab': "));
}

//===--- Strings --------------------------------------------------------------===//

TEST(TensorData, StringsAreReadApart) {
  auto read = [](const std::string &tensor) -> llvm::Expected<std::string> {
    auto file = readModel(MappedFile::fromMemory("model.onnx", model(message(5, tensor))));
    if (!file)
      return file.takeError();
    auto strings = readStrings((*file)->model.graph.initializer.at(0));
    return strings ? llvm::Expected<std::string>(llvm::join(*strings, "|")) : strings.takeError();
  };
  auto joined = read(tensorHead("t", STRING, {3}) + text(6, "a") + text(6, "") + text(6, "b"));
  ASSERT_TRUE(bool(joined));
  EXPECT_EQ(*joined, "a||b");
  EXPECT_ERROR(read(tensorHead("t", STRING, {3}) + text(6, "a")), "string_data has 1 elements, shape 3 needs 3");
  EXPECT_ERROR(read(tensorHead("t", FLOAT, {1}) + real(4, 1)), "it has float elements, want string");
  EXPECT_ERROR(read(tensorHead("t", STRING, {1}) + text(9, "a")), "string elements belong into string_data");
  EXPECT_ERROR(read(tensorHead("t", STRING, {-1}) + text(6, "a")), "dim 0 is negative");
}

//===--- Sparse tensors --------------------------------------------------------===//

Result readSparse(const std::string &values, const std::string &indices, const std::vector<int64_t> &dims) {
  std::string tensor = message(1, values) + message(2, indices) + packed(3, dims);
  auto file = readModel(MappedFile::fromMemory("model.onnx", model(message(15, tensor))));
  Result result;
  if (!file) {
    result.error = llvm::toString(file.takeError());
    return result;
  }
  auto data = TensorReader(**file).read((*file)->model.graph.sparseInitializer.at(0));
  if (data)
    result.bytes.assign(data->bytes.begin(), data->bytes.end());
  else
    result.error = llvm::toString(data.takeError());
  return result;
}

std::string bytesOf(const std::string &bytes) {
  return tensorHead("s", UINT8, {int64_t(bytes.size())}) + text(9, bytes);
}
std::string placesOf(std::vector<int64_t> shape, std::vector<int64_t> places) {
  return tensorHead("", INT64, shape) + packed(7, places);
}

TEST(SparseTensor, ValuesStandWhereIndicesSay) {
  EXPECT_EQ(readSparse(bytesOf("ab"), placesOf({2}, {1, 5}), {2, 3}).bytes, std::string("\0a\0\0\0b", 6));
  EXPECT_EQ(readSparse(bytesOf("ab"), placesOf({2, 2}, {0, 1, 1, 2}), {2, 3}).bytes, std::string("\0a\0\0\0b", 6));
  EXPECT_EQ(readSparse(bytesOf(""), placesOf({0}, {}), {3}).bytes, std::string(3, 0));
  // One index of one dim is a place and a coordinate, which are the same.
  EXPECT_EQ(readSparse(bytesOf("a"), placesOf({1, 1}, {2}), {4}).bytes, std::string("\0\0a\0", 4));
}

TEST(SparseTensor, IndicesAreChecked) {
  auto error = [](const std::string &indices, const std::vector<int64_t> &dims = {2, 3}) {
    return readSparse(bytesOf("ab"), indices, dims).error;
  };
  EXPECT_EQ(error(placesOf({2}, {1, 6})), "tensor 's': sparse: index 1 is 6, and there are 6 elements");
  EXPECT_EQ(error(placesOf({2}, {-1, 1})), "tensor 's': sparse: index 0 is -1, and there are 6 elements");
  EXPECT_EQ(error(placesOf({2, 2}, {0, 1, 1, 3})), "tensor 's': sparse: index 1 is 3 in dim 1, which has size 3");
  EXPECT_EQ(error(placesOf({2}, {4, 4})), "tensor 's': sparse: index 1 is not greater than the one before it");
  EXPECT_EQ(error(placesOf({2, 2}, {1, 0, 0, 2})), "tensor 's': sparse: index 1 is not greater than the one before it");
  EXPECT_EQ(error(placesOf({3}, {1, 2, 3})), "tensor 's': sparse: indices have shape 3, want 2 or 2x2");
  EXPECT_EQ(error(tensorHead("", INT32, {2}) + packed(5, {0, 1})), "tensor 's': sparse: indices are int32, want int64");
  EXPECT_EQ(error(placesOf({2}, {0, 1}), {1 << 20, 1 << 20}),
            "tensor 's': sparse: 1048576x1048576 needs, with the sparse tensors before it, more than 4294967296 bytes");
  EXPECT_EQ(readSparse(tensorHead("s", INT4, {2}) + text(9, "a"), placesOf({2}, {0, 1}), {4}).error,
            "tensor 's': sparse: sparse tensors of int4 are not supported");
}

} // namespace
