//===- Compilation.h - one model on its way through the compiler -*- C++ -*-===//
//
// What a program needs that uses Cleave as a library; `cleave` itself is one.
//
//   cleave::CompileOptions options;
//   options.model = "model.onnx";
//   options.sharding.mesh = "data=2,model=2";
//   cleave::Compilation compilation(options);
//   if (!compilation.load() || !compilation.advance(cleave::Phase::Optimized))
//     return complainAbout(compilation.getDiagnostics());
//   int64_t bytes = compilation.makeReport()->getWireBytes();
//
// No function exits, prints or throws: what is wrong goes to the diagnostics, and the function says so.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_COMPILER_COMPILATION_H
#define CLEAVE_COMPILER_COMPILATION_H

#include "cleave/Assembly/Assembly.h"
#include "cleave/Compiler/CompileOptions.h"
#include "cleave/Compiler/Diagnostic.h"
#include "cleave/Pipelines/Report.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string_view>

namespace mlir {
class MLIRContext;
class ModuleOp;
} // namespace mlir

namespace cleave::spmd {
struct Plan;
} // namespace cleave::spmd

namespace cleave::onnx {
struct ExportOptions;
struct ExportSummary;
} // namespace cleave::onnx

namespace cleave {

struct FoundPlan;
struct LikePlan;
struct PlanProof;
struct PlanReasons;
struct PlanRequest;

/// Whether a phase that is dumped may be in a file of this name: `3-propagated.mlir`.
bool isDumpName(std::string_view name);

class Compilation {
public:
  /// `handler` is told every diagnostic as it comes up; without one they are kept.
  explicit Compilation(CompileOptions options, DiagnosticHandler handler = nullptr);
  ~Compilation();

  /// Loads the model as it is in its file, and the plan. False after an error. `collectAllErrors`: goes on after what
  /// cannot be imported.
  bool load(bool collectAllErrors = false);
  bool isLoaded() const;

  /// Takes the model through all phases up to `last` that it has not been through yet. False after an error.
  bool advance(Phase last);

  /// The plan or the model name a mesh, or ask for one.
  bool hasMesh() const;
  /// The plan asks for a pipeline, or the file is of one. Precondition: the model is loaded.
  bool isPipelined() const;
  /// The model is an ONNX model. Standard input is known only after loading.
  bool isOnnx() const;
  Phase getPhase() const;

  /// Without a mesh: one device, on a mesh of one. Precondition: the model is loaded.
  void useOneDevice();

  /// Goes on with `module`, as it was before it was annotated, instead of its own: on one device, without a plan. Precondition: it
  /// is of this compilation's context.
  void restartOnOneDevice(mlir::ModuleOp module);

  /// Finds a plan (FindPlan.h). Nothing after an error. Precondition: the model is loaded.
  std::optional<FoundPlan> findPlan(const PlanRequest &request);
  /// How far it is from the best, and whether a certificate of that holds (CertifyPlan.h). Preconditions: the same.
  std::optional<PlanProof> certifyPlan(const FoundPlan &found, const PlanRequest &request);
  std::optional<PlanProof> verifyPlan(llvm::StringRef text, const PlanRequest &request);
  /// Why that plan, and no other (ExplainPlan.h). Nothing after an error. Preconditions: the same.
  std::optional<PlanReasons> explainPlan(const FoundPlan &found, const PlanRequest &request);
  /// The plan that was found for `CompileOptions::devices`; null: there was none to find. Precondition: the model is loaded.
  const FoundPlan *getFoundPlan() const;
  /// The plan of the styles that `CompileOptions::like` names; null: it names none. Precondition: the model is loaded.
  const LikePlan *getLikePlan() const;

  /// From now on the phase that decides leaves in `decisions` how; null: it forgets. See Explanation.h.
  void keepDecisions(spmd::Decisions *decisions);

  /// Counts a partitioned model. Nothing after an error: no function to be run.
  std::optional<Report> makeReport();

  /// What a page shows of a loaded model with a mesh, in the words of docs/page.md: the graph of a rank's program with equal layers folded
  /// into one, why values are sharded as they are, memory over time, links, and the schedule of a pipeline. `name` is that of the plan.
  /// Takes the model as far as a report counts it. Nothing after an error.
  std::optional<llvm::json::Object> describeForPage(llvm::StringRef name);

