//===- Values.h - inputs, outputs and their comparison ----------*- C++ -*-===//
//
// Tensors on their way between .npz files, a generator of random ones, and the evaluator; and what "the same result"
// means per element type.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_VALUES_H
#define CLEAVE_COMPILER_VALUES_H

#include "cleave/Compiler/Difference.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave {

/// The ONNX names of a function's arguments and results; `arg0`, `result0` where they have none.
llvm::SmallVector<std::string> getInputNames(mlir::func::FuncOp func);
llvm::SmallVector<std::string> getOutputNames(mlir::func::FuncOp func);
using reference::getInputTypes;
using reference::getOutputTypes;

/// `f32[8, 128]`.
std::string formatType(mlir::RankedTensorType type);

/// Shapes of the arrays in an .npz file by name (an `in:` prefix is dropped, `out:` arrays are skipped).
llvm::Expected<std::map<std::string, std::vector<int64_t>>> readInputShapes(llvm::StringRef path);

/// The arrays of an .npz file that have few elements, by name as above: shapes may be computed from them.
llvm::Expected<std::map<std::string, reference::Tensor>> readSmallInputs(mlir::MLIRContext &context,
                                                                         llvm::StringRef path);

/// The value that the model was imported for (`nn.value`), because its shapes depend on this argument; nothing
/// otherwise.
std::optional<reference::Tensor> getFixedValue(mlir::func::FuncOp func, unsigned index);

/// The arguments of `func` out of an .npz file; states of a step that are not in it are what they begin as. Errors: an input is missing,
/// has another shape, another type, or another value than the one that the model was imported for; a number is looked up, and there is
/// no such place.
llvm::Expected<llvm::SmallVector<reference::Tensor>> readInputs(mlir::func::FuncOp func, llvm::StringRef path);

/// One warning for all arrays of an .npz file that belong to no argument: a name may be misspelt. An error for one of an input whose
/// default stands in the module.
llvm::Error warnOfUnusedArrays(mlir::func::FuncOp func, llvm::StringRef path);

/// Writes tensors by their names, a name that occurs again once; the file appears whole or not at all.
llvm::Error writeTensors(llvm::ArrayRef<std::string> names, llvm::ArrayRef<reference::Tensor> tensors,
                         llvm::StringRef path);

/// What is said of inputs, by name, for drawing them: of integers how many values they have, of floats the fan-in that they are
/// divided by the root of. Integers without an entry are 0 or 1, floats have the fan-in 1.
using InputRanges = std::map<std::string, int64_t>;

/// Follows the arguments of a whole model, that is not split yet, to what they are for: integers are below the extent of any dim
/// that they index (found by following them to lookups), 0 to 255 (127 for i8) where they are only cast to another type and are
/// no mask; weights have their fan-in.
InputRanges findRanges(mlir::func::FuncOp func);

/// Random arguments: floats normal(0, 1 / fan-in), bool fair coins, integers. Deterministic in `seed`, the global types and
/// `ranges`, which are those of the whole model: how it is split, and how far it is, makes no difference.
/// An argument that the model was imported for a value of has that value, a state that begins as a parameter is that, and what else
/// an optimizer keeps is not negative, as second moments are not.
llvm::SmallVector<reference::Tensor> drawInputs(mlir::func::FuncOp func, uint64_t seed, const InputRanges &ranges);
/// Of a function that is all of a model.
llvm::SmallVector<reference::Tensor> drawInputs(mlir::func::FuncOp func, uint64_t seed);

/// Defaults: exact for integers and bool; f64 1e-9, f32 1e-4, f16 3e-2, bf16 1e-1 (rtol), a tenth of that as atol.
Tolerance getDefaultTolerance(mlir::Type elementType);

/// Precondition: equal shapes; both are floats, or of one type. NaN equals NaN, infinities equal themselves.
Difference compare(const reference::Tensor &got, const reference::Tensor &want, Tolerance tolerance);

/// See Spread: elements that are not finite in both `got` and `want` count for no number of these.
Spread getSpread(const reference::Tensor &got, const reference::Tensor &want, const reference::Tensor &other);

/// An element; exact, for a long double has 64 bits of mantissa at least.
long double getElement(const reference::Tensor &tensor, int64_t index);
/// Significant digits as asked for, `1e-05` where that is shorter.
std::string formatNumber(long double number, int digits = 6);
/// `least -1, mean 0.5, largest 2, 3 NaN`: the figures are about finite elements, the others are counted.
std::string summarize(const reference::Tensor &tensor);

/// The two elements at a position, with as many digits as it takes to see that they differ.
std::pair<std::string, std::string> formatApart(const reference::Tensor &got, const reference::Tensor &want,
                                                int64_t position);

} // namespace cleave

#endif // CLEAVE_COMPILER_VALUES_H
