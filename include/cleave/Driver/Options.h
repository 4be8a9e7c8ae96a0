//===- Options.h - the command line of `cleave` -----------------*- C++ -*-===//
//
// What a user can type, parsed; the meaning of each word is fixed in docs/interface.md.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DRIVER_OPTIONS_H
#define CLEAVE_DRIVER_OPTIONS_H

#include "cleave/Compiler/Check.h"
#include "cleave/Compiler/FindPlan.h"
#include "cleave/Compiler/Schedule.h"
#include "cleave/Export/Onnx/Export.h"
#include "cleave/Runner/Train.h"
#include "cleave/Runtime/CommandFiles.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cleave::driver {

/// How `cleave` ends.
enum ExitCode {
  kDone = 0,
  kBadInput = 1,       ///< the model, the plan or the data is wrong
  kBadCommandLine = 2, ///< the command line is wrong
  kDifference = 3,     ///< --check found a difference, or the program is not what the plan expects
  kRunFault = 4,       ///< a fault while running
  kInternalError = 70, ///< a bug of ours; a reproducer was written
};

enum class Color { Auto, Always, Never };

/// `--check`: ranks against one device, and of a step, if that is asked for, gradients against slopes.
/// Or every tensor of the model that has a name, not outputs alone.
enum class CheckKind { Ranks, Differences, All };
constexpr llvm::StringLiteral kCheckWords[] = {"ranks", "differences", "all"};

constexpr llvm::StringLiteral kColorWords[] = {"auto", "always", "never"};

/// What `run` compiles programs for.
enum class DeviceKind { Host, Cuda, CudaEmulated };
struct DeviceTraits {
  llvm::StringLiteral word, target; ///< the target as --target would say it
};
/// In the order of the enum. The driver of CUDA takes PTX of the least architecture on all later ones.
constexpr DeviceTraits kDevices[] = {{"host", "host"}, {"cuda", "cuda:sm_80"}, {"cuda-emulated", "cuda:emulated"}};
constexpr const DeviceTraits &getTraits(DeviceKind kind) { return kDevices[static_cast<unsigned>(kind)]; }

/// How often `bench --calibrate` measures everything, without `--repeat`.
constexpr uint64_t kCalibrationRounds = 9;

/// What collectives become in ONNX files.
constexpr llvm::StringLiteral kCollectiveOpsWords[] = {"auto", "own"};

/// Sizes of dims as they were typed; several for one dim make variants.
struct DimSizes {
  std::map<std::string, std::vector<int64_t>> sizes;

  /// What a model is compiled for, one entry per variant: every size of a dim with every size of the others, the last dim
  /// changes first. At least one entry.
  std::vector<std::map<std::string, int64_t>> getVariants() const;
};

/// Where `auto` may put stages: anywhere, or as schedule::Placement counts.
constexpr llvm::StringLiteral kPlacementWords[] = {"any", "linear", "loop", "v", "wave"};

/// `cleave schedule`: which, and what is written of it.
struct ScheduleCommand : ScheduleOptions {
  std::string compare, table, draw, measured;
  bool computeOnly = false;
};

/// The order of samples of `cleave train`.
enum class SampleOrder { Shuffled, Given };
constexpr llvm::StringLiteral kSampleOrderWords[] = {"shuffled", "given"};

/// `--emit`: the module after a phase, or what was decided in another form: on the ONNX model, in Shardy's words, or in those of DTensor and
/// JAX.
enum class EmitForm { Module, Onnx, Shardy, Placements };
struct Emit {
  std::optional<Phase> phase;
  EmitForm form = EmitForm::Module;
};
/// Of the forms behind the first, in their order.
constexpr llvm::StringLiteral kEmitWords[] = {"onnx", "sdy", "placements"};

/// `--memory`, which says other things of plans than of schedules.
struct MemoryOption {
  NamedNumbers actions; ///< `F=1,I=0,W=-1`
  int64_t bytes = 0;    ///< `72GB`
  bool isLeast = false; ///< `least`
};

/// `50ms`; 0: nothing was said.
struct Duration {
  double ns = 0;
};

struct Options {
  std::string command;
  /// What was given, by numbers of the table of options.
  std::vector<unsigned> given;
  /// Its `dims` are those of the first variant, its target is that of the device.
  CompileOptions compile;
  DimSizes dims;
  std::string gpu;    ///< --gpu NAME, a word for a target and a cluster
  std::string value;  ///< explain: the value asked about, empty for all
  std::string output; ///< -o
  /// What is made goes to standard output, and all else does not.
  bool writesToOutput() const { return output.empty() || output == "-"; }
  Emit emit;
  /// Where there is no pipeline, which goes further (Compilation::getLastPhase).
  Phase getEmit() const { return emit.phase.value_or(Phase::Optimized); }
  std::string against; ///< --against MODEL
  std::string outputs, saveInputs;
  uint64_t seed = 0, repeat = 20;
  bool check = false;
  CheckKind checkKind = CheckKind::Ranks;
  bool calibrate = false; ///< --calibrate of bench, which then has no model
  std::optional<double> rtol, atol;
  std::string report;
  Color color = Color::Auto;
  bool remarks = false, verbose = false, quiet = false, timePhases = false;
  bool json = false; ///< --json of inspect
  ExecutorKind executor = ExecutorKind::Reference;
  DeviceKind device = DeviceKind::Host;
  onnx::CollectiveOps collectives = onnx::CollectiveOps::Auto;
  ScheduleCommand schedule;
  MemoryOption memory;
  /// `1..16`; of a schedule one number.
  spmd::CountRange microbatches = {0, 0};
  /// `cleave plan`.
  PlanRequest plan;
  Duration within;
  uint64_t axes = 3, top = 0;
  std::string certificate, verify; ///< files
  llvm::SmallVector<std::string> pins;
  bool roles = false, support = false, explain = false;
  /// `cleave train`.
  runner::TrainOptions train;
  SampleOrder order = SampleOrder::Shuffled;
  std::string html;     ///< --html FILE.html
  std::string trained;  ///< --export FILE.onnx
  std::string adapters; ///< --export-adapters FILE.safetensors
};

/// Of several plans in one folder the file of the plan with this number, from 1, and whether a name is one of these.
std::string getPlanName(size_t number);
bool isPlanName(std::string_view name);

/// The files that the command line names, those read and those written.
runtime::CommandFiles listFiles(const Options &options);

/// What is wrong with options of a command whose input is a program file: one that has no effect there. Nothing: all have one.
std::optional<std::string> findIdle(const Options &options);

/// Tells what is wrong with the options of a command, and where they are listed.
ExitCode printMistake(llvm::StringRef command, llvm::StringRef problem);

/// Parses the command line. Returns nothing where the program should end with `exitCode`: 0 after what only prints
/// (help, version, completion, the man page), 2 after an error, which has been printed to standard error.
std::optional<Options> parseCommandLine(int argc, const char *const *argv, int &exitCode);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_OPTIONS_H
