//===- Cause.cpp - why something is in the program ---------------------------===//
#include "cleave/Dialect/Spmd/Transforms/Cause.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Location.h"

using namespace mlir;

static constexpr StringLiteral kCause = "cause";

/// The text, if `loc` is one of ours.
static StringAttr findCause(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  auto entries = fused ? dyn_cast_if_present<DictionaryAttr>(fused.getMetadata()) : DictionaryAttr();
  return entries ? entries.getAs<StringAttr>(kCause) : StringAttr();
}

Location cleave::spmd::withCause(Location loc, const Twine &cause) {
  if (findCause(loc))
    loc = cast<FusedLoc>(loc).getLocations().front();
  Builder builder(loc.getContext());
  auto entries = builder.getDictionaryAttr(builder.getNamedAttr(kCause, builder.getStringAttr(cause)));
  return FusedLoc::get(loc.getContext(), {loc}, entries);
}

StringRef cleave::spmd::getCause(Location loc) {
  StringAttr cause = findCause(loc);
  return cause ? cause.getValue() : StringRef();
}
