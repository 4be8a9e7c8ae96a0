//===- Harness.cpp - runs small modules in tests --------------------------===//
#include "Harness.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

EvaluatorTest::EvaluatorTest() {
  context.loadDialect<func::FuncDialect, nn::NnDialect, spmd::SpmdDialect>();
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      errors += "note: " + note.str() + "\n";
    return success();
  });
}

SmallVector<Tensor> EvaluatorTest::runModule(StringRef text, ArrayRef<Tensor> inputs) {
  errors.clear();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "cannot parse:\n" << errors << text.str();
    return {};
  }
  SmallVector<Tensor> outputs;
  if (failed(runGlobal(module->lookupSymbol<func::FuncOp>("main"), inputs, outputs)))
    outputs.clear();
  return outputs;
}

/// Elements by way of MLIR's attributes, not of the evaluator's own conversions.
std::vector<double> EvaluatorTest::toDoubles(const Tensor &tensor) {
  std::vector<double> values;
  DenseElementsAttr attr = tensor.toAttr();
  if (auto type = dyn_cast<IntegerType>(tensor.getElementType()))
    for (const APInt &value : attr.getValues<APInt>())
      values.push_back(type.isUnsigned() || type.getWidth() == 1 ? double(value.getZExtValue())
                                                                 : double(value.getSExtValue()));
  else
    for (APFloat value : attr.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(value.convertToDouble());
    }
  return values;
}

std::vector<double> EvaluatorTest::run(StringRef text, ArrayRef<Tensor> inputs) {
  SmallVector<Tensor> outputs = runModule(text, inputs);
  EXPECT_FALSE(outputs.empty()) << errors;
  return outputs.empty() ? std::vector<double>() : toDoubles(outputs.front());
}

std::string EvaluatorTest::wrap(StringRef body, StringRef type) {
  return llvm::formatv("func.func @main() -> {0} {{\n{1}\nreturn %y : {0}\n}\n", type, body);
}

std::vector<double> EvaluatorTest::eval(StringRef body, StringRef type) { return run(wrap(body, type)); }

std::string EvaluatorTest::fail(StringRef text, ArrayRef<Tensor> inputs) {
  EXPECT_TRUE(runModule(text, inputs).empty()) << "no error";
  return errors;
}

std::string EvaluatorTest::failBody(StringRef body, StringRef type) { return fail(wrap(body, type)); }

Tensor EvaluatorTest::make(StringRef typeText, ArrayRef<double> values) {
  auto type = cast<RankedTensorType>(parseType(typeText, &context));
  SmallVector<Attribute> elements;
  for (double value : values)
    if (isa<IntegerType>(type.getElementType())) {
      uint64_t bits = value < 0 ? uint64_t(int64_t(value)) : uint64_t(value);
      elements.push_back(
          IntegerAttr::get(type.getElementType(), APInt(type.getElementTypeBitWidth(), bits, false, true)));
    } else {
      elements.push_back(FloatAttr::get(type.getElementType(), value));
    }
  return *Tensor::fromAttr(DenseElementsAttr::get(type, elements));
}
