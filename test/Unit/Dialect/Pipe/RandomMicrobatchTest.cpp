//===- RandomMicrobatchTest.cpp - what is not refused is right ------------===//
//
// The programs of the differential suite, without their annotations, split along dims of their arguments that nobody means to be a
// batch. Most of that mixes samples, and is refused; whatever is accepted must give what the whole program gives. Where
// microbatches are of two sizes, the program of one is not enough: then a loop of one stage runs, which has both.
//
//===----------------------------------------------------------------------===//
#include "FlatRun.h"
#include "RandomPrograms.h"

#include "../../../Differential/Generator.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace cleave;
using reference::Tensor;

namespace {

/// Chains of up to a dozen ops in f32; sums may be reassociated at each.
constexpr Tolerance kTolerance{1e-3, 1e-4};

struct Counts {
  int64_t microbatched = 0, refused = 0, parts = 0, sums = 0, elements = 0, uneven = 0;
  /// Loops that run on samples of a microbatch.
  int64_t loops = 0;
};

/// What the loop over microbatches of two sizes gives; nothing after an error. No results: it has nothing to do.
std::optional<SmallVector<Tensor>> runLoop(ModuleOp module, ArrayRef<Tensor> inputs) {
  PassManager manager(module.getContext());
  manager.addPass(pipe::createSplit());
  bool isEmpty = false;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    isEmpty |= StringRef(diagnostic.str()).contains("nothing to split into stages");
    return success(isEmpty);
  });
  SmallVector<Tensor> got;
  if (failed(manager.run(module)))
    return isEmpty ? std::optional(got) : std::nullopt;
  // Stages are private: the entry is what is left.
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isPrivate() && succeeded(reference::runGlobal(func, inputs, got)))
      return got;
  return std::nullopt;
}

/// What is wrong with one program; empty if it is refused, or right.
std::string checkSeed(MLIRContext &context, uint64_t seed, Counts &counts) {
  OwningOpRef<ModuleOp> whole = pipe::testing::makeProgram(context, seed);
  if (!whole)
    return "cannot be parsed";
  func::FuncOp func = *whole->getOps<func::FuncOp>().begin();
  std::mt19937_64 random(seed);
  SmallVector<Tensor> inputs = drawInputs(func, seed), want;
  if (failed(reference::runGlobal(func, inputs, want)))
    return "cannot be run";
  for (int attempt = 0; attempt < 4; ++attempt) {
    OwningOpRef<ModuleOp> microbatched = whole->clone();
    PassManager manager(&context);
    manager.addPass(pipe::createMicrobatch(pipe::testing::makePlan(pipe::testing::drawBatch(func, random))));
    {
      ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
      if (failed(manager.run(*microbatched))) {
        ++counts.refused;
        continue;
      }
    }
    auto flat = *microbatched->getOps<func::FuncOp>().begin();
    bool isUneven = flat->hasAttr(pipe::PipeDialect::kShardsAttr);
    ++counts.microbatched;
    counts.uneven += isUneven;
    counts.parts += llvm::range_size(flat.getOps<pipe::PartOp>());
    counts.sums += llvm::range_size(flat.getOps<pipe::AccumulateOp>());
    const spmd::Spans spans(flat);
    for (nn::LoopOp loop : flat.getOps<nn::LoopOp>())
      counts.loops += spans.get(loop.getOperation()) == spmd::Span::Each;
    std::optional<SmallVector<Tensor>> got =
        isUneven ? runLoop(*microbatched, inputs) : pipe::testing::runFlat(flat, inputs);
    if (!got)
      return "cannot be run in microbatches";
    if (got->empty())
      continue;
    for (auto [a, b] : llvm::zip_equal(*got, want)) {
      if (a.getType() != b.getType() || compare(a, b, kTolerance).position != -1)
        return "gives something else in microbatches";
      counts.elements += a.getNumElements();
    }
  }
  return "";
}

TEST(RandomMicrobatchTest, whatIsNotRefusedIsRight) {
  DialectRegistry registry;
  registerDialects(registry);
  const char *given = std::getenv("CLEAVE_MICROBATCH_SEEDS");
  uint64_t seeds = given ? std::strtoull(given, nullptr, 10) : 1000;
  Counts counts;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    std::string wrong = checkSeed(context, seed, counts);
    EXPECT_EQ(wrong, "") << "seed " << seed << ":\n" << test::generateModule(seed);
  }
  std::printf("%lld cut (%lld uneven), %lld refused, %lld parts, %lld sums, %lld loops, %lld elements\n",
              (long long)counts.microbatched, (long long)counts.uneven, (long long)counts.refused,
              (long long)counts.parts, (long long)counts.sums, (long long)counts.loops, (long long)counts.elements);
  // A test in which nothing is split shows nothing.
  EXPECT_GE(counts.microbatched, static_cast<int64_t>(seeds * 9 / 10));
  EXPECT_GE(counts.parts, static_cast<int64_t>(seeds / 10));
  EXPECT_GE(counts.sums, static_cast<int64_t>(seeds / 10));
  EXPECT_GE(counts.loops, static_cast<int64_t>(seeds / 50));
  EXPECT_GE(counts.uneven, static_cast<int64_t>(seeds / 10));
}

} // namespace
