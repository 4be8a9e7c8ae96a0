//===- RegionsTest.cpp - random regions on the emulated device ------------===//
//
// Random fused regions as kernels of a GPU, against the evaluator, with every access checked. CLEAVE_DEVICE_REGIONS says how
// many, CLEAVE_REGION which one comes first.
//
//===----------------------------------------------------------------------===//
#include "../../Differential/Generator.h"
#include "DeviceKernels.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {

/// A region that became a kernel.
struct Region {
  uint64_t seed;
  std::string text;
  OwningOpRef<ModuleOp> module;
  DeviceKernel launch;
  SmallVector<int64_t> inPlace;

  func::FuncOp getFunction() { return *module->getOps<func::FuncOp>().begin(); }
};

class DeviceRegionsTest : public codegen::DeviceKernelsTest {
protected:
  /// What is wrong, or an empty string.
  std::string check(Region &region, const emulation::Module &module) {
    func::FuncOp func = region.getFunction();
    SmallVector<Tensor> inputs = drawInputs(func, region.seed), want, outputs;
    if (failed(reference::runGlobal(func, inputs, want)))
      return "cannot evaluate: " + errors;
    for (Type type : func.getResultTypes())
      outputs.push_back(Tensor::zeros(cast<RankedTensorType>(type)));
    std::string finding = run(module, region.launch, inputs, outputs, region.inPlace);
    return finding.empty() ? findDifference(outputs, want) : finding;
  }

  /// `body` in a function of random inputs; what would have to be split first is an error.
  void add(std::vector<Region> &regions, const std::string &body) {
    Region region{regions.size() + 1, "func.func @main" + body, nullptr, {}, {}};
    region.module = parseSourceString<ModuleOp>(region.text, &context);
    ASSERT_TRUE(region.module) << errors << region.text;
    std::string reason;
    ASSERT_TRUE(canEmitDevice(region.getFunction().front(), reason)) << reason << region.text;
    regions.push_back(std::move(region));
  }

  /// Compiles regions into one module and checks each.
  void checkAll(std::vector<Region> &regions) {
    if (regions.empty())
      return;
    OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&context));
    for (Region &region : regions)
      region.launch = emitDeviceKernel(region.getFunction().front(), "region" + std::to_string(region.seed), *kernels,
                                       *cuda, region.inPlace);
    const emulation::Module *module = load(*kernels);
    ASSERT_TRUE(module) << errors << "from CLEAVE_REGION=" << regions.front().seed;
    for (Region &region : regions)
      EXPECT_EQ(check(region, *module), "")
          << "repeat with: CLEAVE_REGION=" << region.seed << " CLEAVE_DEVICE_REGIONS=1\n"
          << region.text;
    regions.clear();
  }
};

uint64_t getNumber(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}

TEST_F(DeviceRegionsTest, EqualTheEvaluator) {
  static constexpr const char *types[] = {"f32", "f32", "f64", "bf16", "f16"};
  uint64_t first = getNumber("CLEAVE_REGION", 1), count = getNumber("CLEAVE_DEVICE_REGIONS", 1000), kernels = 0;
  std::vector<Region> regions;
  // Some regions are several kernels on a device, made of parts of them: these are passed over.
  for (uint64_t seed = first; kernels < count && seed < first + 20 * count; ++seed) {
    errors.clear();
    Region region{seed, cleave::test::generateRegion(seed, types[seed % std::size(types)]), nullptr, {}, {}};
    region.module = parseSourceString<ModuleOp>(region.text, &context);
    ASSERT_TRUE(region.module) << errors;
    std::string reason;
    if (!canEmitDevice(region.getFunction().front(), reason))
      continue;
    ++kernels;
    regions.push_back(std::move(region));
    if (regions.size() == 25)
      checkAll(regions);
  }
  checkAll(regions);
  EXPECT_EQ(kernels, count);
}

