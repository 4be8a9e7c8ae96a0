//===- Pooling.cpp - maximum, average and norm over windows ---------------===//
#include "Registry.h"
#include "Windows.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
struct PoolOptions {
  bool countPads = false, ceil = false;
  int64_t p = 2;
};
} // namespace

static void importPool(NodeContext &node, nn::PoolKind kind, const PoolOptions &options) {
  Value x = node.operand(0);
  Ints kernel = node.intsAttr("kernel_shape").value_or(Ints());
  int64_t spatial = NodeContext::rank(x) - 2;
  if (!node.check(spatial > 0, "the input has no spatial dims") ||
      !node.check(int64_t(kernel.size()) == spatial,
                  "attribute 'kernel_shape' has " + Twine(kernel.size()) + " entries, expected " + Twine(spatial)))
    return;
  std::optional<Window> window = readWindow(node, kernel);
  if (!window || node.failed())
    return;
  padAutomatically(*window, NodeContext::shape(x).drop_front(2));
  node.result(0, node.create<nn::PoolOp>(kind, x, window->kernel, window->strides, window->padsLow, window->padsHigh,
                                         window->dilations, options.countPads, options.ceil, options.p));
}

static void importMaxPool(NodeContext &node) {
  PoolOptions options;
  options.ceil = node.getOpset() >= 10 && node.boolAttr("ceil_mode", false);
  // The order in which indices count; indices themselves are not supported.
  if (node.getOpset() >= 8)
    node.ignoreAttr("storage_order");
  if (node.check(!node.wantsResult(1), "indices are not supported"))
    importPool(node, nn::PoolKind::Max, options);
}

static void importAveragePool(NodeContext &node) {
  PoolOptions options;
  options.ceil = node.getOpset() >= 10 && node.boolAttr("ceil_mode", false);
  options.countPads = node.boolAttr("count_include_pad", false);
  importPool(node, nn::PoolKind::Average, options);
}

static void importLpPool(NodeContext &node) {
  PoolOptions options;
  options.ceil = node.getOpset() >= 18 && node.boolAttr("ceil_mode", false);
  options.p = node.intAttr("p", 2);
  importPool(node, nn::PoolKind::Lp, options);
}

/// Over all spatial dims, which stay with size 1.
static Value reduceSpatial(NodeContext &node, nn::ReduceKind kind, Value value) {
  int64_t rank = NodeContext::rank(value);
  if (!value || !node.check(rank >= 2, "the input has no channels"))
    return {};
  Ints dims = llvm::to_vector(llvm::seq<int64_t>(2, rank));
  return dims.empty() ? value : node.create<nn::ReduceOp>(kind, value, dims, true);
}

template <nn::ReduceKind kind> static void importGlobalPool(NodeContext &node) {
  node.result(0, reduceSpatial(node, kind, node.operand(0)));
}

/// `(sum |x|^p)^(1/p)`
static void importGlobalLpPool(NodeContext &node) {
  Value x = node.operand(0);
  int64_t p = node.intAttr("p", 2);
  if (node.failed() || !node.check(p > 0, "attribute 'p' is " + Twine(p)))
    return;
  Value power = node.create<nn::PowOp>(node.create<nn::AbsOp>(x), node.scalarLike(x, p));
  Value sum = reduceSpatial(node, nn::ReduceKind::Sum, power);
  node.result(0, node.create<nn::PowOp>(sum, node.scalarLike(x, 1.0 / p)));
}

void cleave::onnx::registerPooling(Registry &registry) {
  Arity one{1, 1};
  registry.add("AveragePool", 7, one, importAveragePool);
  registry.add("GlobalAveragePool", one, importGlobalPool<nn::ReduceKind::Mean>);
  registry.add("GlobalLpPool", 2, one, importGlobalLpPool);
  registry.add("GlobalMaxPool", one, importGlobalPool<nn::ReduceKind::Max>);
  registry.add("LpPool", 2, one, importLpPool);
  registry.add("MaxPool", 1, {1, 1, 2}, importMaxPool);
}
