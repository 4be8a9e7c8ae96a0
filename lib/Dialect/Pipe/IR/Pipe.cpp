//===- Pipe.cpp - the pipe dialect ----------------------------------------===//
//
// A stage is an attribute of any op, so its constraints are checked where it stands: each op against the ops whose
// results it uses, which is all edges, once. What stands on the module, on functions and on their arguments is checked
// for its type alone.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Pipe/IR/Pipe.h"

#include "cleave/Dialect/Pipe/IR/NodeOrder.h"

#include "cleave/Dialect/Nn/IR/Control.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

#include "cleave/Dialect/Pipe/IR/PipeDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Pipe/IR/PipeAttrs.cpp.inc"

void PipeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "cleave/Dialect/Pipe/IR/PipeAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "cleave/Dialect/Pipe/IR/PipeOps.cpp.inc"
      >();
}

std::optional<spmd::ReductionKind> PieceAttr::getKind() const { return spmd::symbolizeReductionKind(getWord()); }

//===----------------------------------------------------------------------===//
// Attributes of the dialect on other things
//===----------------------------------------------------------------------===//

static std::optional<int64_t> getNumber(Attribute attribute) {
  auto number = dyn_cast_if_present<IntegerAttr>(attribute);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

std::optional<int64_t> cleave::pipe::getStage(Operation *op) { return getNumber(op->getAttr(PipeDialect::kStageAttr)); }

void cleave::pipe::setStage(Operation *op, int64_t stage) {
  op->setAttr(PipeDialect::kStageAttr, Builder(op->getContext()).getI64IntegerAttr(stage));
}

std::optional<int64_t> cleave::pipe::getArgSplit(FunctionOpInterface func, unsigned index) {
  return getNumber(func.getArgAttr(index, PipeDialect::kSplitAttr));
}

std::optional<int64_t> cleave::pipe::getResultSplit(FunctionOpInterface func, unsigned index) {
  return getNumber(func.getResultAttr(index, PipeDialect::kSplitAttr));
}

std::optional<int64_t> cleave::pipe::getRank(FunctionOpInterface func) {
  return getNumber(func->getAttr(PipeDialect::kRankAttr));
}

SmallVector<func::FuncOp, 4> cleave::pipe::getRankFunctions(ModuleOp module) {
  SmallVector<func::FuncOp, 4> functions;
  for (auto func : module.getOps<func::FuncOp>())
    if (getRank(func))
      functions.push_back(func);
  llvm::sort(functions, [](func::FuncOp a, func::FuncOp b) { return *getRank(a) < *getRank(b); });
  return functions;
}

std::optional<int64_t> cleave::pipe::getArgIndex(FunctionOpInterface func, unsigned index) {
  return getNumber(func.getArgAttr(index, PipeDialect::kIndexAttr));
}

std::optional<int64_t> cleave::pipe::getResultIndex(FunctionOpInterface func, unsigned index) {
  return getNumber(func.getResultAttr(index, PipeDialect::kIndexAttr));
}

spmd::MeshAttr cleave::pipe::getWholeMesh(ModuleOp module) {
  auto whole = module->getAttrOfType<spmd::MeshAttr>(PipeDialect::kMeshAttr);
  return whole ? whole : spmd::getMesh(module);
}

std::optional<int64_t> cleave::pipe::getMicrobatches(Operation *module) {
  return getNumber(module->getAttr(PipeDialect::kMicrobatchesAttr));
}

/// An integer of 64 bits, `least` or more.
static bool isNumber(Attribute attribute, int64_t least) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

/// P2, P3.
static LogicalResult verifyStage(Operation *op, Attribute attribute) {
  if (!isNumber(attribute, 0))
    return op->emitOpError() << "has " << attribute << " as " << PipeDialect::kStageAttr
                             << ", which is an integer of 64 bits, 0 or more (P2)";
  if (isa_and_nonnull<nn::LoopOp>(op->getParentOp()))
    return op->emitOpError("has a stage, but is in the body of a loop, all of which is in one stage (P2)");
  int64_t stage = cast<IntegerAttr>(attribute).getInt();
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    // Before the producer is verified itself, its stage may be anything.
    auto other = producer ? producer->getAttrOfType<IntegerAttr>(PipeDialect::kStageAttr) : IntegerAttr();
    if (!other || !other.getType().isInteger(64) || other.getInt() <= stage)
      continue;
    InFlightDiagnostic error = op->emitOpError()
                               << "is in stage " << stage << " and uses what stage " << other.getInt() << " makes (P3)";
    error.attachNote(producer->getLoc()) << "it is made here";
    return error;
  }
  return success();
}

