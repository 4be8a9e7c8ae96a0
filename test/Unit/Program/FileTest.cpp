//===- FileTest.cpp - programs written and read ---------------------------===//
#include "Program_generated.h"
#include "Refuse.h"
#include "cleave/Program/Digest.h"

#include <algorithm>
#include <cstring>

using namespace cleave::program;

/// What is wrong with some bytes; empty if nothing is.
static std::string refuse(std::string_view bytes, Verify verify = Verify::Yes) {
  Result<Program> program = readProgram(bytes, verify);
  return program ? "" : program.getError().message;
}

TEST(FileTest, SamplesAreAccepted) {
  for (const auto &[name, program] : makeSamples())
    EXPECT_EQ(refuse(program), "") << name;
}

TEST(FileTest, EqualProgramsAreEqualBytes) {
  for (const auto &[name, program] : makeSamples()) {
    std::string bytes = writeProgram(program);
    EXPECT_EQ(bytes, writeProgram(program)) << name;
    Result<Program> again = readProgram(bytes);
    ASSERT_TRUE(again) << name;
    EXPECT_EQ(writeProgram(*again), bytes) << name;
  }
}

// Fields that no check looks at; those that one does are seen in the other tests, which go through files.
TEST(FileTest, KeepsWhatIsForPeopleAndDevices) {
  std::string bytes = writeProgram(makeCuda());
  Program program = *readProgram(bytes);
  EXPECT_EQ(program.kernels[0].name, "conv");
  EXPECT_EQ(program.kernels[0].entry, "cleave_conv");
  EXPECT_EQ(program.kernels[0].grid.x, 4u);
  EXPECT_EQ(program.kernels[0].block.y, 16u);
  EXPECT_EQ(program.kernels[0].sharedBytes, 4096u);
  EXPECT_EQ(program.modules[0].objects[1].code, "ptx 90");
  EXPECT_EQ(program.modules[0].objects[2].target, 1u);
  EXPECT_EQ(program.weights[1].embedded, "0123456789abcdef");
  EXPECT_TRUE(program.weights[0].splat);
  EXPECT_EQ(program.variants[1].dims[0].name, "batch");
  EXPECT_EQ(program.variants[1].dims[0].size, 2);
  EXPECT_EQ(program.variants[0].inputs[3].role, StepRole::Optimizer);
  EXPECT_EQ(program.variants[0].inputs[3].origin.name, "all");
  EXPECT_EQ(program.variants[0].inputs[2].role, StepRole::None);
  const Command &attention = program.variants[0].lists[0].commands[1];
  EXPECT_EQ(attention.stream, 1u);
  EXPECT_EQ(program.nodes[attention.node], "/attention");
  EXPECT_EQ(std::get_if<Attention>(&attention.action)->scale, 0.25);
  EXPECT_TRUE(std::get_if<Attention>(&attention.action)->causal);

  bytes = writeProgram(makeTensorParallel());
  program = *readProgram(bytes);
  EXPECT_EQ(program.targets[0].features, (std::vector<std::string>{"avx2", "fma"}));
  EXPECT_EQ(program.axes[1].name, "model");
  EXPECT_EQ(program.devices, (std::vector<uint32_t>{3, 2, 1, 0}));
  EXPECT_EQ(program.columns[1], "8 * model");
  EXPECT_EQ(program.files[0].path, "model.onnx");
  EXPECT_EQ(program.weights[0].offset, 1024u);
  EXPECT_EQ(program.weights[0].digest, "0011223344556677");
  EXPECT_EQ(program.roles[0].loads[0].layout.width, 16u);
  EXPECT_EQ(program.variants[0].inputs[0].sharding, "[data, model]");
  const auto *matmul = std::get_if<Matmul>(&program.variants[0].lists[0].commands.back().action);
  EXPECT_EQ(matmul->scale, 0.5);
  EXPECT_EQ(matmul->activation, Activation::Relu);
  EXPECT_EQ(matmul->fallback, -1);
  ASSERT_TRUE(matmul->bias && matmul->residual);

  bytes = writeProgram(makeSingle());
  program = *readProgram(bytes);
  EXPECT_EQ(program.metadata.producer, "cleave 0.1.0");
  EXPECT_EQ(program.metadata.model, "gelu.onnx");
  EXPECT_EQ(program.metadata.modelDigest, "0123456789abcdef");
  EXPECT_EQ(program.metadata.plan, "");
  EXPECT_EQ(program.metadata.report, "{}");
  EXPECT_EQ(std::get_if<Launch>(&program.variants[0].lists[0].commands[1].action)->scalars[0].base, 8);
}

// Code and embedded weights lie behind the tables, at multiples of 64, and are referred to, not copied.
TEST(FileTest, DataIsAlignedAndNotCopied) {
  std::string bytes = writeProgram(makeCuda());
  Program program = *readProgram(bytes);
  for (std::string_view data : {program.modules[0].objects[0].code, program.weights[1].embedded}) {
    EXPECT_GE(data.data(), bytes.data());
    EXPECT_LE(data.data() + data.size(), bytes.data() + bytes.size());
    EXPECT_EQ((data.data() - bytes.data()) % 64, 0);
  }
}

