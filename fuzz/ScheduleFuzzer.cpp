//===- ScheduleFuzzer.cpp - any text as a schedule ------------------------===//
//
// The input is a table, or, where it starts with a brace, a report. Whatever it says, there must be a schedule or an error
// with a message. A schedule must bear being checked; one that is right must simulate, and be read back as it was written.
//
//===----------------------------------------------------------------------===//
#include "cleave/Schedule/Messages.h"
#include "cleave/Schedule/Text.h"

using namespace cleave::schedule;

static void require(bool holds) {
  if (!holds)
    __builtin_trap();
}

/// A failure must have left a message.
static void takeError(llvm::Error error) { require(!llvm::toString(std::move(error)).empty()); }

static void askAbout(const Schedule &schedule, const Costs &costs) {
  if (!check(schedule, costs).violations.empty())
    return;
  llvm::Expected<Simulation> simulation = simulate(schedule, costs);
  require(bool(simulation));
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJson(os, schedule, costs, *simulation, {});
  llvm::Expected<CostedSchedule> again = readJson(text, schedule.name);
  require(bool(again));
  require(again->schedule.programs == schedule.programs);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (text.starts_with("{")) {
    if (llvm::Expected<CostedSchedule> read = readJson(text, "fuzz"))
      askAbout(read->schedule, read->costs);
    else
      takeError(read.takeError());
  } else if (llvm::Expected<Schedule> read = readCsv(text, "fuzz")) {
    askAbout(*read, Costs::uniform(read->numStages, 1));
  } else {
    takeError(read.takeError());
  }
  return 0;
}
