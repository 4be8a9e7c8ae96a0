//===- Canonicalize.h - the form that deciding wants ------------*- C++ -*-===//
#ifndef CLEAVE_PIPELINES_CANONICALIZE_H
#define CLEAVE_PIPELINES_CANONICALIZE_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace cleave {

/// Adds the passes from an imported module to its canonical form (docs/deciding.md, last sections).
void buildCanonicalizePipeline(mlir::OpPassManager &manager);

/// Registers it as `nn-canonicalize`, and the passes of the nn dialect.
void registerNnPipelines();

} // namespace cleave

#endif // CLEAVE_PIPELINES_CANONICALIZE_H
