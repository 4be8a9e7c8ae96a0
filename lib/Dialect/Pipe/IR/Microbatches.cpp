//===- Microbatches.cpp - ops about parts of a batch ----------------------===//
//
// The loop over microbatches as text, and what is wrong with it. A word stands in front of each operand and result, so that
// both lists read like sentences: `(%i = %x split 0, %m = %mask whole) -> (split 0, sum)`.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/AxisLists.h"
#include "cleave/Sharding/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

/// One type, or two that differ in their sharding: `tensor<4xf32>`, `tensor<4xf32, #a> to tensor<4xf32, #b>`.
static ParseResult parseShardedTypes(OpAsmParser &parser, Type &input, Type &result) {
  if (parser.parseType(input))
    return failure();
  result = input;
  return succeeded(parser.parseOptionalKeyword("to")) ? parser.parseType(result) : ParseResult(success());
}

static void printShardedTypes(OpAsmPrinter &printer, Operation *, Type input, Type result) {
  printer << input;
  if (result != input)
    printer << " to " << result;
}

#define GET_OP_CLASSES
#include "cleave/Dialect/Pipe/IR/PipeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

/// Sums over microbatches and over ranks may change places, where both are of one kind.
spmd::ShardingRule AccumulateOp::getShardingRule() {
  spmd::RuleBuilder builder(1, 1);
  for (int64_t extent : getInput().getType().getShape()) {
    std::optional<spmd::FactorId> factor = builder.addParallel(extent);
    builder.operandDim(0, factor).resultDim(0, factor);
  }
  return builder.addLinear({0}, getKind()).rule;
}

