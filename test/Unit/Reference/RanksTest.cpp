//===- RanksTest.cpp - collectives, shards and whole programs on ranks ----===//
//
// The mesh is {a = 2, b = 2} with ranks 0..3 at (0,0), (0,1), (1,0), (1,1), or one axis whose digits are named.
// Expected values by hand from the ops' descriptions.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include "cleave/Support/Digest.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;
using Doubles = std::vector<double>;

namespace {

class RanksTest : public EvaluatorTest {
protected:
  /// What each of four ranks gets from `body` on a mesh, where %x : tensor<2xf32> holds (10 r, 10 r + 1) on rank r and
  /// %y of `type` is the result.
  std::vector<Doubles> onRanks(StringRef mesh, StringRef body, StringRef type) {
    std::string text =
        ("module attributes {spmd.mesh = #spmd.mesh<" + mesh + ">} { func.func @main(%x: tensor<2xf32>) -> " + type +
         " {\n" + body + "\nreturn %y : " + type + " } }")
            .str();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << errors;
    if (!module)
      return {};
    SmallVector<SmallVector<Tensor>> inputs, outputs;
    for (double rank = 0; rank < 4; ++rank)
      inputs.push_back({make("tensor<2xf32>", {10 * rank, 10 * rank + 1})});
    EXPECT_TRUE(succeeded(reference::run(module->lookupSymbol<func::FuncOp>("main"), inputs, outputs))) << errors;
    std::vector<Doubles> results;
    for (const SmallVector<Tensor> &ofRank : outputs)
      results.push_back(toDoubles(ofRank.front()));
    return results;
  }
  static constexpr const char *kSquare = "[\"a\"=2, \"b\"=2]";
  static constexpr const char *kLine = "[\"x\"=4]";
};

TEST_F(RanksTest, AllReduceCombinesRanksAlongAxes) {
  EXPECT_EQ(onRanks(kSquare, "%y = spmd.all_reduce sum %x over {\"a\"} : tensor<2xf32>", "tensor<2xf32>"),
            (std::vector<Doubles>{{20, 22}, {40, 42}, {20, 22}, {40, 42}}));
  EXPECT_EQ(onRanks(kSquare, "%y = spmd.all_reduce max %x over {\"b\"} : tensor<2xf32>", "tensor<2xf32>"),
            (std::vector<Doubles>{{10, 11}, {10, 11}, {30, 31}, {30, 31}}));
  EXPECT_EQ(onRanks(kSquare, "%y = spmd.all_reduce prod %x over {\"a\", \"b\"} : tensor<2xf32>", "tensor<2xf32>")[2],
            (Doubles{0, 1 * 11 * 21 * 31}));
  EXPECT_EQ(onRanks(kLine, "%y = spmd.all_reduce min %x over {\"x\":(1)2} : tensor<2xf32>", "tensor<2xf32>"),
            (std::vector<Doubles>{{0, 1}, {10, 11}, {0, 1}, {10, 11}}));
}

// Major to minor as listed: over {b, a} the order of the pieces is ranks 0, 2, 1, 3.
TEST_F(RanksTest, AllGatherPlacesPiecesInTheOrderOfItsAxes) {
  EXPECT_EQ(onRanks(kSquare, "%y = spmd.all_gather %x dims [{\"b\", \"a\"}] : (tensor<2xf32>) -> tensor<8xf32>",
                    "tensor<8xf32>")[3],
            (Doubles{0, 1, 20, 21, 10, 11, 30, 31}));
  EXPECT_EQ(
      onRanks(kLine, "%y = spmd.all_gather %x dims [{\"x\":(2)2}] : (tensor<2xf32>) -> tensor<4xf32>", "tensor<4xf32>"),
      (std::vector<Doubles>{{0, 1, 10, 11}, {0, 1, 10, 11}, {20, 21, 30, 31}, {20, 21, 30, 31}}));
}

TEST_F(RanksTest, SlicesAndReduceScatter) {
  EXPECT_EQ(
      onRanks(kSquare, "%y = spmd.local_slice %x dims [{\"b\"}] : (tensor<2xf32>) -> tensor<1xf32>", "tensor<1xf32>"),
      (std::vector<Doubles>{{0}, {11}, {20}, {31}}));
  EXPECT_EQ(onRanks(kSquare, "%y = spmd.reduce_scatter sum %x dims [{\"b\"}] : (tensor<2xf32>) -> tensor<1xf32>",
                    "tensor<1xf32>"),
            (std::vector<Doubles>{{10}, {12}, {50}, {52}}));
}

// Two ranks with rows (r, r+1) of a 2x2 matrix end with its columns.
TEST_F(RanksTest, AllToAllMovesAnAxisBetweenDims) {
  EXPECT_EQ(onRanks(kSquare, R"(%r = nn.reshape %x : (tensor<2xf32>) -> tensor<1x2xf32>
      %t = spmd.all_to_all %r gather [{"b"}, {}] slice [{}, {"b"}] : (tensor<1x2xf32>) -> tensor<2x1xf32>
      %y = nn.reshape %t : (tensor<2x1xf32>) -> tensor<2xf32>)",
                    "tensor<2xf32>"),
            (std::vector<Doubles>{{0, 10}, {1, 11}, {20, 30}, {21, 31}}));
}

