//===- Samples.cpp - small programs with every feature --------------------===//
#include "Samples.h"

using namespace cleave::program;

using Shape = std::vector<int64_t>;

static uint32_t addType(Program &program, Shape shape, Element element = Element::F32, Shape strides = {}) {
  program.types.push_back({element, std::move(shape), std::move(strides)});
  return static_cast<uint32_t>(program.types.size() - 1);
}

static uint32_t addBuffer(Role &role, BufferKind kind, uint64_t bytes) {
  role.buffers.push_back({kind, Memory::Device, bytes, 64});
  return static_cast<uint32_t>(role.buffers.size() - 1);
}

/// A kernel of the first module that reads tensors of types `reads` and writes one of `write`.
static uint32_t addKernel(Program &program, const char *name, std::vector<uint32_t> reads, uint32_t write) {
  Kernel kernel;
  kernel.name = name;
  kernel.entry = std::string("cleave_") + name;
  for (uint32_t type : reads)
    kernel.parameters.push_back({type, Access::Read, -1, 16});
  kernel.parameters.push_back({write, Access::Write, -1, 16});
  program.kernels.push_back(std::move(kernel));
  return static_cast<uint32_t>(program.kernels.size() - 1);
}

static void addHostCode(Program &program) {
  program.targets = {{Device::Host, "x86-64", {"avx2", "fma"}}};
  program.modules = {{"kernels", {{0, Format::SharedObject, "\177ELF: no real code"}}}};
}

static Tensor makeTensor(const char *name, uint32_t type, std::string sharding, std::vector<Place> places) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.sharding = std::move(sharding);
  tensor.places = std::move(places);
  return tensor;
}

static Command launch(uint32_t kernel, std::vector<View> operands, int32_t node = -1) {
  return {0, node, Launch{kernel, std::move(operands), {}}};
}

Program cleave::program::makeSingle() {
  Program program;
  addHostCode(program);
  uint32_t type = addType(program, {4, 8});
  uint32_t gelu = addKernel(program, "gelu", {type}, type);
  program.kernels[gelu].parameters[1].alias = 0;
  program.kernels[gelu].scalars = 1;
  Role role{"all", {0}, {}, {}};
  uint32_t x = addBuffer(role, BufferKind::Input, 128), y = addBuffer(role, BufferKind::Output, 128);
  uint32_t arena = addBuffer(role, BufferKind::Activations, 128);
  program.roles = {role};
  program.nodes = {"/act/Gelu", "/out"};
  Variant variant;
  variant.inputs = {makeTensor("x", type, "[_, _]", {{0, {x, type, {}}, {{}, {}}, {}}})};
  variant.outputs = {makeTensor("y", type, "[_, _]", {{0, {y, type, {}}, {{}, {}}, {}}})};
  View inX{x, type, {}}, inArena{arena, type, {}}, inY{y, type, {}};
  List list;
  list.commands = {launch(gelu, {inX, inArena}, 0), launch(gelu, {inArena, inArena}, 0), {0, 1, Copy{inArena, inY}}};
  std::get<Launch>(list.commands[0].action).scalars = {{7, -1}};
  std::get<Launch>(list.commands[1].action).scalars = {{8, -1}};
  variant.lists = {list};
  program.variants = {variant};
  program.metadata = {"cleave 0.1.0", "gelu.onnx", "0123456789abcdef", "", "{}", "bf16"};
  return program;
}

Program cleave::program::makeLoop() {
  Program program;
  addHostCode(program);
  program.version = kLoopsVersion;
  uint32_t type = addType(program, {4, 8}), flag = addType(program, {}, Element::I1);
  uint32_t advance = addKernel(program, "advance", {type}, type), test = addKernel(program, "test", {type}, flag);
  program.kernels[advance].parameters[1].alias = 0;
  Role role{"all", {0}, {}, {}};
  uint32_t x = addBuffer(role, BufferKind::Input, 128), y = addBuffer(role, BufferKind::Output, 128);
  uint32_t arena = addBuffer(role, BufferKind::Activations, 192);
  program.roles = {role};
  program.nodes = {"/loop"};
  Variant variant;
  variant.inputs = {makeTensor("x", type, "[_, _]", {{0, {x, type, {}}, {{}, {}}, {}}})};
  variant.outputs = {makeTensor("y", type, "[_, _]", {{0, {y, type, {}}, {{}, {}}, {}}})};
  View inX{x, type, {}}, inArena{arena, type, {}}, inY{y, type, {}}, inFlag{arena, flag, {128, -1}};
  List list;
  list.commands = {{0, 0, Copy{inX, inArena}},          launch(test, {inArena, inFlag}), {0, 0, Loop{8, inFlag}},
                   launch(advance, {inArena, inArena}), launch(test, {inArena, inFlag}), {0, 0, EndLoop{inFlag}},
                   {0, 0, Copy{inArena, inY}}};
  variant.lists = {list};
  program.variants = {variant};
  return program;
}

