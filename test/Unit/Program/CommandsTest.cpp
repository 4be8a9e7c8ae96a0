//===- CommandsTest.cpp - commands that are refused, by constraint --------===//
#include "Refuse.h"

using namespace cleave::program;

TEST(CommandsTest, P17Lists) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.variants.clear(); }), "has no variant (P17)");
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { p.variants[0].lists.pop_back(); }),
            "variant 0: 1 lists for 2 roles (P17)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.variants[0].lists[0].streams = 17; }),
            "role \"all\": 17 streams, expected 1 to 16 (P17)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { at(p, 2).stream = 1; }),
            "rank 0, stream 1, command 2 (copy, node \"/out\"): stream 1 of 1 (P17)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { at(p, 2).node = 2; }),
            "rank 0, stream 0, command 2 (copy): node 2 of 2 (P17)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { at(p, 2).unit = 0; }),
            "rank 0, stream 0, command 2 (copy, node \"/out\"): unit 0 of 0 (P17)");
}

TEST(CommandsTest, P18Kernels) {
  std::string place = "rank 0, stream 0, command 0 (launch, node \"/act/Gelu\"): ";
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { as<Launch>(p, 0).kernel = 1; }), place + "kernel 1 of 1 (P18)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { as<Launch>(p, 0).operands.pop_back(); }),
            place + "has 1 operands for the 2 of kernel \"gelu\" (P18)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { as<Launch>(p, 0).scalars.clear(); }),
            place + "has 0 numbers for the 1 of kernel \"gelu\" (P18)");
  auto typed = [](Type type) {
    return refuse(makeSingle(), [&](Program &p) {
      p.types.push_back(type);
      as<Launch>(p, 0).operands[0].type = 1;
    });
  };
  EXPECT_EQ(typed({Element::F32, {8, 4}, {}}),
            place + "operand 0 is f32[8, 4], but kernel \"gelu\" takes f32[4, 8] (P18)");
  EXPECT_EQ(typed({Element::F32, {4, 8}, {1, 4}}),
            place + "operand 0 is f32[4, 8] strides [1, 4], but kernel \"gelu\" takes f32[4, 8] (P18)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.kernels[0].parameters[1].alignment = 128; }),
            place + "operand 1 is not aligned to the 128 bytes that kernel \"gelu\" relies on (P18)");
  place = "variant 0, rank 0, stream 0, command 0 (convolution, node \"/conv\"): ";
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { as<Convolution>(p, 0).fallback = 1; }), place + "kernel 1 of 1 (P18)");
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { as<Convolution>(p, 0).bias.reset(); }),
            place + "has 3 operands for the 4 of kernel \"conv\", and no numbers (P18)");
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { p.kernels[0].parameters[2].access = Access::Write; }),
            place + "operand 2 is for read, but kernel \"conv\" will write (P18)");
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { p.kernels[0].parameters[3].type = 1; }),
            place + "operand 3 is f32[1, 8, 8, 4], but kernel \"conv\" takes f32[4, 3, 3, 2] (P18)");
}

/// The kernel may have other dims for the same bytes; not more bytes, or fewer, or elements of another type.
TEST(CommandsTest, P18FallbacksOnTheSameBytes) {
  auto typed = [](Type type) {
    return refuse(makeCuda(), [&](Program &p) {
      p.types.push_back(type);
      p.kernels[0].parameters[0].type = uint32_t(p.types.size() - 1);
    });
  };
  std::string place = "variant 0, rank 0, stream 0, command 0 (convolution, node \"/conv\"): operand 0 is "
                      "f32[1, 8, 8, 4], but kernel \"conv\" takes ";
  EXPECT_EQ(typed({Element::F32, {1, 4, 8, 8}, {}}), "");
  EXPECT_EQ(typed({Element::F32, {256}, {}}), "");
  EXPECT_EQ(typed({Element::F32, {1, 4, 8, 9}, {}}), place + "f32[1, 4, 8, 9] (P18)");
  EXPECT_EQ(typed({Element::F32, {1, 4, 8, 7}, {}}), place + "f32[1, 4, 8, 7] (P18)");
  EXPECT_EQ(typed({Element::I32, {1, 4, 8, 8}, {}}), place + "i32[1, 4, 8, 8] (P18)");
}

