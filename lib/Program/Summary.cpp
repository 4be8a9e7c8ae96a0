//===- Summary.cpp - what is in a program, for people ---------------------===//
//
// Live bytes: a range of a buffer is live from the command that writes it to the last that reads what was written; what
// is overwritten before it is read was live at one command. Ranks of a role are alike but for offsets, so one is looked at.
//
//===----------------------------------------------------------------------===//
#include "cleave/Program/Summary.h"

#include "cleave/Program/Error.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include <algorithm>
#include <cassert>

using namespace cleave::program;

//===----------------------------------------------------------------------===//
// Memory over time
//===----------------------------------------------------------------------===//

namespace {

/// What is used anew all the time, of the memory that the program runs in.
static bool isArena(const Buffer &buffer) {
  bool isUsedAnew = buffer.kind == BufferKind::Activations || buffer.kind == BufferKind::Communication;
  return isUsedAnew && buffer.memory == Memory::Device;
}

/// Live bytes of the arenas of one rank, command by command.
class LiveBytes {
public:
  LiveBytes(const Program &program, const List &list, const Role &role)
      : program(program), role(role), buffers(role.buffers.size()), change(list.commands.size() + 1) {
    for (size_t i = 0; i < list.commands.size(); ++i)
      for (bool isWrite : {false, true})
        for (const Operand &operand : getOperands(program, list.commands[i].action))
          if (operand.access == Access::ReadWrite || (operand.access == Access::Write) == isWrite)
            touch(operand.view, i, isWrite);
    for (auto &ranges : buffers)
      for (auto &[begin, range] : ranges)
        close(begin, range);
  }

  std::vector<uint64_t> get() const {
    std::vector<uint64_t> live;
    int64_t sum = 0;
    for (int64_t step : change)
      live.push_back(sum += step);
    live.pop_back();
    return live;
  }

private:
  struct Range {
    uint64_t end;
    size_t first, last; ///< commands
  };
  using Ranges = std::map<uint64_t, Range>;

  const Program &program;
  const Role &role;
  std::vector<Ranges> buffers;
  /// What begins to be live at a command, less what has ended before it.
  std::vector<int64_t> change;

  void close(uint64_t begin, const Range &range) {
    change[range.first] += static_cast<int64_t>(range.end - begin);
    change[range.last + 1] -= static_cast<int64_t>(range.end - begin);
  }

  static void split(Ranges &ranges, uint64_t at) {
    auto next = ranges.lower_bound(at);
    if (next == ranges.begin() || std::prev(next)->second.end <= at)
      return;
    Range &before = std::prev(next)->second;
    ranges.emplace_hint(next, at, before);
    before.end = at;
  }

  void touch(const View &view, size_t command, bool isWrite) {
    uint64_t begin = program.evaluate(view.offset, role.ranks.front());
    uint64_t end = begin + getSpanBytes(program.types[view.type]);
    if (!isArena(role.buffers[view.buffer]) || begin == end)
      return;
    Ranges &ranges = buffers[view.buffer];
    split(ranges, begin);
    split(ranges, end);
    auto it = ranges.lower_bound(begin);
    while (it != ranges.end() && it->first < end) {
      if (!isWrite) {
        (it++)->second.last = command;
        continue;
      }
      // In place: what is read here and overwritten here is live once.
      if (it->second.last == command && it->second.first != command)
        --it->second.last;
      close(it->first, it->second);
      it = ranges.erase(it);
    }
    if (isWrite)
      ranges[begin] = {end, command, command};
  }
};

} // namespace

/// Bytes of all buffers of some kinds.
static uint64_t sumBytes(const Role &role, std::initializer_list<BufferKind> kinds) {
  uint64_t bytes = 0;
  for (const Buffer &buffer : role.buffers)
    if (std::find(kinds.begin(), kinds.end(), buffer.kind) != kinds.end())
      bytes += buffer.bytes;
  return bytes;
}

