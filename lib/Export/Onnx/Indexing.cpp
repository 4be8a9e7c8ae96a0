//===- Indexing.cpp - reads and writes at computed places -----------------===//
//
// Negative indices count from the end in ONNX, too; those out of range are errors there as well.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

template <typename OpT> static void addGather(WriterTable &table, StringLiteral opType) {
  table.add<OpT>([opType](OpT op, GraphBuilder &out) {
    return out.node(opType, {out(op.getInput()), out(op.getIndices())}, op.getType(), {{"axis", op.getDim()}});
  });
}

/// How updates join what is there.
static StringRef getReduction(nn::ScatterKind kind) {
  constexpr StringLiteral words[] = {"none", "add", "mul", "max", "min"};
  return words[static_cast<unsigned>(kind)];
}

static std::string writeScatterElements(nn::ScatterElementsOp op, GraphBuilder &out) {
  return out.node("ScatterElements", {out(op.getInput()), out(op.getIndices()), out(op.getUpdates())}, op.getType(),
                  {{"axis", op.getDim()}, {"reduction", getReduction(op.getKind())}});
}

/// Tuples of ScatterND and GatherND are i64.
static std::string writeScatterNd(nn::ScatterNdOp op, GraphBuilder &out) {
  std::string indices = out.cast(out(op.getIndices()), IntegerType::get(op.getContext(), 64));
  return out.node("ScatterND", {out(op.getInput()), indices, out(op.getUpdates())}, op.getType(),
                  {{"reduction", getReduction(op.getKind())}});
}

static std::string writeGatherNd(nn::GatherNdOp op, GraphBuilder &out) {
  std::string indices = out.cast(out(op.getIndices()), IntegerType::get(op.getContext(), 64));
  return out.node("GatherND", {out(op.getInput()), indices}, op.getType(), {{"batch_dims", op.getBatchDims()}});
}

static std::string writeOneHot(nn::OneHotOp op, GraphBuilder &out) {
  return out.node("OneHot", {out(op.getIndices()), out.number(op.getDepth()), out(op.getValues())}, op.getType(),
                  {{"axis", op.getDim()}});
}

void cleave::onnx::registerIndexing(WriterTable &table) {
  addGather<nn::GatherOp>(table, "Gather");
  addGather<nn::GatherElementsOp>(table, "GatherElements");
  table.add<nn::GatherNdOp>(writeGatherNd);
  table.add<nn::ScatterElementsOp>(writeScatterElements);
  table.add<nn::ScatterNdOp>(writeScatterNd);
  table.add<nn::OneHotOp>(writeOneHot);
}
