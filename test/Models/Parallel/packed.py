"""A block of a LLaMA whose weights are 4 bits (MatMulNBits, and GatherBlockQuantized for the embedding), under the plans of tensor and of fully
sharded parallelism: what is sent, kind by kind, is what the formulas of these forms say, with weights as the bytes that are stored. At the
sizes of LLaMA-7B it is sharded, at small ones run, equal to onnxruntime's.

Prints `N passed, N failed of N`; what failed comes before.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

sys.path.insert(1, os.path.join(sys.path[0], "..", ".."))
import harness  # noqa: E402
from check import compare  # noqa: E402
from formulas import F32, Sent  # noqa: E402

ort.set_default_logger_severity(4)
BLOCK = 32
REAL = {"batch": 8, "width": 4096, "heads": 32, "inner": 11008, "vocabulary": 32000}
SMALL = {"batch": 8, "length": 4, "width": 256, "heads": 8, "inner": 512, "vocabulary": 64}


def products(s):
    """Name, depth and columns of each product."""
    width, inner = s["width"], s["inner"]
    return [*((name, width, width) for name in "qkvo"), ("gate", width, inner), ("up", width, inner), ("down", inner, width)]


def model(s, path):
    """Weights are inputs, so that nothing large is written. Returns the shapes and types of all inputs."""
    width = s["width"]
    inputs = {"ids": (np.int64, (s["batch"], s["length"])), "table": (np.uint8, (s["vocabulary"], width // 2)),
              "table.scale": (np.float32, (s["vocabulary"], width // BLOCK)), "norm": (np.float32, (width,)), "norm2": (np.float32, (width,))}
    nodes = []

    def add(op, operands, result, domain="com.microsoft", **attributes):
        nodes.append(helper.make_node(op, operands, [result], domain=domain, **attributes))
        return result

    def product(name, x):
        _, depth, columns = next(entry for entry in products(s) if entry[0] == name)
        inputs[name + ".weight"] = (np.uint8, (columns, depth // BLOCK, BLOCK // 2))
        inputs[name + ".scale"] = (np.float32, (columns, depth // BLOCK))
        return add("MatMulNBits", [x, name + ".weight", name + ".scale"], name, K=depth, N=columns, bits=4, block_size=BLOCK)

    hidden = add("GatherBlockQuantized", ["table", "ids", "table.scale"], "hidden", bits=4, block_size=BLOCK)
    x = add("SimplifiedLayerNormalization", [hidden, "norm"], "x", "", axis=-1, epsilon=1e-5)
    seen = add("MultiHeadAttention", [product(name, x) for name in "qkv"], "seen", num_heads=s["heads"], unidirectional=1)
    middle = add("Add", [hidden, product("o", seen)], "middle", "")
    x = add("SimplifiedLayerNormalization", [middle, "norm2"], "x2", "", axis=-1, epsilon=1e-5)
    gate, up = product("gate", x), product("up", x)
    wide = add("Mul", [add("QuickGelu", [gate], "silu", alpha=1.0), up], "wide", "")
    add("Add", [middle, product("down", wide)], "y", "")
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), shape) for n, (t, shape) in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return inputs


def tensor_parallel(s, p):
    """Megatron: a sum behind attention and one behind the feed-forward block. Rows of the embedding are on one rank each: what is found is
    added up packed. Its scales are whole everywhere, as no rule names them."""
    tokens = s["batch"] * s["length"]
    return Sent().all_reduce(p, tokens * s["width"] * F32, times=2).all_reduce(p, tokens * s["width"] // 2)


def fully_sharded(s, p):
    """Each weight is gathered for the batch's sake, packed. Scales are whole everywhere."""
    sent = Sent()
    for _, depth, columns in products(s):
        sent.all_gather(p, depth * columns // 2)
    return sent


# Weights this small are moved rather than activations, where there are some hundred tokens: tensor parallelism is of one token each.
RULES = {"tensor": (tensor_parallel, 1, ["{q,k,v,gate,up}.weight=[a, _, _]", "{o,down}.weight=[_, a, _]", "table=[a, _]", "ids=[_, _]", "y=[_, _, _]"]),
         "fully sharded": (fully_sharded, 4096, ["*.weight=[a, _, _]", "ids=[a, _]", "y=[a, _, _]"])}


def draw(inputs, s, rng):
    def one(name, kind, shape):
        if kind == np.float32:
            return ((1 if "norm" in name else 0.02) * (1 + rng.random(shape))).astype(kind)
        return rng.integers(0, s["vocabulary"] if name == "ids" else 256, shape).astype(kind)
    return {name: one(name, kind, shape) for name, (kind, shape) in inputs.items()}


def check(folder, s, label, runs):
    """What is wrong, or an empty string."""
    formula, length, rules = RULES[label]
    s = s if runs else {**s, "length": length}
    path, report, out = (os.path.join(folder, name) for name in ("model.onnx", "report.json", "out.npz"))
    inputs = model(s, path)
    mlir, given = path[:-5] + ".mlir", path[:-5] + ".npz"
    text = subprocess.run(["cleave", "import", path, "-o", mlir], capture_output=True, text=True)
    if text.returncode:
        return text.stderr[-300:]
    with open(mlir) as file:
        text = file.read()
    with open(mlir, "w") as file:
        file.write(re.sub(r'(nn\.name = "(?:\w+\.(?:weight|scale)|table|norm2?)")', r"\1, nn.parameter", text))
    command = ["cleave", "run" if runs else "shard", mlir, "--mesh", "a=8", "--report", report]
    for rule in rules:
        command += ["--shard", rule]
    arrays = draw(inputs, s, np.random.default_rng(2))
    if runs:
        np.savez(given, **arrays)
    done = subprocess.run(command + (["--inputs", given, "--outputs", out, "--check", "--quiet"] if runs else ["-o", os.devnull]),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return done.stdout[-400:] or "fails"
    if runs:
        expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, arrays)
        if text := harness.difference(np.load(out), {"out:y": expected[0]}, 2e-3, 2e-3):
            return text
        return ""
    with open(report) as file:
        return compare(formula(s, 8).table(), json.load(file)["totals"])


def main():
    bad, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for label in RULES:
            for s, runs in ((REAL, False), (SMALL, True)):
                count += 1
                if problem := check(folder, s, label, runs):
                    bad.append(f"{label}, width {s['width']}: {problem}")
    return harness.sum_up(bad, count)


if __name__ == "__main__":
    sys.exit(main())
