"""The golden sharding cases: right values, no more bytes than needed, never more than the peer.

Usage: check.py BUILD_DIR [--fix-table] [--outlined|--ordered|--program|--emulated] [NAME...]

A case passes if it runs with equal values at the least known bytes (2 % slack), or at least no more than the peer, and
splits the compute at least as well as the peer. A case that waits for a rule must say so: a refusal that names the
reason, or a remark on the op that is replicated. The suite fails when fewer than MINIMUM cases are at the minimum, or
when docs/generated/golden.md is not the table of this run. README.md in this folder explains the table. With --outlined
what runs has been lowered to kernels, with --ordered to commands on memory, with --program it is compiled and run by the
executor; the table must be the same. Over all cases none may send more than the peer, and where the peer is above the least known
the geometric mean of our bytes over its bytes is at most MEAN.
"""
import json
import math
import os
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from case import draw
from make import write
from table import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
MINIMUM = 183
SLACK = 1.02
MEAN = 0.41


def recorded(case):
    """The arrays of NAME.npz, `in:NAME` and `out:NAME`; of a case that has none, the inputs."""
    path = os.path.join(HERE, case.name + ".npz")
    return dict(np.load(path)) if case.expect is None else {f"in:{name}": array for name, array in draw(case).items()}


def sample_difference(outputs, expect, rtol, atol):
    """Where outputs differ from their first elements and their sum, or an empty string."""
    for name, (first, abs_sum) in expect.items():
        got = outputs[name].astype(np.float64).ravel()
        scale = float(np.abs(got).max(initial=0))
        if not np.allclose(got[:len(first)], first, rtol=max(rtol, 1e-5), atol=max(atol, 1e-5) * scale):
            return f"{name} begins with {got[:len(first)]}, expected {first}"
        if not np.isclose(np.abs(got).sum(), abs_sum, rtol=1e-4, atol=0):
            return f"{name}: the sum of absolute values is {np.abs(got).sum()}, expected {abs_sum}"
    return ""


def difference(case, outputs, arrays):
    rtol, atol = (0, 0) if case.exact else (1e-4, 1e-5)
    if case.expect:
        return sample_difference(outputs, case.expect, rtol, atol)
    return harness.difference(outputs, arrays, rtol, atol)


def judge(case, report):
    """(verdict, note) of a case that ran with the right values."""
    sent = sum(total["wire_bytes_per_rank"] for total in report["totals"].values())
    flops, spread = report["flops"], case.spread or (case.peer.spread if case.peer else 1)
    if flops["per_rank"] * spread > flops["total"] * SLACK:
        return "FAILED", f"a rank computes {flops['per_rank']} of {flops['total']} flops, at most 1 / {spread} is right"
    if case.least is not None and sent < case.least / SLACK:
        return "FAILED", f"sends less than the least known {case.least}: the table is wrong, or nothing was split"
    if case.least is not None and sent <= case.least * SLACK:
        return "minimum", ""
    if not case.peer or sent > case.peer.bytes * SLACK:
        return "FAILED", f"sends more than the peer's {case.peer.bytes}" if case.peer else "sends more than the least"
    return ("runs", "no minimum is claimed") if case.least is None else ("above", "")


