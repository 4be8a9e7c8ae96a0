"""Indices that are out of range, of every op that looks something up, wherever it runs.

Usage: indices.py BUILD_DIR [NAME...]

Each op gets indices as an input, and as something computed from one; on one rank, and with what is looked up split over two; in the
evaluator, in a program, on an emulated device. In range, negative ones too, the outputs are those of onnxruntime, bit for bit. Out of range
a call with a wrong input is refused before anything runs (exit code 1), and a computed index is an error of the run (exit code 4) that says
which index it was, and what of: never numbers. OneHot takes any.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402

PLACES, WIDTH = 10, 6
TABLE = (PLACES, WIDTH)
LIMIT = 120
BUILD = ""

# By name: op type, shape of the indices, attributes, further input (updates).
OPS = {
    "gather": ("Gather", (2, 3), {"axis": 0}, None),
    "gather-inner": ("Gather", (4,), {"axis": 1}, None),
    "gather-elements": ("GatherElements", (4, WIDTH), {"axis": 0}, None),
    "gather-nd": ("GatherND", (3, 1), {}, None),
    "gather-nd-pairs": ("GatherND", (3, 2), {}, None),
    "scatter-elements": ("ScatterElements", (4, WIDTH), {"axis": 0}, (4, WIDTH)),
    "scatter-elements-add": ("ScatterElements", (4, WIDTH), {"axis": 0, "reduction": "add"}, (4, WIDTH)),
    "scatter-nd": ("ScatterND", (3, 1), {}, (3, WIDTH)),
    "scatter-nd-add": ("ScatterND", (3, 1), {"reduction": "add"}, (3, WIDTH)),
    "one-hot": ("OneHot", (5,), {"axis": -1}, None),
}
EXECUTORS = {"evaluator": [], "program": ["--executor=program"], "emulated": ["--device", "cuda-emulated"]}


def make_model(path, op, shape, attributes, updates, is_computed):
    """table[ids], or table[ids + 0 * n]: what is computed of two inputs is known to nobody."""
    inputs = [helper.make_tensor_value_info("table", TensorProto.FLOAT, TABLE), helper.make_tensor_value_info("ids", TensorProto.INT64, shape)]
    nodes, ids, names = [], "ids", ["table"]
    if is_computed:
        inputs.append(helper.make_tensor_value_info("more", TensorProto.INT64, shape))
        nodes.append(helper.make_node("Add", ["ids", "more"], ["sum"], name="/sum"))
        ids = "sum"
    if op == "OneHot":
        initializers = [helper.make_tensor("depth", TensorProto.INT64, [], [PLACES]), helper.make_tensor("values", TensorProto.FLOAT, [2], [0, 1])]
        nodes.append(helper.make_node(op, [ids, "depth", "values"], ["hot"], name="/lookup", **attributes))
        nodes.append(helper.make_node("MatMul", ["hot", "table"], ["y"], name="/product"))
    else:
        initializers, names = [], ["table", ids]
        if updates:
            inputs.append(helper.make_tensor_value_info("updates", TensorProto.FLOAT, updates))
            names.append("updates")
        nodes.append(helper.make_node(op, names, ["y"], name="/lookup", **attributes))
    graph = helper.make_graph(nodes, "indices", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initializers)
    onnx.save(onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)), path)


def call(words, folder):
    done = subprocess.run([f"{BUILD}/bin/cleave", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=LIMIT)
    return done.returncode, done.stdout


def try_ids(folder, words, arrays, wanted, is_computed):
    """What is wrong, or nothing. `wanted`: the outputs; none where the ids are out of range."""
    np.savez(os.path.join(folder, "in.npz"), **arrays)
    code, text = call(["run", "m.onnx", "--inputs", "in.npz", "--outputs", "out.npz", "--quiet", *words], folder)
    if wanted is None:
        code_wanted = 4 if is_computed else 1
        if code != code_wanted or not re.search(r"out of range", text) or not re.search(r"-?\d+", text) or not re.search("lookup|/sum", text):
            return f"exit code {code}, expected {code_wanted}\n{text}"
        return None
    if code:
        return f"exit code {code}\n{text}"
    with np.load(os.path.join(folder, "out.npz")) as got:
        return None if np.array_equal(got["y"], wanted) else f"got\n{got['y']}\nexpected\n{wanted}"


def problem(case):
    op, shape, attributes, updates, is_computed, executor, is_split = case
    draw = np.random.default_rng(7)
    axis = attributes.get("axis", 0)
    places = TABLE[axis] if op != "OneHot" else PLACES
    with tempfile.TemporaryDirectory(prefix="cleave-indices-") as folder:
        path = os.path.join(folder, "m.onnx")
        make_model(path, op, shape, attributes, updates, is_computed)
        words = list(executor)
        if is_split:
            words += ["--mesh", "t=2", "--shard", "table=[_, t]" if axis == 1 else "table=[t, _]"]
        arrays = {"table": draw.integers(-9, 9, TABLE).astype("f4")}
        if updates:
            arrays["updates"] = draw.integers(-9, 9, updates).astype("f4")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

        def give(ids):
            more = np.full(shape, 3, "i8")
            return {**arrays, "ids": ids - 3, "more": more} if is_computed else {**arrays, "ids": ids}

        # Each place once: of several updates of one place ONNX leaves the order open.
        def fitting(low):
            count = shape[0]
            column = low + draw.permutation(places)[:count] if op != "Gather" else None
            if op == "Gather" or op == "OneHot":
                return draw.integers(low, low + places, shape)
            ids = np.broadcast_to(column.reshape(-1, *[1] * (len(shape) - 1)), shape).copy()
            if op == "GatherND" and shape[-1] == 2:
                ids[:, 1] = draw.integers(low if low == 0 else -WIDTH, low + WIDTH if low == 0 else 0, shape[0])
            return ids

        for low in (0, -places):
            fed = give(fitting(low).astype("i8"))
            if text := try_ids(folder, words, fed, session.run(None, fed)[0], is_computed):
                return f"in range from {low} on: {text}"
        for wrong in (places, -places - 1, 1 << 40, -(1 << 40)):
            ids = fitting(0).astype("i8")
            ids.reshape(-1)[ids.size - (2 if shape[-1] == 2 else 1)] = wrong
            fed = give(ids)
            wanted = session.run(None, fed)[0] if op == "OneHot" else None
            if text := try_ids(folder, words, fed, wanted, is_computed or shape[-1] == 2):
                return f"index {wrong}: {text}"
    return None


def main():
    global BUILD
    BUILD, names, _ = harness.arguments()
    cases = {}
    for name, row in OPS.items():
        for is_computed in (False, True):
            for executor, words in EXECUTORS.items():
                for is_split in (False, True):
                    key = f"{name}-{'computed' if is_computed else 'input'}-{executor}{'-split' if is_split else ''}"
                    cases[key] = (*row, is_computed, words, is_split)
    return harness.run(harness.select(cases, names), problem)


if __name__ == "__main__":
    sys.exit(main())
