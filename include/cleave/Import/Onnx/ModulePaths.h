//===- ModulePaths.h - modules of the exporter's model ----------*- C++ -*-===//
//
// A model in PyTorch is a tree of modules, and people know their layers by it: `model.layers.0.self_attn.q_proj`. Exporters mangle names of
// tensors, but say of each node which module it comes from:
//
//   torch, dynamo        metadata `pkg.torch.onnx.name_scopes`: ['', 'model', 'model.layers.0', 'linear'], the last of which is the node
//                        itself; of earlier versions `namespace`: `: Net/model: Model/model.layers.0: Layer/linear: aten.linear`
//   torch, TorchScript   the folders of a node's name: `/model/layers.0/MatMul`
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_IMPORT_ONNX_MODULEPATHS_H
#define CLEAVE_IMPORT_ONNX_MODULEPATHS_H

#include "cleave/Onnx/Model.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::onnx {

/// What the metadata of a node says: `model.layers.0`. Empty: nothing, or that it stands in the whole model. Of a module that is called
/// several times (`fc@1`) all calls are one.
std::string readModulePath(const NodeProto &node);

/// By the name of a tensor the modules of the nodes that read it, each once, in the order of the file: of those of `graph`, and of bodies in
/// it, which read tensors around them. Where a node without a module reads initializers alone (it unpacks a weight), the nodes behind it count.
llvm::StringMap<llvm::SmallVector<std::string, 1>> findReadingModules(const GraphProto &graph);

} // namespace cleave::onnx

#endif // CLEAVE_IMPORT_ONNX_MODULEPATHS_H
