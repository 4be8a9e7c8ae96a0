//===- MalformedModelTest.cpp - files that are wrong, and how it is said --===//
#include "../Support/TempFolder.h"
#include "WireWriter.h"
#include "cleave/Onnx/TensorData.h"
#include <random>

using namespace cleave;
using namespace cleave::onnx;
using namespace cleave::test;

namespace {

/// Reads a model and all elements of its tensors; the text of the first error, empty if there is none.
std::string readAll(const std::string &bytes, const ReadLimits &limits = {}) {
  auto file = readModel(MappedFile::fromMemory("model.onnx", bytes), limits);
  if (!file)
    return getText(file.takeError());
  TensorReader reader(**file);
  std::string error;
  for (const TensorProto &tensor : (*file)->model.graph.initializer)
    error += getText(reader.read(tensor));
  return error;
}

/// The error of a model whose graph has these bytes.
std::string readGraph(const std::string &graph) { return readAll(model(graph)); }

/// A model with something of everything.
std::string makeModel() {
  std::string type = message(2, message(1, integer(1, FLOAT) + message(2, message(1, text(2, "n")))));
  std::string branch = message(6, message(1, text(4, "Identity") + text(1, "w") + text(2, "b")) + text(2, "then"));
  std::string node = text(1, "x") + text(2, "y") + text(3, "node") + text(4, "If") +
                     message(5, text(1, "then_branch") + branch + integer(20, 5)) +
                     message(5, text(1, "perm") + packed(8, {1, 0}) + integer(20, 7)) +
                     message(5, text(1, "scales") + text(7, raw({1.0f, 2.0f})) + integer(20, 6));
  std::string graph = message(1, node) + text(2, "graph") +
                      message(5, tensorHead("w", FLOAT, {2}) + text(9, raw({1.0f, 2.0f}))) +
                      message(5, tensorHead("i", INT64, {2}) + packed(7, {-1, 1000})) +
                      message(5, tensorHead("h", FLOAT16, {1}) + packed(5, {0x3c00})) +
                      message(11, text(1, "x") + type) + message(12, text(1, "y") + type);
  return model(graph);
}

//===--- No model at all ------------------------------------------------------===//

TEST(MalformedModel, FilesOfOtherKindsAreToldApart) {
  EXPECT_EQ(readAll(""), "this is not an ONNX model: the file is empty");
  for (std::string bytes : {std::string("hello, world\n"), std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16),
                            std::string("PK\3\4\0\0\0\0", 8), std::string("{\"json\": 1}"),
                            std::string("module {\n}\n"), std::string(1000, '\0'),
                            std::string("\x7f"
                                        "ELF"),
                            std::string("\x80\4\x95pickle"), std::string(50, '\xff')})
    EXPECT_TRUE(hasPart(readAll(bytes), "this is not an ONNX model: ")) << bytes;
}

TEST(MalformedModel, RequiredPartsAreNamed) {
  std::string version = integer(1, 8), graph = message(7, ""), opset = message(8, integer(2, 13));
  EXPECT_EQ(readAll(version + graph + opset), "");
  EXPECT_EQ(readAll(graph + opset), "this is not an ONNX model: it has no ir_version");
  EXPECT_EQ(readAll(version + opset), "the model has no graph");
  EXPECT_EQ(readAll(version + graph), "the model has no opset_import");
  EXPECT_EQ(readAll(integer(1, 0) + graph + opset), "ir_version is 0, want at least 1");
  EXPECT_EQ(readAll(integer(1, -5) + graph + opset), "ir_version is -5, want at least 1");
}

//===--- Where and what -------------------------------------------------------===//

TEST(MalformedModel, ErrorsNameByteAndPath) {
  std::string node = text(4, "Relu");
  std::string bad = text(4, "Add") + message(5, text(1, "axis")) + tag(5, 2) + varint(999) + "abc";
  std::string bytes = model(message(1, node) + message(1, bad));
  size_t where = bytes.find("abc") - varint(999).size();
  EXPECT_EQ(readAll(bytes), "byte " + std::to_string(where) +
                                ": graph.node[1]: field 5: length 999 runs past the end of the message that holds it, "
                                "3 bytes are left");
}

TEST(MalformedModel, TruncationIsCalledThat) {
  std::string bytes = integer(1, 8) + tag(7, 2) + varint(1000) + "x";
  EXPECT_EQ(readAll(bytes), "byte 3: field 7: length 1000 runs past the end of the file, 1 bytes are left");
}

