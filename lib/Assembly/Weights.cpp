//===- Weights.cpp - parameters by reference ------------------------------===//
//
// A program says which bytes of which file a weight is, with their digest; only what stands in the module itself, and
// what is asked for, is copied into it. Paths are those from the program's folder, so that a program and its model can be
// moved together.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Pieces.h"
#include "cleave/Program/Operands.h"
#include "cleave/Reference/Tensor.h"
#include "cleave/Support/Digest.h"

#include <filesystem>

using namespace mlir;
using namespace cleave;

/// `path` as seen from `folder`; as it is where there is no way from one to the other.
static std::string makeRelative(StringRef path, StringRef folder) {
  std::error_code error;
  auto resolve = [&](StringRef name) { return std::filesystem::weakly_canonical(name.str(), error); };
  std::filesystem::path target = resolve(path), relative = target.lexically_relative(resolve(folder));
  return error || relative.empty() ? path.str() : relative.string();
}

int32_t ProgramTables::addFile(const MappedFile &file) {
  auto [it, isNew] = files.try_emplace(file.getPath(), program.files.size());
  if (isNew)
    program.files.push_back({makeRelative(file.getPath(), options.folder), file.getBytes().size()});
  return it->second;
}

/// Says where the bytes are.
LogicalResult ProgramTables::fill(program::Weight &weight, nn::ParamOp param, Attribute value) {
  FailureOr<reference::WeightPiece> piece = weightFiles.read(param, value);
  if (failed(piece))
    return failure();
  weight.length = piece->bytes.size();
  if (!piece->file) {
    weight.splat = piece->isSplat;
    weight.embedded = made->bytes.emplace_back(piece->bytes.data(), piece->bytes.size());
    return success();
  }
  reference::WeightFiles::Range range{{piece->bytes.data(), piece->bytes.size()}, piece->file};
  if (options.embedsWeights || !range.file->isOnDisk()) {
    weight.embedded = range.bytes;
    made->files.push_back(range.file);
    return success();
  }
  auto attr = cast<nn::WeightAttr>(value);
  weight.file = addFile(*range.file);
  weight.offset = attr.getOffset();
  weight.digest =
      attr.getDigest().empty() ? digestSample(*range.file, piece->bytes) : attr.getDigest().take_front(16).str();
  if (!options.digestsWeights)
    return success();
  // Variants share weights.
  auto [known, isNew] = blocks.try_emplace({range.file.get(), weight.offset, weight.length});
  if (isNew) {
    FailureOr<std::vector<uint64_t>> digests = weightFiles.digest(param, attr, range);
    if (failed(digests))
      return failure();
    known->second = std::move(*digests);
  }
  weight.blocks = known->second;
  return success();
}

static bool isSame(const program::Weight &a, const program::Weight &b) {
  auto key = [](const program::Weight &weight) {
    return std::tie(weight.type, weight.file, weight.offset, weight.length, weight.digest, weight.splat, weight.parts);
  };
  // Bytes of one mapped file need no look.
  return key(a) == key(b) && (a.embedded.data() == b.embedded.data() || a.embedded == b.embedded);
}

/// One that is there already, or `weight` behind the others.
uint32_t ProgramTables::addWeight(program::Weight weight) {
  SmallVector<uint32_t, 1> &known = weights[weight.name];
  for (uint32_t index : known)
    if (isSame(program.weights[index], weight))
      return index;
  known.push_back(program.weights.size());
  program.weights.push_back(std::move(weight));
  return known.back();
}

/// Constants that variants compute from their shapes may have one name and other elements. The parts of a stack stand
/// before it, and where they were.
FailureOr<uint32_t> ProgramTables::addWeight(nn::ParamOp param) {
  if (auto known = source->weights.find(param.getSymName()); known != source->weights.end())
    return known->second;
  program::Weight whole;
  whole.name = param.getSymName().str();
  whole.type = addType(cast<ShapedType>(param.getType()));
  if (nn::isStack(param)) {
    for (auto [index, piece] : llvm::enumerate(nn::getPieces(param))) {
      program::Weight part;
      part.name = whole.name + "[" + std::to_string(index) + "]";
      part.type = addType(nn::getPieceType(param));
      if (failed(fill(part, param, piece)))
        return failure();
      whole.parts.push_back(addWeight(std::move(part)));
    }
    program.version = std::max(program.version, program::kPartsVersion);
  } else if (failed(fill(whole, param, param.getValue()))) {
    return failure();
  }
  return source->weights[param.getSymName()] = addWeight(std::move(whole));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

static bool isSame(const program::Load &a, const program::Load &b) {
  auto key = [](const program::Load &load) {
    return std::tie(load.weight, load.shape, load.layout.order, load.layout.batch, load.layout.width,
                    load.layout.interleave, load.target.buffer, load.target.type);
  };
  auto isNumber = [](program::Number a, program::Number b) { return a.base == b.base && a.column == b.column; };
  return key(a) == key(b) && llvm::equal(a.starts, b.starts, isNumber) && llvm::equal(a.present, b.present, isNumber);
}

/// By role. The first variant's loads lie where they were planned. What another one loads, too, lies where it is; the rest goes
/// behind.
LogicalResult ProgramTables::addLoad(exec::LoadOp op) {
  FailureOr<uint32_t> weight = addWeight(source->params.lookup(op.getParam()));
  if (failed(weight))
    return failure();
  program::Load load;
  load.weight = *weight;
  load.starts = getNumbers(op.getStarts());
  load.shape = op.getSizes().vec();
  if (ArrayAttr present = op.getPresentAttr())
    load.present = getNumbers(present);
  if (std::optional<ArrayRef<int64_t>> order = op.getOrder())
    load.layout.order.assign(order->begin(), order->end());
  load.layout.batch = op.getBatch();
  load.layout.width = op.getWidth();
  load.layout.interleave = op.getInterleave();
  load.target = getView(op.getTarget());
  int64_t planned = load.target.offset.base, bytes = program::getBytes(program.types[load.target.type]);
  program::Role &role = getRole();
  SmallVector<size_t, 1> &known = loads[{source->role, *weight}];
  auto same = llvm::find_if(known, [&](size_t index) { return isSame(role.loads[index], load); });
  bool isNew = same == known.end() || program.variants.empty();
  // A state's bytes are one for all variants, and so is what they begin as.
  if (role.buffers[load.target.buffer].kind == program::BufferKind::State) {
    if (isNew && !program.variants.empty())
      return op.emitOpError() << "begins a state as '" << program.weights[load.weight].name
                              << "', and another variant begins it otherwise";
    program.version = std::max(program.version, program::kBeginsVersion);
  } else if (!isNew) {
    load.target.offset.base = role.loads[*same].target.offset.base;
  } else if (!program.variants.empty()) {
    program::Buffer &buffer = role.buffers[load.target.buffer];
    load.target.offset.base = llvm::alignTo(buffer.bytes, buffer.alignment);
    buffer.bytes = load.target.offset.base + bytes;
  }
  source->loaded[{load.target.buffer, planned}] = {bytes, load.target.offset.base};
  if (isNew) {
    known.push_back(role.loads.size());
    role.loads.push_back(std::move(load));
  }
  return success();
}
