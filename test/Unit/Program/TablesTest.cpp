//===- TablesTest.cpp - tables that are refused, by constraint ------------===//
#include "Refuse.h"

using namespace cleave::program;

TEST(TablesTest, P5Sizes) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.ranks = 0; }), "has 0 ranks, expected 1 to 1048576 (P5)");
  // 2^20 ranks that each would run more commands than anybody waits for.
  Program many = makeSingle();
  many.ranks = 1 << 20;
  many.axes = {{"x", 1 << 20}};
  for (uint32_t rank = 1; rank < many.ranks; ++rank)
    many.roles[0].ranks.push_back(rank);
  Command copy = at(many, 2);
  many.variants[0].lists[0].commands.assign(257, copy);
  EXPECT_EQ(refuse(many), "asks for more than 268435456 steps of checking (P5)");
}

TEST(TablesTest, P6Types) {
  auto with = [](std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return refuse(makeSingle(), [&](Program &p) { p.types[0] = {Element::F32, shape, strides}; });
  };
  EXPECT_EQ(with(std::vector<int64_t>(129, 1), {}), "type 0: has 129 dims, expected at most 128 (P6)");
  EXPECT_EQ(with({4, 8}, {8}), "type 0: has 1 strides for 2 dims (P6)");
  EXPECT_EQ(with({4, -8}, {}), "type 0: has a negative size or stride in dim 1 (P6)");
  EXPECT_EQ(with({4, 8}, {-8, 1}), "type 0: has a negative size or stride in dim 0 (P6)");
  EXPECT_EQ(with({int64_t(1) << 24, int64_t(1) << 23}, {}), "type 0: is larger than 2^48 bytes (P6)");
  EXPECT_EQ(with({INT64_MAX, INT64_MAX, 4}, {}), "type 0: is larger than 2^48 bytes (P6)");
  EXPECT_EQ(with({3, 8}, {int64_t(1) << 46, 1}), "type 0: is larger than 2^48 bytes (P6)");
  // Products that 64, and 128, bits do not hold.
  EXPECT_EQ(with({0, int64_t(1) << 62, int64_t(1) << 62}, {}), "type 0: is larger than 2^48 bytes (P6)");
}

TEST(TablesTest, P7Code) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.targets.clear(); }), "has no target (P7)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.targets.push_back({Device::Cuda, "sm_90", {}}); }),
            "target \"sm_90\" next to \"x86-64\": expected architectures of one kind of device (P7)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.modules[0].objects[0].target = 1; }),
            "module 0 \"kernels\": target 1 of 1 (P7)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.modules[0].objects[0].format = Format::Ptx; }),
            "module 0 \"kernels\": a ptx for host (P7)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.modules[0].objects[0].code = {}; }),
            "module 0 \"kernels\": an object without code (P7)");
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { p.modules[0].objects.pop_back(); }),
            "module 0 \"kernels\": has no object for target 1 (P7)");
  auto kernel = [](auto change) { return refuse(makeSingle(), [&](Program &p) { change(p.kernels[0]); }); };
  EXPECT_EQ(kernel([](Kernel &k) { k.module = 1; }), "kernel 0 \"gelu\": module 1 of 1 (P7)");
  EXPECT_EQ(kernel([](Kernel &k) { k.entry = std::string("a\0b", 3); }),
            "kernel 0 \"gelu\": entry \"a\\x00b\" is not a symbol (P7)");
  EXPECT_EQ(kernel([](Kernel &k) { k.grid.y = 0; }), "kernel 0 \"gelu\": a launch of size 0 (P7)");
  EXPECT_EQ(kernel([](Kernel &k) { k.block.x = 2; }), "kernel 0 \"gelu\": a launch of size 2 (P7)");
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { p.kernels[0].block = {1024, 2, 1}; }),
            "kernel 0 \"conv\": blocks of more than 1024 threads (P7)");
  EXPECT_EQ(kernel([](Kernel &k) { k.parameters[1].type = 9; }), "kernel 0 \"gelu\": parameter 1: type 9 of 1 (P7)");
  EXPECT_EQ(kernel([](Kernel &k) { k.parameters[0].alignment = 24; }),
            "kernel 0 \"gelu\": parameter 0: alignment 24 (P7)");
  EXPECT_EQ(kernel([](Kernel &k) { k.parameters[1].alias = 1; }),
            "kernel 0 \"gelu\": parameter 1: alias of 1, expected an earlier one or -1 (P7)");
}

