//===- PlanKeys.cpp - the keys of a plan, in one table --------------------===//
//
// A row per key. What is said of one is a sentence for an editor; docs/plan-file.md, training.md and cluster.md say more of each. A new key is a
// row here, a branch of its section's reader, and a row of those pages (test/Editor/check.py holds it against them).
//
// A row says which mapping its value may be. Where that is the section that the key itself is in, the value is no mapping:
//
//   {"shard", Section, Rule, ..}       a list of mappings, each with the keys of a rule
//   {"optimizer", Words, Optimizer, ..}  one of a few words, or a mapping with keys of its own
//   {"uneven", Words, Plan, ..}        one of a few words
//
//===----------------------------------------------------------------------===//
#include "cleave/Plan/PlanKeys.h"

#include "cleave/Plan/Expect.h"
#include "cleave/Plan/Style.h"
#include "cleave/Plan/Train.h"
#include "cleave/Sharding/AttentionMethod.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace cleave;
using namespace cleave::spmd;
using namespace llvm;

using Value = PlanValue;
using Section = PlanSection;

/// Words of a table, as views of it. Tables are where their enums are, in headers of plans.
template <typename Table> static std::vector<StringRef> list(const Table &table) {
  return {std::begin(table), std::end(table)};
}

/// What YamlReader::readFlag takes.
static std::vector<StringRef> listFlags() { return {"true", "false"}; }

/// Sections of the plan, and what is about all of it. `free` and `devices` take a list as well as a word.
static std::vector<PlanKey> makePlan() {
  return {
      {"mesh", Value::Section, Section::Mesh,
       "The axes that ranks are laid out along, major to minor, and their sizes."},
      {"devices",
       Value::Words,
       Section::Plan,
       "The device of each rank, or `auto`: the fastest order on the cluster.",
       {"auto"}},
      {"dims", Value::Section, Section::Symbols, "Sizes of the model's symbolic dimensions."},
      {"shard", Value::Section, Section::Rule, "Rules: which tensors are sharded along which axes."},
      {"like", Value::Words, Section::Plan, "Rules of a style that people know, for all axes or one for each.",
       list(kStyleWords)},
      {"free", Value::Axis, Section::Plan,
       "Axes that may split whatever they can where no rule says otherwise, decided by time.", listFlags()},
      {"uneven", Value::Words, Section::Plan, "Axes need not divide what they split.", listFlags()},
      {"attention", Value::Words, Section::Plan, "How attention reaches keys of other ranks.", list(kAttentionWords)},
      {"state", Value::Section, Section::States,
       "Inputs that stay in the ranks, and the outputs that are their next values."},
      {"pipeline", Value::Section, Section::Pipeline, "How the model becomes a pipeline of stages."},
      {"train", Value::Section, Section::Train, "How the model is trained, for `--train` and `cleave train`."},
      {"expect", Value::Section, Section::Expect, "What the program may send, store and take at most."},
      {"cluster", Value::Cluster, Section::Cluster, "The machine: a name, a file, or its description."},
  };
}

/// Which tensors, in one of three ways, and what is asked of them. `except` leaves out names of the kind that the rule is about; tensors are
/// the most frequent.
static std::vector<PlanKey> makeRule() {
  return {
      {"tensor", Value::TensorPattern, Section::Rule, "Names of tensors that the rule is about: a pattern."},
      {"node", Value::NodePattern, Section::Rule,
       "Names of nodes, of which `operand` or `result` is meant: a pattern."},
      {"module", Value::ModulePattern, Section::Rule,
       "Modules, of which the weight with as many dims as `dims` is meant: a pattern."},
      {"operand", Value::Number, Section::Rule, "Which operand of the node, from 0."},
      {"result", Value::Number, Section::Rule, "Which result of the node, from 0."},
      {"dims", Value::DimEntry, Section::Rule,
       "One entry per dim: an axis, a list of axes, `_` (not sharded), `?` (open), `...` (all others)."},
      {"except", Value::TensorPattern, Section::Rule, "Names that the rule does not pick."},
      {"where",
       Value::Words,
       Section::Rule,
       "`divides`: a dim that its axes do not divide is left open instead of being an error.",
       {"divides"}},
      {"priority", Value::Number, Section::Rule, "Which rules come first in propagation: 0 is first."},
      {"replicated", Value::Axis, Section::Rule, "Axes along which the tensor stays replicated."},
      {"uneven", Value::Words, Section::Rule, "The axes of the rule need not divide what they split.", listFlags()},
      {"experts", Value::DimEntry, Section::Rule,
       "The tensors are weights of experts, which are stacked: how the dim that counts them is sharded."},
  };
}