Program cleave::program::makeTensorParallel() {
  Program program;
  addHostCode(program);
  program.axes = {{"data", 2}, {"model", 2}};
  program.ranks = 4;
  program.devices = {3, 2, 1, 0};
  program.columns = {"4 * data", "8 * model"};
  program.rankTable = {0, 0, 0, 8, 4, 0, 4, 8};
  program.groups = {{"model", 2, {0, 1, 2, 3}}};
  uint32_t x = addType(program, {8, 16}), localX = addType(program, {4, 8});
  uint32_t w = addType(program, {16, 16}), localW = addType(program, {8, 16});
  uint32_t panels = addType(program, {1, 8, 16, 1}), y = addType(program, {8, 16}), localY = addType(program, {4, 16});
  uint32_t bias = addType(program, {16}), part = addType(program, {4, 4}, Element::F32, {16, 1});
  uint32_t multiply = addKernel(program, "matmul", {localX, panels}, localY);
  uint32_t square = addKernel(program, "square", {localX}, localX);
  uint32_t add = addKernel(program, "add", {localY, bias}, localY);
  uint32_t read = addKernel(program, "sum_part", {part}, part);
  program.files = {{"model.onnx", 5000}};
  program.weights = {{"w", w, 0, 1024, 1024, "0011223344556677", {}, false},
                     {"bias", bias, -1, 0, 0, "", std::string_view("\0\0\x80\x3f", 4), true}};
  Role role{"all", {0, 1, 2, 3}, {}, {}};
  uint32_t input = addBuffer(role, BufferKind::Input, 128), output = addBuffer(role, BufferKind::Output, 256);
  uint32_t weights = addBuffer(role, BufferKind::Weights, 512 + 64 + 512);
  uint32_t arena = addBuffer(role, BufferKind::Activations, 384),
           sent = addBuffer(role, BufferKind::Communication, 256);
  role.loads = {{0, {{0, 1}, {}}, {8, 16}, {{}, 0, 16, 1}, {weights, panels, {}}},
                {1, {{}}, {16}, {}, {weights, bias, {512, -1}}},
                {0, {{0, 1}, {}}, {8, 16}, {}, {weights, localW, {576, -1}}}};
  program.roles = {role};
  program.nodes = {"/fc/MatMul", "/fc/Add", "/square/Mul"};
  View inX{input, localX, {}}, inW{weights, panels, {}}, inSum{sent, localY, {}}, inBias{weights, bias, {512, -1}};
  View inSquare{arena, localX, {256, -1}}, inY{output, localY, {}}, inPart{output, part, {0, -1}};
  View inArena{arena, localY, {}};
  List list;
  list.streams = list.events = 2;
  list.commands = {
      launch(multiply, {inX, inW, inSum}, 0),
      {0, -1, Record{0}},
      {1, -1, Wait{0}},
      {1, 0, Collective{CollectiveKind::AllReduce, Reduction::Sum, 0, {inSum}, {inSum}, {}, {}}},
      {1, -1, Record{1}},
      launch(square, {inX, inSquare}, 2),
      {0, -1, Wait{1}},
      launch(add, {inSum, inBias, inY}, 1),
      launch(read, {inPart, {arena, part, {}}}, 1),
      {0, 0,
       Matmul{inX, {weights, localW, {576, -1}}, inArena, inBias, inSum, false, false, 0.5, Activation::Relu, -1}}};
  Variant variant;
  variant.dims = {{"batch", 8}};
  variant.inputs = {makeTensor("x", x, "[data, model]", {{0, inX, {{0, 0}, {0, 1}}, {}}})};
  variant.outputs = {makeTensor("y", y, "[data, _]", {{0, inY, {{0, 0}, {}}, {}}})};
  variant.lists = {list};
  program.variants = {variant};
  program.metadata.model = "fc.onnx";
  return program;
}

