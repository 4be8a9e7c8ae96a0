//===- Program.h - a compiled model as plain values -------------*- C++ -*-===//
//
// What a program file (File.h) holds. The compiler fills it in and writes it; the runtime reads it and runs it:
//
//   Program ── targets, modules, kernels: machine code
//           ── weights: which bytes of which file
//           ── roles: which ranks run one list; their buffers, and what is loaded into them once
//           └─ variants, one per set of input shapes
//                ── inputs, outputs, states: where callers' tensors lie
//                └─ lists: one per role, its commands (Command.h)
// Tables refer to each other by number. Bytes are not owned: whoever made or mapped them keeps them.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_PROGRAM_H
#define CLEAVE_PROGRAM_PROGRAM_H

#include "cleave/Program/Tensors.h"
#include <cassert>
#include <string_view>

namespace cleave::program {

/// The newest version that this code reads; those that it writes where weights have parts, where there are loops, where
/// kernels report, and where states begin as weights. Else it is 1.
inline constexpr uint32_t kVersion = 5, kPartsVersion = 2, kLoopsVersion = 3, kReportsVersion = 4, kBeginsVersion = 5;

/// Named as everywhere in Cleave; an i1 takes a byte.
enum class Element : uint8_t { F16, BF16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64 };

/// A tensor's layout: the distance between neighbors of each dim in elements; row-major where there are no strides.
struct Type {
  Element element = Element::F32;
  std::vector<int64_t> shape, strides;
};

enum class Device : uint8_t { Host, Cuda };
enum class Format : uint8_t { SharedObject, Ptx, Cubin };
enum class Access : uint8_t { Read, Write, ReadWrite };
/// What the code may run on: `x86-64` with `avx512f`, `sm_90`. The loader takes the first target that suits.
struct Target {
  Device device = Device::Host;
  std::string architecture;
  std::vector<std::string> features;
};

struct Object {
  uint32_t target = 0;
  Format format = Format::SharedObject;
  std::string_view code;
  uint64_t digest = 0; ///< of the code (`hashBytes`), given when it is written; 0: none
};

/// The same entries for each target; of several objects for one target the first that loads.
struct Module {
  std::string name;
  std::vector<Object> objects;
};

/// What a kernel is given: the address of a tensor of just this type.
struct Parameter {
  uint32_t type = 0;
  Access access = Access::Read;
  int32_t alias = -1;     ///< an earlier parameter whose bytes it may be (in place); -1: none
  uint32_t alignment = 1; ///< of the address, which the code relies on
};

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
};

struct Kernel {
  std::string name;
  uint32_t module = 0;
  std::string entry; ///< the symbol
  std::vector<Parameter> parameters;
  uint32_t scalars = 0; ///< 64-bit integers behind the parameters
  Extent grid, block;   ///< of a device's launch; the host calls it once
  uint32_t sharedBytes = 0;
  /// It takes the address of two 64-bit integers behind the parameters, zeros at first: of an index that is out of range, and one more
  /// than the places that there are.
  bool reports = false;
};

struct Axis {
  std::string name;
  uint32_t size = 1;
};

/// Groups of equal size, one behind the other, members in order. Ranks outside take no part.
struct Groups {
  std::string axes; ///< what they run along, for people
  uint32_t size = 1;
  std::vector<uint32_t> ranks;
};

struct Ends {
  uint32_t source = 0, target = 0;
};

/// Boxes that ranks send each other. Per end `dims` extents, then as many starts in the operand of the source, then in
/// the result of the target.
struct Pieces {
  uint32_t dims = 0;
  std::vector<Ends> ends;
  std::vector<int64_t> boxes;

  /// Of the box of one end.
  uint64_t countElements(size_t end) const {
    uint64_t elements = 1;
    for (size_t dim = 0; dim < dims; ++dim)
      elements *= static_cast<uint64_t>(boxes[end * 3 * dims + dim]);
    return elements;
  }
};

/// A file that weights lie in, by its path as the compiler had it, and its size.
struct File {
  std::string path;
  uint64_t bytes = 0;
};

