//===- Adapters.h - what was trained beside weights -------------*- C++ -*-===//
//
// Of a checkpoint that `lora` has trained, adapters are folded into the weights of a model (Trained.h), or stand in a file of their own.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXPORT_ONNX_ADAPTERS_H
#define CLEAVE_EXPORT_ONNX_ADAPTERS_H

#include "cleave/Arrays/Safetensors.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace cleave::onnx {

/// Two thin matrices, or tensors, whose product is added to a weight (Dialect/Nn/IR/Adapter.h).
struct Adapter {
  std::string name; ///< of the first factor, without its end
  std::string weight;
  std::vector<int64_t> starts, sizes; ///< of the part of it that the product is added to; empty: all
  std::string letters, down, up;      ///< of the weight and of the factors
  double factor = 1;
  std::string stored; ///< the weight's type where it is not of floats; empty: it can be added to
  std::vector<int64_t> shape;
  std::string otherUser; ///< what else reads the weight; empty: nothing, so that a sum with the product serves all

  /// The letter that only the factors have.
  char getRank() const;
};

/// Those of a step, in its order.
std::vector<Adapter> listAdapters(mlir::ModuleOp module);

/// Whether adapters can be folded: each weight is an initializer of floats, of that shape, of the ONNX model at `model`.
llvm::Error checkFolding(llvm::ArrayRef<Adapter> adapters, llvm::StringRef model);

/// Adds the product of an adapter, as the checkpoint `contents`, whose bytes are `bytes`, has its factors, to the elements of its weight, of
/// the shape `shape`.
llvm::Error addAdapter(const Adapter &adapter, const arrays::Safetensors &contents, llvm::StringRef bytes,
                       llvm::ArrayRef<int64_t> shape, std::vector<double> &elements);

/// Writes the factors of the checkpoint (safetensors) at `checkpoint` to `out`, as PEFT calls and shapes them: of a weight `h.0.fc.weight`
/// the matrices `base_model.model.h.0.fc.lora_A.weight`, [rank, summed], and `..lora_B.weight`, [other, rank], in f32; and what PEFT wants to
/// know of them to `getAdapterConfig(out)`, if `areModules`. Gives their number.
llvm::Expected<size_t> exportAdapters(llvm::ArrayRef<Adapter> adapters, llvm::StringRef checkpoint,
                                      llvm::StringRef out);
/// None is of a part of a fused weight, for which PEFT has no name.
bool areModules(llvm::ArrayRef<Adapter> adapters);
/// `adapter_config.json` beside such a file, where PEFT looks for it.
std::string getAdapterConfig(llvm::StringRef out);

} // namespace cleave::onnx

#endif // CLEAVE_EXPORT_ONNX_ADAPTERS_H
