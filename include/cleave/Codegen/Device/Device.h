//===- Device.h - nn ops as kernels of a GPU --------------------*- C++ -*-===//
//
// The same regions as the host's (Codegen.h), one kernel each: functions of one gpu.module over flat buffers, arguments first, then
// results. A kernel is launched with one parameter per buffer, a pointer, in that order.
//
//   emitDeviceKernel .. emitDeviceKernel   into one module
//   compilePtx        -> PTX text          -> assemble -> cubin
//   translateDevice   -> llvm::Module      what an emulation makes code for this machine of
//
// Nothing of NVIDIA's is needed for that, but libdevice for the functions that `compilePtx` names when it is not there.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CODEGEN_DEVICE_DEVICE_H
#define CLEAVE_CODEGEN_DEVICE_DEVICE_H

#include "cleave/Codegen/Allowed.h"
#include "cleave/Codegen/Codegen.h"
#include "llvm/Support/Error.h"
#include <array>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace cleave::codegen {

/// A kind of GPU that kernels are for.
class CudaTarget : public Target {
public:
  /// \param name as `ptxas` calls an architecture: `sm_80`, `sm_90`, `sm_100`, `sm_120`; or `kEmulated`. An error where there is
  /// no such.
  static llvm::Expected<std::unique_ptr<CudaTarget>> create(llvm::StringRef name);
  /// The device that this machine plays, whose kernels become code of this machine instead of PTX.
  static constexpr llvm::StringLiteral kEmulated = "emulated";
  bool isEmulated() const { return emulated; }
  /// As `ptxas` calls it; of the emulated device that which it is like.
  const std::string &getArchitecture() const { return architecture; }
  void allow(Allowed what) { allowed = what; }
  Allowed getAllowed() const { return allowed; }
  /// Numbers of that type may be multiplied with fewer bits than they have.
  bool mayShorten(mlir::Type element) const { return element.isF32() && allowed == Allowed::Tf32; }

private:
  CudaTarget() = default;
  Allowed allowed = Allowed::Nothing;
  bool emulated = false;
  std::string architecture;
};

/// How a kernel is launched. Its shared memory is declared in its code: `sharedBytes` says how much, and nothing is to be
/// asked for at launch.
struct DeviceKernel {
  std::string name;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t sharedBytes = 0;
};

/// Registers and loads the dialects that kernels of devices are made of, those of the host's among them.
void loadDeviceDialects(mlir::MLIRContext &context);

/// Addresses of buffers are multiples of so many bytes, unless it is said otherwise: of as many as the widest access has.
constexpr int64_t kDeviceAlignment = 16;

/// Adds to `kernels` (to its gpu.module, which is made where there is none) a function `name` that computes `region`.
/// \param inPlace per result the argument in whose bytes it may lie, or -1; empty: none does. No other two buffers may overlap.
/// \param alignments per argument, then result, what its address is a multiple of, up to kDeviceAlignment; empty: of that.
/// \param always whether results lie there in every launch: what is there already need not be written then.
/// \param reports as of `emitHostKernel`.
/// Preconditions: `canEmitDevice(region)`, and the dialects are loaded.
DeviceKernel emitDeviceKernel(mlir::Block &region, llvm::StringRef name, mlir::ModuleOp kernels,
                              const CudaTarget &target, llvm::ArrayRef<int64_t> inPlace = {},
                              llvm::ArrayRef<int64_t> alignments = {}, bool always = false, bool reports = false);

/// The kernels as LLVM IR with NVPTX's intrinsics, before libdevice is linked and anything is optimized. `kernels` is used up.
/// Null where it cannot be lowered, with an error at its location.
std::unique_ptr<llvm::Module> translateDevice(mlir::ModuleOp kernels, const CudaTarget &target,
                                              llvm::LLVMContext &context);

struct PtxOptions {
  /// `libdevice.10.bc`; empty: looked for where CUDA is installed. Only kernels that call one of its functions need it.
  std::string libdevice;
};

/// PTX text of all kernels, which are used up. Equal modules give equal text.
mlir::FailureOr<std::string> compilePtx(mlir::ModuleOp kernels, const CudaTarget &target,
                                        const PtxOptions &options = {});

/// Machine code for `target` by `ptxas`, looked for on PATH and where CUDA is installed; an error where there is none, or where it
/// refuses. Nobody needs it: the driver assembles PTX by itself.
llvm::Expected<std::string> assemblePtx(llvm::StringRef ptx, const CudaTarget &target);

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_DEVICE_DEVICE_H
