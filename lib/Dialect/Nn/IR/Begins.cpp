//===- Begins.cpp - states that begin as weights --------------------------===//
//
// Attributes of arguments are looked at where they are used: whoever wrote the function may have written anything. Each of them has a
// short form, for all of a tensor, and a long one, for a part:
//
//   nn.begins   @w       {param = @w, starts = .., sizes = ..}     a box of a parameter
//   nn.origin   "w"      {name = "w", starts = .., shape = ..}     a box, as large as the argument, of a tensor of a checkpoint
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Begins.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

Attribute cleave::nn::makeBegins(LoadOp load) {
  if (!load.isPart())
    return load.getParamAttr();
  Builder b(load.getContext());
  return b.getDictionaryAttr({b.getNamedAttr("param", load.getParamAttr()),
                              b.getNamedAttr("starts", load.getStartsAttr()),
                              b.getNamedAttr("sizes", load.getSizesAttr())});
}

FlatSymbolRefAttr cleave::nn::getBeginsParam(Attribute begins) {
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(begins))
    return symbol;
  auto parts = dyn_cast<DictionaryAttr>(begins);
  return parts ? parts.getAs<FlatSymbolRefAttr>("param") : FlatSymbolRefAttr();
}

/// An entry of a dictionary, one number for each of `rank` dims.
static std::optional<ArrayRef<int64_t>> getNumbers(DictionaryAttr parts, StringRef name, int64_t rank) {
  auto numbers = parts ? parts.getAs<DenseI64ArrayAttr>(name) : DenseI64ArrayAttr();
  if (!numbers || numbers.size() != rank)
    return std::nullopt;
  return numbers.asArrayRef();
}

/// Whether the box lies in a tensor of those extents; no sum overflows.
static bool isInside(ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> whole) {
  return llvm::all_of(llvm::zip_equal(starts, sizes, whole), [](auto each) {
    auto [start, size, extent] = each;
    return start >= 0 && size >= 0 && start <= extent && size <= extent - start;
  });
}

FailureOr<LoadedBox> cleave::nn::getBeginning(Operation *op, Attribute begins, ParamOp param, RankedTensorType whole) {
  auto fail = [&] { return op->emitOpError() << "has a state of " << whole << " that begins as " << begins; };
  if (!getBeginsParam(begins))
    return fail() << ", expected a parameter, or {param, starts, sizes}";
  if (!param)
    return fail() << ", which is not an nn.param";
  auto type = cast<RankedTensorType>(param.getType());
  LoadedBox box{SmallVector<int64_t>(type.getRank(), 0), SmallVector<int64_t>(type.getShape()),
                spmd::getSharding(whole)};
  if (auto parts = dyn_cast<DictionaryAttr>(begins)) {
    auto starts = getNumbers(parts, "starts", type.getRank()), sizes = getNumbers(parts, "sizes", type.getRank());
    if (!starts || !sizes || !isInside(*starts, *sizes, type.getShape()))
      return fail() << ", which is not a part of " << type;
    box.starts.assign(starts->begin(), starts->end());
    box.sizes.assign(sizes->begin(), sizes->end());
  }
  Type from = type.getElementType(), to = whole.getElementType();
  if (ArrayRef<int64_t>(box.sizes) != whole.getShape() || (from != to && !(isa<FloatType>(from) && isa<FloatType>(to))))
    return fail() << ", which is " << RankedTensorType::get(box.sizes, from);
  if (box.sharding && box.sharding.isPartial())
    return fail() << ", and cannot be held in addends";
  return box;
}

/// A name alone is all of that tensor.
FailureOr<Origin> cleave::nn::readOrigin(Operation *op, Attribute origin, RankedTensorType whole) {
  if (auto name = dyn_cast<StringAttr>(origin))
    return Origin{name.getValue(), SmallVector<int64_t>(whole.getRank(), 0), SmallVector<int64_t>(whole.getShape())};
  auto parts = dyn_cast<DictionaryAttr>(origin);
  auto name = parts ? parts.getAs<StringAttr>("name") : StringAttr();
  auto starts = getNumbers(parts, "starts", whole.getRank()), shape = getNumbers(parts, "shape", whole.getRank());
  if (!name || !starts || !shape || !isInside(*starts, whole.getShape(), *shape))
    return op->emitOpError() << "has a state of " << whole << " with the origin " << origin
                             << ", expected a name, or {name, starts, shape} that it is in";
  return Origin{name.getValue(), SmallVector<int64_t>(*starts), SmallVector<int64_t>(*shape)};
}

/// Before anything is sharded, so that types are complete ones.
LogicalResult cleave::nn::verifyBeginnings(func::FuncOp func) {
  SymbolTable symbols(func->getParentOfType<ModuleOp>());
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    Attribute begins = func.getArgAttr(index, kBeginsAttr), origin = func.getArgAttr(index, kOriginAttr);
    FlatSymbolRefAttr name = type && begins ? getBeginsParam(begins) : FlatSymbolRefAttr();
    auto param = name ? symbols.lookup<ParamOp>(name.getValue()) : ParamOp();
    if (type && ((begins && failed(getBeginning(func, begins, param, type))) ||
                 (origin && failed(readOrigin(func, origin, type)))))
      return failure();
  }
  return success();
}
