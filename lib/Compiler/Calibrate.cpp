//===- Calibrate.cpp - what this machine takes ----------------------------===//
//
// Kernels come from models of a few lines, each compiled like any other. The clock around a command says what a kernel takes; what it takes
// to start is what a chain of small ones takes longer than a shorter chain, for a call has costs of its own. Ranks are threads that all go
// through the same list of operations.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Calibrate.h"

#include "cleave/Compiler/Compilation.h"
#include "cleave/Compiler/RunProgram.h"
#include "cleave/Program/Operands.h"
#include "cleave/Runtime/Threads.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"

#include <thread>

using namespace cleave;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// A model of a few lines, compiled, with what it is called with.
struct Kernel {
  std::unique_ptr<runtime::Executor> executor;
  std::vector<std::vector<char>> inputs;
  std::vector<runtime::Value> outputs;
  /// The least so far, in ns: of its kernels, and of a whole call.
  double kernelNs = HUGE_VAL, callNs = HUGE_VAL;

  llvm::Error call();
};
} // namespace

/// The compiler reads files.
static llvm::Expected<std::unique_ptr<Assembly>> compileText(llvm::StringRef text) {
  llvm::SmallString<128> path;
  int file = 0;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("cleave-calibrate", "mlir", file, path))
    return makeError("no temporary file: {0}", error.message());
  llvm::FileRemover remover(path);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << text;
  CompileOptions options;
  options.model = path.str();
  std::string said;
  Compilation compilation(options, [&](const cleave::Diagnostic &diagnostic) { said += diagnostic.message; });
  if (compilation.load()) {
    compilation.useOneDevice();
    if (compilation.advance(Phase::Optimized))
      if (std::unique_ptr<Assembly> assembly = compilation.makeProgram("."))
        return assembly;
  }
  return makeError("a kernel to be measured is not compiled: {0}", said);
}

/// All elements are 0: no kernel takes longer for other values.
static llvm::Expected<Kernel> open(llvm::StringRef text) {
  llvm::Expected<std::unique_ptr<Assembly>> assembly = compileText(text);
  if (!assembly)
    return assembly.takeError();
  runtime::ExecutorOptions options;
  options.keepsTimes = true;
  Kernel kernel;
  llvm::Expected<std::unique_ptr<runtime::Executor>> executor = openProgram(**assembly, ".", options);
  if (!executor)
    return executor.takeError();
  kernel.executor = std::move(*executor);
  const program::Program &program = kernel.executor->getProgram();
  for (const program::Tensor &input : program.variants.front().inputs)
    kernel.inputs.emplace_back(program::getBytes(program.types[input.type]), 0);
  return kernel;
}

/// Inputs are copied before the first kernel, so that what fits is in the cache by then.
llvm::Error Kernel::call() {
  const program::Program &program = executor->getProgram();
  std::vector<runtime::Argument> arguments;
  for (auto [input, bytes] : llvm::zip_equal(program.variants.front().inputs, inputs)) {
    const program::Type &type = program.types[input.type];
    arguments.push_back({input.name, type.element, type.shape, bytes.data()});
  }
  if (runtime::ExecutorStatus error = executor->run(arguments, outputs))
    return makeError("a kernel to be measured does not run: {0}", error->message);
  double seconds = 0;
  const program::List &list = executor->getList(executor->getVariant(), 0);
  for (const runtime::Event &event : executor->getEvents())
    if (std::holds_alternative<program::Launch>(list.commands[event.command].action))
      seconds += event.getSeconds();
  kernelNs = std::min(kernelNs, seconds * 1e9);
  callNs = std::min(callNs, executor->getRunSeconds() * 1e9);
  return llvm::Error::success();
}

/// Of square matrices, for which a core has most to do for each byte.
static std::string writeProduct(int64_t size, llvm::StringRef type) {
  std::string tensor = formatv("tensor<{0}x{0}x{1}>", size, type);
  return formatv("func.func @main(%a: {0}, %b: {0}) -> {0} {{\n"
                 "  %0 = nn.einsum %a, %b \"ik,kj->ij\" : ({0}, {0}) -> {0}\n  return %0 : {0}\n}\n",
                 tensor);
}

/// As layers have them: a bias and an activation in the kernel of a product.
static std::string writeLayer(int64_t rows, int64_t width, int64_t hidden) {
  std::string in = formatv("tensor<{0}x{1}xf32>", rows, width), weight = formatv("tensor<{0}x{1}xf32>", width, hidden),
              out = formatv("tensor<{0}x{1}xf32>", rows, hidden);
  return formatv("func.func @main(%a: {0}, %b: {1}) -> {2} {{\n"
                 "  %0 = nn.einsum %a, %b \"ik,kj->ij\" : ({0}, {1}) -> {2}\n"
                 "  %1 = nn.gelu %0 : ({2}) -> {2}\n  return %1 : {2}\n}\n",
                 in, weight, out);
}