// From [a, b] (a major) to [b, a]: rank (0,1) wants piece 2, which rank (1,0) holds.
TEST_F(RanksTest, PermuteFetchesPiecesFromTheirHolders) {
  EXPECT_EQ(onRanks(kSquare, R"(%y = spmd.permute %x from #spmd.sharding<#spmd.mesh<["a"=2, "b"=2]>, [{"a", "b"}]>
          to #spmd.sharding<#spmd.mesh<["a"=2, "b"=2]>, [{"b", "a"}]> of tensor<8xf32> : (tensor<2xf32>) -> tensor<2xf32>)",
                    "tensor<2xf32>"),
            (std::vector<Doubles>{{0, 1}, {20, 21}, {10, 11}, {30, 31}}));
}

// Along {b}, ranks 0 and 1 hold 0 1 10 11, ranks 2 and 3 hold 20 21 30 31.
TEST_F(RanksTest, WindowsFetchTheEdgesOfNeighbors) {
  auto get = [&](std::string how) { return onRanks(kSquare, "%y = spmd.window %x " + how, "tensor<4xf32>"); };
  EXPECT_EQ(get("dims [{\"b\"}] steps [2] lows [-1] highs [3] fill 7.0 : f32 : (tensor<2xf32>) -> tensor<4xf32>"),
            (std::vector<Doubles>{{7, 0, 1, 10}, {1, 10, 11, 7}, {7, 20, 21, 30}, {21, 30, 31, 7}}));
  EXPECT_EQ(get("dims [{\"b\"}] steps [2] lows [-1] highs [3] : (tensor<2xf32>) -> tensor<4xf32>"),
            (std::vector<Doubles>{{0, 0, 1, 10}, {1, 10, 11, 11}, {20, 20, 21, 30}, {21, 30, 31, 31}}));
  EXPECT_EQ(get("dims [{\"b\"}] steps [2] lows [-1] highs [3] wraps : (tensor<2xf32>) -> tensor<4xf32>"),
            (std::vector<Doubles>{{11, 0, 1, 10}, {1, 10, 11, 0}, {31, 20, 21, 30}, {21, 30, 31, 20}}));
  EXPECT_EQ(get("dims [{\"b\"}] steps [2] lows [-1] highs [3] reflects : (tensor<2xf32>) -> tensor<4xf32>"),
            (std::vector<Doubles>{{1, 0, 1, 10}, {1, 10, 11, 10}, {21, 20, 21, 30}, {21, 30, 31, 30}}));
  // From the end.
  EXPECT_EQ(get("dims [{\"b\"}] steps [-2] lows [1] highs [5] fill 7.0 : f32 : (tensor<2xf32>) -> tensor<4xf32>"),
            (std::vector<Doubles>{{1, 10, 11, 7}, {7, 0, 1, 10}, {21, 30, 31, 7}, {7, 20, 21, 30}}));
  // Over more than one neighbor, and moved: rank r along {b, a} has number 2 (r % 2) + r / 2 there.
  EXPECT_EQ(get("dims [{\"b\", \"a\"}] steps [1] lows [3] highs [7] fill 7.0 : f32 : (tensor<2xf32>) -> tensor<4xf32>"),
            (std::vector<Doubles>{{21, 10, 11, 30}, {11, 30, 31, 7}, {10, 11, 30, 31}, {30, 31, 7, 7}}));
}

