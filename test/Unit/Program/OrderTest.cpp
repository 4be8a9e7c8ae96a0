//===- OrderTest.cpp - tensors, lifetimes and meetings, by constraint -----===//
#include "Refuse.h"
#include "cleave/Program/Operands.h"

using namespace cleave::program;

TEST(OrderTest, P25Tensors) {
  auto input = [](auto change) {
    return refuse(makeTensorParallel(), [&](Program &p) { change(p.variants[0].inputs[0], p); });
  };
  EXPECT_EQ(input([](Tensor &t, Program &) { t.type = 8; }), "input \"x\": type 8 is not there or has strides (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.value.resize(512); }), "");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.value.resize(508); }),
            "input \"x\": has a value of 508 bytes, and is f32[8, 16] (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.terms = 2; }), "input \"x\": 2 terms with the reduction none (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].role = 1; }), "input \"x\": role 1 of 1 (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].view.offset.base = 4; }),
            "input \"x\": f32[4, 8] at byte 4 does not lie in the 128 bytes of buffer 0 (P15)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].starts.pop_back(); }),
            "input \"x\": f32[4, 8] is held of f32[8, 16] (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].starts[1].base = 1; }),
            "input \"x\": dim 1 of f32[4, 8] does not lie in f32[8, 16] (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].present = {{4, -1}, {8, -1}}; }), "");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].present = {{4, -1}}; }),
            "input \"x\": 1 dims are present of f32[8, 16] (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].present = {{3, -1}, {8, -1}}; }),
            "input \"x\": of dim 0 of f32[4, 8] from 0 on, 3 are present on rank 0 (P25)");
  EXPECT_EQ(
      input([](Tensor &t, Program &) { t.places[0].present = {{4, -1}, {8, -1}}, t.places[0].starts[1].base = 1; }),
      "input \"x\": of dim 1 of f32[4, 8] from 9 on, 8 are present on rank 1 (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.origin = {"all", {0, 16}, {8, 32}}; }), "");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.origin = {"all", {0}, {8, 32}}; }),
            "input \"x\": begins at 1 dims of 2, and is f32[8, 16] (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.origin = {"all", {0, 17}, {8, 32}}; }),
            "input \"x\": dim 1 of f32[8, 16] from 17 does not lie in the 32 of \"all\" (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.origin = {"all", {0, -1}, {8, 32}}; }),
            "input \"x\": dim 1 of f32[8, 16] from -1 does not lie in the 32 of \"all\" (P25)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.variants[0].outputs[0].role = StepRole::Batch; }),
            "output \"y\": is an output, and has a role or an origin (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].term.base = 1; }),
            "input \"x\": a term that is not among 1 (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &) { t.places[0].view.buffer = 3; }),
            "input \"x\": is in a buffer of kind activations (P25)");
  EXPECT_EQ(input([](Tensor &t, Program &p) { p.variants[0].inputs.push_back(t); }),
            "input \"x\" is there twice (P25)");
  EXPECT_EQ(refuse(makeTensorParallel(),
                   [](Program &p) {
                     p.variants[0].inputs.push_back(p.variants[0].inputs[0]);
                     p.variants[0].inputs[1].name = "z";
                   }),
            "input \"z\" shares its buffer 0 (P25)");
  auto range = [](IndexRange range, Element element) {
    return refuse(makeTensorParallel(), [&](Program &p) {
      p.types[p.variants[0].inputs[0].type].element = element;
      p.variants[0].ranges = {range};
    });
  };
  EXPECT_EQ(range({0, -1, -4, 3}, Element::F32),
            "variant 0: input \"x\" has a range of indices, and does not hold integers (P25)");
  EXPECT_EQ(range({9, -1, -4, 3}, Element::F32),
            "variant 0: a range of indices is for input 9 of 1 and node -1 of 3 (P25)");
  EXPECT_EQ(range({0, 99, -4, 3}, Element::F32),
            "variant 0: a range of indices is for input 0 of 1 and node 99 of 3 (P25)");
  auto output = [](auto change) {
    return refuse(makeTensorParallel(), [&](Program &p) { change(p.variants[0].outputs); });
  };
  EXPECT_EQ(output([](std::vector<Tensor> &t) { t[0].places.clear(); }),
            "output \"y\": ranks hold 0 of 1 pieces (P25)");
  EXPECT_EQ(output([](std::vector<Tensor> &t) { t[0].places[0].starts[0] = {}; }),
            "output \"y\": ranks hold 1 of 2 pieces (P25)");
  EXPECT_NE(output([](std::vector<Tensor> &t) { t[0].value.resize(512); }).find("and is an output f32["),
            std::string::npos);
  EXPECT_EQ(output([](std::vector<Tensor> &t) { t.push_back(t[0]); }), "output \"y\" is there twice (P25)");
  EXPECT_EQ(output([](std::vector<Tensor> &t) { t.push_back(t[0]), t[1].name = "z"; }),
            "output \"z\" shares its buffer 1 (P25)");
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.rankTable = {0, 0, 0, 8, 3, 0, 3, 8}; }),
            "output \"y\": rank 2 holds f32[4, 16] from 3 in dim 0, no multiple of its size (P25)");
  EXPECT_EQ(refuse(makeCollectives(), [](Program &p) { p.variants[0].outputs[0].places[0].term = {}; }),
            "output \"y\": ranks hold 1 of 2 pieces (P25)");
}

