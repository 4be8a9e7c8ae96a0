//===- LikePlan.h - a plan of a style that people know ----------*- C++ -*-===//
//
// `CompileOptions::like` asks for it, or `like` of the plan that is given; what an axis then splits follows from the structure of the model
// (Search/Styles.h). The plan is rules: what it says is what a person would have written. By the option no axis is free.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_LIKEPLAN_H
#define CLEAVE_COMPILER_LIKEPLAN_H

#include "cleave/Compiler/Compilation.h"

namespace cleave {

struct LikePlan {
  std::shared_ptr<const spmd::Plan> plan;
  /// `data,megatron`.
  std::string style;
  /// `model=4`.
  std::string mesh;
  /// Inputs, weights and results that rules split.
  size_t tensors = 0;
};

/// What is wrong with the words of `CompileOptions::like`; success: nothing.
llvm::Error checkStyles(llvm::StringRef like);

/// The plan as a file that a person can edit.
std::string formatLikePlan(const Compilation &compilation, const LikePlan &like);

} // namespace cleave

#endif // CLEAVE_COMPILER_LIKEPLAN_H
