//===- Report.cpp - what a partitioned program sends and stores -----------===//
//
// Bytes, shapes and collectives are counted in one walk over the partitioned program: the report tells what the program
// does, not what was meant. Only what partitioning leaves no trace of was noted on the way: why a collective is there
// (its location), what forced a replication, and the flops of the whole (attributes of the function).
//
//===----------------------------------------------------------------------===//
#include "MachineReport.h"
#include "PipelineReport.h"
#include "SentReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Exec/Transforms/KernelStarts.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Packed.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/IR/SameRule.h"
#include "cleave/Support/Liveness.h"
#include "mlir/Support/DebugStringHelper.h"

#include <cassert>

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

/// In the words of the report, which other programs read (docs/report.md); people see those of plans.
static std::string toString(spmd::ShardingAttr sharding) {
  std::string text = "[";
  for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
    text += index ? ", {" : "{";
    for (auto [position, axis] : llvm::enumerate(dim.getAxes()))
      text += (position ? ", " : "") + spmd::formatAxis(axis);
    text += "}";
  }
  text += "]";
  if (sharding.isPartial())
    text += " partial {" + spmd::formatAxes(sharding.getPartial()) +
            "}: " + spmd::stringifyReductionKind(sharding.getPartialKind()).str();
  return text;
}

static TensorReport describe(StringRef name, RankedTensorType type, ShapedType local) {
  TensorReport report;
  report.name = name.str();
  report.type = debugString(type.getElementType());
  report.shape = type.getShape().vec();
  report.localShape = local.getShape().vec();
  if (spmd::ShardingAttr sharding = spmd::getSharding(type))
    report.sharding = toString(sharding);
  return report;
}

/// An argument or result; of a function that was written by hand without its global type, the local one.
static TensorReport describe(DictionaryAttr attributes, Type localType, StringRef fallback) {
  auto name = attributes ? attributes.getAs<StringAttr>(spmd::kNameAttr) : StringAttr();
  auto global = attributes ? attributes.getAs<TypeAttr>(spmd::SpmdDialect::kGlobalTypeAttr) : TypeAttr();
  auto local = cast<RankedTensorType>(localType);
  return describe(name ? name.strref() : fallback, global ? cast<RankedTensorType>(global.getValue()) : local, local);
}

/// Behind the bytes of an argument the elements in them; those of the whole are as many for each byte.
static TensorReport describeArgument(func::FuncOp func, unsigned index) {
  Value argument = func.getArgument(index);
  TensorReport report = describe(func.getArgAttrDict(index), argument.getType(), "arg" + std::to_string(index));
  std::optional<nn::PackedTensor> packed = nn::getPacked(argument);
  if (!packed)
    return report;
  report.heldType = debugString(packed->type.getElementType());
  report.heldLocalShape = packed->type.getShape().vec();
  report.heldShape = report.shape;
  report.heldShape.back() *= packed->perByte;
  return report;
}

static std::optional<ArenaReport> countArena(ArrayRef<exec::BufferOp> buffers, ModuleOp module) {
  if (getPhase(module) < Phase::Planned)
    return std::nullopt;
  ArenaReport arena;
  for (exec::BufferOp buffer : buffers)
    if (buffer.getKind() == exec::BufferKind::Activations) {
      arena.bytes += buffer.getBytes();
      arena.bound += buffer.getBound().value_or(0);
    }
  return arena;
}

std::optional<ArenaReport> cleave::countArena(ModuleOp module) {
  return ::countArena(llvm::to_vector(module.getOps<exec::BufferOp>()), module);
}

namespace {
/// Bytes that are needed at once. Loaded weights live throughout, and arguments without a user to the end, for somebody else holds
/// them; all other values from the op that makes them to their last user.
class PeakCounter {
public:
  explicit PeakCounter(const SymbolTable &symbols) : symbols(symbols) {}

  int64_t count(func::FuncOp func);

private:
  int64_t countBody(nn::LoopOp loop);
  int64_t countBlock(Block &body, llvm::function_ref<bool(Value)> isHeldOutside);

  const SymbolTable &symbols;
  llvm::DenseMap<Operation *, int64_t> known;
};
} // namespace

int64_t PeakCounter::count(func::FuncOp func) {
  if (auto it = known.find(func); it != known.end())
    return it->second;
  return known[func] = countBlock(func.getBody().front(), [](Value) { return false; });
}

/// What a loop holds beside its operands and results: what it hands on is where its results are, and what it was handed where an
/// initial value was that nobody else reads.
int64_t PeakCounter::countBody(nn::LoopOp loop) {
  llvm::DenseSet<Value> held;
  held.insert_range(loop.getTaken());
  held.insert_range(loop.getYield().getNext());
  for (auto [initial, argument] : llvm::zip_equal(loop.getInitial(), loop.getCarried()))
    if (initial.hasOneUse() && !initial.getDefiningOp<nn::LoadOp>())
      held.insert(argument);
  return countBlock(loop.getBody().front(), [&](Value value) { return held.contains(value); });
}

