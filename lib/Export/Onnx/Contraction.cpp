//===- Contraction.cpp - einsum, as a product of matrices where it is one -===//
//
// Runtimes know products of matrices best. `abk,kn->abn` and `abmk,abkn->abmn` are MatMul, `abmk,abnk->abmn` is one with its second operand
// turned, of matrices Gemm; all other equations are Einsum, whose strings mean the same.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "Writers.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// How `a b -> result` is numpy's matmul of `a` and `b`, whose last two dims may be swapped: rows and batches of `a`, then a letter that is summed
/// over; in `b` that letter and columns, behind none or all of the batches. Nothing for other equations.
static std::optional<bool> matchMatMul(StringRef a, StringRef b, StringRef result) {
  if (a.size() < 2 || b.size() < 2 || result.size() != a.size())
    return std::nullopt;
  char summed = a.back(), column = result.back();
  if (result.contains(summed) || a.contains(column) || result.drop_back() != a.drop_back())
    return std::nullopt;
  StringRef batches = a.drop_back(2), own = b.drop_back(2);
  if (own != batches && !own.empty())
    return std::nullopt;
  StringRef matrix = b.take_back(2);
  bool isSwapped = matrix[0] == column && matrix[1] == summed;
  if (!isSwapped && !(matrix[0] == summed && matrix[1] == column))
    return std::nullopt;
  return isSwapped;
}

/// What onnxruntime's kernels sum in.
static bool isSummedAsIs(Type element) {
  return isa<FloatType>(element) || element.isSignlessInteger(32) || element.isSignlessInteger(64);
}

/// Small integers are summed in i32, of whose sums the low bits are the same.
static std::string writeEinsum(nn::EinsumOp op, GraphBuilder &out) {
  RankedTensorType type = getResultType(op);
  Type element = type.getElementType();
  Type summed = isSummedAsIs(element)
                    ? element
                    : IntegerType::get(op.getContext(), element.getIntOrFloatBitWidth() > 32 ? 64 : 32);
  Names inputs;
  for (Value input : op.getInputs())
    inputs.push_back(out.cast(out(input), summed));
  std::optional<nn::EinsumTerms> terms = nn::parseEinsum(op.getEquation());
  std::optional<bool> isSwapped;
  if (inputs.size() == 2)
    isSwapped = matchMatMul(terms->inputs[0], terms->inputs[1], terms->result);
  // A letter of size 1 on one side repeats; a summed one does not in a product of matrices.
  if (isSwapped) {
    int64_t depth = out.typeOf(inputs[0]).getShape().back();
    isSwapped = out.typeOf(inputs[1]).getShape().take_back(2)[*isSwapped ? 1 : 0] == depth ? isSwapped : std::nullopt;
  }
  if (!isSwapped) {
    std::string sum = out.node("Einsum", inputs, type.clone(summed), {{"equation", op.getEquation()}});
    return out.cast(sum, element);
  }
  // A matrix of weights that is stored by columns stays as it is.
  if (*isSwapped && type.getRank() == 2 && isa<FloatType>(summed))
    return out.node("Gemm", inputs, type, {{"transB", 1}});
  if (*isSwapped) {
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(out.typeOf(inputs[1]).getRank()));
    std::swap(permutation.back(), permutation[permutation.size() - 2]);
    inputs[1] = out.transpose(inputs[1], permutation);
  }
  return out.cast(out.node("MatMul", inputs, type.clone(summed)), element);
}

void cleave::onnx::registerContraction(WriterTable &table) { table.add<nn::EinsumOp>(writeEinsum); }
