//===- ModelReaderTest.cpp - every field lands where it belongs -----------===//
#include "../Support/TempFolder.h"
#include "WireWriter.h"
#include "cleave/Onnx/Model.h"

using namespace cleave;
using namespace cleave::onnx;
using namespace cleave::test;

namespace {

std::unique_ptr<ModelFile> read(const std::string &bytes) {
  auto file = readModel(MappedFile::fromMemory("model.onnx", bytes));
  EXPECT_TRUE(bool(file));
  return file ? std::move(*file) : (llvm::consumeError(file.takeError()), std::make_unique<ModelFile>());
}

/// The only attribute of the only node of a model.
AttributeProto readAttribute(const std::string &bytes, std::unique_ptr<ModelFile> &keeper) {
  keeper = read(model(message(1, message(5, bytes))));
  return keeper->model.graph.node.at(0).attribute.at(0);
}

TEST(ModelReader, ReadsTheModel) {
  auto file = read(integer(1, 9) + text(2, "producer") + text(3, "1.2") + text(4, "org") + integer(5, -3) +
                   text(6, "doc") + message(7, text(2, "g")) + message(8, text(1, "") + integer(2, 18)) +
                   message(8, text(1, "com.microsoft") + integer(2, 1)) + message(14, text(1, "k") + text(2, "v")));
  const ModelProto &model = file->model;
  EXPECT_EQ(model.irVersion, 9);
  EXPECT_EQ(model.producerName, "producer");
  EXPECT_EQ(model.producerVersion, "1.2");
  EXPECT_EQ(model.domain, "org");
  EXPECT_EQ(model.modelVersion, -3);
  EXPECT_EQ(model.graph.name, "g");
  EXPECT_EQ(model.getOpset(""), 18);
  EXPECT_EQ(model.getOpset("ai.onnx"), 18);
  EXPECT_EQ(model.getOpset("com.microsoft"), 1);
  EXPECT_EQ(model.getOpset("ai.onnx.ml"), std::nullopt);
  ASSERT_EQ(model.metadataProps.size(), 1u);
  EXPECT_EQ(model.metadataProps[0].value, "v");
  EXPECT_TRUE(file->notes.empty());
}

TEST(ModelReader, StringsAreReferencesIntoTheFile) {
  auto file = read(model(text(2, "graph name")));
  llvm::StringRef bytes = file->file->getBytes(), name = file->model.graph.name;
  EXPECT_EQ(file->file->getOffset(name), bytes.find("graph name"));
}

TEST(ModelReader, ReadsNodes) {
  std::string node = text(1, "x") + text(1, "") + text(2, "y") + text(2, "z") + text(3, "n") + text(4, "TopK") +
                     message(5, text(1, "axis") + integer(3, -1) + integer(20, 2)) + text(7, "custom") + text(8, "o");
  auto file = read(model(message(1, node) + message(1, text(4, "Relu"))));
  ASSERT_EQ(file->model.graph.node.size(), 2u);
  const NodeProto &topK = file->model.graph.node[0];
  EXPECT_EQ(topK.input, (std::vector<llvm::StringRef>{"x", ""}));
  EXPECT_EQ(topK.output, (std::vector<llvm::StringRef>{"y", "z"}));
  EXPECT_EQ(topK.name, "n");
  EXPECT_EQ(topK.opType, "TopK");
  EXPECT_EQ(topK.domain, "custom");
  EXPECT_EQ(topK.overload, "o");
  ASSERT_NE(topK.findAttribute("axis"), nullptr);
  EXPECT_EQ(topK.findAttribute("axis")->i, -1);
  EXPECT_EQ(topK.findAttribute("largest"), nullptr);
  EXPECT_EQ(file->model.graph.node[1].opType, "Relu");
}

TEST(ModelReader, ReadsScalarAttributes) {
  std::unique_ptr<ModelFile> keeper;
  EXPECT_EQ(readAttribute(real(2, 0.5f) + integer(20, 1), keeper).f, 0.5f);
  EXPECT_EQ(readAttribute(integer(3, INT64_MIN) + integer(20, 2), keeper).i, INT64_MIN);
  EXPECT_EQ(readAttribute(text(4, llvm::StringRef("a\0b", 3)) + integer(20, 3), keeper).s, llvm::StringRef("a\0b", 3));
  EXPECT_EQ(readAttribute(text(21, "alpha") + integer(20, 1), keeper).refAttrName, "alpha");
}

// Repeated numbers stand packed or one by one, also mixed.
TEST(ModelReader, ReadsLists) {
  std::unique_ptr<ModelFile> keeper;
  EXPECT_EQ(readAttribute(packed(8, {1, -2}) + integer(8, 300) + packed(8, {}), keeper).ints,
            (std::vector<int64_t>{1, -2, 300}));
  EXPECT_EQ(readAttribute(text(7, raw({1.5f, -2.0f})) + real(7, 3.0f), keeper).floats,
            (std::vector<float>{1.5f, -2.0f, 3.0f}));
  EXPECT_EQ(readAttribute(text(9, "a") + text(9, "") + text(9, "b"), keeper).strings,
            (std::vector<llvm::StringRef>{"a", "", "b"}));
}

TEST(ModelReader, ReadsNestedAttributes) {
  std::unique_ptr<ModelFile> keeper;
  std::string graph = text(2, "then") + message(1, text(4, "Identity"));
  auto attribute = readAttribute(message(6, graph) + integer(20, 5), keeper);
  ASSERT_NE(attribute.g, nullptr);
  EXPECT_EQ(attribute.g->name, "then");
  EXPECT_EQ(attribute.g->node.at(0).opType, "Identity");

  attribute = readAttribute(message(5, tensorHead("t", FLOAT, {2}) + text(9, raw({1.0f, 2.0f}))), keeper);
  ASSERT_NE(attribute.t, nullptr);
  EXPECT_EQ(attribute.t->dims, std::vector<int64_t>{2});
  EXPECT_EQ(attribute.t->rawData->size(), 8u);

  attribute = readAttribute(message(14, message(1, integer(1, FLOAT))), keeper);
  ASSERT_NE(attribute.tp, nullptr);
  EXPECT_EQ(attribute.tp->elemType, FLOAT);

  attribute = readAttribute(message(11, text(2, "a")) + message(11, text(2, "b")), keeper);
  ASSERT_EQ(attribute.graphs.size(), 2u);
  EXPECT_EQ(attribute.graphs[1]->name, "b");
  EXPECT_EQ(readAttribute(message(10, "") + message(10, text(8, "t")), keeper).tensors.at(1).name, "t");
  EXPECT_EQ(readAttribute(message(15, "") + message(15, message(1, "")), keeper).typeProtos.at(1).kind,
            TypeProto::Tensor);
}

// Files of IR version 1 had no `type`.
TEST(ModelReader, InfersAMissingAttributeType) {
  std::unique_ptr<ModelFile> keeper;
  EXPECT_EQ(readAttribute(real(2, 1), keeper).type, AttributeProto::Float);
  EXPECT_EQ(readAttribute(packed(8, {1}), keeper).type, AttributeProto::Ints);
  EXPECT_EQ(readAttribute(message(22, ""), keeper).type, AttributeProto::SparseTensor);
  EXPECT_EQ(readAttribute(real(2, 1) + integer(3, 1), keeper).type, AttributeProto::Undefined);
  EXPECT_EQ(readAttribute(text(1, "empty"), keeper).type, AttributeProto::Undefined);
  EXPECT_EQ(readAttribute(integer(20, 7), keeper).type, AttributeProto::Ints);
}

TEST(ModelReader, ReadsValuesAndTypes) {
  std::string shape = message(1, integer(1, 8)) + message(1, text(2, "seq")) + message(1, "") +
                      message(1, integer(1, uint64_t(-1))) + message(1, text(2, "?")) + message(1, text(2, "")) +
                      message(1, integer(1, 0));
  std::string value = text(1, "x") + message(2, message(1, integer(1, INT64) + message(2, shape)));
  std::string scalar = text(1, "s") + message(2, message(1, integer(1, FLOAT) + message(2, "")));
  std::string unranked = text(1, "u") + message(2, message(1, integer(1, FLOAT)));
  auto file = read(model(message(11, value) + message(12, scalar) + message(13, unranked)));
  const TypeProto &type = file->model.graph.input.at(0).type;
  EXPECT_EQ(file->model.graph.input[0].name, "x");
  EXPECT_EQ(type.kind, TypeProto::Tensor);
  EXPECT_EQ(type.elemType, INT64);
  ASSERT_TRUE(type.shape);
  ASSERT_EQ(type.shape->size(), 7u);
  EXPECT_EQ((*type.shape)[0].value, 8);
  EXPECT_EQ((*type.shape)[1].value, std::nullopt);
  EXPECT_EQ((*type.shape)[1].param, "seq");
  for (unsigned unknown = 2; unknown < 6; ++unknown) {
    EXPECT_EQ((*type.shape)[unknown].value, std::nullopt) << unknown;
    EXPECT_EQ((*type.shape)[unknown].param, "") << unknown;
  }
  EXPECT_EQ((*type.shape)[6].value, 0);
  EXPECT_TRUE(file->model.graph.output.at(0).type.shape->empty());
  EXPECT_EQ(file->model.graph.valueInfo.at(0).type.shape, std::nullopt);
}

TEST(ModelReader, ReadsTypesOfOtherValues) {
  std::string tensor = message(1, integer(1, FLOAT));
  auto readKind = [&](const std::string &type) {
    return read(model(message(11, message(2, type))))->model.graph.input.at(0).type;
  };
  EXPECT_EQ(readKind(message(4, message(1, tensor))).kind, TypeProto::Sequence);
  EXPECT_EQ(readKind(message(4, message(1, tensor))).element->elemType, FLOAT);
  EXPECT_EQ(readKind(message(9, message(1, message(4, message(1, tensor))))).element->element->elemType, FLOAT);
  EXPECT_EQ(readKind(message(5, integer(1, INT64) + message(2, tensor))).element->kind, TypeProto::Tensor);
  EXPECT_EQ(readKind(message(8, integer(1, FLOAT))).kind, TypeProto::SparseTensor);
  EXPECT_EQ(readKind("").kind, TypeProto::None);
}

TEST(ModelReader, ReadsTensorsWithoutTheirElements) {
  std::string entry = message(13, text(1, "location") + text(2, "w.bin"));
  std::string external = tensorHead("w", FLOAT16, {4, 5}) + entry + integer(14, 1);
  std::string typed = tensorHead("t", INT32, {3}) + packed(5, {1, 2}) + integer(5, 3);
  auto file = read(model(message(5, external) + message(5, typed) + message(5, message(3, ""))));
  const auto &initializers = file->model.graph.initializer;
  EXPECT_EQ(initializers.at(0).dims, (std::vector<int64_t>{4, 5}));
  EXPECT_TRUE(initializers[0].isExternal);
  EXPECT_EQ(initializers[0].externalData.at(0).value, "w.bin");
  EXPECT_EQ(initializers.at(1).chunks.size(), 2u);
  EXPECT_EQ(initializers[1].chunks[1].field, TensorProto::Int32Data);
  EXPECT_FALSE(initializers[1].rawData);
  EXPECT_TRUE(initializers.at(2).hasSegment);
}

TEST(ModelReader, ReadsFunctions) {
  std::string function = text(1, "f") + text(4, "x") + text(5, "y") + text(6, "alpha") + message(7, text(4, "Relu")) +
                         message(9, text(1, "") + integer(2, 17)) + text(10, "custom") +
                         message(11, text(1, "beta") + integer(3, 1)) + text(13, "o");
  auto file = read(model("") + message(25, function));
  const FunctionProto &read = file->model.functions.at(0);
  EXPECT_EQ(read.name, "f");
  EXPECT_EQ(read.domain, "custom");
  EXPECT_EQ(read.overload, "o");
  EXPECT_EQ(read.input, std::vector<llvm::StringRef>{"x"});
  EXPECT_EQ(read.output, std::vector<llvm::StringRef>{"y"});
  EXPECT_EQ(read.attribute, std::vector<llvm::StringRef>{"alpha"});
  EXPECT_EQ(read.attributeProto.at(0).name, "beta");
  EXPECT_EQ(read.node.at(0).opType, "Relu");
  EXPECT_EQ(read.opsetImport.at(0).version, 17);
}

//===--- Devices ------------------------------------------------------------===//

TEST(ModelReader, ReadsDevices) {
  std::string dim = message(4, integer(1, -1) + message(2, integer(1, 8) + integer(3, 2)) + message(2, text(2, "n")));
  std::string spec =
      message(2, text(1, "x") + integer(2, 3) + integer(2, -1) + message(3, integer(1, -1) + integer(2, 0)) + dim);
  auto file = read(integer(1, 11) + message(8, integer(2, 21)) +
                   message(7, message(1, message(10, text(1, "pair") + spec + integer(3, 1)))) +
                   message(26, text(1, "pair") + integer(2, 4) + text(3, "a")));
  EXPECT_EQ(file->notes, std::vector<std::string>{});
  const DeviceConfigurationProto &configuration = file->model.configuration.at(0);
  EXPECT_EQ(configuration.name, "pair");
  EXPECT_EQ(configuration.numDevices, 4);
  EXPECT_EQ(configuration.device, std::vector<llvm::StringRef>{"a"});
  const NodeDeviceConfigurationProto &told = file->model.graph.node.at(0).deviceConfigurations.at(0);
  EXPECT_EQ(told.configurationId, "pair");
  EXPECT_EQ(told.pipelineStage, 1);
  const ShardingSpecProto &read = told.shardingSpec.at(0);
  EXPECT_EQ(read.tensorName, "x");
  EXPECT_EQ(read.device, (std::vector<int64_t>{3, -1}));
  EXPECT_EQ(read.indexToDeviceGroupMap.at(0).key, -1);
  EXPECT_EQ(read.indexToDeviceGroupMap.at(0).value, std::vector<int64_t>{0});
  EXPECT_EQ(read.shardedDim.at(0).axis, -1);
  EXPECT_EQ(read.shardedDim.at(0).simpleSharding.at(0).dimValue, 8);
  EXPECT_EQ(read.shardedDim.at(0).simpleSharding.at(0).numShards, 2);
  EXPECT_EQ(read.shardedDim.at(0).simpleSharding.at(1).dimParam, "n");
}

//===--- What is left out leaves a note -------------------------------------===//

TEST(ModelReader, NotesWhatItSkips) {
  std::string annotated = message(1, message(10, text(1, "config")));
  auto file = read(integer(1, 99) + message(7, annotated + annotated + integer(77, 5)) + message(8, integer(2, 21)) +
                   message(20, "") + message(26, text(1, "config")) + text(99, "?"));
  EXPECT_EQ(file->notes, (std::vector<std::string>{"ir_version is 99, newer than 13, the newest known one",
                                                   "2 unknown fields were skipped, the first is graph field 77"}));
  EXPECT_EQ(file->model.trainingInfo.size(), 1U);
}

TEST(ModelReader, SparseInitializersAreNamed) {
  auto file = read(model(message(15, message(1, tensorHead("sparse", FLOAT, {3})) +
                                         message(2, tensorHead("", INT64, {3})) + integer(3, 7) + integer(3, 8))));
  ASSERT_EQ(file->model.graph.sparseInitializer.size(), 1u);
  const SparseTensorProto &sparse = file->model.graph.sparseInitializer.front();
  EXPECT_EQ(sparse.values.name, "sparse");
  EXPECT_EQ(sparse.indices.dataType, INT64);
  EXPECT_EQ(sparse.dims, (std::vector<int64_t>{7, 8}));
}

//===--- The folder of external data ----------------------------------------===//

TEST(ModelReader, KnowsItsFolder) {
  TempFolder folder;
  auto file = readModel(folder.write("m.onnx", model("")));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->getFolder(), folder.getPath());
  EXPECT_EQ(read(model(""))->getFolder(), "");
}

} // namespace
