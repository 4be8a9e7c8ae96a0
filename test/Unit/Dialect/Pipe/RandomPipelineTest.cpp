//===- RandomPipelineTest.cpp - ranks of pipelines against the whole ------===//
//
// Random programs, split into microbatches, sharded over a random inner mesh, split into random stages, run by a random
// schedule: the loop over microbatches, and the ranks under rendezvous, must give what the whole program gives.
//
//   CLEAVE_PIPELINE=17 CleavePipeTests --gtest_filter=RandomPipelineTest.*      one program, by its seed
//   CLEAVE_PIPELINES=20000 ..                                                   so many
//
//===----------------------------------------------------------------------===//
#include "FlatRun.h"
#include "RandomPrograms.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Elementwise.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Pipe/Transforms/Passes.h"
#include "cleave/Dialect/Pipe/Transforms/PlanPasses.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <fstream>

using namespace mlir;
using namespace cleave;
using reference::Tensor;

namespace {

struct Counts {
  int64_t run = 0, refused = 0, messages = 0, elements = 0, tables = 0, blocks = 0, collectives = 0, invariants = 0;
  /// With microbatches of two sizes: run; and of these with blocks, with collectives in stages, and with sums over all microbatches.
  int64_t uneven = 0, unevenBlocks = 0, unevenCollectives = 0, unevenSums = 0, tooSmall = 0;
};

/// Chains of up to a dozen ops in f32; sums may be reassociated at each.
constexpr Tolerance kTolerance{1e-3, 1e-4};

/// One random pipeline.
class Pipeline {
public:
  Pipeline(MLIRContext &context, uint64_t seed, Counts &counts)
      : context(context), seed(seed), random(seed * 1000003), counts(counts) {}

  /// What is wrong; empty if it is refused, or right.
  std::string run();
  /// As far as it came.
  void dump() { module->dump(); }

private:
  int64_t draw(int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); }
  bool runPasses(llvm::function_ref<void(OpPassManager &)> add);
  bool isSplit();
  void drawMesh();
  void drawShardings();
  bool isPartitioned();
  bool drawStages();
  bool schedule();
  std::string writeTable();
  void count();
  std::string compareWith(ArrayRef<Tensor> inputs, ArrayRef<Tensor> want, StringRef what);

  MLIRContext &context;
  uint64_t seed;
  std::mt19937_64 random;
  Counts &counts;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
  int64_t ranks = 1, chunks = 1, microbatches = 1;
  bool isTooSmall = false;
};

/// Messages before the first microbatch of their rank.
static int64_t countInvariants(ModuleOp module) {
  int64_t invariants = 0;
  for (auto rank : module.getOps<func::FuncOp>())
    for (Operation &op : rank.getBody().front()) {
      auto call = dyn_cast<func::CallOp>(op);
      auto send = dyn_cast<pipe::SendOp>(op);
      if (call && call.getCallee().contains(".stage"))
        break;
      invariants += send && static_cast<int64_t>(send.getMicrobatch()) == -1;
    }
  return invariants;
}

/// A value that no batch is in, read in several places.
static void addInvariant(func::FuncOp func, std::mt19937_64 &random) {
  MLIRContext *context = func.getContext();
  unsigned number = func.getNumArguments();
  NamedAttrList attributes;
  attributes.set(spmd::kNameAttr, StringAttr::get(context, "whole"));
  auto type = RankedTensorType::get({1}, Float32Type::get(context));
  if (failed(func.insertArgument(number, type, attributes.getDictionary(context), func.getLoc())))
    return;
  Block &body = func.getBody().front();
  SmallVector<Value> places;
  for (Operation &op : body.without_terminator())
    for (Value result : op.getResults())
      if (auto made = cast<RankedTensorType>(result.getType());
          made.getElementType().isF32() && made.getRank() > 0 && random() % 2)
        places.push_back(result);
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Value whole = nn::TanhOp::create(builder, func.getLoc(), func.getArgument(number));
  for (Value place : places) {
    builder.setInsertionPointAfterValue(place);
    auto sum = nn::AddOp::create(builder, func.getLoc(), place, whole);
    place.replaceAllUsesExcept(sum, sum);
  }
}

