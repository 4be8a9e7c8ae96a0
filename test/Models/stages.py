"""Every fixture, cut into 2, 3 and 4 stages by `pipe-assign-stages`.

Usage: stages.py BUILD_DIR [NAME...]

Held against the printed module, read here as text: every op but parameters, constants and the return has one stage, each
stage has ops, edges go forward, and what the notes say of ops adds up. Times too: stages sum up to the same whatever their
number, the slowest is what the remark says, and at most twice the bound (a row of ops can always be cut so that no part is
above sum / stages + the largest op, and the bound is the larger of the two).
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
WITHOUT_STAGE = ("nn.load", "nn.constant", "return", "func.return")


def read_ops(text):
    """(name, results, operands, stage or None) of each op of the function."""
    for line in text.split("\n"):
        found = re.match(r"\s+(?:(%[%\w:, ]+?) = )?((?:nn|spmd|func)\.\w+|return)\b(.*)", line)
        if not found or found[2] in ("func.func", "nn.param"):
            continue
        results = [name.split(":")[0].strip() for name in (found[1] or "").split(",") if name.strip()]
        stage = re.findall(r"pipe\.stage = (\d+) : i64", line)
        # Types and strings hold no values.
        operands = re.findall(r"%\w+", re.sub(r'"[^"]*"', "", found[3]))
        yield found[2], results, operands, int(stage[0]) if len(stage) == 1 else None if not stage else -1


def check_ops(ops, count):
    """What is wrong with the stages of a function's ops, or an empty string."""
    stage_of, numbers = {}, [0] * count
    for name, results, operands, stage in ops:
        if (stage is None) != (name in WITHOUT_STAGE) or stage == -1:
            return f"{name} {results} has {'no' if stage is None else 'a'} stage"
        if stage is None:
            continue
        if stage >= count:
            return f"{name} {results} is in stage {stage} of {count}"
        numbers[stage] += 1
        late = [operand for operand in operands if stage_of.get(operand, 0) > stage]
        if late:
            return f"{name} {results} of stage {stage} uses {late} of later ones"
        stage_of.update({result: stage for result in results})
    return "" if all(numbers) else f"ops by stage: {numbers}", numbers


def split(build, module, count):
    """(ops per stage, times per stage, bottleneck, bound); raises what is wrong."""
    done = subprocess.run([f"{build}/bin/cleave-opt", module, f"--pipe-assign-stages=stages={count} link-bytes-per-ns=1e9 link-ns=0"],
                          capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr[:300])
    told = check_ops(list(read_ops(done.stdout)), count)
    if isinstance(told, str):
        raise ValueError(told)
    if told[0]:
        raise ValueError(told[0])
    remark = re.search(r"the slowest takes (\d+) ns, no split is faster than (\d+) ns", done.stderr)
    notes = re.findall(r"stage \d+: (\d+) ops, (\d+) ns", done.stderr)
    if [int(ops) for ops, _ in notes] != told[1]:
        raise ValueError(f"notes say {notes}, the module has {told[1]} ops")
    return [int(ns) for _, ns in notes], int(remark[1]), int(remark[2])


def problem(case):
    build, name = case
    with tempfile.TemporaryDirectory() as folder:
        module = os.path.join(folder, "m.mlir")
        fixture = os.path.join(HERE, name)
        done = harness.cleave(build, "shard", fixture + ".onnx", "--inputs", fixture + ".npz", "--emit", "canonical", "-o", module,
                              "--quiet")
        if done.returncode:
            return done.stderr[:300]
        sums = set()
        for count in (2, 3, 4):
            times, bottleneck, bound = split(build, module, count)
            sums.add(sum(times))
            if max(times) != bottleneck or not -(-sum(times) // count) <= bound <= bottleneck <= 2 * bound:
                return f"{count} stages: times {times}, slowest {bottleneck}, bound {bound}"
        return "" if len(sums) == 1 else f"stages sum up to {sums}"


def main():
    build, names, _ = harness.arguments()
    found = sorted(path[:-len(".onnx")] for path in os.listdir(HERE) if path.endswith(".onnx"))
    cases = {name: (build, name) for name in found}
    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
