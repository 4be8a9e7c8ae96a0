//===- Gpus.cpp - GPUs by name --------------------------------------------===//
//
// A new one is a row of this table, one of docs/cluster.md, which has the source of each, and a line of test/Unit/Plan/GpusTest.cpp.
// Rates are those without sparsity: where a data sheet has only figures with it, half of them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/Gpus.h"
#include "cleave/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

// PCIe each way with 16 lanes: 16 GB/s of generation 3, 32 of 4, 64 of 5; 8 lanes have half of it.
static constexpr Gpu kGpus[] = {
    // name, sm, f32, bf16, f16, i8, GB, GB/s, nvlink, pcie, network
    {"A10", 86, 31.2, 125, 125, 250, 24, 600, 0, 32, 0},
    {"A100", 80, 19.5, 312, 312, 624, 80, 2039, 300, 32, 25},
    {"A100-40GB", 80, 19.5, 312, 312, 624, 40, 1555, 300, 32, 25},
    {"A30", 80, 10.3, 165, 165, 330, 24, 933, 0, 32, 0},
    {"A40", 86, 37.4, 149.7, 149.7, 299.3, 48, 696, 0, 32, 0},
    {"B200", 100, 80, 2250, 2250, 4500, 180, 8000, 900, 64, 50},
    {"H100", 90, 67, 989, 989, 1979, 80, 3350, 450, 64, 50},
    {"H100-NVL", 90, 60, 835, 835, 1671, 94, 3900, 300, 64, 0},
    {"H100-PCIe", 90, 51, 756, 756, 1513, 80, 2000, 300, 64, 0},
    {"H200", 90, 67, 989, 989, 1979, 141, 4800, 450, 64, 50},
    {"L4", 89, 30.3, 121, 121, 242, 24, 300, 0, 32, 0},
    {"L40S", 89, 91.6, 362, 362, 733, 48, 864, 0, 32, 0},
    {"RTX3090", 86, 35.6, 71, 71, 284, 24, 936, 0, 32, 0},
    {"RTX4090", 89, 82.6, 165.2, 165.2, 660.6, 24, 1008, 0, 32, 0},
    {"RTX5090", 120, 104.8, 209.5, 209.5, 838, 32, 1792, 0, 64, 0},
    {"RTX6000Ada", 89, 91.1, 364.2, 364.2, 728.5, 48, 960, 0, 32, 0},
    {"RTXA6000", 86, 38.7, 154.8, 154.8, 309.7, 48, 768, 0, 32, 0},
    {"T4", 75, 8.1, 0, 65, 130, 16, 320, 0, 16, 0},
    {"V100", 70, 15.7, 0, 125, 0, 32, 900, 150, 16, 6.25},
};

ArrayRef<Gpu> cleave::spmd::getGpus() { return kGpus; }

/// Letters and digits alone: `RTX 4090`, `rtx-4090` and `RTX4090` are one.
static std::string simplify(StringRef name) {
  std::string letters;
  copy_if(name.lower(), std::back_inserter(letters), [](char c) { return isAlnum(c); });
  return letters;
}

const Gpu *cleave::spmd::findGpu(StringRef name) {
  const Gpu *found = find_if(kGpus, [&](const Gpu &gpu) { return simplify(gpu.name) == simplify(name); });
  return found != std::end(kGpus) ? found : nullptr;
}

std::string cleave::spmd::suggestGpus(StringRef name) {
  return suggestNames(name, map_to_vector(kGpus, [](const Gpu &gpu) { return StringRef(gpu.name); }));
}