TEST(MalformedModel, OversizedNumbersAreErrors) {
  std::string tenBytes(9, '\xff'), version = integer(1, 8);
  // Ten bytes hold 64 bits; an eleventh, or more than one bit in the tenth, is too much.
  EXPECT_EQ(readAll(version + tag(5, 0) + tenBytes + '\1' + message(7, "") + message(8, "")), "");
  EXPECT_TRUE(hasPart(readAll(version + tag(5, 0) + tenBytes + '\2'), "field 5: truncated or oversized varint"));
  EXPECT_TRUE(hasPart(readAll(version + tag(5, 0) + tenBytes + "\xff\1"), "field 5: truncated or oversized varint"));
  EXPECT_TRUE(hasPart(readAll(version + tenBytes + '\1'), "field number"));
  EXPECT_TRUE(hasPart(readAll(version + tenBytes + '\2'), "truncated or oversized field tag"));
  EXPECT_TRUE(hasPart(readAll(version + tag(1 << 29, 0) + '\0'), "field number 536870912 is out of range"));
  EXPECT_TRUE(hasPart(readAll(version + tag(0, 0) + '\0'), "field number 0 is out of range"));
}

TEST(MalformedModel, HugeLengthsAreErrors) {
  for (uint64_t length : {uint64_t(1) << 31, uint64_t(1) << 32, uint64_t(1) << 63, ~uint64_t(0)})
    EXPECT_TRUE(hasPart(readAll(integer(1, 8) + tag(7, 2) + varint(length) + "xyz"),
                        "field 7: length " + std::to_string(length) + " runs past the end of the file"));
  EXPECT_TRUE(hasPart(readGraph(tag(1, 2) + varint(~uint64_t(0))), "runs past the end of the message"));
  EXPECT_TRUE(hasPart(readGraph(tag(99, 1) + "1234567"), "field 99: length 8 runs past the end"));
  EXPECT_TRUE(hasPart(readGraph(tag(99, 5) + "123"), "field 99: length 4 runs past the end"));
}

TEST(MalformedModel, GroupsAndUnknownWireTypesAreErrors) {
  EXPECT_TRUE(hasPart(readGraph(tag(1, 3)), "graph: field 1 is a group"));
  EXPECT_TRUE(hasPart(readGraph(tag(1, 4)), "graph: field 1 is a group"));
  EXPECT_TRUE(hasPart(readGraph(tag(1, 6)), "field 1 has wire type 6, which does not exist"));
  EXPECT_TRUE(hasPart(readGraph(tag(1, 7)), "field 1 has wire type 7, which does not exist"));
}

TEST(MalformedModel, FieldsOfAnotherFormAreErrors) {
  EXPECT_TRUE(hasPart(readGraph(integer(1, 5)), "graph: node: got a varint, want a length and bytes"));
  EXPECT_TRUE(hasPart(readGraph(integer(2, 5)), "graph: name: got a varint, want a length and bytes"));
  EXPECT_TRUE(hasPart(readAll(text(1, "8")), "ir_version: got a length and bytes, want a varint"));
  auto attribute = [](const std::string &bytes) { return readGraph(message(1, message(5, bytes))); };
  EXPECT_TRUE(hasPart(attribute(integer(2, 1)), "graph.node[0].attribute[0]: f: got a varint, want four bytes"));
  EXPECT_TRUE(hasPart(attribute(real(8, 1)), "ints: got four bytes, want a length and bytes"));
  EXPECT_TRUE(hasPart(attribute(tag(7, 1) + std::string(8, 'x')), "floats: got eight bytes, want a length and bytes"));
  EXPECT_TRUE(hasPart(attribute(text(7, "12345")), "floats: length 5 is not a multiple of 4"));
  EXPECT_TRUE(hasPart(attribute(text(8, "\xff")), "attribute[0]: ints: truncated or oversized varint"));
  EXPECT_TRUE(hasPart(attribute(integer(20, int64_t(1) << 40)), "type: value 1099511627776 does not fit 32 bits"));
  EXPECT_TRUE(hasPart(readGraph(message(5, real(5, 1))), "initializer[0]: int32_data: got four bytes"));
}

