"""Plans that `cleave plan` finds, against those of examples/parallel, which people wrote.

Usage: found.py BUILD_DIR [--fix-table] [NAME...]

A case is a plan by hand (its model and sizes) on a machine. What is found for its number of devices, and for its memory, is written to a
file and taken like any other plan:

  * it takes no longer than the plan by hand decided by time, both predicted with kernels formed, but for half a percent (coordinate descent
    is not exhaustive); and no longer either in no more memory than the plan by hand takes;
  * by the solver's costs it is within a percent of a bound that no plan of the space is below (`--certificate`);
  * `cleave shard` with the file sends the bytes and has the peak that the search said, to the byte, and its time;
  * every output is that of one device (`run --check`, the evaluator), and of every fourth case a program and an emulated device, too.

docs/generated/found-plans.md is the table of a whole run.
"""
import json
import os
import sys
import tempfile

import yaml

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(2, os.path.join(sys.path[0], "Parallel"))
import harness
from cases import CASES

MODELS = os.path.dirname(os.path.abspath(__file__))
PLANS = os.path.join(harness.ROOT, "examples", "parallel")
CLUSTERS = ("cpu-threads", "8xH100-nvlink")
LOWERINGS = ([], ["--executor", "program"], [], ["--device", "cuda-emulated"])
# What a found plan may take of what the plan by hand does.
SLACK = 1.005
# How far the found plan may be above the bound that is proved, and of which cases the proof is checked once more.
GAP = 0.01
VERIFIED = 8


def load(path):
    with open(path) as file:
        return json.load(file) if path.endswith(".json") else yaml.safe_load(file)


def take(build, model, plan, cluster, folder):
    """(ns, bytes sent, peak) of a plan by time, kernels formed."""
    report = os.path.join(folder, "taken.json")
    harness.must(build, "shard", model, "--plan", plan, "--optimize", "time", "--cluster", cluster, "--emit", "clustered", "--report", report,
           "-o", os.path.join(folder, "taken.mlir"), "--quiet")
    told = load(report)
    sent = sum(total["wire_bytes_per_rank"] for total in told["totals"].values())
    return told["time"].get("call_ns", harness.predicted_ns(told)), sent, told["peak_bytes_per_rank"]


def find(build, model, words, folder):
    """(what was found, the file of the plan, the report's best); the search's own figures are those of the file as `shard` takes it."""
    report, plan = os.path.join(folder, "found.json"), os.path.join(folder, "found.yaml")
    harness.must(build, "plan", model, *words, "-o", plan, "--report", report, "--quiet")
    best = load(report)["best"]
    taken = take(build, model, plan, words[words.index("--cluster") + 1], folder)
    said = (best["seconds"] * 1e9, best["wire_bytes_per_rank"], best["memory"]["peak"])
    if abs(taken[0] / said[0] - 1) > 1e-6 or taken[1:] != said[1:]:
        raise harness.Failed(f"the plan is said to take {said}, and takes {taken} (ns, bytes sent, peak)")
    return said, plan, best


def run(build, number, name, cluster):
    """(what is wrong or an empty string, row of the table)."""
    case, by_hand = CASES[name], os.path.join(PLANS, name + ".yaml")
    model = os.path.join(MODELS, case.model + ".onnx")
    text = load(by_hand)
    ranks = 1
    for size in text["mesh"].values():
        ranks *= size
    words = ["--devices", str(ranks), "--cluster", cluster]
    if text.get("dims"):
        words += ["--dim", ",".join(f"{dim}={size}" for dim, size in text["dims"].items())]
    with tempfile.TemporaryDirectory() as folder:
        try:
            hand = take(build, model, by_hand, cluster, folder)
            proof = os.path.join(folder, "c.json")
            found, plan, best = find(build, model, [*words, "--certificate", proof], folder)
            bound = (best["solver_seconds"] * 1e9, best["bound"] * 1e9, best["gap"])
            if bound[2] > GAP:
                return f"the found plan is up to {100 * bound[2]:.2f} % above the best", None
            if number % VERIFIED == 0:
                harness.must(build, "plan", model, "--verify", proof, "--quiet")
            if found[0] > hand[0] * SLACK:
                return f"found {found[0]:.0f} ns where the plan by hand takes {hand[0]:.0f}", None
            harness.must(build, "run", model, "--plan", plan, "--check", "--quiet", *LOWERINGS[number % len(LOWERINGS)])
            within = [*words, "--memory", f"{-(-hand[2] // 1000)}kB"]
            small, plan, _ = find(build, model, within, folder)
            if small[2] > -(-hand[2] // 1000) * 1000:
                return f"found a plan of {small[2]} bytes in {hand[2]}", None
            if small[0] > hand[0] * SLACK:
                return f"found {small[0]:.0f} ns in {hand[2]} bytes, where the plan by hand takes {hand[0]:.0f}", None
            harness.must(build, "run", model, "--plan", plan, "--check", "--quiet")
        except harness.Failed as error:
            return str(error), None
    return "", (name, cluster, ranks, hand, found, small, bound)


def format_table(rows):
    lines = ["<!-- Generated by test/Models/found.py --fix-table; do not edit. -->", "",
             "# Plans that are found, against plans by hand", "",
             "For: deployers who ask what a search gains ([how plans are found](../finding-plans.md)).", "",
             "Predicted microseconds of a call with kernels formed, and the peak of a rank in kB: of the plan of `examples/parallel`, decided by",
             "time; of what `cleave plan --devices` finds; and of what it finds in no more memory than the plan by hand takes. The bound is",
             "what no plan of the space is below by the solver's costs, which foresee kernels and do not form them: next to it are the costs of",
             "the found plan by the same, and how far it is above the bound at most.", "",
             "| plan by hand | machine | ranks | by hand | | found | | in that memory | | solver's costs | bound | gap % |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, cluster, ranks, hand, found, small, bound in rows:
        cells = " | ".join(f"{ns / 1000:.2f} | {peak / 1000:.1f}" for ns, _, peak in (hand, found, small))
        proved = f"{bound[0] / 1000:.2f} | {bound[1] / 1000:.2f} | {100 * bound[2]:.2f}"
        lines.append(f"| {name} | {cluster} | {ranks} | {cells} | {proved} |")
    return "\n".join(lines) + "\n"


def main():
    build, names, flags = harness.arguments("--fix-table")
    cases = {f"{name} {cluster}": (number, name, cluster)
             for number, (name, cluster) in enumerate((name, cluster) for name in CASES for cluster in CLUSTERS)}
    chosen = harness.select(cases, names)
    results = harness.each(lambda case: run(build, *case), chosen.values())
    failed = harness.tell_failures(chosen, (text for text, _ in results))
    rows = [row for _, row in results if row]
    faster = sum(found[0] < hand[0] / SLACK for _, _, _, hand, found, _, _ in rows)
    print(f"{len(rows)} plans by hand compared: {faster} found ones take less time")
    if len(chosen) == len(cases):
        failed += harness.check_generated("found-plans.md", format_table(rows), "--fix-table" in flags)
    return harness.close(len(chosen), failed)


if __name__ == "__main__":
    sys.exit(main())
