//===- BufferAssignment.h - where every value of a program lies -*- C++ -*-===//
//
// Steps are the ops of a function, in an order in which collectives come as early as their operand exists. Every value
// has a *root*, the value whose bytes it is: itself, or, for aliases, what they see. Every root has a *place*: an offset in a
// *storage*, which is an input or output buffer, or a piece of the arena. Storages are found from the back, as it is
// the user who knows where a value may best be made:
//
//   returned                     in the output, or, as a state's next value, where the old one is, if that is not read any more
//   state                        in a buffer of its own; one that grows, as the last positions of its next value
//   part of a concat             in its part of the result, if that dim is outermost
//   operand of a kernel or       where the result lies, if it dies here and the kernel says that it may (in place)
//   all_reduce
//   operand of an all_gather     as its own row of the result
//   operand of a window          in the middle of the result, where those are rows
//   carried by a loop            for the whole loop; what it is at first, and what an iteration makes of it, in the same bytes where
//                                nobody reads the old value any more, else copied there
//   sent to the host's memory    a storage in the arena there, which lives until the value is back
//   anything else                a storage of its own
//
// A storage of an arena lives from the first step that makes one of its values to the last that reads one. What a
// collective reads, and makes, has to stay until somebody waits for it: the first reader of its result. What is copied to the host's memory
// stays until that is predicted to be done (Transfers.h).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_BUFFERASSIGNMENT_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_BUFFERASSIGNMENT_H

#include "RankTable.h"
#include "cleave/Codegen/KernelRules.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Spmd/IR/States.h"
#include "cleave/Support/MemoryPlan.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <limits>

namespace cleave::exec {

/// Of storages, loads, and buffers: a line of the cache, and more than any vector.
constexpr int64_t kAlignment = 64;

/// By number of storages of activations: the arenas of the device and of its host.
constexpr unsigned kDeviceArena = 0, kHostArena = 1;

/// Of each exec.offload the op in front of which it is done.
using TransferEnds = llvm::DenseMap<mlir::Operation *, mlir::Operation *>;

/// A step behind all.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// Bytes that belong together.
struct Storage {
  BufferKind kind;
  int64_t bytes;
  unsigned number; ///< of the input, output, or the state's input; of activations which arena
  /// Of a state: its old value, and the last step that reads that.
  mlir::Value old = {};
  int64_t oldUntil = -1;
  int64_t first = -1, last = -1; ///< steps
  int64_t offset = 0;            ///< in the arena
};

struct BufferPlace {
  unsigned storage;
  NumberAttr offset;
  /// The root whose bytes these are a part of: itself, or a concat's or all_gather's result.
  mlir::Value tensor;
};

class BufferAssignment {
public:
  /// \param rules of the kernels. \param ends of what is copied to the host's memory; what is not there is done where it stands.
  BufferAssignment(mlir::Block &block, RankTable &table, llvm::ArrayRef<spmd::StatePlace> states,
                   codegen::KernelRules rules, TransferEnds ends);

  /// Finds all places. Afterwards the block stands in the order of the steps.
  void run();

  /// The root of a value, and where in its bytes the value begins.
  struct Root {
    mlir::Value value;
    NumberAttr offset;
  };
  Root getRoot(mlir::Value value) const;
  /// The place of a root that a command makes, or an argument.
  const BufferPlace &getPlace(mlir::Value root) const { return places.find(root)->second; }
  const Storage &getStorage(const BufferPlace &place) const { return storages[place.storage]; }
  /// Where number `number` of what is returned goes.
  const Storage &getOutput(unsigned number) const { return storages[outputs[number]]; }
  /// True if `value` is made right there.
  bool isInOutput(mlir::Value value, unsigned number) const;
  /// The strides of a value that is not dense: a state that grows. Else none.
  llvm::SmallVector<int64_t> getStrides(mlir::Value value) const;
  /// True if part number `number` of a concat (`getConcatenated`) is made in its place, or the operand (0) of a window.
  bool isInPart(mlir::Operation *concat, unsigned number) const;
  /// True if `value` is made where `other` lies.
  bool liesAt(mlir::Value value, mlir::Value other) const;
  const MemoryPlan &getArena() const { return arenas[kDeviceArena]; }
  const MemoryPlan &getHostArena() const { return arenas[kHostArena]; }

  KernelOp getKernel(LaunchOp op) const;

private:
  struct Use {
    mlir::Operation *op = nullptr;
    int64_t step = -1;
  };
  /// The last two ops that read a root.
  struct Uses {
    Use last, before;
  };

  /// What a loop carries: a root, what the next iteration finds instead (nothing if that is copied in any case), and the last step
  /// of an iteration that reads it.
  struct Carried {
    int64_t enter, leave;
    mlir::Value root, next;
    int64_t last;
  };

