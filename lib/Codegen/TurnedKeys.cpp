//===- TurnedKeys.cpp - keys of a head, turned ----------------------------===//
//
// In squares of vectors where there are whole ones, which shuffles turn, the rest one by one.
//
//===----------------------------------------------------------------------===//
#include "TurnedKeys.h"
#include "Emitter.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

TurnedKeys::TurnedKeys(Emitter &e, const Operand &operand, ArrayRef<int64_t> shape, Type compute)
    : e(e), k(operand), keys(shape[2]), size(shape[3]), compute(compute), lanes(e.getVectorLanes(compute)),
      turned(e.allocate(compute, size * llvm::alignTo(keys, lanes))) {}

/// Where the vector that holds a key's component begins.
Value TurnedKeys::place(Value key, Value component) const {
  PlaceBuilder &p = e.places;
  return p.add(p.mul(p.div(key, lanes), size * lanes), p.mul(component, lanes));
}

Value TurnedKeys::load(Value key, Value component, int64_t vectors) const {
  return e.load(turned, compute, {e.places.add(place(key, component), vectors * size * lanes), lanes > 1});
}

void TurnedKeys::clearRest() {
  if (keys % lanes == 0)
    return;
  e.withLanes(lanes, lanes, [&] {
    Value zero = e.elements.number(e.withLanes(compute), 0);
    e.loop(size, [&](Value component) {
      e.store(turned, zero, {place(e.places.number(keys / lanes * lanes), component), lanes > 1});
    });
    return 0;
  });
}

/// A square of keys and components.
void TurnedKeys::turnSquare(Value head, Value key, Value component) {
  e.withLanes(lanes, lanes, [&] {
    Values square;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      OffsetPlace from = k.along(k.getDim(2), key, lane);
      Value at = e.places.add(e.places.add(head, from.base), k.along(k.getDim(3), component).base);
      square.push_back(k.load(e.places.add(at, from.constant)));
    }
    for (auto [lane, vector] : llvm::enumerate(transposeBlock(e, square)))
      e.store(turned, vector, {e.places.add(place(key, component), int64_t(lane) * lanes), 1});
    return 0;
  });
}

/// Element by element, of some keys the components from one on.
void TurnedKeys::copy(Value head, int64_t firstKey, int64_t lastKey, int64_t firstComponent) {
  PlaceBuilder &p = e.places;
  e.loop(p.number(firstKey), p.number(lastKey), 1, {}, [&](Value key, Values) {
    e.loop(p.number(firstComponent), p.number(size), 1, {}, [&](Value component, Values) {
      Value at = p.add(p.add(head, k.along(k.getDim(2), key).base), k.along(k.getDim(3), component).base);
      e.store(turned, k.load(at), {p.add(place(key, component), p.rem(key, lanes))});
      return Values();
    });
    return Values();
  });
}

/// Squares want components side by side in memory, and vectors of as many lanes as there are registers for the square.
void TurnedKeys::turn(Value head) {
  bool isSquare = k.getDim(3).stride == 1 && !k.getDim(3).width && lanes > 1 && compute.isF32();
  int64_t fullKeys = isSquare ? keys / lanes * lanes : 0, fullSize = isSquare ? size / lanes * lanes : 0;
  if (fullKeys == 0 || fullSize == 0)
    return copy(head, 0, keys, 0);
  e.loop(e.places.number(0), e.places.number(fullKeys), lanes, {}, [&](Value key, Values) {
    e.loop(e.places.number(0), e.places.number(fullSize), lanes, {}, [&](Value component, Values) {
      turnSquare(head, key, component);
      return Values();
    });
    return Values();
  });
  // What is left of keys, then of the components of keys that were turned.
  if (fullKeys < keys)
    copy(head, fullKeys, keys, 0);
  if (fullSize < size)
    copy(head, 0, fullKeys, fullSize);
}
