//===- Messages.cpp - a bound on all decisions ----------------------------===//
//
// A belief is what a node costs by itself and by all messages that it has. In a pass forwards each node, in order:
//
//   share     of its belief, over as many as it has edges forwards or backwards, whichever are more
//   row       for each row of an edge the least share of the options in it, less the message that came back along the edge
//   message   for each column the least of row and cell
//
// The least of a message is taken off it, and stays with the edge. What is left of the belief, by its least, and what stays with
// edges add up to the bound (of monotonic chains, section 4 of the paper). The last pass also takes from the node what it has shared out: then
// least cells are that sum.
//
//===----------------------------------------------------------------------===//
#include "cleave/Solver/Messages.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace cleave::spmd;
using namespace llvm;

/// Beyond these all is forbidden; sums of two of them and a cell still fit. A node may take back more than any message brings, so that what is
/// forbidden stays the most expensive cell of its edge.
static constexpr int64_t kMostBelief = int64_t(1) << 60, kMostMessage = int64_t(1) << 54, kMostTaken = int64_t(1) << 55;

namespace {
/// An edge as one of its ends sees it.
struct Incident {
  uint32_t edge, other;
  /// The end is the one of rows.
  bool hasRows;
};

class Passer {
public:
  Passer(const JointGraph &graph, MemoryPrice price, const Messages *start);

  /// What least cells would add up to behind this pass. With `isLast` they do: nodes give away what they have shared out.
  int64_t pass(bool isForward, bool isLast);
  std::vector<uint16_t> advise() const;
  const Messages &getMessages() const { return messages; }

private:
  const std::vector<uint16_t> &labels(const Incident &at) const {
    const JointEdge &edge = graph.edges[at.edge];
    return at.hasRows ? *edge.rows : *edge.columns;
  }
  std::vector<int64_t> &messageTo(uint32_t edge, bool hasRows) {
    return hasRows ? messages[edge].toRows : messages[edge].toColumns;
  }
  void believe(uint32_t variable);
  int64_t send(const Incident &to, int64_t parts, bool isLast);

  const JointGraph &graph;
  MemoryPrice price;
  Messages messages;
  std::vector<SmallVector<Incident, 4>> before, behind;
  /// Of the node at hand: its belief, what is left of it, and the shares of rows.
  std::vector<int64_t> belief, left, shares, rows;
};
} // namespace

Passer::Passer(const JointGraph &graph, MemoryPrice price, const Messages *start)
    : graph(graph), price(price), before(graph.variables.size()), behind(graph.variables.size()) {
  for (auto [number, edge] : enumerate(graph.edges)) {
    auto id = static_cast<uint32_t>(number);
    (edge.to > edge.from ? behind : before)[edge.from].push_back({id, edge.to, /*hasRows=*/true});
    (edge.to > edge.from ? before : behind)[edge.to].push_back({id, edge.from, /*hasRows=*/false});
    if (!start)
      messages.push_back({std::vector<int64_t>(edge.table->rows, 0), std::vector<int64_t>(edge.table->columns, 0)});
  }
  if (start)
    messages = *start;
}

static int64_t addWithin(int64_t sum, int64_t more) { return std::clamp(sum + more, -kMostBelief, kMostBelief); }

void Passer::believe(uint32_t variable) {
  const JointDomain &domain = *graph.variables[variable];
  belief.assign(domain.costs.begin(), domain.costs.end());
  for (auto [option, bytes] : enumerate(domain.storedBytes))
    belief[option] = addWithin(belief[option], price.of(bytes));
  for (const auto *side : {&before, &behind})
    for (const Incident &at : (*side)[variable]) {
      const std::vector<int64_t> &message = messageTo(at.edge, at.hasRows);
      for (auto [option, label] : enumerate(labels(at)))
        belief[option] = addWithin(belief[option], message[label]);
    }
  left = belief;
}

/// Rounds down, below 0 too.
static int64_t divide(int64_t value, int64_t by) { return value >= 0 ? value / by : -((-value + by - 1) / by); }

/// A message along an edge; what stays with the edge.
int64_t Passer::send(const Incident &to, int64_t parts, bool isLast) {
  const JointEdge &edge = graph.edges[to.edge];
  const JointTable &table = *edge.table;
  ArrayRef<uint16_t> ofOptions = labels(to);
  std::vector<int64_t> &back = messageTo(to.edge, to.hasRows), &made = messageTo(to.edge, !to.hasRows);
  shares.assign(back.size(), kMostBelief);
  for (auto [option, label] : enumerate(ofOptions))
    shares[label] = std::min(shares[label], divide(belief[option], parts));
  rows.resize(back.size());
  for (size_t row = 0; row < rows.size(); ++row)
    rows[row] = shares[row] - back[row];
  made.assign(made.size(), kMostBelief);
  if (to.hasRows)
    for (size_t row = 0; row < table.rows; ++row) {
      const int64_t *cells = table.cells.data() + row * table.columns;
      for (size_t column = 0; column < table.columns; ++column)
        made[column] = std::min(made[column], rows[row] + cells[column]);
    }
  else
    for (size_t row = 0; row < table.rows; ++row) {
      const int64_t *cells = table.cells.data() + row * table.columns;
      int64_t least = kMostBelief;
      for (size_t column = 0; column < table.columns; ++column)
        least = std::min(least, rows[column] + cells[column]);
      made[row] = least;
    }
  int64_t least = *std::min_element(made.begin(), made.end());
  for (int64_t &cell : made)
    cell = std::min(cell - least, kMostMessage);
  for (auto [option, label] : enumerate(ofOptions))
    left[option] -= shares[label];
  if (isLast)
    for (size_t row = 0; row < back.size(); ++row)
      back[row] = std::clamp(-rows[row], -kMostTaken, kMostTaken);
  return least;
}