TEST(OrderTest, P26States) {
  auto with = [](auto change) { return refuse(makeCuda(), [&](Program &p) { change(p.variants[0]); }); };
  EXPECT_EQ(with([](Variant &v) { v.states[0].output = 2; }),
            "a state of input 3 and output 2, which are not there or have one (P26)");
  EXPECT_EQ(with([](Variant &v) { v.states.push_back(v.states[0]); }),
            "a state of input 3 and output 1, which are not there or have one (P26)");
  EXPECT_EQ(with([](Variant &v) { v.states[0].input = 1; }),
            "state \"present\" is not the input \"query\" in type, sharding and place (P26)");
  EXPECT_EQ(with([](Variant &v) { v.outputs[1].sharding = "[x, _, _, _]"; }),
            "state \"present\" is not the input \"past\" in type, sharding and place (P26)");
  // In the buffer of its input, but not where that is.
  EXPECT_EQ(refuse(makeCuda(),
                   [&](Program &p) {
                     View &view = p.variants[0].outputs[1].places[0].view;
                     p.roles[0].buffers[view.buffer].bytes += 64;
                     view.offset.base += 64;
                   }),
            "state \"present\" is not the input \"past\" in type, sharding and place (P26)");
  EXPECT_EQ(with([](Variant &v) { v.states.clear(), v.outputs.pop_back(); }),
            "\"past\" is not a state, but is in a buffer of one (P26)");
}

/// A cache of 16 positions, of which the input is 12, from byte `offset` on; with `saysPresent` both say how much of them there is.
static std::string refuseCache(int64_t offset, std::vector<int64_t> strides, bool saysPresent = false) {
  Program program = makeCuda();
  uint32_t whole = program.types.size(), part = whole + 1;
  program.types.push_back({Element::F32, {1, 2, 12, 8}, {}});
  program.types.push_back({Element::F32, {1, 2, 12, 8}, std::move(strides)});
  for (Variant &variant : program.variants) {
    variant.inputs[3].type = whole;
    variant.inputs[3].places[0].view.type = part;
    variant.inputs[3].places[0].view.offset.base = offset;
    if (saysPresent) {
      variant.inputs[3].places[0].present = {{1}, {2}, {12}, {8}};
      variant.outputs[1].places[0].present = {{1}, {2}, {16}, {8}};
    }
  }
  return refuse(program);
}

// The last positions of the output may be the input.
TEST(OrderTest, P26StatesThatGrow) {
  EXPECT_EQ(refuseCache(4 * 8 * 4, {256, 128, 8, 1}), "");
  EXPECT_EQ(refuseCache(4 * 8 * 4, {256, 128, 8, 1}, /*saysPresent=*/true), "");
  std::string other = "state \"present\" is not the input \"past\" in type, sharding and place (P26)";
  EXPECT_EQ(refuseCache(0, {256, 128, 8, 1}), other);
  EXPECT_EQ(refuseCache(4 * 8 * 4, {192, 96, 8, 1}), other);
}

