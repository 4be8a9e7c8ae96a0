//===- Emitter.h - kernels by pulling ---------------------------*- C++ -*-===//
//
// Every value of a region is a function from a point to the elements there:
//
//   eval(value, point) -> `lanes` neighboring elements, a scalar (one lane) or a vector
//
// Movement rewrites points, elementwise ops compute on vectors, arguments load. What was evaluated is remembered per
// (value, point, lanes), in a stack of scopes, one per loop or branch that the builder stands in: in a row kernel that
// memory is the row's registers. Which points are pulled is the template's choice (Host/Kernel.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_EMITTER_H
#define CLEAVE_LIB_CODEGEN_EMITTER_H

#include "Elements.h"
#include "Lowerings.h"
#include "cleave/Codegen/Codegen.h"
#include <map>

namespace cleave::codegen {

/// Of the buffer for an index that is out of range, and one more than the places that it is for.
inline mlir::MemRefType getReportType(mlir::MLIRContext *context) {
  return mlir::MemRefType::get({2}, mlir::IntegerType::get(context, 64));
}

class Emitter {
public:
  Emitter(mlir::MLIRContext *context, mlir::Location location, const Target &target)
      : b(context), loc(location), elements(b, loc, target), places(b, loc), target(target) {}
  virtual ~Emitter() = default;

  mlir::OpBuilder b;
  mlir::Location loc;
  ElementBuilder elements;
  PlaceBuilder places;

  /// Builds the kernel's body in `block`, which ends with a terminator.
  void start(mlir::Block *block);
  /// Gives back what was allocated. Nothing may be built behind it.
  void finish();
  /// Says that `value` lies in `buffer`, row-major.
  void bind(mlir::Value value, mlir::Value buffer) { buffers[value] = buffer; }
  /// Where indices that are out of range are reported: two i64.
  void reportTo(mlir::Value buffer) { report = buffer; }
  /// Null: it lies nowhere.
  mlir::Value getBuffer(mlir::Value value) const { return buffers.lookup(value); }

