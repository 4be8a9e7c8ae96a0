//===- LibraryTest.cpp - what commands do, as values ----------------------===//
//
// One set of options for all of them. What is expected of a check is arithmetic: what is added to one element is the error.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Bench.h"
#include "cleave/Compiler/CheckOutputs.h"
#include "cleave/Compiler/Compile.h"
#include "cleave/Compiler/FindPlan.h"
#include "cleave/Compiler/Run.h"
#include "cleave/Compiler/Schedule.h"

#include "cleave/Program/File.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Interruption.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace cleave;

namespace {

/// Two products, the rows of the first on two ranks.
constexpr llvm::StringLiteral kChain = R"(
#rows = #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}, {}]>
func.func @main(%a: tensor<8x4xf32, #rows> {nn.name = "a"}, %b: tensor<4x4xf32>) -> (tensor<8x4xf32> {nn.name = "y"}) {
  %0 = nn.einsum %a, %b "ij,jk->ik" : (tensor<8x4xf32, #rows>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.einsum %0, %b "ij,jk->ik" : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
)";

/// The same without a sharding.
constexpr llvm::StringLiteral kModel = R"(
func.func @main(%a: tensor<8x4xf32> {nn.name = "a"}, %b: tensor<4x4xf32>) -> (tensor<8x4xf32> {nn.name = "y"}) {
  %0 = nn.einsum %a, %b "ij,jk->ik" : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.einsum %0, %b "ij,jk->ik" : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
)";

/// Two feed-forwards that are alike, and one that is not.
constexpr llvm::StringLiteral kLayers = R"(
func.func @main(%x: tensor<8x64xf32> {nn.name = "x"}, %a: tensor<64x256xf32> {nn.name = "a", nn.parameter},
                %b: tensor<256x64xf32> {nn.name = "b", nn.parameter}, %c: tensor<64x256xf32> {nn.name = "c", nn.parameter},
                %d: tensor<256x64xf32> {nn.name = "d", nn.parameter}, %e: tensor<64x96xf32> {nn.name = "e", nn.parameter})
    -> (tensor<8x96xf32> {nn.name = "y"}) {
  %0 = nn.einsum %x, %a "ij,jk->ik" : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
  %1 = nn.exp %0 : (tensor<8x256xf32>) -> tensor<8x256xf32>
  %2 = nn.einsum %1, %b "ij,jk->ik" : (tensor<8x256xf32>, tensor<256x64xf32>) -> tensor<8x64xf32>
  %3 = nn.einsum %2, %c "ij,jk->ik" : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
  %4 = nn.exp %3 : (tensor<8x256xf32>) -> tensor<8x256xf32>
  %5 = nn.einsum %4, %d "ij,jk->ik" : (tensor<8x256xf32>, tensor<256x64xf32>) -> tensor<8x64xf32>
  %6 = nn.einsum %5, %e "ij,jk->ik" : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
  return %6 : tensor<8x96xf32>
}
)";

constexpr llvm::StringLiteral kSeveral = R"(
func.func @first(%a: tensor<2xf32> {nn.name = "a"}) -> (tensor<2xf32> {nn.name = "y"}) {
  return %a : tensor<2xf32>
}
func.func @second(%b: tensor<3xf32> {nn.name = "b"}) -> (tensor<3xf32> {nn.name = "z"}) {
  return %b : tensor<3xf32>
}
)";

/// A folder with a model in it, that is gone after the test.
class LibraryTest : public ::testing::Test {
protected:
  LibraryTest() { llvm::sys::fs::createUniqueDirectory("library", folder); }
  ~LibraryTest() override { llvm::sys::fs::remove_directories(folder); }

