//===- StepReport.cpp - what reports say of a step of training ------------===//
//
// What a rank holds where it holds most, by what that is for. Arguments say it themselves (StepRoles.h), and so do buffers of one kind. Of
// all else it follows from the nodes that make and read it, which the passes of a step have named:
//
//   made by       read by        is
//   grad(..)      update(..)     a gradient
//   a collective  anything       communication
//   update(..)    anything       the optimizer's, where memory is not planned yet
//   the model     grad(..)       kept: activations of the forward pass that the backward one reads
//   anything      anything       working
//
// A collective that a gradient goes through is a part of its way: what it makes for an update is a gradient.
//
//===----------------------------------------------------------------------===//
#include "StepReport.h"

#include "PipelineReport.h"
#include "cleave/Cost/Memory.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/IR/Spans.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace cleave;

namespace {
/// Of `kMemoryRoleWords`, in their order.
enum class Purpose { Parameters, Optimizer, Gradients, Kept, Working, Communication, Batch };

enum class StepPart { Backward, Scaling, Update, Other };
} // namespace

static std::optional<Purpose> getPurpose(Attribute attribute) {
  auto word = dyn_cast_if_present<StringAttr>(attribute);
  if (!word)
    return std::nullopt;
  return llvm::StringSwitch<std::optional<Purpose>>(word.getValue())
      .Cases({spmd::kParameterRole, spmd::kRunningRole}, Purpose::Parameters)
      .Case(spmd::kBatchRole, Purpose::Batch)
      .Default(Purpose::Optimizer);
}

//===----------------------------------------------------------------------===//
// Who makes and reads a value
//===----------------------------------------------------------------------===//

/// By the names that the passes of a step give their nodes. What scales gradients, so that an update reads them, makes gradients.
static StepPart getPart(const spmd::NodeInfo &info) {
  if (info.node.starts_with("grad("))
    return StepPart::Backward;
  if (info.node.starts_with("update("))
    return StepPart::Update;
  bool isOfStep = info.opType == "Train";
  return isOfStep && (info.node == "clip" || info.node == "unscale") ? StepPart::Scaling : StepPart::Other;
}

static bool isOf(Operation *op, StepPart part) {
  return llvm::any_of(spmd::getNodeInfos(op), [&](const spmd::NodeInfo &info) { return getPart(info) == part; });
}

static bool isCollective(Operation *op) {
  return isa<spmd::CollectiveOpInterface, exec::CollectiveOp, exec::ExchangeOp>(op);
}

/// Commands that touch a view or another one of the same tensor, or users of a value: those that read it, or those that write it.
static SmallVector<Operation *> getUsers(Value value, bool wantsReaders) {
  SmallVector<Operation *> found;
  if (!value.getDefiningOp<exec::ViewOp>()) {
    if (wantsReaders)
      llvm::append_range(found, value.getUsers());
    else if (Operation *op = value.getDefiningOp())
      found.push_back(op);
    return found;
  }
  for (OpOperand &use : value.getUses()) {
    if (auto part = dyn_cast<exec::ViewOp>(use.getOwner()))
      llvm::append_range(found, getUsers(part, wantsReaders));
    auto command = dyn_cast<exec::CommandOpInterface>(use.getOwner());
    if (!command)
      continue;
    OperandRange views = wantsReaders ? command.getReads() : command.getWrites();
    if (llvm::is_contained(views, use.get()))
      found.push_back(command);
  }
  return found;
}

/// Of commands what they write, of ops their results; as tensors.
static SmallVector<Value> getMade(Operation *op) {
  auto command = dyn_cast<exec::CommandOpInterface>(op);
  if (!command)
    return llvm::to_vector_of<Value>(op->getResults());
  return llvm::map_to_vector(command.getWrites(),
                             [](Value view) { return view.getDefiningOp<exec::ViewOp>().getTensor(); });
}

/// Through collectives, so far as a gradient goes through these.
static bool isReadBy(Value value, StepPart part, unsigned depth = 4) {
  return llvm::any_of(getUsers(value, /*wantsReaders=*/true), [&](Operation *reader) {
    if (!isCollective(reader))
      return isOf(reader, part);
    return depth > 0 && llvm::any_of(getMade(reader), [&](Value made) { return isReadBy(made, part, depth - 1); });
  });
}

