//===- Commands.cpp - what callers see, and what ranks do -----------------===//
//
// Each command op of exec is one command of the program, in the order of the function. A message between ranks of a pipeline is
// an exchange of which the sender has one side and the receiver the other: both name the same pieces.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"

#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Nn/IR/IndexRange.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"
#include "cleave/Program/Words.h"
#include "cleave/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace cleave;

static program::Reduction convert(spmd::ReductionKind kind) {
  switch (kind) {
  case spmd::ReductionKind::Sum:
    return program::Reduction::Sum;
  case spmd::ReductionKind::Prod:
    return program::Reduction::Prod;
  case spmd::ReductionKind::Max:
    return program::Reduction::Max;
  case spmd::ReductionKind::Min:
    return program::Reduction::Min;
  }
}

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

template <typename Boundary> program::Tensor ProgramTables::makeTensor(Boundary boundary) {
  program::Tensor tensor;
  auto global = cast<RankedTensorType>(boundary.getGlobal());
  tensor.name = boundary.getName().str();
  tensor.type = addType(global);
  if (spmd::ShardingAttr sharding = spmd::getSharding(global)) {
    tensor.sharding = spmd::formatSharding(sharding);
    if (sharding.isPartial())
      tensor.reduction = convert(sharding.getPartialKind());
    for (spmd::AxisAttr axis : sharding.getPartial())
      tensor.terms *= axis.getExtent(source->mesh);
  }
  program::Place &place = tensor.places.emplace_back();
  place.role = source->role;
  place.view = getView(boundary.getView());
  place.starts = getNumbers(boundary.getStarts());
  if (ArrayAttr present = boundary.getPresentAttr())
    place.present = getNumbers(present);
  if (exec::NumberAttr term = boundary.getTermAttr())
    place.term = getNumber(term);
  return tensor;
}

/// What the model was imported for a value of takes no other: the program keeps the elements.
static LogicalResult addValue(exec::InputOp input, program::Tensor &tensor) {
  Attribute attr = input->getAttr(nn::NnDialect::kValueAttr);
  if (!attr)
    return success();
  auto global = cast<RankedTensorType>(input.getGlobal());
  auto value = dyn_cast<DenseElementsAttr>(attr);
  FailureOr<reference::Tensor> elements = failure();
  if (value && value.getType().getShape() == global.getShape() && value.getElementType() == global.getElementType())
    elements = reference::Tensor::fromAttr(value);
  if (failed(elements))
    return input.emitOpError() << "has a " << nn::NnDialect::kValueAttr << " that is not dense elements of " << global;
  tensor.value.assign(elements->getBytes().begin(), elements->getBytes().end());
  return success();
}

/// What an argument of a step is for, and what it is called in a checkpoint: a parameter that is a part of another one as that.
LogicalResult ProgramTables::addStep(exec::InputOp input, program::Tensor &tensor) {
  if (auto word = input->getAttrOfType<StringAttr>(spmd::kRoleAttr)) {
    for (auto role = program::StepRole::Batch; role <= program::StepRole::Scale;
         role = program::StepRole(int(role) + 1))
      if (word.getValue() == program::getWord(role))
        tensor.role = role;
    if (tensor.role == program::StepRole::None)
      return input.emitOpError() << "has the role " << word << ", expected batch, parameter, optimizer, running, count "
                                 << "or scale";
  }
  auto global = cast<RankedTensorType>(input.getGlobal());
  Attribute attr = input->getAttr(nn::kOriginAttr), begins = input->getAttr(nn::kBeginsAttr);
  if (!attr && begins && tensor.role == program::StepRole::Parameter && isa<DictionaryAttr>(begins)) {
    nn::ParamOp param = source->params.lookup(nn::getBeginsParam(begins).getValue());
    FailureOr<nn::LoadedBox> box = nn::getBeginning(input, begins, param, global);
    if (failed(box))
      return failure();
    ArrayRef<int64_t> shape = cast<ShapedType>(param.getType()).getShape();
    tensor.origin = {param.getSymName().str(), {box->starts.begin(), box->starts.end()}, shape.vec()};
  }
  if (!attr)
    return success();
  FailureOr<nn::Origin> origin = nn::readOrigin(input, attr, global);
  if (failed(origin))
    return failure();
  tensor.origin.name = origin->name.str();
  if (global.getShape() != ArrayRef<int64_t>(origin->shape)) {
    tensor.origin.starts.assign(origin->starts.begin(), origin->starts.end());
    tensor.origin.shape.assign(origin->shape.begin(), origin->shape.end());
  }
  return success();
}

