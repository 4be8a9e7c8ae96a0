"""What runs tell of themselves: traces and profiles of all ranks, by threads, by processes that speak TCP or MPI, and by clocks that differ.

Usage: traces.py BUILD_DIR

What must be in a file follows from the program's commands (`cleave inspect --json`): every command of every rank once, an arrow for each
message with its bytes, and nothing that comes before it was sent, but for what is not known of the clocks.
"""
import collections
import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from case import HAS_MPI  # noqa: E402
from network import SECRET, Network  # noqa: E402

# Times are printed in thousandths of a microsecond, and rates of clocks are known to a few parts in a million.
ROUNDING = 2.0
# A clock of another machine, as far as a process can tell: seconds since it began.
SKEWS = {1: 1000, 2: 5, 3: 86400}
UNSHARE = ["unshare", "--time", "--fork", "--kill-child", "--monotonic"]
HAS_CLOCKS = subprocess.run([*UNSHARE, "1", "true"], capture_output=True).returncode == 0

PLAN = "mesh: {stage: 2}\npipeline: {axis: stage, microbatches: 4, schedule: zb-h1}\ntrain: {loss: {kind: mse, of: y}, optimizer: adamw, clip: 0.5}\n"
MODEL = ('<ir_version: 10, opset_import: ["": 20]> f (float[64, 32] x) => (float[64, 32] y) '
         "{ m0 = MatMul(x, w0) t0 = Tanh(m0) m1 = MatMul(t0, w1) t1 = Tanh(m1) y = MatMul(t1, w2) }")


class Traced(Network):
    """Programs of the runtime's tests, and a step of training in two stages."""

    def __init__(self, build):
        super().__init__(build)
        draw = np.random.default_rng(3)
        model = parser.parse_model(MODEL)
        for i in range(3):
            model.graph.initializer.append(numpy_helper.from_array(draw.standard_normal((32, 32)).astype(np.float32) / 6, f"w{i}"))
        onnx.save(model, self.path("chain.onnx"))
        with open(self.path("p.yaml"), "w") as file:
            file.write(PLAN)
        x = draw.standard_normal((256, 32)).astype(np.float32)
        self.save("d.npz", x=x, labels=np.tanh(x))

    def get_lists(self, program):
        """Commands by rank, in the first entry."""
        if program == "step.cleave":
            subprocess.run([f"{self.build}/bin/cleave", "compile", self.path("chain.onnx"), "--plan", self.path("p.yaml"), "--train", "-o",
                            self.path(program), "--quiet"], check=True, capture_output=True)
        text = subprocess.run([f"{self.build}/bin/cleave", "inspect", self.path(program), "--json"], check=True, capture_output=True, text=True)
        lists = json.loads(text.stdout)["variants"][0]["lists"]
        return {rank: each["commands"] for each in lists for rank in each["ranks"]}

    def read(self, name):
        with open(self.path(name)) as file:
            return json.load(file)


# ---------------------------------------------------------------------------------------------------------------------------
# What is in a file

def count_kinds(commands):
    return collections.Counter(command["kind"] for command in commands)


def check_colors(bars):
    """One color for each kind, and one kind for each color; waiting has its own."""
    colors = {}
    for bar in bars:
        kind, _, part = bar["cat"].partition(",")
        colors.setdefault(kind if part == "kernel" else part or kind, set()).add(bar["cname"])
    taken = [color for each in colors.values() for color in each]
    return None if all(len(each) == 1 for each in colors.values()) and len(taken) == len(set(taken)) else f"colors {colors}"


def to_ns(microseconds):
    return round(microseconds * 1000)


