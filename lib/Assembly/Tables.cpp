//===- Tables.cpp - what tables of a program hold, each once --------------===//
//
// Element types and layouts as the program file has them: no strides where a tensor is row-major, so that equal layouts
// are equal types.
//
//===----------------------------------------------------------------------===//
#include "Assembler.h"

#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"

using namespace mlir;
using namespace cleave;
using program::Element;

/// Precondition: one that Cleave has.
static Element getElement(Type type) {
  if (isa<FloatType>(type))
    return type.isF16() ? Element::F16 : type.isBF16() ? Element::BF16 : type.isF32() ? Element::F32 : Element::F64;
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return Element::I1;
  case 8:
    return isUnsigned ? Element::UI8 : Element::I8;
  case 16:
    return isUnsigned ? Element::UI16 : Element::I16;
  case 32:
    return isUnsigned ? Element::UI32 : Element::I32;
  default:
    return isUnsigned ? Element::UI64 : Element::I64;
  }
}

uint32_t Assembler::addType(Element element, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  program::Type type{element, shape.vec(), strides.vec()};
  auto [it, isNew] = types.try_emplace({element, type.shape, type.strides}, program.types.size());
  if (isNew)
    program.types.push_back(std::move(type));
  return it->second;
}

uint32_t Assembler::addType(ShapedType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto memref = dyn_cast<MemRefType>(type);
  bool isStrided = memref && !memref.getLayout().isIdentity() && succeeded(memref.getStridesAndOffset(strides, offset));
  return addType(getElement(type.getElementType()), type.getShape(), isStrided ? strides : SmallVector<int64_t>());
}

int32_t Assembler::addNode(Operation *op) {
  for (const spmd::NodeInfo &info : spmd::getNodeInfos(op)) {
    if (info.node.empty())
      continue;
    auto [it, isNew] = nodes.try_emplace(info.node, program.nodes.size());
    if (isNew)
      program.nodes.push_back(info.node.str());
    return it->second;
  }
  return -1;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

void Assembler::addMesh() {
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    program.axes.push_back({name.str(), uint32_t(size)});
  program.devices.assign(mesh.getDevices().begin(), mesh.getDevices().end());
  program.ranks = mesh.getNumRanks();
  role.name = "all";
  for (uint32_t rank = 0; rank < program.ranks; ++rank)
    role.ranks.push_back(rank);
}

/// A dictionary is sorted by name, so columns are in one order.
void Assembler::addRankTable() {
  auto table = module->getAttrOfType<DictionaryAttr>(exec::ExecDialect::kRankTableAttr);
  if (!table)
    return;
  for (NamedAttribute column : table) {
    columns[column.getName()] = program.columns.size();
    program.columns.push_back(column.getName().str());
  }
  for (uint32_t rank = 0; rank < program.ranks; ++rank)
    for (NamedAttribute column : table)
      program.rankTable.push_back(cast<DenseI64ArrayAttr>(column.getValue())[rank]);
}

program::Number Assembler::getNumber(exec::NumberAttr number) const {
  return {number.getBase(), number.hasColumn() ? int32_t(columns.lookup(number.getColumn())) : -1};
}

std::vector<program::Number> Assembler::getNumbers(ArrayAttr numbers) const {
  std::vector<program::Number> result;
  for (auto number : numbers.getAsRange<exec::NumberAttr>())
    result.push_back(getNumber(number));
  return result;
}

uint32_t Assembler::addGroups(ArrayAttr axes) {
  auto [it, isNew] = groups.try_emplace(axes, program.groups.size());
  if (!isNew)
    return it->second;
  SmallVector<spmd::AxisAttr> list(axes.getAsRange<spmd::AxisAttr>());
  program::Groups &made = program.groups.emplace_back();
  made.axes = spmd::formatAxes(list);
  spmd::RankGroups ranks = mesh.getRankGroups(list);
  made.size = ranks.size();
  ranks.forEachGroup([&](ArrayRef<int64_t> members) { llvm::append_range(made.ranks, members); });
  return it->second;
}

uint32_t Assembler::addPieces(exec::PiecesOp op) {
  auto [it, isNew] = pieces.try_emplace(op.getSymName(), program.pieces.size());
  if (!isNew)
    return it->second;
  program::Pieces &made = program.pieces.emplace_back();
  made.dims = op.getDims();
  for (int64_t index = 0; index < op.size(); ++index) {
    exec::PiecesOp::Piece piece = op.getPiece(index);
    made.ends.push_back({uint32_t(piece.source), uint32_t(piece.target)});
    for (ArrayRef<int64_t> numbers : {piece.extents, piece.from, piece.to})
      llvm::append_range(made.boxes, numbers);
  }
  return it->second;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Assembler::addBuffers() {
  for (auto buffer : module.getOps<exec::BufferOp>()) {
    buffers[buffer.getSymName()] = role.buffers.size();
    role.buffers.push_back({static_cast<program::BufferKind>(buffer.getKind()), program::Memory::Device,
                            uint64_t(buffer.getBytes()), uint32_t(buffer.getAlign())});
  }
}

program::View Assembler::getView(Value value) {
  auto view = value.getDefiningOp<exec::ViewOp>();
  return {buffers.lookup(view.getBuffer()), addType(cast<ShapedType>(value.getType())), getNumber(view.getOffset())};
}