/// A result lies in the bytes of a residual where the kernel that stands in does so, too.
TEST(CommandsTest, P24ResidualsInPlace) {
  auto inPlace = [](int32_t alias) {
    return refuse(makeCuda(), [&](Program &p) {
      auto &conv = as<Convolution>(p, 0);
      conv.residual = conv.result;
      Kernel &kernel = p.kernels[0];
      kernel.parameters.insert(kernel.parameters.end() - 1, kernel.parameters.back());
      kernel.parameters[3].access = Access::Read;
      kernel.parameters[4].alias = alias;
      // The residual is what an earlier command has left there.
      p.variants[0].lists[0].commands.insert(p.variants[0].lists[0].commands.begin(),
                                             {0, -1, Copy{conv.input, conv.result}});
    });
  };
  EXPECT_EQ(inPlace(3), "");
  EXPECT_EQ(inPlace(-1), "variant 0, rank 0, stream 0, command 1 (convolution, node \"/conv\"): operands 3 and 4 "
                         "share bytes, and are not one tensor in place (P24)");
  EXPECT_EQ(inPlace(0), "variant 0, rank 0, stream 0, command 1 (convolution, node \"/conv\"): operand 4 is for write, "
                        "but kernel \"conv\" will write (P18)");
}

TEST(CommandsTest, P19Matmul) {
  std::string place = "rank 0, stream 0, command 9 (matmul, node \"/fc/MatMul\"): ";
  auto with = [](auto change) {
    return refuse(makeTensorParallel(), [&](Program &p) { change(as<Matmul>(p, 9), p); });
  };
  EXPECT_EQ(with([](Matmul &m, Program &) { m.transposeB = true; }),
            place + "f32[4, 8] times f32[8, 16] transposed is not f32[4, 16] (P19)");
  EXPECT_EQ(with([](Matmul &m, Program &) { m.transposeA = true; }),
            place + "f32[4, 8] transposed times f32[8, 16] is not f32[4, 16] (P19)");
  EXPECT_EQ(with([](Matmul &m, Program &) { m.bias = m.a; }), place + "a bias of f32[4, 8] for f32[4, 16] (P19)");
  EXPECT_EQ(with([](Matmul &m, Program &) { m.residual = m.a; }),
            place + "a residual of f32[4, 8] for f32[4, 16] (P19)");
  EXPECT_EQ(with([](Matmul &m, Program &p) {
              p.types.push_back({Element::I32, {4, 16}, {}});
              m.result.type = uint32_t(p.types.size() - 1);
            }),
            place + "results in i32[4, 16], expected floats (P19)");
  EXPECT_EQ(with([](Matmul &m, Program &p) {
              p.types.push_back({Element::BF16, {8, 16}, {}});
              m.b.type = uint32_t(p.types.size() - 1);
            }),
            place + "multiplies f32[4, 8] and bf16[8, 16] (P19)");
}

