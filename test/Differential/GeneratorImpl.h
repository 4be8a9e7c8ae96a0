//===- GeneratorImpl.h - the writer of random programs ----------*- C++ -*-===//
//
// Values are kept small (at most kMaxElements) and numerically tame: sums may be reassociated by partitioning, so an op
// that jumps (a comparison, the place of a maximum) is only applied to arguments, which are the same in both programs.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_DIFFERENTIAL_GENERATORIMPL_H
#define CLEAVE_TEST_DIFFERENTIAL_GENERATORIMPL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <random>
#include <string>
#include <vector>

namespace cleave::test {

/// No value has more elements.
constexpr int64_t kMaxElements = 1536;
/// What extents are drawn from.
constexpr int64_t kSizes[] = {1, 2, 3, 4, 4, 6, 8, 8, 12, 12, 24};
/// Likewise where axes split what they do not divide.
constexpr int64_t kUnevenSizes[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 17, 24};
/// Likewise where nothing is to be divided by the mesh.
constexpr int64_t kOddSizes[] = {1, 2, 3, 5, 7, 8, 16, 17, 33, 48, 145};

/// A value that ops may use.
struct Value {
  std::string name;
  llvm::SmallVector<int64_t> shape;
  bool isArgument = false;
  std::string encoding = ""; ///< `, #spmd.sharding<...>` or empty
  std::string elementType = "f32";
  bool isWeight = false; ///< an argument that is one
};

/// An axis of the mesh.
struct Axis {
  std::string name;
  int64_t size;
};

/// A loop whose body is being written (GeneratorLoops.cpp).
struct LoopText {
  /// What ends it: a known number of iterations, one of data (or that, with a known one as bound), a float that outgrows another
  /// one, a flag that never changes.
  enum Kind { Count, Number, NumberOrLess, Float, Flag } kind = Count;
  /// Most iterations.
  int64_t most = 0;
  /// Outside.
  Value zero, limit, condition;
  llvm::SmallVector<Value> initial, captured;
  /// Inside: arguments of the body, what the next iteration finds, and whether there is one.
  llvm::SmallVector<Value> carried, taken, next;
  Value more;
  /// Those of the generator, of what stands around the loop.
  llvm::SmallVector<Value> values;
  std::string body;
};

/// Writes one module; the ops are in GeneratorOps.cpp.
class Generator {
public:
  explicit Generator(uint64_t seed, bool hasAnnotations = true, bool isUneven = false)
      : engine(seed), hasAnnotations(hasAnnotations), isUneven(isUneven) {}
  std::string generate();

private:
  // Random choices.
  int64_t below(int64_t bound) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(bound)); }
  bool chance(int percent) { return below(100) < percent; }
  /// As chance, of an annotation.
  bool annotation(int percent) { return hasAnnotations && chance(percent); }
  template <typename Range> auto &pick(Range &range) { return range[below(std::size(range))]; }
  int64_t pickSize() { return isUneven ? pick(kUnevenSizes) : hasAnnotations ? pick(kSizes) : pick(kOddSizes); }
  llvm::SmallVector<int64_t> pickShape(int64_t minRank, int64_t maxRank);
  const Value *pickValue(int64_t minRank = 0);
  const Value *pickArgument(int64_t minRank);

  // Text.
  void pickMesh();
  std::string pickSharding(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType);
  std::string pickDim(int64_t extent, llvm::SmallVector<Axis> &free);
  std::string takeAxis(size_t index, bool isHalf, llvm::SmallVector<Axis> &free);
  std::string pickPartial(llvm::StringRef elementType, llvm::SmallVector<Axis> &free);
  static std::string typeOf(llvm::ArrayRef<int64_t> shape, llvm::StringRef elementType, llvm::StringRef encoding = "");
  static std::string typeOf(const Value &value) { return typeOf(value.shape, value.elementType, value.encoding); }
  Value addArgument(llvm::SmallVector<int64_t> shape, llvm::StringRef elementType);
  /// One of f32 whose dim `dim` is split by `axis`, and now and then others by other axes.
  Value addSplit(llvm::SmallVector<int64_t> shape, int64_t dim, const Axis &axis);
  bool add(const std::string &text, llvm::ArrayRef<const Value *> operands, llvm::SmallVector<int64_t> shape);
  /// An op inside of a formula, which gets no annotation and is no value that others use.
  Value addInner(const std::string &text, llvm::ArrayRef<const Value *> operands, llvm::SmallVector<int64_t> shape,
                 llvm::StringRef elementType);

  /// What a window does to spatial dims, one entry per dim in each list.
  struct Window {
    llvm::SmallVector<int64_t> kernel, strides, low, high, dilations, result;
    bool isCeil = false;
    std::string getText() const;
  };
  Window pickWindow(const Value &x, bool isPool);
  Value addPicture(int64_t channels);
  Value addWeight(llvm::SmallVector<int64_t> shape);

  // Loops. What is asked for inside of one has a name of its own there.
  Value outside(llvm::function_ref<Value()> write);
  Value nameInside(const Value &outer);
  Value capture(const Value &outer);
  Value carry(const Value &initial);
  void pickIterations(LoopText &loop);
  Value addMore(const Value &next);
  void addScanInput(const Value &number);
  void addScanOutput(const Value &number);
  Value pickNext(const Value &was, size_t numFound);
  void carryUnused(size_t numFound);
  void endLoop();

  // Ops. Each returns false where the values at hand do not suit it.
  bool addUnary();
  bool addBinary();
  bool addSelect();
  bool addEinsum();
  bool addReduce();
  bool addSoftmax();
  bool addNorm();
  bool addTranspose();
  bool addReshape();
  bool addBroadcast();
  bool addConcat();
  bool addSlice();
  bool addPad();
  bool addLrn();
  bool addGather();
  bool addScan();
  bool addConv();
  bool addPool();
  bool addResize();
  bool addAttention();
  llvm::SmallVector<Value, 3> addAttentionOperands(int64_t batch, int64_t heads, int64_t kvHeads, int64_t sequence,
                                                   int64_t keys);
  bool addRotaryEmbedding();
  bool addRecurrence();
  bool addLoop();
  bool addRows();
  bool addQuantized();
  bool addIntegerProduct();
  bool addBits();
  bool addOp();

  std::string callBody(llvm::ArrayRef<std::string> resultTypes) const;

  /// True if some op reads `value`.
  bool isUsed(const Value &value) const {
    return llvm::StringRef(body).count(" " + value.name + " ") > 1 || llvm::StringRef(body).contains(value.name + ",");
  }

  std::mt19937_64 engine;
  bool hasAnnotations, isUneven;
  llvm::SmallVector<Axis> axes;
  std::string meshText, body;
  std::string attentionWord; ///< of the plan; empty: none
  llvm::SmallVector<Value> arguments, values;
  /// Those around what is being written, the innermost one last.
  std::vector<LoopText> loops;
  unsigned nextName = 0;
};

inline int64_t countElements(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

} // namespace cleave::test

#endif // CLEAVE_TEST_DIFFERENTIAL_GENERATORIMPL_H
