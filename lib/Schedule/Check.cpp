//===- Check.cpp - whether a schedule is right ----------------------------===//
//
// One walk over all programs sees what stands where: each action once, on its rank, behind what its own rank must have
// done or received, and each message with its other end (P6, P7, P12). Then the order of messages between two ranks is
// compared (P8), groups are reduced in an order that all of them share (P10), and all ranks run, meeting at each message
// (P9, and P7 between ranks). Each step needs what the one before has shown, so the first that fails is the last.
//
// Messages between two ranks carry no tags on a device: their order must be the same at both ends even where they belong
// to different pairs of stages, or one would be taken for the other.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Check.h"

#include "Operands.h"
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Numbers.h"
#include "cleave/Schedule/Updates.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace cleave::schedule;
using llvm::formatv;

namespace {

/// What has been seen of a stage and microbatch, and of a message.
enum Seen : uint8_t { kF = 1, kB = 2, kI = 4, kW = 8, kSent = 16, kReceived = 32 };

class Checker {
public:
  Checker(const Schedule &schedule, const Costs &costs, CheckResult &result)
      : schedule(schedule), costs(costs), result(result), hasMessages(!schedule.isComputeOnly()) {}

  void run() {
    if (!checkShape())
      return;
    operands.emplace(schedule);
    if (passes("complete", &Checker::checkComplete) && passes("fifo", &Checker::checkOrder) &&
        passes("reductions", &Checker::checkReductions) && passes("rendezvous", &Checker::checkRun))
      passes("memory", &Checker::checkMemory);
    // What runs to its end has no cycle.
    if (llvm::is_contained(result.checks, "rendezvous"))
      result.checks.insert(result.checks.begin() + 1, "acyclic");
  }

private:
  /// Makes one check and notes its word; false if it, or one before it, has found something.
  bool passes(llvm::StringRef word, void (Checker::*check)()) {
    (this->*check)();
    result.checks.push_back(word.str());
    return result.violations.empty();
  }

  /// What comes after the first dozen is most likely of the same cause.
  template <typename... Args> void report(llvm::StringRef constraint, const char *format, Args &&...args) {
    constexpr size_t most = 12;
    if (result.violations.size() < most)
      result.violations.push_back({constraint.str(), formatv(format, std::forward<Args>(args)...).str()});
  }

  /// `rank 0 at action 3, '0F1',`
  std::string place(int32_t rank, size_t position) const {
    return formatv("rank {0} at action {1}, '{2}',", rank, position + 1, getText(schedule.programs[rank][position]));
  }

  //===--------------------------------------------------------------------===//
  // What all else stands on
  //===--------------------------------------------------------------------===//

  /// Whether the numbers of the schedule fit each other, so that nobody reads beyond an array.
  bool checkShape() {
    size_t stages = schedule.numStages;
    auto isRank = [&](int32_t rank) { return rank >= 0 && rank < schedule.numRanks; };
    if (schedule.programs.size() != size_t(schedule.numRanks))
      report("P6", "{0} programs are there for {1} ranks", schedule.programs.size(), schedule.numRanks);
    // Every microbatch takes exactly one way: `getRank` has no answer for others.
    std::vector<bool> isTaken(schedule.numMicrobatches);
    size_t taken = 0;
    for (const Replica &replica : schedule.replicas) {
      if (replica.placement.size() != stages || !llvm::all_of(replica.placement, isRank))
        report("P6", "a placement names {0} ranks of {1} for {2} stages", replica.placement.size(), schedule.numRanks,
               stages);
      for (int32_t microbatch : replica.microbatches) {
        bool isKnown = microbatch >= 0 && microbatch < schedule.numMicrobatches;
        if (!isKnown || isTaken[microbatch])
          report("P6", "microbatch {0} {1}", microbatch, isKnown ? "takes two ways" : "is not there");
        else
          taken += isTaken[microbatch] = true;
      }
    }
    if (taken != size_t(schedule.numMicrobatches) && result.violations.empty())
      report("P6", "{0} of {1} microbatches have a way through the ranks", taken, schedule.numMicrobatches);
    // Their order is what `Operands::findChannel` searches by.
    for (auto [index, channel] : llvm::enumerate(schedule.channels)) {
      const Channel *before = index ? &schedule.channels[index - 1] : nullptr;
      if (channel.from < 0 || channel.from >= channel.to || size_t(channel.to) >= stages ||
          (before && std::pair(before->to, before->from) >= std::pair(channel.to, channel.from)))
        report("P6", "the channel from stage {0} to {1} is not between stages, or out of order", channel.from,
               channel.to);
    }
    for (const Reduction &reduction : schedule.reductions)
      if (!llvm::all_of(reduction.ranks, isRank))
        report("P10", "the group of '{0}' names a rank that is not there", reduction.name);
    if (costs.forward.size() != stages || costs.inputGrad.size() != stages || costs.weightGrad.size() != stages)
      report("P6", "costs are given for {0} of {1} stages", costs.forward.size(), stages);
    return result.violations.empty();
  }