TEST(TablesTest, P8Mesh) {
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.axes[1].size = 0; }), "mesh axis \"model\" of size 0 (P8)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.axes[1].size = 3; }),
            "a mesh of 6 places for 4 ranks (P8)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.devices[0] = 0; }),
            "devices are not one for each of 4 ranks (P8)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.rankTable.pop_back(); }),
            "the rank table has 7 entries, expected 4 x 2 (P8)");
}

TEST(TablesTest, P9Numbers) {
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Launch>(p, 0).operands[0].offset = {0, 2}; }),
            "rank 0, stream 0, command 0 (launch, node \"/fc/MatMul\"): an offset of 0 with column 2 (P9)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Launch>(p, 0).operands[0].offset = {0, -2}; }),
            "rank 0, stream 0, command 0 (launch, node \"/fc/MatMul\"): an offset of 0 with column -2 (P9)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Launch>(p, 0).operands[0].offset = {INT64_MAX, 0}; }),
            "rank 0, stream 0, command 0 (launch, node \"/fc/MatMul\"): an offset of 9223372036854775807 with column 0 "
            "(P9)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { as<Launch>(p, 0).scalars[0] = {1, 0}; }),
            "rank 0, stream 0, command 0 (launch, node \"/act/Gelu\"): a number 1 with column 0 (P9)");
}

TEST(TablesTest, P10Roles) {
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { p.roles[1].ranks = {2}; }), "roles have 3 of 4 ranks (P10)");
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { p.roles[1].ranks = {2, 1}; }),
            "role \"stage 1\": rank 1 is there twice (P10)");
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { p.roles[1].ranks = {2, 4}; }),
            "role \"stage 1\": rank 4 is not there (P10)");
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { p.roles[1].ranks = {}; }), "role \"stage 1\" has no ranks (P10)");
}

TEST(TablesTest, P11Groups) {
  auto with = [](uint32_t size, std::vector<uint32_t> ranks) {
    return refuse(makeTensorParallel(), [&](Program &p) { p.groups[0] = {"model", size, ranks}; });
  };
  EXPECT_EQ(with(2, {0, 1, 2}), "groups 0 \"model\": 3 ranks in groups of 2 (P11)");
  EXPECT_EQ(with(0, {0, 1}), "groups 0 \"model\": 2 ranks in groups of 0 (P11)");
  EXPECT_EQ(with(2, {0, 1, 2, 4}), "groups 0 \"model\": rank 4 of 4 (P11)");
  EXPECT_EQ(with(2, {0, 1, 2, 0}), "groups 0 \"model\": rank 0 is there twice (P11)");
}

TEST(TablesTest, P12Pieces) {
  auto with = [](auto change) { return refuse(makeCollectives(), [&](Program &p) { change(p.pieces[0]); }); };
  EXPECT_EQ(with([](Pieces &p) { p.boxes.pop_back(); }), "pieces 0: 17 numbers for 3 boxes of 2 dims (P12)");
  EXPECT_EQ(with([](Pieces &p) { p.ends.clear(), p.boxes.clear(); }), "pieces 0: there are none (P12)");
  EXPECT_EQ(with([](Pieces &p) { p.ends[1].target = 2; }), "pieces 0: rank 2 of 2 (P12)");
  EXPECT_EQ(with([](Pieces &p) { p.boxes[0] = -1; }), "pieces 0: a box with -1 (P12)");
  EXPECT_EQ(with([](Pieces &p) { p.boxes[16] = 1; }), "pieces 0: 1 and 2 fill the same elements of rank 0 (P12)");
}

TEST(TablesTest, P13Weights) {
  auto with = [](size_t weight, auto change) {
    return refuse(makeTensorParallel(), [&](Program &p) { change(p.weights[weight], p); });
  };
  EXPECT_EQ(with(0, [](Weight &, Program &p) { p.files[0].path = ""; }), "file \"\" is not a path (P13)");
  EXPECT_EQ(with(0, [](Weight &w, Program &) { w.type = 99; }),
            "weight \"w\": type 99 is not there or has strides (P13)");
  EXPECT_EQ(with(0, [](Weight &w, Program &) { w.length = 1020; }),
            "weight \"w\": has 1020 bytes, but f32[16, 16] takes 1024 (P13)");
  EXPECT_EQ(with(1, [](Weight &w, Program &) { w.splat = false; }),
            "weight \"bias\": has 4 bytes, but f32[16] takes 64 (P13)");
  EXPECT_EQ(with(0, [](Weight &w, Program &) { w.file = 1; }), "weight \"w\": file 1 of 1 (P13)");
  EXPECT_EQ(with(0, [](Weight &w, Program &) { w.offset = UINT64_MAX - 100; }),
            "weight \"w\": bytes 18446744073709551515 + 1024 do not lie in \"model.onnx\" of 5000 (P13)");
  EXPECT_EQ(with(0, [](Weight &w, Program &) { w.offset = 4000; }),
            "weight \"w\": bytes 4000 + 1024 do not lie in \"model.onnx\" of 5000 (P13)");
  EXPECT_EQ(with(0, [](Weight &w, Program &) { w.digest = "0011"; }),
            "weight \"w\": digest \"0011\", expected 16 hexadecimal digits (P13)");
}

