//===- Attributes.cpp - mesh, axis and sharding attributes ----------------===//
//
// Text form, constraints (M1-M3, S1-S6 of dialects/Spmd/SpmdAttrs.td) and the questions that a sharding answers. S7 is
// a property of a phase, checked by the verifier gate after propagation.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/AxisLists.h"

#include "cleave/Sharding/MeshLimits.h"
#include "cleave/Sharding/RankGroups.h"
#include "llvm/ADT/SmallSet.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave::spmd;

#define GET_ATTRDEF_CLASSES
#include "cleave/Dialect/Spmd/IR/SpmdAttrs.cpp.inc"

void SpmdDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "cleave/Dialect/Spmd/IR/SpmdAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

int64_t MeshAttr::getNumRanks() const {
  int64_t product = 1;
  for (int64_t size : getSizes())
    product *= size;
  return product;
}

std::optional<unsigned> MeshAttr::findAxis(StringRef name) const {
  auto names = getNames();
  auto it = llvm::find(names, name);
  if (it == names.end())
    return std::nullopt;
  return static_cast<unsigned>(it - names.begin());
}

RankGroups MeshAttr::getRankGroups(ArrayRef<AxisAttr> axes) const {
  return RankGroups(getSizes(), llvm::map_to_vector(axes, [&](AxisAttr axis) { return axis.toSubAxis(*this); }));
}

/// `<["data"=2, "model"=4], devices=[..]>`: checked as a whole once read, at the place where it begins.
Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<std::string> storage;
  SmallVector<int64_t> sizes, devices;
  auto parseAxisSize = [&]() -> ParseResult {
    return failure(parser.parseString(&storage.emplace_back()) || parser.parseEqual() ||
                   parser.parseInteger(sizes.emplace_back()));
  };
  auto parseDevice = [&]() { return parser.parseInteger(devices.emplace_back()); };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxisSize))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("devices") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDevice)))
    return {};
  if (parser.parseGreater())
    return {};
  SmallVector<StringRef> names(storage.begin(), storage.end());
  return MeshAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), names, sizes, devices);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip(getNames(), getSizes()), printer, [&](auto axis) {
    printer.printString(std::get<0>(axis));
    printer << '=' << std::get<1>(axis);
  });
  printer << ']';
  if (!getDevices().empty()) {
    printer << ", devices=[";
    llvm::interleaveComma(getDevices(), printer);
    printer << ']';
  }
  printer << '>';
}

/// M1 names, M2 sizes, M3 devices, in this order: later ones rely on earlier ones.
LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringRef> names,
                               ArrayRef<int64_t> sizes, ArrayRef<int64_t> devices) {
  llvm::SmallSet<StringRef, 4> seen;
  int64_t product = 1;
  for (auto [name, size] : llvm::zip_equal(names, sizes)) {
    if (name.empty())
      return emitError() << "mesh axis has an empty name (M1)";
    if (!seen.insert(name).second)
      return emitError() << "mesh axis \"" << name << "\" is named twice (M1)";
    if (size < 1)
      return emitError() << "mesh axis \"" << name << "\" has size " << size << ", expected at least 1 (M2)";
    // Divided instead of multiplied, so that nothing overflows on the way.
    if (size > kMostRanks / product)
      return emitError() << kTooManyRanks << " (M2)";
    product *= size;
  }
  if (devices.empty())
    return success();
  if (static_cast<int64_t>(devices.size()) != product)
    return emitError() << "mesh has " << product << " ranks but " << devices.size() << " devices (M3)";
  SmallVector<int64_t> sorted(devices);
  llvm::sort(sorted);
  for (auto [rank, device] : llvm::enumerate(sorted))
    if (device != static_cast<int64_t>(rank))
      return emitError() << "mesh devices are not a permutation of 0 to " << product - 1 << " (M3)";
  return success();
}

//===----------------------------------------------------------------------===//
// AxisAttr, DimShardingAttr
//===----------------------------------------------------------------------===//

