//===- Csv.cpp - schedules as tables of torch.distributed.pipelining ------===//
//
// Cells are read one by one, with their places for messages. How many stages and microbatches there are is known at the
// end only; as each stage does F on each microbatch, a table cannot name more of either than it has cells, so that no
// number in a file asks for memory that its length does not account for.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Text.h"

#include "cleave/Program/Content.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace cleave;
using namespace cleave::schedule;
using llvm::StringRef;

namespace {

/// A row a rank; what each action is follows from its text, where it runs from its row.
class CsvReader {
public:
  CsvReader(StringRef text, StringRef name) : text(text) { schedule.name = name.str(); }

  llvm::Expected<Schedule> read() {
    for (row = 1; !text.empty(); ++row)
      if (llvm::Error error = readRow())
        return std::move(error);
    if (schedule.programs.empty())
      return makeError("the table is empty");
    if (numForward == 0)
      return makeError("the table has no F");
    if (llvm::Error error = derivePlaces())
      return std::move(error);
    return std::move(schedule);
  }

private:
  template <size_t N, typename... Args> llvm::Error fail(const char (&format)[N], Args &&...args) {
    return makeError("row {0}, column {1}: {2}", row, column, llvm::formatv(format, std::forward<Args>(args)...).str());
  }

  /// The line ends of both worlds: torch writes CR LF.
  llvm::Error readRow() {
    auto [line, rest] = text.split('\n');
    text = rest;
    line.consume_back("\r");
    std::vector<Action> &program = schedule.programs.emplace_back();
    bool isMore = true;
    for (column = 1; isMore; ++column) {
      auto [cell, others] = line.split(',');
      isMore = cell.size() < line.size();
      line = others;
      if (llvm::Error error = cell.empty() ? noteIdle() : readCell(cell, program))
        return error;
    }
    if (program.empty())
      return makeError("row {0} has no action", row);
    return llvm::Error::success();
  }

  llvm::Error noteIdle() {
    if (!idle.first)
      idle = {row, column};
    return checkIdle();
  }

  /// Idle steps have a meaning only where all steps are computation.
  llvm::Error checkIdle() {
    if (hasMessages && idle.first)
      return makeError("row {0}, column {1}: the cell is empty: idle steps are for tables without messages", idle.first,
                       idle.second);
    return llvm::Error::success();
  }

  llvm::Error readCell(StringRef cell, std::vector<Action> &program) {
    StringRef parts = cell;
    if (!parts.consume_front("("))
      return readAction(cell, program);
    if (!parts.consume_back(")OVERLAP_F_B"))
      return fail("{0} is not an action: a pair reads (0F1;3B0)OVERLAP_F_B", quote(cell));
    auto [first, second] = parts.split(';');
    size_t count = program.size();
    for (StringRef part : {first, second})
      if (llvm::Error error = readAction(part, program))
        return error;
    // The first may have been a wait, which is dropped.
    for (size_t i : {count, count + 1})
      if (i >= program.size() || program[i].kind > ActionKind::I)
        return fail("{0}: the parts of a pair are F, B or I", quote(cell));
    program[count].isJoined = true;
    return llvm::Error::success();
  }

  llvm::Error readAction(StringRef cell, std::vector<Action> &program) {
    StringRef rest = cell;
    Action action;
    bool isWait = false;
    bool hasStage = takeNumber(rest, action.stage);
    StringRef word = rest.take_while([](char c) { return c == '_' || llvm::isAlpha(c); });
    rest = rest.drop_front(word.size());
    isWait = word.consume_front("WAIT_");
    std::optional<ActionKind> kind = parseActionKind(word);
    if (!hasStage || !kind || (isWait && !isSend(*kind) && *kind != ActionKind::ReduceGrad))
      return fail("{0} is not an action: one reads 0F1, that is stage, kind and microbatch", quote(cell));
    action.kind = *kind;
    bool needsMicrobatch = isCompute(*kind) || isMessage(*kind);
    bool hasMicrobatch = !rest.empty() && takeNumber(rest, action.microbatch);
    if (needsMicrobatch != hasMicrobatch || !rest.empty())
      return needsMicrobatch
                 ? fail("{0} is not an action: {1} has a microbatch, as in 0{1}1", quote(cell), getWord(*kind))
                 : fail("{0} is not an action: {1} has no microbatch", quote(cell), getWord(*kind));
    // Waits count, too: what they name must be there.
    largest = std::max(largest, {action.stage, row, column});
    if (needsMicrobatch)
      largestMicrobatch = std::max(largestMicrobatch, {action.microbatch, row, column});
    numForward += *kind == ActionKind::F;
    if (isMessage(*kind)) {
      hasMessages = true;
      bool isUpwards = *kind == ActionKind::SendF || *kind == ActionKind::RecvB;
      // Tables have channels between neighbors only, and leave the other end out.
      action.other = action.stage + (isUpwards ? 1 : -1);
      if (action.other < 0)
        return fail("{0}: nothing comes before stage 0", quote(cell));
      if (llvm::Error error = checkIdle())
        return error;
    }
    if (!isWait)
      program.push_back(action);
    return llvm::Error::success();
  }

