//===- Weights.cpp - the files that parameters lie in ---------------------===//
//
// A program keeps of a weight where it is, how large its file was, and a digest of its bytes. A file of the same name may have
// been written anew since, or be damaged: numbers from it would be wrong, and nobody would know.
//
// A digest is that of a sample, 16 digits, behind which 16 of all bytes may stand. An importer gives the first alone, which costs
// nothing; whoever stores the module adds the second.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Weights.h"

#include "Elements.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Program/Digest.h"
#include "cleave/Support/Digest.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <filesystem>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// Whether the weight can be had from `bytes`, the file as it is now.
static LogicalResult checkRange(nn::ParamOp param, nn::WeightAttr weight, StringRef bytes) {
  RankedTensorType type = nn::getPieceType(param);
  int64_t elementBytes = getElementBytes(type.getElementType());
  double wanted = elementBytes;
  for (int64_t extent : type.getShape())
    wanted *= extent;
  if (elementBytes == 0 || double(weight.getLength()) != wanted)
    return param.emitOpError() << "of type " << type << " cannot be read from " << weight.getLength() << " bytes";
  if (weight.getFileSize() && uint64_t(weight.getFileSize()) != bytes.size())
    return param.emitOpError() << "@" << param.getSymName() << " is in another file than '" << weight.getFile()
                               << "' is now: that had " << weight.getFileSize() << " bytes, this one has "
                               << bytes.size();
  if (weight.getOffset() < 0 || uint64_t(weight.getOffset()) > bytes.size() ||
      uint64_t(weight.getLength()) > bytes.size() - uint64_t(weight.getOffset()))
    return param.emitOpError() << "is at offset " << weight.getOffset() << " with " << weight.getLength()
                               << " bytes, but '" << weight.getFile() << "' has " << bytes.size() << " bytes";
  return success();
}

static constexpr size_t kDigits = 16;

static InFlightDiagnostic emitOther(nn::ParamOp param, nn::WeightAttr weight, const Twine &had, const Twine &have) {
  return param.emitOpError() << "@" << param.getSymName() << " is in another file than '" << weight.getFile()
                             << "' is now: its bytes had the digest " << had << ", these have " << have;
}

FailureOr<WeightFiles::Range> WeightFiles::locate(nn::ParamOp param, nn::WeightAttr weight) {
  std::shared_ptr<const MappedFile> &file = files[weight.getFile()];
  if (!file) {
    llvm::Expected<std::shared_ptr<const MappedFile>> opened = MappedFile::open(weight.getFile());
    if (!opened)
      return param.emitOpError() << "cannot be read: " << llvm::toString(opened.takeError());
    file = std::move(*opened);
  }
  if (failed(checkRange(param, weight, file->getBytes())))
    return failure();
  StringRef bytes = file->getBytes().substr(weight.getOffset(), weight.getLength());
  StringRef wanted = weight.getDigest().take_front(kDigits);
  if (std::string digest = wanted.empty() ? "" : digestSample(*file, bytes); digest != wanted)
    return LogicalResult(emitOther(param, weight, wanted, digest));
  return Range{bytes, file};
}

FailureOr<std::vector<uint64_t>> WeightFiles::digest(nn::ParamOp param, nn::WeightAttr weight, const Range &range) {
  std::vector<uint64_t> blocks = digestBlocks(*range.file, {range.bytes.data(), range.bytes.size()});
  StringRef wanted = weight.getDigest().drop_front(std::min(kDigits, weight.getDigest().size()));
  if (std::string digest = wanted.empty() ? "" : program::digestBlocks(blocks); digest != wanted)
    return LogicalResult(emitOther(param, weight, weight.getDigest(), weight.getDigest().take_front(kDigits) + digest));
  return blocks;
}

FailureOr<WeightFiles::Range> WeightFiles::find(nn::ParamOp param, nn::WeightAttr weight) {
  FailureOr<Range> range = locate(param, weight);
  bool isFull = weight.getDigest().size() <= kDigits;
  if (failed(range) || (!isFull && failed(digest(param, weight, *range))))
    return failure();
  return range;
}

Tensor WeightPiece::toTensor() const {
  if (file)
    return Tensor::fromBytes(type, bytes, file);
  return isSplat ? Tensor::filled(type, bytes) : elements;
}

/// Of equal elements one is looked at, however many there are.
static FailureOr<WeightPiece> readElements(nn::ParamOp param, RankedTensorType type, ElementsAttr value) {
  auto dense = dyn_cast<DenseElementsAttr>(Attribute(value));
  bool isRepeated = dense && dense.isSplat() && dense.getNumElements() > 1;
  auto one = RankedTensorType::get({1}, type.getElementType());
  FailureOr<Tensor> elements = Tensor::fromAttr(isRepeated ? dense.resizeSplat(one) : value);
  if (failed(elements))
    return LogicalResult(param.emitOpError("has a value that is not a dense attribute of its type's size"));
  WeightPiece piece{type, elements->getBytes(), false, nullptr, *elements};
  piece.isSplat = value.isSplat() && !piece.bytes.empty();
  return piece;
}

FailureOr<WeightPiece> WeightFiles::read(nn::ParamOp param, Attribute piece, bool checksAll) {
  RankedTensorType type = nn::getPieceType(param);
  if (auto elements = dyn_cast<ElementsAttr>(piece))
    return readElements(param, type, elements);
  auto weight = dyn_cast<nn::WeightAttr>(piece);
  if (!weight)
    return param.emitOpError() << "has neither elements nor a place in a file, but " << piece;
  FailureOr<Range> range = checksAll ? find(param, weight) : locate(param, weight);
  if (failed(range))
    return failure();
  return WeightPiece{type, {range->bytes.data(), range->bytes.size()}, false, range->file, {}};
}

