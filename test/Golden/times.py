"""Golden cases decided for the least time on machines that people have.

Usage: times.py BUILD_DIR [NAME...]

What `--optimize=time` decides must not take longer, as predicted, than what the other objectives
decide for the same machine, and be as right. So small tensors are gathered once where links have latency, and only there:
in some cases it must be faster, or nothing was decided by time.
"""
import json
import os
import sys
import tempfile

import numpy as np

import check
import harness

# name -> in how many cases time is saved, at least.
CLUSTERS = {"2x8xH100-ib": 51, "cpu-threads": 25}
# As predicted with kernels formed, each with its launch.
HOW = harness.LOWERINGS["--outlined"]
SLACK = 1.01
OBJECTIVES = ["time", "balanced", "bytes"]


def run(build, case, cluster, folder):
    """(problem, nanoseconds per objective); nothing of a case that waits for something."""
    arrays = check.recorded(case)
    stem = os.path.join(folder, f"{case.name}.{cluster}")
    inputs, outputs, report = (f"{stem}.{kind}" for kind in ("in.npz", "out.npz", "json"))
    np.savez(inputs, **{name[3:]: array for name, array in arrays.items() if name.startswith("in:")})
    model, plan = check.write(case, folder)
    times = []
    for objective in OBJECTIVES:
        done = harness.cleave(build, "run", model, "--plan", plan, "--inputs", inputs, "--outputs", outputs, "--report",
                              report, "--quiet", "--cluster", cluster, "--optimize", objective, *HOW)
        if done.returncode == 1 and case.waits_for and case.waits_for[1] in done.stderr:
            return None
        if done.returncode:
            return f"{objective}: exit {done.returncode}: {done.stderr.strip()[:300]}", []
        if text := check.difference(case, np.load(outputs), arrays):
            return f"{objective}: values: {text}", []
        with open(report) as file:
            times.append(harness.predicted_ns(json.load(file)))
    if times[0] > min(times) * SLACK:
        return f"{times[0]:.0f} ns, otherwise decided {min(times):.0f} ns", times
    return "", times


def main():
    build, names, _ = harness.arguments()
    cases = list(harness.select(check.CASES, names).values())
    passed = failed = 0
    for cluster, least in CLUSTERS.items():
        with tempfile.TemporaryDirectory() as folder:
            rows = list(zip(cases, harness.each(lambda case: run(build, case, cluster, folder), cases)))
        saved = 0
        for case, row in rows:
            problem, times = row or ("", [])
            if problem:
                print(f"FAILED {case.name} on {cluster}: {problem}")
            failed += bool(problem)
            passed += bool(row) and not problem
            saved += bool(times) and times[0] * SLACK < times[1]
        print(f"{cluster}: of {len(rows)} cases time is saved in {saved}")
        if not names and not harness.is_drawn() and saved < least:
            print(f"FAILED {cluster}: time is saved in {saved} cases, expected at least {least}")
            failed += 1
    return harness.close(passed + failed, failed)


if __name__ == "__main__":
    sys.exit(main())