// Bytes at any address: FlatBuffers need theirs aligned.
TEST(FileTest, ReadsFromAnyAddress) {
  std::string bytes = " " + writeProgram(makePipeline());
  EXPECT_EQ(refuse(std::string_view(bytes).substr(1)), "");
}

TEST(FileTest, TellsProgramsFromOtherFiles) {
  EXPECT_TRUE(isProgram(writeProgram(makeSingle())));
  EXPECT_FALSE(isProgram(""));
  EXPECT_FALSE(isProgram("CLVPCLVP"));
  EXPECT_EQ(refuse("module {}"), "it is MLIR, not a program (P1)");
  EXPECT_EQ(refuse("\1\2\3\4\5\6\7\1\2\3\4\5\6\7"), "is not a program file: there is no \"CLVP\" at byte 8 (P1)");
}

// P1
TEST(FileTest, RefusesDamagedFiles) {
  std::string bytes = writeProgram(makeSingle());
  uint32_t length;
  std::memcpy(&length, bytes.data(), 4);
  EXPECT_EQ(refuse(std::string_view(bytes).substr(0, 100)),
            "is cut off: tables of " + std::to_string(length) + " bytes in a file of 100 (P1)");
  std::string broken = bytes;
  broken[4] = '\x7f'; // where the root lies
  EXPECT_EQ(refuse(broken), "is damaged: its tables are not those that were written, by their digest (P1)");
  EXPECT_EQ(refuse(broken, Verify::No), "its tables are damaged (P1)");
}

// P1: whichever bit of what lies before the data, and of the seal behind them, is another one.
TEST(FileTest, EveryBitOfTablesIsSealed) {
  std::string bytes = writeProgram(makeCuda());
  uint32_t length;
  std::memcpy(&length, bytes.data(), 4);
  size_t head = (length + 4 + 63) / 64 * 64;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (bit >= head * 8 && bit < (bytes.size() - 16) * 8)
      continue;
    bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(refuse(bytes), "") << "bit " << bit;
    bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
  }
  EXPECT_EQ(refuse(std::string_view(bytes).substr(0, bytes.size() - 1)),
            "is cut off, or has more bytes than were written: the seal at its end is not there (P1)");
  EXPECT_NE(refuse(bytes + "x"), "");
  EXPECT_EQ(refuse(bytes), "");
}

// Code and weights are verified by who loads them, by these. Whoever writes a program need not give them.
TEST(FileTest, DigestsOfDataStandInTheTables) {
  Program program = makeCuda();
  std::string bytes = writeProgram(program);
  program = *readProgram(bytes);
  for (const Object &object : program.modules[0].objects)
    EXPECT_EQ(object.digest, hashBytes(object.code));
  EXPECT_EQ(program.weights[1].blocks, std::vector<uint64_t>{hashBytes("0123456789abcdef")});
  program = makeTensorParallel();
  program.weights[0].blocks = {7};
  bytes = writeProgram(program);
  EXPECT_EQ(readProgram(bytes)->weights[0].blocks, std::vector<uint64_t>{7});
}

