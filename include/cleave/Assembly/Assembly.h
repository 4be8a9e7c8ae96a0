//===- Assembly.h - from an ordered module to a program ---------*- C++ -*-===//
#ifndef CLEAVE_ASSEMBLY_ASSEMBLY_H
#define CLEAVE_ASSEMBLY_ASSEMBLY_H

#include "cleave/Program/Program.h"
#include "cleave/Support/File.h"
#include <deque>
#include <functional>

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace cleave {

struct AssemblyOptions {
  /// The processors that kernels are for, the best first: `native`, or as LLVM names them.
  std::vector<std::string> isas = {"native"};
  /// Weights stand in the program, not in the files that they came from.
  bool embedsWeights = false;
  /// Where the program will lie: paths of weights are seen from there.
  std::string folder;
  program::Metadata metadata;
  /// Told what is being done, in a few words.
  std::function<void(const std::string &)> onProgress;
};

/// A program, and the bytes that it refers to.
struct Assembly {
  program::Program program;
  std::deque<std::string> bytes;
  std::vector<std::shared_ptr<const MappedFile>> files;

  // For reports.
  double compileSeconds = 0; ///< of kernels
};

/// What a function of an `ordered` module stands for, with its kernels as machine code. The program passes every check of
/// its file (docs/program-file.md). Null after an error, which is emitted at the op that it is about.
std::unique_ptr<Assembly> assemble(mlir::func::FuncOp func, const AssemblyOptions &options);

} // namespace cleave

#endif // CLEAVE_ASSEMBLY_ASSEMBLY_H
