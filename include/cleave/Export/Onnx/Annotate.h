//===- Annotate.h - a model with its shardings ------------------*- C++ -*-===//
//
// The way back of cleave/Import/Onnx/DevicePlan.h: a decided module says how the tensors of its model lie, and the model's
// file gets that as device annotations (`configuration`, `device_configurations`), which other tools and Cleave read.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXPORT_ONNX_ANNOTATE_H
#define CLEAVE_EXPORT_ONNX_ANNOTATE_H

#include "cleave/Support/File.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::onnx {

/// What the tensors of a model are, by their names.
using TensorTypes = llvm::StringMap<mlir::RankedTensorType>;

/// Of a module as it was imported: canonical form may leave a tensor's name on a value of another shape.
TensorTypes collectTensors(mlir::ModuleOp module);

/// Writes the ONNX model in `model` with, on each node of its main graph, the shardings of those of `tensors` that values of
/// `module` are; annotations that it had are gone. Everything else stays as it is in the file, byte by byte, but the IR version,
/// which is at least 11. Of a tensor in terms (partial) nothing is said, as ONNX has no words for it. Errors: the file is
/// malformed; the model is split into stages. Precondition: `module` has been propagated, and was imported from the model.
llvm::Error writeAnnotated(const MappedFile &model, mlir::ModuleOp module, const TensorTypes &tensors,
                           llvm::raw_ostream &os);

} // namespace cleave::onnx

#endif // CLEAVE_EXPORT_ONNX_ANNOTATE_H