  void orderSteps();
  void pairMarks();
  /// From an op that reads `root` at `step`: the end of the outermost loop that is around the op and not around what makes the root, as
  /// each iteration reads it; else `step`.
  int64_t getEnd(mlir::Value root, int64_t step) const;
  bool isSeenThrough(mlir::Operation *op) const;
  void findCarried();
  void placeCarried(int64_t leave);
  void placeInitial(EnterOp enter);
  /// True if what `op` makes of what a loop carries, the root of `operand`, is what the next iteration finds instead.
  bool isReplaced(mlir::OpOperand &operand, mlir::Value result) const;
  /// True if `root` is not made before what a loop carries in that storage has been read for the last time, unless in place.
  bool mayFollow(mlir::Value root, const BufferPlace &at) const;
  /// Where `operand` may lie if `result` is made in its place. What a loop carries is the same bytes all the way.
  BufferPlace getInPlace(mlir::Value result, mlir::Value operand) const;
  /// True if `op` makes `root` out of `old`, which it reads once, in the same bytes.
  bool makesInPlace(mlir::Operation *op, mlir::Value root, mlir::Value old) const;
  void findRoots();
  void findWaits();
  void findUses();
  void chooseInPlace();
  void placeAll();
  void placeArguments();
  void placeReturned(mlir::Operation *op);
  void placeParts(LaunchOp op, llvm::ArrayRef<unsigned> parts);
  void placeOperands(mlir::Operation *op);
  void placeInWindow(spmd::WindowOp op);
  void findLifetimes();
  void planArena(unsigned number);

  /// True if nothing but `op` reads the root of `operand` from there on, once, and `operand` is all of it, made by a command.
  bool dies(mlir::OpOperand &operand) const;
  /// True if `root` may be made in the bytes of a state: nobody reads the old value any more, or just what makes it, in place.
  bool mayReplace(mlir::Value root, const Storage &state) const;
  /// True if nobody has found a place for `value` yet, and `op` may: it is all of its root, made by a command.
  bool mayLie(mlir::Value value, const BufferPlace &at, mlir::Operation *op) const;
  /// Lets the operand of `op` lie there, if it dies and may.
  void share(mlir::OpOperand &operand, const BufferPlace &at, int64_t end);
  bool isUpdated(mlir::OpOperand &operand, mlir::Value result) const;
  void place(mlir::Value root, const BufferPlace &at, int64_t end);
  const BufferPlace &placeAnywhere(mlir::Value root);

  mlir::Block &block;
  RankTable &table;
  codegen::KernelRules rules;
  TransferEnds ends;
  llvm::DenseMap<mlir::StringAttr, KernelOp> kernels;
  llvm::SmallVector<mlir::Operation *> steps;
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
  /// Steps of exec.enter and exec.leave of each loop, inner ones first.
  llvm::SmallVector<std::pair<int64_t, int64_t>> loops;
  llvm::SmallVector<Carried> carried;
  /// By root, and, once they have places, those in a storage.
  llvm::DenseMap<mlir::Value, unsigned> carriedAs;
  llvm::DenseMap<unsigned, llvm::SmallVector<unsigned, 1>> carriedIn;
  llvm::DenseMap<mlir::Value, Root> roots;
  /// Per collective, and per copy to or from the host's memory, the step before which somebody waits for it.
  llvm::DenseMap<mlir::Operation *, int64_t> waits;
  llvm::DenseMap<mlir::Value, Uses> uses;
  llvm::DenseMap<mlir::Value, BufferPlace> places;
  /// Per root the step from which on something else is in its bytes.
  llvm::DenseMap<mlir::Value, int64_t> until;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> inPart;
  /// Roots that a window would have in the middle of its result.
  llvm::DenseSet<mlir::Value> framed;
  llvm::SmallVector<Storage> storages;
  llvm::SmallVector<spmd::StatePlace> states;
  /// By number of what is returned, the storage that it goes to.
  llvm::SmallVector<unsigned> outputs;
  MemoryPlan arenas[2];
};

/// True if `value` is all of its root, which a command makes.
bool isAllOf(mlir::Value value, const BufferAssignment::Root &root);
/// The value whose elements, all of them and in order, `value` is.
mlir::Value lookThrough(mlir::Value value);
/// The axes along which a rank's own piece lies, where it is a range: no dim is split but the outermost of more than one
/// element. Nothing otherwise.
std::optional<llvm::SmallVector<spmd::AxisAttr>> getRowAxes(mlir::ArrayAttr dims, llvm::ArrayRef<int64_t> local);
/// True if ranks do something together with `value`, or what is seen of it, other than `except`. A body sees what it captures.
bool feedsCollective(mlir::Value value, mlir::Operation *except = nullptr);
/// Whether other ranks are needed for it.
bool communicates(mlir::Operation *op);
/// Where in a window's result, in bytes, a rank's own operand lies; nothing where that is no range, or not at one place.
std::optional<int64_t> getOwnOffset(spmd::WindowOp op);
/// Whether it is loaded, not computed: a parameter, a constant, its packed form, the rank's number, or a slice of such.
bool isLoaded(mlir::Value value);
/// If the kernel is nothing but a concat of arguments along the outermost dim of more than one element: their numbers, in
/// the order of the parts.
std::optional<llvm::SmallVector<unsigned>> getConcatenated(KernelOp kernel);

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_BUFFERASSIGNMENT_H