/// What a gradient goes through on its way from the backward pass to an update as it is, or added to those of other microbatches.
static bool passesGradients(Operation *op) {
  return isCollective(op) || op->hasAttr(spmd::kCombinesAttr) || op->hasTrait<nn::KeepsNumbers>();
}

GradientPaths::GradientPaths(func::FuncOp func, const SymbolTable &symbols) : symbols(symbols) {
  func->getParentOfType<ModuleOp>().walk([&](func::CallOp call) { callers[call.getCallee()].push_back(call); });
}

/// Stages are functions: what one returns its callers read, and what these pass on is read in others.
bool GradientPaths::isForUpdate(Value value) {
  auto [entry, isNew] = updated.try_emplace(value, false);
  if (!isNew)
    return entry->second;
  bool found = llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto call = dyn_cast<func::CallOp>(user))
      if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee()); callee && !callee.isExternal())
        return isForUpdate(callee.getArgument(use.getOperandNumber()));
    if (isa<func::ReturnOp>(user))
      return llvm::any_of(callers.lookup(cast<func::FuncOp>(user->getParentOp()).getSymName()),
                          [&](func::CallOp call) { return isForUpdate(call.getResult(use.getOperandNumber())); });
    return isOf(user, StepPart::Update) || isOf(user, StepPart::Scaling) ||
           (passesGradients(user) &&
            llvm::any_of(user->getResults(), [&](Value result) { return isForUpdate(result); }));
  });
  return updated[value] = found;
}