TEST(MalformedModel, WhatMayOccurOnceIsAnErrorTwice) {
  std::string tensorType = message(1, ""), sequenceType = message(4, "");
  EXPECT_TRUE(hasPart(readAll(integer(1, 8) + message(7, "") + message(7, "")), "graph occurs twice"));
  EXPECT_TRUE(hasPart(readGraph(message(1, message(5, message(6, "") + message(6, "")))), "g occurs twice"));
  EXPECT_TRUE(hasPart(readGraph(message(1, message(5, message(5, "") + message(5, "")))), "t occurs twice"));
  EXPECT_TRUE(hasPart(readGraph(message(11, message(2, tensorType + sequenceType))),
                      "graph.input[0].type: sequence_type: the type already has another kind"));
  EXPECT_TRUE(hasPart(readGraph(message(11, message(2, message(1, message(2, "") + message(2, ""))))),
                      "graph.input[0].type.tensor_type: shape occurs twice"));
}

TEST(MalformedModel, DataLocationIsChecked) {
  EXPECT_TRUE(hasPart(readGraph(message(5, integer(14, 2))), "initializer[0]: data_location is 2, want 0 or 1"));
}

//===--- Budgets --------------------------------------------------------------===//

TEST(MalformedModel, DeepNestingIsAnError) {
  std::string graph, type;
  for (int depth = 0; depth < 10000; ++depth)
    graph = message(1, message(5, message(6, graph)));
  EXPECT_TRUE(hasPart(readGraph(graph), "messages are nested deeper than 100"));
  for (int depth = 0; depth < 10000; ++depth)
    type = message(4, message(1, type));
  EXPECT_TRUE(hasPart(readGraph(message(11, message(2, type))), "messages are nested deeper than 100"));
  std::string shallow;
  for (int depth = 0; depth < 30; ++depth)
    shallow = message(1, message(5, message(6, shallow)));
  EXPECT_EQ(readGraph(shallow), "");
}

// Two bytes of file must not buy hundreds of bytes of memory without end.
TEST(MalformedModel, MemoryIsBudgeted) {
  std::string nodes, strings, chunks;
  for (int index = 0; index < 10000; ++index) {
    nodes += message(1, "");
    strings += text(1, "");
    chunks += integer(5, 1);
  }
  ReadLimits limits;
  limits.maxMemory = 100000;
  for (const std::string &graph : {nodes, message(1, strings), message(5, chunks), message(5, packed(1, {1}) + chunks),
                                   message(1, message(5, text(8, std::string(20000, '\1'))))})
    EXPECT_TRUE(hasPart(readAll(model(graph), limits), "takes more than 100000 bytes"));
  EXPECT_EQ(readAll(model(nodes)), "");
}

//===--- Damage at random -----------------------------------------------------===//

TEST(MalformedModel, EveryProperPrefixIsAnError) {
  std::string good = makeModel();
  ASSERT_EQ(readAll(good), "");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(readAll(good.substr(0, length)), "") << length;
}

/// Everything that an error of the reader may start with.
bool isLocated(const std::string &error) {
  llvm::StringRef text = error;
  return text.starts_with("byte ") || text.starts_with("this is not an ONNX model: ") || text.starts_with("tensor '") ||
         text.starts_with("the model has no ") || text.starts_with("ir_version is ");
}

TEST(MalformedModel, FlippedBitsNeverCrash) {
  std::string good = makeModel();
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int flips = random() % 3 + 1; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= 1 << random() % 8;
    std::string error = readAll(bytes);
    ASSERT_TRUE(error.empty() || isLocated(error)) << error;
    refused += !error.empty();
  }
  // Most bits of this model are structure.
  EXPECT_GT(refused, 5000);
}

TEST(MalformedModel, InsertedRemovedAndRepeatedBytesNeverCrash) {
  std::string good = makeModel();
  std::mt19937 random(11);
  for (int round = 0; round < 10000; ++round) {
    std::string bytes = good;
    size_t at = random() % bytes.size(), length = random() % 8 + 1;
    switch (random() % 3) {
    case 0:
      bytes.insert(at, length, static_cast<char>(random()));
      break;
    case 1:
      bytes.erase(at, length);
      break;
    case 2:
      bytes.insert(at, bytes.substr(random() % bytes.size(), length * 8));
      break;
    }
    std::string error = readAll(bytes);
    ASSERT_TRUE(error.empty() || isLocated(error)) << error;
  }
}

TEST(MalformedModel, RandomBytesAreNoModel) {
  std::mt19937 random(13);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(random() % 200 + 1, '\0');
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    EXPECT_NE(readAll(bytes), "");
  }
}

} // namespace
