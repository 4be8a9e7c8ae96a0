//===- Tables.cpp - what tables of a program hold, each once --------------===//
//
// Element types and layouts as the program file has them: no strides where a tensor is row-major, so that equal layouts
// are equal types.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Dialect/Pipe/IR/Action.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Sharding/RankGroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace cleave;
using program::Element;

/// Precondition: one that Cleave has. Floats of 8 bits, and all of 4 and 2, are bytes in programs: nothing is computed in them.
static Element toElement(Type type) {
  assert(type.isIntOrFloat() && "no type of tensors");
  if (isa<FloatType>(type) ? type.getIntOrFloatBitWidth() <= 8 : type.isInteger(2) || type.isInteger(4))
    return Element::UI8;
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

uint32_t ProgramTables::addType(Element element, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  program::Type type{element, shape.vec(), strides.vec()};
  auto [it, isNew] = types.try_emplace({element, type.shape, type.strides}, program.types.size());
  if (isNew)
    program.types.push_back(std::move(type));
  return it->second;
}

uint32_t ProgramTables::addType(ShapedType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  auto memref = dyn_cast<MemRefType>(type);
  bool isStrided = memref && !memref.getLayout().isIdentity() && succeeded(memref.getStridesAndOffset(strides, offset));
  return addType(toElement(type.getElementType()), type.getShape(), isStrided ? strides : SmallVector<int64_t>());
}

int32_t ProgramTables::addNode(StringRef name) {
  if (name.empty())
    return -1;
  auto [it, isNew] = nodes.try_emplace(name, program.nodes.size());
  if (isNew)
    program.nodes.push_back(name.str());
  return it->second;
}

int32_t ProgramTables::addNode(Operation *op) {
  for (const spmd::NodeInfo &info : spmd::getNodeInfos(op))
    if (!info.node.empty())
      return addNode(info.node);
  return -1;
}

int32_t ProgramTables::addUnit(Operation *op) {
  StringAttr unit = pipe::findAction(op->getLoc());
  if (!unit)
    return -1;
  auto [it, isNew] = units.try_emplace(unit, program.units.size());
  if (isNew)
    program.units.push_back(unit.str());
  return it->second;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// The first variant's, which the others must have, too.
LogicalResult ProgramTables::addMesh() {
  spmd::MeshAttr mesh = source->whole;
  std::vector<program::Axis> axes;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    axes.push_back({name.str(), uint32_t(size)});
  auto isSame = [](const program::Axis &a, const program::Axis &b) { return a.name == b.name && a.size == b.size; };
  if (!program.variants.empty())
    return llvm::equal(axes, program.axes, isSame) && llvm::equal(mesh.getDevices(), program.devices)
               ? success()
               : source->module.emitError("variants of one program have one mesh");
  program.axes = std::move(axes);
  program.devices.assign(mesh.getDevices().begin(), mesh.getDevices().end());
  program.ranks = mesh.getNumRanks();
  return success();
}

/// A dictionary is sorted by name, so columns are in one order. The table is row-major: it grows by columns, and is written
/// anew. Ranks of all roles have the number of their place on the mesh of a role.
void ProgramTables::addRankTable() {
  auto table = source->module->getAttrOfType<DictionaryAttr>(exec::ExecDialect::kRankTableAttr);
  if (!table)
    return;
  for (NamedAttribute attr : table) {
    ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(attr.getValue());
    auto [it, isNew] = columns.try_emplace({attr.getName().str(), numbers.vec()}, program.columns.size());
    if (isNew)
      program.columns.push_back(attr.getName().str());
    source->columns[attr.getName()] = it->second;
  }
  program.rankTable.resize(program.ranks * program.columns.size());
  for (const auto &[column, index] : columns)
    for (const program::Role &role : program.roles)
      for (auto [place, rank] : llvm::enumerate(role.ranks))
        program.rankTable[rank * program.columns.size() + index] = column.second[place];
}

program::Number ProgramTables::getNumber(exec::NumberAttr number) const {
  return {number.getBase(), number.hasColumn() ? int32_t(source->columns.lookup(number.getColumn())) : -1};
}

std::vector<program::Number> ProgramTables::getNumbers(ArrayAttr numbers) const {
  std::vector<program::Number> result;
  for (auto number : numbers.getAsRange<exec::NumberAttr>())
    result.push_back(getNumber(number));
  return result;
}

uint32_t ProgramTables::addGroups(ArrayAttr axes) {
  SmallVector<spmd::AxisAttr> list(axes.getAsRange<spmd::AxisAttr>());
  std::string text = spmd::formatAxes(list);
  auto [it, isNew] = groups.try_emplace(text, program.groups.size());
  if (!isNew)
    return it->second;
  program::Groups &made = program.groups.emplace_back();
  made.axes = std::move(text);
  spmd::RankGroups ranks = source->whole.getRankGroups(list); // of all roles: each meets in its own ones
  made.size = ranks.size();
  ranks.forEachGroup([&](ArrayRef<int64_t> members) { llvm::append_range(made.ranks, members); });
  return it->second;
}

uint32_t ProgramTables::addPieces(exec::PiecesOp op) {
  auto [it, isNew] = source->pieces.try_emplace(op.getSymName(), program.pieces.size());
  if (!isNew)
    return it->second;
  program::Pieces &made = program.pieces.emplace_back();
  made.dims = op.getDims();
  for (int64_t index = 0; index < op.size(); ++index) {
    exec::PiecesOp::Piece piece = op.getPiece(index);
    made.ends.push_back({getRole().ranks[piece.source], getRole().ranks[piece.target]});
    for (ArrayRef<int64_t> numbers : {piece.extents, piece.from, piece.to})
      llvm::append_range(made.boxes, numbers);
  }
  return it->second;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Variants never run at the same time: a buffer is as large as the one that wants most of it. Weights are kept from call
/// to call, and get their places one by one. A buffer is of the role whose function sees it; of none, of the first.
void ProgramTables::addBuffers(ArrayRef<func::FuncOp> functions) {
  llvm::StringMap<unsigned> roles;
  for (auto [role, func] : llvm::enumerate(functions))
    for (auto view : func::FuncOp(func).getOps<exec::ViewOp>())
      roles[view.getBuffer()] = role;
  SmallVector<int64_t> bounds(functions.size(), 0);
  for (auto op : source->module.getOps<exec::BufferOp>()) {
    auto kind = static_cast<program::BufferKind>(op.getKind());
    unsigned owner = roles.lookup(op.getSymName());
    program::Role &role = program.roles[owner];
    auto [it, isNew] = buffers.try_emplace(op.getSymName(), role.buffers.size());
    if (isNew)
      role.buffers.push_back({kind, op.getOnHost() ? program::Memory::Host : program::Memory::Device,
                              uint64_t(op.getBytes()), uint32_t(op.getAlign())});
    program::Buffer &buffer = role.buffers[it->second];
    if (kind != program::BufferKind::Weights)
      buffer.bytes = std::max<uint64_t>(buffer.bytes, op.getBytes());
    buffer.alignment = std::max<uint32_t>(buffer.alignment, op.getAlign());
    source->buffers[op.getSymName()] = it->second;
    bounds[owner] += op.getOnHost() ? 0 : op.getBound().value_or(0);
  }
  made->bounds.push_back(*llvm::max_element(bounds));
}

program::View ProgramTables::getView(Value value) {
  auto op = value.getDefiningOp<exec::ViewOp>();
  program::View view = {source->buffers.lookup(op.getBuffer()), addType(cast<ShapedType>(value.getType())),
                        getNumber(op.getOffset())};
  auto next = source->loaded.upper_bound({view.buffer, view.offset.base});
  if (next == source->loaded.begin())
    return view;
  const auto &[where, moved] = *std::prev(next);
  int64_t into = view.offset.base - where.second;
  if (where.first == view.buffer && into < moved.bytes)
    view.offset.base = moved.offset + into;
  return view;
}
