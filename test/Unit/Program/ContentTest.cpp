#include "cleave/Program/Content.h"
#include "cleave/Program/File.h"
#include <gtest/gtest.h>

using namespace cleave::program;

namespace {

using namespace std::string_view_literals;

TEST(Content, IsToldByTheFirstBytes) {
  // Version 9, a producer; version 8, a graph.
  EXPECT_EQ(findContent("\x08\x09\x12\x04name"sv), Content::Onnx);
  EXPECT_EQ(findContent("\x08\x08\x3a\x10\x0a\x02"sv), Content::Onnx);
  EXPECT_EQ(findContent("ML\xefR\x06"sv), Content::Mlir);
  EXPECT_EQ(findContent("// a comment\n#mesh = #spmd.mesh<[\"x\"=4]>\n"), Content::Mlir);
  EXPECT_EQ(findContent("module {\n}\n"), Content::Mlir);
  EXPECT_EQ(findContent("# a plan\nmesh: {data: 2}\n"), Content::Plan);
  EXPECT_EQ(findContent("\xef\xbb\xbfmesh: {data: 2}\n"), Content::Plan);
  EXPECT_EQ(findContent("device: {flops: {f32: 1T}}\nlinks: {}\n"), Content::Cluster);
  EXPECT_EQ(findContent("0F0,0B0\n1F0,1B0\n"), Content::Schedule);
  EXPECT_EQ(findContent("PK\x03\x04\x14\0\0\0x.npy"sv), Content::Npz);
  EXPECT_EQ(findContent("PK\x03\x04\x14\0\0\0model/data.pkl"sv), Content::Torch);
  EXPECT_EQ(findContent("\x93NUMPY\x01\0"sv), Content::Npy);
  EXPECT_EQ(findContent("\x40\0\0\0\0\0\0\0{\"w\": {}}"sv), Content::Safetensors);
  EXPECT_EQ(findContent("\xff\xfem\0e\0"sv), Content::Utf16);
  for (std::string_view other : {""sv, "\0"sv, "{\"a\": 1}"sv, "devices: [0]"sv, "\x08"sv, "\x08\n\n\n\n\n"sv})
    EXPECT_EQ(findContent(other), Content::Unknown) << other;
}

TEST(Content, IsSaidWhereItIsAnother) {
  EXPECT_EQ(describeOther("mesh: {a: 2}", Content::Onnx, "a model"), "it is a plan, not a model");
  EXPECT_EQ(describeOther("mesh: {a: 2}", Content::Plan, "a plan"), "");
  EXPECT_EQ(describeOther("what", Content::Plan, "a plan"), "");
}

TEST(Content, MarksInFrontOfTextAreDropped) {
  EXPECT_EQ(dropByteOrderMark("\xef\xbb\xbf"
                              "a"),
            "a");
  EXPECT_EQ(dropByteOrderMark("a\xef\xbb\xbf"), "a\xef\xbb\xbf");
  EXPECT_EQ(dropByteOrderMark(""), "");
}

TEST(Content, HomesAreTheShells) {
  EXPECT_EQ(hintAtHome("/tmp"sv), "");
  EXPECT_EQ(hintAtHome(""sv), "");
  EXPECT_NE(hintAtHome("~/m.onnx"sv), "");
  EXPECT_NE(hintAtHome("~"sv), "");
}

} // namespace