// Rows of lengths that are no multiple of a vector, by teams and by blocks; and all elements as one row.
TEST_F(DeviceRegionsTest, RowsBeginAnywhere) {
  std::vector<Region> regions;
  for (const char *element : {"f32", "bf16", "f16", "f64", "i8"})
    for (int extent : {66, 67, 127, 129, 197, 1001, 1022, 4099, 40001}) {
      std::string rows = llvm::formatv("tensor<{0}x{1}x{2}>", extent > 2000 ? 2 : 7, extent, element).str();
      std::string row = llvm::formatv("tensor<{0}x{1}>", extent, element).str();
      std::string kept = llvm::formatv("tensor<{0}x{1}>", extent > 2000 ? 2 : 7, element).str();
      std::string places = llvm::formatv("tensor<{0}xi64>", extent > 2000 ? 2 : 7).str();
      add(regions, llvm::formatv("(%x: {0}) -> ({1}, {2}) {{\n%y = nn.reduce max %x dims [1] : ({0}) -> {1}\n"
                                 "%i = nn.arg_reduce min %x dim 1 last : ({0}) -> {2}\nreturn %y, %i : {1}, {2}\n}",
                                 rows, kept, places));
      add(regions, llvm::formatv("(%x: {0}) -> {0} {{\n%y = nn.neg %x : ({0}) -> {0}\nreturn %y : {0}\n}", rows));
      if (element == std::string("i8"))
        continue;
      add(regions,
          llvm::formatv("(%x: {0}, %s: {1}, %b: {1}) -> {0} {{\n%y = nn.layer_norm %x, %s bias %b dim 1 epsilon "
                        "1.0e-5 : ({0}, {1}, {1}) -> {0}\nreturn %y : {0}\n}",
                        rows, row));
      add(regions, llvm::formatv("(%x: {0}, %m: {1}) -> {0} {{\n%z = nn.add %x, %m : ({0}, {1}) -> {0}\n"
                                 "%y = nn.softmax %z dim 1 : ({0}) -> {0}\nreturn %y : {0}\n}",
                                 rows, row));
    }
  checkAll(regions);
}

// So large that a thread has several vectors, with operands as large and smaller ones.
TEST_F(DeviceRegionsTest, SeveralVectorsAThread) {
  std::vector<Region> regions;
  std::string large = "tensor<2048x1024xf32>", row = "tensor<1024xf32>";
  add(regions, llvm::formatv("(%x: {0}) -> {0} {{\n%y = nn.neg %x : ({0}) -> {0}\nreturn %y : {0}\n}", large));
  add(regions, llvm::formatv("(%x: {0}, %z: {0}, %c: {1}) -> {0} {{\n%a = nn.add %x, %c : ({0}, {1}) -> {0}\n"
                             "%y = nn.sub %a, %z : ({0}, {0}) -> {0}\nreturn %y : {0}\n}",
                             large, row));
  checkAll(regions);
}

// Through squares of shared memory, whole ones and parts.
TEST_F(DeviceRegionsTest, Transposes) {
  std::vector<Region> regions;
  for (const char *element : {"f32", "bf16", "i8", "f64"})
    for (auto [rows, columns] : {std::pair(32, 64), {70, 33}, {8, 100}})
      add(regions, llvm::formatv("(%x: tensor<3x{0}x{1}x{2}>) -> tensor<3x{1}x{0}x{2}> {{\n"
                                 "%y = nn.transpose %x [0, 2, 1] : (tensor<3x{0}x{1}x{2}>) -> tensor<3x{1}x{0}x{2}>\n"
                                 "return %y : tensor<3x{1}x{0}x{2}>\n}",
                                 rows, columns, element));
  checkAll(regions);
}

// By a block of threads a line: of one round and several, along any dim, either way round.
TEST_F(DeviceRegionsTest, RunningSums) {
  std::vector<Region> regions;
  for (const char *element : {"f32", "bf16", "f64", "i32", "i64"})
    for (const char *rest : {"", " exclusive", " reverse", " exclusive reverse"})
      for (int extent : {65, 128, 1024, 2500})
        for (int inner : {1, 3}) {
          std::string type = llvm::formatv("tensor<2x{0}x{1}x{2}>", extent, inner, element).str();
          if (inner == 1)
            type = llvm::formatv("tensor<2x{0}x{1}>", extent, element);
          add(regions,
              llvm::formatv("(%x: {0}) -> {0} {{\n%y = nn.cumsum %x dim 1{1} : ({0}) -> {0}\nreturn %y : {0}\n}", type,
                            rest));
        }
  checkAll(regions);
}

