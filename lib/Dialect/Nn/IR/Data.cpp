//===- Data.cpp - constants, parameters, iota -----------------------------===//
//
// A parameter is a symbol of the module and knows its type; a load repeats it, so that its users need no look-up. The
// two are compared by `verifySymbolUses`, which runs once per load, and for three forms of it:
//
//   nn.load @w                              all of it
//   nn.load @w starts [..] sizes [..]       a part, of a weight that several ops share
//   nn.load @w shard(#sharding)             one rank's shard, in a partitioned program
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "TypeInference.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Dialect/Nn/IR/Splat.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

LogicalResult ConstantOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  if (!type || type.getEncoding() || !haveSameShapes(type, getResult().getType()))
    return emitOpError() << "value has type " << getValue().getType() << " but the result is " << getResult().getType()
                         << " (C1)";
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// Bytes that a tensor takes in a file; nothing if it cannot stand in one (C3 of nn.param).
static std::optional<int64_t> getFileBytes(RankedTensorType type) {
  Type elementType = type.getElementType();
  if (!type.hasStaticShape() || !elementType.isIntOrFloat())
    return std::nullopt;
  int64_t bits = elementType.getIntOrFloatBitWidth();
  std::optional<int64_t> elements = countElements(type.getShape());
  if (!elements || (bits % 8 != 0 && bits > 4))
    return std::nullopt;
  return mulChecked(*elements, llvm::divideCeil(bits, 8));
}

// Readers of weights need not know whether there is one or several.
SmallVector<Attribute> cleave::nn::getPieces(ParamOp param) {
  auto stack = dyn_cast<ArrayAttr>(param.getValue());
  return stack ? SmallVector<Attribute>(stack.getValue()) : SmallVector<Attribute>{param.getValue()};
}

RankedTensorType cleave::nn::getPieceType(ParamOp param) {
  auto type = cast<RankedTensorType>(param.getType());
  bool hasParts = isStack(param) && type.getRank() > 0;
  return hasParts ? RankedTensorType::get(type.getShape().drop_front(), type.getElementType()) : type;
}

spmd::ShardBox LoadedBox::getShard(int64_t rank) const {
  spmd::ShardBox shard = spmd::getShardBox(sharding, sizes, rank);
  for (auto [at, first] : llvm::zip_equal(shard.start, starts))
    at += first;
  return shard;
}

FailureOr<LoadedBox> cleave::nn::getLoadedBox(LoadOp load, ParamOp param, spmd::MeshAttr mesh) {
  ArrayRef<int64_t> whole = cast<RankedTensorType>(param.getType()).getShape();
  LoadedBox box{SmallVector<int64_t>(whole.size(), 0), SmallVector<int64_t>(whole), {}};
  if (load.isPart())
    box = {SmallVector<int64_t>(*load.getStarts()), SmallVector<int64_t>(*load.getSizes()), {}};
  if (!load.getSharding())
    return box;
  box.sharding = dyn_cast<spmd::ShardingAttr>(*load.getSharding());
  if (!box.sharding || box.sharding.getMesh() != mesh || box.sharding.getDims().size() != box.sizes.size())
    return failure();
  return box;
}

/// C1 and C2 of a parameter, or of one part of it.
static LogicalResult verifyPiece(ParamOp op, Attribute value, RankedTensorType type, int64_t bytes) {
  if (auto weight = dyn_cast<WeightAttr>(value)) {
    if (weight.getOffset() < 0)
      return op.emitOpError() << "refers to offset " << weight.getOffset() << " of its file (C1)";
    if (weight.getLength() != bytes)
      return op.emitOpError() << "refers to " << weight.getLength() << " bytes but " << type << " needs " << bytes
                              << " (C1)";
    if (int64_t size = weight.getFileSize();
        size && (size < weight.getLength() || weight.getOffset() > size - weight.getLength()))
      return op.emitOpError() << "refers to offset " << weight.getOffset() << " with " << weight.getLength()
                              << " bytes of a file of " << weight.getFileSize() << " (C1)";
    return success();
  }
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements)
    return op.emitOpError() << "value is neither a weight nor an elements attribute (C2)";
  if (!haveSameShapes(elements.getType(), TypeRange{type}))
    return op.emitOpError() << "value has type " << elements.getType() << " but the parameter is " << type << " (C2)";
  return success();
}

LogicalResult ParamOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  std::optional<int64_t> bytes = getFileBytes(type);
  if (!bytes)
    return emitOpError() << "type " << type << " has no fixed size in bytes (C3)";
  auto stack = dyn_cast<ArrayAttr>(getValue());
  if (stack && (type.getRank() < 2 || type.getDimSize(0) != static_cast<int64_t>(stack.size())))
    return emitOpError() << "is a stack of " << stack.size() << " parts, which is no " << type << " (C4)";
  bytes = getFileBytes(getPieceType(*this));
  for (Attribute piece : getPieces(*this))
    if (failed(verifyPiece(*this, piece, getPieceType(*this), *bytes)))
      return failure();
  return success();
}