bool Pipeline::runPasses(llvm::function_ref<void(OpPassManager &)> add) {
  PassManager manager(&context);
  add(manager);
  return succeeded(manager.run(*module));
}

bool Pipeline::isSplit() {
  spmd::PlanPipeline batch = pipe::testing::drawBatch(func, random);
  microbatches = *batch.microbatches;
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  return runPasses(
      [&](OpPassManager &manager) { manager.addPass(pipe::createMicrobatch(pipe::testing::makePlan(batch))); });
}

/// The pipeline's axis may be any of the mesh.
void Pipeline::drawMesh() {
  using Axes = SmallVector<std::pair<StringRef, int64_t>>;
  const Axes inner[] = {{{"device", 1}}, {{"data", 2}}, {{"data", 2}, {"model", 2}}, {{"model", 3}}};
  Axes axes = inner[draw(4)];
  auto toMesh = [&](const Axes &list) {
    auto names = llvm::map_to_vector(list, [](auto axis) { return axis.first; });
    auto sizes = llvm::map_to_vector(list, [](auto axis) { return axis.second; });
    return spmd::MeshAttr::get(&context, names, sizes, {});
  };
  (*module)->setAttr(spmd::SpmdDialect::kMeshAttr, toMesh(axes));
  axes.insert(axes.begin() + draw(static_cast<int64_t>(axes.size()) + 1), {"stage", ranks});
  (*module)->setAttr(pipe::PipeDialect::kMeshAttr, toMesh(axes));
  (*module)->setAttr(pipe::PipeDialect::kAxisAttr, StringAttr::get(&context, "stage"));
}

/// Some arguments along one dim each, as a plan would annotation, which most ops then follow.
void Pipeline::drawShardings() {
  auto mesh = (*module)->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr);
  for (BlockArgument argument : func.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.getRank() == 0 || draw(2))
      continue;
    int64_t dim = draw(type.getRank()), axis = draw(static_cast<int64_t>(mesh.getSizes().size()));
    if (type.getDimSize(dim) == 0 || type.getDimSize(dim) % mesh.getSizes()[axis] != 0)
      continue;
    SmallVector<spmd::DimShardingAttr> dims(type.getRank(),
                                            spmd::DimShardingAttr::get(&context, {}, /*isOpen=*/true, 0));
    dims[dim] = spmd::DimShardingAttr::get(&context, {spmd::AxisAttr::get(&context, mesh.getNames()[axis])}, false, 0);
    auto sharding = spmd::ShardingAttr::get(&context, mesh, dims, {}, spmd::ReductionKind::Sum, {}, /*uneven=*/false);
    LocationAttr place = UnknownLoc::get(&context);
    func.setArgAttr(argument.getArgNumber(), spmd::SpmdDialect::kAnnotationAttr,
                    spmd::AnnotationAttr::get(&context, sharding, place, place));
  }
}

bool Pipeline::isPartitioned() {
  return runPasses([&](OpPassManager &manager) {
    ShardState state;
    for (const PipelinePhase &phase : getShardPhases())
      if (phase.phase >= Phase::Annotated)
        phase.addPasses(manager, ShardOptions(), state);
  });
}

/// Splits anywhere in the row of ops. False if there are too few.
bool Pipeline::drawStages() {
  spmd::Spans spans(func);
  SmallVector<Operation *> ops;
  for (Operation &op : func.getBody().front().without_terminator())
    if (spans.get(&op) == spmd::Span::Each && !isa<pipe::PartOp, nn::LoadOp, nn::ConstantOp>(op))
      ops.push_back(&op);
  int64_t stages = ranks * chunks, count = static_cast<int64_t>(ops.size());
  if (count < stages)
    return false;
  SmallVector<int64_t> starts(count, 0);
  std::fill_n(starts.begin() + 1, stages - 1, 1);
  std::shuffle(starts.begin() + 1, starts.end(), random);
  int64_t stage = 0;
  for (auto [op, isStart] : llvm::zip_equal(ops, starts))
    pipe::setStage(op, stage += isStart);
  return true;
}

