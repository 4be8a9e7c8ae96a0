//===- Differential.cpp - partitioned against unpartitioned, at random ----===//
//
// For each seed: generate a module with random annotations, partition a copy, run both on the same random inputs, and
// compare every result; with --lower, the partitioned one runs once more as commands on kernels, for the same bits, with
// --program as a compiled program, too, with --guards as one whose kernels run between pages that fault, and with --emulated
// as one for CUDA devices that this machine plays. With --bf16 either program stores bf16 and is held against results in
// double (Narrow.cpp). What differs, fails to partition or loses a collective's legality is printed with its module and the command that repeats it. --print-kernels
// runs nothing: it prints what is lowered, for cleave-kernels.
//
//===----------------------------------------------------------------------===//
#include "../Codegen/Guards.h"
#include "Generator.h"
#include "Narrow.h"
#include "cleave/Assembly/Assembly.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"
#include "cleave/Dialect/Nn/Transforms/InlineCalls.h"
#include "cleave/Pipelines/Phases.h"
#include "cleave/Pipelines/Registration.h"
#include "cleave/Program/File.h"
#include "cleave/Reference/Evaluator.h"
#include "cleave/Runtime/Device.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"

using namespace mlir;
using namespace cleave;
using reference::Tensor;

static LogicalResult runPasses(ModuleOp module, StringRef pipeline) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  if (failed(parsePassPipeline(pipeline, manager)))
    return failure();
  return manager.run(module);
}

/// Compares all results of one case; prints the first difference.
static bool areEqual(func::FuncOp func, ArrayRef<Tensor> got, ArrayRef<Tensor> want) {
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(got, want))) {
    auto &[a, b] = pair;
    // Chains of up to a dozen ops in f32; sums may be reassociated at each.
    Difference difference = compare(a, b, {1e-3, 1e-4});
    // Arguments are about 1, and so is what is added up: of what cancels rounding alone is left, which no scale of the result shows.
    constexpr double cancelled = 1e-5;
    bool isRounding = isa<FloatType>(b.getElementType()) && difference.largest <= cancelled;
    if (difference.position < 0 || isRounding)
      continue;
    auto [onRanks, onDevice] = formatApart(a, b, difference.position);
    llvm::errs() << llvm::formatv("result {0}, element {1}: {2} on ranks, {3} on one device\n", index,
                                  difference.position, onRanks, onDevice);
    return false;
  }
  return true;
}

static uint64_t countSums(ModuleOp module) {
  uint64_t count = 0;
  module.walk([&](spmd::AllReduceOp) { ++count; });
  return count;
}

/// Of every third program sums of products go in parts. How many parts there are more than sums; nothing after an error.
static std::optional<uint64_t> sendInParts(ModuleOp partitioned, uint64_t seed) {
  uint64_t before = countSums(partitioned);
  if (seed % 3 == 0 &&
      failed(runPasses(partitioned, llvm::formatv("exec-chunk-collectives{{chunks={0}}", 2 + seed % 4).str())))
    return std::nullopt;
  return countSums(partitioned) - before;
}

namespace {
/// How far a case goes down.
struct Depth {
  bool lowers = false, compiles = false, isForDevices = false, isNarrow = false, isGuarded = false;
};
} // namespace

/// To commands on kernels, as `cleave compile` does: those of the host have weights in panels.
static LogicalResult lower(ModuleOp partitioned, Depth depth) {
  PassManager manager(partitioned.getContext(), ModuleOp::getOperationName());
  ShardState state;
  ShardOptions options;
  options.isForDevices = options.usesLibraries = depth.isForDevices;
  options.narrowsFloats = depth.isNarrow;
  if (!depth.isForDevices)
    options.panelWidth = codegen::getPanelWidth(*llvm::cantFail(codegen::HostTarget::create("native")),
                                                Float32Type::get(partitioned.getContext()));
  for (const PipelinePhase &phase : getLowerPhases())
    phase.addPasses(manager, options, state);
  return manager.run(partitioned);
}

