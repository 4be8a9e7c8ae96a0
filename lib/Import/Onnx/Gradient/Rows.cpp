//===- Rows.cpp - derivatives of products, reductions and norms -----------===//
//
// A product is linear in each factor, so a factor's gradient is a product of the result's with the other factors: of
// `bik,bkj->bij` that of the first is `bij,bkj->bik`. Norms are differentiated as their formulas, with x^ the normalized input:
//
//   y = x^ * scale + bias,  dx = (dx^ - mean(dx^) - x^ * mean(dx^ * x^)) / deviation       (Ba et al. 2016; without means: RMS norm)
//
// in f32 at least, as they are computed.
//
//===----------------------------------------------------------------------===//
#include "Gradient.h"

#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Indexing.h"
#include "cleave/Dialect/Nn/IR/Ops/Normalization.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The gradient of factor `index`. A dim of size 1 that repeats is summed over, one that nothing else has repeats the sum.
static Value differentiateFactor(Derivative &d, nn::EinsumOp einsum, unsigned index) {
  auto [left, out] = einsum.getEquation().split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  std::string equation = out.str(), known = out.str(), kept;
  SmallVector<Value> factors = {d.gradient()};
  for (auto [i, term] : llvm::enumerate(terms))
    if (i != index) {
      equation += ("," + term).str();
      known += term;
      factors.push_back(d.operand(i));
    }
  Shape shape = NodeContext::shape(d.operand(index));
  for (auto [letter, size] : llvm::zip_equal(terms[index], shape))
    if (size != 1 && StringRef(known).contains(letter))
      kept += letter;
  Value product = d.f.einsum(factors, equation + "->" + kept);
  if (d.node.failed())
    return {};
  Ints apart;
  const int64_t *size = NodeContext::shape(product).begin();
  for (char letter : terms[index])
    apart.push_back(StringRef(kept).contains(letter) ? *size++ : 1);
  return d.node.broadcast(d.node.reshape(product, apart), shape);
}