TEST(CommandsTest, P19Convolution) {
  std::string place = "variant 0, rank 0, stream 0, command 0 (convolution, node \"/conv\"): ";
  std::string shapes = "the convolution of f32[1, 8, 8, 4] with f32[4, 3, 3, 2] in ";
  auto with = [](auto change) { return refuse(makeCuda(), [&](Program &p) { change(as<Convolution>(p, 0)); }); };
  EXPECT_EQ(with([](Convolution &c) { c.groups = 1; }), place + shapes + "1 groups is not f32[1, 8, 8, 4] (P19)");
  EXPECT_EQ(with([](Convolution &c) { c.strides[1] = 2; }), place + shapes + "2 groups is not f32[1, 8, 8, 4] (P19)");
  EXPECT_EQ(with([](Convolution &c) { c.dilations[0] = 0; }), place + shapes + "2 groups is not f32[1, 8, 8, 4] (P19)");
  EXPECT_EQ(with([](Convolution &c) { c.padsLow[0] = -1, c.padsHigh[0] = 3; }),
            place + shapes + "2 groups is not f32[1, 8, 8, 4] (P19)");
  EXPECT_EQ(with([](Convolution &c) { c.padsHigh.pop_back(); }),
            place + shapes + "2 groups is not f32[1, 8, 8, 4] (P19)");
}

TEST(CommandsTest, P19Attention) {
  std::string place = "variant 0, rank 0, stream 1, command 1 (attention, node \"/attention\"): ";
  auto with = [](auto change) { return refuse(makeCuda(), [&](Program &p) { change(as<Attention>(p, 1), p); }); };
  EXPECT_EQ(with([](Attention &a, Program &) { a.query.type = a.key.type, a.query.buffer = a.key.buffer; }),
            place + "attention of f32[1, 2, 16, 8], f32[1, 2, 16, 8], f32[1, 2, 16, 8] is not f32[1, 4, 2, 8] (P19)");
  EXPECT_EQ(with([](Attention &a, Program &) { a.key = a.query; }),
            place + "attention of f32[1, 4, 2, 8], f32[1, 4, 2, 8], f32[1, 2, 16, 8] is not f32[1, 4, 2, 8] (P19)");
  EXPECT_EQ(with([](Attention &a, Program &p) { p.types[a.mask->type].shape[3] = 8; }),
            place + "a mask of i1[1, 1, 2, 8] for 2 queries of 16 keys (P19)");
}

TEST(CommandsTest, P20Copies) {
  EXPECT_EQ(refuse(makeSingle(),
                   [](Program &p) {
                     p.types.push_back({Element::I32, {4, 8}, {}});
                     as<Copy>(p, 2).target.type = 1;
                   }),
            "rank 0, stream 0, command 2 (copy, node \"/out\"): copies f32[4, 8] to i32[4, 8] (P20)");
}

// A value goes to the host's memory and comes back; kernels do not reach it there, and copies there are the host's own.
TEST(CommandsTest, P20P24MemoryOfTheHost) {
  auto with = [](auto change) {
    return refuse(makeSingle(), [&](Program &p) {
      p.roles[0].buffers.push_back({BufferKind::Activations, Memory::Host, 256, 64});
      View arena = as<Copy>(p, 2).source, host = arena, other = arena;
      host.buffer = other.buffer = 3;
      other.offset.base = 128;
      auto &commands = p.variants[0].lists[0].commands;
      commands.insert(commands.begin() + 2, {{0, 1, Copy{arena, host}}, {0, 1, Copy{host, arena}}});
      change(p, host, other);
    });
  };
  EXPECT_EQ(with([](Program &, View, View) {}), "");
  EXPECT_EQ(with([](Program &p, View, View other) { as<Copy>(p, 3).target = other; }),
            "rank 0, stream 0, command 3 (copy, node \"/out\"): copies within the host's memory (P20)");
  EXPECT_EQ(
      with([](Program &p, View host, View) { as<Launch>(p, 1).operands = {host, host}; }),
      "rank 0, stream 0, command 1 (launch, node \"/act/Gelu\"): reads or writes buffer 3, which is in the host's "
      "memory (P24)");
}