  // Lanes: how many neighboring elements `eval` gives, of which the first `active` exist.
  int64_t getLanes() const { return lanes; }
  int64_t getActive() const { return active; }
  /// How many fill a register of the processor, and how many registers there are.
  int64_t getVectorLanes(mlir::Type element) const {
    return target.getVectorBytes() * 8 / element.getIntOrFloatBitWidth();
  }
  /// For lowerings that are tried on the host only.
  const HostTarget &getHost() const { return static_cast<const HostTarget &>(target); }
  int64_t getNumRegisters() const { return target.getVectorBytes() == 64 ? 32 : 16; }
  template <typename Fn> auto withLanes(int64_t count, int64_t used, Fn fn) {
    std::swap(count, lanes);
    std::swap(used, active);
    auto result = fn();
    std::swap(count, lanes);
    std::swap(used, active);
    return result;
  }
  template <typename Fn> auto asScalar(Fn fn) { return withLanes(1, 1, fn); }
  /// `element`, or a vector of as many as there are lanes.
  mlir::Type withLanes(mlir::Type element) const;
  mlir::Value splat(mlir::Value scalar);
  /// `count` lanes of a vector from lane `from` on; one is a scalar.
  mlir::Value takeLanes(mlir::Value vector, int64_t from, int64_t count);
  /// Which lanes exist. Precondition: not all.
  mlir::Value getActiveMask();
  /// 0, 1, 2 .. times `step`, as i64, or integers of another type.
  mlir::Value getLaneNumbers(int64_t step, mlir::Type type = {});
  /// All lanes of a vector as one: halves are combined, in a fixed order.
  mlir::Value acrossLanes(mlir::Value vector, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

  // Values.
  mlir::Value eval(mlir::Value value, const Point &point);
  /// As eval, of a single element.
  mlir::Value evalScalar(mlir::Value value, const Point &point);
  /// An index operand's element as a position in [0, extent): negative ones count from the end, others are clamped, and
  /// reported.
  mlir::Value evalPlace(mlir::Value value, const Point &point, int64_t extent);
  void remember(mlir::Value value, const Point &point, mlir::Value known) {
    memory.back()[keyOf(value, point)] = known;
  }
  /// The fallback that makes every movement right: each lane by itself.
  mlir::Value perLane(mlir::Value value, const Point &point);
  mlir::Value perLane(mlir::Type element, const Point &point, llvm::function_ref<mlir::Value(const Point &)> fn);
  mlir::Value load(mlir::Value buffer, mlir::Type element, Index at);
  void store(mlir::Value buffer, mlir::Value value, Index at);
  /// Asks for what `body` would load of arguments that are too large for caches. Nothing is stored, and what is computed means
  /// nothing.
  void ask(llvm::function_ref<void()> body);
  static bool isLarge(mlir::Value buffer);

  // Control.
  /// From 0 to `count` by `step`; `body` gets the position and carried values, and returns the next ones.
  Values loop(mlir::Value from, mlir::Value to, int64_t step, Values init,
              llvm::function_ref<Values(mlir::Value, Values)> body);
  Values loop(int64_t count, Values init, llvm::function_ref<Values(mlir::Value, Values)> body);
  void loop(int64_t count, llvm::function_ref<void(mlir::Value)> body);
  /// All positions below `extents`, the last one fastest.
  Values walk(llvm::ArrayRef<int64_t> extents, Values init,
              llvm::function_ref<Values(llvm::ArrayRef<mlir::Value>, Values)> body);
  /// Likewise where no position needs what another one did: a loop here, threads where there are any.
  virtual void forAll(llvm::ArrayRef<int64_t> extents, llvm::function_ref<void(const Point &)> body);
  /// All points of `shape`, one by one.
  void overAll(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(const Point &)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Where the condition, an i1, does not hold.
  void unless(mlir::Value condition, llvm::function_ref<void()> body);
  mlir::Value choose(mlir::Value condition, mlir::Type type, llvm::function_ref<mlir::Value()> yes,
                     llvm::function_ref<mlir::Value()> no);

  /// Memory of the kernel's own, for as long as it runs.
  virtual mlir::Value allocate(mlir::Type element, int64_t count);
  /// A buffer of numbers that the kernel's object holds.
  mlir::Value makeTable(mlir::DenseElementsAttr numbers);
  /// The point of an operand that broadcasts to the result, at a point of the result.
  Point broadcast(const Point &point, llvm::ArrayRef<int64_t> from);
  /// A reduction, walked by itself.
  mlir::Value reduceAlone(mlir::Operation *op, const FoldLowering &fold, const Point &point);

  /// A row of a value that the template has stored: what lies at `row`, with any index along `dim`.
  struct Row {
    mlir::Value buffer;
    Point row;
    int64_t dim, lanes, active; ///< `lanes` elements a position, side by side
    bool isFilled;              ///< to be read rather than computed
  };
  void storeInRow(mlir::Value value, const Point &point, mlir::Value element);
  llvm::DenseMap<mlir::Value, Row> rows;

protected:
  /// Neighboring elements that all exist.
  virtual mlir::Value loadVector(mlir::Value buffer, mlir::Value at);
  virtual void storeVector(mlir::Value buffer, mlir::Value value, mlir::Value at);
  /// Where tables lie.
  virtual mlir::Attribute getTableSpace() const { return {}; }
  /// An index operand's element as a position of any size.
  virtual mlir::Value toPlace(mlir::Value index);
  /// What `fn` evaluates is forgotten behind it.
  template <typename Fn> auto scoped(Fn fn) {
    memory.emplace_back();
    auto result = fn();
    memory.pop_back();
    return result;
  }

private:
  using Key = std::vector<intptr_t>;

  mlir::Value compute(mlir::Value value, const Point &point);
  mlir::Value computeElements(mlir::Operation *op, const ElementLowering &lowering, const Point &point);
  mlir::Value loadStrided(mlir::Value buffer, Index at);
  void reportOutside(mlir::Value index, int64_t extent);
  std::optional<Index> findInRow(mlir::Value value, const Point &point);
  Key keyOf(mlir::Value value, const Point &point) const;

  const Target &target;
  int64_t lanes = 1, active = 1;
  bool isAsking = false;
  mlir::Block *entry = nullptr;
  mlir::Value report;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::SmallVector<mlir::Value> allocated;
  llvm::DenseMap<mlir::Attribute, mlir::Value> tables;
  std::vector<std::map<Key, mlir::Value>> memory;
};

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_EMITTER_H
