//===- Tensors.h - what callers see of a program ----------------*- C++ -*-===//
//
// Inputs, outputs, and states, which are both: where ranks hold them, and, of a step of training, what each is for.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PROGRAM_TENSORS_H
#define CLEAVE_PROGRAM_TENSORS_H

#include "cleave/Program/Command.h"
#include <string>

namespace cleave::program {

/// What the ranks of a role hold of a tensor: a box that begins at `starts`, as large as the view's type.
struct Place {
  uint32_t role = 0;
  View view;
  std::vector<Number> starts;
  Number term;                      ///< which term of a partial tensor
  std::vector<Number> present = {}; ///< per dim, how much of the box there is; the rest is padding (empty: all)
};

/// What an input of a step of training is for: its batch, a parameter, what an optimizer keeps of one, statistics of batch norms, the
/// steps done, the scale of f16's loss.
enum class StepRole : uint8_t { None, Batch, Parameter, Optimizer, Running, Count, Scale };

/// What a state is in a checkpoint: all of the tensor `name`, or what begins at `starts` of it, whose whole `shape` is given then.
/// No name: it is called as the input, and is all of it.
struct Origin {
  std::string name;
  std::vector<int64_t> starts, shape;
};

/// An input or output by its ONNX name. Ranks with equal boxes and terms hold copies. A tensor in terms is what its
/// terms combine to by `reduction`.
struct Tensor {
  std::string name;
  uint32_t type = 0;    ///< whole
  std::string sharding; ///< as plans write it, for people
  Reduction reduction = Reduction::None;
  uint32_t terms = 1;
  std::vector<Place> places;
  std::vector<uint8_t> value = {}; ///< of an input that the program depends on: its only elements (empty: any)
  StepRole role = StepRole::None;  ///< of an input
  Origin origin = {};              ///< of an input
};

/// An output that is the next call's input, in the same bytes; -1: no output is, and the input stays as it is.
struct State {
  uint32_t input = 0;
  int32_t output = 0;
};

/// Numbers of an input that are indices: all are from `least` to `most`, or `node` (-1: none) cannot look them up.
struct IndexRange {
  uint32_t input = 0;
  int32_t node = -1;
  int64_t least = 0, most = 0;
};

} // namespace cleave::program

#endif // CLEAVE_PROGRAM_TENSORS_H