TEST(CommandsTest, P21Collectives) {
  auto with = [](size_t command, auto change) {
    return refuse(makeCollectives(), [&](Program &p) { change(as<Collective>(p, command), p); });
  };
  std::string gather = "rank 0, stream 0, command 1 (all_gather): ";
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.groups = 2; }), gather + "groups 2 of 2 (P21)");
  EXPECT_EQ(with(1, [](Collective &, Program &p) { p.groups[0] = {"x", 1, {0}}; }),
            gather + "rank 1 is in no group of \"x\" (P21)");
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.results.clear(); }),
            gather + "has 1 operands and 0 results (P21)");
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.reduction = Reduction::Sum; }),
            gather + "has the reduction sum (P21)");
  std::string shapes = gather + "the all_gather of f32[2, 8] among 2 ranks is not f32[4, 8] (P21)";
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.gather = {1, 2}; }), shapes);
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.gather = {2}; }), shapes);
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.gather = {4, 1}; }), shapes);
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.gather = {2, 0}; }), shapes);
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.slice = {1, 2}; }), shapes);
  EXPECT_EQ(with(1,
                 [](Collective &c, Program &p) {
                   p.types.push_back({Element::F32, {2, 8}, {9, 1}});
                   c.operands[0] = {2, 3, {256, -1}};
                 }),
            gather + "the all_gather of f32[2, 8] strides [9, 1] among 2 ranks is not f32[4, 8] (P21)");
  EXPECT_EQ(with(6,
                 [](Collective &c, Program &p) {
                   p.types.push_back({Element::I1, {8}, {}});
                   c.operands[0] = {0, 3, {}}, c.results[0] = {2, 3, {192, -1}};
                 }),
            "rank 0, stream 0, command 6 (all_reduce): a prod of i1 (P21)");
  // In place a rank's piece is its own, and no other.
  EXPECT_EQ(with(1, [](Collective &c, Program &) { c.results[0].offset.base = 64; }),
            gather + "operand and result 0 share bytes on rank 1, and not in place (P21)");
  EXPECT_EQ(with(1, [](Collective &, Program &p) { p.groups[0].ranks = {1, 0}; }),
            gather + "operand and result 0 share bytes on rank 0, and not in place (P21)");
  EXPECT_EQ(
      with(4, [](Collective &c, Program &) { c.results[0].offset = {}; }),
      "rank 0, stream 0, command 4 (reduce_scatter): operand and result 0 share bytes on rank 1, and not in place "
      "(P21)");
  EXPECT_EQ(with(3, [](Collective &c, Program &) { c.operands = c.results = {{2, 0, {}}}; }),
            "rank 0, stream 0, command 3 (barrier): has 1 operands and 1 results (P21)");
}

TEST(CommandsTest, P22Exchanges) {
  std::string place = "rank 0, stream 0, command 7 (exchange): ";
  auto with = [](auto change) {
    return refuse(makeCollectives(), [&](Program &p) { change(as<Exchange>(p, 7), p.pieces[0]); });
  };
  EXPECT_EQ(with([](Exchange &e, Pieces &) { e.pieces = 1; }), place + "pieces 1 of 1 (P22)");
  EXPECT_EQ(with([](Exchange &e, Pieces &) { e.operand.reset(); }), place + "piece 0 needs an operand on rank 0 (P22)");
  EXPECT_EQ(with([](Exchange &e, Pieces &) { e.result.reset(); }), place + "piece 0 needs a result on rank 1 (P22)");
  EXPECT_EQ(with([](Exchange &, Pieces &p) { p.boxes[2] = 3; }),
            place + "piece 0 does not lie in the operand, f32[4, 4] (P22)");
  EXPECT_EQ(with([](Exchange &, Pieces &p) { p.boxes[4] = 3; }),
            place + "piece 0 does not lie in the result, f32[4, 4] (P22)");
  EXPECT_EQ(refuse(makeCollectives(),
                   [](Program &p) {
                     p.types.push_back({Element::I32, {4, 4}, {}});
                     as<Exchange>(p, 7).result->type = 3;
                   }),
            place + "sends f32[4, 4] and receives i32[4, 4] (P22)");
}

