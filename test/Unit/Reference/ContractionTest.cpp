//===- ContractionTest.cpp - einsum, against its definition ---------------===//
#include "Harness.h"

#include <map>
#include <random>

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

/// An operand of an equation: its shape as text, and its extents.
using Shapes = std::vector<std::vector<int64_t>>;

class ContractionTest : public EvaluatorTest {
protected:
  static std::string typeOf(ArrayRef<int64_t> shape, StringRef element) {
    std::string text = "tensor<";
    for (int64_t extent : shape)
      text += std::to_string(extent) + "x";
    return text + element.str() + ">";
  }

  /// The sum of products, one index tuple after the other; all letters run from 0 to the largest extent they have.
  static Doubles define(const nn::EinsumTerms &terms, const Shapes &shapes, const std::vector<Doubles> &values) {
    std::map<char, int64_t> extents, index;
    for (size_t i = 0; i < shapes.size(); ++i)
      for (size_t dim = 0; dim < shapes[i].size(); ++dim) {
        int64_t &extent = extents.try_emplace(terms.inputs[i][dim], 1).first->second;
        extent = extent == 1 ? shapes[i][dim] : extent;
      }
    int64_t total = 1, size = 1;
    for (auto [letter, extent] : extents)
      total *= extent;
    for (char letter : terms.result)
      size *= extents[letter];
    Doubles result(size, 0);
    for (int64_t number = 0; number < total; ++number) {
      int64_t rest = number, to = 0;
      for (auto [letter, extent] : extents) {
        index[letter] = rest % extent;
        rest /= extent;
      }
      double term = 1;
      for (size_t i = 0; i < shapes.size(); ++i) {
        int64_t from = 0;
        for (size_t dim = 0; dim < shapes[i].size(); ++dim)
          from = from * shapes[i][dim] + (shapes[i][dim] == 1 ? 0 : index[terms.inputs[i][dim]]);
        term *= values[i][from];
      }
      for (char letter : terms.result)
        to = to * extents[letter] + index[letter];
      result[to] += term;
    }
    return result;
  }

  /// Random small integers, so that sums are exact in every type.
  void check(StringRef equation, const Shapes &shapes, ArrayRef<int64_t> resultShape, StringRef element = "f32") {
    std::mt19937 random(shapes.size() + equation.size());
    std::vector<Doubles> values;
    std::vector<Tensor> inputs;
    std::string arguments, names, types;
    for (size_t i = 0; i < shapes.size(); ++i) {
      int64_t count = 1;
      for (int64_t extent : shapes[i])
        count *= extent;
      Doubles elements(count);
      for (double &value : elements)
        value = int(random() % 7) - 3;
      std::string type = typeOf(shapes[i], element), separator = i ? ", " : "";
      inputs.push_back(make(type, elements));
      values.push_back(elements);
      arguments += separator + "%a" + std::to_string(i) + ": " + type;
      names += separator + "%a" + std::to_string(i);
      types += separator + type;
    }
    std::string result = typeOf(resultShape, element);
    EXPECT_EQ(run("func.func @main(" + arguments + ") -> " + result + " { %y = nn.einsum " + names + " \"" +
                      equation.str() + "\" : (" + types + ") -> " + result + " return %y : " + result + " }",
                  inputs),
              define(*nn::parseEinsum(equation), shapes, values))
        << equation.str();
  }
};

TEST_F(ContractionTest, MatrixProductsOfEveryLayout) {
  check("ik,kj->ij", {{5, 7}, {7, 6}}, {5, 6});
  check("ki,kj->ij", {{7, 5}, {7, 6}}, {5, 6});
  check("ik,jk->ij", {{5, 7}, {6, 7}}, {5, 6});
  check("ik,kj->ji", {{5, 7}, {7, 6}}, {6, 5});
  check("bik,bkj->bij", {{3, 5, 7}, {3, 7, 6}}, {3, 5, 6});
  check("bsk,kn->bsn", {{2, 3, 9}, {9, 20}}, {2, 3, 20});
  check("bshd,hdn->bsn", {{2, 3, 2, 5}, {2, 5, 9}}, {2, 3, 9});
  check("bqhd,bkhd->bhqk", {{2, 5, 3, 4}, {2, 6, 3, 4}}, {2, 3, 5, 6});
  check("bhqk,bkhd->bqhd", {{2, 3, 5, 6}, {2, 6, 3, 4}}, {2, 5, 3, 4});
  check("bkgqd,bksd->bkgqs", {{2, 2, 3, 4, 5}, {2, 2, 6, 5}}, {2, 2, 3, 4, 6});
}

