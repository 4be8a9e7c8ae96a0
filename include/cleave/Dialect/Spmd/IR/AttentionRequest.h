//===- AttentionRequest.h - the form of attention that is asked for -*- C++ -*-===//
//
// A plan's word stands on the module from where the plan is placed on, so that a file written between two phases keeps it.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_SPMD_IR_ATTENTIONREQUEST_H
#define CLEAVE_DIALECT_SPMD_IR_ATTENTIONREQUEST_H

#include "cleave/Sharding/AttentionMethod.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"

namespace cleave::spmd {

/// Of a module: one of kAttentionWords.
inline constexpr llvm::StringLiteral kAttentionAttr = "spmd.attention";

inline void setAttentionRequest(mlir::ModuleOp module, AttentionMethod form) {
  module->setAttr(kAttentionAttr,
                  mlir::StringAttr::get(module.getContext(), kAttentionWords[static_cast<unsigned>(form)]));
}

/// The word of a module that was written by hand.
inline llvm::LogicalResult checkAttentionRequest(mlir::ModuleOp module) {
  mlir::Attribute word = module->getAttr(kAttentionAttr);
  auto text = mlir::dyn_cast_if_present<mlir::StringAttr>(word);
  if (!word || (text && llvm::is_contained(kAttentionWords, text.getValue())))
    return llvm::success();
  return module.emitError() << "attribute '" << kAttentionAttr << "' is "
                            << (text ? "'" + text.getValue().str() + "'" : "no text")
                            << ", expected auto, gather or ring";
}

/// The option's, or where that says nothing the module's.
inline AttentionMethod getAttentionRequest(mlir::ModuleOp module, AttentionMethod option) {
  auto word = module->getAttrOfType<mlir::StringAttr>(kAttentionAttr);
  if (option != AttentionMethod::Auto || !word)
    return option;
  const auto *found = llvm::find(kAttentionWords, word.getValue());
  return found == std::end(kAttentionWords) ? AttentionMethod::Auto
                                            : static_cast<AttentionMethod>(found - std::begin(kAttentionWords));
}

} // namespace cleave::spmd

#endif // CLEAVE_DIALECT_SPMD_IR_ATTENTIONREQUEST_H
