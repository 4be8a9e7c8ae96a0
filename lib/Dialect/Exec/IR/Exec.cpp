//===- Exec.cpp - the exec dialect ----------------------------------------===//
//
// Kernels as text, and what is wrong with one, by number. A body binds its arguments to the operands where they are
// written: `exec.fused (%a = %x, %b = %y) : (types) -> type { .. }`.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"

#include "Text.h"

#include "mlir/Dialect/Traits.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#include "cleave/Dialect/Exec/IR/ExecDialect.cpp.inc"
#include "cleave/Dialect/Exec/IR/ExecEnums.cpp.inc"
#include "cleave/Dialect/Exec/IR/ExecInterfaces.cpp.inc"

/// Others wait, or have a command of their own.
static FailureOr<CollectiveKind> parseCollectiveKind(AsmParser &parser) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<CollectiveKind> kind = program::findCollective(word);
  if (kind && hasTensors(*kind))
    return *kind;
  return parser.emitError(loc) << "'" << word << "' is not a kind of collective";
}

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Exec/IR/ExecAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "cleave/Dialect/Exec/IR/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "cleave/Dialect/Exec/IR/ExecAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "cleave/Dialect/Exec/IR/ExecOps.cpp.inc"
      >();
  addOperations<EnterOp, LeaveOp, LoopOp, EndLoopOp>();
}

/// What is fetched has been offloaded: no other value is in the host's memory.
LogicalResult FetchOp::verify() {
  if (getInput().getDefiningOp<OffloadOp>())
    return success();
  return emitOpError("brings back what no exec.offload has made (C1)");
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

static bool mayStandInBody(Operation &op) {
  if (auto unpack = dyn_cast<UnpackOp>(op))
    return isa<BlockArgument>(unpack.getInput());
  return isa<PartialAttentionOp, AttentionGradOp>(op) ||
         (isa_and_present<nn::NnDialect>(op.getDialect()) && !isa<nn::LoadOp, nn::ParamOp>(op));
}

/// C2 of exec.fused: what a kernel can compute from its arguments alone.
static LogicalResult checkOps(Block &body, Operation *kernel) {
  for (Operation &op : body.without_terminator())
    if (!mayStandInBody(op)) {
      InFlightDiagnostic error = kernel->emitOpError() << "holds " << op.getName() << " (C2)";
      error.attachNote(op.getLoc()) << "here";
      return error;
    }
  return success();
}

/// C4 of exec.fused: an argument that is handed on would be a copy, and so would a value yielded twice.
static LogicalResult checkYield(Operation *yield, Operation *kernel) {
  llvm::SmallDenseSet<Value> seen;
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    if (isa<BlockArgument>(value))
      return kernel->emitOpError() << "yields an argument as result " << index << " (C4)";
    if (!seen.insert(value).second)
      return kernel->emitOpError() << "yields result " << index << " a second time (C4)";
  }
  return success();
}

static LogicalResult checkBody(Operation *kernel) {
  Block &body = kernel->getRegion(0).front();
  return failed(checkOps(body, kernel)) ? failure() : checkYield(body.getTerminator(), kernel);
}

LogicalResult FusedOp::verifyRegions() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getOperandTypes())
    return emitOpError("arguments of the body have other types than the operands (C1)");
  if (body.getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError("yields other types than it has results (C3)");
  return checkBody(*this);
}

LogicalResult KernelOp::verifyRegions() { return checkBody(*this); }

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

ParseResult FusedOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  if (parser.parseAssignmentList(arguments, operands) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColon())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(type) || parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  for (auto [argument, input] : llvm::zip(arguments, type.getInputs()))
    argument.type = input;
  result.addTypes(type.getResults());
  return parser.parseRegion(*result.addRegion(), arguments);
}

void FusedOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getOperands()), printer,
                        [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
  printer << ')';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : ";
  printer.printFunctionalType(*this);
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
                 parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren, /*allowType=*/true) ||
                 parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {SymbolTable::getSymbolAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Attention in parts
//===----------------------------------------------------------------------===//

/// Attention with operands and attributes of an op that has them all; its verifier says what is wrong with them.
template <typename OpTy> static nn::AttentionOp createAttention(OpTy op, OpBuilder &builder) {
  RankedTensorType query = op.getQuery().getType(), value = op.getValue().getType();
  SmallVector<int64_t> shape(query.getShape());
  if (!shape.empty() && value.getRank() != 0)
    shape.back() = value.getShape().back();
  return nn::AttentionOp::create(builder, op.getLoc(), query.clone(shape), op.getQuery(), op.getKey(), op.getValue(),
                                 op.getMask(), op.getScaleAttr(), op.getCausalAttr(), op.getCausalOffsetAttr(),
                                 op.getSoftcapAttr(), op.getLeftAttr(), op.getRightAttr());
}

nn::AttentionOp PartialAttentionOp::createFull(OpBuilder &builder) { return createAttention(*this, builder); }

nn::KeyBand PartialAttentionOp::getBand() {
  return nn::KeyBand::get(getQuery().getType().getShape()[2], getKey().getType().getShape()[2], getCausal(),
                          getCausalOffset(), getLeft(), getRight());
}

// Parts of the keys are results: the attention's rule, without what splits keys.
spmd::ShardingRule PartialAttentionOp::getShardingRule() {
  OpBuilder builder(getContext());
  OwningOpRef<nn::AttentionOp> whole = createFull(builder);
  spmd::ShardingRule rule = whole->getShardingRule();
  const spmd::DimFactors keys = rule.operands[1][2];
  llvm::erase_if(rule.choices, [&](const spmd::Choice &choice) {
    return llvm::any_of(choice.factors, [&](spmd::FactorId factor) { return llvm::is_contained(keys, factor); });
  });
  rule.inner.clear();
  spmd::TensorFactors sums = rule.results.front();
  sums.insert(sums.begin() + 3, spmd::DimFactors());
  spmd::TensorFactors logs(ArrayRef(sums).drop_back());
  rule.results = {std::move(sums), std::move(logs)};
  if (Value seen = getSeen())
    rule.operands.emplace_back(cast<RankedTensorType>(seen.getType()).getRank());
  return rule;
}

LogicalResult PartialAttentionOp::verify() {
  OpBuilder builder(getContext());
  OwningOpRef<nn::AttentionOp> whole = createFull(builder);
  if (failed(mlir::verify(*whole)))
    return failure(); // C1
  ArrayRef<int64_t> key = getKey().getType().getShape();
  int64_t part = getPart();
  if (part <= 0 || key[2] == 0)
    return emitOpError() << "divides " << key[2] << " keys into parts of " << part << " (C2)";
  SmallVector<int64_t> shape(whole->getResult().getType().getShape());
  Type element = getQuery().getType().getElementType();
  element = element.isF64() ? element : Float32Type::get(getContext());
  shape.insert(shape.begin() + 3, llvm::divideCeil(key[2], part));
  auto sums = RankedTensorType::get(shape, element), logs = RankedTensorType::get(ArrayRef(shape).drop_back(), element);
  if (getSums().getType() != sums || getLogs().getType() != logs)
    return emitOpError() << "has results of other types than " << sums << " and " << logs << " (C3)";
  if (Value seen = getSeen())
    if (auto type = cast<RankedTensorType>(seen.getType()); type.getNumElements() != 1)
      return emitOpError() << "reads whether keys are seen from " << type << ", expected one element (C4)";
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients of attention
//===----------------------------------------------------------------------===//

nn::AttentionOp AttentionGradOp::createForward(OpBuilder &builder) { return createAttention(*this, builder); }

// Five products in place of two. What heads of keys or a batch split, splits all results alike.
spmd::ShardingRule AttentionGradOp::getShardingRule() {
  OpBuilder builder(getContext());
  OwningOpRef<nn::AttentionOp> forward = createForward(builder);
  spmd::ShardingRule rule = forward->getShardingRule();
  ArrayRef<spmd::DimFactors> key = rule.operands[1];
  auto isOfAll = [&](spmd::FactorId factor) {
    return llvm::is_contained(key[0], factor) || llvm::is_contained(key[1], factor);
  };
  llvm::erase_if(rule.choices, [&](const spmd::Choice &choice) { return !llvm::all_of(choice.factors, isOfAll); });
  rule.inner.clear();
  rule.held = -1;
  rule.flops *= 2.5;
  spmd::TensorFactors result = rule.results.front();
  rule.results.assign(rule.operands.begin(), rule.operands.begin() + 3);
  rule.operands.push_back(result);
  if (Value shown = getShown())
    rule.operands.emplace_back(cast<RankedTensorType>(shown.getType()).getRank());
  for (unsigned count = bool(getLogs()) + bool(getMeans()); count > 0; --count)
    rule.operands.emplace_back(ArrayRef(result).drop_back());
  if (Value seen = getSeen())
    rule.operands.emplace_back(cast<RankedTensorType>(seen.getType()).getRank());
  return rule;
}

LogicalResult AttentionGradOp::verify() {
  OpBuilder builder(getContext());
  OwningOpRef<nn::AttentionOp> forward = createForward(builder);
  if (failed(mlir::verify(*forward)))
    return failure(); // C1
  RankedTensorType result = forward->getResult().getType(), query = getQuery().getType(), key = getKey().getType();
  if (getGradient().getType() != result)
    return emitOpError() << "has a gradient " << getGradient().getType() << " of a result " << result << " (C2)";
  SmallVector<int64_t> scores = {query.getDimSize(0), query.getDimSize(1), query.getDimSize(2), key.getDimSize(2)},
                       both;
  if (Value shown = getShown())
    if (ArrayRef<int64_t> shape = cast<RankedTensorType>(shown.getType()).getShape();
        !OpTrait::util::getBroadcastedShape(shape, scores, both) || both != scores)
      return emitOpError() << "reads which scores count from " << shown.getType() << ", which does not broadcast to ["
                           << scores << "] (C3)";
  Type element = query.getElementType();
  if (getLogs() || getMeans())
    element = element.isF64() ? element : Float32Type::get(getContext());
  for (auto [operand, given] : llvm::zip(getOperands(), getResultTypes()))
    if (given != cast<RankedTensorType>(operand.getType()).clone(element))
      return emitOpError() << "has results of other types than "
                           << (getLogs() ? "gradients that are not rounded (C4)" : "query, key and value (C4)");
  auto ofRows = RankedTensorType::get(ArrayRef(scores).drop_back(), element);
  for (Value statistic : {getLogs(), getMeans()})
    if (bool(statistic) != bool(getLogs()) || (statistic && statistic.getType() != ofRows))
      return emitOpError() << "reads statistics of rows from other than two " << ofRows << " (C5)";
  if (Value seen = getSeen())
    if (auto type = cast<RankedTensorType>(seen.getType()); type.getNumElements() != 1 || !getLogs())
      return emitOpError() << "reads whether keys are seen from " << type
                           << ", expected one element, with statistics of rows (C6)";
  return success();
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// C1: the concat that it stands for is made for a moment, in no block, and says what is wrong.
LogicalResult AppendOp::verify() {
  OperationState state(getLoc(), nn::ConcatOp::getOperationName(), (*this)->getOperands(), (*this)->getResultTypes(),
                       (*this)->getAttrs());
  OwningOpRef<Operation *> concat = Operation::create(state);
  return mlir::verify(*concat);
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "launches " << getKernelAttr() << ", which is not an exec.kernel (C1)";
  if (kernel.getBody().getArgumentTypes() != getOperandTypes())
    return emitOpError() << "has operands of other types than the arguments of " << getKernelAttr() << " (C2)";
  if (kernel.getResultTypes() != getResultTypes())
    return emitOpError() << "has results of other types than " << getKernelAttr() << " yields (C3)";
  return success();
}