bool GradientPaths::isOfBackward(Value value) {
  auto [entry, isNew] = made.try_emplace(value, false);
  if (!isNew)
    return entry->second;
  Operation *maker = value.getDefiningOp();
  bool found = false;
  if (auto call = dyn_cast_if_present<func::CallOp>(maker)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    found = callee && !callee.isExternal() &&
            isOfBackward(callee.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      found = llvm::any_of(callers.lookup(func.getSymName()),
                           [&](func::CallOp call) { return isOfBackward(call.getOperand(argument.getArgNumber())); });
  } else {
    found = passesGradients(maker)
                ? llvm::any_of(maker->getOperands(), [&](Value operand) { return isOfBackward(operand); })
                : isOf(maker, StepPart::Backward);
  }
  return made[value] = found;
}

bool GradientPaths::areSentBy(Operation *collective) {
  return llvm::any_of(collective->getResults(), [&](Value result) { return isForUpdate(result); }) &&
         llvm::any_of(collective->getOperands(), [&](Value operand) { return isOfBackward(operand); });
}

/// Of an SSA value or of a view.
static Purpose findPurpose(Value value) {
  SmallVector<Operation *> makers = getUsers(value, /*wantsReaders=*/false);
  auto isMadeBy = [&](StepPart part) { return llvm::any_of(makers, [&](Operation *op) { return isOf(op, part); }); };
  bool travels = llvm::any_of(makers, isCollective), isOfBackward = isMadeBy(StepPart::Backward);
  bool isForUpdate = isReadBy(value, StepPart::Update) || isReadBy(value, StepPart::Scaling);
  if (isForUpdate && (travels || isOfBackward || isMadeBy(StepPart::Scaling)))
    return Purpose::Gradients;
  if (travels)
    return Purpose::Communication;
  // Before memory is planned what is made of a state stands for it.
  if (isMadeBy(StepPart::Update) && !value.getDefiningOp<exec::ViewOp>())
    return Purpose::Optimizer;
  return !isOfBackward && isReadBy(value, StepPart::Backward) ? Purpose::Kept : Purpose::Working;
}

/// What is returned as the next value of an argument is what that is for; nothing for all else.
static std::optional<Purpose> findNextPurpose(func::FuncOp func, Value value) {
  for (OpOperand &use : value.getUses()) {
    if (!isa<func::ReturnOp>(use.getOwner()))
      continue;
    auto state = func.getResultAttrOfType<StringAttr>(use.getOperandNumber(), spmd::SpmdDialect::kStateAttr);
    for (unsigned index = 0; state && index < func.getNumArguments(); ++index)
      if (spmd::getArgumentName(func, index) == state.getValue())
        return getPurpose(func.getArgAttr(index, spmd::kRoleAttr));
  }
  return std::nullopt;
}

static Purpose findPurpose(func::FuncOp func, const cost::HeldBytes &held) {
  exec::BufferOp buffer = held.buffer;
  if (buffer && buffer.getKind() == exec::BufferKind::Weights)
    return Purpose::Parameters;
  if (buffer && buffer.getKind() == exec::BufferKind::Communication)
    return Purpose::Communication;
  if (!held.value)
    return Purpose::Working;
  if (auto argument = dyn_cast<BlockArgument>(held.value)) {
    unsigned number = argument.getArgNumber();
    Purpose otherwise = spmd::isParameter(func, number) ? Purpose::Parameters : Purpose::Batch;
    return getPurpose(func.getArgAttr(number, spmd::kRoleAttr)).value_or(otherwise);
  }
  if (held.value.getDefiningOp<nn::LoadOp>())
    return Purpose::Parameters;
  if (std::optional<Purpose> next = findNextPurpose(func, held.value))
    return *next;
  for (Operation *user : held.value.getUsers())
    if (isa<exec::InputOp>(user))
      return getPurpose(user->getAttr(spmd::kRoleAttr)).value_or(Purpose::Working);
  return findPurpose(held.value);
}

llvm::StringRef cleave::nameRole(func::FuncOp func, const cost::HeldBytes &held) {
  return kMemoryRoleWords[size_t(findPurpose(func, held))];
}

//===----------------------------------------------------------------------===//
// What is trained
//===----------------------------------------------------------------------===//

/// The whole tensors, of which parts may be trained each by itself.
static StringRef getWhole(StringRef name) { return name.take_front(name.find('[')); }

/// Floats that are loaded and stay as they are.
static void addFrozen(func::FuncOp func, const SymbolTable &symbols, llvm::SetVector<StringRef> &names) {
  auto add = [&](StringRef name) {
    auto param = symbols.lookup<nn::ParamOp>(name);
    if (param && isa<FloatType>(cast<ShapedType>(param.getType()).getElementType()))
      names.insert(name);
  };
  auto isWeight = [&](Value view) {
    auto of = view.getDefiningOp<exec::ViewOp>();
    auto buffer = of ? symbols.lookup<exec::BufferOp>(of.getBuffer()) : exec::BufferOp();
    return buffer && buffer.getKind() == exec::BufferKind::Weights;
  };
  for (func::FuncOp each : cleave::getCalled(func, symbols))
    for (Operation &op : each.getOps())
      if (auto load = dyn_cast<nn::LoadOp>(op))
        add(load.getParam());
      else if (auto local = dyn_cast<exec::LoadOp>(op); local && isWeight(local.getTarget()))
        add(local.getParam());
}

void cleave::describeStep(func::FuncOp func, const SymbolTable &symbols, Report &report) {
  llvm::SetVector<StringRef> trained, frozen;
  auto add = [&](Attribute role, StringRef name) {
    if (auto word = dyn_cast_if_present<StringAttr>(role); word && word.getValue() == spmd::kParameterRole)
      trained.insert(getWhole(name));
  };
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    add(func.getArgAttr(index, spmd::kRoleAttr), spmd::getArgumentName(func, index));
  for (auto input : func.getOps<exec::InputOp>())
    add(input->getAttr(spmd::kRoleAttr), input.getName());
  if (trained.empty())
    return;
  addFrozen(func, symbols, frozen);
  frozen.set_subtract(trained);
  TrainReport &train = report.train.emplace();
  train.trained = static_cast<int64_t>(trained.size());
  train.frozen.assign(frozen.begin(), frozen.end());
  std::vector<int64_t> bytes(std::size(kMemoryRoleWords), 0);
  for (const cost::HeldBytes &held : cost::listPeakBytes(func, symbols))
    bytes[size_t(findPurpose(func, held))] += held.bytes;
  for (auto [word, sum] : llvm::zip_equal(kMemoryRoleWords, bytes))
    report.memoryByRole.emplace_back(word, sum);
}
