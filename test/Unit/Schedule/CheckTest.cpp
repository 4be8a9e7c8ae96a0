// Right tables pass, wrong ones are refused with the right words; and on many random mutations the checker agrees with a
// run that shares no code with it.
#include "cleave/Schedule/Check.h"
#include "NaiveRun.h"
#include "Tables.h"
#include "cleave/Schedule/Messages.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <random>

using namespace cleave::schedule;

static Costs getCosts(const Schedule &schedule) { return Costs::uniform(schedule.numStages, 1); }

static std::string check(const Schedule &schedule) {
  std::vector<std::string> texts;
  for (const Violation &violation : check(schedule, getCosts(schedule)).violations)
    texts.push_back(violation.constraint + " " + violation.message);
  return llvm::join(texts, "\n");
}

static Schedule addTo(Schedule schedule) {
  if (llvm::Error error = addMessages(schedule))
    ADD_FAILURE() << llvm::toString(std::move(error));
  return schedule;
}

/// 1F1B whose pairs of F and B run as one wherever they can.
static Schedule makeJoined(int32_t ranks, int32_t microbatches) {
  Schedule schedule = makeOneFOneB(ranks, microbatches);
  for (int32_t rank = 0; rank + 1 < ranks; ++rank)
    for (size_t i = 0; i + 1 < schedule.programs[rank].size(); ++i)
      if (schedule.programs[rank][i].kind == ActionKind::F && schedule.programs[rank][i + 1].kind == ActionKind::B)
        schedule.programs[rank][i].isJoined = true;
  return schedule;
}

/// Two pipelines through the same ranks, one of them backwards.
static Schedule makeTwoWays(int32_t ranks) {
  Schedule schedule = makeGpipe(ranks, 2);
  Replica back;
  for (int32_t stage = 0; stage < ranks; ++stage)
    back.placement.push_back(ranks - 1 - stage);
  back.microbatches = {1};
  schedule.replicas[0].microbatches = {0};
  schedule.replicas.push_back(back);
  schedule.indexReplicas();
  for (int32_t rank = 0; rank < ranks; ++rank) {
    int32_t mirror = ranks - 1 - rank;
    schedule.programs[rank] = {makeAction(ActionKind::F, rank, 0), makeAction(ActionKind::F, mirror, 1),
                               makeAction(ActionKind::B, rank, 0), makeAction(ActionKind::B, mirror, 1)};
    if (rank > mirror)
      std::swap(schedule.programs[rank][0], schedule.programs[rank][1]);
    if (rank < mirror)
      std::swap(schedule.programs[rank][2], schedule.programs[rank][3]);
  }
  return schedule;
}

/// Stage 0 feeds stage 2 beside stage 1.
static Schedule makeSkip() {
  Schedule schedule = makeOneFOneB(3, 3);
  Channel skip;
  skip.from = 0;
  skip.to = 2;
  schedule.channels.insert(schedule.channels.begin() + 1, skip);
  return schedule;
}

static std::vector<Schedule> getTables() {
  std::vector<Schedule> tables = {makeGpipe(3, 3),           makeOneFOneB(3, 4), makeOneFOneB(4, 4, true),
                                  makeZeroBubbleH1(3, 4),    makeForward(3, 3),  makeJoined(4, 5),
                                  makeBreadthFirst(2, 3, 2), makeTwoWays(3)};
  size_t count = tables.size();
  for (size_t i = 0; i < count; ++i)
    tables.push_back(addTo(tables[i]));
  tables.push_back(addTo(makeSkip()));
  return tables;
}

TEST(CheckTest, PassesRightTables) {
  for (const Schedule &schedule : getTables()) {
    CheckResult result = cleave::schedule::check(schedule, getCosts(schedule));
    EXPECT_EQ(check(schedule), "") << schedule.name;
    EXPECT_TRUE(runsRight(schedule)) << schedule.name;
    EXPECT_EQ(llvm::join(result.checks, " "), "complete acyclic fifo reductions rendezvous memory");
  }
}