// Larger than one block in every direction, with remainders.
TEST_F(ContractionTest, ProductsOfSeveralBlocks) {
  check("ik,kj->ij", {{150, 300}, {300, 40}}, {150, 40});
  check("ik,kj->ij", {{10, 20}, {20, 2100}}, {10, 2100});
  check("ik,jk->ji", {{33, 270}, {17, 270}}, {17, 33});
}

TEST_F(ContractionTest, VectorsAndScalars) {
  check("i,i->", {{9}, {9}}, {});
  check("i,j->ij", {{3}, {4}}, {3, 4});
  check("ij,j->i", {{3, 4}, {4}}, {3});
  check("j,ij->i", {{4}, {3, 4}}, {3});
  check("i,->i", {{5}, {}}, {5});
  check(",->", {{}, {}}, {});
  check("ij,ij->ij", {{3, 4}, {3, 4}}, {3, 4});
  check("ij,ji->ij", {{3, 4}, {4, 3}}, {3, 4});
  check("bi,b->bi", {{3, 4}, {3}}, {3, 4});
}

TEST_F(ContractionTest, OneOperand) {
  check("ijk->ki", {{2, 3, 4}}, {4, 2});
  check("ij->", {{3, 5}}, {});
  check("ij->ji", {{3, 5}}, {5, 3});
}

TEST_F(ContractionTest, ManyOperands) {
  check("ab,bc,cd->ad", {{2, 3}, {3, 4}, {4, 5}}, {2, 5});
  check("ab,cb,cad,d->b", {{2, 3}, {4, 3}, {4, 2, 5}, {5}}, {3});
  check("i,j,k->kij", {{2}, {3}, {4}}, {4, 2, 3});
}

// A letter that only one operand has and nobody needs is summed first.
TEST_F(ContractionTest, LettersThatNobodyNeeds) {
  check("ikx,kjy->ij", {{3, 4, 2}, {4, 5, 3}}, {3, 5});
  check("xa,yb->ab", {{2, 3}, {4, 5}}, {3, 5});
}

TEST_F(ContractionTest, DimsOfSizeOneRepeat) {
  check("bik,bkj->bij", {{1, 3, 4}, {5, 4, 2}}, {5, 3, 2});
  check("bik,bkj->bij", {{5, 3, 1}, {1, 4, 2}}, {5, 3, 2});
  check("ij,ij->ij", {{1, 4}, {3, 1}}, {3, 4});
}

TEST_F(ContractionTest, SumsOverNothingAreZero) {
  check("ik,kj->ij", {{2, 0}, {0, 3}}, {2, 3});
  check("ik,kj->ij", {{0, 4}, {4, 3}}, {0, 3});
}

TEST_F(ContractionTest, EveryElementType) {
  for (StringRef element : {"f16", "bf16", "f64", "i8", "i16", "i32", "i64"})
    check("ik,kj->ij", {{4, 6}, {6, 5}}, {4, 5}, element);
}

// 64 products of 2 * 3 are 384, and 384 - 256 = 128 is -128 in i8.
TEST_F(ContractionTest, IntegersWrapInTheirOwnType) {
  EXPECT_EQ(eval(R"(%a = nn.constant dense<2> : tensor<64xi8> -> tensor<64xi8>
                    %b = nn.constant dense<3> : tensor<64xi8> -> tensor<64xi8>
                    %y = nn.einsum %a, %b "i,i->" : (tensor<64xi8>, tensor<64xi8>) -> tensor<i8>)",
                 "tensor<i8>"),
            Doubles{-128});
}

// Counting in f16 stops at 2048; counted in f32, the sum of 4,100 ones is exact, and f16 can hold it.
TEST_F(ContractionTest, SixteenBitFloatsAreSummedInF32) {
  EXPECT_EQ(eval(R"(%a = nn.constant dense<1.0> : tensor<4100xf16> -> tensor<4100xf16>
                    %y = nn.einsum %a, %a "i,i->" : (tensor<4100xf16>, tensor<4100xf16>) -> tensor<f16>)",
                 "tensor<f16>"),
            Doubles{4100});
}

} // namespace