  bool isKnown(const Action &action) const {
    auto isStage = [&](int32_t stage) { return stage >= 0 && stage < schedule.numStages; };
    bool hasMicrobatch = isCompute(action.kind) || isMessage(action.kind);
    bool isMicrobatch = action.microbatch >= 0 && action.microbatch < schedule.numMicrobatches;
    return isStage(action.stage) && (isMicrobatch || !hasMicrobatch) &&
           (!isMessage(action.kind) || isStage(action.other)) &&
           (action.kind != ActionKind::ReduceGrad || action.other < int32_t(schedule.reductions.size()));
  }

  //===--------------------------------------------------------------------===//
  // The walk
  //===--------------------------------------------------------------------===//

  /// P6, P12, and P7 within a rank. Later checks index arrays by what has passed here.
  void checkComplete() {
    computed.assign(operands->getNumFacts() / 2, 0);
    messages.assign(hasMessages ? 2 * schedule.channels.size() * schedule.numMicrobatches : 0, 0);
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      for (size_t position = 0; position < schedule.programs[rank].size(); ++position)
        checkAction(rank, position);
    // An action on the wrong rank is missing on the right one: said once.
    if (!result.violations.empty())
      return;
    for (int32_t stage = 0; stage < schedule.numStages; ++stage)
      for (int32_t microbatch = 0; microbatch < schedule.numMicrobatches; ++microbatch)
        checkThere(stage, microbatch);
    for (size_t message = 0; message < messages.size(); ++message)
      checkCarried(message);
  }

  void checkAction(int32_t rank, size_t position) {
    const Action &action = schedule.programs[rank][position];
    if (!isKnown(action))
      return report("P6", "{0} names a stage, microbatch or group that is not there", place(rank, position));
    if (action.isJoined && !isPair(rank, position))
      report("P6", "{0} is joined with what is not an F, B or I", place(rank, position));
    bool isPlaced = isCompute(action.kind) || isMessage(action.kind);
    if (action.kind == ActionKind::Update)
      return checkUpdate(rank, position, action);
    if (isPlaced && schedule.getRank(action.stage, action.microbatch) != rank)
      report("P6", "{0} belongs on rank {1}", place(rank, position), schedule.getRank(action.stage, action.microbatch));
    else if (isCompute(action.kind))
      checkCompute(rank, position, action);
    else if (isMessage(action.kind))
      checkMessage(rank, position, action);
  }

  /// W is not among what may run beside something else: it waits for nothing, and fills gaps by itself.
  bool isPair(int32_t rank, size_t position) const {
    llvm::ArrayRef<Action> unit = llvm::ArrayRef(schedule.programs[rank]).drop_front(position).take_front(2);
    return unit.size() == 2 && !unit[1].isJoined &&
           llvm::all_of(unit, [](const Action &part) { return part.kind < ActionKind::W; });
  }

  /// P6: where the stage is, once. P10: of two ways, each other rank that has the stage sends its own sums.
  void checkUpdate(int32_t rank, size_t position, const Action &action) {
    if (schedule.isForwardOnly)
      return report("P6", "{0} is in a schedule without gradients", place(rank, position));
    for (int32_t guest : findGuests(schedule, action.stage))
      if (llvm::none_of(schedule.programs[guest], [&](const Action &other) { return isSentHome(other, action.stage); }))
        return report("P10", "{0} comes before the gradients of both ways are together: rank {1} has no '{2}'",
                      place(rank, position), guest, getText({ActionKind::ReduceGrad, false, action.stage, -1, -1}));
    if (int32_t home = schedule.replicas.front().placement[action.stage]; home != rank)
      report("P6", "{0} belongs on rank {1}", place(rank, position), home);
  }

  static bool isSentHome(const Action &action, int32_t stage) {
    return action.kind == ActionKind::ReduceGrad && action.other < 0 && action.stage == stage;
  }

  uint8_t &seen(const Action &action) { return computed[operands->getForward(action.stage, action.microbatch)]; }

