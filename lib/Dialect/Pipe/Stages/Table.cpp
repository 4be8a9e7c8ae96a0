//===- Table.cpp - a schedule in the IR -----------------------------------===//
//
// A row is what a table of torch has as a row, one action behind the other with commas. A message to or from a stage that
// is no neighbor says which: `0SEND_F1>3` goes to stage 3, and `3RECV_F1<0` is what stage 3 gets from stage 0. `0F3&,3B1` are a pair that
// runs as one, what torch writes as `(0F3;3B1)OVERLAP_F_B`.
//
//===----------------------------------------------------------------------===//
#include "Table.h"

#include "cleave/Dialect/Pipe/Stages/StageGraph.h"
#include "cleave/Dialect/Pipe/Stages/StageUnits.h"
#include "cleave/Schedule/Text.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <set>

using namespace mlir;
using namespace cleave;
using namespace cleave::pipe;

MicrobatchesOp cleave::pipe::findLoop(func::FuncOp func) {
  auto loops = func.getOps<MicrobatchesOp>();
  return loops.empty() ? MicrobatchesOp() : *loops.begin();
}

SmallVector<func::CallOp> cleave::pipe::getStageCalls(Region &body) {
  assert(body.hasOneBlock() && "not a loop of pipe-split");
  return llvm::to_vector(body.front().getOps<func::CallOp>());
}

/// Where the value of a body comes from: an argument's number, or the result's of a call, numbered too.
static std::pair<int64_t, unsigned> getSource(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return {-1, cast<BlockArgument>(value).getArgNumber()};
  Block *block = result.getOwner()->getBlock();
  return {std::distance(block->begin(), result.getOwner()->getIterator()), result.getResultNumber()};
}

LogicalResult cleave::pipe::checkBodies(MicrobatchesOp loop) {
  if (loop.getRest().empty())
    return success();
  Block &body = loop.getBody().front(), &rest = loop.getRest().front();
  if (body.getOperations().size() != rest.getOperations().size())
    return loop.emitOpError("calls other stages in its second body than in its first");
  for (auto [a, b] : llvm::zip_equal(body, rest)) {
    auto sources = [](Operation &op) { return llvm::map_to_vector(op.getOperands(), getSource); };
    if (a.getNumResults() != b.getNumResults() || sources(a) != sources(b))
      return b.emitOpError("does not read in the second body what its counterpart reads in the first");
  }
  return success();
}

std::vector<schedule::Channel> cleave::pipe::findChannels(MicrobatchesOp loop) {
  llvm::DenseMap<Operation *, int32_t> stageOf;
  std::set<std::pair<int32_t, int32_t>> pairs;
  SmallVector<func::CallOp> calls = getStageCalls(loop.getBody());
  StageUnits units = StageUnits::get(loop->getParentOfType<ModuleOp>(), static_cast<int64_t>(calls.size()));
  for (auto [unit, call] : llvm::enumerate(calls)) {
    int32_t stage = static_cast<int32_t>(units.getStage(static_cast<int64_t>(unit)));
    for (Value operand : call.getOperands())
      if (auto producer = operand.getDefiningOp<func::CallOp>())
        if (auto [from, to] = std::minmax(stageOf.lookup(producer), stage); from != to)
          pairs.insert({to, from});
    stageOf[call] = stage;
  }
  std::vector<schedule::Channel> channels;
  for (auto [to, from] : pairs)
    channels.push_back({from, to, 0, 0, {}});
  return channels;
}

//===----------------------------------------------------------------------===//
// Where tables come from
//===----------------------------------------------------------------------===//

/// A table that somebody wrote, as CSV or as a report.
static llvm::Expected<schedule::Schedule> readFile(StringRef path) {
  auto buffer = readBuffer(path);
  if (!buffer)
    return makeError("cannot read schedule '{0}': {1}", path, buffer.getError().message());
  if (path.ends_with(".csv"))
    return schedule::readCsv((*buffer)->getBuffer(), path);
  llvm::Expected<schedule::CostedSchedule> read = schedule::readJson((*buffer)->getBuffer(), path);
  return read ? llvm::Expected<schedule::Schedule>(std::move(read->schedule)) : read.takeError();
}

