//===- TryProgram.cpp - a program under bad conditions --------------------===//
//
//   cleave-try-program PROGRAM INPUTS.npz
//
// Runs a program five times, each time with other delays before kernels and operations, and on memory full of other bytes.
// Outputs must be the same bits. Every buffer ends at a page that nobody may touch, and stands behind one.
//
//   | no access | ....... buffer | no access |
//
// A byte of a buffer was touched if, after a run, it is not what it was filled with. What is written last to a byte is the
// same in all runs, so it differs from what some run filled in: over all runs no touched byte is missed, and nothing else
// is counted. What must be touched is worked out here, from the views that the program's commands write. Prints, in JSON,
// the bytes of one rank's arenas as they are in the program, the end of the last byte touched, how many were, and all
// bytes that the device was asked for; exits with 1, and says why, if something is wrong.
//
//===----------------------------------------------------------------------===//
#include "../Unit/Runtime/Conformance.h"
#include "cleave/Arrays/Npz.h"
#include "cleave/Program/Digest.h"
#include "cleave/Program/Operands.h"
#include "cleave/Runtime/Device.h"
#include "cleave/Runtime/Executor.h"
#include "cleave/Runtime/Files.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace cleave::runtime;
namespace program = cleave::program;
using program::BufferKind;
using program::concat;

/// What buffers are full of, run by run: every byte that is written differs from one of these. Zeros; NaN as floats; noughts
/// and ones in turn.
static constexpr unsigned char kFills[] = {0x00, 0xff, 0x55, 0xaa, 0x01};