  /// Takes a loaded model, which has a mesh, the rest of the way to the program that options ask for, with a variant for each of their
  /// sizes; paths of weights are seen from `folder`. `digests`: weights in files have those of all their bytes, which are read for it; not
  /// needed by who runs the program at once. Null after an error.
  std::unique_ptr<Assembly> makeProgram(llvm::StringRef folder, bool digests = false);

  /// Takes a model to commands in planned memory, as `makeProgram` does for the target that options name, without code for them: from then on
  /// `makeReport` counts the bytes of buffers. False after an error.
  bool planMemory();

  /// Sets the callback that receives progress messages: the phase that the model comes into, or how many kernels there are;
  /// an empty text between such.
  void tellProgress(ProgressHandler handler);
  const ProgressHandler &getProgress() const;

  /// `advance`, then `write`, and `makeReport` where `report` is not null. On a large model all together take less time: it is verified and
  /// counted while it is printed. After an error nothing is written.
  bool advanceAndWrite(Phase last, llvm::StringRef path, std::optional<Report> *report = nullptr);

  /// Writes the module to `path`, as bytecode where that ends in .mlirbc, to standard output where it is empty or `-`.
  bool write(llvm::StringRef path);

  /// Writes the ONNX model that was loaded, with its decided shardings as device annotations. False after an error: the
  /// model was in no file; its weights lie beside it, and not beside `path`. Precondition: the module is propagated.
  bool writeOnnx(llvm::StringRef path);

  /// Writes each rank's program as an ONNX model into `folder`, with its weights beside it (Export/Onnx/Export.h). Nothing after an
  /// error: an op without a form in ONNX, a file that cannot be written. Precondition: the module is optimized; of a pipeline it has a
  /// program per rank.
  std::optional<onnx::ExportSummary> exportOnnx(llvm::StringRef folder, const onnx::ExportOptions &options);

  /// What was read beside the files that the options name, and how it is called in messages: weights, and what the plan names.
  /// Precondition: the model is loaded.
  std::vector<std::pair<std::string, std::string>> getFilesRead() const;

  /// How inputs are drawn that nobody gives (Values.h): as the model says before it is split. Precondition: the model is loaded.
  const std::map<std::string, int64_t> &getInputRanges() const;

  /// How far a model goes that is not compiled: to the program of one device, or of a pipeline to those of its ranks.
  Phase getLastPhase() const { return isPipelined() ? Phase::PerRank : Phase::Optimized; }

  /// Seconds of each phase done, in order, and since the compilation was made.
  llvm::ArrayRef<std::pair<std::string, double>> getSeconds() const;
  double getElapsedSeconds() const;

  /// What came up so far, where no handler was given.
  llvm::ArrayRef<Diagnostic> getDiagnostics() const;
  /// The worst error so far; nothing without one.
  std::optional<Blame> getBlame() const;
  /// Takes what came up elsewhere for its own.
  void report(const Diagnostic &diagnostic);
  /// Makes an error; returns false.
  bool fail(llvm::Error error, Blame blame = Blame::Input);

  /// With what was chosen on the way; what a plan is read from is gone once that is read.
  const CompileOptions &getOptions() const;
  /// As they were given, for the same model anew; a model on standard input that is a file has its path.
  const CompileOptions &getGivenOptions() const;
  /// What was read of a plan and the options beside it; null: nothing is asked for. Precondition: the model is loaded.
  const spmd::Plan *getPlan() const;

  /// For programs that use MLIR themselves. Precondition: the model is loaded.
  mlir::ModuleOp getModule() const;
  /// The function that is run: the one that options name, `main`, or the only one. Null after an error, which lists them.
  mlir::func::FuncOp getEntry();
  mlir::MLIRContext &getContext() const;

  /// While it lives, errors that say nothing else are `blame`'s.
  class BlameScope {
  public:
    BlameScope(Compilation &compilation, Blame blame);
    ~BlameScope();

  private:
    Blame &current, before;
  };

private:
  bool startTraining();
  /// Makes outputs of all tensors that have a name. False after an error.
  bool returnAll();
  /// Adds the entry `eval` to a program that has the step, where options ask for it. False after an error.
  bool addEvaluation(Assembler &assembler);
  bool takeFoundPlan();
  bool takeLikePlan();
  /// To which layer each node belongs, where the plan expects something of each. False after an error.
  bool findBlocks();

  friend class ModelRun;
  friend class ModelStructure;
  class PlanExplainer;
  class PlanFinder;
  class PlanProver;
  struct State;
  std::unique_ptr<State> state;
};

} // namespace cleave

#endif // CLEAVE_COMPILER_COMPILATION_H
