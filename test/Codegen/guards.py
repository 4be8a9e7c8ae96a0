"""Kernels of host programs between pages that nobody may touch: each operand, and each temporary of a kernel, first ends at one, then begins
behind one (Guards.h). Any byte read or written outside is a failed case that names the kernel, the operand or temporary, and the byte.

Usage: guards.py BUILD_DIR [NAME...]

Cases are ONNX's node tests and the fixtures, as programs on one rank; random programs on several, in f32 and in bf16; and files of kernels. The
last line but one says how many these were. The suites `kernels` and `windows` and all of `CleaveCodegenTests` run theirs
between guards, too.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(1, os.path.join(os.path.dirname(sys.path[0]), "Onnx"))
import conformance
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(harness.ROOT, "test", "Models")
FILES = ["kernels.mlir", "pairs.mlir", "split.mlir"]
# Random programs by how they are run: seeds from the first on, and how many.
PROGRAMS = {"programs": ([], 1, 200), "programs-uneven": (["--uneven"], 1, 100), "programs-bf16": (["--bf16"], 1, 50)}
SLICE = 25
# Node tests go in so many parts, which are drawn one by one.
PARTS = 64
# Outputs are compared elsewhere; here they show that kernels ran on what they were meant for.
FIXTURE_TOLERANCE = (5e-2, 5e-2)
# The suite cannot shrink unnoticed.
LEAST = {"kernels": 55000, "operands": 170000, "temporaries": 20000}


def fixtures():
    """Rows for cleave-conformance."""
    names = sorted(file[:-5] for file in os.listdir(MODELS) if file.endswith(".onnx"))
    return [(f"model-{name}", *(os.path.join(MODELS, name + end) for end in (".onnx", ".npz")), *FIXTURE_TOLERANCE) for name in names]


def of_models(build, rows):
    """(wrong, texts) of models: what is wrong with each that is, and what was counted."""
    results = harness.conformance(build, rows, "--guards")
    missing = [f"{name}: no result" for name, *_ in rows if name not in results]
    wrong = [f"{name}: {status} {reason}" for name, (status, reason) in results.items() if status in ("WRONG", "CRASH")]
    return len(rows), missing + wrong, [reason for _, reason in results.values()]


def of_programs(build, flags, seed, count):
    done = subprocess.run([f"{build}/bin/cleave-differential", "--guards", *flags, "--seed", str(seed), "--count", str(count)],
                          capture_output=True, text=True, errors="replace")
    found = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    if not found:
        return count, [f"seeds {seed} to {seed + count - 1}: exit {done.returncode}: {done.stderr[-2000:]}"], []
    return count, [done.stderr[-4000:]] * (int(found[-1][1]) > 0), [done.stdout]


def of_file(build, name):
    done = subprocess.run([f"{build}/bin/cleave-kernels", os.path.join(HERE, name), "--check"], capture_output=True, text=True)
    found = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    if not found:
        return 1, [f"{name}: exit {done.returncode}: {done.stderr[-2000:]}"], []
    right, wrong = map(int, found[-1])
    return right + wrong, [f"{name}: {done.stderr[-4000:]}"] * (wrong > 0), [done.stdout]


def cases(build, folder):
    """What is to be run, by name: functions."""
    rows = [conformance.prepare(name, folder) for name in sorted(conformance.FOLDERS)]
    parts = [rows[i::PARTS] for i in range(PARTS)]
    yield from ((f"nodes-{i}", lambda part=part: of_models(build, part)) for i, part in enumerate(parts))
    yield from ((row[0], lambda row=row: of_models(build, [row])) for row in fixtures())
    for name, (flags, first, count) in PROGRAMS.items():
        for seed in range(first, first + count, SLICE):
            yield f"{name}-{seed}", lambda flags=flags, seed=seed: of_programs(build, flags, seed, SLICE)
    yield from ((name, lambda name=name: of_file(build, name)) for name in FILES)


def main():
    build, names, _ = harness.arguments()
    with tempfile.TemporaryDirectory() as folder:
        chosen = harness.select(dict(cases(build, folder)), names)
        results = harness.each(lambda case: case(), chosen.values())
    count, failed, texts = 0, 0, []
    for name, (number, wrong, counted) in zip(chosen, results):
        count, failed, texts = count + number, failed + len(wrong), texts + counted
        for text in wrong:
            print(f"FAILED {name}: {text}")
    counts = dict(zip(LEAST, harness.count_guarded(texts)))
    if not names and not harness.is_drawn() and any(count < LEAST[what] for what, count in counts.items()):
        print(f"expected at least {LEAST}, there were {counts}")
        failed += 1
    print("{kernels} kernels with {operands} operands and {temporaries} temporaries ran between guards".format(**counts))
    return harness.close(count, failed)


if __name__ == "__main__":
    sys.exit(main())