int64_t Passer::pass(bool isForward, bool isLast) {
  __int128 bound = 0;
  size_t count = graph.variables.size();
  for (size_t place = 0; place < count; ++place) {
    uint32_t variable = isForward ? place : count - 1 - place;
    believe(variable);
    int64_t parts = std::max(before[variable].size(), behind[variable].size());
    for (const Incident &to : isForward ? behind[variable] : before[variable])
      bound += send(to, parts, isLast);
    bound += *std::min_element(left.begin(), left.end());
  }
  return static_cast<int64_t>(std::clamp<__int128>(bound, -kMostBelief, kMostBelief));
}

/// In order, each as is least for those before it, and by the messages of those behind.
std::vector<uint16_t> Passer::advise() const {
  std::vector<uint16_t> options(graph.variables.size(), 0);
  std::vector<int64_t> costs;
  for (uint32_t variable = 0; variable < options.size(); ++variable) {
    const JointDomain &domain = *graph.variables[variable];
    costs.assign(domain.costs.begin(), domain.costs.end());
    for (auto [option, bytes] : enumerate(domain.storedBytes))
      costs[option] = addWithin(costs[option], price.of(bytes));
    for (const Incident &at : behind[variable]) {
      const EdgeMessage &message = messages[at.edge];
      for (auto [option, label] : enumerate(labels(at)))
        costs[option] = addWithin(costs[option], (at.hasRows ? message.toRows : message.toColumns)[label]);
    }
    for (const Incident &at : before[variable]) {
      const JointEdge &edge = graph.edges[at.edge];
      for (auto [option, label] : enumerate(labels(at))) {
        size_t row = at.hasRows ? label : (*edge.rows)[options[at.other]];
        size_t column = at.hasRows ? (*edge.columns)[options[at.other]] : label;
        costs[option] = addWithin(costs[option], edge.table->cells[row * edge.table->columns + column]);
      }
    }
    options[variable] = std::min_element(costs.begin(), costs.end()) - costs.begin();
  }
  return options;
}

PassedMessages cleave::spmd::passMessages(const JointGraph &graph, MemoryPrice price, const PassOptions &options,
                                          const Messages *start) {
  constexpr unsigned kPatience = 20;
  Passer passer(graph, price, start);
  PassedMessages made;
  int64_t best = -kMostBelief;
  unsigned idle = 0;
  auto isClose = [&](int64_t bound, int64_t to) {
    return static_cast<double>(to) - static_cast<double>(bound) <=
           options.tolerance * static_cast<double>(std::abs(to));
  };
  while (made.passes < options.mostPasses) {
    passer.pass(/*isForward=*/true, /*isLast=*/false);
    int64_t bound = passer.pass(/*isForward=*/false, /*isLast=*/false);
    made.passes += 2;
    if (isClose(bound, options.reach))
      break;
    // What a pass gains grows and shrinks: one that gains nothing is not the last.
    idle = isClose(best, bound) ? idle + 1 : 0;
    best = std::max(best, bound);
    if (idle >= kPatience)
      break;
  }
  made.options = passer.advise();
  made.unfinished = passer.getMessages();
  made.bound = passer.pass(/*isForward=*/true, /*isLast=*/true);
  made.messages = passer.getMessages();
  return made;
}

// Cells grow as they are found out, so that the least of an edge is looked for first: of what is near it then nothing is forgotten.
size_t cleave::spmd::refineLeast(const JointGraph &graph, const Messages &messages, int64_t margin) {
  size_t count = 0;
  for (const auto &[edge, message] : zip(graph.edges, messages)) {
    JointTable &table = *edge.table;
    auto forEachCell = [&, &message = message](auto callback) {
      size_t cell = 0;
      for (int64_t toRow : message.toRows)
        for (int64_t toColumn : message.toColumns) {
          callback(cell, table.cells[cell] - toRow - toColumn);
          ++cell;
        }
    };
    int64_t least = kMostBelief;
    forEachCell([&](size_t, int64_t left) { least = std::min(least, left); });
    forEachCell([&](size_t cell, int64_t left) {
      if (left - least <= margin && !table.isExact(cell)) {
        table.refine(cell);
        ++count;
      }
    });
  }
  return count;
}