// Files of before there were digests are read as they are: their tables do not say that they are sealed.
TEST(FileTest, ReadsFilesWithoutASeal) {
  std::string bytes = writeProgram(makeSingle());
  std::vector<uint64_t> aligned(bytes.size() / 8 + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  auto *table = const_cast<flatbuffers::Table *>(
      reinterpret_cast<const flatbuffers::Table *>(file::GetSizePrefixedProgram(aligned.data())));
  ASSERT_TRUE(table->SetField<uint8_t>(file::Program::VT_SEALED, 0, 1));
  std::string old(reinterpret_cast<char *>(aligned.data()), bytes.size() - 16);
  EXPECT_EQ(refuse(old), "");
}

// P2
TEST(FileTest, RefusesOtherVersions) {
  Program program = makeSingle();
  program.version = 6;
  EXPECT_EQ(refuse(program), "is of version 6, expected 1 to 5 (P2)");
  program.version = 0;
  EXPECT_EQ(refuse(program), "is of version 0, expected 1 to 5 (P2)");
}

// P3
TEST(FileTest, RefusesUnknownCases) {
  Program program = makeSingle();
  program.types[0].element = static_cast<Element>(13);
  EXPECT_EQ(refuse(program), "element type 13 is not known (P3)");
  program = makeSingle();
  program.kernels[0].parameters[0].access = static_cast<Access>(3);
  EXPECT_EQ(refuse(program), "access 3 is not known (P3)");
  program = makeSingle();
  program.roles[0].buffers[0].kind = static_cast<BufferKind>(6);
  EXPECT_EQ(refuse(program), "kind of buffer 6 is not known (P3)");
  program = makeCuda();
  program.modules[0].objects[0].format = static_cast<Format>(3);
  EXPECT_EQ(refuse(program), "format 3 is not known (P3)");
  program = makeCollectives();
  std::get_if<Collective>(&program.variants[0].lists[0].commands[1].action)->kind = static_cast<CollectiveKind>(5);
  EXPECT_EQ(refuse(program), "kind of collective 5 is not known (P3)");
}

/// A file with tables alone, as somebody may have made them who does not use our writer.
static std::string finish(flatbuffers::FlatBufferBuilder &builder, flatbuffers::Offset<file::Command> command,
                          const std::vector<flatbuffers::Offset<flatbuffers::String>> &nodes) {
  auto commands = builder.CreateVector(&command, 1);
  auto list = file::CreateList(builder, 1, 0, commands);
  auto lists = builder.CreateVector(&list, 1);
  auto variant = file::CreateVariant(builder, 0, 0, 0, 0, lists);
  auto variants = builder.CreateVector(&variant, 1);
  auto targets = builder.CreateVector(std::vector<flatbuffers::Offset<file::Target>>());
  auto roles = builder.CreateVector(std::vector<flatbuffers::Offset<file::Role>>());
  auto names = builder.CreateVector(nodes);
  file::ProgramBuilder program(builder);
  program.add_version(1);
  program.add_targets(targets);
  program.add_roles(roles);
  program.add_variants(variants);
  program.add_nodes(names);
  file::FinishSizePrefixedProgramBuffer(builder, program.Finish());
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()};
}

// P3: FlatBuffers lets a case of a union pass that it does not know.
TEST(FileTest, RefusesUnknownCommands) {
  flatbuffers::FlatBufferBuilder builder;
  auto wait = file::CreateWait(builder, 0);
  auto command = file::CreateCommand(builder, 0, -1, static_cast<file::Action>(200), wait.Union());
  EXPECT_EQ(refuse(finish(builder, command, {})), "kind of command 200 is not known (P3)");
}

// P1: a thousand names that are one and the same; such files ask for more memory than they have bytes.
TEST(FileTest, RefusesTablesThatMultiply) {
  flatbuffers::FlatBufferBuilder builder;
  auto command = file::CreateCommand(builder, 0, -1, file::Action::Wait, file::CreateWait(builder, 0).Union());
  auto name = builder.CreateString(std::string(10000, 'x'));
  EXPECT_EQ(refuse(finish(builder, command, std::vector(1000, name))),
            "its tables refer to more bytes than it has (P1)");
}

// P1: a vector of 8-byte numbers at a multiple of 4 passes FlatBuffers' verifier.
TEST(FileTest, RefusesMisalignedVectors) {
  std::vector<std::string> errors;
  for (size_t padding : {0, 4}) {
    flatbuffers::FlatBufferBuilder builder;
    builder.StartVector(16, 1);
    for (int i = 0; i < 16; ++i)
      builder.PushElement<uint8_t>(0);
    flatbuffers::Offset<flatbuffers::Vector<int64_t>> table(builder.EndVector(2));
    builder.CreateString(std::string(padding, 'x')); // buffers are built from behind
    auto none = builder.CreateVector(std::vector<flatbuffers::Offset<file::Target>>());
    file::ProgramBuilder program(builder);
    program.add_version(1);
    program.add_targets(none);
    program.add_roles(flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<file::Role>>>(none.o));
    program.add_variants(flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<file::Variant>>>(none.o));
    program.add_rank_table(table);
    file::FinishSizePrefixedProgramBuffer(builder, program.Finish());
    errors.push_back(
        refuse(std::string_view(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize())));
  }
  // One of the two lies well, and fails for being empty.
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(errors[0], "has 0 ranks, expected 1 to 1048576 (P5)");
  EXPECT_EQ(errors[1], "its tables are damaged (P1)");
}

// P4
TEST(FileTest, RefusesBytesOutsideOfTheData) {
  std::string bytes = writeProgram(makeSingle());
  EXPECT_EQ(refuse(std::string_view(bytes).substr(0, bytes.size() - 17), Verify::No), // the seal, and a byte
            "bytes 0 + 18 do not lie in the 17 bytes of data at a multiple of 64 (P4)");
  // Inside, but not at a multiple: offset and length stand side by side in the tables.
  auto asBytes = [](uint64_t offset, uint64_t length) {
    std::string text(16, '\0');
    std::memcpy(text.data(), &offset, 8);
    std::memcpy(text.data() + 8, &length, 8);
    return text;
  };
  size_t at = bytes.find(asBytes(0, 18));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 16, asBytes(4, 8));
  EXPECT_EQ(refuse(bytes, Verify::No), "bytes 4 + 8 do not lie in the 18 bytes of data at a multiple of 64 (P4)");
}