def check_readable(events):
    """What Perfetto asks of a file (its importer of JSON drops or mixes up the rest, and counts it in a table that few look at): threads of
    all processes have numbers of their own, which no process has; no time is below 0; of one thread a bar ends before the next begins, or is
    within the one before."""
    bars = [event for event in events if event["ph"] == "X"]
    threads = {(event["pid"], event["tid"]) for event in events if "tid" in event}
    numbers = [tid for _, tid in threads]
    if len(set(numbers)) != len(numbers) or set(numbers) & {pid for pid, _ in threads}:
        return f"threads {sorted(threads)}"
    if {event["tid"] for event in events if event["name"] == "thread_name"} != set(numbers):
        return "threads without a name"
    if min(bar["ts"] for bar in bars) < 0:
        return "times below 0"
    opened = {}
    # Of two that begin together the one that is in the file first is around the other.
    for bar in sorted(bars, key=lambda bar: bar["ts"]):
        begin, stack = to_ns(bar["ts"]), opened.setdefault(bar["tid"], [])
        end = begin + to_ns(bar["dur"])
        while stack and stack[-1] <= begin:
            stack.pop()
        if stack and end > stack[-1]:
            return f"{bar} ends after what it is within, {stack[-1]}"
        stack.append(end)
    return None


def check_names(bars):
    """Perfetto's color is that of a bar's name: one for each kind, but for what is within others."""
    names = {}
    for bar in bars:
        if not bar["cat"].endswith(",kernel"):
            names.setdefault(bar["cat"], set()).add(bar["name"])
    return None if all(len(each) == 1 for each in names.values()) else f"names of a kind {names}"


def check_arrows(events, bars, lists, errors):
    """Each message once, from where it is sent to where it has come; bytes are those of the program's commands."""
    ends = {phase: {event["id"]: event for event in events if event["ph"] == phase} for phase in "sf"}
    if set(ends["s"]) != set(ends["f"]) or 2 * len(ends["s"]) != sum(event["ph"] in "sf" for event in events):
        return f"arrows {ends}"
    sent = collections.Counter()
    for number, start in ends["s"].items():
        end = ends["f"][number]
        sent[start["pid"]] += start["args"]["bytes"]
        if end["ts"] < start["ts"] - errors[start["pid"]] - errors[end["pid"]] - ROUNDING:
            return f"arrow {start} to {end}, clocks {errors}"
        for point, names in ((start, {"exchange"}), (end, {"finish exchange"})):
            if not any(bar["name"] in names and (bar["pid"], bar["tid"]) == (point["pid"], point["tid"]) and
                       bar["ts"] - 0.002 <= point["ts"] <= bar["ts"] + bar["dur"] + 0.002 for bar in bars):
                return f"no bar under {point}"
    due = {rank: sum(command["sent_bytes"] for command in commands if command["kind"] == "exchange") for rank, commands in lists.items()}
    if {rank: sent[rank] for rank in lists} != due:
        return f"bytes {sent}, expected {due}"
    return None


