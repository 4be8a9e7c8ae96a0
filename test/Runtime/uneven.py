"""Programs whose inputs, parameters and outputs are cut into shards that do not divide, against numpy.

Usage: uneven.py BUILD_DIR [NAME...]

Two small models on 2 to 5 ranks: rows, columns and pictures of 5, 7, 10, 11 and 13 positions, so that the last shards end in padding,
and some are nothing else. Each is compiled, and run as threads, on garbage in memory, as processes over TCP and MPI, and on emulated devices; the
report says how much padding there is, as counted here.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from case import HAS_MPI, MPI_ENVIRONMENT, MPIRUN  # noqa: E402

LIMIT = 60


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def save(folder, name, nodes, inputs, outputs, weights):
    """The model's path."""
    def values(arrays):
        return [helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for key, array in arrays.items()]
    initializers = [numpy_helper.from_array(array, key) for key, array in weights.items()]
    graph = helper.make_graph([helper.make_node(op, words.split(), [result], name=result, **attributes)
                               for op, words, result, attributes in nodes], name, values(inputs), values(outputs), initializers)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def softmax(x):
    exponents = np.exp(x - x.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


def classifier(folder):
    """A table of 11 words, two products with a softmax over 13 in between, and what rows have in common."""
    weights = {"table": numbers(11, 10, seed=1), "w1": numbers(10, 13, seed=2), "b1": numbers(13, seed=3), "w2": numbers(13, 5, seed=4)}
    ids, x = np.array([3, 10, 0, 7, 10, 1, 5]), numbers(7, 10, seed=5)
    hidden = softmax((weights["table"][ids] + x) @ weights["w1"] + weights["b1"])
    y = hidden @ weights["w2"]
    inputs, outputs = {"ids": ids, "x": x}, {"y": y, "mean": y.mean(0), "most": y.max(0), "best": np.argmax(hidden, -1)}
    nodes = [("Gather", "table ids", "rows", {}), ("Add", "rows x", "sum", {}), ("MatMul", "sum w1", "product", {}),
             ("Add", "product b1", "biased", {}), ("Softmax", "biased", "hidden", {"axis": -1}), ("MatMul", "hidden w2", "y", {}),
             ("ReduceMean", "y", "mean", {"axes": [0], "keepdims": 0}), ("ReduceMax", "y", "most", {"axes": [0], "keepdims": 0}),
             ("ArgMax", "hidden", "best", {"axis": -1, "keepdims": 0})]
    return save(folder, "classifier", nodes, inputs, outputs, weights), inputs, outputs


def windows(x, size, stride, pad, fill):
    """[rows, columns, batch, channels, size, size] of a picture."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    rows, columns = ((extent - size) // stride + 1 for extent in padded.shape[2:])
    return np.array([[padded[:, :, i * stride:i * stride + size, j * stride:j * stride + size] for j in range(columns)] for i in range(rows)])


def picture(folder):
    """Edges go round: a convolution over 7 x 10, a pool of steps of two, a slice from the end."""
    weights = {"k": numbers(4, 3, 3, 3, seed=6)}
    x = numbers(1, 3, 7, 10, seed=7)
    conv = np.einsum("ijbcyx,ocyx->boij", windows(x, 3, 1, 1, 0), weights["k"])
    pooled = windows(conv, 3, 2, 1, -np.inf).max((4, 5)).transpose(2, 3, 0, 1)
    inputs, outputs = {"x": x}, {"conv": conv, "pooled": pooled, "turned": conv[:, :, ::-1]}
    weights["from"], weights["to"], weights["dim"], weights["step"] = (np.array([n]) for n in (-1, -(1 << 31), 2, -1))
    nodes = [("Conv", "x k", "conv", {"pads": [1, 1, 1, 1]}),
             ("MaxPool", "conv", "pooled", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
             ("Slice", "conv from to dim step", "turned", {})]
    return save(folder, "picture", nodes, inputs, outputs, weights), inputs, outputs


ROWS = {"ids": "[a]", "x": "[a, _]", "y": "[a, _]", "best": "[a]"}
COLUMNS = {"table": "[a, _]", "w1": "[_, a]", "w2": "[a, _]", "y": "[_, a]", "mean": "[a]"}
BOTH = {"ids": "[a]", "x": "[a, b]", "w1": "[b, _]", "y": "[a, b]"}
NESTED = {"ids": "[[a, b]]", "x": "[[a, b], _]", "w1": "[_, b]", "most": "[[b, a]]"}
CASES = {f"{model.__name__} {name} on {mesh}": (model, mesh, annotations)
         for model, name, annotations, meshes in ((classifier, "rows", ROWS, ("a=2", "a=3", "a=4", "a=5")),
                                             (classifier, "columns", COLUMNS, ("a=3", "a=4")),
                                             (classifier, "both", BOTH, ("a=2,b=2", "a=4,b=3")),
                                             (classifier, "nested", NESTED, ("a=2,b=2", "a=3,b=2")),
                                             (picture, "rows", {"x": "[_, _, a, _]", "conv": "[_, _, a, _]", "pooled": "[_, _, a, _]", "turned": "[_, _, a, _]"}, ("a=2", "a=3", "a=4")),
                                             (picture, "both", {"x": "[_, _, a, b]", "conv": "[_, _, a, b]", "pooled": "[_, _, b, a]"}, ("a=2,b=3", "a=3,b=2")))
         for mesh in meshes}


def count_padding(arrays, annotations, mesh):
    """(bytes of padding, bytes held) of all ranks, for arrays that are cut as annotated or whole."""
    ranks, padding, held = int(np.prod(list(mesh.values()))), 0, 0
    for name, array in arrays.items():
        local, shards = array.itemsize, 1
        dims = re.findall(r"\[[^\[\]]*\]|\w+", annotations.get(name, "[]")[1:-1])
        for extent, dim in zip(array.shape, dims or ["_"] * array.ndim):
            cut = int(np.prod([mesh[axis] for axis in re.findall(r"[a-z]", dim)]))
            local, shards = local * -(-extent // cut), shards * cut
        held += ranks * local
        padding += ranks * local - ranks // shards * array.nbytes
    return padding, held


def problem(build, model, mesh, annotations):
    with tempfile.TemporaryDirectory() as folder:
        path, inputs, outputs = model(folder)
        arrays = {"out:" + name: array for name, array in outputs.items()}
        given, program, report, plan, got = (os.path.join(folder, name) for name in ("in.npz", "m.cleave", "report.json", "plan.yaml", "out.npz"))
        np.savez(given, **inputs)
        with open(plan, "w") as file:
            file.write("mesh: {" + mesh.replace("=", ": ") + "}\nshard:\n" +
                       "".join(f"  - {{tensor: {name}, dims: {dims}, uneven: true}}\n" for name, dims in annotations.items()))
        done = harness.cleave(build, "compile", path, "--plan", plan, "-o", program, "--report", report)
        if done.returncode:
            return f"compile: exit {done.returncode}: {done.stderr[-800:]}"
        if "padding of all ranks" not in done.stdout:
            return f"no padding in the table:\n{done.stdout}"
        with open(report) as file:
            told = json.load(file)
        exchanges, told = {"window", "permute"} & set(told["totals"]), told["padding"]
        axes = {axis: int(size) for axis, size in (word.split("=") for word in mesh.split(","))}
        for kind, of in (("inputs", inputs), ("outputs", {name: array for name, array in outputs.items() if name in annotations})):
            padding, held = count_padding(of, annotations, axes)
            if kind == "inputs" and (told[kind]["bytes"], round(told[kind]["share"], 9)) != (padding, round(padding / held, 9)):
                return f"{kind}: the report says {told[kind]}, counted {padding} of {held}"
            if kind == "outputs" and told[kind]["bytes"] < padding:
                return f"{kind}: the report says {told[kind]}, counted {padding} at least"
        run, ranks = f"{build}/bin/cleave-run", int(np.prod(list(axes.values())))
        ways = {"threads": [run], "processes": [run, "--local"], **({"mpirun": [*MPIRUN, str(ranks), run]} if HAS_MPI else {})}
        for way, words in ways.items():
            done = subprocess.run([*words, program, "--inputs", given, "--outputs", got, "--repeat", "2"], capture_output=True, text=True,
                                  timeout=LIMIT, env=MPI_ENVIRONMENT)
            if done.returncode:
                return f"{way}: exit {done.returncode}: {done.stdout[-500:]}{done.stderr[-800:]}"
            with np.load(got) as file:
                if text := harness.difference(file, arrays, 1e-4, 1e-5):
                    return f"{way}: {text}"
            os.remove(got)
        for way, words in {"the evaluator": [], "kernels": ["--executor", "program"], "emulated devices": ["--device", "cuda-emulated"]}.items():
            done = harness.cleave(build, "run", path, "--plan", plan, "--inputs", given, "--outputs", got, "--check", "--quiet", *words)
            if done.returncode:
                return f"{way}: exit {done.returncode}: {done.stdout[-500:]}{done.stderr[-800:]}"
            with np.load(got) as file:
                if text := harness.difference(file, arrays, 1e-4, 1e-5):
                    return f"{way}: {text}"
        # Padding of what is exchanged is nobody's, and not written: then not every byte that a command has is touched.
        garbage = subprocess.run([f"{build}/bin/cleave-try-program", program, given], capture_output=True, text=True)
        if garbage.returncode and not (exchanges and "did not write" in garbage.stdout + garbage.stderr):
            return f"garbage: exit {garbage.returncode}: {garbage.stdout[-400:]}{garbage.stderr[-400:]}"
        return ""


def main():
    build, names, _ = harness.arguments()
    return harness.run(harness.select(CASES, names), lambda case: problem(build, *case))


if __name__ == "__main__":
    sys.exit(main())
