//===- PipelineReport.cpp - what reports say of pipelines -----------------===//
//
// Ranks of a pipeline run programs of their own. The report is that of the busiest: it says what is sent by the rank that
// sends most, and of memory, parameters and compute the most that any rank has. Inputs and outputs are those of all.
//
//===----------------------------------------------------------------------===//
#include "PipelineReport.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace cleave;

func::FuncOp cleave::getCallee(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  return call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr()) : func::FuncOp();
}

SmallVector<func::FuncOp> cleave::getCalled(func::FuncOp func) {
  llvm::SetVector<func::FuncOp> called;
  called.insert(func);
  for (size_t next = 0; next < called.size(); ++next)
    for (Operation &op : func::FuncOp(called[next]).getBody().front())
      if (func::FuncOp callee = getCallee(&op))
        called.insert(callee);
  return called.takeVector();
}

/// Several values of one message are reported as one, of the shape of the first.
std::optional<CollectiveReport> cleave::describeMessage(Operation *op) {
  if (!isa<pipe::SendOp, exec::SendOp>(op) || op->getNumOperands() == 0)
    return std::nullopt;
  CollectiveReport report;
  report.kind = "send";
  if (auto axis = op->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr))
    report.axes = {axis.str()};
  report.groupSize = 2;
  auto first = cast<ShapedType>(op->getOperand(0).getType());
  llvm::raw_string_ostream(report.type) << first.getElementType();
  report.operandShape = report.resultShape = first.getShape().vec();
  for (Value value : op->getOperands())
    report.wireBytes += spmd::getBytes(value.getType());
  report.cause = "the next stages are on another rank of the pipeline";
  return report;
}

/// Distinct parameters of all ranks.
static int64_t countParameterBytes(ArrayRef<func::FuncOp> ranks) {
  SymbolTable symbols(func::FuncOp(ranks.front())->getParentOfType<ModuleOp>());
  llvm::DenseSet<Operation *> params;
  int64_t bytes = 0;
  auto count = [&](StringRef name) {
    if (auto param = symbols.lookup<nn::ParamOp>(name); param && params.insert(param).second)
      bytes += spmd::getBytes(param.getType());
  };
  for (func::FuncOp rank : ranks)
    for (func::FuncOp func : getCalled(rank)) {
      llvm::for_each(func.getOps<nn::LoadOp>(), [&](nn::LoadOp load) { count(load.getParam()); });
      llvm::for_each(func.getOps<exec::LoadOp>(), [&](exec::LoadOp load) { count(load.getParam()); });
    }
  return bytes;
}

static void addTensors(const std::vector<TensorReport> &from, std::vector<TensorReport> &to) {
  for (const TensorReport &tensor : from)
    if (llvm::none_of(to, [&](const TensorReport &known) { return known.name == tensor.name; }))
      to.push_back(tensor);
}

Report cleave::makePipelineReport(ArrayRef<func::FuncOp> ranks, StringRef model) {
  std::vector<Report> reports;
  for (func::FuncOp rank : ranks)
    reports.push_back(makeReport(rank, model));
  Report whole =
      *llvm::max_element(reports, [](const Report &a, const Report &b) { return a.getWireBytes() < b.getWireBytes(); });
  auto module = func::FuncOp(ranks.front())->getParentOfType<ModuleOp>();
  if (auto mesh = module->getAttrOfType<spmd::MeshAttr>(pipe::PipeDialect::kMeshAttr)) {
    whole.mesh.clear();
    for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
      whole.mesh.push_back({name.str(), size});
    whole.ranks = mesh.getNumRanks();
  }
  whole.parameterBytes = countParameterBytes(ranks);
  whole.inputs.clear();
  whole.outputs.clear();
  whole.flops = 0;
  int64_t inner = spmd::getMesh(module).getNumRanks();
  for (const Report &report : reports) {
    addTensors(report.inputs, whole.inputs);
    addTensors(report.outputs, whole.outputs);
    whole.parameterBytesPerRank = std::max(whole.parameterBytesPerRank, report.parameterBytesPerRank);
    whole.peakBytesPerRank = std::max(whole.peakBytesPerRank, report.peakBytesPerRank);
    whole.flopsPerRank = std::max(whole.flopsPerRank, report.flopsPerRank);
    whole.flops += report.flopsPerRank * static_cast<double>(inner);
  }
  return whole;
}