def check_trace(trace, lists, are_processes):
    events = trace["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    named = [event["pid"] for event in events if event["name"] == "process_name"]
    if sorted(named) != sorted(lists):
        return f"ranks {named}"
    for rank, commands in lists.items():
        done = collections.Counter(bar["cat"] for bar in bars if bar["pid"] == rank and "," not in bar["cat"])
        # Events of streams are no commands of the host's.
        due = collections.Counter({kind: count for kind, count in count_kinds(commands).items() if kind not in ("record", "wait")})
        if done != due:
            return f"rank {rank} has done {done}, expected {due}"
    clocks = {clock["rank"]: clock for clock in trace.get("clocks", [])}
    if sorted(clocks) != (sorted(lists) if are_processes else []):
        return f"clocks {clocks}"
    errors = {rank: clocks[rank]["error_us"] if clocks else 0 for rank in lists}
    # Commands of a schedule's table say so: what an action is called and its numbers agree.
    for bar in bars:
        if action := bar["args"].get("action"):
            if (bar["args"]["stage"], bar["args"]["microbatch"]) != tuple(map(int, (action[0], action[2:]))):
                return f"action {bar}"
    kernels = [bar for bar in bars if bar["cat"] == "launch,kernel"]
    if len(kernels) != sum(bar["cat"] == "launch" for bar in bars):
        return f"{len(kernels)} kernels of launches"
    return check_colors(bars) or check_names(bars) or check_readable(events) or check_arrows(events, bars, lists, errors)


def check_profile(profile, lists):
    due = sum((count_kinds(commands) for commands in lists.values()), collections.Counter())
    rows = {row["name"]: row for row in profile["kinds"]}
    if any(rows[kind]["commands"] != due[kind] for kind in rows) or set(due) - set(rows) - {"record", "wait"}:
        return f"kinds {rows}, expected {due}"
    bars = [event for event in profile["traceEvents"] if event["ph"] == "X"]
    if {bar["pid"] for bar in bars} != set(lists) or profile["ranks"] != len(lists):
        return f"ranks of {profile}"
    for kind, row in rows.items():
        laid_out = sum(bar["dur"] for bar in bars if bar["name"] == kind) / 1e6
        if abs(laid_out - row["seconds"]) > 1e-8 * len(lists) + 1e-6:
            return f"{kind}: bars {laid_out}, row {row}"
    return check_colors(bars) or check_readable(profile["traceEvents"])


def check_files(case, lists, are_processes):
    return check_trace(case.read("t.json"), lists, are_processes) or check_profile(case.read("p.json"), lists)


# ---------------------------------------------------------------------------------------------------------------------------
# Runs

def get_words(program):
    words = ["--data", "d.npz", "--steps", "3"] if program == "step.cleave" else ["--repeat", "2"]
    return [*words, "--trace", "t.json", "--profile=p.json"]


def told(case, program, how, ranks):
    """By one command, which starts the ranks."""
    lists = case.get_lists(program)
    code, text = case.run(program, *get_words(program), *how, ranks=len(lists) if ranks else 0)
    if code != 0 or "kind of command" not in text:
        return f"exit code {code}: {text}"
    return check_files(case, lists, ranks > 0 or "--local" in how)


def skewed(case, program):
    """As on machines that began at other times: what is measured is what was set."""
    lists = case.get_lists(program)
    ranks = []
    for rank in lists:
        case.prefix = [*UNSHARE, str(SKEWS[rank])] if rank else []
        ranks.append(case.launch(rank, size=len(lists), program=program, words=get_words(program), CLEAVE_SECRET=SECRET))
    codes, said = case.finish(ranks)
    if any(codes):
        return f"exit codes {codes}: {said}"
    for clock in case.read("t.json")["clocks"]:
        off = clock["offset_us"] - 1e6 * SKEWS.get(clock["rank"], 0)
        # The namespace counts from the real clock, so that nothing but the measurement is off.
        if abs(off) > clock["error_us"] + ROUNDING:
            return f"clock {clock}"
    return check_files(case, lists, True)


def dead(case, how, code):
    """A rank ends by a signal in the call that is told of: there is no file, and an older one is what it was."""
    with open(case.path("p.json"), "w") as file:
        file.write("older")
    got, text = case.run("segv.cleave", *get_words("segv.cleave"), *how)
    with open(case.path("p.json")) as file:
        older = file.read()
    left = [name for name in os.listdir(case.folder) if name.endswith(".json")]
    return None if got == code and older == "older" and left == ["p.json"] else f"exit code {got}, {left}, {older!r}: {text}"


def main():
    build, names, _ = harness.arguments()
    cases = {}
    for program in ("step", "stages", "tensor-parallel"):
        cases[f"{program}-threads"] = (told, f"{program}.cleave", ["--ranks", "threads"], 0)
        cases[f"{program}-local"] = (told, f"{program}.cleave", ["--local"], 0)
        if HAS_MPI:
            cases[f"{program}-mpi"] = (told, f"{program}.cleave", [], 1)
        if HAS_CLOCKS:
            cases[f"{program}-skewed"] = (skewed, f"{program}.cleave")
    cases |= {"dead-threads": (dead, ["--ranks", "threads"], 4), "dead-local": (dead, ["--local"], 4)}

    def problem(row):
        with Traced(build) as case:
            return row[0](case, *row[1:])

    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
