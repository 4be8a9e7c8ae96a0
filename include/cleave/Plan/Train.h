//===- Train.h - what a plan says of training -------------------*- C++ -*-===//
//
// The section `train:` of a plan: what is minimized, by which optimizer, and what of the model is trained.
//
//   train:
//     loss: {kind: cross_entropy, of: logits, labels: labels, ignore: -100}
//     optimizer: {kind: adamw, decay: 0.01}
//     rate: {kind: cosine, peak: 1e-4, warmup: 100, steps: 1000}
//     zero: {axis: data, stage: 1}
//
// Only a loss and an optimizer are needed. Names of tensors are looked up where the model is known. The format is fixed in docs/training.md.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PLAN_TRAIN_H
#define CLEAVE_PLAN_TRAIN_H

#include "cleave/Plan/Pipeline.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

namespace cleave::spmd {

struct Plan;
struct PlanError;

/// One term of what is minimized: the mean over its positions, times `weight`.
struct PlanLoss {
  enum class Kind {
    CrossEntropy, ///< of logits and labels of classes
    Nll,          ///< of logarithms of probabilities and labels of classes
    Bce,          ///< of logits and probabilities, each by itself
    Mse,
    L1,
    Output, ///< a number that the model gives
  };
  Kind kind = Kind::CrossEntropy;
  /// The tensor that it is of, and the input that it is compared with.
  PlanPattern of, labels = {"labels", {}};
  /// Labels are the tokens behind each of this input, of which the last has none.
  std::optional<PlanPattern> next;
  /// The dim of the classes; where the plan does not say it, dim 1, or the larger one of dims 1 and 2 of a tensor of three.
  std::optional<int64_t> classes;
  /// Positions with this label do not count.
  std::optional<int64_t> ignored;
  double smoothing = 0, weight = 1;
  PlanPlace place;
};

/// The keys of `loss.kind`, by number; the last one is none.
inline constexpr const char *kLossWords[] = {"cross_entropy", "nll", "bce", "mse", "l1"};

/// How a parameter follows from its gradient; formulas are those of PyTorch (docs/training.md).
struct PlanOptimizer {
  /// The last is AdamW as Hugging Face's transformers have it, and onnxruntime.
  enum class Kind { Sgd, Momentum, Nesterov, Adam, AdamW, Adagrad, Lamb, HfAdamW };
  Kind kind = Kind::AdamW;
  /// Of momentum, and of the two moments of Adam.
  double beta = 0.9, betas[2] = {0.9, 0.999};
  double epsilon = 1e-8, decay = 0;
  /// The two moments, which begin as zeros, are divided by what their first steps lack.
  bool correctsBias = true;
  PlanPlace place;