TEST(OrderTest, P27Variants) {
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { p.variants[1].inputs[0].name = "picture"; }),
            "variant 1 has other inputs or outputs than variant 0 (P27)");
  EXPECT_EQ(refuse(makeCuda(), [](Program &p) { p.variants[1] = p.variants[0]; }),
            "variants 0 and 1 have inputs of the same shapes (P27)");
  EXPECT_EQ(refuse(makeCuda(),
                   [](Program &p) {
                     p.types.push_back({Element::F32, {1, 2, 16, 4}, {}});
                     uint32_t half = p.types.size() - 1;
                     for (Tensor *tensor : {&p.variants[1].inputs[3], &p.variants[1].outputs[1]})
                       tensor->type = tensor->places[0].view.type = half;
                   }),
            "variant 1 has other states than variant 0, or has them elsewhere (P27)");
}

TEST(OrderTest, P28ReadsOnlyWhatIsWritten) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { as<Launch>(p, 0).operands[0].buffer = 2; }),
            "rank 0, stream 0, command 0 (launch, node \"/act/Gelu\"): reads byte 0 of buffer 2, which nothing has "
            "written (P28)");
  // Half of it is written.
  EXPECT_EQ(refuse(makePipeline(),
                   [](Program &p) {
                     as<Launch>(p, 1, 1).operands[0].type = as<Exchange>(p, 0, 1).result->type;
                     as<Launch>(p, 1, 1).operands[0].offset.base = 32;
                   }),
            "rank 2, stream 0, command 1 (launch, node \"/layer.1\"): reads byte 64 of buffer 0, which nothing has "
            "written (P28)");
  // A weight that is not loaded.
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { p.roles[0].loads.erase(p.roles[0].loads.begin() + 1); }),
            "rank 0, stream 0, command 7 (launch, node \"/fc/Add\"): reads byte 512 of buffer 2, which nothing has "
            "written (P28)");
  // On one rank only: its piece lies where nobody has written.
  EXPECT_EQ(refuse(makeCollectives(), [](Program &p) { as<Copy>(p, 0).target.offset = {}; }),
            "rank 1, stream 0, command 1 (all_gather): reads byte 64 of buffer 2, which nothing has written (P28)");
}

TEST(OrderTest, P29EventsOrderStreams) {
  // The all_reduce starts before its operand is there.
  EXPECT_EQ(refuse(makeTensorParallel(), [](Program &p) { at(p, 2).stream = 0; }),
            "rank 0, stream 1, command 3 (all_reduce, node \"/fc/MatMul\"): reads bytes of buffer 4 that command 0 on "
            "stream 0 writes, and no event orders them (P29)");
  // Its result is read before it is there.
  EXPECT_EQ(
      refuse(makeTensorParallel(), [](Program &p) { at(p, 6).stream = 1; }),
      "rank 0, stream 0, command 7 (launch, node \"/fc/Add\"): reads bytes of buffer 4 that command 3 on stream 1 "
      "writes, and no event orders them (P29)");
  // What it reads is overwritten meanwhile.
  EXPECT_EQ(refuse(makeTensorParallel(),
                   [](Program &p) {
                     p.roles[0].buffers.push_back({BufferKind::Communication, Memory::Device, 256, 64});
                     as<Collective>(p, 3).results[0].buffer = 5;
                     as<Launch>(p, 5).operands[1] = {4, 1, {}};
                   }),
            "rank 0, stream 0, command 5 (launch, node \"/square/Mul\"): writes bytes of buffer 4 that stream 1 reads, "
            "and no event orders them (P29)");
}

TEST(OrderTest, P30OutputsAreWritten) {
  EXPECT_EQ(refuse(makeSingle(), [](Program &p) { p.variants[0].lists[0].commands.pop_back(); }),
            "output \"y\": byte 0 of buffer 1 on rank 0 is never written (P30)");
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { as<Launch>(p, 3, 1).operands[1].offset.base = 0; }),
            "output \"y\": byte 64 of buffer 1 on rank 2 is never written (P30)");
  EXPECT_EQ(refuse(makePipeline(), [](Program &p) { as<Launch>(p, 1, 1).operands[1].offset.base = 64; }),
            "output \"y\": byte 0 of buffer 1 on rank 2 is never written (P30)");
}

