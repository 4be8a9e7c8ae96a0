"""What a step keeps, and what it computes again (`recompute`): memory of its planned program, and the limits that plans set.

    memory.py BUILD_DIR [CASE...]

What is made again takes less of a rank than what is kept, and as much is planned as its program then has in buffers. `auto` is the fastest that fits: each
row of its front, as a limit, gives that row, and a byte less than the last one gives an error that says how much is needed.
"""
import json
import os
import re
import sys
import tempfile

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODELS = os.path.join(harness.ROOT, "test", "Models")
# By case: a model, its output, sizes of its dims, how many ranks share the batch, and which inputs they share.
CASES = {
    "gpt2": ("gpt2_ts17", "logits", {"batch": 16, "seq": 32}, 1, ()), "gpt2 on two ranks": ("gpt2_ts17", "logits", {"batch": 16, "seq": 32}, 2, ("input_ids", "attention_mask")),
    "gpt2 in microbatches": ("gpt2_ts17", "logits", {"batch": 16, "seq": 32}, 1, (), "microbatches: 2"), "llama in microbatches": ("llama_gqa_dyn18", "logits", {"batch": 16, "seq": 32}, 1, (), "microbatches: 2"),
    "bert": ("bert_ts17", "last_hidden_state", {"batch": 16, "seq": 32}, 1, ()), "llama": ("llama_gqa_dyn18", "logits", {"batch": 16, "seq": 32}, 1, ()),
    "t5": ("t5_like_dyn18", "logits", {}, 1, ()), "vit": ("vit_dyn18", "logits", {"batch": 16}, 1, ()), "resnet": ("resnet_ts17", "logits", {"batch": 8}, 1, ()),
}
# The most that a policy may take of what a step takes that makes nothing again: of small models most are weights.
MOST = 0.99
# What is planned, of what is alive at once.
LIVENESS = 1.1


def plan_of(case, recompute):
    _, output, dims, ranks, shared, *also = CASES[case]
    lines = [f"mesh: {{data: {ranks}}}", *([f"dims: {{{', '.join(f'{name}: {size}' for name, size in dims.items())}}}"] if dims else []), "shard:"]
    lines += [f"  - {{tensor: {name}, dims: [data, _]}}" for name in shared]
    return "\n".join(lines[:-1] if not shared else lines) + f"\ntrain:\n  loss: {{kind: mse, of: {output}}}\n  optimizer: adamw\n" + "".join(f"  {line}\n" for line in (*also, recompute))


class Bench:
    def __init__(self, build, folder, case):
        self.build, self.folder, self.case = build, folder, case
        self.model = os.path.join(MODELS, CASES[case][0] + ".onnx")

    def call(self, command, recompute, *words):
        """(what it said, its report)."""
        plan, report = (os.path.join(self.folder, self.case.replace(" ", "_") + suffix) for suffix in (".yaml", ".json"))
        with open(plan, "w") as file:
            file.write(plan_of(self.case, recompute))
        # Rows of a front are of one sharding; by time another limit may be another one, since what is computed again takes time.
        done = harness.cleave(self.build, command, self.model, "--train", "--plan", plan, "--optimize=balanced", "--report", report, "--quiet", *words)
        if done.returncode:
            return done, None
        with open(report) as file:
            return done, json.load(file)

    def plan(self, recompute):
        return self.call("shard", recompute, "--emit", "planned", "-o", os.devnull)


def check_policies(bench):
    peaks = {}
    for policy in ("none", "cheap", "blocks"):
        done, report = bench.plan(f"recompute: {policy}")
        if not report:
            return f"{policy}: exit {done.returncode}: {done.stderr[-500:]}"
        peaks[policy] = report["peak_bytes_per_rank"]
        if report["arena_bytes"] > LIVENESS * report["liveness_bound_bytes"]:
            return f"{policy} has buffers of {report['arena_bytes']} B, by lifetimes {report['liveness_bound_bytes']}"
        if policy != "none" and peaks[policy] > MOST * peaks["none"]:
            return f"{policy} takes {peaks[policy]} of {peaks['none']} B"
    done, report = bench.call("bench", "recompute: blocks", "--repeat", "1")
    if not report or report["peak_bytes_per_rank"] != peaks["blocks"]:
        return f"planned are {peaks['blocks']} B, the program says {report and report['peak_bytes_per_rank']}: {done.stderr[-300:]}"
    return ""


def check_front(bench):
    done, report = bench.plan("recompute: auto")
    rows = report and report.get("recompute")
    if not rows or len(rows) < 3:
        return f"auto has no front: {done.stderr[-500:]} {rows}"
    if not rows[0]["taken"] or rows[0]["again_ns"] != 0:
        return f"without a limit something is made again: {rows[0]}"
    for row, following in zip(rows, rows[1:]):
        if not (row["ns"] <= following["ns"] and row["peak_bytes_per_rank"] > following["peak_bytes_per_rank"]):
            return f"{row} and {following} are no front"
    for number in sorted({1, len(rows) // 2, len(rows) - 1}):
        limit = rows[number]["peak_bytes_per_rank"]
        done, report = bench.plan(f"recompute: auto\n  memory_limit: {limit}B")
        if not report or report["peak_bytes_per_rank"] != limit or not report["recompute"][number]["taken"]:
            return f"row {number}, of {limit} B, gives {report and report['peak_bytes_per_rank']} B: {done.stderr[-300:]}"
    least = rows[-1]["peak_bytes_per_rank"]
    done, _ = bench.plan(f"recompute: auto\n  memory_limit: {least - 1}B")
    found = re.search(r"yaml:\d+:\d+: error: no choice of what to compute again fits (\d+) B on a rank: the least is (\d+) B", done.stderr)
    if done.returncode != 1 or not found or (int(found[1]), int(found[2])) != (least - 1, least):
        return f"a byte less than {least} gives exit {done.returncode}: {done.stderr[-400:]}"
    return ""


def problem(build, case, folder):
    bench = Bench(build, folder, case)
    return check_policies(bench) or check_front(bench)


def main():
    build, names, _ = harness.arguments()
    cases = harness.select({name: name for name in CASES}, names)
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(cases, lambda case: problem(build, case, folder))


if __name__ == "__main__":
    sys.exit(main())
