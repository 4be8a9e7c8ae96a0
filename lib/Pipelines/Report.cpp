//===- Report.cpp - what a partitioned program sends and stores -----------===//
//
// Bytes, shapes and collectives are counted in one walk over the partitioned program: the report tells what the program
// does, not what was meant. Only what partitioning leaves no trace of was noted on the way: why a collective is there
// (its location), what forced a replication, and the flops of the whole (attributes of the function).
//
//===----------------------------------------------------------------------===//
#include "ChoicesReport.h"
#include "MachineReport.h"
#include "OffloadReport.h"
#include "PipelineReport.h"
#include "SentReport.h"
#include "StepReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "cleave/Cost/Memory.h"
#include "cleave/Cost/Program.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Packed.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/Phase.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
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
    if (buffer.getKind() == exec::BufferKind::Activations && !buffer.getOnHost()) {
      arena.bytes += buffer.getBytes();
      arena.bound += buffer.getBound().value_or(0);
    }
  return arena;
}

std::optional<ArenaReport> cleave::countArena(ModuleOp module) {
  return ::countArena(llvm::to_vector(module.getOps<exec::BufferOp>()), module);
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
  auto addWeight = [&](nn::LoadOp load) {
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
  // Those of a step of training are arguments.
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (auto begins = func.getArgAttr(index, nn::kBeginsAttr); begins && spmd::isParameter(func, index)) {
      report.parameterBytesPerRank += spmd::getBytes(func.getArgumentTypes()[index]);
      count(symbols.lookup<nn::ParamOp>(nn::getBeginsParam(begins).getAttr()));
    }
  for (func::FuncOp each : getCalled(func, symbols))
    for (Operation &op : each.getOps())
      if (auto whole = dyn_cast<nn::LoadOp>(op))
        addWeight(whole);
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
/// Which values of a function are parameters, or made of these and of constants alone: nothing of them depends on a call.
class WeightValues {
public:
  explicit WeightValues(func::FuncOp func);

  bool contains(Value value) const { return kinds.lookup(value) == Kind::Weight; }

private:
  enum class Kind { Other, Constant, Weight };
  void add(Operation &op);

  llvm::DenseMap<Value, Kind> kinds;
};
} // namespace

WeightValues::WeightValues(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments())
    if (spmd::isParameter(func, argument.getArgNumber()))
      kinds[argument] = Kind::Weight;
  func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { add(*op); });
}

/// Operands come before the op, and a loop before its body, in which what it captures is what it was outside.
void WeightValues::add(Operation &op) {
  if (auto loop = dyn_cast<nn::LoopOp>(op)) {
    auto inside = loop.getBody().getArguments().take_back(loop.getCaptured().size());
    for (auto [captured, argument] : llvm::zip_equal(loop.getCaptured(), inside))
      kinds[argument] = kinds.lookup(captured);
    return;
  }
  Kind made = op.getNumOperands() == 0 && nn::isData(&op) ? Kind::Constant : Kind::Other;
  auto kindOf = [&](Value operand) { return kinds.lookup(operand); };
  if (isa<spmd::ParameterOpInterface>(op))
    made = Kind::Weight;
  else if (op.getNumOperands() > 0 && !llvm::is_contained(llvm::map_range(op.getOperands(), kindOf), Kind::Other))
    made = llvm::is_contained(llvm::map_range(op.getOperands(), kindOf), Kind::Weight) ? Kind::Weight : Kind::Constant;
  for (Value result : op.getResults())
    kinds[result] = made;
}

/// What each op sends, with its part of the time, and what all take.
static void countOps(func::FuncOp func, const SymbolTable &symbols, const cost::OpTimes *times, Report &report) {
  const WeightValues weights(func);
  GradientPaths gradients(func, symbols);
  cost::ProgramCost sum = cost::countProgram(func, symbols, times, [&](Operation &op, const cost::OpVisit &visit) {
    std::vector<CollectiveReport> sent = describeSent(&op);
    bool isCollective = isa<spmd::CollectiveOpInterface>(op);
    for (CollectiveReport &one : sent) {
      one.isOfWeights = llvm::all_of(op.getOperands(), [&](Value operand) { return weights.contains(operand); });
      one.isOfGradients = isCollective && gradients.areSentBy(&op);
    }
    share(sent, visit.cost.communicationNs);
    if (visit.isRepeated)
      repeat(sent, visit.runs);
    addSent(std::move(sent), report);
  });
  report.flopsPerRank = sum.flops;
  if (times)
    report.time = TimeReport{sum.time, times->getCluster().name};
}

int64_t Report::getWireBytes() const {
  int64_t bytes = 0;
  for (const auto &entry : totals)
    bytes += entry.second.wireBytes;
  return bytes;
}

Report cleave::makeReport(func::FuncOp func, StringRef model, const spmd::Cluster *cluster) {
  auto module = func->getParentOfType<ModuleOp>();
  std::optional<cost::OpTimes> times;
  if (cluster)
    times.emplace(*cluster, spmd::getMesh(func), pipe::getWholeMesh(module));
  return makeReport(func, model, SymbolTable(module), times ? &*times : nullptr);
}

Report cleave::makeReport(func::FuncOp func, StringRef model, const SymbolTable &symbols, const cost::OpTimes *times) {
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
  countOps(func, symbols, times, report);
  countParameters(func, symbols, report);
  countPadding(func, report.padding);
  report.arena = ::countArena(cost::getBuffers(func, symbols), func->getParentOfType<ModuleOp>());
  readReplications(func, report);
  report.peakBytesPerRank = cost::countPeakBytes(func, symbols);
  describeStep(func, symbols, report);
  report.recompute = readChoices(func);
  report.offload = readOffload(func, symbols);
  if (times)
    compareMemory(func, times->getCluster(), report);
  // A program that was not partitioned here does not know what the whole would cost.
  auto flops = func->getAttrOfType<FloatAttr>(spmd::SpmdDialect::kFlopsAttr);
  report.flops = flops ? flops.getValueAsDouble() : report.flopsPerRank;
  return report;
}
