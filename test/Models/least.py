"""No plan takes less memory than what `cleave plan` calls proved.

Usage: least.py BUILD_DIR [NAME...]

A case is a model and a seed, which draws a plan: a mesh, rules of inputs, weights and values, and, of every second one, stages. `cleave plan`
with as many devices and a limit that nothing fits in says how much no program takes less than; what all buffers of a rank of the drawn plan take
(docs/report.md) is no less. What a plan asks that no program can have is passed over.
"""
import json
import os
import re
import sys
import tempfile
import threading

import numpy as np
import onnx
import yaml

sys.path[1:1] = [os.path.dirname(sys.path[0]), os.path.join(sys.path[0], "Torch")]
import harness
import plans

MODELS = os.path.dirname(os.path.abspath(__file__))
# With the sizes of dims, and elements of inputs that look something up.
SIZES = {"gpt2_dyn18": {"batch": 4, "seq": 16}, "llama_gqa_dyn18": {"batch": 4, "seq": 16}, "bert_ts17": {"batch": 4, "seq": 16},
         "vit_dyn18": {"batch": 4}, "resnet_ts17": {"batch": 4}, "unet_dyn18": {}, "t5_like_dyn18": {}, "moe_dyn18": {}}
SEEDS = 24
PROVED = re.compile(r"none takes less than ([\d.]+) (B|kB|MB|GB) \(proved\)")
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def make_inputs(path, sizes):
    """Zeros, for shapes alone are looked at: of each dim the size that is given, or the fixture's own."""
    told = np.load(path.replace(".onnx", ".npz"))
    arrays = {}
    for value in onnx.load(path).graph.input:
        recorded = told["in:" + value.name]
        dims = [sizes.get(dim.dim_param, size) for dim, size in zip(value.type.tensor_type.shape.dim, recorded.shape)]
        arrays[value.name] = np.ones(dims, recorded.dtype)
    return arrays


class Bounds:
    def __init__(self, build, folder):
        self.build, self.folder, self.models, self.proved, self.lock = build, folder, {}, {}, threading.Lock()

    def call(self, command, name, *words):
        sizes = ",".join(f"{key}={size}" for key, size in SIZES[name].items())
        return harness.cleave(self.build, command, os.path.join(MODELS, name + ".onnx"), *(["--dim", sizes] if sizes else []), *words)

    def get_model(self, name):
        if name not in self.models:
            path = os.path.join(MODELS, name + ".onnx")
            self.models[name] = plans.Model(path, make_inputs(path, SIZES[name]))
        return self.models[name]

    def find_bound(self, name, devices, has_stages):
        """Least bytes of a rank; half a digit of what is printed below it."""
        key = name, devices, has_stages
        if key not in self.proved:
            stages = ["--stages", "1..4", "--microbatches", "1..4"] if has_stages else ["--stages", "1"]
            text = self.call("plan", name, "--devices", str(devices), "--memory", "100B", "--uneven", *stages).stderr
            found = PROVED.search(text)
            if not found:
                raise RuntimeError(f"nothing is proved: {text[-300:]}")
            number, unit = found.groups()
            digit = 10.0 ** -len(number.partition(".")[2]) if "." in number else 1
            self.proved[key] = (float(number) - digit / 2) * UNITS[unit]
        return self.proved[key]

    def problem(self, case):
        name, seed = case
        with self.lock:
            plan = plans.draw(seed, self.get_model(name), has_batch=seed % 2 == 0)
        stem = os.path.join(self.folder, f"{name}.{seed}")
        with open(stem + ".yaml", "w") as file:
            yaml.safe_dump(plan, file)
        done = self.call("shard", name, "--plan", stem + ".yaml", "--emit", "planned", "--report", stem + ".json", "-o", stem + ".mlir", "--quiet")
        if done.returncode:
            return "" if "error:" in done.stderr and done.returncode == 1 else f"exit {done.returncode}: {done.stderr[-300:]}"
        with open(stem + ".json") as file:
            report = json.load(file)
        os.remove(stem + ".mlir")
        with self.lock:
            bound = self.find_bound(name, int(np.prod(list(plan["mesh"].values()))), "pipeline" in plan)
        peak = report["peak_bytes_per_rank"]
        return f"a rank takes {peak} bytes, and {bound:.0f} were proved to be the least: {plan}" if peak < bound else ""


def main():
    build, names, _ = harness.arguments()
    cases = {f"{name} {seed}": (name, seed) for name in SIZES for seed in range(SEEDS)}
    with tempfile.TemporaryDirectory() as folder:
        return harness.run(harness.select(cases, names), Bounds(build, folder).problem)


if __name__ == "__main__":
    sys.exit(main())