// Of an axis that the mesh lacks, 1: attributes are printed and asked before they are verified.
int64_t AxisAttr::getExtent(MeshAttr mesh) const {
  if (isSubAxis())
    return getSize();
  std::optional<unsigned> position = mesh.findAxis(getName());
  return position ? mesh.getSizes()[*position] : 1;
}

SubAxis AxisAttr::toSubAxis(MeshAttr mesh) const {
  assert(mesh.findAxis(getName()) && "an axis of another mesh");
  return {*mesh.findAxis(getName()), getPreSize(), getExtent(mesh)};
}

Attribute AxisAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisAttr> axis = parseAxis(parser);
  if (failed(axis) || parser.parseGreater())
    return {};
  return *axis;
}

void AxisAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxis(printer, *this);
  printer << '>';
}

/// `{"a", "b", ?}p1`: the inside of the braces, a question mark last.
static FailureOr<DimShardingAttr> parseDim(AsmParser &parser) {
  SmallVector<AxisAttr> axes;
  bool isOpen = false;
  auto parseEntry = [&]() -> ParseResult {
    if (isOpen)
      return parser.emitError(parser.getCurrentLocation(), "expected '}' after '?'");
    if (succeeded(parser.parseOptionalQuestion())) {
      isOpen = true;
      return success();
    }
    FailureOr<AxisAttr> axis = parseAxis(parser);
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseEntry))
    return failure();
  int64_t priority = 0;
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword(&keyword)) &&
      (!keyword.consume_front("p") || keyword.getAsInteger(10, priority)))
    return parser.emitError(loc, "expected a priority such as p1");
  return DimShardingAttr::get(parser.getContext(), axes, isOpen, priority);
}

static void printDim(AsmPrinter &printer, DimShardingAttr dim) {
  printer << '{';
  llvm::interleaveComma(dim.getAxes(), printer, [&](AxisAttr axis) { printAxis(printer, axis); });
  if (dim.getIsOpen())
    printer << (dim.getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (dim.getPriority())
    printer << 'p' << dim.getPriority();
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimShardingAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

/// Alone in brackets of its own; within a sharding without (printDim).
void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// ShardingAttr: text form
//===----------------------------------------------------------------------===//

namespace {
/// What stands between the angle brackets after the dims.
struct ShardingTail {
  SmallVector<AxisAttr> partial, replicated;
  std::optional<ReductionKind> kind;
  bool uneven = false;
};
} // namespace

/// `{"a": sum, "b": sum}`: the kind stands with each axis, and is the same for all.
static ParseResult parsePartial(AsmParser &parser, ShardingTail &tail) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&]() -> ParseResult {
    FailureOr<AxisAttr> axis = parseAxisAndColon(parser);
    StringRef word;
    if (failed(axis))
      return failure();
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<ReductionKind> kind = symbolizeReductionKind(word);
    if (!kind)
      return parser.emitError(loc, "expected sum, prod, max or min");
    if (tail.kind && *tail.kind != *kind)
      return parser.emitError(loc, "partial axes have different reduction kinds (S6)");
    tail.kind = kind;
    tail.partial.push_back(*axis);
    return success();
  });
}

/// `, partial = {..}, replicated = {..}, uneven`, in any order.
static ParseResult parseTail(AsmParser &parser, ShardingTail &tail) {
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    if (word == "uneven") {
      tail.uneven = true;
    } else if (word == "partial") {
      if (parser.parseEqual() || parsePartial(parser, tail))
        return failure();
    } else if (word == "replicated") {
      if (parser.parseEqual() || parseAxisSet(parser, tail.replicated))
        return failure();
    } else {
      return parser.emitError(loc, "expected partial, replicated or uneven");
    }
  }
  return success();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  MeshAttr mesh;
  SmallVector<DimShardingAttr> dims;
  ShardingTail tail;
  SMLoc loc = parser.getCurrentLocation();
  auto parseEntry = [&]() -> ParseResult {
    FailureOr<DimShardingAttr> dim = parseDim(parser);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry) || parseTail(parser, tail) ||
      parser.parseGreater())
    return {};
  return ShardingAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh, dims, tail.partial,
                                  tail.kind.value_or(ReductionKind::Sum), tail.replicated, tail.uneven);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printAttribute(getMesh());
  printer << ", [";
  llvm::interleaveComma(getDims(), printer, [&](DimShardingAttr dim) { printDim(printer, dim); });
  printer << ']';
  if (isPartial()) {
    printer << ", partial = {";
    llvm::interleaveComma(getPartial(), printer, [&](AxisAttr axis) {
      printAxis(printer, axis);
      printer << ": " << stringifyReductionKind(getPartialKind());
    });
    printer << '}';
  }
  if (!getReplicated().empty()) {
    printer << ", replicated = ";
    printAxisSet(printer, getReplicated());
  }
  if (getUneven())
    printer << ", uneven";
  printer << '>';
}

