//===- ContractionsTest.cpp - products, and what is computed of them ------===//
//
// Equations in every order of dims, sizes that are no multiple of a block, weights in panels; then epilogues.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::codegen;

namespace {

class ContractionsTest : public KernelTest {
protected:
  void expectRight(llvm::StringRef body, llvm::ArrayRef<std::string> types, llvm::StringRef result) {
    errors.clear();
    EXPECT_EQ(checkBody(body, types, result), "") << body.str();
  }
};

std::string typeOf(llvm::StringRef letters, const std::map<char, int64_t> &extents, llvm::StringRef element) {
  std::string type = "tensor<";
  for (char letter : letters)
    type += std::to_string(extents.at(letter)) + "x";
  return type + element.str() + ">";
}

/// `lhs,rhs->result`, all letters of the sizes given.
void splitEquation(llvm::StringRef equation, llvm::StringRef &lhs, llvm::StringRef &rhs, llvm::StringRef &result) {
  auto [inputs, out] = equation.split("->");
  std::tie(lhs, rhs) = inputs.split(",");
  result = out;
}

TEST_F(ContractionsTest, AnyOrderOfDims) {
  const std::vector<std::map<char, int64_t>> sizes = {
      {{'b', 1}, {'c', 2}, {'m', 1}, {'o', 1}, {'k', 40}, {'l', 1}, {'n', 35}, {'p', 1}},
      {{'b', 2}, {'c', 3}, {'m', 5}, {'o', 2}, {'k', 7}, {'l', 3}, {'n', 17}, {'p', 2}},
      {{'b', 2}, {'c', 1}, {'m', 19}, {'o', 1}, {'k', 33}, {'l', 2}, {'n', 64}, {'p', 3}},
      {{'b', 2}, {'c', 1}, {'m', 27}, {'o', 1}, {'k', 32}, {'l', 2}, {'n', 112}, {'p', 2}},
      {{'b', 1}, {'c', 1}, {'m', 41}, {'o', 3}, {'k', 16}, {'l', 1}, {'n', 1}, {'p', 1}}};
  for (const char *equation : {"mk,kn->mn",     "km,kn->mn",    "mk,nk->mn",    "km,nk->mn",       "mk,kn->nm",
                               "mk,nk->nm",     "bmk,bkn->bmn", "bmk,bnk->bmn", "bcmk,bcnk->bcmn", "bmck,bnck->bcmn",
                               "bmok,kn->bmon", "mkl,kln->mn",  "mkl,lkn->mn",  "kml,lnk->nm",     "bmk,kpn->bmpn",
                               "bmk,kpn->bpmn", "mk,k->m",      "k,kn->n",      "k,nk->n",         "k,k->",
                               "bm,bm->bm",     "m,n->mn",      "mbk,bkn->mbn", "mk,bkn->bmn",     "bkm,bknp->bmnp"})
    for (const auto &extents : sizes)
      for (const char *element : {"f32", "bf16"}) {
        llvm::StringRef lhs, rhs, result;
        splitEquation(equation, lhs, rhs, result);
        std::string a = typeOf(lhs, extents, element), b = typeOf(rhs, extents, element);
        std::string y = typeOf(result, extents, element);
        if (element == std::string("bf16") && extents.at('n') != 17)
          continue;
        expectRight(llvm::formatv("%y = nn.einsum %a0, %a1 \"{0}\" : ({1}, {2}) -> {3}", equation, a, b, y).str(),
                    {a, b}, y);
      }
}

TEST_F(ContractionsTest, OtherTypes) {
  for (const char *element : {"f64", "f16"}) {
    std::string a = llvm::formatv("tensor<9x21x{0}>", element), b = llvm::formatv("tensor<21x35x{0}>", element),
                y = llvm::formatv("tensor<9x35x{0}>", element);
    expectRight(llvm::formatv("%y = nn.einsum %a0, %a1 \"mk,kn->mn\" : ({0}, {1}) -> {2}", a, b, y).str(), {a, b}, y);
  }
}

/// As gradients of weights and inputs have them: rows of either operand are so far apart that blocks of them are copied, with rests of
/// rows, columns and depth, several dims of each, and numbers that are widened on the way.
TEST_F(ContractionsTest, OperandsThatAreCopied) {
  for (const char *equation : {"km,kn->mn", "klm,kln->mn", "mk,kn->mn", "lkmo,lkn->mon", "blkm,blkn->bmn"})
    for (const char *element : {"f32", "f16", "f64"}) {
      const std::map<char, int64_t> extents = {{'b', 2}, {'m', 523}, {'n', 530}, {'k', 19}, {'l', 2}, {'o', 2}};
      llvm::StringRef lhs, rhs, result;
      splitEquation(equation, lhs, rhs, result);
      std::string a = typeOf(lhs, extents, element), b = typeOf(rhs, extents, element);
      std::string y = typeOf(result, extents, element);
      expectRight(llvm::formatv("%y = nn.einsum %a0, %a1 \"{0}\" : ({1}, {2}) -> {3}", equation, a, b, y).str(), {a, b},
                  y);
    }
  // What is copied is a view: a part of a wider tensor, from an odd column on.
  expectRight(
      "%s = nn.slice %a0 starts [0, 7] sizes [33, 300] steps [1, 1] : (tensor<33x640xf32>) -> tensor<33x300xf32>\n"
      "%e = nn.einsum %s, %a1 \"km,kn->mn\" : (tensor<33x300xf32>, tensor<33x517xf32>) -> tensor<300x517xf32>\n"
      "%y = nn.add %e, %a2 : (tensor<300x517xf32>, tensor<300x517xf32>) -> tensor<300x517xf32>",
      {"tensor<33x640xf32>", "tensor<33x517xf32>", "tensor<300x517xf32>"}, "tensor<300x517xf32>");
}

TEST_F(ContractionsTest, EmptyDims) {
  expectRight("%y = nn.einsum %a0, %a1 \"mk,kn->mn\" : (tensor<3x0xf32>, tensor<0x5xf32>) -> tensor<3x5xf32>",
              {"tensor<3x0xf32>", "tensor<0x5xf32>"}, "tensor<3x5xf32>");
  expectRight("%y = nn.einsum %a0, %a1 \"mk,kn->mn\" : (tensor<0x4xf32>, tensor<4x5xf32>) -> tensor<0x5xf32>",
              {"tensor<0x4xf32>", "tensor<4x5xf32>"}, "tensor<0x5xf32>");
}

/// Panels of other widths than the processor's are no faster, but right; so are pairs.
TEST_F(ContractionsTest, WeightsInPanels) {
  for (int64_t width : {16, 48, 8, 20})
    for (int64_t columns : {1, 35, 144})
      for (int64_t interleave : {1, 2}) {
        int64_t rows = 40;
        int64_t panels = llvm::divideCeil(columns, width), deep = llvm::divideCeil(21, interleave);
        std::string packed = llvm::formatv("tensor<{0}x{1}x{2}x{3}xf32>", panels, deep, width, interleave);
        std::string weight = llvm::formatv("tensor<21x{0}xf32>", columns),
                    y = llvm::formatv("tensor<{0}x{1}xf32>", rows, columns);
        expectRight(llvm::formatv("%w = exec.unpack %a1 order [0, 1] batch 0 width {0} interleave {1} : ({2}) -> {3}\n"
                                  "%y = nn.einsum %a0, %w \"mk,kn->mn\" : (tensor<{5}x21xf32>, {3}) -> {4}",
                                  width, interleave, packed, weight, y, rows)
                        .str(),
                    {llvm::formatv("tensor<{0}x21xf32>", rows), packed}, y);
      }
  expectRight(
      "%w = exec.unpack %a1 order [1, 0, 2] batch 1 width 16 interleave 1 : (tensor<3x2x7x16x1xf32>) -> "
      "tensor<7x3x20xf32>\n"
      "%y = nn.einsum %a0, %w \"bsd,dhe->bhse\" : (tensor<2x5x7xf32>, tensor<7x3x20xf32>) -> tensor<2x3x5x20xf32>",
      {"tensor<2x5x7xf32>", "tensor<3x2x7x16x1xf32>"}, "tensor<2x3x5x20xf32>");
}

TEST_F(ContractionsTest, OperandsAreViewsOrComputed) {
  expectRight("%t = nn.reshape %a0 : (tensor<2x9x3x7xf32>) -> tensor<18x21xf32>\n"
              "%s = nn.slice %a1 starts [2, 1] sizes [21, 35] steps [1, 1] : (tensor<25x40xf32>) -> tensor<21x35xf32>\n"
              "%y = nn.einsum %t, %s \"mk,kn->mn\" : (tensor<18x21xf32>, tensor<21x35xf32>) -> tensor<18x35xf32>",
              {"tensor<2x9x3x7xf32>", "tensor<25x40xf32>"}, "tensor<18x35xf32>");
  expectRight("%t = nn.transpose %a0 [1, 0, 2] : (tensor<9x2x21xf32>) -> tensor<2x9x21xf32>\n"
              "%r = nn.reshape %t : (tensor<2x9x21xf32>) -> tensor<18x21xf32>\n"
              "%e = nn.exp %a1 : (tensor<21x35xf32>) -> tensor<21x35xf32>\n"
              "%y = nn.einsum %r, %e \"mk,kn->mn\" : (tensor<18x21xf32>, tensor<21x35xf32>) -> tensor<18x35xf32>",
              {"tensor<9x2x21xf32>", "tensor<21x35xf32>"}, "tensor<18x35xf32>");
}

TEST_F(ContractionsTest, Epilogues) {
  for (const char *rows : {"1", "9"}) {
    std::string x = llvm::formatv("tensor<{0}x21xf32>", rows), y = llvm::formatv("tensor<{0}x70xf32>", rows);
    std::string product =
        llvm::formatv("%p = nn.einsum %a0, %a1 \"mk,kn->mn\" : ({0}, tensor<21x70xf32>) -> {1}\n", x, y);
    expectRight(product + llvm::formatv("%b = nn.add %p, %a2 : ({0}, tensor<70xf32>) -> {0}\n"
                                        "%g = nn.gelu %b : ({0}) -> {0}\n"
                                        "%y = nn.add %g, %a3 : ({0}, {0}) -> {0}",
                                        y)
                              .str(),
                {x, "tensor<21x70xf32>", "tensor<70xf32>", y}, y);
    std::string half = llvm::formatv("tensor<{0}x70xbf16>", rows);
    expectRight(product +
                    llvm::formatv("%r = nn.relu %p : ({0}) -> {0}\n%y = nn.cast %r : ({0}) -> {1}", y, half).str(),
                {x, "tensor<21x70xf32>"}, half);
    // A row needs all of its elements: no epilogue.
    expectRight(product + llvm::formatv("%y = nn.softmax %p dim 1 : ({0}) -> {0}", y).str(), {x, "tensor<21x70xf32>"},
                y);
  }
}

TEST_F(ContractionsTest, ResultsAreMoved) {
  for (const char *size : {"16", "12"}) {
    std::string flat = llvm::formatv("tensor<2x5x{0}xf32>", 4 * atoi(size)),
                w = llvm::formatv("tensor<21x{0}xf32>", 4 * atoi(size));
    std::string heads = llvm::formatv("tensor<2x5x4x{0}xf32>", size), y = llvm::formatv("tensor<2x4x5x{0}xf32>", size);
    expectRight(llvm::formatv("%p = nn.einsum %a0, %a1 \"bsd,dn->bsn\" : (tensor<2x5x21xf32>, {0}) -> {1}\n"
                              "%q = nn.add %p, %a2 : ({1}, {1}) -> {1}\n"
                              "%h = nn.reshape %q : ({1}) -> {2}\n"
                              "%y = nn.transpose %h [0, 2, 1, 3] : ({2}) -> {3}",
                              w, flat, heads, y)
                    .str(),
                {"tensor<2x5x21xf32>", w, flat}, y);
  }
}

TEST_F(ContractionsTest, SeveralResultsAndSeveralProducts) {
  EXPECT_EQ(check(R"(func.func @main(%x: tensor<9x21xf32>, %w: tensor<21x35xf32>, %b: tensor<35xf32>)
      -> (tensor<9x35xf32>, tensor<9x35xf32>, tensor<35x9xf32>, tensor<9x21xf32>) {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<9x21xf32>, tensor<21x35xf32>) -> tensor<9x35xf32>
    %0 = nn.add %p, %b : (tensor<9x35xf32>, tensor<35xf32>) -> tensor<9x35xf32>
    %1 = nn.relu %0 : (tensor<9x35xf32>) -> tensor<9x35xf32>
    %2 = nn.transpose %1 [1, 0] : (tensor<9x35xf32>) -> tensor<35x9xf32>
    %3 = nn.exp %x : (tensor<9x21xf32>) -> tensor<9x21xf32>
    return %0, %p, %2, %3 : tensor<9x35xf32>, tensor<9x35xf32>, tensor<35x9xf32>, tensor<9x21xf32>
  })"),
            "");
  EXPECT_EQ(
      check(R"(func.func @main(%x: tensor<9x21xf32>, %w: tensor<21x35xf32>, %v: tensor<35x6xf32>) -> tensor<9x6xf32> {
    %p = nn.einsum %x, %w "mk,kn->mn" : (tensor<9x21xf32>, tensor<21x35xf32>) -> tensor<9x35xf32>
    %1 = nn.relu %p : (tensor<9x35xf32>) -> tensor<9x35xf32>
    %y = nn.einsum %1, %v "mk,kn->mn" : (tensor<9x35xf32>, tensor<35x6xf32>) -> tensor<9x6xf32>
    return %y : tensor<9x6xf32>
  })"),
      "");
}

} // namespace