static bool differentiateEinsum(Derivative &d, nn::EinsumOp einsum) {
  // A value may be several factors, each of which has its share.
  for (unsigned i = 0; i < einsum.getInputs().size(); ++i)
    if (d.wants(i))
      d.give(i, differentiateFactor(d, einsum, i));
  return true;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The gradient of a reduction with the dims that it dropped, of size 1.
static Value keepDims(Derivative &d, Value value, Shape dims, bool areKept) {
  return areKept ? value : d.node.unsqueeze(value, dims);
}

/// Of several largest elements each has an equal share.
static bool differentiateReduce(Derivative &d, nn::ReduceOp reduce) {
  nn::Composer &f = d.f;
  Value x = d.operand(0);
  Shape dims = reduce.getDims(), shape = NodeContext::shape(x);
  Value g = keepDims(d, d.gradient(), dims, reduce.getKeepDims());
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shape[dim];
  switch (reduce.getKind()) {
  case nn::ReduceKind::Sum:
    d.give(0, d.node.broadcast(g, shape));
    return true;
  case nn::ReduceKind::Mean:
    d.give(0, d.node.broadcast(f.div(g, double(count)), shape));
    return true;
  case nn::ReduceKind::Max:
  case nn::ReduceKind::Min: {
    Value most = keepDims(d, d.result(), dims, reduce.getKeepDims());
    Value share = d.node.cast(f.eq(x, most), NodeContext::elementType(x));
    d.give(0, f.mul(f.div(g, f.sum(share, dims, /*keepDims=*/true)), share));
    return true;
  }
  case nn::ReduceKind::Prod:
    return false;
  }
  return false;
}

static bool differentiateTopK(Derivative &d, nn::TopKOp top) {
  d.give(0, d.node.create<nn::ScatterElementsOp>(nn::ScatterKind::Add, d.zerosLike(d.operand(0)), top.getIndices(),
                                                 d.gradient(), int64_t(top.getDim())));
  return true;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

static Value widen(Derivative &d, Value value) {
  bool isNarrow = value && NodeContext::elementType(value).getIntOrFloatBitWidth() < 32;
  return isNarrow ? d.node.cast(value, d.f.f32()) : value;
}

/// Of the norm over `dims`, centered (layer norm) or not (RMS norm).
static bool differentiateNorm(Derivative &d, Value input, Value scale, Value bias, Shape dims, double epsilon,
                              bool isCentered) {
  nn::Composer &f = d.f;
  Value x = widen(d, input), g = widen(d, d.gradient());
  if (isCentered)
    x = f.sub(x, f.mean(x, dims, /*keepDims=*/true));
  Value deviation = f.sqrt(f.add(f.mean(f.square(x), dims, /*keepDims=*/true), epsilon));
  Value normal = f.div(x, deviation), inner = scale ? f.mul(g, widen(d, scale)) : g;
  Value along = f.mul(normal, f.mean(f.mul(inner, normal), dims, /*keepDims=*/true));
  if (isCentered)
    along = f.add(along, f.mean(inner, dims, /*keepDims=*/true));
  d.give(input, f.div(f.sub(inner, along), deviation));
  d.give(scale, d.wants(scale) ? f.mul(g, normal) : Value());
  d.give(bias, g);
  return true;
}

/// With statistics that are given: all are per channel, dim 1.
static bool differentiateBatchNorm(Derivative &d, nn::BatchNormOp norm) {
  nn::Composer &f = d.f;
  Value input = norm.getInput(), g = widen(d, d.gradient());
  Ints channel(NodeContext::rank(input), 1), others;
  channel[1] = NodeContext::shape(input)[1];
  for (int64_t dim = 0; dim < int64_t(channel.size()); ++dim)
    if (dim != 1)
      others.push_back(dim);
  auto spread = [&](Value value) { return d.node.reshape(widen(d, value), channel); };
  auto gather = [&](Value value, Value part) {
    if (d.wants(value))
      d.give(value, f.sum(part, others));
  };
  Value centered = f.sub(widen(d, input), spread(norm.getMean()));
  Value deviation = f.sqrt(f.add(spread(norm.getVariance()), norm.getEpsilon().convertToDouble()));
  Value normal = f.div(centered, deviation), inner = f.div(f.mul(g, spread(norm.getScale())), deviation);
  d.give(input, inner);
  gather(norm.getScale(), f.mul(g, normal));
  gather(norm.getBias(), g);
  gather(norm.getMean(), f.neg(inner));
  gather(norm.getVariance(), f.mul(f.div(f.mul(inner, normal), deviation), -0.5));
  return true;
}

bool cleave::onnx::differentiateRows(Derivative &d, Operation *op) {
  nn::Composer &f = d.f;
  Value g = d.gradient();
  auto from = [&](int64_t dim) { return llvm::to_vector(llvm::seq<int64_t>(dim, NodeContext::rank(d.operand(0)))); };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::EinsumOp einsum) { return differentiateEinsum(d, einsum); })
      .Case([&](nn::ReduceOp reduce) { return differentiateReduce(d, reduce); })
      .Case([&](nn::TopKOp top) { return differentiateTopK(d, top); })
      .Case([&](nn::SoftmaxOp softmax) {
        Value y = softmax.getResult(), all = f.sum(f.mul(g, y), {int64_t(softmax.getDim())}, /*keepDims=*/true);
        return d.give(0, f.mul(y, f.sub(g, all))), true;
      })
      .Case([&](nn::LogSoftmaxOp softmax) {
        Value all = f.sum(g, {int64_t(softmax.getDim())}, /*keepDims=*/true);
        return d.give(0, f.sub(g, f.mul(f.exp(softmax.getResult()), all))), true;
      })
      .Case([&](nn::CumsumOp sums) {
        d.give(0, d.node.create<nn::CumsumOp>(g, int64_t(sums.getDim()), sums.getExclusive(), !sums.getReverse()));
        return true;
      })
      .Case([&](nn::LayerNormOp norm) {
        return differentiateNorm(d, norm.getInput(), norm.getScale(), norm.getBias(), from(norm.getDim()),
                                 norm.getEpsilon().convertToDouble(), /*isCentered=*/true);
      })
      .Case([&](nn::RmsNormOp norm) {
        return differentiateNorm(d, norm.getInput(), norm.getScale(), {}, from(norm.getDim()),
                                 norm.getEpsilon().convertToDouble(), /*isCentered=*/false);
      })
      .Case([&](nn::BatchNormOp norm) { return differentiateBatchNorm(d, norm); })
      .Case([&](nn::RotaryEmbeddingOp rotary) {
        if (d.wants(1) || d.wants(2))
          return false;
        // Back by the same angles.
        d.give(0, d.node.create<nn::RotaryEmbeddingOp>(g, rotary.getCos(), f.neg(rotary.getSin()), rotary.getRotated(),
                                                       rotary.getInterleaved()));
        return true;
      })
      .Default(false);
}
