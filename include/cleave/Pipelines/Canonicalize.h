//===- Canonicalize.h - the form that deciding wants ------------*- C++ -*-===//
#ifndef CLEAVE_PIPELINES_CANONICALIZE_H
#define CLEAVE_PIPELINES_CANONICALIZE_H

namespace mlir {
class OpPassManager;
class GreedyRewriteConfig;
} // namespace mlir

namespace cleave {

/// Adds the passes from an imported module to its canonical form (docs/deciding.md, last sections).
void buildCanonicalizePipeline(mlir::OpPassManager &manager);

/// For folds on functions of one block: one iteration follows all that it changes, a second would only look at everything once more.
mlir::GreedyRewriteConfig getOnePass();

/// Registers it as `nn-canonicalize`, and the passes of the nn dialect.
void registerNnPipelines();

} // namespace cleave

#endif // CLEAVE_PIPELINES_CANONICALIZE_H