TEST(CommandsTest, P23Events) {
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.variants[0].lists[0].events = 11; }),
            "role \"all\": 11 events in 10 commands (P23)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Record>(p, 1).event = 2; }),
            "rank 0, stream 0, command 1 (record): event 2 of 2 (P23)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Record>(p, 4).event = 0; }),
            "rank 0, stream 1, command 4 (record): event 0 is recorded twice (P23)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Wait>(p, 2).event = 1; }),
            "rank 0, stream 1, command 2 (wait): event 1 has not been recorded before (P23)");
}

TEST(CommandsTest, P33Loops) {
  auto with = [](auto change) {
    return refuse(makeLoop(), [&](Program &p) { change(p.variants[0].lists[0].commands, p); });
  };
  using Commands = std::vector<Command>;
  std::string begin = "rank 0, stream 0, command 2 (loop, node \"/loop\"): ";
  std::string end = "rank 0, stream 0, command 5 (end_loop, node \"/loop\"): ";
  EXPECT_EQ(with([](Commands &, Program &) {}), "");
  EXPECT_EQ(with([](Commands &, Program &p) { as<Loop>(p, 2).count = -2; }), begin + "has a count of -2 (P33)");
  EXPECT_EQ(with([](Commands &, Program &p) {
              as<Loop>(p, 2) = {};
              as<EndLoop>(p, 5) = {};
            }),
            begin + "has a count of -1 and no condition (P33)");
  EXPECT_EQ(with([](Commands &, Program &p) { as<EndLoop>(p, 5) = {}; }),
            end + "has no condition, unlike its loop (P33)");
  EXPECT_EQ(with([](Commands &, Program &p) { as<Loop>(p, 2).condition.reset(); }),
            end + "has a condition, unlike its loop (P33)");
  EXPECT_EQ(
      with([](Commands &, Program &p) { as<Loop>(p, 2).condition->type = 0, as<Loop>(p, 2).condition->offset = {}; }),
      begin + "has a condition of f32[4, 8], expected one i1 (P33)");
  EXPECT_EQ(with([](Commands &c, Program &) { c.erase(c.begin() + 5); }), "role \"all\": 1 loops do not end (P33)");
  EXPECT_EQ(with([](Commands &c, Program &) { c.erase(c.begin() + 2); }),
            "rank 0, stream 0, command 4 (end_loop, node \"/loop\"): ends no loop (P33)");
  EXPECT_EQ(with([](Commands &c, Program &p) {
              p.variants[0].lists[0].streams = 2;
              c[2].stream = 1;
            }),
            "rank 0, stream 1, command 2 (loop, node \"/loop\"): is on stream 1, expected 0 (P33)");
  EXPECT_EQ(with([](Commands &c, Program &) {
              Command loop = c[2];
              c.insert(c.begin() + 2, 20, loop);
            }),
            "rank 0, stream 0, command 18 (loop, node \"/loop\"): is in more than 16 loops (P33)");
  // An event is recorded once, and a body often.
  EXPECT_EQ(with([](Commands &c, Program &p) {
              p.variants[0].lists[0].events = 1;
              c.insert(c.begin() + 3, {0, -1, Wait{0}});
              c.insert(c.begin(), {0, -1, Record{0}});
            }),
            "rank 0, stream 0, command 4 (wait): waits for event 0 across the border of a loop (P33)");
  // A role may have a loop by itself, but what it meets others for stands outside.
  auto inPipeline = [](size_t begin, size_t end) {
    return refuse(makePipeline(), [&](Program &p) {
      std::vector<Command> &commands = p.variants[0].lists[0].commands;
      Loop loop;
      loop.count = 2;
      commands.insert(commands.begin() + end, {0, -1, EndLoop{}});
      commands.insert(commands.begin() + begin, {0, -1, loop});
    });
  };
  EXPECT_EQ(inPipeline(0, 0), "");
  EXPECT_EQ(inPipeline(0, 4),
            "rank 0, stream 0, command 2 (exchange, node \"/layer.0\"): meets ranks of another role in a loop (P33)");
}

