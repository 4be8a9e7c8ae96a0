//===- Command.h - what a rank does, step by step ---------------*- C++ -*-===//
//
// Commands stand in one list, in the order in which they are issued; each belongs to a stream, whose commands run in that
// order. Streams run beside each other, but for events: what stands behind a `Wait` runs after what stood before the
// `Record`. docs/program-file.md has the meaning and the constraints (P..) of each.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_COMMAND_H
#define CLEAVE_PROGRAM_COMMAND_H

#include "cleave/Program/Collective.h"
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace cleave::program {

/// A loop without a count that goes on for longer is taken to be one without an end, by all that run one.
inline constexpr int64_t kMostIterations = 1 << 20;

/// How elements of several ranks combine; `None` where they do not.
enum class Reduction : uint8_t { None, Sum, Prod, Max, Min };

/// What a contraction's epilogue does to each element, last of all.
enum class Activation : uint8_t { None, Relu, Gelu, GeluTanh, Silu, Sigmoid, Tanh };

/// A number that may depend on the rank: `base`, plus what the rank table holds for the rank in `column`; -1 is no column.
struct Number {
  int64_t base = 0;
  int32_t column = -1;
};

/// A tensor in memory: `offset` bytes into a buffer of the rank's role, in the layout of a type of the program.
struct View {
  uint32_t buffer = 0;
  uint32_t type = 0;
  Number offset;
};

/// A kernel on views and numbers, as its signature asks for.
struct Launch {
  uint32_t kernel = 0;
  std::vector<View> operands;
  std::vector<Number> scalars;
};

/// result = activation(scale * a x b + bias + residual), over the last two dims; those before are a batch. A transposed
/// operand has its last two dims exchanged.
struct Matmul {
  View a, b, result;
  std::optional<View> bias, residual;
  bool transposeA = false, transposeB = false;
  double scale = 1;
  Activation activation = Activation::None;
  /// The kernel to launch where the device has no library, on a, b, bias and residual (if any) and the result; -1: none.
  int32_t fallback = -1;
  bool tf32 = false; ///< a library may round f32 to tf32 before it multiplies
};

/// activation(conv(input, filter) + bias + residual). Input and result are [N, spatial.., C], the filter
/// [C out, spatial.., C in / groups]. One number per spatial dim in each list.
struct Convolution {
  View input, filter, result;
  std::optional<View> bias, residual;
  std::vector<int64_t> strides, dilations, padsLow, padsHigh;
  uint32_t groups = 1;
  Activation activation = Activation::None;
  int32_t fallback = -1; ///< as above: input, filter, bias, residual, result
  bool tf32 = false;     ///< as above
};

/// softmax(scale * query x key' + mask) x value, all [batch, heads, length, size]. Keys and values may have fewer heads:
/// each serves equally many queries' heads, neighbors. Causal: query i of Q sees keys up to i + K - Q.
struct Attention {
  View query, key, value, result;
  std::optional<View> mask;
  double scale = 1;
  bool causal = false;
  int32_t fallback = -1; ///< as above: query, key, value, mask, result
};

/// Elements of one view into another of the same shape.
struct Copy {
  View source, target;
};

/// What all ranks of a group do together, with several tensors at once. The members' number within the group, read as a
/// row-major index over `gather` (per dim, how many pieces are put together) says which piece a member's operand is; over
/// `slice`, which piece of the result it keeps. Both are empty where nothing is gathered or sliced.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Reduction reduction = Reduction::None;
  uint32_t groups = 0;
  std::vector<View> operands, results;
  std::vector<uint32_t> gather, slice;
};

/// Pieces from rank to rank, by a list of the program. A rank that sends has an operand, one that receives a result.
struct Exchange {
  uint32_t pieces = 0;
  std::optional<View> operand, result;
};

struct Record {
  uint32_t event = 0;
};

struct Wait {
  uint32_t event = 0;
};

/// What stands between this and its `EndLoop` runs again and again: while the condition, one i1, holds, which is read here
/// before the first time, and at the end before each other one; and at most `count` times. Without a condition it runs `count`
/// times. All streams stand still at both.
struct Loop {
  int64_t count = -1; ///< -1: the condition alone ends it
  std::optional<View> condition;
};

struct EndLoop {
  std::optional<View> condition;
};

using Action =
    std::variant<Launch, Matmul, Convolution, Attention, Copy, Collective, Exchange, Record, Wait, Loop, EndLoop>;

struct Command {
  uint32_t stream = 0;
  int32_t node = -1; ///< in Program::nodes: the node of the model that it stands for; -1 is none
  Action action;
  int32_t unit = -1; ///< in Program::units: what of a pipeline's schedule it is a part of; -1 is nothing
};

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_COMMAND_H
