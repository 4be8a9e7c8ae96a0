"""Gradients of attention on one device as this machine plays it, by tiles and without scores in memory, against their formulas in f64.

Usage: attention_devices.py BUILD_DIR [NAME...]

A case has as many scores as are not kept. Next to gradients it is held that the peak of the rank has no room for one tensor of scores.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(1, os.path.dirname(sys.path[0]))
sys.path.insert(2, os.path.join(sys.path[1], "Models", "Parallel"))
import harness
from rings import Case

# Batch, heads of keys, queries of each, tokens, keys, size, size of values, causal, left, softcap, mask.
CASES = {
    "plain": (1, 4, 1, 256, 256, 32, 32, False, None, 0.0, None),
    "causal": (1, 2, 2, 300, 300, 16, 24, True, None, 0.0, None),
    "window": (2, 1, 2, 270, 270, 20, 8, True, 40, 0.0, None),
    "capped": (1, 2, 1, 380, 410, 64, 64, False, None, 2.0, "keys"),
    "masked": (1, 4, 1, 257, 259, 8, 12, False, None, 0.0, "added"),
}


class Whole(Case):
    def __init__(self, name):
        super().__init__(0)
        (self.batch, self.kv, self.group, self.tokens, self.keys, self.size, self.value_size, self.causal, self.left, self.softcap,
         self.mask) = CASES[name]
        self.mesh, self.axes, self.ranks, self.element, self.uneven, self.back, self.written = {"x": 1}, '"x"', 1, "f32", False, True, False
        self.offset, self.right, self.scale, self.shard = 0, None, self.size**-0.5, self.keys


def problem(build, name):
    case = Whole(name)
    with tempfile.TemporaryDirectory() as folder:
        model, inputs, outputs, path = (os.path.join(folder, word) for word in ("m.mlir", "in.npz", "out.npz", "report.json"))
        options, arrays = case.step(build, model), case.arrays()
        np.savez(inputs, **arrays)
        done = harness.cleave(build, "run", model, "--inputs", inputs, "--outputs", outputs, "--report", path, "--quiet", "--device", "cuda-emulated",
                              *options)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()[:600]}"
        results = dict(np.load(outputs))
        with open(path) as file:
            peak = json.load(file)["peak_bytes_per_rank"]
    for wanted, expected in case.gradients(arrays).items():
        off = np.linalg.norm(results[f"grad({wanted})"] - expected) / np.linalg.norm(expected)
        if not off < 2e-6:
            return f"grad({wanted}) is off by {off:.1e} of its length"
    scores, given = 4 * case.batch * case.kv * case.group * case.tokens * case.keys, sum(array.nbytes for array in arrays.values())
    return "" if peak < given + scores else f"a peak of {peak} bytes has room for {scores} of scores next to {given} that are given"


def main():
    build, names, _ = harness.arguments()
    sys.exit(harness.run(harness.select({name: name for name in CASES}, names), lambda name: problem(build, name)))


if __name__ == "__main__":
    main()
