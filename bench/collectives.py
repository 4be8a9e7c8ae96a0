"""Measures collectives of thread ranks, and prints a table.

    collectives.py BUILD_DIR [--ranks 2 4] [--rounds 5] [--seconds 0.2]

The bench program runs once per round and number of ranks, in turn; per operation the least minimum, the median of the medians
and their spread over the rounds count. Load is that of the machine before and after: on a shared machine medians are of the
minute, minima of the code. `4 MB` is the operand of an all_reduce and a reduce_scatter, the result of an all_gather, and both of an all_to_all.
"""
import argparse
import os
import statistics
import subprocess


def measure(program, ranks, seconds):
    """(operation, bytes) -> (minimum, median) in microseconds, in the order in which the program prints them."""
    done = subprocess.run([program, str(ranks), str(seconds)], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(name, int(size)): (float(least), float(median)) for name, size, least, median, *_ in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    options = parser.parse_args()
    program = os.path.join(options.build, "bin", "bench", "CollectivesBench")
    load = os.getloadavg()[0]
    rounds = [{ranks: measure(program, ranks, options.seconds) for ranks in options.ranks} for _ in range(options.rounds)]
    print("| ranks | operation | bytes | us, least | us, median | medians of rounds | least, of memcpy 4 MB |")
    print("|---|---|---|---|---|---|---|")
    for ranks in options.ranks:
        copy = min(measured[ranks]["memcpy", 4 << 20][0] for measured in rounds)
        for name, size in rounds[0][ranks]:
            least = min(measured[ranks][name, size][0] for measured in rounds)
            medians = [measured[ranks][name, size][1] for measured in rounds]
            share = f"{least / copy:.2f}" if size == 4 << 20 else ""
            print(f"| {ranks} | {name} | {size:,} | {least:.2f} | {statistics.median(medians):.2f} | "
                  f"{min(medians):.2f}-{max(medians):.2f} | {share} |")
    print(f"{os.cpu_count()} cores, {options.rounds} rounds, load {load:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
