"""Times programs of pipelines on two ranks beside one rank that does the same work: the speed-up, and what the schedule predicts.

    pipelines.py BUILD_DIR [--microbatches 8] [--rounds 7] [--calls 15] [--width 512] [--rows 32]

Stacks of equal layers (test/Runtime/stages.py): `forward` has two stages, `circular` four, two on each rank. In each round all programs run, in
turn, in processes of their own; of a round the medians of its calls count, of all rounds the median of the ratios. The prediction knows how often a rank
has nothing to do, and no messages: 2 m / (m + 1) for two stages. `busy` is the time of the slower stage's own commands in a call with a clock
around each, and so what is left to messages and waiting; load is that of the machine before and after.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "Runtime"))
from stages import Stack, lower, write


def measure(build, program, calls, folder):
    """(median seconds of a call, seconds that the busiest role computes)"""
    report = os.path.join(folder, "report.json")
    subprocess.run([f"{build}/bin/cleave-run", program, "--repeat", str(calls), "--report", report], check=True, capture_output=True)
    with open(report) as file:
        seconds = statistics.median(json.load(file)["runs"])
    subprocess.run([f"{build}/bin/cleave-run", program, "--repeat", "3", "--profile", "--report", report], check=True, capture_output=True)
    with open(report) as file:
        roles = json.load(file).get("roles", [{"busy_seconds": seconds}])  # which a single one is not
    return seconds, max(role["busy_seconds"] for role in roles)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, default in (("microbatches", 8), ("rounds", 7), ("calls", 15), ("width", 512), ("rows", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()

    def stack(ranks, stages, layers):
        return Stack({"stage": ranks}, options.microbatches, stages, width=options.width, inner=2 * options.width, rows=options.rows,
                     layers=layers, has_skip=False, is_splat=True)

    stacks = {"one rank": stack(1, 4, 1), "forward": stack(2, 2, 2), "circular": stack(2, 4, 1)}
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for name, which in stacks.items():
            own = os.path.join(folder, name.replace(" ", "-"))
            os.mkdir(own)
            programs[name], error = lower(options.build, write(which), own)
            if error:
                sys.exit(error)
        load = os.getloadavg()[0]
        rounds = [{name: measure(options.build, program, options.calls, folder) for name, program in programs.items()}
                  for _ in range(options.rounds)]
    print("| schedule | ms | ms, busiest rank alone | speed-up | of rounds | predicted | measured / predicted |")
    print("|---|---|---|---|---|---|---|")
    for name, which in stacks.items():
        ratios = sorted(each["one rank"][0] / each[name][0] for each in rounds)
        seconds, busy = (statistics.median(each[name][i] for each in rounds) for i in range(2))
        measured, predicted = statistics.median(ratios), which.speed_up()
        print(f"| {name} | {seconds * 1e3:.2f} | {busy * 1e3:.2f} | {measured:.3f} | {ratios[0]:.2f}-{ratios[-1]:.2f} | "
              f"{predicted:.3f} | {measured / predicted:.3f} |")
    print(f"{options.microbatches} microbatches, {os.cpu_count()} cores, {options.rounds} rounds of {options.calls} calls, "
          f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