// Sorted in shared memory, as a whole or a part after the other; of equal elements the first comes first.
TEST_F(DeviceRegionsTest, TheBestOfLines) {
  std::vector<Region> regions;
  for (const char *element : {"f32", "bf16", "f64", "i8", "ui16", "i64"})
    for (const char *order : {"", " smallest"})
      for (auto [extent, best] : {std::pair(1, 1), {7, 7}, {100, 100}, {100, 3}, {9000, 40}}) {
        std::string from = llvm::formatv("tensor<2x{0}x2x{1}>", extent, element).str();
        std::string values = llvm::formatv("tensor<2x{0}x2x{1}>", best, element).str();
        std::string places = llvm::formatv("tensor<2x{0}x2xi64>", best).str();
        add(regions,
            llvm::formatv("(%x: {0}) -> ({1}, {2}) {{\n%v, %i = nn.top_k %x k {3} dim 1{4} : ({0}) -> ({1}, {2})\n"
                          "return %v, %i : {1}, {2}\n}",
                          from, values, places, best, order));
      }
  checkAll(regions);
}

// With channels last several of them are a thread's, of one window; borders count or do not, and channels may be no vectors.
TEST_F(DeviceRegionsTest, PoolsOfChannels) {
  std::vector<Region> regions;
  for (const char *element : {"f32", "bf16", "f16", "f64", "i8"})
    for (int channels : {8, 16, 5})
      for (const char *kind : {"max", "average", "average count_pads", "lp"}) {
        if (element == std::string("i8") && kind[0] == 'l')
          continue;
        auto [name, pads] = StringRef(kind).split(' ');
        std::string last = llvm::formatv("tensor<2x9x7x{0}x{1}>", channels, element).str();
        std::string first = llvm::formatv("tensor<2x{0}x9x7x{1}>", channels, element).str();
        std::string pooled = llvm::formatv("tensor<2x{0}x5x4x{1}>", channels, element).str();
        std::string turned = llvm::formatv("tensor<2x5x4x{0}x{1}>", channels, element).str();
        add(regions,
            llvm::formatv("(%x: {0}) -> {3} {{\n%t = nn.transpose %x [0, 3, 1, 2] : ({0}) -> {1}\n"
                          "%p = nn.pool {4} %t kernel [3, 3] strides [2, 2] pads_low [1, 1] pads_high [1, 1] dilations "
                          "[1, 1] {5} : ({1}) -> {2}\n%y = nn.transpose %p [0, 2, 3, 1] : ({2}) -> {3}\n"
                          "return %y : {3}\n}",
                          last, first, pooled, turned, name, pads));
      }
  checkAll(regions);
}

// Parts of the keys by a block each, whose warps take 32 keys at a time: parts of fewer keys too, and a last one of what is left.
TEST_F(DeviceRegionsTest, PartsOfKeys) {
  std::vector<Region> regions;
  for (const char *element : {"f32", "bf16"})
    for (auto [queries, keys, part] :
         {std::tuple(3, 40, 16), {3, 100, 50}, {3, 300, 256}, {3, 513, 512}, {20, 100, 50}, {33, 128, 48}})
      for (const char *rest :
           {"", " causal {causalOffset = 20 : i64}", " causal {causalOffset = 60 : i64, left = 30 : i64}", "mask"}) {
        // By tiles weights are rounded to bf16, within bounds that AttentionTest knows.
        if (queries >= 16 && element == std::string("bf16"))
          continue;
        std::string q = llvm::formatv("tensor<1x2x{0}x24x{1}>", queries, element).str();
        std::string k = llvm::formatv("tensor<1x1x{0}x24x{1}>", keys, element).str();
        std::string m = llvm::formatv("tensor<{0}x{1}x{2}>", queries, keys, element).str();
        std::string sums = llvm::formatv("tensor<1x2x{0}x{1}x24xf32>", queries, llvm::divideCeil(keys, part)).str();
        std::string logs = llvm::formatv("tensor<1x2x{0}x{1}xf32>", queries, llvm::divideCeil(keys, part)).str();
        bool isMasked = rest[0] == 'm';
        add(regions,
            llvm::formatv("(%q: {0}, %k: {1}, %v: {1}, %m: {2}) -> ({3}, {4}) {{\n%s, %l = exec.partial_attention %q, "
                          "%k, %v{5} part {6} scale 0.25{7} : ({0}, {1}, {1}{8}) -> ({3}, {4})\n"
                          "return %s, %l : {3}, {4}\n}",
                          q, k, m, sums, logs, isMasked ? " mask %m" : "", part, isMasked ? "" : rest,
                          isMasked ? ", " + m : ""));
      }
  checkAll(regions);
}

} // namespace