/// Calls `change` with each reference to a file.
static LogicalResult changeWeights(ModuleOp module, function_ref<nn::WeightAttr(nn::ParamOp, nn::WeightAttr)> change) {
  for (auto param : module.getOps<nn::ParamOp>()) {
    SmallVector<Attribute> pieces = nn::getPieces(param);
    for (Attribute &piece : pieces)
      if (auto weight = dyn_cast<nn::WeightAttr>(piece))
        if (!(piece = change(param, weight)))
          return failure();
    param.setValueAttr(nn::isStack(param) ? Attribute(ArrayAttr::get(module.getContext(), pieces)) : pieces.front());
  }
  return success();
}

static nn::WeightAttr withDigest(nn::WeightAttr weight, const Twine &digest) {
  return nn::WeightAttr::get(weight.getContext(), weight.getFile(), weight.getOffset(), weight.getLength(),
                             weight.getFileSize(), digest.str());
}

LogicalResult cleave::reference::digestWeights(ModuleOp module) {
  WeightFiles files;
  return changeWeights(module, [&](nn::ParamOp param, nn::WeightAttr weight) -> nn::WeightAttr {
    // Of few bytes the sample is all; without a digest any file will do.
    if (weight.getDigest().size() != kDigits || uint64_t(weight.getLength()) <= program::kSampledFully)
      return weight;
    FailureOr<WeightFiles::Range> range = files.locate(param, weight);
    if (failed(range))
      return {};
    FailureOr<std::vector<uint64_t>> blocks = files.digest(param, weight, *range);
    return failed(blocks) ? nn::WeightAttr() : withDigest(weight, weight.getDigest() + program::digestBlocks(*blocks));
  });
}

void cleave::reference::dropDigests(ModuleOp module) {
  (void)changeWeights(module, [](nn::ParamOp, nn::WeightAttr weight) { return withDigest(weight, ""); });
}

LogicalResult cleave::reference::checkWeights(ModuleOp module) {
  WeightFiles files;
  for (auto param : module.getOps<nn::ParamOp>())
    for (Attribute piece : nn::getPieces(param))
      if (auto weight = dyn_cast<nn::WeightAttr>(piece); weight && failed(files.find(param, weight)))
        return failure();
  return success();
}

std::vector<std::string> cleave::reference::listWeightFiles(ModuleOp module) {
  llvm::SetVector<StringRef> files;
  for (auto param : module.getOps<nn::ParamOp>())
    for (Attribute piece : nn::getPieces(param))
      if (auto weight = dyn_cast<nn::WeightAttr>(piece))
        files.insert(weight.getFile());
  return {files.begin(), files.end()};
}

/// The file in `folder` that `path` now is; empty if there is none.
static std::string findMoved(StringRef path, StringRef folder) {
  SmallVector<StringRef> components(llvm::sys::path::begin(path), llvm::sys::path::end(path));
  for (size_t dropped = 0; dropped < components.size(); ++dropped) {
    ArrayRef<StringRef> kept = ArrayRef(components).drop_front(dropped);
    if (kept.front() == "/" || llvm::is_contained(kept, ".."))
      continue;
    SmallString<128> moved(folder);
    for (StringRef component : kept)
      llvm::sys::path::append(moved, component);
    if (llvm::sys::fs::is_regular_file(moved))
      return moved.str().str();
  }
  return "";
}

/// `weight` of `param`, in the file of `folder` that its own one now is; null after an error.
static nn::WeightAttr moveWeight(nn::ParamOp param, nn::WeightAttr weight, StringRef folder,
                                 llvm::StringMap<std::string> &moved) {
  auto [entry, isNew] = moved.try_emplace(weight.getFile());
  if (isNew)
    entry->second = findMoved(weight.getFile(), folder);
  if (entry->second.empty()) {
    param.emitOpError() << "@" << param.getSymName() << " is in '" << weight.getFile()
                        << "', of which there is nothing in '" << folder << "'";
    return {};
  }
  return nn::WeightAttr::get(param.getContext(), entry->second, weight.getOffset(), weight.getLength(),
                             weight.getFileSize(), weight.getDigest());
}

LogicalResult cleave::reference::moveWeights(ModuleOp module, StringRef folder) {
  llvm::StringMap<std::string> moved;
  return changeWeights(
      module, [&](nn::ParamOp param, nn::WeightAttr weight) { return moveWeight(param, weight, folder, moved); });
}

/// Where `path` leads in the end; what is not there is taken as it is written.
static std::filesystem::path resolve(StringRef path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path.empty() ? "." : path.str(), error);
  std::filesystem::path resolved = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute : resolved;
}

static bool isBeneath(const std::filesystem::path &path, const std::filesystem::path &folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

LogicalResult cleave::reference::confineWeights(ModuleOp module, StringRef folder) {
  std::filesystem::path root = resolve(folder);
  llvm::StringSet<> known;
  for (auto param : module.getOps<nn::ParamOp>())
    for (Attribute piece : nn::getPieces(param)) {
      auto weight = dyn_cast<nn::WeightAttr>(piece);
      if (!weight || !known.insert(weight.getFile()).second || isBeneath(resolve(weight.getFile()), root))
        continue;
      return param.emitOpError() << "@" << param.getSymName() << " is in '" << weight.getFile()
                                 << "', which is not in the folder of this file, '" << root.string()
                                 << "': --weights DIR names the folder where weights may be read";
    }
  return success();
}

LogicalResult cleave::reference::placeWeights(ModuleOp module, StringRef path, StringRef folder) {
  return folder.empty() ? confineWeights(module, path == "-" ? StringRef() : llvm::sys::path::parent_path(path))
                        : moveWeights(module, folder);
}
