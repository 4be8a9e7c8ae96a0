//===- Composer.h - formulas of nn ops --------------------------*- C++ -*-===//
//
// Whoever makes ops of nn (importer, partitioning, passes, kernels, gradients) writes formulas, with numbers as they stand in books:
//
//   Composer f(builder, loc);
//   Value y = f.mul(x, f.sigmoid(f.mul(x, 1.702)));   // QuickGelu
//
// A number becomes a scalar constant of the other operand's element type. Where there is nothing to do (a reshape to the same shape, a
// sum over no dims), the operand comes back and no op is made.
//
// Preconditions are those of the ops (docs/generated/nn.md): element types are alike, dims count from 0, shapes broadcast. They are the
// caller's business, and asserted, unless a class derived from this one takes them for errors: then nothing more is made, and all is
// null. A null operand gives null.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECT_NN_IR_COMPOSER_H
#define CLEAVE_DIALECT_NN_IR_COMPOSER_H

#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/Sequence.h"

namespace cleave::nn {

using Shape = llvm::ArrayRef<int64_t>;

/// What changes nothing when it is combined with another element: 0, 1, or the least or greatest number of the type.
mlir::TypedAttr getIdentity(spmd::ReductionKind kind, mlir::Type elementType);

class Composer {
public:
  using Value = mlir::Value;

  /// Makes ops at the builder's place.
  Composer(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}
  Composer(const Composer &) = delete;
  Composer &operator=(const Composer &) = delete;
  virtual ~Composer() = default;

  /// What is made from here on has this location.
  Composer &at(mlir::Location place) {
    loc = place;
    return *this;
  }

  /// True if nothing more is made: see above.
  bool hasError() const { return hasFailed; }
  mlir::OpBuilder &getOpBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }

  //===--- Any op ----------------------------------------------------------===//

  /// An op whose result types follow from its operands; its first result.
  template <typename OpTy, typename... Args> Value create(Args &&...args) {
    return first(createAll<OpTy>(std::forward<Args>(args)...));
  }
  /// Likewise, all results.
  template <typename OpTy, typename... Args> llvm::SmallVector<Value, 2> createAll(Args &&...args) {
    if (hasFailed)
      return {};
    mlir::OperationState state(loc, OpTy::getOperationName());
    mlir::Type placeholder = builder.getNoneType();
    llvm::SmallVector<mlir::Type, 2> types(OpTy::template hasTrait<mlir::OpTrait::OneResult>() ? 1 : 2, placeholder);
    OpTy::build(builder, state, mlir::TypeRange(types), std::forward<Args>(args)...);
    return make(state, &OpTy::inferReturnTypes);
  }
  /// An op with a result type that the caller knows.
  template <typename OpTy, typename... Args> Value createTyped(mlir::RankedTensorType type, Args &&...args) {
    if (hasFailed)
      return {};
    mlir::OperationState state(loc, OpTy::getOperationName());
    OpTy::build(builder, state, mlir::TypeRange(mlir::Type(type)), std::forward<Args>(args)...);
    return first(make(state, nullptr));
  }

  /// An op of one result once more, with other operands and another type.
  Value again(mlir::Operation *op, mlir::ValueRange operands, mlir::RankedTensorType type);

  //===--- Types -----------------------------------------------------------===//

  mlir::Type f64() const { return builder.getF64Type(); }
  mlir::Type f32() const { return builder.getF32Type(); }
  mlir::Type i64() const { return builder.getI64Type(); }
  mlir::Type i32() const { return builder.getI32Type(); }
  mlir::Type boolean() const { return builder.getI1Type(); }
  /// Of a tensor; nothing for null.
  static Shape shape(Value value) { return value ? getShape(value) : Shape(); }
  static int64_t rank(Value value) { return static_cast<int64_t>(shape(value).size()); }
  static mlir::Type elementType(Value value) { return value ? getElementType(value) : mlir::Type(); }

  //===--- Constants -------------------------------------------------------===//

  virtual Value literal(mlir::DenseElementsAttr elements);
  /// Of rank 0, rounded to the element type; of integers the bits that fit.
  virtual Value scalar(mlir::Type elementType, double value);
  Value scalarLike(Value value, double number) { return value ? scalar(elementType(value), number) : Value(); }
  /// A place along a dim: i64, of rank 0.
  Value position(int64_t value);
  /// What changes nothing in a reduction, of rank 0.
  Value identity(spmd::ReductionKind kind, mlir::Type elementType);
  /// `start + i * step` along `dim` of `shape`.
  Value iota(Shape shape, int64_t dim, mlir::Type type, int64_t start = 0, int64_t step = 1);

  //===--- Element by element, with numpy broadcasting ---------------------===//

  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value pow(Value x, Value y);
  /// With the sign of `y`.
  Value mod(Value x, Value y);
  Value add(Value x, double y) { return add(x, scalarLike(x, y)); }
  Value sub(Value x, double y) { return sub(x, scalarLike(x, y)); }
  Value sub(double x, Value y) { return sub(scalarLike(y, x), y); }
  Value mul(Value x, double y) { return mul(x, scalarLike(x, y)); }
  Value div(Value x, double y) { return div(x, scalarLike(x, y)); }
  Value min(Value x, double y) { return min(x, scalarLike(x, y)); }
  Value max(Value x, double y) { return max(x, scalarLike(x, y)); }
  Value mod(Value x, double y) { return mod(x, scalarLike(x, y)); }
  Value clamp(Value x, double low, double high) { return min(max(x, low), high); }
  Value square(Value x) { return mul(x, x); }