/// What is given or computed may be any value, and is no argument.
static LogicalResult addValue(exec::OutputOp, program::Tensor &) { return success(); }
LogicalResult ProgramTables::addStep(exec::OutputOp, program::Tensor &) { return success(); }

/// Several ranks of a pipeline may use one input: it has a place on each of them.
template <typename Boundary>
LogicalResult ProgramTables::addTensor(std::vector<program::Tensor> &tensors, Boundary boundary) {
  program::Tensor made = makeTensor(boundary);
  if (failed(addValue(boundary, made)) || failed(addStep(boundary, made)))
    return failure();
  size_t number = boundary.getIndex().value_or(tensors.size());
  tensors.resize(std::max(tensors.size(), number + 1));
  program::Tensor &known = tensors[number];
  if (known.places.empty()) {
    known = std::move(made);
    return success();
  }
  if (known.name != made.name || known.type != made.type || known.sharding != made.sharding)
    return boundary.emitOpError() << "is '" << known.name << "' of another type or sharding on another rank";
  known.places.push_back(std::move(made.places.front()));
  return success();
}

static bool isSame(const program::View &a, const program::View &b) {
  return a.buffer == b.buffer && a.type == b.type && a.offset.base == b.offset.base &&
         a.offset.column == b.offset.column;
}

