//===- UseLibraries.cpp - kernels that libraries have ---------------------===//
//
// A library's call is a product, or a convolution, and little behind it, or attention alone. Where a kernel computes more, what the library can
// do is cut off as a kernel of its own, if the product is large enough for the pass over its result that this costs:
//
//   { y = gelu (a x b + bias) }     ->     { p = a x b + bias } { y = gelu p }
//
// A product whose columns go to several places, as parts for ranks do, is a batch of products with some columns each, and one call:
//
//   { reshape (einsum %a, %b "mk,kn->mn") : 8x2x3 -> transpose }     ->     { einsum %a, (reshape %b : 4x2x3) "mk,kpq->mpq" -> transpose }
//
// Kernels stay kernels: which of them are calls, assembly finds by the same question. Operands come in the order of a
// command's, so that the kernel can stand in for it.
//
//===----------------------------------------------------------------------===//
#include "../Kernels/KernelParts.h"
#include "cleave/Codegen/Device/Regions.h"
#include "cleave/Codegen/Library/Libraries.h"
#include "cleave/Dialect/Exec/Fusion/Clusters.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Convolution.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"

namespace cleave::exec {
#define GEN_PASS_DEF_USELIBRARIES
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-use-libraries"

ALWAYS_ENABLED_STATISTIC(numLookedAt, "kernels looked at");
ALWAYS_ENABLED_STATISTIC(numCalls, "those that a library can compute");

/// Products for each element of a result, and rows and columns of it, from which on a library gains more than a pass over the
/// result costs. Of attention: keys and queries.
static constexpr int64_t kLeastDepth = 64, kLeastSide = 16;

namespace {
/// What a library would be asked for.
struct Call {
  /// The arguments of the region that it reads, in a command's order.
  SmallVector<unsigned> operands;
  bool isLarge = false;

  template <typename Found> static SmallVector<unsigned> listOperands(const Found &found) {
    SmallVector<unsigned> operands;
    for (const codegen::LibraryTensor *tensor : ArrayRef(found.getTensors()).drop_back())
      operands.push_back(tensor->buffer);
    return operands;
  }

