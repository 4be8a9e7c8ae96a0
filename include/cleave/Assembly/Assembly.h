//===- Assembly.h - from an ordered module to a program ---------*- C++ -*-===//
#ifndef CLEAVE_ASSEMBLY_ASSEMBLY_H
#define CLEAVE_ASSEMBLY_ASSEMBLY_H

#include "cleave/Codegen/Allowed.h"
#include "cleave/Program/Program.h"
#include "cleave/Support/File.h"
#include "llvm/ADT/ArrayRef.h"
#include <deque>
#include <functional>

namespace mlir {
class ModuleOp;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace cleave {

/// Told what is being done, in a few words.
using ProgressHandler = std::function<void(const std::string &)>;

struct AssemblyOptions {
  /// The processors that kernels are for, the best first: `native`, or as LLVM names them.
  std::vector<std::string> isas = {"native"};
  /// CUDA devices that kernels are for instead, as `ptxas` names them, or `emulated`; empty: the program is for the host.
  std::vector<std::string> devices;
  /// Kernels of devices that are calls of a library (codegen/Libraries.h) become commands of these.
  bool usesLibraries = false;
  /// Products of f32 are computed as three of bf16 (codegen::HostTarget). Every processor must have tiles.
  bool splitsProducts = false;
  /// For tests: temporaries of kernels lie where who runs the program puts them (codegen::HostTarget).
  bool guardsScratch = false;
  /// What products on devices may do (codegen::CudaTarget).
  codegen::Allowed allowed = codegen::Allowed::Nothing;
  /// Weights stand in the program, not in the files that they came from.
  bool embedsWeights = false;
  /// Weights in files have the digests of all their bytes, which are read for it; not needed by who runs the program at once.
  bool digestsWeights = true;
  /// Where the program will lie: paths of weights are seen from there.
  std::string folder;
  program::Metadata metadata;
  ProgressHandler onProgress;
};

/// A program, and the bytes that it refers to.
struct Assembly {
  program::Program program;
  std::deque<std::string> bytes;
  std::vector<std::shared_ptr<const MappedFile>> files;

  // For reports.
  std::vector<int64_t> bounds; ///< of each variant, bytes of arenas that are needed at one time at the most
  double compileSeconds = 0;   ///< of kernels
};

/// Makes a program of functions of `ordered` modules, its variants: the same model on the same mesh for other shapes. With a
/// pipeline a variant is a function for each of its ranks, in order: each a role of the program. Variants are taken one after the other, and may be gone before the next one; kernels and weights that they share stand in the
/// program once, and memory is that of the largest.
class Assembler {
public:
  explicit Assembler(AssemblyOptions options);
  ~Assembler();

  /// Adds a variant, with its kernels as machine code. The program so far passes every check of its file
  /// (docs/program-file.md). False after an error, which is emitted at the op that it is about; the program is then lost.
  /// Of `entry`, where there are several functions: all take the same arguments, of which one may leave states as they are.
  bool add(llvm::ArrayRef<mlir::func::FuncOp> functions, llvm::ArrayRef<program::Dim> dims = {},
           llvm::StringRef entry = {});

  /// The program of all variants. Precondition: there is one.
  std::unique_ptr<Assembly> take();

private:
  AssemblyOptions options;
  std::unique_ptr<class ProgramTables> tables;
};

/// A program of one variant. Null after an error, as above.
std::unique_ptr<Assembly> assemble(llvm::ArrayRef<mlir::func::FuncOp> functions, const AssemblyOptions &options);

} // namespace cleave

#endif // CLEAVE_ASSEMBLY_ASSEMBLY_H
