//===- Results.h - what kernels store ---------------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_CODEGEN_RESULTS_H
#define CLEAVE_LIB_CODEGEN_RESULTS_H

#include "Schedule.h"

namespace cleave::codegen {

/// A result of the kernel: a value (reshapes behind it are left out, they change no byte) and where it goes.
struct Result {
  mlir::Value value, buffer;
};

/// Stores results at points that a template chooses.
class ResultStore {
public:
  explicit ResultStore(Emitter &e) : e(e) {}

  /// All results at their points, then all stores: a result may stand where an argument is read at the same point.
  void storeAll(llvm::ArrayRef<Result> group, llvm::function_ref<Point(const Result &)> getPoint);
  /// What is computed of the blocks of `anchor`, which `run` hands out, is stored when a block is there.
  void runAnchor(const Anchor &anchor, llvm::ArrayRef<Result> group, llvm::function_ref<void(TileSink)> run);

private:
  void storeAnchored(const Anchor &anchor, llvm::ArrayRef<Result> group, const Point &point, mlir::Value value);
  void storeOneByOne(const Anchor &anchor, llvm::ArrayRef<Result> group, const Point &point, mlir::Value value);

  Emitter &e;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_RESULTS_H
