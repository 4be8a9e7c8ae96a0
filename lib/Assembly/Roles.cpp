//===- Roles.cpp - which ranks run which list -----------------------------===//
//
// Without a pipeline all ranks run one list. With one, the ranks at each coordinate of its axis do, which stand there in the
// order of the mesh of the other axes:
//
//   mesh data=2, stage=3, model=2      stage=1      2  3  8  9       place  0  1  2  3  on data=2, model=2
//
// A message goes from each of one role's ranks to the one at the same place of another role: pieces, of which equal ones,
// of all microbatches, are one list. Each pair of ranks meets by itself.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace cleave;

/// The ranks of `mesh` at `coordinate` of an axis.
static std::vector<uint32_t> getRanksAt(spmd::MeshAttr mesh, unsigned axis, int64_t coordinate) {
  ArrayRef<int64_t> sizes = mesh.getSizes();
  int64_t before = ShapedType::getNumElements(sizes.take_front(axis)),
          behind = ShapedType::getNumElements(sizes.drop_front(axis + 1));
  std::vector<uint32_t> ranks;
  for (int64_t major = 0; major < before; ++major)
    for (int64_t minor = 0; minor < behind; ++minor)
      ranks.push_back((major * sizes[axis] + coordinate) * behind + minor);
  return ranks;
}

/// The first variant's; others have the same, as they have the same mesh.
LogicalResult ProgramTables::addRoles(ArrayRef<func::FuncOp> functions) {
  auto name = source->module->getAttrOfType<StringAttr>(pipe::PipeDialect::kAxisAttr);
  std::optional<unsigned> axis = name ? source->whole.findAxis(name) : std::nullopt;
  int64_t count = axis ? source->whole.getSizes()[*axis] : 1;
  if (count != int64_t(functions.size()) || (!program.variants.empty() && count != int64_t(program.roles.size())))
    return source->module.emitError() << "has functions for " << functions.size() << " ranks of a pipeline of "
                                      << count;
  if (!program.variants.empty())
    return success();
  for (int64_t rank = 0; rank < count; ++rank) {
    program::Role &role = program.roles.emplace_back();
    role.name = axis ? (name.getValue() + "=" + Twine(rank)).str() : "all";
    if (axis)
      role.ranks = getRanksAt(source->whole, *axis, rank);
    else
      for (uint32_t all = 0; all < program.ranks; ++all)
        role.ranks.push_back(all);
  }
  return success();
}

uint32_t ProgramTables::addMessagePieces(int64_t from, int64_t to, ArrayRef<int64_t> shape) {
  auto [it, isNew] = messages.try_emplace({from, to, shape.vec()}, program.pieces.size());
  if (!isNew)
    return it->second;
  program::Pieces &made = program.pieces.emplace_back();
  made.dims = shape.size();
  for (auto [source, target] : llvm::zip_equal(program.roles[from].ranks, program.roles[to].ranks)) {
    made.ends.push_back({source, target});
    llvm::append_range(made.boxes, shape);
    made.boxes.insert(made.boxes.end(), 2 * shape.size(), 0);
  }
  return it->second;
}
