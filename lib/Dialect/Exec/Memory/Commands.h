//===- Commands.h - from ops on tensors to commands on memory ---*- C++ -*-===//
#ifndef CLEAVE_LIB_DIALECT_EXEC_MEMORY_COMMANDS_H
#define CLEAVE_LIB_DIALECT_EXEC_MEMORY_COMMANDS_H

#include "BufferAssignment.h"
#include "Weights.h"
#include "cleave/Dialect/Exec/IR/Control.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::exec {

/// Emits the commands of one function, once it is known where all values lie.
class CommandBuilder {
public:
  /// Buffers, pieces and parameters are made in front of `func`.
  CommandBuilder(mlir::func::FuncOp func, const BufferAssignment &assignment, RankTable &table);

  /// Puts commands in the place of all ops. A failure has emitted an error on an op that no command can do.
  llvm::LogicalResult run();

private:
  llvm::LogicalResult emit(mlir::Operation *op);
  llvm::LogicalResult emit(LaunchOp op);
  llvm::LogicalResult emitConcat(LaunchOp op, llvm::ArrayRef<unsigned> parts);
  llvm::LogicalResult emitAppend(AppendOp op);
  llvm::LogicalResult emitEnter(EnterOp op);
  llvm::LogicalResult emitLeave(LeaveOp op);
  llvm::LogicalResult copyAll(mlir::Operation *op, mlir::ValueRange from, mlir::ValueRange to);
  llvm::LogicalResult emitCollective(spmd::CollectiveOpInterface op);
  llvm::LogicalResult emitCollective(mlir::Operation *op, CollectiveKind kind, mlir::ArrayAttr gather,
                                     mlir::ArrayAttr slice);
  llvm::LogicalResult emitPermute(spmd::PermuteOp op);
  llvm::LogicalResult emitAllToAll(spmd::AllToAllOp op);
  llvm::LogicalResult emitSlice(spmd::LocalSliceOp op);
  llvm::LogicalResult emitWindow(spmd::WindowOp op);
  /// `forEachPiece` is that of PartMoves.h for what the op does with the parts.
  template <typename OpT, typename ForEachPiece> llvm::LogicalResult emitParts(OpT op, ForEachPiece forEachPiece);
  llvm::LogicalResult emitJoin(spmd::JoinOp op);
  llvm::LogicalResult emitSplit(spmd::SplitOp op);
  llvm::LogicalResult fillEdges(spmd::WindowOp op);
  llvm::LogicalResult fillEdge(spmd::WindowOp op, unsigned dim, int64_t start, int64_t size);
  template <typename CommandOp, typename MessageOp>
  llvm::LogicalResult emitMessages(MessageOp op, mlir::ValueRange values);
  llvm::LogicalResult emitReturn(mlir::func::ReturnOp op);
  llvm::LogicalResult emitInputs();
  llvm::LogicalResult emitBeginning(mlir::BlockArgument argument);
  template <typename OpT>
  llvm::LogicalResult emitBoundary(mlir::Value view, llvm::StringRef name, mlir::DictionaryAttr attributes,
                                   mlir::Location loc);
  void emitExchange(mlir::Operation *op, llvm::ArrayRef<int64_t> ends, llvm::ArrayRef<int64_t> boxes, int64_t dims,
                    mlir::ArrayAttr axes);

  /// The view of a value, made where it is first asked for; null after an error.
  mlir::Value getView(mlir::Value value);
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> getViews(mlir::ValueRange values);
  mlir::Value createView(mlir::FlatSymbolRefAttr buffer, NumberAttr offset, mlir::Type tensorType, mlir::Value whole,
                         llvm::ArrayRef<int64_t> strides = {});
  mlir::FlatSymbolRefAttr getBuffer(BufferKind kind, unsigned number);
  /// The command's node is the op's.
  template <typename OpT> void note(OpT command, mlir::Operation *op) {
    command->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  }
  void createBuffers();

  mlir::func::FuncOp func;
  std::string prefix; ///< of buffers: several functions have their own each
  const BufferAssignment &assignment;
  RankTable &table;
  Weights weights;
  mlir::OpBuilder builder, outside;
  mlir::SymbolTable symbols;
  mlir::Block *body;
  llvm::DenseMap<mlir::Value, mlir::Value> views;
  llvm::DenseMap<std::pair<unsigned, unsigned>, mlir::FlatSymbolRefAttr> buffers;
  llvm::DenseMap<mlir::Attribute, mlir::FlatSymbolRefAttr> pieces;
};

} // namespace cleave::exec

#endif // CLEAVE_LIB_DIALECT_EXEC_MEMORY_COMMANDS_H
