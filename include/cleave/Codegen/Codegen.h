//===- Codegen.h - nn ops as native code ------------------------*- C++ -*-===//
//
// A *region* is a block of nn ops over static tensors: block arguments in, the terminator's operands out. It becomes one
// function over flat buffers, and a module of such functions one object. Elements are in memory as in the evaluator's
// tensors: row-major, bools as bytes of 0 or 1.
//
// What data alone can show ends no kernel: an index out of range is clamped, and reported where somebody asks for it; a division of
// integers by 0 gives the dividend.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CODEGEN_CODEGEN_H
#define CLEAVE_CODEGEN_CODEGEN_H

#include "cleave/Codegen/KernelRules.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <cassert>
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace cleave::codegen {

/// What kernels are for: all that lowerings of ops ask about it.
class Target {
public:
  virtual ~Target();
  /// Bytes of the widest vector worth loading, storing or computing with.
  int64_t getVectorBytes() const { return vectorBytes; }
  /// Has fused multiply-add.
  bool hasFma() const { return fma; }
  /// Has instructions for 2^x, 1 / x and 1 / sqrt x that are right to 2 units in the last place.
  bool hasApproximations() const { return approximations; }
  llvm::TargetMachine &getMachine() const { return *machine; }

protected:
  Target();
  std::unique_ptr<llvm::TargetMachine> machine;
  int64_t vectorBytes = 16;
  bool fma = false, approximations = false;
};

/// The processor that host kernels are for.
class HostTarget : public Target {
public:
  /// \param isa `native`, this machine; else a processor as LLVM names it (`x86-64`, `x86-64-v3`, `sapphirerapids`).
  /// An error where there is no such.
  static llvm::Expected<std::unique_ptr<HostTarget>> create(llvm::StringRef isa);

  /// Multiplies bf16 pair by pair, faster than it would multiply them as f32.
  bool hasPairProducts() const { return pairProducts; }
  /// Rounds vectors of 16 f32 to bf16 by an instruction.
  bool roundsToHalves() const { return halves; }
  /// Multiplies bf16 in tiles (AMX). A process has to ask for them once.
  bool hasTiles() const { return tiles; }
  /// Products of f32 are those of two numbers of bf16 for each, in tiles: three products for one, each right to about 2^-16.
  /// Precondition: hasTiles().
  void splitProducts() {
    assert(hasTiles() && "products are split for tiles");
    splits = true;
  }
  bool splitsProducts() const { return splits; }
  /// For tests: all temporaries of a kernel come from `char *cleave_take_scratch(uint64_t bytes)` and go back by
  /// `cleave_give_scratch(char *)`, aligned to their elements alone. Whoever has the kernels run has these two functions, and can let
  /// pages that fault lie around what they give.
  void guardScratch() { guards = true; }
  bool guardsScratch() const { return guards; }
  /// `x86-64`, `aarch64`: what program files call it.
  std::string getArchitecture() const;
  /// What a processor must be able to do for code that is made for this one, as LLVM names it.
  std::vector<std::string> getRequirements(bool usesTiles) const;

private:
  HostTarget() = default;
  bool pairProducts = false, tiles = false, halves = false, splits = false, guards = false;
};

/// How an op is computed; `Fill` ops need all of their results in memory, in a kernel of several too.
enum class OpKind { Elementwise, Movement, Reduction, Fill };

/// Nothing if no kernel can hold the op; `reason` then says why.
std::optional<OpKind> getOpKind(mlir::Operation *op, std::string &reason);

/// The width of panels (exec.pack, interleave 1) in which kernels read weights of `element` fastest: one vector of the type
/// in which they are computed. Multiples of it do as well.
int64_t getPanelWidth(const HostTarget &target, mlir::Type element);

/// Registers and loads the dialects that kernels are made of.
void loadDialects(mlir::MLIRContext &context);

/// Appends to `kernels` a function `name` that computes `region`: one flat memref per argument, then one per result.
/// No result may overlap an argument, but for one that `canBeInPlace`. Precondition: `canEmit(region)`, and the dialects are loaded.
/// With `reports`, the address of two i64 comes last, which are left alone but where an index is out of range: then they become the
/// index, and one more than the places that it is for.
void emitHostKernel(mlir::Block &region, llvm::StringRef name, mlir::ModuleOp kernels, const HostTarget &target,
                    bool reports = false);

/// True if data can bring the kernel of `region` to look up an index that is out of range.
bool mayReport(mlir::Block &region);

/// True if a kernel multiplies in tiles.
bool usesTiles(mlir::ModuleOp kernels);

/// An object file with `void <name>(void **buffers)` for every function of `kernels`, which is used up. Equal modules
/// give equal bytes.
mlir::FailureOr<std::string> compileObject(mlir::ModuleOp kernels, const HostTarget &target);

/// A shared library of one object file, without names but those of its kernels. What it asks of the C library it says.
/// Equal objects give equal bytes. Not to be called from two threads at once.
llvm::Expected<std::string> linkObject(llvm::StringRef object);

} // namespace cleave::codegen

#endif // CLEAVE_CODEGEN_CODEGEN_H