/// An output that lies where an input does is its next value. Each variant finds what the others have left.
LogicalResult ProgramTables::addStates(program::Variant &variant) {
  for (auto [i, input] : llvm::enumerate(variant.inputs))
    for (auto [o, output] : llvm::enumerate(variant.outputs)) {
      const program::Place &from = input.places.front(), &to = output.places.front();
      if (from.role == to.role && from.view.buffer == to.view.buffer &&
          program.roles[from.role].buffers[from.view.buffer].kind == program::BufferKind::State)
        variant.states.push_back({uint32_t(i), int32_t(o)});
    }
  // In the order of inputs: what nobody gives a next value stays as it is.
  for (auto [i, input] : llvm::enumerate(variant.inputs)) {
    const program::Place &place = input.places.front();
    bool isState = program.roles[place.role].buffers[place.view.buffer].kind == program::BufferKind::State;
    auto at = llvm::find_if(variant.states, [&, i = i](const program::State &state) { return state.input >= i; });
    if (isState && (at == variant.states.end() || at->input != i)) {
      variant.states.insert(at, {uint32_t(i), -1});
      program.version = std::max(program.version, program::kBeginsVersion);
    }
  }
  for (const program::State &state : variant.states) {
    const program::Tensor &input = variant.inputs[state.input];
    if (!program.variants.empty() &&
        !isSame(input.places.front().view, program.variants.front().inputs[state.input].places.front().view))
      return source->module.emitError() << "state '" << input.name
                                        << "' has another shape, or grows by another number, in "
                                        << "another variant, which could not go on from it";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

program::Action ProgramTables::makeAction(exec::RunOp op) {
  if (std::optional<program::Action> call = ways.makeCall ? (this->*ways.makeCall)(op) : std::nullopt)
    return *call;
  program::Launch launch;
  launch.kernel = source->kernels.lookup(op.getKernel());
  for (Value operand : op->getOperands())
    launch.operands.push_back(getView(operand));
  return launch;
}

program::Action ProgramTables::makeAction(exec::CopyOp op) {
  return program::Copy{getView(op.getSource()), getView(op.getTarget())};
}

program::Action ProgramTables::makeAction(exec::CollectiveOp op) {
  program::Collective collective;
  collective.kind = op.getKind();
  if (std::optional<spmd::ReductionKind> kind = op.getReduction())
    collective.reduction = convert(*kind);
  collective.groups = addGroups(op.getAxes());
  for (Value operand : op.getSources())
    collective.operands.push_back(getView(operand));
  for (Value result : op.getTargets())
    collective.results.push_back(getView(result));
  for (int64_t count : op.getGather().value_or(ArrayRef<int64_t>()))
    collective.gather.push_back(count);
  for (int64_t count : op.getSlice().value_or(ArrayRef<int64_t>()))
    collective.slice.push_back(count);
  return collective;
}

program::Action ProgramTables::makeAction(exec::ExchangeOp op) {
  auto list = SymbolTable::lookupNearestSymbolFrom<exec::PiecesOp>(op, op.getPiecesAttr());
  return program::Exchange{addPieces(list), getView(op.getSource()), getView(op.getTarget())};
}

program::Action ProgramTables::makeAction(exec::SendOp op) {
  program::Exchange exchange;
  exchange.pieces = addMessagePieces(source->role, op.getPeer(), op.getView().getType().getShape());
  exchange.operand = getView(op.getView());
  return exchange;
}

program::Action ProgramTables::makeAction(exec::ReceiveOp op) {
  program::Exchange exchange;
  exchange.pieces = addMessagePieces(op.getPeer(), source->role, op.getView().getType().getShape());
  exchange.result = getView(op.getView());
  return exchange;
}

program::Action ProgramTables::makeAction(exec::RecordOp op) { return program::Record{uint32_t(op.getEvent())}; }
program::Action ProgramTables::makeAction(exec::WaitOp op) { return program::Wait{uint32_t(op.getEvent())}; }

/// Older readers would run the body once.
program::Action ProgramTables::makeAction(exec::LoopOp op) {
  program.version = std::max(program.version, program::kLoopsVersion);
  program::Loop loop;
  if (op.getCount())
    loop.count = int64_t(*op.getCount());
  if (op.getCondition())
    loop.condition = getView(op.getCondition());
  return loop;
}

program::Action ProgramTables::makeAction(exec::EndLoopOp op) {
  program::EndLoop end;
  if (op.getCondition())
    end.condition = getView(op.getCondition());
  return end;
}

template <typename... Ops> bool ProgramTables::addCommand(Operation *op, program::List &list) {
  auto add = [&](auto command) {
    if (!command)
      return false;
    uint32_t stream = command.getStream();
    list.streams = std::max(list.streams, stream + 1);
    list.commands.push_back({stream, addNode(op), makeAction(command), addUnit(op)});
    return true;
  };
  return (add(dyn_cast<Ops>(op)) || ...);
}

/// True for messages to or from nobody.
static bool isAddressless(Operation &op, size_t roles) {
  auto send = dyn_cast<exec::SendOp>(op);
  auto receive = dyn_cast<exec::ReceiveOp>(op);
  return (send && send.getPeer() >= roles) || (receive && receive.getPeer() >= roles);
}

/// What the numbers of an input may be, where they are looked up. Ranks of a pipeline say the same of one input.
void ProgramTables::addRange(exec::InputOp op, program::Variant &variant) {
  std::optional<nn::IndexRange> range = nn::readIndexRange(op->getDiscardableAttr(nn::kIndexRangeAttr));
  auto input = uint32_t(op.getIndex().value_or(variant.inputs.size() - 1));
  bool isKnown = llvm::any_of(variant.ranges, [&](const program::IndexRange &known) { return known.input == input; });
  bool isInteger = op.getGlobal().getElementType().isInteger();
  if (range && !isKnown && isInteger)
    variant.ranges.push_back({input, addNode(range->node), range->least, range->most});
}

LogicalResult ProgramTables::addList(func::FuncOp func, program::Variant &variant) {
  program::List &list = variant.lists.emplace_back();
  for (Operation &op : func.getBody().front()) {
    if (isAddressless(op, program.roles.size()))
      return op.emitOpError() << "has its other end on none of " << program.roles.size() << " ranks of the pipeline";
    if (auto load = dyn_cast<exec::LoadOp>(op)) {
      if (failed(addLoad(load)))
        return failure();
    } else if (auto input = dyn_cast<exec::InputOp>(op)) {
      if (failed(addTensor(variant.inputs, input)))
        return failure();
      addRange(input, variant);
    } else if (auto output = dyn_cast<exec::OutputOp>(op)) {
      if (failed(addTensor(variant.outputs, output)))
        return failure();
    } else if (auto record = dyn_cast<exec::RecordOp>(op)) {
      list.events = std::max<uint32_t>(list.events, record.getEvent() + 1);
    }
    bool isKnown = isa<exec::LoadOp, exec::InputOp, exec::OutputOp, exec::ViewOp, func::ReturnOp>(op);
    if (!addCommand<exec::RunOp, exec::CopyOp, exec::CollectiveOp, exec::ExchangeOp, exec::SendOp, exec::ReceiveOp,
                    exec::RecordOp, exec::WaitOp, exec::LoopOp, exec::EndLoopOp>(&op, list) &&
        !isKnown)
      return op.emitOpError("is not a command of a program");
  }
  return success();
}
