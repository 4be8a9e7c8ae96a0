//===- CompilationTest.cpp - whose failure an error is --------------------===//
#include "cleave/Compiler/Compilation.h"

#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Export/Onnx/Export.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace cleave;

namespace {

/// A file that is there as long as the test.
class TemporaryModel {
public:
  explicit TemporaryModel(llvm::StringRef text) {
    llvm::sys::fs::createTemporaryFile("model", "mlir", path);
    llvm::cantFail(writeFileAtomically(path, [&](llvm::raw_ostream &os) {
      os << text;
      return llvm::Error::success();
    }));
  }
  ~TemporaryModel() { llvm::sys::fs::remove(path); }

  CompileOptions getOptions() const {
    CompileOptions options;
    options.model = path.str().str();
    return options;
  }

private:
  llvm::SmallString<128> path;
};

constexpr llvm::StringLiteral kProduct = R"(
#rows = #spmd.sharding<#spmd.mesh<["x"=2]>, [{"x"}, {}]>
func.func @main(%a: tensor<8x4xf32, #rows>, %b: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.einsum %a, %b "ij,jk->ik" : (tensor<8x4xf32, #rows>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
)";

/// Gives the product of propagated rows the sharding of columns, which no gate after reshards lets pass.
void turnProduct(mlir::ModuleOp module) {
  auto func = module.lookupSymbol<mlir::func::FuncOp>("main");
  mlir::Operation *product = func.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  mlir::Type columns =
      mlir::parseType(R"(tensor<8x4xf32, #spmd.sharding<#spmd.mesh<["x"=2]>, [{}, {"x"}]>>)", module.getContext());
  ASSERT_TRUE(columns);
  product->getResult(0).setType(columns);
  func.setFunctionType(mlir::FunctionType::get(module.getContext(), func.getArgumentTypes(), columns));
}

TEST(CompilationTest, goesFromPhaseToPhase) {
  TemporaryModel model(kProduct);
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load());
  EXPECT_EQ(compilation.getPhase(), Phase::Annotated);
  EXPECT_TRUE(compilation.hasMesh());
  ASSERT_TRUE(compilation.advance(Phase::Propagated));
  EXPECT_EQ(compilation.getPhase(), Phase::Propagated);
  ASSERT_TRUE(compilation.advance(Phase::Optimized));
  std::optional<Report> report = compilation.makeReport();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks, 2);
  EXPECT_EQ(report->getWireBytes(), 0);
  EXPECT_TRUE(compilation.getDiagnostics().empty());
  EXPECT_EQ(compilation.getBlame(), std::nullopt);
}

constexpr llvm::StringLiteral kRecurrence = R"(
module attributes {spmd.mesh = #spmd.mesh<["x"=2]>} {
  nn.param @w : tensor<1x4x6x6xf32> = dense<0.5> : tensor<1x4x6x6xf32>
  func.func @main(%p: tensor<3x1x4x4x6xf32>, %h: tensor<1x4x6xf32>) -> tensor<3x1x4x6xf32> {
    %w = nn.load @w : tensor<1x4x6x6xf32>
    %0:3 = nn.recurrence lstm %p, %w initial (%h, %h) activations ["sigmoid", "tanh", "tanh"] alphas [0.0, 0.0, 0.0] betas [0.0, 0.0, 0.0] : (tensor<3x1x4x4x6xf32>, tensor<1x4x6x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> (tensor<3x1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>)
    return %0#0 : tensor<3x1x4x6xf32>
  }
}
)";

// In files recurrences stand step by step; the module can be written and run as before.
TEST(CompilationTest, exportsACopyOfWhatIsTakenApart) {
  TemporaryModel model(kRecurrence);
  CompileOptions options = model.getOptions();
  Compilation compilation(options);
  ASSERT_TRUE(compilation.load() && compilation.advance(Phase::Optimized));
  auto print = [&] {
    std::string text;
    llvm::raw_string_ostream(text) << compilation.getModule();
    return text;
  };
  std::string before = print();
  ASSERT_NE(before.find("nn.recurrence"), std::string::npos);
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("export", folder));
  std::optional<onnx::ExportSummary> summary = compilation.exportOnnx(folder, {});
  llvm::sys::fs::remove_directories(folder);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->files, 1);
  EXPECT_EQ(summary->bytes, 4 * 6 * 6 * 4);
  EXPECT_EQ(print(), before);
}

TEST(CompilationTest, blamesTheInputForAFileThatIsNotThere) {
  CompileOptions options;
  options.model = "nowhere.onnx";
  Compilation compilation(options);
  EXPECT_FALSE(compilation.load());
  EXPECT_EQ(compilation.getBlame(), Blame::Input);
  ASSERT_EQ(compilation.getDiagnostics().size(), 1u);
  EXPECT_EQ(compilation.getDiagnostics().front().file, "cleave");
}