int64_t PeakCounter::countBlock(Block &body, llvm::function_ref<bool(Value)> isHeldOutside) {
  Liveness liveness;
  llvm::DenseMap<Value, Liveness::Buffer> buffers;
  auto define = [&](Value value, int64_t step) {
    return buffers[value] = liveness.define(step, isHeldOutside(value) ? 0 : spmd::getBytes(value.getType()));
  };
  int64_t step = 0, end = body.getOperations().size();
  buffers.reserve(end + body.getNumArguments());
  for (BlockArgument argument : body.getArguments()) {
    Liveness::Buffer buffer = define(argument, 0);
    if (argument.use_empty()) // the caller's
      liveness.use(buffer, end);
  }
  for (Operation &op : body) {
    for (Value operand : op.getOperands())
      liveness.use(buffers.lookup(operand), step);
    for (Value result : op.getResults())
      if (isa<nn::LoadOp>(op))
        liveness.use(define(result, 0), end);
      else
        define(result, step);
    // What a stage or a loop holds of its own, while it runs.
    if (func::FuncOp callee = getCallee(&op, symbols))
      liveness.define(step, count(callee));
    else if (auto loop = dyn_cast<nn::LoopOp>(op))
      liveness.define(step, countBody(loop));
    ++step;
  }
  return liveness.getPeakBytes();
}

static int64_t countPeakBytes(func::FuncOp func, const SymbolTable &symbols) {
  // Once memory is planned, all of it is there all the time.
  int64_t planned = 0;
  for (exec::BufferOp buffer : getBuffers(func, symbols))
    planned += static_cast<int64_t>(buffer.getBytes());
  // A stage is called once per microbatch, and counted once.
  return planned ? planned : PeakCounter(symbols).count(func);
}

int64_t cleave::countPeakBytes(func::FuncOp func) {
  return ::countPeakBytes(func, SymbolTable(func->getParentOfType<ModuleOp>()));
}

/// Of the box that each rank loads, what is not there.
static void addPadding(exec::LoadOp op, int64_t ranks, spmd::Padding &padding) {
  int64_t bytes = spmd::getElementBytes(op.getTarget().getType().getElementType());
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t held = bytes, present = bytes;
    for (auto [dim, size] : llvm::enumerate(op.getSizes())) {
      ArrayAttr numbers = op.getPresentAttr();
      held *= size;
      present *= numbers ? cast<exec::NumberAttr>(numbers[dim]).evaluate(op, rank) : size;
    }
    padding.heldBytes += held;
    padding.bytes += held - present;
  }
}

/// The part of a parameter that all ranks load together, with the sharding by which they do.
static RankedTensorType getLoaded(nn::LoadOp op, nn::ParamOp param) {
  auto whole = cast<RankedTensorType>(param.getType());
  auto sharding = dyn_cast_or_null<spmd::ShardingAttr>(op.getShardingAttr());
  return RankedTensorType::get(op.getSizes().value_or(whole.getShape()), whole.getElementType(), sharding);
}

/// A rank stores what it loads, once for all its functions; the whole counts each parameter once, however many parts of it are
/// loaded.
static void countParameters(func::FuncOp func, const SymbolTable &symbols, Report &report) {
  llvm::DenseSet<Operation *> seen;
  llvm::DenseSet<std::tuple<Attribute, Attribute, Attribute, Attribute, Type>> loads;
  auto count = [&](nn::ParamOp param) {
    if (param && seen.insert(param).second)
      report.parameterBytes += spmd::getBytes(param.getType());
  };
  auto addWhole = [&](nn::LoadOp load) {
    auto param = symbols.lookup<nn::ParamOp>(load.getParamAttr().getAttr());
    count(param);
    if (!loads
             .insert({load.getParamAttr(), load.getStartsAttr(), load.getSizesAttr(), load.getShardingAttr(),
                      load.getType()})
             .second)
      return;
    report.parameterBytesPerRank += spmd::getBytes(load.getType());
    if (param)
      spmd::addPadding(getLoaded(load, param), report.padding.parameters);
  };
  auto addLocal = [&](exec::LoadOp load) {
    report.parameterBytesPerRank += spmd::getBytes(load.getTarget().getType());
    addPadding(load, report.ranks, report.padding.parameters);
    count(symbols.lookup<nn::ParamOp>(load.getParam()));
  };
  for (func::FuncOp each : getCalled(func, symbols))
    for (Operation &op : each.getOps())
      if (auto whole = dyn_cast<nn::LoadOp>(op))
        addWhole(whole);
      else if (auto local = dyn_cast<exec::LoadOp>(op))
        addLocal(local);
}

