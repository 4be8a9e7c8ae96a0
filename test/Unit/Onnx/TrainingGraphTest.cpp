//===- TrainingGraphTest.cpp - a model's graph and its algorithm's --------===//
#include "cleave/Onnx/TrainingGraph.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace cleave;
using namespace cleave::onnx;

namespace {

ValueInfoProto value(llvm::StringRef name) { return {name, {}}; }

TensorProto makeTensor(llvm::StringRef name) {
  TensorProto tensor;
  tensor.name = name;
  return tensor;
}

/// y of x and W; an algorithm that makes W1 of these and T1 of T.
ModelProto makeTrainingModel() {
  ModelProto model;
  model.graph.input = {value("x")};
  model.graph.output = {value("y")};
  model.graph.initializer = {makeTensor("W")};
  TrainingInfoProto &info = model.trainingInfo.emplace_back();
  info.algorithm.input = {value("t")};
  info.algorithm.output = {value("loss"), value("W1"), value("T1")};
  info.algorithm.initializer = {makeTensor("T")};
  info.algorithm.node.emplace_back();
  info.updateBinding = {{"W", "W1"}, {"T", "T1"}};
  return model;
}

std::string getErrorOf(ModelProto model) {
  llvm::Expected<TrainingStep> step = joinTraining(model);
  return step ? "" : llvm::toString(step.takeError());
}

TEST(TrainingGraph, ListsAreJoinedInTheOrderOfTheStandard) {
  ModelProto model = makeTrainingModel();
  llvm::Expected<TrainingStep> step = joinTraining(model);
  ASSERT_TRUE(bool(step));
  EXPECT_EQ(model.graph.input.at(1).name, "t");
  EXPECT_EQ(model.graph.initializer.at(1).name, "T");
  EXPECT_EQ(model.graph.output.size(), 4U);
  EXPECT_EQ(step->modelOutputs, 1U);
  ASSERT_EQ(step->states.size(), 2U);
  EXPECT_TRUE(step->states[0].isOfModel);
  EXPECT_FALSE(step->states[1].isOfModel);
  EXPECT_EQ(step->states[1].next, "T1");
}

/// Rule 3 of onnx.proto: an output of the model will do.
TEST(TrainingGraph, AStateMayBecomeAnOutputOfTheModel) {
  ModelProto model = makeTrainingModel();
  model.trainingInfo[0].updateBinding[0].value = "y";
  EXPECT_EQ(getErrorOf(model), "");
}

TEST(TrainingGraph, BindingsAreChecked) {
  ModelProto model = makeTrainingModel();
  model.trainingInfo[0].updateBinding[0].key = "w";
  EXPECT_EQ(getErrorOf(model), "training_info[0].update_binding: 'w' is not an initializer of the model or of its "
                               "algorithm; did you mean 'W' or 'T'?");
  model.trainingInfo[0].updateBinding[0] = {"W", "W2"};
  EXPECT_EQ(getErrorOf(model),
            "training_info[0].update_binding: 'W' becomes 'W2', which is not an output of the algorithm "
            "or the model; did you mean 'W1'?");
  model.trainingInfo[0].updateBinding = {{"W", "W1"}, {"W", "W1"}};
  EXPECT_EQ(getErrorOf(model), "training_info[0].update_binding: 'W' is bound twice");
  model.trainingInfo[0].updateBinding.clear();
  EXPECT_EQ(getErrorOf(model), "training_info binds nothing: no 'update_binding' says what a step changes");
}

NodeProto makeNode(llvm::StringRef name, std::vector<llvm::StringRef> input, llvm::StringRef output) {
  NodeProto node;
  node.name = name;
  node.opType = "Sum";
  node.input = std::move(input);
  node.output = {output};
  return node;
}

/// A second algorithm next to `makeTrainingModel`'s: of the same names, with U of its own, which becomes U1.
TrainingInfoProto &addAlgorithm(ModelProto &model) {
  model.graph.node = {makeNode("n", {"x", "W"}, "y"), makeNode("free", {"x"}, "z")};
  model.trainingInfo[0].algorithm.node = {makeNode("step", {"y", "t", "W"}, "W1"), makeNode("", {"T"}, "T1"),
                                          makeNode("", {"y"}, "loss")};
  TrainingInfoProto &info = model.trainingInfo.emplace_back();
  info.algorithm.input = {value("t")};
  info.algorithm.initializer = {makeTensor("U")};
  info.algorithm.output = {value("loss"), value("U1")};
  info.algorithm.node = {makeNode("step", {"y", "z", "t"}, "loss"), makeNode("", {"loss", "U"}, "U1")};
  info.updateBinding = {{"U", "U1"}};
  return info;
}

std::vector<std::string> describeNodes(const ModelProto &model) {
  std::vector<std::string> lines;
  for (const NodeProto &node : model.graph.node)
    lines.push_back(node.output.front().str() + " = " + node.name.str() + "(" + llvm::join(node.input, ", ") + ")");
  return lines;
}

TEST(TrainingGraph, ALaterAlgorithmReadsWhatHasChanged) {
  ModelProto model = makeTrainingModel();
  addAlgorithm(model);
  llvm::Expected<TrainingStep> step = joinTraining(model);
  ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
  // What reads no changed weight is there once.
  EXPECT_EQ(describeNodes(model),
            (std::vector<std::string>{"y = n(x, W)", "z = free(x)", "W1 = step(y, t, W)", "T1 = (T)", "loss = (y)",
                                      "algorithm1/y = algorithm1/n(x, W1)",
                                      "algorithm1/loss = step(algorithm1/y, z, t)", "U1 = (algorithm1/loss, U)"}));
  EXPECT_EQ(model.graph.input.size(), 2U);
  ASSERT_EQ(step->states.size(), 3U);
  EXPECT_EQ(step->states[2].next, "U1");
  // y | loss, W1, T1 | algorithm1/loss, U1
  EXPECT_EQ(step->modelOutputs, 1U);
  EXPECT_EQ(step->firstOutputs, 4U);
  EXPECT_EQ(model.graph.output.at(4).name, "algorithm1/loss");
}

/// Rule 3 again: it is the output that the model has by then.
TEST(TrainingGraph, AStateOfALaterAlgorithmBecomesTheModelsOutput) {
  ModelProto model = makeTrainingModel();
  addAlgorithm(model).updateBinding = {{"U", "y"}};
  llvm::Expected<TrainingStep> step = joinTraining(model);
  ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
  EXPECT_EQ(step->states[2].next, "algorithm1/y");
  EXPECT_EQ(llvm::count_if(model.graph.output, [](const auto &output) { return output.name == "algorithm1/y"; }), 1);
}

/// A body reads the weight; what it calls W itself is another thing.
TEST(TrainingGraph, BodiesReadWhatHasChanged) {
  ModelProto model = makeTrainingModel();
  addAlgorithm(model);
  auto makeBody = [](std::vector<NodeProto> nodes) {
    AttributeProto attr;
    attr.name = "body";
    attr.type = AttributeProto::Graph;
    GraphProto graph;
    graph.node = std::move(nodes);
    graph.output = {value(graph.node.back().output.front())};
    attr.g = std::make_shared<GraphProto>(graph);
    return attr;
  };
  model.graph.node[0].input = {"x"};
  model.graph.node[0].attribute = {makeBody({makeNode("", {"W"}, "r")})};
  model.graph.node[1].attribute = {makeBody({makeNode("", {"x"}, "W"), makeNode("", {"W"}, "r")})};
  ASSERT_TRUE(bool(joinTraining(model)));
  ASSERT_EQ(model.graph.node.size(), 8U);
  EXPECT_EQ(model.graph.node[0].attribute[0].g->node[0].input[0], "W");
  EXPECT_EQ(model.graph.node[5].attribute[0].g->node[0].input[0], "W1");
}

/// Through a weight that was changed no gradient goes to what it was computed of.
TEST(TrainingGraph, GradientsEndAtWhatHasChanged) {
  ModelProto model = makeTrainingModel();
  NodeProto &node = addAlgorithm(model).algorithm.node.front();
  node.opType = "Gradient";
  node.domain = "ai.onnx.preview.training";
  AttributeProto xs, y;
  xs.name = "xs", xs.type = AttributeProto::Strings, xs.strings = {"z"};
  y.name = "y", y.type = AttributeProto::String, y.s = "y";
  node.attribute = {xs, y};
  node.input = {"z"};
  llvm::Expected<TrainingStep> step = joinTraining(model);
  ASSERT_TRUE(bool(step)) << llvm::toString(step.takeError());
  const NodeProto &joined = model.graph.node.at(6);
  ASSERT_EQ(joined.attribute.size(), 3U);
  EXPECT_EQ(joined.attribute[1].s, "algorithm1/y");
  EXPECT_EQ(joined.attribute[2].name, "zs");
  EXPECT_EQ(joined.attribute[2].strings, std::vector<llvm::StringRef>{"W1"});
  EXPECT_EQ(joined.input, (std::vector<llvm::StringRef>{"z", "W1"}));
}

TEST(TrainingGraph, AlgorithmsDoNotSeeEachOther) {
  ModelProto model = makeTrainingModel();
  addAlgorithm(model).algorithm.node[0].input = {"W1"};
  EXPECT_EQ(getErrorOf(model), "training_info[1].algorithm reads 'W1', which is an algorithm's before it: each has the "
                               "model and its own");
}

/// An instance that initializes alone is there next to the one that trains.
TEST(TrainingGraph, AnInstanceMayInitializeAlone) {
  ModelProto model = makeTrainingModel();
  TrainingInfoProto &second = model.trainingInfo.emplace_back();
  second.initialization.output = {value("W0")};
  second.initializationBinding = {{"W", "W0"}};
  EXPECT_EQ(getErrorOf(model), "");
  second.updateBinding = {{"W", "y"}};
  EXPECT_EQ(getErrorOf(model), "training_info[1].update_binding: 'W' is bound twice");
}

} // namespace
