//===- DrawText.cpp - a schedule as lines of text -------------------------===//
//
// Time is split into as many columns as there are; a bar covers the columns from its start to its end, both rounded down,
// so that bars which touch do not overlap. A bar that is too narrow for its name shows its kind, and one narrower than a
// column nothing.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Draw.h"
#include "cleave/Schedule/Numbers.h"

#include "Bars.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::schedule;

/// `F0`, `F1&B0`; of an update, which is of no microbatch, its stage: `U2`.
static std::string getName(const Bar &bar) {
  std::string name;
  if (bar.isUpdate())
    return "U" + std::to_string(bar.actions[0].stage);
  for (const Action &action : bar.actions)
    name += (name.empty() ? "" : "&") + getWord(action.kind).str() + std::to_string(action.microbatch);
  return name;
}

/// Black on the color of a kind.
static llvm::StringRef getEscape(const Bar &bar) {
  constexpr llvm::StringLiteral colors[] = {"\033[30;44m", "\033[30;42m", "\033[30;46m", "\033[30;43m"};
  if (bar.isUpdate())
    return "\033[30;47m";
  return bar.actions.size() > 1 ? "\033[30;45m" : llvm::StringRef(colors[static_cast<size_t>(bar.actions[0].kind)]);
}

/// A name that does not fit is left out whole: half of a number would be another number.
static std::string fill(const Bar &bar, size_t width) {
  std::string name = getName(bar);
  if (name.size() <= width)
    return name + std::string(width - name.size(), '-');
  return std::string(width, bar.actions.size() > 1 ? '&' : name[0]);
}

void cleave::schedule::drawText(llvm::raw_ostream &os, const Schedule &schedule, const Simulation &simulation,
                                size_t width, bool useColor) {
  constexpr int32_t mostRanks = 64;
  // Names of ranks are as wide as the last one, so that bars stand under each other.
  std::string last = std::to_string(schedule.numRanks - 1);
  size_t label = 5 + last.size() + 2, columns = std::max(width, label + 11) - label - 1;
  double scale = simulation.makespan > 0 ? double(columns) / simulation.makespan : 0;
  // Times are sums of many: what is a hair below a column belongs to it.
  auto getColumn = [&](double time) { return std::min(size_t(time * scale + 1e-6), columns); };
  for (int32_t rank = 0; rank < std::min(schedule.numRanks, mostRanks); ++rank) {
    os << "rank " << llvm::right_justify(std::to_string(rank), last.size()) << " |";
    size_t column = 0;
    visitBars(schedule, simulation, rank, [&](const Bar &bar) {
      size_t start = getColumn(bar.time.start), end = getColumn(bar.time.end);
      os << std::string(start - std::min(start, column), '.');
      if (end > start)
        os << (useColor ? getEscape(bar) : "") << fill(bar, end - start) << (useColor ? "\033[0m" : "");
      column = std::max(end, column);
    });
    os << std::string(columns - column, '.') << "|\n";
  }
  if (schedule.numRanks > mostRanks)
    os << llvm::formatv("and {0} more ranks\n", schedule.numRanks - mostRanks);
  std::string end = formatNumber(simulation.makespan);
  os << std::string(label - 1, ' ') << '0' << std::string(columns + 1 - std::min(columns, end.size()), ' ') << end
     << '\n';
}
