//===- ArtifactsTest.cpp - what onnxruntime trains with -------------------===//
//
// Of the folders that onnxruntime-training has made (test/Training/Artifacts/make.py, which says what is asked of it).
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/Artifacts.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace cleave;
using namespace cleave::onnx;

namespace {

Artifacts readArtifactsOf(const std::string &name) {
  llvm::Expected<Artifacts> artifacts = readArtifacts(CLEAVE_ARTIFACTS "/" + name);
  EXPECT_TRUE(bool(artifacts));
  return artifacts ? std::move(*artifacts) : (llvm::consumeError(artifacts.takeError()), Artifacts());
}

std::string readBytes(const std::string &name) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file =
      MappedFile::open(CLEAVE_ARTIFACTS "/" + name + "/checkpoint");
  EXPECT_TRUE(bool(file));
  return file ? (*file)->getBytes().str() : (llvm::consumeError(file.takeError()), std::string());
}

TEST(Artifacts, SayWhatIsTrainedAndHow) {
  Artifacts mlp = readArtifactsOf("mlp");
  EXPECT_EQ(mlp.trained, (std::vector<std::string>{"fc1.weight", "fc2.weight"}));
  ASSERT_TRUE(mlp.optimizer);
  EXPECT_EQ(mlp.optimizer->kind, OrtOptimizer::Kind::HfAdamW);
  EXPECT_EQ(mlp.optimizer->epsilon, 1e-6);
  EXPECT_EQ(mlp.optimizer->decay, 0.05); // written as a float, and meant so
  EXPECT_TRUE(mlp.optimizer->correctsBias);
  EXPECT_FALSE(mlp.optimizer->clip);
  EXPECT_EQ(mlp.checkpoint.weights.size(), 3U);
  EXPECT_EQ(mlp.checkpoint.weights["fc1.bias"].shape, (std::vector<int64_t>{8})); // frozen, and there
  Artifacts cnn = readArtifactsOf("cnn");
  ASSERT_TRUE(cnn.optimizer);
  EXPECT_EQ(cnn.optimizer->kind, OrtOptimizer::Kind::Sgd);
  EXPECT_EQ(cnn.optimizer->clip, std::optional(0.5));
  Artifacts attention = readArtifactsOf("attention");
  ASSERT_TRUE(attention.optimizer);
  EXPECT_FALSE(attention.optimizer->correctsBias);
  EXPECT_EQ(attention.optimizer->betas[0], 0.8);
  EXPECT_EQ(attention.trained.size(), 6U);
}

/// What is read of a checkpoint with one byte changed: an error, or weights whose bytes are all there.
void readChanged(std::string bytes, size_t at, uint8_t by) {
  bytes[at] = char(uint8_t(bytes[at]) ^ by);
  llvm::Expected<OrtCheckpoint> checkpoint = readOrtCheckpoint(MappedFile::fromMemory("checkpoint", std::move(bytes)));
  if (!checkpoint)
    return llvm::consumeError(checkpoint.takeError());
  unsigned sum = 0;
  for (const auto &entry : checkpoint->weights)
    for (char byte : entry.second.bytes)
      sum += uint8_t(byte);
  EXPECT_GE(sum, 0U);
}

TEST(Artifacts, ChangedBytesAreAnErrorOrOtherWeights) {
  std::string bytes = readBytes("cnn");
  for (size_t at = 0; at < bytes.size(); ++at)
    for (uint8_t by : {0x01, 0x7f, 0x80, 0xff})
      readChanged(bytes, at, by);
}

/// The last bytes fill the last word up.
TEST(Artifacts, TruncatedFilesAreErrors) {
  std::string bytes = readBytes("mlp");
  for (size_t size = 0; size + 4 < bytes.size(); ++size) {
    llvm::Expected<OrtCheckpoint> checkpoint =
        readOrtCheckpoint(MappedFile::fromMemory("checkpoint", bytes.substr(0, size)));
    EXPECT_FALSE(bool(checkpoint)) << size;
    if (!checkpoint)
      llvm::consumeError(checkpoint.takeError());
  }
}

} // namespace
