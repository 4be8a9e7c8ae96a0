//===- NodeLoc.cpp - names of ONNX nodes and tensors in locations ---------===//
//
// The ONNX node that an op came from is metadata of its location. Locations are merged when ops are (a fused location
// of several), so one op may name many nodes; a pass that makes ops passes the location on, and need not know of names.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/NodeLoc.h"

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/StringSaver.h"

using namespace mlir;
using namespace cleave::nn;

//===----------------------------------------------------------------------===//
// #nn.node
//===----------------------------------------------------------------------===//

/// In quotes. Names rarely need escapes, which are written one character at a time.
static void printName(raw_ostream &os, StringRef name) {
  os << '"';
  if (llvm::all_of(name, [](char c) { return llvm::isPrint(c) && c != '"' && c != '\\'; }))
    os << name;
  else
    llvm::printEscapedString(name, os);
  os << '"';
}

/// `["a", "b"]`.
static void printNames(raw_ostream &os, ArrayRef<StringRef> names) {
  os << '[';
  llvm::interleaveComma(names, os, [&](StringRef name) { printName(os, name); });
  os << ']';
}

void NodeAttr::print(AsmPrinter &printer) const {
  // As one piece: the printer's own stream is unbuffered, and a large model has a node on every line.
  SmallString<256> text;
  llvm::raw_svector_ostream os(text);
  os << '<';
  printName(os, getNode());
  os << ", ";
  printName(os, getOpType());
  if (!getOperands().empty() || !getResults().empty()) {
    os << ", ";
    printNames(os, getOperands());
  }
  if (!getResults().empty()) {
    os << ", [";
    llvm::interleaveComma(getResults(), os, [&](ArrayRef<StringRef> names) { printNames(os, names); });
    os << ']';
  }
  if (!getModule().empty()) {
    os << " in ";
    printName(os, getModule());
  }
  os << '>';
  printer << text;
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
  std::string node, opType, module;
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
  if (succeeded(parser.parseOptionalKeyword("in")) && parser.parseString(&module))
    return {};
  if (parser.parseGreater())
    return {};
  SmallVector<ArrayRef<StringRef>> results(lists.begin(), lists.end());
  return get(parser.getContext(), node, opType, operands, results, module);
}

//===----------------------------------------------------------------------===//
// Making locations
//===----------------------------------------------------------------------===//

Location cleave::nn::makeNodeLoc(MLIRContext *context, const NodeInfo &info) {
  return NodeAttr::get(context, info.node, info.opType, info.operands, info.results, info.module);
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