// Two parts of two, a position of each on a rank: of 0 | 10 and 1 | 11 the first rank gets the first part. Over both axes, {b, a}
// being the order of the ranks, parts 0 20 10 30 and 1 21 11 31, two positions on a rank.
TEST_F(RanksTest, JoinPutsPartsOneBehindTheOther) {
  auto get = [&](std::string how) {
    return onRanks(kSquare, "%y = spmd.join %x dim 0 parts " + how + " : (tensor<2xf32>) -> tensor<2xf32>",
                   "tensor<2xf32>");
  };
  EXPECT_EQ(get("[2, 2] over {\"b\"}"), (std::vector<Doubles>{{0, 10}, {1, 11}, {20, 30}, {21, 31}}));
  EXPECT_EQ(get("[4, 4] over {\"b\", \"a\"}"), (std::vector<Doubles>{{0, 20}, {1, 21}, {10, 30}, {11, 31}}));
  EXPECT_EQ(get("[4] over {\"b\"}"), (std::vector<Doubles>{{0, 1}, {10, 11}, {20, 21}, {30, 31}}));
}

// And back: ranks of a group have 0 | 1 and 10 | 11, two parts of two, of which each gets its half: 0 and 10, 1 and 11.
TEST_F(RanksTest, SplitTakesPartsApart) {
  auto get = [&](std::string how) {
    return onRanks(kSquare, "%y = spmd.split %x dim 0 parts " + how + " : (tensor<2xf32>) -> tensor<2xf32>",
                   "tensor<2xf32>");
  };
  EXPECT_EQ(get("[2, 2] over {\"b\"}"), (std::vector<Doubles>{{0, 10}, {1, 11}, {20, 30}, {21, 31}}));
  // All are 0 1 20 21 10 11 30 31 in the order of the ranks, and so the parts 0 1 20 21 and 10 11 30 31.
  EXPECT_EQ(get("[4, 4] over {\"b\", \"a\"}"), (std::vector<Doubles>{{0, 10}, {20, 30}, {1, 11}, {21, 31}}));
  EXPECT_EQ(get("[4] over {\"b\"}"), (std::vector<Doubles>{{0, 1}, {10, 11}, {20, 21}, {30, 31}}));
}

