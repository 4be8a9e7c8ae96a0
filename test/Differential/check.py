"""The differential suite: random programs, meshes and wishes, with fixed seeds.

Usage: check.py BUILD_DIR [--emulated|--uneven] [--seed N] [--count N]

Each is lowered to kernels, compiled and run as a program, too; with --emulated for CUDA, on devices that this machine plays: of
their contractions libraries must compute some, one in ten programs; with --uneven of sizes that meshes do not divide, where the
evaluator fills padding with NaN. Runs the cases in slices, so that a crash costs one slice and is told with its seed.
"""
import os
import re
import subprocess
import sys
from collections import Counter

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

SLICE = 50
# What cleave-differential counts: a suite in which nothing of it happens shows nothing.
CALLS, PARTS, RINGS = "calls of libraries", "parts of sums", "programs with rings"


def run(build, how, seed, count):
    """(passed, failed, output, counters by name) of `count` seeds from `seed` on."""
    done = subprocess.run([f"{build}/bin/cleave-differential", "--seed", str(seed), "--count", str(count), *how],
                          capture_output=True, text=True,
                          env={**os.environ, "CLEAVE_CUDA_LIBRARY": "libcleave_emulated_cuda.so",
                               "CLEAVE_EMULATION_DEVICES": "16"})
    found = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    if found and sum(map(int, found[-1])) == count:
        counters = Counter({name: int(number) for number, name in re.findall(rf"^(\d+) ({CALLS}|{PARTS}|{RINGS})", done.stdout, re.M)})
        return int(found[-1][0]), int(found[-1][1]), done.stderr, counters
    if count == 1:
        return 0, 1, done.stderr, Counter()
    parts = [run(build, how, seed + i, 1) for i in range(count)]
    passed, failed, texts, counters = zip(*parts)
    return sum(passed), sum(failed), "\n".join(texts), sum(counters, Counter())


def main():
    arguments = sys.argv[1:]
    how = [word for word in ("--emulated", "--uneven") if word in arguments] + ["--program"] * ("--emulated" not in arguments)
    arguments = [word for word in arguments if word not in how]
    options = {"--seed": 1, "--count": 2000}
    while len(arguments) > 1:
        options[arguments[-2]] = int(arguments[-1])
        arguments = arguments[:-2]
    first, end = options["--seed"], options["--seed"] + options["--count"]
    slices = [(seed, min(SLICE, end - seed)) for seed in range(first, end, SLICE)]
    results = harness.each(lambda part: run(arguments[0], how, *part), slices)
    for _, failed, text, _ in results:
        if failed:
            print(text)
    failed = sum(result[1] for result in results)
    counters = sum((result[3] for result in results), Counter())
    for name, programs in ((PARTS, 100), (RINGS, 25), (CALLS, 10))[:3 if "--emulated" in how else 2]:
        if counters[name] < options["--count"] // programs:
            print(f"{counters[name]} {name} in {options['--count']} programs, expected one in {programs}")
            failed += 1
    return harness.close(options["--count"], failed)


if __name__ == "__main__":
    sys.exit(main())
