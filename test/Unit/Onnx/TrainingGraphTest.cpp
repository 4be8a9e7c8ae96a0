//===- TrainingGraphTest.cpp - a model's graph and its algorithm's --------===//
#include "cleave/Onnx/TrainingGraph.h"
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

/// An instance that initializes alone stands beside the one that trains.
TEST(TrainingGraph, OneAlgorithmIsTaken) {
  ModelProto model = makeTrainingModel();
  TrainingInfoProto &second = model.trainingInfo.emplace_back();
  second.initialization.output = {value("W0")};
  second.initializationBinding = {{"W", "W0"}};
  EXPECT_EQ(getErrorOf(model), "");
  second.updateBinding = {{"W", "y"}};
  EXPECT_EQ(getErrorOf(model),
            "training_info has several algorithms, the second one is training_info[1]: one is supported");
}

} // namespace
