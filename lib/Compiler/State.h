//===- State.h - what a compilation holds -----------------------*- C++ -*-===//
#ifndef CLEAVE_LIB_COMPILER_STATE_H
#define CLEAVE_LIB_COMPILER_STATE_H

#include "cleave/Annotations/Annotate.h"
#include "cleave/Compiler/FindPlan.h"
#include "cleave/Compiler/LikePlan.h"
#include "cleave/Compiler/Outline.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Onnx/Artifacts.h"
#include "cleave/Pipelines/Report.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <chrono>

namespace cleave {

struct MeshProblem;

struct Compilation::State {
  State(CompileOptions options, DiagnosticHandler handler);

  /// Fails; `error` becomes a diagnostic.
  bool fail(llvm::Error error, Blame blame = Blame::Input);
  void report(const Diagnostic &diagnostic);
  /// A phase may be run twice; its times add up.
  void addSeconds(llvm::StringRef name, double time);

  /// Null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> load(bool collectAllErrors);
  mlir::OwningOpRef<mlir::ModuleOp> importOnnx(std::shared_ptr<const MappedFile> file, bool collectAllErrors);
  bool takeDevicePlan(const onnx::ModelFile &model);
  /// Reads a folder of artifacts, and fills in with it what the plan does not say. False after an error.
  bool takeArtifacts();
  /// Reads `training_info`, where it is what is asked for. False after an error.
  bool takeTraining(onnx::ModelFile &model, onnx::ImportOptions &import);
  /// Gives the plan of a step in microbatches a pipeline of one stage.
  void splitSteps();
  /// Makes a step as many steps as options ask of a call, where nothing is decided of it yet. False after an error.
  bool repeatSteps(mlir::ModuleOp module);
  /// Gives the plan's pipeline the sizes of options. False after an error.
  bool resizePipeline();
  void takeOrigin(const onnx::ModelFile &model);
  std::vector<std::string> describeDims(onnx::ModelFile &model, const onnx::ImportOptions &import);
  void warnOfDims(onnx::ModelFile &model, const onnx::ImportOptions &import);
  /// What decides shardings beside what a plan asks for: sizes of inputs, options.
  std::string describeSettings(const onnx::GraphProto &graph, const onnx::ImportOptions &import);
  /// What annotations of the model come of; nothing where no text can say it.
  std::optional<onnx::PlanOrigin> findOrigin(const onnx::NodeStages *stages);
  void addDims(onnx::ImportOptions &import);
  mlir::OwningOpRef<mlir::ModuleOp> parseMlir(std::unique_ptr<llvm::MemoryBuffer> buffer);
  llvm::Error checkTypedShapes(mlir::ModuleOp module);
  /// Leaves the function that options name, if they do.
  llvm::Error keepEntry(mlir::ModuleOp module);
  bool hasMesh();
  /// The mesh that ranks of all stages have: the plan's, or else the module's; null: there is none.
  spmd::MeshAttr getWholeMesh();
  /// The plan's cluster, or that of the file; null if neither names one.
  const spmd::Cluster *getCluster();
  /// That cluster is large enough for that mesh. False after an error.
  bool checkCluster();
  bool checkFit(const std::optional<Report> &report);
  /// What the plan expects of its program. False after an error.
  bool checkExpectations(const std::optional<Report> &report);
  /// Costs of an objective, on that cluster, if there is one.
  spmd::CostModel makeCosts(spmd::Optimize optimize);
  /// A step for the host is decided by time, on what its ranks are, where neither a machine nor an objective is asked for.
  bool isByHostTime();
  /// From now on costs are those of that cluster, which the module names. False after an error.
  bool useCluster();
  /// Lays the ranks of a plan that leaves that to the cluster on its devices. False after an error.
  bool chooseDevices();
  /// Of a rank; of a pipeline the most that any has.
  struct Prediction {
    double ns = 0; ///< of a call; infinite where the model cannot be split so, which is told when it is done
    int64_t peakBytes = 0;
    bool hasRings = false;
    int64_t sentBytes = 0;   ///< by the busiest rank
    double spanNs = 0;       ///< of a call where calls follow each other
    int64_t storedBytes = 0; ///< weights and states of the rank that has most of them
    bool fitsDevices = true; ///< no rank takes more than its device has, as far as that is known
    std::optional<StagesTime> stages = std::nullopt;
  };
  /// By time: decides as another objective does where a rank then takes less. What it comes to; nothing where that was not looked at.
  std::optional<Prediction> chooseObjective();
  /// Of a step that is decided by time, and whose plan says nothing of `zero`: shards parameters, gradients and states along an axis where a
  /// rank then takes less than `decided`.
  void chooseStates(const Prediction &decided);
  /// Holds the other objectives against time, whose prediction is `best`: where one of them takes a hundredth less, `best` becomes its, and
  /// `sharding` decides by its costs. Its word; empty: time's is best. `makeModel` has the costs of an objective.
  llvm::StringRef compareObjectives(const std::shared_ptr<const spmd::Plan> &candidate, ShardOptions &sharding,
                                    llvm::function_ref<spmd::CostModel(spmd::Optimize)> makeModel, Prediction &best);
  /// Takes rings of attention where that is left open: by time, if they take less; and if what is decided without them does not fit.
  void chooseAttention();
  /// A copy of the model that went through the phases up to `last`, of which nothing is said but warnings where `warns`; null if it cannot:
  /// `reason`, where somebody wants that, is then the first error.
  mlir::OwningOpRef<mlir::ModuleOp> advanceCopy(const std::shared_ptr<const spmd::Plan> &candidate,
                                                const ShardOptions &sharding, Phase last, std::string *reason = nullptr,
                                                bool warns = false);
  void warnOfRules(const spmd::Plan &given);
  /// Options with which plans are searched: by time on the machine of that plan, whatever they say of what is decided otherwise. What is found
  /// says so, too.
  ShardOptions searchBy(const spmd::Plan &plan) const;
  /// The machine that a target stands for; nothing: it stands for none.
  std::optional<spmd::Cluster> getTargetCluster() const;
  /// The model on the mesh of a plan as a problem to decide, with the annotations of that; null if it cannot be sharded so, with the first
  /// reason. `storesParameters`: how weights are stored is decided, too.
  std::unique_ptr<MeshProblem> makeProblem(const spmd::Plan &plan, const ShardOptions &sharding, bool storesParameters,
                                           std::string *reason = nullptr);
  /// True if the model may be sharded for the sake of a comparison: it has not been, is not large, and is no pipeline.
  bool mayCompare();
  /// True if trials of the model take no long time.
  bool isSmall();
  /// How far a trial goes: to the program of a device; attention that is written out as the one op that kernels are made of; kernels formed,
  /// which no longer say what travels meanwhile.
  enum class Trial { Sharded, WithAttention, WithKernels };
  /// What comes of the model if it is split as `candidate` says (null: as its types do).
  Prediction predict(const std::shared_ptr<const spmd::Plan> &candidate, const ShardOptions &sharding,
                     Trial trial = Trial::Sharded);
  /// What `cleave shard` would report of the model with that plan; nothing where it has no program.
  std::optional<Report> makeTrialReport(const std::shared_ptr<const spmd::Plan> &candidate,
                                        const ShardOptions &sharding);
  /// Shardings that stand in a file already are annotations; a plan may add to them.
  static bool isAhead(Phase phase, Phase done) { return phase > done || (phase == done && done == Phase::Annotated); }
  bool isPipelined();
  /// The module is a step of one microbatch, next to which there may be `stepOfParts`.
  bool hasOtherStep() const { return canonical || stepOfParts; }
  /// Makes `stepOfParts`, where it is not there yet. False after an error. Precondition: `hasOtherStep`.
  bool splitStep();
  /// The plan becomes that of the compilation, as if it had been given, with its pipeline if it has one.
  void takePlan(std::shared_ptr<const spmd::Plan> taken);
  /// Axes may split what no rule asks for: a plan says so, or the file.
  bool hasFreeAxes();
  /// Adds an ordered module to a program, as the variant for the sizes of options. False after an error.
  bool addTo(Assembler &assembler, llvm::StringRef entry = {});
  /// Where the program evaluates, too: keeps the model as it is, and then how the arguments of its step are sharded.
  void keepForEvaluation();
  void keepDecided();
  void keepStages();
  bool runPhase(const PipelinePhase &step, bool isVerified);
  /// The program of one device with a stage on each op. Null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> assignStages();
  /// Of a model's nodes. False after an error.
  bool findStages(const onnx::GraphProto &graph, std::optional<onnx::NodeStages> &stages);
  /// Gives weights the digests of all their bytes, where that is wanted. False after an error.
  bool digestWeights();
  /// What a phase left is legal; an error if not.
  bool verifyModule();
  void keepRanges();
  llvm::Error dump(Phase phase);