/// What spmd-propagate left on the function. A file written by hand may lack a key, which is no reason to fail.
static void readReplications(func::FuncOp func, Report &report) {
  auto list = func->getAttrOfType<ArrayAttr>(spmd::SpmdDialect::kReplicatedAttr);
  if (!list)
    return;
  auto text = [](DictionaryAttr entry, StringRef key) {
    auto value = entry.getAs<StringAttr>(key);
    return value ? value.str() : std::string();
  };
  for (DictionaryAttr entry : list.getAsRange<DictionaryAttr>()) {
    ReplicationReport &replicated = report.replicated.emplace_back();
    replicated.op = text(entry, "op");
    replicated.node = text(entry, "node");
    replicated.reason = text(entry, "reason");
    if (auto axes = entry.getAs<ArrayAttr>("axes"))
      for (StringAttr axis : axes.getAsRange<StringAttr>())
        replicated.axes.push_back(axis.str());
  }
}

/// Padding by what holds it, but for parameters, which are counted where they are loaded.
/// What arguments and results are as a whole stands in attributes, in those of commands once memory is planned; what values inside were
/// is known to partitioning alone.
static void countPadding(func::FuncOp func, PaddingReport &padding) {
  auto add = [](TypeAttr global, spmd::Padding &to) {
    if (global)
      spmd::addPadding(cast<RankedTensorType>(global.getValue()), to);
  };
  StringRef name = spmd::SpmdDialect::kGlobalTypeAttr;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    add(func.getArgAttrOfType<TypeAttr>(index, name), padding.inputs);
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    add(func.getResultAttrOfType<TypeAttr>(index, name), padding.outputs);
  for (Operation &op : func.getOps())
    if (auto input = dyn_cast<exec::InputOp>(op))
      add(input.getGlobalAttr(), padding.inputs);
    else if (auto output = dyn_cast<exec::OutputOp>(op))
      add(output.getGlobalAttr(), padding.outputs);
  auto values = func->getAttrOfType<DenseI64ArrayAttr>(spmd::SpmdDialect::kPaddingAttr);
  if (values && values.size() == 2)
    padding.values = {values[0], values[1]};
}

namespace {
/// Local ops have rules of local shapes, so that their flops are those of a rank. A kernel has those of its ops, each time
/// that it is launched.
class FlopCounter {
public:
  explicit FlopCounter(const SymbolTable &symbols) : symbols(symbols) {}

  const SymbolTable &getSymbols() const { return symbols; }

  double count(Operation *op) {
    if (op->getNumRegions() != 0)
      return countBody(op->getRegion(0).front());
    auto [entry, isNew] = known.try_emplace(op);
    if (!isNew)
      return entry->second;
    double flops = 0;
    if (auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op))
      flops = ruled.getShardingRule().flops;
    else if (auto launch = dyn_cast<exec::LaunchOp>(op))
      flops = countKernel(launch.getKernel());
    else if (auto run = dyn_cast<exec::RunOp>(op))
      flops = countKernel(run.getKernel());
    return known[op] = flops; // what is inside may have been added meanwhile
  }

private:
  double countKernel(StringRef name) { return countBody(symbols.lookup<exec::KernelOp>(name).getBody().front()); }
  double countBody(Block &body) {
    double flops = 0;
    for (Operation &op : body)
      flops += count(&op);
    return flops;
  }

  const SymbolTable &symbols;
  spmd::SameRuleMap<double> known;
};
} // namespace

/// Bytes that an op or a kernel reads and writes, if each is read once.
static double countTouched(Operation &op) {
  double bytes = 0;
  for (Type type :
       llvm::concat<const Type>(llvm::to_vector(op.getOperandTypes()), llvm::to_vector(op.getResultTypes())))
    if (isa<ShapedType>(type))
      bytes += static_cast<double>(spmd::getBytes(type));
  return bytes;
}

/// What an op takes on the machine, by the same formula for the program before kernels are formed and behind.
/// Parameters and what only moves become part of what reads them; a command of its own takes its launch at least.
static double predictNs(Operation &op, double flops, const spmd::OpTimes &times) {
  if (isa<exec::LaunchOp, exec::RunOp>(op) || op.getNumRegions() != 0)
    return times.getKernelNs(flops, countTouched(op), spmd::getComputedType(&op));
  auto ruled = dyn_cast<spmd::ShardingRuleOpInterface>(op);
  if (!ruled || (flops == 0 && ruled.getShardingRule().isMovement))
    return 0;
  return times.getComputeNs(flops, countTouched(op), spmd::getComputedType(&op));
}