TEST(OrderTest, P31MeetingsAreAlike) {
  EXPECT_EQ(refuse(makeTensorParallel(),
                   [](Program &p) {
                     List &list = p.variants[0].lists[0];
                     list.commands.push_back({0, -1, Collective{CollectiveKind::Barrier, {}, 0, {}, {}, {}, {}}});
                   }),
            "rank 0, stream 0, command 10 (barrier): meets ranks that it also meets on stream 1 (P31)");
  // Two roles, each with its own idea of the second meeting.
  Program program = makePipeline();
  program.groups = {{"stage", 2, {0, 2, 1, 3}}};
  View sent{1, 1, {}}, got{0, 1, {}};
  auto reduce = [](View view, Reduction kind) {
    return Command{0, -1, Collective{CollectiveKind::AllReduce, kind, 0, {view}, {view}, {}, {}}};
  };
  List &first = program.variants[0].lists[0], &second = program.variants[0].lists[1];
  first.commands.push_back(reduce(sent, Reduction::Sum));
  second.commands.push_back(reduce(got, Reduction::Sum));
  EXPECT_EQ(refuse(program), "");
  second.commands.back() = reduce(got, Reduction::Max);
  EXPECT_EQ(refuse(program), "rank 2, stream 0, command 4 (all_reduce): meets rank 0 at its command 4 (all_reduce), "
                             "which is not alike (P31)");
  program.types.push_back({Element::F32, {2, 4}, {}});
  second.commands.back() = reduce({0, uint32_t(program.types.size() - 1), {}}, Reduction::Sum);
  EXPECT_EQ(refuse(program), "rank 2, stream 0, command 4 (all_reduce): meets rank 0 at its command 4 (all_reduce), "
                             "which is not alike (P31)");
  second.commands.back() = {0, -1, Collective{CollectiveKind::Barrier, Reduction::None, 0, {}, {}, {}, {}}};
  EXPECT_EQ(refuse(program), "rank 2, stream 0, command 4 (barrier): meets rank 0 at its command 4 (all_reduce), which "
                             "is not alike (P31)");
  program = makePipeline();
  program.types.push_back({Element::I32, {2, 8}, {}});
  as<Exchange>(program, 0, 1).result->type = 2;
  EXPECT_EQ(refuse(program), "rank 2, stream 0, command 0 (exchange, node \"/layer.1\"): meets rank 0 at its command 1 "
                             "(exchange), which is not alike (P31)");
}

TEST(OrderTest, P32NobodyWaitsForEver) {
  // One receives more often than the other sends.
  Program program = makePipeline();
  program.variants[0].lists[0].commands.pop_back();
  EXPECT_EQ(refuse(program), "rank 2, stream 0, command 2 (exchange, node \"/layer.1\"): waits for ever for rank 0, "
                             "which is at its end (P32)");
  // Two exchanges, in another order on each side.
  program = makePipeline();
  program.pieces.push_back(program.pieces[0]);
  as<Exchange>(program, 3, 0).pieces = 1;
  as<Exchange>(program, 0, 1).pieces = 1;
  EXPECT_EQ(refuse(program), "rank 0, stream 0, command 1 (exchange, node \"/layer.0\"): waits for ever for rank 2, "
                             "which is at its command 0 (P32)");
  // On streams of their own they pass each other, but for who waits in the list before the other one has been issued.
  List &list = program.variants[0].lists[1];
  list.streams = 3;
  list.events = 2;
  list.commands[0].stream = 1;
  list.commands[2].stream = 2;
  std::vector<Command> &commands = list.commands;
  Command wait0{0, -1, Wait{0}}, wait1{0, -1, Wait{1}};
  std::vector<Command> together = {commands[0], {1, -1, Record{0}}, commands[2], {2, -1, Record{1}},
                                   wait0,       commands[1],        wait1,       commands[3]};
  std::vector<Command> apart = {commands[0], {1, -1, Record{0}}, wait0, commands[1],
                                commands[2], {2, -1, Record{1}}, wait1, commands[3]};
  commands = together;
  EXPECT_EQ(refuse(program), "");
  commands = apart;
  EXPECT_EQ(refuse(program), "rank 0, stream 0, command 1 (exchange, node \"/layer.0\"): waits for ever for rank 2, "
                             "which is at its command 2 (P32)");
}