/// An error of `load`, whose other half is the parameter.
static InFlightDiagnostic emitAgainst(ParamOp param, LoadOp load) {
  InFlightDiagnostic error = load.emitOpError();
  error.attachNote(param.getLoc()) << "the parameter is here";
  return error;
}

/// C2 of a partitioned nn.load: the result is one rank's shard of the parameter.
static LogicalResult verifyShard(LoadOp load, RankedTensorType paramType, ParamOp param) {
  auto sharding = dyn_cast<spmd::ShardingAttr>(*load.getSharding());
  if (!sharding)
    return load.emitOpError() << "shard is " << *load.getSharding() << ", expected a #spmd.sharding (C2)";
  if (sharding.isPartial())
    return load.emitOpError() << "shard " << sharding << " is partial (C2)";
  auto emitError = [&] { return emitAgainst(param, load); };
  if (failed(sharding.verifyEncoding(paramType.getShape(), paramType.getElementType(), emitError)))
    return failure();
  Type local = spmd::getLocalType(spmd::withSharding(paramType, sharding));
  if (load.getResult().getType() != local)
    return emitError() << "result is " << load.getResult().getType() << " but the shard of parameter @"
                       << load.getParam() << " is " << local << " (C2)";
  return success();
}

/// The type of what `load` reads of a parameter of type `whole`: all of it or a part (C3).
static FailureOr<RankedTensorType> getReadType(LoadOp load, ParamOp param) {
  auto whole = cast<RankedTensorType>(param.getType());
  std::optional<ArrayRef<int64_t>> starts = load.getStarts(), sizes = load.getSizes();
  if (!starts && !sizes)
    return whole;
  size_t rank = whole.getRank();
  if (!starts || !sizes || starts->size() != rank || sizes->size() != rank)
    return emitAgainst(param, load) << "needs starts and sizes of a part for all " << rank << " dims of parameter @"
                                    << load.getParam() << " (C3)";
  for (auto [dim, start, size] : llvm::enumerate(*starts, *sizes))
    if (start < 0 || size < 0 || start > whole.getDimSize(dim) || size > whole.getDimSize(dim) - start)
      return emitAgainst(param, load) << "dim " << dim << " of the part has start " << start << " and size " << size
                                      << " but parameter @" << load.getParam() << " is " << whole << " (C3)";
  return RankedTensorType::get(*sizes, whole.getElementType());
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(*this, getParamAttr());
  if (!param) {
    InFlightDiagnostic error = emitOpError() << "@" << getParam() << " is not an nn.param (C1)";
    if (Operation *other = symbols.lookupNearestSymbolFrom(*this, getParamAttr()))
      error.attachNote(other->getLoc()) << "the symbol is here";
    return error;
  }
  FailureOr<RankedTensorType> type = getReadType(*this, param);
  if (failed(type))
    return failure();
  if (getSharding())
    return verifyShard(*this, *type, param);
  if (!haveSameShapes(*type, getResult().getType()))
    return emitAgainst(param, *this) << "result is " << getResult().getType() << " but "
                                     << (isPart() ? "the part of " : "") << "parameter @" << getParam() << " is "
                                     << *type << " (C2)";
  return success();
}

std::optional<double> cleave::nn::getSplatNumber(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat() || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  APFloat number = elements.getSplatValue<APFloat>();
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

StringRef LoadOp::getParameterName() { return getParam(); }

ArrayRef<int64_t> LoadOp::getParameterShape() {
  auto param = SymbolTable::lookupNearestSymbolFrom<ParamOp>(*this, getParamAttr());
  return cast<RankedTensorType>(param.getType()).getShape();
}

std::optional<ArrayRef<int64_t>> LoadOp::getPartOffset() { return getStarts(); }

LoadOp LoadOp::takePart(OpBuilder &builder, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(*this);
  SmallVector<int64_t> total(starts);
  if (isPart())
    for (auto [sum, start] : llvm::zip_equal(total, *getStarts()))
      sum += start;
  auto type = RankedTensorType::get(sizes, cast<RankedTensorType>(getResult().getType()).getElementType());
  return create(builder, getLoc(), type, getParamAttr(), builder.getDenseI64ArrayAttr(total),
                builder.getDenseI64ArrayAttr(sizes), Attribute());
}

LogicalResult IotaOp::verify() {
  int64_t dim = getDim(), rank = getResult().getType().getRank();
  if (dim < 0 || dim >= rank)
    return emitOpError() << "dim " << dim << " is not in [0, " << rank << ") (C1)";
  return success();
}
