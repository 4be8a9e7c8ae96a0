//===- PaddedRows.h - rows of which data tell how many count ----*- C++ -*-===//
//
// A selection gives as many rows as there may be, those that it finds first, and their number (Bounded/Selection.cpp). What is
// behind them must not be seen as if it were found, so padding is followed from node to node:
//
//   NonMaxSuppression -> s [60, 3] ── Gather axis 1 ──▶ [60, 1] ── Squeeze ──▶ [60] ── Gather (indices) ──▶ [60, 4] ── TopK ──▶ [20, 4]
//
// Rows that count are those of a *source*: their number, and the room that there is for them. Each node is looked at twice:
//
//   prepare   before it is imported: an op that mixes rows gets what changes nothing in place of padding: the identity of a
//             reduction, what a search never finds, indices that count from the end of what counts   (PaddedMasks.cpp)
//   follow    behind that: where padding is in the results, or an error that names the node          (PaddedRows.cpp)
//
// Shape and Size of such rows are computed of their number. Where such a number says how large something is to be, there is
// room for as many as there may be, and that again is a source                                       (PaddedSizes.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_BOUNDED_PADDEDROWS_H
#define CLEAVE_LIB_IMPORT_ONNX_BOUNDED_PADDEDROWS_H

#include "../NodeContext.h"

namespace cleave::onnx {

class PaddedRows {
public:
  /// The rows along `dim` of a value.
  struct Padding {
    int64_t dim;
    unsigned source;
    bool operator==(const Padding &other) const { return dim == other.dim && source == other.source; }
  };
  struct NamedResult {
    std::string name;
    Value value;
  };
  /// What `prepare` found out about a node.
  struct Step {
    /// Operands whose padding the node does not see.
    llvm::SmallVector<unsigned, 2> settled;
    /// Padding in the results, of operands that were replaced. `isSplit`: the results may have fewer rows.
    std::optional<Padding> results;
    bool isSplit = false;
    /// The mean of as many rows as count, and not as there is room for.
    std::optional<Padding> mean;
  };

  explicit PaddedRows(GraphImporter &importer) : importer(importer) {}

  bool contains(Value value) const { return padded.contains(value); }
  /// These results of `at` have `count` rows (i64, rank 0) along `dim` that are found, and padding behind.
  void note(NodeContext &at, llvm::ArrayRef<unsigned> ofResults, Value count, int64_t dim);
  Step prepare(NodeContext &at);
  /// Where padding of what a node reads is in its results; an error at the node where that cannot be said.
  void follow(NodeContext &at, const Step &step);
  /// An operand that says how large something is to be, where as many rows count as there may be; nothing where it does not
  /// depend on such numbers, or no op that may have it.
  std::optional<reference::Tensor> computeAtMost(NodeContext &at, unsigned index);
  /// How many rows there are, beside results that have padding.
  void addCounts(llvm::SmallVectorImpl<NamedResult> &results, mlir::Location model);

private:
  struct Source {
    std::string name; ///< of the number, as an output
    Value count;
    int64_t room;
  };
  /// Element `element` of an operand is the number of rows of a source.
  struct Sized {
    unsigned operand;
    int64_t element;
    unsigned source;
  };
  using Known = llvm::DenseMap<Value, reference::Tensor>;

  unsigned addSource(NodeContext &at, unsigned result, Value count, int64_t room);
  /// The first `size` rows of a source.
  unsigned addSlice(NodeContext &at, unsigned source, int64_t size);
  std::optional<Padding> find(Value value) const;

  // PaddedMasks.cpp.
  void prepareOperand(NodeContext &at, unsigned index, Padding padding, Step &step);
  void prepareReduction(NodeContext &at, Padding padding, Step &step);
  void prepareAlong(NodeContext &at, Padding padding, Step &step);
  void prepareGather(NodeContext &at, Padding padding, Step &step);
  void prepareSelection(NodeContext &at, unsigned index, Padding padding, Step &step);
  void prepareProduct(NodeContext &at, unsigned index, Padding padding);
  Value mask(NodeContext &at, Value value, Padding padding, Value rest);
  Value isFound(NodeContext &at, Shape shape, Padding padding);
  bool finish(NodeContext &at, const Step &step);
  void join(NodeContext &at, int64_t axis);

  // PaddedSizes.cpp.
  bool evaluate(Value value, Known &known, llvm::SmallDenseSet<unsigned> &used);
  std::optional<reference::Tensor> evaluateWith(Value root, std::optional<unsigned> varied, int64_t number,
                                                llvm::SmallDenseSet<unsigned> &used);
  bool addSizes(NodeContext &at, unsigned index, unsigned source, const reference::Tensor &most);
  std::optional<Padding> findSized(NodeContext &at, const Sized &entry);

  GraphImporter &importer;
  llvm::DenseMap<Value, Padding> padded;
  llvm::SmallVector<Source> sources;
  llvm::DenseMap<Value, unsigned> sourceOfCount;
  llvm::DenseMap<std::pair<unsigned, int64_t>, unsigned> slices;
  /// Of the node at hand.
  llvm::SmallVector<Sized> sized;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_BOUNDED_PADDEDROWS_H
