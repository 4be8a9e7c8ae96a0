"""Plans of steps that `cleave plan --train` finds, against plans that people write.

    found.py BUILD_DIR [CASE...]

A case is a model, a machine of four devices, and plans by hand for its step: data parallel, ZeRO of stage 3, stages by schedules with gradients. What is
found for as many devices is written to a file and taken like any other plan:

  * it takes no longer than any plan by hand decided by time, both predicted with kernels formed, but for half a percent (coordinate descent is
    not exhaustive); and no longer than one by hand within the memory of that;
  * within a limit that no step has room for which makes nothing again, it makes something again, or has other stages, and fits;
  * `cleave shard --train` with the file sends the bytes and has the peak that the search said, to the byte, and its time (under a limit the peak is that
    of buffers as they are planned);
  * `cleave train --check` with the file, and nothing else said of the step, has the gradients of one device.
"""
import json
import os
import sys
import tempfile

import numpy as np
import yaml

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness

MODELS = os.path.join(harness.ROOT, "test", "Models")
DEVICES, SLACK = 4, 1.005
STAGED = [f"mesh: {{stage: 4}}\npipeline: {{axis: stage, microbatches: 4, schedule: {name}}}" for name in ("1f1b", "zb-h1", "gpipe")]
# By model: sizes of dims, the section `train`, and the inputs that ranks share where they share the batch.
STEPS = {
    "gpt2_ts17": ({"batch": 8, "seq": 16}, "{loss: {kind: cross_entropy, of: logits, labels: {next: input_ids}}, optimizer: {kind: adamw, betas: [0.9, 0.95]}, clip: 1.0}",
                  ("input_ids", "attention_mask")),
    "resnet_ts17": ({"batch": 8}, "{loss: {kind: cross_entropy, of: logits}, optimizer: {kind: momentum, beta: 0.8}, rate: 0.01}", ("image", "labels")),
}
CASES = {f"{model} {cluster}": (model, cluster) for model in STEPS for cluster in ("cpu-threads", "8xH100-nvlink")}


def make_data(model, path):
    random = np.random.default_rng(7)
    if model.startswith("gpt2"):
        np.savez(path, input_ids=random.integers(0, 128, (8, 16)), attention_mask=np.ones((8, 16), np.int64))
    else:
        np.savez(path, image=random.standard_normal((8, 3, 32, 32)).astype(np.float32), labels=random.integers(0, 10, 8))


def list_by_hand(model):
    """Plans without what all have: sizes of dims and the step."""
    shared = "\n".join(f"  - {{tensor: {name}, dims: [data, ...]}}" for name in STEPS[model][2])
    return {"data": f"mesh: {{data: 4}}\nshard:\n{shared}", "zero": f"mesh: {{data: 4}}\nshard:\n{shared}\nZERO", "halves": f"mesh: {{stage: 2, data: 2}}\nshard:\n{shared}\n"
            "pipeline: {axis: stage, microbatches: 2}", **{f"stages {number}": text for number, text in enumerate(STAGED)}}


class Bench:
    def __init__(self, build, model, cluster, folder):
        self.build, self.cluster, self.folder = build, cluster, folder
        self.model = os.path.join(MODELS, model + ".onnx")
        self.dims, self.train = STEPS[model][:2]
        self.words = ["--dim", ",".join(f"{name}={size}" for name, size in self.dims.items())]

    def take(self, plan, phase="clustered"):
        """(ns, bytes sent, peak) of a plan by time: with kernels formed, or with memory planned."""
        report = os.path.join(self.folder, "taken.json")
        harness.must(self.build, "shard", self.model, "--train", "--plan", plan, "--optimize", "time", "--cluster", self.cluster, "--emit", phase, "--report", report, "-o",
               os.devnull, "--quiet")
        with open(report) as file:
            told = json.load(file)
        sent = sum(total["wire_bytes_per_rank"] for total in told["totals"].values())
        return told["time"].get("call_ns", harness.predicted_ns(told)), sent, told["peak_bytes_per_rank"]

    def take_by_hand(self, text, phase="clustered"):
        plan, train = os.path.join(self.folder, "hand.yaml"), yaml.safe_load(self.train)
        if text.endswith("ZERO"):
            text, train["zero"] = text.removesuffix("ZERO"), {"axis": "data", "stage": 3}
        with open(plan, "w") as file:
            file.write(text + "\n" + yaml.safe_dump({"dims": self.dims, "train": train}))
        return self.take(plan, phase)

    def find(self, *more):
        """(figures, the plan's file, the report's best), which is as it is said, and trains as one device does."""
        report, plan = os.path.join(self.folder, "found.json"), os.path.join(self.folder, "found.yaml")
        harness.must(self.build, "plan", self.model, *self.words, f"--train={self.train}", "--devices", str(DEVICES), "--cluster", self.cluster, "-o", plan, "--report", report,
               "--quiet", *more)
        with open(report) as file:
            best = json.load(file)["best"]
        said, taken = (best["seconds"] * 1e9, best["wire_bytes_per_rank"], best["memory"]["peak"]), self.take(plan)
        # Near a limit what is planned counts.
        if more:
            taken = (*taken[:2], max(taken[2], self.take(plan, "planned")[2]))
        if abs(taken[0] / said[0] - 1) > 1e-6 or taken[1:] != said[1:]:
            raise harness.Failed(f"the plan is said to take {said}, and takes {taken} (ns, bytes sent, peak)")
        harness.must(self.build, "train", self.model, "--plan", plan, "--data", os.path.join(self.folder, "data.npz"), "--steps", "1", "--check", "--quiet")
        return said, plan, best


def problem(build, model, cluster):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(build, model, cluster, folder)
        make_data(model, os.path.join(folder, "data.npz"))
        try:
            hands = {name: bench.take_by_hand(text) for name, text in list_by_hand(model).items()}
            found, plan, _ = bench.find()
            for name, hand in hands.items():
                if found[0] > SLACK * hand[0]:
                    return f"found {found[0]:.0f} ns where {name!r} by hand takes {hand[0]:.0f}"
            with open(plan) as file:
                if yaml.safe_load(file)["train"]["optimizer"]["kind"] != yaml.safe_load(bench.train)["optimizer"]["kind"]:
                    return "the plan that was written has another optimizer"
            smallest = min(hands, key=lambda name: hands[name][2])
            limit = -(-bench.take_by_hand(list_by_hand(model)[smallest], "planned")[2] // 1000) * 1000
            small, _, _ = bench.find("--memory", f"{limit}B")
            if small[2] > limit:
                return f"found a plan of {small[2]} bytes in {limit}"
            if small[0] > SLACK * hands[smallest][0]:
                return f"found {small[0]:.0f} ns in {limit} bytes, where {smallest!r} by hand takes {hands[smallest][0]:.0f}"
            least, _, best = bench.find("--memory", "least")
            if least[2] > small[2]:
                return f"the least is said to be {least[2]} bytes, and {small[2]} were met"
            print(f"{model} on {cluster}: {found[0] / 1e3:.1f} us; in {limit / 1e3:.0f} kB {small[0] / 1e3:.1f} us, by hand {hands[smallest][0] / 1e3:.1f}; least {least[2] / 1e3:.0f} kB by "
                  f"'recompute: {best['recompute']}'")
        except harness.Failed as error:
            return str(error)
    return ""


def main():
    build, names, _ = harness.arguments()
    cases = harness.select(CASES, names)
    return harness.run(cases, lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