/// Stages anywhere, microbatches in any order: a table that nothing but the checker has seen. Path of its file.
std::string Pipeline::writeTable() {
  int64_t stages = ranks * chunks;
  SmallVector<int64_t> placement;
  for (int64_t stage = 0; stage < stages; ++stage)
    placement.push_back(stage < ranks ? stage : draw(ranks));
  std::shuffle(placement.begin(), placement.end(), random);
  std::vector<std::vector<std::string>> rows(ranks);
  SmallVector<int64_t> next(microbatches, 0);
  for (int64_t left = stages * microbatches; left > 0; --left) {
    int64_t microbatch = draw(microbatches);
    while (next[microbatch] == stages)
      microbatch = (microbatch + 1) % microbatches;
    int64_t stage = next[microbatch]++;
    rows[placement[stage]].push_back(llvm::formatv("{0}F{1}", stage, microbatch).str());
  }
  SmallString<128> path;
  llvm::sys::fs::createTemporaryFile("cleave-pipeline", "csv", path);
  std::ofstream file(path.c_str());
  for (const std::vector<std::string> &row : rows)
    file << llvm::join(row, ",") << "\n";
  return path.str().str();
}

bool Pipeline::schedule() {
  pipe::SplitOptions splitting;
  splitting.relay = draw(3) == 0;
  splitting.sendCheap = draw(2) == 0;
  pipe::ScheduleStagesOptions scheduling;
  if (draw(2) == 0)
    scheduling.schedule = writeTable();
  // Dims that nobody means to be a batch may have too few samples for all shards (P4).
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    isTooSmall |= StringRef(diagnostic.str()).contains(" shards (P4): ");
    return success(isTooSmall);
  });
  bool isDone = runPasses([&](OpPassManager &manager) {
    pipe::VerifyPhaseOptions gate;
    manager.addPass(pipe::createSplit(splitting));
    gate.phase = Phase::Staged;
    manager.addPass(pipe::createVerifyPhase(gate));
    manager.addPass(pipe::createScheduleStages(scheduling));
    gate.phase = Phase::Scheduled;
    manager.addPass(pipe::createVerifyPhase(gate));
  });
  if (!scheduling.schedule.empty())
    llvm::sys::fs::remove(scheduling.schedule);
  counts.tables += isDone && !scheduling.schedule.empty();
  counts.refused += isTooSmall;
  counts.tooSmall += isTooSmall;
  return isDone || isTooSmall;
}

std::string Pipeline::compareWith(ArrayRef<Tensor> inputs, ArrayRef<Tensor> want, StringRef what) {
  SmallVector<Tensor> got;
  if (failed(reference::runGlobal(func, inputs, got)))
    return ("cannot be run " + what).str();
  for (auto [a, b] : llvm::zip_equal(got, want)) {
    if (a.getType() != b.getType() || compare(a, b, kTolerance).position != -1)
      return ("gives something else " + what).str();
    counts.elements += a.getNumElements();
  }
  return "";
}

/// What there is to see in a pipeline that was lowered.
void Pipeline::count() {
  int64_t blocks = 0, collectives = 0;
  module->walk([&](Operation *op) {
    counts.messages += isa<pipe::SendOp>(op);
    auto part = dyn_cast<pipe::PartOp>(op);
    blocks += part && part.getBlocks() > 1;
    auto collective = dyn_cast<spmd::CollectiveOpInterface>(op);
    collectives += collective && collective.communicates();
  });
  ++counts.run;
  counts.blocks += blocks;
  counts.invariants += countInvariants(*module);
  counts.collectives += collectives;
  pipe::MicrobatchesOp loop = *func.getOps<pipe::MicrobatchesOp>().begin();
  if (loop.getRest().empty())
    return;
  ++counts.uneven;
  counts.unevenBlocks += blocks > 0;
  counts.unevenCollectives += collectives > 0;
  counts.unevenSums += llvm::any_of(loop.getGives().getAsRange<pipe::PieceAttr>(),
                                    [](pipe::PieceAttr piece) { return piece.getKind().has_value(); });
}

