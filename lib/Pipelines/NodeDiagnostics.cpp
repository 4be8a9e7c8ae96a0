//===- NodeDiagnostics.cpp - messages that name ONNX nodes ----------------===//
//
// Locations of ops hold `#nn.node`s, which a general printer writes out letter by letter. Here a message gets the names of
// its nodes in front, and a plain place in a file, and is emitted anew. The handler is registered when the nn dialect is
// loaded, which is after the tool has registered the one that prints: the last one registered is asked first.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Pipelines/Registration.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace cleave;

/// `node "/enc/MatMul" (MatMul), node "/enc/Add" (Add): `, and nothing for nodes without names.
static std::string formatNodes(ArrayRef<nn::NodeInfo> infos) {
  std::string text;
  for (const nn::NodeInfo &info : infos)
    if (!info.node.empty())
      text += (text.empty() ? "node \"" : ", node \"") + (info.node + "\" (" + info.opType + ")").str();
  return text.empty() ? text : text + ": ";
}

static Location getPlace(Location loc, Location otherwise) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  return place ? Location(place) : otherwise;
}

static LogicalResult renameNodes(mlir::Diagnostic &diagnostic, Location file) {
  SmallVector<nn::NodeInfo, 1> infos = nn::getNodeInfos(diagnostic.getLocation());
  if (infos.empty())
    return failure(); // for the next handler
  mlir::Diagnostic named(getPlace(diagnostic.getLocation(), file), diagnostic.getSeverity());
  named << formatNodes(infos) << diagnostic.str();
  for (mlir::Diagnostic &note : diagnostic.getNotes()) {
    Location loc = note.getLocation();
    named.attachNote(getPlace(loc, file))
        << (loc == diagnostic.getLocation() ? "" : formatNodes(nn::getNodeInfos(loc))) << note.str();
  }
  file.getContext()->getDiagEngine().emit(std::move(named));
  return success();
}

namespace {
struct NodeDiagnostics : DialectExtension<NodeDiagnostics, nn::NnDialect> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NodeDiagnostics)

  explicit NodeDiagnostics(StringRef path) : path(path.str()) {}

  void apply(MLIRContext *context, nn::NnDialect *) const override {
    Location file = FileLineColLoc::get(context, path, 0, 0);
    context->getDiagEngine().registerHandler(
        [file](mlir::Diagnostic &diagnostic) { return renameNodes(diagnostic, file); });
  }

  std::string path;
};
} // namespace

void cleave::nameNodesInDiagnostics(DialectRegistry &registry, StringRef file) {
  registry.addExtension(TypeID::get<NodeDiagnostics>(), std::make_unique<NodeDiagnostics>(file));
}