namespace {
/// What of a ring goes on at a time: blocks are sent before others are attended to.
class RingOverlap {
public:
  /// The part of `ns` that goes on beside what was sent before.
  double add(Operation &op, double ns) {
    if (auto window = dyn_cast<spmd::WindowOp>(op); window && window.getWraps())
      sentNs += ns;
    else if (isa<exec::PartialAttentionOp>(op))
      return std::min(std::exchange(sentNs, 0), ns);
    return 0;
  }

private:
  double sentNs = 0;
};
} // namespace

/// Stages of a pipeline are functions, each time that they are called; what is in the body of a loop counts as often as it was
/// priced.
static void countOps(Block &block, FlopCounter &flops, const spmd::OpTimes *times, Report &report) {
  RingOverlap overlap;
  llvm::DenseSet<Operation *> starts = times ? exec::findKernelStarts(block) : llvm::DenseSet<Operation *>();
  SmallVector<int64_t> around{1}; // of loops that are marks in the list
  for (Operation &op : block) {
    if (isa<exec::EnterOp, exec::LoopOp>(op)) {
      auto here = op.getAttrOfType<IntegerAttr>(spmd::kTimesAttr);
      around.push_back(spmd::multiplyTimes(around.back(), here ? here.getInt() : 1));
    } else if (exec::isMark(&op)) {
      around.pop_back();
    }
    if (func::FuncOp callee = getCallee(&op, flops.getSymbols())) {
      countOps(callee.getBody().front(), flops, times, report);
      continue;
    }
    if (auto loop = dyn_cast<nn::LoopOp>(op)) {
      countOps(loop.getBody().front(), flops, times, report);
      continue;
    }
    int64_t runs = spmd::multiplyTimes(around.back(), spmd::getTimes(&op));
    double work = flops.count(&op);
    report.flopsPerRank += double(runs) * work;
    std::vector<CollectiveReport> sent = describeSent(&op);
    double sentNs = times ? predictNs(&op, sent, *times) : 0;
    bool isRepeated = around.size() > 1 || op.getParentOfType<nn::LoopOp>();
    if (isRepeated)
      repeat(sent, runs);
    if (times) {
      // Products are launched in any case.
      double launch = work == 0 && starts.contains(&op) ? times->getCluster().device.launchNs : 0;
      double ns =
          sent.empty() ? double(runs) * (predictNs(op, work, *times) + launch) : sentNs * double(isRepeated ? runs : 1);
      (sent.empty() ? report.time->computeNs : report.time->communicationNs) += ns;
      report.time->overlappedNs += overlap.add(op, ns);
    }
    addSent(std::move(sent), report);
  }
}

int64_t Report::getWireBytes() const {
  int64_t bytes = 0;
  for (const auto &entry : totals)
    bytes += entry.second.wireBytes;
  return bytes;
}

Report cleave::makeReport(func::FuncOp func, StringRef model, const spmd::Cluster *cluster) {
  auto module = func->getParentOfType<ModuleOp>();
  std::optional<spmd::OpTimes> times;
  if (cluster)
    times.emplace(*cluster, spmd::getMesh(func), getWholeMesh(module));
  return makeReport(func, model, SymbolTable(module), times ? &*times : nullptr);
}

Report cleave::makeReport(func::FuncOp func, StringRef model, const SymbolTable &symbols, const spmd::OpTimes *times) {
  Report report;
  report.model = model.str();
  spmd::MeshAttr mesh = spmd::getMesh(func);
  assert(mesh && "the function is not partitioned");
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    report.mesh.push_back({name.str(), size});
  report.ranks = mesh.getNumRanks();
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    report.inputs.push_back(describeArgument(func, index));
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    report.outputs.push_back(describe(func.getResultAttrDict(index), type, "result" + std::to_string(index)));
  for (Operation &op : func.getOps())
    if (auto input = dyn_cast<exec::InputOp>(op))
      report.inputs.push_back(
          describe(input.getName(), cast<RankedTensorType>(input.getGlobal()), input.getView().getType()));
    else if (auto output = dyn_cast<exec::OutputOp>(op))
      report.outputs.push_back(
          describe(output.getName(), cast<RankedTensorType>(output.getGlobal()), output.getView().getType()));
  FlopCounter flopCounter(symbols);
  if (times)
    report.time = TimeReport{times->getCluster().name};
  countOps(func.getBody().front(), flopCounter, times, report);
  countParameters(func, symbols, report);
  countPadding(func, report.padding);
  report.arena = ::countArena(getBuffers(func, symbols), func->getParentOfType<ModuleOp>());
  readReplications(func, report);
  report.peakBytesPerRank = ::countPeakBytes(func, symbols);
  if (times)
    compareMemory(func, times->getCluster(), report);
  // A program that was not partitioned here does not know what the whole would cost.
  auto flops = func->getAttrOfType<FloatAttr>(spmd::SpmdDialect::kFlopsAttr);
  report.flops = flops ? flops.getValueAsDouble() : report.flopsPerRank;
  return report;
}