std::string Pipeline::run() {
  OwningOpRef<ModuleOp> whole = pipe::testing::makeProgram(context, seed);
  if (!whole)
    return "cannot be read";
  func = *whole->getOps<func::FuncOp>().begin();
  if (draw(2))
    addInvariant(func, random);
  SmallVector<Tensor> inputs = drawInputs(func, seed), want;
  if (failed(reference::runGlobal(func, inputs, want)))
    return "cannot be run";
  module = whole->clone();
  func = *module->getOps<func::FuncOp>().begin();
  ranks = 1 + draw(4);
  chunks = 1 + draw(2);
  drawMesh();
  drawShardings();
  if (!isSplit()) {
    ++counts.refused;
    return "";
  }
  if (!isPartitioned())
    return "cannot be partitioned";
  if (!drawStages()) {
    ++counts.refused;
    return "";
  }
  if (!schedule())
    return "cannot be scheduled";
  if (isTooSmall)
    return "";
  if (std::string wrong = compareWith(inputs, want, "as a loop"); !wrong.empty())
    return wrong;
  bool isLowered = runPasses([](OpPassManager &manager) {
    pipe::VerifyPhaseOptions gate;
    gate.phase = Phase::PerRank;
    manager.addPass(pipe::createLower());
    manager.addPass(pipe::createVerifyPhase(gate));
  });
  if (!isLowered)
    return "cannot be lowered";
  count();
  return compareWith(inputs, want, "on ranks");
}

TEST(RandomPipelineTest, ranksGiveWhatOneDeviceGives) {
  DialectRegistry registry;
  registerDialects(registry);
  const char *one = std::getenv("CLEAVE_PIPELINE"), *many = std::getenv("CLEAVE_PIPELINES");
  uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
  int64_t wanted = one ? 1 : many ? std::strtoll(many, nullptr, 10) : 2000;
  Counts counts;
  for (uint64_t seed = first; one ? seed == first : counts.run < wanted; ++seed) {
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    Pipeline pipeline(context, seed, counts);
    std::string wrong = pipeline.run();
    if (one && !wrong.empty())
      pipeline.dump();
    EXPECT_EQ(wrong, "") << "CLEAVE_PIPELINE=" << seed << " CleavePipeTests --gtest_filter=RandomPipelineTest.*";
    if (counts.refused > 100 * (counts.run + 10))
      break;
  }
  std::printf(
      "%lld pipelines (%lld of random tables), %lld refused (%lld when split), %lld messages, %lld parts in blocks, "
      "%lld collectives, %lld whole values sent, %lld elements; %lld uneven (%lld in blocks, %lld with collectives, "
      "%lld with sums)\n",
      (long long)counts.run, (long long)counts.tables, (long long)counts.refused, (long long)counts.tooSmall,
      (long long)counts.messages, (long long)counts.blocks, (long long)counts.collectives, (long long)counts.invariants,
      (long long)counts.elements, (long long)counts.uneven, (long long)counts.unevenBlocks,
      (long long)counts.unevenCollectives, (long long)counts.unevenSums);
  // A test in which nothing is sent shows nothing.
  if (!one) {
    EXPECT_GE(counts.run, wanted);
    EXPECT_GE(counts.messages, wanted);
    EXPECT_GE(counts.blocks, wanted / 100);
    EXPECT_GE(counts.collectives, wanted / 10);
    EXPECT_GE(counts.invariants, wanted / 20);
    EXPECT_GE(counts.uneven, wanted / 10);
    EXPECT_GE(counts.unevenBlocks, wanted / 500);
    EXPECT_GE(counts.unevenCollectives, wanted / 50);
    EXPECT_GE(counts.unevenSums, wanted / 50);
  }
}

} // namespace