// A stack of two weights "bias", f32[16] each.
TEST(TablesTest, P13Stacks) {
  auto with = [](auto change) {
    return refuse(makeTensorParallel(), [&](Program &p) {
      p.types.push_back({Element::F32, {2, 16}, {}});
      Weight stack;
      stack.name = "stack";
      stack.type = uint32_t(p.types.size() - 1);
      stack.parts = {1, 1};
      change(stack);
      p.weights.push_back(stack);
    });
  };
  EXPECT_EQ(with([](Weight &) {}), "");
  EXPECT_EQ(with([](Weight &w) { w.splat = true; }), "weight \"stack\": has parts and bytes of its own (P13)");
  EXPECT_EQ(with([](Weight &w) { w.parts = {1}; }), "weight \"stack\": has 1 parts, which are not f32[2, 16] (P13)");
  EXPECT_EQ(with([](Weight &w) { w.parts = {1, 2}; }),
            "weight \"stack\": part 2 does not stand before it, or has parts itself (P13)");
  EXPECT_EQ(with([](Weight &w) { w.parts = {1, 0}; }),
            "weight \"stack\": part 0 is f32[16, 16], expected f32[16] (P13)");
}

TEST(TablesTest, P14Buffers) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.roles[0].buffers[1].alignment = 48; }),
            "role \"all\", buffer 1: alignment 48, expected a power of two up to 1048576 (P14)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.roles[0].buffers[2].bytes = UINT64_MAX; }),
            "role \"all\", buffer 2: more than 2^48 bytes (P14)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.roles[0].buffers[0].memory = Memory::Host; }),
            "role \"all\", buffer 0: of kind input in the host's memory (P14)");
}

TEST(TablesTest, P15Views) {
  std::string place = "rank 0, stream 0, command 0 (launch, node \"/act/Gelu\"): ";
  auto with = [](View view) { return refuse(makeSingle(), [&](Program &p) { as<Launch>(p, 0).operands[1] = view; }); };
  EXPECT_EQ(with({3, 0, {}}), place + "buffer 3 of 3 (P15)");
  EXPECT_EQ(with({2, 1, {}}), place + "type 1 of 1 (P15)");
  EXPECT_EQ(with({2, 0, {4, -1}}), place + "f32[4, 8] at byte 4 does not lie in the 128 bytes of buffer 2 (P15)");
  EXPECT_EQ(with({2, 0, {-4, -1}}), place + "f32[4, 8] at byte -4 does not lie in the 128 bytes of buffer 2 (P15)");
  EXPECT_EQ(with({2, 0, {INT64_MAX, -1}}),
            place + "f32[4, 8] at byte 9223372036854775807 does not lie in the 128 bytes of buffer 2 (P15)");
  // Strides reach further than elements do.
  EXPECT_EQ(
      refuse(makeTensorParallel(), [](Program &p) { p.roles[0].buffers[1].bytes = 200; }),
      "rank 0, stream 0, command 7 (launch, node \"/fc/Add\"): f32[4, 16] at byte 0 does not lie in the 200 bytes "
      "of buffer 1 (P15)");
  EXPECT_EQ(refuse(makeSingle(),
                   [](Program &p) {
                     p.roles[0].buffers[2].bytes = 256;
                     as<Launch>(p, 0).operands[1].offset.base = 2;
                   }),
            place + "f32[4, 8] in buffer 2 is not aligned to 4 bytes (P15)");
  // Of several ranks the one that lies furthest counts.
  EXPECT_EQ(
      refuse(makeCollectives(), [](Program &p) { p.rankTable[3] = 449; }),
      "rank 0, stream 0, command 0 (copy): f32[2, 8] at byte 449 does not lie in the 512 bytes of buffer 2 (P15)");
  EXPECT_EQ(refuse(makeCollectives(), [](Program &p) { p.rankTable[3] = 66; }),
            "rank 0, stream 0, command 0 (copy): f32[2, 8] in buffer 2 is not aligned to 4 bytes (P15)");
}