/// Lowers `partitioned` to kernels, and runs them on the same inputs: they must give `want`, bit for bit, as they do the
/// same ops. Recurrent nets are other ops then, each of which rounds.
static bool isSameLowered(ModuleOp partitioned, func::FuncOp original, ArrayRef<Tensor> inputs, ArrayRef<Tensor> want,
                          Depth depth) {
  SmallVector<Tensor> got;
  bool hasRecurrences = partitioned.walk([](nn::RecurrenceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (failed(lower(partitioned, depth)) ||
      failed(reference::runGlobal(*partitioned.getOps<func::FuncOp>().begin(), inputs, got)))
    return false;
  if (hasRecurrences)
    return areEqual(original, got, want);
  for (auto [index, a, b] : llvm::enumerate(got, want))
    if (a.getBytes() != b.getBytes()) {
      llvm::errs() << "result " << index << " has other bits after lowering\n";
      return false;
    }
  return true;
}

/// Compiles what has been lowered, and calls the program twice. The outputs, the same both times; nothing after an error.
/// \param calls counts commands that libraries of devices computed.
static std::optional<SmallVector<Tensor>> runTwice(ModuleOp lowered, func::FuncOp original, ArrayRef<Tensor> inputs,
                                                   Depth depth, uint64_t &calls) {
  AssemblyOptions options;
  if (depth.isForDevices)
    options.devices = {"emulated"};
  options.usesLibraries = depth.isForDevices;
  options.guardsScratch = depth.isGuarded;
  std::unique_ptr<Assembly> made = assemble(*lowered.getOps<func::FuncOp>().begin(), options);
  if (!made)
    return std::nullopt;
  test::GuardLog log;
  runtime::ExecutorOptions how;
  if (depth.isGuarded)
    how.makeDevice = [&] { return test::makeGuardedHost(made->program, log); };
  llvm::Expected<std::unique_ptr<runtime::Executor>> executor = openProgram(*made, ".", how);
  if (!executor) {
    llvm::errs() << llvm::toString(executor.takeError()) << '\n';
    return std::nullopt;
  }
  SmallVector<Tensor> first;
  for (int call = 0; call < 2; ++call) {
    llvm::Expected<SmallVector<Tensor>> got = runProgram(**executor, inputs, getOutputTypes(original));
    if (!got) {
      llvm::errs() << llvm::toString(got.takeError()) << '\n';
      return std::nullopt;
    }
    for (auto [a, b] : llvm::zip(first, *got))
      if (a.getBytes() != b.getBytes()) {
        llvm::errs() << "the second call gives other bits\n";
        return std::nullopt;
      }
    first = std::move(*got);
  }
  if (std::string fault = log.get(); !fault.empty()) {
    llvm::errs() << fault << '\n';
    return std::nullopt;
  }
  for (const runtime::LibraryUse &use : (*executor)->getLibraries())
    calls += use.calls;
  return first;
}

namespace {
/// What is counted over all cases.
struct Counts {
  /// Sums more than before they went in parts; what libraries of devices computed; programs in which keys went round.
  uint64_t parts = 0, calls = 0, rings = 0;
  test::NarrowCount narrow;
};
} // namespace

static bool hasRings(ModuleOp partitioned) {
  return partitioned.walk([](exec::PartialAttentionOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Likewise as a program that stores bf16.
static bool isRightInNarrow(ModuleOp original, ModuleOp partitioned, ArrayRef<Tensor> inputs, Depth depth,
                            Counts &counts) {
  auto run = [&](ModuleOp module) -> std::optional<SmallVector<Tensor>> {
    if (!reference::isPartitioned(*module.getOps<func::FuncOp>().begin()) && failed(runPasses(module, "spmd-shard")))
      return std::nullopt;
    if (failed(lower(module, depth)))
      return std::nullopt;
    return runTwice(module, *original.getOps<func::FuncOp>().begin(), inputs, depth, counts.calls);
  };
  return test::isRightNarrow(original, partitioned, inputs, run, counts.narrow);
}

static bool runCase(MLIRContext &context, uint64_t seed, const std::string &text, Depth depth, Counts &counts) {
  OwningOpRef<ModuleOp> original = parseSourceString<ModuleOp>(text, &context);
  if (!original)
    return false;
  OwningOpRef<ModuleOp> partitioned = original->clone();
  if (failed(runPasses(*partitioned, "spmd-shard{check-bytes=true}")) || failed(nn::inlineCalls(*original)))
    return false;
  auto func = *original->getOps<func::FuncOp>().begin();
  auto localFunc = *partitioned->getOps<func::FuncOp>().begin();
  if (!reference::isPartitioned(localFunc)) {
    llvm::errs() << "nothing was partitioned\n";
    return false;
  }
  counts.rings += hasRings(*partitioned);
  SmallVector<Tensor> inputs = drawInputs(func, seed), want, got;
  if (failed(reference::runGlobal(func, inputs, want)) || failed(reference::runGlobal(localFunc, inputs, got)))
    return false;
  if (!areEqual(func, got, want))
    return false;
  std::optional<uint64_t> more = sendInParts(*partitioned, seed);
  if (!more)
    return false;
  counts.parts += *more;
  if (depth.isNarrow)
    return isRightInNarrow(*original, *partitioned, inputs, depth, counts);
  // Kernels of devices are made of other ops than the model's, so bits may differ: only what they compute is compared.
  if (depth.isForDevices ? failed(runPasses(*partitioned, "exec-lower{devices=true libraries=true}"))
                         : depth.lowers && !isSameLowered(*partitioned, func, inputs, got, depth))
    return false;
  if (!depth.compiles)
    return true;
  std::optional<SmallVector<Tensor>> computed = runTwice(*partitioned, func, inputs, depth, counts.calls);
  return computed && areEqual(func, *computed, want);
}

static bool printKernels(MLIRContext &context, const std::string &text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module || failed(runPasses(*module, "spmd-shard,exec-lower{last=outlined}")))
    return false;
  llvm::outs() << "// -----\n" << *module;
  return true;
}

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  uint64_t seed = 1, count = 1;
  bool prints = false, printsKernels = false, isUneven = false;
  Depth depth;
  for (int i = 1; i < argc; ++i) {
    StringRef word = argv[i], next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--print")
      prints = true;
    else if (word == "--uneven")
      isUneven = true;
    else if (word == "--lower")
      depth.lowers = true;
    else if (word == "--program")
      depth.lowers = depth.compiles = true;
    else if (word == "--emulated")
      depth.isForDevices = depth.compiles = true;
    else if (word == "--guards")
      depth.isGuarded = depth.lowers = depth.compiles = true;
    else if (word == "--bf16")
      depth.isNarrow = true;
    else if (word == "--print-kernels")
      printsKernels = true;
    else if ((word == "--seed" && !next.getAsInteger(10, seed)) || (word == "--count" && !next.getAsInteger(10, count)))
      ++i;
    else {
      llvm::errs() << "usage: cleave-differential [--seed N] [--count N] [--uneven] [--lower] [--program] [--emulated] "
                      "[--guards] [--bf16] [--print] [--print-kernels]\n";
      return 2;
    }
  }
  DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  uint64_t failed = 0;
  Counts counts;
  for (uint64_t current = seed; current < seed + count; ++current) {
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    std::string text = test::generateModule(current, isUneven);
    if (prints)
      llvm::outs() << text;
    llvm::PrettyStackTraceFormat trace("repeat with: cleave-differential --seed %llu --count 1",
                                       static_cast<unsigned long long>(current));
    if (printsKernels ? printKernels(context, text) : runCase(context, current, text, depth, counts))
      continue;
    ++failed;
    llvm::errs() << "FAILED: repeat with: cleave-differential --seed " << current << " --count 1"
                 << (isUneven ? " --uneven" : "") << (depth.isNarrow ? " --bf16" : "")
                 << (depth.isNarrow && depth.isForDevices ? " --emulated" : "") << (depth.isGuarded ? " --guards" : "")
                 << '\n'
                 << text << '\n';
  }
  if (!printsKernels)
    llvm::outs() << counts.parts << " parts of sums more than there were\n" << counts.rings << " programs with rings\n";
  if (depth.isGuarded)
    llvm::outs() << test::describeGuarded() << '\n';
  if (depth.isForDevices)
    llvm::outs() << counts.calls << " calls of libraries\n";
  if (depth.isNarrow)
    llvm::outs() << counts.narrow.compared << " results compared\n"
                 << counts.narrow.narrowed << " results of programs with bf16\n"
                 << counts.narrow.rough << " rough results\n"
                 << counts.narrow.skipped << " results skipped\n";
  (printsKernels ? llvm::errs() : llvm::outs()) << count - failed << " passed, " << failed << " failed\n";
  return failed ? 1 : 0;
}