/// `forward`, or `circular` where ranks have several stages, is what is left of any schedule without gradients. With gradients, `1f1b` keeps
/// the fewest microbatches of all that need no more stages than ranks.
StringRef cleave::pipe::getRunSchedule(StringRef name, schedule::Shape shape, const schedule::PlacementRequest &request,
                                       bool trains) {
  if (!name.empty() && name != "auto")
    return name;
  bool areSeveral = shape.chunks > 1 || request.ranks.size() > static_cast<size_t>(shape.ranks);
  if (trains && areSeveral && request.placement == schedule::Placement::V)
    return "zb-v";
  if (trains)
    return areSeveral ? "interleaved" : "1f1b";
  return areSeveral ? "circular" : "forward";
}

/// The names of all schedules that have gradients, or of those that have none.
static std::string listSchedules(bool trains) {
  std::string names;
  llvm::ListSeparator separator(", ");
  for (const schedule::GeneratorInfo &info : schedule::getGenerators())
    if (info.isForwardOnly != trains)
      names += (StringRef(separator) + info.name).str();
  return names;
}

/// The same stages on the same ranks.
static llvm::Expected<schedule::Schedule> dropGradients(const schedule::Schedule &table) {
  schedule::Shape shape{table.numRanks, table.numMicrobatches, table.numStages / table.numRanks};
  schedule::PlacementRequest request{std::nullopt, table.replicas.front().placement};
  return schedule::generatePlaced(getRunSchedule("", shape, request), shape, request);
}

llvm::Expected<schedule::Schedule> cleave::pipe::makeTable(StringRef name, schedule::Shape shape,
                                                           const schedule::PlacementRequest &request, TableUse use) {
  bool trains = use == TableUse::Training;
  name = getRunSchedule(name, shape, request, trains);
  // With a flush each step of a call has the same table. Without, a step's first F stand before the last B of the one before.
  bool isOfSteps = trains && !schedule::hasFlush(name);
  int32_t steps = std::exchange(shape.steps, isOfSteps ? shape.steps : 1),
          microbatches = shape.microbatches * shape.steps;
  if (isOfSteps && steps < 2)
    return makeError("schedule \"{0}\" changes weights without a flush: --steps-per-call 2 or more", name);
  bool isFile = name.ends_with(".csv") || name.ends_with(".json");
  llvm::Expected<schedule::Schedule> table = isFile ? readFile(name) : schedule::generatePlaced(name, shape, request);
  if (table && use == TableUse::InferenceOfStep && !table->isForwardOnly && table->replicas.size() == 1)
    table = dropGradients(*table);
  if (!table)
    return table;
  if (!table->isForwardOnly && !trains)
    return makeError("schedule \"{0}\" needs gradients, as a step of training has them ('cleave train', or --train); "
                     "forward-only schedules are: {1}",
                     name, listSchedules(false));
  if (table->isForwardOnly && trains)
    return makeError("schedule \"{0}\" has no gradients: a step of training takes {1}", name, listSchedules(true));
  if (table->numRanks != shape.ranks || table->numMicrobatches != microbatches)
    return makeError("schedule '{0}' is of {1} ranks and {2} microbatches, the model of {3} and {4}", name,
                     table->numRanks, table->numMicrobatches, shape.ranks, microbatches);
  if (table->replicas.size() != 1 && !trains)
    return makeError("schedule '{0}' runs two ways through the ranks", name);
  if (llvm::Error error = schedule::numberRanks(*table, request))
    return std::move(error);
  return table;
}

InFlightDiagnostic cleave::pipe::emitNoPlacement(ModuleOp module, StringRef word) {
  return mlir::emitError(module.getLoc()) << "'" << word << "' is not a placement: linear, loop, v, wave";
}

//===----------------------------------------------------------------------===//
// Text of actions
//===----------------------------------------------------------------------===//

/// Where a message goes or comes from that says nothing of it: forward to the next stage, gradients to the one before.
static int32_t getNeighbor(const schedule::Action &action) {
  bool ascends = action.kind == schedule::ActionKind::SendF || action.kind == schedule::ActionKind::RecvB;
  return action.stage + (ascends ? 1 : -1);
}

/// Words about parameters and their gradients are said once, of all microbatches.
static bool isOfMicrobatch(schedule::ActionKind kind) { return schedule::isCompute(kind) || schedule::isMessage(kind); }

static std::string format(const schedule::Action &action) {
  std::string text = schedule::getText(action);
  if (!schedule::isMessage(action.kind) || action.other == getNeighbor(action))
    return action.isJoined ? text + "&" : text;
  return text + (schedule::isSend(action.kind) ? ">" : "<") + std::to_string(action.other);
}