TEST(TablesTest, P16Loads) {
  std::string place = "role \"all\", load of \"w\": ";
  auto with = [](auto change) {
    return refuse(makeTensorParallel(), [&](Program &p) { change(p.roles[0].loads[0]); });
  };
  EXPECT_EQ(with([](Load &l) { l.weight = 2; }), "role \"all\", load of \"\": weight 2 of 2 (P16)");
  EXPECT_EQ(with([](Load &l) { l.starts.pop_back(); }), place + "a slice of 2 dims of f32[16, 16] (P16)");
  EXPECT_EQ(with([](Load &l) { l.starts[0].base = 1; }),
            place + "dim 0 of the slice does not lie in f32[16, 16] (P16)");
  EXPECT_EQ(with([](Load &l) { l.shape[1] = INT64_MAX; }),
            place + "dim 1 of the slice does not lie in f32[16, 16] (P16)");
  EXPECT_EQ(with([](Load &l) { l.layout.width = 8; }), place + "the slice in its layout is not f32[1, 8, 16, 1] (P16)");
  EXPECT_EQ(with([](Load &l) { l.layout.order = {0, 0}; }),
            place + "the slice in its layout is not f32[1, 8, 16, 1] (P16)");
  EXPECT_EQ(with([](Load &l) { l.layout.order = {1u << 20, 0}; }),
            place + "the slice in its layout is not f32[1, 8, 16, 1] (P16)");
  EXPECT_EQ(with([](Load &l) { l.layout.batch = 1; }), place + "the slice in its layout is not f32[1, 8, 16, 1] (P16)");
  EXPECT_EQ(with([](Load &l) { l.target.buffer = 3, l.target.offset.base = 0; }),
            place + "f32[1, 8, 16, 1] at byte 0 does not lie in the 384 bytes of buffer 3 (P15)");
  EXPECT_EQ(refuse(makeTensorParallel(),
                   [](Program &p) {
                     p.roles[0].buffers[3].bytes = 512;
                     p.roles[0].loads[0].target.buffer = 3;
                   }),
            place + "goes to buffer 3, expected one of weights or of a state, at the same place on all ranks (P16)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.types[4].element = Element::I32; }),
            place + "f32 is not cast to i32 (P16)");
  EXPECT_EQ(with([](Load &l) { l.target.offset.base = 576; }),
            "role \"all\": weights \"w\" and \"w\" are loaded to the same bytes (P16)");
  // A slice that ends behind its weight says what there is of it.
  EXPECT_EQ(with([](Load &l) { l.present = {{8, -1}, {16, -1}}; }), "");
  EXPECT_EQ(with([](Load &l) { l.present = {{7, -1}, {16, -1}}, l.starts[0].base = 1; }), "");
  EXPECT_EQ(with([](Load &l) { l.present = {{8, -1}}; }), place + "1 dims are present of f32[16, 16] (P16)");
  std::string outside = place + "dim 1 of the slice does not lie in f32[16, 16] (P16)";
  EXPECT_EQ(with([](Load &l) { l.present = {{8, -1}, {16, 1 << 20}}; }), outside);
  EXPECT_EQ(with([](Load &l) { l.present = {{8, -1}, {16, -1}}, l.starts[1].column = 1 << 20; }), outside);
  EXPECT_EQ(with([](Load &l) { l.present = {{8, -1}, {17, -1}}; }),
            place + "of dim 1 of the slice from 0 on, 17 are present on rank 0 (P16)");
  EXPECT_EQ(with([](Load &l) { l.present = {{8, -1}, {16, -1}}, l.starts[0].base = 1; }),
            place + "of dim 0 of the slice from 9 on, 8 are present on rank 1 (P16)");
  EXPECT_EQ(with([](Load &l) { l.present = {{-1, -1}, {16, -1}}; }),
            place + "of dim 0 of the slice from 0 on, -1 are present on rank 0 (P16)");
  // Floats are cast.
  EXPECT_EQ(refuse(makeTensorParallel(),
                   [](Program &p) {
                     p.types[4].element = Element::BF16;
                     p.types[4].shape = {1, 4, 16, 2};
                     p.roles[0].loads[0].layout.interleave = 2;
                   }),
            "");
}
