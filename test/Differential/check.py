"""The differential suite: random programs, meshes and annotations, with fixed seeds.

Usage: check.py BUILD_DIR [--emulated|--uneven] [--bf16] [--seed N] [--count N]

Each is lowered to kernels, compiled and run as a program, too; with --emulated for CUDA, on devices that this machine plays: of
their contractions libraries must compute some, one in ten programs; with --uneven of sizes that meshes do not divide, where the
evaluator fills padding with NaN. With --bf16 programs store bf16 and are held against results in double: three in four results must be compared (a
fifth jumps where it is rounded), most of programs in which something is bf16, and few may be as rough on one device as on ranks (Narrow.cpp).
Runs the cases in slices, so that a crash costs one slice and is told with its seed.
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
COMPARED, NARROW, ROUGH, SKIPPED = "results compared", "results of programs with bf16", "rough results", "results skipped"
# Shares of all results.
# Of all programs, and of a fourth of them, whose shares vary more.
MOST_SKIPPED, MOST_SKIPPED_OF_DRAWN, MOST_ROUGH = 0.25, 0.35, 0.05
COUNTED = "|".join((CALLS, PARTS, RINGS, COMPARED, NARROW, ROUGH, SKIPPED))


def run(build, how, seed, count):
    """(passed, failed, output, counters by name) of `count` seeds from `seed` on."""
    done = subprocess.run([f"{build}/bin/cleave-differential", "--seed", str(seed), "--count", str(count), *how],
                          capture_output=True, text=True,
                          env={**os.environ, "CLEAVE_CUDA_LIBRARY": "libcleave_emulated_cuda.so",
                               "CLEAVE_EMULATION_DEVICES": "16"})
    found = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    if found and sum(map(int, found[-1])) == count:
        counters = Counter({name: int(number) for number, name in re.findall(rf"^(\d+) ({COUNTED})", done.stdout, re.M)})
        return int(found[-1][0]), int(found[-1][1]), done.stderr, counters
    if count == 1:
        return 0, 1, done.stderr, Counter()
    parts = [run(build, how, seed + i, 1) for i in range(count)]
    passed, failed, texts, counters = zip(*parts)
    return sum(passed), sum(failed), "\n".join(texts), sum(counters, Counter())


def main():
    arguments = sys.argv[1:]
    how = [word for word in ("--emulated", "--uneven", "--bf16") if word in arguments] + ["--program"] * ("--emulated" not in arguments)
    arguments = [word for word in arguments if word not in how]
    options = {"--seed": 1, "--count": 2000}
    for name, number in zip(arguments[1::2], arguments[2::2]):
        options[name] = int(number)
    options["--seed"], options["--count"] = harness.draw_seeds(options["--seed"], options["--count"])
    first, end = options["--seed"], options["--seed"] + options["--count"]
    slices = [(seed, min(SLICE, end - seed)) for seed in range(first, end, SLICE)]
    results = harness.each(lambda part: run(arguments[0], how, *part), slices)
    for _, failed, text, _ in results:
        if failed:
            print(text)
    failed = sum(result[1] for result in results)
    counters = sum((result[3] for result in results), Counter())
    if "--bf16" in how:
        print(", ".join(f"{counters[name]} {name}" for name in (COMPARED, NARROW, ROUGH, SKIPPED)))
        total = counters[COMPARED] + counters[SKIPPED]
        skipped = MOST_SKIPPED_OF_DRAWN if harness.is_drawn() else MOST_SKIPPED
        for text, holds in (("most results are compared", counters[SKIPPED] < total * skipped),
                            ("few of them are rough", counters[ROUGH] < total * MOST_ROUGH),
                            ("half of them are of programs with bf16", counters[NARROW] > counters[COMPARED] / 2)):
            if not holds:
                print(f"it does not hold that {text}")
                failed += 1
    for name, programs in ((PARTS, 100), (RINGS, 25), (CALLS, 10))[:3 if "--emulated" in how and "--bf16" not in how else 2]:
        if counters[name] < options["--count"] // programs:
            print(f"{counters[name]} {name} in {options['--count']} programs, expected one in {programs}")
            failed += 1
    return harness.close(options["--count"], failed)


if __name__ == "__main__":
    sys.exit(main())