/// Nothing for what is no action.
static std::optional<schedule::Action> parse(StringRef text) {
  schedule::Action action;
  action.isJoined = text.consume_back("&");
  auto [own, other] = text.split(text.contains('>') ? '>' : '<');
  bool isTold = own.size() != text.size();
  StringRef word = own.trim().ltrim("0123456789");
  StringRef kind = word.rtrim("0123456789");
  std::optional<schedule::ActionKind> known = schedule::parseActionKind(kind);
  if (!known || own.drop_back(word.size()).getAsInteger(10, action.stage) ||
      (isOfMicrobatch(*known) ? word.drop_front(kind.size()).getAsInteger(10, action.microbatch)
                              : kind.size() != word.size()))
    return std::nullopt;
  action.kind = *known;
  bool sends = schedule::isSend(action.kind);
  if (schedule::isMessage(action.kind))
    action.other = getNeighbor(action);
  if (isTold && (!schedule::isMessage(action.kind) || text[own.size()] != (sends ? '>' : '<') ||
                 other.getAsInteger(10, action.other)))
    return std::nullopt;
  return action;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

ScheduleOp cleave::pipe::writeTable(OpBuilder &builder, Location loc, StringRef name, const schedule::Schedule &table) {
  SmallVector<int64_t> placement, ways(table.replicas.size() > 1 ? table.numMicrobatches : 0), channels;
  for (auto [way, replica] : llvm::enumerate(table.replicas)) {
    llvm::append_range(placement, replica.placement);
    for (int32_t microbatch : replica.microbatches)
      if (!ways.empty())
        ways[microbatch] = static_cast<int64_t>(way);
  }
  for (const schedule::Channel &channel : table.channels)
    channels.append({channel.from, channel.to});
  auto op = ScheduleOp::create(builder, loc, name, static_cast<int64_t>(table.numRanks),
                               static_cast<int64_t>(table.numStages), static_cast<int64_t>(table.numMicrobatches),
                               placement, ways, channels);
  OpBuilder inner = OpBuilder::atBlockEnd(&op.getBody().emplaceBlock());
  for (auto [rank, program] : llvm::enumerate(table.programs))
    RankOp::create(inner, loc, static_cast<int64_t>(rank), llvm::join(llvm::map_range(program, format), ","));
  return op;
}

/// The ways of an op that has several.
static void readWays(ScheduleOp op, schedule::Schedule &table) {
  table.replicas.clear();
  size_t count = static_cast<size_t>(*llvm::max_element(op.getWays())) + 1, stages = op.getStages();
  for (size_t way = 0; way < count; ++way) {
    auto own = op.getPlacement().slice(way * stages, stages);
    table.replicas.push_back({std::vector<int32_t>(own.begin(), own.end()), {}});
  }
  for (auto [microbatch, way] : llvm::enumerate(op.getWays()))
    table.replicas[way].microbatches.push_back(static_cast<int32_t>(microbatch));
  table.indexReplicas();
}

FailureOr<schedule::Schedule> cleave::pipe::readTable(ScheduleOp op) {
  std::vector<int32_t> placement(op.getPlacement().begin(), op.getPlacement().begin() + op.getStages());
  schedule::Schedule table =
      schedule::makeSchedule(op.getSymName(), std::move(placement), static_cast<int32_t>(op.getRanks()),
                             static_cast<int32_t>(op.getMicrobatches()));
  if (!op.getWays().empty())
    readWays(op, table);
  table.isForwardOnly = true;
  auto isBackward = [](const schedule::Action &action) {
    return schedule::isCompute(action.kind) && action.kind != schedule::ActionKind::F;
  };
  table.channels.clear();
  for (size_t i = 0; i + 1 < op.getChannels().size(); i += 2)
    table.channels.push_back(
        {static_cast<int32_t>(op.getChannels()[i]), static_cast<int32_t>(op.getChannels()[i + 1]), 0, 0, {}});
  for (auto row : op.getBody().front().getOps<RankOp>()) {
    SmallVector<StringRef> cells;
    row.getActions().split(cells, ',', -1, /*KeepEmpty=*/false);
    for (StringRef cell : cells) {
      std::optional<schedule::Action> action = parse(cell);
      if (!action || action->stage >= table.numStages || action->other >= table.numStages ||
          action->microbatch >= table.numMicrobatches)
        return row.emitOpError() << "has '" << cell << "', which is not an action of " << table.numStages
                                 << " stages and " << table.numMicrobatches << " microbatches (P6)";
      table.isForwardOnly &= !isBackward(*action);
      table.programs[row.getNumber()].push_back(*action);
    }
  }
  return table;
}