TEST(CompilationTest, saysWhereTheTextIsWrong) {
  TemporaryModel model("func.func @main() {\n  nn.nothing\n}\n");
  Compilation compilation(model.getOptions());
  EXPECT_FALSE(compilation.load());
  EXPECT_EQ(compilation.getBlame(), Blame::Input);
  ASSERT_EQ(compilation.getDiagnostics().size(), 1u);
  const Diagnostic &diagnostic = compilation.getDiagnostics().front();
  EXPECT_EQ(diagnostic.line, 2u);
  EXPECT_EQ(diagnostic.column, 3u);
  EXPECT_NE(diagnostic.format().find(":2:3: error: "), std::string::npos);
}

// A phase that fails on what an earlier one made is a bug of ours.
TEST(CompilationTest, blamesUsForAPromiseThatIsBroken) {
  TemporaryModel model(kProduct);
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load() && compilation.advance(Phase::Propagated));
  turnProduct(compilation.getModule());
  EXPECT_FALSE(compilation.advance(Phase::Optimized));
  EXPECT_EQ(compilation.getBlame(), Blame::Bug);
}

// The same in a file that claims to be further than it is.
TEST(CompilationTest, blamesTheInputForAPromiseOfItsOwn) {
  std::string text;
  {
    TemporaryModel model(kProduct);
    Compilation compilation(model.getOptions());
    ASSERT_TRUE(compilation.load() && compilation.advance(Phase::Propagated));
    turnProduct(compilation.getModule());
    llvm::raw_string_ostream(text) << compilation.getModule();
  }
  TemporaryModel model(text);
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load());
  ASSERT_EQ(compilation.getPhase(), Phase::Propagated);
  EXPECT_FALSE(compilation.advance(Phase::Optimized));
  EXPECT_EQ(compilation.getBlame(), Blame::Input);
}

TEST(CompilationTest, blamesWhoIsNamed) {
  std::vector<Diagnostic> told;
  Compilation compilation({}, [&](const Diagnostic &diagnostic) { told.push_back(diagnostic); });
  {
    Compilation::BlameScope running(compilation, Blame::Run);
    mlir::emitError(mlir::UnknownLoc::get(&compilation.getContext())) << "no memory";
  }
  EXPECT_EQ(compilation.getBlame(), Blame::Run);
  mlir::emitWarning(mlir::UnknownLoc::get(&compilation.getContext())) << "odd";
  compilation.fail(makeError("later"));
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[1].format(), ": warning: odd\n");
  EXPECT_EQ(told[2].blame, Blame::Input);
  EXPECT_EQ(compilation.getBlame(), Blame::Run) << "the worst counts";
}

/// Wire bytes of a program that was decided, and its reshards planned, by `costs`; the compiler compares both.
int64_t countBytes(llvm::StringRef text, spmd::CostModel costs) {
  TemporaryModel model(text);
  CompileOptions options = model.getOptions();
  options.sharding.costs = std::move(costs);
  options.sharding.checkBytes = true;
  Compilation compilation(options);
  EXPECT_TRUE(compilation.load() && compilation.advance(Phase::Optimized));
  for (const Diagnostic &diagnostic : compilation.getDiagnostics())
    ADD_FAILURE() << diagnostic.format();
  return compilation.makeReport()->getWireBytes();
}

// Sums over both axes, wanted split over one: scattered first, half of it is reduced over the other. Where beginning a
// collective is dear, one all_reduce of everything is better, though it sends half as much again.
TEST(CompilationTest, plansByTheCostsThatItDecidedBy) {
  constexpr llvm::StringLiteral kSums = R"(
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#sums = #spmd.sharding<#mesh, [{}, {}], partial = {"x": sum, "y": sum}>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
func.func @main(%a: tensor<8x8xf32, #sums>) -> tensor<8x8xf32, #rows> {
  %0 = spmd.constrain %a : tensor<8x8xf32, #sums> to tensor<8x8xf32, #rows>
  return %0 : tensor<8x8xf32, #rows>
}
)";
  spmd::CostModel costs;
  costs.perCollective = 63 * spmd::kCostUnitsPerByte;
  EXPECT_EQ(countBytes(kSums, costs), 128 + 128);
  costs.perCollective = 129 * spmd::kCostUnitsPerByte;
  EXPECT_EQ(countBytes(kSums, costs), 2 * 3 * 256 / 4);
}