  /// Digits that make a number below 2^31 - 1.
  static bool takeNumber(StringRef &text, int32_t &number) {
    StringRef digits = text.take_while([](char c) { return llvm::isDigit(c); });
    text = text.drop_front(digits.size());
    return !digits.getAsInteger(10, number) && number < INT32_MAX - 1;
  }

  /// Where each stage runs each microbatch, said by its F; microbatches that go the same way make a replica.
  llvm::Error derivePlaces() {
    int64_t stages = int64_t(largest.number) + 1, microbatches = int64_t(largestMicrobatch.number) + 1;
    // Of the two, the larger number is the one to doubt.
    std::tie(row, column) = largest < largestMicrobatch ? std::pair(largestMicrobatch.row, largestMicrobatch.column)
                                                        : std::pair(largest.row, largest.column);
    if (stages * microbatches > numForward)
      return fail("stages up to {0} and microbatches up to {1} need {2} F, and the table has {3}", stages - 1,
                  microbatches - 1, stages * microbatches, numForward);
    schedule.numRanks = int32_t(schedule.programs.size());
    std::vector<int32_t> placement(stages, -1);
    Schedule blank = makeSchedule(schedule.name, placement, schedule.numRanks, int32_t(microbatches));
    blank.programs = std::move(schedule.programs);
    blank.isForwardOnly = true;
    // Microbatch -> stage -> rank.
    std::vector<std::vector<int32_t>> ways(microbatches, placement);
    for (auto [rank, program] : llvm::enumerate(blank.programs))
      for (const Action &action : program) {
        blank.isForwardOnly &= !isCompute(action.kind) || action.kind == ActionKind::F;
        if (action.kind == ActionKind::F)
          ways[action.microbatch][action.stage] = int32_t(rank);
        if (isMessage(action.kind) && action.other >= stages)
          return makeError("row {0}: '{1}' goes beyond the last stage, {2}", rank + 1, getText(action), stages - 1);
      }
    // In the order of their first microbatch, which is the order in which generators list them.
    std::map<std::vector<int32_t>, size_t> known;
    blank.replicas.clear();
    for (auto [microbatch, way] : llvm::enumerate(ways)) {
      if (auto stage = llvm::find(way, -1); stage != way.end())
        return makeError("'{0}F{1}' is in no row", stage - way.begin(), microbatch);
      auto [it, isNew] = known.try_emplace(way, known.size());
      if (isNew)
        blank.replicas.push_back({way, {}});
      blank.replicas[it->second].microbatches.push_back(int32_t(microbatch));
    }
    blank.indexReplicas();
    schedule = std::move(blank);
    return llvm::Error::success();
  }

  struct TableCell {
    int32_t number = -1;
    size_t row = 0, column = 0;
    bool operator<(const TableCell &that) const { return number < that.number; }
  };

  StringRef text;
  Schedule schedule;
  size_t row = 1, column = 1;
  bool hasMessages = false;
  /// The first empty cell.
  std::pair<size_t, size_t> idle;
  TableCell largest, largestMicrobatch;
  int64_t numForward = 0;
};

} // namespace

llvm::Expected<Schedule> cleave::schedule::readCsv(StringRef text, StringRef name) {
  text = program::dropByteOrderMark(text);
  if (std::string other = program::describeOther(text, program::Content::Schedule, "the table of a schedule");
      !other.empty())
    return makeError("{0}", other);
  return CsvReader(text, name).read();
}

llvm::Error cleave::schedule::writeCsv(llvm::raw_ostream &os, const Schedule &schedule) {
  for (auto [index, channel] : llvm::enumerate(schedule.channels))
    if (channel.to != channel.from + 1)
      return makeError("a table cannot say that stage {0} feeds stage {1}: use --report FILE.json", channel.from,
                       channel.to);
  if (!schedule.reductions.empty())
    return makeError("a table cannot name the group of '{0}': use --report FILE.json", schedule.reductions[0].name);
  for (const std::vector<Action> &program : schedule.programs) {
    for (size_t i = 0; i < program.size(); ++i) {
      os << (i ? "," : "");
      if (program[i].isJoined && i + 1 < program.size()) {
        os << '(' << getText(program[i]) << ';' << getText(program[i + 1]) << ")OVERLAP_F_B";
        ++i;
      } else {
        os << getText(program[i]);
      }
    }
    os << '\n';
  }
  return llvm::Error::success();
}
