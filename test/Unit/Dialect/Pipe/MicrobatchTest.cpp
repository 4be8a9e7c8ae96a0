//===- MicrobatchTest.cpp - microbatches make what the batch makes --------===//
//
// Recorded outputs of real networks, and whole programs on random inputs, against the program of one microbatch, run for each
// by code of its own (FlatRun.h).
//
//===----------------------------------------------------------------------===//
#include "FlatRun.h"

#include "cleave/Arrays/Npz.h"
#include "cleave/Compiler/Compilation.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace cleave;
using pipe::testing::makePlan;
using pipe::testing::runFlat;
using reference::Tensor;

namespace {

/// False after an error: the module cannot be split.
bool splitBatch(ModuleOp module, int64_t microbatches) {
  spmd::PlanPipeline pipeline;
  pipeline.microbatches = microbatches;
  PassManager manager(module.getContext());
  manager.addPass(pipe::createMicrobatch(makePlan(pipeline)));
  return succeeded(manager.run(module));
}

func::FuncOp getEntry(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

/// Elements compared; 0, after a failure of the test, if one is out of tolerance or NaN.
int64_t expectEqual(ArrayRef<Tensor> got, ArrayRef<Tensor> want, Tolerance tolerance, const std::string &what) {
  EXPECT_EQ(got.size(), want.size()) << what;
  int64_t elements = 0;
  for (auto [index, pair] : llvm::enumerate(llvm::zip(got, want))) {
    auto &[a, b] = pair;
    EXPECT_EQ(a.getShape(), b.getShape()) << what;
    if (a.getShape() != b.getShape())
      return 0;
    Difference difference = compare(a, b, tolerance);
    EXPECT_EQ(difference.position, -1) << what << ", output " << index << ": off by " << difference.largest;
    EXPECT_EQ(difference.nans, 0) << what << ", output " << index;
    elements += difference.position == -1 && difference.nans == 0 ? a.getNumElements() : 0;
  }
  return elements;
}

//===----------------------------------------------------------------------===//
// Real networks
//===----------------------------------------------------------------------===//

struct Network {
  const char *name;
  int64_t batch;    ///< of the recorded inputs
  const char *dims; ///< sizes of a larger batch, where the model leaves them open
  Tolerance tolerance = {1e-4, 1e-5};
};

void PrintTo(const Network &network, std::ostream *os) { *os << network.name; }

/// Not among them: moe_dyn18, whose experts have places for tokens of all samples, and bert_ort, which cannot be imported.
constexpr Network kNetworks[] = {{"bert_dyn18", 2, ""},
                                 {"bert_ts17", 3, "batch=8,seq=5"},
                                 {"gpt2_dyn18", 3, "batch=8,seq=5"},
                                 {"gpt2_fp16", 3, "batch=8,seq=5", {3e-2, 3e-2}},
                                 {"gpt2_kv", 3, "batch=8,past=4,total=5"},
                                 {"gpt2_ts17", 3, "batch=8,seq=5"},
                                 {"llama_bf16", 3, "batch=8,seq=5", {1e-1, 1e-1}},
                                 {"llama_gqa_dyn18", 3, "batch=8,seq=5"},
                                 {"llama_gqa_dyn23", 3, "batch=8,seq=5"},
                                 {"mlp_external", 6, "batch=8"},
                                 {"resnet_ts17", 3, "batch=8"},
                                 {"t5_like_dyn18", 2, ""},
                                 {"unet_dyn18", 2, ""},
                                 {"vit_dyn18", 3, "batch=8"}};

class MicrobatchedNetwork : public ::testing::TestWithParam<Network> {};

/// The arrays `out:NAME` of a network, in the order of the outputs of `func`; bf16 is recorded as f32.
SmallVector<Tensor> readOutputs(func::FuncOp func, const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  EXPECT_TRUE(static_cast<bool>(file));
  SmallVector<Tensor> outputs;
  if (!file)
    return outputs;
  auto arrays = arrays::readNpz({(*file)->getBufferStart(), (*file)->getBufferSize()});
  EXPECT_TRUE(arrays);
  for (unsigned index = 0; arrays && index < func.getNumResults(); ++index) {
    const arrays::NpyArray *array = findArray(*arrays, "out:" + spmd::getResultName(func, index).str());
    EXPECT_TRUE(array && (array->dtype == "f4" || array->dtype == "f2")) << "output " << index;
    if (!array)
      continue;
    Builder builder(func.getContext());
    Type element = array->dtype == "f4" ? Type(builder.getF32Type()) : Type(builder.getF16Type());
    auto owner = std::make_shared<std::vector<char>>(array->data);
    outputs.push_back(Tensor::fromBytes(RankedTensorType::get(array->shape, element), *owner, owner));
  }
  return outputs;
}

TEST_P(MicrobatchedNetwork, makesWhatIsRecorded) {
  const Network &network = GetParam();
  std::string path = std::string(CLEAVE_MODELS) + "/" + network.name;
  int64_t compared = 0;
  for (int64_t microbatches = 2; microbatches <= network.batch; ++microbatches) {
    if (network.batch % microbatches != 0)
      continue;
    CompileOptions options;
    options.model = path + ".onnx";
    options.inputs = path + ".npz";
    Compilation compilation(options);
    ASSERT_TRUE(compilation.load() && compilation.advance(Phase::Canonical));
    func::FuncOp func = getEntry(compilation.getModule());
    llvm::Expected<SmallVector<Tensor>> inputs = readInputs(func, options.inputs);
    ASSERT_TRUE(static_cast<bool>(inputs)) << llvm::toString(inputs.takeError());
    SmallVector<Tensor> recorded = readOutputs(func, options.inputs);
    ASSERT_TRUE(splitBatch(compilation.getModule(), microbatches));
    for (unsigned index = 0; index < func.getNumResults(); ++index)
      EXPECT_EQ(pipe::getResultSplit(func, index), 0) << "output " << index;
    std::optional<SmallVector<Tensor>> outputs = runFlat(func, *inputs);
    ASSERT_TRUE(outputs);
    int64_t elements = expectEqual(*outputs, recorded, network.tolerance, network.name);
    EXPECT_GT(elements, 0);
    compared += elements;
  }
  RecordProperty("elements", std::to_string(compared));
}

/// More microbatches, and microbatches of several samples: against the whole batch, on random inputs.
TEST_P(MicrobatchedNetwork, makesWhatALargeBatchMakes) {
  const Network &network = GetParam();
  CompileOptions options;
  options.model = std::string(CLEAVE_MODELS) + "/" + network.name + ".onnx";
  SmallVector<StringRef> words;
  StringRef(network.dims).split(words, ',', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    ASSERT_FALSE(word.split('=').second.getAsInteger(10, options.dims[word.split('=').first.str()]));
  Compilation compilation(options);
  ASSERT_TRUE(compilation.load() && compilation.advance(Phase::Canonical));
  func::FuncOp whole = getEntry(compilation.getModule());
  SmallVector<Tensor> inputs = drawInputs(whole, 3), want;
  ASSERT_TRUE(succeeded(reference::runGlobal(whole, inputs, want)));
  int64_t batch = inputs.front().getShape().front();
  for (int64_t microbatches = 2; microbatches <= batch; microbatches *= 2) {
    OwningOpRef<ModuleOp> microbatched = compilation.getModule().clone();
    ASSERT_TRUE(splitBatch(*microbatched, microbatches));
    std::optional<SmallVector<Tensor>> got = runFlat(getEntry(*microbatched), inputs);
    ASSERT_TRUE(got && got->size() == want.size());
    for (auto [a, b] : llvm::zip_equal(*got, want)) {
      EXPECT_EQ(a.getType(), b.getType());
      EXPECT_EQ(compare(a, b, network.tolerance).position, -1) << microbatches << " microbatches";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MicrobatchedNetwork, ::testing::ValuesIn(kNetworks),
                         [](const auto &info) { return std::string(info.param.name); });

//===----------------------------------------------------------------------===//
// What real networks do not have
//===----------------------------------------------------------------------===//

/// Reductions of all kinds with an epilogue, whole values with rows for samples, a batch that moves, what is repeated.
constexpr llvm::StringLiteral kProgram = R"(
nn.param @w : tensor<6x5xf32> = dense<0.25> : tensor<6x5xf32>
func.func @main(%x: tensor<8x6xf32> {nn.name = "x"}, %mask: tensor<1x6xf32> {nn.name = "mask"}, %table: tensor<8x6xf32> {nn.name = "table"})
    -> (tensor<8x5xf32>, tensor<f32>, tensor<6xf32>, tensor<6xf32>, tensor<1x6xf32>, tensor<5x5xf32>, tensor<5x8xf32>, tensor<48xf32>, tensor<6x5xf32>, tensor<6xi64>) {
  %w = nn.load @w : tensor<6x5xf32>
  %v = nn.exp %w : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %spread = nn.broadcast %mask : (tensor<1x6xf32>) -> tensor<8x6xf32>
  %i = nn.iota dim 0 start 1 step 2 : tensor<8x1xf32>
  %c = nn.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]> : tensor<8x1xf32> -> tensor<8x1xf32>
  %a = nn.add %x, %spread : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %b = nn.mul %a, %i : (tensor<8x6xf32>, tensor<8x1xf32>) -> tensor<8x6xf32>
  %d = nn.add %b, %c : (tensor<8x6xf32>, tensor<8x1xf32>) -> tensor<8x6xf32>
  %e = nn.mul %d, %table : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %y = nn.einsum %e, %v "ik,kj->ij" : (tensor<8x6xf32>, tensor<6x5xf32>) -> tensor<8x5xf32>
  %mean = nn.reduce mean %y dims [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  %loss = nn.mul %mean, %mean : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %max = nn.reduce max %e dims [0] : (tensor<8x6xf32>) -> tensor<6xf32>
  %prod = nn.reduce prod %x dims [0] : (tensor<8x6xf32>) -> tensor<6xf32>
  %min = nn.reduce min %e dims [0] keep_dims : (tensor<8x6xf32>) -> tensor<1x6xf32>
  %gram = nn.einsum %y, %y "bi,bj->ij" : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<5x5xf32>
  %turned = nn.transpose %y [1, 0] : (tensor<8x5xf32>) -> tensor<5x8xf32>
  %flat = nn.reshape %e : (tensor<8x6xf32>) -> tensor<48xf32>
  %whole = nn.cast %x : (tensor<8x6xf32>) -> tensor<8x6xi64>
  %count = nn.reduce sum %whole dims [0] : (tensor<8x6xi64>) -> tensor<6xi64>
  return %y, %loss, %max, %prod, %min, %gram, %turned, %flat, %v, %count : tensor<8x5xf32>, tensor<f32>, tensor<6xf32>, tensor<6xf32>, tensor<1x6xf32>, tensor<5x5xf32>, tensor<5x8xf32>, tensor<48xf32>, tensor<6x5xf32>, tensor<6xi64>
}
)";

struct MicrobatchTest : ::testing::Test {
  MicrobatchTest() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> parse() { return parseSourceString<ModuleOp>(kProgram, &context); }

  /// Of the program on random inputs, split and changed by `change`: true if it makes what the whole one makes.
  bool agrees(int64_t microbatches, llvm::function_ref<void(func::FuncOp)> change);

  MLIRContext context;
};

bool MicrobatchTest::agrees(int64_t microbatches, llvm::function_ref<void(func::FuncOp)> change) {
  OwningOpRef<ModuleOp> whole = parse(), microbatched = parse();
  EXPECT_TRUE(whole && microbatched && splitBatch(*microbatched, microbatches));
  SmallVector<Tensor> inputs = drawInputs(getEntry(*whole), 7), expected;
  EXPECT_TRUE(succeeded(reference::runGlobal(getEntry(*whole), inputs, expected)));
  change(getEntry(*microbatched));
  std::optional<SmallVector<Tensor>> outputs = runFlat(getEntry(*microbatched), inputs);
  if (!outputs || outputs->size() != expected.size())
    return false;
  return llvm::all_of_zip(*outputs, expected, [](const Tensor &a, const Tensor &b) {
    return a.getType() == b.getType() && compare(a, b, getDefaultTolerance(a.getElementType())).position == -1;
  });
}

TEST_F(MicrobatchTest, accumulatesAndTakesParts) {
  for (int64_t microbatches : {2, 4, 8})
    EXPECT_TRUE(agrees(microbatches, [](func::FuncOp) {})) << microbatches;
}

// The check above can fail: each of these is a mistake that the pass could make.
TEST_F(MicrobatchTest, seesMistakes) {
  auto changeFirst = [&](auto isWanted, auto apply) {
    bool any = false;
    EXPECT_FALSE(agrees(4, [&](func::FuncOp func) {
      for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
        if (!any && isWanted(op)) {
          apply(op);
          any = true;
        }
    }));
    EXPECT_TRUE(any);
  };
  auto isSum = [](Operation &op) { return isa<pipe::AccumulateOp>(op); };
  changeFirst(isSum, [](Operation &op) { cast<pipe::AccumulateOp>(op).setKind(spmd::ReductionKind::Max); });
  auto isShare = [](Operation &op) {
    return isa<nn::MulOp>(op) && op.getResult(0).getType() == op.getOperand(1).getType() &&
           cast<RankedTensorType>(op.getResult(0).getType()).getRank() == 0 &&
           !isa<pipe::AccumulateOp>(op.getOperand(0).getDefiningOp());
  };
  changeFirst(isShare, [](Operation &op) { op.replaceAllUsesWith(ValueRange(op.getOperand(0))); });
  auto isFirstRows = [](Operation &op) { return isa<pipe::PartOp>(op); };
  changeFirst(isFirstRows, [](Operation &op) {
    // All microbatches get the rows of the first.
    OpBuilder builder(&op);
    auto part = cast<pipe::PartOp>(op);
    ArrayRef<int64_t> shape = part.getResult().getType().getShape();
    SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    op.replaceAllUsesWith(nn::SliceOp::create(builder, op.getLoc(), part.getInput(), starts, shape, steps));
    op.erase();
  });
}

} // namespace
