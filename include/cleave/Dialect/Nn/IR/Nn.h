//===- Nn.h - the nn dialect ------------------------------------*- C++ -*-===//
//
// The imported model; see dialects/Nn for what each op means. The classes of ops are in Ops/<Family>.h, all of them in NnOps.h (both in the
// build tree), those of loops in Control.h.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_NN_H
#define CLEAVE_DIALECT_NN_IR_NN_H

#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/IR/SymbolTable.h"

namespace cleave::nn {

/// Trait of ops that compute each result element from the operand elements that numpy broadcasting pairs with it.
template <typename ConcreteType> class Elementwise : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};

/// How an op reads its operands for an element of its result, which is a part of its sharding rule.
using spmd::Form;

/// Trait of ops that say their form by themselves.
template <typename ConcreteType> class Formed : public mlir::OpTrait::TraitBase<ConcreteType, Formed> {};

/// How the result of an op rises with an operand, which says what gradients are computed of.
enum class Slope : uint8_t {
  OfOperands, ///< as its operands say
  OfResult,   ///< as its result says: e^x
  Constant,   ///< linear in each operand of floats; other operands say which elements are meant
  Zero,       ///< in steps: nothing comes through
};

/// Trait of ops that say their slope by themselves.
template <typename ConcreteType> class Sloped : public mlir::OpTrait::TraitBase<ConcreteType, Sloped> {};

/// The slope of ops that do not: a constant of those that keep numbers, else of the operands.
Slope getDefaultSlope(mlir::Operation *op);
/// True if a gradient is computed of this operand, where the slope alone says so.
bool isReadBySlope(mlir::Operation *op, Slope slope, unsigned operand);

/// True for constants and weights: data that the program holds. `op` may be null.
bool isData(mlir::Operation *op);
/// How many operands of `op`, from the first, a contraction or convolution multiplies with each other: a bias is none of them. 0 for
/// other ops.
unsigned countFactors(mlir::Operation *op);

/// Rows of the first operand of `op`, if all of `dims` lie in one row.
int64_t countRows(mlir::Operation *op, llvm::ArrayRef<int64_t> dims);
/// `dim` and all dims of `value` behind it.
llvm::SmallVector<int64_t> getDimsFrom(mlir::Value value, int64_t dim);

/// Trait of ops whose result holds the numbers of their operands, moved, repeated, picked or converted.
template <typename ConcreteType> class KeepsNumbers : public mlir::OpTrait::TraitBase<ConcreteType, KeepsNumbers> {};

/// Trait of ops whose result holds the numbers of their first operand in a type to compute with.
template <typename ConcreteType>
class ConvertsNumbers : public mlir::OpTrait::TraitBase<ConcreteType, ConvertsNumbers> {};

/// Trait of ops that find the channels of their first operand in dim 1.
template <typename ConcreteType>
class ChannelsSecond : public mlir::OpTrait::TraitBase<ConcreteType, ChannelsSecond> {};

/// Trait of elementwise ops of which one instruction makes a vector.
template <typename ConcreteType>
class OneInstruction : public mlir::OpTrait::TraitBase<ConcreteType, OneInstruction> {};

/// Trait of ops that do much more work than their result has elements.
template <typename ConcreteType> class Laborious : public mlir::OpTrait::TraitBase<ConcreteType, Laborious> {};

/// Trait of ops whose result types follow from operands and attributes; the verifier compares.
llvm::LogicalResult verifyInferredTypes(mlir::Operation *op);
template <typename ConcreteType> class InferredTypes : public mlir::OpTrait::TraitBase<ConcreteType, InferredTypes> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyInferredTypes(op); }
};

/// Collects the result types of one op; see lib/Dialect/Nn/IR/TypeInference.h.
class TypeInference;
/// Makes ops; see Composer.h.
class Composer;
/// What the rule of a gradient sees of its op; see Gradients/GradientBuilder.h.
class GradientBuilder;
/// Fails for a reason that completes "'nn.x' has no gradient".
llvm::LogicalResult refuseGradient(GradientBuilder &gradients, llvm::StringRef reason);

/// Trait of ops that say how gradients come through them.
template <typename ConcreteType> class SaysGradient : public mlir::OpTrait::TraitBase<ConcreteType, SaysGradient> {};

/// True if both lists have the same shapes and element types; shardings may differ.
bool haveSameShapes(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// Shape to which numpy broadcasts `shapes` together, or nothing if they do not fit.
std::optional<llvm::SmallVector<int64_t>> getBroadcastShape(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// Which keys attention lets a query see by their places: query i those from i + low to i + high. A bound that is not there hides
/// nothing.
struct KeyBand {
  std::optional<int64_t> low, high;

  /// As the attributes of nn.attention say it. Bounds are none that is not needed, and few enough that a sum with a place of a query or
  /// a key is in range.
  static KeyBand get(int64_t queries, int64_t keys, bool isCausal, int64_t offset, std::optional<int64_t> left,
                     std::optional<int64_t> right);
  bool isEmpty() const { return !low && !high; }
  /// True if a query sees some keys, and no others: neighbors of its place.
  bool isBounded() const { return low && high; }
  bool sees(int64_t query, int64_t key) const {
    return (!low || key >= query + *low) && (!high || key <= query + *high);
  }
};

/// An einsum equation taken apart: one string of letters per operand, and the result's.
struct EinsumTerms {
  llvm::SmallVector<llvm::StringRef, 3> inputs;
  llvm::StringRef result;
};
/// Parses `bik,bkj->bij`; nothing if the syntax is wrong (constraint C1 of nn.einsum).
std::optional<EinsumTerms> parseEinsum(llvm::StringRef equation);

} // namespace cleave::nn

#include "cleave/Dialect/Nn/IR/NnDialect.h.inc"
#include "cleave/Dialect/Nn/IR/NnEnums.h.inc"

#include "cleave/Dialect/Nn/IR/NnInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Nn/IR/NnAttrs.h.inc"

#endif // CLEAVE_DIALECT_NN_IR_NN_H