TEST(CheckTest, SaysWhatIsMissingOrTwofold) {
  Schedule schedule = makeZeroBubbleH1(2, 2);
  Schedule wrong = schedule;
  wrong.programs[1].pop_back();
  EXPECT_EQ(check(wrong), "P6 '1W1' is missing on rank 1");
  wrong = schedule;
  wrong.programs[0].push_back(makeAction(ActionKind::F, 0, 0));
  EXPECT_EQ(check(wrong), "P6 rank 0 at action 7, '0F0', has been done before");
  wrong = schedule;
  wrong.programs[0].back().kind = ActionKind::B;
  EXPECT_EQ(check(wrong), "P6 rank 0 at action 6, '0B1', repeats a part of a B");
  wrong = schedule;
  std::swap(wrong.programs[0][0], wrong.programs[1][0]);
  EXPECT_EQ(check(wrong), "P6 rank 0 at action 1, '1F0', belongs on rank 1\n"
                          "P6 rank 1 at action 1, '0F0', belongs on rank 0");
  wrong.programs[0][0].stage = 2;
  wrong.programs[1][0].microbatch = 7;
  EXPECT_EQ(check(wrong), "P6 rank 0 at action 1, '2F0', names a stage, microbatch or group that is not there\n"
                          "P6 rank 1 at action 1, '0F7', names a stage, microbatch or group that is not there");
  wrong = makeForward(1, 1);
  wrong.programs[0].push_back(makeAction(ActionKind::B, 0, 0));
  EXPECT_EQ(check(wrong), "P6 rank 0 at action 2, '0B0', is in a schedule without gradients");
}

TEST(CheckTest, ComparesBothEndsOfMessages) {
  Schedule schedule = addTo(makeGpipe(2, 2));
  Schedule wrong = schedule;
  wrong.programs[0].erase(wrong.programs[0].begin() + 1);
  EXPECT_EQ(check(wrong), "P12 '1RECV_F0' on rank 1 has no '0SEND_F0' on rank 0");
  wrong.programs[1].erase(wrong.programs[1].begin());
  EXPECT_EQ(check(wrong), "P7 rank 1 at action 1, '1F0', comes before what it needs is received from stage 0");
  wrong = schedule;
  std::swap(wrong.programs[0][0], wrong.programs[0][1]);
  EXPECT_EQ(check(wrong), "P7 rank 0 at action 1, '0SEND_F0', comes before what it sends is there");
  // Both receives before both uses: each message is there, and taken for the other.
  wrong = schedule;
  wrong.programs[1] = {wrong.programs[1][2], wrong.programs[1][0], wrong.programs[1][1], wrong.programs[1][3],
                       wrong.programs[1][4], wrong.programs[1][5], wrong.programs[1][6], wrong.programs[1][7]};
  EXPECT_EQ(check(wrong),
            "P8 rank 1 at action 1, '1RECV_F1', takes message 1 from rank 0, where it is sent as message 2");
}

TEST(CheckTest, TellsWaitingForEachOtherFromACycle) {
  Schedule schedule = addTo(makeOneFOneB(2, 2));
  // Receive before use: rank 1 sends before it takes what rank 0 sends first.
  std::vector<Action> &second = schedule.programs[1];
  EXPECT_EQ(getText(second[2]), "1RECV_F1");
  std::rotate(second.begin() + 2, second.begin() + 3, second.begin() + 5);
  EXPECT_EQ(check(schedule), "P9 deadlock: rank 0 at action 4, '0SEND_F1', waits for rank 1; rank 1 at action 4, "
                             "'1SEND_B0', waits for rank 0");
  schedule = makeGpipe(2, 2);
  std::swap(schedule.programs[1][0], schedule.programs[1][2]);
  EXPECT_EQ(check(schedule), "P7 deadlock: rank 1 at action 1, '1B0', waits for '1F0' of rank 1");
}

