"""Lookups in dequantized tables, held against onnxruntime: `quantized_tables.py FOLDER [--large]`.

Prints `N passed, N failed`; what failed comes before. With `--large` it only writes FOLDER/large.onnx, with a table
of 30,000 x 768 bytes, and nibbles.onnx, with one of as many numbers of 4 bits.
"""

import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)
ROWS, COLUMNS = 100, 8
PLACES = np.array([[0, 3, -1, 99], [64, 63, -100, 3]], np.int64)


def scales(*shape):
    return (RNG.random(shape) + 0.5).astype(np.float32) / 16


def integers(kind, *shape):
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(kind)


# name: (table, scale, zero point, attributes of DequantizeLinear, nodes between it and the lookup, axis of the lookup)
CASES = {
    "tensor": (integers(np.int8, ROWS, COLUMNS), scales(), integers(np.int8), {}, [], 0),
    "rows": (integers(np.uint8, ROWS, COLUMNS), scales(ROWS), integers(np.uint8, ROWS), {"axis": 0}, [], 0),
    "rows without zero": (integers(np.int8, ROWS, COLUMNS), scales(ROWS), None, {"axis": 0}, [], 0),
    "columns": (integers(np.int8, ROWS, COLUMNS), scales(COLUMNS), integers(np.int8, COLUMNS), {"axis": 1}, [], 0),
    "blocks of columns": (integers(np.int8, ROWS, COLUMNS), scales(ROWS, 2), integers(np.int8, ROWS, 2),
                          {"axis": 1, "block_size": 4}, [], 0),
    "blocks of rows": (integers(np.uint8, ROWS, COLUMNS), scales(4, COLUMNS), integers(np.uint8, 4, COLUMNS),
                       {"axis": 0, "block_size": 32}, [], 0),
    # Too large for the importer to repeat the scales: 224 does not divide 300,000.
    "large blocks of rows": (integers(np.uint8, 300000, 64), scales(300000 // 224 + 1, 64),
                             integers(np.uint8, 300000 // 224 + 1, 64), {"axis": 0, "block_size": 224}, [], 0),
    "16 bits": (integers(np.int16, ROWS, COLUMNS), scales(ROWS), integers(np.int16, ROWS), {"axis": 0}, [], 0),
    "transposed": (integers(np.int8, COLUMNS, ROWS), scales(ROWS), integers(np.int8, ROWS), {"axis": 1},
                   [("Transpose", {"perm": [1, 0]})], 0),
    "along columns": (integers(np.int8, COLUMNS, ROWS), scales(COLUMNS), integers(np.int8, COLUMNS), {"axis": 0}, [], 1),
    "cast": (integers(np.int8, ROWS, COLUMNS), scales(ROWS).astype(np.float16), None, {"axis": 0},
             [("Cast", {"to": TensorProto.FLOAT})], 0),
    # Two numbers of 4 bits in a byte, taken apart by shifts.
    "nibbles": (integers(np.uint8, ROWS, COLUMNS // 2), scales(), None, {}, [], 0),
    "tied": (integers(np.int8, ROWS, COLUMNS), scales(ROWS), None, {"axis": 0}, [], 0),
}
# One rank, then two: the table cut by its first dim, by its last one, and batches.
MESHES = [[], ["--mesh", "m=2", "--shard", "table=[m, _]"], ["--mesh", "m=2", "--shard", "table=[_, m]"],
          ["--mesh", "m=2", "--shard", "places=[m, _]"]]


def make_model(name, case):
    table, scale, zero, attributes, between, axis = case
    weights = {"table": table, "scale": scale} | ({} if zero is None else {"zero": zero})
    nodes = [helper.make_node("DequantizeLinear", list(weights), ["wide"], **attributes)]
    if name == "nibbles":
        weights |= {"last": np.array([-1], np.int64), "shifts": np.array([0, 4], np.uint8), "mask": np.array(15, np.uint8),
                    "shape": np.array([table.shape[0], 2 * table.shape[1]], np.int64), "half": np.array(8, np.float32)}
        nodes = [helper.make_node("Unsqueeze", ["table", "last"], ["apart"]),
                 helper.make_node("BitShift", ["apart", "shifts"], ["shifted"], direction="RIGHT"),
                 helper.make_node("BitwiseAnd", ["shifted", "mask"], ["masked"]),
                 helper.make_node("Reshape", ["masked", "shape"], ["bits"]),
                 helper.make_node("Cast", ["bits"], ["steps"], to=TensorProto.FLOAT),
                 helper.make_node("Sub", ["steps", "half"], ["centered"]),
                 helper.make_node("Mul", ["centered", "scale"], ["wide"])]
    last = "wide"
    for number, (op, keys) in enumerate(between):
        nodes.append(helper.make_node(op, [last], [f"between{number}"], **keys))
        last = f"between{number}"
    nodes.append(helper.make_node("Gather", [last, "places"], ["found"], axis=axis))
    if name == "tied":
        nodes += [helper.make_node("Transpose", [last], ["back"], perm=[1, 0]),
                  helper.make_node("MatMul", ["found", "back"], ["y"])]
    else:
        nodes.append(helper.make_node("Tanh", ["found"], ["y"]))
    graph = helper.make_graph(
        nodes, "lookup", [helper.make_tensor_value_info("places", TensorProto.INT64, PLACES.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(folder, name, options, want):
    """What is wrong with a case, on ranks as `options` say."""
    command = ["cleave", "run", f"{folder}/model.onnx", "--inputs", f"{folder}/in.npz", "--outputs",
               f"{folder}/out.npz", "--quiet", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    got = np.load(f"{folder}/out.npz")["y"]
    # A product of 8 terms below 8 x 8 each; what is looked up is exact but for its last bit.
    tolerance = 1e-3 if name == "tied" else 1e-6
    return "" if np.allclose(got, want, rtol=1e-5, atol=tolerance) else f"largest error {np.abs(got - want).max()}"


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    if "--large" in sys.argv:
        global PLACES
        PLACES = np.zeros((2, 16), np.int64)
        for name, kind, columns in (("large", np.int8, 768), ("nibbles", np.uint8, 384)):
            onnx.save(make_model(name, (integers(kind, 30000, columns), scales(), None, {}, [], 0)), f"{folder}/{name}.onnx")
        return
    passed = failed = 0
    np.savez(f"{folder}/in.npz", places=PLACES)
    for name, case in CASES.items():
        onnx.save(make_model(name, case), f"{folder}/model.onnx")
        want = ort.InferenceSession(f"{folder}/model.onnx", providers=["CPUExecutionProvider"]).run(
            None, {"places": PLACES})[0]
        for options in MESHES + ([["--executor=program"]] if name == "rows" else []):
            problem = check(folder, name, options, want)
            passed, failed = passed + (not problem), failed + bool(problem)
            if problem:
                print(f"{name} {' '.join(options)}: {problem}")
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
