//===- NodeLoc.cpp - names of ONNX nodes and tensors in locations ---------===//
#include "cleave/Dialect/Nn/IR/NodeLoc.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/StringSaver.h"

using namespace mlir;
using namespace cleave::nn;

//===----------------------------------------------------------------------===//
// #nn.node
//===----------------------------------------------------------------------===//

static void printNames(AsmPrinter &printer, ArrayRef<StringRef> names) {
  printer << '[';
  llvm::interleaveComma(names, printer, [&](StringRef name) { printer.printString(name); });
  printer << ']';
}

void NodeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getNode());
  printer << ", ";
  printer.printString(getOpType());
  if (!getOperands().empty() || !getResults().empty()) {
    printer << ", ";
    printNames(printer, getOperands());
  }
  if (!getResults().empty()) {
    printer << ", [";
    llvm::interleaveComma(getResults(), printer, [&](ArrayRef<StringRef> names) { printNames(printer, names); });
    printer << ']';
  }
  printer << '>';
}

static ParseResult parseNames(AsmParser &parser, llvm::StringSaver &saver, SmallVectorImpl<StringRef> &names) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    names.push_back(saver.save(name));
    return success();
  });
}

Attribute NodeAttr::parse(AsmParser &parser, Type) {
  std::string node, opType;
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  SmallVector<StringRef> operands;
  SmallVector<SmallVector<StringRef, 1>> lists;
  if (parser.parseLess() || parser.parseString(&node) || parser.parseComma() || parser.parseString(&opType))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parseNames(parser, saver, operands))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseNames(parser, saver, lists.emplace_back());
      }))
    return {};
  if (parser.parseGreater())
    return {};
  SmallVector<ArrayRef<StringRef>> results(lists.begin(), lists.end());
  return get(parser.getContext(), node, opType, operands, results);
}

//===----------------------------------------------------------------------===//
// Asking locations
//===----------------------------------------------------------------------===//

Location cleave::nn::makeNodeLoc(MLIRContext *context, const NodeInfo &info) {
  return NodeAttr::get(context, info.node, info.opType, info.operands, info.results);
}

static void collect(Location loc, SmallVectorImpl<NodeInfo> &infos) {
  if (auto node = dyn_cast<NodeAttr>(loc))
    infos.push_back({node.getNode(), node.getOpType(), node.getOperands(), node.getResults()});
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      collect(inner, infos);
}

SmallVector<NodeInfo, 1> cleave::nn::getNodeInfos(Location loc) {
  SmallVector<NodeInfo, 1> infos;
  collect(loc, infos);
  return infos;
}

Location cleave::nn::getInnerLoc(Location loc) {
  SmallVector<NodeInfo, 1> infos = getNodeInfos(loc);
  if (infos.empty())
    return loc;
  SmallVector<Location> inner;
  for (NodeInfo &info : infos) {
    info.results = {};
    inner.push_back(makeNodeLoc(loc.getContext(), info));
  }
  return inner.size() == 1 ? inner.front() : FusedLoc::get(loc.getContext(), inner);
}

/// `prefix` and a number, as a string of the context.
static StringRef makeName(MLIRContext *context, StringRef prefix, unsigned index) {
  return StringAttr::get(context, prefix + Twine(index)).getValue();
}

StringRef cleave::nn::getArgumentName(func::FuncOp func, unsigned index) {
  auto name = func.getArgAttrOfType<StringAttr>(index, NnDialect::kNameAttr);
  return name ? name.getValue() : makeName(func.getContext(), "arg", index);
}

StringRef cleave::nn::getResultName(func::FuncOp func, unsigned index) {
  auto name = func.getResultAttrOfType<StringAttr>(index, NnDialect::kNameAttr);
  return name ? name.getValue() : makeName(func.getContext(), "result", index);
}

SmallVector<StringRef, 1> cleave::nn::getTensorNames(Value value) {
  SmallVector<StringRef, 1> names;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (auto func = dyn_cast_if_present<func::FuncOp>(argument.getOwner()->getParentOp()))
      names.push_back(getArgumentName(func, argument.getArgNumber()));
    return names;
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto load = dyn_cast<LoadOp>(op))
    names.push_back(load.getParam());
  for (const NodeInfo &info : getNodeInfos(op->getLoc()))
    if (index < info.results.size())
      llvm::append_range(names, info.results[index]);
  return names;
}

std::string cleave::nn::describeNode(Operation *op) {
  for (const NodeInfo &info : getNodeInfos(op->getLoc())) {
    if (!info.node.empty())
      return info.node.str();
    if (!info.results.empty() && !info.results.front().empty())
      return info.results.front().front().str();
  }
  return "";
}
