//===- Registration.cpp - dialects and passes for the tools ---------------===//
#include "cleave/Pipelines/Registration.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Pipelines/Canonicalize.h"
#include "cleave/Pipelines/Shard.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

void cleave::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, nn::NnDialect, spmd::SpmdDialect>();
}

void cleave::registerPasses() {
  // On any IR: canonicalize, cse, symbol-dce, strip-debuginfo, ...
  mlir::registerTransformsPasses();
  registerNnPipelines();
  registerSpmdPipelines();
}