  Value neg(Value x);
  Value abs(Value x);
  Value floor(Value x);
  Value ceil(Value x);
  Value round(Value x);
  Value sqrt(Value x);
  Value reciprocal(Value x);
  Value exp(Value x);
  Value log(Value x);
  Value cos(Value x);
  Value tanh(Value x);
  Value sigmoid(Value x);

  /// Tests: bool, of the shape to which both broadcast.
  Value eq(Value x, Value y);
  Value lt(Value x, Value y);
  Value le(Value x, Value y);
  Value gt(Value x, Value y);
  Value ge(Value x, Value y);
  Value eq(Value x, double y) { return eq(x, scalarLike(x, y)); }
  Value lt(Value x, double y) { return lt(x, scalarLike(x, y)); }
  Value le(Value x, double y) { return le(x, scalarLike(x, y)); }
  Value gt(Value x, double y) { return gt(x, scalarLike(x, y)); }
  Value ge(Value x, double y) { return ge(x, scalarLike(x, y)); }
  /// Of bools.
  Value both(Value x, Value y);
  Value either(Value x, Value y);
  Value negate(Value x);
  Value select(Value condition, Value x, Value y);
  Value select(Value condition, Value x, double y) { return select(condition, x, scalarLike(x, y)); }

  /// Bits of integers; a shift to the right brings zeros or, of signed ones, signs.
  Value bitAnd(Value x, double y);
  Value bitXor(Value x, Value y);
  Value shiftRight(Value x, Value y);
  Value shiftRight(Value x, double y) { return shiftRight(x, scalarLike(x, y)); }
  Value shiftLeft(Value x, double y);

  /// Two of one type as a reduction of that kind does; bools by `or` and `and`.
  Value combine(spmd::ReductionKind kind, Value x, Value y);

  //===--- Rows ------------------------------------------------------------===//

  /// Over dims, which are dropped unless they are to be kept.
  Value reduce(ReduceKind kind, Value x, Shape dims, bool keepDims = false);
  Value sum(Value x, Shape dims, bool keepDims = false) { return reduce(ReduceKind::Sum, x, dims, keepDims); }
  /// Over all dims: of rank 0.
  Value sumAll(Value x) { return sum(x, llvm::to_vector(llvm::seq<int64_t>(0, rank(x)))); }
  Value mean(Value x, Shape dims, bool keepDims = false) { return reduce(ReduceKind::Mean, x, dims, keepDims); }
  Value einsum(mlir::ValueRange operands, llvm::StringRef equation);
  /// Entries of `table` along `dim`, whose place the dims of `indices` take.
  Value gather(Value table, Value indices, int64_t dim);

  //===--- Movement --------------------------------------------------------===//

  /// As many elements in other dims.
  Value reshape(Value value, Shape shape);
  /// Result dim i is dim `permutation[i]`.
  Value transpose(Value value, Shape permutation);
  /// Dim `from` at `to` of the result, the others in their order.
  Value moveDim(Value value, int64_t from, int64_t to);
  /// To a shape to which numpy broadcasts.
  Value broadcast(Value value, Shape shape);
  Value cast(Value value, mlir::Type elementType);
  /// In f32, or f64 for f64: what statistics are computed in.
  Value widen(Value value) { return elementType(value) == f64() ? value : cast(value, f32()); }
  /// Adds dims of size 1 at `positions` (ascending, of the result).
  Value unsqueeze(Value value, Shape positions);
  /// `sizes[d]` elements from `starts[d]` on, `steps[d]` apart.
  Value slice(Value value, Shape starts, Shape sizes, Shape steps);
  /// `size` elements from `start` on along one dim.
  Value sliceDim(Value value, int64_t dim, int64_t start, int64_t size);
  /// One position of a dim, without the dim.
  Value pick(Value value, int64_t dim, int64_t at);
  /// One behind the other along `dim`; at least one value.
  Value concat(mlir::ValueRange values, int64_t dim);
  /// With so many elements of a number more in front of and behind each dim.
  Value pad(Value x, Shape low, Shape high, double value = 0);

protected:
  using InferFn = llvm::LogicalResult (*)(mlir::MLIRContext *, std::optional<mlir::Location>, mlir::ValueRange,
                                          mlir::DictionaryAttr, mlir::OpaqueProperties, mlir::RegionRange,
                                          llvm::SmallVectorImpl<mlir::Type> &);
  /// Every op is made here: results of the op of `state`, whose types `infer` tells, or `state` does (null).
  virtual llvm::SmallVector<Value, 2> make(mlir::OperationState &state, InferFn infer);
  static Value first(llvm::ArrayRef<Value> values) { return values.empty() ? Value() : values.front(); }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  /// Nothing is made any more.
  bool hasFailed = false;
};

/// `value`'s type with a dim of `count` more, in front.
mlir::RankedTensorType getStackedType(mlir::Value value, int64_t count);
/// `StackOpInterface::stack` of an elementwise op, or of one whose result's dims are those of its operands, aligned at the end.
mlir::Value stackAligned(Composer &compose, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands,
                         llvm::ArrayRef<bool> isStacked, int64_t count);

} // namespace cleave::nn

#endif // CLEAVE_DIALECT_NN_IR_COMPOSER_H