/// Of `length` queries and keys, with softmax between its products.
static std::string writeAttention(int64_t heads, int64_t length, int64_t width) {
  return formatv("func.func @main(%q: {0}, %k: {0}, %v: {0}) -> {0} {{\n"
                 "  %0 = nn.attention %q, %k, %v scale 0.25 : ({0}, {0}, {0}) -> {0}\n  return %0 : {0}\n}\n",
                 formatv("tensor<1x{0}x{1}x{2}xf32>", heads, length, width).str());
}

/// Windows of 3 x 3 over pictures of `size` x `size`.
static std::string writeConvolution(int64_t channels, int64_t size) {
  return formatv("func.func @main(%a: {0}, %w: {1}) -> {0} {{\n"
                 "  %0 = nn.conv %a, %w strides [1, 1] pads_low [1, 1] pads_high [1, 1] dilations [1, 1] groups 1 : "
                 "({0}, {1}) -> {0}\n  return %0 : {0}\n}\n",
                 formatv("tensor<1x{0}x{1}x{1}xf32>", channels, size).str(),
                 formatv("tensor<{0}x{0}x3x3xf32>", channels).str());
}

/// One addition for twelve bytes: memory takes longer on any machine.
static std::string writeSum(int64_t size) {
  return formatv("func.func @main(%a: {0}, %b: {0}) -> {0} {{\n  %0 = nn.add %a, %b : ({0}, {0}) -> {0}\n"
                 "  return %0 : {0}\n}\n",
                 formatv("tensor<{0}xf32>", size).str());
}

/// Products, one of the other: no two of them are one kernel.
static std::string writeChain(int64_t length) {
  constexpr llvm::StringLiteral tensor = "tensor<8x8xf32>";
  std::string text = formatv("func.func @main(%0: {0}, %w: {0}) -> {0} {{\n", tensor);
  for (int64_t i = 0; i < length; ++i)
    text += formatv("  %{0} = nn.einsum %{1}, %w \"ik,kj->ij\" : ({2}, {2}) -> {2}\n", i + 1, i, tensor);
  return text + formatv("  return %{0} : {1}\n}\n", length, tensor).str();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
/// One operation of a size, and the least that it took, in ns.
struct Meeting {
  runtime::OperationKind kind;
  int64_t bytes; ///< of the larger side
  double ns = HUGE_VAL;
};

/// Ranks that go through lists of operations together.
class Ranks {
public:
  explicit Ranks(const CalibrateOptions &options) : options(options) {}
  /// Each of them once more.
  llvm::Error measure(std::vector<Meeting> &meetings);

private:
  runtime::Status goThrough(runtime::Communicator &rank, std::vector<Meeting> &meetings) const;
  runtime::Operation make(const Meeting &meeting, const char *input, char *output,
                          const std::vector<runtime::Piece> &pieces) const;

  const CalibrateOptions options;
};
} // namespace

/// To the next rank, from the one before.
static std::vector<runtime::Piece> makeShift(uint32_t rank, uint32_t ranks, uint64_t count) {
  std::vector<runtime::Piece> pieces;
  for (uint32_t source = 0; source < ranks; ++source)
    if (uint32_t target = (source + 1) % ranks; source == rank || target == rank)
      pieces.push_back({source, target, 1, count, 0, count, 0, count});
  return pieces;
}

/// Tilings are those of whole parts, one behind the other; what has none is told by its count.
runtime::Operation Ranks::make(const Meeting &meeting, const char *input, char *output,
                               const std::vector<runtime::Piece> &pieces) const {
  using namespace runtime;
  uint64_t count = meeting.bytes / sizeof(float);
  Tiling part = Tiling::contiguous(count / options.ranks);
  if (meeting.kind == OperationKind::Exchange)
    return exchange(kWorld, ElementType::F32, input, output, pieces);
  Reduction reduction = reduces(meeting.kind) ? Reduction::Sum : Reduction::None;
  return makeOperation(meeting.kind, kWorld, reduction, ElementType::F32, input, output, count,
                       slices(meeting.kind) ? part : Tiling(), gathers(meeting.kind) ? part : Tiling());
}

/// What is short is done several times between two looks at the clock, and this several times: another job is not always there. Ranks leave
/// a barrier up to a microsecond apart, which so counts for little.
runtime::Status Ranks::goThrough(runtime::Communicator &rank, std::vector<Meeting> &meetings) const {
  std::vector<char> input(options.mostBytes, 0), output(options.mostBytes, 0);
  for (Meeting &meeting : meetings) {
    std::vector<runtime::Piece> pieces = makeShift(rank.getRank(), options.ranks, meeting.bytes / sizeof(float));
    runtime::Operation operation = make(meeting, input.data(), output.data(), pieces);
    int times = meeting.bytes <= 131072    ? 20
                : meeting.bytes <= 4194304 ? 4
                                           : 1,
        looks = meeting.bytes <= 131072 ? 10 : 2;
    for (int look = 0; look < looks; ++look) {
      if (runtime::Status status = rank.run(runtime::barrier(runtime::kWorld)); !status.isOk())
        return status;
      int64_t begin = runtime::getNow();
      for (int i = 0; i < times; ++i)
        if (runtime::Status status = rank.run(operation); !status.isOk())
          return status;
      if (rank.getRank() == 0)
        meeting.ns = std::min(meeting.ns, static_cast<double>(runtime::getNow() - begin) / times);
    }
  }
  return runtime::Status();
}

