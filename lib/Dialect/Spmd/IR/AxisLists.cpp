//===- AxisLists.cpp - text form and checks of axis lists -----------------===//
//
// A sub-axis `"a":(p)s` is the digit of size s of axis a below digits of product p: of axis a=12 written as p * s * q,
// it covers the range [p, p*s) of divisors. Two sub-axes of one axis overlap if these ranges do.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/AxisLists.h"

#include <cassert>

using namespace mlir;

namespace cleave::spmd {

/// The `pre)size` of a sub-axis, after the opening parenthesis.
static FailureOr<AxisAttr> parseDigit(AsmParser &parser, StringRef name) {
  int64_t preSize, size;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(preSize) || parser.parseRParen() || parser.parseInteger(size))
    return failure();
  // Size 0 stands for the whole axis in the attribute, so what is not a size must not get there.
  if (preSize < 1 || size < 2)
    return parser.emitError(loc) << "sub-axis \"" << name << "\":(" << preSize << ")" << size
                                 << " does not have a size of at least 2 after a positive one (S4)";
  return AxisAttr::get(parser.getContext(), name, preSize, size);
}

FailureOr<AxisAttr> parseAxis(AsmParser &parser) {
  std::string name;
  if (parser.parseString(&name))
    return failure();
  if (failed(parser.parseOptionalColon()))
    return AxisAttr::get(parser.getContext(), name);
  if (parser.parseLParen())
    return failure();
  return parseDigit(parser, name);
}

/// `"a":` or `"a":(1)2:`: behind the first colon only the parenthesis tells them apart.
FailureOr<AxisAttr> parseAxisAndColon(AsmParser &parser) {
  std::string name;
  if (parser.parseString(&name) || parser.parseColon())
    return failure();
  if (failed(parser.parseOptionalLParen()))
    return AxisAttr::get(parser.getContext(), name);
  FailureOr<AxisAttr> axis = parseDigit(parser, name);
  if (failed(axis) || parser.parseColon())
    return failure();
  return axis;
}

void printAxis(AsmPrinter &printer, AxisAttr axis) {
  printer.printString(axis.getName());
  if (axis.isSubAxis())
    printer << ":(" << axis.getPreSize() << ")" << axis.getSize();
}

ParseResult parseAxisSet(AsmParser &parser, SmallVectorImpl<AxisAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&]() -> ParseResult {
    FailureOr<AxisAttr> axis = parseAxis(parser);
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
    return success();
  });
}

void printAxisSet(AsmPrinter &printer, ArrayRef<AxisAttr> axes) {
  printer << '{';
  llvm::interleaveComma(axes, printer, [&](AxisAttr axis) { printAxis(printer, axis); });
  printer << '}';
}

/// As intervals of what lies before and with a digit: those that only touch are apart.
bool overlaps(AxisAttr lhs, AxisAttr rhs, MeshAttr mesh) {
  assert(mesh.findAxis(lhs.getName()) && mesh.findAxis(rhs.getName()) && "an axis of another mesh");
  if (lhs.getName() != rhs.getName())
    return false;
  int64_t lhsEnd = lhs.getPreSize() * lhs.getExtent(mesh), rhsEnd = rhs.getPreSize() * rhs.getExtent(mesh);
  return lhs.getPreSize() < rhsEnd && rhs.getPreSize() < lhsEnd;
}

/// S2 and S4 for one axis.
static LogicalResult verifyAxis(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh, AxisAttr axis) {
  std::optional<unsigned> position = mesh.findAxis(axis.getName());
  if (!position)
    return emitError() << "axis \"" << axis.getName() << "\" is not one of the mesh " << mesh << " (S2)";
  if (!axis.isSubAxis())
    return success();
  int64_t extent = mesh.getSizes()[*position], pre = axis.getPreSize(), size = axis.getSize();
  if (pre < 1 || size < 2 || pre > extent || size > extent || extent % (pre * size) != 0)
    return emitError() << "sub-axis \"" << axis.getName() << "\":(" << pre << ")" << size
                       << " does not divide the axis of size " << extent << " (S4)";
  return success();
}

LogicalResult verifyAxes(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh, ArrayRef<AxisAttr> axes) {
  for (AxisAttr axis : axes)
    if (failed(verifyAxis(emitError, mesh, axis)))
      return failure();
  for (auto [index, axis] : llvm::enumerate(axes))
    for (AxisAttr other : axes.take_front(index))
      if (overlaps(axis, other, mesh))
        return emitError() << "axis \"" << axis.getName() << "\" is used twice (S3)";
  return success();
}

/// Bool has no sum or product; "or" and "and" are its maximum and minimum.
bool isLegalReduction(ReductionKind kind, Type elementType) {
  bool isBool = elementType.isInteger(1);
  return elementType.isIntOrFloat() && (!isBool || kind == ReductionKind::Max || kind == ReductionKind::Min);
}

} // namespace cleave::spmd