Program cleave::program::makePipeline() {
  Program program;
  addHostCode(program);
  program.axes = {{"stage", 2}, {"model", 2}};
  program.ranks = 4;
  uint32_t x = addType(program, {4, 8}), part = addType(program, {2, 8});
  uint32_t stage = addKernel(program, "stage", {part}, part);
  // Both ranks of stage 0 hold the same; rank 0 serves rank 2, rank 1 rank 3.
  program.pieces = {{2, {{0, 2}, {1, 3}}, {2, 8, 0, 0, 0, 0, 2, 8, 0, 0, 0, 0}}};
  program.nodes = {"/layer.0", "/layer.1"};
  Role first{"stage 0", {0, 1}, {}, {}}, second{"stage 1", {2, 3}, {}, {}};
  uint32_t input = addBuffer(first, BufferKind::Input, 128), sent = addBuffer(first, BufferKind::Communication, 128);
  uint32_t got = addBuffer(second, BufferKind::Communication, 128), output = addBuffer(second, BufferKind::Output, 128);
  program.roles = {first, second};
  List sends, receives;
  for (int64_t offset : {0, 64}) {
    View from{sent, part, {offset, -1}}, to{got, part, {offset, -1}};
    sends.commands.push_back(launch(stage, {{input, part, {offset, -1}}, from}, 0));
    sends.commands.push_back({0, 0, Exchange{0, from, std::nullopt}});
    receives.commands.push_back({0, 1, Exchange{0, std::nullopt, to}});
    receives.commands.push_back(launch(stage, {to, {output, part, {offset, -1}}}, 1));
  }
  Variant variant;
  variant.inputs = {makeTensor("x", x, "[_, _]", {{0, {input, x, {}}, {{}, {}}, {}}})};
  variant.outputs = {makeTensor("y", x, "[_, _]", {{1, {output, x, {}}, {{}, {}}, {}}})};
  variant.lists = {sends, receives};
  program.variants = {variant};
  return program;
}

Program cleave::program::makeCuda() {
  Program program;
  program.targets = {{Device::Cuda, "sm_90", {}}, {Device::Cuda, "sm_80", {}}};
  program.modules = {
      {"kernels", {{0, Format::Cubin, "cubin"}, {0, Format::Ptx, "ptx 90"}, {1, Format::Ptx, "ptx 80"}}}};
  uint32_t image = addType(program, {1, 8, 8, 4}), filter = addType(program, {4, 3, 3, 2});
  uint32_t query = addType(program, {1, 4, 2, 8}), cache = addType(program, {1, 2, 16, 8});
  uint32_t mask = addType(program, {1, 1, 2, 16}, Element::I1), image2 = addType(program, {2, 8, 8, 4});
  uint32_t bias = addType(program, {4}), token = addType(program, {1, 2, 2, 8}),
           step = addType(program, {1, 2, 2, 8}, Element::F32, {256, 128, 8, 1});
  uint32_t conv = addKernel(program, "conv", {image, filter, bias}, image);
  program.kernels[conv].block = {16, 16, 1};
  program.kernels[conv].grid = {4, 1, 1};
  program.kernels[conv].sharedBytes = 4096;
  program.weights = {{"filter", filter, -1, 0, 0, "", std::string_view("\0\0\0\0", 4), true},
                     {"conv.bias", bias, -1, 0, 0, "", std::string_view("0123456789abcdef"), false}};
  Role role{"all", {0}, {}, {}};
  uint32_t input = addBuffer(role, BufferKind::Input, 2048), output = addBuffer(role, BufferKind::Output, 2048);
  uint32_t weights = addBuffer(role, BufferKind::Weights, 1024), state = addBuffer(role, BufferKind::State, 1024);
  uint32_t q = addBuffer(role, BufferKind::Input, 256), m = addBuffer(role, BufferKind::Input, 64);
  uint32_t arena = addBuffer(role, BufferKind::Activations, 256);
  role.loads = {{0, {{}, {}, {}, {}}, {4, 3, 3, 2}, {}, {weights, filter, {}}},
                {1, {{}}, {4}, {}, {weights, bias, {576, -1}}}};
  program.roles = {role};
  program.nodes = {"/conv", "/attention"};
  for (int64_t batch : {1, 2}) {
    uint32_t type = batch == 1 ? image : image2;
    View inImage{input, type, {}}, inFilter{weights, filter, {}}, inBias{weights, bias, {576, -1}};
    View outImage{output, type, {}}, inState{state, cache, {}};
    Convolution convolution{inImage, inFilter, outImage, inBias, std::nullopt, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2};
    convolution.fallback = batch == 1 ? int32_t(conv) : -1;
    convolution.tf32 = batch == 2;
    Attention attention{{q, query, {}}, inState, inState, {arena, query, {}}, View{m, mask, {}}, 0.25, true, -1};
    List list;
    list.streams = 2;
    list.events = 1;
    list.commands = {{0, 0, convolution}, {1, 1, attention}, {1, -1, Record{0}}, {0, -1, Wait{0}}};
    if (batch == 2)
      list.commands.push_back({0, 1, Copy{{arena, token, {}}, {state, step, {64, -1}}}});
    Variant variant;
    variant.dims = {{"batch", batch}};
    variant.inputs = {makeTensor("image", type, "", {{0, inImage, {{}, {}, {}, {}}, {}}}),
                      makeTensor("query", query, "", {{0, {q, query, {}}, {{}, {}, {}, {}}, {}}}),
                      makeTensor("mask", mask, "", {{0, {m, mask, {}}, {{}, {}, {}, {}}, {}}}),
                      makeTensor("past", cache, "", {{0, inState, {{}, {}, {}, {}}, {}}})};
    variant.outputs = {makeTensor("features", type, "", {{0, outImage, {{}, {}, {}, {}}, {}}}),
                       makeTensor("present", cache, "", {{0, inState, {{}, {}, {}, {}}, {}}})};
    variant.states = {{3, 1}};
    variant.inputs[3].role = StepRole::Optimizer;
    variant.inputs[3].origin = {"all", {0, 0, 0, 0}, program.types[cache].shape};
    variant.lists = {list};
    program.variants.push_back(variant);
  }
  return program;
}

