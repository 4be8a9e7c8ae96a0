//===- Indexing.cpp - derivatives of lookups ------------------------------===//
//
// A lookup's gradient is added up where it looked; that of an update is looked up where it went. Indices have none.
//
//===----------------------------------------------------------------------===//
#include "Gradient.h"

#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Rows of a table that lie along another dim than the first are turned to the front, and the sum back.
///
///   g [before, indices, after]  ─▶  [indices, before, after]  ─scatter─▶  [dim, before, after]  ─▶  [before, dim, after]
static bool differentiateGather(Derivative &d, nn::GatherOp gather) {
  Value g = d.gradient(), indices = gather.getIndices();
  int64_t dim = gather.getDim(), count = NodeContext::rank(indices), rank = NodeContext::rank(g);
  Ints order = llvm::to_vector(llvm::seq<int64_t>(dim, dim + count));
  llvm::append_range(order, llvm::seq<int64_t>(0, dim));
  llvm::append_range(order, llvm::seq<int64_t>(dim + count, rank));
  Ints table(NodeContext::shape(gather.getInput()));
  std::rotate(table.begin(), table.begin() + dim, table.begin() + dim + 1);
  Ints back = llvm::to_vector(llvm::seq<int64_t>(1, dim + 1));
  back.push_back(0);
  llvm::append_range(back, llvm::seq<int64_t>(dim + 1, table.size()));
  Value zeros = d.node.broadcast(d.node.scalarLike(g, 0), table);
  Value sum = d.node.create<nn::ScatterNdOp>(nn::ScatterKind::Add, zeros, d.node.unsqueeze(indices, {count}),
                                             d.node.transpose(g, order));
  return d.give(0, d.node.transpose(sum, back)), true;
}

/// Places of the paired dims in front of the tuples: [b, q, t] becomes [b, q, 1 + t].
static Value makeFullTuples(Derivative &d, nn::GatherNdOp gather) {
  Value indices = gather.getIndices();
  Ints one(NodeContext::shape(indices));
  one.back() = 1;
  SmallVector<Value> parts;
  for (int64_t dim = 0; dim < int64_t(gather.getBatchDims()); ++dim)
    parts.push_back(d.f.iota(one, dim, NodeContext::elementType(indices)));
  parts.push_back(indices);
  return d.node.concat(parts, int64_t(one.size()) - 1);
}

static bool differentiateGatherNd(Derivative &d, nn::GatherNdOp gather) {
  Value zeros = d.zerosLike(d.operand(0));
  d.give(0, d.node.create<nn::ScatterNdOp>(nn::ScatterKind::Add, zeros, makeFullTuples(d, gather), d.gradient()));
  return true;
}

/// What is set hides what was there; what is added hides nothing. `kind`: other ones have no rule yet.
template <typename ScatterOp, typename Look, typename Clear>
static bool differentiateScatter(Derivative &d, ScatterOp scatter, Look look, Clear clear) {
  bool isSet = scatter.getKind() == nn::ScatterKind::Set;
  if (!isSet && scatter.getKind() != nn::ScatterKind::Add)
    return false;
  if (d.wants(0u))
    d.give(0, isSet ? clear(d.zerosLike(scatter.getUpdates())) : d.gradient());
  if (d.wants(2))
    d.give(2, look());
  return true;
}

bool cleave::onnx::differentiateIndexing(Derivative &d, Operation *op) {
  Value g = d.gradient();
  NodeContext &node = d.node;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::GatherOp gather) { return differentiateGather(d, gather); })
      .Case([&](nn::GatherElementsOp gather) {
        d.give(0, node.create<nn::ScatterElementsOp>(nn::ScatterKind::Add, d.zerosLike(d.operand(0)),
                                                     gather.getIndices(), g, int64_t(gather.getDim())));
        return true;
      })
      .Case([&](nn::GatherNdOp gather) { return differentiateGatherNd(d, gather); })
      .Case([&](nn::ScatterElementsOp scatter) {
        Value indices = scatter.getIndices();
        int64_t dim = scatter.getDim();
        return differentiateScatter(
            d, scatter, [&] { return node.create<nn::GatherElementsOp>(g, indices, dim); },
            [&](Value zeros) {
              return node.create<nn::ScatterElementsOp>(nn::ScatterKind::Set, g, indices, zeros, dim);
            });
      })
      .Case([&](nn::ScatterNdOp scatter) {
        Value indices = scatter.getIndices();
        return differentiateScatter(
            d, scatter, [&] { return node.create<nn::GatherNdOp>(g, indices, int64_t(0)); },
            [&](Value zeros) { return node.create<nn::ScatterNdOp>(nn::ScatterKind::Set, g, indices, zeros); });
      })
      .Default(false);
}
