//===- Initialize.cpp - what a step of training begins with ---------------===//
//
// A graph `initialization` has no inputs, and reads nothing of the model: it is imported as a model of its own, with the operator sets and
// functions of this one, and run by the evaluator.
//
//===----------------------------------------------------------------------===//
#include "Initialize.h"

#include "GraphImporter.h"

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Reference/Evaluator.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using reference::Tensor;

/// Null where its elements are none that tensors here have.
static const int32_t *findDataType(const ModelFile &model, StringRef name) {
  for (const TensorProto &tensor : model.model.graph.initializer)
    if (tensor.name == name)
      return &tensor.dataType;
  for (const SparseTensorProto &tensor : model.model.graph.sparseInitializer)
    if (tensor.values.name == name)
      return &tensor.values.dataType;
  return nullptr;
}

/// In memory: numbers that are drawn stand in no file, and go into the program as constants do.
static TensorData keep(const Tensor &tensor, int32_t dataType) {
  TensorData data;
  data.dataType = dataType;
  data.shape = tensor.getShape().vec();
  auto buffer = std::make_shared<const std::vector<char>>(tensor.getBytes().begin(), tensor.getBytes().end());
  data.bytes = *buffer;
  data.buffer = std::move(buffer);
  return data;
}

/// The outputs of one graph, by name.
static FailureOr<llvm::StringMap<Tensor>> run(MLIRContext *context, const ModelFile &model, const GraphProto &graph) {
  ModelFile own;
  own.file = model.file;
  own.model.irVersion = model.model.irVersion;
  own.model.opsetImport = model.model.opsetImport;
  own.model.functions = model.model.functions;
  own.model.graph = graph;
  OwningOpRef<ModuleOp> module = GraphImporter(context, own, {}).import();
  auto func = module ? module->lookupSymbol<func::FuncOp>("main") : func::FuncOp();
  SmallVector<Tensor> outputs;
  if (!func || failed(reference::runGlobal(func, {}, outputs)))
    return failure();
  llvm::StringMap<Tensor> byName;
  for (auto [index, output] : llvm::enumerate(outputs))
    byName[spmd::getResultName(func, index)] = output;
  return byName;
}

LogicalResult cleave::onnx::initialize(MLIRContext *context, const ModelFile &model, ImportOptions &options) {
  std::map<size_t, llvm::StringMap<Tensor>> done;
  for (const TrainingStep::Beginning &beginning : options.step->beginnings) {
    // A graph gives the beginnings of many.
    auto found = done.find(beginning.info);
    if (found == done.end()) {
      FailureOr<llvm::StringMap<Tensor>> outputs =
          run(context, model, model.model.trainingInfo[beginning.info].initialization);
      if (failed(outputs))
        return failure();
      found = done.emplace(beginning.info, std::move(*outputs)).first;
    }
    const Tensor &tensor = found->second[beginning.output];
    // What is declared is compared with what was computed where weights are taken; elements of another type would be misread.
    const int32_t *dataType = findDataType(model, beginning.name);
    if (!dataType || convertElementType(context, *dataType) != tensor.getElementType())
      return emitError(NameLoc::get(StringAttr::get(context, model.file->getPath())),
                       printable("training_info[" + Twine(beginning.info) + "].initialization_binding: " + "'" +
                                 beginning.name + "' has " + getDataTypeName(dataType ? *dataType : UNDEFINED) +
                                 " elements, but begins as '" + beginning.output + "', which has others"));
    options.weights[beginning.name] = keep(tensor, *dataType);
  }
  return success();
}