/// Bytes of activations and communication from the first to behind the last that a list's commands name.
static uint64_t sumArenas(const Program &program, const Role &role, const List &list) {
  std::map<uint32_t, uint64_t> ends;
  for (const Command &command : list.commands)
    for (const Operand &operand : getOperands(program, command.action)) {
      uint64_t begin = program.evaluate(operand.view.offset, role.ranks.front());
      if (isArena(role.buffers[operand.view.buffer]))
        ends[operand.view.buffer] =
            std::max(ends[operand.view.buffer], begin + getSpanBytes(program.types[operand.view.type]));
    }
  uint64_t bytes = 0;
  for (auto [buffer, end] : ends)
    bytes += end;
  return bytes;
}

//===----------------------------------------------------------------------===//
// What is sent
//===----------------------------------------------------------------------===//

/// Bytes that each member sends, as the report counts them (docs/report.md).
static uint64_t countSent(const Program &program, const Collective &collective) {
  uint64_t size = program.groups[collective.groups].size, bytes = 0;
  for (size_t i = 0; i < collective.operands.size(); ++i) {
    uint64_t operand = getBytes(program.types[collective.operands[i].type]);
    uint64_t result = getBytes(program.types[collective.results[i].type]);
    uint64_t whole = hasLargerResult(collective.kind) ? result : operand;
    uint64_t share = whole / size * (size - 1) + whole % size * (size - 1) / size;
    bytes += uint64_t(getTurns(collective.kind)) * share;
  }
  return bytes;
}

/// Per rank what it sends in an exchange.
static std::map<uint32_t, uint64_t> countSent(const Program &program, const Exchange &exchange) {
  std::map<uint32_t, uint64_t> sent;
  const Pieces &pieces = program.pieces[exchange.pieces];
  for (size_t i = 0; exchange.operand && i < pieces.ends.size(); ++i) {
    if (pieces.ends[i].source != pieces.ends[i].target)
      sent[pieces.ends[i].source] +=
          pieces.countElements(i) * getElementBytes(program.types[exchange.operand->type].element);
  }
  return sent;
}

/// Ranks of a role, by what they send in one call.
static void addSent(const Program &program, const Role &role, const List &list, std::vector<SentSummary> &summaries) {
  std::map<std::string, Sent> common;
  std::map<uint32_t, std::map<std::string, Sent>> own;
  for (const Command &command : list.commands) {
    if (const auto *collective = std::get_if<Collective>(&command.action)) {
      Sent &sent = common[getWord(command.action)];
      ++sent.count;
      sent.bytes += countSent(program, *collective);
    } else if (const auto *exchange = std::get_if<Exchange>(&command.action)) {
      for (auto [rank, bytes] : countSent(program, *exchange)) {
        Sent &sent = own[rank][getWord(command.action)];
        ++sent.count;
        sent.bytes += bytes;
      }
    }
  }
  for (uint32_t rank : role.ranks) {
    std::map<std::string, Sent> kinds = common;
    if (auto it = own.find(rank); it != own.end())
      kinds.insert(it->second.begin(), it->second.end());
    auto alike = std::find_if(summaries.begin(), summaries.end(),
                              [&](const SentSummary &summary) { return summary.kinds == kinds; });
    if (alike == summaries.end())
      alike = summaries.insert(alike, {{}, kinds});
    alike->ranks.push_back(rank);
  }
}

//===----------------------------------------------------------------------===//
// Commands in words
//===----------------------------------------------------------------------===//

/// `buffer+offset type`; a column that the offset depends on by its name.
static std::string describe(const Program &program, const View &view) {
  std::string column = view.offset.column < 0 ? "" : "+(" + printable(program.columns[view.offset.column]) + ")";
  return concat(view.buffer, "+", view.offset.base, column, " ", format(program.types[view.type]));
}

/// What a contraction does beside multiplying, and the kernel that stands in for a library.
template <typename Contraction>
static std::string describeEpilogue(const Program &program, const Contraction &contraction) {
  std::string words;
  if (contraction.bias)
    words += "bias ";
  if (contraction.residual)
    words += "residual ";
  if (contraction.tf32)
    words += "tf32 ";
  if (contraction.activation != Activation::None)
    words += concat(getWord(contraction.activation), " ");
  if (contraction.fallback >= 0)
    words += "or " + printable(program.kernels[contraction.fallback].name);
  return words;
}

