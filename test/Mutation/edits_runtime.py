"""Small errors in the runtime. check.py says how they are tried.

Not here, because only time shows it: that nobody is woken when a gate opens (sleepers look up by themselves); and what only
ThreadSanitizer sees (the `tsan` preset): gates that do not order memory.
"""
from edit import Edit

RUNTIME = "CleaveRuntimeTests"
MPI = "mpi"

EDITS = [
    Edit("terms-in-reverse", "lib/Runtime/ThreadGroup.cpp", "sources[member] = getSource(view, member, inSources);",
         "sources[sources.size() - 1 - member] = getSource(view, member, inSources);",
         "terms combine in another order than that of the group", [RUNTIME]),
    Edit("no-second-barrier", "lib/Runtime/Threads.cpp", "return pass(pending, group, group.done);", "return {};",
         "a rank goes on while others still read its operand", [RUNTIME]),
    Edit("slot-of-another-number", "lib/Runtime/ThreadGroup.cpp", "view.number % Gate::kDepth",
         "view.number % 2", "small operands are read from slots of other operations", [RUNTIME]),
    Edit("last-row-of-a-piece", "lib/Runtime/ThreadGroup.cpp", "piece.rows * row", "(piece.rows - 1) * row",
         "the last row of a piece stays behind", [RUNTIME]),
    Edit("rounded-at-each-step", "lib/Runtime/Reduce.cpp", "block[i] = combine<kReduction>(block[i], load(next[i]));",
         "T rounded; store(rounded, combine<kReduction>(block[i], load(next[i]))); block[i] = load(rounded);",
         "sums of f16 and bf16 are rounded with every term", [RUNTIME]),
    Edit("ties-of-bf16-up", "lib/Runtime/Numbers.h", "0x7fffu + (bits >> 16 & 1)", "0x8000u",
         "bf16 rounds ties away from even", [RUNTIME]),
    Edit("nan-loses", "lib/Runtime/Reduce.cpp", "first |= std::isnan(x);", "", "a NaN of an earlier rank loses a maximum", [RUNTIME]),
    Edit("share-without-end", "lib/Runtime/ThreadGroup.cpp", "std::min(begin + share, count)", "begin + share",
         "the last share of an all_reduce runs over the end", [RUNTIME]),
    Edit("not-pushed-to-the-last", "lib/Runtime/ThreadGroup.cpp", "member != view.index",
         "member != view.index && member + 1 != ranks.size()", "the last rank does not get the shares of others", [RUNTIME]),
    Edit("deadline-too-long", "lib/Runtime/Threads.cpp", "double(now - began) * 1e-9 > options.deadline",
         "double(now - began) * 1e-9 > 10 * options.deadline", "a rank that is late is waited for beyond the deadline", [RUNTIME]),
    Edit("silence-too-long", "lib/Runtime/Threads.cpp", "silent > options.silence", "silent > 10 * options.silence",
         "a thread that has stopped is found too late", [RUNTIME]),
    Edit("leaving-seen-late", "lib/Runtime/Threads.cpp", "hasLeft", "hasLeft && now - began > 3000000000",
         "a rank that has left is waited for", [RUNTIME], after="last that it came to is \" + last;"),
    Edit("counts-not-compared", "lib/Runtime/Operation.cpp", "mix(hash, operation.count);", "",
         "ranks that differ in count only are not told apart", [RUNTIME]),
    Edit("traffic-not-compared", "lib/Runtime/ThreadGroup.cpp", "!(sent == expected)", "false",
         "an exchange takes less or more than was sent", [RUNTIME]),
    Edit("last-failure-wins", "lib/Runtime/Failure.cpp", "if (first) return false;", "",
         "ranks end with different failures", [RUNTIME]),
    Edit("record-written-in-place", "lib/Runtime/Files.cpp", "open(folder.c_str(), O_WRONLY | O_TMPFILE",
         "open(path.c_str(), O_WRONLY | O_CREAT",
         "a flight recorder may be seen half-written", [RUNTIME]),
    Edit("record-of-63", "lib/Runtime/FlightRecorder.cpp", "end < kEntries ? 1 : end - kEntries + 1",
         "end < kEntries ? 1 : end - kEntries + 2", "the oldest entry of a log is left out", [RUNTIME]),
    Edit("waits-in-any-order", "lib/Runtime/Communicator.cpp", "ticket.number != groups[ticket.group].finished + 1", "false",
         "operations can be waited for out of order", [RUNTIME]),
    Edit("strangers-let-in", "lib/Runtime/WatchConnect.cpp", "hello.text == std::to_string(token)", "true",
         "whoever finds the port can be a rank", [RUNTIME]),
    Edit("messages-not-compared", "lib/Runtime/Mpi/Messages.cpp", "header.digest != digest", "false",
         "processes that call different operations are not found", [MPI]),
    Edit("mpi-part-of-the-sender", "lib/Runtime/Mpi/Messages.cpp", "return packPart(operation, digest, member);",
         "return packPart(operation, digest, index);", "each process sends its own part to all", [MPI]),
    Edit("mpi-deadline-ignored", "lib/Runtime/Mpi/Mpi.cpp", "double(getNow() - began) * 1e-9 < options.deadline", "true",
         "a process that is late is waited for without end", [MPI]),
    Edit("watch-sees-no-silence", "lib/Runtime/Watch.cpp", "silent <= options.silence", "true",
         "a process that has stopped is only late", [MPI]),
    Edit("watch-sees-no-death", "lib/Runtime/Watch.cpp", "noteFault(died);", "",
         "a process that is gone is only late", [RUNTIME]),
]