  /// As given, and as they are on the way: a plan is read once, choices are added.
  CompileOptions given, options;
  DiagnosticHandler handler;
  std::vector<Diagnostic> diagnostics;
  std::optional<Blame> worst;
  Blame current = Blame::Input;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Of a step of one microbatch, for which a plan may be looked for: the model before it was differentiated, until more is decided; and the step
  /// as it is in microbatches, where what is counted over the batch is known behind the last one. Null: nobody has asked for it yet, or there is none.
  mlir::OwningOpRef<mlir::ModuleOp> canonical, stepOfParts;
  bool hasOnnx = false;
  std::shared_ptr<const onnx::Artifacts> artifacts; ///< null: there are none
  bool hasOwnStep = false;                          ///< the ONNX file says how it is trained, and nobody else does
  std::shared_ptr<const spmd::Plan> plan;           ///< null: nothing is asked for
  ShardState handed;
  /// Of all that is decided of the model.
  std::shared_ptr<spmd::SearchMemory> memory;
  std::optional<DeviceAssignmentReport> placement; ///< that was chosen
  std::unique_ptr<FoundPlan> foundPlan;            ///< for the devices of options
  std::unique_ptr<LikePlan> likePlan;              ///< of the styles of options, or of their plan
  std::map<std::string, unsigned> blocks;          ///< see `ModelStructure::numberNodes`, where the plan asks for it
  bool isExcessTold = false, isLittleTold = false;
  bool isVerifiedLater = false; ///< `advance` leaves it to its caller to verify what the last phase makes
  /// What the module says has been made or checked by us: from then on a broken promise is a bug.
  bool isChecked = false;
  std::string settings;                       ///< of the ONNX file that was read last
  std::map<std::string, int64_t> inputRanges; ///< of the model as it was loaded
  std::vector<std::string> externalFiles;     ///< those that the ONNX file names
  /// What the entry `eval` is made of; null: there will be none.
  struct Evaluation;
  std::shared_ptr<Evaluation> evaluation;
  std::vector<std::pair<std::string, double>> seconds;
  ProgressHandler onProgress = [](const std::string &) {};
};

/// The plan by which a step is differentiated: in stages it is one in microbatches.
std::shared_ptr<const spmd::Plan> getTrainingPlan(const std::shared_ptr<const spmd::Plan> &plan);

/// The entries of a program that trains.
constexpr llvm::StringLiteral kStepEntry = "step", kEvalEntry = "eval";

/// What is said of inputs (`InputRanges`), on modules that are split: shards of weights do not tell it any more.
constexpr llvm::StringLiteral kRangesAttr = "nn.ranges";

/// What a file says that is split already, else what the model does with its inputs.
std::map<std::string, int64_t> readRanges(mlir::ModuleOp module);

/// Of a file of inputs, what no input takes. That there is no function to be run is told by whoever runs it.
llvm::Error warnOfArrays(mlir::ModuleOp module, llvm::StringRef inputs);

/// Costs on the cluster and the mesh of a plan, for the axes that values are split along: which links an axis has follows from where it stands.
/// Precondition: the plan has a cluster, on which its mesh fits.
spmd::CostModel makeCosts(const spmd::Plan &plan, spmd::Optimize optimize);
/// The options of a trial with that plan. Precondition: the same.
ShardOptions withMachine(const spmd::Plan &plan, ShardOptions sharding);

/// What is tried says nothing to anybody: the first error alone is kept, where `reason` is not null.
std::function<llvm::LogicalResult(mlir::Diagnostic &)> keepFirstError(std::string *reason);

/// Tells what is being done while it lives.
class Telling {
public:
  Telling(const ProgressHandler &tell, const std::string &text) : tell(tell) { tell(text); }
  ~Telling() { tell(""); }

private:
  const ProgressHandler &tell;
};

/// What is in an ONNX file in which sizes that import needs are not known yet; nothing if all are known, or the file
/// cannot be read. Errors: a size given for what the model lacks.
llvm::Expected<std::optional<Outline>> outlineFile(const CompileOptions &options);

/// Makes `modules` of an outline: of `flops`, by module what its ops compute, in the order of the model, and of its parameters.
void listModules(llvm::ArrayRef<std::pair<std::string, double>> flops, Outline &outline);

/// The function that is run: `main`, or the only one, as which one that options name is left.
llvm::Expected<mlir::func::FuncOp> findEntry(mlir::ModuleOp module);
/// Names of the functions of a module, the first of many.
std::string listFunctions(mlir::ModuleOp module);

/// Writes a module with its locations to `path`, or to standard output where it is empty. `check`, which only reads the
/// module, runs beside: there is no file where it says no.
llvm::Error writeModule(mlir::ModuleOp module, llvm::StringRef path, llvm::function_ref<llvm::Error()> check = nullptr);

} // namespace cleave

#endif // CLEAVE_LIB_COMPILER_STATE_H
