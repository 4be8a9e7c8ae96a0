"""Runs every libFuzzer target for some seconds and closes with `N passed, N failed`.

Usage: run_fuzzers.py BUILD_DIR SECONDS [TARGET...]

Each target starts from the seeds in fuzz/corpus/TARGET. What it finds on the way, and the input of a crash, lie in the
build tree under fuzzing/TARGET; a failure prints the end of the log and the command that reproduces it.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTIONS = ["-rss_limit_mb=2048", "-timeout=10", "-max_len=4096", "-print_final_stats=1"]
# What a fuzzer may take beyond its seconds (start-up, its last input, a report) before it counts as hanging.
GRACE_SECONDS = 120


def run(build, seconds, target):
    """Whether `target` ran clean, and what there is to say."""
    seeds = os.path.join(ROOT, "fuzz", "corpus", target)
    found, crashes = (os.path.join(build, "fuzzing", target, name) for name in ("corpus", "crashes"))
    for folder in (found, crashes):
        os.makedirs(folder, exist_ok=True)
    if not os.path.isdir(seeds):
        return False, f"there are no seeds in {seeds}"
    binary = os.path.join(build, "bin", "fuzz", target)
    command = [binary, f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/", *OPTIONS, found, seeds]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"did not end {GRACE_SECONDS} s after its time"
    units = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stdout)
    if done.returncode == 0 and units and int(units[1]) > 0:
        return True, f"{units[1]} inputs"
    artifact = re.search(r"Test unit written to (\S+)", done.stdout)
    reproduce = f"\nreproduce with: {binary} {artifact[1]}" if artifact else ""
    return False, f"exit {done.returncode}\n{done.stdout[-6000:]}{reproduce}"


def main():
    build, seconds, wanted = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    folder = os.path.join(build, "bin", "fuzz")
    targets = wanted or sorted(os.listdir(folder))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for target, (good, text) in zip(targets, pool.map(lambda name: run(build, seconds, name), targets)):
            print(f"{target}: {'clean' if good else 'FAILED'}, {text}", flush=True)
            failed += not good
    print(f"{len(targets) - failed} passed, {failed} failed")
    return 1 if failed or not targets else 0


if __name__ == "__main__":
    sys.exit(main())