def run(build, case, flags, folder):
    """(verdict, bytes or None, note)."""
    arrays = recorded(case)
    inputs, outputs, report = (os.path.join(folder, f"{case.name}.{kind}") for kind in ("in.npz", "out.npz", "json"))
    np.savez(inputs, **{name[3:]: array for name, array in arrays.items() if name.startswith("in:")})
    model, plan = write(case, folder)
    done = harness.cleave(build, "run", model, "--plan", plan, "--inputs", inputs, "--outputs", outputs,
                          "--report", report, "--remarks", "--quiet", *flags)
    reason, words = case.waits_for or ("", "")
    if done.returncode == 1 and reason and words in done.stderr:
        return "next", None, reason
    if done.returncode:
        return "FAILED", None, f"exit {done.returncode}: {done.stderr.strip()[:300]}"
    if text := difference(case, np.load(outputs), arrays):
        return "FAILED", None, "values: " + text
    with open(report) as file:
        report = json.load(file)
    sent = sum(total["wire_bytes_per_rank"] for total in report["totals"].values())
    if reason:
        return ("next", sent, reason) if words in done.stderr else ("FAILED", sent, f"no remark says {words}")
    verdict, note = judge(case, report)
    return verdict, sent, note


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summarize(rows):
    """(what is wrong over all cases, lines for the table's foot)."""
    ran = [(case, sent) for case, (_, sent, _) in rows if sent is not None and case.peer]
    above = [case.name for case, sent in ran if sent > case.peer.bytes]
    least = sum(verdict == "minimum" for _, (verdict, _, _) in rows)
    both = [(case, sent) for case, sent in ran if sent and case.peer.bytes]
    apart = [sent / case.peer.bytes for case, sent in both if case.least is None or case.peer.bytes > case.least * SLACK]
    bounded = [(case.least, sent, case.peer.bytes) for case, sent in both if case.least]
    ours, bound = mean([sent / peer for _, sent, peer in bounded]), mean([least / peer for least, _, peer in bounded])
    repeated = [case for case, _ in ran if case.spread and case.spread < case.peer.spread]
    free = sum(not sent and case.peer.bytes > 0 for case, sent in ran)
    wrong = [f"sends more than the peer: {name}" for name in above]
    wrong += [f"{least} at the minimum, expected at least {MINIMUM}"] * (least < MINIMUM)
    wrong += [f"the geometric mean over cases in which the peer is above the least is {mean(apart):.3f}, expected {MEAN}"] * (mean(apart) > MEAN)
    wrong += [f"the geometric mean is {ours:.3f}, that of the least known {bound:.3f}"] * (ours > bound * SLACK)
    return wrong, [
        f"At the minimum: {least} of {len(rows)}. Above the peer: {len(above)} of {len(ran)} that run and have one.", "",
        f"Bytes over the peer's, geometric mean: {mean(apart):.2f} of the {len(apart)} cases in which the peer sends more than the least known,",
        f"{ours:.2f} of all {len(both)} in which both send something (the least known over the peer's is {bound:.2f} there: most are cases in which the peer is",
        f"at the minimum). {free} more send nothing where the peer does. In every case that runs a rank's part of the compute is at most the peer's (2 % slack),",
        f"but in those whose note in `test/Golden/table` gives another `spread`: {', '.join(f'`{case.name}`' for case in repeated) or 'none'}."]


def format_table(rows, foot):
    lines = ["<!-- Generated by test/Golden/check.py --fix-table; do not edit. -->", "",
             "# Golden cases: bytes that the busiest rank sends", "",
             "For: compiler engineers who look at what the solver decides. [What a case is](../../test/Golden/README.md).", "",
             "| case | verdict | bytes | least known | peer (JAX 0.10.2, Shardy) | note |", "|---|---|---|---|---|---|"]
    for case, (verdict, sent, note) in rows:
        lines.append(f"| {case.name} | {verdict} | {'' if sent is None else sent} | {case.least} | "
                     f"{case.peer.bytes if case.peer else ''} | {note} |")
    return "\n".join([*lines, "", *foot]) + "\n"


def main():
    build, names, flags = harness.arguments("--fix-table", *harness.LOWERINGS)
    how = harness.lower(flags)
    cases = harness.select(CASES, names).values()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(zip(cases, harness.each(lambda case: run(build, case, how, folder), cases)))
    for case, (verdict, sent, note) in rows:
        print(f"{verdict:8s} {case.name:28s} {sent} (least {case.least}, peer {case.peer.bytes if case.peer else '-'}) {note}")
    failed = sum(verdict == "FAILED" for _, (verdict, _, _) in rows)
    if len(rows) == len(CASES):
        wrong, foot = summarize(rows)
        print("\n".join([*wrong, *foot]))
        failed += len(wrong) + harness.check_generated("golden.md", format_table(rows, foot), "--fix-table" in flags)
    return harness.close(len(rows), failed)


if __name__ == "__main__":
    sys.exit(main())
