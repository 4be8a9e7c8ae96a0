//===- Costs.cpp - the cost model that a module was decided by ------------===//
//
// One function names the fields of a cost model; writing and reading are two visitors of it, so neither can miss one.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Spmd/IR/Costs.h"

#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace cleave::spmd;

/// Calls `visit` with the name of each field, the field, and what it is by default.
template <typename Model, typename Visitor> static void visitFields(Model &costs, Visitor visit) {
  const CostModel usual;
  visit("links", costs.links, usual.links);
  visit("any_link", costs.anyLink, usual.anyLink);
  visit("near_links", costs.nearLinks, usual.nearLinks);
  visit("per_collective", costs.perCollective, usual.perCollective);
  visit("per_ns", costs.perNs, usual.perNs);
  visit("per_memory_byte", costs.perMemoryByte, usual.perMemoryByte);
  visit("per_cache_byte", costs.perCacheByte, usual.perCacheByte);
  visit("cache_bytes", costs.cacheBytes, usual.cacheBytes);
  visit("per_launch", costs.perLaunch, usual.perLaunch);
  visit("flop_shares", costs.flopShares, usual.flopShares);
  visit("per_flop", costs.perFlop, usual.perFlop);
  visit("per_repeated_flop", costs.perRepeatedFlop, usual.perRepeatedFlop);
  visit("repetition_slack", costs.repetitionSlack, usual.repetitionSlack);
  visit("per_extra_write", costs.perExtraWrite, usual.perExtraWrite);
  visit("per_moved_byte", costs.perMovedByte, usual.perMovedByte);
  visit("per_reshard", costs.perReshard, usual.perReshard);
  visit("per_made_partial", costs.perMadePartial, usual.perMadePartial);
  visit("per_kept_partial", costs.perKeptPartial, usual.perKeptPartial);
  visit("fallback_surcharge", costs.fallbackSurcharge, usual.fallbackSurcharge);
  visit("torn_surcharge", costs.tornSurcharge, usual.tornSurcharge);
  visit("parameter_surcharge", costs.parameterSurcharge, usual.parameterSurcharge);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Costs are units, so most are integers; doubles keep all of their digits in text.
static Attribute encodeField(Builder &b, int64_t number) { return b.getI64IntegerAttr(number); }
static Attribute encodeField(Builder &b, Surcharge number) { return b.getI64IntegerAttr(number); }
static Attribute encodeField(Builder &b, double number) { return b.getF64FloatAttr(number); }
static Attribute encodeField(Builder &b, const std::array<double, 4> &numbers) {
  return b.getDenseF64ArrayAttr(numbers);
}
/// Per byte, then per message.
static Attribute encodeField(Builder &b, const LinkCost &link) {
  return b.getDenseI64ArrayAttr({link.perByte, link.latency});
}
/// The block that it connects, then as a link.
static Attribute encodeField(Builder &b, const NearLink &near) {
  return b.getDenseI64ArrayAttr({near.block, near.link.perByte, near.link.latency});
}
template <typename T> static Attribute encodeField(Builder &b, const SmallVectorImpl<T> &list) {
  return b.getArrayAttr(llvm::map_to_vector(list, [&](const T &one) { return encodeField(b, one); }));
}

/// The old attribute goes first, so that a module that is decided again by the default costs has none.
void cleave::spmd::writeCosts(ModuleOp module, const CostModel &costs) {
  Builder b(module.getContext());
  NamedAttrList fields;
  visitFields(costs, [&](StringRef name, const auto &field, const auto &usual) {
    if (Attribute value = encodeField(b, field); value != encodeField(b, usual))
      fields.append(name, value);
  });
  module->removeAttr(SpmdDialect::kCostsAttr);
  if (!fields.empty())
    module->setAttr(SpmdDialect::kCostsAttr, fields.getDictionary(module.getContext()));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Files are written by strangers, too: what is beyond the largest cost would overflow sums of costs.
static bool decodeField(Attribute value, int64_t &number) {
  auto attribute = dyn_cast<IntegerAttr>(value);
  if (!attribute || !attribute.getType().isInteger(64))
    return false;
  number = attribute.getInt();
  return std::abs(static_cast<double>(number)) < static_cast<double>(kImpossibleCost);
}
/// A surcharge never makes anything cheaper.
static bool decodeField(Attribute value, Surcharge &number) {
  int64_t wide = 0;
  if (!decodeField(value, wide) || wide < 0 || wide > std::numeric_limits<Surcharge>::max())
    return false;
  number = static_cast<Surcharge>(wide);
  return true;
}
/// Rates are finite, and none is negative.
static bool decodeField(Attribute value, double &number) {
  auto attribute = dyn_cast<FloatAttr>(value);
  if (!attribute || !attribute.getType().isF64())
    return false;
  number = attribute.getValueAsDouble();
  return std::isfinite(number) && number >= 0;
}
static bool decodeField(Attribute value, std::array<double, 4> &numbers) {
  auto attribute = dyn_cast<DenseF64ArrayAttr>(value);
  if (!attribute || attribute.size() != 4 ||
      !llvm::all_of(attribute.asArrayRef(), [](double number) { return std::isfinite(number) && number >= 0; }))
    return false;
  llvm::copy(attribute.asArrayRef(), numbers.begin());
  return true;
}
/// So many numbers, each at least 0 and below what is impossible.
static bool decodeField(Attribute value, MutableArrayRef<int64_t> numbers) {
  auto attribute = dyn_cast<DenseI64ArrayAttr>(value);
  if (!attribute || attribute.size() != static_cast<int64_t>(numbers.size()) ||
      !llvm::all_of(attribute.asArrayRef(), [](int64_t number) { return number >= 0 && number < kImpossibleCost; }))
    return false;
  llvm::copy(attribute.asArrayRef(), numbers.begin());
  return true;
}
static bool decodeField(Attribute value, LinkCost &link) {
  std::array<int64_t, 2> numbers;
  if (!decodeField(value, MutableArrayRef<int64_t>(numbers)))
    return false;
  link = {numbers[0], numbers[1]};
  return true;
}
/// A block of no ranks would divide by zero.
static bool decodeField(Attribute value, NearLink &near) {
  std::array<int64_t, 3> numbers;
  if (!decodeField(value, MutableArrayRef<int64_t>(numbers)) || numbers[0] == 0)
    return false;
  near = {numbers[0], {numbers[1], numbers[2]}};
  return true;
}
template <typename T> static bool decodeField(Attribute value, SmallVectorImpl<T> &list) {
  auto attributes = dyn_cast<ArrayAttr>(value);
  if (!attributes)
    return false;
  list.resize(attributes.size());
  return llvm::all_of(llvm::zip_equal(attributes, list),
                      [](auto pair) { return decodeField(std::get<0>(pair), std::get<1>(pair)); });
}

FailureOr<CostModel> cleave::spmd::readCosts(ModuleOp module) {
  CostModel costs;
  Attribute attribute = module->getAttr(SpmdDialect::kCostsAttr);
  if (!attribute)
    return costs;
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  if (!fields)
    return module.emitError() << "'" << SpmdDialect::kCostsAttr << "' is not a dictionary";
  size_t known = 0;
  StringRef wrong;
  visitFields(costs, [&](StringRef name, auto &field, const auto &) {
    Attribute value = fields.get(name);
    known += value != nullptr;
    if (value && !decodeField(value, field) && wrong.empty())
      wrong = name;
  });
  if (!wrong.empty())
    return module.emitError() << "'" << SpmdDialect::kCostsAttr << "' has an entry '" << wrong
                              << "' of the wrong type, or out of range: " << fields.get(wrong);
  if (known == fields.size())
    return costs;
  return module.emitError() << "'" << SpmdDialect::kCostsAttr << "' has an entry that is not a field of the cost model";
}
