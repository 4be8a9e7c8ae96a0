//===- Lowerings.h - how the ops of nn are computed in kernels --*- C++ -*-===//
//
// The emitter knows no op by name. Each op has one *lowering* in a table, added by its family's `register...` function:
//
//   element   what it does with one element of each operand, or a vector of them (add, exp, select)
//   pull      its result at a point, by evaluating operands at points (transpose, gather, einsum)
//   fold      a reduction, as a monoid: extents, identity, lift, combine, finish (reduce, arg_reduce)
//   fill      all of its results, by loops of its own (top_k, scatter); what has a pull too is filled on the host only, and some on
//             devices only (stages of kernels)
//   tile      its result in blocks of its own choice, vector by vector: others compute with them before they are stored
//   expand    other ops of nn that come to the same (softmax, layer_norm), put in its place beforehand
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_LOWERINGS_H
#define CLEAVE_LIB_CODEGEN_LOWERINGS_H

#include "Places.h"
#include "cleave/Dialect/Nn/IR/Nn.h"
#include "cleave/Dialect/Spmd/IR/TensorTypes.h"
#include <functional>

namespace cleave::codegen {

class ElementBuilder;
class Emitter;

using Values = llvm::SmallVector<mlir::Value, 2>;

/// Operands and result have compute types (`ElementBuilder::getComputeType`).
using ElementLowering = std::function<mlir::Value(ElementBuilder &, mlir::Operation *, mlir::ValueRange operands)>;
/// The value has the held type of the result's elements, and the emitter's number of lanes.
using PullLowering = std::function<mlir::Value(Emitter &, mlir::Operation *, const Point &)>;
/// Writes the results, one buffer each.
using FillLowering = std::function<void(Emitter &, mlir::Operation *, mlir::ValueRange buffers)>;
/// Takes neighboring elements of a result, in its held type, as many as the emitter has lanes: each once.
using TileSink = llvm::function_ref<void(const Point &, mlir::Value)>;
/// Loads operands by itself, by views of what is in memory (View.h).
struct TileLowering {
  std::function<bool(mlir::Operation *)> applies; ///< else another lowering is taken
  std::function<void(Emitter &, mlir::Operation *, TileSink)> run;
};
/// Builds at the place of the op; returns what replaces its result.
using ExpandLowering = std::function<mlir::Value(mlir::OpBuilder &, mlir::Operation *)>;

/// A reduction over `getDims(op)` of the first operand.
struct FoldLowering {
  std::function<llvm::SmallVector<int64_t>(mlir::Operation *)> getDims;
  std::function<void(mlir::Operation *, llvm::ArrayRef<int64_t>)> setDims;
  /// Values that change nothing when combined, for the emitter's lanes.
  std::function<Values(Emitter &, mlir::Operation *)> identity;
  /// What the operand's element contributes. `place` is its index along the (only) dim, where there is one dim.
  std::function<Values(Emitter &, mlir::Operation *, mlir::Value element, Index place)> lift;
  std::function<Values(Emitter &, mlir::Operation *, mlir::ValueRange x, mlir::ValueRange y)> combine;
  /// The result's element, in its held type.
  std::function<mlir::Value(Emitter &, mlir::Operation *, mlir::ValueRange)> finish;
};

/// Where a kernel runs: by one thread, or by as many as there are elements.
enum class Processor { Host, Device };

struct Lowering {
  ElementLowering element;
  PullLowering pull;
  FillLowering fill, deviceFill;
  ExpandLowering expand;
  std::optional<FoldLowering> fold;
  std::optional<TileLowering> tile, deviceTile;

  const std::optional<TileLowering> &getTile(Processor processor) const {
    return processor == Processor::Host ? tile : deviceTile;
  }
  bool isTiled(mlir::Operation *op, Processor processor = Processor::Host) const {
    return getTile(processor) && getTile(processor)->applies(op);
  }
  bool isFilled(Processor processor) const {
    return processor == Processor::Host ? bool(fill) : deviceFill || (fill && !pull);
  }
};

class LoweringTable {
public:
  template <typename OpT> void addElement(ElementLowering lowering) {
    lowerings[mlir::TypeID::get<OpT>()].element = lowering;
  }
  template <typename OpT, typename Fn> void addPull(Fn fn) {
    lowerings[mlir::TypeID::get<OpT>()].pull = [fn](Emitter &emitter, mlir::Operation *op, const Point &point) {
      return fn(emitter, llvm::cast<OpT>(op), point);
    };
  }
  template <typename OpT, typename Fn> void addFill(Fn fn) {
    lowerings[mlir::TypeID::get<OpT>()].fill = [fn](Emitter &emitter, mlir::Operation *op, mlir::ValueRange buffers) {
      fn(emitter, llvm::cast<OpT>(op), buffers);
    };
  }
  template <typename OpT> void addDeviceFill(FillLowering lowering) {
    lowerings[mlir::TypeID::get<OpT>()].deviceFill = lowering;
  }
  template <typename OpT, typename Fn> void addExpand(Fn fn) {
    lowerings[mlir::TypeID::get<OpT>()].expand = [fn](mlir::OpBuilder &builder, mlir::Operation *op) {
      return fn(builder, llvm::cast<OpT>(op));
    };
  }
  template <typename OpT> void addFold(FoldLowering lowering) { lowerings[mlir::TypeID::get<OpT>()].fold = lowering; }
  template <typename OpT> void addTile(TileLowering lowering) { lowerings[mlir::TypeID::get<OpT>()].tile = lowering; }
  template <typename OpT> void addDeviceTile(TileLowering lowering) {
    lowerings[mlir::TypeID::get<OpT>()].deviceTile = lowering;
  }
  const Lowering *find(mlir::Operation *op) const {
    auto found = lowerings.find(op->getName().getTypeID());
    return found == lowerings.end() ? nullptr : &found->second;
  }

private:
  llvm::DenseMap<mlir::TypeID, Lowering> lowerings;
};

/// The lowerings of all families.
const LoweringTable &getLowerings();

/// True if each op of `region` has a lowering there; else `reason` says which one has none.
bool haveLowerings(mlir::Block &region, Processor processor, std::string &reason);

/// Those of exec.pack and exec.unpack.
void registerPacking(LoweringTable &table);
// One per family: `registerMovement(table)` is in Movement.cpp.
#define CLEAVE_NN_FAMILY(Family) void register##Family(LoweringTable &table);
#include "cleave/Dialect/Nn/IR/NnFamilies.inc"

inline int64_t countElements(llvm::ArrayRef<int64_t> shape) { return mlir::ShapedType::getNumElements(shape); }

} // namespace cleave::codegen

#endif // CLEAVE_LIB_CODEGEN_LOWERINGS_H
