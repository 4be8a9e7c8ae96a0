//===- PartitionTest.cpp - every op, in every way its rule allows ---------===//
//
// One case per shape that a rule comes in. Sizes are such that every choice divides over 2 and 2 x 2 ranks, and dims
// that matter over 2 x 3.
//
//===----------------------------------------------------------------------===//
#include "EveryChoice.h"

#include "llvm/ADT/Twine.h"
#include "gtest/gtest.h"

using namespace cleave;

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

TEST(Partition, Constants) {
  check("", "%0 = nn.constant dense<3.0> : tensor<4x12xf32> -> tensor<4x12xf32>");
  check("", "%0 = nn.constant dense<[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]> : tensor<4x4xi64>"
            " -> tensor<4x4xi64>");
}

TEST(Partition, Loads) {
  checkEveryChoice("nn.param @w : tensor<4x4xi32> = dense<[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, "
                   "16]]> : tensor<4x4xi32>\nfunc.func @f() {\n%0 = nn.load @w : tensor<4x4xi32>\nreturn\n}");
}

TEST(Partition, Iotas) {
  check("", "%0 = nn.iota dim 1 start -5 step 3 : tensor<4x12xi64>");
  check("", "%0 = nn.iota dim 0 start 1 step -2 : tensor<12x1xi8>");
  // Positions above 2048 round in f16: each must round once.
  check("", "%0 = nn.iota dim 0 start 2040 step 1 : tensor<24xf16>");
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

TEST(Partition, LinearElementwise) {
  check("%x: tensor<8x12xf32>, %y: tensor<12xf32>",
        "%0 = nn.add %x, %y : (tensor<8x12xf32>, tensor<12xf32>) -> tensor<8x12xf32>");
  check("%x: tensor<8x1xi32>, %y: tensor<1x4xi32>",
        "%0 = nn.sub %x, %y : (tensor<8x1xi32>, tensor<1x4xi32>) -> tensor<8x4xi32>");
  check("%x: tensor<8x4xf32>, %y: tensor<f32>",
        "%0 = nn.mul %x, %y : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>");
  check("%x: tensor<8x4xf32>", "%0 = nn.neg %x : (tensor<8x4xf32>) -> tensor<8x4xf32>");
  check("%x: tensor<8x4xf32>", "%0 = nn.cast %x : (tensor<8x4xf32>) -> tensor<8x4xf64>");
}

TEST(Partition, SelectsMinimaAndMaxima) {
  check("%c: tensor<8x1xi1>, %x: tensor<8x4xf32>, %y: tensor<f32>",
        "%0 = nn.select %c, %x, %y : (tensor<8x1xi1>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>");
  check("%c: tensor<8xi1>, %x: tensor<8xi1>",
        "%0 = nn.select %c, %x, %x : (tensor<8xi1>, tensor<8xi1>, tensor<8xi1>) -> tensor<8xi1>");
  check("%x: tensor<8xf32>, %y: tensor<8xf32>", "%0 = nn.max %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>");
  check("%x: tensor<8xi32>, %y: tensor<8xi32>", "%0 = nn.min %x, %y : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>");
}

TEST(Partition, OtherElementwise) {
  check("%x: tensor<8x12xf32>", "%0 = nn.exp %x : (tensor<8x12xf32>) -> tensor<8x12xf32>");
  check("%x: tensor<8x4xf32>, %y: tensor<4xf32>",
        "%0 = nn.lt %x, %y : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xi1>");
  check("%x: tensor<8x4xf32>, %y: tensor<f32>",
        "%0 = nn.div %x, %y : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>");
}

// All others, of an odd dim beside an even one, so that padding is there, too.
TEST(Partition, EveryElementwiseOp) {
  for (const char *op : {"abs",
                         "acos",
                         "acosh",
                         "asin",
                         "asinh",
                         "atan",
                         "atanh",
                         "ceil",
                         "cos",
                         "cosh",
                         "erf",
                         "floor",
                         "gelu",
                         "log",
                         "relu",
                         "reciprocal",
                         "hard_swish",
                         "sign",
                         "sigmoid",
                         "silu",
                         "round",
                         "sin",
                         "sinh",
                         "sqrt",
                         "tan",
                         "tanh",
                         "softplus",
                         "neg",
                         "elu {alpha = 0.5}",
                         "leaky_relu {alpha = 0.1}",
                         "hard_sigmoid {alpha = 0.2, beta = 0.5}"}) {
    auto [name, attributes] = llvm::StringRef(op).split(' ');
    check("%x: tensor<8x5xf32>", "%0 = nn." + name + " %x " + attributes + " : (tensor<8x5xf32>) -> tensor<8x5xf32>");
  }
  for (const char *op : {"is_inf", "is_nan"})
    check("%x: tensor<8x5xf32> {test.nan}", llvm::Twine("%0 = nn.") + op + " %x : (tensor<8x5xf32>) -> tensor<8x5xi1>");
  for (const char *op : {"eq", "ge", "gt", "le"})
    check("%x: tensor<8x1xf32>, %y: tensor<5xf32>",
          llvm::Twine("%0 = nn.") + op + " %x, %y : (tensor<8x1xf32>, tensor<5xf32>) -> tensor<8x5xi1>");
  for (const char *op : {"pow", "prelu"})
    check("%x: tensor<8x5xf32>, %y: tensor<1x5xf32>",
          llvm::Twine("%0 = nn.") + op + " %x, %y : (tensor<8x5xf32>, tensor<1x5xf32>) -> tensor<8x5xf32>");
  for (const char *op : {"bitwise_and", "bitwise_or", "bitwise_xor", "shift"})
    check("%x: tensor<8x5xi32>, %y: tensor<8x1xi32>",
          llvm::Twine("%0 = nn.") + op + " %x, %y : (tensor<8x5xi32>, tensor<8x1xi32>) -> tensor<8x5xi32>");
  for (const char *op : {"and", "or", "xor"})
    check("%x: tensor<8x5xi1>, %y: tensor<8x5xi1>",
          llvm::Twine("%0 = nn.") + op + " %x, %y : (tensor<8x5xi1>, tensor<8x5xi1>) -> tensor<8x5xi1>");
  check("%x: tensor<8x5xi1>", "%0 = nn.not %x : (tensor<8x5xi1>) -> tensor<8x5xi1>");
  check("%x: tensor<8x5xi32>", "%0 = nn.bitwise_not %x : (tensor<8x5xi32>) -> tensor<8x5xi32>");
}

// Also where shards are padded: what is there may be 0.
TEST(Partition, IntegersAreDividedByNoPadding) {
  check("%x: tensor<8x5xi32>, %y: tensor<8x5xi32> {test.divisor}",
        "%0 = nn.div %x, %y : (tensor<8x5xi32>, tensor<8x5xi32>) -> tensor<8x5xi32>");
  check("%x: tensor<8x5xi64>, %y: tensor<5xi64> {test.divisor}",
        "%0 = nn.mod %x, %y : (tensor<8x5xi64>, tensor<5xi64>) -> tensor<8x5xi64>");
}

TEST(Partition, Bits) {
  check("%x: tensor<8x4xf32>", "%0 = nn.bitcast %x : (tensor<8x4xf32>) -> tensor<8x4xi32>");
  check("%x: tensor<8x4xi16>", "%0 = nn.bitcast %x : (tensor<8x4xi16>) -> tensor<8x4xbf16>");
}

TEST(Partition, Quantization) {
  check("%x: tensor<8x4xf32>, %s: tensor<4xf32>, %z: tensor<4xi8>",
        "%0 = nn.quantize %x, %s, %z dim 1 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xi8>");
  check("%x: tensor<8x4xi8>, %s: tensor<f32>",
        "%0 = nn.dequantize %x, %s dim 1 : (tensor<8x4xi8>, tensor<f32>) -> tensor<8x4xf32>");
  // By blocks, which are split whole, and by blocks of which the last is short.
  check("%x: tensor<8x12xi8>, %s: tensor<8x4xf32>, %z: tensor<8x4xi8>",
        "%0 = nn.dequantize %x, %s, %z dim 1 block 3 : (tensor<8x12xi8>, tensor<8x4xf32>, tensor<8x4xi8>) -> "
        "tensor<8x12xf32>");
  check("%x: tensor<8x12xf32>, %s: tensor<2x12xf32>",
        "%0 = nn.quantize %x, %s dim 0 block 5 : (tensor<8x12xf32>, tensor<2x12xf32>) -> tensor<8x12xi8>");
}

//===----------------------------------------------------------------------===//
// Contraction
//===----------------------------------------------------------------------===//

TEST(Partition, Einsum) {
  check("%a: tensor<4x12xf32>, %b: tensor<12x8xf32>",
        "%0 = nn.einsum %a, %b \"ik,kj->ij\" : (tensor<4x12xf32>, tensor<12x8xf32>) -> tensor<4x8xf32>");
  check("%a: tensor<1x4x6xf32>, %b: tensor<4x6x4xf32>",
        "%0 = nn.einsum %a, %b \"bik,bkj->bij\" : (tensor<1x4x6xf32>, tensor<4x6x4xf32>) -> tensor<4x4x4xf32>");
  check("%a: tensor<4x4x6xi32>", "%0 = nn.einsum %a \"ijk->ki\" : (tensor<4x4x6xi32>) -> tensor<6x4xi32>");
}

//===----------------------------------------------------------------------===//
// Reduction
//===----------------------------------------------------------------------===//

TEST(Partition, Reductions) {
  for (const char *kind : {"sum", "mean", "max", "min"}) {
    check("%x: tensor<4x12x4xf32>",
          llvm::Twine("%0 = nn.reduce ") + kind + " %x dims [1, 2] : (tensor<4x12x4xf32>) -> tensor<4xf32>");
    check("%x: tensor<4x12xf64>",
          llvm::Twine("%0 = nn.reduce ") + kind + " %x dims [0] keep_dims : (tensor<4x12xf64>) -> tensor<1x12xf64>");
  }
  check("%x: tensor<4x12xf64>", "%0 = nn.reduce prod %x dims [1] : (tensor<4x12xf64>) -> tensor<4xf64>");
  check("%x: tensor<4x12xi1>", "%0 = nn.reduce max %x dims [1] : (tensor<4x12xi1>) -> tensor<4xi1>");
  check("%x: tensor<4x12xi32>", "%0 = nn.reduce mean %x dims [1] : (tensor<4x12xi32>) -> tensor<4xi32>");
  // A sum of these would overflow f16 long before the mean does.
  check("%x: tensor<4x12xf16>", "%0 = nn.reduce mean %x dims [1] : (tensor<4x12xf16>) -> tensor<4xf16>");
}

TEST(Partition, Softmax) {
  check("%x: tensor<4x12xf32>", "%0 = nn.softmax %x dim 1 : (tensor<4x12xf32>) -> tensor<4x12xf32>");
  check("%x: tensor<12x4xbf16>", "%0 = nn.softmax %x dim 0 : (tensor<12x4xbf16>) -> tensor<12x4xbf16>");
  check("%x: tensor<4x12xf64>", "%0 = nn.log_softmax %x dim 1 : (tensor<4x12xf64>) -> tensor<4x12xf64>");
}

TEST(Partition, SearchesAndScans) {
  check("%x: tensor<4x12x4xf32>", "%0 = nn.arg_reduce max %x dim 1 : (tensor<4x12x4xf32>) -> tensor<4x4xi64>");
  check("%x: tensor<4x12xi32>",
        "%0 = nn.arg_reduce min %x dim 1 keep_dims last : (tensor<4x12xi32>) -> tensor<4x1xi64>");
  // Few different values, so that the first and the last of equal ones matter; NaN wins.
  check("%x: tensor<4x12xi32>", "%0 = nn.arg_reduce max %x dim 1 : (tensor<4x12xi32>) -> tensor<4xi64>");
  check("%x: tensor<12x4xf16> {test.nan}", "%0 = nn.arg_reduce min %x dim 0 : (tensor<12x4xf16>) -> tensor<4xi64>");
  // Nothing is less than 0 here, padding neither: it is not the last of equal ones.
  check("%x: tensor<12x3xui8> {test.bound = 1}",
        "%0 = nn.arg_reduce max %x dim 1 last : (tensor<12x3xui8>) -> tensor<12xi64>");
  check("%x: tensor<4x12xf32>", "%0 = nn.cumsum %x dim 1 : (tensor<4x12xf32>) -> tensor<4x12xf32>");
  check("%x: tensor<4x12xi32>", "%0 = nn.cumsum %x dim 1 exclusive reverse : (tensor<4x12xi32>) -> tensor<4x12xi32>");
  check("%x: tensor<12x4xbf16>", "%0 = nn.cumsum %x dim 0 exclusive : (tensor<12x4xbf16>) -> tensor<12x4xbf16>");
  check("%x: tensor<4x12xf32>",
        "%0:2 = nn.top_k %x k 3 dim 1 : (tensor<4x12xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)");
  // More than a shard holds, and of equal ones the first.
  check("%x: tensor<12x4xi32>",
        "%0:2 = nn.top_k %x k 10 dim 0 smallest : (tensor<12x4xi32>) -> (tensor<10x4xi32>, tensor<10x4xi64>)");
  check("%x: tensor<12xf16> {test.nan}",
        "%0:2 = nn.top_k %x k 5 dim 0 : (tensor<12xf16>) -> (tensor<5xf16>, tensor<5xi64>)");
  // NaN is the largest, and comes before padding.
  check("%x: tensor<5x8xf32> {test.nan}",
        "%0:2 = nn.top_k %x k 5 dim 0 smallest : (tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xi64>)");
}

//===----------------------------------------------------------------------===//
// Normalization
//===----------------------------------------------------------------------===//

TEST(Partition, LayerNorm) {
  check("%x: tensor<4x2x12xf32>, %s: tensor<12xf32>, %b: tensor<2x1xf32>",
        "%0 = nn.layer_norm %x, %s bias %b dim 1 epsilon 1.0e-5 : (tensor<4x2x12xf32>, tensor<12xf32>, "
        "tensor<2x1xf32>) -> tensor<4x2x12xf32>");
  check("%x: tensor<4x12xf16>, %b: tensor<12xf16>",
        "%0 = nn.layer_norm %x bias %b dim 1 epsilon 1.0e-5 : (tensor<4x12xf16>, tensor<12xf16>) -> tensor<4x12xf16>");
}

TEST(Partition, RmsNorm) {
  check("%x: tensor<4x12xf32>, %s: tensor<12xf32>",
        "%0 = nn.rms_norm %x, %s dim 1 epsilon 1.0e-5 : (tensor<4x12xf32>, tensor<12xf32>) -> tensor<4x12xf32>");
  check("%x: tensor<4x12xf64>", "%0 = nn.rms_norm %x dim 0 epsilon 1.0e-5 : (tensor<4x12xf64>) -> tensor<4x12xf64>");
}

TEST(Partition, GroupNorm) {
  for (const char *groups : {"1", "2", "8"})
    check("%x: tensor<4x8x12xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>",
          llvm::Twine("%0 = nn.group_norm %x, %s, %b groups ") + groups +
              " epsilon 1.0e-5 : (tensor<4x8x12xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8x12xf32>");
}

TEST(Partition, OtherNorms) {
  check("%x: tensor<4x4x12xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>",
        "%0 = nn.batch_norm %x, %a, %b, %c, %a epsilon 10.0 : (tensor<4x4x12xf32>, tensor<4xf32>, tensor<4xf32>, "
        "tensor<4xf32>, tensor<4xf32>) -> tensor<4x4x12xf32>");
  check("%x: tensor<4x6x12xf32>",
        "%0 = nn.lrn %x size 3 alpha 1.0e-1 beta 0.75 k 1.0 : (tensor<4x6x12xf32>) -> tensor<4x6x12xf32>");
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

TEST(Partition, AttentionWithGroupedHeads) {
  check("%q: tensor<4x8x12x4xf32>, %k: tensor<4x4x12x4xf32>, %v: tensor<4x4x12x8xf32>",
        "%0 = nn.attention %q, %k, %v scale 0.5 : (tensor<4x8x12x4xf32>, tensor<4x4x12x4xf32>, tensor<4x4x12x8xf32>) "
        "-> tensor<4x8x12x8xf32>");
  check("%q: tensor<2x4x4x4xbf16>, %k: tensor<2x1x8x4xbf16>",
        "%0 = nn.attention %q, %k, %k scale 0.5 {softcap = 2.0} : (tensor<2x4x4x4xbf16>, tensor<2x1x8x4xbf16>, "
        "tensor<2x1x8x4xbf16>) -> tensor<2x4x4x4xbf16>");
}

TEST(Partition, CausalAttention) {
  check("%q: tensor<2x4x12x4xf32>, %k: tensor<2x2x12x4xf32>",
        "%0 = nn.attention %q, %k, %k scale 0.5 causal : (tensor<2x4x12x4xf32>, tensor<2x2x12x4xf32>, "
        "tensor<2x2x12x4xf32>) -> tensor<2x4x12x4xf32>");
  // The first queries see nothing at all, and give zeros.
  check("%q: tensor<1x2x12x4xf32>, %k: tensor<1x2x12x4xf32>",
        "%0 = nn.attention %q, %k, %k scale 0.5 causal {causalOffset = -4} : (tensor<1x2x12x4xf32>, "
        "tensor<1x2x12x4xf32>, tensor<1x2x12x4xf32>) -> tensor<1x2x12x4xf32>");
}

TEST(Partition, MaskedAttention) {
  check("%q: tensor<2x4x4x4xf32>, %k: tensor<2x2x12x4xf32>, %m: tensor<4x12xi1>",
        "%0 = nn.attention %q, %k, %k mask %m scale 0.5 : (tensor<2x4x4x4xf32>, tensor<2x2x12x4xf32>, "
        "tensor<2x2x12x4xf32>, tensor<4x12xi1>) -> tensor<2x4x4x4xf32>");
  check("%q: tensor<2x4x4x4xf32>, %k: tensor<2x2x12x4xf32>, %m: tensor<2x4x1x12xf32>",
        "%0 = nn.attention %q, %k, %k mask %m scale 0.5 causal : (tensor<2x4x4x4xf32>, tensor<2x2x12x4xf32>, "
        "tensor<2x2x12x4xf32>, tensor<2x4x1x12xf32>) -> tensor<2x4x4x4xf32>");
}

TEST(Partition, CausalAttentionWithMasks) {
  check("%q: tensor<2x4x12x4xf32>, %k: tensor<2x2x12x4xf32>, %m: tensor<2x1x12x12xi1>",
        "%0 = nn.attention %q, %k, %k mask %m scale 0.5 causal : (tensor<2x4x12x4xf32>, tensor<2x2x12x4xf32>, "
        "tensor<2x2x12x4xf32>, tensor<2x1x12x12xi1>) -> tensor<2x4x12x4xf32>");
  check("%q: tensor<2x4x12x4xf16>, %k: tensor<2x2x8x4xf16>, %m: tensor<12x1xf16>",
        "%0 = nn.attention %q, %k, %k mask %m scale 0.5 causal {causalOffset = 2, softcap = 3.0} : "
        "(tensor<2x4x12x4xf16>, tensor<2x2x8x4xf16>, tensor<2x2x8x4xf16>, tensor<12x1xf16>) -> tensor<2x4x12x4xf16>");
}

// What a query sees is a window: queries and keys may be split together, also where the window is longer than a shard.
TEST(Partition, AttentionInWindows) {
  const char *grouped = "(tensor<2x4x12x4xf32>, tensor<2x2x12x4xf32>, tensor<2x2x12x8xf32>) -> tensor<2x4x12x8xf32>";
  for (const char *band : {"causal {left = 2}", "causal {left = 0}", "causal {left = 7}", "{left = 1, right = 2}",
                           "causal {causalOffset = 3, left = 4}", "causal {causalOffset = -2, left = 3}",
                           "{causalOffset = 5, left = 0, right = 1, softcap = 2.0}"})
    check("%q: tensor<2x4x12x4xf32>, %k: tensor<2x2x12x4xf32>, %v: tensor<2x2x12x8xf32>",
          llvm::Twine("%0 = nn.attention %q, %k, %v scale 0.5 ") + band + " : " + grouped);
  // Fewer queries than keys, behind those of the past; and more, of which the last ones see nothing.
  check("%q: tensor<1x2x4x4xbf16>, %k: tensor<1x2x24x4xbf16>",
        "%0 = nn.attention %q, %k, %k scale 0.5 causal {causalOffset = 20, left = 9} : (tensor<1x2x4x4xbf16>, "
        "tensor<1x2x24x4xbf16>, tensor<1x2x24x4xbf16>) -> tensor<1x2x4x4xbf16>");
  check("%q: tensor<1x2x24x4xf32>, %k: tensor<1x2x12x4xf32>",
        "%0 = nn.attention %q, %k, %k scale 0.5 {left = 3, right = 1} : (tensor<1x2x24x4xf32>, "
        "tensor<1x2x12x4xf32>, tensor<1x2x12x4xf32>) -> tensor<1x2x24x4xf32>");
  // One side alone is no window.
  check("%q: tensor<2x2x12x4xf32>, %k: tensor<2x2x12x4xf32>",
        "%0 = nn.attention %q, %k, %k scale 0.5 {left = 2} : (tensor<2x2x12x4xf32>, tensor<2x2x12x4xf32>, "
        "tensor<2x2x12x4xf32>) -> tensor<2x2x12x4xf32>");
}

// Masks of keys go along with them; one of queries by keys cannot be split by both.
TEST(Partition, AttentionInWindowsWithMasks) {
  for (const char *mask : {"2x1x1x12xi1", "12xf32", "2x4x1x12xf16", "12x1xi1", "2x1x12x12xi1"})
    check(llvm::Twine("%q: tensor<2x4x12x4xf32>, %k: tensor<2x2x12x4xf32>, %m: tensor<") + mask + ">",
          llvm::Twine("%0 = nn.attention %q, %k, %k mask %m scale 0.5 causal {left = 3} : (tensor<2x4x12x4xf32>, "
                      "tensor<2x2x12x4xf32>, tensor<2x2x12x4xf32>, tensor<") +
              mask + ">) -> tensor<2x4x12x4xf32>");
}

TEST(Partition, RotaryEmbedding) {
  check("%x: tensor<2x4x12x8xf32>, %c: tensor<1x12x3xf32>",
        "%0 = nn.rotary_embedding %x, %c, %c rotated 6 : (tensor<2x4x12x8xf32>, tensor<1x12x3xf32>, "
        "tensor<1x12x3xf32>) -> tensor<2x4x12x8xf32>");
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

TEST(Partition, Reshape) {
  check("%x: tensor<4x12xf32>", "%0 = nn.reshape %x : (tensor<4x12xf32>) -> tensor<48xf32>");
  check("%x: tensor<48xf32>", "%0 = nn.reshape %x : (tensor<48xf32>) -> tensor<2x1x24xf32>");
  check("%x: tensor<8x6x4xf32>", "%0 = nn.reshape %x : (tensor<8x6x4xf32>) -> tensor<12x4x4xf32>");
  check("%x: tensor<4x1x6xi1>", "%0 = nn.reshape %x : (tensor<4x1x6xi1>) -> tensor<24xi1>");
}

TEST(Partition, OtherReplicatedMovement) {
  check("%x: tensor<4x12x2xf32>", "%0 = nn.transpose %x [2, 0, 1] : (tensor<4x12x2xf32>) -> tensor<2x4x12xf32>");
  check("%x: tensor<4x1xf32>", "%0 = nn.broadcast %x : (tensor<4x1xf32>) -> tensor<2x4x12xf32>");
  check("%x: tensor<4x6xf32>, %y: tensor<2x6xf32>",
        "%0 = nn.concat %x, %y dim 0 : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>");
  check("%x: tensor<4x12xf32>", "%0 = nn.rotate %x dim 1 by 5 : (tensor<4x12xf32>) -> tensor<4x12xf32>");
}

// Parts go where their rows belong; what leaves at one end comes back at the other.
TEST(Partition, MovementAlongSplitDims) {
  check("%x: tensor<8x4xf32>, %y: tensor<12x4xf32>, %z: tensor<4x4xf32>",
        "%0 = nn.concat %x, %y, %z dim 0 : (tensor<8x4xf32>, tensor<12x4xf32>, tensor<4x4xf32>) -> tensor<24x4xf32>");
  check("%x: tensor<4xi1>, %y: tensor<4xi1>",
        "%0 = nn.concat %x, %y dim 0 : (tensor<4xi1>, tensor<4xi1>) -> tensor<8xi1>");
  for (const char *amount : {"1", "6", "11"})
    check("%x: tensor<12x4xi32>",
          llvm::Twine("%0 = nn.rotate %x dim 0 by ") + amount + " : (tensor<12x4xi32>) -> tensor<12x4xi32>");
  check("%x: tensor<8x8xf32>",
        "%0 = nn.pad constant %x low [1, 0] high [3, 4] : (tensor<8x8xf32>) -> tensor<12x12xf32>");
  check(
      "%x: tensor<8x8xi64>, %v: tensor<i64>",
      "%0 = nn.pad constant %x value %v low [4, 2] high [0, 2] : (tensor<8x8xi64>, tensor<i64>) -> tensor<12x12xi64>");
  check("%x: tensor<4x8xf32>", "%0 = nn.pad edge %x low [1, 0] high [3, 4] : (tensor<4x8xf32>) -> tensor<8x12xf32>");
  check("%x: tensor<4x8xf32>", "%0 = nn.pad wrap %x low [1, 0] high [3, 4] : (tensor<4x8xf32>) -> tensor<8x12xf32>");
  check("%x: tensor<12x8xf32>",
        "%0 = nn.slice %x starts [3, 7] sizes [8, 8] steps [1, -1] : (tensor<12x8xf32>) -> tensor<8x8xf32>");
  check("%x: tensor<24xf32>", "%0 = nn.slice %x starts [22] sizes [8] steps [-2] : (tensor<24xf32>) -> tensor<8xf32>");
  check("%x: tensor<24xf32>", "%0 = nn.slice %x starts [2] sizes [4] steps [5] : (tensor<24xf32>) -> tensor<4xf32>");
}

TEST(Partition, Padding) {
  check("%x: tensor<4x6xf32>", "%0 = nn.pad constant %x low [0, 1] high [0, 1] : (tensor<4x6xf32>) -> tensor<4x8xf32>");
  check("%x: tensor<4x6xf32>, %v: tensor<f32>",
        "%0 = nn.pad constant %x value %v low [0, 1] high [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x8xf32>");
  check("%x: tensor<4x6xf32>", "%0 = nn.pad reflect %x low [0, 2] high [0, 2] : (tensor<4x6xf32>) -> tensor<4x10xf32>");
}

TEST(Partition, Slices) {
  check("%x: tensor<4x12xf32>",
        "%0 = nn.slice %x starts [0, 3] sizes [4, 7] steps [1, 1] : (tensor<4x12xf32>) -> tensor<4x7xf32>");
  check("%x: tensor<8x12xf32>",
        "%0 = nn.slice %x starts [7, 10] sizes [1, 4] steps [1, -3] : (tensor<8x12xf32>) -> tensor<1x4xf32>");
  check("%x: tensor<4x12xi1>",
        "%0 = nn.slice %x starts [1, 11] sizes [2, 12] steps [2, -1] : (tensor<4x12xi1>) -> tensor<2x12xi1>");
  check("%x: tensor<4x36xi32>",
        "%0 = nn.slice %x starts [0, 2] sizes [4, 12] steps [1, 3] : (tensor<4x36xi32>) -> tensor<4x12xi32>");
}

TEST(Partition, Triangles) {
  check("%x: tensor<2x12x4xf32>", "%0 = nn.trilu %x offset 1 upper : (tensor<2x12x4xf32>) -> tensor<2x12x4xf32>");
  check("%x: tensor<4x12xi32>", "%0 = nn.trilu %x offset 2 : (tensor<4x12xi32>) -> tensor<4x12xi32>");
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

TEST(Partition, Gather) {
  // What a rank reads in place of what it does not hold must not matter, whatever it is.
  check("%t: tensor<12x4xf32> {test.nan}, %i: tensor<2x4xi64> {test.bound = 12}",
        "%0 = nn.gather %t, %i dim 0 : (tensor<12x4xf32>, tensor<2x4xi64>) -> tensor<2x4x4xf32>");
  check("%t: tensor<2x12x4xi1>, %i: tensor<4xi32> {test.bound = 12}",
        "%0 = nn.gather %t, %i dim 1 : (tensor<2x12x4xi1>, tensor<4xi32>) -> tensor<2x4x4xi1>");
  check("%t: tensor<4x12xi32>, %i: tensor<i64> {test.bound = 12}",
        "%0 = nn.gather %t, %i dim 1 : (tensor<4x12xi32>, tensor<i64>) -> tensor<4xi32>");
}

TEST(Partition, GatherElements) {
  check("%t: tensor<4x12xf32>, %i: tensor<4x6xi64> {test.bound = 12}",
        "%0 = nn.gather_elements %t, %i dim 1 : (tensor<4x12xf32>, tensor<4x6xi64>) -> tensor<4x6xf32>");
  check("%t: tensor<12x8xf32>, %i: tensor<4x4xi32> {test.bound = 12}",
        "%0 = nn.gather_elements %t, %i dim 0 : (tensor<12x8xf32>, tensor<4x4xi32>) -> tensor<4x4xf32>");
}

TEST(Partition, GatherNd) {
  check("%t: tensor<2x4x4x6xf32>, %i: tensor<2x4x2xi64> {test.bound = 4}",
        "%0 = nn.gather_nd %t, %i batch_dims 1 : (tensor<2x4x4x6xf32>, tensor<2x4x2xi64>) -> tensor<2x4x6xf32>");
  check("%t: tensor<12x6xf32>, %i: tensor<4x1xi32> {test.bound = 12}",
        "%0 = nn.gather_nd %t, %i batch_dims 0 : (tensor<12x6xf32>, tensor<4x1xi32>) -> tensor<4x6xf32>");
}

TEST(Partition, ScatterElements) {
  for (const char *kind : {"set", "add", "mul", "max", "min"}) {
    check("%x: tensor<4x12xf32>, %i: tensor<4x6xi64> {test.bound = 12}, %u: tensor<4x6xf32>",
          llvm::Twine("%0 = nn.scatter_elements ") + kind +
              " %x, %i, %u dim 1 : (tensor<4x12xf32>, tensor<4x6xi64>, tensor<4x6xf32>) -> tensor<4x12xf32>");
    check("%x: tensor<12x8xi32>, %i: tensor<6x4xi32> {test.bound = 12}, %u: tensor<6x4xi32>",
          llvm::Twine("%0 = nn.scatter_elements ") + kind +
              " %x, %i, %u dim 0 : (tensor<12x8xi32>, tensor<6x4xi32>, tensor<6x4xi32>) -> tensor<12x8xi32>");
  }
}

TEST(Partition, ScatterNd) {
  for (const char *kind : {"set", "add", "mul", "max", "min"}) {
    check("%x: tensor<12x4xf32>, %i: tensor<6x1xi64> {test.bound = 12}, %u: tensor<6x4xf32>",
          llvm::Twine("%0 = nn.scatter_nd ") + kind +
              " %x, %i, %u : (tensor<12x4xf32>, tensor<6x1xi64>, tensor<6x4xf32>) -> tensor<12x4xf32>");
    check("%x: tensor<4x4x2xf32>, %i: tensor<2x6x2xi32> {test.bound = 4}, %u: tensor<2x6x2xf32>",
          llvm::Twine("%0 = nn.scatter_nd ") + kind +
              " %x, %i, %u : (tensor<4x4x2xf32>, tensor<2x6x2xi32>, tensor<2x6x2xf32>) -> tensor<4x4x2xf32>");
  }
}

TEST(Partition, OneHot) {
  check("%i: tensor<4x2xi64> {test.bound = 16}, %v: tensor<2xf32>",
        "%0 = nn.one_hot %i, %v depth 12 dim 1 : (tensor<4x2xi64>, tensor<2xf32>) -> tensor<4x12x2xf32>");
  check("%i: tensor<4xf32>, %v: tensor<2xi32>",
        "%0 = nn.one_hot %i, %v depth 4 dim 1 : (tensor<4xf32>, tensor<2xi32>) -> tensor<4x4xi32>");
}
