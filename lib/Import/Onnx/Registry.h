//===- Registry.h - which function imports which op -------------*- C++ -*-===//
//
// A table keyed by (domain, op type, since-version). A node takes the row with the largest since-version that is not
// above the opset that the model imports. One file per op family fills the table; a new op is a row there.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_REGISTRY_H
#define CLEAVE_LIB_IMPORT_ONNX_REGISTRY_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace cleave::onnx {

class NodeContext;
using ImportFn = void (*)(NodeContext &);

/// Bounds on a node's operands and outputs that no import function has to test.
struct Arity {
  static constexpr unsigned kAny = ~0u;
  unsigned minOperands, maxOperands;
  unsigned maxResults = 1;
  /// Operands may be sequences and optional values.
  bool takesLists = false;
};

/// Where rows along `dim` of an operand are in the node's results, each made of that row; nothing where rows are mixed (Bounded/PaddedRows.h).
using FindRowsFn = std::optional<int64_t> (*)(NodeContext &, unsigned operand, int64_t dim);
/// The dim of the result whose extent an element of the operand `sizes` says, if its rows are the first ones; nothing if not.
using FindSizedFn = std::optional<int64_t> (*)(NodeContext &, int64_t element);

/// How an op mixes rows of which only the first count. What it reads in place of the others is in Bounded/PaddedMasks.cpp.
enum class Mixing : uint8_t {
  None,        ///< not at all, or as nobody can say: then they are refused
  Reduction,   ///< over reduced dims, to a number that the identity does not change
  Mean,        ///< the same, of floats, and a division by how many there are
  Search,      ///< for the place of the least or greatest of a dim
  Row,         ///< along a dim, of which the result has the same rows (softmax)
  Sort,        ///< along a dim, of which the result has some rows
  Lookup,      ///< rows by number
  TupleLookup, ///< rows by numbers of the first dims
  Selection,   ///< of boxes by their scores
  Places,      ///< of what is not zero
  Product,     ///< a sum of products over them
  Concat,      ///< one operand after another
  Shape,       ///< counts them, as a dim
  Size,        ///< counts all elements
};
/// What a reduction or search is not changed by.
enum class Identity : uint8_t { Zero, One, Least, Greatest };

struct OpImporter {
  unsigned sinceVersion;
  Arity arity;
  /// Null where the op ended with this version.
  ImportFn import;
  /// Null: it mixes all rows.
  FindRowsFn findRows = nullptr;
  /// The results may have fewer rows: the first ones.
  bool slicesRows = false;
  /// Which operand says how large the result is to be; null: none.
  unsigned sizes = 0;
  FindSizedFn findSized = nullptr;
  Mixing mixing = Mixing::None;
  Identity identity = Identity::Zero;

  OpImporter &follow(FindRowsFn find, bool slices = false) {
    findRows = find;
    slicesRows = slices;
    return *this;
  }
  OpImporter &sizedBy(unsigned operand, FindSizedFn find) {
    sizes = operand;
    findSized = find;
    return *this;
  }
  OpImporter &mix(Mixing how, Identity unchanged = Identity::Zero) {
    mixing = how;
    identity = unchanged;
    return *this;
  }
};

class Registry {
public:
  /// All families.
  static const Registry &get();

  // An op of another domain than ONNX's own has it in front of its name: "com.microsoft.Gelu".

  /// The new row, until the next one is added.
  OpImporter &add(llvm::StringRef opType, unsigned sinceVersion, Arity arity, ImportFn import);
  /// One row per op: from version 1 on, the same at all versions.
  OpImporter &add(llvm::StringRef opType, Arity arity, ImportFn import) { return add(opType, 1, arity, import); }
  /// The op is gone from `version` on.
  void end(llvm::StringRef opType, unsigned version) { add(opType, version, {0, 0, 0}, nullptr); }

  /// Null if the op is unknown, or unknown at that opset.
  const OpImporter *find(llvm::StringRef domain, llvm::StringRef opType, int64_t opset) const;

private:
  /// Rows of an op, by its name with its domain, ascending by version.
  llvm::StringMap<llvm::SmallVector<OpImporter, 2>> rows;
};

// One per family of ops, and those for ops that are nothing but others.
#define CLEAVE_NN_FAMILY(Family) void register##Family(Registry &registry);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"
void registerControl(Registry &registry);
void registerGradient(Registry &registry);
void registerLoss(Registry &registry);
void registerLinearAttention(Registry &registry);
void registerMicrosoftFused(Registry &registry);
void registerMicrosoftAttention(Registry &registry);
void registerMicrosoftQuantized(Registry &registry);
void registerQuantizedRecurrence(Registry &registry);
void registerLearning(Registry &registry);
void registerRandom(Registry &registry);
void registerSampling(Registry &registry);
void registerScan(Registry &registry);
void registerSelection(Registry &registry);
void registerSequence(Registry &registry);
void registerSignal(Registry &registry);
void registerTraining(Registry &registry);
void registerTrees(Registry &registry);

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_REGISTRY_H
