//===- Text.cpp - text of numbers, axes and pieces ------------------------===//
//
// Lists stand in brackets, axes in braces as in types; a piece of an exchange has a line of its own, since there may be
// thousands.
//
//===----------------------------------------------------------------------===//
#include "Text.h"

#include "cleave/Dialect/Spmd/IR/AxisLists.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

ParseResult cleave::exec::parseNumber(AsmParser &parser, NumberAttr &number) {
  int64_t base = 0;
  std::string column;
  OptionalParseResult first = parser.parseOptionalInteger(base);
  if (first.has_value() && failed(*first))
    return failure();
  bool hasColumn = !first.has_value() || succeeded(parser.parseOptionalPlus());
  if (hasColumn && parser.parseString(&column))
    return failure();
  number = NumberAttr::get(parser.getContext(), base, column);
  return success();
}

void cleave::exec::printNumber(AsmPrinter &printer, NumberAttr number) {
  if (number.getBase() || !number.hasColumn())
    printer << number.getBase() << (number.hasColumn() ? " + " : "");
  if (number.hasColumn())
    printer.printString(number.getColumn());
}

void cleave::exec::printNumber(AsmPrinter &printer, Operation *, NumberAttr number) { printNumber(printer, number); }

Attribute NumberAttr::parse(AsmParser &parser, Type) {
  NumberAttr number;
  if (parser.parseLess() || parseNumber(parser, number) || parser.parseGreater())
    return {};
  return number;
}

void NumberAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printNumber(printer, *this);
  printer << '>';
}

ParseResult cleave::exec::parseNumbers(AsmParser &parser, ArrayAttr &numbers) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    NumberAttr number;
    if (parseNumber(parser, number))
      return failure();
    list.push_back(number);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  numbers = ArrayAttr::get(parser.getContext(), list);
  return success();
}

void cleave::exec::printNumbers(AsmPrinter &printer, Operation *, ArrayAttr numbers) {
  printer << '[';
  llvm::interleaveComma(numbers.getAsRange<NumberAttr>(), printer,
                        [&](NumberAttr number) { printNumber(printer, number); });
  printer << ']';
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

ParseResult cleave::exec::parseAxisList(AsmParser &parser, ArrayAttr &axes) {
  SmallVector<spmd::AxisAttr> list;
  if (spmd::parseAxisSet(parser, list))
    return failure();
  axes = ArrayAttr::get(parser.getContext(), SmallVector<Attribute>(list.begin(), list.end()));
  return success();
}

void cleave::exec::printAxisList(AsmPrinter &printer, Operation *, ArrayAttr axes) {
  spmd::printAxisSet(printer, llvm::to_vector(axes.getAsRange<spmd::AxisAttr>()));
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static ParseResult parseIntegers(AsmParser &parser, StringRef keyword, SmallVectorImpl<int64_t> &numbers) {
  auto parseOne = [&] { return parser.parseInteger(numbers.emplace_back()); };
  return failure(parser.parseKeyword(keyword) ||
                 parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne));
}

ParseResult cleave::exec::parsePieces(AsmParser &parser, DenseI64ArrayAttr &ends, DenseI64ArrayAttr &boxes) {
  SmallVector<int64_t> ranks, numbers;
  auto parsePiece = [&]() -> ParseResult {
    return failure(parser.parseInteger(ranks.emplace_back()) || parser.parseArrow() ||
                   parser.parseInteger(ranks.emplace_back()) || parseIntegers(parser, "box", numbers) ||
                   parseIntegers(parser, "from", numbers) || parseIntegers(parser, "to", numbers));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePiece))
    return failure();
  ends = DenseI64ArrayAttr::get(parser.getContext(), ranks);
  boxes = DenseI64ArrayAttr::get(parser.getContext(), numbers);
  return success();
}

/// Numbers of a broken op (C1) are printed in the generic form, which is chosen before this is called.
void cleave::exec::printPieces(AsmPrinter &printer, PiecesOp op, DenseI64ArrayAttr, DenseI64ArrayAttr) {
  auto printList = [&](StringRef keyword, ArrayRef<int64_t> numbers) {
    printer << ' ' << keyword << " [";
    llvm::interleaveComma(numbers, printer);
    printer << ']';
  };
  printer << '[';
  printer.increaseIndent();
  for (int64_t i = 0, count = op.size(); i < count; ++i) {
    PiecesOp::Piece piece = op.getPiece(i);
    printer.printNewline();
    printer << piece.source << " -> " << piece.target;
    printList("box", piece.extents);
    printList("from", piece.from);
    printList("to", piece.to);
    printer << (i + 1 < count ? "," : "");
  }
  printer.decreaseIndent();
  printer.printNewline();
  printer << ']';
}