// Pairs of ranks meet by themselves, however many a list of pieces has.
TEST(OrderTest, MeetingsAreAmongRanksThatPiecesConnect) {
  using Meetings = std::vector<std::vector<uint32_t>>;
  EXPECT_EQ(getMeetings({0, {{4, 1}, {2, 3}, {0, 0}}, {}}), (Meetings{{0}, {1, 4}, {2, 3}}));
  EXPECT_EQ(getMeetings({0, {{4, 1}, {2, 3}, {3, 4}, {5, 6}}, {}}), (Meetings{{1, 2, 3, 4}, {5, 6}}));
  EXPECT_EQ(getMeetings({0, {}, {}}), Meetings());
  // Rank 2 receives before rank 3 does; were it for all four to meet, it would wait for rank 3, who looks after rank 1 first.
  Program program = makePipeline();
  Role late{"late", {3}, program.roles[1].buffers, {}}, &second = program.roles[1];
  second.ranks = {2};
  program.roles.push_back(late);
  Variant &variant = program.variants[0];
  variant.outputs[0].places.push_back(variant.outputs[0].places[0]);
  variant.outputs[0].places[1].role = 2;
  variant.lists.push_back(variant.lists[1]);
  program.groups = {{"pair", 2, {2, 3}}};
  Command meet{0, -1, Collective{CollectiveKind::Barrier, Reduction::None, 0, {}, {}, {}, {}}};
  variant.lists[1].commands.insert(variant.lists[1].commands.begin() + 2, meet);
  variant.lists[2].commands.insert(variant.lists[2].commands.begin(), meet);
  EXPECT_EQ(refuse(program), "");
}

// 2,048 ranks with 4 stages and some thousand commands: no check may be more than linear in that.
TEST(OrderTest, ManyRanksAreCheckedInTime) {
  Program program = makeSingle();
  constexpr uint32_t ranks = 2048, size = 32;
  program.ranks = ranks;
  program.axes = {{"data", ranks / size}, {"model", size}};
  program.groups = {{"model", size, {}}};
  program.roles[0].ranks.clear();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    program.roles[0].ranks.push_back(rank);
    program.groups[0].ranks.push_back(rank);
  }
  View arena{2, 0, {}};
  for (int i = 0; i < 1000; ++i)
    program.variants[0].lists[0].commands.push_back(
        {0, -1, Collective{CollectiveKind::AllReduce, Reduction::Sum, 0, {arena}, {arena}, {}, {}}});
  EXPECT_EQ(refuse(program), "");
}

// P28: what a body leaves that may not run is not there behind it.
TEST(OrderTest, P28LoopsMayNotRun) {
  auto writesBehind = [](auto change) {
    return refuse(makeLoop(), [&](Program &p) {
      // Nothing is there before the loop but the flag.
      std::vector<Command> &commands = p.variants[0].lists[0].commands;
      as<Launch>(p, 1).operands[0].buffer = as<Launch>(p, 3).operands[0].buffer = 0;
      p.kernels[0].parameters[1].alias = -1;
      commands.erase(commands.begin());
      change(p);
    });
  };
  std::string message =
      "rank 0, stream 0, command 5 (copy, node \"/loop\"): reads byte 0 of buffer 2, which nothing has "
      "written (P28)";
  EXPECT_EQ(writesBehind([](Program &) {}), message);
  auto countAlone = [](int64_t count) {
    return [count](Program &p) {
      as<Loop>(p, 1) = {count, {}};
      as<EndLoop>(p, 4) = {};
    };
  };
  EXPECT_EQ(writesBehind(countAlone(0)), message);
  EXPECT_EQ(writesBehind(countAlone(1)), "");
}
