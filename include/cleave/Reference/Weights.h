//===- Weights.h - the files that parameters lie in -------------*- C++ -*-===//
#ifndef CLEAVE_REFERENCE_WEIGHTS_H
#define CLEAVE_REFERENCE_WEIGHTS_H

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Support/File.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::reference {

/// A piece of a parameter (cleave/Dialect/Nn/IR/Pieces.h), whether it stands in the module or in a file.
struct WeightPiece {
  mlir::RankedTensorType type;
  /// All bytes, or those of one element where the module says that all are equal.
  llvm::ArrayRef<char> bytes;
  bool isSplat = false;
  /// The file that keeps the bytes; null where the module has them, of which `elements` is then a copy.
  std::shared_ptr<const MappedFile> file;
  Tensor elements;

  /// All elements; those of a file where they lie. Precondition: they fit into memory.
  Tensor toTensor() const;
};

/// Files of weights, each mapped once, however many parameters it holds.
class WeightFiles {
public:
  /// Bytes, and the file that keeps them.
  struct Range {
    llvm::StringRef bytes;
    std::shared_ptr<const MappedFile> file;
  };

  /// One of `nn::getPieces(param)`. Errors are emitted at the parameter: it is no dense attribute and no place in a file, or what
  /// `locate` says, and with `checksAll` `find`.
  mlir::FailureOr<WeightPiece> read(nn::ParamOp param, mlir::Attribute piece, bool checksAll = false);

  /// What `weight` of `param` refers to. Errors are emitted at the parameter: the file cannot be opened, is too short,
  /// or is not the one that the weight was taken from (its size, or the digest of these bytes, is another). All bytes are read
  /// where the digest is one of all.
  mlir::FailureOr<Range> find(nn::ParamOp param, nn::WeightAttr weight);

  /// `find` in its two halves. The first reads a sample at the most; the second all bytes, and gives the digests of their blocks.
  mlir::FailureOr<Range> locate(nn::ParamOp param, nn::WeightAttr weight);
  mlir::FailureOr<std::vector<uint64_t>> digest(nn::ParamOp param, nn::WeightAttr weight, const Range &range);

private:
  llvm::StringMap<std::shared_ptr<const MappedFile>> files;
};

/// Looks all weights of `module` up, so that a wrong file is told before anything runs. Of weights that have a digest of
/// all their bytes all are read.
llvm::LogicalResult checkWeights(mlir::ModuleOp module);

/// Gives the weights of `module` that have the digest of a sample that of all bytes, too, which are read.
llvm::LogicalResult digestWeights(mlir::ModuleOp module);
/// Any bytes will do from now on.
void dropDigests(mlir::ModuleOp module);
/// The files that weights of `module` lie in, each once.
std::vector<std::string> listWeightFiles(mlir::ModuleOp module);

/// Lets all weights of `module` refer to files in `folder`. Of a path `a/b/w.bin` as much of the end is kept as is
/// there: `folder/a/b/w.bin`, `folder/b/w.bin` or `folder/w.bin`. An error, where there is none, at the parameter.
llvm::LogicalResult moveWeights(mlir::ModuleOp module, llvm::StringRef folder);

/// Sees that all weights of `module`, which comes from a file in `folder` (empty: the working directory), lie in that folder or below,
/// wherever links lead: else a file from a stranger could read any. An error, where one does not, at the parameter.
llvm::LogicalResult confineWeights(mlir::ModuleOp module, llvm::StringRef folder);

/// The one or the other of a module that comes from the file at `path` (`-`: of standard input): weights lie in `folder`, if the user
/// named one, else where that file is.
llvm::LogicalResult placeWeights(mlir::ModuleOp module, llvm::StringRef path, llvm::StringRef folder);

} // namespace cleave::reference

#endif // CLEAVE_REFERENCE_WEIGHTS_H