TEST(CommandsTest, P24Overlaps) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { as<Launch>(p, 0).operands[1].buffer = 0; }),
            "rank 0, stream 0, command 0 (launch, node \"/act/Gelu\"): operand 1 would write to a buffer of kind input "
            "(P24)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { as<Launch>(p, 7).operands[2].buffer = 2; }),
            "rank 0, stream 0, command 7 (launch, node \"/fc/Add\"): operand 2 would write to a buffer of kind weights "
            "(P24)");
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.kernels[0].parameters[1].alias = -1; }),
            "rank 0, stream 0, command 1 (launch, node \"/act/Gelu\"): operands 0 and 1 share bytes, and are not one "
            "tensor in place (P24)");
  // In place means all of it.
  EXPECT_EQ(refuse(makeSingle(),
                   [](Program &p) {
                     p.roles[0].buffers[2].bytes = 192;
                     as<Launch>(p, 1).operands[1].offset.base = 64;
                   }),
            "rank 0, stream 0, command 1 (launch, node \"/act/Gelu\"): operands 0 and 1 share bytes, and are not one "
            "tensor in place (P24)");
  // A copy may move a tensor towards the beginning, row behind row, and not towards the end.
  auto move = [](int64_t from, int64_t to, std::vector<int64_t> strides) {
    return refuse(makeCollectives(), [&](Program &p) {
      p.types.push_back({Element::F32, {4, 8}, std::move(strides)});
      uint32_t type = p.types.size() - 1;
      p.variants[0].lists[0].commands.push_back({0, -1, Copy{{2, type, {from, -1}}, {2, type, {to, -1}}}});
    });
  };
  EXPECT_EQ(move(32, 0, {8, 1}), "");
  EXPECT_EQ(move(32, 0, {9, 1}), "");
  for (std::string message : {move(0, 32, {8, 1}), move(32, 0, {1, 4}), move(4, 0, {4, 1})})
    EXPECT_EQ(
        message,
        "rank 0, stream 0, command 9 (copy): operands 0 and 1 share bytes, and are not one tensor in place (P24)");
  // Ranks swap a row of 2x4, which lies in the 4x4 that they get it in, from row `place` on.
  auto swapRows = [](int64_t place, int64_t row, int32_t column) {
    return refuse(makeCollectives(), [&](Program &p) {
      p.types.push_back({Element::F32, {2, 4}, {}});
      p.types.push_back({Element::F32, {4, 4}, {}});
      uint32_t small = p.types.size() - 2, large = small + 1;
      p.pieces.push_back({2, {{0, 1}, {1, 0}}, {1, 4, 0, 0, row, 0, 1, 4, 1, 0, row, 0}});
      p.variants[0].lists[0].commands.push_back(
          {0, -1, Exchange{1, View{2, small, {place * 16, column}}, View{2, large, {0, -1}}}});
    });
  };
  EXPECT_EQ(swapRows(0, 2, -1), "");
  EXPECT_EQ(swapRows(1, 0, -1), "");
  EXPECT_EQ(swapRows(1, 3, -1), "");
  for (std::string message : {swapRows(0, 1, -1), swapRows(1, 1, -1), swapRows(2, 2, -1), swapRows(0, 3, 0)})
    EXPECT_EQ(message,
              "rank 0, stream 0, command 9 (exchange): operands 0 and 1 share bytes, and are not one tensor in "
              "place (P24)");
  // On some rank is on one too many.
  EXPECT_EQ(refuse(makeCollectives(), [](Program &p) { as<Copy>(p, 0) = {{2, 1, {64, -1}}, {2, 1, {0, 0}}}; }),
            "rank 0, stream 0, command 0 (copy): operands 0 and 1 share bytes, and are not one tensor in place (P24)");
}
