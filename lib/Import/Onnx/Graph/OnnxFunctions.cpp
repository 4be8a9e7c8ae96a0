//===- OnnxFunctions.cpp - ops that ONNX defines by a function ------------===//
//
// The bodies are extracted from the onnx package when Cleave is built (python/tools/extract_functions.py), as one model
// that the reader parses like any other, on first use. The overload field says since which opset a body holds.
//
//===----------------------------------------------------------------------===//
#include "OnnxFunctions.h"

#include "llvm/ADT/StringMap.h"

using namespace cleave;
using namespace cleave::onnx;

namespace {
const unsigned char kFunctions[] = {
#include "OnnxFunctions.inc"
};

/// The functions by op type.
struct Library {
  std::unique_ptr<ModelFile> file;
  llvm::StringMap<std::vector<std::pair<int64_t, const FunctionProto *>>> byName;
};
} // namespace

/// Ops of other domains than ONNX's own have theirs in front.
static std::string makeName(llvm::StringRef domain, llvm::StringRef opType) {
  return domain.empty() ? opType.str() : (domain + "." + opType).str();
}

static Library readLibrary() {
  Library library;
  std::string bytes(reinterpret_cast<const char *>(kFunctions), sizeof(kFunctions));
  auto file = readModel(MappedFile::fromMemory("onnx functions", std::move(bytes)));
  if (!file) {
    llvm::consumeError(file.takeError());
    return library;
  }
  library.file = std::move(*file);
  for (const FunctionProto &function : library.file->model.functions) {
    int64_t version = 0;
    function.overload.getAsInteger(10, version);
    library.byName[makeName(function.domain, function.name)].emplace_back(version, &function);
  }
  return library;
}

const FunctionProto *cleave::onnx::findOnnxFunction(llvm::StringRef domain, llvm::StringRef opType, int64_t opset) {
  static const Library library = readLibrary();
  auto it = library.byName.find(makeName(domain, opType));
  const FunctionProto *best = nullptr;
  int64_t bestVersion = 0;
  if (it != library.byName.end())
    for (auto [version, function] : it->second)
      if (version <= opset && version > bestVersion) {
        best = function;
        bestVersion = version;
      }
  return best;
}
