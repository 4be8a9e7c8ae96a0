//===- TensorData.h - the elements of a tensor in an ONNX file --*- C++ -*-===//
//
// A tensor's elements stand in raw_data, in one of five typed fields (half floats and small integers as int32), or in
// another file. Whichever it is, the result is one contiguous run of little-endian elements, row-major. Where the file
// holds just these bytes, the result refers to them and nothing is read.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_TENSORDATA_H
#define CLEAVE_ONNX_TENSORDATA_H

#include "cleave/Onnx/Model.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace cleave::onnx {

/// The name of an element type as in onnx.proto, lower case ("float16"); "element type 99" for an unknown number.
std::string getDataTypeName(int32_t dataType);

/// Bits of one element of a supported type (floats and integers of any width that ONNX has, bool as a byte); nothing for strings and
/// complex numbers.
std::optional<int64_t> getElementBits(int32_t dataType);

/// Elements of one tensor.
struct TensorData {
  int32_t dataType = UNDEFINED;
  std::vector<int64_t> shape;
  /// Little-endian, row-major; bool as one byte of 0 or 1; elements of 4 and 2 bits two and four to a byte, low bits first, over the ends
  /// of rows. Not aligned where they are a part of a file: read elements
  /// with memcpy or llvm::support::endian.
  llvm::ArrayRef<char> bytes;
  /// Keeps `bytes` alive: the file that they are a part of (its path is relative to the same folder as the model's), or
  /// a buffer into which they were decoded.
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const std::vector<char>> buffer;

  /// True where `bytes` are a part of a file on disk, and can be read from there again.
  bool isReference() const { return file && file->isOnDisk(); }
};

/// Reads tensors of one model. External files are mapped once, on first use.
class TensorReader {
public:
  /// `model` must outlive the reader, but not the data that it returns.
  explicit TensorReader(ModelFile &model) : model(model) {}

  /// The elements of `tensor`. Errors name the tensor and say which of these holds: element type not supported,
  /// negative dim, size overflow, segmented, no elements or elements in two places, more or fewer elements than the
  /// shape asks for, an element out of its type's range, and for external data: unknown or malformed keys, a location
  /// that leaves the folder or cannot be opened, a range that leaves the file or does not have the shape's size.
  /// A zero-element tensor may have no elements anywhere. Notes (a checksum that was ignored) go to the model's.
  llvm::Expected<TensorData> read(const TensorProto &tensor);
  /// All elements of a sparse tensor. Errors, beside those of its two parts: indices that are not int64, of another shape, outside, or
  /// not ascending; elements that share bytes; more than kMostSparseBytes for all sparse tensors of a model.
  llvm::Expected<TensorData> read(const SparseTensorProto &tensor);
  /// A small file may ask for any number of zeros.
  static constexpr uint64_t kMostSparseBytes = uint64_t(4) << 30;

private:
  llvm::Error readElements(const TensorProto &tensor, TensorData &data);
  llvm::Error fillSparse(const SparseTensorProto &tensor, TensorData &data);
  llvm::Error readExternal(const TensorProto &tensor, TensorData &data, uint64_t wantBytes);
  llvm::Expected<std::shared_ptr<const MappedFile>> openExternal(llvm::StringRef location);

  ModelFile &model;
  llvm::StringMap<std::shared_ptr<const MappedFile>> files;
  bool notedChecksum = false;
  uint64_t sparseBytes = 0;
};

/// The strings of a STRING tensor. Errors as above.
llvm::Expected<std::vector<llvm::StringRef>> readStrings(const TensorProto &tensor);

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_TENSORDATA_H