[[noreturn]] static void fail(const std::string &message) {
  std::printf("%s\n", message.c_str());
  std::fflush(stdout);
  _exit(1);
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

namespace {

/// What was asked for, and what it lies in: from behind one page without access to the next.
struct Block {
  char *address;
  uint64_t bytes;
  char *begin, *end;
};

/// This machine, with walls around its memory, late now and then.
class WalledHost final : public Device {
public:
  WalledHost(std::vector<Block> &blocks, std::function<void(int)> delay)
      : host(makeHost()), blocks(blocks), delay(std::move(delay)) {}

  /// At the end of its pages, as far as the alignment lets it.
  program::Result<char *> allocate(uint64_t bytes, uint64_t alignment, program::Memory, bool) override {
    uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
    uint64_t room = (std::max<uint64_t>(bytes, 1) + alignment + page - 1) / page * page;
    void *memory = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *begin = static_cast<char *>(memory) + page;
    if (memory == MAP_FAILED || mprotect(begin, room, PROT_READ | PROT_WRITE) != 0)
      return program::makeError("cannot get ", bytes, " bytes");
    uint64_t last = reinterpret_cast<uint64_t>(begin) + room - bytes;
    char *address = reinterpret_cast<char *>(last / alignment * alignment);
    blocks.push_back({address, bytes, begin, begin + room});
    return address;
  }
  void launch(const BoundLaunch &launch, uint32_t stream) override {
    if (delay)
      delay(0);
    host->launch(launch, stream);
  }

  std::optional<std::string> findMissing(const program::Target &target) const override {
    return host->findMissing(target);
  }
  uint64_t getFreeBytes() const override { return host->getFreeBytes(); }
  program::Result<uint32_t> load(const program::Object &object, const std::string &name) override {
    return host->load(object, name);
  }
  program::Result<KernelEntry> find(uint32_t code, const std::string &entry) override {
    return host->find(code, entry);
  }
  void copy(const BoxCopy &box, const char *source, char *target, uint32_t stream) override {
    host->copy(box, source, target, stream);
  }

private:
  std::unique_ptr<Device> host;
  std::vector<Block> &blocks;
  std::function<void(int)> delay;
};

} // namespace

//===----------------------------------------------------------------------===//
// What a program says
//===----------------------------------------------------------------------===//

/// Per byte of a buffer what becomes of it.
enum : uint8_t { kMust = 1, kMay = 2, kTouched = 4 };
using Bytes = std::vector<uint8_t>;

/// The elements of a view, wherever its strides put them.
static void mark(const program::Program &program, const program::View &view, uint32_t rank, uint8_t how,
                 std::vector<Bytes> &buffers) {
  const program::Type &type = program.types[view.type];
  uint64_t size = program::getElementBytes(type.element), begin = uint64_t(program.evaluate(view.offset, rank));
  std::vector<int64_t> strides = type.strides, index(type.shape.size());
  if (strides.empty()) {
    strides.resize(type.shape.size());
    int64_t stride = 1;
    for (size_t dim = strides.size(); dim-- > 0; stride *= type.shape[dim])
      strides[dim] = stride;
  }
  for (uint64_t left = program::getBytes(type) / size; left > 0; --left) {
    uint64_t at = begin;
    for (size_t dim = 0; dim < index.size(); ++dim)
      at += uint64_t(index[dim] * strides[dim]) * size;
    for (uint64_t byte = 0; byte < size; ++byte)
      buffers[view.buffer][at + byte] |= how;
    for (size_t dim = index.size(); dim-- > 0 && ++index[dim] == type.shape[dim];)
      index[dim] = 0;
  }
}

/// What the commands of `rank` write, and its inputs. Of the result of an exchange only boxes are.
static std::vector<Bytes> findWritten(const program::Program &program, const program::List &list,
                                      const program::Role &role, uint32_t rank) {
  std::vector<Bytes> buffers;
  for (const program::Buffer &buffer : role.buffers)
    buffers.emplace_back(buffer.bytes);
  for (const program::Command &command : list.commands)
    for (const program::Operand &operand : program::getOperands(program, command.action))
      if (operand.access != program::Access::Read)
        mark(program, operand.view, rank, std::holds_alternative<program::Exchange>(command.action) ? kMay : kMust,
             buffers);
  for (const program::Tensor &input : program.variants.front().inputs)
    for (const program::Place &place : input.places)
      if (&program.roles[place.role] == &role)
        mark(program, place.view, rank, kMust, buffers);
  return buffers;
}

static bool isFilled(BufferKind kind) { return kind != BufferKind::Weights && kind != BufferKind::State; }
static bool isArena(BufferKind kind) { return kind == BufferKind::Activations || kind == BufferKind::Communication; }

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {

/// What is the same in all runs, and what they find out.
struct Trial {
  std::string path;
  cleave::arrays::NpzArrays arrays;
  std::vector<Argument> arguments;
  std::vector<Value> expected;
  /// By rank, what becomes of each byte of its buffers.
  std::vector<std::vector<Bytes>> bytes;
  std::unique_ptr<Executor> executor;
  std::vector<Block> blocks;

  void run(size_t number);
  void touch(size_t rank, unsigned char fill);
  void check() const;
  void print() const;
  const program::Role &role() const { return executor->getProgram().roles.front(); }
};

} // namespace

/// Which bytes are not any more what the buffers of a rank were filled with; around buffers none may be.
void Trial::touch(size_t rank, unsigned char fill) {
  const std::vector<program::Buffer> &buffers = role().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Block &block = blocks[rank * buffers.size() + i];
    if (!isFilled(buffers[i].kind))
      continue;
    for (const char *at = block.begin; at < block.end; ++at) {
      if (static_cast<unsigned char>(*at) == fill)
        continue;
      if (at < block.address || at >= block.address + block.bytes)
        fail(concat("rank ", rank, " wrote ", int64_t(at - block.address), " bytes from the start of buffer ", i,
                    ", which has ", block.bytes));
      bytes[rank][i][size_t(at - block.address)] |= kTouched;
    }
  }
}

/// One run; the first opens what the others are held against.
void Trial::run(size_t number) {
  ExecutorOptions options;
  options.communication.delay = test::makeDelays(number + 1);
  options.catchesCrashes = true;
  blocks.clear();
  executor.reset();
  options.makeDevice = [&] { return std::make_unique<WalledHost>(blocks, options.communication.delay); };
  if (ExecutorStatus error = Executor::open(path, options, executor))
    fail(error->message);
  const program::Program &program = executor->getProgram();
  if (program.roles.size() != 1 || program.variants.size() != 1)
    fail("the program has several roles or variants, which are not counted here");
  const std::vector<program::Buffer> &buffers = role().buffers;
  std::vector<uint64_t> weights(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i < program.ranks * buffers.size() && isFilled(buffers[i % buffers.size()].kind))
      std::memset(blocks[i].begin, kFills[number], size_t(blocks[i].end - blocks[i].begin));
    else
      weights[i] = program::hashBytes({blocks[i].address, blocks[i].bytes});
  std::vector<Value> outputs;
  if (ExecutorStatus error = executor->run(arguments, outputs))
    fail(error->message);
  if (number == 0) {
    expected = outputs;
    for (uint32_t rank = 0; rank < program.ranks; ++rank)
      bytes.push_back(findWritten(program, executor->getList(0, rank), role(), rank));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].data != expected[i].data)
      fail(concat("output ", outputs[i].name, " has other bits in run ", uint64_t(number)));
  for (size_t rank = 0; rank < program.ranks; ++rank)
    touch(rank, kFills[number]);
  for (size_t i = 0; i < program.ranks * buffers.size(); ++i)
    if (buffers[i % buffers.size()].kind == BufferKind::Weights &&
        weights[i] != program::hashBytes({blocks[i].address, blocks[i].bytes}))
      fail("weights have changed");
}

