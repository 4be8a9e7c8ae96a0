"""Gradient rules under sharding: each case of gradients.py with each dim of each input over 2 and over 3 ranks, against one device.

    gradient_placements.py BUILD_DIR [CASE...]

Extents are small, so that most are padded, and inputs have both signs. That one device is right is what gradients.py holds against
differences.
"""
import os
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(1, os.path.dirname(sys.path[0]))
import harness
from gradient_cases import CASES
from gradients import build_model

RANKS = (2, 3)


def list_placements():
    """{words: (case, input, dim, ranks)}."""
    placements = {}
    for name, make in CASES.items():
        _, feeds, fixed = make()
        for tensor, array in {**feeds, **fixed}.items():
            for dim, extent in enumerate(array.shape):
                if extent > 1:
                    placements |= {f"{name}: dim {dim} of {tensor} over {ranks}": (name, tensor, dim, ranks) for ranks in RANKS}
    return placements


def problem(build, case, tensor, dim, ranks, folder, number):
    body, feeds, fixed = CASES[case]()
    path, inputs, plan = (os.path.join(folder, f"{number}.{suffix}") for suffix in ("onnx", "npz", "yaml"))
    onnx.save(build_model(body, feeds, fixed)[1], path)
    arrays = {**feeds, **fixed}
    np.savez(inputs, **arrays)
    dims = ["axis" if i == dim else "_" for i in range(arrays[tensor].ndim)]
    with open(plan, "w") as file:
        file.write(f"mesh: {{axis: {ranks}}}\nuneven: true\nshard:\n  - {{tensor: \"{tensor}\", dims: [{', '.join(dims)}]}}\n")
    done = harness.cleave(build, "run", path, "--plan", plan, "--inputs", inputs, "--check")
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr + done.stdout)[-500:]}"
    checked = done.stdout.count(": ok, ")
    return "" if checked == len(feeds) else f"{checked} of {len(feeds)} gradients were compared"


def main():
    build, names, _ = harness.arguments()
    placements = harness.select(list_placements(), names)
    with tempfile.TemporaryDirectory() as folder:
        numbered = {name: (*placement, folder, number) for number, (name, placement) in enumerate(placements.items())}
        return harness.run(numbered, lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
