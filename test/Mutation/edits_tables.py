"""Small errors in schedules of pipelines: what the checker lets pass, times, messages, files. check.py says how they are tried."""
from edit import Edit

SCHEDULE = "CleaveScheduleTests"
CHECK, SIMULATE, CSV = "lib/Schedule/Check.cpp", "lib/Schedule/Simulate.cpp", "lib/Schedule/Csv.cpp"
MESSAGES, JSON = "lib/Schedule/Messages.cpp", "lib/Schedule/JsonRead.cpp"

EDITS = [
    Edit("schedule-work-twice", CHECK, "if (seen(action) & bit)", "if (false)", "P6: an action may be done twice", [SCHEDULE]),
    Edit("schedule-work-anywhere", CHECK, "isPlaced && schedule.getRank(action.stage, action.microbatch) != rank", "false",
         "P6: an action may stand on any rank", [SCHEDULE]),
    Edit("schedule-use-before-receive", CHECK, "(messages[getMessage(channel, isForward, action.microbatch)] & kReceived)", "true",
         "P7: a value may be used before it is received", [SCHEDULE]),
    Edit("schedule-order-of-messages", CHECK, "sent[message] == number", "true", "P8: messages may be taken for each other", [SCHEDULE]),
    Edit("schedule-one-end", CHECK, "messages[message] == (kSent | kReceived)", "messages[message] != 0",
         "P12: a message may have one end", [SCHEDULE]),
    Edit("schedule-reduced-early", CHECK, "closed.contains(action.stage)", "false", "P10: gradients may come after they are reduced", [SCHEDULE]),
    Edit("schedule-no-limit", CHECK, "memory[rank] > costs.getMemoryLimit(rank)", "false", "P11: memory has no limit", [SCHEDULE]),
    Edit("schedule-hops-are-free", SIMULATE, "(isHop && !meets ? costs.getHop(schedule.channels[channel]) : 0)", "0",
         "latency does not count", [SCHEDULE]),
    Edit("schedule-pairs-add-up", SIMULATE, "isPair && costs.overlap >= 0", "false", "a pair takes the time of both parts", [SCHEDULE]),
    Edit("schedule-w-keeps", SIMULATE, "return {0, -1, memory};", "return {0, 0, memory};", "W releases nothing", [SCHEDULE]),
    Edit("schedule-nobody-wakes", MESSAGES, "(waiting > rank ? current : next).set(waiting)", "current.set(waiting)",
         "ranks that wait for later ones are passed over", [SCHEDULE]),
    Edit("schedule-half-cells", CSV, "needsMicrobatch != hasMicrobatch || !rest.empty()", "needsMicrobatch != hasMicrobatch",
         "a cell may end in anything", [SCHEDULE]),
    Edit("schedule-any-size", CSV, "stages * microbatches > numForward", "false", "numbers in a table ask for any memory", [SCHEDULE]),
    Edit("deep-json-files", "lib/Support/JsonText.cpp", "findDepth(text) > kMostDepth", "false", "a file may nest as deep as it likes", [SCHEDULE]),
]