// Rows over x, wanted as columns over y and whole: where all links are alike the whole is gathered and sliced. Where x is slow only
// halves go over it, and the whole is gathered from these over y.
TEST(CompilationTest, copiesByTheCostsThatItDecidedBy) {
  constexpr llvm::StringLiteral kCopies = R"(
#mesh = #spmd.mesh<["x"=2, "y"=2]>
#rows = #spmd.sharding<#mesh, [{"x"}, {}]>
#columns = #spmd.sharding<#mesh, [{}, {"y"}]>
#replicated = #spmd.sharding<#mesh, [{}, {}]>
func.func @main(%a: tensor<8x8xf32, #rows>) -> (tensor<8x8xf32, #columns>, tensor<8x8xf32, #replicated>) {
  %0 = spmd.constrain %a : tensor<8x8xf32, #rows> to tensor<8x8xf32, #columns>
  %1 = spmd.constrain %a : tensor<8x8xf32, #rows> to tensor<8x8xf32, #replicated>
  return %0, %1 : tensor<8x8xf32, #columns>, tensor<8x8xf32, #replicated>
}
)";
  spmd::CostModel costs;
  EXPECT_EQ(countBytes(kCopies, costs), 128);
  costs.links = {{100 * spmd::kCostUnitsPerByte, 0}, {spmd::kCostUnitsPerByte, 0}};
  EXPECT_EQ(countBytes(kCopies, costs), 64 + 128);
}

TEST(CompilationTest, doesNotGoBack) {
  TemporaryModel model(kProduct);
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load());
  EXPECT_FALSE(compilation.advance(Phase::Canonical));
  EXPECT_EQ(compilation.getBlame(), Blame::Input);
}

TEST(CompilationTest, readsTheBytecodeThatItWrites) {
  TemporaryModel model(kProduct);
  Compilation first(model.getOptions());
  ASSERT_TRUE(first.load() && first.advance(Phase::Propagated));
  std::string path = model.getOptions().model + ".mlirbc";
  ASSERT_TRUE(first.write(path));
  CompileOptions options;
  options.model = path;
  Compilation second(options);
  ASSERT_TRUE(second.load());
  llvm::sys::fs::remove(path);
  EXPECT_FALSE(second.isOnnx());
  EXPECT_EQ(second.getPhase(), Phase::Propagated);
  ASSERT_TRUE(second.advance(Phase::Optimized));
  EXPECT_EQ(second.makeReport()->ranks, 2);
}

// What is verified while it is printed is there only where it is legal.
TEST(CompilationTest, writesNothingThatIsNotLegal) {
  TemporaryModel model(kProduct);
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load());
  std::string path = model.getOptions().model + ".written.mlir";
  ASSERT_TRUE(compilation.advanceAndWrite(Phase::Propagated, path));
  EXPECT_TRUE(llvm::sys::fs::exists(path));
  llvm::sys::fs::remove(path);
  auto func = compilation.getModule().lookupSymbol<mlir::func::FuncOp>("main");
  mlir::Operation *product = func.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  product->setAttr("equation", mlir::StringAttr::get(product->getContext(), "ij,jk->i"));
  EXPECT_FALSE(compilation.advanceAndWrite(Phase::Propagated, path));
  EXPECT_FALSE(llvm::sys::fs::exists(path));
  EXPECT_EQ(compilation.getBlame(), Blame::Bug);
}

TEST(CompilationTest, hasNoMeshWithoutOne) {
  TemporaryModel model("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }");
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load());
  EXPECT_FALSE(compilation.hasMesh());
  EXPECT_EQ(compilation.getPhase(), Phase::Imported);
}

TEST(CompilationTest, needsAFunctionToRun) {
  TemporaryModel model("module {}");
  Compilation compilation(model.getOptions());
  ASSERT_TRUE(compilation.load());
  EXPECT_FALSE(compilation.getEntry());
  EXPECT_FALSE(compilation.makeReport());
  ASSERT_EQ(compilation.getDiagnostics().size(), 2u);
  EXPECT_EQ(compilation.getDiagnostics().front().format(),
            "cleave: error: the module has 0 functions and none is called main\n");
}

TEST(DiagnosticTest, saysThePlaceAsFarAsItIsKnown) {
  Diagnostic diagnostic;
  diagnostic.file = "plan.yaml";
  EXPECT_EQ(diagnostic.formatPlace(), "plan.yaml");
  diagnostic.line = 4;
  diagnostic.column = 60;
  EXPECT_EQ(diagnostic.formatPlace(), "plan.yaml:4:60");
}

TEST(DiagnosticTest, namesTheNodeOnce) {
  Diagnostic diagnostic;
  diagnostic.node = "/enc/MatMul";
  diagnostic.message = "has no rule";
  EXPECT_EQ(diagnostic.formatText(), "node '/enc/MatMul': has no rule");
  diagnostic.message = "node '/enc/MatMul' has no rule";
  EXPECT_EQ(diagnostic.formatText(), "node '/enc/MatMul' has no rule");
}

TEST(DiagnosticTest, hasALineForEachNote) {
  Diagnostic diagnostic, note;
  diagnostic.severity = Diagnostic::Severity::Warning;
  diagnostic.file = "m.onnx";
  diagnostic.message = "two annotations";
  note.severity = Diagnostic::Severity::Note;
  note.file = "plan.yaml";
  note.line = note.column = 2;
  note.message = "the other one";
  diagnostic.notes.push_back(note);
  EXPECT_EQ(diagnostic.format(), "m.onnx: warning: two annotations\nplan.yaml:2:2: note: the other one\n");
}

} // namespace
