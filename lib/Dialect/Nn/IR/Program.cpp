//===- Program.cpp - what passes of spmd ask of nn ------------------------===//
//
// They know no op of nn, and have those made here that bring shards of several values together, or into another size.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Fit.h"
#include "cleave/Dialect/Nn/IR/Packed.h"
#include "cleave/Dialect/Spmd/IR/ProgramDialect.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {
struct NnProgram : public spmd::ProgramDialect {
  using ProgramDialect::ProgramDialect;

  Value reshape(OpBuilder &builder, Location loc, Value value, Shape shape) const override {
    return Composer(builder, loc).reshape(value, shape);
  }
  Value moveDim(OpBuilder &builder, Location loc, Value value, int64_t from, int64_t to) const override {
    return Composer(builder, loc).moveDim(value, from, to);
  }
  Value slice(OpBuilder &builder, Location loc, Value value, Shape starts, Shape sizes) const override {
    return Composer(builder, loc).slice(value, starts, sizes, SmallVector<int64_t>(sizes.size(), 1));
  }
  Value concat(OpBuilder &builder, Location loc, ValueRange values, int64_t dim) const override {
    return Composer(builder, loc).concat(values, dim);
  }
  Value fit(OpBuilder &builder, Location loc, Value value, Shape shape) const override {
    return nn::fit(builder, loc, value, shape);
  }
  bool readsAnywhere(Operation *reader) const override {
    auto formed = dyn_cast<FormOpInterface>(reader);
    return formed && llvm::is_contained({Form::Map, Form::Row, Form::Scan}, formed.getForm());
  }
  std::optional<PackedTensor> getPacked(Value bytes) const override { return nn::getPacked(bytes); }
};
} // namespace

void NnDialect::addProgram() { addInterfaces<NnProgram>(); }
