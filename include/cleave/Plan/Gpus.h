//===- Gpus.h - GPUs by name ------------------------------------*- C++ -*-===//
//
// What data sheets say of them, in one table: `--gpu H100`, and clusters that are named after a GPU and a count (`2x8xH100-ib`).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_GPUS_H
#define CLEAVE_PLAN_GPUS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace cleave::spmd {

/// Figures of one GPU; 0 where it has none of that.
struct Gpu {
  llvm::StringLiteral name;
  unsigned architecture;     ///< 90: compute capability 9.0
  double f32, bf16, f16, i8; ///< Tflop/s and Top/s, dense; of bf16 and f16 with sums in f32
  double memoryGb, memoryGbps;
  /// GB/s each way: to others over NVLink, over PCIe, and its share of the network of a node that its maker builds.
  double nvlink, pcie, network;

  /// `sm_90`
  std::string getArchitecture() const { return "sm_" + std::to_string(architecture); }
};

/// By name.
llvm::ArrayRef<Gpu> getGpus();
/// The one called so, whatever the case, and whether or not there are spaces and dashes (`rtx 4090`); null: there is none.
const Gpu *findGpu(llvm::StringRef name);
/// `; did you mean 'H100' or 'H200'?`, or nothing.
std::string suggestGpus(llvm::StringRef name);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_GPUS_H