/// Schedules have a table of their own (Schedule/Generate.h), which this library does not see.
static std::vector<PlanKey> makePipeline() {
  return {
      {"axis", Value::Axis, Section::Pipeline, "The axis of the mesh along which stages are; no sharding uses it."},
      {"microbatches", Value::Number, Section::Pipeline, "How many parts a batch is taken in."},
      {"microbatch_size", Value::Number, Section::Pipeline,
       "How many samples a microbatch has, in place of `microbatches`."},
      {"chunks", Value::Number, Section::Pipeline, "Stages per rank."},
      {"batch", Value::Section, Section::Batch, "Which dim of an input is the batch, or `none`."},
      {"stages", Value::Section, Section::Stage, "Stages by hand, in order."},
      {"together", Value::WeightPattern, Section::Pipeline, "Patterns of parameters whose users share a rank."},
      {"schedule",
       Value::Schedule,
       Section::Pipeline,
       "What each rank does and when: a name, `auto`, or a table's file.",
       {"auto"}},
      {"placement", Value::Words, Section::Pipeline, "Which rank has which stages.", list(kPlacementWords)},
      {"memory_limit", Value::Number, Section::Pipeline, "What stages of a rank may take: `40GB`, `512MiB`."},
      {"balance", Value::Words, Section::Pipeline, "What stages are chosen for.", list(kBalanceWords)},
      {"send", Value::Words, Section::Pipeline,
       "Values for later stages go there at once, or through every rank between.", list(kSendWords)},
      {"uneven", Value::Words, Section::Pipeline, "Microbatches may differ by one sample of each device.", listFlags()},
      {"recompute", Value::Words, Section::Pipeline,
       "Which stages of a step make activations again; or a list, a policy of `train` for each stage.",
       list(kStageRecomputeWords)},
      {"update", Value::Words, Section::Pipeline,
       "Stages are updated as soon as their gradients are there, or all at the end.", list(kUpdateWords)},
  };
}

/// A stage is one of three patterns, and may have a rank.
static std::vector<PlanKey> makeStage() {
  return {
      {"nodes", Value::NodePattern, Section::Stage, "All nodes that match are in the stage."},
      {"first", Value::NodePattern, Section::Stage, "The stage starts at the first node that matches."},
      {"module", Value::ModulePattern, Section::Stage,
       "All nodes of modules that match are in the stage, and of modules in these."},
      {"rank", Value::Number, Section::Stage, "The rank that the stage is on."},
  };
}

/// What some keys take is a word or a mapping: the section says which mapping, the words which word.
static std::vector<PlanKey> makeTrain() {
  return {
      {"loss", Value::Section, Section::Loss, "What is minimized; a list is a sum."},
      {"optimizer", Value::Words, Section::Optimizer, "How weights follow gradients: a word, or a mapping with `kind`.",
       list(kOptimizerWords)},
      {"rate", Value::Words, Section::Rate, "The rate of learning: a number, `input`, or a mapping.", {"input"}},
      {"freeze", Value::WeightPattern, Section::Train, "Patterns of parameters that are not trained."},
      {"only", Value::WeightPattern, Section::Train, "Patterns of the parameters that alone are trained."},
      {"groups", Value::Section, Section::Group, "Parameters with a decay of their own, and a factor of the rate."},
      {"precision", Value::Section, Section::Precision, "In which floats parameters are kept, and gradients are sent."},
      {"dropout", Value::Words, Section::Train, "`off`, `model` (ratios of the file), or a ratio.",
       list(kDropoutWords)},
      {"batch_norm", Value::Words, Section::Train, "Statistics of the file, or of the batch over all ranks.",
       list(kBatchNormWords)},
      {"seed", Value::Number, Section::Train, "Of which random numbers of the step are made."},
      {"clip", Value::Number, Section::Train, "The most that all gradients may be long together."},
      {"zero", Value::Section, Section::Zero, "Along which axis states, gradients and parameters are sharded (ZeRO)."},
      {"lora", Value::Section, Section::Lora, "Low-rank adapters next to these weights are trained, and nothing else."},
      {"microbatches", Value::Number, Section::Train, "The step is computed in so many parts of the batch."},
      {"accumulate", Value::Words, Section::Train, "Where gradients of microbatches add up.", list(kAccumulateWords)},
      {"recompute", Value::Words, Section::Train, "What is computed again instead of being kept.",
       list(kRecomputeWords)},
      {"memory_limit", Value::Number, Section::Train, "Bytes that a rank may take, for `recompute: auto`."},
      {"keep", Value::TensorPattern, Section::Train, "Patterns of tensors that are kept, whatever `recompute` says."},
      {"again", Value::TensorPattern, Section::Train,
       "Patterns of tensors that are computed again, whatever `recompute` says."},
      {"offload", Value::TensorPattern, Section::Train,
       "Patterns of kept tensors that wait for the backward in the memory of the device's host."},
  };
}