/// P1.
static LogicalResult verifyAxis(Operation *op, Attribute attribute) {
  auto name = dyn_cast<StringAttr>(attribute);
  auto mesh = op->getAttrOfType<spmd::MeshAttr>(PipeDialect::kMeshAttr);
  if (!name || !mesh || !mesh.findAxis(name))
    return op->emitOpError() << "has " << attribute << " as " << PipeDialect::kAxisAttr
                             << ", which names an axis of its " << PipeDialect::kMeshAttr << " (P1)";
  if (auto inner = op->getAttrOfType<spmd::MeshAttr>(spmd::SpmdDialect::kMeshAttr); inner && inner.findAxis(name))
    return op->emitOpError() << "has the pipeline's axis " << attribute << " in the mesh inside of a stage (P1)";
  return success();
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kStageAttr)
    return verifyStage(op, attribute.getValue());
  if (name == kAxisAttr)
    return verifyAxis(op, attribute.getValue());
  bool isRight = name == kMeshAttr           ? isa<spmd::MeshAttr>(attribute.getValue())
                 : name == kBoundariesAttr   ? isa<DictionaryAttr>(attribute.getValue())
                 : name == kNodesAttr        ? isa<ArrayAttr>(attribute.getValue())
                 : name == kMicrobatchesAttr ? isNumber(attribute.getValue(), 1)
                 : name == kSamplesAttr      ? isNumber(attribute.getValue(), 1)
                 : name == kShardsAttr       ? isNumber(attribute.getValue(), 1)
                 : name == kPerShardAttr     ? isNumber(attribute.getValue(), 1)
                 : name == kStagesAttr       ? isNumber(attribute.getValue(), 1)
                 : name == kHomeAttr         ? isNumber(attribute.getValue(), 0)
                 : name == kPairAttr         ? isNumber(attribute.getValue(), 0)
                 : name == kRankAttr         ? isNumber(attribute.getValue(), 0)
                                             : false;
  if (isRight)
    return success();
  if (!llvm::is_contained({kMeshAttr, kMicrobatchesAttr, kRankAttr, kSamplesAttr, kShardsAttr, kPerShardAttr,
                           kBoundariesAttr, kNodesAttr, kStagesAttr, kHomeAttr, kPairAttr},
                          name))
    return op->emitError() << "'" << name << "' is not an attribute of pipe for an op; there are " << kStageAttr << ", "
                           << kMeshAttr << ", " << kAxisAttr << ", " << kMicrobatchesAttr << ", " << kRankAttr << ", "
                           << kSamplesAttr << ", " << kShardsAttr << ", " << kPerShardAttr << ", " << kBoundariesAttr
                           << ", " << kNodesAttr << ", " << kStagesAttr << ", " << kHomeAttr << ", " << kPairAttr;
  return op->emitOpError() << "has " << attribute.getValue() << " as " << name << ", which is "
                           << (name == kMeshAttr         ? "a mesh"
                               : name == kBoundariesAttr ? "a dictionary"
                               : name == kNodesAttr      ? "an array"
                                                         : "an integer of 64 bits");
}

/// Of an argument or result: a dim it has, a number.
static LogicalResult verifyOfValue(Operation *op, Type type, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if ((name == PipeDialect::kIndexAttr || name == PipeDialect::kHomeAttr) && isNumber(attribute.getValue(), 0))
    return success();
  if (name == PipeDialect::kSplitAttr && isNumber(attribute.getValue(), 0) && tensor &&
      cast<IntegerAttr>(attribute.getValue()).getInt() < tensor.getRank())
    return success();
  return op->emitError() << "has " << attribute.getValue() << " as '" << name << "' of a value of type " << type
                         << "; there are " << PipeDialect::kSplitAttr << ", one of its dims, and "
                         << PipeDialect::kIndexAttr << " and " << PipeDialect::kHomeAttr << ", numbers";
}

LogicalResult PipeDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return verifyOfValue(op, cast<FunctionOpInterface>(op).getArgumentTypes()[index], attribute);
}

LogicalResult PipeDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  return verifyOfValue(op, cast<FunctionOpInterface>(op).getResultTypes()[index], attribute);
}
