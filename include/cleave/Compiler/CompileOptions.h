//===- CompileOptions.h - what is made of a model, and for what -*- C++ -*-===//
//
// One set of options for all that the library does with a model: `compileModel`, `predictModel` (Compile.h), `checkModel` (Check.h),
// `scheduleModel` (Schedule.h). The options of `cleave` mean the same (docs/interface.md).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_COMPILEOPTIONS_H
#define CLEAVE_COMPILER_COMPILEOPTIONS_H

#include "cleave/Codegen/Allowed.h"
#include "cleave/Pipelines/Phases.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave {

/// What floats of f32 are in programs: as the model says, in half the bytes, or products in three of bf16 each.
enum class Precision { F32, BF16, Split };
inline constexpr llvm::StringLiteral kPrecisionWords[] = {"f32", "bf16", "split"};

/// Who computes what a device has libraries for: these where they are found, or kernels alone.
enum class LibraryUse { Auto, None };
inline constexpr llvm::StringLiteral kLibraryUseWords[] = {"auto", "none"};

/// Of a plan's pipeline; 0, or empty: as the plan says.
struct PipelineSizes {
  uint64_t ranks = 0, microbatches = 0, chunks = 0;
  /// By name, or the path of a table.
  std::string schedule;
};

struct CompileOptions {
  /// An .onnx file or an MLIR file (text or bytecode) at any phase; `-` is standard input.
  std::string model;
  /// The function that is run, of a file that has several; empty: `main`, or the only one.
  std::string entry;
  /// Sizes of symbolic dims, and shapes of inputs whose dims have no name.
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Other sizes of the same dims: a program has a variant for `dims` and for each of these.
  std::vector<std::map<std::string, int64_t>> variants;
  /// An .npz file whose arrays say the shapes of inputs, and the values that shapes depend on; may be empty.
  std::string inputs;
  /// A folder in which the weights that an MLIR file refers to lie now; empty: where it says.
  std::string weights;
  /// The digests of weights that an MLIR file has are not held against what is in their files.
  bool ignoreDigests = false;
  /// What is written has the digests of samples of weights, not of all their bytes: these are not read.
  bool sampleDigests = false;

  /// Where no mesh is named: the plan for so many devices that is found is taken as if it were given (FindPlan.h). 0: none is looked for.
  uint64_t devices = 0;
  /// What is proposed as the size of a batch that has none.
  uint64_t exampleBatch = 4;
  /// `megatron`, or `data,megatron`: a plan of these styles (Search/Styles.h), one an axis of the mesh, or one for all, is taken as if it
  /// were given. `devices` are then those of the one axis of a mesh that is not named. Empty: none.
  std::string like;
  /// A step of training is made of the model, as the plan's `train` says, or this text in its place, `{loss: .., optimizer: ..}`.
  bool train = false;
  std::string trainText;
  /// A call of the step makes so many, one behind the other, and takes as many batches. At least 1.
  uint64_t stepsPerCall = 1;
  /// A folder of what onnxruntime trains with (Onnx/Artifacts.h): the model, its weights, and what `train` of a plan does not say of loss,
  /// optimizer and what is trained. Implies `train`; `model` is empty then, or `getArtifactsModel`.
  std::string artifacts;
  /// Gradients are outputs of the step.
  bool keepsGradients = false;
  /// All tensors of the model that have a name are outputs, so that each can be compared.
  bool returnsAll = false;
  /// The program of a step has an entry `eval` beside, which gives the loss and changes nothing.
  bool evaluates = false;
  /// The machine: a name or a file, instead of the plan's; may be empty (Plan/ClusterFile.h).
  std::string cluster;
  /// A GPU by name (Plan/Gpus.h): its cluster is taken where neither `cluster` nor the plan names one; may be empty.
  std::string gpu;
  /// A rank that takes more than the memory of a device is an error, not a warning.
  bool mustFit = false;
  /// The mesh, the plan, and the options of all passes.
  ShardOptions sharding;
  /// `sharding.optimize` was asked for. Else a step of training for the host is decided by time on the host, where no machine is named.
  bool hasObjective = false;
  /// Go before what the plan says of its pipeline. Without one they have no effect.
  PipelineSizes pipeline;

  /// What a program is for: `host`, or `cuda:` and architectures, the best first, as in `cuda:sm_90,sm_80`; `cuda:emulated`.
  std::string target = "host";
  /// Of the host: `native`, a processor as LLVM names it, or `portable`: code for several.
  std::string isa = "native";
  Precision precision = Precision::F32;
  LibraryUse libraries = LibraryUse::Auto;
  /// What products on devices may do to the numbers that they multiply.
  codegen::Allowed allowed = codegen::Allowed::Nothing;
  /// Weights stand in the program, not in the files that they came from.
  bool embedWeights = false;
  /// For tests: temporaries of kernels lie where who runs the program puts them (codegen::HostTarget).
  bool guardsScratch = false;

  /// A folder that gets a file per phase; empty: none.
  std::string dumpPhases;
};

/// The model in a folder of onnxruntime's artifacts.
std::string getArtifactsModel(const std::string &folder);

} // namespace cleave

#endif // CLEAVE_COMPILER_COMPILEOPTIONS_H
