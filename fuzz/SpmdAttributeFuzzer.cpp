//===- SpmdAttributeFuzzer.cpp - any text as an attribute of spmd ---------===//
//
// The input follows `#spmd.`, once as an attribute by itself and once as the encoding of a tensor type. What is read
// must be printed in a form that reads back as the same attribute, and must answer the questions it is there for.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace cleave::spmd;

/// Attributes live as long as their context, so a context serves only so many inputs.
static constexpr unsigned kInputsPerContext = 2000;

static std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<SpmdDialect>();
  context->getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  return context;
}

static void requireRoundTrip(Attribute attribute, MLIRContext *context) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  if (parseAttribute(text, context) != attribute)
    __builtin_trap();
}

/// Precondition: `sharding` is legal for `shape`.
static void askAbout(ShardingAttr sharding, ArrayRef<int64_t> shape) {
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (sharding.getNumShards(dim) < 1)
      __builtin_trap();
  (void)sharding.getLocalShape(shape);
  (void)sharding.getOffset(shape, sharding.getMesh().getNumRanks() - 1);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::unique_ptr<MLIRContext> context;
  static unsigned inputs = 0;
  if (inputs++ % kInputsPerContext == 0)
    context = makeContext();
  std::string text = "#spmd." + std::string(reinterpret_cast<const char *>(data), size);
  if (Attribute attribute = parseAttribute(text, context.get()))
    requireRoundTrip(attribute, context.get());
  Type type = parseType("tensor<8x6xf32, " + text + ">", context.get());
  if (auto tensor = dyn_cast_or_null<RankedTensorType>(type))
    if (auto sharding = dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()))
      askAbout(sharding, tensor.getShape());
  return 0;
}