  /// Nothing if the region is none.
  static std::optional<Call> find(Block &region) {
    if (std::optional<codegen::LibraryMatmul> matmul = codegen::findMatmul(region)) {
      int64_t side = std::min(matmul->result.shape.back(), matmul->result.shape.end()[-2]);
      return Call{listOperands(*matmul), matmul->getDepth() >= kLeastDepth && side >= kLeastSide};
    }
    if (std::optional<codegen::LibraryConvolution> conv = codegen::findConvolution(region)) {
      int64_t depth = ShapedType::getNumElements(conv->filter.shape) / conv->filter.shape.front();
      return Call{listOperands(*conv), depth >= kLeastDepth && conv->filter.shape.front() >= kLeastSide};
    }
    if (std::optional<codegen::LibraryAttention> attention = codegen::findAttention(region))
      return Call{listOperands(*attention),
                  attention->key.shape[2] >= kLeastDepth && attention->query.shape[2] >= kLeastSide};
    return std::nullopt;
  }
};
} // namespace

/// What follows the anchor one by one: each the only reader of the one before.
static SmallVector<Value> listChain(Block &region) {
  SmallVector<Value> chain;
  for (Operation &op : region)
    if (chain.empty() && isAnchor(&op) && isa<nn::EinsumOp, nn::ConvOp, nn::AttentionOp>(op))
      chain.push_back(op.getResult(0));
  while (!chain.empty() && chain.back().hasOneUse()) {
    Operation *reader = *chain.back().user_begin();
    if (reader->hasTrait<OpTrait::IsTerminator>() || reader->getNumResults() != 1)
      break;
    chain.push_back(reader->getResult(0));
  }
  return chain;
}

/// The longest beginning that a library can do, if it pays; the parts are in front of `fused`, which may go then.
static FusedOp splitCall(FusedOp fused) {
  Block &region = fused.getBody().front();
  SmallVector<Value> chain = listChain(region);
  for (Value last : llvm::reverse(chain)) {
    if (llvm::equal(region.getTerminator()->getOperands(), ArrayRef(last)))
      continue; // the whole, which is none
    Splitter splitter(fused);
    splitter.values.map(region.getArguments(), fused.getInputs());
    FusedOp part = splitter.makePart(last);
    std::string reason;
    std::optional<Call> call = Call::find(part.getBody().front());
    if (!call || !call->isLarge || !codegen::canEmitDevice(part.getBody().front(), reason)) {
      part.erase();
      continue;
    }
    SmallVector<Value> results(region.getTerminator()->getOperands()), rest;
    llvm::copy_if(results, std::back_inserter(rest), [&](Value value) { return value != last; });
    FusedOp behind = splitter.makePart(rest);
    if (!codegen::canEmitDevice(behind.getBody().front(), reason)) {
      behind.erase();
      part.erase();
      return {};
    }
    for (auto [outside, inside] : llvm::zip_equal(fused.getResults(), results))
      outside.replaceAllUsesWith(splitter.values.lookup(inside));
    fused.erase();
    return part;
  }
  return {};
}

/// A vector of f32 that a parameter gives, as bf16 in memory; where that is wanted several times, once.
static Value roundVector(Value vector) {
  auto type = cast<RankedTensorType>(vector.getType());
  auto narrow = type.clone(BFloat16Type::get(type.getContext()));
  for (Operation *user : vector.getUsers())
    if (auto pack = dyn_cast<PackOp>(user); pack && pack.getWidth() == 0 && pack.getType() == narrow)
      return pack;
  OpBuilder builder(vector.getContext());
  builder.setInsertionPointAfterValue(vector);
  return PackOp::create(builder, vector.getLoc(), narrow, vector, ArrayRef<int64_t>{0}, 0, 0, 1);
}

/// Libraries take a bias of the result's type only: beside a result in bf16 one of f32 is rounded on its way into memory, if that
/// makes a call of the kernel, which takes the place of `fused` then. Null if not.
static FusedOp roundBias(FusedOp fused) {
  auto isOf = [](Type type, auto test) { return test(cast<RankedTensorType>(type).getElementType()); };
  if (fused.getNumResults() != 1 || !isOf(fused.getResultTypes()[0], [](Type type) { return type.isBF16(); }))
    return {};
  OpBuilder builder(fused);
  auto trial = cast<FusedOp>(builder.clone(*fused));
  Block &region = trial.getBody().front();
  SmallVector<BlockArgument> biases;
  for (BlockArgument argument : region.getArguments()) {
    Operation *maker = trial.getInputs()[argument.getArgNumber()].getDefiningOp();
    if (nn::isData(maker) && isOf(argument.getType(), [](Type type) { return type.isF32(); }) &&
        cast<RankedTensorType>(argument.getType()).getRank() == 1)
      biases.push_back(argument);
  }
  builder.setInsertionPointToStart(&region);
  for (BlockArgument bias : biases) {
    auto type = cast<RankedTensorType>(bias.getType());
    auto wide = nn::CastOp::create(builder, bias.getLoc(), type, bias, /*saturate=*/false);
    bias.replaceAllUsesExcept(wide, wide);
    bias.setType(type.clone(builder.getBF16Type()));
  }
  if (biases.empty() || !Call::find(region)) {
    trial.erase();
    return {};
  }
  for (BlockArgument bias : biases) {
    OpOperand &input = trial.getInputsMutable()[bias.getArgNumber()];
    input.set(roundVector(input.get()));
  }
  fused.replaceAllUsesWith(trial);
  fused.erase();
  return trial;
}

namespace {
/// Dims of a product's result that a reshape behind it splits: what each letter becomes, and the extents of that.
class Columns {
public:
  /// \param used what letters there are in any case.
  Columns(StringRef letters, ArrayRef<int64_t> from, ArrayRef<int64_t> to, StringRef used);
  /// Whether the reshape does nothing else.
  bool areSplit() const { return isFull; }
  /// `value`, whose dims are `term`, with split dims; their letters are appended to `letters`.
  Value split(OpBuilder &builder, Value value, StringRef term, std::string &letters) const;
  StringRef getResult() const { return result; }

private:
  struct Letters {
    std::string letters;
    SmallVector<int64_t> extents;
  };
  llvm::SmallDenseMap<char, Letters> known;
  std::string result;
  bool isFull = false;
};
} // namespace

Columns::Columns(StringRef letters, ArrayRef<int64_t> from, ArrayRef<int64_t> to, StringRef used) {
  std::string free;
  for (char letter = 'a'; letter <= 'z'; ++letter)
    if (!used.contains(letter))
      free += letter;
  for (auto [letter, extent] : llvm::zip_equal(letters, from)) {
    Letters &own = known[letter];
    for (int64_t size = 1; !to.empty() && (size != extent || own.letters.empty()); to = to.drop_front()) {
      size *= to.front();
      own.extents.push_back(to.front());
      if (free.empty())
        return;
      own.letters += own.letters.empty() ? letter : free.front();
      free.erase(0, own.letters.size() > 1);
    }
    if (own.letters.empty() || ShapedType::getNumElements(own.extents) != extent)
      return;
    result += own.letters;
  }
  isFull = to.empty();
}

Value Columns::split(OpBuilder &builder, Value value, StringRef term, std::string &letters) const {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (auto [letter, extent] : llvm::zip_equal(term, type.getShape())) {
    auto own = known.find(letter);
    letters += own == known.end() ? std::string(1, letter) : own->second.letters;
    llvm::append_range(shape, own == known.end() ? ArrayRef<int64_t>(extent) : ArrayRef(own->second.extents));
  }
  return nn::Composer(builder, value.getLoc()).reshape(value, shape);
}

/// Leaves a reshape behind a product to the operands. False if there is none, or it puts dims together.
static bool splitColumns(Block &region) {
  auto products = region.getOps<nn::EinsumOp>();
  auto product = llvm::hasSingleElement(products) ? *products.begin() : nn::EinsumOp();
  auto reshape = product && product->hasOneUse() ? dyn_cast<nn::ReshapeOp>(*product->user_begin()) : nn::ReshapeOp();
  if (!reshape)
    return false;
  SmallVector<std::string> read;
  std::string used = product.getEquation().str();
  nn::EinsumTerms terms = *nn::parseEinsum(used);
  Columns columns(terms.result, product.getType().getShape(), reshape.getType().getShape(), used);
  if (!columns.areSplit())
    return false;
  OpBuilder builder(product);
  for (auto [term, operand] : llvm::zip_equal(terms.inputs, product->getOpOperands()))
    operand.set(columns.split(builder, operand.get(), term, read.emplace_back()));
  product.setEquation(llvm::join(read, ",") + "->" + columns.getResult().str());
  product.getResult().setType(reshape.getType());
  reshape.replaceAllUsesWith(product.getResult());
  reshape.erase();
  return true;
}

/// The same kernel with its columns split, in the place of `fused`, if a library has that. Else null.
static FusedOp splitColumns(FusedOp fused) {
  auto trial = cast<FusedOp>(OpBuilder(fused).clone(*fused));
  Block &region = trial.getBody().front();
  std::string reason;
  if (!splitColumns(region) || !Call::find(region) || !codegen::canEmitDevice(region, reason)) {
    trial.erase();
    return {};
  }
  fused.replaceAllUsesWith(trial);
  fused.erase();
  return trial;
}

/// Arguments as `order` says, which names each once.
static void reorder(FusedOp fused, ArrayRef<unsigned> order) {
  Block &region = fused.getBody().front();
  SmallVector<Value> inputs;
  for (unsigned argument : order) {
    BlockArgument old = region.getArgument(argument);
    inputs.push_back(fused.getInputs()[argument]);
    old.replaceAllUsesWith(region.addArgument(old.getType(), old.getLoc()));
  }
  region.eraseArguments(0, order.size());
  fused.getInputsMutable().assign(inputs);
}

namespace {
struct UseLibraries : cleave::exec::impl::UseLibrariesBase<UseLibraries> {
  using Base::Base;

  void runOnOperation() override {
    OwnFaults faults(&getContext());
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (auto fused : llvm::make_early_inc_range(func.getOps<FusedOp>()))
        prepare(fused);
  }

private:
  void prepare(FusedOp fused) {
    ++numLookedAt;
    std::optional<Call> call = Call::find(fused.getBody().front());
    if (FusedOp rounded = call ? FusedOp() : roundBias(fused)) {
      fused = rounded;
      call = Call::find(fused.getBody().front());
    }
    if (FusedOp split = call ? FusedOp() : splitColumns(fused)) {
      fused = split;
      call = Call::find(fused.getBody().front());
    }
    if (!call) {
      fused = splitCall(fused);
      call = fused ? Call::find(fused.getBody().front()) : std::nullopt;
    }
    numCalls += call.has_value();
    if (call)
      LDBG() << "a library computes " << fused;
    // One argument that is two operands of a call leaves the kernel as it is.
    llvm::SmallDenseSet<unsigned> once;
    if (call && call->operands.size() == fused.getInputs().size() &&
        llvm::all_of(call->operands, [&](unsigned operand) { return once.insert(operand).second; }))
      reorder(fused, call->operands);
  }
};
} // namespace
