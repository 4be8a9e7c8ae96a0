//===- Model.cpp - look-ups in the structs of an ONNX file ----------------===//
//
// `""` and `ai.onnx` are one domain; lists of attributes and opsets are short, so they are searched from the front.
//
//===----------------------------------------------------------------------===//
#include "cleave/Onnx/Model.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace cleave::onnx {

const AttributeProto *NodeProto::findAttribute(StringRef name) const {
  for (const AttributeProto &candidate : attribute)
    if (candidate.name == name)
      return &candidate;
  return nullptr;
}

static StringRef normalizeDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef() : domain; }

std::optional<int64_t> ModelProto::getOpset(StringRef domain) const {
  for (const OperatorSetIdProto &opset : opsetImport)
    if (normalizeDomain(opset.domain) == normalizeDomain(domain))
      return opset.version;
  return std::nullopt;
}

StringRef ModelFile::getFolder() const { return sys::path::parent_path(file->getPath()); }

} // namespace cleave::onnx