  std::string getPath(llvm::StringRef name) const {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  CompileOptions write(llvm::StringRef text) const {
    CompileOptions options;
    options.model = getPath("model.mlir");
    llvm::cantFail(writeFileAtomically(options.model, [&](llvm::raw_ostream &os) {
      os << text;
      return llvm::Error::success();
    }));
    return options;
  }

  llvm::SmallString<128> folder;
};

TEST_F(LibraryTest, ChecksEachOutput) {
  Compilation compilation(write(kChain));
  std::optional<CheckResult> checked = checkModel(compilation);
  ASSERT_TRUE(checked);
  EXPECT_TRUE(checked->isRight());
  EXPECT_EQ(checked->report.ranks, 2);
  ASSERT_EQ(checked->outputs.size(), 1u);
  const OutputCheck &output = checked->outputs.front();
  EXPECT_EQ(output.name, "y");
  EXPECT_EQ(output.shape, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(output.getVerdict(), Verdict::Ok);
  EXPECT_GT(output.scale, 0);
  EXPECT_LT(output.difference.largest, 1e-4 * output.scale);
  EXPECT_TRUE(output.index.empty());
  EXPECT_GT(output.tolerance.rtol, 0);
}

// A program of both ranks, and what is asked for instead of the default tolerances.
TEST_F(LibraryTest, ChecksPrograms) {
  Compilation compilation(write(kChain));
  RunOptions how;
  how.executor = ExecutorKind::Program;
  how.rtol = 0.25;
  std::optional<CheckResult> checked = checkModel(compilation, how);
  ASSERT_TRUE(checked && checked->outputs.size() == 1);
  EXPECT_TRUE(checked->isRight());
  EXPECT_EQ(checked->outputs.front().tolerance.rtol, 0.25);
}

// Of a program in memory: as many calls as asked for, and where the time of rank 0 goes, longest first.
TEST_F(LibraryTest, TimesCalls) {
  Compilation compilation(write(kChain));
  std::unique_ptr<Bench> bench = Bench::create(compilation, {/*seed=*/0, /*calls=*/4});
  ASSERT_TRUE(bench);
  llvm::Expected<BenchResult> result = bench->run();
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(result->ranks, 2u);
  EXPECT_EQ(result->runs.size(), 4u);
  EXPECT_GT(result->peakBytes, 0u);
  ASSERT_FALSE(result->commands.empty());
  EXPECT_TRUE(llvm::is_sorted(result->commands, [](auto &a, auto &b) { return a.seconds > b.seconds; }));
  EXPECT_GT(result->commands.back().seconds, 0);
  EXPECT_EQ(getMedian({3, 1, 2}), 2);
  EXPECT_EQ(getMedian({4, 1, 2, 3}), 2.5);
}

// On devices that this machine plays: an option says so, and the environment stays as it is, for the caller's children too.
TEST_F(LibraryTest, PlaysDevices) {
  CompileOptions options = write(kChain);
  options.target = "cuda:emulated";
  setenv("CLEAVE_CUDA_RUNTIME", CLEAVE_CUDA_RUNTIME, /*overwrite=*/1); // it does not lie beside the test
  Compilation compilation(options);
  RunOptions how;
  how.executor = ExecutorKind::Program;
  std::optional<CheckResult> checked = checkModel(compilation, how);
  ASSERT_TRUE(checked) << compilation.getDiagnostics().front().message;
  EXPECT_TRUE(checked->isRight());
  EXPECT_EQ(getenv("CLEAVE_CUDA_LIBRARY"), nullptr);
  EXPECT_EQ(getenv("CLEAVE_EMULATION_DEVICES"), nullptr);
  unsetenv("CLEAVE_CUDA_RUNTIME");
}

TEST_F(LibraryTest, ChecksNothingWithoutRanks) {
  Compilation compilation(write(kModel));
  EXPECT_FALSE(checkModel(compilation));
  EXPECT_EQ(compilation.getBlame(), Blame::Options);
  ASSERT_EQ(compilation.getDiagnostics().size(), 1u);
  EXPECT_NE(compilation.getDiagnostics().front().message.find("no mesh is given"), std::string::npos);
}

// 3 is added to the element in row 1, column 2, of a tensor whose largest is 8.
TEST_F(LibraryTest, SaysWhereAnOutputDiffers) {
  Compilation compilation(write(R"(
func.func @got(%x: tensor<2x4xf32>) -> (tensor<2x4xf32> {nn.name = "y"}) {
  %c = nn.constant dense<[[0., 0., 0., 0.], [0., 0., 3., 0.]]> : tensor<2x4xf32> -> tensor<2x4xf32>
  %y = nn.add %x, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @want(%x: tensor<2x4xf32>) -> (tensor<2x4xf32> {nn.name = "y"}) {
  return %x : tensor<2x4xf32>
}
)"));
  ASSERT_TRUE(compilation.load());
  auto got = compilation.getModule().lookupSymbol<mlir::func::FuncOp>("got");
  auto want = compilation.getModule().lookupSymbol<mlir::func::FuncOp>("want");
  auto type = mlir::cast<mlir::RankedTensorType>(got.getArgumentTypes().front());
  float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
  auto attr = mlir::DenseElementsAttr::get(type, llvm::ArrayRef(numbers));
  llvm::SmallVector<reference::Tensor> inputs{*reference::Tensor::fromAttr(attr)}, onRanks, onDevice;
  ASSERT_TRUE(succeeded(reference::runGlobal(got, inputs, onRanks)));
  ASSERT_TRUE(succeeded(reference::runGlobal(want, inputs, onDevice)));
  std::vector<OutputCheck> outputs = checkOutputs({got, want, inputs, onRanks, onDevice, std::nullopt, std::nullopt});
  ASSERT_EQ(outputs.size(), 1u);
  const OutputCheck &output = outputs.front();
  EXPECT_EQ(output.getVerdict(), Verdict::Differs);
  EXPECT_EQ(output.difference.largest, 3);
  EXPECT_EQ(output.scale, 8);
  EXPECT_EQ(output.index, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(output.onRanks, "10");
  EXPECT_EQ(output.onDevice, "7");
}

TEST_F(LibraryTest, CompilesIntoAFile) {
  Compilation compilation(write(kChain));
  std::optional<Report> report = compileModel(compilation, getPath("m.cleave"));
  ASSERT_TRUE(report && report->program);
  EXPECT_EQ(report->ranks, 2);
  EXPECT_EQ(report->program->precision, "f32");
  EXPECT_GT(report->program->kernels, 0);
  auto file = llvm::cantFail(MappedFile::open(getPath("m.cleave")));
  program::Result<program::Program> program = program::readProgram(file->getBytes());
  ASSERT_TRUE(program);
  EXPECT_EQ(program->ranks, 2u);
  EXPECT_EQ(int64_t(program->kernels.size()), report->program->kernels);
}

TEST_F(LibraryTest, RefusesATargetThatIsNone) {
  for (auto [target, said] :
       {std::pair("cuda:sm_1", "--target cuda:sm_1"), std::pair("tpu", "expected host, or cuda:")}) {
    CompileOptions options = write(kChain);
    options.target = target;
    Compilation compilation(options);
    EXPECT_FALSE(compileModel(compilation, getPath("m.cleave")));
    EXPECT_EQ(compilation.getBlame(), Blame::Options);
    ASSERT_EQ(compilation.getDiagnostics().size(), 1u);
    EXPECT_NE(compilation.getDiagnostics().front().message.find(said), std::string::npos);
    EXPECT_FALSE(llvm::sys::fs::exists(getPath("m.cleave")));
  }
}

TEST_F(LibraryTest, NarrowsWhereOptionsSaySo) {
  CompileOptions options = write(kChain);
  options.precision = Precision::BF16;
  Compilation compilation(options);
  std::optional<Report> report = compileModel(compilation, getPath("m.cleave"));
  ASSERT_TRUE(report && report->program);
  EXPECT_EQ(report->program->precision, "bf16");
}

TEST_F(LibraryTest, PredictsWithoutAMeshForOneDevice) {
  CompileOptions options = write(kModel);
  options.cluster = "8xH100-nvlink";
  Compilation compilation(options);
  std::optional<Report> report = predictModel(compilation);
  ASSERT_TRUE(report && report->time);
  EXPECT_EQ(report->ranks, 1);
  EXPECT_EQ(report->getWireBytes(), 0);
  EXPECT_GT(report->time->getNs(), 0);
  EXPECT_FALSE(report->program);
}

// One product on each of two ranks. That of the first is made again, for it takes 2 us to start and a message 5 us.
/// All that is said of what was looked at.
std::vector<std::string> describeCells(const FoundPlan &found) {
  std::vector<std::string> texts;
  for (const std::vector<PlanCell> *cells : {&found.cells, &found.front})
    for (const PlanCell &cell : *cells)
      texts.push_back(llvm::formatv("{0} {1}: {2} ns, {3} ns, {4} B, {5} B, {6} B {7}\n{8}", cell.mesh,
                                    kVerdictWords[int(cell.verdict)], cell.ns, cell.spanNs, cell.peakBytes,
                                    cell.storedBytes, cell.sentBytes, cell.reason, cell.text));
  return texts;
}

// What was decided of a mesh, at a price of memory or of a plan once before is looked up; the answer must be what it is where nothing is.
TEST_F(LibraryTest, FindsTheSamePlanWithWhatItRemembersAndWithout) {
  CompileOptions options = write(kLayers);
  options.cluster = "8xH100-nvlink";
  auto find = [&](PlanRequest request, bool forgets) {
    Compilation compilation(options);
    request.forgets = forgets;
    std::optional<FoundPlan> found = findPlan(compilation, request);
    EXPECT_TRUE(found && compilation.getDiagnostics().empty());
    return found;
  };
  std::optional<FoundPlan> free = find({.devices = 8}, false);
  ASSERT_TRUE(free);
  int64_t half = free->getBest().peakBytes / 2;
  for (int64_t devices : {4, 6})
    for (int64_t limit : {int64_t(0), half}) {
      PlanRequest request{.devices = devices, .memoryBytes = limit, .wantsFront = true};
      std::optional<FoundPlan> known = find(request, false), anew = find(request, true);
      ASSERT_TRUE(known && anew);
      EXPECT_EQ(describeCells(*known), describeCells(*anew));
      EXPECT_EQ(known->solves, anew->solves);
      EXPECT_GT(known->solves, 4u);
    }
}

// Asked for when the search has begun: neither a phase nor the first cell has seen it.
TEST_F(LibraryTest, EndsASearchThatNobodyWaitsFor) {
  CompileOptions options = write(kLayers);
  options.cluster = "8xH100-nvlink";
  std::atomic<bool> asked = false;
  Compilation compilation(options);
  compilation.tellProgress([&](const std::string &text) { asked = asked || text == "plan"; });
  {
    Interruption interruption(asked);
    EXPECT_FALSE(findPlan(compilation, {.devices = 8}));
  }
  ASSERT_EQ(compilation.getDiagnostics().size(), 1u);
  EXPECT_EQ(compilation.getDiagnostics().front().message, "interrupted");
  EXPECT_EQ(compilation.getBlame(), Blame::Run);
  EXPECT_FALSE(Interruption::isAsked());
}

TEST_F(LibraryTest, SchedulesTheStagesOfAModel) {
  Compilation compilation(write(kModel));
  ScheduleOptions options;
  options.name = "gpipe";
  options.ranks = 2;
  options.microbatches = 4;
  std::optional<ScheduleResult> made = scheduleModel(compilation, options);
  ASSERT_TRUE(made && made->split);
  ASSERT_EQ(made->split->stages.size(), 2u);
  EXPECT_EQ(made->split->stages.front().numOps, 1);
  EXPECT_EQ(made->split->stages.front().ns, 2000);
  EXPECT_TRUE(made->split->stages.front().sends.empty());
  EXPECT_EQ(made->table.numRanks, 2);
  EXPECT_GE(made->simulation.makespan, made->bound.makespan);
  EXPECT_GT(made->bound.makespan, 0);
}

// What is wrong with a schedule is a value, or a diagnostic of the model.
TEST_F(LibraryTest, SaysWhatIsWrongWithASchedule) {
  ScheduleOptions options;
  options.name = "zb-v";
  options.ranks = 2;
  OrDiagnostic<ScheduleResult> made = makeSchedule(options);
  ASSERT_TRUE(std::holds_alternative<Diagnostic>(made));
  EXPECT_EQ(std::get<Diagnostic>(made).blame, Blame::Options);
  EXPECT_EQ(std::get<Diagnostic>(made).message, "a schedule by name needs '--microbatches', at least 1");
  Compilation compilation(write(kModel));
  EXPECT_FALSE(scheduleModel(compilation, options));
  EXPECT_EQ(compilation.getBlame(), Blame::Options);
  EXPECT_EQ(compilation.getDiagnostics().size(), 1u);
}

TEST_F(LibraryTest, TakesTheEntryThatIsNamed) {
  CompileOptions options = write(kSeveral);
  Compilation either(options);
  ASSERT_TRUE(either.load());
  EXPECT_FALSE(either.getEntry());
  ASSERT_EQ(either.getDiagnostics().size(), 1u);
  EXPECT_EQ(either.getDiagnostics().front().message, "the module has 2 functions and none is called main: --entry says "
                                                     "which of 'first', 'second' is run");
  options.entry = "second";
  Compilation compilation(options);
  ASSERT_TRUE(compilation.load());
  ASSERT_TRUE(compilation.getEntry());
  EXPECT_EQ(compilation.getEntry().getName(), "second");
  options.entry = "third";
  Compilation none(options);
  EXPECT_FALSE(none.load());
  EXPECT_EQ(none.getBlame(), Blame::Options);
}

} // namespace