/// The dim that is split in time stays as it is here: its pieces would have to be dealt out again.
spmd::ShardingRule PartOp::getShardingRule() {
  spmd::RuleBuilder builder(1, 1);
  auto addReplicated = [&](int64_t extent) {
    return extent < 2 ? std::optional<spmd::FactorId>() : builder.addFactor(extent);
  };
  for (auto [dim, extent] : llvm::enumerate(getResult().getType().getShape())) {
    if (dim == getDim()) {
      builder.operandDim(0, addReplicated(getInput().getType().getDimSize(dim))).resultDim(0, addReplicated(extent));
      continue;
    }
    std::optional<spmd::FactorId> factor = builder.addParallel(extent);
    builder.operandDim(0, factor).resultDim(0, factor);
  }
  builder.rule.isMovement = true;
  return builder.rule;
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult AccumulateOp::verify() {
  if (!nn::haveSameShapes(getInput().getType(), getResult().getType()))
    return emitOpError() << "combines " << getInput().getType() << " to " << getResult().getType() << " (C2)";
  Type element = getInput().getType().getElementType();
  if (spmd::isLegalReduction(getKind(), element))
    return success();
  return emitOpError() << "combines " << element << " by " << spmd::stringifyReductionKind(getKind()) << " (C1)";
}

/// Of parts of whole samples, which may differ in size: those of a microbatch, or any.
static std::string checkUneven(RankedTensorType whole, RankedTensorType part, int64_t dim, Deal deal, int64_t blocks,
                               std::optional<int64_t> microbatch) {
  if (deal.count < 1 || deal.samples < deal.count)
    return llvm::formatv("{0} samples are too few for {1} microbatches", deal.samples, deal.count);
  if (whole.getRank() != part.getRank() || blocks < 1 || whole.getDimSize(dim) / blocks % deal.samples != 0 ||
      whole.getDimSize(dim) % blocks != 0)
    return llvm::formatv("{0} positions are not {1} blocks of {2} samples", whole.getDimSize(dim), blocks,
                         deal.samples);
  SmallVector<int64_t> shape(whole.getShape());
  int64_t sample = shape[dim] / deal.samples;
  shape[dim] = microbatch ? sample * deal.getSize(*microbatch) : part.getDimSize(dim);
  if (part.getElementType() == whole.getElementType() && part.getShape() == ArrayRef(shape) &&
      (sample == 0 || shape[dim] % sample == 0))
    return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << part << " is not what ";
  if (microbatch)
    os << "microbatch " << *microbatch << " of " << deal.count << " has of " << deal.samples << " samples of " << whole;
  else
    os << "some of " << deal.samples << " samples have of " << whole;
  return text;
}

/// Says what is wrong between a value and the part that a microbatch has of it; empty if nothing is.
static std::string checkPart(RankedTensorType whole, RankedTensorType part, int64_t dim, Deal deal, int64_t blocks,
                             std::optional<int64_t> microbatch) {
  if (dim < 0 || dim >= part.getRank())
    return llvm::formatv("there is no dim {0}", dim);
  if (deal.samples != deal.count)
    return checkUneven(whole, part, dim, deal, blocks, microbatch);
  SmallVector<int64_t> shape(part.getShape());
  shape[dim] *= deal.count;
  if (deal.count < 1 || whole.getElementType() != part.getElementType() || whole.getShape() != ArrayRef(shape)) {
    std::string text;
    llvm::raw_string_ostream(text) << whole << " is not " << deal.count << " times " << part << " along dim " << dim;
    return text;
  }
  if (blocks < 1 || part.getDimSize(dim) % blocks != 0)
    return llvm::formatv("{0} positions are not {1} blocks", part.getDimSize(dim), blocks);
  return "";
}

LogicalResult PartOp::verify() {
  int64_t count = getCount();
  if (getIndex() && *getIndex() >= getCount())
    return emitOpError() << "takes part " << *getIndex() << " of " << count << " (C2)";
  std::string wrong = checkPart(getInput().getType(), getResult().getType(), getDim(), getDeal(), getBlocks(),
                                getIndex() ? std::optional<int64_t>(*getIndex()) : std::nullopt);
  return wrong.empty() ? success() : emitOpError() << wrong;
}

LogicalResult JoinOp::verify() {
  if (getParts().empty())
    return emitOpError("joins nothing");
  int64_t dim = getDim(), blocks = getBlocks(), extent = 0;
  RankedTensorType whole = getResult().getType();
  if (dim < 0 || dim >= whole.getRank())
    return emitOpError() << "there is no dim " << dim;
  for (Type type : getParts().getTypes()) {
    auto part = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(part.getShape());
    if (static_cast<int64_t>(shape.size()) == whole.getRank()) {
      extent += shape[dim];
      shape[dim] = whole.getDimSize(dim);
    }
    if (whole.clone(shape) != whole || part.getElementType() != whole.getElementType())
      return emitOpError() << part << " is not a part of " << whole << " along dim " << dim << " (C1)";
    if (blocks < 1 || part.getDimSize(dim) % blocks != 0)
      return emitOpError() << part.getDimSize(dim) << " positions are not " << blocks << " blocks";
  }
  if (extent != whole.getDimSize(dim))
    return emitOpError() << "joins " << extent << " positions to " << whole.getDimSize(dim) << " (C1)";
  return success();
}

/// C1 to C3 of pipe.microbatches, of one operand or result of a body.
static LogicalResult checkPiece(MicrobatchesOp op, PieceAttr piece, Type outer, Type inner, StringRef what,
                                size_t index, int64_t microbatch) {
  auto whole = cast<RankedTensorType>(outer), part = dyn_cast<RankedTensorType>(inner);
  std::string wrong;
  if (!part)
    wrong = "is not a tensor";
  else if (piece.isSplit())
    wrong = checkPart(whole, part, piece.getDim(), op.getDeal(), piece.getBlocks(), microbatch);
  else if (whole != part)
    wrong = "has another type inside";
  else if (std::optional<spmd::ReductionKind> kind = piece.getKind())
    wrong = spmd::isLegalReduction(*kind, part.getElementType()) ? "" : "cannot be combined so";
  else if (!piece.isReplicated())
    wrong = ("'" + piece.getWord() + "' is none of split, whole, sum, prod, max, min").str();
  return wrong.empty() ? success() : op.emitOpError() << what << " " << index << ": " << wrong;
}

/// The body that `microbatch` runs.
static LogicalResult checkBody(MicrobatchesOp op, Block &block, int64_t microbatch) {
  OperandRange yielded = block.getTerminator()->getOperands();
  if (block.getNumArguments() != op.getInputs().size() || op.getTakes().size() != op.getInputs().size())
    return op.emitOpError() << "has " << op.getInputs().size() << " operands, but its body " << block.getNumArguments()
                            << " arguments (C1)";
  if (yielded.size() != op.getNumResults() || op.getGives().size() != op.getNumResults())
    return op.emitOpError() << "has " << op.getNumResults() << " results, but its body yields " << yielded.size()
                            << " (C1)";
  for (auto [index, piece] : llvm::enumerate(op.getTakes().getAsRange<PieceAttr>())) {
    if (piece.getKind())
      return op.emitOpError() << "operand " << index << " is to be combined";
    if (failed(checkPiece(op, piece, op.getInputs()[index].getType(), block.getArgument(index).getType(), "operand",
                          index, microbatch)))
      return failure();
  }
  for (auto [index, piece] : llvm::enumerate(op.getGives().getAsRange<PieceAttr>()))
    if (failed(checkPiece(op, piece, op.getResult(index).getType(), yielded[index].getType(), "result", index,
                          microbatch)))
      return failure();
  return success();
}

LogicalResult MicrobatchesOp::verifyRegions() {
  Deal deal = getDeal();
  if (deal.count < 1 || deal.samples < deal.count)
    return emitOpError() << "has " << deal.samples << " samples for " << deal.count << " microbatches";
  if (deal.isEven() != getRest().empty())
    return emitOpError() << (deal.isEven() ? "has a second body, but all microbatches are of one size"
                                           : "has one body, but microbatches of two sizes")
                         << " (C4)";
  if (failed(checkBody(*this, getBody().front(), 0)))
    return failure();
  return deal.isEven() ? success() : checkBody(*this, getRest().front(), deal.count - 1);
}

//===----------------------------------------------------------------------===//
// Text of the loop
//===----------------------------------------------------------------------===//

/// `split 0 blocks 2`, `whole`, `sum`.
static ParseResult parsePiece(OpAsmParser &parser, PieceAttr &piece) {
  StringRef word;
  int64_t dim = 0, blocks = 1;
  if (parser.parseKeyword(&word))
    return failure();
  if (word == "split") {
    if (parser.parseInteger(dim))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("blocks")) && parser.parseInteger(blocks))
      return failure();
  }
  piece = PieceAttr::get(parser.getContext(), word, dim, blocks);
  return success();
}