// Along {b} rank 1 (and 3) has one element and padding, which nobody gets: beyond it lies what lies beyond the value.
TEST_F(RanksTest, WindowsOfUnevenShardsEndWhereTheValueDoes) {
  auto get = [&](std::string how) {
    return onRanks(kSquare,
                   "%y = spmd.window %x dims [{\"b\"}] steps [2] lows [-1] highs [3] " + how +
                       " : (tensor<2xf32>) -> tensor<4xf32>",
                   "tensor<4xf32>");
  };
  EXPECT_EQ(get("fill 7.0 : f32 missing [1] from [-1] to [5] on [2]"),
            (std::vector<Doubles>{{7, 0, 1, 10}, {1, 10, 7, 7}, {7, 20, 21, 30}, {21, 30, 7, 7}}));
  EXPECT_EQ(get("missing [1] from [-1] to [5] on [2]"),
            (std::vector<Doubles>{{0, 0, 1, 10}, {1, 10, 10, 10}, {20, 20, 21, 30}, {21, 30, 30, 30}}));
  EXPECT_EQ(get("wraps missing [1] from [-1] to [5] on [2]"),
            (std::vector<Doubles>{{10, 0, 1, 10}, {1, 10, 0, 1}, {30, 20, 21, 30}, {21, 30, 20, 21}}));
  // What is not needed is not fetched: the evaluator has zeros there.
  EXPECT_EQ(get("missing [0] from [-1] to [3] on [1]"),
            (std::vector<Doubles>{{0, 0, 1, 10}, {0, 0, 0, 0}, {20, 20, 21, 30}, {0, 0, 0, 0}}));
  EXPECT_EQ(get("missing [0] from [0] to [2] on [2]"),
            (std::vector<Doubles>{{0, 0, 1, 0}, {1, 0, 0, 0}, {0, 20, 21, 0}, {21, 0, 0, 0}}));
}

// On a mesh {a, b} the first ranks along {b} are 0 and 2, along {b, a} rank 0 alone.
TEST_F(RanksTest, KeepOnFirstLeavesTheOthersWhatChangesNothing) {
  double infinity = std::numeric_limits<double>::infinity();
  auto kept = [&](std::string how) {
    return onRanks(kSquare, "%y = spmd.keep_on_first " + how + " : tensor<2xf32>", "tensor<2xf32>");
  };
  EXPECT_EQ(kept("sum %x over {\"b\"}"), (std::vector<Doubles>{{0, 1}, {0, 0}, {20, 21}, {0, 0}}));
  EXPECT_EQ(kept("prod %x over {\"a\"}"), (std::vector<Doubles>{{0, 1}, {10, 11}, {1, 1}, {1, 1}}));
  EXPECT_EQ(kept("max %x over {\"b\", \"a\"}"),
            (std::vector<Doubles>{{0, 1}, {-infinity, -infinity}, {-infinity, -infinity}, {-infinity, -infinity}}));
  EXPECT_EQ(kept("min %x over {\"b\"}")[3], (Doubles{infinity, infinity}));
}

TEST_F(RanksTest, AxisIndexIsRowMajorAlongItsAxes) {
  EXPECT_EQ(onRanks(kSquare, "%y = spmd.axis_index {\"b\", \"a\"} : tensor<i64>", "tensor<i64>"),
            (std::vector<Doubles>{{0}, {2}, {1}, {3}}));
  EXPECT_EQ(onRanks(kLine, "%y = spmd.axis_index {\"x\":(2)2} : tensor<i64>", "tensor<i64>"),
            (std::vector<Doubles>{{0}, {1}, {0}, {1}}));
}

// bf16: 256 + 1 + 1 + 1 is 259 before rounding, which is to 260; rounded at each step it would stay 256.
TEST_F(RanksTest, SixteenBitSumsRoundOnce) {
  EXPECT_EQ(onRanks(kLine, R"(%i = spmd.axis_index {"x"} : tensor<i64>
      %z = nn.constant dense<0> : tensor<i64> -> tensor<i64>
      %c = nn.eq %i, %z : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %big = nn.constant dense<256.0> : tensor<bf16> -> tensor<bf16>
      %one = nn.constant dense<1.0> : tensor<bf16> -> tensor<bf16>
      %p = nn.select %c, %big, %one : (tensor<i1>, tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      %y = spmd.all_reduce sum %p over {"x"} : tensor<bf16>)",
                    "tensor<bf16>"),
            (std::vector<Doubles>(4, Doubles{260})));
}

//===----------------------------------------------------------------------===//
// Whole programs
//===----------------------------------------------------------------------===//

