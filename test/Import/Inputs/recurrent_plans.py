"""Recurrent nets whose weights a plan cuts along the gates: equal to onnxruntime's, and what is sent is the state, once for each step
(twice in a GRU that resets it before the product), never a weight.

Prints `N passed, N failed of N`; what failed comes before.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402

RNG = np.random.default_rng(6)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 6, 4, 16, 64


def make(op, directions, starts, path, **attributes):
    """Saves a model and its inputs; what onnxruntime makes of them. `starts`: from a state that is given."""
    def numbers(*shape):
        return (0.3 * RNG.standard_normal(shape)).astype(np.float32)

    gates = GATES[op]
    weights = {"W": numbers(directions, gates * HIDDEN, INPUTS), "R": numbers(directions, gates * HIDDEN, HIDDEN),
               "B": numbers(directions, 2 * gates * HIDDEN)}
    feeds = {"x": numbers(STEPS, BATCH, INPUTS), **({"h": numbers(directions, BATCH, HIDDEN)} if starts else {})}
    names = ["x", *weights] + (["", "h"] if starts else [])
    node = helper.make_node(op, names, ["y"], hidden_size=HIDDEN, direction="bidirectional" if directions == 2 else "forward", **attributes)
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in feeds.items()]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(a, n) for n, a in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    np.savez(path[:-5] + ".npz", **feeds)
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def problem_of(path, wanted, ranks, rules, who, sent):
    out = path[:-5] + ".out.npz"
    done = subprocess.run(["cleave", "run", path, "--inputs", path[:-5] + ".npz", "--outputs", out, "--mesh", f"a={ranks}", "--check", "--executor", who,
                           *itertools.chain(*(("--shard", rule) for rule in rules))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return done.stdout[-400:] or "fails"
    got = np.load(out)["y"]
    if not np.allclose(got, wanted, rtol=1e-4, atol=1e-5):
        return f"y differs by {np.abs(got - wanted).max()}"
    said = re.search(r"sent by a rank: +([\d.]+) (B|kB)\n", done.stdout)
    number = said and float(said[1]) * (1000 if said[2] == "kB" else 1)
    return "" if said and abs(number - sent) <= 5 else f"sends {number} bytes, expected {sent}\n{done.stdout[:400]}"


def main():
    bad, count, left_out = [], 0, 0
    kinds = [("LSTM", {}), ("GRU", {"linear_before_reset": 0}), ("GRU", {"linear_before_reset": 1}), ("RNN", {})]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        for (op, attributes), directions, starts in itertools.product(kinds, (1, 2), (False, True)):
            wanted = make(op, directions, starts, path, **attributes)
            # Of what is reset before the product, the reset state is sent, too.
            steps = STEPS * (2 if attributes.get("linear_before_reset") == 0 else 1)
            state = directions * BATCH * HIDDEN * 4
            for ranks, rules, who in itertools.product((2, 4), (["R=[_, a, _]"], ["{W,R}=[_, a, _]"]), ("reference", "program")):
                count += 1
                label = f"{op} {attributes} {directions} {starts} {ranks} {rules} {who}"
                if not harness.is_due(label):
                    left_out += 1
                    continue
                problem = problem_of(path, wanted, ranks, [*rules, "y=[_, _, _, a]"], who, steps * state * (ranks - 1) // ranks)
                if problem:
                    bad.append(f"{label}: {problem}")
    return harness.sum_up(bad, count, left_out)


if __name__ == "__main__":
    sys.exit(main())