//===----------------------------------------------------------------------===//
// ShardingAttr: constraints
//===----------------------------------------------------------------------===//

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh,
                                   ArrayRef<DimShardingAttr> dims, ArrayRef<AxisAttr> partial, ReductionKind,
                                   ArrayRef<AxisAttr> replicated, bool) {
  SmallVector<AxisAttr> axes;
  for (DimShardingAttr dim : dims)
    llvm::append_range(axes, dim.getAxes());
  llvm::append_range(axes, partial);
  llvm::append_range(axes, replicated);
  return verifyAxes(emitError, mesh, axes); // S2, S3, S4
}

LogicalResult ShardingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getDims().size())
    return emitError() << "sharding has " << getDims().size() << " dims but the tensor has " << shape.size() << " (S1)";
  for (auto [index, extent] : llvm::enumerate(shape)) {
    int64_t shards = getNumShards(index);
    if (ShapedType::isDynamic(extent))
      return emitError() << "dim " << index << " has no static size to shard (S5)";
    if (!getUneven() && extent % shards != 0)
      return emitError() << "dim " << index << " of size " << extent << " does not divide into " << shards
                         << " shards (S5)";
  }
  if (isPartial() && !isLegalReduction(getPartialKind(), elementType))
    return emitError() << "element type " << elementType << " cannot be partial with kind "
                       << stringifyReductionKind(getPartialKind()) << " (S6)";
  if (!isElementType(elementType))
    return emitError() << "element type " << elementType << " cannot be sharded (S8)";
  return success();
}

//===----------------------------------------------------------------------===//
// ShardingAttr: questions
//===----------------------------------------------------------------------===//

ShardingAttr ShardingAttr::getReplicated(MeshAttr mesh, int64_t rank) {
  auto whole = DimShardingAttr::get(mesh.getContext(), ArrayRef<AxisAttr>(), false, 0);
  SmallVector<DimShardingAttr> dims(rank, whole);
  return get(mesh.getContext(), mesh, dims, ArrayRef<AxisAttr>(), ReductionKind::Sum, ArrayRef<AxisAttr>(), false);
}

int64_t ShardingAttr::getNumShards(unsigned dim) const {
  int64_t shards = 1;
  for (AxisAttr axis : getDims()[dim].getAxes())
    shards *= axis.getExtent(getMesh());
  return shards;
}

SmallVector<int64_t> ShardingAttr::getLocalShape(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> local;
  for (auto [dim, extent] : llvm::enumerate(shape))
    local.push_back(llvm::divideCeil(extent, getNumShards(dim)));
  return local;
}

/// Where the shard of a rank begins: its number among the shards of each dim, times their extent.
SmallVector<int64_t> ShardingAttr::getOffset(ArrayRef<int64_t> shape, int64_t rank) const {
  SmallVector<int64_t> offset, local = getLocalShape(shape);
  for (auto [dim, extent] : llvm::zip_equal(getDims(), local))
    offset.push_back(getMesh().getRankGroups(dim.getAxes()).indexOf(rank) * extent);
  return offset;
}

bool ShardingAttr::isReplicated() const {
  return !isPartial() && llvm::all_of(getDims(), [](DimShardingAttr dim) { return dim.getAxes().empty(); });
}

bool ShardingAttr::hasOpenDim() const {
  return llvm::any_of(getDims(), [](DimShardingAttr dim) { return dim.getIsOpen(); });
}