  void checkCompute(int32_t rank, size_t position, const Action &action) {
    uint8_t bit = 1 << static_cast<int>(action.kind);
    if (schedule.isForwardOnly && action.kind != ActionKind::F)
      return report("P6", "{0} is in a schedule without gradients", place(rank, position));
    if (seen(action) & bit)
      return report("P6", "{0} has been done before", place(rank, position));
    if ((bit == kB && seen(action) & (kI | kW)) || (bit & (kI | kW) && seen(action) & kB))
      return report("P6", "{0} repeats a part of a B", place(rank, position));
    seen(action) |= bit;
    if (!hasMessages || action.kind == ActionKind::W)
      return;
    // What comes from other ranks must have been received, and by this rank itself, so that its own walk has seen it.
    operands->visit(action, [&](Fact, int32_t channel) {
      bool isForward = action.kind == ActionKind::F;
      if (channel >= 0 && schedule.isBetweenRanks(schedule.channels[channel], action.microbatch) &&
          !(messages[getMessage(channel, isForward, action.microbatch)] & kReceived))
        report("P7", "{0} comes before what it needs is received from stage {1}", place(rank, position),
               isForward ? schedule.channels[channel].from : schedule.channels[channel].to);
    });
  }

  void checkMessage(int32_t rank, size_t position, const Action &action) {
    int32_t channel = operands->findChannel(action);
    if (channel < 0)
      return report("P12", "{0} passes between stages {1} and {2}, which have no channel in this direction",
                    place(rank, position), action.stage, action.other);
    if (!schedule.isBetweenRanks(schedule.channels[channel], action.microbatch))
      return report("P12", "{0} stays within its rank", place(rank, position));
    bool isForward = isForwardMessage(action);
    uint8_t bit = isSend(action.kind) ? kSent : kReceived;
    uint8_t &message = messages[getMessage(channel, isForward, action.microbatch)];
    if (message & bit)
      return report("P12", "{0} has been done before", place(rank, position));
    message |= bit;
    // The sender computes what it sends: that, too, this walk has seen if it stands before.
    if (isSend(action.kind) && !(seen(action) & (isForward ? kF : kB | kI)))
      report("P7", "{0} comes before what it sends is there", place(rank, position));
  }

  /// One F; in training one B, or one I and one W. Twice was found by the walk.
  void checkThere(int32_t stage, int32_t microbatch) {
    uint8_t bits = computed[operands->getForward(stage, microbatch)];
    int32_t rank = schedule.getRank(stage, microbatch);
    auto miss = [&](llvm::StringRef kind) {
      report("P6", "'{0}{1}{2}' is missing on rank {3}", stage, kind, microbatch, rank);
    };
    if (!(bits & kF))
      miss("F");
    if (schedule.isForwardOnly || bits & kB)
      return;
    if (!(bits & kI))
      miss(bits & kW ? "I" : "B");
    else if (!(bits & kW))
      miss("W");
  }

  /// Each hop between ranks has both ends.
  void checkCarried(size_t message) {
    int32_t microbatch = static_cast<int32_t>(message % schedule.numMicrobatches);
    int32_t channel = static_cast<int32_t>(message / schedule.numMicrobatches / 2);
    bool isForward = message / schedule.numMicrobatches % 2 == 0;
    bool isNeeded =
        schedule.isBetweenRanks(schedule.channels[channel], microbatch) && (isForward || !schedule.isForwardOnly);
    if (!isNeeded || messages[message] == (kSent | kReceived))
      return;
    // One end without the other is said of the end that is there, as that is where to look.
    auto [from, to, latency, bytes, values] = schedule.channels[channel];
    int32_t sender = isForward ? from : to, receiver = isForward ? to : from;
    const char *direction = isForward ? "F" : "B";
    if (messages[message] != kReceived && messages[message] != kSent)
      return report("P12", "nothing carries '{0}{1}{2}' of rank {3} to stage {4} on rank {5}", sender, direction,
                    microbatch, schedule.getRank(sender, microbatch), receiver, schedule.getRank(receiver, microbatch));
    bool isSent = messages[message] == kSent;
    int32_t there = isSent ? sender : receiver, missing = isSent ? receiver : sender;
    report("P12", "'{0}{1}_{2}{3}' on rank {4} has no '{5}{6}_{2}{3}' on rank {7}", there, isSent ? "SEND" : "RECV",
           direction, microbatch, schedule.getRank(there, microbatch), missing, isSent ? "RECV" : "SEND",
           schedule.getRank(missing, microbatch));
  }

  //===--------------------------------------------------------------------===//
  // Messages
  //===--------------------------------------------------------------------===//

  static bool isForwardMessage(const Action &action) {
    return action.kind == ActionKind::SendF || action.kind == ActionKind::RecvF;
  }