/// Constant elements, row-major and little-endian: bytes of a file, with the digest of a sample of them (Digest.h), or of this
/// program. A splat has the bytes of one element, which all have.
struct Weight {
  std::string name;
  uint32_t type = 0;
  int32_t file = -1; ///< -1: `embedded`
  uint64_t offset = 0, length = 0;
  std::string digest;
  std::string_view embedded;
  bool splat = false;
  std::vector<uint32_t> parts = {}; ///< weights before it that it consists of instead, one per entry of its first dim
  /// The digest of each block of its bytes (`digestBlocks`); empty: it is not verified. Of what is embedded given when it is written.
  std::vector<uint64_t> blocks = {};
};

/// How a slice lies in memory: its dims in `order` (empty: as they are). With a width, the last dim is cut into panels:
/// [batch.., n / width, k.., k last / interleave, width, interleave], zeros where rounded up; `batch` dims stay in front.
struct Layout {
  std::vector<uint32_t> order;
  uint32_t batch = 0, width = 0, interleave = 1;
};

/// Done once, before the first run, and, where the buffer is a state's, when states are reset: a box of a weight into a buffer. Floats
/// may be cast to other floats.
struct Load {
  uint32_t weight = 0;
  std::vector<Number> starts;
  std::vector<int64_t> shape;
  Layout layout;
  View target;
  std::vector<Number> present = {}; ///< per dim, how much of the box there is; the rest becomes zeros (empty: all)
};

enum class BufferKind : uint8_t { Activations, Communication, Weights, Input, Output, State };
enum class Memory : uint8_t { Device, Host };
struct Buffer {
  BufferKind kind = BufferKind::Activations;
  Memory memory = Memory::Device;
  uint64_t bytes = 0;
  uint32_t alignment = 64;
};

/// Ranks that run the same lists, with memory alike: all of them, or a stage of a pipeline.
struct Role {
  std::string name;
  std::vector<uint32_t> ranks;
  std::vector<Buffer> buffers;
  std::vector<Load> loads;
};

struct Dim {
  std::string name;
  int64_t size = 0;
};

struct List {
  uint32_t streams = 1, events = 0;
  std::vector<Command> commands;
};

struct Variant {
  std::vector<Dim> dims; ///< what the shapes were compiled for, for people
  std::vector<Tensor> inputs, outputs;
  std::vector<State> states;
  std::vector<List> lists; ///< by role
  std::vector<IndexRange> ranges = {};
  std::string entry =
      {}; ///< which function of several it is of: `step`, `eval`; the first variant's is the one that is run unasked
};

/// For people and for finding out what a file is.
struct Metadata {
  std::string producer, model, modelDigest, plan, report, precision;
};

struct Program {
  uint32_t version = 1;
  std::vector<Target> targets;
  std::vector<Axis> axes;        ///< the mesh, major to minor; rank = row-major index
  std::vector<uint32_t> devices; ///< of each rank; empty: equal to the rank
  uint32_t ranks = 1;
  std::vector<std::string> columns; ///< what the rank table's columns hold, for people
  std::vector<int64_t> rankTable;   ///< row-major, a row per rank
  std::vector<Type> types;
  std::vector<Module> modules;
  std::vector<Kernel> kernels;
  std::vector<Groups> groups;
  std::vector<Pieces> pieces;
  std::vector<File> files;
  std::vector<Weight> weights;
  std::vector<Role> roles;
  std::vector<Variant> variants;
  std::vector<std::string> nodes; ///< names of the model's nodes
  Metadata metadata;
  std::vector<std::string> units; ///< actions of a schedule, as its table has them: `1F3`; for people

  /// `number` on `rank`. Precondition: column and rank are there (P8), and the sum does not overflow (P9).
  int64_t evaluate(const Number &number, uint32_t rank) const {
    assert(rank < ranks && number.column < int64_t(columns.size()) && "a number of another table (P8)");
    return number.base + (number.column < 0 ? 0 : rankTable[rank * columns.size() + number.column]);
  }
};

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_PROGRAM_H
