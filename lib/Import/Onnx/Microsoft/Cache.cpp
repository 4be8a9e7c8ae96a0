//===- Cache.cpp - quantized caches of keys and values --------------------===//
//
// Domain com.microsoft, GroupQueryAttention. A cache may hold integers, symmetric around 0, with one scale for all or one for
// each channel of each head:
//
//   8 bits   round(x / scale) in -128..127, as int8 [batch, heads, keys, size]
//   4 bits   round(x / scale) in -8..7, two in a byte, the first in the low bits, each 8 more: uint8 [batch, heads, keys, size / 2]
//   float8   x / scale as float8e4m3fn, which goes up to 448
//
// What comes new is quantized when it is put in, and attention sees what can be read out again. A cache is widened behind all that
// joins, splits or moves it, so that it is small in memory and on the wire.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"
#include "../PackedTensor.h"
#include "Attention.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// The greatest number of float8e4m3fn; what is beyond becomes that.
constexpr double kMostOfFloat8 = 448;

static Value bitcast(NodeContext &node, Value x, Type type) {
  return node.failed() ? Value()
                       : node.createTyped<nn::BitcastOp>(RankedTensorType::get(NodeContext::shape(x), type), x);
}

/// The attribute of keys or of values; true if there is a scale.
static bool readType(NodeContext &node, StringRef name, StringRef &type) {
  type = node.stringAttr(name, StringRef("NONE"));
  node.check(type == "NONE" || type == "PER_TENSOR" || type == "PER_CHANNEL",
             "attribute '" + name + "' is " + type + ", expected NONE, PER_TENSOR or PER_CHANNEL");
  return type != "NONE";
}

/// The scale of operand `index`, so that it stands beside [batch, heads, keys, size].
static Value readScale(NodeContext &node, unsigned index, StringRef type, int64_t heads, int64_t size) {
  bool isOne = type == "PER_TENSOR";
  Ints shape = isOne ? Ints{1, 1, 1, 1} : Ints{1, heads, 1, size};
  int64_t count = ShapedType::getNumElements(shape);
  Value scale = node.operand(index);
  if (!node.check(scale != nullptr, "operand " + Twine(index) + " is missing, the scale of a quantized cache") ||
      !node.check(ShapedType::getNumElements(NodeContext::shape(scale)) == count,
                  "the scale '" + node.operandName(index) + "' has " +
                      Twine(ShapedType::getNumElements(NodeContext::shape(scale))) + " numbers, expected " +
                      Twine(count)))
    return {};
  return node.reshape(scale, shape);
}

bool QuantizedCache::readAttributes() {
  bool hasKeys = readType(node, "k_quant_type", keyType), hasValues = readType(node, "v_quant_type", valueType);
  bits = node.intAttr("kv_cache_bit_width", 0);
  node.check(hasKeys == hasValues,
             "keys and values are in one form: k_quant_type is " + keyType + ", v_quant_type " + valueType);
  if (hasKeys)
    return node.check(bits == 4 || bits == 8, "attribute 'kv_cache_bit_width' is " + Twine(bits) + ", expected 4 or 8");
  return node.check(bits == 0, "attribute 'kv_cache_bit_width' is " + Twine(bits) +
                                   ", expected 0 of a cache that is not quantized");
}

bool QuantizedCache::readOperands(int64_t heads, int64_t headSize) {
  if (!isUsed() || node.failed())
    return !node.failed();
  size = headSize;
  keyScale = readScale(node, 12, keyType, heads, size), valueScale = readScale(node, 13, valueType, heads, size);
  Builder builder = node.getBuilder();
  stored = bits == 4 ? Type(builder.getIntegerType(8, /*isSigned=*/false)) : Type(builder.getI8Type());
  node.check(bits == 8 || size % 2 == 0, "heads of " + Twine(size) + " numbers of 4 bits do not fill their bytes");
  for (unsigned index : {3, 4}) {
    Value past = node.operand(index);
    if (!past || node.failed())
      continue;
    Type type = NodeContext::elementType(past);
    if (bits == 8 && isa<Float8E4M3FNType>(type))
      stored = type;
    node.check(type == stored && NodeContext::rank(past) == 4 && NodeContext::shape(past)[3] == size * bits / 8,
               "the cache '" + node.operandName(index) + "' must have " + Twine(size * bits / 8) + " " +
                   (bits == 4 ? "uint8" : "int8 or float8e4m3fn") + " for each head and key");
  }
  return !node.failed();
}

// Few ops take floats of 8 bits; all take bytes.
Value QuantizedCache::open(Value cache) {
  bool isFloat = cache && isa_and_nonnull<Float8E4M3FNType>(NodeContext::elementType(cache));
  return isFloat ? bitcast(node, cache, node.getBuilder().getIntegerType(8, /*isSigned=*/false)) : cache;
}

Value QuantizedCache::close(Value cache) {
  return isa_and_nonnull<Float8E4M3FNType>(stored) ? bitcast(node, cache, stored) : cache;
}

Value QuantizedCache::narrow(Value x, bool isKey) {
  if (!isUsed() || node.failed())
    return x;
  nn::Composer &f = node;
  Value ratio = f.div(node.cast(x, f.f32()), isKey ? keyScale : valueScale);
  if (isa<Float8E4M3FNType>(stored))
    return open(node.cast(f.clamp(ratio, -kMostOfFloat8, kMostOfFloat8), stored));
  double most = (1 << (bits - 1)) - 1;
  Value whole = f.clamp(f.round(ratio), -most - 1, most);
  if (bits == 8 || node.failed())
    return node.cast(whole, stored);
  // Bytes up to 255 are exact in f32.
  Ints shape(NodeContext::shape(whole)), pairs = shape;
  pairs.back() /= 2, shape.back() /= 2;
  pairs.push_back(2);
  Value two = node.reshape(f.add(whole, most + 1), pairs);
  Value byte = f.add(node.sliceDim(two, 4, 0, 1), f.mul(node.sliceDim(two, 4, 1, 1), 16));
  return node.cast(node.reshape(byte, shape), stored);
}

Value QuantizedCache::widen(Value cache, bool isKey, Type type) {
  if (!isUsed() || node.failed())
    return cache;
  nn::Composer &f = node;
  Value whole = node.cast(unpackBits(node, close(cache), bits), f.f32());
  if (bits == 4)
    whole = f.sub(whole, 8);
  return node.cast(f.mul(whole, isKey ? keyScale : valueScale), type);
}
