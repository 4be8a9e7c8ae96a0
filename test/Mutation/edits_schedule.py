"""Small errors in pipelines: stages, schedules, what runs them."""
from edit import Edit

SCHEDULE = "CleaveScheduleTests"
GENERATORS = "lib/Schedule/Generators/"
MICROBATCH, CUT = "CleavePipeTests", "lib/Dialect/Pipe/Transforms/CutInTime.cpp"
BOUNDS, EXACT = "lib/Schedule/Bounds.cpp", "lib/Schedule/ExactSearch.cpp"

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
         "what each stage could make by itself is sent", ["lit:Pipe/Transforms/stage-graph"]),
    # ===--- Microbatches ----------------------------------------------------===
    Edit("samples-of-other-microbatches", CUT, "isMade && llvm::none_of(llvm::make_range(first, block->end()), isOfOthers)", "isMade",
         "a microbatch looks for samples that it does not have", [MICROBATCH]),
    Edit("statistics-of-a-microbatch", CUT, "llvm::is_contained(cost.factors, factor)", "false",
         "what is wrong with a norm over samples is not said", ["lit:Pipe/Transforms/microbatch-invalid"]),
    Edit("batch-behind-a-dim", CUT, "isMajor &= !found && factors.front() == factor;", "",
         "samples are taken for neighbours that are none", [MICROBATCH]),
    Edit("accumulated-hides-split", CUT, "time.kind == InTime::Kind::Whole || other.isSplit()", "other.isSplit()",
         "what is made of accumulated values alone counts as whole", ["lit:Pipe/Transforms/microbatch-invalid"]),
    Edit("constants-are-repeated", CUT, "from.slice(at, row) != from.take_front(row)", "false",
         "every microbatch has the constants of the first", [MICROBATCH]),
    Edit("tables-are-whole", CUT, "dim && !times.lookup(operand).isSplit()", "false",
         "a microbatch gets the rows of all samples", [MICROBATCH]),
    Edit("two-batches-go-together", CUT, "found >= 0 && factors.front() != found && rule.findSingleCut(found) >= 0", "false",
         "every sample meets those of its microbatch alone", [MICROBATCH]),
    Edit("states-turn", CUT, "before.dim == after.dim && state.dim != before.dim", "true",
         "a state leaves along another dim than it came", ["lit:Pipe/Transforms/microbatch-invalid"]),
    # ===--- Schedules: generators, bounds, search ---------------------------===
    Edit("weights-of-h1-late", GENERATORS + "ZeroBubble.cpp", "++numGradients > rank)", "++numGradients > rank + 1)",
         "H1 holds more than 1F1B", [SCHEDULE]),
    Edit("warm-up-of-one-way", GENERATORS + "Interleaved.cpp", "size_t(2) * (ranks - 1 - rank)", "size_t(1) * (ranks - 1 - rank)",
         "interleaved schedules warm up for the way down alone", [SCHEDULE]),
    Edit("zb-v-warms-up-less", GENERATORS + "VShape.cpp", "writer.add(F, 0, 2 * left - 1)", "writer.add(F, 0, 2 * left - 2)",
         "ZBV waits", [SCHEDULE]),
    Edit("v-min-looks-too-far-ahead", GENERATORS + "VShape.cpp", "blocks.ahead = d;", "blocks.ahead = kPeriod;",
         "V-Min waits longer than its closed form", [SCHEDULE]),
    Edit("dualpipe-never-splits", GENERATORS + "DualPipe.cpp", "turn == middle && shape.rank % 2 == 1", "false",
         "DualPipe's way out has no W to fill with", [SCHEDULE]),
    Edit("versions-end-late", GENERATORS + "Generate.cpp", "newest = ++numGradients / perUpdate;", "newest = numGradients++ / perUpdate;",
         "PipeDream's versions of weights are counted wrong", [SCHEDULE]),
    Edit("odd-ranks-both-ways", GENERATORS + "Generate.cpp", "row.isBidirectional && shape.ranks % 2", "false",
         "Chimera on an odd number of ranks", [SCHEDULE]),
    Edit("bound-without-warm-up", BOUNDS, "paths.down[share.stages.front()] + back - filled", "paths.down[share.stages.front()] + back",
         "a bound above what schedules reach", [SCHEDULE]),
    Edit("bound-ends-anywhere", BOUNDS, "raiseSpan(toLast + home,", "raiseSpan(toLast + tail,",
         "the first rank is said to wait for W of others", [SCHEDULE]),
    Edit("memory-without-end", "lib/Schedule/SearchProblem.h", "more <= 0 || held + more <= limits[rank]", "true",
         "the search passes the limit of memory", [SCHEDULE]),
    Edit("exact-cuts-too-much", EXACT, "getBound(state) >= least", "getBound(state) + 12 >= least",
         "branch and bound misses the best", [SCHEDULE]),
    Edit("exact-never-holds", EXACT, "problem.getMemory(first.step) > 0 && problem.limits[rank] < kUnlimited", "false",
         "branch and bound fills memory with what comes first", [SCHEDULE]),
]
