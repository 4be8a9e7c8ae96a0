"""Small errors in pipelines: stages, schedules, what runs them."""
from edit import Edit

SCHEDULE = "CleaveScheduleTests"

EDITS = [
    # ===--- Stages ----------------------------------------------------------===
    Edit("tied-parameter-twice", "lib/Schedule/StageCuts.cpp", "parameters += next >= end ? bytes : 0;", "parameters += bytes;",
         "a parameter used twice in a stage counts twice", [SCHEDULE]),
    Edit("links-take-no-time", "lib/Schedule/StageCuts.cpp", "return std::max(ns, getLink(end));", "return ns;",
         "a slow link is no bottleneck", [SCHEDULE]),
    Edit("latest-of-equal-cuts", "lib/Schedule/StageCuts.cpp", "if (total <= least) {", "if (total < least) {",
         "of equal cuts the latest is taken", [SCHEDULE]),
    Edit("fastest-split-forbidden", "lib/Schedule/StageCuts.cpp", "ns > timeLimit", "ns >= timeLimit",
         "least bytes are sought among faster splits than there are", [SCHEDULE]),
    Edit("one-order-of-branches", "lib/Schedule/StageSplit.cpp", "if (isOther)", "if (false)",
         "branches are cut as the model has them", [SCHEDULE]),
    Edit("copy-of-a-copy", "lib/Schedule/StageDescribe.cpp", "if (served.insert(options.placement[user]).second)", "",
         "a rank gets a value for each of its stages", [SCHEDULE]),
    Edit("masks-are-sent", "lib/Dialect/Pipe/Transforms/StageGraph.cpp", "bool isFree = isCheap(op, ns, bytes);", "bool isFree = false;",
         "what each stage could make by itself is sent", ["lit:Pipe/Transforms/assign-stages"]),
]