/// `output` stands alone; all others are about a loss that is computed.
static std::vector<PlanKey> makeLoss() {
  return {
      {"kind", Value::Words, Section::Loss, "The formula.", list(kLossWords)},
      {"of", Value::Output, Section::Loss, "The output that is held against labels."},
      {"output", Value::Output, Section::Loss, "The output that is the loss already."},
      {"labels", Value::InputOrTensor, Section::Labels,
       "The input of labels, `labels` without it; `{next: INPUT}` are the tokens that follow."},
      {"weight", Value::Number, Section::Loss, "A factor of the loss in a sum."},
      {"smoothing", Value::Number, Section::Loss, "Of cross_entropy: how much of a label is spread over all classes."},
      {"classes", Value::Number, Section::Loss, "Which dim counts classes."},
      {"ignore", Value::Number, Section::Loss, "The label that does not count."},
  };
}

/// Which of them a kind has its reader knows.
static std::vector<PlanKey> makeOptimizer() {
  return {
      {"kind", Value::Words, Section::Optimizer, "The formula.", list(kOptimizerWords)},
      {"beta", Value::Number, Section::Optimizer, "Of momentum and nesterov: how much of the last step stays."},
      {"betas", Value::Number, Section::Optimizer, "Of both moments: `[0.9, 0.999]`."},
      {"epsilon", Value::Number, Section::Optimizer, "What is added to the root of the second moment."},
      {"decay", Value::Number, Section::Optimizer, "The decay of weights."},
      {"correct_bias", Value::Words, Section::Optimizer, "Moments of first steps are scaled up.", listFlags()},
  };
}

/// Steps count from the first of a training.
static std::vector<PlanKey> makeRate() {
  return {
      {"kind", Value::Words, Section::Rate, "How the rate goes from step to step.", list(kRateWords)},
      {"peak", Value::Number, Section::Rate, "The largest rate."},
      {"floor", Value::Number, Section::Rate, "The rate that it falls to."},
      {"warmup", Value::Number, Section::Rate, "Steps in which it rises from 0."},
      {"steps", Value::Number, Section::Rate, "After which it is at its floor."},
  };
}

/// Of both: of a link between any devices, and of one that has a name.
static std::vector<PlanKey> makeLink() {
  return {
      {"latency", Value::Number, Section::Link, "What a message takes to arrive, `1us`."},
      {"bandwidth", Value::Number, Section::Link, "Bytes per second each way, `450GB/s`."},
      {"efficiency", Value::Number, Section::Link, "What programs reach of the bandwidth."},
  };
}

/// One of several links says how it is called, and where it ends.
static std::vector<PlanKey> makeLevel() {
  std::vector<PlanKey> keys = {
      {"name", Value::Number, Section::Level, "What `axes` calls the link."},
      {"devices", Value::Number, Section::Level, "How many devices, or groups of the link before, it connects."},
  };
  append_range(keys, makeLink());
  return keys;
}

/// Kinds of collectives are those of programs, and what ranks send each other.
static std::vector<PlanKey> makeExpect() {
  std::vector<PlanKey> keys = {
      {"bytes", Value::Number, Section::Expect, "What the busiest rank sends in a call: `<= 1.9GB`."},
      {"memory", Value::Number, Section::Expect, "What a rank needs at one time: `<= 8GB`."},
      {"time", Value::Number, Section::Expect, "The predicted time of a rank: `<= 5ms`; needs a cluster."},
      {"no", Value::AbsentKind, Section::Expect, "Kinds of collectives that there are none of, or none over an axis."},
  };
  for (StringRef kind : getPlanKinds())
    keys.push_back({kind, Value::Number, Section::Expect,
                    "How many collectives of this kind there are in a call: `64`, `<= 64`, `2 per block`."});
  return keys;
}

/// Types that a device has no rate of compute as f32 does, so that each may be left out.
static std::vector<PlanKey> makeFlops() {
  std::vector<PlanKey> keys;
  // The words of MLIR's element types, since these are what is looked up.
  for (StringRef type : {"f64", "f32", "bf16", "f16", "f8E4M3FN", "i32", "i8", "i4"})
    keys.push_back({type, Value::Number, Section::Flops, "Operations per second with elements of this type: `67T`."});
  return keys;
}