static void printPiece(OpAsmPrinter &printer, PieceAttr piece) {
  printer << piece.getWord();
  if (!piece.isSplit())
    return;
  printer << ' ' << piece.getDim();
  if (piece.getBlocks() != 1)
    printer << " blocks " << piece.getBlocks();
}

/// What the first microbatch has of a value of `type`. Verifiers say what is wrong with the types.
static Type getInnerType(Type type, PieceAttr piece, Deal deal) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !piece.isSplit() || piece.getDim() < 0 || piece.getDim() >= tensor.getRank() || deal.count < 1 ||
      deal.samples < deal.count)
    return type;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[piece.getDim()] = deal.getExtent(shape[piece.getDim()], 0);
  return tensor.clone(shape);
}

ParseResult MicrobatchesOp::parse(OpAsmParser &parser, OperationState &result) {
  int64_t count = 0, samples = 0;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Attribute> takes, gives;
  auto parseTake = [&]() -> ParseResult {
    PieceAttr piece;
    if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) || parsePiece(parser, piece))
      return failure();
    takes.push_back(piece);
    return success();
  };
  auto parseGive = [&]() -> ParseResult {
    PieceAttr piece;
    if (parsePiece(parser, piece))
      return failure();
    gives.push_back(piece);
    return success();
  };
  // Types stand behind the body, which needs those of its arguments: its text is read once they are known.
  FunctionType type;
  if (parser.parseInteger(count) ||
      (succeeded(parser.parseOptionalKeyword("samples")) && parser.parseInteger(samples)) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseTake) || parser.parseArrow() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseGive) || parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(parser.getCurrentLocation(), "expected a type for each operand");
  for (auto [argument, operand, piece] : llvm::zip_equal(arguments, type.getInputs(), takes))
    argument.type = getInnerType(operand, cast<PieceAttr>(piece), {count, samples ? samples : count});
  Builder &builder = parser.getBuilder();
  result.addAttribute("count", builder.getI64IntegerAttr(count));
  if (samples)
    result.addAttribute("samples", builder.getI64IntegerAttr(samples));
  result.addAttribute("takes", builder.getArrayAttr(takes));
  result.addAttribute("gives", builder.getArrayAttr(gives));
  result.addTypes(type.getResults());
  if (parser.resolveOperands(operands, type.getInputs(), parser.getCurrentLocation(), result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  ensureTerminator(*result.regions.front(), builder, result.location);
  // The second body names its arguments, and their types, itself.
  Region *rest = result.addRegion();
  if (failed(parser.parseOptionalKeyword("rest")))
    return success();
  if (parser.parseRegion(*rest))
    return failure();
  ensureTerminator(*rest, builder, result.location);
  return success();
}

void MicrobatchesOp::print(OpAsmPrinter &printer) {
  Block &block = getBody().front();
  printer << ' ' << getCount();
  if (getSamples())
    printer << " samples " << *getSamples();
  printer << " (";
  llvm::interleaveComma(llvm::enumerate(getInputs()), printer, [&](auto entry) {
    printer.printRegionArgument(block.getArgument(entry.index()), {}, /*omitType=*/true);
    printer << " = " << entry.value() << ' ';
    printPiece(printer, cast<PieceAttr>(getTakes()[entry.index()]));
  });
  printer << ") -> (";
  llvm::interleaveComma(getGives().getAsRange<PieceAttr>(), printer,
                        [&](PieceAttr piece) { printPiece(printer, piece); });
  printer << ") : ";
  printer.printFunctionalType(getInputs().getTypes(), getResultTypes());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"count", "samples", "takes", "gives"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  if (getRest().empty())
    return;
  printer << " rest ";
  printer.printRegion(getRest());
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

LogicalResult ScheduleOp::verifyRegions() {
  int64_t ways = getWays().empty() ? 1 : *llvm::max_element(getWays()) + 1;
  if (!getWays().empty() &&
      (getWays().size() != static_cast<size_t>(getMicrobatches()) || *llvm::min_element(getWays()) < 0))
    return emitOpError() << "has ways " << getWays() << " for " << getMicrobatches() << " microbatches (C2)";
  if (static_cast<int64_t>(getPlacement().size()) != static_cast<int64_t>(getStages()) * ways)
    return emitOpError() << "places " << getPlacement().size() << " of " << getStages() << " stages"
                         << (ways > 1 ? ", each of " + std::to_string(ways) + " ways," : std::string()) << " (C2)";
  for (int64_t rank : getPlacement())
    if (rank < 0 || rank >= static_cast<int64_t>(getRanks()))
      return emitOpError() << "places a stage on rank " << rank << " of " << getRanks() << " (C2)";
  if (getChannels().size() % 2 != 0)
    return emitOpError("has a channel with one end: they are pairs of stages");
  int64_t next = 0;
  for (Operation &op : getBody().front()) {
    auto row = dyn_cast<RankOp>(op);
    if (!row || static_cast<int64_t>(row.getNumber()) != next++)
      return op.emitOpError() << "is where the row of rank " << next - (row ? 1 : 0) << " should be (C1)";
  }
  if (next != static_cast<int64_t>(getRanks()))
    return emitOpError() << "has " << next << " rows for " << getRanks() << " ranks (C1)";
  return success();
}