  size_t getMessage(int32_t channel, bool isForward, int32_t microbatch) const {
    return (2 * size_t(channel) + !isForward) * schedule.numMicrobatches + microbatch;
  }

  /// P8: the n-th message that a rank sends another is the n-th that the other receives from it.
  void checkOrder() {
    std::vector<int32_t> sent(messages.size() + size_t(schedule.numStages) * schedule.numRanks, -1);
    visitMessages(/*sends=*/true,
                  [&](int32_t, size_t, int32_t, size_t message, int32_t number) { sent[message] = number; });
    // Once two streams are shifted against each other, all that follows is: one line per rank.
    int32_t lastRank = -1;
    visitMessages(/*sends=*/false, [&](int32_t rank, size_t position, int32_t peer, size_t message, int32_t number) {
      if (sent[message] == number || std::exchange(lastRank, rank) == rank)
        return;
      report("P8", "{0} takes message {1} from rank {2}, where it is sent as message {3}", place(rank, position),
             number + 1, peer, sent[message] + 1);
    });
  }

  /// Calls `visit(rank, position, peer, message, number)` for each SEND or RECV, and for what goes home of two ways for an UPDATE, counted between
  /// each two ranks.
  void visitMessages(bool sends, llvm::function_ref<void(int32_t, size_t, int32_t, size_t, int32_t)> visit) {
    if (!hasMessages)
      return;
    const std::vector<int32_t> updated = listUpdated(schedule);
    llvm::DenseMap<int32_t, int32_t> numbers;
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank) {
      numbers.clear();
      auto tell = [&](size_t position, int32_t peer, size_t message) {
        visit(rank, position, peer, message, numbers[peer]++);
      };
      for (auto [position, action] : llvm::enumerate(schedule.programs[rank])) {
        size_t sums = messages.size() + size_t(action.stage) * schedule.numRanks;
        if (isMessage(action.kind) && isSend(action.kind) == sends)
          tell(position, schedule.getRank(action.other, action.microbatch),
               getMessage(operands->findChannel(action), isForwardMessage(action), action.microbatch));
        else if (sends && isSentHome(action, action.stage) && llvm::is_contained(updated, action.stage) &&
                 llvm::is_contained(findGuests(schedule, action.stage), rank))
          tell(position, schedule.replicas.front().placement[action.stage], sums + rank);
        else if (!sends && action.kind == ActionKind::Update)
          for (int32_t guest : findGuests(schedule, action.stage))
            tell(position, guest, sums + guest);
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // Reductions
  //===--------------------------------------------------------------------===//

  /// P10. Also: gradients are complete where they are reduced, and parameters are there where they are used.
  void checkReductions() {
    std::vector<std::vector<int32_t>> orders(schedule.numRanks);
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      checkParameters(rank, orders[rank]);
    if (result.violations.empty())
      checkCommonOrder(orders);
  }

  void checkParameters(int32_t rank, std::vector<int32_t> &order) {
    // Only stages that are gathered somewhere have to be gathered before they are used.
    llvm::DenseMap<int32_t, bool> isFull;
    llvm::DenseSet<std::pair<int32_t, int32_t>> reduced;
    llvm::DenseSet<int32_t> closed, updated;
    llvm::DenseMap<int32_t, int32_t> missing;
    llvm::ArrayRef<Action> program = schedule.programs[rank];
    for (const Action &action : program)
      if (action.kind == ActionKind::Unshard || action.kind == ActionKind::Reshard)
        isFull[action.stage] = false;
      else if (action.kind == ActionKind::W || action.kind == ActionKind::B)
        ++missing[action.stage];
    for (auto [position, action] : llvm::enumerate(program)) {
      if (action.kind == ActionKind::ReduceGrad) {
        if (!reduced.insert({action.other < 0 ? action.stage : -1, action.other}).second)
          report("P10", "{0} reduces gradients that are reduced already", place(rank, position));
        if (updated.contains(action.stage))
          report("P10", "{0} reduces gradients that have been used for an update", place(rank, position));
        if (action.other >= 0 && !llvm::is_contained(schedule.reductions[action.other].ranks, rank))
          report("P10", "{0} is not in the group of '{1}'", place(rank, position),
                 schedule.reductions[action.other].name);
        if (action.other >= 0)
          order.push_back(action.other);
        closed.insert(action.stage);
      } else if (action.kind == ActionKind::Update) {
        // Of all microbatches: gradients that come later would be lost. F and I need no look of their own: a W that is done has them before
        // itself.
        if (!updated.insert(action.stage).second)
          report("P10", "{0} updates a stage that is updated already", place(rank, position));
        else if (int32_t count = missing.lookup(action.stage))
          report("P10", "{0} comes before {1} gradients of its stage", place(rank, position), count);
      } else if (isCompute(action.kind)) {
        if (action.kind == ActionKind::W || action.kind == ActionKind::B)
          --missing[action.stage];
        if (action.kind != ActionKind::F && action.kind != ActionKind::I && !closed.empty() &&
            closed.contains(action.stage))
          report("P10", "{0} adds to gradients that have been reduced", place(rank, position));
        if (auto found = isFull.find(action.stage); found != isFull.end() && !found->second)
          report("P7", "{0} comes where its parameters are not gathered", place(rank, position));
      } else if (!isMessage(action.kind)) {
        bool gathers = action.kind == ActionKind::Unshard;
        if (std::exchange(isFull[action.stage], gathers) == gathers)
          report("P7", "{0} changes nothing", place(rank, position));
      }
    }
  }

  /// Reduces a group when all of its ranks stand there; if none can, two of them disagree.
  void checkCommonOrder(llvm::ArrayRef<std::vector<int32_t>> orders) {
    std::vector<size_t> positions(orders.size()), arrived(schedule.reductions.size());
    std::vector<int32_t> ready;
    // A rank stands at its first reduction that has not happened.
    auto arrive = [&](int32_t rank) {
      if (positions[rank] == orders[rank].size())
        return;
      int32_t reduction = orders[rank][positions[rank]];
      if (++arrived[reduction] == schedule.reductions[reduction].ranks.size())
        ready.push_back(reduction);
    };
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      arrive(rank);
    while (!ready.empty()) {
      int32_t reduction = ready.back();
      ready.pop_back();
      for (int32_t rank : schedule.reductions[reduction].ranks) {
        ++positions[rank];
        arrive(rank);
      }
    }
    for (int32_t rank = 0; rank < schedule.numRanks && result.violations.empty(); ++rank)
      if (positions[rank] < orders[rank].size())
        reportWaiting(rank, orders[rank][positions[rank]], orders, positions);
    for (auto [index, reduction] : llvm::enumerate(schedule.reductions))
      if (!arrived[index] && !reduction.ranks.empty() && result.violations.empty())
        report("P10", "'{0}' is reduced on no rank", reduction.name);
  }

  void reportWaiting(int32_t rank, int32_t reduction, llvm::ArrayRef<std::vector<int32_t>> orders,
                     llvm::ArrayRef<size_t> positions) {
    const Reduction &group = schedule.reductions[reduction];
    for (int32_t member : group.ranks) {
      if (positions[member] == orders[member].size())
        return report("P10", "rank {0} reduces '{1}', rank {2} of its group does not", rank, group.name, member);
      if (int32_t other = orders[member][positions[member]]; other != reduction)
        return report("P10", "rank {0} reduces '{1}' where rank {2} of its group reduces '{3}'", rank, group.name,
                      member, schedule.reductions[other].name);
    }
  }

  //===--------------------------------------------------------------------===//
  // Runs
  //===--------------------------------------------------------------------===//

  void checkRun() {
    llvm::Expected<Simulation> run = simulate(schedule, costs, MessageMode::Rendezvous);
    if (run) {
      memory = std::move(run->peak.memory);
      return;
    }
    std::string waiting = llvm::toString(run.takeError());
    // Which of the two it is, is what a reader needs to know first: the order of computation, or of messages.
    // Without waiting for other ends the same cycle is one of operands.
    llvm::Expected<Simulation> async = simulate(schedule, costs);
    if (async)
      return report("P9", "{0}", waiting);
    report("P7", "{0}", llvm::toString(async.takeError()));
  }

  void checkMemory() {
    if (costs.memoryLimit.empty())
      return;
    double least = *llvm::max_element(memory);
    for (int32_t rank = 0; rank < schedule.numRanks; ++rank)
      if (memory[rank] > costs.getMemoryLimit(rank))
        return report("P11", "rank {0} holds {1}, above the limit of {2}; all ranks fit in {3}", rank,
                      formatNumber(memory[rank]), formatNumber(costs.memoryLimit[rank]), formatNumber(least));
  }

  const Schedule &schedule;
  const Costs &costs;
  CheckResult &result;
  const bool hasMessages;
  std::optional<Operands> operands;
  /// Bits of Seen, by stage and microbatch, and by message.
  std::vector<uint8_t> computed, messages;
  std::vector<double> memory;
};

} // namespace

CheckResult cleave::schedule::check(const Schedule &schedule, const Costs &costs) {
  CheckResult result;
  Checker(schedule, costs, result).run();
  return result;
}