/// Ranks live for one round: whatever a rank remembers of another one is not measured.
llvm::Error Ranks::measure(std::vector<Meeting> &meetings) {
  auto ranks = runtime::makeThreads(options.ranks, runtime::Options());
  std::vector<runtime::Status> results(options.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank)
    threads.emplace_back([&, rank] { results[rank] = goThrough(*ranks[rank], meetings); });
  for (std::thread &thread : threads)
    thread.join();
  for (const runtime::Status &result : results)
    if (!result.isOk())
      return makeError("ranks do not meet: {0}", result.getMessage());
  return llvm::Error::success();
}

/// All kinds but a barrier, which brings nobody anything.
static std::vector<Meeting> listMeetings(const CalibrateOptions &options) {
  std::vector<Meeting> meetings;
  int64_t parts = static_cast<int64_t>(sizeof(float)) * options.ranks;
  for (uint8_t number = 0; program::isKnown(runtime::OperationKind(number)); ++number)
    for (int64_t bytes = 8; bytes <= options.mostBytes; bytes *= 4)
      if (auto kind = runtime::OperationKind(number); kind != runtime::OperationKind::Barrier)
        meetings.push_back({kind, (bytes + parts - 1) / parts * parts});
  return meetings;
}

/// As docs/report.md counts bytes.
static spmd::CollectiveTime describe(const Meeting &meeting, int64_t ranks) {
  int64_t sent = meeting.kind == runtime::OperationKind::Exchange
                     ? meeting.bytes
                     : program::getTurns(meeting.kind) * (ranks - 1) * meeting.bytes / ranks;
  return {program::getWord(meeting.kind), ranks, sent, 1, meeting.ns};
}

//===----------------------------------------------------------------------===//
// Everything
//===----------------------------------------------------------------------===//

static constexpr int64_t kShort = 16, kLong = 528;

/// Products, what models are made of, sums and chains, in the order in which `measureHost` reads them.
static llvm::Expected<std::vector<Kernel>> openKernels(spmd::MeasuredTimes &times) {
  std::vector<std::string> texts;
  for (llvm::StringRef type : {"f32", "bf16", "f64"})
    for (int64_t size : {128, 256, 512}) {
      texts.push_back(writeProduct(size, type));
      times.products.push_back({type.str(), 2.0 * double(size) * double(size) * double(size)});
    }
  // In models a core does less than in large products: windows, softmax, activations. The rate is between both.
  for (int64_t width : {32, 64}) {
    texts.push_back(writeLayer(256, width, 4 * width));
    times.products.push_back({"f32", 2.0 * 256 * double(width) * 4 * double(width)});
  }
  for (int64_t length : {32, 64}) {
    texts.push_back(writeAttention(16, length, 16));
    times.products.push_back({"f32", 2.0 * 16 * double(length) * double(length) * (16 + 16)});
  }
  for (int64_t channels : {16, 32}) {
    texts.push_back(writeConvolution(channels, 32));
    times.products.push_back({"f32", 2.0 * double(channels) * 32 * 32 * double(channels) * 9});
  }
  for (int64_t size = 1024; size <= int64_t(1) << 24; size *= 4) {
    texts.push_back(writeSum(size));
    times.copies.push_back({"f32", double(size), 12.0 * double(size)});
  }
  for (int64_t length : {kShort, kLong})
    texts.push_back(writeChain(length));
  std::vector<Kernel> kernels;
  for (const std::string &text : texts) {
    llvm::Expected<Kernel> kernel = open(text);
    if (!kernel)
      return kernel.takeError();
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

llvm::Expected<spmd::MeasuredTimes> cleave::measureHost(const CalibrateOptions &options) {
  assert(options.rounds > 0 && options.ranks > 1 && options.mostBytes >= 8 && "nothing to measure");
  spmd::MeasuredTimes times;
  llvm::Expected<std::vector<Kernel>> kernels = openKernels(times);
  if (!kernels)
    return kernels.takeError();
  std::vector<Meeting> meetings = listMeetings(options);
  Ranks ranks(options);
  // The first round is to warm up.
  for (unsigned round = 0; round <= options.rounds; ++round) {
    for (Kernel &kernel : *kernels) {
      if (llvm::Error error = kernel.call())
        return error;
      if (round == 0)
        kernel.kernelNs = kernel.callNs = HUGE_VAL;
    }
    if (llvm::Error error = ranks.measure(meetings))
      return error;
  }
  const Kernel *kernel = kernels->data();
  for (spmd::KernelTime &product : times.products)
    product.ns = kernel++->kernelNs;
  for (spmd::KernelTime &copy : times.copies)
    copy.ns = kernel++->kernelNs;
  times.launchNs = std::max(0.0, (kernel[1].callNs - kernel[0].callNs) / double(kLong - kShort));
  for (const Meeting &meeting : meetings)
    times.collectives.push_back(describe(meeting, options.ranks));
  return times;
}