/// Byte by byte: what must be touched was, and nothing else.
void Trial::check() const {
  for (size_t rank = 0; rank < bytes.size(); ++rank)
    for (size_t i = 0; i < bytes[rank].size(); ++i)
      for (size_t at = 0; isFilled(role().buffers[i].kind) && at < bytes[rank][i].size(); ++at) {
        uint8_t byte = bytes[rank][i][at];
        if (byte == kMust)
          fail(concat("rank ", rank, " did not write byte ", uint64_t(at), " of buffer ", i,
                      ", which a command writes"));
        if (byte == kTouched)
          fail(concat("rank ", rank, " wrote byte ", uint64_t(at), " of buffer ", i, ", which no command writes"));
      }
}

/// Of the rank that touches most; ends are rounded up as buffers are.
void Trial::print() const {
  uint64_t planned = 0, end = 0, touched = 0, asked = 0;
  const std::vector<program::Buffer> &buffers = role().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!isArena(buffers[i].kind))
      continue;
    uint64_t last = 0, most = 0;
    for (const std::vector<Bytes> &rank : bytes) {
      uint64_t count = 0;
      for (size_t at = 0; at < rank[i].size(); ++at)
        if (rank[i][at] & kTouched) {
          last = std::max<uint64_t>(last, at + 1);
          ++count;
        }
      most = std::max(most, count);
    }
    planned += buffers[i].bytes;
    end += (last + buffers[i].alignment - 1) / buffers[i].alignment * buffers[i].alignment;
    touched += most;
  }
  for (const Block &block : blocks)
    asked += block.bytes;
  // Two numbers for each launch that looks something up, beside what is planned.
  uint64_t reports = 0;
  const program::Program &program = executor->getProgram();
  for (uint32_t rank = 0; rank < program.ranks; ++rank)
    for (const program::Command &command : executor->getList(0, rank).commands)
      if (int64_t kernel = program::findKernel(command.action); kernel >= 0 && program.kernels[kernel].reports)
        reports += 2 * sizeof(int64_t);
  std::printf("{\"ranks\": %u, \"arena_bytes\": %llu, \"measured_bytes\": %llu, \"touched_bytes\": %llu, "
              "\"allocated_bytes\": %llu, \"report_bytes\": %llu, \"peak_bytes_per_rank\": %llu}\n",
              executor->getProgram().ranks, (unsigned long long)planned, (unsigned long long)end,
              (unsigned long long)touched, (unsigned long long)asked, (unsigned long long)reports,
              (unsigned long long)executor->getPeakBytes());
}

/// numpy's names, in the order of the enum.
static constexpr const char *kDtypes[] = {"f2", "V2", "f4", "f8", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"};

int main(int argc, char **argv) {
  if (argc != 3)
    fail("usage: cleave-try-program PROGRAM INPUTS.npz");
  FileBytes file;
  if (program::Status error = file.read(argv[2]))
    fail(error->message);
  program::Result<cleave::arrays::NpzArrays> arrays = cleave::arrays::readNpz(file.get());
  if (!arrays)
    fail(arrays.getError().message);
  Trial trial;
  trial.path = argv[1];
  trial.arrays = std::move(*arrays);
  for (const auto &[name, array] : trial.arrays) {
    auto type = std::find(std::begin(kDtypes), std::end(kDtypes), array.dtype) - std::begin(kDtypes);
    trial.arguments.push_back({name, ElementType(type), array.shape, array.data.data()});
  }
  for (size_t number = 0; number < std::size(kFills); ++number)
    trial.run(number);
  trial.check();
  trial.print();
  return 0;
}
