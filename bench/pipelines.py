"""Times programs of pipelines on two ranks beside what their schedules predict.

    pipelines.py BUILD_DIR [--microbatches 8] [--rounds 7] [--calls 15] [--width 512] [--rows 32] [--only inference|training]

Inference: stacks of equal layers (test/Runtime/stages.py), beside one rank that does the same work: `forward` has two stages, `circular` four, two on each
rank. In each round all programs run, in turn, in processes of their own; of a round the medians of its calls count, of all rounds the median of the ratios.
The prediction knows how often a rank has nothing to do, and no messages: 2 m / (m + 1) for two stages. `busy` is the time of the slower stage's own
commands in a call with a clock around each, and so what is left to messages and waiting.

Training: layers of a product and a tanh with SGD. A trace of each program says when each action of its table ran (`cleave schedule --measured`): of each
stage's F, I and W the medians over microbatches and rounds are the costs of which the same table is simulated, without messages. Held against that is the
median of what the microbatches of a step took, from the first action to the last. `step` is a whole step by the clock, with the update.

Load is that of the machine before and after: with more than about 0.3 of others on two cores the figures say nothing.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper, parser

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "Runtime"))
from stages import Stack, lower, write

LAYERS = 8
# Of training: stages of a rank.
TRAINED = {"gpipe": 1, "1f1b": 1, "zb-h1": 1, "zb-v": 2, "interleaved": 2}
# Beyond this the prediction does not hold.
WITHIN = 0.10


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


def infer(options, folder):
    def stack(ranks, stages, layers):
        return Stack({"stage": ranks}, options.microbatches, stages, width=options.width, inner=2 * options.width, rows=options.rows,
                     layers=layers, has_skip=False, is_splat=True)

    stacks, programs = {"one rank": stack(1, 4, 1), "forward": stack(2, 2, 2), "circular": stack(2, 4, 1)}, {}
    for name, which in stacks.items():
        own = os.path.join(folder, name.replace(" ", "-"))
        os.mkdir(own)
        programs[name], error = lower(options.build, write(which), own)
        if error:
            sys.exit(error)
    rounds = [{name: measure(options.build, program, options.calls, folder) for name, program in programs.items()} for _ in range(options.rounds)]
    print("| schedule | ms | ms, busiest rank alone | speed-up | of rounds | predicted | measured / predicted |")
    print("|---|---|---|---|---|---|---|")
    for name, which in stacks.items():
        ratios = sorted(each["one rank"][0] / each[name][0] for each in rounds)
        seconds, busy = (statistics.median(each[name][i] for each in rounds) for i in range(2))
        measured, predicted = statistics.median(ratios), which.speed_up()
        print(f"| {name} | {seconds * 1e3:.2f} | {busy * 1e3:.2f} | {measured:.3f} | {ratios[0]:.2f}-{ratios[-1]:.2f} | "
              f"{predicted:.3f} | {measured / predicted:.3f} |")
    print()


class Training:
    """The same layers by each schedule."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        width, batch, random = options.width, options.rows * options.microbatches, np.random.default_rng(1)
        nodes = " ".join(f"m{i} = MatMul({f't{i - 1}' if i else 'x'}, w{i}) t{i} = Tanh(m{i})" for i in range(LAYERS))
        model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g (float[{batch}, {width}] x) => (float[{batch}, {width}] t{LAYERS - 1}) {{ {nodes} }}')
        for i in range(LAYERS):
            model.graph.initializer.append(numpy_helper.from_array((random.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32), f"w{i}"))
        for i, node in enumerate(model.graph.node):
            node.name = f"/{i // 2}/{node.op_type}"
        onnx.save(model, self.at("model.onnx"))
        np.savez(self.at("data.npz"), **{name: random.standard_normal((batch, width)).astype(np.float32) for name in ("x", "labels")})
        for name, chunks in TRAINED.items():
            with open(self.at(f"{name}.yaml"), "w") as file:
                file.write(f"mesh: {{stage: 2}}\npipeline: {{axis: stage, microbatches: {options.microbatches}, schedule: {name}, chunks: {chunks}}}\n"
                           f"train: {{loss: {{kind: mse, of: t{LAYERS - 1}}}, optimizer: sgd, rate: 1e-3}}\n")
            self.call("cleave", "compile", self.at("model.onnx"), "--train", "--plan", self.at(f"{name}.yaml"), "-o", self.at(f"{name}.cleave"), "--quiet")

    def at(self, name):
        return os.path.join(self.folder, name)

    def call(self, program, *words):
        done = subprocess.run([f"{self.options.build}/bin/{program}", *words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program} {' '.join(words)}: exit {done.returncode}: {done.stderr[-400:]}")

    def step(self, name):
        """Of one round: the report of the schedule with what the last step took, and milliseconds of a step in the middle of all."""
        self.call("cleave-run", self.at(f"{name}.cleave"), "--data", self.at("data.npz"), "--steps", str(self.options.calls), "--log", self.at("log.jsonl"))
        with open(self.at("log.jsonl")) as file:
            took = [line["seconds"] for line in map(json.loads, file) if "seconds" in line]
        self.call("cleave-run", self.at(f"{name}.cleave"), "--data", self.at("data.npz"), "--steps", "5", "--trace", self.at("trace.json"))
        self.call("cleave", "schedule", self.at("model.onnx"), "--train", "--plan", self.at(f"{name}.yaml"), "--measured", self.at("trace.json"), "--report",
                  self.at("report.json"), "--quiet")
        with open(self.at("report.json")) as file:
            return json.load(file), statistics.median(took) * 1e3 if took else float("nan")

    def predict(self, name, reports):
        """Milliseconds of the table, with the median times of its stages; without messages."""
        costs = {}
        for kind in "FIW":
            costs[kind] = []
            for stage in range(reports[0]["stages"]):
                took = [action["end"] - action["start"] for report in reports for row in report["measured"]["programs"] for action in row
                        if action["stage"] == stage and action["do"] == kind]
                costs[kind].append(statistics.median(took) if took else 0)
        # B of a table is I and then W, of which a trace has the sum.
        for stage in range(reports[0]["stages"]):
            both = [action["end"] - action["start"] for report in reports for row in report["measured"]["programs"] for action in row
                    if action["stage"] == stage and action["do"] == "B"]
            if both:
                costs["I"][stage], costs["W"][stage] = statistics.median(both), 0
        channels = [{"from": stage, "to": stage + 1, "latency": 0, "bytes": 0} for stage in range(reports[0]["stages"] - 1)]
        with open(self.at("costs.json"), "w") as file:
            json.dump({"costs": {**costs, "bandwidth": 0}, "channels": channels}, file)
        self.call("cleave", "schedule", "--schedule", name, "--ranks", "2", "--microbatches", str(self.options.microbatches), "--chunks", str(TRAINED[name]),
                  "--costs", self.at("costs.json"), "--report", self.at("predicted.json"), "--quiet")
        with open(self.at("predicted.json")) as file:
            told = json.load(file)
        return told["makespan"] / 1e6, told["bubble"]["makespan"], costs

    def run(self):
        """Prints the table; how many predictions do not hold."""
        rounds = [{name: self.step(name) for name in TRAINED} for _ in range(self.options.rounds)]
        print("| schedule | ms of the microbatches | of rounds | predicted ms | measured / predicted | bubble | predicted | F, I, W of the stages, ms | step ms |")
        print("|---|---|---|---|---|---|---|---|---|")
        off = 0
        for name in TRAINED:
            reports = [each[name][0] for each in rounds]
            took = sorted(report["measured"]["makespan"] / 1e6 for report in reports)
            bubble = statistics.median(report["measured"]["bubble"]["makespan"] for report in reports)
            predicted, least, costs = self.predict(name, reports)
            measured = statistics.median(took)
            off += abs(measured / predicted - 1) > WITHIN
            stages = "; ".join(", ".join(f"{costs[kind][stage] / 1e6:.2f}" for kind in "FIW") for stage in range(reports[0]["stages"]))
            print(f"| {name} | {measured:.2f} | {took[0]:.2f}-{took[-1]:.2f} | {predicted:.2f} | {measured / predicted:.3f} | {bubble:.1%} | {least:.1%} | {stages} | "
                  f"{statistics.median(each[name][1] for each in rounds):.2f} |")
        print()
        return off


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build")
    for name, default in (("microbatches", 8), ("rounds", 7), ("calls", 15), ("width", 512), ("rows", 32)):
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--only", choices=["inference", "training"])
    options = options.parse_args()
    load, off = os.getloadavg()[0], 0
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "training":
            infer(options, folder)
        if options.only != "inference":
            off = Training(options, folder).run()
    print(f"{options.microbatches} microbatches, {os.cpu_count()} cores, {options.rounds} rounds of {options.calls} calls, "
          f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {off} of {len(TRAINED)} schedules of training further than {WITHIN:.0%} from the prediction")


if __name__ == "__main__":
    main()
