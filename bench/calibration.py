"""Holds predicted times against measured ones, on a cluster file of `cleave bench --calibrate`.

    calibration.py BUILD_DIR [--cluster FILE|NAME] [--rounds 5] [--calls 200]

Without `--cluster` the machine is calibrated first. Eight models of test/Models run on one rank and on two, and two of them under several
plans of two ranks. All programs run in turn, so many rounds; the least call of all counts, as it does for calibration, and load is told. The
first table is predicted / measured. The second is order: of any two plans of one model that are predicted to differ by more than 15 %, which
one is faster. Meant for a quiet machine: with fewer idle cores than ranks, ranks wait for each other's turn.
"""
import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

MODELS = [("gpt2_dyn18", "batch=8,seq=32"), ("gpt2_dyn18", "batch=2,seq=16"), ("bert_dyn18", ""), ("llama_gqa_dyn18", "batch=8,seq=64"),
          ("vit_dyn18", "batch=4"), ("resnet_ts17", "batch=4"), ("unet_dyn18", ""), ("moe_dyn18", "")]
# Of one model, so that their times can be compared: replicated, found, and by style.
PLANS = [["--mesh", "x=2"], ["--devices", "2"], *(["--mesh", "x=2", "--like", style] for style in ("data", "fsdp", "megatron", "context"))]
ORDERED = [("gpt2_dyn18", "batch=8,seq=32"), ("llama_gqa_dyn18", "batch=4,seq=32")]
LEAST_DIFFERENCE = 1.15


class Case:
    """A program, what it is predicted to take, and the least that a call of it took so far; seconds."""

    def __init__(self, cleave, folder, cluster, model, dims, how):
        self.model, self.dims, self.how = model, dims, how
        self.program = os.path.join(folder, re.sub(r"\W+", "_", "_".join([model, dims, *how])) + ".cleave")
        here = os.path.dirname(os.path.abspath(__file__))
        command = [cleave, "compile", os.path.join(here, "..", "test", "Models", model + ".onnx"), "--cluster", cluster, *how, "--quiet",
                   "-o", self.program, "--report", self.program + ".json"]
        subprocess.run(command + (["--dim", dims] if dims else []), check=True)
        with open(self.program + ".json") as file:
            time = json.load(file)["time"]
        self.predicted = (time["compute_ns"] + time["communication_ns"]) / 1e9
        self.measured = float("inf")

    def measure(self, cleave, calls):
        report = self.program + ".runs.json"
        subprocess.run([cleave, "bench", self.program, "--repeat", str(calls), "--quiet", "--report", report], check=True,
                       stdout=subprocess.DEVNULL)
        with open(report) as file:
            self.measured = min(self.measured, *json.load(file)["runs"])

    def name(self):
        return " ".join([self.model, self.dims, *self.how])


def show_ratios(cases):
    print("| program | predicted us | measured us | predicted / measured |\n|---|---|---|---|")
    for case in cases:
        print(f"| {case.name()} | {case.predicted * 1e6:.1f} | {case.measured * 1e6:.1f} | {case.predicted / case.measured:.2f} |")
    off = [abs(case.predicted / case.measured - 1) for case in cases]
    print(f"\n{sum(one <= 0.15 for one in off)} of {len(off)} within 15 %, median {statistics.median(off):.1%}, most {max(off):.1%}\n")


def show_order(cases):
    """Returns how many pairs are in the other order."""
    print("| predicted to be faster | than | predicted | measured |\n|---|---|---|---|")
    wrong = pairs = 0
    for one, other in itertools.combinations(cases, 2):
        fast, slow = sorted((one, other), key=lambda case: case.predicted)
        if (one.model, one.dims) == (other.model, other.dims) and slow.predicted > LEAST_DIFFERENCE * fast.predicted:
            pairs += 1
            wrong += slow.measured < fast.measured
            print(f"| {fast.name()} | {' '.join(slow.how)} | {slow.predicted / fast.predicted:.2f} | {slow.measured / fast.measured:.2f} |")
    print(f"\n{pairs - wrong} of {pairs} pairs in the order that was predicted")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--cluster")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    cleave = os.path.join(options.build, "bin", "cleave")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        cluster = options.cluster
        if not cluster:
            cluster = os.path.join(folder, "cluster.yaml")
            subprocess.run([cleave, "bench", "--calibrate", "-o", cluster], check=True)
            print()
        ratios = [Case(cleave, folder, cluster, *model, ["--devices", ranks]) for model in MODELS for ranks in ("1", "2")]
        ordered = [Case(cleave, folder, cluster, *model, plan) for model in ORDERED for plan in PLANS]
        for _ in range(options.rounds):
            for case in ratios + ordered:
                case.measure(cleave, options.calls)
        show_ratios(ratios)
        wrong = show_order(ordered)
    print(f"{os.cpu_count()} cores, {options.rounds} rounds, load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
