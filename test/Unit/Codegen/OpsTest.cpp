//===- OpsTest.cpp - single ops as kernels --------------------------------===//
//
// Every op on every element type that it takes, on rows that are no multiple of a vector; then what is special about
// some: broadcasting, the ends of ranges, NaN and infinities.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;
using reference::Tensor;

namespace {

using Types = std::vector<std::string>;
const Types kFloats = {"f32", "f16", "bf16", "f64"};
const Types kIntegers = {"i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"};
const Types kNumbers = {"f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"};

std::string tensor(llvm::StringRef shape, llvm::StringRef element) { return ("tensor<" + shape + element + ">").str(); }

class OpsTest : public KernelTest {
protected:
  void expectEqual(llvm::StringRef body, llvm::ArrayRef<std::string> types, llvm::StringRef result) {
    errors.clear();
    EXPECT_EQ(checkBody(body, types, result), "") << body.str();
  }
  /// An elementwise op `text` (`nn.add %a0, %a1`) on operands of these shapes (`3x1x`).
  void expectElementwise(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> shapes, llvm::StringRef element,
                         llvm::StringRef resultShape, llvm::StringRef resultElement = "") {
    Types types;
    for (llvm::StringRef shape : shapes)
      types.push_back(tensor(shape, element));
    std::string result = tensor(resultShape, resultElement.empty() ? element : resultElement);
    std::string body = llvm::formatv("%y = {0} : ({1}) -> {2}", text, llvm::join(types, ", "), result).str();
    expectEqual(body, types, result);
  }
};

TEST_F(OpsTest, UnaryOnFloats) {
  for (const std::string &element : kFloats)
    for (const char *op :
         {"sqrt",    "reciprocal", "exp",      "log",        "erf",   "sin",   "cos",   "tan",   "asin", "acos",
          "atan",    "sinh",       "cosh",     "tanh",       "asinh", "acosh", "atanh", "floor", "ceil", "round",
          "sigmoid", "silu",       "softplus", "hard_swish", "gelu",  "neg",   "abs",   "sign",  "relu"}) {
      expectElementwise("nn." + std::string(op) + " %a0", {"3x17x"}, element, "3x17x");
      if (element == "f32")
        expectElementwise("nn." + std::string(op) + " %a0", {""}, element, "");
    }
}

TEST_F(OpsTest, UnaryWithAttributes) {
  for (const std::string &element : kFloats)
    for (const char *text : {"nn.gelu %a0 {tanh = true}", "nn.leaky_relu %a0 {alpha = 0.1}", "nn.elu %a0 {alpha = 0.7}",
                             "nn.hard_sigmoid %a0 {alpha = 0.3, beta = 0.4}"})
      expectElementwise(text, {"5x19x"}, element, "5x19x");
  for (const std::string &element : kFloats)
    for (const char *text : {"nn.is_nan %a0", "nn.is_inf %a0", "nn.is_inf %a0 {positive = false}"})
      expectElementwise(text, {"5x19x"}, element, "5x19x", "i1");
}

TEST_F(OpsTest, UnaryOnIntegers) {
  for (const std::string &element : kIntegers)
    for (const char *op : {"neg", "abs", "sign", "relu", "bitwise_not"})
      expectElementwise("nn." + std::string(op) + " %a0", {"3x17x"}, element, "3x17x");
  expectElementwise("nn.not %a0", {"3x17x"}, "i1", "3x17x");
}

TEST_F(OpsTest, Binary) {
  for (const std::string &element : kNumbers)
    for (const char *op : {"add", "sub", "mul", "min", "max", "prelu", "pow"}) {
      expectElementwise("nn." + std::string(op) + " %a0, %a1", {"3x17x", "3x17x"}, element, "3x17x");
      expectElementwise("nn." + std::string(op) + " %a0, %a1", {"2x1x35x", "3x1x"}, element, "2x3x35x");
    }
  for (const std::string &element : kIntegers)
    for (const char *op : {"bitwise_and", "bitwise_or", "bitwise_xor", "shift"})
      expectElementwise("nn." + std::string(op) + " %a0, %a1", {"3x17x", "17x"}, element, "3x17x");
  for (const std::string &element : kIntegers)
    expectElementwise("nn.shift %a0, %a1 {right}", {"3x17x", "17x"}, element, "3x17x");
  for (const char *op : {"and", "or", "xor"})
    expectElementwise("nn." + std::string(op) + " %a0, %a1", {"3x17x", "3x17x"}, "i1", "3x17x");
}

TEST_F(OpsTest, Divisions) {
  // Of integers by what is never 0.
  for (const std::string &element : kNumbers)
    for (const char *op : {"nn.div %a0, %n", "nn.mod %a0, %n", "nn.mod %a0, %n {truncated}"}) {
      std::string type = tensor("3x17x", element);
      bool isFloat = element.find('f') != std::string::npos;
      std::string constant = llvm::formatv("nn.constant dense<{0}> : {1} -> {1}", isFloat ? "3.0" : "3", type).str();
      std::string body = llvm::formatv("%n = {0}\n%y = {1} : ({2}, {2}) -> {2}", constant, op, type).str();
      expectEqual(body, {type}, type);
    }
  for (const std::string &element : kFloats)
    expectElementwise("nn.div %a0, %a1", {"3x17x", "17x"}, element, "3x17x");
}

TEST_F(OpsTest, Comparisons) {
  for (const std::string &element : kNumbers)
    for (const char *op : {"eq", "lt", "le", "gt", "ge"})
      expectElementwise("nn." + std::string(op) + " %a0, %a1", {"3x17x", "1x17x"}, element, "3x17x", "i1");
  expectElementwise("nn.eq %a0, %a1", {"3x17x", "3x17x"}, "i1", "3x17x", "i1");
  for (const std::string &element : kNumbers)
    expectEqual("%y = nn.select %a0, %a1, %a2 : (tensor<3x1xi1>, " + tensor("17x", element) + ", " +
                    tensor("3x17x", element) + ") -> " + tensor("3x17x", element),
                {"tensor<3x1xi1>", tensor("17x", element), tensor("3x17x", element)}, tensor("3x17x", element));
}

TEST_F(OpsTest, Casts) {
  Types all = kNumbers;
  all.push_back("i1");
  for (const std::string &from : all)
    for (const std::string &to : all)
      for (const char *attributes : {"", " {saturate}"})
        expectEqual(
            llvm::formatv("%y = nn.cast %a0{0} : ({1}) -> {2}", attributes, tensor("3x19x", from), tensor("3x19x", to))
                .str(),
            {tensor("3x19x", from)}, tensor("3x19x", to));
}

// Of all floats of 16 bits, NaN and infinities among them, and of drawn ones that are wider.
TEST_F(OpsTest, Bitcasts) {
  const Types bytes = {"i8", "ui8", "i1", "f8E5M2", "f8E4M3FN", "f8E8M0FNU"}, halves = {"f16", "bf16", "i16", "ui16"},
              words = {"f32", "i32", "ui32"}, longs = {"f64", "i64", "ui64"};
  for (const Types &width : {bytes, halves, words, longs})
    for (const std::string &from : width)
      for (const std::string &to : width)
        expectEqual(
            llvm::formatv("%y = nn.bitcast %a0 : ({0}) -> {1}", tensor("3x19x", from), tensor("3x19x", to)).str(),
            {tensor("3x19x", from)}, tensor("3x19x", to));
  for (const char *half : {"f16", "bf16"})
    expectEqual(llvm::formatv("%n = nn.iota dim 0 start -32768 step 1 : tensor<65536xi16>\n"
                              "%h = nn.bitcast %n : (tensor<65536xi16>) -> tensor<65536x{0}>\n"
                              "%y = nn.bitcast %h : (tensor<65536x{0}>) -> tensor<65536xui16>",
                              half)
                    .str(),
                {}, "tensor<65536xui16>");
}

TEST_F(OpsTest, Quantization) {
  for (const char *element : {"i8", "ui8", "i16", "i32"})
    for (const char *scale : {"7x", ""}) {
      std::string vector = tensor(scale, "f32"), zero = tensor(scale, element);
      expectEqual(llvm::formatv("%s = nn.exp %a1 : ({0}) -> {0}\n%y = nn.quantize %a0, %s, %a2 dim 1 : "
                                "(tensor<3x7x5xf32>, {0}, {1}) -> {2}",
                                vector, zero, tensor("3x7x5x", element))
                      .str(),
                  {"tensor<3x7x5xf32>", vector, zero}, tensor("3x7x5x", element));
      expectEqual(llvm::formatv("%y = nn.dequantize %a0, %a1, %a2 dim 1 : ({2}, {0}, {1}) -> tensor<3x7x5xf32>", vector,
                                zero, tensor("3x7x5x", element))
                      .str(),
                  {tensor("3x7x5x", element), vector, zero}, "tensor<3x7x5xf32>");
    }
}

// Of what has few bits, every value is there: bytes are drawn, and their bits taken.
TEST_F(OpsTest, SmallTypes) {
  for (const char *small :
       {"i4", "ui4", "i2", "ui2", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU", "f4E2M1FN"}) {
    std::string type = tensor("3x19x", small);
    for (const char *to : {"f32", "f16", "f64", "i32", "i4", "f8E5M2"})
      expectEqual(llvm::formatv("%s = nn.cast %a0 bits : (tensor<3x19xui8>) -> {0}\n%y = nn.cast %s : ({0}) -> {1}",
                                type, tensor("3x19x", to))
                      .str(),
                  {"tensor<3x19xui8>"}, tensor("3x19x", to));
    for (const char *from : {"f32", "f16", "f64", "i32", "ui8"})
      for (const char *attributes : {"", " {saturate}"})
        expectEqual(llvm::formatv("%y = nn.cast %a0{0} : ({1}) -> {2}", attributes, tensor("3x19x", from), type).str(),
                    {tensor("3x19x", from)}, type);
    expectEqual(llvm::formatv("%y = nn.transpose %a0 [1, 0] : ({0}) -> {1}", type, tensor("19x3x", small)).str(),
                {type}, tensor("19x3x", small));
  }
}

TEST_F(OpsTest, QuantizationByBlocks) {
  for (const char *small : {"i8", "ui4", "i2", "f8E4M3FN", "f4E2M1FN"})
    for (auto [dim, block, scale] : {std::tuple(1, 16, "6x3x"), {1, 5, "6x7x"}, {0, 4, "2x33x"}}) {
      std::string real = tensor("6x33x", "f32"), scales = tensor(scale, "f32"), type = tensor("6x33x", small);
      expectEqual(llvm::formatv(
                      "%s = nn.exp %a1 : ({0}) -> {0}\n%q = nn.quantize %a0, %s dim {1} block {2} : ({3}, {0}) -> {4}\n"
                      "%y = nn.dequantize %q, %s dim {1} block {2} : ({4}, {0}) -> {3}",
                      scales, dim, block, real, type)
                      .str(),
                  {real, scales}, real);
    }
}

TEST_F(OpsTest, Movement) {
  struct Case {
    const char *text, *from, *to;
  };
  static constexpr Case cases[] = {{"nn.reshape %a0", "6x7x", "2x21x"},
                                   {"nn.reshape %a0", "4x48x", "2x2x3x16x"},
                                   {"nn.reshape %a0", "1x5x1x", "5x"},
                                   {"nn.transpose %a0 [1, 0]", "33x18x", "18x33x"},
                                   {"nn.transpose %a0 [0, 2, 1, 3]", "2x3x5x32x", "2x5x3x32x"},
                                   {"nn.transpose %a0 [5, 4, 3, 2, 1, 0]", "2x3x1x2x3x5x", "5x3x2x1x3x2x"},
                                   {"nn.transpose %a0 [2, 0, 1]", "3x35x17x", "17x3x35x"},
                                   {"nn.broadcast %a0", "3x1x", "2x3x18x"},
                                   {"nn.slice %a0 starts [1, 30] sizes [2, 8] steps [1, -3]", "5x33x", "2x8x"},
                                   {"nn.slice %a0 starts [0, 16] sizes [5, 17] steps [1, 1]", "5x33x", "5x17x"},
                                   {"nn.pad constant %a0 low [1, 2] high [0, 3]", "4x17x", "5x22x"},
                                   {"nn.pad edge %a0 low [1, 2] high [0, 3]", "4x17x", "5x22x"},
                                   {"nn.pad reflect %a0 low [1, 2] high [0, 3]", "4x17x", "5x22x"},
                                   {"nn.pad wrap %a0 low [1, 40] high [0, 3]", "4x17x", "5x60x"},
                                   {"nn.rotate %a0 dim 1 by 5", "4x17x", "4x17x"},
                                   {"nn.rotate %a0 dim 0 by 3", "4x17x", "4x17x"},
                                   {"nn.trilu %a0 offset 1 upper", "2x5x18x", "2x5x18x"},
                                   {"nn.trilu %a0 offset -2", "2x18x18x", "2x18x18x"}};
  for (const char *element : {"f32", "bf16", "i64", "ui8", "i1"})
    for (const Case &each : cases)
      expectElementwise(each.text, {each.from}, element, each.to);
  expectElementwise("nn.concat %a0, %a1, %a2 dim 1", {"3x16x", "3x5x", "3x0x"}, "f32", "3x21x");
  expectElementwise("nn.concat %a0, %a1 dim 0", {"3x18x", "2x18x"}, "i1", "5x18x");
  expectElementwise("nn.concat %a0, %a1 dim 2", {"3x4x18x", "3x4x33x"}, "f32", "3x4x51x");
  for (int dim : {0, 1})
    expectEqual(
        llvm::formatv("%c = nn.concat %a0, %a1 dim {0} : (tensor<20x20xf32>, tensor<20x20xf32>) -> tensor<{1}xf32>\n"
                      "%y = nn.transpose %c [1, 0] : (tensor<{1}xf32>) -> tensor<{2}xf32>",
                      dim, dim ? "20x40" : "40x20", dim ? "40x20" : "20x40")
            .str(),
        {"tensor<20x20xf32>", "tensor<20x20xf32>"}, dim ? "tensor<40x20xf32>" : "tensor<20x40xf32>");
  expectElementwise("nn.pad constant %a0 value %a1 low [1, 2] high [0, 3]", {"4x17x", ""}, "i32", "5x22x");
}

TEST_F(OpsTest, Data) {
  for (const std::string &element : kNumbers)
    expectEqual("%y = nn.iota dim 1 start -3 step 2 : " + tensor("3x19x", element), {}, tensor("3x19x", element));
  expectEqual("%c = nn.constant dense<[[1.5, 2.5, 3.5]]> : tensor<1x3xbf16> -> tensor<1x3xbf16>\n"
              "%y = nn.broadcast %c : (tensor<1x3xbf16>) -> tensor<4x3xbf16>",
              {}, "tensor<4x3xbf16>");
  expectEqual("%y = nn.constant dense<[true, false, true]> : tensor<3xi1> -> tensor<3xi1>", {}, "tensor<3xi1>");
}

TEST_F(OpsTest, Reductions) {
  Types all = kNumbers;
  all.push_back("i1");
  for (const std::string &element : all)
    for (const char *kind : {"sum", "mean", "prod", "max", "min"})
      for (auto [dims, to] : {std::pair("[2]", "3x5x"), std::pair("[0]", "5x33x"), std::pair("[1]", "3x33x"),
                              std::pair("[1, 2]", "3x"), std::pair("[0, 2]", "5x"), std::pair("[0, 1, 2]", "")}) {
        if (element == "i1" && kind[1] != 'a' && kind[1] != 'i')
          continue;
        expectElementwise(llvm::formatv("nn.reduce {0} %a0 dims {1}", kind, dims).str(), {"3x5x33x"}, element, to);
      }
  expectElementwise("nn.reduce sum %a0 dims [1] keep_dims", {"3x1000x"}, "f32", "3x1x");
  expectElementwise("nn.reduce max %a0 dims [0]", {"1000x50x"}, "f32", "50x");
  expectElementwise("nn.reduce sum %a0 dims [1]", {"3x0x"}, "f32", "3x");
  expectElementwise("nn.reduce mean %a0 dims []", {"3x4x"}, "f32", "3x4x");
}

TEST_F(OpsTest, Positions) {
  for (const std::string &element : kNumbers)
    for (const char *kind : {"max", "min"})
      for (const char *last : {"", " last"}) {
        expectElementwise(llvm::formatv("nn.arg_reduce {0} %a0 dim 1{1}", kind, last).str(), {"3x50x"}, element, "3x",
                          "i64");
        expectElementwise(llvm::formatv("nn.arg_reduce {0} %a0 dim 0 keep_dims{1}", kind, last).str(), {"9x18x"},
                          element, "1x18x", "i64");
      }
}

TEST_F(OpsTest, Lines) {
  for (const std::string &element : kNumbers) {
    for (const char *text : {"dim 1", "dim 0 exclusive", "dim 1 reverse", "dim 1 exclusive reverse"})
      expectElementwise("nn.cumsum %a0 " + std::string(text), {"4x19x"}, element, "4x19x");
    for (const char *order : {"", " smallest"}) {
      std::string from = tensor("3x20x", element), to = tensor("3x6x", element);
      std::string text =
          llvm::formatv("%v, %i = nn.top_k %a0 k 6 dim 1{0} : ({1}) -> ({2}, tensor<3x6xi64>)", order, from, to).str();
      expectEqual(text + "\n%y = nn.neg %v : (" + to + ") -> " + to, {from}, to);
      expectEqual(text + "\n%y = nn.neg %i : (tensor<3x6xi64>) -> tensor<3x6xi64>", {from}, "tensor<3x6xi64>");
    }
  }
}

TEST_F(OpsTest, SoftmaxAndNorms) {
  for (const std::string &element : kFloats)
    for (const char *shape : {"3x17x", "3x128x", "5x1000x"})
      for (const char *op : {"softmax", "log_softmax"})
        for (int dim : {0, 1})
          expectElementwise(llvm::formatv("nn.{0} %a0 dim {1}", op, dim).str(), {shape}, element, shape);
  for (const std::string &element : kFloats) {
    expectElementwise("nn.layer_norm %a0, %a1 bias %a2 dim 1 epsilon 1.0e-5", {"3x384x", "384x", "384x"}, element,
                      "3x384x");
    expectElementwise("nn.layer_norm %a0 dim 1 epsilon 1.0e-5", {"3x5x7x"}, element, "3x5x7x");
    expectElementwise("nn.rms_norm %a0, %a1 dim 2 epsilon 1.0e-5", {"3x5x70x", "70x"}, element, "3x5x70x");
    expectElementwise("nn.group_norm %a0, %a1, %a2 groups 2 epsilon 1.0e-5", {"2x4x3x7x", "4x", "4x"}, element,
                      "2x4x3x7x");
    expectElementwise("nn.lrn %a0 size 4 alpha 0.1 beta 0.75 k 1.0", {"2x8x3x17x"}, element, "2x8x3x17x");
    std::string x = tensor("2x4x3x7x", element), c = tensor("4x", element);
    expectEqual(llvm::formatv("%v = nn.exp %a4 : ({1}) -> {1}\n%y = nn.batch_norm %a0, %a1, %a2, %a3, %v epsilon "
                              "1.0e-5 : ({0}, {1}, {1}, {1}, {1}) -> {0}",
                              x, c)
                    .str(),
                {x, c, c, c, c}, x);
  }
}

TEST_F(OpsTest, Windows) {
  static constexpr const char *window = "pads_low [1, 0] pads_high [1, 2] dilations [1, 2]";
  for (const std::string &element : kFloats) {
    expectElementwise(llvm::formatv("nn.conv %a0, %a1, %a2 strides [2, 1] {0} groups 2", window).str(),
                      {"2x4x7x9x", "6x2x3x2x", "6x"}, element, "2x6x4x9x");
    expectElementwise("nn.conv_transpose %a0, %a1, %a2 strides [2, 1] pads_low [1, 0] pads_high [0, 1] dilations "
                      "[1, 2] output_pads [1, 0] groups 2",
                      {"2x4x3x5x", "4x3x3x2x", "6x"}, element, "2x6x7x6x");
  }
  for (const std::string &element : kNumbers)
    for (const char *kind : {"max", "average", "lp"})
      for (const char *rest : {"", " count_pads", " ceil"})
        expectElementwise(
            llvm::formatv("nn.pool {0} %a0 kernel [3, 2] strides [2, 1] {1}{2}", kind, window, rest).str(),
            {"1x2x8x9x"}, element, rest[1] == 'c' && rest[2] == 'e' ? "1x2x5x9x" : "1x2x4x9x");
}

TEST_F(OpsTest, Contractions) {
  for (const std::string &element : kNumbers) {
    expectElementwise("nn.einsum %a0, %a1 \"bik,bkj->bij\"", {"2x3x8x", "2x8x19x"}, element, "2x3x19x");
    expectElementwise("nn.einsum %a0, %a1, %a2 \"ij,jk,k->i\"", {"3x4x", "4x5x", "5x"}, element, "3x");
    expectElementwise("nn.einsum %a0 \"ij->ji\"", {"3x18x"}, element, "18x3x");
  }
}

TEST_F(OpsTest, Attention) {
  for (const std::string &element : kFloats) {
    for (const char *rest : {"", " causal", " causal {causalOffset = 2 : i64}", " causal {left = 3 : i64}",
                             " {left = 1 : i64, right = 2 : i64}", " {softcap = 2.0 : f64}"})
      expectElementwise(llvm::formatv("nn.attention %a0, %a1, %a2 scale 0.5{0}", rest).str(),
                        {"2x4x3x8x", "2x2x5x8x", "2x2x5x6x"}, element, "2x4x3x6x");
    expectElementwise("nn.attention %a0, %a1, %a2 mask %a3 scale 0.5", {"2x4x3x8x", "2x2x5x8x", "2x2x5x6x", "4x1x5x"},
                      element, "2x4x3x6x");
    for (const char *rest : {"rotated 32", "rotated 8", "rotated 8 interleaved"}) {
      llvm::StringRef angles = rest[8] == '3' ? "2x3x16x" : "1x3x4x";
      expectElementwise("nn.rotary_embedding %a0, %a1, %a2 " + std::string(rest), {"2x4x3x32x", angles, angles},
                        element, "2x4x3x32x");
    }
  }
}

TEST_F(OpsTest, Indexing) {
  for (const char *element : {"f32", "bf16", "i64", "ui8", "i1"}) {
    std::string table = tensor("6x19x", element);
    auto expect = [&](llvm::StringRef text, Types others, llvm::StringRef result) {
      Types types = {table};
      types.insert(types.end(), others.begin(), others.end());
      expectEqual(llvm::formatv("%y = {0} : ({1}) -> {2}", text, llvm::join(types, ", "), result).str(), types, result);
    };
    expect("nn.gather %a0, %a1 dim 0", {"tensor<2x3xi64>"}, tensor("2x3x19x", element));
    expect("nn.gather %a0, %a1 dim 1", {"tensor<18xi32>"}, tensor("6x18x", element));
    expect("nn.gather_elements %a0, %a1 dim 0", {"tensor<4x18xi64>"}, tensor("4x18x", element));
    expect("nn.gather_nd %a0, %a1 batch_dims 0", {"tensor<5x1xi64>"}, tensor("5x19x", element));
    expect("nn.gather_nd %a0, %a1 batch_dims 1", {"tensor<6x4x1xi64>"}, tensor("6x4x", element));
    for (const char *kind : {"set", "add", "mul", "max", "min"}) {
      bool isBool = element == std::string("i1");
      if (isBool && kind[0] != 's')
        continue;
      expect(llvm::formatv("nn.scatter_elements {0} %a0, %a1, %a2 dim 1", kind).str(),
             {"tensor<3x7xi64>", tensor("3x7x", element)}, table);
      expect(llvm::formatv("nn.scatter_nd {0} %a0, %a1, %a2", kind).str(),
             {"tensor<9x1xi64>", tensor("9x19x", element)}, table);
    }
  }
  expectEqual("%y = nn.one_hot %a0, %a1 depth 5 dim 1 : (tensor<3x4xi64>, tensor<2xf32>) -> tensor<3x5x4xf32>",
              {"tensor<3x4xi64>", "tensor<2xf32>"}, "tensor<3x5x4xf32>");
}

TEST_F(OpsTest, Resizing) {
  for (const char *mode : {"nearest", "linear", "cubic"})
    for (const char *place :
         {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"})
      for (const char *rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
        for (const char *rest : {"", " exclude_outside", " antialias"}) {
          if (mode[0] == 'n' ? rest[0] != 0 : rounding[0] != 'f')
            continue;
          std::string text =
              llvm::formatv("nn.resize {0} %a0 coordinates {1} rounding {2} scales ", mode, place, rounding);
          expectElementwise(text + "[1.0, 2.0, 0.6]" + rest, {"2x3x10x"}, "f32", "2x6x6x");
          expectElementwise(text + "[1.0, 2.0, 0.6, 1.0]" + rest, {"2x3x10x19x"}, "f32", "2x6x6x19x");
        }
  for (const std::string &element : kNumbers)
    expectElementwise("nn.resize linear %a0 coordinates half_pixel rounding floor scales [1.0, 2.0]", {"2x3x"}, element,
                      "2x6x");
}

TEST_F(OpsTest, EndsOfRanges) {
  expectEqual("%x = nn.constant dense<[-128, -128, 127, -7]> : tensor<4xi8> -> tensor<4xi8>\n"
              "%d = nn.constant dense<[-1, 1, -128, 2]> : tensor<4xi8> -> tensor<4xi8>\n"
              "%q = nn.div %x, %d : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>\n"
              "%r = nn.mod %x, %d : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>\n"
              "%y = nn.concat %q, %r dim 0 : (tensor<4xi8>, tensor<4xi8>) -> tensor<8xi8>",
              {}, "tensor<8xi8>");
  expectEqual("%i = nn.constant dense<[-1, -5, -6, 7, 2, 0]> : tensor<6xi64> -> tensor<6xi64>\n"
              "%y = nn.one_hot %i, %a0 depth 5 dim 1 : (tensor<6xi64>, tensor<2xf32>) -> tensor<6x5xf32>",
              {"tensor<2xf32>"}, "tensor<6x5xf32>");
  for (const char *op : {"exp", "log", "erf", "tanh", "sigmoid", "gelu", "sqrt", "round", "sign", "relu"})
    expectEqual(llvm::formatv("%x = nn.constant dense<[0x7FC00000, 0x7F800000, 0xFF800000, -0.0, 0.5, 88.8, 1.0e-40, "
                              "-103.5]> : tensor<8xf32> -> tensor<8xf32>\n"
                              "%y = nn.{0} %x : (tensor<8xf32>) -> tensor<8xf32>",
                              op)
                    .str(),
                {}, "tensor<8xf32>");
}

// Lanes that begin in one operand and end in the next, or in the next row, are taken one by one.
TEST_F(OpsTest, LanesThatPart) {
  expectEqual("%c = nn.concat %a0, %a1 dim 1 : (tensor<3x16xf32>, tensor<3x32xf32>) -> tensor<3x48xf32>\n"
              "%y = nn.slice %c starts [0, 8] sizes [3, 32] steps [1, 1] : (tensor<3x48xf32>) -> tensor<3x32xf32>",
              {"tensor<3x16xf32>", "tensor<3x32xf32>"}, "tensor<3x32xf32>");
  expectEqual("%c = nn.reshape %a0 : (tensor<3x16xf32>) -> tensor<48xf32>\n"
              "%y = nn.slice %c starts [8] sizes [32] steps [1] : (tensor<48xf32>) -> tensor<32xf32>",
              {"tensor<3x16xf32>"}, "tensor<32xf32>");
}

// The evaluator refuses such indices; a kernel reads the first or the last row.
TEST_F(OpsTest, IndicesOutOfRangeReadInside) {
  FailureOr<std::string> object =
      compile("func.func @main(%x: tensor<3x17xf32>) -> tensor<2x17xf32> {\n"
              "%i = nn.constant dense<[-1000000000, 1000000000]> : tensor<2xi64> -> tensor<2xi64>\n"
              "%y = nn.gather %x, %i dim 0 : (tensor<3x17xf32>, tensor<2xi64>) -> tensor<2x17xf32>\n"
              "return %y : tensor<2x17xf32>\n}");
  ASSERT_TRUE(succeeded(object)) << errors;
  Type f32 = Float32Type::get(&context);
  Tensor table = Tensor::zeros(RankedTensorType::get({3, 17}, f32));
  for (auto [i, element] : llvm::enumerate(table.write<float>()))
    element = float(i);
  SmallVector<Tensor> got;
  EXPECT_EQ(runObject(*object, "kernel", table, Type(RankedTensorType::get({2, 17}, f32)), got), "");
  EXPECT_EQ(got[0].as<float>()[0], 0);
  EXPECT_EQ(got[0].as<float>()[33], 50);
}

TEST_F(OpsTest, EqualModulesGiveEqualBytes) {
  const char *text = "func.func @main(%x: tensor<3x100xf32>) -> tensor<3x100xf32> {\n"
                     "%y = nn.softmax %x dim 1 : (tensor<3x100xf32>) -> tensor<3x100xf32>\n"
                     "return %y : tensor<3x100xf32>\n}";
  EXPECT_EQ(*compile(text), *compile(text));
}

// Without vectors of 64 bytes, without fused multiply-add, without anything.
TEST_F(OpsTest, OtherProcessors) {
  for (const char *isa : {"x86-64", "x86-64-v3"}) {
    target = llvm::cantFail(HostTarget::create(isa));
    for (const std::string &element : kFloats) {
      expectElementwise("nn.softmax %a0 dim 1", {"3x37x"}, element, "3x37x");
      expectElementwise("nn.gelu %a0", {"3x37x"}, element, "3x37x");
      expectElementwise("nn.layer_norm %a0 dim 1 epsilon 1.0e-5", {"3x200x"}, element, "3x200x");
    }
  }
  EXPECT_EQ(llvm::toString(HostTarget::create("z80").takeError()), "no processor is called 'z80'");
}

TEST_F(OpsTest, WhatHasNoKernelIsRefusedWithAReason) {
  errors.clear();
  EXPECT_TRUE(failed(compile("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
                             "%y = func.call @main(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"
                             "return %y : tensor<3xf32>\n}")));
  EXPECT_EQ(errors, "func.call has no lowering for kernels");
}

} // namespace