Program cleave::program::makeCollectives() {
  Program program;
  addHostCode(program);
  program.axes = {{"x", 2}};
  program.ranks = 2;
  program.columns = {"64 * x", "x", "2 * x"};
  program.rankTable = {0, 0, 0, 64, 1, 2};
  program.groups = {{"x", 2, {0, 1}}, {"each", 1, {1, 0}}};
  uint32_t whole = addType(program, {4, 8}), rows = addType(program, {2, 8}), columns = addType(program, {4, 4});
  program.pieces = {{2, {{0, 1}, {1, 0}, {0, 0}}, {2, 4, 0, 0, 2, 0, 2, 4, 2, 0, 0, 0, 2, 4, 2, 0, 2, 0}}};
  Role role{"all", {0, 1}, {}, {}};
  uint32_t input = addBuffer(role, BufferKind::Input, 64), output = addBuffer(role, BufferKind::Output, 128);
  uint32_t arena = addBuffer(role, BufferKind::Communication, 512);
  program.roles = {role};
  View inRows{input, rows, {}}, own{arena, rows, {0, 0}}, all{arena, whole, {}};
  View inColumns{arena, columns, {128, -1}}, reduced{arena, rows, {192, -1}}, terms{output, whole, {}};
  View sum{arena, rows, {0, 0}}, moved{arena, columns, {256, -1}};
  List list;
  list.commands = {
      {0, -1, Copy{inRows, own}},
      {0, -1, Collective{CollectiveKind::AllGather, Reduction::None, 0, {own}, {all}, {2, 1}, {}}},
      {0, -1, Collective{CollectiveKind::AllToAll, Reduction::None, 0, {own}, {inColumns}, {2, 1}, {1, 2}}},
      {0, -1, Collective{CollectiveKind::Barrier, Reduction::None, 0, {}, {}, {}, {}}},
      {0, -1, Collective{CollectiveKind::ReduceScatter, Reduction::Max, 0, {all}, {sum}, {}, {2, 1}}},
      {0, -1, Collective{CollectiveKind::ReduceScatter, Reduction::Min, 0, {all}, {reduced}, {}, {2, 1}}},
      {0, -1, Collective{CollectiveKind::AllReduce, Reduction::Prod, 1, {inRows, own}, {reduced, own}, {}, {}}},
      {0, -1, Exchange{0, inColumns, moved}},
      {0, -1, Copy{all, terms}},
  };
  Variant variant;
  variant.inputs = {makeTensor("x", whole, "[x, _]", {{0, inRows, {{0, 2}, {}}, {}}})};
  variant.outputs = {makeTensor("y", whole, "[_, _] partial(x: sum)", {{0, terms, {{}, {}}, {0, 1}}})};
  variant.outputs[0].reduction = Reduction::Sum;
  variant.outputs[0].terms = 2;
  variant.lists = {list};
  program.variants = {variant};
  return program;
}

std::vector<std::pair<const char *, Program>> cleave::program::makeSamples() {
  return {{"single", makeSingle()}, {"tensor-parallel", makeTensorParallel()}, {"pipeline", makePipeline()},
          {"cuda", makeCuda()},     {"collectives", makeCollectives()},        {"loop", makeLoop()}};
}