TEST(CheckTest, ReducesGroupsInOneOrder) {
  Schedule schedule = makeGpipe(2, 1);
  schedule.reductions = {{"a", {0, 1}}, {"b", {0, 1}}};
  auto reduce = [](int32_t stage, int32_t group) {
    Action action = makeAction(ActionKind::ReduceGrad, stage, -1);
    action.other = group;
    return action;
  };
  for (int32_t rank : {0, 1})
    for (int32_t group : {0, 1})
      schedule.programs[rank].push_back(reduce(rank, group));
  EXPECT_EQ(check(schedule), "");
  Schedule wrong = schedule;
  std::swap(wrong.programs[1][2], wrong.programs[1][3]);
  EXPECT_EQ(check(wrong), "P10 rank 0 reduces 'a' where rank 1 of its group reduces 'b'");
  wrong = schedule;
  wrong.programs[1].pop_back();
  EXPECT_EQ(check(wrong), "P10 rank 0 reduces 'b', rank 1 of its group does not");
  wrong.programs[0].pop_back();
  EXPECT_EQ(check(wrong), "P10 'b' is reduced on no rank");
  wrong = schedule;
  std::swap(wrong.programs[1][1], wrong.programs[1][2]);
  EXPECT_EQ(check(wrong), "P10 rank 1 at action 3, '1B0', adds to gradients that have been reduced");
  schedule.programs[0].push_back(makeAction(ActionKind::Unshard, 0, -1));
  EXPECT_EQ(check(schedule), "P7 rank 0 at action 1, '0F0', comes where its parameters are not gathered\n"
                             "P7 rank 0 at action 2, '0B0', comes where its parameters are not gathered");
}

TEST(CheckTest, NamesTheLeastLimitThatWouldDo) {
  Schedule schedule = makeOneFOneB(4, 8);
  Costs costs = getCosts(schedule);
  costs.memoryLimit.assign(4, 3);
  CheckResult result = check(schedule, costs);
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].constraint, "P11");
  EXPECT_EQ(result.violations[0].message, "rank 0 holds 4, above the limit of 3; all ranks fit in 4");
  costs.memoryLimit = {4, 3, 2, 1};
  EXPECT_TRUE(check(schedule, costs).violations.empty());
}

namespace {

/// Puts one small error into a table.
class Mutator {
public:
  explicit Mutator(uint32_t seed) : random(seed) {}

  Schedule mutate(Schedule schedule) {
    auto &program = schedule.programs[draw(schedule.programs.size())];
    auto &other = schedule.programs[draw(schedule.programs.size())];
    size_t at = draw(program.size());
    Action &action = program[at];
    switch (draw(10)) {
    case 0:
      program.erase(program.begin() + ptrdiff_t(at));
      break;
    case 1:
      program.insert(program.begin() + ptrdiff_t(draw(program.size() + 1)), Action(action));
      break;
    case 2:
      std::swap(action, program[(at + 1) % program.size()]);
      break;
    case 3:
      std::swap(action, program[draw(program.size())]);
      break;
    case 4:
      std::swap(action, other[draw(other.size())]);
      break;
    case 5:
      action.stage = int32_t(draw(schedule.numStages));
      break;
    case 6:
      if (isMessage(action.kind))
        action.other = int32_t(draw(schedule.numStages));
      break;
    case 7:
      action.microbatch = int32_t(draw(schedule.numMicrobatches));
      break;
    case 8:
      changeKind(action);
      break;
    default:
      action.isJoined = !action.isJoined && isCompute(action.kind);
    }
    return schedule;
  }

private:
  size_t draw(size_t count) { return random() % count; }

  void changeKind(Action &action) {
    auto first = isMessage(action.kind) ? ActionKind::SendF : ActionKind::F;
    action.kind = static_cast<ActionKind>(static_cast<size_t>(first) + draw(4));
  }

  std::mt19937 random;
};

} // namespace

TEST(CheckTest, RefusesEveryMutationThatMakesATableWrongAndNoOther) {
  Mutator mutator(7);
  size_t changed = 0, right = 0;
  for (const Schedule &table : getTables())
    for (int i = 0; i < 1200; ++i) {
      Schedule mutant = mutator.mutate(table);
      if (mutant.programs == table.programs)
        continue;
      ++changed;
      bool isRight = runsRight(mutant);
      right += isRight;
      ASSERT_EQ(check(mutant).empty(), isRight) << table.name << ": " << check(mutant);
    }
  RecordProperty("mutations", int(changed));
  std::cout << changed << " mutations, " << right << " of them leave a right table\n";
  EXPECT_GT(changed, 16000u);
  // Independent neighbors swap, and pairs are split or made.
  EXPECT_GT(right, 500u);
}
