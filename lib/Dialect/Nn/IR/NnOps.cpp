//===- NnOps.cpp - the generated op classes of the nn dialect -------------===//
//
// A file of its own, as it is most of what there is to compile. The definitions that TableGen writes for whole classes
// of ops call the two headers above.
//
//===----------------------------------------------------------------------===//
#include "../ShardingRules/Rules.h"
#include "TypeInference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

/// `[1.000000e+00, 2.2000000000000002]`: as many digits as it takes to read the same bits again. The printer of the attribute itself
/// stops at six.
static void printReals(OpAsmPrinter &printer, Operation *, DenseF64ArrayAttr numbers) {
  printer << '[';
  llvm::interleaveComma(numbers.asArrayRef(), printer, [&](double number) { printer.printFloat(APFloat(number)); });
  printer << ']';
}

static ParseResult parseReals(OpAsmParser &parser, DenseF64ArrayAttr &numbers) {
  numbers = dyn_cast_if_present<DenseF64ArrayAttr>(DenseF64ArrayAttr::parse(parser, Type()));
  return success(numbers != nullptr);
}

#define GET_OP_CLASSES
#include "cleave/Dialect/Nn/IR/NnOps.cpp.inc"
