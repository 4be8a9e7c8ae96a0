//===- PartitionNeighborsTest.cpp - what ranks need of their neighbors --===//
//
// In every way that the rules allow, as PartitionTest.cpp: mirrors, samples by tables, elements of steps, parts of a concatenation,
// channels.
//
//===----------------------------------------------------------------------===//
#include "EveryChoice.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace cleave;

// Ranks sample at other coordinates each.
TEST(PartitionNeighbors, ResizeByTables) {
  auto resize = [](llvm::StringRef mode, llvm::StringRef how, int64_t from, int64_t to, llvm::StringRef flags = "",
                   llvm::StringRef type = "f32") {
    std::string shape = llvm::formatv("tensor<{0}x2x{1}>", from, type),
                made = llvm::formatv("tensor<{0}x2x{1}>", to, type);
    check("%x: " + shape,
          llvm::formatv("%0 = nn.resize {0} %x coordinates {1} scales [{2:f17}, 1.0] {3} : ({4}) -> {5}", mode, how,
                        double(to) / double(from), flags, shape, made)
              .str());
  };
  for (const char *mode : {"linear", "cubic", "nearest"})
    for (auto [from, to] : {std::pair(8, 16), std::pair(16, 8), std::pair(8, 12), std::pair(12, 8), std::pair(12, 12)})
      resize(mode, "align_corners rounding round_prefer_floor", from, to);
  for (const char *rounding : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
    resize("nearest", (llvm::Twine("asymmetric rounding ") + rounding).str(), 8, 12);
  resize("cubic", "half_pixel rounding floor", 8, 16, "exclude_outside");
  resize("cubic", "half_pixel rounding floor", 16, 8, "exclude_outside antialias");
  resize("linear", "half_pixel_symmetric rounding floor", 24, 8, "antialias");
  resize("linear", "pytorch_half_pixel rounding floor", 24, 12);
  resize("linear", "align_corners rounding floor", 8, 16, "", "f16");
  resize("nearest", "align_corners rounding floor", 8, 16, "", "i32");
  // Integers are rounded once, at the end.
  for (const char *type : {"i32", "ui8", "i64"}) {
    resize("linear", "align_corners rounding floor", 8, 16, "", type);
    resize("cubic", "half_pixel rounding floor", 12, 8, "exclude_outside", type);
  }
  // What ranks make begins between two positions.
  for (auto [from, to] : {std::pair(7, 14), std::pair(9, 6), std::pair(5, 15), std::pair(14, 7), std::pair(6, 10)}) {
    resize("linear", "half_pixel rounding floor", from, to);
    resize("cubic", "half_pixel rounding floor", from, to, "", "i32");
    if (to % from != 0) // else it repeats elements
      resize("nearest", "half_pixel rounding round_prefer_floor", from, to);
  }
  // The second of two dims whose sums are rounded once: not by a table, the first one is.
  check("%x: tensor<12x12xi32>",
        "%0 = nn.resize linear %x coordinates align_corners rounding floor scales [2.0, 2.0] : "
        "(tensor<12x12xi32>) -> tensor<24x24xi32>");
  // Two dims, the one by its coordinates and the other by a table.
  check("%x: tensor<8x8xf32>", "%0 = nn.resize linear %x coordinates half_pixel rounding floor scales [2.0, 1.5] : "
                               "(tensor<8x8xf32>) -> tensor<16x12xf32>");
}

TEST(PartitionNeighbors, ElementsOfSteps) {
  // Steps that lie alike in all shards, forwards and backwards; what other dims drop is not sent.
  check("%x: tensor<24x6xf32>",
        "%0 = nn.slice %x starts [3, 2] sizes [8, 4] steps [2, 1] : (tensor<24x6xf32>) -> tensor<8x4xf32>");
  check("%x: tensor<24x8xf32>",
        "%0 = nn.slice %x starts [22, 1] sizes [8, 4] steps [-2, 2] : (tensor<24x8xf32>) -> tensor<8x4xf32>");
  check("%x: tensor<24x24xf32>",
        "%0 = nn.slice %x starts [23, 1] sizes [12, 6] steps [-2, 3] : (tensor<24x24xf32>) -> tensor<12x6xf32>");
}

TEST(PartitionNeighbors, MirroredEdges) {
  check("%x: tensor<12x8xf32>",
        "%0 = nn.pad reflect %x low [2, 0] high [2, 4] : (tensor<12x8xf32>) -> tensor<16x12xf32>");
  // From further than one neighbor, and only behind.
  check("%x: tensor<8xi32>", "%0 = nn.pad reflect %x low [7] high [5] : (tensor<8xi32>) -> tensor<20xi32>");
  check("%x: tensor<8xf32>", "%0 = nn.pad reflect %x low [0] high [4] : (tensor<8xf32>) -> tensor<12xf32>");
}

TEST(PartitionNeighbors, ManyParts) {
  std::string arguments, operands, types;
  for (int part = 0; part < 11; ++part) {
    std::string comma = part ? ", " : "", name = "%a" + std::to_string(part),
                type = "tensor<" + std::to_string(part % 3 ? 12 : 24) + "x2xf32>";
    arguments += comma + name + ": " + type;
    operands += comma + name;
    types += comma + type;
  }
  check(arguments, "%0 = nn.concat " + operands + " dim 0 : (" + types + ") -> tensor<180x2xf32>");
}

// All at once: equal parts, others, of what no rank count divides, and more of them than ranks.
TEST(PartitionNeighbors, PartsTakenApart) {
  check("%x: tensor<36x4xf32>", "%0:3 = nn.split %x dim 0 parts [12, 12, 12] : (tensor<36x4xf32>) -> "
                                "(tensor<12x4xf32>, tensor<12x4xf32>, tensor<12x4xf32>)");
  check("%x: tensor<2x48xi8>", "%0:2 = nn.split %x dim 1 parts [12, 36] : (tensor<2x48xi8>) -> "
                               "(tensor<2x12xi8>, tensor<2x36xi8>)");
  check("%x: tensor<2x19xf32>", "%0:3 = nn.split %x dim 1 parts [5, 2, 12] : (tensor<2x19xf32>) -> "
                                "(tensor<2x5xf32>, tensor<2x2xf32>, tensor<2x12xf32>)");
  check("%x: tensor<26xi1>",
        "%0:13 = nn.split %x dim 0 parts [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2] : (tensor<26xi1>) -> "
        "(tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, "
        "tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xi1>)");
}

// Shards that do not divide, in which steps lie alike all the same (14 rows on 4 ranks, by 2 and by 4), and in which they do not.
TEST(PartitionNeighbors, ElementsOfStepsInUnevenShards) {
  check("%x: tensor<14x3xf32>",
        "%0 = nn.slice %x starts [1, 0] sizes [6, 3] steps [2, 1] : (tensor<14x3xf32>) -> tensor<6x3xf32>");
  check("%x: tensor<15x3xi32>",
        "%0 = nn.slice %x starts [13, 0] sizes [6, 3] steps [-2, 1] : (tensor<15x3xi32>) -> tensor<6x3xi32>");
  check("%x: tensor<22xf32>", "%0 = nn.slice %x starts [2] sizes [5] steps [4] : (tensor<22xf32>) -> tensor<5xf32>");
  check("%x: tensor<23xf32>", "%0 = nn.slice %x starts [22] sizes [7] steps [-3] : (tensor<23xf32>) -> tensor<7xf32>");
}

TEST(PartitionNeighbors, Channels) {
  // Of an even number; from further than one neighbor.
  check("%x: tensor<4x12xf32>",
        "%0 = nn.lrn %x size 4 alpha 1.0e-1 beta 0.5 k 2.0 : (tensor<4x12xf32>) -> tensor<4x12xf32>");
  check("%x: tensor<2x8x2xf32>",
        "%0 = nn.lrn %x size 11 alpha 1.0e-1 beta 0.75 k 1.0 : (tensor<2x8x2xf32>) -> tensor<2x8x2xf32>");
}
