//===- ExternalFiles.h - files beside an ONNX model -------------*- C++ -*-===//
#ifndef CLEAVE_ONNX_EXTERNALFILES_H
#define CLEAVE_ONNX_EXTERNALFILES_H

#include "cleave/Onnx/Model.h"

namespace cleave::onnx {

/// The files that tensors of `model` name as the place of their data, each once, as paths that can be opened; also those of
/// tensors that nobody needs. Whether they are there, and may be read, is not looked at.
std::vector<std::string> listExternalFiles(const ModelFile &model);

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_EXTERNALFILES_H
