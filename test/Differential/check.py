"""The differential suite: random programs, meshes and wishes, with fixed seeds.

Usage: check.py BUILD_DIR [--emulated] [--seed N] [--count N]

Each is lowered to kernels, compiled and run as a program, too; with --emulated for CUDA, on devices that this machine plays: of
their contractions libraries must compute some, one in ten programs. Runs the cases in slices, so that a crash costs one slice and is told with its seed.
"""
import os
import re
import subprocess
import sys

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

SLICE = 50


def run(build, how, seed, count):
    """(passed, failed, output, calls of libraries) of `count` seeds from `seed` on."""
    done = subprocess.run([f"{build}/bin/cleave-differential", "--seed", str(seed), "--count", str(count), how],
                          capture_output=True, text=True,
                          env={**os.environ, "CLEAVE_CUDA_LIBRARY": "libcleave_emulated_cuda.so",
                               "CLEAVE_EMULATION_DEVICES": "16"})
    found = re.findall(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    if found and sum(map(int, found[-1])) == count:
        calls = re.findall(r"^(\d+) calls of libraries", done.stdout, re.M)
        return int(found[-1][0]), int(found[-1][1]), done.stderr, sum(map(int, calls))
    if count == 1:
        return 0, 1, done.stderr, 0
    parts = [run(build, how, seed + i, 1) for i in range(count)]
    passed, failed, texts, calls = zip(*parts)
    return sum(passed), sum(failed), "\n".join(texts), sum(calls)


def main():
    arguments = sys.argv[1:]
    how = "--emulated" if "--emulated" in arguments else "--program"
    arguments = [word for word in arguments if word != "--emulated"]
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
    failed, calls = sum(result[1] for result in results), sum(result[3] for result in results)
    if how == "--emulated" and calls < options["--count"] // 10:
        print(f"libraries computed {calls} commands of {options['--count']} programs")
        failed += 1
    return harness.close(options["--count"], failed)


if __name__ == "__main__":
    sys.exit(main())