/// A row-parallel product: x [2, 4] and w [4, 2] split along the dim they share.
const char *kRowParallel = R"(
  #m = #spmd.mesh<["x"=2]>
  module attributes {spmd.mesh = #m} {
    nn.param @w : tensor<4x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
    func.func @main(%x: tensor<2x2xf32> {spmd.global = tensor<2x4xf32, #spmd.sharding<#m, [{}, {"x"}]>>})
        -> (tensor<2x2xf32> {spmd.global = tensor<2x2xf32, #spmd.sharding<#m, [{}, {}]>>}) {
      %w = nn.load @w shard(#spmd.sharding<#m, [{"x"}, {}]>) : tensor<2x2xf32>
      %p = nn.einsum %x, %w "ik,kj->ij" : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      REDUCE
      return %y : tensor<2x2xf32>
    }
  })";

TEST_F(RanksTest, GlobalInputsAreSplitAndResultsPutTogether) {
  std::string text = kRowParallel;
  text.replace(text.find("REDUCE"), 6, "%y = spmd.all_reduce sum %p over {\"x\"} : tensor<2x2xf32>");
  // numpy: arange(8).reshape(2, 4) @ arange(1, 9).reshape(4, 2)
  EXPECT_EQ(run(text, make("tensor<2x4xf32>", {0, 1, 2, 3, 4, 5, 6, 7})), (Doubles{34, 40, 98, 120}));
}

TEST_F(RanksTest, CopiesThatDifferAreAnError) {
  std::string text = kRowParallel;
  text.replace(text.find("REDUCE"), 6,
               "%z = nn.neg %p : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
               "%y = nn.neg %z : (tensor<2x2xf32>) -> tensor<2x2xf32>");
  EXPECT_EQ(fail(text, make("tensor<2x4xf32>", {0, 1, 2, 3, 4, 5, 6, 7})),
            "gives different copies of result 0 on ranks 0 and 1, first at element 0 of their shards\n"
            "note: the result is made here\n");
}

TEST_F(RanksTest, NanCopiesAreEqual) {
  EXPECT_EQ(run(R"(
    #m = #spmd.mesh<["x"=2]>
    module attributes {spmd.mesh = #m} {
      func.func @main(%x: tensor<1xf32> {spmd.global = tensor<2xf32, #spmd.sharding<#m, [{"x"}]>>})
          -> (tensor<1xi1> {spmd.global = tensor<1xi1, #spmd.sharding<#m, [{}]>>},
              tensor<1xf32> {spmd.global = tensor<1xf32, #spmd.sharding<#m, [{}]>>}) {
        %y = nn.sqrt %x : (tensor<1xf32>) -> tensor<1xf32>
        %n = nn.is_nan %y : (tensor<1xf32>) -> tensor<1xi1>
        return %n, %y : tensor<1xi1>, tensor<1xf32>
      }
    })",
                make("tensor<2xf32>", {-1, -2})),
            Doubles{1});
}

// Five rows on two ranks: the second holds rows 3, 4 and one of padding, which does not come back.
TEST_F(RanksTest, UnevenShardsArePaddedAndCropped) {
  EXPECT_EQ(run(R"(
    #m = #spmd.mesh<["x"=2]>
    #s = #spmd.sharding<#m, [{"x"}], uneven>
    module attributes {spmd.mesh = #m} {
      func.func @main(%x: tensor<3xi32> {spmd.global = tensor<5xi32, #s>})
          -> (tensor<3xi32> {spmd.global = tensor<5xi32, #s>}) {
        %y = nn.add %x, %x : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
        return %y : tensor<3xi32>
      }
    })",
                make("tensor<5xi32>", {1, 2, 3, 4, 5})),
            (Doubles{2, 4, 6, 8, 10}));
}

// Three ranks that hold a copy each, taken as terms: 7 + 7 + 7, 7 * 7 * 7, and their extrema.
TEST_F(RanksTest, PartialResultsAreCombined) {
  for (auto [kind, result] : {std::pair("sum", 21.), {"prod", 343.}, {"max", 7.}, {"min", 7.}})
    EXPECT_EQ(run(R"(
    #m = #spmd.mesh<["x"=3]>
    module attributes {spmd.mesh = #m} {
      func.func @main(%x: tensor<1xf32> {spmd.global = tensor<1xf32, #spmd.sharding<#m, [{}]>>})
          -> (tensor<1xf32> {spmd.global = tensor<1xf32, #spmd.sharding<#m, [{}], partial = {"x": )" +
                      std::string(kind) + R"(}>>}) {
        return %x : tensor<1xf32>
      }
    })",
                  make("tensor<1xf32>", {7})),
              (Doubles{result}))
        << kind;
}

// The first rank of each group gets the value, the others what changes nothing: the ranks' tensors one after the other.
TEST_F(RanksTest, PartialArgumentsAreTheValueAndNothing) {
  auto ranksOf = [&](const char *kind, const char *type, double value) {
    std::string plain = "tensor<1x" + std::string(type) + ">";
    return run(R"(
    #m = #spmd.mesh<["x"=2, "y"=2]>
    module attributes {spmd.mesh = #m} {
      func.func @main(%x: )" +
                   plain + " {spmd.global = tensor<1x" + type + ", #spmd.sharding<#m, [{}], partial = {\"y\": " + kind +
                   R"(}>>})
          -> (tensor<4x)" +
                   type + R"(> {spmd.global = tensor<4x)" + type + R"(, #spmd.sharding<#m, [{}]>>}) {
        %y = spmd.all_gather %x dims [{"x", "y"}] : ()" +
                   plain + ") -> tensor<4x" + type + R"(>
        return %y : tensor<4x)" +
                   type + R"(>
      }
    })",
               make(plain, {value}));
  };
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ranksOf("sum", "f32", 5), (Doubles{5, 0, 5, 0}));
  EXPECT_EQ(ranksOf("prod", "f32", 5), (Doubles{5, 1, 5, 1}));
  EXPECT_EQ(ranksOf("max", "f32", 5), (Doubles{5, -infinity, 5, -infinity}));
  EXPECT_EQ(ranksOf("min", "f16", 5), (Doubles{5, infinity, 5, infinity}));
  EXPECT_EQ(ranksOf("max", "i8", 5), (Doubles{5, -128, 5, -128}));
  EXPECT_EQ(ranksOf("min", "ui8", 5), (Doubles{5, 255, 5, 255}));
  EXPECT_EQ(ranksOf("max", "i1", 1), (Doubles{1, 0, 1, 0}));
}

// Before partitioning there is one rank, whatever the types say.
TEST_F(RanksTest, ReshardsAreTheIdentityBeforePartitioning) {
  EXPECT_EQ(run(R"(
    #m = #spmd.mesh<["x"=2]>
    module attributes {spmd.mesh = #m} {
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32, #spmd.sharding<#m, [{}]>> {
        %c = spmd.constrain %x : tensor<2xf32> to tensor<2xf32, #spmd.sharding<#m, [{"x"}]>>
        %y = spmd.reshard %c : tensor<2xf32, #spmd.sharding<#m, [{"x"}]>> to tensor<2xf32, #spmd.sharding<#m, [{}]>>
        return %y : tensor<2xf32, #spmd.sharding<#m, [{}]>>
      }
    })",
                make("tensor<2xf32>", {3, 4})),
            (Doubles{3, 4}));
}

TEST_F(RanksTest, InputsOfAnotherTypeAreRefused) {
  StringRef text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }";
  EXPECT_EQ(fail(text, make("tensor<2xi32>", {1, 2})),
            "takes 'tensor<2xf32>' as argument 0, but was given 'tensor<2xi32>'\n");
  EXPECT_EQ(fail(text), "takes 1 arguments, but was given 0\n");
}

// Parameters are read and not computed, and of a loop what is in it; everything else in the dialect has a kernel.
TEST_F(RanksTest, EveryOpOfTheModelCanBeEvaluated) {
  unsigned numOps = 0;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn")) {
    bool isComputed = !llvm::is_contained({"nn.param", "nn.load", "nn.loop", "nn.yield"}, name.getStringRef());
    EXPECT_EQ(canEvaluate(name), isComputed) << name.getStringRef().str();
    ++numOps;
  }
  EXPECT_GT(numOps, 90u);
}

TEST_F(RanksTest, OtherOpsAreRefused) {
  EXPECT_EQ(fail(R"(func.func private @other() -> tensor<1xf32>
      func.func @main() -> tensor<1xf32> { %y = func.call @other() : () -> tensor<1xf32> return %y : tensor<1xf32> })"),
            "'func.call' op cannot be evaluated: its callee's body is not one block\n");
}

//===----------------------------------------------------------------------===//
// Parameters in files
//===----------------------------------------------------------------------===//

class ParamsTest : public EvaluatorTest {
protected:
  ParamsTest() {
    int descriptor;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("weights", "bin", descriptor, path));
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    float values[] = {1.5, -2, 4};
    bytes = "!" + std::string(reinterpret_cast<const char *>(values), sizeof(values));
    stream << bytes;
  }
  ~ParamsTest() override { llvm::sys::fs::remove(path); }

  std::string program(StringRef place) {
    return ("module { nn.param @w : tensor<2xf32> = #nn.weight<\"" + path + "\", " + place +
            "> func.func @main() -> tensor<2xf32> { %y = nn.load @w : tensor<2xf32> return %y : tensor<2xf32> } }")
        .str();
  }
  SmallString<64> path;
  std::string bytes;
};

// Weights inside a model start anywhere, here at an odd byte.
TEST_F(ParamsTest, BytesAreReadFromAnyOffset) {
  EXPECT_EQ(run(program("1, 8")), (Doubles{1.5, -2}));
  EXPECT_EQ(run(program("5, 8")), (Doubles{-2, 4}));
}

TEST_F(ParamsTest, RangesOutsideTheFileAreErrors) {
  EXPECT_EQ(fail(program("6, 8")),
            "'nn.param' op is at offset 6 with 8 bytes, but '" + path.str().str() + "' has 13 bytes\n");
  EXPECT_NE(fail(program("9223372036854775807, 8")).find("has 13 bytes"), std::string::npos);
  llvm::sys::fs::remove(path);
  EXPECT_NE(fail(program("1, 8")).find("'nn.param' op cannot be read: "), std::string::npos);
}

// A file of the same name may be another one by now.
TEST_F(ParamsTest, OnlyTheFileThatWasMeantIsRead) {
  auto file = MappedFile::fromMemory("bytes", bytes);
  auto digestAt = [&](size_t offset) { return digestSample(*file, file->getBytes().substr(offset, 8)); };
  std::string digest = digestAt(1);
  EXPECT_EQ(run(program("1, 8 of 13 digest \"" + digest + "\"")), (Doubles{1.5, -2}));
  std::string start = "'nn.param' op @w is in another file than '" + path.str().str() + "' is now: ";
  EXPECT_EQ(fail(program("1, 8 of 14 digest \"" + digest + "\"")), start + "that had 14 bytes, this one has 13\n");
  EXPECT_EQ(fail(program("5, 8 of 13 digest \"" + digest + "\"")),
            start + "its bytes had the digest " + digest + ", these have " + digestAt(5) + "\n");
}

TEST_F(ParamsTest, ParametersLargerThanMemoryAreErrors) {
  EXPECT_EQ(fail(R"(module {
      nn.param @w : tensor<1000000000000000xf32> = dense<0.0> : tensor<1000000000000000xf32>
      func.func @main() -> tensor<1xf32> {
        %w = nn.load @w : tensor<1000000000000000xf32>
        %y = nn.slice %w starts [0] sizes [1] steps [1] : (tensor<1000000000000000xf32>) -> tensor<1xf32>
        return %y : tensor<1xf32> } })"),
            "'nn.param' op of type 'tensor<1000000000000000xf32>' does not fit into memory\n");
}

} // namespace
