//===- GeneratedOps.cpp - numbers in the text of generated ops ------------===//
//
// Floats of attributes are written such that they are the same when they are read.
//
//===----------------------------------------------------------------------===//
#include "GeneratedOps.h"

using namespace mlir;
using namespace cleave;

void cleave::nn::printReals(OpAsmPrinter &printer, Operation *, DenseF64ArrayAttr numbers) {
  printer << '[';
  llvm::interleaveComma(numbers.asArrayRef(), printer, [&](double number) { printer.printFloat(APFloat(number)); });
  printer << ']';
}

ParseResult cleave::nn::parseReals(OpAsmParser &parser, DenseF64ArrayAttr &numbers) {
  numbers = dyn_cast_if_present<DenseF64ArrayAttr>(DenseF64ArrayAttr::parse(parser, Type()));
  return success(numbers != nullptr);
}