/// All sections; what is short is here. Of sections that have no keys users name what is in them, such as axes.
static std::vector<PlanKey> makeKeys(Section section) {
  switch (section) {
  case Section::Plan:
    return makePlan();
  case Section::Rule:
    return makeRule();
  case Section::Pipeline:
    return makePipeline();
  case Section::Stage:
    return makeStage();
  case Section::Train:
    return makeTrain();
  case Section::Loss:
    return makeLoss();
  case Section::Labels:
    return {{"next", Value::Input, Section::Labels, "The input of tokens whose next ones are the labels."}};
  case Section::Optimizer:
    return makeOptimizer();
  case Section::Rate:
    return makeRate();
  case Section::Group:
    return {{"tensors", Value::WeightPattern, Section::Group, "Patterns of the parameters of the group."},
            {"decay", Value::Number, Section::Group, "Their decay, in place of the optimizer's."},
            {"rate", Value::Number, Section::Group, "A factor of the rate."}};
  case Section::Precision:
    return {{"parameters", Value::Words, Section::Precision, "Floats of parameters.", list(kParameterWords)},
            {"wire", Value::Words, Section::Precision, "Floats of gradients as they are sent.", list(kWireWords)},
            {"scale", Value::Words, Section::Precision, "What the loss is scaled by, or a number.", list(kScaleWords)}};
  case Section::Zero:
    return {
        {"axis", Value::Axis, Section::Zero, "The axis along which states are sharded."},
        {"stage", Value::Number, Section::Zero, "1: states of the optimizer, 2: also gradients, 3: also parameters."},
        {"gather", Value::Words, Section::Zero, "Of stage 3: how often parameters are gathered in a step.",
         list(kGatherWords)},
        {"min_bytes", Value::Number, Section::Zero, "Smaller parameters are left as they are."}};
  case Section::Lora:
    return {{"tensors", Value::WeightPattern, Section::Lora, "Patterns of the weights that have adapters."},
            {"rank", Value::Number, Section::Lora, "The rank of the adapters."},
            {"alpha", Value::Number, Section::Lora, "Their product is scaled by `alpha` / `rank`."}};
  case Section::Expect:
    return makeExpect();
  case Section::Cluster:
    return {{"name", Value::Number, Section::Cluster, "What messages call the machine."},
            {"device", Value::Section, Section::Device, "What a device computes and stores."},
            {"unlike", Value::Section, Section::Unlike, "Devices that are not as the others."},
            {"collective", Value::Number, Section::Cluster, "What a collective takes to begin, `6.6us`."},
            {"links", Value::Section, Section::Level, "How devices are connected, nearest first; or one link for all."},
            {"axes", Value::Section, Section::LinksOfAxes,
             "Axes that have another link than their ranks' places give them."}};
  case Section::Device:
    return {{"flops", Value::Section, Section::Flops, "Operations per second by element type."},
            {"memory", Value::Number, Section::Device, "Bytes of its memory, `80GB`."},
            {"bandwidth", Value::Number, Section::Device, "Bytes per second of its memory, `3350GB/s`."},
            {"cache", Value::Number, Section::Device, "What a kernel reads and writes is faster where all of it fits."},
            {"cache_bandwidth", Value::Number, Section::Device, "How fast."},
            {"host", Value::Number, Section::Device,
             "How fast its memory and the host's are read from each other, each way."},
            {"launch", Value::Number, Section::Device, "What a kernel takes to start, `2us`."},
            {"efficiency", Value::Number, Section::Device, "What programs reach of flops and bandwidth."}};
  case Section::Flops:
    return makeFlops();
  case Section::Unlike:
    return {{"devices", Value::Number, Section::Unlike, "Their numbers."},
            {"speed", Value::Number, Section::Unlike, "What they do in a time of what the others do."},
            {"memory", Value::Number, Section::Unlike, "Bytes of their memory."}};
  case Section::Level:
    return makeLevel();
  case Section::Link:
    return makeLink();
  case Section::Mesh:
  case Section::Symbols:
  case Section::States:
  case Section::Batch:
  case Section::LinksOfAxes:
    return {}; // Users name these.
  }
  return {};
}

namespace {
/// Of a section, as readers and as editors want them.
struct Keys {
  std::vector<PlanKey> rows;
  std::vector<StringRef> names;
};
} // namespace

/// Made when they are first asked for: a plan has a mapping for each of its rules.
static const Keys &getKeys(Section section) {
  static const std::map<Section, Keys> all = [] {
    std::map<Section, Keys> made;
    for (int number = 0; number <= static_cast<int>(Section::LinksOfAxes); ++number) {
      Keys &keys = made[static_cast<Section>(number)];
      keys.rows = makeKeys(static_cast<Section>(number));
      for (const PlanKey &key : keys.rows)
        keys.names.push_back(key.name);
    }
    return made;
  }();
  return all.at(section);
}

ArrayRef<PlanKey> cleave::spmd::getPlanKeys(Section section) { return getKeys(section).rows; }
ArrayRef<StringRef> cleave::spmd::getPlanKeyNames(Section section) { return getKeys(section).names; }

const PlanKey *cleave::spmd::findPlanKey(Section section, StringRef name) {
  ArrayRef<PlanKey> keys = getPlanKeys(section);
  const auto *found = find_if(keys, [&](const PlanKey &key) { return key.name == name; });
  return found == keys.end() ? nullptr : found;
}
