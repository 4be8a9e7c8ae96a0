"""Random models on random machines: every predicted time of a collective against its formula, and what is decided for the least time
against what the other objectives decide.

Usage: check.py BUILD_DIR [SEED...]

Of each problem (draw.py) three objectives decide, and kernels are formed, for only then it is known how many there are; what
`--optimize=time` gives is run against the original as well. Prices are those of formulas.py, of the bytes that reports count; where nodes end
unevenly among the ranks of a group there is none. The search foresees kernels by a few rules, but what the other objectives decide is looked
at as well (ChooseObjective.cpp): no decision may take longer than another objective's.
"""
import json
import os
import sys
import tempfile

sys.path.insert(1, os.path.dirname(sys.path[0]))
import formulas
import harness
from draw import Problem

FIRST, COUNT = 1000, 600
OBJECTIVES = ["time", "balanced", "bytes"]
# As good as the other: what a percent more takes, and a nanosecond.
SLACK, LEAST_NS = 1.01, 1
# How exact a price must be: reports have whole nanoseconds.
PRICE_SLACK, PRICE_NS = 1e-3, 1
# What was compared must be no less, or nothing was drawn that could be wrong.
AT_LEAST = {"prices": 2300, "decisions": 600, "faster by time": 230}


def decide(build, problem, paths, objective):
    """(report, what is wrong)."""
    model, plan, machine = paths
    how = ["--check"] if objective == "time" else []
    report = f"{model}.{objective}.json"
    done = harness.cleave(build, "run", model, "--plan", plan, "--cluster", machine, "--optimize", objective, "--report", report,
                          "--emit", "outlined", "--quiet", *how)
    if done.returncode:
        return None, f"{objective}: exit {done.returncode}: {' '.join((done.stderr + done.stdout).split())[:300]}"
    with open(report) as file:
        return json.load(file), ""


def wrong_prices(problem, reports):
    """(texts, how many were compared, how many have no formula)."""
    texts, count, skipped = [], 0, 0
    for objective, report in reports.items():
        for collective in report["collectives"]:
            levels = formulas.find_levels(problem.mesh, collective["axes"], problem.machine)
            if levels is None:
                skipped += 1
                continue
            count += 1
            kind, sent = collective["kind"], collective["wire_bytes_per_rank"]
            expected, got = formulas.collective_ns(kind, sent, levels, problem.machine.begin_us, collective.get("peers")), \
                collective.get("ns", 0)
            if abs(expected - got) > max(PRICE_SLACK * expected, PRICE_NS):
                texts.append(f"{objective}: {kind} of {sent} bytes over {', '.join(collective['axes'])} takes {got} ns, "
                             f"by the formula {expected:.0f}")
    return texts, count, skipped


def is_worse(times):
    return times["time"] > min(times.values()) * SLACK + LEAST_NS


def tell(times):
    return ", ".join(f"{objective} takes {ns:.0f} ns" for objective, ns in times.items())


def run(build, seed, folder):
    """(what is wrong, prices compared, prices without a formula, times by objective)."""
    problem = Problem(seed)
    paths = problem.write(folder)
    reports, texts = {}, []
    for objective in OBJECTIVES:
        report, text = decide(build, problem, paths, objective)
        texts += [text] if text else []
        reports |= {objective: report} if report else {}
    if texts:
        return texts, 0, 0, {}
    texts, count, skipped = wrong_prices(problem, reports)
    times = {objective: harness.predicted_ns(report) for objective, report in reports.items()}
    if is_worse(times):
        texts.append(tell(times))
    return texts, count, skipped, times


def main():
    build, names, _ = harness.arguments()
    first, count = harness.draw_seeds(FIRST, COUNT)
    seeds = [int(name) for name in names] or range(first, first + count)
    with tempfile.TemporaryDirectory() as folder:
        results = harness.each(lambda seed: run(build, seed, folder), seeds)
    failed = 0
    for seed, (texts, _, _, _) in zip(seeds, results):
        for text in texts:
            print(f"FAILED {seed}: {text}")
        failed += len(texts)
    _, counts, skipped, times = zip(*results)
    done = {"prices": sum(counts), "decisions": sum(map(bool, times)),
            "faster by time": sum(bool(each) and each["time"] * SLACK < each["balanced"] for each in times)}
    print(f"{', '.join(f'{count} {what}' for what, count in done.items())}, {sum(skipped)} prices without a formula")
    for what, least in AT_LEAST.items():
        # A part has what is due give or take a fifth; without an error each problem has its decision.
        least = least if count == COUNT else least * count // COUNT * 4 // 5
        if not names and done[what] < least:
            print(f"FAILED only {done[what]} {what}, expected at least {least}")
            failed += 1
    return harness.close(done["prices"] + done["decisions"], failed)


if __name__ == "__main__":
    sys.exit(main())