  bool hasTwoMoments() const {
    return kind == Kind::Adam || kind == Kind::AdamW || kind == Kind::Lamb || kind == Kind::HfAdamW;
  }
};
inline constexpr const char *kOptimizerWords[] = {"sgd",   "momentum", "nesterov", "adam",
                                                  "adamw", "adagrad",  "lamb",     "hf_adamw"};

/// The rate of step n, from 0 on: `peak (n + 1) / warmup` before `warmup`, then as its kind says, down to `floor` at step `steps`.
struct PlanRate {
  enum class Kind { Constant, Linear, Cosine, Input };
  Kind kind = Kind::Constant;
  double peak = 1e-3, floor = 0;
  int64_t warmup = 0, steps = 0;
  PlanPlace place;
};
inline constexpr const char *kRateWords[] = {"constant", "linear", "cosine", "input"};

/// Parameters that learn otherwise: the first group that picks one is its.
struct PlanGroup {
  std::vector<PlanPattern> tensors;
  std::optional<double> decay;
  double rate = 1; ///< a factor
};

/// States that are sharded over ranks with the same parameters (ZeRO, Rajbhandari et al. 2020): 1, of the optimizer; 2, gradients, too;
/// 3, parameters, too.
struct PlanZero {
  std::string axis;
  int64_t stage = 1;
  /// Smaller parameters stay replicated.
  int64_t minBytes = 4096;
  PlanPlace place;
};

/// Where gradients of microbatches add up.
enum class PlanAccumulate {
  Auto,    ///< as `Split` where `zero` shards gradients, else as `Partial`
  Partial, ///< each rank adds up its own addends, and what goes between ranks goes once, after the last microbatch
  Split,   ///< as the states of the optimizer are: each microbatch's gradients go to those who keep them
};
/// The values of `accumulate`, by number.
inline constexpr const char *kAccumulateWords[] = {"auto", "partial", "split"};

/// What of the forward is computed again behind the loss, instead of being kept until then.
struct PlanMemory {
  using Policy = PlanPolicy;
  Policy policy = Policy::None;
  /// Bytes that a rank may take; 0: those of its device, where they are known.
  int64_t limit = 0;
  /// Tensors that are kept, or computed again, whatever the policy says.
  std::vector<PlanPattern> keep, again;
  /// Sharded parameters are gathered once, and kept, or again; nothing: as the policy says.
  enum class Gather { Once, Twice };
  std::optional<Gather> gather;
  /// Tensors that wait for the backward in the memory of the device's host, which devices alone have.
  std::vector<PlanPattern> offload;
  PlanPlace place;
};
inline constexpr const char *kGatherWords[] = {"once", "twice"};

/// Weights that stay as they are, beside which products of two thin ones are trained (LoRA, Hu et al. 2022).
struct PlanLora {
  std::vector<PlanPattern> tensors;
  int64_t rank = 8;
  double alpha = 16;
  PlanPlace place;
};

/// What numbers of a step are kept and sent in. Narrow parameters have masters of f32 that learn.
struct PlanPrecision {
  enum class Parameters { F32, Bf16, F16, Own };
  enum class Wire { Same, F32 };
  enum class Scale { None, Dynamic, Number, Auto };
  /// `Own`: as the file has them.
  Parameters parameters = Parameters::Own;
  /// What gradients are added up in over ranks: the type of the parameter, or f32.
  Wire wire = Wire::Same;
  /// Of the loss, so that small gradients do not vanish; `Auto`: dynamic where a parameter is f16.
  Scale scale = Scale::Auto;
  double fixedScale = 1;
  PlanPlace scalePlace;
};
inline constexpr const char *kParameterWords[] = {"f32", "bf16", "f16"};
inline constexpr const char *kWireWords[] = {"same", "f32"};
inline constexpr const char *kScaleWords[] = {"none", "dynamic"};

/// Which elements a model in training passes over: none, as many as its nodes say, or all of them so many.
struct PlanDropout {
  enum class Kind { Off, Model, Number };
  Kind kind = Kind::Off;
  double ratio = 0;
  PlanPlace place;
};
inline constexpr const char *kDropoutWords[] = {"off", "model"};

/// What batch norms normalize by: the file's statistics, or those of the batch, over all ranks.
struct PlanBatchNorm {
  enum class Kind { Frozen, Batch };
  Kind kind = Kind::Frozen;
  PlanPlace place;
};
inline constexpr const char *kBatchNormWords[] = {"frozen", "batch"};

struct PlanTrain {
  std::vector<PlanLoss> losses;
  PlanOptimizer optimizer;
  PlanRate rate;
  PlanMemory memory;
  /// Parameters that are not trained; or, where there are some, those alone that are.
  std::vector<PlanPattern> freeze, only;
  std::vector<PlanGroup> groups;
  /// The most that all gradients may be long together.
  std::optional<double> clip;
  PlanPrecision precision;
  PlanDropout dropout;
  PlanBatchNorm batchNorm;
  /// Of what is drawn in a step.
  int64_t seed = 0;
  std::vector<PlanZero> zero;
  /// A step is computed in so many parts of the batch, one after the other.
  int64_t microbatches = 1;
  PlanAccumulate accumulate = PlanAccumulate::Auto;
  PlanPlace microbatchesPlace;
  std::optional<PlanLora> lora;
  /// Loss and optimizer may be missing: a model says them that is trained (onnxruntime's artifacts).
  bool isPartial = false;
  PlanPlace place;
};

/// Of a plan with a section `train`, the rules that are about the model, and those that are about what a step adds to it: labels, and names
/// as `m(w)`, `grad(w)`, `next(w)`. Neither has states of calls.
std::pair<Plan, Plan> splitForTraining(const Plan &plan);

/// Reads the section `train` by itself, as `--train` gives it.
llvm::LogicalResult parseTrain(llvm::StringRef text, llvm::StringRef file, PlanTrain &train, PlanError &error);

} // namespace cleave::spmd

#endif // CLEAVE_PLAN_TRAIN_H
