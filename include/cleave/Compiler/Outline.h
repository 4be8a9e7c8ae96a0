//===- Outline.h - what is in a model ---------------------------*- C++ -*-===//
//
//   std::optional<cleave::Outline> outline = cleave::makeOutline(compilation);
//   for (const cleave::ParameterGroup &group : cleave::groupParameters(outline->parameters)) ...
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_OUTLINE_H
#define CLEAVE_COMPILER_OUTLINE_H

#include "cleave/Compiler/Compilation.h"

namespace cleave {

/// A tensor of the signature, a parameter, or a tensor inside.
struct TensorOutline {
  std::string name;
  /// `f32[8, 128]`; a dim that is not known yet has its name.
  std::string type;
  int64_t bytes = 0;
  /// Nodes that read a parameter, as a plan addresses them: `node:/enc/MatMul#1`. Of a tensor inside the node that
  /// computes it: `/enc/MatMul`.
  std::vector<std::string> nodes = {};
  /// Of bytes that hold elements of 4 or 2 bits: the tensor of these, `i4[64, 96]`; empty for others.
  std::string holds = {};
  /// Of a parameter the first module that reads it, `model.layers.0.mlp.up_proj`; empty where no module does.
  std::string module = {};
  /// Of a parameter: it holds integers or truth values that are no weights, which have 8 bits or fewer and come as bytes.
  bool isConstant = false;
  /// Of a parameter.
  int64_t elements = 0;
};

/// What a module of the exporter's model has itself, without modules in it.
struct ModuleOutline {
  std::string path;
  /// Elements and bytes of the parameters that it reads first, floating-point operations of its contractions.
  int64_t elements = 0, bytes = 0;
  double flops = 0;
  /// Types of these parameters.
  std::vector<std::string> types = {};
};

struct Outline {
  std::vector<TensorOutline> inputs, outputs, parameters;
  /// Those that have something, in the order of the model; empty where no file says which there are.
  std::vector<ModuleOutline> modules;
  /// Inside, by each of their names.
  std::vector<TensorOutline> tensors;
  /// How many there are of each kind of op: of ours, or of ONNX where sizes are not known.
  std::map<std::string, int64_t> ops;
  /// Floating-point operations in contractions.
  double flops = 0;
  /// The options that would give sizes that are not known yet, `--dim batch=..`. Without them a model cannot be imported:
  /// its dims keep their names, and tensors inside and floating-point operations are not known.
  std::string open;

  int64_t countOps() const;
};

/// Loads a model, if its sizes are known, and says what is in it. Nothing after an error, which may be several.
std::optional<Outline> makeOutline(Compilation &compilation);

/// Parameters that share a line.
struct ParameterGroup {
  std::string name, type, nodes;
  size_t count = 1;
  int64_t bytesEach = 0;
  /// As of each of them.
  std::string holds = {};
};

/// A model of forty layers has forty parameters that are the same but for a number in their names, read by nodes that
/// are the same but for numbers. They make one group; the numbers stand in braces, as a plan's patterns have them, or as
/// a star where they are many:
///
///   encoder.layer.{0,1}.query.weight   f32[64, 64]   2 x 16.38 kB   node:/encoder/layer.{0,1}/query/MatMul#1
std::vector<ParameterGroup> groupParameters(llvm::ArrayRef<TensorOutline> parameters);

/// A line of the tree of modules, or equal layers side by side.
struct ModuleGroup {
  unsigned depth = 0;
  /// Below the module that it is in: `self_attn`, `layers.{0..11}`.
  std::string name;
  size_t count = 1;
  /// Of each of `count`, with all modules in it.
  int64_t elements = 0, bytes = 0;
  double flops = 0;
  /// Of the module itself.
  std::vector<std::string> types = {};
};

/// The modules as a tree, in which a module comes before those in it. Siblings that are called by numbers and are equal in all below them
/// share a line:
///
///   model
///     embed_tokens
///     layers.{0..11}   12 x ..
///       self_attn
std::vector<ModuleGroup> groupModules(llvm::ArrayRef<ModuleOutline> modules);

} // namespace cleave

#endif // CLEAVE_COMPILER_OUTLINE_H