/// What stands before the operands.
static std::string describeHead(const Program &program, const Action &action) {
  if (const auto *launch = std::get_if<Launch>(&action))
    return printable(program.kernels[launch->kernel].name);
  if (const auto *matmul = std::get_if<Matmul>(&action))
    return concat(matmul->transposeA ? "transpose_a " : "", matmul->transposeB ? "transpose_b " : "",
                  matmul->scale == 1 ? "" : concat("scale ", matmul->scale, " "), describeEpilogue(program, *matmul));
  if (const auto *conv = std::get_if<Convolution>(&action))
    return describeEpilogue(program, *conv);
  if (const auto *collective = std::get_if<Collective>(&action)) {
    std::string over = "over " + printable(program.groups[collective->groups].axes);
    return collective->reduction == Reduction::None ? over : concat(getWord(collective->reduction), " ", over);
  }
  if (const auto *exchange = std::get_if<Exchange>(&action))
    return concat("pieces ", exchange->pieces);
  if (const auto *record = std::get_if<Record>(&action))
    return concat("event ", record->event);
  if (const auto *wait = std::get_if<Wait>(&action))
    return concat("event ", wait->event);
  if (const auto *loop = std::get_if<Loop>(&action))
    return concat(loop->count < 0 ? "" : concat("at most ", loop->count), loop->condition ? "while " : "");
  if (const auto *loop = std::get_if<EndLoop>(&action))
    return loop->condition ? "while " : "";
  return "";
}

/// `head(reads) -> writes`.
static std::string describe(const Program &program, const Action &action) {
  std::string reads, writes;
  for (const Operand &operand : getOperands(program, action)) {
    if (operand.access != Access::Write)
      reads += (reads.empty() ? "" : ", ") + describe(program, operand.view);
    if (operand.access != Access::Read)
      writes += (writes.empty() ? "" : ", ") + describe(program, operand.view);
  }
  return describeHead(program, action) + (reads.empty() ? "" : "(" + reads + ")") +
         (writes.empty() ? "" : " -> " + writes);
}

/// A tensor that is read and written counts twice.
static uint64_t countTensors(const Program &program, const Action &action) {
  uint64_t bytes = 0;
  for (const Operand &operand : getOperands(program, action))
    bytes += getBytes(program.types[operand.view.type]) * (operand.access == Access::ReadWrite ? 2 : 1);
  return bytes;
}

/// Of the first rank of a role, which the others are like.
static ListSummary summarize(const Program &program, const Role &role, const List &list) {
  std::vector<uint64_t> live = LiveBytes(program, list, role).get();
  ListSummary summary{printable(role.name), role.ranks, 0, 0, 0, {}};
  std::sort(summary.ranks.begin(), summary.ranks.end());
  summary.arenaBytes = sumArenas(program, role, list);
  summary.weightBytes = sumBytes(role, {BufferKind::Weights});
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const Command &command = list.commands[i];
    uint64_t sent = 0;
    if (const auto *collective = std::get_if<Collective>(&command.action))
      sent = countSent(program, *collective);
    if (const auto *exchange = std::get_if<Exchange>(&command.action))
      for (auto [rank, bytes] : countSent(program, *exchange))
        sent = std::max(sent, bytes);
    summary.commands.push_back({command.stream, getWord(command.action), describe(program, command.action),
                                command.node < 0 ? "" : printable(program.nodes[command.node]), sent, live[i],
                                countTensors(program, command.action)});
    summary.liveBytes = std::max(summary.liveBytes, live[i]);
  }
  return summary;
}

std::vector<VariantSummary> cleave::program::summarize(const Program &program) {
  std::vector<VariantSummary> variants;
  for (const Variant &variant : program.variants) {
    assert(variant.lists.size() == program.roles.size() && "the program has not been checked");
    VariantSummary &summary = variants.emplace_back();
    for (size_t role = 0; role < program.roles.size(); ++role) {
      summary.lists.push_back(::summarize(program, program.roles[role], variant.lists[role]));
      addSent(program, program.roles[role], variant.lists[role], summary.sent);
    }
    for (SentSummary &sent : summary.sent)
      std::sort(sent.ranks.begin(), sent.ranks.end());
  }
  return variants;
}

std::string cleave::program::formatRanks(const std::vector<uint32_t> &ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last != i)
      text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}
